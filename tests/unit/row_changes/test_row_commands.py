"""DELETE, UPDATE and MERGE of delta_py.DeltaTable: their effect on rows, what they read, and what they refuse by name."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import (
    ConcurrentAppendException,
    DeltaError,
    ExpressionError,
    InvalidOptionError,
    InvariantViolationError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from delta_py.row_changes import row_commands
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import LONG, TIMESTAMP, StructField, StructType, schema_to_json
from tests.support.tables.small_table import make_table

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKING = {"delta.enableRowTracking": "true"}


def make(path: Path, configuration: dict[str, str] | None = None, **options: Any) -> DeltaTable:
    """30 rows in three files, or one file per partition."""
    for start in (0, 10, 20):
        ids = range(start, start + 10)
        rows = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "day": pa.array([f"d{n % 3}" for n in ids]),
                "price": pa.array([float(n) for n in ids]),
                "at": pa.array([{"city": "Bonn", "zip": n} for n in ids]),
            }
        )
        write_delta(str(path), rows, mode="append", configuration=None if start else configuration, **options)
    return DeltaTable(str(path))


def rows_of(path: Path) -> list[dict[str, Any]]:
    sorted_rows: list[dict[str, Any]] = DeltaTable(str(path)).to_arrow().sort_by("id").to_pylist()
    return sorted_rows


def files_on_disk(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*.parquet") if "_delta_log" not in str(file)}


@pytest.mark.parametrize("configuration", [{}, VECTORS, {**VECTORS, **FEED}, {**FEED, **TRACKING}], ids=str)
def test_delete_and_update_change_only_matching_rows(tmp_path: Path, configuration: dict[str, str]) -> None:
    table = make(tmp_path, configuration)
    assert table.delete("id % 5 = 0 AND price < 20")["numDeletedRows"] == 4
    changed = table.update({"price": "price + id", "at.city": "upper(at.city)"}, predicate="id > 21")
    assert changed["numUpdatedRows"] == 8
    left = {n: float(n) for n in range(30) if not (n % 5 == 0 and n < 20)}
    expected_prices = {n: price + n if n > 21 else price for n, price in left.items()}
    assert {row["id"]: row["price"] for row in rows_of(tmp_path)} == expected_prices
    assert {row["at"]["city"] for row in rows_of(tmp_path) if row["id"] > 21} == {"BONN"}
    assert {row["at"]["zip"] for row in rows_of(tmp_path)} == set(expected_prices)
    assert table.version == 2
    if FEED.items() <= configuration.items():
        feed = DeltaTable(str(tmp_path)).changes(starting_version=3).read_all().to_pylist()
        kinds = [row["_change_type"] for row in feed]
        assert [kinds.count(kind) for kind in ("delete", "update_preimage", "update_postimage")] == [4, 8, 8]


def test_delete_without_predicate_removes_the_files_unread(tmp_path: Path) -> None:
    table = make(tmp_path)
    for file in tmp_path.glob("*.parquet"):
        file.write_bytes(b"not to be read")
    assert table.delete()["numDeletedRows"] == 30
    assert DeltaTable(str(tmp_path)).files().num_rows == 0


def test_delete_and_update_read_only_files_of_the_predicate(tmp_path: Path) -> None:
    table = make(tmp_path)
    for path in table.scan(filter="id < 10 OR id >= 20").paths():
        (tmp_path / path).write_bytes(b"not to be read")
    assert table.update({"price": "0"}, predicate="id = 15")["numUpdatedRows"] == 1
    assert table.delete("id BETWEEN 12 AND 13")["numDeletedRows"] == 2


@pytest.mark.parametrize("zone", ["America/New_York", "EST", "+01:00:30"])
def test_delete_and_overwrite_match_partitions_in_session_zone(tmp_path: Path, zone: str) -> None:
    texts = ["2050-07-01 00:00:00", "2050-07-01 01:00:00", "2050-01-01 00:00:00"]
    schema = StructType((StructField("at", TIMESTAMP), StructField("id", LONG)))
    rows = pa.table({"at": texts, "id": pa.array([1, 2, 3], pa.int64())})
    make_table(tmp_path, [rows], partition_by=["at"], schema_json=schema_to_json(schema))

    def table() -> DeltaTable:
        return DeltaTable(str(tmp_path), session_timezone=zone)

    table().delete("at = timestamp'2050-07-01 01:00:00'")
    assert sorted(table().to_arrow(["id"])["id"].to_pylist()) == [1, 3]
    [first] = table().to_arrow(filter="id = 1")["at"].to_pylist()
    more_rows = pa.table({"at": pa.array([first], pa.timestamp("us", "UTC")), "id": pa.array([10], pa.int64())})
    write_delta(str(tmp_path), more_rows, mode="overwrite", partition_overwrite_mode="dynamic", time_zone=zone)
    assert sorted(table().to_arrow(["id"])["id"].to_pylist()) == [3, 10]


def test_update_and_merge_use_the_session_wall_clock_once(tmp_path: Path) -> None:
    schema = StructType((StructField("at", TIMESTAMP), StructField("id", LONG)))
    rows = pa.table({"at": ["2024-01-02T06:00:00.000000Z", "2024-01-05T06:00:00.000000Z"], "id": pa.array([1, 2], pa.int64())})
    make_table(tmp_path, [rows], partition_by=["at"], schema_json=schema_to_json(schema))
    table = DeltaTable(str(tmp_path), session_timezone="America/New_York")
    table.update({"id": "hour(at) || '7'"}, predicate="id = 1")
    assert sorted(row["id"] for row in rows_of(tmp_path)) == [2, 17]
    merge = table.merge(pa.table({"id": pa.array([2], pa.int64())}), "t.id = s.id AND date(t.at) = '2024-01-05'", "s", "t")
    assert merge.when_matched_delete().execute()["numTargetRowsDeleted"] == 1


def test_update_takes_python_values_in_the_types_of_the_columns(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            *(("id", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("d", pa.date32()), ("m", pa.decimal128(9, 2))),
            *(("l", pa.list_(pa.int32())), ("s", pa.struct([("a", pa.int32())])), ("b", pa.bool_()), ("w", pa.string())),
        ]
    )
    write_delta(str(tmp_path), pa.Table.from_pylist([{"id": 1}, {"id": 2}], schema))
    at = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
    values = {"t": at, "d": at.date(), "m": Decimal("1.25"), "l": [1, 2], "s": {"a": 3}, "b": True, "w": "it's"}
    DeltaTable(str(tmp_path)).update(new_values=values, predicate="id = 2")
    assert rows_of(tmp_path)[1] == {"id": 2, **values}
    DeltaTable(str(tmp_path)).update(new_values={"w": None, "l": []})
    assert [(row["w"], row["l"]) for row in rows_of(tmp_path)] == [(None, [])] * 2


REFUSED: list[tuple[Callable[[DeltaTable], Any], type[DeltaError], str | None]] = [
    (lambda t: t.delete("hash(id) = 1"), ExpressionError, None),
    (lambda t: t.delete("id IN (SELECT 1)"), ExpressionError, None),
    (lambda t: t.delete("nope = 1"), SchemaMismatchError, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    (lambda t: t.delete("id"), ExpressionError, "DATATYPE_MISMATCH"),
    (lambda t: t.update(), InvalidOptionError, None),
    (lambda t: t.update({"id": "1"}, {"id": 1}), InvalidOptionError, None),
    (lambda t: t.update({"id": "1", "ID": "2"}), UnsupportedOperationError, "DELTA_CONFLICT_SET_COLUMN"),
    (lambda t: t.update({"at": "at", "at.city": "'x'"}), UnsupportedOperationError, "DELTA_CONFLICT_SET_COLUMN"),
    (lambda t: t.update({"id": "'one'"}), ExpressionError, "CAST_INVALID_INPUT"),
    (lambda t: t.update({"at": "id"}), SchemaMismatchError, "DELTA_FAILED_TO_MERGE_FIELDS"),
    (lambda t: t.update({"at.zip": "id / 0"}), ExpressionError, "DIVIDE_BY_ZERO"),
    (lambda t: t.update(new_values={"id": "x"}), SchemaMismatchError, "DELTA_FAILED_TO_MERGE_FIELDS"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_invalid_command_is_refused_by_name_and_changes_nothing(tmp_path: Path, case: int) -> None:
    call, error_type, condition = REFUSED[case]
    table, before = make(tmp_path), files_on_disk(tmp_path)
    with pytest.raises(error_type) as refusal:
        call(table)
    assert condition is None or refusal.value.error_class == condition
    assert (DeltaTable(str(tmp_path)).version, files_on_disk(tmp_path)) == (2, before)


def test_append_only_table_and_broken_constraint_are_refused(tmp_path: Path) -> None:
    table = make(tmp_path / "a", {"delta.appendOnly": "true"})
    for call in (table.delete, lambda: table.update({"id": "1"})):
        with pytest.raises(UnsupportedOperationError) as refusal:
            call()
        assert refusal.value.error_class == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    checked = make(tmp_path / "b", {"delta.constraints.low": "price < 100"})
    before = files_on_disk(tmp_path / "b")
    with pytest.raises(InvariantViolationError):
        checked.update({"price": "price * 5"})
    assert files_on_disk(tmp_path / "b") == before


def test_delete_conflicts_with_an_append_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path)
    appended = table.to_arrow().slice(0, 1)
    real = row_commands.change_rows

    def meanwhile(*arguments: Any, **named: Any) -> Any:
        write_delta(str(tmp_path), appended, mode="append")
        return real(*arguments, **named)

    monkeypatch.setattr(row_commands, "change_rows", meanwhile)
    before = files_on_disk(tmp_path)
    with pytest.raises(ConcurrentAppendException):
        row_commands.delete(LocalStore(str(tmp_path)), "id >= 0 AND price <> 3")
    assert len(files_on_disk(tmp_path) - before) == 1  # that of the other writer
    assert DeltaTable(str(tmp_path)).version == 3


# ---------------------------------------------------------------- MERGE


def test_merge_clauses_apply_in_their_order(tmp_path: Path) -> None:
    table = make(tmp_path, {**VECTORS, **FEED})
    source = pa.table({"id": [1, 2, 3, 40, 41], "price": [0.5, 9.0, 7.0, 1.0, 2.0], "gone": [True, False, False, False, True]})
    metrics = (
        table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        .when_matched_delete("s.gone")
        .when_matched_update({"price": "s.price", "t.at.city": "'Ulm'"}, "s.price > 8")
        .when_matched_update({"price": "t.price - s.price"})
        .when_not_matched_insert({"id": "id", "price": "price", "day": "'new'"}, "NOT gone")
        .when_not_matched_by_source_delete("id > 27")
        .execute()
    )
    names = ("Inserted", "MatchedUpdated", "MatchedDeleted", "NotMatchedBySourceDeleted")
    assert [metrics[f"numTargetRows{name}"] for name in names] == [1, 2, 1, 2]
    rows_by_id = {row["id"]: row for row in rows_of(tmp_path)}
    assert rows_by_id.keys() == {*range(28), 40} - {1}
    assert (rows_by_id[2]["price"], rows_by_id[2]["at"], rows_by_id[3]["price"]) == (9.0, {"city": "Ulm", "zip": 2}, -4.0)
    assert rows_by_id[40] == {"id": 40, "day": "new", "price": 1.0, "at": None}
    latest = DeltaTable(str(tmp_path)).history(1).to_pylist()[0]
    assert (latest["operation"], latest["version"]) == ("MERGE", 3)
    kinds = [r["_change_type"] for r in DeltaTable(str(tmp_path)).changes(starting_version=3).read_all().to_pylist()]
    assert [kinds.count(kind) for kind in ("insert", "delete", "update_preimage", "update_postimage")] == [1, 3, 2, 2]


@pytest.mark.parametrize("source_type", [pa.int32(), pa.int64(), pa.uint16(), pa.dictionary(pa.int8(), pa.int64()), pa.string()])
def test_merge_reads_only_files_that_the_keys_can_match(tmp_path: Path, source_type: pa.DataType) -> None:
    table = make(tmp_path)
    spoilt = [path for path in table.scan(filter="id < 10 OR id >= 20").paths()]
    for path in spoilt:
        (tmp_path / path).write_bytes(b"not to be read")
    keys = pa.array([12, 14])
    keys = keys.dictionary_encode() if pa.types.is_dictionary(source_type) else keys.cast(source_type)
    key = "cast(s.id AS bigint)" if source_type == pa.string() else "s.id"
    merged = table.merge(pa.table({"id": keys}), f"t.id = {key}", "s", "t").when_matched_delete().execute()
    assert merged["numTargetRowsDeleted"] == 2


def test_merge_of_keys_that_are_in_no_file_only_appends(tmp_path: Path) -> None:
    table = make(tmp_path)
    source = table.to_arrow(filter="id < 3").set_column(0, "id", pa.array([100, 101, 102]))
    metrics = table.merge(source, "t.id = s.id", "s", "t").when_matched_update_all().when_not_matched_insert_all().execute()
    assert (metrics["numTargetRowsInserted"], metrics["numTargetFilesRemoved"]) == (3, 0)
    assert len(rows_of(tmp_path)) == 33


def test_merge_keeps_row_ids_and_moves_rows_between_partitions(tmp_path: Path) -> None:
    table = make(tmp_path, TRACKING, partition_by="day")
    source = pa.table({"id": [4, 5], "day": ["d9", "d0"]})
    table.merge(source, "t.id = s.id", "s", "t").when_matched_update({"day": "s.day"}).execute()
    after = DeltaTable(str(tmp_path))
    assert {row["id"]: row["day"] for row in after.to_arrow(["id", "day"], "id IN (4, 5)").to_pylist()} == {4: "d9", 5: "d0"}
    assert "d9" in {dict(values)["day"] for values in after.files()["partition_values"].to_pylist()}


MERGES: list[tuple[Callable[[DeltaTable, pa.Table], Any], type[DeltaError], str | None]] = [
    (lambda t, s: t.merge(s, "t.id = s.id", "s", "t"), UnsupportedOperationError, "DELTA_MERGE_MISSING_WHEN"),
    (
        lambda t, s: t.merge(s, "t.id = s.id", "s", "t").when_matched_delete().when_matched_update_all(),
        UnsupportedOperationError,
        "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    ),
    (lambda t, s: t.merge(s, "id = s.id", "s", "t").when_matched_delete(), ExpressionError, "AMBIGUOUS_REFERENCE"),
    (
        lambda t, s: t.merge(s, "t.id = s.nope", "s", "t").when_matched_delete(),
        SchemaMismatchError,
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
    ),
    (
        lambda t, s: t.merge(s, "t.id = s.id", "s", "t").when_not_matched_insert({"id": "t.id"}),
        SchemaMismatchError,
        "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
    ),
    (
        lambda t, s: t.merge(s, "t.id = s.id", "s", "t").when_matched_update_all(),
        SchemaMismatchError,
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
    ),
    (
        lambda t, s: t.merge(s, "t.id = s.id", "s", "t").when_not_matched_insert({"at.zip": "1"}),
        UnsupportedOperationError,
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
    ),
    (lambda t, s: t.merge(s, "t.id = hash(s.id)", "s", "t").when_matched_delete(), ExpressionError, None),
    (
        lambda t, s: t.merge(s, "t.id = s.id", "s", "t").when_matched_update({"day": "'x'"}),
        UnsupportedOperationError,
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
    ),
    (
        lambda t, s: t.merge(s.slice(1), "target.id = source.id").when_matched_delete("price / 0 > 1"),
        ExpressionError,
        "DIVIDE_BY_ZERO",
    ),
]


@pytest.mark.parametrize("case", range(len(MERGES)))
def test_invalid_merge_is_refused_by_name_and_changes_nothing(tmp_path: Path, case: int) -> None:
    begin, error_type, condition = MERGES[case]
    table, before = make(tmp_path), files_on_disk(tmp_path)
    with pytest.raises(error_type) as refusal:
        begin(table, pa.table({"id": [1, 1, 50]})).execute()
    assert condition is None or refusal.value.error_class == condition
    assert (DeltaTable(str(tmp_path)).version, files_on_disk(tmp_path)) == (2, before)


def test_merge_refuses_equal_aliases_and_duplicate_columns(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.raises(InvalidOptionError):
        table.merge(pa.table({"id": [1]}), "t.id = T.id", "t", "T")
    twice = pa.table([pa.array([1]), pa.array([2])], names=["id", "ID"])
    with pytest.raises(SchemaMismatchError):
        table.merge(twice, "t.id = s.id", "s", "t").when_matched_delete().execute()


def test_merge_of_a_stream_can_be_executed_again(tmp_path: Path) -> None:
    table = make(tmp_path)
    stream = pa.table({"id": [1, 2]}).to_reader()
    merger = table.merge(stream, "t.id = s.id", "s", "t").when_matched_update({"price": "t.price + 10"})
    assert [merger.execute()["numTargetRowsUpdated"] for _ in range(2)] == [2, 2]
    assert [row["price"] for row in rows_of(tmp_path)[:4]] == [0.0, 21.0, 22.0, 3.0]


def test_merge_without_equality_asks_all_pairs(tmp_path: Path) -> None:
    table = make(tmp_path)
    source = pa.table({"low": [3, 11], "high": [5, 12]})
    metrics = table.merge(source, "id BETWEEN low AND high").when_matched_delete().execute()
    assert metrics["numTargetRowsDeleted"] == 5
    assert {row["id"] for row in rows_of(tmp_path)} == {*range(30)} - {3, 4, 5, 11, 12}


def commit_tags(store: ObjectStore) -> list[dict[str, str] | None]:
    commits = (store.read(f"_delta_log/{version:020}.json") for version in range(Snapshot.load(store).version + 1))
    return [json.loads(commit.split(b"\n")[0])["commitInfo"].get("tags") for commit in commits]


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_commits_say_that_rows_keep_their_ids(tmp_path: Path, vectors: str) -> None:
    configuration = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": vectors}
    table = pa.table({"id": [1, 2, 3]})
    write_delta(str(tmp_path), table, configuration=configuration)
    write_delta(str(tmp_path), table, mode="append")
    changed = DeltaTable(str(tmp_path))
    changed.update({"id": "id + 10"}, predicate="id = 1")
    changed.delete("id = 2")
    changed.optimize.compact()
    tags = commit_tags(LocalStore(str(tmp_path)))
    assert tags == [{"delta.rowTracking.preserved": "true"}] * 5


def test_commits_say_nothing_of_row_ids_where_they_are_not_kept(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"id": [1]}), configuration={"delta.feature.rowTracking": "supported"})
    assert commit_tags(LocalStore(str(tmp_path))) == [None]


def test_values_that_are_no_sql_are_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.raises(TypeError, match="SQL text is expected, not int"):
        table.update({"price": 5})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="SQL text is expected, not int"):
        table.merge(pa.table({"k": [1]}), "id = k").when_matched_update({"price": 5}).execute()  # type: ignore[dict-item]
    assert DeltaTable(str(tmp_path)).version == table.version


# ---------------------------------------------------------------- names


@pytest.mark.parametrize("mode", ["none", "name"])
@pytest.mark.parametrize("name", [".b", "..b", ".[1]", "[1]", "."])
def test_field_name_that_looks_like_an_arrow_path_is_a_field(tmp_path: Path, name: str, mode: str) -> None:
    path, quoted = str(tmp_path), f"`{name}`"
    rows = [{"id": n, name: n, "at": {name: n, "b": 100 * n}, "b": 100 * n} for n in (1, 2)]
    checkpoints = {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"}
    write_delta(path, pa.Table.from_pylist(rows), configuration={"delta.columnMapping.mode": mode, **checkpoints})
    DeltaTable(path).alter.add_constraint({"small": f"at.{quoted} < 10"})
    DeltaTable(path).update({"at.b": "7"})
    rows = [{**row, "at": {**row["at"], "b": 7}} for row in rows]
    assert rows_of(tmp_path) == rows
    with pytest.raises(InvariantViolationError, match="11"):
        DeltaTable(path).update({f"at.{quoted}": "11"})
    DeltaTable(path).checkpoint()
    for condition in (f"at.{quoted} = 2", f"{quoted} = 2", f"at.{quoted} > 1 and at.b = 7"):
        assert DeltaTable(path).to_arrow(filter=condition).to_pylist() == rows[1:]
        assert DeltaTable(path).explain_files(condition)["is_read"].to_pylist() == [True]
    assert DeltaTable(path).explain_files(f"at.{quoted} = 7")["is_read"].to_pylist() == [False]
