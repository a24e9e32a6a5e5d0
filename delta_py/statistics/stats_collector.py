"""Statistics of a file that is being written, collected batch by batch, as the JSON text of `add.stats`.

Bounds of integers, dates, timestamps and short decimals come from the file's own footer, where the Parquet writer recorded them
exactly. Bounds of texts, floats and nested leaves come from the rows.
The chosen leaves get bounds and null counts. Strings are cut to a prefix (a cut maximum is rounded up), timestamps are cut to
milliseconds, decimals are exact. A bound that JSON or the protocol cannot represent is left out; readers treat it as unknown.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.statistics.parquet_statistics import chunk_statistics
from delta_py.types.nested_arrays import NestedColumns
from delta_py.types.schema import DATE, DataType, DecimalType, Path, PrimitiveType, StructType, find_path, to_arrow_type

_TYPES_IN_FOOTER = frozenset({"long", "integer", "short", "byte", "date", "timestamp", "timestamp_ntz"})
_BOUNDED_TYPES = _TYPES_IN_FOOTER | {"float", "double", "string"}
_LONGEST_INTEGER_DECIMAL = 18  # digits; the Parquet writer stores decimals up to this precision as integers
_LAST_CHARACTER = "\U0010ffff"


class StatsCollector:
    """Collects the statistics of one data file.

    schema: the physical schema of the data file. columns: paths of the leaves that get statistics (an array, map or variant
    counts as a leaf and gets only a null count). string_prefix: the length to which bounds of strings are cut. use_footer: the
    caller will call add_footer_bounds with the footer of the file that holds the rows. Then `update` does not compute the bounds
    that the footer has.
    """

    def __init__(self, schema: StructType, columns: Sequence[Path], *, string_prefix: int = 32, use_footer: bool = False) -> None:
        self._leaves = [(path, find_path(schema, path)[-1].data_type) for path in columns]
        self._string_prefix = string_prefix
        self._row_count = 0
        self._null_counts: dict[Path, int] = dict.fromkeys((path for path, _ in self._leaves), 0)
        self._minimum: dict[Path, pa.Scalar] = {}
        self._maximum: dict[Path, pa.Scalar] = {}
        self._paths_with_nan: set[Path] = set()
        self._footer_paths = {
            path for path, data_type in self._leaves if use_footer and len(path) == 1 and _is_in_footer(data_type)
        }

    @property
    def row_count(self) -> int:
        return self._row_count

    def update(self, batch: pa.RecordBatch) -> None:
        """Add the rows of one batch, whose columns have the physical names of the file."""
        self._row_count += batch.num_rows
        columns = NestedColumns(batch.column)
        for path, data_type in self._leaves:
            column = columns.find(path)
            assert column is not None, f"the file has no column {path}"
            self._null_counts[path] += column.null_count if not pa.types.is_null(column.type) else len(column)
            if is_bounded(data_type) and path not in self._footer_paths:
                self._widen_bounds(path, column)

    def add_footer_bounds(self, footer: Any) -> None:
        """Add the bounds from the footer of the file that holds the rows. footer: pyarrow's FileMetaData of the finished file,
        which stores short decimals as integers. If the footer has no bound for rows that are not null, the bound is unknown."""
        columns = [(index, footer.schema.column(index)) for index in range(footer.num_columns)]
        # A nested column's path may look like the name of a top-level column that contains dots. Only top-level columns have one
        # definition level.
        positions = {column.path: index for index, column in columns if column.max_definition_level == 1}
        for path, data_type in self._leaves:
            if path in self._footer_paths:
                bounds = _footer_bounds(footer, positions[path[0]])
                if bounds is not None:
                    self._minimum[path], self._maximum[path] = (_stored_to_scalar(raw, data_type) for raw in bounds)

    def set_statistics(
        self,
        row_count: int,
        null_counts: Mapping[Path, int],
        minimum: Mapping[Path, pa.Scalar],
        maximum: Mapping[Path, pa.Scalar],
    ) -> None:
        """Set the statistics of all rows of a file directly, instead of reading rows. A leaf that a mapping lacks is unknown."""
        self._row_count = row_count
        self._null_counts = dict(null_counts)
        self._minimum, self._maximum = dict(minimum), dict(maximum)

    def _widen_bounds(self, path: Path, column: pa.Array) -> None:
        """Widen the bounds of a leaf so that they include the values of the column. NaN is larger than any number, but JSON
        cannot represent it. So a leaf with NaN gets no maximum."""
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            self._paths_with_nan.add(path)
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        bounds = pc.min_max(column)
        low, high = bounds["min"], bounds["max"]
        if not low.is_valid:
            return
        current_low, current_high = self._minimum.get(path), self._maximum.get(path)
        if current_low is None or pc.less(low, current_low).as_py():
            self._minimum[path] = low
        if current_high is None or pc.greater(high, current_high).as_py():
            self._maximum[path] = high

    def to_json(self) -> str:
        """The statistics of all rows so far. tightBounds is true, because no row of a new file is deleted."""
        minimum: dict[str, Any] = {}
        maximum: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        for path, count in self._null_counts.items():
            _set_at(nulls, path, count)
        for path, _ in self._leaves:
            _set_at(minimum, path, self._lower_bound(path))
            _set_at(maximum, path, self._upper_bound(path))
        bounds = {"minValues": minimum, "maxValues": maximum}
        return orjson.dumps({"numRecords": self._row_count, **bounds, "nullCount": nulls, "tightBounds": True}).decode()

    def _lower_bound(self, path: Path) -> Any:
        """The minimum of a leaf as a JSON value, with texts cut to the prefix; None if there is none."""
        value = _python_value(self._minimum.get(path))
        return value[: self._string_prefix] if isinstance(value, str) else _json_value(value)

    def _upper_bound(self, path: Path) -> Any:
        """The maximum of a leaf as a JSON value, with texts rounded up to about the prefix; None if there is none."""
        value = None if path in self._paths_with_nan else _python_value(self._maximum.get(path))
        return _round_up(value, self._string_prefix) if isinstance(value, str) else _json_value(value)


def is_bounded(data_type: DataType) -> bool:
    """Whether the values of a type get bounds."""
    return isinstance(data_type, DecimalType) or (isinstance(data_type, PrimitiveType) and data_type.name in _BOUNDED_TYPES)


def _is_in_footer(data_type: DataType) -> bool:
    """Whether the footer of a file that pydelta writes has exact bounds of this type, as integers."""
    if isinstance(data_type, DecimalType):
        return data_type.precision <= _LONGEST_INTEGER_DECIMAL
    return isinstance(data_type, PrimitiveType) and data_type.name in _TYPES_IN_FOOTER


def _footer_bounds(footer: Any, index: int) -> tuple[int, int] | None:
    """The smallest and largest stored integer of a column over all row groups; None if a row group does not have them."""
    lows, highs = [], []
    for group in range(footer.num_row_groups):
        statistics = chunk_statistics(footer, group, index)
        if statistics is None:
            return None
        if statistics.has_min_max:
            lows.append(statistics.min_raw)
            highs.append(statistics.max_raw)
        # Without bounds, the row group must have only nulls. Otherwise it has values that are not known.
        elif not statistics.has_null_count or statistics.null_count < footer.row_group(group).num_rows:
            return None
    return (min(lows), max(highs)) if lows else None


def _stored_to_scalar(raw: int, data_type: DataType) -> pa.Scalar:
    """A stored integer as a value of the column: days, microseconds, or digits without the point."""
    if isinstance(data_type, DecimalType):
        return pa.scalar(Decimal(raw).scaleb(-data_type.scale), to_arrow_type(data_type))
    return pa.scalar(raw, pa.int32() if data_type == DATE else pa.int64()).cast(to_arrow_type(data_type))


def _python_value(bound: pa.Scalar | None) -> Any:
    """The bound as a Python value; None if there is no bound, or its date is outside the years 1 to 9999."""
    try:
        return None if bound is None else bound.as_py()
    except (OverflowError, ValueError):
        return None


def _set_at(tree: dict[str, Any], path: Path, value: Any) -> None:
    """Set the value at a path of nested objects; None sets nothing."""
    if value is None:
        return
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _round_up(text: str, prefix: int) -> str | None:
    """A text of about `prefix` characters that is greater than every string with the same prefix as `text`; None if there is
    none."""
    if len(text) <= prefix:
        return text
    return None if text[prefix] == _LAST_CHARACTER else text[:prefix] + _LAST_CHARACTER


def _json_value(value: Any) -> Any:
    """A bound as a JSON value; None if JSON cannot represent it. Timestamps are cut to milliseconds."""
    match value:
        case datetime():
            stamp = value.replace(microsecond=value.microsecond // 1000 * 1000)
            text = stamp.replace(tzinfo=None).isoformat(timespec="milliseconds")
            return text if value.tzinfo is None else text + "Z"
        case date():
            return value.isoformat()
        case Decimal():
            return orjson.Fragment(format(value, "f"))
        case float():
            return value if math.isfinite(value) else None
    return value
