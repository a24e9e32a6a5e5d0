"""Change data feed: which rows changed between two versions, by change files, and by adds and removes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable
from delta_py.changes.change_feed import changes_schema, plan_changes
from delta_py.definition.create import create_table, define_table
from delta_py.errors import (
    ChangeDataFeedError,
    CorruptTableError,
    DeletionVectorError,
    DeltaError,
    InvalidOptionError,
    LogFileNotFoundError,
    TimestampOutOfRangeError,
)
from delta_py.expressions.parse import parse_predicate
from delta_py.parquet.file_reader import read_files
from delta_py.protocol.actions import Action, AddCDCFile, AddFile, CommitInfo, Metadata, Protocol, RemoveFile, action_to_line
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor, from_row_indexes, inline_descriptor
from delta_py.row_changes.write import write_delta
from delta_py.scan.planning import Scan, ScanOptions
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import LONG, STRING, StructField, StructType, schema_to_json, to_arrow_schema

FEED_ON = {"delta.enableChangeDataFeed": "true"}
DAY_MS = 86_400_000


class Table:
    """A table with the feed on, partitioned by p; version n was committed on day n after the epoch."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.root, self.store = root, LocalStore(str(root))
        self.write(rows("a", 1, 2, 3), **{"partition_by": ["p"], "configuration": FEED_ON, **options})

    def write(self, data: pa.Table, **options: Any) -> AddFile:
        version = write_delta(str(self.root), data, mode="append", **options)
        self._date(version)
        return self.adds(version)[0]

    def commit(self, *actions: Action) -> int:
        version = Snapshot.load(self.store).version + 1
        lines = [action_to_line(action) for action in (CommitInfo({"operation": "TEST"}), *actions)]
        self.store.put_if_absent(f"_delta_log/{version:020d}.json", b"\n".join(lines))
        self._date(version)
        return version

    def adds(self, version: int) -> list[AddFile]:
        from delta_py.log.commit_reader import read_actions

        return [action for action in read_actions(self.store, version) if isinstance(action, AddFile)]

    def metadata(self, **changes: Any) -> Metadata:
        return replace(Snapshot.load(self.store).metadata, **changes)

    def file(self, name: str, **columns: list[Any]) -> int:
        (self.root / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), self.root / name)
        return (self.root / name).stat().st_size

    def plan(self, first: int | None, last: int | None = None, *, where: str | None = None, **options: Any) -> Scan:
        bounds = {"starting_version": first, "ending_version": last}
        if where is not None:
            options["predicate"] = parse_predicate(where, changes_schema(self.store, **bounds))
        return plan_changes(self.store, **bounds, **options)

    def changes(self, first: int | None, last: int | None = None, **options: Any) -> list[tuple[Any, ...]]:
        return sorted(read(self.plan(first, last, **options), self.store), key=repr)

    def _date(self, version: int) -> None:
        os.utime(self.root / f"_delta_log/{version:020d}.json", ns=(0, version * DAY_MS * 1_000_000))


def rows(p: str, *ids: int) -> pa.Table:
    return pa.table({"id": ids, "p": [p] * len(ids)})


def read(scan: Scan, store: LocalStore) -> list[tuple[Any, ...]]:
    """Rows as tuples; the commit's time as its day."""
    table = pa.Table.from_batches(read_files(scan.state, scan.scan_files()), to_arrow_schema(scan.output_schema))
    if "_commit_timestamp" in table.column_names:
        position = table.column_names.index("_commit_timestamp")
        days = [moment.timestamp() / 86_400 for moment in table["_commit_timestamp"].to_pylist()]
        table = table.set_column(position, "day", pa.array(days))
    return [tuple(row.values()) for row in table.to_pylist()]


def removal(add: AddFile, **changes: Any) -> RemoveFile:
    remove_fields = {"extended_file_metadata": True, "partition_values": add.partition_values, "size_bytes": add.size_bytes}
    return RemoveFile(add.path, deletion_vector=add.deletion_vector, **{**remove_fields, **changes})


def vector(*positions: int) -> DeletionVectorDescriptor:
    return inline_descriptor(from_row_indexes(list(positions)))


