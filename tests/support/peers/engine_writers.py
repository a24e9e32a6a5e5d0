"""Writers of several engines change one table at the same time, each in a separate process.

    python -m tests.support.peers.engine_writers ENGINE PLACE TABLE [JAR]

is one of them. All begin each step together, which they see by files in the folder PLACE. A writer appends its own rows in each
step and, in every third, deletes one of its rows and updates another. It tries again after its engine's conflict errors, and no
others. The last line that it prints is the number of retries, as JSON. JAR holds the log store of delta-spark.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]
ENGINES = ("delta_py", "pydelta", "delta-spark", "deltalake")
STEPS = 10
_ROWS = 4
_TRIES = 40
# How long a process may take to be ready, and the slowest of them for a step.
_SECONDS = 240
SCHEMA = pa.schema([("id", pa.int64()), ("engine", pa.string()), ("n", pa.int64())])


# ---------------------------------------------------------------- what is written


def rows(engine: str, ids: Sequence[int], n: int = 0) -> pa.Table:
    return pa.table([ids, [engine] * len(ids), [n] * len(ids)], schema=SCHEMA)


def first_rows() -> pa.Table:
    """The first rows of the table: of all engines, so that writers change rows of one file."""
    return pa.concat_tables([rows(engine, _ids(engine, 0)) for engine in ENGINES])


def appended(engine: str, step: int) -> list[int]:
    return _ids(engine, 1 + step)


def deleted(engine: str, step: int) -> int | None:
    return _changed(engine, step)[0] if step % 3 == 2 else None


def updated(engine: str, step: int) -> int | None:
    return _changed(engine, step)[1] if step % 3 == 2 else None


def last_rows() -> pa.Table:
    """The rows after all have done all steps."""
    rows_by_id = {row["id"]: row for row in first_rows().to_pylist()}
    for engine in ENGINES:
        for step in range(STEPS):
            rows_by_id |= {row["id"]: row for row in rows(engine, appended(engine, step)).to_pylist()}
            if (deleted_id := deleted(engine, step)) is not None:
                del rows_by_id[deleted_id]
            if (changed := updated(engine, step)) is not None:
                rows_by_id[changed]["n"] += 1
    return pa.Table.from_pylist(list(rows_by_id.values()), schema=SCHEMA)


def commit_count() -> int:
    """Of each engine."""
    return STEPS + 2 * len([step for step in range(STEPS) if step % 3 == 2])


def _ids(engine: str, batch: int) -> list[int]:
    start = 1000 * ENGINES.index(engine) + _ROWS * batch
    return list(range(start, start + _ROWS))


def _changed(engine: str, step: int) -> list[int]:
    """Two rows: in turn from the file with which the table begins and from the engine's own."""
    change = step // 3
    return _ids(engine, 0)[change:] if change % 2 == 0 else appended(engine, step - 1)


# ---------------------------------------------------------------- the writers


class Writer(Protocol):
    conflicts: tuple[type[Exception], ...]

    def append(self, data: pa.Table) -> None: ...
    def delete(self, id: int) -> None: ...
    def update(self, id: int) -> None: ...


class PlainWriter:
    """delta_py, without Spark: it deletes and updates rows by overwrites."""

    def __init__(self, path: str) -> None:
        from delta_py.errors import DeltaConcurrentModificationException

        self.conflicts: tuple[type[Exception], ...] = (DeltaConcurrentModificationException,)
        self._path = path

    def append(self, data: pa.Table) -> None:
        self._write(data, mode="append")

    def delete(self, id: int) -> None:
        self._write(rows("delta_py", []), mode="overwrite", replace_where=f"id = {id}")

    def update(self, id: int) -> None:
        self._write(rows("delta_py", [id], n=1), mode="overwrite", replace_where=f"id = {id}")

    def _write(self, data: pa.Table, **options: Any) -> None:
        from delta_py import write_delta

        write_delta(self._path, data, **options)


class DeltalakeWriter:
    def __init__(self, path: str) -> None:
        from deltalake.exceptions import CommitFailedError

        self.conflicts: tuple[type[Exception], ...] = (CommitFailedError,)
        self._path = path

    def append(self, data: pa.Table) -> None:
        import deltalake

        deltalake.write_deltalake(self._path, data, mode="append")

    def delete(self, id: int) -> None:
        self._table().delete(f"id = {id}")

    def update(self, id: int) -> None:
        self._table().update({"n": "n + 1"}, predicate=f"id = {id}")

    def _table(self) -> Any:
        import deltalake

        return deltalake.DeltaTable(self._path)


class PydeltaWriter:
    def __init__(self, path: str) -> None:
        from spark_plugin import DeltaTable, register
        from spark_plugin.exceptions import DeltaConcurrentModificationException

        self.conflicts: tuple[type[Exception], ...] = (DeltaConcurrentModificationException,)
        self._spark, self._path = _session({}), path
        register(self._spark)
        self._table = DeltaTable.forPath(self._spark, path)

    def append(self, data: pa.Table) -> None:
        self._spark.createDataFrame(data).write.format("pydelta").mode("append").save(self._path)

    def delete(self, id: int) -> None:
        self._table.delete(f"id = {id}")

    def update(self, id: int) -> None:
        self._table.update(f"id = {id}", {"n": "n + 1"})


