"""The reader that Spark calls for offsets, tasks and rows of a stream: called as Spark's workers call it, without Spark."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from delta_py import write_delta
from delta_py.changes.change_feed import plan_changes
from delta_py.errors import (
    ChangeDataFeedError,
    DeltaError,
    ExpressionError,
    InvalidOptionError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from delta_py.object_stores.open_store import open_store
from delta_py.parquet.file_reader import read_files
from spark_plugin.data_source import DeltaSource
from spark_plugin.options.streaming_options import is_stream_read
from spark_plugin.pruning.scan_request import MARKER_KEY
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.spark_versions import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles
from spark_plugin.streaming.stream_reader import DeltaStreamReader, make_stream_reader, pin_stream
from tests.support.tables.streamed_tables import FEED, daily_table, rows

Row = tuple[Any, ...]


@pytest.fixture
def table(tmp_path: Path) -> str:
    return daily_table(tmp_path / "t")


class Stream:
    """Drives a reader as Spark does; a new reader continues from the same offset."""

    def __init__(self, path: str, **options: str) -> None:
        self.options = {"path": path, **options}
        self.reader = self._open()
        self.place: dict[str, Any] = self.reader.initialOffset()

    def _open(self) -> DeltaStreamReader:
        schema = to_spark_schema(pin_stream(self.options).schema)
        reader = DeltaSource(self.options).streamReader(schema)
        assert isinstance(reader, DeltaStreamReader)
        return reader

    def restart(self) -> None:
        self.reader = self._open()

    def rows_between(self, start: dict[str, Any], end: dict[str, Any]) -> list[Row]:
        task: DeltaStreamReader = pickle.loads(pickle.dumps(self.reader))
        batches = (batch for part in self.reader.partitions(start, end) for batch in task.read(part))
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

    def next(self, limit: Any = None) -> list[Row]:
        """The rows of the next batch; [] if there is none."""
        start = self.place
        self.place = self.reader.latestOffset(start, limit or self.reader.getDefaultReadLimit())
        return self.rows_between(start, self.place)

    def all(self) -> list[Row]:
        all_rows: list[Row] = []
        while batch := self.next():
            all_rows.extend(batch)
        return all_rows


# ---------------------------------------------------------------- rows


def test_stream_gives_the_table_and_then_what_is_added(table: str) -> None:
    stream = Stream(table)
    assert sorted(stream.next()) == [(1, "mon"), (2, "mon"), (3, "tue"), (4, "wed")]
    assert stream.next() == []
    write_delta(table, rows(5), mode="append")
    assert stream.next() == [(5, "mon")]
    stream.restart()
    write_delta(table, rows(6), mode="append")
    assert stream.next() == [(6, "mon")]


@pytest.mark.parametrize(
    ("options", "sizes", "limit"),
    [
        ({}, [4], ReadMaxFiles(1000)),
        ({"maxFilesPerTrigger": "1"}, [2, 1, 1], ReadMaxFiles(1)),
        ({"maxFilesPerTrigger": "2"}, [3, 1], ReadMaxFiles(2)),
        ({"maxBytesPerTrigger": "1b"}, [2, 1, 1], ReadMaxBytes(1)),
        ({"maxBytesPerTrigger": "1g", "maxFilesPerTrigger": "2"}, [3, 1], ReadMaxFiles(2)),
        ({"maxBytesPerTrigger": "1", "maxFilesPerTrigger": "2"}, [2, 1, 1], ReadMaxFiles(2)),
    ],
)
def test_stream_batches_keep_to_their_limits(table: str, options: dict[str, str], sizes: list[int], limit: Any) -> None:
    stream = Stream(table, **options)
    assert stream.reader.getDefaultReadLimit() == limit
    batch_sizes = []
    while batch := stream.next():
        batch_sizes.append(len(batch))
    assert batch_sizes == sizes
    once = Stream(table, **options)
    assert len(once.next(ReadAllAvailable())) == 4, "Trigger.Once takes all there is"


def test_stream_available_now_stops_at_the_version_at_its_start(table: str) -> None:
    stream = Stream(table, maxFilesPerTrigger="2")
    stream.reader.prepareForTriggerAvailableNow()
    first = stream.next()
    write_delta(table, rows(5), mode="append")
    assert len(first) + len(stream.all()) == 4
    stream.restart()
    assert stream.all() == [(5, "mon")]


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"startingVersion": "1"}, [3, 4]), ({"startingVersion": "latest"}, []), ({"startingVersion": "LATEST"}, [])],
)
def test_stream_starting_version_leaves_out_what_was_before(table: str, options: dict[str, str], expected: list[int]) -> None:
    stream = Stream(table, **options)
    assert [row[0] for row in stream.all()] == expected
    write_delta(table, rows(9), mode="append")
    assert stream.all() == [(9, "mon")]


def test_stream_starting_timestamp_begins_at_the_next_version(table: str) -> None:
    for version in range(3):
        os.utime(Path(table, "_delta_log", f"{version:020d}.json"), (1_700_000_000 + 3600 * version,) * 2)
    assert [row[0] for row in Stream(table, startingTimestamp="2023-11-14 22:30:00", timeZone="UTC").all()] == [3, 4]


def test_stream_filter_and_columns_read_less_and_the_same_rows(table: str) -> None:
    for version in (5, 6):
        write_delta(table, rows(version, version * 10, day="tue"), mode="append")
    stream = Stream(table, filter="day = 'tue' AND id < 30", columns="id")
    assert sorted(stream.all()) == [(3,), (5,), (6,)]
    by_file = Stream(table, filter="day = 'tue'", maxFilesPerTrigger="1")
    assert [len(batch) for batch in iter(by_file.next, [])] == [1, 2, 2]


def test_stream_metadata_column_names_each_rows_file(table: str) -> None:
    stream_rows = Stream(table, metadataColumn="true", columns="id,_metadata").all()
    assert all(row[1]["file_path"].startswith(f"file:{table}/") for row in stream_rows) and len(stream_rows) == 4


def test_stream_reads_through_deletion_vectors_and_new_types(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    properties = {"delta.enableDeletionVectors": "true", "delta.enableTypeWidening": "true"}
    write_delta(path, pa.table({"id": pa.array(range(10), pa.int32())}), configuration=properties)
    none = pa.table({"id": pa.array([], pa.int32())})
    write_delta(path, none, mode="overwrite", replace_where="id < 4")
    write_delta(path, pa.table({"id": pa.array([2**40], pa.int64())}), mode="append", merge_schema=True)
    assert sorted(Stream(path).all()) == [(n,) for n in (*range(4, 10), 2**40)]
    old = Stream(path, startingVersion="0", skipChangeCommits="true")
    assert sorted(old.all()) == [(n,) for n in (*range(10), 2**40)]


def test_stream_reads_mapped_columns_by_their_ids(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, rows(1), partition_by=["day"], configuration={"delta.columnMapping.mode": "name"})
    stream = Stream(path, filter="day = 'mon'")
    assert stream.all() == [(1, "mon")]
    write_delta(path, rows(2), mode="append")
    assert stream.all() == [(2, "mon")]


# ---------------------------------------------------------------- commits that change rows


def test_stream_passes_over_rewrites_and_stops_at_changes(table: str) -> None:
    stream = Stream(table)
    stream.all()
    write_delta(table, rows(1, 2), mode="overwrite", replace_where="day = 'mon'", data_change=False)
    assert stream.next() == []
    write_delta(table, rows(), mode="overwrite", replace_where="day = 'wed'")
    with pytest.raises(UnsupportedOperationError) as caught:
        stream.next()
    assert caught.value.error_class == "DELTA_SOURCE_IGNORE_DELETE"
    stream.options["ignoreDeletes"] = "true"
    stream.restart()
    assert stream.next() == []
    write_delta(table, rows(7), mode="overwrite", replace_where="day = 'mon'")
    with pytest.raises(UnsupportedOperationError) as caught:
        stream.next()
    assert caught.value.error_class == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
    stream.options["skipChangeCommits"] = "true"
    stream.restart()
    write_delta(table, rows(8), mode="append")
    assert stream.next() == [(8, "mon")]


def test_new_column_stops_a_stream_and_a_restart_reads_it(table: str) -> None:
    stream = Stream(table)
    stream.all()
    more = rows(5).append_column("more", pa.array(["x"]))
    write_delta(table, more, mode="append", merge_schema=True)
    with pytest.raises(SchemaMismatchError) as caught:
        stream.next()
    assert caught.value.error_class == "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    stream.restart()
    assert stream.next() == [(5, "mon", "x")]


# ---------------------------------------------------------------- change feed


@pytest.mark.parametrize("anew", [{"id": [5]}, {"id": [7], "day": ["thu"]}, {"x": ["other"]}])
@pytest.mark.parametrize("options", [{}, {"readChangeFeed": "true", "startingVersion": "0"}])
def test_stream_does_not_start_on_a_recreated_table(
    tmp_path: Path, anew: dict[str, list[Any]], options: dict[str, str]
) -> None:
    path = str(tmp_path / "t")
    write_delta(path, pa.table({"id": [1], "day": ["mon"]}), configuration=FEED)
    pinned = pickle.loads(pickle.dumps(pin_stream({"path": path, **options})))
    schema = to_spark_schema(pinned.schema)
    assert make_stream_reader(pinned, schema) is not None
    shutil.rmtree(path)
    write_delta(path, pa.table(anew), configuration=FEED)
    with pytest.raises(SchemaMismatchError, match="deleted and created again"):
        make_stream_reader(pinned, schema)


def test_feed_stream_begins_with_the_table_as_inserts(table: str) -> None:
    stream = Stream(table, readChangeFeed="true")
    first = stream.next()
    assert sorted(row[:4] for row in first) == [(i, d, "insert", 2) for i, d in ((1, "mon"), (2, "mon"), (3, "tue"), (4, "wed"))]
    write_delta(table, rows(7), mode="overwrite", replace_where="day = 'mon'")
    write_delta(table, rows(), mode="overwrite", replace_where="id = 3")
    first_rows = sorted(row[:4] for row in stream.all())
    assert first_rows == [(1, "mon", "delete", 3), (2, "mon", "delete", 3), (3, "tue", "delete", 4), (7, "mon", "insert", 3)]


PARTITION = {"name": "=", "children": [{"column": ["day"]}, {"type": "string", "value": "tue"}]}
ROW_GROUP = {"name": ">", "children": [{"column": ["id"]}, {"type": "long", "value": 3}]}
ALL_ROWS = [(1, "mon"), (2, "mon"), (3, "tue"), (4, "wed")]


@pytest.mark.parametrize(
    ("predicates", "options", "expected"),
    [
        ([], {}, ALL_ROWS),
        ([PARTITION], {}, [(3, "tue")]),
        ([ROW_GROUP], {}, [(4, "wed")]),
        ([PARTITION, ROW_GROUP], {}, []),
        ([ROW_GROUP], {"filter": "id > 1"}, [(4, "wed")]),
        ([ROW_GROUP], {"pruning": "false"}, ALL_ROWS),
        ([{"name": "NOT", "children": [ROW_GROUP]}], {"filter": "day = 'mon' AND id > 1"}, [(2, "mon")]),
    ],
    ids=str,
)
@pytest.mark.parametrize("columns", [("id", "day"), ("day",)], ids=str)
def test_batch_gives_the_columns_and_rows_that_the_rule_asks_for(
    predicates: list[Any], options: dict[str, str], expected: list[Row], columns: tuple[str, ...], table: str
) -> None:
    """Rows that a filter of Spark's would exclude, if statistics of files and row groups show it."""
    stream = Stream(table, **options)
    schema = to_spark_schema(pin_stream(stream.options).schema)
    requested = StructType([schema[name] for name in columns])
    requested.fields[0].metadata = {MARKER_KEY: json.dumps({"predicates": predicates, "limit": None, "scan_id": "n"})}
    end = stream.reader.latestOffset(stream.place, ReadAllAvailable())
    bounds = {MARKER_KEY: requested.json(), "start": json.dumps(stream.place)}, end
    reader = DeltaSource(stream.options).streamReader(StructType([schema[name] for name in columns]))
    task: DeltaStreamReader = pickle.loads(pickle.dumps(reader))
    parts = stream.reader.partitions(*bounds)
    read_rows = [tuple(row.values()) for part in parts for batch in task.read(part) for row in batch.to_pylist()]
    assert sorted(read_rows) == sorted(row[-len(columns) :] for row in expected)