def refusal(call: Callable[[], Any], condition: str) -> ChangeDataFeedError:
    with pytest.raises(ChangeDataFeedError) as caught:
        call()
    assert caught.value.error_class == condition
    return caught.value


# ---------------------------------------------------------------- from adds and removes


def test_changes_of_appends_are_inserts_with_version_and_time(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.write(rows("b", 4))
    assert table.changes(0) == [
        (1, "a", "insert", 0, 0.0),
        (2, "a", "insert", 0, 0.0),
        (3, "a", "insert", 0, 0.0),
        (4, "b", "insert", 1, 1.0),
    ]
    assert table.changes(1) == table.changes(1, 1) == table.changes(1, 99) == [(4, "b", "insert", 1, 1.0)]


def test_changes_schema_adds_three_feed_columns_to_the_table(tmp_path: Path) -> None:
    table = Table(tmp_path)
    schema = changes_schema(table.store, starting_version=0)
    assert schema.names == ("id", "p", "_change_type", "_commit_version", "_commit_timestamp")
    assert table.plan(0).output_schema == schema


def test_changes_of_a_removed_file_are_deletes_of_its_live_rows(tmp_path: Path) -> None:
    table = Table(tmp_path)
    (add,) = table.adds(0)
    marked = replace(add, deletion_vector=vector(0))
    table.commit(removal(add), marked)
    table.commit(removal(marked))
    assert table.changes(1) == [(1, "a", "delete", 1, 1.0), (2, "a", "delete", 2, 2.0), (3, "a", "delete", 2, 2.0)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, (1,), [(2, "delete")]),
        ((1,), None, [(2, "insert")]),
        ((0,), (0, 2), [(3, "delete")]),
        ((0, 1), (1, 2), [(1, "insert"), (3, "delete")]),
        ((0,), (0,), []),
        (None, None, []),
    ],
)
def test_changes_of_a_file_are_the_difference_of_its_vectors(
    tmp_path: Path, old: tuple[int, ...] | None, new: tuple[int, ...] | None, expected: list[tuple[int, str]]
) -> None:
    table = Table(tmp_path)
    (add,) = table.adds(0)
    before = replace(add, deletion_vector=None if old is None else vector(*old))
    after = replace(add, deletion_vector=None if new is None else vector(*new))
    table.commit(removal(add), before)
    version = table.commit(removal(before), after)
    assert [(row[0], row[2]) for row in table.changes(version)] == expected


def test_changes_by_a_missing_deletion_vector_name_the_file(tmp_path: Path) -> None:
    table = Table(tmp_path)
    (add,) = table.adds(0)
    missing_vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 1, 40, 1)
    table.commit(removal(add), replace(add, deletion_vector=missing_vector))
    with pytest.raises(DeletionVectorError, match=add.path) as caught:
        table.plan(1)
    assert caught.value.error_class == "DELTA_DELETION_VECTOR_FILE_NOT_FOUND"


def test_changes_of_files_that_were_only_rearranged_are_none(tmp_path: Path) -> None:
    table = Table(tmp_path)
    (add,) = table.adds(0)
    table.commit(removal(add, data_change=False), replace(add, path="other", data_change=False))
    assert table.changes(1) == []


@pytest.mark.parametrize(("counts", "expected"), [(("0", "0", "0"), 0), (("0", "1", "0"), 3), (("0", "0", None), 3)])
def test_changes_of_a_merge_that_changed_no_row_are_none(tmp_path: Path, counts: tuple[str | None, ...], expected: int) -> None:
    table = Table(tmp_path)
    (add,) = table.adds(0)
    names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    metrics = {name: count for name, count in zip(names, counts, strict=True) if count is not None}
    table.commit(CommitInfo({"operation": "MERGE", "operationMetrics": metrics}), removal(add))
    assert len(table.changes(1)) == expected


def test_changes_of_remove_need_values_of_partition_columns(tmp_path: Path) -> None:
    table = Table(tmp_path / "partitioned")
    table.commit(RemoveFile(table.adds(0)[0].path))
    refusal(lambda: table.changes(1), "DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA")
    plain = Table(tmp_path / "plain", partition_by=None)
    plain.commit(RemoveFile(plain.adds(0)[0].path))
    assert len(plain.changes(1)) == 3


