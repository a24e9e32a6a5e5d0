"""How mergeSchema and overwriteSchema change a table's schema."""

from __future__ import annotations

from typing import Any

import pytest

from delta_py.errors import SchemaMismatchError
from delta_py.protocol import column_mapping
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.features import Properties
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.evolution import check_same_types, merged_schema, replaced_schema
from delta_py.row_rules.type_changes import TYPE_CHANGES, is_widening
from delta_py.types.schema import (
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
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    schema_to_json,
)


def struct(**columns: DataType) -> StructType:
    return StructType(tuple(StructField(name, data_type) for name, data_type in columns.items()))


def table(schema: StructType, features: tuple[str, ...] = (), **properties: str) -> TableConfig:
    configuration = {name.replace("__", "."): value for name, value in properties.items()}
    reader = frozenset(name for name in features if not name.startswith("iceberg"))
    protocol = Protocol(3, 7, reader, frozenset((*features, "appendOnly", "invariants", "checkConstraints", "generatedColumns")))
    return TableConfig(protocol, Metadata("t", schema_to_json(schema), (), configuration))


def widening(schema: StructType, *more: str, **properties: str) -> TableConfig:
    return table(schema, ("typeWidening", *more), delta__enableTypeWidening="true", **properties)


def merge(schema: StructType, data: StructType) -> StructType:
    return merged_schema(table(schema), data, widen=True)


def test_merge_appends_nullable_columns_and_keeps_old_ones() -> None:
    old_schema = StructType((StructField("Id", LONG, False, {"comment": "key"}), StructField("name", STRING)))
    data = StructType((StructField("extra", LONG, False, {"comment": "new"}), StructField("ID", LONG)))
    assert merge(old_schema, data) == StructType((*old_schema.fields, StructField("extra", LONG, True, {"comment": "new"})))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: inner,
        lambda inner: ArrayType(inner, False),
        lambda inner: MapType(STRING, inner, False),
        lambda inner: MapType(inner, STRING),
        lambda inner: ArrayType(MapType(STRING, struct(deep=inner))),
    ],
)
def test_merge_new_fields_of_structs_are_appended_at_any_depth(wrap: Any) -> None:
    old_schema = StructType((StructField("x", LONG, False),))
    data = StructType((StructField("y", ArrayType(LONG, False), False), StructField("X", LONG)))
    merged = StructType((*old_schema.fields, StructField("y", ArrayType(LONG))))
    assert merge(struct(s=wrap(old_schema)), struct(S=wrap(data))) == struct(s=wrap(merged))


def test_merge_new_column_drops_rules_of_the_source_table() -> None:
    metadata = {
        "delta.columnMapping.id": 4, "delta.columnMapping.physicalName": "p", "delta.generationExpression": "1",
        "delta.identity.start": 1, "CURRENT_DEFAULT": "1", "EXISTS_DEFAULT": "1", "comment": "c",
    }  # fmt: skip
    merged = merge(struct(a=LONG), StructType((StructField("b", LONG, False, metadata),)))
    assert merged.fields[1] == StructField("b", LONG, True, {"comment": "c"})


def test_merge_void_takes_the_other_type_and_needs_no_feature() -> None:
    assert merge(struct(a=VOID, b=LONG), struct(a=ArrayType(LONG, False), b=VOID)) == struct(a=ArrayType(LONG), b=LONG)


def test_merge_keeps_a_type_that_is_wider_than_the_datas() -> None:
    for table_type, data_type in ((LONG, INTEGER), (DOUBLE, INTEGER), (DOUBLE, FLOAT), (DecimalType(6, 2), DecimalType(5, 1))):
        assert merge(struct(a=table_type), struct(a=data_type)) == struct(a=table_type)
        assert merged_schema(widening(struct(a=table_type)), struct(a=data_type), widen=False) == struct(a=table_type)


def test_merge_widens_bytes_and_shorts_without_the_feature() -> None:
    for table_type, data_type in ((BYTE, SHORT), (BYTE, INTEGER), (SHORT, INTEGER)):
        wide = struct(a=data_type, l=ArrayType(data_type))
        assert merge(struct(a=table_type, l=ArrayType(table_type)), wide) == wide
        assert merged_schema(table(struct(a=table_type)), struct(a=data_type), widen=True, casts=True) == struct(a=table_type)
    for feature in ("typeWidening", "typeWidening-preview"):  # they need a record of the change
        with pytest.raises(SchemaMismatchError, match="a"):
            merged_schema(table(struct(a=SHORT), (feature,)), struct(a=INTEGER), widen=True)
    named = table(struct(a=SHORT), delta__constraints__positive="a > 0")
    with pytest.raises(SchemaMismatchError, match="rule positive names it"):
        merged_schema(named, struct(a=INTEGER), widen=False)