def test_feed_gives_all_changes_despite_predicates_of_the_rule(table: str) -> None:
    stream = Stream(table, readChangeFeed="true", startingVersion="0")
    requested = to_spark_schema(pin_stream(stream.options).schema)
    requested.fields[0].metadata = {MARKER_KEY: json.dumps({"predicates": [PARTITION], "limit": None, "scan_id": "n"})}
    end = stream.reader.latestOffset(stream.place, ReadAllAvailable())
    start: Any = {MARKER_KEY: requested.json(), "start": json.dumps(stream.place)}
    assert len(stream.rows_between(start, end)) == 4


@pytest.mark.parametrize("files", ["1", "2", "1000"])
def test_feed_stream_of_any_batches_is_the_feed_of_a_batch(table: str, files: str) -> None:
    write_delta(table, rows(7), mode="overwrite", replace_where="id IN (1, 7)")
    write_delta(table, rows(8), mode="append")
    write_delta(table, rows(9), mode="overwrite")
    stream = Stream(table, readChangeFeed="true", startingVersion="0", maxFilesPerTrigger=files)
    feed_rows, start = [], stream.place
    while batch := stream.next():
        feed_rows.extend(batch)
        second_stream = Stream(table, readChangeFeed="true", startingVersion="0")
        assert second_stream.rows_between(start, stream.place) == batch
        start = stream.place
    scan = plan_changes(open_store(table), starting_version=0)
    expected = [tuple(row.values()) for batch in read_files(scan.state, scan.scan_files()) for row in batch.to_pylist()]
    assert Counter(feed_rows) == Counter(expected) and len(feed_rows) > 8


