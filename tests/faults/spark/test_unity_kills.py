"""Spark operations on a table of Unity Catalog. Each request's answer is lost, or the driver is killed at a request: afterwards
the operation is done once or not at all, and the next operation works.

PYDELTA_FAULTS_KILLS is the number of kills, 4 by default, in each of the operations in turn. PYDELTA_SEED chooses the requests.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_py import DeltaTable, write_delta
from delta_py.storage import publication
from spark_plugin import register
from tests.support.faults.stream_kills import ROOT, Driver
from tests.support.runs.seeds import seed_of
from tests.support.servers.unity_catalog import Failure, UnityCatalogServer

KILLS = int(os.environ.get("PYDELTA_FAULTS_KILLS") or 4)
_MOST_REQUESTS = 40
FIRST = [(1, "a"), (2, "b"), (3, "c")]
MERGE = (
    "MERGE INTO uc.s.{t} AS t USING (SELECT 3L AS id UNION ALL SELECT 4L) AS s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET word = 'm' WHEN NOT MATCHED THEN INSERT (id, word) VALUES (s.id, 'n')"
)
STATEMENTS = {
    "INSERT": "INSERT INTO uc.s.{t} VALUES (4, 'd')",
    "DELETE": "DELETE FROM uc.s.{t} WHERE id = 2",
    "MERGE": MERGE,
    "CREATE": "CREATE TABLE uc.s.{t} USING delta AS SELECT 1L AS id, 'a' AS word",
    "EXTERNAL": "CREATE TABLE uc.s.{t} USING delta LOCATION '{location}' AS SELECT 1L AS id, 'a' AS word",
    "ALTER": "ALTER TABLE uc.s.{t} SET TBLPROPERTIES ('my.key' = 'v')",
}
AFTER = {
    "INSERT": [*FIRST, (4, "d")],
    "DELETE": [(1, "a"), (3, "c")],
    "MERGE": [(1, "a"), (2, "b"), (3, "m"), (4, "n")],
    "CREATE": [(1, "a")],
    "EXTERNAL": [(1, "a")],
    "ALTER": FIRST,
}
CREATES = ("CREATE", "EXTERNAL")

_DRIVER = """
import sys
from pyspark.sql import SparkSession
from spark_plugin import register

uri, token, statement = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
    .config("spark.driver.host", "127.0.0.1").config("spark.ui.enabled", "false").getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
