"""A process streams a table into others. It is killed at any moment and started again: each row arrives once.

At the same time, rows are appended to the source and its files are rewritten (dataChange=false, as OPTIMIZE does). One driver
runs two queries, one on the rows and one on the change feed. It uses an engine of a few lines that records offsets and commits as
Spark does, and starts in a tenth of Spark's time. There are eight times PYDELTA_FAULTS_N kills, 40 by default; PYDELTA_SEED
chooses their moments.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from tests.support.runs.seeds import run_seed

ROOT = Path(__file__).resolve().parents[3]
KILLS = int(os.environ.get("PYDELTA_FAULTS_N") or 5)
SEED = run_seed() or random.randrange(10**6)
READY, DONE = "both queries are running", "nothing is left"

# What Spark does with a source and a sink, for each batch: record the end of the batch, run it, record that it is done. After a
# restart it runs the last batch again if that is not recorded as done.
ENGINE = """
import json, os, pickle, sys
from pyspark import TaskContext
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.data_source import DeltaSource
from spark_plugin.streaming.stream_writer import DeltaStreamWriter
from spark_plugin.streaming.stream_reader import pin_stream

source, rows, changes, last = *sys.argv[1:4], sys.argv[4] == "last"

class Query:
    def __init__(self, target, **options):
        self.target, self.notes = target, target + "-checkpoint"
        os.makedirs(self.notes, exist_ok=True)
        options = {"path": source, "maxFilesPerTrigger": "2", **options}
        self.schema = to_spark_schema(pin_stream(options).schema)
        self.reader = DeltaSource(options).streamReader(self.schema)
        if last:
            self.reader.prepareForTriggerAvailableNow()
        self.number = max((int(name[7:]) for name in os.listdir(self.notes) if name.startswith("offset-")), default=-1)

    def note(self, name, value=""):
        with open(f"{self.notes}/.{name}", "w") as file:
            file.write(json.dumps(value))
        os.rename(f"{self.notes}/.{name}", f"{self.notes}/{name}")

    def noted(self, name):
        with open(f"{self.notes}/{name}") as file:
            return json.load(file)

    def step(self):
        \"\"\"Run a batch; False when there is nothing to read.\"\"\"
        if self.number >= 0 and not os.path.exists(f"{self.notes}/commit-{self.number}"):
            self.run()
            return True
        start = self.start_of(self.number + 1)
        end = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
        if end == start:
            return False
        self.number += 1
        self.note(f"offset-{self.number}", end)
        self.run()
        return True

    def start_of(self, number):
        return self.noted(f"offset-{number - 1}") if number else self.reader.initialOffset()  # which Spark does not note

    def run(self):
        parts = self.reader.partitions(self.start_of(self.number), self.noted(f"offset-{self.number}"))
        reader = pickle.loads(pickle.dumps(self.reader))
        writer = DeltaSource({"path": self.target, "checkpointLocation": self.notes}).streamWriter(self.schema, False)
        messages = []
        for number, part in enumerate(parts or [None]):
            context = TaskContext._getOrCreate()
            context._partitionId, context._localProperties = number, {"sql.streaming.queryId": os.path.basename(self.target)}
            messages.append(writer.write(iter([] if part is None else reader.read(part))))
        DeltaStreamWriter(writer._options.open(), None).commit(pickle.loads(pickle.dumps(messages)), self.number)
        self.note(f"commit-{self.number}")

queries = [Query(rows), Query(changes, readChangeFeed="true")]
print(READY, flush=True)
while any([query.step() for query in queries]) or not last:
    pass
print(DONE, flush=True)
"""


class Writer(threading.Thread):
    """Appends rows to the source, and sometimes rewrites a partition without changing a row."""

    def __init__(self, path: str) -> None:
        super().__init__(daemon=True)
        self.path, self.count, self.failure = path, 0, None
        self._ended = threading.Event()
        self._append()

    def _append(self) -> None:
        ids = list(range(self.count, self.count + 10))
        batch = pa.table({"id": pa.array(ids, pa.int64()), "part": [id % 3 for id in ids]})
        feed = {"delta.enableChangeDataFeed": "true"} if self.count == 0 else None
        write_delta(self.path, batch, mode="append", partition_by=["part"], configuration=feed)
        self.count += 10

    def _optimize(self, part: int) -> None:
        rows = DeltaTable(self.path).to_arrow(filter=f"part = {part}")
        write_delta(self.path, rows, mode="overwrite", replace_where=f"part = {part}", data_change=False)

    def run(self) -> None:
        try:
            turn = 0
            while not self._ended.wait(0.4):
                turn += 1
                self._append()
                if turn % 4 == 0:
                    self._optimize(turn // 4 % 3)
        except BaseException as error:  # the test raises it
            self.failure = error

    def finish(self) -> int:
        """The number of rows: ids 0 up to it."""
        self._ended.set()
        self.join()
        if self.failure is not None:
            raise self.failure
        return self.count


class Driver:
    """A process with the two queries."""

    def __init__(self, script: str, *arguments: str) -> None:
        script = f"READY, DONE = {READY!r}, {DONE!r}\n{script}"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def wait_for(self, line: str) -> None:
        assert self.process.stdout is not None
        seen = []
        for text in self.process.stdout:
            seen.append(text)
            if text.strip() == line:
                return
        raise AssertionError(f"the driver ended with {self.process.wait()}: {''.join(seen)[-3000:]}")

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # it ended by itself, which the test has seen
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.mark.timeout(120 + 60 * KILLS)
def test_stream_killed_at_any_moment_gives_each_row_once(tmp_path: Path) -> None:
    run_with_kills(tmp_path, ENGINE, 8 * KILLS, lambda driver, chosen: time.sleep(chosen.uniform(0, 0.6)))


def run_with_kills(root: Path, script: str, kills: int, disturb: Callable[[Driver, random.Random], None]) -> None:
    print(f"PYDELTA_SEED={SEED} PYDELTA_FAULTS_N={KILLS}")
    chosen = random.Random(SEED)
    source, rows, changes = (str(root / name) for name in ("source", "rows", "changes"))
    writer = Writer(source)
    writer.start()
    for _ in range(kills):
        driver = Driver(script, source, rows, changes, "kill")
        try:
            driver.wait_for(READY)
            disturb(driver, chosen)
            if driver.process.poll() is not None:
                driver.wait_for(READY)  # fails with what it wrote
        finally:
            driver.kill()
    count = writer.finish()
    Driver(script, source, rows, changes, "last").wait_for(DONE)
    id_counts = Counter(DeltaTable(rows).to_arrow(["id"])["id"].to_pylist())
    assert id_counts == Counter(range(count)), _differences(id_counts, count)
    feed = DeltaTable(changes).to_arrow(["id", "_change_type"]).to_pylist()
    assert {row["_change_type"] for row in feed} == {"insert"}
    id_counts = Counter(row["id"] for row in feed)
    assert id_counts == Counter(range(count)), _differences(id_counts, count)
    print(f"{count} rows, {DeltaTable(rows).version + 1} and {DeltaTable(changes).version + 1} commits, {kills} kills")


def _differences(id_counts: Counter[int], count: int) -> str:
    doubled = [id for id, times in id_counts.items() if times > 1]
    return f"lost: {sorted(set(range(count)) - set(id_counts))[:20]}, doubled: {doubled[:20]}"