@pytest.mark.parametrize(
    ("table_type", "data_type"),
    [
        (INTEGER, LONG), (SHORT, LONG), (INTEGER, DOUBLE), (FLOAT, DOUBLE), (STRING, LONG), (STRING, DATE), (DATE, TIMESTAMP),
        (TIMESTAMP, DATE), (TIMESTAMP, TIMESTAMP_NTZ), (TIMESTAMP_NTZ, TIMESTAMP), (DecimalType(5, 2), DOUBLE),
        (DecimalType(5, 2), DecimalType(6, 1)), (DecimalType(19, 0), LONG), (DOUBLE, LONG), (ArrayType(INTEGER), ArrayType(LONG)),
        (MapType(STRING, INTEGER), MapType(STRING, LONG)),
    ],
)  # fmt: skip
def test_merge_never_casts_what_might_not_stay_what_it_is(table_type: DataType, data_type: DataType) -> None:
    for config in (table(struct(a=table_type)), widening(struct(a=table_type))):
        with pytest.raises(SchemaMismatchError) as caught:
            merged_schema(config, struct(a=data_type), widen=False)
        assert caught.value.error_class == "DELTA_FAILED_TO_MERGE_FIELDS"


@pytest.mark.parametrize(
    ("table_type", "data_type"),
    [
        (LONG, STRING), (STRING, ArrayType(STRING)), (ArrayType(LONG), LONG), (struct(x=LONG), LONG), (LONG, struct(x=LONG)),
        (MapType(STRING, LONG), struct(x=LONG)), (LONG, DATE), (VARIANT, STRING), (STRING, VARIANT),
    ],
)  # fmt: skip
def test_merge_refuses_incompatible_types_and_names_the_field(table_type: DataType, data_type: DataType) -> None:
    with pytest.raises(SchemaMismatchError, match=r"s\.c") as caught:
        merge(struct(s=struct(c=table_type)), struct(s=struct(c=data_type)))
    assert caught.value.error_class == "DELTA_FAILED_TO_MERGE_FIELDS"


def test_merge_data_with_two_columns_of_one_name_is_refused() -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        merge(struct(a=LONG), struct(b=LONG, B=LONG))
    assert caught.value.error_class == "DELTA_DUPLICATE_COLUMNS_FOUND"


# ---------------------------------------------------------------- widening

WIDER = [
    (BYTE, SHORT, "byte", "short"),
    (SHORT, LONG, "short", "long"),
    (INTEGER, LONG, "integer", "long"),
    (INTEGER, DOUBLE, "integer", "double"),
    (FLOAT, DOUBLE, "float", "double"),
    (DATE, TIMESTAMP_NTZ, "date", "timestamp_ntz"),
    (DecimalType(5, 2), DecimalType(8, 5), "decimal(5,2)", "decimal(8,5)"),
    (DecimalType(5, 2), DecimalType(6, 2), "decimal(5,2)", "decimal(6,2)"),
    (BYTE, DecimalType(10, 0), "byte", "decimal(10,0)"),
    (INTEGER, DecimalType(12, 2), "integer", "decimal(12,2)"),
    (LONG, DecimalType(20, 0), "long", "decimal(20,0)"),
]


@pytest.mark.parametrize(("table_type", "data_type", "old", "new"), WIDER)
def test_merge_wider_type_is_taken_and_recorded(table_type: DataType, data_type: DataType, old: str, new: str) -> None:
    merged = merged_schema(widening(struct(a=table_type)), struct(A=data_type), widen=True).fields[0]
    assert merged == StructField("a", data_type, True, {TYPE_CHANGES: [{"fromType": old, "toType": new}]})


@pytest.mark.parametrize(
    ("table_type", "data_type"),
    [(LONG, INTEGER), (LONG, DOUBLE), (INTEGER, DecimalType(11, 2)), (LONG, DecimalType(19, 0)), (DOUBLE, FLOAT),
     (DecimalType(5, 2), DecimalType(6, 1)), (DecimalType(5, 2), DecimalType(6, 4)), (DATE, TIMESTAMP), (LONG, LONG)],
)  # fmt: skip
def test_merge_type_that_is_not_wider_changes_nothing(table_type: DataType, data_type: DataType) -> None:
    assert merged_schema(widening(struct(a=table_type)), struct(a=data_type), widen=True, casts=True) == struct(a=table_type)


