"""Admission: which files a stream's next batch has, and what stops a stream. The logs have no data files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from delta_py.errors import (
    ChangeDataFeedError,
    CorruptTableError,
    DeltaError,
    InvalidOptionError,
    LogFileNotFoundError,
    SchemaMismatchError,
    TimestampOutOfRangeError,
    UnsupportedOperationError,
    UnsupportedTableFeatureError,
    VersionNotFoundError,
)
from delta_py.expressions.parse import parse_predicate
from delta_py.expressions.sql_text.to_sql import to_sql
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectInfo
from delta_py.streaming import commits, lag
from delta_py.streaming.batch_limits import Limits
from delta_py.streaming.commits import ChangeRules
from delta_py.streaming.lag import Lag
from delta_py.streaming.offset import StreamOffset
from delta_py.streaming.source import StreamSource
from delta_py.streaming.stream_options import StreamOptions, StreamStart
from delta_py.types.schema import StructType
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add, remove, stats, vector

TABLE_ID = "b5a1a8f0-0000-4000-8000-000000000001"
EVERYTHING = Limits()


@pytest.fixture
def builder() -> TableBuilder:
    """Version 0: files a (time 3), b (time 1), c (time 2). Version 1: d and e."""
    new_builder = TableBuilder(MemoryStore())
    new_builder.create(add("a", modificationTime=3), add("b", modificationTime=1), add("c", modificationTime=2))
    new_builder.commit(add("d"), add("e"))
    return new_builder


def source(builder: TableBuilder, version: int | None = None, **options: Any) -> StreamSource:
    return StreamSource(Snapshot.load(builder.store, version), StreamOptions(**options))


def at(version: int, index: int = -1, *, initial: bool = False) -> StreamOffset:
    return StreamOffset(TABLE_ID, version, index, initial)


def batches(stream: StreamSource, start: StreamOffset, limits: Limits, last_version: int | None = None) -> list[list[str]]:
    """The files of each batch until none remain."""
    batch_paths: list[list[str]] = []
    while (end := stream.admit(start, limits, last_version=last_version)) != start:
        batch_paths.append(stream.plan(start, end).paths())
        start = end
    return batch_paths


# ---------------------------------------------------------------- order, limits


def test_stream_reads_the_rows_by_age_and_then_what_commits_add(builder: TableBuilder) -> None:
    stream = source(builder, 0)
    start = stream.initial_offset(StreamStart())
    assert start == at(0, initial=True)
    assert batches(stream, start, EVERYTHING) == [["b", "c", "a", "d", "e"]]
    assert batches(stream, start, Limits(files=2)) == [["b", "c"], ["a", "d"], ["e"]]
    assert batches(stream, start, Limits(files=3)) == [["b", "c", "a"], ["d", "e"]]


def test_stream_orders_paths_of_one_age_as_the_log_spells_them() -> None:
    builder = TableBuilder(MemoryStore())
    builder.create(add("a!b"), add("a%20b"), add("a$b"))
    assert batches(source(builder), at(0, initial=True), EVERYTHING) == [["a!b", "a$b", "a b"]]


def test_stream_offset_after_each_batch_says_version_and_index(builder: TableBuilder) -> None:
    stream = source(builder, 0)
    assert stream.admit(at(0, initial=True), Limits(files=2)) == at(0, 1, initial=True)
    assert stream.admit(at(0, 1, initial=True), Limits(files=1)) == at(1)
    assert stream.admit(at(1), Limits(files=1)) == at(1, 0)
    assert stream.admit(at(1, 0), Limits(files=5)) == at(2)
    assert stream.admit(at(2), Limits(files=5)) == at(2)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(bytes=1), [["b"], ["c"], ["a"], ["d"], ["e"]]),
        (Limits(bytes=100), [["b"], ["c"], ["a"], ["d"], ["e"]]),
        (Limits(bytes=101), [["b", "c"], ["a", "d"], ["e"]]),
        (Limits(bytes=250, files=2), [["b", "c"], ["a", "d"], ["e"]]),
        (Limits(bytes=250, files=4), [["b", "c", "a"], ["d", "e"]]),
    ],
)
def test_stream_batch_ends_with_the_file_that_reaches_a_limit(
    builder: TableBuilder, limits: Limits, expected: list[list[str]]
) -> None:
    assert batches(source(builder, 0), at(0, initial=True), limits) == expected


@pytest.mark.parametrize("limits", [Limits(files=0), Limits(bytes=0), Limits(files=-1)])
def test_stream_limit_below_one_is_refused(builder: TableBuilder, limits: Limits) -> None:
    with pytest.raises(InvalidOptionError, match="at least 1"):
        source(builder).admit(at(0), limits)


def test_stream_stops_at_the_last_version_asked_for(builder: TableBuilder) -> None:
    builder.commit(add("f"))
    assert batches(source(builder, 0), at(0, initial=True), EVERYTHING, last_version=1) == [["b", "c", "a", "d", "e"]]


def test_stream_order_is_equal_from_commits_and_checkpoint(builder: TableBuilder) -> None:
    builder.commit(remove("c"), add("f", modificationTime=2))
    before = source(builder, 2).plan(at(2, initial=True), at(3)).paths()
    builder.checkpoint()
    assert source(builder, 2).plan(at(2, initial=True), at(3)).paths() == before == ["b", "d", "e", "f", "a"]


def test_stream_batch_has_the_same_files_after_a_restart(builder: TableBuilder) -> None:
    first = source(builder, 0)
    end = first.admit(at(0, 0, initial=True), Limits(files=3))
    files = first.plan(at(0, 0, initial=True), end).paths()
    builder.commit(remove("a", dataChange=False), remove("b", dataChange=False), add("ab", dataChange=False))
    builder.checkpoint()
    builder.commit(add("z"))
    assert source(builder).plan(at(0, 0, initial=True), end).paths() == files == ["c", "a", "d"]


@pytest.mark.parametrize("start", [StreamStart(), StreamStart(latest=True)], ids=["snapshot", "latest"])
@pytest.mark.parametrize("limits", [Limits(files=1), Limits(files=4), EVERYTHING])
def test_stream_first_batch_run_again_begins_where_it_began(builder: TableBuilder, start: StreamStart, limits: Limits) -> None:
    """Spark records the end of the first batch but not its start, which it asks for again."""
    begin = source(builder).initial_offset(start)
    builder.commit(add("f"), add("g"), add("h"))
    first = source(builder)
    end = first.admit(StreamOffset.from_json(begin.to_json()), limits)
    files = first.plan(begin, end).paths()
    builder.commit(remove("b", dataChange=False), add("b2", dataChange=False, modificationTime=0))
    builder.commit(add("i"))
    restarted = source(builder)
    start_offset = StreamOffset.from_json(restarted.initial_offset(start).to_json())
    assert start_offset != begin
    assert restarted.plan(start_offset, StreamOffset.from_json(end.to_json())).paths() == files
    rest = batches(restarted, StreamOffset.from_json(end.to_json()), limits)
    all_paths = ["b", "a", "c", "d", "e"] if start == StreamStart() else []
    assert sorted([*files, *(path for batch in rest for path in batch)]) == sorted([*all_paths, "f", "g", "h", "i"])


def test_stream_plan_between_equal_offsets_is_empty(builder: TableBuilder) -> None:
    for offset in (at(0, initial=True), at(0, 1, initial=True), at(1), at(1, 0), at(2)):
        assert source(builder, 0).plan(offset, offset).paths() == []


# ---------------------------------------------------------------- where it begins


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (StreamStart(version=0), at(0)),
        (StreamStart(version=1), at(1)),
        (StreamStart(latest=True), at(2)),
        (StreamStart(timestamp_ms=1_700_000_001_500), at(1)),
    ],
)
def test_stream_start_is_before_what_the_version_added(builder: TableBuilder, start: StreamStart, expected: StreamOffset) -> None:
    for number in (0, 1):
        name = f"{number:020d}.json"
        data = builder.store.read(f"_delta_log/{name}")
        builder.delete(name)
        builder.write(name, data, time_ms=1_700_000_001_000 + 1000 * number)
    assert source(builder).initial_offset(start) == expected


def test_stream_start_that_is_not_there_is_refused(builder: TableBuilder) -> None:
    with pytest.raises(VersionNotFoundError):
        source(builder).initial_offset(StreamStart(version=2))
    with pytest.raises(TimestampOutOfRangeError):
        source(builder).initial_offset(StreamStart(timestamp_ms=9_999_999_999_999))


# ---------------------------------------------------------------- commits that do more than add


def test_stream_passes_over_commits_that_only_arrange_rows(builder: TableBuilder) -> None:
    stream = source(builder, 1)
    builder.commit(remove("d", dataChange=False), remove("e", dataChange=False), add("de", dataChange=False))
    assert stream.admit(at(2), EVERYTHING) == at(2), "a batch without rows would only cost"
    builder.commit(add("f"))
    assert batches(stream, at(2), EVERYTHING) == [["f"]]


def test_stream_passes_over_commits_of_no_bytes(builder: TableBuilder) -> None:
    builder.write(f"{2:020d}.json", b"")
    builder.commits[2] = []
    builder.commit(add("f"))
    assert batches(source(builder), at(1), Limits()) == [["d", "e", "f"]]


def test_stream_trigger_without_new_rows_only_lists_the_log(builder: TableBuilder) -> None:
    stream, store = source(builder, 1), builder.store
    assert isinstance(store, MemoryStore)
    builder.commit(add("x", dataChange=False))
    assert stream.admit(at(2), EVERYTHING) == at(2)
    store.calls.clear()
    assert stream.admit(at(2), EVERYTHING) == at(2)
    assert store.calls == [("list_from", "_delta_log")], "the commit that brought no rows is not read again"


def test_stream_batches_of_a_backlog_read_each_commit_once(builder: TableBuilder) -> None:
    for number in range(20):
        builder.commit(add(f"f{number}"), add(f"g{number}"))
    stream, store = source(builder, 0), builder.store
    assert isinstance(store, MemoryStore)
    assert len(batches(stream, at(1), Limits(files=3))) == 14
    reads = [path for name, path in store.calls if name == "read" and path.endswith(".json")]
    assert len(reads) == len(set(reads))


def test_stream_that_finds_nothing_for_long_notes_its_place(builder: TableBuilder) -> None:
    stream = source(builder, 1)
    for number in range(100):
        builder.commit(add(f"x{number}", dataChange=False))
    assert stream.admit(at(2), EVERYTHING) == at(102)
    assert stream.admit(at(3), EVERYTHING) == at(3)


def test_stream_that_finds_nothing_for_an_hour_notes_its_place(builder: TableBuilder) -> None:
    """If a table is rearranged each day, and hardly written to, the log at the stream's offset would expire."""
    stream, hour = source(builder, 1), 3_600_000
    noon = builder.time_ms
    for time_ms in (noon, noon + hour - 1):
        builder.commit(add(f"x{time_ms}", dataChange=False), time_ms=time_ms)
        assert stream.admit(at(2), EVERYTHING) == at(2)
    builder.commit(add("y", dataChange=False), time_ms=noon + hour)
    assert stream.admit(at(2), EVERYTHING) == at(5)
    assert source(builder).admit(at(2), EVERYTHING) == at(5)
    assert stream.plan(at(2), at(5)).paths() == []


