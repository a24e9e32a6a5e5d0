"""write_delta with mode overwrite: the whole table, the rows of replaceWhere, the partitions of the data."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable
from delta_py.alter.alter import set_properties
from delta_py.commit.transaction import Transaction
from delta_py.definition.create import create_table, define_table
from delta_py.definition.overwrite import Overwrites, remove_replaced_rows
from delta_py.errors import (
    ChangeDataFeedError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentTransactionException,
    CorruptTableError,
    DeltaError,
    InvalidOptionError,
    InvariantViolationError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from delta_py.log.history import history
from delta_py.parquet.file_reader import read_files
from delta_py.protocol.actions import AddCDCFile, AddFile, RemoveFile, SetTransaction, parse_action
from delta_py.protocol.clustering import clustering_columns, clustering_domain, clustering_leaves
from delta_py.row_changes.write import write_delta
from delta_py.row_rules.write_state import write_state
from delta_py.scan.planning import ROW_ADDRESS, ScanOptions, plan_scan
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.char_types import DECLARED_TYPE
from delta_py.types.schema import LONG, STRING, StructField, StructType
from delta_py.write.data_files import WrittenFiles

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}


def rows_of(path: Path, version: int | None = None) -> list[tuple[Any, ...]]:
    rows = DeltaTable(str(path), version=version).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=str)


def actions_of(path: Path, version: int) -> list[Any]:
    text = (path / f"_delta_log/{version:020}.json").read_bytes()
    return [parse_action(line) for line in text.splitlines()]


def make(path: Path, configuration: Mapping[str, str] | None = None, **options: Any) -> None:
    table = pa.table({"id": range(10), "day": ["a"] * 4 + ["b"] * 4 + [None] * 2})
    write_delta(str(path), table, partition_by="day", configuration=configuration, **options)


def new(*rows: tuple[int, str | None]) -> pa.Table:
    return pa.table({"id": [row[0] for row in rows], "day": pa.array([row[1] for row in rows], pa.string())})


BEFORE = [(n, "a") for n in range(4)] + [(n, "b") for n in range(4, 8)] + [(8, None), (9, None)]


def after(*kept_numbers: int, plus: tuple[tuple[int, str | None], ...]) -> list[tuple[Any, ...]]:
    return sorted([*(BEFORE[n] for n in kept_numbers), *plus], key=str)


# ---------------------------------------------------------------- what is replaced


def test_overwrite_replaces_all_rows_and_keeps_old_versions(tmp_path: Path) -> None:
    make(tmp_path)
    assert write_delta(str(tmp_path), new((1, "x")), mode="overwrite") == 1
    assert rows_of(tmp_path) == [(1, "x")] and rows_of(tmp_path, 0) == sorted(BEFORE, key=str)
    removes = [action for action in actions_of(tmp_path, 1) if isinstance(action, RemoveFile)]
    assert len(removes) == 3 and all(r.data_change and r.deletion_timestamp_ms and r.size_bytes for r in removes)
    (entry, *_) = history(LocalStore(str(tmp_path))).to_pylist()
    assert dict(entry["operationParameters"])["mode"] == "Overwrite" and entry["isBlindAppend"] is False
    assert dict(entry["operationMetrics"])["numRemovedFiles"] == "3"


def test_overwrite_of_a_path_without_table_creates_it(tmp_path: Path) -> None:
    assert write_delta(str(tmp_path / "t"), new((1, "x")), mode="overwrite") == 0


def test_overwrite_by_no_rows_empties_the_table(tmp_path: Path) -> None:
    make(tmp_path)
    write_delta(str(tmp_path), new(), mode="overwrite")
    assert rows_of(tmp_path) == []


@pytest.mark.parametrize(
    ("data", "kept_numbers"),
    [
        (((1, "a"),), (4, 5, 6, 7, 8, 9)),
        (((1, "a"), (2, "c")), (4, 5, 6, 7, 8, 9)),
        (((1, None),), tuple(range(8))),
        (((1, "new"),), tuple(range(10))),
        ((), tuple(range(10))),
    ],
)
def test_overwrite_dynamic_replaces_the_partitions_of_the_data(
    tmp_path: Path, data: tuple[tuple[int, str | None], ...], kept_numbers: tuple[int, ...]
) -> None:
    make(tmp_path)
    write_delta(str(tmp_path), new(*data), mode="overwrite", partition_overwrite_mode="dynamic")
    assert rows_of(tmp_path) == after(*kept_numbers, plus=data)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_overwrite_dynamic_takes_both_zeros_for_one_partition(tmp_path: Path, kind: pa.DataType, zero: float) -> None:
    table = pa.table({"n": [1, 2, 3], "p": pa.array([0.0, -0.0, 1.0], kind)})
    write_delta(str(tmp_path), table, partition_by=["p"])
    texts = {dict(file["partition_values"])["p"] for file in DeltaTable(str(tmp_path)).files().to_pylist()}
    assert texts == {"0.0", "-0.0", "1.0"}
    one = pa.table({"n": [4], "p": pa.array([zero], kind)})
    write_delta(str(tmp_path), one, mode="overwrite", partition_overwrite_mode="dynamic")
    assert sorted(DeltaTable(str(tmp_path)).to_arrow()["n"].to_pylist()) == [3, 4]


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")], ids=str)
def test_overwrite_dynamic_of_years_beyond_those_of_python(tmp_path: Path, kind: pa.DataType) -> None:
    plain = pa.int32() if kind == pa.date32() else pa.int64()
    numbers = pa.array([-800_000, 3_789_391, 20_000] if kind == pa.date32() else [-(10**17), 327 * 10**15, 0], plain)
    table = pa.table({"n": [1, 2, 3], "p": numbers.cast(kind)})
    write_delta(str(tmp_path), table, partition_by=["p"])
    newer = table.slice(0, 2).set_column(0, "n", pa.array([10, 20]))
    write_delta(str(tmp_path), newer, mode="overwrite", partition_overwrite_mode="dynamic")
    sorted_data = DeltaTable(str(tmp_path)).to_arrow().sort_by("n")
    assert sorted_data["n"].to_pylist() == [3, 10, 20]
    assert sorted_data["p"].cast(plain).to_pylist() == [numbers[2].as_py(), numbers[0].as_py(), numbers[1].as_py()]


def test_overwrite_dynamic_replaces_an_unpartitioned_table(tmp_path: Path) -> None:
    write_delta(str(tmp_path), new((1, "a")))
    write_delta(str(tmp_path), new((2, "b")), mode="overwrite", partition_overwrite_mode="DYNAMIC")
    assert rows_of(tmp_path) == [(2, "b")]


def test_overwrite_dynamic_finds_partitions_of_every_type(tmp_path: Path) -> None:
    table = pa.table(
        {
            "n": [1, 2, 3],
            "t": pa.array([dt.datetime(2024, 1, 1, 1, 2, 3, 456), None, dt.datetime(1969, 1, 1)], pa.timestamp("us", tz="UTC")),
            "d": pa.array(["1.50", "-2.25", None]).cast(pa.decimal128(9, 2)),
            "f": [0.1, float("nan"), None],
            "s": ["a b/c=%", "", "é"],
        }
    )
    write_delta(str(tmp_path), table, partition_by=["t", "d", "f", "s"])
    write_delta(str(tmp_path), table.slice(0, 2), mode="overwrite", partition_overwrite_mode="dynamic")
    assert sorted(DeltaTable(str(tmp_path)).to_arrow()["n"].to_pylist()) == [1, 2, 3]
    removes = [action for action in actions_of(tmp_path, 1) if isinstance(action, RemoveFile)]
    assert len(removes) == 2


LAST = 2**63 - 1  # "for ever"
EXTREMES = {
    "date": (pa.date32(), pa.int32(), (-(2**31), 2**31 - 1)),
    "timestamp": (pa.timestamp("us", "UTC"), pa.int64(), (-(2**63), LAST)),
    "timestamp_ntz": (pa.timestamp("us"), pa.int64(), (-(2**63), LAST)),
}


@pytest.mark.parametrize("kind", EXTREMES)
@pytest.mark.parametrize("end", [0, 1], ids=["first", "last"])
def test_overwrite_dynamic_at_extreme_times_keeps_other_rows(tmp_path: Path, kind: str, end: int) -> None:
    arrow, plain, ends = EXTREMES[kind]
    table = pa.table({"n": [1, 2, 3, 4], "p": pa.array([0, *ends, None], plain).cast(arrow)})
    write_delta(str(tmp_path), table, partition_by=["p"])
    one = pa.table({"n": [9], "p": pa.array([ends[end]], plain).cast(arrow)})
    write_delta(str(tmp_path), one, mode="overwrite", partition_overwrite_mode="dynamic")
    assert sorted(DeltaTable(str(tmp_path)).to_arrow()["n"].to_pylist()) == [1, 3 - end, 4, 9]


@pytest.mark.parametrize("kind", EXTREMES)
@pytest.mark.parametrize("operation", ["delete", "replace"])
@pytest.mark.parametrize("text", ["first", "last", "never"])
def test_partition_predicate_with_failing_cast_spares_other_rows(
    tmp_path: Path, kind: str, operation: str, text: str
) -> None:
    """Either the values of a text that the cast accepts are deleted, or none."""
    arrow, plain, ends = EXTREMES[kind]
    name = str(tmp_path)
    write_delta(name, pa.table({"n": [0, 1, 2], "p": pa.array([0, *ends], plain).cast(arrow)}), partition_by=["p"])
    partition_texts = sorted(dict(file["partition_values"])["p"] for file in DeltaTable(name).files().to_pylist())
    expected_partition = {"first": partition_texts[1], "last": partition_texts[0], "never": "no time"}[text]
    empty = pa.table({"n": pa.array([], pa.int64()), "p": pa.array([], plain).cast(arrow)})
    try:
        if operation == "delete":
            DeltaTable(name).delete(f"p <=> cast('{expected_partition}' AS {kind})")
        else:
            write_delta(name, empty, mode="overwrite", replace_where=f"p <=> cast('{expected_partition}' AS {kind})")
    except DeltaError:
        assert DeltaTable(name).version == 0
    else:
        assert text != "never" and DeltaTable(name).to_arrow().num_rows == 2


def respell(path: Path, old: str, new_text: str) -> None:
    """Change the text of a partition value in the first commit."""
    log = path / f"_delta_log/{0:020d}.json"
    text = log.read_text()
    assert old in text
    log.write_text(text.replace(old, new_text))
    (path / f"_delta_log/{0:020d}.crc").unlink()


@pytest.mark.parametrize(
    ("values", "old", "other"),
    [
        (pa.array([1, 2], pa.int64()), '"p":"1"', '"p":"01"'),
        (pa.array([1, 2], pa.int32()), '"p":"1"', '"p":"+1.0"'),
        (pa.array([True, False]), '"p":"true"', '"p":"T"'),
        (pa.array(["1.50", "2.25"]).cast(pa.decimal128(9, 2)), '"p":"1.50"', '"p":"15e-1"'),
        (pa.array([float("nan"), 1.0]), '"p":"NaN"', '"p":"nan"'),
        (pa.array([dt.date(2024, 1, 2), dt.date(2025, 1, 1)]), '"p":"2024-01-02"', '"p":"2024-1-2"'),
        (pa.array([0, 1], pa.timestamp("us", "UTC")), '"p":"1970-01-01T00:00:00.000000Z"', '"p":"1970-01-01 00:00:00"'),
        (pa.array([0, 1], pa.timestamp("us", "UTC")), '"p":"1970-01-01T00:00:00.000000Z"', '"p":"1970-01-01 02:00:00+02:00"'),
        (pa.array([0, 1], pa.timestamp("us")), '"p":"1970-01-01 00:00:00"', '"p":"1970-01-01"'),
        (pa.array([None, "a"], pa.string()), '"p":null', '"p":""'),
    ],
    ids=str,
)
def test_overwrite_dynamic_matches_any_spelling_of_a_partition(
    tmp_path: Path, values: pa.Array, old: str, other: str
) -> None:
    table = pa.table({"n": [1, 2], "p": values})
    write_delta(str(tmp_path), table, partition_by=["p"])
    respell(tmp_path, old, other)
    newer = pa.table({"n": [10], "p": values[:1]})
    write_delta(str(tmp_path), newer, mode="overwrite", partition_overwrite_mode="dynamic")
    assert sorted(DeltaTable(str(tmp_path)).to_arrow()["n"].to_pylist()) == [2, 10]


def test_overwrite_dynamic_replaces_pairs_of_values_exactly(tmp_path: Path) -> None:
    pairs = [("x", 1), ("x", 2), ("y", 1), ("y", 2), (None, 1), (None, None)]
    a, b = (pa.array(column, kind) for column, kind in zip(zip(*pairs, strict=True), (pa.string(), pa.int64()), strict=True))
    table = pa.table({"n": range(6), "a": a, "b": b})
    write_delta(str(tmp_path), table, partition_by=["a", "b"])
    newer = table.take([0, 3, 4]).set_column(0, "n", pa.array([10, 13, 14]))
    write_delta(str(tmp_path), newer, mode="overwrite", partition_overwrite_mode="dynamic")
    assert sorted(DeltaTable(str(tmp_path)).to_arrow()["n"].to_pylist()) == [1, 2, 5, 10, 13, 14]


def make_char(path: Path) -> None:
    """Partitions 'ab' and 'cd' of a CHAR(5); the file of 'cd' has the value with its blanks."""
    day = StructField("p", STRING, metadata={DECLARED_TYPE: "char(5)"})
    create_table(LocalStore(str(path)), define_table(StructType((StructField("n", LONG), day)), partition_by=["p"]))
    write_delta(str(path), pa.table({"n": [1, 2], "p": ["ab", "cd   "]}), mode="append")


@pytest.mark.parametrize("text", ["ab", "ab   ", "cd", "cd   "])
def test_overwrite_dynamic_matches_char_with_or_without_padding(tmp_path: Path, text: str) -> None:
    make_char(tmp_path)
    table = pa.table({"n": [9], "p": [text]})
    write_delta(str(tmp_path), table, mode="overwrite", partition_overwrite_mode="dynamic")
    kept_row = (2, "cd   ") if text[0] == "a" else (1, "ab   ")
    assert rows_of(tmp_path) == [kept_row, (9, text.ljust(5))]


def test_overwrite_dynamic_of_many_partitions(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"a": [1, 2], "b": [1, -1], "i": [1, 2]}), partition_by=["a", "b"])
    snapshot = Snapshot.load(LocalStore(str(tmp_path)))
    state = write_state(snapshot.config, snapshot.store, snapshot.version)
    adds = tuple(AddFile(f"x{n}.parquet", {"a": str(n), "b": "1"}, 1, 1) for n in range(50_000))
    transaction = Transaction(snapshot)
    replaced = remove_replaced_rows(transaction, Overwrites.PARTITIONS, state, WrittenFiles(adds=adds))
    assert [remove.partition_values for remove in replaced.written.removes] == [{"a": "1", "b": "1"}]
    matches = transaction.reads.may_match
    assert matches is not None and matches([adds[7], AddFile("y", {"a": "7", "b": "2"}, 1, 1)]) == [True, False]


def test_overwrite_dynamic_refuses_values_that_do_not_cast(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"i": [1, 2], "p": [1, 2]}), partition_by=["p"])
    snapshot = Snapshot.load(LocalStore(str(tmp_path)))
    state = write_state(snapshot.config, snapshot.store, snapshot.version)
    written = WrittenFiles(adds=(AddFile("x", {"p": "1"}, 1, 1), AddFile("y", {"p": "many"}, 1, 1)))
    with pytest.raises(CorruptTableError, match=r"CAST_INVALID_INPUT.*'many'.*column p of type bigint.*cannot be told"):
        remove_replaced_rows(Transaction(snapshot), Overwrites.PARTITIONS, state, written)


@pytest.mark.parametrize("configuration", [{}, VECTORS, FEED, {**VECTORS, **FEED}], ids=["plain", "vectors", "feed", "both"])
@pytest.mark.parametrize(
    ("predicate", "data", "kept_numbers"),
    [
        ("day = 'a'", ((100, "a"),), (4, 5, 6, 7, 8, 9)),
        ("day IS NULL", ((100, None),), tuple(range(8))),
        ("id >= 2 AND id < 6", ((3, "a"),), (0, 1, 6, 7, 8, 9)),
        ("id = 3 AND day = 'a'", ((3, "a"),), (0, 1, 2, 4, 5, 6, 7, 8, 9)),
        ("id > 100", ((101, "z"),), tuple(range(10))),
        ("id >= 0", (), ()),
        ("id % 2 = 0 OR day IS NULL", ((20, "b"),), (1, 3, 5, 7)),
        ("true", ((1, "x"),), ()),
    ],
)
def test_overwrite_replace_where_replaces_the_matching_rows(
    tmp_path: Path,
    configuration: Mapping[str, str],
    predicate: str,
    data: tuple[tuple[int, str | None], ...],
    kept_numbers: tuple[int, ...],
) -> None:
    make(tmp_path, configuration)
    write_delta(str(tmp_path), new(*data), mode="overwrite", replace_where=predicate)
    assert rows_of(tmp_path) == after(*kept_numbers, plus=data)
    assert rows_of(tmp_path, 0) == sorted(BEFORE, key=str)
    actions = actions_of(tmp_path, 1)
    if configuration == VECTORS:
        touched = {a.path for a in actions if isinstance(a, AddFile) and a.deletion_vector is not None}
        assert touched <= {a.path for a in actions if isinstance(a, RemoveFile)}
        assert not any(isinstance(a, AddCDCFile) for a in actions)
    if FEED.items() <= configuration.items():
        check_feed(tmp_path, data, kept_numbers)


def check_feed(path: Path, data: tuple[tuple[int, str | None], ...], kept_numbers: tuple[int, ...]) -> None:
    """The changes of version 1 are the deletes of all rows that are gone and the inserts of the new ones."""
    feed = DeltaTable(str(path)).changes(starting_version=1).read_all().to_pylist()
    changes = sorted(((row["_change_type"], row["id"], row["day"]) for row in feed), key=str)
    deletes = [("delete", *BEFORE[n]) for n in range(10) if n not in kept_numbers]
    assert changes == sorted([*deletes, *(("insert", *row) for row in data)], key=str)


@pytest.mark.parametrize(
    ("configuration", "predicate", "data", "expected"),
    [
        ({}, "id = 3", ((3, "a"),), {"Files": 2, "OutputRows": 4, "CopiedRows": 3, "DeletedRows": 1, "RemovedFiles": 1}),
        (VECTORS, "id = 3", ((3, "a"),), {"Files": 2, "OutputRows": 4, "CopiedRows": 3, "DeletedRows": 1, "RemovedFiles": 0}),
        ({}, "day = 'a'", ((9, "a"),), {"Files": 1, "OutputRows": 1, "CopiedRows": 0, "DeletedRows": 4, "RemovedFiles": 1}),
        (VECTORS, "id < 4", ((0, "a"),), {"Files": 1, "OutputRows": 1, "CopiedRows": 0, "DeletedRows": 4, "RemovedFiles": 1}),
        ({}, "id > 9", ((10, "z"),), {"Files": 1, "OutputRows": 1, "CopiedRows": 0, "DeletedRows": 0, "RemovedFiles": 0}),
        ({}, "day = 'a'", (), {"Files": 0, "RemovedFiles": 1}),
    ],
)
@pytest.mark.parametrize("feed", [{}, FEED], ids=["plain", "feed"])
def test_overwrite_replace_where_has_the_metrics_of_delta_spark(
    tmp_path: Path,
    configuration: Mapping[str, str],
    predicate: str,
    data: tuple[tuple[int, str | None], ...],
    expected: Mapping[str, int],
    feed: Mapping[str, str],
) -> None:
    make(tmp_path, {**configuration, **feed})
    assert write_delta(str(tmp_path), new(*data), mode="overwrite", replace_where=predicate) == 1
    metrics = {name: int(value) for name, value in history(LocalStore(str(tmp_path))).to_pylist()[0]["operationMetrics"]}
    actions = actions_of(tmp_path, 1)
    adds = [action for action in actions if isinstance(action, AddFile)]
    removed_sizes = {
        a.path: a.size_bytes for a in actions if isinstance(a, RemoveFile) and a.path not in {add.path for add in adds}
    }
    assert metrics == {
        **{f"num{name}": count for name, count in expected.items()},
        "numOutputBytes": sum(add.size_bytes for add in adds),
        "numRemovedBytes": sum(removed_sizes.values()),
        "numAddedChangeFiles": sum(isinstance(action, AddCDCFile) for action in actions),
    }
    assert metrics["numAddedChangeFiles"] > 0 or not feed or configuration or predicate != "id = 3"


@pytest.mark.parametrize("configuration", [{}, VECTORS, FEED], ids=["plain", "vectors", "feed"])
def test_overwrite_replace_where_without_changes_commits_nothing(tmp_path: Path, configuration: Mapping[str, str]) -> None:
    make(tmp_path, configuration)
    before = sorted(tmp_path.rglob("*"))
    for predicate in ("id > 100", "day = 'z'", "day = 'a' AND id = 9"):
        assert write_delta(str(tmp_path), new(), mode="overwrite", replace_where=predicate) == 0
    assert sorted(tmp_path.rglob("*")) == before
    once = {"mode": "overwrite", "replace_where": "id > 100", "txn_app_id": "app", "txn_version": 1}
    assert [write_delta(str(tmp_path), new(), **once) for _ in range(2)] == [1, 1], "the transaction is recorded"
    wider = new().append_column("more", pa.array([], pa.int64()))
    assert write_delta(str(tmp_path), wider, mode="overwrite", replace_where="id > 100", merge_schema=True) == 2


def test_overwrite_replace_where_extends_a_deletion_vector(tmp_path: Path) -> None:
    make(tmp_path, VECTORS)
    for n in (0, 1, 2):
        write_delta(
            str(tmp_path), new((n + 100, "b")), mode="overwrite", replace_where=f"id = {n} OR id > 1000 OR id = {n + 100}"
        )
    assert rows_of(tmp_path) == after(*range(3, 10), plus=((100, "b"), (101, "b"), (102, "b")))
    live = [a for a in actions_of(tmp_path, 3) if isinstance(a, AddFile) and a.deletion_vector is not None]
    assert [a.deletion_vector.cardinality for a in live] == [3] and '"tightBounds":false' in (live[0].stats or "")


def test_overwrite_replace_where_refuses_rows_that_do_not_match(tmp_path: Path) -> None:
    make(tmp_path)
    before = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(InvariantViolationError, match="DELTA_REPLACE_WHERE_MISMATCH"):
        write_delta(str(tmp_path), new((1, "a"), (2, "b")), mode="overwrite", replace_where="day = 'a'")
    assert rows_of(tmp_path) == sorted(BEFORE, key=str) and sorted(tmp_path.rglob("*.parquet")) == before


@pytest.mark.parametrize("predicate", ["nothere = 1", "id +", "id + 1", ""])
def test_overwrite_replace_where_that_is_no_predicate_is_refused(tmp_path: Path, predicate: str) -> None:
    make(tmp_path)
    with pytest.raises(DeltaError):
        write_delta(str(tmp_path), new((1, "a")), mode="overwrite", replace_where=predicate)
    assert rows_of(tmp_path) == sorted(BEFORE, key=str)


def row_ids_of(path: Path) -> dict[int, tuple[int, int]]:
    """Row id and row commit version by the column id."""
    tracked = StructType((StructField("row_id", LONG), StructField("row_commit_version", LONG)))
    columns = StructType((StructField("id", LONG), StructField(ROW_ADDRESS, tracked)))
    scan = plan_scan(Snapshot.load(LocalStore(str(path))), columns, None, ScanOptions(row_address=True))
    rows = [row for batch in read_files(scan.state, scan.scan_files()) for row in batch.to_pylist()]
    return {row["id"]: (row[ROW_ADDRESS]["row_id"], row[ROW_ADDRESS]["row_commit_version"]) for row in rows}


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
@pytest.mark.parametrize("vectors", [{}, VECTORS])
def test_overwrite_replace_where_keeps_the_ids_of_rows_that_stay(
    tmp_path: Path, vectors: Mapping[str, str], mapping: str
) -> None:
    make(tmp_path, {"delta.enableRowTracking": "true", "delta.columnMapping.mode": mapping, **vectors})
    before = row_ids_of(tmp_path)
    for version in (1, 2):
        write_delta(str(tmp_path), new((version, "a")), mode="overwrite", replace_where=f"id = {version}")
        ids_after = row_ids_of(tmp_path)
        assert {n: ids_after[n] for n in ids_after if n > version} == {n: before[n] for n in before if n > version}
        assert ids_after[version][1] == version and ids_after[version][0] not in {row_id for row_id, _ in before.values()}
    assert len({row_id for row_id, _ in row_ids_of(tmp_path).values()}) == 10


def test_overwrite_of_an_append_only_table_is_refused(tmp_path: Path) -> None:
    make(tmp_path, {"delta.appendOnly": "true"})
    with pytest.raises(UnsupportedOperationError, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        write_delta(str(tmp_path), new((1, "a")), mode="overwrite")
    assert rows_of(tmp_path) == sorted(BEFORE, key=str) and len(list(tmp_path.rglob("*.parquet"))) == 3


def test_overwrite_without_data_change_says_so_in_every_action(tmp_path: Path) -> None:
    make(tmp_path)
    write_delta(str(tmp_path), new(*BEFORE), mode="overwrite", data_change=False)
    files = [a for a in actions_of(tmp_path, 1) if isinstance(a, AddFile | RemoveFile)]
    assert files and not any(file.data_change for file in files)
    assert history(LocalStore(str(tmp_path))).to_pylist()[0]["isolationLevel"] == "SnapshotIsolation"


@pytest.mark.parametrize("spelling", ["p%61rt.parquet", "part%20one.parquet", "part one.parquet", "%C3%BC.parquet", "ü.parquet"])
@pytest.mark.parametrize("from_checkpoint", [False, True])
def test_overwrite_spells_paths_as_the_log_does(tmp_path: Path, spelling: str, from_checkpoint: bool) -> None:
    """Otherwise clients that compare the texts of add and remove would keep the file."""
    write_delta(str(tmp_path), pa.table({"id": range(10)}), configuration=VECTORS)
    (add,) = [a for a in actions_of(tmp_path, 0) if isinstance(a, AddFile)]
    (tmp_path / add.path).rename(tmp_path / unquote(spelling))
    log = tmp_path / "_delta_log/00000000000000000000.json"
    log.write_text(log.read_text().replace(add.path, spelling))
    (tmp_path / "_delta_log/00000000000000000000.crc").unlink()
    if from_checkpoint:
        DeltaTable(str(tmp_path)).checkpoint()
    write_delta(str(tmp_path), pa.table({"id": [3]}), mode="overwrite", replace_where="id = 3")
    write_delta(str(tmp_path), pa.table({"id": [4]}), mode="overwrite")
    for version, count in ((1, 2), (2, 1)):
        text = (tmp_path / f"_delta_log/{version:020}.json").read_text()
        assert text.count(f'"path":"{spelling}"') == count
    assert rows_of(tmp_path) == [(4,)] and len(rows_of(tmp_path, 1)) == 10


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"replace_where": "id = 1", "overwrite_schema": True}, "DELTA_OVERWRITE_SCHEMA_WITH_REPLACE_WHERE"),
        (
            {"replace_where": "id = 1", "partition_overwrite_mode": "dynamic"},
            "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
        ),
        (
            {"overwrite_schema": True, "partition_overwrite_mode": "dynamic"},
            "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        ),
        ({"partition_overwrite_mode": "daily"}, "daily"),
        ({"isolation_level": "ReadCommitted"}, "ReadCommitted"),
        ({"txn_app_id": "a"}, "txnVersion"),
        ({"txn_version": 1}, "txnAppId"),
        ({"max_records_per_file": 0}, "maxRecordsPerFile"),
        ({"target_file_bytes": -1}, "targetFileSize"),
        ({"mode": "append", "replace_where": "id = 1"}, "replaceWhere"),
    ],
)
def test_overwrite_options_that_contradict_are_refused(tmp_path: Path, options: dict[str, Any], condition: str) -> None:
    make(tmp_path)
    with pytest.raises(InvalidOptionError, match=condition):
        write_delta(str(tmp_path), new((1, "a")), **{"mode": "overwrite", **options})
    assert rows_of(tmp_path) == sorted(BEFORE, key=str)


def test_write_with_a_transaction_is_done_once(tmp_path: Path) -> None:
    make(tmp_path)
    for version, expected in ((5, 1), (5, 1), (4, 1), (6, 2)):
        version_written = write_delta(str(tmp_path), new((version, "t")), mode="append", txn_app_id="app", txn_version=version)
        assert version_written == expected
    assert rows_of(tmp_path) == after(*range(10), plus=((5, "t"), (6, "t")))
    (recorded,) = [a for a in actions_of(tmp_path, 2) if isinstance(a, SetTransaction)]
    assert (recorded.app_id, recorded.version) == ("app", 6) and recorded.last_updated_ms


def test_write_with_a_transaction_creates_a_table_once(tmp_path: Path) -> None:
    for _ in range(2):
        write_delta(str(tmp_path), new((1, "t")), mode="append", txn_app_id="app", txn_version=0)
    assert rows_of(tmp_path) == [(1, "t")]


def test_write_limits_the_rows_of_a_file(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"id": range(10)}), max_records_per_file=4)
    counts = [a.stats for a in actions_of(tmp_path, 0) if isinstance(a, AddFile)]
    assert [text[: text.index(",")] for text in counts if text] == ['{"numRecords":4', '{"numRecords":4', '{"numRecords":2']


def test_write_keeps_to_the_tables_own_size_of_files(tmp_path: Path) -> None:
    table = pa.table({"id": range(40_000), "text": [str(n * 7919 % 40_009) * 5 for n in range(40_000)]})
    batches = pa.Table.from_batches(table.to_batches(max_chunksize=1000))
    write_delta(str(tmp_path / "many"), batches, configuration={"delta.targetFileSize": "16kb"}, max_records_per_file=8000)
    write_delta(str(tmp_path / "one"), batches)
    assert len(list((tmp_path / "many").glob("*.parquet"))) >= 5 and len(list((tmp_path / "one").glob("*.parquet"))) == 1
    with pytest.raises(InvalidOptionError, match="targetFileSize"):
        write_delta(str(tmp_path / "none"), batches, configuration={"delta.targetFileSize": "big"})


def test_write_compression_of_a_write_is_in_its_file_names(tmp_path: Path) -> None:
    write_delta(str(tmp_path), new((1, "a")), compression="snappy")
    assert all(file.name.endswith(".snappy.parquet") for file in tmp_path.glob("*.parquet"))


def test_write_user_metadata_is_in_the_history(tmp_path: Path) -> None:
    write_delta(str(tmp_path), new((1, "a")), user_metadata="nightly")
    assert history(LocalStore(str(tmp_path))).to_pylist()[0]["userMetadata"] == "nightly"


# ---------------------------------------------------------------- clustering


def test_clustering_by_a_name_with_a_dot_is_named_either_way(tmp_path: Path) -> None:
    rows = pa.table({"s": [{"a.b": 1}], "n": [1]})
    write_delta(str(tmp_path), rows, cluster_by=["s.`a.b`", "n"], configuration={"delta.columnMapping.mode": "name"})
    for names in (["s.`a.b`", "n"], ["s.a.b", "n"]):
        write_delta(str(tmp_path), rows, mode="append", cluster_by=names)
    assert clustering(tmp_path) == ["s.a.b", "n"]


def test_write_with_clustering_columns_records_them(tmp_path: Path) -> None:
    write_delta(str(tmp_path), new((1, "a")), cluster_by=["day", "ID"])
    table = DeltaTable(str(tmp_path))
    assert {"clustering", "domainMetadata"} <= set(table.protocol.writer_features)
    write_delta(str(tmp_path), new((2, "b")), mode="append", cluster_by=["day", "id"])
    write_delta(str(tmp_path), new((3, "c")), mode="overwrite")
    assert rows_of(tmp_path) == [(3, "c")]
    with pytest.raises(SchemaMismatchError, match="DELTA_CLUSTERING_COLUMNS_MISMATCH"):
        write_delta(str(tmp_path), new((2, "b")), mode="append", cluster_by=["id"])


def test_write_collects_statistics_of_all_clustering_columns(tmp_path: Path) -> None:
    table, path = pa.table({f"c{n}": [n] for n in range(40)}), str(tmp_path)
    write_delta(path, table, cluster_by=["c39"], configuration={"delta.dataSkippingNumIndexedCols": "40"})
    set_properties(LocalStore(path), {"delta.dataSkippingNumIndexedCols": "32"})
    write_delta(path, table, mode="append")
    (add,) = [action for action in actions_of(tmp_path, 2) if isinstance(action, AddFile)]
    assert '"c39":39' in (add.stats or "") and '"c38":38' not in (add.stats or "")


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"cluster_by": ["id"], "partition_by": ["day"]}, "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY"),
        ({"cluster_by": ["id", "id"]}, "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"),
        ({"cluster_by": ["nothere"]}, "nothere"),
        ({"cluster_by": ["flag"]}, "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
    ],
)
def test_write_with_clustering_that_cannot_be_is_refused(tmp_path: Path, options: dict[str, Any], condition: str) -> None:
    data = pa.table({"id": [1], "day": ["a"], "flag": [True]})
    with pytest.raises(SchemaMismatchError, match=condition):
        write_delta(str(tmp_path), data, **options)
    assert not (tmp_path / "_delta_log").exists()


CLUSTERED = pa.table({"id": [1, 2], "at": [{"city": "a", "zip": 1}, {"city": "b", "zip": 2}], "day": ["x", "y"]})


def clustering(path: Path) -> list[str]:
    snapshot = Snapshot.load(LocalStore(str(path)))
    leaves = clustering_leaves(snapshot.schema, snapshot.clustering_domain())
    names = clustering_columns(snapshot.schema, snapshot.clustering_domain())
    assert len(leaves) == len(names), "a domain that names a column which is not there"
    assert not (names and snapshot.metadata.partition_columns)
    return list(names)


@pytest.mark.parametrize("mode", ["none", "name", "id"])
@pytest.mark.parametrize(
    ("columns", "left"),
    [
        ({"id": [1], "more": [1], "at": [{"zip": 1}]}, ["id", "at.zip"]),
        ({"ID": ["now a text"], "at": [{"zip": 1.5, "city": "c"}]}, ["ID", "at.zip"]),
        ({"id": [1], "day": ["x"]}, []),
        ({"at": [{"zip": 1}], "day": ["x"]}, []),
        ({"id": [1], "at": [{"city": "c"}]}, []),
        ({"id": [1], "at": ["no struct"]}, []),
        ({"id": [True], "at": [{"zip": 1}]}, []),
        ({"id": [1], "at": [{"zip": {"code": 1}}]}, []),
    ],
)
def test_schema_overwrite_keeps_clustering_if_columns_remain(
    tmp_path: Path, mode: str, columns: dict[str, list[Any]], left: list[str]
) -> None:
    write_delta(str(tmp_path), CLUSTERED, cluster_by=["id", "at.zip"], configuration={"delta.columnMapping.mode": mode})
    write_delta(str(tmp_path), pa.table(columns), mode="overwrite", overwrite_schema=True)
    assert clustering(tmp_path) == left
    assert DeltaTable(str(tmp_path)).to_arrow().to_pylist() == pa.table(columns).to_pylist()
    (add,) = [action for action in actions_of(tmp_path, 1) if isinstance(action, AddFile)]
    assert ("ZCUBE_ID" in (add.tags or {})) is False
    write_delta(str(tmp_path), pa.table(columns), mode="append")
    compact = DeltaTable(str(tmp_path)).optimize.compact()
    assert (compact.get("clusteringStats") is not None) == bool(left)
    assert clustering(tmp_path) == left


@pytest.mark.parametrize("mode", ["none", "name"])
@pytest.mark.parametrize("dropped_columns", [[], ["id"]])
def test_clustered_table_loses_clustering_when_partitioned(
    tmp_path: Path, mode: str, dropped_columns: list[str]
) -> None:
    write_delta(str(tmp_path), CLUSTERED, cluster_by=["id"], configuration={"delta.columnMapping.mode": mode})
    rows = CLUSTERED.drop_columns(dropped_columns)
    write_delta(str(tmp_path), rows, mode="overwrite", overwrite_schema=True, partition_by=["day"])
    assert DeltaTable(str(tmp_path)).metadata.partition_columns == ("day",)
    assert clustering(tmp_path) == []
    write_delta(str(tmp_path), rows, mode="append")
    compact = DeltaTable(str(tmp_path)).optimize.compact()
    assert compact["numFilesAdded"] == 2 and compact.get("clusteringStats") is None


def test_schema_overwrite_repairs_clustered_partitioned_table(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    write_delta(str(tmp_path), CLUSTERED, cluster_by=["id"])
    write_delta(str(tmp_path), CLUSTERED, mode="overwrite", overwrite_schema=True, partition_by=["day"])
    both = clustering_domain(Snapshot.load(store).schema, ["id"], "none")
    Transaction(Snapshot.load(store)).set_domain(both).commit("TEST", {})
    write_delta(str(tmp_path), CLUSTERED, mode="append")
    write_delta(str(tmp_path), CLUSTERED, mode="overwrite", overwrite_schema=True)
    assert (DeltaTable(str(tmp_path)).metadata.partition_columns, clustering(tmp_path)) == ((), ["id"])


def test_schema_overwrite_without_clustering_columns_is_refused(tmp_path: Path) -> None:
    write_delta(str(tmp_path), CLUSTERED, cluster_by=["id"])
    for names in (["id"], ["day"]):
        with pytest.raises(SchemaMismatchError, match="DELTA_CLUSTERING_COLUMNS_MISMATCH"):
            write_delta(
                str(tmp_path), CLUSTERED.drop_columns(["id"]), mode="overwrite", overwrite_schema=True, cluster_by=names
            )
    write_delta(str(tmp_path), CLUSTERED.drop_columns(["at"]), mode="overwrite", overwrite_schema=True, cluster_by=["ID"])
    assert clustering(tmp_path) == ["id"]


# ---------------------------------------------------------------- two writers


class Interrupted(LocalStore):
    """Another writer commits just before us."""

    def __init__(self, root: Path, between: Any) -> None:
        super().__init__(str(root))
        self._between = between

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        if path.startswith("_delta_log/") and path.endswith(".json") and self._between is not None:
            between, self._between = self._between, None
            between()
        super().put_if_absent(path, data, durably=durably)


def race(path: Path, theirs: dict[str, Any], ours: dict[str, Any]) -> int:
    other = new((50, "b")) if "data" not in theirs else theirs.pop("data")
    store = Interrupted(path, lambda: write_delta(str(path), other, **theirs))
    return write_delta(str(path), ours.pop("data", new((60, "a"))), store=store, **ours)


APPEND = {"mode": "append"}


def test_overwrite_passes_an_append_only_if_write_serializable(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ConcurrentAppendException, match="WriteSerializable would have let it pass"):
        race(tmp_path, dict(APPEND), {"mode": "overwrite"})
    assert rows_of(tmp_path) == after(*range(10), plus=((50, "b"),))
    assert len(list(tmp_path.rglob("*.parquet"))) == 4
    race(tmp_path, dict(APPEND), {"mode": "overwrite", "isolation_level": "WriteSerializable"})
    assert rows_of(tmp_path) == [(50, "b"), (60, "a")]


def test_schema_overwrite_conflicts_with_append_at_each_level(tmp_path: Path) -> None:
    make(tmp_path)
    ours = {"mode": "overwrite", "overwrite_schema": True, "isolation_level": "SnapshotIsolation"}
    with pytest.raises(ConcurrentAppendException, match="no isolation level lets it pass"):
        race(tmp_path, dict(APPEND), {**ours, "data": pa.table({"id": ["text"]})})
    assert rows_of(tmp_path) == after(*range(10), plus=((50, "b"),))


def test_overwrite_isolation_level_is_the_tables_own(tmp_path: Path) -> None:
    make(tmp_path, {"delta.isolationLevel": "WriteSerializable"})
    race(tmp_path, dict(APPEND), {"mode": "overwrite"})
    assert rows_of(tmp_path) == [(50, "b"), (60, "a")]
    assert history(LocalStore(str(tmp_path))).to_pylist()[0]["isolationLevel"] == "WriteSerializable"


def test_overwrite_of_a_partition_passes_an_append_to_another(tmp_path: Path) -> None:
    make(tmp_path)
    race(tmp_path, dict(APPEND), {"mode": "overwrite", "partition_overwrite_mode": "dynamic"})
    assert rows_of(tmp_path) == after(4, 5, 6, 7, 8, 9, plus=((50, "b"), (60, "a")))


DYNAMIC = {"mode": "overwrite", "partition_overwrite_mode": "dynamic"}


def test_overwrite_of_a_partition_meets_an_append_to_it(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ConcurrentAppendException, match=r"to partition \[day=b\].* had to read: partition \[day=b\]"):
        race(tmp_path, dict(APPEND), {**DYNAMIC, "data": new((60, "b"))})
    assert rows_of(tmp_path) == after(*range(10), plus=((50, "b"),))


@pytest.mark.parametrize(("theirs", "passes"), [("ab", False), ("ab  ", False), ("cd", True)])
def test_overwrite_of_a_partition_of_char_meets_an_append_to_it(tmp_path: Path, theirs: str, passes: bool) -> None:
    make_char(tmp_path)
    one, other = (pa.table({"n": [n], "p": [text]}) for n, text in ((9, "ab"), (8, theirs)))
    if passes:
        race(tmp_path, {**APPEND, "data": other}, {**DYNAMIC, "data": one})
    else:
        with pytest.raises(ConcurrentAppendException, match="ab"):
            race(tmp_path, {**APPEND, "data": other}, {**DYNAMIC, "data": one})
    other_rows = [(8, "cd   "), (9, "ab   ")] if passes else [(1, "ab   "), (8, "ab   ")]
    assert rows_of(tmp_path) == sorted([(2, "cd   "), *other_rows])


@pytest.mark.parametrize("kind", EXTREMES)
def test_overwrite_of_last_partition_conflicts_only_there(tmp_path: Path, kind: str) -> None:
    arrow, plain, ends = EXTREMES[kind]
    first, last = (pa.table({"n": [n], "p": pa.array([end], plain).cast(arrow)}) for n, end in enumerate(ends))
    write_delta(str(tmp_path), last, partition_by=["p"])
    race(tmp_path, {**APPEND, "data": first}, {**DYNAMIC, "data": last})
    with pytest.raises(ConcurrentAppendException):
        race(tmp_path, {**APPEND, "data": last}, {**DYNAMIC, "data": last})
    assert sorted(DeltaTable(str(tmp_path)).to_arrow()["n"].to_pylist()) == [0, 1, 1]


def test_overwrite_of_partition_matches_files_of_invalid_values(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"n": [1, 2], "p": [1, 2]}), partition_by=["p"])
    transaction = Transaction(Snapshot.load(LocalStore(str(tmp_path))))
    state = write_state(transaction.config, LocalStore(str(tmp_path)), 0)
    remove_replaced_rows(transaction, Overwrites.PARTITIONS, state, WrittenFiles(adds=(AddFile("x", {"p": "1"}, 1, 1),)))
    matches = transaction.reads.may_match
    texts = ("01", "2", "many", None)
    assert matches is not None and matches([AddFile("y", {"p": text}, 1, 1) for text in texts]) == [True, False, True, False]


def test_overwrite_of_rows_passes_append_with_disjoint_bounds(tmp_path: Path) -> None:
    make(tmp_path, VECTORS)
    race(tmp_path, dict(APPEND), {"mode": "overwrite", "replace_where": "id < 3", "data": new((1, "a"))})
    assert rows_of(tmp_path) == after(*range(3, 10), plus=((50, "b"), (1, "a")))
    with pytest.raises(ConcurrentAppendException, match="id > 40"):
        race(tmp_path, dict(APPEND), {"mode": "overwrite", "replace_where": "id > 40", "data": new((41, "a"))})


def replace_one(number: int) -> dict[str, Any]:
    return {"mode": "overwrite", "replace_where": f"id = {number}", "data": new((number, "new"))}


def test_overwrites_of_different_rows_both_commit_with_vectors(tmp_path: Path) -> None:
    make(tmp_path, {**VECTORS, **FEED})
    assert race(tmp_path, replace_one(0), replace_one(1)) == 2
    assert rows_of(tmp_path) == after(*range(2, 10), plus=((0, "new"), (1, "new")))
    feed = DeltaTable(str(tmp_path)).changes(starting_version=2).read_all().to_pylist()
    assert sorted((row["id"], row["day"], row["_change_type"]) for row in feed) == [(1, "a", "delete"), (1, "new", "insert")]
    vectors = [add.deletion_vector for add in actions_of(tmp_path, 2) if isinstance(add, AddFile) and add.deletion_vector]
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.bin")} >= {vector.path for vector in vectors}
    assert len(list(tmp_path.rglob("*.bin"))) == 2, "the vector of the attempt that lost is gone"


@pytest.mark.parametrize("configuration", [VECTORS, {}])
def test_overwrites_conflict_by_row_with_vectors_else_by_file(
    tmp_path: Path, configuration: Mapping[str, str]
) -> None:
    make(tmp_path, configuration)
    with pytest.raises(ConcurrentDeleteDeleteException, match="DELTA_CONCURRENT_DELETE"):
        ours = replace_one(0 if configuration else 1)
        race(tmp_path, replace_one(0), {**ours, "isolation_level": "SnapshotIsolation"})
    assert rows_of(tmp_path) == after(*range(1, 10), plus=((0, "new"),))
    assert len(list(tmp_path.rglob("*.bin"))) == len(configuration)


def test_append_passes_an_overwrite(tmp_path: Path) -> None:
    make(tmp_path)
    assert race(tmp_path, {"mode": "overwrite"}, dict(APPEND)) == 2
    assert rows_of(tmp_path) == [(50, "b"), (60, "a")]


def test_append_conflicts_with_transaction_of_same_application(tmp_path: Path) -> None:
    make(tmp_path)
    same = {"mode": "append", "txn_app_id": "app", "txn_version": 1}
    with pytest.raises(ConcurrentTransactionException, match="app"):
        race(tmp_path, dict(same), dict(same))
    assert rows_of(tmp_path) == after(*range(10), plus=((50, "b"),))
    race(tmp_path, {**same, "txn_version": 2}, {**same, "txn_app_id": "another"})


@pytest.mark.parametrize("mapping", ["none", "name"])
@pytest.mark.parametrize(("before", "after_it"), [(["day"], []), ([], ["day"]), (["day"], ["id"])])
def test_change_feed_of_a_repartitioning_overwrite_is_refused(
    tmp_path: Path, mapping: str, before: list[str], after_it: list[str]
) -> None:
    configuration = {**FEED, "delta.columnMapping.mode": mapping}
    write_delta(str(tmp_path), new((1, "a")), partition_by=before, configuration=configuration)
    write_delta(str(tmp_path), new((2, "b")), mode="overwrite", overwrite_schema=True, partition_by=after_it)
    with pytest.raises(ChangeDataFeedError, match="partition") as caught:
        DeltaTable(str(tmp_path)).changes(starting_version=1).read_all()
    assert caught.value.error_class == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"


@pytest.mark.parametrize("filter", [None, "id > 1", "t = 'b'"])
def test_file_with_arrow_view_types_is_read_and_filtered(tmp_path: Path, filter: str | None) -> None:
    plain = pa.table(
        {
            "id": [1, 2, 3],
            "t": ["a", "b", None],
            "b": [b"x", None, b"z" * 20],
            "s": [{"x": "p", "l": ["q", None]}, None, {"x": None, "l": []}],
            "m": pa.array([[("k", "v")], [], None], pa.map_(pa.string(), pa.string())),
        }
    )
    write_delta(str(tmp_path), plain, configuration={"delta.enableDeletionVectors": "true"})
    (file,) = tmp_path.glob("*.parquet")
    inner = pa.struct([("x", pa.string_view()), ("l", pa.list_(pa.string_view()))])
    types = [pa.int64(), pa.string_view(), pa.binary_view(), inner, pa.map_(pa.string_view(), pa.string_view())]
    views = pa.schema(list(zip(plain.column_names, types, strict=True)))
    pq.write_table(pa.table([plain[n].cast(kind) for n, kind in enumerate(types)], schema=views), file)
    assert pq.ParquetFile(file).schema_arrow.field("t").type == pa.string_view()
    kept_rows = [row for row in plain.to_pylist() if filter is None or row["id"] == 2 or (row["id"] == 3 and "id" in filter)]
    assert DeltaTable(str(tmp_path)).to_arrow(filter=filter).to_pylist() == kept_rows
    write_delta(str(tmp_path), plain.slice(0, 0), mode="overwrite", replace_where="id = 2")
    assert DeltaTable(str(tmp_path)).to_arrow(["id", "t"]).to_pylist() == [{"id": 1, "t": "a"}, {"id": 3, "t": None}]


def test_write_to_table_clustered_by_missing_column_succeeds(tmp_path: Path) -> None:
    write_delta(str(tmp_path), new((1, "a")), cluster_by=["id"])
    commit = tmp_path / "_delta_log" / f"{0:020d}.json"
    commit.write_text(commit.read_text().replace(r"[[\"id\"]]", r"[[\"id\"],[\"gone\",\"x\"]]"))
    (tmp_path / "_delta_log" / f"{0:020d}.crc").unlink()
    write_delta(str(tmp_path), new((2, "b")), mode="append")
    assert rows_of(tmp_path) == [(1, "a"), (2, "b")]