@pytest.mark.parametrize("limit", [{"maxFilesPerTrigger": "1"}, {"maxBytesPerTrigger": "1"}], ids=str)
def test_feed_stream_gives_the_changes_of_an_update_in_one_batch(table: str, limit: dict[str, str]) -> None:
    write_delta(table, rows(8, 9), mode="append")
    for id in (1, 9):
        write_delta(table, rows(id, 3), mode="overwrite", replace_where=f"id IN ({id}, 3)")
    assert all(len(change_files(table, version)) > 1 for version in (4, 5))
    stream = Stream(table, readChangeFeed="true", startingVersion="2", **limit)
    batches = []
    while batch := stream.next():
        batches.append(sorted((row[0], row[2], row[3]) for row in batch))
    assert [{row[2] for row in batch} for batch in batches] == [{2}, {3}, {4}, {5}]
    assert batches[2] == [(1, "delete", 4), (1, "insert", 4), (3, "delete", 4), (3, "insert", 4)]


def change_files(table: str, version: int) -> list[Any]:
    return [action["cdc"] for action in actions(table, version) if "cdc" in action]


def actions(table: str, version: int) -> list[Any]:
    return [json.loads(line) for line in Path(table, f"_delta_log/{version:020}.json").read_text().splitlines()]


def test_feed_stream_splits_a_commit_by_order_of_its_actions(table: str) -> None:
    """As the reference's streams do, which may continue from any offset."""
    write_delta(table, pa.concat_tables([rows(7), rows(8, day="tue")]), mode="overwrite")
    files = [(kind, action[kind]["path"]) for action in actions(table, 3) for kind in action if kind in ("add", "remove")]
    assert len(files) == 5 and len({kind for kind, _ in files}) == 2
    stream = Stream(table, readChangeFeed="true", startingVersion="3", maxFilesPerTrigger="1")
    for place, (kind, _) in enumerate(files):
        assert {row[2] for row in stream.next()} == {{"add": "insert", "remove": "delete"}[kind]}
        assert (stream.place["reservoirVersion"], stream.place["index"]) == (3, place)
        assert stream.place.get("goesOnWithVersion") == (4 if place == 4 else None), "theirs cannot begin with what is not there"
    assert stream.next() == []
    write_delta(table, rows(9), mode="append")
    assert [row[2:4] for row in stream.next()] == [("insert", 4)]
    assert (stream.place["reservoirVersion"], stream.place["index"], stream.place["goesOnWithVersion"]) == (4, 0, 5)