def test_stream_of_an_empty_table_outlives_its_first_commits() -> None:
    builder = TableBuilder(MemoryStore())
    builder.create()
    begin = source(builder).initial_offset(StreamStart())
    for number in range(100):
        builder.commit(add(f"x{number}", dataChange=False))
    end = source(builder).admit(begin, EVERYTHING)
    assert end == at(101)
    builder.checkpoint(100)
    for version in range(100):
        builder.delete(f"{version:020d}.json")
    builder.commit(add("f"))
    assert batches(source(builder), end, EVERYTHING) == [["f"]]


@pytest.mark.parametrize(
    ("actions", "rules", "expected"),
    [
        ([remove("d")], ChangeRules(), "DELTA_SOURCE_IGNORE_DELETE"),
        ([remove("d")], ChangeRules(ignore_deletes=True), []),
        ([remove("d")], ChangeRules(ignore_changes=True), []),
        ([remove("d")], ChangeRules(skip_change_commits=True), []),
        ([remove("d"), add("x")], ChangeRules(), "DELTA_SOURCE_TABLE_IGNORE_CHANGES"),
        ([remove("d"), add("x")], ChangeRules(ignore_deletes=True), "DELTA_SOURCE_TABLE_IGNORE_CHANGES"),
        ([remove("d"), add("x")], ChangeRules(ignore_changes=True), ["x"]),
        ([remove("d"), add("x")], ChangeRules(skip_change_commits=True), []),
        ([remove("d", dataChange=False), add("x")], ChangeRules(), ["x"]),
    ],
)
def test_stream_commit_that_takes_rows_away(builder: TableBuilder, actions: list[Any], rules: ChangeRules, expected: Any) -> None:
    builder.commit(*actions)
    builder.commit(add("last"))
    stream = source(builder, 1, rules=rules)
    if isinstance(expected, str):
        with pytest.raises(UnsupportedOperationError, match=r"(?i)version") as caught:
            stream.admit(at(2), EVERYTHING)
        assert caught.value.error_class == expected
    else:
        assert batches(stream, at(2), EVERYTHING) == [[*expected, "last"]]