def test_merge_records_nested_widening_at_the_nearest_field() -> None:
    table_types = struct(a=ArrayType(MapType(INTEGER, BYTE)), s=MapType(FLOAT, struct(x=SHORT)))
    data_types = struct(a=ArrayType(MapType(LONG, SHORT)), s=MapType(DOUBLE, struct(x=INTEGER)))
    outer, other = merged_schema(widening(table_types), data_types, widen=True).fields
    assert outer.metadata[TYPE_CHANGES] == [
        {"fromType": "integer", "toType": "long", "fieldPath": "element.key"},
        {"fromType": "byte", "toType": "short", "fieldPath": "element.value"},
    ]
    assert other.metadata[TYPE_CHANGES] == [{"fromType": "float", "toType": "double", "fieldPath": "key"}]
    assert isinstance(other.data_type, MapType) and isinstance(other.data_type.value_type, StructType)
    inner = other.data_type.value_type.fields[0]
    assert inner == StructField("x", INTEGER, True, {TYPE_CHANGES: [{"fromType": "short", "toType": "integer"}]})


def test_merge_second_widening_is_added_to_the_history() -> None:
    once = merged_schema(widening(struct(a=BYTE)), struct(a=SHORT), widen=True)
    twice = merged_schema(widening(once), struct(a=LONG), widen=True)
    assert twice.fields[0].metadata[TYPE_CHANGES] == [
        {"fromType": "byte", "toType": "short"},
        {"fromType": "short", "toType": "long"},
    ]


@pytest.mark.parametrize(
    "config",
    [
        table(struct(a=INTEGER), ("typeWidening",)),
        table(struct(a=INTEGER), ("typeWidening",), delta__enableTypeWidening="false"),
        table(struct(a=INTEGER), ("typeWidening-preview",), delta__enableTypeWidening="true"),
    ],
)
def test_merge_widens_only_where_the_table_lets_it(config: TableConfig) -> None:
    assert merged_schema(config, struct(a=LONG), widen=True, casts=True) == struct(a=INTEGER)


def test_merge_of_iceberg_table_widens_only_as_iceberg_does() -> None:
    table_types = struct(a=INTEGER, b=INTEGER, c=DATE, d=DecimalType(5, 2), e=DecimalType(5, 2), f=INTEGER)
    data_types = struct(a=LONG, b=DOUBLE, c=TIMESTAMP_NTZ, d=DecimalType(8, 3), e=DecimalType(8, 2), f=DecimalType(10, 0))
    merged = merged_schema(widening(table_types, "icebergCompatV2"), data_types, widen=True, casts=True)
    assert [f.data_type for f in merged.fields] == [LONG, INTEGER, DATE, DecimalType(5, 2), DecimalType(8, 2), INTEGER]


@pytest.mark.parametrize(
    "metadata",
    [
        {"delta.generationExpression": "b * 2"},
        {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True},
    ],
)
def test_merge_leaves_generated_and_identity_columns_their_types(metadata: dict[str, Any]) -> None:
    config = widening(StructType((StructField("a", LONG, True, metadata),)))
    assert merged_schema(config, struct(a=DecimalType(20, 0)), widen=True, casts=True) == config.schema

    with pytest.raises(SchemaMismatchError, match="DELTA_FAILED_TO_MERGE_FIELDS"):
        merged_schema(config, struct(a=DecimalType(20, 0)), widen=True)


def test_is_widening_of_a_type_to_itself_is_false() -> None:
    for data_type in (INTEGER, FLOAT, DATE, DecimalType(5, 2), STRING):
        assert not is_widening(data_type, data_type)


def test_merge_refuses_to_widen_a_column_of_a_constraint() -> None:
    config = widening(struct(a=INTEGER, b=INTEGER), delta__constraints__positive="a > 0")
    with pytest.raises(SchemaMismatchError, match=r"rule positive names it: a > 0") as caught:
        merged_schema(config, struct(a=LONG), widen=True)
    assert caught.value.error_class == "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"
    assert merged_schema(config, struct(b=LONG), widen=True).fields[1].data_type == LONG


