"""The known range of an operand's values in each of many files: bounds, and whether there are nulls.

Bounds of a column come from statistics or partition values. Casts and functions that keep the order of their argument
pass the bounds on. Everything is one Arrow value per file.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import ExpressionError
from delta_py.expressions.coercion import is_fractional
from delta_py.expressions.functions.function_table import FUNCTIONS, call_values
from delta_py.expressions.nodes import Node, literal_scalar
from delta_py.expressions.tree import Call, Cast, Column, Literal
from delta_py.expressions.value_casts import cast_values, type_family
from delta_py.statistics.bounds import without_calendar_limits
from delta_py.statistics.stats import FileStats
from delta_py.types.arrow_values import FALSE, TRUE, ZERO, all_false, all_true
from delta_py.types.schema import DataType, DecimalType, Path

# How far a wall clock may go back while time goes on: no zone ever set its clocks back by more than a day.
_ZONE_SLACK_MICROS = 25 * 3600 * 1_000_000
_FAILURES = (ExpressionError, pa.ArrowException)

# Casts, as pairs of type families, for which a <= b means cast(a) <= cast(b).
_ORDERED_CASTS = frozenset(
    {
        *((a, b) for a in ("integral", "fractional", "decimal") for b in ("integral", "fractional", "decimal")),
        ("boolean", "integral"),
        ("boolean", "fractional"),
        ("boolean", "decimal"),
        *((a, b) for a in ("date", "timestamp", "timestamp_ntz") for b in ("date", "timestamp", "timestamp_ntz")),
        ("timestamp", "integral"),
        ("integral", "timestamp"),
        ("string", "binary"),
    }
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """lower, upper: an Array with one value per file (null: unknown), a Scalar for a constant, or None: unknown for all files.

    all_null: files in which every row is null. may_be_null: files in which some row may be null. Both boolean Arrays.
    may_contain_nan: NaN, which is above everything, may be among the values although `upper` is a number. One flag for all files.
    """

    lower: Any
    upper: Any
    all_null: pa.BooleanArray
    may_be_null: pa.BooleanArray
    may_contain_nan: bool = False

    @property
    def is_constant(self) -> bool:
        return isinstance(self.lower, pa.Scalar)


class FileBounds:
    """Bounds of resolved operands over the files of some statistics.

    The keys of stats and partition_values are the paths in the operands' columns.
    """

    def __init__(self, stats: FileStats, partition_values: Mapping[Path, pa.Array]) -> None:
        self._stats = stats
        self._partitions = partition_values
        self._columns: dict[Path, Bounds] = {}
        # Masks with one value per file: true for all files, false for all files.
        self.every_file = all_true(stats.file_count)
        self.no_file = all_false(stats.file_count)

    def unknown(self) -> Bounds:
        """The bounds if nothing is known about the values: any value, null or NaN may be in any file."""
        return Bounds(None, None, self.no_file, self.every_file, may_contain_nan=True)

    def bounds_of(self, node: Node) -> Bounds:
        """The bounds of an operand in each file. Unknown for operations that do not keep the order of values."""
        match node.expression:
            case Literal():
                return self._literal_bounds(node.expression)
            case Column(path):
                return self.column_bounds(path)
            case Cast(_, target):
                return self._cast_bounds(node.children[0], target)
            case Call(name, _):
                return self._call_bounds(name, node)
        return self.unknown()

    # ------------------------------------------------------------ columns and constants

    def column_bounds(self, path: Path) -> Bounds:
        """The bounds of a column in each file: from partition values if it is a partition column, otherwise from statistics."""
        if path not in self._columns:
            self._columns[path] = self._partition_bounds(path) if path in self._partitions else self._statistics_bounds(path)
        return self._columns[path]

    def _partition_bounds(self, path: Path) -> Bounds:
        """A partition value is the value of all rows of a file, so it is both bounds."""
        values = self._partitions[path]
        is_null = pc.is_null(values)
        return Bounds(values, values, is_null, is_null)

    def _statistics_bounds(self, path: Path) -> Bounds:
        """The bounds of a column by the statistics. NaN as a bound counts as unknown. Floating point columns may have NaN among
        their values, because writers leave it out of bounds."""
        lower, upper = self._stats.minimum.get(path), self._stats.maximum.get(path)
        # Some writers cannot write years beyond 9999 or before 1: their first and last bound may stand for values beyond it.
        lower = None if lower is None else without_calendar_limits(lower, -1)
        upper = None if upper is None else without_calendar_limits(upper, 1)
        all_null, may_be_null = self._null_masks(path)
        if lower is not None and upper is not None:
            # Bounds that contradict each other are damaged, so they count as unknown.
            are_crossed = pc.greater(lower, upper)
            if pc.any(are_crossed).as_py():
                lower, upper = (pc.if_else(are_crossed.fill_null(False), None, side) for side in (lower, upper))
        is_floating = any(side is not None and pa.types.is_floating(side.type) for side in (lower, upper))
        if is_floating:
            lower, upper = (None if side is None else pc.if_else(pc.is_nan(side), None, side) for side in (lower, upper))
        return Bounds(lower, upper, all_null, may_be_null, may_contain_nan=is_floating)

    def _null_masks(self, path: Path) -> tuple[pa.BooleanArray, pa.BooleanArray]:
        """all_null and may_be_null, as in Bounds. A null count of 0 or of all rows is right even if bounds are wide
        (tightBounds is false). Any other count then means nothing, and is not used to conclude more."""
        nulls, rows = self._stats.null_count.get(path), self._stats.num_records
        if nulls is None:
            return self.no_file, self.every_file
        all_null = pc.and_(pc.equal(nulls, rows), pc.greater(rows, ZERO))
        return pc.fill_null(all_null, FALSE), pc.fill_null(pc.not_equal(nulls, ZERO), TRUE)

    def _literal_bounds(self, literal: Literal) -> Bounds:
        """A constant is its own bound on both sides. Null and NaN have no bounds."""
        if literal.value is None:
            return Bounds(None, None, self.every_file, self.every_file)
        scalar = literal_scalar(literal)
        if isinstance(literal.value, float) and math.isnan(literal.value):
            return Bounds(None, None, self.no_file, self.no_file, may_contain_nan=True)
        return Bounds(scalar, scalar, self.no_file, self.no_file)

    # ------------------------------------------------------------ operations that keep order

    def _cast_bounds(self, operand: Node, target: DataType) -> Bounds:
        """The bounds of a cast: the casts of the operand's bounds. Unknown unless the cast keeps the order of values."""
        operand_bounds, source = self.bounds_of(operand), operand.data_type
        # Only NaN and infinities become null in a cast, and only in a cast to decimals.
        nulls = self.every_file if is_fractional(source) and isinstance(target, DecimalType) else operand_bounds.may_be_null
        unknown_bounds = Bounds(None, None, operand_bounds.all_null, nulls, may_contain_nan=True)
        if (type_family(source), type_family(target)) not in _ORDERED_CASTS:
            return unknown_bounds
        if operand_bounds.may_contain_nan and not is_fractional(target) and not isinstance(target, DecimalType):
            return unknown_bounds  # the cast of NaN fails

        def cast_side(side: Any) -> Any:
            return _run_on_side(side, lambda values: cast_values(values, source, target))

        bounds = _change_sides(operand_bounds, cast_side)
        if bounds is None:
            return unknown_bounds
        bounds = replace(bounds, may_be_null=nulls)
        return bounds if is_fractional(target) or not operand_bounds.may_contain_nan else replace(bounds, upper=None)

    def _call_bounds(self, name: str, node: Node) -> Bounds:
        """The bounds of a call, if one argument varies, all others are constants, and the result increases with this argument.
        Otherwise unknown."""
        varying = [position for position, child in enumerate(node.children) if not isinstance(child.expression, Literal)]
        if len(varying) != 1:
            return self.unknown()
        operand = node.children[varying[0]]
        if name in ("from_utc_timestamp", "to_utc_timestamp"):  # these do not quite keep the order
            return self._zone_conversion_bounds(name, node, operand)
        function = FUNCTIONS.get(name)
        if function is None or function.run is None or not (function.increasing or _adds_constant(name, node, varying[0])):
            return self.unknown()
        operand_bounds = self.bounds_of(operand)
        if operand_bounds.may_contain_nan and not is_fractional(node.data_type):
            return self.unknown()  # the value that NaN becomes (0, in floor) may be anywhere
        return self._bounds_through_call(node, varying[0], operand_bounds) or self.unknown()

    def _bounds_through_call(self, node: Node, varying: int, operand_bounds: Bounds) -> Bounds | None:
        """The bounds of a call: the function's results for both bounds of its only argument that varies.

        varying: the position of this argument. operand_bounds: the bounds of this argument.
        None if a constant is null, or if a bound has no result that is known (see _change_sides).
        """
        assert isinstance(node.expression, Call)
        name = node.expression.name
        literals = [child.expression if isinstance(child.expression, Literal) else None for child in node.children]
        if any(literal is not None and literal.value is None for literal in literals):
            return None

        def run(values: Any) -> Any:
            arguments = [values if literal is None else literal_scalar(literal) for literal in literals]
            constants = [None if literal is None else literal.value for literal in literals]
            return call_values(name, arguments, constants, node.data_type)

        return _change_sides(operand_bounds, lambda side: _run_on_side(side, run))

    def _zone_conversion_bounds(self, name: str, node: Node, operand: Node) -> Bounds:
        """The bounds of from_utc_timestamp and to_utc_timestamp. Unknown if the zone is not a constant.

        Wall clocks go back at the end of daylight saving time, so a later instant may have an earlier wall clock. The bounds are
        widened by more than clocks ever go back.
        """
        bounds = self._bounds_through_call(node, 0, self.bounds_of(operand)) if operand is node.children[0] else None
        if bounds is None:
            return self.unknown()
        try:
            lower, upper = _shift_side(bounds.lower, -_ZONE_SLACK_MICROS), _shift_side(bounds.upper, _ZONE_SLACK_MICROS)
            return replace(bounds, lower=lower, upper=upper)
        except _FAILURES:
            return self.unknown()


