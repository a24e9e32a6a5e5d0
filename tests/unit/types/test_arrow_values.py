"""Values made without pandas equal those from pyarrow, and planning a usual scan does not import pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from delta_py import write_delta
from delta_py.types.arrow_values import (
    EMPTY,
    FALSE,
    NULL,
    TRUE,
    ZERO,
    all_false,
    all_true,
    array,
    from_numpy,
    scalar,
    to_numpy,
)

VALUES: list[tuple[list[Any], pa.DataType]] = [
    ([], pa.int64()),
    ([1, None, -(2**63), 2**63 - 1], pa.int64()),
    ([*range(20)], pa.int32()),
    ([None, None], pa.int16()),
    ([-128, 127], pa.int8()),
    ([], pa.string()),
    (["", None, "ü", "\0", "𝄞" * 9], pa.string()),
    (["a"], pa.large_string()),
    ([None] * 9, pa.string()),
    ([True, False] * 9, pa.bool_()),
    ([True, None], pa.bool_()),
    ([None, None], pa.struct([("a", pa.int32())])),
    ([{"a": 1}, None], pa.struct([("a", pa.int32())])),
    ([1.5, None], pa.float64()),
    ([1, 2], pa.float64()),
]


@pytest.mark.parametrize(("values", "kind"), VALUES)
def test_array_is_that_of_pyarrow(values: list[Any], kind: pa.DataType) -> None:
    actual = array(values, kind)
    actual.validate(full=True)
    assert actual.equals(pa.array(values, kind))
    assert actual.null_count == pa.array(values, kind).null_count


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([2**63], pa.int64()),
        ([128], pa.int8()),
        (["1"], pa.int64()),
        ([1], pa.string()),
        (["\ud800"], pa.string()),
        ([1], pa.bool_()),
    ],
)
def test_array_of_other_values_raises_what_pyarrow_raises(values: list[Any], kind: pa.DataType) -> None:
    with pytest.raises((pa.ArrowException, ValueError, OverflowError, TypeError)) as expected:
        pa.array(values, kind)
    with pytest.raises(type(expected.value)):
        array(values, kind)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.bool_])
def test_numpy_arrays_are_taken_with_their_nulls_and_given_back(dtype: type) -> None:
    values, nulls = np.arange(19).astype(dtype), np.arange(19) % 3 == 0
    assert from_numpy(values).equals(pa.array(values))
    assert from_numpy(values[::2], nulls[::2]).equals(pa.array(values[::2], mask=nulls[::2]))
    assert from_numpy(values, np.zeros(19, np.bool_)).null_count == 0
    assert to_numpy(from_numpy(values).slice(3, 9)).tolist() == values[3:12].tolist()


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64(), pa.float64()])
def test_numbers_are_given_as_pyarrow_gives_them(kind: pa.DataType) -> None:
    numbers = pa.array(range(9), kind)
    for piece in (numbers, numbers.slice(2, 3), numbers.slice(9)):
        actual, expected = to_numpy(piece), piece.to_numpy()
        assert actual.dtype == expected.dtype
        assert actual.tolist() == expected.tolist()
    assert to_numpy(pa.nulls(0, kind)).tolist() == []


def test_numbers_with_a_null_are_not_given() -> None:
    for values in ([1, None], [True, None]):
        with pytest.raises(pa.ArrowInvalid):
            to_numpy(pa.array(values))


def test_constants_are_what_they_are_called() -> None:
    assert [TRUE.as_py(), FALSE.as_py(), ZERO.as_py(), NULL.as_py(), EMPTY.as_py()] == [True, False, 0, None, ""]
    assert [ZERO.type, NULL.type, EMPTY.type] == [pa.int64(), pa.int64(), pa.string()]
    assert (all_true(3).to_pylist(), all_false(3).to_pylist(), len(all_true(0))) == ([True] * 3, [False] * 3, 0)
    assert scalar(None, pa.string()).equals(pa.scalar(None, pa.string()))


# ---------------------------------------------------------------- planning

PLAN = """
import sys
from delta_py import DeltaTable
print(DeltaTable(sys.argv[1]).scan(filter=sys.argv[2] or None).report.files_kept, "pandas" in sys.modules)
"""


@pytest.mark.parametrize(
    ("condition", "files_kept"),
    [
        ("", 12),
        ("n = 3", 1),
        ("n + 1 > 3 AND NOT (n = 4)", 8),
        ("n IN (1, 5, 77)", 2),
        ("n IS NULL", 0),
        ("name = 'c-4'", 1),
        ("name LIKE 'c-1%'", 3),
        ("name IN ('c-1', 'd')", 1),
        ("p = 'a' AND n < 6", 2),
        ("q = 3", 1),
    ],
)
def test_plan_by_integers_and_texts_does_not_import_pandas(tmp_path: Path, condition: str, files_kept: int) -> None:
    numbers = range(12)
    columns = {"n": [*numbers], "name": [f"c-{n}" for n in numbers], "p": ["abc"[n % 3] for n in numbers], "q": [*numbers]}
    write_delta(str(tmp_path), pa.table(columns), partition_by=["p", "q"])
    command = [sys.executable, "-c", PLAN, str(tmp_path), condition]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stdout.split() == [str(files_kept), "False"]


TIMES = """
import sys
from delta_py.types.arrow_values import array
from delta_py.protocol.partition_values import parse_partition_values
from delta_py.types.schema import TIMESTAMP
import pyarrow as pa
for zone in ("America/New_York", "PST", "+01:00:30"):
    texts = array(["2024-07-01 00:00:00", None, "2050-07-01 00:00:00"], pa.string())
    print(parse_partition_values(texts, TIMESTAMP, timezone=zone).null_count, "pandas" in sys.modules)
"""


def test_partitions_of_zoned_timestamps_need_no_pandas() -> None:
    process = subprocess.run([sys.executable, "-c", TIMES], capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["1", "False"] * 3