def test_feed_stream_skips_empty_commits_and_reports_the_last(table: str) -> None:
    stream = Stream(table, readChangeFeed="true", startingVersion="2")
    stream.next()
    before = stream.place
    for number in range(100):
        write_delta(table, rows(7).slice(0, 0), mode="append", txn_app_id="app", txn_version=number)
    assert stream.next() == []
    assert (stream.place["reservoirVersion"], stream.place["index"]) == (before["reservoirVersion"], before["index"]) == (2, 0)
    assert (before["goesOnWithVersion"], stream.place["goesOnWithVersion"]) == (3, 103)


def test_feed_stream_filter_takes_partitions_and_change_types(table: str) -> None:
    write_delta(table, rows(), mode="overwrite", replace_where="id = 3")
    stream = Stream(table, readChangeFeed="true", startingVersion="0", filter="_change_type = 'delete' OR day = 'wed'")
    assert sorted(row[:3] for row in stream.all()) == [(3, "tue", "delete"), (4, "wed", "insert")]


def test_feed_stream_of_a_table_without_feed_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, rows(1))
    stream = Stream(path, readChangeFeed="true", startingVersion="0")
    with pytest.raises(ChangeDataFeedError) as caught:
        stream.next()
    assert caught.value.error_class == "DELTA_MISSING_CHANGE_DATA"


