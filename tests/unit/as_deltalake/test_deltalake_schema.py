"""Schema, Field and the classes of types: JSON, Arrow, equality, and what deltalake itself makes of them."""

from __future__ import annotations

import json
import pickle

import deltalake.schema as theirs
import pyarrow as pa
import pytest

from delta_py.as_deltalake.schema import ArrayType, Field, MapType, PrimitiveType, Schema, StructType, VariantType

TYPES = [
    *[PrimitiveType(name) for name in ("string", "long", "decimal(10,2)", "timestamp_ntz")],
    ArrayType("integer", contains_null=False),
    MapType("string", ArrayType("double"), value_contains_null=False),
    StructType([Field("x", "integer", nullable=False), Field("y", "date")]),
    VariantType(),
]


@pytest.mark.parametrize("data_type", TYPES, ids=repr)
def test_type_survives_json_and_pickle(data_type: object) -> None:
    assert type(data_type).from_json(data_type.to_json()) == data_type
    assert pickle.loads(pickle.dumps(data_type)) == data_type
    assert {data_type, data_type} == {data_type}


@pytest.mark.parametrize("data_type", TYPES[:-1], ids=repr)
def test_type_has_the_json_and_arrow_type_of_deltalake(data_type: object) -> None:
    other = getattr(theirs, type(data_type).__name__).from_json(data_type.to_json())
    assert json.loads(other.to_json()) == json.loads(data_type.to_json())
    assert repr(other) == repr(data_type)
    assert data_type.to_arrow() == other.to_arrow()


@pytest.mark.parametrize("name", ["int", "decimal", "decimal()", "decimal(39,1)", "decimal(1,39)", "money"])
def test_name_that_is_no_type_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        PrimitiveType(name)


def test_arrow_type_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError):
        PrimitiveType.from_arrow(pa.list_(pa.int64()))
    with pytest.raises(TypeError):
        Field.from_arrow(pa.field("x", pa.duration("s")))


def test_unsigned_integers_keep_their_width_as_in_deltalake() -> None:
    kinds = {pa.uint8(): "byte", pa.uint16(): "short", pa.uint32(): "integer", pa.uint64(): "long"}
    assert [PrimitiveType.from_arrow(arrow).type for arrow in kinds] == list(kinds.values())


def test_schema_from_and_to_arrow() -> None:
    arrow = pa.schema([pa.field("id", pa.int64(), nullable=False, metadata={"comment": "key"}), pa.field("s", pa.string())])
    schema = Schema.from_arrow(arrow)
    assert schema == Schema([Field("id", "long", nullable=False, metadata={"comment": "key"}), Field("s", "string")])
    assert pa.schema(schema) == arrow
    assert pa.schema(schema).field("id").metadata == {b"comment": b"key"}
    assert pa.schema(schema.to_arrow(as_large_types=True)).field("s").type == pa.large_string()
    assert repr(schema) == repr(theirs.Schema.from_json(schema.to_json()))


def test_metadata_with_parts_is_shown_as_text() -> None:
    field = Field("x", "integer", metadata={"x": {"y": 3}, "n": 1})
    assert field.metadata == {"x": '{"y":3}', "n": 1}
    assert json.loads(field.to_json())["metadata"] == {"x": {"y": 3}, "n": 1}
    assert Field.from_json(field.to_json()) == field
