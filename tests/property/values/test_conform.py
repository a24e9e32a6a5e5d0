"""The conformer on random tables and rows: its result is what Spark's cast returns, and schemas only grow."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from delta_py.errors import DeltaError, InvariantViolationError, SchemaMismatchError
from delta_py.expressions.coercion import may_assign
from delta_py.expressions.value_casts import cast_values
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.conform import Conformer
from delta_py.row_rules.evolution import merged_schema
from delta_py.row_rules.row_constraints import RowRule
from delta_py.row_rules.write_state import WriteState
from delta_py.storage.local import LocalStore
from delta_py.types.schema import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    schema_to_json,
    to_arrow_schema,
    to_arrow_type,
)

NUMBERS: dict[DataType, st.SearchStrategy[Any]] = {
    BYTE: st.integers(-128, 127),
    SHORT: st.integers(-300, 300),
    INTEGER: st.integers(-70_000, 70_000),
    LONG: st.integers(-(2**40), 2**40),
    FLOAT: st.floats(-1000, 1000, width=32),
    DOUBLE: st.floats(-1e6, 1e6),
    DecimalType(6, 2): st.decimals(-9999, 9999, places=2),
    DecimalType(12, 4): st.decimals(-99_999, 99_999, places=4),
}
SIMPLE: dict[DataType, st.SearchStrategy[Any]] = {**NUMBERS, STRING: st.text("aé ", max_size=3), DATE: st.dates()}
names = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def kinds(draw: st.DrawFn, depth: int = 2) -> tuple[DataType, DataType, st.SearchStrategy[Any]]:
    """(type of the data, type of the table, values of the data)."""
    kind = draw(st.sampled_from(["number", "same", "list", "map", "struct"][: 5 if depth else 2]))
    if kind == "number":
        source, target = draw(st.sampled_from(list(NUMBERS))), draw(st.sampled_from(list(NUMBERS)))
        return source, target, st.none() | NUMBERS[source]
    if kind == "same":
        source = draw(st.sampled_from(list(SIMPLE)))
        return source, source, st.none() | SIMPLE[source]
    source, target, values = draw(kinds(depth - 1))
    if kind == "list":
        return ArrayType(source), ArrayType(target), st.none() | st.lists(values, max_size=3)
    if kind == "map":
        pairs = st.dictionaries(st.text("xy", max_size=2), values, max_size=2).map(lambda mapping: list(mapping.items()))
        return MapType(STRING, source), MapType(STRING, target), st.none() | pairs
    source_struct = StructType((StructField("other", LONG), StructField("Kept", source)))
    target_struct = StructType((StructField("kept", target), StructField("OTHER", LONG), StructField("new", STRING)))
    return (
        source_struct,
        target_struct,
        st.none() | st.fixed_dictionaries({"other": st.none() | st.integers(0, 3), "Kept": values}),
    )


def as_stored(value: Any, source: DataType, target: DataType) -> Any:
    """The table's form of one value of the data. Raises if there is none."""
    if value is None:
        return None
    match source, target:
        case ArrayType(inner, _), ArrayType(target_inner, _):
            return [as_stored(item, inner, target_inner) for item in value]
        case MapType(_, inner, _), MapType(_, target_inner, _):
            return [(key, as_stored(item, inner, target_inner)) for key, item in value]
        case StructType(source_fields), StructType(target_fields):
            stored_value = as_stored(value["Kept"], source_fields[1].data_type, target_fields[0].data_type)
            return {"kept": stored_value, "OTHER": value["other"], "new": None}
    return cast_values(pa.array([value], to_arrow_type(source)), source, target)[0].as_py()


