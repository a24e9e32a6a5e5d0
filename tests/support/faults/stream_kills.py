"""Two streams of a Spark driver are killed repeatedly while their tables change; in the end each row is there once.

    python -m tests.support.faults.stream_kills DIRECTORY --kills 50 --seed 7

continues from the content of the directory, so that many kills may be divided over several runs; --minutes ends one earlier. One
stream copies a table to which rows are added and whose files are rewritten without a change of rows; the other copies the change
feed of a table whose rows are also deleted and replaced. Another process changes the tables and records the expected rows of the
streams.

At random the test kills the driver with all its processes; or only the driver and its JVM, so that Python workers live on for a
while next to their successors; or one Python worker, while the driver continues and starts the query again if it failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_py import DeltaTable, write_delta

ROOT = Path(__file__).resolve().parents[3]
READY, FAILED, DONE = "the driver is ready", "a query failed: ", "nothing is left"
# How long a driver may take to be ready, to read all remaining rows, and until its processes are gone.
_SECONDS = 240
_PARTS = 3
# Spark waits ten seconds for a process that it starts, however busy the machine is.
_SLOW = "Python worker failed to connect back"

_DRIVER = """
import sys, time
from pyspark.sql import SparkSession
from spark_plugin import register

root, last, READY, FAILED, DONE = sys.argv[1], sys.argv[2] == "last", *sys.argv[3:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.host", "127.0.0.1").config("spark.ui.enabled", "false").getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
register(spark)

def start(name, **options):
    reader = spark.readStream.format("pydelta").options(maxFilesPerTrigger=1000 if last else 3, **options)
    frame = reader.load(f"{root}/{name}-source")
    writer = frame.writeStream.format("pydelta").option("checkpointLocation", f"{root}/{name}-checkpoint")
    return (writer.trigger(availableNow=True) if last else writer).start(f"{root}/{name}-target")

def start_rows():
    return start("rows")

def start_changes():
    return start("changes", readChangeFeed=True, startingVersion=0)

starts = [start_rows, start_changes]
print(READY, flush=True)
if last:
    for query in [start() for start in starts]:
        query.awaitTermination()
    print(DONE, flush=True)
    sys.exit()
queries = [None, None]
while True:
    for number, query in enumerate(queries):
        if query is None or not query.isActive:
            try:
                if query is not None:
                    query.awaitTermination()
                queries[number] = starts[number]()
            except Exception as error:
                print(FAILED + " ".join(str(error).split())[:600], flush=True)
                queries[number] = None
    time.sleep(0.1)
"""


# ---------------------------------------------------------------- the tables


@dataclass
class Tables:
    """Changes both tables, one step at a time, and records the expected rows of the streams. Stored in a file between runs."""

    root: Path
    seed: int
    steps: int = 0
    next_id: int = 0
    live: list[int] = field(default_factory=list)
    changes: list[tuple[int, str, int]] = field(default_factory=list)

    @classmethod
    def of(cls, root: Path, seed: int) -> Tables:
        path = root / "tables.json"
        saved = json.loads(path.read_text()) if path.exists() else {}
        return cls(root, **{**saved, "seed": seed})

    def save(self) -> None:
        noted = {name: value for name, value in vars(self).items() if name != "root"}
        (self.root / ".tables.json").write_text(json.dumps(noted))
        os.replace(self.root / ".tables.json", self.root / "tables.json")

    def step(self) -> None:
        chosen = random.Random(f"{self.seed} {self.steps}")
        self._append()
        if self.steps % 4 == 3:
            self._rearrange("rows", chosen.randrange(_PARTS))
            self._rearrange("changes", chosen.randrange(_PARTS))
        if self.steps % 2:
            self._replace(chosen.sample(self.live, 6))
        self.steps += 1
        self.save()

    def _append(self) -> None:
        ids = list(range(self.next_id, self.next_id + 10))
        self.next_id += 10
        self._write("rows", ids)
        version = self._write("changes", ids)
        self.live += ids
        self._note(ids, "insert", version)

    def _rearrange(self, name: str, part: int) -> None:
        kept_rows = DeltaTable(self._path(name)).to_arrow(filter=f"part = {part}")
        write_delta(self._path(name), kept_rows, mode="overwrite", replace_where=f"part = {part}", data_change=False)

    def _replace(self, ids: list[int]) -> None:
        """Rows of several files: half of them are deleted, half are replaced."""
        replaced_ids = ids[::2]
        version = self._write("changes", replaced_ids, mode="overwrite", replace_where=f"id IN ({', '.join(map(str, ids))})")
        self._note(ids, "delete", version)
        self._note(replaced_ids, "insert", version)
        self.live = [id for id in self.live if id not in ids] + replaced_ids

    def _write(self, name: str, ids: list[int], **options: Any) -> int:
        rows = pa.table({"id": pa.array(ids, pa.int64()), "part": pa.array([id % _PARTS for id in ids], pa.int64())})
        feed = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "false"}
        definition = {"partition_by": ["part"], "configuration": feed} if self.steps == 0 and "mode" not in options else {}
        return write_delta(self._path(name), rows, **{"mode": "append", **definition, **options})

    def _note(self, ids: list[int], kind: str, version: int) -> None:
        self.changes += [(id, kind, version) for id in ids]

    def _path(self, name: str) -> str:
        return str(self.root / f"{name}-source")


def change_tables(root: Path, seed: int) -> None:
    """Until there is a file `stop`."""
    tables = Tables.of(root, seed)
    while not (root / "stop").exists():
        tables.step()
        time.sleep(0.7)


@contextmanager
def tables_changing(root: Path, seed: int) -> Iterator[None]:
    """In another process; its failure is raised."""
    (root / "stop").unlink(missing_ok=True)
    if not (root / "tables.json").exists():
        Tables.of(root, seed).step()
    command = [sys.executable, "-m", "tests.support.faults.stream_kills", str(root), "--seed", str(seed), "--change-tables"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=_environment())
    try:
        yield
    finally:
        (root / "stop").touch()
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, f"changing the tables failed: {output[-3000:]}"


# ---------------------------------------------------------------- the driver


class Driver:
    """A Spark driver in a separate session of processes."""

    def __init__(self, root: Path, what: str) -> None:
        command = [sys.executable, "-c", _DRIVER, str(root), what, READY, FAILED, DONE]
        self._output = root / f"driver-{time.time_ns()}.log"
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env=_environment(), start_new_session=True
            )

    @property
    def output(self) -> str:
        return self._output.read_text()

    def wait_for(self, line: str) -> None:
        deadline = time.monotonic() + _SECONDS
        while line not in self.output.splitlines():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the driver did not say {line!r}: {self.process.poll()} {self.output[-5000:]}")
            time.sleep(0.05)

    def processes(self) -> dict[int, str]:
        """The live processes of the session, with their command lines."""
        commands = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended already
                after_name = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(after_name[3]) == self.process.pid and after_name[0] != "Z":
                    commands[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return commands

    def workers(self) -> list[int]:
        """Python workers, their daemon, and the processes of sources."""
        named = ("-m pyspark.daemon", "-m pyspark.sql.streaming")
        return [pid for pid, command in self.processes().items() if any(name in command for name in named)]

    def kill_alone(self) -> None:
        """The driver and its JVM."""
        workers = self.workers()
        kill(*(pid for pid in self.processes() if pid not in workers))
        self.process.wait()

    def kill(self) -> None:
        deadline = time.monotonic() + _SECONDS
        while processes := self.processes():
            assert time.monotonic() < deadline, processes
            kill(*processes)
            time.sleep(0.05)
        self.process.wait()


def kill(*pids: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


# ---------------------------------------------------------------- kills


def run_with_kills(root: Path, kills: int, seed: int, minutes: float = 1e6) -> str:
    """A summary in one line. minutes: no kill after them.

    Raises AssertionError if a row is lost or doubled, or if queries fail without a kill of their workers.
    """
    root.mkdir(parents=True, exist_ok=True)
    chosen = random.Random(seed)
    with tables_changing(root, seed):
        seen = _kill_again_and_again(root, kills, chosen, time.monotonic() + 60 * minutes)
    _read_all_that_is_left(root)
    return f"{seen}; {check(root)}"


def _kill_again_and_again(root: Path, kills: int, chosen: random.Random, until: float) -> str:
    counts: Counter[str] = Counter()
    drivers: list[Driver] = []
    try:
        for number in range(1, kills + 1):
            if time.monotonic() > until:
                break
            if not drivers or drivers[-1].process.poll() is not None:
                drivers.append(Driver(root, "kill"))
                drivers[-1].wait_for(READY)
                workers_killed = 0
            driver = drivers[-1]
            _wait_for_batches(root, driver, chosen.randrange(5))
            time.sleep(chosen.uniform(0, 1.5))
            assert driver.process.poll() is None, driver.output[-5000:]
            what = chosen.choice(["driver and workers", "driver alone", "worker", "worker"])
            counts[what] += 1
            print(f"kill {number}: {what}", file=sys.stderr, flush=True)
            if what == "worker":
                kill(*chosen.sample(workers := sorted(driver.workers()), min(1, len(workers))))
                workers_killed += 1
            else:
                failures = [line for line in driver.output.splitlines() if line.startswith(FAILED) and _SLOW not in line]
                assert len(failures) <= 2 * workers_killed, failures  # the daemon's death ends the workers of both queries
                counts["failed query"] += len(failures)
                (driver.kill if what == "driver and workers" else driver.kill_alone)()
    finally:
        for driver in drivers:
            driver.kill()
    return ", ".join(f"{what}: {count}" for what, count in sorted(counts.items()))


def _wait_for_batches(root: Path, driver: Driver, count: int) -> None:
    """Until this many more are begun: the time for that depends on the machine."""
    begun, deadline = _batches_begun(root), time.monotonic() + _SECONDS
    while _batches_begun(root) < begun + count:
        assert driver.process.poll() is None and time.monotonic() < deadline, driver.output[-5000:]
        time.sleep(0.02)


def _batches_begun(root: Path) -> int:
    """By both queries; Spark deletes its records of old ones."""
    noted = [[int(path.name) for path in folder.iterdir() if path.name.isdigit()] for folder in root.glob("*-checkpoint/offsets")]
    return sum(max(numbers, default=-1) + 1 for numbers in noted)


def _read_all_that_is_left(root: Path) -> None:
    driver = Driver(root, "last")
    try:
        driver.wait_for(DONE)
    finally:
        driver.kill()


def check(root: Path) -> str:
    """That both targets have the expected rows."""
    tables = Tables.of(root, 0)
    ids = DeltaTable(str(root / "rows-target")).to_arrow(["id"])["id"].to_pylist()
    _check_equal(Counter(ids), Counter(range(tables.next_id)))
    feed = DeltaTable(str(root / "changes-target")).to_arrow(["id", "_change_type", "_commit_version"])
    feed_counts = Counter(tuple(row.values()) for row in feed.to_pylist())
    _check_equal(feed_counts, Counter(tuple(change) for change in tables.changes))
    commits = [DeltaTable(str(root / f"{name}-target")).version + 1 for name in ("rows", "changes")]
    return f"{tables.next_id} rows in {commits[0]} commits, {len(tables.changes)} changes in {commits[1]} commits"


def _check_equal(actual: Counter[Any], expected: Counter[Any]) -> None:
    lost, more = expected - actual, actual - expected
    assert actual == expected, f"lost {sum(lost.values())}: {list(lost)[:20]}; too often {sum(more.values())}: {list(more)[:20]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--change-tables", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))  # so that the started processes end too
    if chosen.change_tables:
        change_tables(chosen.directory, chosen.seed)
    else:
        print(f"seed {chosen.seed}: {run_with_kills(chosen.directory, chosen.kills, chosen.seed, chosen.minutes)}")


if __name__ == "__main__":
    main()
