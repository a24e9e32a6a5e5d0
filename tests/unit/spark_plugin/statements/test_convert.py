"""Schemas between Delta and Spark, and what may be requested from a reader."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema as spark_arrow_schema

from delta_py.errors import SchemaMismatchError, UnsupportedOperationError
from delta_py.types.schema import LONG, STRING, ArrayType, MapType, StructField, StructType, parse_schema, to_arrow_schema
from spark_plugin.schema_conversion import check_requested, from_spark_schema, to_spark_schema
from spark_plugin.source.task_batches import check_layout, relabelled


def field(name: str, kind: Any, *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def array(element: Any, *, contains_null: bool = True) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": contains_null}


def map_of(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": False}


NUMBERS = ["long", "integer", "short", "byte", "float", "double"]
SIMPLE = [*NUMBERS, "string", "boolean", "binary", "date", "timestamp", "timestamp_ntz", "void", "variant"]
EVERYTHING = struct(
    *(field(f"c_{name}", name) for name in SIMPLE),
    field("c_decimal", "decimal(38,10)"),
    field(
        "strict", struct(field("x", "integer", nullable=False), field("y", array("string", contains_null=False))), nullable=False
    ),
    field("deep", array(map_of("string", struct(field("a b.c", "timestamp"))))),
    field("collated", "string", __COLLATIONS={"collated": "spark.UTF8_LCASE"}),
    field("short", "string", __CHAR_VARCHAR_TYPE_STRING="char(5)", comment="five"),
)


def delta(value: dict[str, Any]) -> StructType:
    return parse_schema(json.dumps(value))


def test_schema_of_every_type_survives_the_way_to_spark_and_back() -> None:
    assert from_spark_schema(to_spark_schema(delta(EVERYTHING))) == delta(EVERYTHING)


def test_spark_schema_keeps_nullability_comments_and_types() -> None:
    converted = to_spark_schema(delta(EVERYTHING))
    assert converted["strict"].nullable is False
    assert converted["strict"].dataType["x"].nullable is False  # type: ignore[index]
    assert converted["strict"].dataType["y"].dataType.containsNull is False  # type: ignore[index]
    assert converted["collated"].dataType == T.StringType("UTF8_LCASE")
    assert converted["short"].metadata == {"__CHAR_VARCHAR_TYPE_STRING": "char(5)", "comment": "five"}
    assert [converted[f"c_{name}"].dataType for name in ("void", "variant", "timestamp_ntz")] == [
        T.NullType(),
        T.VariantType(),
        T.TimestampNTZType(),
    ]


def test_spark_schema_has_no_log_metadata_at_any_depth() -> None:
    """It also lacks text that Spark would evaluate, or treat as a marker of ours."""
    mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1", "mine": "kept"}
    mapped |= {"pydelta.pruning": '{"limit": 3}', "EXISTS_DEFAULT": "reflect('java.lang.System', 'exit', 1)"}
    inside = struct(field("x", "long", **mapped))
    converted = to_spark_schema(
        delta(struct(field("a", inside, **mapped), field("b", array(inside)), field("c", map_of("string", inside))))
    )
    assert "delta." not in converted.json() and "reflect" not in converted.json()
    assert converted.json().count('"mine"') == 4


def test_schema_arrow_types_are_those_that_spark_expects() -> None:
    """Spark compares the batches of a reader with its own to_arrow_schema."""
    assert to_arrow_schema(delta(EVERYTHING)).equals(spark_arrow_schema(to_spark_schema(delta(EVERYTHING)), timezone="UTC"))


def test_schema_with_a_type_unknown_to_spark_names_the_column() -> None:
    with pytest.raises(UnsupportedOperationError, match="Column geo has the type hologram"):
        to_spark_schema(delta(struct(field("id", "long"), field("geo", "hologram"))))


@pytest.mark.parametrize("kind", [T.DayTimeIntervalType(), T.ArrayType(T.YearMonthIntervalType()), T.CalendarIntervalType()])
def test_frame_with_an_interval_is_refused_by_column(kind: T.DataType) -> None:
    with pytest.raises(UnsupportedOperationError, match="Column wait"):
        from_spark_schema(T.StructType([T.StructField("id", T.LongType()), T.StructField("wait", kind)]))


# ---------------------------------------------------------------- what was asked for


def one(kind: Any, *, nullable: bool = True, name: str = "a") -> StructType:
    return StructType((StructField(name, kind, nullable),))


@pytest.mark.parametrize(
    ("own_schema", "requested"),
    [
        (one(LONG), one(LONG, name="A")),
        (one(LONG, nullable=False), one(LONG)),
        (one(ArrayType(LONG, False)), one(ArrayType(LONG, True))),
        (one(MapType(STRING, one(LONG, nullable=False), False)), one(MapType(STRING, one(LONG, name="A"), True))),
    ],
)
def test_request_for_the_same_types_with_looser_nulls_is_fine(own_schema: StructType, requested: StructType) -> None:
    check_requested(own_schema, requested)


@pytest.mark.parametrize(
    ("own_schema", "requested"),
    [
        (one(LONG), one(STRING)),
        (one(LONG), one(LONG, nullable=False)),
        (one(ArrayType(LONG, True)), one(ArrayType(LONG, False))),
        (one(one(LONG)), one(one(LONG, nullable=False))),
        (one(one(LONG)), one(one(LONG, name="b"))),
        (one(MapType(STRING, LONG, True)), one(MapType(STRING, LONG, False))),
    ],
)
def test_request_for_another_type_or_stricter_nulls_is_refused(own_schema: StructType, requested: StructType) -> None:
    with pytest.raises(SchemaMismatchError, match="Column a was asked for as"):
        check_requested(own_schema, requested)


# ---------------------------------------------------------------- geometry and geography

needs_shapes = pytest.mark.skipif(not hasattr(T, "GeometryType"), reason="this Spark has no geometry and geography")


@needs_shapes
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("geometry", "geometry(4326)"),
        ("geometry(OGC:CRS84)", "geometry(4326)"),
        ("geometry(SRID:0)", "geometry(0)"),
        ("geography(OGC:CRS84, spherical)", "geography(4326)"),
        ("geography(OGC:CRS84, SPHERICAL)", "geography(4326)"),
        ("geography(OGC:CRS84, vincenty)", "binary"),
        ("geometry(projjson:p)", "binary"),
        ("geometry(SRID:ANY)", "binary"),
    ],
)
def test_shapes_are_of_sparks_type_or_binary(name: str, expected: str) -> None:
    table = delta(struct(field("g", array(name))))
    converted = to_spark_schema(table)
    assert converted["g"].dataType.simpleString() == f"array<{expected}>"
    if expected != "binary":
        assert from_spark_schema(converted) == table


@needs_shapes
def test_shapes_get_the_srid_of_their_column_at_any_depth() -> None:
    inner = struct(field("g", "geography"), field("n", "long"))
    table = delta(struct(field("g", "geometry(SRID:0)"), field("l", array(inner)), field("m", map_of("string", "geometry"))))
    schema = spark_arrow_schema(to_spark_schema(table), timezone="UTC")
    rows = {
        "g": [b"x", b"a", None, b"c"],
        "l": [[], [{"g": b"b", "n": 1}, None, {"g": None, "n": 2}], None, []],
        "m": [[], [("k", b"d")], None, []],
    }
    plain = to_arrow_schema(table)
    check_layout(plain, schema)
    batch = relabelled(pa.RecordBatch.from_pydict(rows, plain).slice(1), schema)
    batch.validate(full=True)
    assert batch.schema.equals(schema)
    shape = lambda srid, wkb: {"srid": srid, "wkb": wkb}  # noqa: E731
    assert batch.to_pydict() == {
        "g": [shape(0, b"a"), None, shape(0, b"c")],
        "l": [[{"g": shape(4326, b"b"), "n": 1}, None, {"g": None, "n": 2}], None, []],
        "m": [[("k", shape(4326, b"d"))], None, []],
    }
