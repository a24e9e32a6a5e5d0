"""Lists and maps with other elements, and the values below nulls, which no conversion may see."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_py.types.nested_arrays import NestedColumns, child_offsets, struct_children, with_elements, with_entries

HIDDEN = 300  # does not fit into 8 bits
MASK = pa.array([False, True, False])
LISTS = pa.ListArray.from_arrays(pa.array([0, 1, 2, 4], pa.int32()), pa.array([1, HIDDEN, 2, None]), mask=MASK)
MAPS = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), ["a", "hidden", "b"], [1, HIDDEN, 2], mask=MASK)


def narrow(values: pa.Array) -> pa.Array:
    return values.cast(pa.int8())


def upper(keys: pa.Array) -> pa.Array:
    assert "hidden" not in keys.to_pylist()
    return pa.array([key.upper() for key in keys.to_pylist()])


@pytest.mark.parametrize("lists", [LISTS, LISTS.cast(pa.large_list(pa.int64()))])
def test_elements_of_null_lists_are_not_converted(lists: pa.Array) -> None:
    narrowed = with_elements(lists, narrow)
    narrowed.validate(full=True)
    assert narrowed.type == pa.list_(pa.int8()) and narrowed.to_pylist() == [[1], None, [2, None]]


def test_entries_of_null_maps_are_not_converted() -> None:
    narrowed = with_entries(MAPS, upper, narrow)
    narrowed.validate(full=True)
    assert narrowed.to_pylist() == [[("A", 1)], None, [("B", 2)]]


@pytest.mark.parametrize(("start", "expected"), [(0, [[1], None, [2, None]]), (2, [[2, None]]), (3, [])])
def test_slices_of_lists_have_only_their_elements(start: int, expected: list[Any]) -> None:
    kind = pa.list_(pa.field("item", pa.int64(), nullable=True))
    assert with_elements(LISTS.slice(start), None, kind).to_pylist() == expected
    assert child_offsets(LISTS.slice(start))[0].to_pylist()[0] == 0


def test_fields_of_null_structs_are_null() -> None:
    structs = pa.StructArray.from_arrays([pa.array([1, 2, 3])], names=["x"], mask=MASK)
    assert struct_children(structs)[0].to_pylist() == [1, None, 3]
    assert NestedColumns({"s": structs}.get).find(("s", "x")).to_pylist() == [1, None, 3]


def test_fields_that_share_a_name_are_not_chosen() -> None:
    structs = pa.StructArray.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["x", "x", "y"])
    columns = NestedColumns({"s": structs}.get)
    assert columns.find(("s", "x")) is None and columns.find(("s", "y", "z")) is None and columns.find(("t", "x")) is None
