"""Shredded variants, rebuilt by columns, are the values that were shredded."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py.parquet.values.variant import variant_converter
from delta_py.types.schema import VARIANT_ARROW
from tests.support.oracles.variants import decode, group_type, shred

NAMES = st.sampled_from(["a", "b", "c", "ab", "é", "", "z" * 70])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=80),
    st.binary(max_size=5),
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
PLAIN_SCHEMAS = st.sampled_from([pa.int64(), pa.string(), pa.float64(), pa.bool_(), pa.binary()])
SCHEMAS = st.recursive(
    PLAIN_SCHEMAS,
    lambda inner: (
        inner.map(pa.list_)
        | st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(lambda fields: pa.struct(list(fields.items())))
    ),
    max_leaves=5,
)


@settings(max_examples=150)
@given(SCHEMAS, st.lists(st.tuples(st.booleans(), VALUES), max_size=8))
def test_shredded_variants_rebuilt_are_the_values_shredded(schema: pa.DataType, rows: list[tuple[bool, Any]]) -> None:
    values = [None if is_null else shred(value, schema) for is_null, value in rows]
    array = pa.array(values, group_type(schema))
    convert = variant_converter("v", array.type)
    assert convert is not None

    rebuilt = convert(array)

    assert rebuilt.type == VARIANT_ARROW
    rebuilt.validate(full=True)
    rebuilt_values = [None if row is None else (decode(row["value"], row["metadata"]),) for row in rebuilt.to_pylist()]
    assert rebuilt_values == [None if is_null else (value,) for is_null, value in rows]


@settings(max_examples=40)
@given(SCHEMAS, st.lists(VALUES, min_size=3, max_size=8), st.integers(0, 3), st.integers(0, 8))
def test_rebuilt_variants_of_a_slice_equal_the_rows_of_the_slice(
    schema: pa.DataType, rows: list[Any], start: int, count: int
) -> None:
    array = pa.array([shred(value, schema) for value in rows], group_type(schema))
    convert = variant_converter("v", array.type)
    assert convert is not None

    rebuilt = convert(array.slice(start, count)).to_pylist()

    assert [decode(row["value"], row["metadata"]) for row in rebuilt] == rows[start : start + count]
