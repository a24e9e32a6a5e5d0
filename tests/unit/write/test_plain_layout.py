"""Arrow values in every layout become plain arrays of the same values, in batches that are small in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_py.errors import UnsupportedOperationError
from delta_py.row_rules import plain_layout
from delta_py.row_rules.plain_layout import plain_batches
from delta_py.types.arrow_layouts import plain_type

LISTS = (
    pa.list_(pa.string_view()),
    pa.large_list(pa.string_view()),
    pa.list_view(pa.string_view()),
    pa.large_list_view(pa.string_view()),
    pa.list_(pa.string_view(), 2),
)
TEXTS = ["a", None, "a longer text that no view holds itself", "b", None, "c"]
PAIRS = [["a", "b"], None, ["c", None], ["d", "e"], ["f", "g"], None]


def in_plain_layout(array: pa.Array) -> pa.Array:
    """The array as plain_batches returns it, validated."""
    pieces = list(plain_batches(pa.RecordBatch.from_arrays([array], ["c"])))
    for piece in pieces:
        piece.validate(full=True)
        assert piece.schema.field("c").type == plain_type(array.type)
    return pa.concat_arrays([piece.column(0) for piece in pieces])


def as_dictionary(values: pa.Array) -> pa.Array:
    """Every second row is null, the others have the values in turn."""
    indices = [None if row % 2 else row // 2 for row in range(2 * len(values))]
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.uint8()), values)


def as_runs(values: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array(range(2, 2 * len(values) + 1, 2), pa.int16()), values)


def as_struct(values: pa.Array) -> pa.Array:
    """The first row is null and hides a value."""
    return pa.StructArray.from_arrays([values], names=["f"], mask=pa.array([row == 0 for row in range(len(values))]))


def as_list(values: pa.Array) -> pa.Array:
    """The second row is null and hides a value."""
    return pa.ListArray.from_arrays(pa.array([0, 2, 3, len(values)], pa.int32()), values, mask=pa.array([False, True, False]))


def as_views(values: pa.Array) -> pa.Array:
    """Lists that overlap, out of order, with a null that points beyond the values."""
    starts, sizes = pa.array([2, 0, 99, 1], pa.int32()), pa.array([2, 3, 7, 0], pa.int32())
    return pa.ListViewArray.from_arrays(starts, sizes, values, mask=pa.array([False, False, True, False]))


def as_map(values: pa.Array) -> pa.Array:
    """The second row is null and hides a value."""
    keys = pa.array([str(row) for row in range(len(values))], pa.string_view())
    mask = pa.array([False, True, False])
    return pa.MapArray.from_arrays(pa.array([0, 2, 3, len(values)], pa.int32()), keys, values, mask=mask)


LEAVES = {
    "text views": pa.array(TEXTS, pa.string_view()),
    "byte views": pa.array([None if t is None else t.encode() for t in TEXTS], pa.binary_view()),
    "large texts": pa.array(TEXTS, pa.large_string()),
    "numbers": pa.array([1, None, 3, 4, None, 6]),
    **{f"{kind}"[:20]: pa.array(PAIRS, kind) for kind in LISTS},
    "maps": pa.array([[("k", 1)], None, [], [("l", None)], [("m", 2), ("n", 3)], None], pa.map_(pa.string_view(), pa.int64())),
}
SHAPES: dict[str, Callable[[pa.Array], pa.Array]] = {
    "plain": lambda values: values,
    "dictionary": as_dictionary,
    "runs": as_runs,
    "struct": as_struct,
    "list": as_list,
    "views": as_views,
    "map": as_map,
    "dictionary in list": lambda values: as_list(as_dictionary(values)),
    "runs in views": lambda values: as_views(as_runs(values)),
    "dictionary in runs": lambda values: as_runs(as_dictionary(values)),
    "list in dictionary": lambda values: as_dictionary(as_list(values)),
    "struct of runs in map": lambda values: as_map(as_struct(as_runs(values))),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("slicing", [(0, None), (1, None), (1, 2)], ids=str)
def test_every_layout_becomes_plain_with_the_same_values(leaf: str, shape: str, slicing: tuple[int, int | None]) -> None:
    values = SHAPES[shape](LEAVES[leaf]).slice(*slicing)
    assert in_plain_layout(values).to_pylist() == values.to_pylist()


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_divided_one_by_one_keep_their_order(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_layout, "_MOST_BYTES", 1)
    values = SHAPES[shape](LEAVES["text views"])
    batch = pa.RecordBatch.from_arrays([values], ["c"])
    assert [piece.num_rows for piece in plain_batches(batch)] == [1] * len(values)
    assert in_plain_layout(values).to_pylist() == values.to_pylist()


EXTENSIONS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "uuid": (pa.uuid(), [b"0123456789abcdef", None]),
    "json": (pa.json_(pa.large_string()), ["{}", None]),
    "bool8": (pa.bool8(), [1, None]),
    "opaque": (pa.opaque(pa.binary_view(), "t", "v"), [b"x", None]),
    "tensor": (pa.fixed_shape_tensor(pa.int64(), [2]), [[1, 2], None]),
}


@pytest.mark.parametrize("name", EXTENSIONS)
@pytest.mark.parametrize("shape", ["plain", "dictionary", "runs", "struct"])
def test_extensions_become_their_storage(name: str, shape: str) -> None:
    kind, values = EXTENSIONS[name]
    storage = pa.array(values, kind.storage_type)
    shaped_values = SHAPES[shape](pa.ExtensionArray.from_storage(kind, storage))
    assert in_plain_layout(shaped_values).to_pylist() == SHAPES[shape](storage).to_pylist()


def test_a_plain_batch_is_not_copied() -> None:
    batch = pa.record_batch({"a": [1], "b": ["x"], "c": [[1]], "d": [{"e": 1.5}]})
    assert [piece is batch for piece in plain_batches(batch)] == [True]


def test_metadata_of_fields_and_schema_stays() -> None:
    field = pa.field("metadata", pa.large_binary(), metadata={"variant": "true"})
    schema = pa.schema([pa.field("v", pa.struct([field]), metadata={"k": "v"})], {"s": "t"})
    (piece,) = plain_batches(pa.RecordBatch.from_pylist([{"v": {"metadata": b"x"}}], schema=schema))
    assert piece.schema.metadata == {b"s": b"t"} and piece.schema.field("v").metadata == {b"k": b"v"}
    assert piece.schema.field("v").type.field(0).metadata == {b"variant": b"true"}


# ---------------------------------------------------------------- bounded memory

LONG_TEXT = "x" * 1_000_000


def repeated(layout: str, rows: int) -> pa.Array:
    """The same long text in each row, once in memory."""
    values = pa.array([LONG_TEXT])
    match layout:
        case "dictionary":
            return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), values)
        case "runs":
            return pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), values)
        case _:
            return pa.ListViewArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(np.ones(rows, np.int32)), values)


@pytest.mark.parametrize("layout", ["dictionary", "runs", "list views"])
def test_rows_that_share_a_long_value_come_in_small_batches(layout: str) -> None:
    rows = 3_000  # 3 GB in the plain layout
    batch = pa.RecordBatch.from_arrays([repeated(layout, rows)], ["c"])
    pieces = plain_batches(batch)
    sizes = [(piece.num_rows, piece.nbytes) for piece in pieces]
    assert sum(count for count, _ in sizes) == rows
    assert max(size for _, size in sizes) <= 17 * 1024 * 1024


def test_texts_after_many_short_rows_are_split_by_size() -> None:
    indices = np.concatenate([np.ones(100_000, np.int8), np.zeros(50, np.int8)])
    new_type = pa.DictionaryArray.from_arrays(pa.array(indices), pa.array([LONG_TEXT, "y"]))
    assert max(piece.nbytes for piece in plain_batches(pa.RecordBatch.from_arrays([new_type], ["c"]))) <= 17 * 1024 * 1024


def test_value_of_more_than_two_gib_is_refused_by_its_column() -> None:
    values = pa.array([LONG_TEXT], pa.string_view())
    elements = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2_200, np.int8)), values)
    list_array = pa.ListArray.from_arrays(pa.array([0, 2_200], pa.int32()), elements)
    with pytest.raises(UnsupportedOperationError, match="Column c of the data has a value of 2200"):
        list(plain_batches(pa.RecordBatch.from_arrays([list_array], ["c"])))


def test_a_dictionary_is_converted_once_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    converted: list[int] = []
    original = plain_layout._PlainConverter._takeable

    def counting(layout: Any, values: pa.Array) -> pa.Array:
        converted.append(len(values))
        return original(layout, values)

    monkeypatch.setattr(plain_layout, "_MOST_ROWS", 2)
    monkeypatch.setattr(plain_layout._PlainConverter, "_takeable", counting)
    dictionary_array = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 10, pa.int8()), pa.array(["a", "b"], pa.string_view()))
    assert len(list(plain_batches(pa.RecordBatch.from_arrays([dictionary_array], ["c"])))) == 10
    assert converted == [2]