# ---------------------------------------------------------------- which files


def test_stream_excludes_files_without_moving_other_offsets(builder: TableBuilder) -> None:
    builder.commit(add("skip1"), add("f"), add("skip2"), add("g"))
    plain, picky = source(builder, 1), source(builder, 1, exclude="^skip")
    assert picky.admit(at(2), Limits(files=1)) == plain.admit(at(2), Limits(files=2)) == at(2, 1)
    assert batches(picky, at(2), Limits(files=1)) == [["f"], ["g"]]


def test_stream_filter_prunes_by_partitions_and_statistics() -> None:
    builder = TableBuilder(MemoryStore())
    fields = [("id", "long"), ("p", "string")]
    files = [add(f"{p}{low}", partitionValues={"p": p}, stats=stats(10, low, low + 9)) for p in "xy" for low in (0, 10)]
    builder.commit(builder.protocol(), builder.metadata(*fields, partition_by=["p"]), *files)
    builder.commit(*(add(f"{p}20", partitionValues={"p": p}, stats=stats(10, 20, 29)) for p in "xy"))
    snapshot = Snapshot.load(builder.store, 0)
    predicate = parse_predicate("p = 'x' AND id >= 15", snapshot.schema)
    stream = StreamSource(snapshot, StreamOptions(predicate=predicate))
    assert batches(stream, at(0, initial=True), Limits(files=1)) == [["x10"], ["x20"]]
    assert str(stream.state().predicate) != "None", "the rows of a kept file are filtered by what the partition does not say"