def test_changes_of_remove_treat_a_missing_partition_as_null(tmp_path: Path) -> None:
    table = Table(tmp_path)
    add = table.write(pa.table({"id": [1, 2], "p": pa.array([None, None], pa.string())}))
    removed = table.commit(removal(add, partition_values={}))
    assert sorted(row[0] for row in table.changes(removed)) == [1, 2]


def test_changes_of_remove_allow_metadata_with_same_partitions(tmp_path: Path) -> None:
    table = Table(tmp_path)
    add = table.write(pa.table({"id": [1, 2], "p": pa.array([None, None], pa.string())}))
    restored = table.commit(removal(add, partition_values={}), table.metadata(configuration={**FEED_ON, "more": "x"}))
    assert sorted(row[0] for row in table.changes(restored)) == [1, 2]


# ---------------------------------------------------------------- from change files


def test_changes_of_a_commit_with_change_files_are_those_alone(tmp_path: Path) -> None:
    table = Table(tmp_path)
    (add,) = table.adds(0)
    size = table.file("_change_data/c.parquet", id=[1, 1], _change_type=["update_preimage", "update_postimage"])
    table.commit(removal(add), replace(add, path="rewritten"), AddCDCFile("_change_data/c.parquet", {"p": "a"}, size))
    assert table.changes(1) == [(1, "a", "update_postimage", 1, 1.0), (1, "a", "update_preimage", 1, 1.0)]
    assert len(table.changes(0)) == 5


# ---------------------------------------------------------------- columns, filters, pruning


def changed(root: Path) -> Table:
    """v0 inserts 1-3 into a; v1 inserts 4 into b; v2 updates 4 by a change file; v3 deletes the file of v0."""
    table = Table(root)
    table.write(rows("b", 4))
    size = table.file("_change_data/c.parquet", id=[4, 5], _change_type=["update_preimage", "update_postimage"])
    table.commit(AddCDCFile("_change_data/c.parquet", {"p": "b"}, size))
    table.commit(removal(table.adds(0)[0]))
    return table


@pytest.mark.parametrize(
    ("where", "ids", "files"),
    [
        ("p = 'b'", [4, 4, 5], 2),
        ("p = 'nope'", [], 0),
        ("_commit_version > 1", [1, 2, 3, 4, 5], 2),
        ("_commit_version = 0 and id = 2", [2], 1),
        ("_change_type = 'delete'", [1, 2, 3], 2),
        ("_change_type = 'update_postimage'", [5], 1),
        ("_change_type <> 'insert' and p = 'a'", [1, 2, 3], 1),
        ("_change_type in ('insert', 'update_preimage') or id = 3", [1, 2, 3, 3, 4, 4], 4),
        ("id = 4", [4, 4], 3),
        ("id > 100", [], 2),
        ("_commit_timestamp >= timestamp'1970-01-03 00:00:00 UTC'", [1, 2, 3, 4, 5], 2),
        ("id is null", [], 2),
    ],
)
def test_changes_filter_gives_exact_rows_from_candidate_files(
    tmp_path: Path, where: str, ids: list[int], files: int
) -> None:
    table = changed(tmp_path)
    scan = table.plan(0, where=where)
    assert sorted(row[0] for row in read(scan, table.store)) == ids
    assert (scan.report.files_total, scan.report.files_kept) == (4, files)
    assert sorted(table.changes(0, where=where, columns=["id"])) == [(n,) for n in ids]


def test_changes_filter_on_char_matches_values_without_padding(tmp_path: Path) -> None:
    """They are read with padding, but statistics and partition values are of the stored values."""
    declared = {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}
    fields = (StructField("id", LONG), StructField("p", STRING, True, declared), StructField("c", STRING, True, declared))
    store = LocalStore(str(tmp_path / "t"))
    create_table(store, define_table(StructType(fields), partition_by=["p"], configuration=FEED_ON))
    write_delta(store.root, pa.table({"id": [1], "p": ["a"], "c": ["b"]}), mode="append")
    for where in ("c = 'b   '", "p = 'a   '", "c = 'b   ' and p = 'a   '"):
        predicate = parse_predicate(where, changes_schema(store, starting_version=0))
        change_rows = read(plan_changes(store, starting_version=0, predicate=predicate), store)
        assert [row[:3] for row in change_rows] == [(1, "a   ", "b   ")], where