def _adds_constant(name: str, node: Node, varying: int) -> bool:
    """Whether the call is `x + c`, `c + x` or `x - c`, which keep order. The functions that add days to a date (date_add)
    may wrap, and have other names. varying: the position of x."""
    return len(node.children) == 2 and (name == "+" or (name == "-" and varying == 0))


def _change_sides(bounds: Bounds, change: Any) -> Bounds | None:
    """The bounds with both sides changed; None if a side cannot be changed, or becomes null: then values between
    may become null too. change: the old lower or upper bound -> the new one."""
    try:
        lower, upper = change(bounds.lower), change(bounds.upper)
    except _FAILURES:
        return None
    is_lost = _becomes_null(bounds.lower, lower) or _becomes_null(bounds.upper, upper)
    return None if is_lost else replace(bounds, lower=lower, upper=upper)


def _becomes_null(old_side: Any, new_side: Any) -> bool:
    """Whether a bound that was known is null after the change. old_side, new_side: a side of Bounds."""
    if old_side is None:
        return False
    if isinstance(old_side, pa.Scalar):
        return bool(old_side.is_valid and not new_side.is_valid)
    return bool(new_side.null_count > old_side.null_count)


def _run_on_side(side: Any, run: Any) -> Any:
    """run(side) for a side of Bounds. run: a function that needs an Array; a Scalar is passed as an Array of one value."""
    if side is None:
        return None
    return run(pa.repeat(side, 1))[0] if isinstance(side, pa.Scalar) else run(side)


def _shift_side(side: Any, micros: int) -> Any:
    """A side of Bounds of timestamps, later by micros; None remains None. Raises pa.ArrowException if a time does not fit."""
    if side is None:
        return None
    return pc.add_checked(side.cast(pa.int64()), pa.scalar(micros, pa.int64())).cast(side.type)
