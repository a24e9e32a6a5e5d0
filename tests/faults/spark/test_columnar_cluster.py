"""The columnar reader on separate executors: they get its jar whenever they start, and a task that fails, loses its executor or
is overtaken by a second attempt returns its rows once.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

from tests.support.spark.spark_script import run_script
from tests.support.tables.small_table import make_table

ROWS = 10_000
FILES = 2
TEXTS = [None, "", "é", "long " * 50]
COUNT = FILES * ROWS
TOTALS = [COUNT * (COUNT - 1) // 2, COUNT * 3 // 4, COUNT]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    files = [
        pa.table(
            {
                "id": pa.array(range(start, start + ROWS), pa.int64()),
                "text": pa.array([TEXTS[i % len(TEXTS)] for i in range(ROWS)], pa.string()),
            }
        )
        for start in range(0, COUNT, ROWS)
    ]
    return make_table(tmp_path_factory.mktemp("columnar") / "t", files)


# ---------------------------------------------------------------- executors that die

CLUSTER = """
import json, os, signal, sys
from pyspark import TaskContext
from pyspark.sql import SparkSession, functions as F
from spark_plugin import pruning, register

spark = (
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.task.maxFailures", "4")
    .config("spark.pydelta.columnarReader.enabled", "true")
    .config("spark.sql.execution.arrow.pythonUDF.columnarInput.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
register(spark)

@F.udf("long")
def fails_first(number):
    if TaskContext.get().attemptNumber() == 0 and number == 4000:
        raise ValueError("the first attempt fails")
    return number

@F.udf("long")
def kills_its_executor_first(number):
    if TaskContext.get().attemptNumber() == 0 and number == 14000:
        daemon = os.getppid()
        with open(f"/proc/{daemon}/stat") as stat:
            executor = int(stat.read().rpartition(")")[2].split()[1])
        with open(f"/proc/{executor}/cmdline") as command:
            assert "CoarseGrainedExecutorBackend" in command.read()
        os.kill(executor, signal.SIGKILL)
    return number

def totals(df):
    return df.agg(F.sum("id"), F.count("text"), F.count("*")).first()[:]

df = spark.read.format("pydelta").load(sys.argv[1])
plan = df.select("id")._jdf.queryExecution().executedPlan().toString()
print(json.dumps({
    "columns": "ColumnarToRow" in plan,
    "totals": totals(df),
    "texts": df.groupBy("text").count().count(),
    "joined": df.select("id").join(df.select("id", "text"), "id").count(),
    "failed": totals(df.select(fails_first("id").alias("id"), "text")),
    "killed": totals(df.select(kills_its_executor_first("id").alias("id"), "text")),
    "afterwards": totals(df),
    "error": pruning.status(spark)["columns"].last_error,
}))
spark.stop()
"""


def test_separate_executors_read_columns_also_after_a_failure(table: str) -> None:
    result = run_script(CLUSTER, table)
    del result["stderr"]
    assert result == {
        "columns": True,
        "totals": TOTALS,
        "texts": len(TEXTS),
        "joined": COUNT,
        "failed": TOTALS,
        "killed": TOTALS,
        "afterwards": TOTALS,
        "error": None,
    }


# ---------------------------------------------------------------- a cluster of two machines

SPARK_HOME = Path(pyspark.__file__).parent
WORKERS = ["127.0.0.1", "127.0.0.2"]


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A standalone cluster. Its workers look like two machines, because Spark never runs a task twice on one machine."""
    logs = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        log = stack.enter_context(daemon(logs, "master", WORKERS[0]))
        url = awaited(log, r"Starting Spark master at (spark://[\d.:]+)")
        for host in WORKERS:
            log = stack.enter_context(daemon(logs, "worker", host, "--cores", "1", "--memory", "1g", "-d", str(logs / host), url))
            awaited(log, "Successfully registered with master")
        yield url


@contextmanager
def daemon(logs: Path, kind: str, host: str, *arguments: str) -> Iterator[Path]:
    """One of Spark's daemons, on an address of this machine; yields its log."""
    name = f"org.apache.spark.deploy.{kind}.{kind.capitalize()}"
    command = [str(SPARK_HOME / "bin" / "spark-class"), name, "--host", host, "--port", "0", "--webui-port", "0", *arguments]
    environment = {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-Dspark.master.rest.enabled=false",
    }
    log = logs / f"{kind}-{host}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield log
    finally:
        process.terminate()
        process.wait(30)


def awaited(log: Path, pattern: str) -> str:
    """Wait until the log matches the pattern, and return the last group."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        match = re.search(pattern, log.read_text())
        if match:
            return match[match.re.groups]
        time.sleep(0.2)
    raise AssertionError(log.read_text())


STANDALONE = """
import json, os, sys, time
from pyspark import TaskContext
from pyspark.sql import SparkSession, functions as F
from spark_plugin import pruning, register

url, table, written, settings = sys.argv[1:]
builder = SparkSession.builder.master(url)
for name, value in json.loads(settings).items():
    builder = builder.config(name, value)
spark = (
    builder.config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.executor.cores", "1")
    .config("spark.executor.memory", "700m")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.pydelta.columnarReader.enabled", "true")
    .config("spark.sql.execution.arrow.pythonUDF.columnarInput.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
register(spark)
context = spark.sparkContext._jsc.sc()

def listed(seq):
    return [seq.apply(i) for i in range(seq.length())]

def tasks():
    # task -> its executor, how it stands, whether it is a second attempt beside a first
    store = context.statusStore()
    stages = listed(store.stageList(None, False, False, spark.sparkContext._gateway.new_array(spark._jvm.double, 0), None))
    found = [task for stage in stages for task in listed(store.taskList(stage.stageId(), stage.attemptId(), 100))]
    return {task.taskId(): (task.executorId(), task.status(), task.speculative()) for task in found}

def totals(df):
    return df.agg(F.sum("id"), F.count("text"), F.count("*")).first()[:]

def wait_for(condition):
    deadline = time.monotonic() + 90
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)

def in_columns(df):
    return "ColumnarToRow" in df._jdf.queryExecution().executedPlan().toString()

@F.udf("long")
def slowly(number):
    if number % 10000 == 5000:
        time.sleep(4)
    return number

@F.udf("long")
def sleeps_first(number):
    if number == 5000 and TaskContext.get().attemptNumber() == 0:
        time.sleep(240)
    return number

df = spark.read.format("pydelta").load(table)
"""

DYNAMIC = (
    STANDALONE
    + """
first = totals(df)
columns = in_columns(df.select("id"))
wait_for(lambda: context.getExecutorIds().length() == 0)
left = context.getExecutorIds().length()
gone = {executor for executor, _, _ in tasks().values()}
again = totals(df.select(slowly("id").alias("id"), "text"))
print(json.dumps({
    "totals": [first, again],
    "columns": columns,
    "left": left,
    "new": len({executor for executor, status, _ in tasks().values() if status == "SUCCESS"} - gone),
    "error": pruning.status(spark)["columns"].last_error,
}))
spark.stop()
"""
)


def test_executors_that_come_and_go_each_get_the_reader(master: str, table: str, tmp_path: Path) -> None:
    """All executors stop before the second query, which runs two tasks of some seconds."""
    settings = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
        "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    }
    result = run_script(DYNAMIC, master, table, "", json.dumps(settings))
    del result["stderr"]
    assert result == {"totals": [TOTALS, TOTALS], "columns": True, "left": 0, "new": 2, "error": None}


SPECULATING = (
    STANDALONE
    + """
wait_for(lambda: context.getExecutorIds().length() == 2)
first = totals(df)

def overtaken(act):
    before = tasks()
    def ends():
        return {task[1:] for number, task in tasks().items() if number not in before}
    answer = act()
    wait_for(lambda: ("KILLED", False) in ends())
    return answer, sorted(end for end in ends() if end[0] == "KILLED" or end[1])

def write():
    df.select(sleeps_first("id").alias("id"), "text").write.format("pydelta").save(written)
    return totals(spark.read.format("pydelta").load(written))

print(json.dumps({
    "totals": first,
    "read": overtaken(lambda: totals(df.select(sleeps_first("id").alias("id"), "text"))),
    "written": overtaken(write),
    "afterwards": totals(df),
    "error": pruning.status(spark)["columns"].last_error,
}))
spark.stop()
"""
)


def test_task_overtaken_by_a_second_attempt_gives_each_row_once(master: str, table: str, tmp_path: Path) -> None:
    """The first attempt sleeps in the middle of a batch. Spark starts a second one on the other machine, and kills the first."""
    settings = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.5",
        "spark.speculation.minTaskRuntime": "500ms",
    }
    result = run_script(SPECULATING, master, table, str(tmp_path / "written"), json.dumps(settings))
    del result["stderr"]
    overtaken = [TOTALS, [["KILLED", False], ["SUCCESS", True]]]
    assert result == {"totals": TOTALS, "read": overtaken, "written": overtaken, "afterwards": TOTALS, "error": None}