def test_merge_refuses_to_widen_a_source_of_a_generated_column() -> None:
    generated = StructField("b", LONG, True, {"delta.generationExpression": "CAST(s.x AS BIGINT)"})
    config = widening(StructType((StructField("s", struct(x=INTEGER, y=INTEGER)), generated)))
    with pytest.raises(SchemaMismatchError, match="generated column b") as caught:
        merged_schema(config, struct(s=struct(x=LONG)), widen=True)
    assert caught.value.error_class == "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH"
    assert merged_schema(config, struct(s=struct(y=LONG)), widen=True) != config.schema


def test_merge_refuses_to_widen_under_an_unreadable_rule() -> None:
    config = widening(struct(a=INTEGER), delta__constraints__odd="soundex(a) = 'x'")
    with pytest.raises(SchemaMismatchError, match="rule odd"):
        merged_schema(config, struct(a=LONG), widen=True)


# ---------------------------------------------------------------- overwriteSchema


def test_replaced_schema_is_nullable_and_drops_rules() -> None:
    old_schema = StructType((StructField("a", INTEGER, False, {"comment": "old", "delta.generationExpression": "1"}),))
    data = StructType(
        (StructField("A", LONG, False, {"comment": "new", "CURRENT_DEFAULT": "1"}), StructField("s", struct(x=LONG)))
    )
    assert replaced_schema(table(old_schema), data) == StructType(
        (StructField("A", LONG, True, {"comment": "new"}), StructField("s", struct(x=LONG)))
    )


def test_replaced_schema_keeps_mapping_ids_of_equal_types() -> None:
    old_types = struct(a=INTEGER, b=struct(x=INTEGER, y=INTEGER), c=ArrayType(struct(z=LONG)))
    mapped, _ = column_mapping.assign(old_types, lambda f: f"col-{f.name}", Properties({}))
    config = table(mapped, ("columnMapping",), delta__columnMapping__mode="name")
    data = struct(a=LONG, B=struct(y=INTEGER, w=INTEGER), C=ArrayType(struct(z=LONG)), d=LONG)
    a, b, c, d = replaced_schema(config, data).fields
    assert a.metadata == d.metadata == {}
    assert b.metadata == {}
    assert isinstance(b.data_type, StructType) and isinstance(mapped.fields[1].data_type, StructType)
    assert b.data_type.fields[0].metadata == mapped.fields[1].data_type.fields[1].metadata
    assert b.data_type.fields[1].metadata == {}
    assert c == StructField("C", mapped.fields[2].data_type, True, mapped.fields[2].metadata)


def test_replaced_schema_of_unchanged_mapped_data_is_the_tables() -> None:
    mapped, _ = column_mapping.assign(struct(a=LONG, s=struct(x=LONG)), lambda f: f"col-{f.name}", Properties({}))
    config = table(mapped, ("columnMapping",), delta__columnMapping__mode="name")
    assert replaced_schema(config, struct(a=LONG, s=struct(x=LONG))) == mapped


def test_replaced_schema_may_keep_not_null_at_every_depth() -> None:
    inner = StructType((StructField("x", LONG, False, {"delta.generationExpression": "1"}),))
    data = StructType((StructField("s", inner, False), StructField("l", ArrayType(LONG, False))))
    bare = StructType((StructField("x", LONG, False),))
    expected = StructType((StructField("s", bare, False), StructField("l", ArrayType(LONG, False))))
    assert replaced_schema(table(struct(a=LONG)), data, keeps_not_null=True) == expected


# ---------------------------------------------------------------- data of the table's own types


def test_data_of_the_tables_types_has_them_at_every_depth() -> None:
    table = struct(id=LONG, n=INTEGER, s=struct(x=STRING), l=ArrayType(INTEGER), m=MapType(STRING, LONG))
    check_same_types(table, table)
    check_same_types(table, struct(N=BYTE, id=VOID, other=DATE, l=ArrayType(SHORT, False)))
    for data in (
        struct(id=INTEGER),
        struct(n=LONG),
        struct(n=STRING),
        struct(s=struct(X=LONG)),
        struct(s=STRING),
        struct(l=ArrayType(LONG)),
        struct(m=MapType(STRING, INTEGER)),
    ):
        with pytest.raises(SchemaMismatchError) as refused:
            check_same_types(table, data)
        assert refused.value.error_class == "DELTA_FAILED_TO_MERGE_FIELDS"
    with pytest.raises(SchemaMismatchError, match="DELTA_FAILED_TO_MERGE_FIELDS"):
        check_same_types(struct(n=SHORT), struct(n=INTEGER))
