"""Data files: their content, their places, and what remains if writing fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py.errors import InvariantViolationError, StorageError
from delta_py.protocol.column_mapping import assign as assign_names
from delta_py.protocol.features import Properties
from delta_py.row_rules.write_state import FileLayout, WriteState
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectInfo
from delta_py.types.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VARIANT_ARROW,
    VOID,
    ArrayType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    from_arrow_schema,
    to_arrow_schema,
)
from delta_py.write.data_files import WrittenFiles, combine_batches, delete_files, delete_files_of, write_files, write_unchanged
from delta_py.write.partition_split import split_by_partition

ROW: dict[str, Any] = {
    "l": 2**40,
    "i": -5,
    "sh": 300,
    "b": 7,
    "f": 0.5,
    "d": -0.0,
    "bo": True,
    "s": "é\n",
    "bi": b"\x00\xff",
    "da": date(1500, 1, 1),
    "ts": datetime(2024, 5, 6, 7, 8, 9, 123456, UTC),
    "ntz": datetime(2024, 5, 6, 7, 8, 9, 123456),
    "dec": Decimal("12345678901234567890.12"),
    "st": {"x": 1, "y": [{"z": "a"}, None]},
    "m": [("k", [1, None])],
}
SCHEMA = StructType(
    (
        StructField("l", LONG, nullable=False),
        StructField("i", INTEGER),
        StructField("sh", SHORT),
        StructField("b", BYTE),
        StructField("f", FLOAT),
        StructField("d", DOUBLE),
        StructField("bo", BOOLEAN),
        StructField("s", STRING),
        StructField("bi", BINARY),
        StructField("da", DATE),
        StructField("ts", TIMESTAMP),
        StructField("ntz", TIMESTAMP_NTZ),
        StructField("dec", DecimalType(22, 2)),
        StructField(
            "st",
            StructType((StructField("x", LONG), StructField("y", ArrayType(StructType((StructField("z", STRING),)))))),
        ),
        StructField("m", MapType(STRING, ArrayType(LONG))),
    )
)


def state(root: Path, schema: StructType, *partitions: str, **options: Any) -> WriteState:
    """options: of WriteState, or of its layout."""
    layout = {name: options.pop(name) for name in [*options] if name in FileLayout.__slots__}
    return WriteState(LocalStore(str(root)), 0, schema, partitions, layout=FileLayout(**layout), **options)


def batch_of(schema: StructType, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(schema))


def files_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def read(root: Path, path: str) -> pa.Table:
    return pq.ParquetFile(root / path).read()


# ---------------------------------------------------------------- what is in a file


def test_write_files_every_type_reads_back_as_it_was(tmp_path: Path) -> None:
    rows = [ROW, {name: None for name in ROW} | {"l": 0}]
    written = write_files(state(tmp_path, SCHEMA), [batch_of(SCHEMA, rows)])
    (add,) = written.adds
    assert read(tmp_path, add.path).to_pylist() == rows
    assert add.size_bytes == (tmp_path / add.path).stat().st_size == written.size_bytes
    assert written.row_count == 2
    assert add.path.endswith(".c000.zstd.parquet") and "/" not in add.path
    assert add.partition_values == {} and add.data_change


def test_write_files_parquet_types_are_those_of_the_protocol(tmp_path: Path) -> None:
    (add,) = write_files(state(tmp_path, SCHEMA), [batch_of(SCHEMA, [ROW])]).adds
    parquet = pq.ParquetFile(tmp_path / add.path)
    columns = {parquet.schema.column(i).path: parquet.schema.column(i) for i in range(len(parquet.schema))}
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in str(columns["ts"].logical_type)
    assert "isAdjustedToUTC=false, timeUnit=microseconds" in str(columns["ntz"].logical_type)
    assert columns["dec"].physical_type == "FIXED_LEN_BYTE_ARRAY"
    assert {"m.key_value.key", "m.key_value.value.list.element", "st.y.list.element.z"} <= set(columns)
    assert columns["l"].max_definition_level == 1, "columns are optional in files"
    assert parquet.metadata.row_group(0).column(0).compression == "ZSTD"
    assert parquet.metadata.row_group(0).column(0).has_offset_index
    assert b"ARROW:schema" not in (parquet.metadata.metadata or {})


def test_write_files_statistics_are_of_the_chosen_columns(tmp_path: Path) -> None:
    chosen = (("l",), ("s",), ("st", "x"))
    rows = [ROW, {name: None for name in ROW} | {"l": 0}]
    (add,) = write_files(
        state(tmp_path, SCHEMA, stats_columns=chosen), [batch_of(SCHEMA, rows[:1]), batch_of(SCHEMA, rows[1:])]
    ).adds
    assert orjson.loads(add.stats or "") == {
        "numRecords": 2,
        "minValues": {"l": 0, "s": "é\n", "st": {"x": 1}},
        "maxValues": {"l": 2**40, "s": "é\n", "st": {"x": 1}},
        "nullCount": {"l": 0, "s": 1, "st": {"x": 1}},
        "tightBounds": True,
    }


@pytest.mark.parametrize(
    ("codec", "ending", "in_file"),
    [("snappy", ".snappy.parquet", "SNAPPY"), ("gzip", ".gz.parquet", "GZIP"), ("none", ".c000.parquet", "UNCOMPRESSED")],
)
def test_write_files_compression_is_in_name_and_file(tmp_path: Path, codec: str, ending: str, in_file: str) -> None:
    (add,) = write_files(state(tmp_path, SCHEMA, compression=codec), [batch_of(SCHEMA, [ROW])]).adds
    assert add.path.endswith(ending)
    assert pq.read_metadata(tmp_path / add.path).row_group(0).column(0).compression == in_file


def test_write_files_void_column_is_left_out_of_the_file(tmp_path: Path) -> None:
    schema = StructType((StructField("a", LONG), StructField("v", VOID)))
    (add,) = write_files(state(tmp_path, schema), [pa.record_batch({"a": [1], "v": pa.nulls(1)})]).adds
    assert read(tmp_path, add.path).column_names == ["a"]


VARIANTS = StructType(
    (
        StructField("id", LONG),
        StructField("v", VARIANT),
        StructField("st", StructType((StructField("v", VARIANT), StructField("x", LONG)))),
        StructField("l", ArrayType(VARIANT)),
        StructField("m", MapType(STRING, StructType((StructField("v", VARIANT),)))),
    )
)
ONE = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}


def variant_rows(null: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": 1,
            "v": ONE,
            "st": {"v": ONE, "x": 1},
            "l": [ONE, null],
            "m": [("a", {"v": ONE}), ("b", {"v": null}), ("c", None)],
        },
        {"id": 2, "v": null, "st": {"v": null, "x": 2}, "l": [null], "m": []},
        {"id": 3, "v": null, "st": None, "l": None, "m": None},
        {"id": 4, "v": ONE, "st": {"v": ONE, "x": None}, "l": [], "m": [("d", {"v": ONE})]},
    ]


def null_variants_of_null_parts() -> pa.RecordBatch:
    """The rows as Spark sends them: below a null variant both parts are null."""
    parts = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])

    def loose(kind: pa.DataType) -> pa.DataType:
        if kind == VARIANT_ARROW:
            return parts
        if pa.types.is_map(kind):
            return pa.map_(kind.key_type, loose(kind.item_type))
        if pa.types.is_list(kind):
            return pa.list_(loose(kind.value_type))
        return pa.struct([(f.name, loose(f.type)) for f in kind]) if pa.types.is_struct(kind) else kind

    def strict(array: pa.Array, kind: pa.DataType) -> pa.Array:
        if kind == VARIANT_ARROW:
            value, metadata = array.field(0), array.field(1)
            return pa.StructArray.from_arrays([value, metadata], fields=list(kind), mask=value.is_null())
        if pa.types.is_struct(kind):
            children = [strict(array.field(i), kind.field(i).type) for i in range(kind.num_fields)]
            return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
        if pa.types.is_map(kind):
            items = strict(array.items, kind.item_type)
            return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=kind, mask=array.is_null())
        if pa.types.is_list(kind):
            return pa.ListArray.from_arrays(array.offsets, strict(array.values, kind.value_type), type=kind, mask=array.is_null())
        return array

    rows = variant_rows({"value": None, "metadata": None})
    schema = to_arrow_schema(VARIANTS)
    arrays = [strict(pa.array([row[f.name] for row in rows], loose(f.type)), f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@pytest.mark.parametrize("write", [write_files, write_unchanged])
def test_write_null_variants_at_every_depth_read_back_as_null(tmp_path: Path, write: Any) -> None:
    batches = [null_variants_of_null_parts().slice(1), null_variants_of_null_parts().slice(0, 1)]
    (add,) = write(state(tmp_path, VARIANTS, stats_columns=(("id",), ("v",))), batches).adds
    assert sorted(read(tmp_path, add.path).to_pylist(), key=lambda row: row["id"]) == variant_rows(None)
    assert orjson.loads(add.stats or "")["nullCount"] == {"id": 0, "v": 2}
    columns = pq.ParquetFile(tmp_path / add.path).schema
    parts = {columns.column(i).path: columns.column(i).max_definition_level for i in range(len(columns))}
    assert parts["v.value"] == parts["v.metadata"] == 1, "the parts of a variant are required in files"


def test_write_column_of_null_variants_only(tmp_path: Path) -> None:
    batch = pa.record_batch({"id": [1], "v": pa.nulls(1)})
    (add,) = write_files(state(tmp_path, VARIANTS), [batch]).adds
    assert read(tmp_path, add.path).to_pylist() == [{"id": 1, "v": None, "st": None, "l": None, "m": None}]


def test_write_files_keeps_void_columns_without_other_columns(tmp_path: Path) -> None:
    schema = StructType((StructField("v", VOID),))
    (add,) = write_unchanged(state(tmp_path, schema), [pa.record_batch({"v": pa.nulls(2)})]).adds
    assert read(tmp_path, add.path).to_pylist() == [{"v": None}] * 2


def test_write_files_no_rows_give_no_file(tmp_path: Path) -> None:
    assert write_files(state(tmp_path, SCHEMA), [batch_of(SCHEMA, [])]) == WrittenFiles()
    assert files_below(tmp_path) == set()


def test_write_files_writes_physical_names_and_field_ids(tmp_path: Path) -> None:
    inner = StructType((StructField("a b", LONG),))
    logical = StructType(
        (
            StructField("p q", STRING),
            StructField("s", inner),
            StructField("l", ArrayType(inner)),
            StructField("m", MapType(STRING, inner)),
        )
    )
    schema, last = assign_names(logical, lambda f: f"col-{f.name.replace(' ', '_')}", Properties({}))
    rows = [
        {"p q": "x", "s": {"a b": 1}, "l": [{"a b": 2}], "m": [("k", {"a b": 3})]},
        {"p q": None, "s": None, "l": [None], "m": []},
    ]
    named = state(tmp_path, schema, "p q", column_mapping_mode="name", stats_columns=(("col-s", "col-a_b"),))
    first, second = sorted(write_files(named, [batch_of(logical, rows)]).adds, key=lambda add: str(add.partition_values))
    assert {str(add.partition_values["col-p_q"]) for add in (first, second)} == {"x", "None"}
    filled = first if first.partition_values["col-p_q"] == "x" else second
    table = read(tmp_path, filled.path)
    assert table.to_pylist() == [{"col-s": {"col-a_b": 1}, "col-l": [{"col-a_b": 2}], "col-m": [("k", {"col-a_b": 3})]}]
    ids = [table.schema.field(n).metadata[b"PARQUET:field_id"] for n in ("col-s", "col-l", "col-m")]
    assert ids == [str(f.metadata["delta.columnMapping.id"]).encode() for f in schema.fields[1:]]
    assert table.schema.field("col-s").type.field(0).metadata[b"PARQUET:field_id"] not in ids and last == 7
    assert orjson.loads(filled.stats or "")["minValues"] == {"col-s": {"col-a_b": 1}}


# ---------------------------------------------------------------- partitions

PARTITIONED = StructType((StructField("n", LONG), StructField("d", DATE), StructField("s", STRING)))


def test_write_files_omits_partition_columns_in_hive_directories(tmp_path: Path) -> None:
    day = date(2024, 1, 2)
    rows = [
        {"n": 1, "d": day, "s": "a/b c%"},
        {"n": 2, "d": None, "s": ""},
        {"n": 3, "d": day, "s": "a/b c%"},
        {"n": 4, "d": None, "s": None},
    ]
    written = write_files(state(tmp_path, PARTITIONED, "d", "s"), [batch_of(PARTITIONED, rows)])
    rows_by_directory = {
        str(Path(add.path).parent): (dict(add.partition_values), read(tmp_path, add.path).to_pydict()) for add in written.adds
    }
    assert rows_by_directory == {
        "d=2024-01-02/s=a%2Fb c%25": ({"d": "2024-01-02", "s": "a/b c%"}, {"n": [1, 3]}),
        "d=__HIVE_DEFAULT_PARTITION__/s=__HIVE_DEFAULT_PARTITION__": ({"d": None, "s": None}, {"n": [2, 4]}),
    }


def test_write_files_partition_columns_can_be_kept_in_the_files(tmp_path: Path) -> None:
    keeping_state = state(tmp_path, PARTITIONED, "s", keep_partition_columns=True)
    (add,) = write_files(keeping_state, [batch_of(PARTITIONED, [{"n": 1, "d": None, "s": "x"}])]).adds
    assert read(tmp_path, add.path).column_names == ["n", "d", "s"]


def test_write_files_puts_a_too_long_partition_value_at_the_root(tmp_path: Path) -> None:
    (add,) = write_files(state(tmp_path, PARTITIONED, "s"), [batch_of(PARTITIONED, [{"n": 1, "d": None, "s": "é" * 200}])]).adds
    assert "/" not in add.path and add.partition_values == {"s": "é" * 200}


def test_split_refuses_empty_text_in_required_partition_column() -> None:
    required = StructField("s", STRING, nullable=False)
    with pytest.raises(InvariantViolationError, match="s") as caught:
        list(split_by_partition(pa.record_batch({"s": ["a", ""]}), (required,)))
    assert caught.value.error_class == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"


@pytest.mark.parametrize(
    ("kind", "values", "texts"),
    [
        (BOOLEAN, [True, False, None], ["true", "false", None]),
        (DOUBLE, [float("nan"), 1.5, -0.0], ["NaN", "1.5", "-0.0"]),
        (DecimalType(5, 2), [Decimal("1.10"), Decimal("-0.05")], ["1.10", "-0.05"]),
        (INTEGER, [3, None, -1], ["3", None, "-1"]),
        (BINARY, [b"ab", None], ["ab", None]),
    ],
)
def test_split_values_have_their_protocol_text(kind: Any, values: list[Any], texts: list[str | None]) -> None:
    schema = StructType((StructField("p", kind),))
    parts = list(split_by_partition(batch_of(schema, [{"p": v} for v in values] * 2), schema.fields))
    assert sorted(parts, key=str)[0][0] is not None
    assert Counter(key for key, part in parts for _ in range(part.num_rows)) == Counter({(text,): 2 for text in texts})


# ---------------------------------------------------------------- sizes and limits


def test_write_files_new_file_is_begun_at_the_target_size(tmp_path: Path) -> None:
    schema = StructType((StructField("n", LONG),))
    batches = [pa.record_batch({"n": range(i * 1000, (i + 1) * 1000)}) for i in range(6)]
    written = write_files(state(tmp_path, schema, target_file_bytes=1, row_group_bytes=16_000), batches)
    assert [read(tmp_path, add.path).num_rows for add in written.adds] == [2000, 2000, 2000]
    assert sorted(n for add in written.adds for n in read(tmp_path, add.path)["n"].to_pylist()) == list(range(6000))
    assert len({add.path for add in written.adds}) == 3


def sizes(batches: Iterable[pa.RecordBatch], *most_bytes: int) -> list[int]:
    return [batch.num_rows for batch in combine_batches(batches, *most_bytes)]


def test_gathered_batches_are_of_many_rows_and_in_order() -> None:
    small = [pa.record_batch({"n": range(i, i + 2048)}) for i in range(0, 204_800, 2048)]
    assert sizes(small) == [65_536, 65_536, 65_536, 8_192]
    assert pa.Table.from_batches(combine_batches(small))["n"].to_pylist() == list(range(204_800))
    assert sizes([]) == [] and sizes([pa.record_batch({"n": range(70_000)})] * 2) == [70_000, 70_000]


def test_gathered_batches_are_bounded_in_bytes() -> None:
    wide = pa.record_batch({"s": ["x" * 1_000_000] * 9})
    assert sizes([wide] * 5) == [18, 18, 9]
    assert sizes([wide] * 5, 1) == [9] * 5


def test_gathered_batches_have_one_schema_each() -> None:
    n, m = pa.record_batch({"n": [1, 2]}), pa.record_batch({"n": [1], "m": ["x"]})
    combined = combine_batches([n, n, m, n])
    assert [(batch.num_rows, batch.schema) for batch in combined] == [(4, n.schema), (1, m.schema), (2, n.schema)]


def test_write_files_many_small_batches_make_one_row_group(tmp_path: Path) -> None:
    schema = StructType((StructField("n", LONG),))
    (add,) = write_files(state(tmp_path, schema), [pa.record_batch({"n": [i]}) for i in range(50)]).adds
    assert pq.read_metadata(tmp_path / add.path).num_row_groups == 1


class _CountingStore(LocalStore):
    """Counts open data files, and can fail a write."""

    def __init__(self, root: str, fail_after_bytes: int | None = None) -> None:
        super().__init__(root)
        self.open_now = self.most_open = 0
        self.fail_after_bytes = fail_after_bytes

    def open_output(self, path: str) -> pa.NativeFile:
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        return pa.PythonFile(_Counted(self, super().open_output(path)), mode="w")


class _Counted:
    def __init__(self, store: _CountingStore, inner: pa.NativeFile) -> None:
        self._store, self._inner, self.closed, self._position = store, inner, False, 0

    def write(self, data: bytes) -> int:
        limit = self._store.fail_after_bytes
        if limit is not None and self._position > limit:
            raise OSError(28, "No space left on device")
        self._position += len(data)
        return int(self._inner.write(data))

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        self._inner.flush()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._store.open_now -= 1
            self._inner.close()


def test_write_files_open_files_and_waiting_rows_are_bounded(tmp_path: Path) -> None:
    schema = StructType((StructField("n", LONG), StructField("p", LONG)))
    store = _CountingStore(str(tmp_path))
    limited = state(tmp_path, schema, "p", max_open_files=4, buffer_bytes=8_000)
    batches = [pa.record_batch({"n": range(i, i + 1000), "p": [v % 40 for v in range(1000)]}) for i in range(0, 5000, 1000)]
    written = write_files(replace(limited, store=store), batches)
    assert store.most_open <= 5 and store.open_now == 0
    assert written.row_count == 5000
    rows = Counter(
        (int(add.partition_values["p"] or 0), n) for add in written.adds for n in read(tmp_path, add.path)["n"].to_pylist()
    )
    assert rows == Counter((n % 1000 % 40, n) for n in range(5000))


def test_write_files_wide_batch_is_taken_in_pieces(tmp_path: Path) -> None:
    schema = StructType((StructField("s", STRING),))
    wide = pa.record_batch({"s": ["x" * 1_000_000] * 40})
    (add,) = write_files(state(tmp_path, schema, row_group_bytes=20_000_000), [wide]).adds
    footer = pq.read_metadata(tmp_path / add.path)
    assert footer.num_rows == 40 and footer.num_row_groups == 2


# ---------------------------------------------------------------- failures


def test_write_files_failing_batches_leave_no_file_behind(tmp_path: Path) -> None:
    schema = from_arrow_schema(pa.schema([("n", pa.int64())]))

    def batches() -> Any:
        yield pa.record_batch({"n": range(10_000)})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_files(state(tmp_path, schema, row_group_bytes=1), batches())
    assert files_below(tmp_path) == set()


def test_write_files_unlawful_later_row_leaves_no_file_behind(tmp_path: Path) -> None:
    schema = StructType((StructField("n", LONG, nullable=False), StructField("p", LONG)))
    good, bad = (
        pa.record_batch({"n": [1, 2], "p": [1, 2]}),
        pa.record_batch({"n": [None], "p": [1]}, schema=pa.schema([("n", pa.int64()), ("p", pa.int64())])),
    )
    with pytest.raises(InvariantViolationError):
        write_files(state(tmp_path, schema, "p", row_group_bytes=1), [good, bad])
    assert files_below(tmp_path) == set()


def test_write_files_on_a_full_disk_fails_and_leaves_no_file(tmp_path: Path) -> None:
    schema = StructType((StructField("n", LONG), StructField("p", LONG)))
    store = _CountingStore(str(tmp_path), fail_after_bytes=3)
    full = replace(state(tmp_path, schema, "p", row_group_bytes=1), store=store)
    with pytest.raises(StorageError, match="No space left"):
        write_files(full, [pa.record_batch({"n": [1, 2], "p": [1, 2]})])
    assert files_below(tmp_path) == set() and store.open_now == 0


def test_written_files_of_all_parts_keeps_order_and_sums(tmp_path: Path) -> None:
    schema = StructType((StructField("n", LONG),))
    parts = [write_files(state(tmp_path, schema), [pa.record_batch({"n": range(rows)})], task=rows) for rows in (1, 2)]
    combined = WrittenFiles.of_all(parts)
    assert combined.adds == parts[0].adds + parts[1].adds
    assert (combined.row_count, combined.size_bytes) == (3, sum(add.size_bytes for add in combined.adds))
    assert combined.adds[1].path.startswith("part-00002-")
    assert combined.new_paths == tuple(add.path for add in combined.adds)


# ---------------------------------------------------------------- files that nobody needs


class _Refusing(LocalStore):
    """Deletes only files named `last`, and lists nothing if it must not."""

    error: Exception
    lists = True

    def delete(self, path: str) -> None:
        if path != "last":
            raise self.error
        super().delete(path)

    def list_recursive(self, path: str) -> Iterator[ObjectInfo]:
        if not self.lists:
            raise self.error
        return super().list_recursive(path)


@pytest.mark.parametrize("error", [PermissionError("no right"), StorageError("no right")])
def test_what_cannot_be_deleted_is_no_error_and_the_rest_goes(tmp_path: Path, error: Exception) -> None:
    """The commit may be complete by then, as after a settled conflict: an error would say that it is not."""
    store = _Refusing(str(tmp_path))
    store.error = error
    for name in ("first-id-1", "last"):
        (tmp_path / name).write_bytes(b"")
    delete_files(store, ["first-id-1", "last"])
    assert files_below(tmp_path) == {"first-id-1"}
    assert delete_files_of(store, "id") == 1
    store.lists = False
    assert delete_files_of(store, "id") == 0
    assert files_below(tmp_path) == {"first-id-1"}