def test_batch_is_planned_for_some_of_its_columns_and_rows() -> None:
    """Only partition values of files are known here, unless the stream's own filter needs statistics."""
    builder = TableBuilder(MemoryStore())
    files = [add(f"{p}{low}", partitionValues={"p": p}, stats=stats(10, low, low + 9)) for p in "xy" for low in (0, 10)]
    builder.commit(builder.protocol(), builder.metadata(("id", "long"), ("p", "string"), partition_by=["p"]), *files)
    builder.commit(add("x20", partitionValues={"p": "x"}), add("y20", partitionValues={"p": "y"}))
    snapshot = Snapshot.load(builder.store, 0)
    stream = StreamSource(snapshot, StreamOptions(predicate=parse_predicate("id < 100", snapshot.schema)))
    begin, ids = at(0, initial=True), StructType((snapshot.schema.fields[0],))
    end = stream.admit(begin, EVERYTHING)
    scan = stream.plan(begin, end, ids, parse_predicate("p = 'x' AND id > 5", snapshot.schema))
    assert (scan.paths(), scan.output_schema) == (["x0", "x10", "x20"], ids)
    assert (scan.report.files_kept, scan.report.files_total) == (3, 6)
    assert scan.state.predicate is not None
    assert to_sql(scan.state.predicate) == "(id < 100L) AND (id > 5L)"
    assert stream.state(ids) == replace(scan.state, predicate=stream.state().predicate)
    assert len(stream.plan(begin, end).paths()) == 6


# ---------------------------------------------------------------- what stops a stream


def refusal(error: type[DeltaError], condition: str, stream: StreamSource, start: StreamOffset) -> DeltaError:
    with pytest.raises(error) as caught:
        stream.admit(start, EVERYTHING)
    assert caught.value.error_class == condition
    return caught.value