register(spark, catalogs={"uc": {"uri": uri, "token": token}})
spark.range(1).count()
print("ready", flush=True)
sys.stdin.readline()
spark.sql(statement)
from delta_py.storage import publication
publication.finish()
print("done", flush=True)
"""


class Trial:
    """An operation on a table of a server. fail: what happens to its request of this number, counted from 0."""

    def __init__(self, server: UnityCatalogServer, operation: str, name: str, directory: Path) -> None:
        self.server, self.operation, self.name, self.requests = server, operation, name, 0
        self.location = directory / "external" / name
        self.statement = STATEMENTS[operation].format(t=name, location=self.location)
        if operation not in CREATES:
            ids, words = zip(*FIRST, strict=True)
            rows = pa.table({"id": pa.array(ids, pa.int64()), "word": list(words)})
            write_delta(server.table_url(name), rows, storage_options=server.options)
            publication.finish()

    def plan(self, patch: pytest.MonkeyPatch, number: int, fail: Callable[[], Failure | None]) -> None:
        self.requests = 0

        def planned(method: str, path: str) -> Failure | None:
            self.requests += 1
            return fail() if self.requests - 1 == number else None

        patch.setattr(self.server, "planned", planned)

    def is_done(self) -> bool:
        """Whether the operation was carried out. Raises AssertionError if the table is neither as before nor as after it."""
        if self.operation in CREATES and ("uc", "s", self.name) not in self.server.state.tables:
            return False
        table = self.open()
        before = None if self.operation in CREATES else 0
        assert table.version == (0 if before is None else 1) or table.version == before
        done = before is None or table.version == 1
        assert self.rows() == (AFTER[self.operation] if done else FIRST)
        if self.operation == "ALTER":
            assert (table.metadata.configuration.get("my.key") == "v") == done
        return done

    def open(self) -> DeltaTable:
        return DeltaTable(self.server.table_url(self.name), storage_options=self.server.options)

    def rows(self) -> list[tuple[int, str]]:
        return sorted((row["id"], row["word"]) for row in self.open().to_arrow().to_pylist())

    def go_on(self) -> None:
        """Another client writes the table, or makes it if it is not there."""
        if self.operation in CREATES and ("uc", "s", self.name) not in self.server.state.tables:
            location = {"unity.location": str(self.location)} if self.operation == "EXTERNAL" else {}
            row = pa.table({"id": pa.array([], pa.int64()), "word": pa.array([], pa.string())})
            options = {**self.server.options, **location}
            write_delta(self.server.table_url(self.name), row, mode="append", storage_options=options)
        version = self.open().version
        self.open().alter.set_table_properties({"another.client": "was here"})
        publication.finish()
        assert self.open().version == version + 1


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityCatalogServer]:
    with UnityCatalogServer(tmp_path / "catalog") as server:
        yield server
        publication.finish()


@pytest.fixture
def session(spark: SparkSession, server: UnityCatalogServer, conf: Callable[[dict[str, str]], None]) -> SparkSession:
    conf({"spark.sql.catalog.uc.uri": server.uri, "spark.sql.catalog.uc.token": str(server.token)})
    register(spark)
    return spark


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("failure", [Failure.LOST_REQUEST, Failure.LOST_ANSWER])
@pytest.mark.parametrize("operation", STATEMENTS)
def test_statement_whose_answers_are_lost_is_carried_out_once(
    session: SparkSession,
    server: UnityCatalogServer,
    operation: str,
    failure: Failure,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(_MOST_REQUESTS):
        trial = Trial(server, operation, f"t{number}", tmp_path)
        with monkeypatch.context() as patch:
            trial.plan(patch, number, lambda: failure)
            session.sql(trial.statement)
            publication.finish()
            count = trial.requests
        assert trial.is_done()
        trial.go_on()
        if number >= count:
            break
    else:
        raise AssertionError(f"{operation} sends more than {_MOST_REQUESTS} requests")
    assert number >= 2


class _StatementDriver(Driver):
    """A driver in a separate session of processes that runs one statement when it gets a line."""

    def __init__(self, directory: Path, server: UnityCatalogServer, statement: str) -> None:
        self._output = directory / f"driver-{time.time_ns()}.log"
        command = [sys.executable, "-c", _DRIVER, server.uri, str(server.token), statement]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True
            )

    def run(self) -> None:
        """Run the statement, until the driver ends or is killed."""
        self.wait_for("ready")
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()
        self.process.wait(240)


@pytest.mark.timeout(600 + 90 * KILLS)
def test_statement_of_a_killed_driver_is_carried_out_once_or_not_at_all(
    server: UnityCatalogServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = seed_of("statements of a killed driver")
    chosen, summary = random.Random(seed), list[str]()
    print(f"PYDELTA_SEED={seed} PYDELTA_FAULTS_KILLS={KILLS}")
    for kill in range(KILLS):
        operation, failure = [*STATEMENTS][kill % len(STATEMENTS)], chosen.choice([Failure.LOST_REQUEST, Failure.LOST_ANSWER])
        number = chosen.randrange(7)
        trial = Trial(server, operation, f"t{kill}", tmp_path)
        driver = _StatementDriver(tmp_path, server, trial.statement)

        def fail(driver: _StatementDriver = driver, failure: Failure = failure) -> Failure:
            driver.kill()
            return failure

        try:
            with monkeypatch.context() as patch:
                trial.plan(patch, number, fail)
                driver.run()
            is_killed = trial.requests > number
            assert is_killed or "done" in driver.output.splitlines(), driver.output[-5000:]
        finally:
            driver.kill()
        done = trial.is_done()
        assert done or is_killed
        summary.append(f"{operation} at request {number}: {'done' if done else 'not done'}{'' if is_killed else ', not killed'}")
        trial.go_on()
    print(summary)
