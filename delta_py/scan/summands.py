"""The argument of a sum: a column, or products, sums and differences of decimal columns, in whole numbers.

    Summand.parse(["*", "price", ["-", {"digits": 1, "scale": 0}, "discount"]])
    summand.numbers(batch)        # Numbers: int64 in units of 10^-4, and their bounds; None if these are too wide
    summand.decimals(batch, pa.decimal128(36, 4))       # the same, for any width

Decimals of up to 18 digits without their point are whole numbers of 64 bits. Their products, sums and differences usually fit
into 64 bits too: the bounds of a batch's columns show whether they do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.expressions.value_casts import unscaled_int64

LONG_MAX = 2**63 - 1
_Bounds: TypeAlias = "tuple[int, int]"
# For each operation: the function for Arrow arrays, and the one for Python's integers, which computes bounds.
_OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[[int, int], int]]] = {
    "*": (pc.multiply, operator.mul),
    "+": (pc.add, operator.add),
    "-": (pc.subtract, operator.sub),
}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Decimals as whole numbers. values: int64 in units of 10^-scale, one for each row, or one for all rows; null for a null
    value. bounds: the smallest and the largest value that may occur."""

    values: pa.Int64Array | pa.Int64Scalar
    scale: int
    bounds: _Bounds

    def scaled(self, scale: int) -> Numbers | None:
        """The same numbers with more decimal places; None if they may not fit 64 bits. scale: the new number of places, at least
        the present one."""
        factor = 10 ** (scale - self.scale)
        if factor == 1:
            return self
        if factor > LONG_MAX:
            return None
        return _combine("*", self, Numbers(pa.scalar(factor, pa.int64()), scale - self.scale, (factor, factor)), scale)


@dataclass(frozen=True, slots=True)
class Summand:
    """The argument of a sum, as a tree. It has one of three forms: a column, by its name; a constant, digits * 10^-scale; an
    operation (*, + or -) on left and right. The fields of the other forms have their defaults."""

    column: str | None = None
    digits: int = 0
    scale: int = 0
    operation: str | None = None
    left: Summand | None = None
    right: Summand | None = None

    @classmethod
    def parse(cls, expression: Any) -> Summand:
        """The summand in a JSON value. expression: the value, as in the module's example. Raises ValueError, KeyError, TypeError
        for anything else."""
        if isinstance(expression, str):
            return cls(column=expression)
        if isinstance(expression, dict):
            return cls(digits=int(expression["digits"]), scale=int(expression["scale"]))
        operation, left, right = expression
        if operation not in _OPERATIONS:
            raise ValueError(f"{operation!r} is no operation of sums")
        return cls(operation=operation, left=cls.parse(left), right=cls.parse(right))

    @property
    def columns(self) -> frozenset[str]:
        """All columns that the summand uses."""
        parts = (part.columns for part in (self.left, self.right) if part is not None)
        return frozenset(() if self.column is None else (self.column,)).union(*parts)

    def numbers(self, batch: pa.RecordBatch) -> Numbers | None:
        """The summand for each row of the batch. None if int64 may be too narrow for a value or an intermediate value."""
        if self.column is not None:
            return _column_numbers(batch[self.column])
        if self.left is None or self.right is None:  # a constant
            fits = abs(self.digits) <= LONG_MAX
            return Numbers(pa.scalar(self.digits, pa.int64()), self.scale, (self.digits,) * 2) if fits else None
        assert self.operation is not None
        left, right = self.left.numbers(batch), self.right.numbers(batch)
        if left is None or right is None:
            return None
        if self.operation == "*":
            return _combine(self.operation, left, right, left.scale + right.scale)
        scale = max(left.scale, right.scale)
        left, right = left.scaled(scale), right.scaled(scale)
        return None if left is None or right is None else _combine(self.operation, left, right, scale)

    def decimals(self, batch: pa.RecordBatch, data_type: pa.Decimal128Type) -> pa.Decimal128Array:
        """The summand for each row of the batch. Raises pa.ArrowInvalid for a value that has more digits than the type."""
        value = self._evaluate_wide(batch)
        values = pa.repeat(value, batch.num_rows) if isinstance(value, pa.Scalar) else value
        return values.cast(data_type)

    def _evaluate_wide(self, batch: pa.RecordBatch) -> Any:
        """The values as decimals with so many digits that no step overflows."""
        if self.column is not None:
            data_type = batch[self.column].type
            return batch[self.column].cast(pa.decimal256(data_type.precision, data_type.scale))
        if self.left is None or self.right is None:
            digits = max(len(str(abs(self.digits))), self.scale, 1)
            return pa.scalar(Decimal(self.digits).scaleb(-self.scale), pa.decimal256(digits, self.scale))
        assert self.operation is not None
        return _OPERATIONS[self.operation][0](self.left._evaluate_wide(batch), self.right._evaluate_wide(batch))


def _combine(operation: str, left: Numbers, right: Numbers, scale: int) -> Numbers | None:
    """The result of the operation on the values of both sides; None if it may exceed 64 bits. scale: the number of decimal places
    of the result."""
    compute, compute_bound = _OPERATIONS[operation]
    # Each operation has its smallest and largest result at the bounds of the two sides.
    ends = [compute_bound(left_end, right_end) for left_end in left.bounds for right_end in right.bounds]
    if max(-min(ends), max(ends)) > LONG_MAX:
        return None
    return Numbers(compute(left.values, right.values), scale, (min(ends), max(ends)))


def _column_numbers(column: pa.Array) -> Numbers:
    """The values of a column, which is an integer or a decimal of up to 18 digits."""
    is_decimal = pa.types.is_decimal(column.type)
    values = unscaled(column) if is_decimal else column.cast(pa.int64())
    ends = pc.min_max(values).as_py()
    bounds = (0, 0) if ends["min"] is None else (ends["min"], ends["max"])
    return Numbers(values, column.type.scale if is_decimal else 0, bounds)


def unscaled(column: pa.Decimal128Array) -> pa.Int64Array:
    """Decimals of up to 18 digits without their point."""
    assert column.type.bit_width == 128 and column.type.precision <= 18, column.type
    mask = None if column.null_count == 0 else np.asarray(column.is_null())
    return pa.array(unscaled_int64(column), pa.int64(), mask=mask)


def with_decimal_point(values: pa.Int64Array, data_type: pa.Decimal128Type) -> pa.Decimal128Array:
    """int64 as decimals with a point: the inverse of `unscaled`. Raises pa.ArrowInvalid for more digits than the type has."""
    numbers = np.asarray(values.fill_null(0))
    # A decimal128 is an integer of 128 bits: the low half is the number, the high half repeats its sign.
    halves = np.empty((len(values), 2), np.int64)
    halves[:, 0], halves[:, 1] = numbers, numbers >> 63
    validity = None if values.null_count == 0 else pc.is_valid(values).buffers()[1]
    # With 19 digits every int64 fits. The cast to fewer digits checks the values.
    decimals = pa.Array.from_buffers(
        pa.decimal128(max(data_type.precision, 19), data_type.scale), len(values), [validity, pa.py_buffer(halves)]
    )
    return decimals.cast(data_type)