def test_changes_of_duplicate_actions_are_those_of_the_last(tmp_path: Path) -> None:
    """The protocol allows one action for each file in a commit."""
    table = Table(tmp_path)
    size = table.file("x.parquet", id=[7, 8])
    add = AddFile("x.parquet", {"p": "a"}, size, 0)
    table.commit(add, replace(add, deletion_vector=vector(0)))
    assert table.changes(1) == [(8, "a", "insert", 1, 1.0)]


def test_changes_of_many_files_take_no_object_for_each(tmp_path: Path) -> None:
    table = Table(tmp_path)
    adds = [AddFile(f"f{n}.parquet", {"p": None if n % 3 == 0 else "a"}, n, 0) for n in range(5000)]
    table.commit(*adds)
    removed = [removal(add, partition_values={k: v for k, v in add.partition_values.items() if v is not None}) for add in adds]
    table.commit(*removed)
    scan = table.plan(1, where="_change_type = 'delete' and p is null")
    assert (scan.report.files_total, scan.report.files_kept) == (10_000, 1667)
    assert scan.files["partition_values"].to_pylist() == [[("p", None)]] * 1667
    assert scan.paths() == [f"f{n}.parquet" for n in range(0, 5000, 3)]


def test_changes_come_in_the_order_of_their_commits(tmp_path: Path) -> None:
    table = changed(tmp_path)
    for where in (None, "id > 0"):
        versions = [row[-2] for row in read(table.plan(0, where=where), table.store)]
        assert versions == sorted(versions) and set(versions) == {0, 1, 2, 3}


def test_changes_of_a_damaged_commit_among_others_name_it(tmp_path: Path) -> None:
    table = changed(tmp_path)
    table.write(rows("b", 9))
    path = tmp_path / "_delta_log/00000000000000000003.json"
    path.write_bytes(path.read_bytes().replace(b'"size":', b'"size":"much",'))
    with pytest.raises(CorruptTableError, match=r"0003\.json, line 2"):
        table.plan(0)
    assert len(table.changes(4)) == 1


@pytest.mark.parametrize("value", ["null", '"true"', "1", "[]"])
def test_changes_of_an_action_with_bad_data_change_are_refused(tmp_path: Path, value: str) -> None:
    table = changed(tmp_path)
    path = tmp_path / "_delta_log/00000000000000000003.json"
    path.write_bytes(path.read_bytes().replace(b'"dataChange":true', f'"dataChange":{value}'.encode()))
    with pytest.raises(CorruptTableError, match=r"0003\.json"):
        table.plan(0)


def test_changes_filter_for_the_caller_keeps_at_least_its_rows(tmp_path: Path) -> None:
    table = changed(tmp_path)
    loose = table.changes(0, where="_change_type = 'delete' and id = 2", options=ScanOptions())
    assert (2, "a", "delete", 3, 3.0) in loose and all(row[2] != "insert" for row in loose)


def test_changes_columns_come_in_the_order_asked_for(tmp_path: Path) -> None:
    table = changed(tmp_path)
    scan = table.plan(2, 2, columns=["_commit_version", "_change_type", "ID"])
    assert scan.output_schema.names == ("_commit_version", "_change_type", "id")
    assert sorted(read(scan, table.store)) == [(2, "update_postimage", 5), (2, "update_preimage", 4)]


def test_changes_of_an_unknown_column_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(DeltaError, match="nope"):
        Table(tmp_path).plan(0, columns=["nope"])


# ---------------------------------------------------------------- the range


def test_changes_without_a_start_are_refused(tmp_path: Path) -> None:
    refusal(lambda: Table(tmp_path).plan(None), "DELTA_NO_START_FOR_CDC_READ")