def test_stream_new_column_asks_for_a_restart_which_reads_it(builder: TableBuilder) -> None:
    stream = source(builder)
    builder.commit(builder.metadata(("id", "long"), ("new", "string")), add("f"))
    error = refusal(SchemaMismatchError, "DELTA_SCHEMA_CHANGED_WITH_VERSION", stream, at(2))
    assert "Restart" in error.message
    assert batches(source(builder), at(1), EVERYTHING) == [["d", "e", "f"]]


def test_stream_with_start_option_must_start_after_new_schema(builder: TableBuilder) -> None:
    stream = source(builder, has_start=True)
    builder.commit(builder.metadata(("new", "string")), add("f"))
    for stream_of_start, place in ((stream, at(2)), (source(builder, has_start=True), at(1))):
        error = refusal(SchemaMismatchError, "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS", stream_of_start, place)
        assert "startingVersion" in error.message


def test_stream_widened_column_asks_for_a_restart_which_reads_it() -> None:
    builder = TableBuilder(MemoryStore())
    protocol = builder.protocol(features=["typeWidening"])
    builder.commit(protocol, builder.metadata(("id", "integer")), add("a"))
    stream = source(builder)
    builder.commit(builder.metadata(("id", "long")), add("b"))
    refusal(SchemaMismatchError, "DELTA_SCHEMA_CHANGED_WITH_VERSION", stream, at(1))
    assert batches(source(builder), at(0), EVERYTHING) == [["a", "b"]]


def test_stream_properties_that_change_do_not_stop_it(builder: TableBuilder) -> None:
    stream = source(builder)
    builder.commit(builder.metadata(configuration={"delta.appendOnly": "true"}), add("f"))
    assert batches(stream, at(2), EVERYTHING) == [["f"]]


def mapped(builder: TableBuilder, *names: str) -> Any:
    """Metadata with columns c0, c1, ... (physical) under the names, in column mapping mode name."""
    action = builder.metadata(*((name, "long") for name in names), configuration={"delta.columnMapping.mode": "name"})
    schema = json.loads(action["metaData"]["schemaString"])
    for number, column in enumerate(schema["fields"]):
        column["metadata"] = {"delta.columnMapping.id": number + 1, "delta.columnMapping.physicalName": f"c{number}"}
    action["metaData"]["schemaString"] = json.dumps(schema)
    return action


def test_stream_refuses_renamed_column_also_after_a_restart() -> None:
    builder = TableBuilder(MemoryStore())
    builder.commit(builder.protocol(features=["columnMapping"]), mapped(builder, "one"), add("a"))
    stream = source(builder)
    builder.commit(mapped(builder, "uno"), add("b"))
    name = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
    refusal(SchemaMismatchError, name, stream, at(1))
    refusal(SchemaMismatchError, name, source(builder), at(1))
    assert batches(source(builder), at(2), EVERYTHING) == []


def test_stream_refuses_files_from_before_mapping_was_disabled() -> None:
    """Their columns have names that the table no longer knows."""
    builder = TableBuilder(MemoryStore())
    builder.commit(builder.protocol(features=["columnMapping"]), mapped(builder, "one"), add("a"))
    builder.commit(add("b"))
    stream = source(builder)
    builder.commit(builder.metadata(("one", "long"), configuration={"delta.columnMapping.mode": "none"}))
    builder.commit(add("c"))
    name = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
    assert stream.admit(at(1), EVERYTHING) == at(2)
    refusal(SchemaMismatchError, name, stream, at(2))
    refusal(SchemaMismatchError, name, source(builder), at(1))
    assert batches(source(builder), at(3), EVERYTHING) == [["c"]]
    builder.checkpoint(3)
    builder.delete(f"{0:020d}.json")
    refusal(LogFileNotFoundError, "DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT", source(builder), at(1))


def test_stream_continues_from_before_a_protocol_upgrade() -> None:
    builder = TableBuilder(MemoryStore())
    builder.commit(builder.protocol(), builder.metadata(("c0", "long")), add("a"))
    builder.commit(builder.protocol(1, 4))
    builder.commit(builder.protocol(2, 5), mapped(builder, "c0"), add("b"))
    assert batches(source(builder), at(0), EVERYTHING) == [["a", "b"]]
    builder.commit(builder.protocol(features=["columnMapping", "fromTheFuture"]))
    with pytest.raises(UnsupportedTableFeatureError):
        source(builder, 2).admit(at(3), EVERYTHING)


