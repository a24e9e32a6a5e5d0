"""The conformer: which batches a table accepts, and in what form it returns them."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from delta_py.errors import (
    CorruptTableError,
    DeltaError,
    InvariantViolationError,
    SchemaMismatchError,
    UnsupportedOperationError,
    UnsupportedTableFeatureError,
)
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.parquet_settings import compression_codec
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.conform import Conformer
from delta_py.row_rules.new_columns import check_new_schema
from delta_py.row_rules.write_state import FileLayout, WriteState, write_state
from delta_py.storage.local import LocalStore
from delta_py.types.schema import (
    DATE,
    LONG,
    STRING,
    VOID,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    schema_to_json,
    to_arrow_schema,
)

SCHEMA = StructType((StructField("id", LONG, nullable=False), StructField("name", STRING), StructField("day", DATE)))


def config(schema: StructType = SCHEMA, partitions: tuple[str, ...] = (), **properties: str) -> TableConfig:
    named = {name.replace("__", "."): value for name, value in properties.items()}
    return TableConfig(Protocol(1, 2), Metadata("t", schema_to_json(schema), partitions, named))


def conform(batch: pa.RecordBatch, schema: StructType = SCHEMA) -> pa.RecordBatch:
    return Conformer(WriteState(LocalStore("/t"), 0, schema), batch.schema).conform(batch).batch


def test_conform_restores_column_order_and_case_of_the_table() -> None:
    conformed = conform(pa.record_batch({"DAY": pa.array([None], pa.date32()), "Name": ["a"], "ID": [1]}))
    assert conformed.to_pylist() == [{"id": 1, "name": "a", "day": None}]
    assert conformed.schema.field("id").nullable is False


def test_conform_nullable_column_missing_from_the_data_is_null() -> None:
    assert conform(pa.record_batch({"id": [1, 2]})).to_pylist() == [
        {"id": 1, "name": None, "day": None},
        {"id": 2, "name": None, "day": None},
    ]


@pytest.mark.parametrize(
    ("data", "condition", "expected_text"),
    [
        ({"id": [1], "extra": [2]}, "DELTA_METADATA_MISMATCH", "extra"),
        ({"name": ["a"]}, "DELTA_MISSING_NOT_NULL_COLUMN_VALUE", "id"),
        ({"id": [1, None]}, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "1 of 2 rows"),
        ({"id": ["1"]}, "DELTA_FAILED_TO_MERGE_FIELDS", "bigint"),
        ({"id": [1], "ID": [2]}, "DELTA_DUPLICATE_COLUMNS_FOUND", "ID"),
    ],
)
def test_conform_unlawful_data_is_refused_by_name(data: dict[str, list[Any]], condition: str, expected_text: str) -> None:
    with pytest.raises((SchemaMismatchError, InvariantViolationError), match=expected_text) as caught:
        conform(pa.record_batch(data))
    assert caught.value.error_class == condition
    assert type(pickle.loads(pickle.dumps(caught.value))) is type(caught.value)


def test_conformer_refuses_a_schema_before_it_sees_rows() -> None:
    with pytest.raises(SchemaMismatchError):
        Conformer(WriteState(LocalStore("/t"), 0, SCHEMA), pa.schema([("id", pa.int64()), ("day", pa.int64())]))


def test_conformer_table_without_columns_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="no columns"):
        Conformer(WriteState(LocalStore("/t"), 0, StructType()), pa.schema([]))


def test_conform_rows_in_the_tables_own_types_are_not_copied() -> None:
    schema = StructType((StructField("n", LONG), StructField("s", StructType((StructField("t", ArrayType(STRING)),)))))
    batch = pa.RecordBatch.from_pylist([{"n": 1, "s": {"t": ["a"]}}], to_arrow_schema(schema))
    for original, conformed in zip(batch.columns, conform(batch, schema).columns, strict=True):
        assert [b and b.address for b in conformed.buffers()] == [b and b.address for b in original.buffers()]


INNER = StructType((StructField("x", LONG, nullable=False),))


@pytest.mark.parametrize(
    ("kind", "arrow", "lawful", "unlawful", "named"),
    [
        (INNER, pa.struct([("x", pa.int64())]), [{"x": 2}, {"x": 1}], [{"x": 1}, {"x": None}], "c.x"),
        (INNER, pa.struct([("x", pa.int64())]), [{"x": 1}], [None], "c.x"),
        (
            StructType((StructField("y", INNER), StructField("z", LONG))),
            pa.struct([("y", pa.struct([("x", pa.int64())])), ("z", pa.int64())]),
            [{"y": {"x": 1}, "z": None}],
            [{"y": None, "z": 1}],
            "c.y.x",
        ),
        (ArrayType(LONG, False), pa.list_(pa.int64()), [None, [1], []], [[1, None]], "c.element"),
        (MapType(STRING, LONG, False), pa.map_(pa.string(), pa.int64()), [None, [("a", 1)]], [[("a", None)]], "c.value"),
        (ArrayType(INNER), pa.list_(pa.struct([("x", pa.int64())])), [[None], [{"x": 1}]], [[{"x": None}]], "c.element.x"),
        (
            MapType(STRING, INNER),
            pa.map_(pa.string(), pa.struct([("x", pa.int64())])),
            [None, [("a", None)]],
            [[("a", {"x": None})]],
            "c.value.x",
        ),
    ],
)
def test_conform_enforces_nested_not_null_in_present_values(
    kind: DataType, arrow: pa.DataType, lawful: list[Any], unlawful: list[Any], named: str
) -> None:
    schema = StructType((StructField("c", kind),))
    assert conform(pa.record_batch([pa.array(lawful, arrow)], ["c"]), schema).column("c").to_pylist() == lawful
    sliced = pa.array([*unlawful, *lawful], arrow).slice(len(unlawful))
    assert conform(pa.record_batch([sliced], ["c"]), schema).column("c").to_pylist() == lawful
    with pytest.raises(InvariantViolationError, match=named.replace(".", r"\.")):
        conform(pa.record_batch([pa.array([*lawful, *unlawful], arrow)], ["c"]), schema)


# ---------------------------------------------------------------- WriteState


def test_write_state_is_small_and_pickles() -> None:
    state = write_state(config(partitions=("day",)), LocalStore("/t"), 3)
    assert pickle.loads(pickle.dumps(state)) == state
    assert len(pickle.dumps(state)) < 4096


@pytest.mark.parametrize("changed", [{}, {"compression": "gzip"}, {"row_group_rows": 5}, {"parquet_options": {"a": 1}}])
def test_file_layout_pickles_with_each_changed_field(changed: dict[str, Any]) -> None:
    layout = FileLayout(**changed)
    assert pickle.loads(pickle.dumps(layout)) == layout


def test_write_state_defaults_to_zstd_and_32_statistics_columns() -> None:
    many = StructType((StructField("p", STRING), *(StructField(f"c{n}", LONG) for n in range(40))))
    state = write_state(config(many, ("p",)), LocalStore("/t"), 0)
    assert state.layout.compression == "zstd"
    assert state.stats_columns == tuple((f"c{n}",) for n in range(32))


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"delta__dataSkippingNumIndexedCols": "1"}, [("a",)]),
        ({"delta__dataSkippingNumIndexedCols": "0"}, []),
        ({"delta__dataSkippingNumIndexedCols": "-1"}, [("a",), ("s", "x"), ("s", "y.z")]),
        ({"delta__dataSkippingStatsColumns": "S.`y.z`, a"}, [("a",), ("s", "y.z")]),
        ({"delta__dataSkippingStatsColumns": "s", "delta__dataSkippingNumIndexedCols": "1"}, [("s", "x"), ("s", "y.z")]),
        ({"delta__dataSkippingStatsColumns": ""}, []),
    ],
)
def test_write_state_statistics_columns_follow_the_properties(
    properties: dict[str, str], expected: list[tuple[str, ...]]
) -> None:
    struct = StructType((StructField("x", LONG), StructField("y.z", LONG)))
    schema = StructType((StructField("a", LONG), StructField("s", struct)))
    assert write_state(config(schema, **properties), LocalStore("/t"), 0).stats_columns == tuple(expected)


def test_write_state_void_column_is_lawful_and_has_no_statistics() -> None:
    schema = StructType((StructField("v", VOID), StructField("a", LONG)))
    assert write_state(config(schema), LocalStore("/t"), 0).stats_columns == (("a",),)


def within_array(inner: StructField) -> StructField:
    return StructField("c", ArrayType(StructType((inner,))))


@pytest.mark.parametrize(
    ("field", "expected_text"),
    [
        (StructField("c", LONG, True, {"delta.generationExpression": "soundex(c)"}), "generation expression.*soundex"),
        (StructField("c", LONG, True, {"delta.generationExpression": "c + 1"}), "needs a generated column"),
        (within_array(StructField("x", LONG, True, {"delta.identity.start": 1})), "identity column rule"),
        (StructField("c", LONG, True, {"delta.invariants": '{"expression":{"expression":"soundex(c) > 3"}}'}), "soundex"),
        (StructField("c", LONG, True, {"delta.invariants": "c > 3"}), "the invariant on column c"),
        (StructField("c", PrimitiveType("interval")), "interval"),
        (within_array(StructField("x", LONG, True, {"delta.invariants": '{"expression":{"expression":"1 > 0"}}'})), "invariant"),
        (within_array(StructField("x", LONG, True, {"delta.generationExpression": "1"})), r"c\.element\.x"),
    ],
)
def test_write_state_refuses_unenforceable_rules_by_name(field: StructField, expected_text: str) -> None:
    with pytest.raises(UnsupportedTableFeatureError, match=expected_text) as caught:
        write_state(config(StructType((field,))), LocalStore("/t"), 0)
    assert caught.value.error_class == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"


@pytest.mark.parametrize(
    ("sql", "expected_text"), [("soundex(name) = 'A'", "soundex"), ("id >", "id >"), ("nope > 0", "nope"), ("id + 1", r"id \+ 1")]
)
def test_write_state_names_an_unusable_check_constraint(sql: str, expected_text: str) -> None:
    with pytest.raises(UnsupportedTableFeatureError, match=rf"CHECK constraint odd .*{expected_text}") as caught:
        write_state(config(delta__constraints__odd=sql), LocalStore("/t"), 0)
    assert caught.value.error_class == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"


def test_write_state_refuses_a_declared_type_unlike_the_column() -> None:
    with pytest.raises(CorruptTableError, match="Column c"):
        odd = StructField("c", LONG, True, {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"})
        write_state(config(StructType((odd,))), LocalStore("/t"), 0)


@pytest.mark.parametrize(
    ("name", "expected"), [(None, "zstd"), ("SNAPPY", "snappy"), ("uncompressed", "none"), ("lz4_raw", "lz4")]
)
def test_compression_codec_known_name_gives_pyarrows_name(name: str | None, expected: str) -> None:
    assert compression_codec(name) == expected


def test_compression_codec_unknown_name_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="brotlix"):
        compression_codec("brotlix")


# ---------------------------------------------------------------- names of new columns


@pytest.mark.parametrize("character", list(" ,;{}()\n\t="))
def test_new_schema_with_invalid_character_needs_column_mapping(character: str) -> None:
    schema = StructType((StructField("s", StructType((StructField(f"a{character}b", LONG),))),))
    with pytest.raises(SchemaMismatchError, match="column mapping") as caught:
        check_new_schema(schema, "none")
    assert caught.value.error_class == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
    check_new_schema(schema, "name")


@pytest.mark.parametrize("wrap", [lambda s: s, lambda s: ArrayType(s), lambda s: MapType(STRING, s)])
def test_new_schema_refuses_names_that_differ_only_in_case(wrap: Any) -> None:
    twins = StructType((StructField("a", LONG), StructField("A", LONG)))
    for schema in (twins, StructType((StructField("s", wrap(twins)),))):
        with pytest.raises(DeltaError) as caught:
            check_new_schema(schema, "name")
        assert caught.value.error_class == "DELTA_DUPLICATE_COLUMNS_FOUND"