def test_changes_that_start_after_the_newest_version_are_refused(tmp_path: Path) -> None:
    error = refusal(lambda: Table(tmp_path).plan(1), "DELTA_CDC_START_VERSION_AFTER_LATEST")
    assert error.message_parameters == {"start_version": 1, "latest_version": 0}


@pytest.mark.parametrize(
    ("bounds", "count"),
    [
        ({"starting_version": 2}, 0),
        ({"starting_version": 2, "ending_version": 1}, 0),
        ({"starting_version": 7, "ending_version": 9}, 0),
        ({"starting_timestamp_ms": DAY_MS + 1}, 0),
        ({"starting_timestamp_ms": DAY_MS + 1, "ending_version": 1}, 0),
        ({"starting_timestamp_ms": 1, "ending_timestamp_ms": 9 * DAY_MS}, 1),
    ],
)
def test_range_beyond_the_newest_version_may_be_allowed(tmp_path: Path, bounds: dict[str, int], count: int) -> None:
    table = Table(tmp_path)
    table.write(rows("b", 4))
    with pytest.raises((ChangeDataFeedError, TimestampOutOfRangeError)):
        changes_schema(table.store, **bounds)
    assert changes_schema(table.store, **bounds, allow_out_of_range=True).names[:2] == ("id", "p")
    assert len(read(plan_changes(table.store, **bounds, allow_out_of_range=True), table.store)) == count