def test_stream_starts_at_a_rename_and_resumes_inside_its_commit() -> None:
    builder = TableBuilder(MemoryStore())
    builder.commit(builder.protocol(features=["columnMapping"]), mapped(builder, "one"), add("a"))
    builder.commit(mapped(builder, "uno"), add("b"), add("c"))
    builder.commit(add("d"))
    place, paths = source(builder).initial_offset(StreamStart(version=1)), []
    while (end := source(builder).admit(place, Limits(files=1))) != place:
        paths.append(source(builder).plan(place, end).paths())
        place = StreamOffset.from_json(end.to_json())
    assert paths == [["b"], ["c"], ["d"]]


def test_stream_that_begins_after_a_schema_change_is_refused(builder: TableBuilder) -> None:
    """Its rows would come without the new column."""
    made_before = Snapshot.load(builder.store)
    builder.commit(builder.metadata(("id", "long"), ("new", "string")), add("f"))
    begin = StreamSource(made_before).initial_offset(StreamStart(latest=True))
    for start in (begin, at(3)):
        refusal(SchemaMismatchError, "DELTA_SCHEMA_CHANGED_WITH_VERSION", StreamSource(made_before), start)
    builder.commit(add("g"))
    for start in (begin, at(3)):
        refusal(SchemaMismatchError, "DELTA_SCHEMA_CHANGED_WITH_VERSION", StreamSource(made_before), start)
        assert batches(source(builder), start, EVERYTHING) == [["g"]]


def test_stream_of_a_table_that_was_replaced_is_refused(builder: TableBuilder) -> None:
    running = source(builder)
    running.admit(at(2), EVERYTHING)
    other = builder.metadata()
    other["metaData"]["id"] = "another"
    for name in ("0", "1"):
        builder.delete(f"{int(name):020d}.json")
    builder.commit(builder.protocol(), other, add("a"), version=0)
    name = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    refusal(SchemaMismatchError, name, running, at(2))
    refusal(SchemaMismatchError, name, source(builder), at(0))


def test_stream_of_a_table_whose_id_changes_is_refused(builder: TableBuilder) -> None:
    other = builder.metadata()
    other["metaData"]["id"] = "another"
    stream = source(builder)
    builder.commit(other, add("f"))
    refusal(SchemaMismatchError, "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE", stream, at(2))


def test_stream_whose_next_commits_were_cleaned_up(builder: TableBuilder) -> None:
    for number in range(2, 6):
        builder.commit(add(f"f{number}"))
    builder.checkpoint(4)
    for number in range(4):
        builder.delete(f"{number:020d}.json")
    error = refusal(LogFileNotFoundError, "DELTA_MISSING_FILES_UNEXPECTED_VERSION", source(builder), at(2))
    assert (error.message_parameters["expected"], error.message_parameters["found"]) == (2, 4)
    assert batches(source(builder, fail_on_data_loss=False), at(2), EVERYTHING) == [["f4", "f5"]]


def test_stream_of_mapped_columns_fails_if_commits_are_deleted() -> None:
    builder = TableBuilder(MemoryStore())
    builder.commit(builder.protocol(features=["columnMapping"]), mapped(builder, "one"), add("a"))
    for number in range(1, 6):
        builder.commit(add(f"f{number}"))
    builder.checkpoint(4)
    for number in range(3):
        builder.delete(f"{number:020d}.json")
    refusal(LogFileNotFoundError, "DELTA_MISSING_FILES_UNEXPECTED_VERSION", source(builder), at(2))
    refusal(LogFileNotFoundError, "DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT", source(builder), at(3))
    builder.delete(f"{3:020d}.json")
    assert batches(source(builder, fail_on_data_loss=False), at(2), EVERYTHING) == [["f4", "f5"]]
    builder.commit(mapped(builder, "uno"), add("f6"))
    name = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
    refusal(SchemaMismatchError, name, source(builder, fail_on_data_loss=False), at(2))


