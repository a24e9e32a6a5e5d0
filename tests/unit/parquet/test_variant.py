"""Variant columns of files, in all layouts, as variant binary; damaged ones are refused."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py.errors import DataFileError
from delta_py.parquet.values.conform_values import CannotRead
from delta_py.parquet.values.variant import variant_converter
from delta_py.types.schema import INTEGER, STRING, VARIANT, VARIANT_ARROW, ArrayType, MapType, StructField, StructType
from tests.support.oracles.variants import decode, encode, encode_metadata, group_type, names_in, shred
from tests.support.tables.data_files import column, read_rows, read_table, scan_state, write_file

PLAIN = {"value": encode({"a": [1, "x"]}, ["a"]), "metadata": encode_metadata(["a"])}


def rebuild(rows: list[Any], arrow: pa.DataType) -> list[Any]:
    """The values of shredded rows; a tuple around each, None for a null variant."""
    array = pa.array(rows, arrow)
    convert = variant_converter("v", arrow)
    assert convert is not None
    rebuilt = convert(array)
    rebuilt.validate(full=True)
    assert rebuilt.type == VARIANT_ARROW
    return [None if row is None else (decode(row["value"], row["metadata"]),) for row in rebuilt.to_pylist()]


# ---------------------------------------------------------------- unshredded


def test_unshredded_variant_as_spark_writes_it_passes_as_it_is(tmp_path: Path) -> None:
    table = pa.table({"v": pa.array([PLAIN, None], VARIANT_ARROW)})
    rows = read_rows(scan_state(tmp_path, [column("v", VARIANT)]), write_file(tmp_path, "a", table))
    assert rows == [{"v": PLAIN}, {"v": None}]


def test_unshredded_variant_is_read_by_field_names_not_by_order(tmp_path: Path) -> None:
    arrow = pa.struct([pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary())])
    table = pa.table({"v": pa.array([PLAIN, None, {"metadata": b"\x01\x00\x00", "value": None}], arrow)})
    result = read_table(scan_state(tmp_path, [column("v", VARIANT)]), write_file(tmp_path, "a", table))
    assert result["v"].to_pylist() == [PLAIN, None, {"value": b"\x00", "metadata": b"\x01\x00\x00"}]


def test_nested_variants_are_read_shredded_or_not(tmp_path: Path) -> None:
    schema = pa.struct([("a", pa.int64())])
    for number, arrow in enumerate([VARIANT_ARROW, group_type(schema)]):
        make = (lambda _: PLAIN) if number == 0 else (lambda v: shred(v, schema))
        value = {"a": [1, "x"]} if number == 0 else {"a": 5, "b": [None]}
        fields = [
            ("s", pa.struct([("i", pa.int32()), ("v", arrow)])),
            ("l", pa.list_(arrow)),
            ("m", pa.map_(pa.string(), arrow)),
        ]
        rows = [
            {"s": {"i": 1, "v": make(value)}, "l": [make(value), None], "m": [("k", make(value)), ("n", None)]},
            {"s": None, "l": None, "m": None},
        ]
        file = write_file(tmp_path, f"{number}", pa.Table.from_pylist(rows, pa.schema(fields)))
        struct = StructType((StructField("v", VARIANT), StructField("i", INTEGER)))
        columns = [column("s", struct), column("l", ArrayType(VARIANT)), column("m", MapType(STRING, VARIANT))]
        first, second = read_rows(scan_state(tmp_path, columns), file)

        def decoded(row: Any) -> Any:
            return decode(row["value"], row["metadata"])

        assert second == {"s": None, "l": None, "m": None}
        assert decoded(first["s"]["v"]) == value and first["s"]["i"] == 1
        assert decoded(first["l"][0]) == value and first["l"][1] is None
        assert decoded(first["m"][0][1]) == value and first["m"][1] == ("n", None)


# ---------------------------------------------------------------- shredded


def test_missing_value_of_a_present_variant_is_the_variant_null() -> None:
    arrow = group_type(pa.int64())
    blank = {"metadata": encode_metadata([]), "value": None, "typed_value": None}
    assert rebuild([blank, None, shred(None, pa.int64())], arrow) == [(None,), None, (None,)]


def test_empty_metadata_of_two_bytes_is_taken() -> None:
    row = {"metadata": b"\x01\x00", "value": None, "typed_value": 34}
    assert rebuild([row], group_type(pa.int64())) == [(34,)]


def test_value_that_does_not_fit_the_schema_stays_encoded() -> None:
    values = [34, "n/a", {"x": 1}, [1], None, 2.5]
    assert rebuild([shred(value, pa.int64()) for value in values], group_type(pa.int64())) == [(value,) for value in values]


def test_partly_shredded_object_has_all_fields_in_name_order() -> None:
    schema = pa.struct([("m", pa.int64()), ("b", pa.string())])
    values = [{"a": 1, "b": "B", "m": 2, "z": None}, {}, {"z": {"b": 1}}, {"m": "no number"}, {"b": None}, "text"]
    assert rebuild([shred(value, schema) for value in values], group_type(schema)) == [(value,) for value in values]


def test_large_arrays_and_objects_use_wide_ids_and_offsets() -> None:
    schema = pa.struct([("k000", pa.int64()), ("list", pa.list_(pa.string()))])
    value = {f"k{i:03}": i for i in range(300)} | {"list": ["é" * (i % 90) for i in range(700)] + [None]}
    assert rebuild([shred(value, schema)] * 2, group_type(schema)) == [(value,)] * 2


def test_field_in_both_places_is_taken_from_the_typed_one() -> None:
    schema, names = pa.struct([("a", pa.int64())]), ["a", "b"]
    typed = {"a": {"value": None, "typed_value": 1}}
    row = {"metadata": encode_metadata(names), "value": encode({"a": 9, "b": 2}, names), "typed_value": typed}
    assert rebuild([row], group_type(schema)) == [({"a": 1, "b": 2},)]


def test_group_without_a_value_column_is_read_from_typed_values() -> None:
    element = pa.struct([("typed_value", pa.int64())])
    arrow = pa.struct([("metadata", pa.binary()), ("typed_value", pa.list_(element))])
    row = {"metadata": encode_metadata([]), "typed_value": [{"typed_value": 1}, {"typed_value": None}]}
    assert rebuild([row], arrow) == [([1, None],)]


PRIMITIVES = [
    (pa.int8(), -5, -5),
    (pa.int16(), -300, -300),
    (pa.int32(), 2**31 - 1, 2**31 - 1),
    (pa.float32(), 1.5, 1.5),
    (pa.decimal128(9, 2), Decimal("-1234567.89"), Decimal("-1234567.89")),
    (pa.decimal128(18, 3), Decimal("123456789012.345"), Decimal("123456789012.345")),
    (
        pa.decimal128(38, 10),
        Decimal("-1234567890123456789012345678.0123456789"),
        Decimal("-1234567890123456789012345678.0123456789"),
    ),
    (pa.date32(), date(1970, 1, 11), 10),
    (pa.timestamp("us", "UTC"), datetime(1970, 1, 1, 0, 0, 1), 1_000_000),
    (pa.timestamp("us"), datetime(1969, 12, 31, 23, 59, 59), -1_000_000),
    (pa.timestamp("ns", "UTC"), 5, 5),
    (pa.timestamp("ns"), 7, 7),
    (pa.time64("us"), time(0, 0, 1), 1_000_000),
    (pa.binary(16), bytes(range(16)), bytes(range(16)).hex()),
    (pa.binary(), b"", b""),
    (pa.bool_(), False, False),
    (pa.string(), "x" * 64, "x" * 64),
]


@pytest.mark.parametrize(("arrow", "stored", "expected"), PRIMITIVES, ids=lambda value: str(value)[:30])
def test_primitive_of_every_type_is_encoded(arrow: pa.DataType, stored: Any, expected: Any) -> None:
    rows = [{"metadata": b"\x01\x00\x00", "value": None, "typed_value": value} for value in (stored, None, stored)]
    assert rebuild(rows, group_type(arrow)) == [(expected,), (None,), (expected,)]


def test_rows_larger_than_a_piece_are_rebuilt_whole() -> None:
    schema = pa.struct([("t", pa.string())])
    values = [{"t": "y" * 1_500_000, "rest": i} for i in range(7)]
    assert rebuild([shred(value, schema) for value in values], group_type(schema)) == [(value,) for value in values]


def test_varying_metadata_gives_each_row_its_field_ids() -> None:
    schema = pa.struct([("n", pa.int64())])
    values = [{"n": i, **{f"f{j}": j for j in range(i)}} for i in range(20)]
    assert rebuild([shred(value, schema) for value in values], group_type(schema)) == [(value,) for value in values]


def test_variant_files_of_both_layouts_in_one_scan(tmp_path: Path) -> None:
    values = [{"a": 1, "b": [True]}, "x", None]
    schema = pa.struct([("a", pa.int64())])
    plain = [{"value": encode(v, names_in(v)), "metadata": encode_metadata(names_in(v))} for v in values]
    files = [
        write_file(tmp_path, "0", pa.table({"v": pa.array([shred(v, schema) for v in values], group_type(schema))})),
        write_file(tmp_path, "1", pa.table({"v": pa.array(plain, VARIANT_ARROW)})),
    ]
    rows = read_rows(scan_state(tmp_path, [column("v", VARIANT)]), files)
    assert [decode(row["v"]["value"], row["v"]["metadata"]) for row in rows] == values * 2


# ---------------------------------------------------------------- damage


def object_row(**changes: Any) -> dict[str, Any]:
    row = shred({"a": 1, "zz": [1, 2]}, pa.struct([("a", pa.int64())]))
    return {**row, **changes}


DAMAGED = {
    "no metadata": object_row(metadata=b""),
    "metadata of another version": object_row(metadata=b"\x02" + encode_metadata(["a", "zz"])[1:]),
    "metadata cut short": object_row(metadata=encode_metadata(["a", "zz"])[:4]),
    "metadata with an absurd count": object_row(metadata=b"\xc1\xff\xff\xff\xff\x00"),
    "metadata without the shredded name": object_row(metadata=encode_metadata(["b", "zz"])),
    "field id beyond the metadata": object_row(metadata=encode_metadata(["a"])),
    "object cut short": object_row(value=object_row()["value"][:-3]),
    "object with an absurd count": object_row(value=bytes([0b01000010, 0xFF, 0xFF, 0xFF, 0x7F])),
    "empty value": object_row(value=b""),
    "field of an unknown type": object_row(value=bytes([2, 1, 1, 0, 1, 63 << 2])),
}


@pytest.mark.parametrize("row", DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_variant_is_an_error(row: dict[str, Any]) -> None:
    with pytest.raises(CannotRead, match="column v holds a damaged variant"):
        rebuild([object_row(), row], group_type(pa.struct([("a", pa.int64())])))


def test_damaged_variant_in_a_file_is_an_error_naming_the_file(tmp_path: Path) -> None:
    arrow = group_type(pa.struct([("a", pa.int64())]))
    file = write_file(tmp_path, "a.parquet", pa.table({"v": pa.array([DAMAGED["empty value"]], arrow)}))
    with pytest.raises(DataFileError, match=r"a\.parquet .*damaged variant"):
        read_rows(scan_state(tmp_path, [column("v", VARIANT)]), file)


@pytest.mark.parametrize("arrow", [pa.struct([("a", pa.int64())]), pa.struct([("metadata", pa.binary())])])
def test_group_that_is_no_variant_is_refused(tmp_path: Path, arrow: pa.DataType) -> None:
    file = write_file(tmp_path, "a.parquet", pa.table({"v": pa.array([None], arrow)}))
    with pytest.raises(DataFileError, match=r"a\.parquet .*column v is variant"):
        read_rows(scan_state(tmp_path, [column("v", VARIANT)]), file)


def test_variant_shredded_as_an_unknown_type_is_refused() -> None:
    row = {"metadata": b"\x01\x00\x00", "value": None, "typed_value": 1}
    with pytest.raises(CannotRead, match="uint32"):
        rebuild([row], group_type(pa.uint32()))
