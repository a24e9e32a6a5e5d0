"""Options that make no sense or contradict each other: a Delta error, or their documented effect on the table that the path
names.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from delta_py import DeltaTable
from delta_py.errors import DeltaError
from delta_py.types.schema import from_arrow_schema
from delta_py.write.data_files import write_files
from spark_plugin.data_source import DeltaSource
from spark_plugin.options.common import WRITE_CONFS
from spark_plugin.options.read_options import _READ_NAMES, _STREAM_NAMES
from spark_plugin.options.streaming_options import is_stream_read, is_stream_write
from spark_plugin.options.write_options import _NAMES
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.streaming.stream_reader import pin_stream
from spark_plugin.streaming.stream_writer import BatchFiles
from tests.fuzz.base_tables import made_tables, rows
from tests.fuzz.cases import Case, Mutation, Outcome, fresh, observed
from tests.fuzz.child import in_child
from tests.fuzz.odd_options import odd_case, odd_paths, odd_value

_TABLE = "change feed"
_NEAR = {
    **{name: ("0", "3", "6") for name in ("versionAsOf", "startingVersion", "endingVersion")},
    **{
        name: ("true", "false")
        for name in ("readChangeFeed", "metadataColumn", "followLatest", "mergeSchema", "withEventTimeOrder")
    },
    **{"filter": ("id > 5", "part = 'p1'"), "columns": ("id", "part, id"), "timeZone": ("UTC", "Asia/Tokyo")},
    **{"replaceWhere": ("part = 'p1'",), "compression": ("zstd",), "txnAppId": ("a",), "txnVersion": ("7",)},
}
_PRIVATE = "pydelta."


class OptionTarget:
    def __init__(self, directory: Path) -> None:
        self._base = made_tables(directory, _TABLE)[_TABLE]
        self._ids = set(in_child(lambda: DeltaTable(str(self._base)).to_arrow()["id"].to_pylist()).value) | set(range(30))

    def run(self, case: Case) -> Outcome:
        rng, place = case.rng, fresh(case.place)
        table = place / "table"
        shutil.copytree(self._base, table)
        name = rng.choice(list(_USES))
        use, names = _USES[name]
        options = _options(rng, names)
        path = rng.choice(odd_paths(str(table))) if rng.random() < 0.2 and "write" not in name else str(table)
        finding = observed(lambda: _judged(use, {"path": path, **options}, self._ids), place, "table")
        shown_options = {key: value[:60] for key, value in {"path": path, **options}.items()}
        return case.outcome(name, Mutation(repr(shown_options), True), finding)


def _options(rng: random.Random, names: tuple[str, ...]) -> dict[str, str]:
    public = [name for name in names if not name.startswith(_PRIVATE) and name not in ("path", "paths")]
    chosen = rng.sample(public, rng.choice([1, 1, 2, 3]))
    if rng.random() < 0.2:
        chosen.append(odd_value(rng).removeprefix(_PRIVATE))
    return {odd_case(name, rng): odd_value(rng, *_NEAR.get(name, ())) for name in chosen}


def _judged(use: Callable[[dict[str, str]], list[Any]], options: dict[str, str], ids: set[int]) -> tuple[str, str]:
    try:
        read_ids = use(options)
    except DeltaError as error:
        return "error", str(error)[:300]
    strange = [id for id in read_ids if id not in ids and id is not None]
    return ("wrong", f"ids of nobody: {strange}") if strange else ("different", f"{len(read_ids)} rows")


# ---------------------------------------------------------------- in the child


def _read(options: dict[str, str]) -> list[Any]:
    if is_stream_read(options):
        return _stream(options)
    source = DeltaSource(options)
    reader = source.reader(source.schema())
    return [id for part in reader.partitions() for batch in reader.read(part) for id in ids_of(batch)]  # type: ignore[arg-type]


def ids_of(batch: pa.RecordBatch) -> Iterator[Any]:
    yield from batch.column("id").to_pylist() if "id" in batch.schema.names else []


def _stream(options: dict[str, str]) -> list[Any]:
    pinned = pin_stream(options)
    reader: Any = DeltaSource(options).streamReader(to_spark_schema(pinned.schema))
    start = json.loads(json.dumps(reader.initialOffset()))
    end = json.loads(json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit())))
    return [id for part in reader.partitions(start, end) for batch in reader.read(part) for id in ids_of(batch)]


def _spark_schema() -> StructType:
    return to_spark_schema(from_arrow_schema(rows(0).schema))


def _write(options: dict[str, str], *, overwrite: bool = False) -> list[Any]:
    """The rows afterwards; the written rows have ids of the table."""
    writer: Any = DeltaSource(options).writer(_spark_schema(), overwrite)
    message = writer.write(iter(rows(0).to_batches()))
    try:
        writer.commit([message])
    except BaseException:
        writer.abort([message])
        raise
    return _after(options)


def _after(options: dict[str, str]) -> list[Any]:
    ids: list[Any] = DeltaTable(options["path"]).to_arrow()["id"].to_pylist()
    return ids


def _stream_write(options: dict[str, str]) -> list[Any]:
    checkpoint = Path(options["path"]).parent / "table" / "_checkpoint"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text('{"id":"c6c7b1c8-3b1c-4d0c-9d8b-0d5f6c1c2c3d"}')
    options = {**options, "checkpointlocation": str(checkpoint)}
    assert is_stream_write(options)
    writer: Any = DeltaSource(options).streamWriter(_spark_schema(), False)
    written = write_files(writer._state, rows(0).to_batches())  # the work of a task, which gets the query's id from Spark
    writer.commit([BatchFiles(writer._plan, "a query", written)], 0)
    return _after(options)


_USES: dict[str, tuple[Callable[[dict[str, str]], list[Any]], tuple[str, ...]]] = {
    "read": (_read, _READ_NAMES),
    "stream read": (lambda options: _stream({**options, "pydelta.stream": "true"}), (*_STREAM_NAMES, *_READ_NAMES)),
    "read in the place of a stream": (_read, (*_STREAM_NAMES, *_READ_NAMES)),
    "write": (_write, (*_NAMES, *WRITE_CONFS, "delta.appendOnly", "delta.enableChangeDataFeed", "delta.checkpointInterval")),
    "overwriting write": (partial(_write, overwrite=True), _NAMES),
    "stream write": (_stream_write, (*_NAMES, "queryName")),
}