def test_stream_retries_a_commit_that_a_listing_missed(builder: TableBuilder) -> None:
    store = _MissingOnce(2)
    store.objects, builder.store = builder.store.objects, store  # type: ignore[attr-defined]
    stream = source(builder)
    builder.commit(add("f"))
    builder.commit(add("g"))
    store.is_due = True
    assert batches(stream, at(2), EVERYTHING) == [["f", "g"]]
    assert not store.is_due


class _MissingOnce(MemoryStore):
    """Lists the log without the commit of a version, once: a directory that is written to may be listed like this."""

    def __init__(self, version: int) -> None:
        super().__init__()
        self._name, self.is_due = f"_delta_log/{version:020d}.json", False

    def list_from(self, directory: str, start: str = "") -> Iterator[ObjectInfo]:
        listed_files = list(super().list_from(directory, start))
        missing, self.is_due = self.is_due, False
        return iter([info for info in listed_files if not (missing and info.path == self._name)])


def test_stream_batch_without_its_commits_is_not_planned(builder: TableBuilder) -> None:
    builder.commit(add("f"))
    builder.commit(add("g"))
    builder.delete(f"{3:020d}.json")
    with pytest.raises(LogFileNotFoundError) as caught:
        source(builder, 1).plan(at(2), at(4))
    assert caught.value.error_class == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
    assert source(builder, 1, fail_on_data_loss=False).plan(at(2), at(4)).paths() == ["f"]


def test_stream_fails_for_a_missing_commit_under_a_checkpoint(builder: TableBuilder) -> None:
    builder.commit(add("f"))
    stream = source(builder)
    builder.commit(add("g"))
    builder.checkpoint(3)
    builder.delete(f"{3:020d}.json")
    refusal(LogFileNotFoundError, "DELTA_MISSING_FILES_UNEXPECTED_VERSION", stream, at(2))
    refusal(LogFileNotFoundError, "DELTA_MISSING_FILES_UNEXPECTED_VERSION", stream, at(3))
    builder.commit(add("h"))
    assert batches(source(builder, fail_on_data_loss=False), at(2), EVERYTHING) == [["f", "h"]]


def test_stream_whose_first_state_is_gone_says_so(builder: TableBuilder) -> None:
    builder.commit(add("f"))
    builder.checkpoint(2)
    builder.delete(f"{0:020d}.json")
    refusal(LogFileNotFoundError, "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE", source(builder), at(1, 0, initial=True))


def test_stream_commit_that_is_damaged_names_its_line(builder: TableBuilder) -> None:
    builder.write(f"{2:020d}.json", b'{"commitInfo":{}}\n{"add":{"path":"x"}}\n')
    with pytest.raises(CorruptTableError, match=r"00002\.json, line 2"):
        source(builder, 1).admit(at(2), EVERYTHING)


def test_stream_of_a_change_feed_that_was_off_is_refused(builder: TableBuilder) -> None:
    error = refusal(ChangeDataFeedError, "DELTA_MISSING_CHANGE_DATA", source(builder, change_feed=True), at(1))
    assert "startingVersion" in error.message


@pytest.mark.parametrize("count", [2, 3, 4])
def test_stream_of_a_change_feed_ends_without_a_batch_of_nothing(count: int) -> None:
    builder = TableBuilder(MemoryStore())
    builder.create(configuration={"delta.enableChangeDataFeed": "true"})
    for name in "abcd"[:count]:
        builder.commit(add(name))
    feed_batches = batches(source(builder, change_feed=True, has_start=True), at(1), Limits(files=2))
    assert feed_batches == [["a", "b"], *([list("cd"[: count - 2])] if count > 2 else [])]


# ---------------------------------------------------------------- lag


def test_stream_lag_counts_files_bytes_and_versions(builder: TableBuilder) -> None:
    stream = source(builder, 0)
    assert stream.lag(at(0, initial=True)) == Lag(5, 500, 1, False)
    assert stream.lag(at(0, 1, initial=True)) == Lag(3, 300, 1, False)
    assert stream.lag(at(1, 0)) == Lag(1, 100, 1, False)
    assert stream.lag(at(2)) == Lag(0, 0, 0, False)


