"""read_files: columns that files have, nulls for those that they lack, rows of several files, and errors that name the file."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import DataFileError, DeletionVectorError
from delta_py.parquet.read_columns import plan_file
from delta_py.parquet.values.rebase import PROLEPTIC
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.scan.scan_state import ColumnSource, ScanColumn, ScanFile
from delta_py.types.schema import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    VOID,
    ArrayType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from tests.support.tables.data_files import column, read_batches, read_rows, read_table, scan_state, write_file


def struct(**fields: Any) -> StructType:
    return StructType(tuple(StructField(name, data_type) for name, data_type in fields.items()))


def with_id(name: str, data_type: Any, field_id: int) -> StructField:
    return StructField(name, data_type, True, {"delta.columnMapping.id": field_id})


def arrow_with_id(name: str, arrow: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, arrow, metadata={"PARQUET:field_id": str(field_id)})


# ---------------------------------------------------------------- columns


def test_columns_of_the_tables_types_pass_without_a_copy(tmp_path: Path) -> None:
    write_file(tmp_path, "a.parquet", {"x": np.arange(1000), "s": ["abc"] * 1000})
    file = ScanFile("a.parquet", 1)
    before = pa.total_allocated_bytes()
    batches = read_batches(scan_state(tmp_path, [column("s", STRING), column("x", LONG)]), file)
    allocated_bytes = pa.total_allocated_bytes() - before
    assert allocated_bytes <= 1.5 * sum(batch.get_total_buffer_size() for batch in batches) + 4096
    assert pa.Table.from_batches(batches).to_pydict() == {"s": ["abc"] * 1000, "x": list(range(1000))}


def test_column_that_the_file_lacks_is_null(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {"x": [1, 2]})
    state = scan_state(tmp_path, [column("x", LONG), column("new", struct(a=STRING)), column("d", DecimalType(10, 2))])
    assert read_rows(state, file) == [{"x": 1, "new": None, "d": None}, {"x": 2, "new": None, "d": None}]


def test_column_declared_not_null_that_the_file_lacks_is_null(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {"x": [1]})
    field = StructField("new", LONG, nullable=False)
    table = read_table(scan_state(tmp_path, [ScanColumn(field, field)]), file)
    assert table.to_pylist() == [{"new": None}]


def test_nested_fields_that_the_file_lacks_are_null_at_any_depth(tmp_path: Path) -> None:
    rows = [{"s": {"a": 1}, "l": [{"a": 1}, None], "m": [("k", {"a": 2})]}, {"s": None, "l": None, "m": None}]
    inner = pa.struct([("a", pa.int64())])
    schema = pa.schema([("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))])
    file = write_file(tmp_path, "a.parquet", pa.Table.from_pylist(rows, schema))
    both = struct(b=STRING, a=LONG)
    state = scan_state(tmp_path, [column("s", both), column("l", ArrayType(both)), column("m", MapType(STRING, both))])
    assert read_rows(state, file) == [
        {"s": {"b": None, "a": 1}, "l": [{"b": None, "a": 1}, None], "m": [("k", {"b": None, "a": 2})]},
        {"s": None, "l": None, "m": None},
    ]


def test_struct_without_requested_fields_keeps_nulls_and_lengths(tmp_path: Path) -> None:
    inner = pa.struct([("t", pa.string()), ("a", pa.int64())])
    schema = pa.schema([("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))])
    rows = [
        {"s": {"t": "x"}, "l": [{"t": "y"}, None], "m": [("k", None), ("j", {"t": "z"})]},
        {"s": None, "l": None, "m": None},
        {"s": {"t": None}, "l": [], "m": []},
    ]
    file = write_file(tmp_path, "a.parquet", pa.Table.from_pylist(rows, schema))
    new = struct(new=LONG)
    state = scan_state(tmp_path, [column("s", new), column("l", ArrayType(new)), column("m", MapType(STRING, new))])
    blank = {"new": None}
    assert read_rows(state, file) == [
        {"s": blank, "l": [blank, None], "m": [("k", None), ("j", blank)]},
        {"s": None, "l": None, "m": None},
        {"s": blank, "l": [], "m": []},
    ]


def test_only_the_leaves_of_wanted_nested_fields_are_decoded(tmp_path: Path) -> None:
    inner = pa.struct([("a", pa.int64()), ("b", pa.string())])
    schema = pa.schema([("x", pa.int64()), ("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))])
    write_file(tmp_path, "a.parquet", schema.empty_table())
    a = struct(a=LONG)
    columns = [column("s", a), column("l", ArrayType(a)), column("m", MapType(STRING, a))]
    with pq.ParquetFile(tmp_path / "a.parquet") as parquet:
        plan = plan_file(parquet, columns, PROLEPTIC, by_id=False)
        decoded = [parquet.schema.column(leaf).path for leaf in plan.leaves]
    assert decoded == ["s.a", "l.list.element.a", "m.key_value.key", "m.key_value.value.a"]


def test_name_with_a_dot_is_not_taken_for_a_nested_field(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([{"b": 1}]), "a.b": pa.array([2]), "a.b.c": pa.array([3])})
    file = write_file(tmp_path, "a.parquet", table)
    assert read_rows(scan_state(tmp_path, [column("a.b", LONG)]), file) == [{"a.b": 2}]
    assert read_rows(scan_state(tmp_path, [column("a", struct(b=LONG))]), file) == [{"a": {"b": 1}}]
    assert read_rows(scan_state(tmp_path, [column("a.b.c", LONG), column("a", struct(b=LONG))]), file) == [
        {"a.b.c": 3, "a": {"b": 1}}
    ]


def test_name_ignores_case_unless_one_has_the_exact_case(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {"ID": [1], "Name": [2], "name": [3]})
    assert read_rows(scan_state(tmp_path, [column("id", LONG), column("name", LONG)]), file) == [{"id": 1, "name": 3}]


def test_name_that_two_columns_have_in_other_cases_is_refused(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {"Name": [2], "name": [3]})
    with pytest.raises(DataFileError, match=r"a\.parquet.*NAME.*more than once: Name, name"):
        read_rows(scan_state(tmp_path, [column("NAME", LONG)]), file)


def test_column_order_is_the_scans_not_the_files(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", pa.table({"s": pa.array([{"a": 1, "b": 2, "c": 3}]), "x": [0]}))
    state = scan_state(tmp_path, [column("x", LONG), column("s", struct(c=LONG, a=LONG))])
    assert read_rows(state, file) == [{"x": 0, "s": {"c": 3, "a": 1}}]


def test_void_columns_are_null_also_inside_structs(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", pa.table({"s": pa.array([{"a": 1}, None]), "v": pa.array([1, 2])}))
    state = scan_state(tmp_path, [column("v", VOID), column("s", struct(a=LONG, v=VOID))])
    assert read_rows(state, file) == [{"v": None, "s": {"a": 1, "v": None}}, {"v": None, "s": None}]


def test_no_columns_give_batches_that_only_count(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {"x": range(10)})
    batches = read_batches(scan_state(tmp_path, [], batch_rows=4), file)
    assert [(batch.num_rows, batch.num_columns) for batch in batches] == [(4, 0), (4, 0), (2, 0)]


def test_arrow_types_stored_in_the_footer_come_out_as_the_tables(tmp_path: Path) -> None:
    table = pa.table(
        {
            "d": pa.array(["x", None, "x"]).dictionary_encode(),
            "l": pa.array([[1], None, [2, 3]], pa.large_list(pa.int32())),
            "f": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2)),
            "s": pa.array(["a", "b", None], pa.large_string()),
            "v": pa.array(["a", "b", None], pa.string_view()),
            "t": pa.array([1, 2, None], pa.timestamp("us", "Europe/Berlin")),
            "n": pa.nulls(3),
        }
    )
    file = write_file(tmp_path, "a.parquet", table, store_schema=True)
    state = scan_state(
        tmp_path,
        [
            column("d", STRING),
            column("l", ArrayType(LONG)),
            column("f", ArrayType(LONG)),
            column("s", STRING),
            column("v", STRING),
            column("t", TIMESTAMP),
            column("n", DATE),
        ],
    )
    result = read_table(state, file)
    for name in ("d", "l", "f", "s", "v", "n"):
        assert result[name].to_pylist() == table[name].to_pylist()
    assert result["t"].cast(pa.int64()).to_pylist() == [1, 2, None]


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
def test_dictionaries_in_nested_columns_are_read_over_row_groups(tmp_path: Path, kind: str) -> None:
    texts = pa.array(["a", "b", None, "c"] * 3).dictionary_encode()
    offsets = pa.array(range(13), pa.int32())
    values, data_type = {
        "struct": (pa.StructArray.from_arrays([texts], names=["t"]), struct(t=STRING)),
        "list": (pa.ListArray.from_arrays(offsets, texts), ArrayType(STRING)),
        "map": (pa.MapArray.from_arrays(offsets, pa.array(range(12)), texts), MapType(LONG, STRING)),
    }[kind]
    table = pa.table({"x": values})
    file = write_file(tmp_path, "a.parquet", table, store_schema=True, row_group_size=5)
    assert read_rows(scan_state(tmp_path, [column("x", data_type)]), file) == table.to_pylist()


def test_files_of_several_schemas_are_read_in_one_scan(tmp_path: Path) -> None:
    files = [
        write_file(tmp_path, "0", {"x": pa.array([1], pa.int32()), "y": ["a"]}),
        write_file(tmp_path, "1", {"y": ["b"], "x": pa.array([2], pa.int64())}),
        write_file(tmp_path, "2", {"y": ["c"]}),
        write_file(tmp_path, "3", {"x": pa.array([4], pa.int32()), "y": ["d"]}),
    ]
    rows = read_rows(scan_state(tmp_path, [column("x", LONG), column("y", STRING)]), files)
    assert rows == [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}, {"x": None, "y": "c"}, {"x": 4, "y": "d"}]


def test_legacy_list_and_map_layouts_are_read_as_lists_and_maps() -> None:
    """The file is parquet-mr's, in layouts of older writers: a list's element is the repeated field itself, or is in a group of
    another name; a map is annotated MAP_KEY_VALUE; repeated fields have no annotation."""
    x, xy = struct(x=LONG), struct(x=INTEGER, new=STRING, y=INTEGER)
    columns = {
        "two": ArrayType(LONG),
        "bag": ArrayType(STRING),
        "tup": ArrayType(x),
        "arr": ArrayType(xy),
        "bare": ArrayType(INTEGER),
        "bareg": ArrayType(struct(q=INTEGER)),
        "mkv": MapType(STRING, LONG),
    }
    state = scan_state(Path(__file__).parent, [column(name, data_type) for name, data_type in columns.items()])
    empty, null, _, last = read_rows(state, ScanFile("legacy_layouts.parquet", 1))
    assert empty == {name: [] for name in columns}
    assert null == {**dict.fromkeys(columns), "bare": [0], "bareg": [{"q": 0}]}
    assert last == {
        "two": [3, 13, 23],
        "bag": ["s0", None, "s2"],
        "tup": [{"x": 0}, {"x": None}, {"x": 2}],
        "arr": [{"x": 0, "new": None, "y": 100}, {"x": None, "new": None, "y": 101}, {"x": 2, "new": None, "y": 102}],
        "bare": [0, 1, 2],
        "bareg": [{"q": 0}, {"q": None}, {"q": 2}],
        "mkv": [("k0", 0), ("k1", None), ("k2", 2)],
    }


# ---------------------------------------------------------------- column mapping


def test_mapped_names_are_used_at_any_depth_by_name(tmp_path: Path) -> None:
    inner = pa.struct([("p2", pa.int64())])
    rows = [{"p1": {"p2": 1}, "p3": [{"p2": 2}], "p4": [("k", {"p2": 3})]}]
    schema = pa.schema([("p1", inner), ("p3", pa.list_(inner)), ("p4", pa.map_(pa.string(), inner))])
    file = write_file(tmp_path, "a.parquet", pa.Table.from_pylist(rows, schema))
    logical, physical = struct(a=LONG), struct(p2=LONG)
    state = scan_state(
        tmp_path,
        [
            column("s", logical, physical=StructField("p1", physical)),
            column("l", ArrayType(logical), physical=StructField("p3", ArrayType(physical))),
            column("m", MapType(STRING, logical), physical=StructField("p4", MapType(STRING, physical))),
        ],
    )
    assert read_rows(state, file) == [{"s": {"a": 1}, "l": [{"a": 2}], "m": [("k", {"a": 3})]}]


def test_ids_decide_in_id_mode_whatever_names_say(tmp_path: Path) -> None:
    inner = pa.struct([arrow_with_id("x", pa.int64(), 3), arrow_with_id("y", pa.int64(), 2)])
    schema = pa.schema(
        [arrow_with_id("b", pa.int64(), 1), arrow_with_id("l", pa.list_(inner), 4), arrow_with_id("a", pa.int64(), 5)]
    )
    file = write_file(tmp_path, "a.parquet", pa.Table.from_pylist([{"b": 10, "l": [{"x": 30, "y": 20}], "a": 50}], schema))
    logical = StructType((StructField("x", LONG), StructField("gone", LONG)))
    physical = StructType((with_id("x", LONG, 2), with_id("y", LONG, 9)))
    state = scan_state(
        tmp_path,
        [
            column("a", LONG, physical=with_id("a", LONG, 1)),
            column("l", ArrayType(logical), physical=with_id("other", ArrayType(physical), 4)),
            column("b", LONG, physical=with_id("b", LONG, 77)),
        ],
        match_by_id=True,
    )
    assert read_rows(state, file) == [{"a": 10, "l": [{"x": 20, "gone": None}], "b": None}]


def test_ids_are_passed_over_in_name_mode(tmp_path: Path) -> None:
    schema = pa.schema([arrow_with_id("a", pa.int64(), 2), arrow_with_id("b", pa.int64(), 1)])
    file = write_file(tmp_path, "a.parquet", pa.Table.from_pylist([{"a": 1, "b": 2}], schema))
    state = scan_state(tmp_path, [column("a", LONG, physical=with_id("a", LONG, 1))])
    assert read_rows(state, file) == [{"a": 1}]


def test_file_without_ids_in_id_mode_is_refused(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {"a": [1]})
    state = scan_state(tmp_path, [column("a", LONG, physical=with_id("a", LONG, 1))], match_by_id=True)
    with pytest.raises(DataFileError, match=r"a\.parquet.*field id"):
        read_rows(state, file)


# ---------------------------------------------------------------- partition and constant columns


def test_partition_values_are_typed_and_win_over_the_files(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {"x": [1, 2], "p": [7, 7], "q": ["no", "no"]})
    file = replace(file, partition_values={"p": "5", "q": None, "d": "2024-02-29", "phys": "12.30"})
    state = scan_state(
        tmp_path,
        [
            column("p", INTEGER, ColumnSource.PARTITION),
            column("x", LONG),
            column("q", STRING, ColumnSource.PARTITION),
            column("d", DATE, ColumnSource.PARTITION),
            column("n", DecimalType(5, 2), ColumnSource.PARTITION, physical=StructField("phys", DecimalType(5, 2))),
        ],
    )
    table = read_table(state, file)
    assert [str(value) for value in table.slice(0, 1).to_pylist()[0].values()] == ["5", "1", "None", "2024-02-29", "12.30"]
    assert table["x"].to_pylist() == [1, 2]


def test_partition_timestamp_without_offset_uses_scan_time_zone(tmp_path: Path) -> None:
    file = replace(write_file(tmp_path, "a.parquet", {"x": [1]}), partition_values={"t": "2024-01-01 00:00:00"})
    columns = [column("t", TIMESTAMP, ColumnSource.PARTITION)]
    utc = read_table(scan_state(tmp_path, columns), file)["t"].cast(pa.int64())[0].as_py()
    berlin = read_table(scan_state(tmp_path, columns, timezone="Europe/Berlin"), file)["t"].cast(pa.int64())[0].as_py()
    assert utc - berlin == 3600 * 1_000_000


def test_constants_of_a_file_fill_their_columns(tmp_path: Path) -> None:
    file = replace(
        write_file(tmp_path, "a.parquet", {"x": [1, 2]}), constants={"_change_type": ("insert", STRING), "v": (3, LONG)}
    )
    state = scan_state(
        tmp_path,
        [column("x", LONG), column("_change_type", STRING, ColumnSource.CONSTANT), column("v", LONG, ColumnSource.CONSTANT)],
    )
    assert read_rows(state, file) == [{"x": 1, "_change_type": "insert", "v": 3}, {"x": 2, "_change_type": "insert", "v": 3}]


# ---------------------------------------------------------------- batches


def test_batches_hold_at_most_the_rows_asked_for(tmp_path: Path) -> None:
    file = write_file(tmp_path, "a.parquet", {"x": np.arange(10_000)}, row_group_size=3_000)
    batches = read_batches(scan_state(tmp_path, [column("x", LONG)], batch_rows=700), file)
    assert max(batch.num_rows for batch in batches) <= 700
    assert pa.Table.from_batches(batches)["x"].to_pylist() == list(range(10_000))


def test_batches_stay_within_requested_bytes_with_dictionaries(tmp_path: Path) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array(np.arange(3_000, dtype=np.int32) % 3), ["a" * 20_000, "b" * 20_000, "c"])
    files = [write_file(tmp_path, f"{i}.parquet", pa.table({"s": texts, "x": np.arange(3_000)})) for i in range(2)]
    pool = pa.default_memory_pool()
    before, sizes, rows = pool.bytes_allocated(), [], 0
    state = scan_state(tmp_path, [column("x", LONG), column("s", STRING)], batch_bytes=1 << 20)
    for batch in read_batches(state, files[0]):
        sizes.append(batch.nbytes)
    for file in files:
        rows += sum(batch.num_rows for batch in read_batches(state, file))
    assert max(sizes) <= 1 << 20
    assert rows == 6_000
    assert pool.bytes_allocated() - before < 8 << 20


# ---------------------------------------------------------------- files that cannot be read


def test_missing_file_is_named_with_the_option_that_skips_it(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"gone\.parquet is missing.*ignoreMissingFiles") as caught:
        read_rows(scan_state(tmp_path, [column("x", LONG)]), ScanFile("gone.parquet", 10))
    assert caught.value.error_class == "DELTA_FILE_NOT_FOUND_DETAILED"


def test_ignore_missing_files_skips_them_with_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    there = write_file(tmp_path, "a.parquet", {"x": [1]})
    state = scan_state(tmp_path, [column("x", LONG)], ignore_missing_files=True)
    with caplog.at_level(logging.WARNING):
        rows = read_rows(state, [ScanFile("gone1", 1), there, ScanFile("gone2", 1)])
    assert rows == [{"x": 1}]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "gone1" in caplog.text


def test_missing_file_in_a_change_suggests_fsck_repair(tmp_path: Path) -> None:
    state = scan_state(tmp_path, [column("x", LONG)], to_write=True)
    with pytest.raises(DataFileError, match=r"gone\.parquet is missing.*FSCK REPAIR TABLE.*No option"):
        read_rows(state, ScanFile("gone.parquet", 10))


@pytest.mark.parametrize("options", [{}, {"to_write": True}, {"row_address": True}], ids=str)
def test_rows_that_are_read_to_be_written_are_of_all_files(tmp_path: Path, options: dict[str, bool]) -> None:
    write_delta(str(tmp_path), pa.table({"x": [1]}))
    scan = plan_scan(DeltaTable(str(tmp_path)).snapshot, options=ScanOptions(ignore_missing_files=True, **options))
    assert scan.state.ignore_missing_files is (not options)


def test_python_reads_pass_over_missing_files_when_asked(tmp_path: Path) -> None:
    path = str(tmp_path)
    write_delta(path, pa.table({"x": [1]}), configuration={"delta.enableChangeDataFeed": "true"})
    write_delta(path, pa.table({"x": [2]}), mode="append")
    table = DeltaTable(path)
    (tmp_path / DeltaTable(path, version=0).files()["path"][0].as_py()).unlink()
    reads: list[Callable[..., pa.Table]] = [
        table.to_arrow,
        lambda **named: table.to_batches(**named).read_all(),
        lambda **named: pa.Table.from_pandas(table.to_pandas(**named)),
        lambda **named: table.changes(starting_version=0, **named).read_all(),
    ]
    for read in reads:
        with pytest.raises(DataFileError, match="ignore_missing_files=True"):
            read()
        assert read(ignore_missing_files=True)["x"].to_pylist() == [2]


def test_ignore_missing_files_does_not_ignore_missing_vectors(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pa.table({"x": range(4000)}), configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(str(tmp_path)).delete("x % 3 = 0")
    next(tmp_path.glob("deletion_vector_*")).unlink()
    with pytest.raises(DeletionVectorError, match="DELTA_DELETION_VECTOR_FILE_NOT_FOUND"):
        DeltaTable(str(tmp_path)).to_arrow(ignore_missing_files=True)


@pytest.mark.parametrize("damage", ["empty", "short", "middle", "garbage"])
def test_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    file = write_file(tmp_path, "a.parquet", {"x": np.random.default_rng(0).integers(0, 1 << 60, 50_000)})
    path = tmp_path / "a.parquet"
    data = path.read_bytes()
    file_bytes = {
        "empty": b"",
        "short": data[: len(data) // 2],
        "middle": data[:4] + bytes(len(data) - 2_000) + data[-1_996:],
        "garbage": bytes(reversed(data)),
    }
    path.write_bytes(file_bytes[damage])
    with pytest.raises(DataFileError, match=r"Data file a\.parquet") as caught:
        read_rows(scan_state(tmp_path, [column("x", LONG)]), file)
    assert caught.value.message_parameters["path"] == "a.parquet"


def test_file_by_absolute_path_and_by_uri_outside_of_the_table(tmp_path: Path) -> None:
    write_file(tmp_path, "other dir/a%20b.parquet", {"x": [1]})
    path = str(tmp_path / "other dir/a%20b.parquet")
    state = scan_state(tmp_path / "table", [column("x", LONG)])
    assert read_rows(state, [ScanFile(path, 1), ScanFile(f"file://{path}", 1)]) == [{"x": 1}, {"x": 1}]