def test_changes_that_end_before_they_start_are_refused(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.write(rows("b", 4))
    refusal(lambda: table.plan(1, 0), "DELTA_INVALID_CDC_RANGE")


@pytest.mark.parametrize(
    "bounds",
    [
        {"starting_version": -1},
        {"starting_version": 0, "ending_version": -1},
        {"starting_version": 0, "starting_timestamp_ms": 0},
        {"starting_version": 0, "ending_version": 0, "ending_timestamp_ms": 0},
    ],
)
def test_changes_of_bounds_that_make_no_sense_are_refused(tmp_path: Path, bounds: dict[str, int]) -> None:
    table = Table(tmp_path)
    with pytest.raises(InvalidOptionError):
        plan_changes(table.store, **bounds)


@pytest.mark.parametrize(
    ("first_ms", "last_ms", "versions"),
    [
        (-5, None, {0, 1, 2}),
        (0, None, {0, 1, 2}),
        (1, None, {1, 2}),
        (DAY_MS, None, {1, 2}),
        (DAY_MS + 1, None, {2}),
        (0, DAY_MS, {0, 1}),
        (0, DAY_MS + 1, {0, 1}),
        (DAY_MS + 1, DAY_MS + 2, set()),
        (2 * DAY_MS, 2 * DAY_MS, {2}),
    ],
)
def test_changes_by_time_start_at_or_after_and_end_at_or_before(
    tmp_path: Path, first_ms: int, last_ms: int | None, versions: set[int]
) -> None:
    table = Table(tmp_path)
    for n in (4, 5):
        table.write(rows("b", n))
    scan = plan_changes(table.store, starting_timestamp_ms=first_ms, ending_timestamp_ms=last_ms)
    assert {row[3] for row in read(scan, table.store)} == versions
    assert changes_schema(table.store, starting_timestamp_ms=first_ms, ending_timestamp_ms=last_ms) == scan.output_schema


def test_changes_by_times_beyond_the_last_commit_are_refused(tmp_path: Path) -> None:
    table = Table(tmp_path)
    for bounds in ({"starting_timestamp_ms": 1}, {"starting_timestamp_ms": 0, "ending_timestamp_ms": 1}):
        with pytest.raises(TimestampOutOfRangeError, match="after the latest"):
            plan_changes(table.store, **bounds)


def test_changes_by_times_that_are_swapped_are_refused(tmp_path: Path) -> None:
    table = Table(tmp_path)
    for n in (4, 5):
        table.write(rows("b", n))
    with_times = {"starting_timestamp_ms": DAY_MS + 2, "ending_timestamp_ms": DAY_MS + 1}
    refusal(lambda: plan_changes(table.store, **with_times), "DELTA_INVALID_CDC_RANGE")


def test_changes_order_commit_times_that_go_backwards(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.write(rows("b", 4))
    os.utime(tmp_path / "_delta_log/00000000000000000000.json", ns=(0, 5 * DAY_MS * 1_000_000))
    (row,) = table.changes(1)
    assert row[4] == pytest.approx(5.0 + 0.001 / 86_400)


def test_changes_of_commits_that_are_gone_are_refused(tmp_path: Path) -> None:
    table = Table(tmp_path)
    for n in (4, 5):
        table.write(rows("b", n))
    start = table.plan(0)
    assert start.report.files_total == 3
    (tmp_path / "_delta_log/00000000000000000000.json").unlink()
    with pytest.raises(LogFileNotFoundError):
        table.plan(0)


# ---------------------------------------------------------------- where the feed or the schema changed


@pytest.fixture
def switched(tmp_path: Path) -> Table:
    """The feed is off at v0, on at v1 and v2, off at v3, on again from v4; every version but v1, v3, v4 adds a row."""
    table = Table(tmp_path, configuration=None)
    table.commit(Protocol(1, 4), table.metadata(configuration=FEED_ON))
    table.write(rows("b", 4))
    table.commit(table.metadata(configuration={}))
    table.commit(table.metadata(configuration={"DELTA.ENABLECHANGEDATAFEED": "TRUE"}))
    table.write(rows("b", 5))
    return table


@pytest.mark.parametrize(("first", "last", "count"), [(1, 1, 0), (1, 2, 1), (2, 2, 1), (4, None, 1), (5, 5, 1)])
def test_changes_of_versions_with_the_feed_on_are_read(switched: Table, first: int, last: int | None, count: int) -> None:
    assert len(switched.changes(first, last)) == count


@pytest.mark.parametrize(("first", "last", "version"), [(0, 0, 0), (0, None, 0), (3, 5, 3), (1, 3, 3), (2, None, 3)])
def test_changes_of_versions_without_feed_name_the_version(
    switched: Table, first: int, last: int | None, version: int
) -> None:
    error = refusal(lambda: switched.plan(first, last), "DELTA_MISSING_CHANGE_DATA")
    assert error.message_parameters["version"] == version
    assert f"range [{first} , {5 if last is None else last}]" in str(error)


WIDER = schema_to_json(StructType((StructField("id", LONG), StructField("p", STRING), StructField("new", STRING))))
OTHER = schema_to_json(StructType((StructField("id", STRING), StructField("p", STRING))))


def test_changes_over_an_added_column_have_null_where_it_was_not(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.commit(table.metadata(schema_string=WIDER))
    table.write(pa.table({"id": [4], "p": ["b"], "new": ["x"]}))
    assert table.changes(0, where="id > 2") == [(3, "a", None, "insert", 0, 0.0), (4, "b", "x", "insert", 2, 2.0)]
    assert changes_schema(table.store, starting_version=0, ending_version=0).names[2] == "new"


def test_changes_over_a_changed_type_are_refused(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.commit(table.metadata(schema_string=OTHER))
    table.commit(
        table.metadata(schema_string=table.metadata().schema_string.replace('"id","type":"string"', '"id","type":"long"'))
    )
    error = refusal(lambda: table.plan(0), "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE")
    assert error.message_parameters["incompatible_version"] == 1
    refusal(lambda: table.plan(1, 1), "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA")
    assert len(table.changes(0, 0)) == 3


def test_changes_over_another_partitioning_are_refused(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.commit(table.metadata(partition_columns=()))
    refusal(lambda: table.plan(0), "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA")


def test_changes_with_column_mapping_use_the_last_schema(tmp_path: Path) -> None:
    table = Table(tmp_path, configuration={**FEED_ON, "delta.columnMapping.mode": "name"})
    metadata = table.metadata()
    renamed = metadata.schema_string.replace('"name":"id"', '"name":"identity"')
    table.commit(replace(metadata, schema_string=renamed))
    assert changes_schema(table.store, starting_version=0, ending_version=0).names[0] == "id"
    assert [row[0] for row in table.changes(0, 0, where="id > 1")] == [2, 3]
    assert changes_schema(table.store, starting_version=1).names[0] == "identity"
    error = refusal(lambda: table.plan(0), "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA")
    assert "renamed to identity" in str(error)


def test_changes_skip_a_commit_without_bytes(tmp_path: Path) -> None:
    table = Table(tmp_path)
    (tmp_path / f"_delta_log/{1:020d}.json").write_bytes(b"")
    table._date(1)
    table.write(rows("b", 4))
    assert table.changes(1) == [(4, "b", "insert", 2, 2.0)]
    assert table.changes(1, 1) == []


# ---------------------------------------------------------------- commits that replace rows and columns

MAPPED = {**FEED_ON, "delta.columnMapping.mode": "name"}


def test_changes_of_overwrite_fail_if_old_files_lack_a_column(tmp_path: Path) -> None:
    table = Table(tmp_path, configuration=MAPPED)
    write_delta(str(tmp_path), pa.table({"id": ["x"], "p": ["a"]}), mode="overwrite", overwrite_schema=True, partition_by=["p"])
    error = refusal(lambda: table.plan(1), "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA")
    assert "column id" in error.message_parameters["reason"] and error.message_parameters["version"] == 1
    table.write(pa.table({"id": ["y"], "p": ["a"]}))
    assert [row[:3] for row in table.changes(2)] == [("y", "a", "insert")]


@pytest.mark.parametrize("configuration", [FEED_ON, MAPPED], ids=["plain", "mapped"])
def test_changes_of_overwrite_with_other_columns_are_its_rows(
    tmp_path: Path, configuration: dict[str, str]
) -> None:
    table = Table(tmp_path, configuration=configuration)
    new = pa.table({"p": ["b"], "new": [7]})
    write_delta(str(tmp_path), new, mode="overwrite", overwrite_schema=True, partition_by=["p"])
    assert [row[:3] for row in table.changes(1)] == [("a", None, "delete")] * 3 + [("b", 7, "insert")]


def test_changes_of_a_restore_to_other_physical_names_fail(tmp_path: Path) -> None:
    table = Table(tmp_path, configuration=MAPPED)
    (old,), mapped = table.adds(0), table.metadata()
    name = Snapshot.load(table.store).schema.fields[0].metadata["delta.columnMapping.physicalName"]
    renamed = mapped.schema_string.replace(f'"{name}"', '"c-1"')
    size = table.file("new.parquet", **{"c-1": [4]})
    new = replace(old, path="new.parquet", size_bytes=size)
    table.commit(replace(mapped, schema_string=renamed), removal(old), new)
    table.commit(mapped, removal(new), old)
    for version in (1, 2):
        refusal(lambda version=version: table.plan(version, version), "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA")


def forget_first_commit(table: Table) -> None:
    DeltaTable(str(table.root)).checkpoint()
    (table.root / f"_delta_log/{0:020d}.json").unlink(missing_ok=True)


@pytest.mark.parametrize("configuration", [FEED_ON, MAPPED], ids=["plain", "mapped"])
def test_changes_without_old_version_need_equal_physical_names(
    tmp_path: Path, configuration: dict[str, str]
) -> None:
    table = Table(tmp_path, configuration=configuration)
    new = pa.table({"p": ["b"], "new": [7]})
    write_delta(str(tmp_path), new, mode="overwrite", overwrite_schema=True, partition_by=["p"])
    forget_first_commit(table)
    if configuration is FEED_ON:
        assert [row[:3] for row in table.changes(1)] == [("a", None, "delete")] * 3 + [("b", 7, "insert")]
    else:
        error = refusal(lambda: table.plan(1), "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA")
        assert "Start after version 1" in error.message
    table.write(pa.table({"p": ["c"], "new": [8]}))
    assert [row[:3] for row in table.changes(2)] == [("c", 8, "insert")]


def test_changes_without_deleted_rows_need_no_former_version(tmp_path: Path) -> None:
    table = Table(tmp_path, configuration=MAPPED)
    (add,) = table.adds(0)
    table.commit(table.metadata(configuration={**MAPPED, "more": "x"}), removal(add), add)
    forget_first_commit(table)
    assert table.changes(1) == []