# ---------------------------------------------------------------- options, progress


@pytest.mark.parametrize(
    ("options", "error", "condition"),
    [
        ({"maxFilesPerTriger": "1"}, InvalidOptionError, "DELTA_UNKNOWN_OPTION"),
        ({"maxFilesPerTrigger": "0"}, InvalidOptionError, "DELTA_ILLEGAL_OPTION"),
        ({"maxFilesPerTrigger": "many"}, InvalidOptionError, "DELTA_ILLEGAL_OPTION"),
        ({"maxBytesPerTrigger": "-1"}, InvalidOptionError, "DELTA_ILLEGAL_OPTION"),
        ({"startingVersion": "-1"}, InvalidOptionError, "DELTA_VERSION_INVALID"),
        (
            {"startingVersion": "1", "startingTimestamp": "2024-01-01"},
            InvalidOptionError,
            "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
        ),
        ({"ignoreDeletes": "yes"}, InvalidOptionError, "DELTA_ILLEGAL_OPTION"),
        ({"excludeRegex": "(a"}, ExpressionError, "DELTA_UNSUPPORTED_EXPRESSION"),
        ({"versionAsOf": "1"}, UnsupportedOperationError, "DELTA_OPERATION_NOT_SUPPORTED"),
        ({"endingVersion": "1"}, UnsupportedOperationError, "DELTA_OPERATION_NOT_SUPPORTED"),
        ({"withEventTimeOrder": "true"}, InvalidOptionError, "DELTA_ILLEGAL_OPTION"),
        ({"schemaTrackingLocation": "/x"}, InvalidOptionError, "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT"),
        ({"allowSourceColumnDrop": "always"}, InvalidOptionError, "DELTA_ILLEGAL_OPTION"),
        ({"streamingSourceTrackingId": "left"}, InvalidOptionError, "DELTA_ILLEGAL_OPTION"),
    ],
)
def test_stream_option_that_cannot_be_is_refused_by_name(
    table: str, options: dict[str, str], error: type[DeltaError], condition: str
) -> None:
    with pytest.raises(error) as caught:
        Stream(table, **options)
    assert caught.value.error_class == condition
    assert next(iter(options)).lower()[:15] in str(caught.value).lower() or condition == "DELTA_UNSUPPORTED_EXPRESSION"


def test_stream_exclude_regex_leaves_files_out(table: str) -> None:
    stream = Stream(table, excludeRegex="day=(mon|wed)/")
    assert stream.all() == [(3, "tue")]


@pytest.mark.parametrize("options", [{}, {"readChangeFeed": "true"}, {"readChangeFeed": "true", "startingVersion": "0"}], ids=str)
def test_stream_exclude_regex_matches_paths_as_in_the_log(tmp_path: Path, options: dict[str, str]) -> None:
    path = str(tmp_path / "t")
    write_delta(path, pa.concat_tables([rows(1, day="a b"), rows(2, day="c")]), partition_by=["day"], configuration=FEED)
    for pattern, expected in (("day=a%20b/", [2]), ("day=a b/", [1, 2])):
        assert sorted(row[0] for row in Stream(path, excludeRegex=pattern, **options).all()) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, False),
        ({"maxFilesPerTrigger": "1"}, False),
        ({"startingVersion": "1"}, True),
        ({"startingVersion": "latest", "readChangeFeed": "true"}, True),
        ({"startingVersion": "1", "readChangeFeed": "true"}, False),
        ({"readChangeFeed": "true"}, True),
        ({"pydelta.stream": "true"}, True),
    ],
)
def test_options_that_only_a_stream_has_tell_it_without_register(options: dict[str, str], expected: bool) -> None:
    assert is_stream_read(options) == expected


