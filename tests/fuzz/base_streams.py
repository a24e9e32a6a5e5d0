"""Tables that are read as streams, and the record of each stream: the offsets between its batches, and the rows of each batch.

    query = Query(table, checkpoint, options)
    recorded(query, go_on, keep)        # from the table's rows to the newest commit, one file in each batch

The batches are read without Spark.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from delta_py import write_delta
from delta_py.errors import SchemaMismatchError
from spark_plugin.pruning import NativeWish
from spark_plugin.pruning.scan_request import MARKER_KEY
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.streaming.stream_reader import DeltaStreamReader, make_stream_reader, pin_stream
from tests.fuzz.base_tables import rows
from tests.support.tables.changing_table import Table

Offset = Any
_EVOLUTION = "DELTA_STREAMING_METADATA_EVOLUTION"
_RESTARTS = 12


@dataclass(frozen=True)
class StreamBase:
    """begin: makes the table, called `t`, with its rows when the stream begins. go_on: makes later commits. tracks: whether the
    stream has a schema log."""

    begin: Callable[[Path], None]
    go_on: Callable[[Path], None]
    options: Mapping[str, str]
    tracks: bool = False


@dataclass(frozen=True)
class Recorded:
    """places: the offsets between batches, as JSON, including the first; rows: of each batch, as JSON texts."""

    places: list[Offset]
    rows: list[list[str]]


class Query:
    """What Spark does with a stream. place: its current offset."""

    def __init__(self, table: Path, checkpoint: Path, options: Mapping[str, str], *, tracks: bool = False) -> None:
        allowed = {f"allowSourceColumn{kind}": "always" for kind in ("Rename", "Drop", "TypeChange")}
        tracking = {"schemaTrackingLocation": str(checkpoint), **allowed} if tracks else {}
        self.options = {"path": str(table), "maxFilesPerTrigger": "1", **options, **tracking}
        self.place: Offset = None

    def open(self) -> DeltaStreamReader:
        pinned = pin_stream(self.options)
        return make_stream_reader(pinned, to_spark_schema(pinned.schema))

    def rows(self, reader: DeltaStreamReader, start: Offset, end: Offset) -> list[str]:
        """The rows of a batch, as its tasks read them, without the columns of commit times. They must be the same if the rule
        requests files for Spark's own Parquet reader."""
        task: DeltaStreamReader = pickle.loads(pickle.dumps(reader))
        all_rows, requested_rows = (
            _rows(task, reader.partitions(start, end)),
            _rows(task, reader.partitions(self._asked(reader, start), end)),
        )
        assert requested_rows == all_rows, f"{requested_rows} and not {all_rows}"
        return all_rows

    def _asked(self, reader: DeltaStreamReader, start: Offset) -> Offset:
        """Requests files as StreamView.java does."""
        first, *other_fields = from_arrow_schema(reader._schema).fields
        marker = json.dumps({"predicates": [], "limit": None, "nonce": "n", "native": NativeWish.WHEREVER_POSSIBLE.value})
        marked = StructField(first.name, first.dataType, first.nullable, {MARKER_KEY: marker})
        return {MARKER_KEY: StructType([marked, *other_fields]).json(), "start": json.dumps(start)}

    def next(self, reader: DeltaStreamReader, start: Offset) -> Offset:
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        json.dumps(reader.reportLatestOffset())
        return json.loads(json.dumps(end))

    def follow(
        self,
        start: Offset,
        end: Offset,
        each: Callable[[Offset, list[str]], None],
        *,
        after_first: Callable[[], None] | None = None,
    ) -> None:
        """Run the batch that was recorded last, and all later ones. The query restarts at each change of the schema.

        each: called with the end and the rows of each batch. after_first: called after the first batch of a reader that
        continues.
        """
        for _ in range(_RESTARTS):
            try:
                reader = self.open()
                while True:
                    each(end, self.rows(reader, start, end))
                    self.place = end
                    if after_first is not None:
                        after_first()
                        after_first = None
                    start, end = end, self.next(reader, end)
                    if start == end:
                        return
                    reader.commit(start)
            except SchemaMismatchError as error:
                if error.error_class != _EVOLUTION:
                    raise
        raise AssertionError(f"the stream stopped at a change of the schema {_RESTARTS} times")


def recorded(query: Query, go_on: Callable[[], None], keep: Callable[[int], None]) -> Recorded:
    """A stream from its beginning. go_on: makes more commits after the stream has begun. keep: called after each batch, with its
    number."""
    reader = query.open()
    begin = json.loads(json.dumps(reader.initialOffset()))
    first = query.next(reader, begin)
    go_on()
    places, rows = [begin], []

    def note(end: Offset, batch_rows: list[str]) -> None:
        keep(len(rows))
        places.append(end)
        rows.append(batch_rows)

    query.follow(begin, first, note)
    return Recorded(places, rows)


def _rows(task: DeltaStreamReader, parts: Sequence[InputPartition]) -> list[str]:
    read_rows = [row for part in parts for batch in task.read(part) for row in batch.to_pylist()]
    plain_rows = [{name: value for name, value in row.items() if not name.startswith("_commit")} for row in read_rows]
    return sorted(json.dumps(row, default=str) for row in plain_rows)


# ---------------------------------------------------------------- the streams


def _append(path: Path, first: int, count: int, **settings: Any) -> None:
    for number in range(first, first + count):
        at = pa.array([(id * 7 % 5) * 3_600_000_000 for id in range(4 * number, 4 * number + 4)], pa.timestamp("us", "UTC"))
        data = rows(4 * number).append_column("at", at)
        write_delta(str(path), data, mode="append", **(settings if number == 0 else {}))


def _begin(path: Path, **configuration: str) -> None:
    named = {f"delta.{name}": value for name, value in configuration.items()}
    _append(path, 0, 3, configuration=named, partition_by=["part"])


def _go_on(path: Path) -> None:
    _append(path, 3, 4)


def _take_out(path: Path) -> None:
    _append(path, 3, 2)
    write_delta(
        str(path),
        rows(8, 2).append_column("at", pa.nulls(2, pa.timestamp("us", "UTC"))),
        mode="overwrite",
        replace_where="id IN (8, 9)",
    )
    _append(path, 5, 2)


def _with_columns(path: Path) -> None:
    Table(path.parent)


def _change_schema(path: Path) -> None:
    table = Table(path.parent)
    table.add(3, a="a", b="b")
    table.rename("b", "c")
    table.add(4, a="a", c="c")
    table.drop("a")
    table.add(5, c="c")
    table.retype("id", "long")
    table.add(6, c="c")
    table.add(7, c="c", more="m")


STREAMS: dict[str, StreamBase] = {
    "rows": StreamBase(lambda path: _begin(path, checkpointInterval="3"), _go_on, {}),
    "rows taken out": StreamBase(_begin, _take_out, {"ignoreChanges": "true"}),
    "change feed": StreamBase(lambda path: _begin(path, enableChangeDataFeed="true"), _take_out, {"readChangeFeed": "true"}),
    "by time": StreamBase(_begin, _go_on, {"withEventTimeOrder": "true", "eventTimeColumn": "at"}),
    "filtered": StreamBase(_begin, _go_on, {"filter": "id > 3", "excludeRegex": "c001"}),
    "schemas": StreamBase(_with_columns, _change_schema, {}, tracks=True),
}