@given(st.data())
def test_conform_of_random_rows_equals_the_cast_of_each_value(data: st.DataObject) -> None:
    source, target, values = data.draw(kinds())
    rows = data.draw(st.lists(values, max_size=6))
    skipped = data.draw(st.integers(0, len(rows)))
    batch = pa.record_batch([pa.array(rows, to_arrow_type(source)).slice(skipped)], ["C"])
    state = WriteState(LocalStore("/t"), 0, StructType((StructField("c", target),)))
    try:
        expected = [as_stored(value, source, target) for value in rows[skipped:]]
    except DeltaError:
        try:
            conformed = Conformer(state, batch.schema).conform(batch)
        except SchemaMismatchError as error:
            assert error.error_class == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
            return
        raise AssertionError(f"a value that does not fit was taken: {conformed.batch.to_pylist()}") from None
    lawful = Conformer(state, batch.schema).conform(batch).batch
    lawful.validate(full=True)
    assert lawful.schema == to_arrow_schema(state.schema)
    assert lawful.column(0).to_pylist() == expected


@given(st.lists(st.none() | st.integers(-3, 3), max_size=8), st.integers(-3, 3))
def test_conform_accepts_rows_exactly_if_the_rule_is_true(values: list[int | None], limit: int) -> None:
    schema, rule = StructType((StructField("a", INTEGER),)), RowRule("check", "r", f"a % 4 <> {limit}")
    state = WriteState(LocalStore("/t"), 0, schema, rules=(rule,))
    batch = pa.record_batch([pa.array(values, pa.int32())], ["a"])
    broken = [value for value in values if value is None or int(Decimal(value) % 4) == limit]
    try:
        assert Conformer(state, batch.schema).conform(batch).batch.column(0).to_pylist() == values
        assert not broken
    except InvariantViolationError as error:
        assert error.message_parameters["row_count"] == len(broken)
        assert error.message_parameters["values"] == {"a": "null" if broken[0] is None else str(broken[0])}


# ---------------------------------------------------------------- schemas


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> StructType:
    fields = []
    for name in draw(st.lists(names, min_size=1, max_size=3, unique_by=str.lower)):
        fields.append(StructField(draw(st.sampled_from([name, name.upper()])), draw(types(depth)), draw(st.booleans())))
    return StructType(tuple(fields))


def types(depth: int) -> st.SearchStrategy[DataType]:
    simple: st.SearchStrategy[DataType] = st.sampled_from([*SIMPLE, VOID])
    if not depth:
        return simple
    inner = st.deferred(lambda: types(depth - 1))
    return st.one_of(
        simple,
        st.builds(ArrayType, inner, st.booleans()),
        st.builds(MapType, inner, inner, st.booleans()),
        schemas(depth - 1),
    )


def widened(schema: StructType) -> TableConfig:
    features = frozenset({"typeWidening"})
    configuration = {"delta.enableTypeWidening": "true"}
    return TableConfig(Protocol(3, 7, features, features), Metadata("t", schema_to_json(schema), (), configuration))


@given(schemas(), schemas(), st.booleans())
def test_merged_schema_keeps_column_order_and_is_idempotent(
    old_schema: StructType, data: StructType, widen: bool
) -> None:
    try:
        merged = merged_schema(widened(old_schema), data, widen=widen)
    except SchemaMismatchError as error:
        assert error.error_class == "DELTA_FAILED_TO_MERGE_FIELDS"
        return
    grew(old_schema, merged)
    assert {f.name.lower() for f in merged.fields} == {f.name.lower() for f in (*old_schema.fields, *data.fields)}
    assert merged_schema(widened(merged), data, widen=widen) == merged
    assert merged_schema(widened(merged), merged, widen=widen) == merged


def grew(old: DataType, new: DataType) -> None:
    """The parts of the old type are in the new one at the same place; new parts may be null."""
    match old, new:
        case StructType(old_fields), StructType(new_fields):
            assert [f.name for f in new_fields[: len(old_fields)]] == [f.name for f in old_fields]
            for before, after in zip(old_fields, new_fields, strict=False):
                assert before.nullable == after.nullable
                grew(before.data_type, after.data_type)
            assert all(f.nullable for f in new_fields[len(old_fields) :])
        case ArrayType(before_element, nulls), ArrayType(after_element, nulls_after):
            assert nulls == nulls_after
            grew(before_element, after_element)
        case MapType(key, value, nulls), MapType(new_key, new_value, nulls_after):
            assert nulls == nulls_after
            grew(key, new_key)
            grew(value, new_value)
        case _:
            assert old in (new, VOID) or may_assign(old, new)