class DeltaSparkWriter:
    def __init__(self, path: str, log_store: str) -> None:
        from delta import exceptions

        from tests.support.peers.delta_spark import linking_log_store_settings

        self.conflicts: tuple[type[Exception], ...] = (
            exceptions.DeltaConcurrentModificationException,
            exceptions.ConcurrentWriteException,
            exceptions.ConcurrentAppendException,
            exceptions.ConcurrentDeleteReadException,
            exceptions.ConcurrentDeleteDeleteException,
        )
        self._spark, self._path = _session(linking_log_store_settings(log_store)), path

    def append(self, data: pa.Table) -> None:
        self._spark.createDataFrame(data).write.format("delta").mode("append").save(self._path)

    def delete(self, id: int) -> None:
        self._spark.sql(f"DELETE FROM delta.`{self._path}` WHERE id = {id}").collect()

    def update(self, id: int) -> None:
        self._spark.sql(f"UPDATE delta.`{self._path}` SET n = n + 1 WHERE id = {id}").collect()


WRITERS: Mapping[str, Callable[..., Writer]] = {
    "delta_py": PlainWriter,
    "pydelta": PydeltaWriter,
    "delta-spark": DeltaSparkWriter,
    "deltalake": DeltalakeWriter,
}


def _session(settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def write(engine: str, place: Path, path: str, *jar: str) -> Counter[str]:
    """All steps of one engine; returns how often it met each of its conflict errors."""
    writer, chosen, conflicts = WRITERS[engine](path, *jar), random.Random(engine), Counter[str]()
    for step in range(STEPS):
        _wait_for_all(engine, place, step)
        for operation in _operations(writer, engine, step):
            # Engines without a JVM commit in a hundredth of the time: so half of their commits come at a random moment within the
            # others'.
            if engine in ("delta_py", "deltalake") and chosen.random() < 0.5:
                time.sleep(chosen.random())
            conflicts += _try_again_on_conflicts(operation, writer.conflicts, chosen)
    return conflicts


def _operations(writer: Writer, engine: str, step: int) -> Iterator[Callable[[], object]]:
    yield partial(writer.append, rows(engine, appended(engine, step)))
    if (id := deleted(engine, step)) is not None:
        yield partial(writer.delete, id)
    if (id := updated(engine, step)) is not None:
        yield partial(writer.update, id)


def _try_again_on_conflicts(
    operation: Callable[[], object], conflicts: tuple[type[Exception], ...], chosen: random.Random
) -> Counter[str]:
    met = Counter[str]()
    while True:
        try:
            operation()
            return met
        except conflicts as error:
            met[type(error).__name__] += 1
            if met.total() == _TRIES:
                raise
        time.sleep(chosen.random() * 0.1)


def _wait_for_all(engine: str, place: Path, step: int) -> None:
    (place / f"{engine}-{step}").touch()
    deadline = time.monotonic() + _SECONDS
    while missing := [each for each in ENGINES if not (place / f"{each}-{step}").exists()]:
        assert time.monotonic() < deadline, f"{engine} waits for {missing} in step {step}"
        time.sleep(0.01)


# ---------------------------------------------------------------- all of them


def run_writers(place: Path, path: str, log_store: Path) -> dict[str, dict[str, int]]:
    """The conflicts of each engine. If a writer fails, raises AssertionError with its stderr."""
    place.mkdir()
    with _processes(place, path, log_store) as processes:
        deadline = time.monotonic() + 2 * _SECONDS
        while True:
            codes = {engine: process.poll() for engine, process in processes.items()}
            failed = [engine for engine, code in codes.items() if code]
            assert not failed, "\n".join(f"{engine}: {(place / f'{engine}.err').read_text()[-5000:]}" for engine in failed)
            if all(code == 0 for code in codes.values()):
                break
            assert time.monotonic() < deadline, f"not through in time: {codes}"
            time.sleep(0.1)
    return {engine: json.loads((place / f"{engine}.out").read_text().splitlines()[-1]) for engine in ENGINES}


@contextmanager
def _processes(place: Path, path: str, log_store: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    processes = {}
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    try:
        for engine in ENGINES:
            jar = [str(log_store)] if engine == "delta-spark" else []
            command = [sys.executable, "-m", "tests.support.peers.engine_writers", engine, str(place), path, *jar]
            with (place / f"{engine}.out").open("wb") as out, (place / f"{engine}.err").open("wb") as err:
                processes[engine] = subprocess.Popen(
                    command, stdout=out, stderr=err, cwd=place, env=environment, start_new_session=True
                )
        yield processes
    finally:
        for process in processes.values():
            with suppress(ProcessLookupError):  # it and its JVM have ended
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


if __name__ == "__main__":
    print(json.dumps(write(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])))