def test_stream_lag_reads_no_further_than_its_limit_of_files(
    builder: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "_LAG_FILES", 3)
    for number in range(3):
        builder.commit(add(f"f{number}"), add(f"g{number}"))
    stream, store = source(builder, 0), builder.store
    assert isinstance(store, MemoryStore)
    assert stream.lag(at(2)) == Lag(4, 400, 3, True)
    assert stream.lag(at(0, initial=True)) == Lag(7, 700, 4, True)
    assert ("read", f"_delta_log/{4:020d}.json") not in store.calls
    assert stream.lag(at(3)) == Lag(4, 400, 2, False)


def test_stream_lag_counts_commits_that_will_stop_the_stream(builder: TableBuilder) -> None:
    stream = source(builder)
    builder.commit(add("f"))
    builder.commit(builder.metadata(("id", "long"), ("new", "string")), add("g"))
    assert stream.lag(at(2)) == Lag(2, 200, 2, False)
    assert stream.admit(at(2), Limits(files=1)) == at(3), "what is before the change is read first"
    refusal(SchemaMismatchError, "DELTA_SCHEMA_CHANGED_WITH_VERSION", stream, at(3))


def test_stream_offset_of_a_newer_form_is_refused() -> None:
    value = at(3, 4).to_json()
    assert StreamOffset.from_json(value) == at(3, 4)
    assert StreamOffset.from_json({**value, "later": "field"}) == at(3, 4)
    assert StreamOffset.from_json({**value, "sourceVersion": 3, "index": -100}) == at(3)
    with pytest.raises(InvalidOptionError) as caught:
        StreamOffset.from_json({**value, "sourceVersion": 4})
    assert caught.value.error_class == "DELTA_INVALID_SOURCE_VERSION"
    with pytest.raises(InvalidOptionError) as caught:
        StreamOffset.from_json({**value, "index": "4"})
    assert caught.value.error_class == "DELTA_INVALID_SOURCE_OFFSET_FORMAT"
    change = {**value, "sourceVersion": 3, "index": -20}
    assert StreamOffset.from_json(change) == at(3, -20) and at(3, -20).to_json() == change
    assert replace(at(3), index=4) == at(3, 4)


def test_file_added_twice_in_a_commit_comes_once_as_last_added(builder: TableBuilder) -> None:
    """As in the table, where the last action for a file counts."""
    builder.commit(add("f", size=1), add("g"), add("f", size=2), add("%66", size=3), add("f", deletionVector=vector()))
    scan = source(builder).plan(at(2), at(3))
    assert (scan.paths(), scan.files["size"].to_pylist()) == (["f", "g", "f"], [3, 100, 100])


@pytest.mark.parametrize("value", [None, "true", 1, [], {}])
@pytest.mark.parametrize("make", [add, remove])
def test_action_without_a_boolean_data_change_is_refused(builder: TableBuilder, make: Any, value: Any) -> None:
    builder.commit(make("d", dataChange=value))
    with pytest.raises(CorruptTableError):
        source(builder).plan(at(2), at(3))


def test_file_that_a_large_commit_adds_again_is_refused(builder: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "_LINES_AT_ONCE", 2)
    builder.commit(add("f"), add("g"), add("h"), add("f"))
    with pytest.raises(CorruptTableError, match="repeats"):
        source(builder).plan(at(2), at(3))


def deep(levels: int = 1_000) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "odd",
    [
        *(None, 5, "x", [], deep(), {}),
        *({"sourceVersion": True}, {"sourceVersion": 1.0}, {"sourceVersion": deep()}, {"reservoirId": deep()}),
        *({"reservoirVersion": -1}, {"reservoirVersion": 3.0}, {"reservoirVersion": 2**63}, {"reservoirVersion": True}),
        *({"index": -2}, {"index": -100}, {"index": 2**63 - 1}, {"isStartingVersion": 0}, {"eventTimeColumn": "at"}),
        *({"beganAtVersion": -1, "beganWithSnapshot": True}, {"goesOnWithVersion": 2**63}),
    ],
    ids=count(),
)
def test_stream_offset_that_is_none_is_refused(odd: Any) -> None:
    value = {**at(3, 4).to_json(), **odd} if isinstance(odd, dict) and odd else odd
    with pytest.raises(InvalidOptionError) as caught:
        StreamOffset.from_json(value)
    assert caught.value.error_class in ("DELTA_INVALID_SOURCE_OFFSET_FORMAT", "DELTA_INVALID_SOURCE_VERSION")
    assert len(caught.value.message) < 500