def test_stream_progress_says_how_much_is_left(table: str) -> None:
    stream = Stream(table, maxFilesPerTrigger="1")
    assert stream.reader.reportLatestOffset() is None
    stream.next()
    write_delta(table, rows(5), mode="append")
    progress = stream.reader.reportLatestOffset()
    assert progress is not None
    assert (progress["numFilesOutstanding"], progress["numVersionsOutstanding"], progress["reservoirVersion"]) == (3, 1, 4)
    assert progress["numBytesOutstanding"] > 300 and progress["outstandingIsAtLeast"] is False
    stream.all()
    progress = stream.reader.reportLatestOffset()
    assert progress is not None and progress["numFilesOutstanding"] == 0 and progress["reservoirVersion"] == 4


# ---------------------------------------------------------------- event time


TIMES = pa.timestamp("us", "UTC")


def at(*minutes: int | None) -> pa.Table:
    """Rows with an id for each minute of one day; None for no time."""
    micros = [None if minute is None else 1_700_000_000_000_000 + minute * 60_000_000 for minute in minutes]
    return pa.table({"id": pa.array([-1 if m is None else m for m in minutes], pa.int64()), "at": pa.array(micros, TIMES)})


@pytest.fixture
def late(tmp_path: Path) -> str:
    """Files that each have rows before and after those of others, in no order."""
    path = str(tmp_path / "late")
    for minutes in ((50, 70), (0, 100, None), (20, 30), (20, 90), (65,), (None,)):
        write_delta(path, at(*minutes), mode="append", configuration=None if Path(path).exists() else FEED)
    return path


@pytest.mark.parametrize("files", ["1", "2", "3", "1000"])
@pytest.mark.parametrize("options", [{}, {"readChangeFeed": "true"}, {"columns": "id"}, {"filter": "id <> 30"}], ids=str)
def test_event_time_order_never_goes_back_between_batches(
    late: str, files: str, options: dict[str, str]
) -> None:
    stream = Stream(late, withEventTimeOrder="true", eventTimeColumn="at", maxFilesPerTrigger=files, **options)
    latest, read_ids, batches = -2, [], 0
    start = stream.place
    while batch := stream.next():
        ids = [row[0] for row in batch]
        timed = [id for id in ids if id >= 0]
        assert not timed or min(timed) > latest, "a watermark after the batch before would drop a row"
        latest, batches = max([latest, *timed]), batches + 1
        stream.restart()
        assert Counter(stream.rows_between(start, stream.place)) == Counter(batch), "the same batch after a restart"
        start, read_ids = stream.place, read_ids + ids
    expected = [-1, -1, 0, 20, 20, 30, 50, 65, 70, 90, 100]
    assert sorted(read_ids) == [id for id in expected if not (id == 30 and "filter" in options)]
    assert batches >= (4 if files == "1" else 1)
    write_delta(late, at(5), mode="append")
    assert [row[0] for row in stream.next()] == [5], "what is added later comes as it is added"


def test_event_time_order_needs_a_column_and_stays_what_it_was(late: str) -> None:
    with pytest.raises(InvalidOptionError, match="eventTimeColumn"):
        Stream(late, withEventTimeOrder="true")
    with pytest.raises(InvalidOptionError, match="eventTimeColumn is id"):
        Stream(late, withEventTimeOrder="true", eventTimeColumn="id")
    stream = Stream(late, withEventTimeOrder="true", eventTimeColumn="at", maxFilesPerTrigger="1")
    stream.next()
    stream.options = {"path": late}
    stream.restart()
    with pytest.raises(InvalidOptionError, match="withEventTimeOrder"):
        stream.next()


def test_event_time_order_reads_on_if_a_filter_skips_first_files(late: str) -> None:
    stream = Stream(late, withEventTimeOrder="true", eventTimeColumn="at", maxFilesPerTrigger="1")
    assert [row[0] for row in stream.next()] == [0]
    write_delta(late, at(5), mode="append")
    stream.options["filter"] = "id = 5"
    stream.restart()
    first_values = [row[0] for _ in range(3) for row in stream.next()]
    assert first_values == [5]


def test_event_time_order_refuses_first_rows_mixed_with_commits(late: str) -> None:
    """Only a changed checkpoint has one: its rows cannot be separated from those of other batches."""
    stream = Stream(late, withEventTimeOrder="true", eventTimeColumn="at", maxFilesPerTrigger="1")
    stream.next()
    write_delta(late, at(5), mode="append")
    end = {**stream.place, "sourceVersion": 1, "reservoirVersion": 7, "index": -1, "isStartingVersion": False}
    del end["eventTimeColumn"]
    with pytest.raises(InvalidOptionError, match="pydelta makes no such batch"):
        stream.rows_between(stream.place, end)
