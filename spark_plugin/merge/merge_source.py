"""The source of a MERGE: it is computed once, and its keys limit the rows of the target.

A key is an expression of the source that the condition compares with one of the target: s.id in `t.id = s.id`.

with cached_source(merge, level) as source:
    facts = source_facts(merge, source, check_unique=True)
    facts.restriction       # a condition on the target that is true for every matching row
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    FractionalType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from delta_py.storage.addresses import is_same_place
from spark_plugin.data_source import FORMAT
from spark_plugin.dml.analysis import ConditionParts
from spark_plugin.internals.jvm_plans import default_size, holds, used_by
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.merge.merge_job_clauses import ResolvedMerge
from spark_plugin.options.catalog_session_settings import IGNORE_MISSING_FILES
from spark_plugin.options.read_options import local_path
from spark_plugin.options.settings import TablePath, is_on

SOURCE_ROW = "__pydelta_source_row"
"""A unique number of each row of the source."""

# If a key has at most this many values, the target's rows are limited to a list of them. Otherwise they are limited to the range
# from the least to the greatest value.
_FEW_KEYS = 1000
# A repeatable source that is larger is computed for each read, and not cached.
_MOST_CACHED_BYTES = 64 * 1024 * 1024
# Approximate bytes that a broadcast row needs in addition to its values, and a text in addition to its characters.
_ROW_BYTES = 32
_TEXT_BYTES = 8
# A size above every limit, for a source whose size is not computed.
_MANY_BYTES = 2**62


@dataclass(frozen=True, slots=True)
class Source:
    """The source as the MERGE reads it. frame: the columns that the MERGE names, and SOURCE_ROW if `is_cached`. is_cached:
    whether its rows were cached, so that each read returns the same rows with the same numbers. elapsed_ms: how long the caching
    took."""

    frame: DataFrame
    is_cached: bool
    elapsed_ms: int = 0


@contextmanager
def cached_source(merge: ResolvedMerge, level: StorageLevel) -> Iterator[Source]:
    """Yield the source so that each read of it returns the same rows. Its cached rows are deleted at the end. level: where Spark
    caches them.

    It is read several times: for its keys, and for the join. So it is computed once and cached on the executors, without its
    lineage: lost rows are an error and are never computed again. Only a large source that is known to be repeatable is computed
    each time; files that may change, user functions and rows in no fixed order are not repeatable.
    """
    frame = needed_columns(merge)
    if _is_large_and_repeatable(merge, frame):
        yield Source(frame, False)
        return
    started = time.monotonic()
    numbered = frame.select("*", F.monotonically_increasing_id().alias(SOURCE_ROW))
    with adapter_of(frame.sparkSession).checkpointed(numbered, level, merge.source) as cached_frame:
        yield Source(cached_frame, True, round((time.monotonic() - started) * 1000))


def _is_large_and_repeatable(merge: ResolvedMerge, frame: DataFrame) -> bool:
    """Return whether the source is too large to cache, and returns the same rows each time it is computed. False over Spark
    Connect, where the client does not know the plan."""
    internals = adapter_of(frame.sparkSession).internals
    if internals is None:
        return False
    # With this setting Spark skips missing files, so a second read may return fewer rows.
    skips_files = is_on(frame.sparkSession, IGNORE_MISSING_FILES, default=False)
    may_repeat = merge.parts.has_equal_keys and not skips_files and internals.is_repeatable(frame, FORMAT)
    return may_repeat and internals.estimated_bytes(frame) > _MOST_CACHED_BYTES


def reads_table(source: DataFrame, table: TablePath) -> bool:
    """Return whether the source reads the table that the MERGE changes. False over Spark Connect, where the plan is on the
    server."""
    paths = adapter_of(source.sparkSession).read_paths(source)
    return any(is_same_place(local_path(table.url), local_path(path)) for path in paths)


def unread_source(merge: ResolvedMerge) -> Source:
    """Return the source without caching it, for a MERGE that is only explained. No job runs."""
    return Source(needed_columns(merge), False)


def needed_columns(merge: ResolvedMerge) -> DataFrame:
    """Return the source with only the columns that the MERGE names. Over Spark Connect it keeps all columns, because a client
    does not know which ones the MERGE names."""
    internals = adapter_of(merge.source.sparkSession).internals
    if internals is None:
        return merge.source
    both = merge.target.crossJoin(merge.source)
    values = [value.column.alias(f"v{number}") for number, value in enumerate(merge.values())]
    used_attributes = internals.used_attributes(both.select(*values))
    attributes = [attribute for attribute in internals.attributes(merge.source) if holds(used_attributes, attribute)]
    return merge.source.select(*(internals.column(attribute) for attribute in attributes))


# ---------------------------------------------------------------- facts from the keys


@dataclass(frozen=True, slots=True)
class _Bound:
    """A part of the condition that compares a value of the target with a key of the source: target <comparison> source.

    source: the key; null in rows that can match nothing because of other parts of the condition. data_type: of the key.
    """

    target: Column
    comparison: str
    source: Column
    data_type: DataType


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Facts about the source that decide how the MERGE runs.

    row_count: of the source. restriction: a condition that is true for each row of the target that matches some row of the
    source; None if nothing is known. is_unique: whether the source's keys prove that each row of the target matches at most one
    row of the source. has_equal_keys: whether some part of the condition requires equal values, by which Spark can join the rows.
    key_bytes: the approximate size of the source's columns that the condition needs. source_bytes: the size of all its columns.
    """

    row_count: int
    restriction: Column | None
    is_unique: bool
    has_equal_keys: bool
    key_bytes: int
    source_bytes: int


def source_facts(merge: ResolvedMerge, source: Source, *, check_unique: bool) -> SourceFacts:
    """Return the facts, which up to three jobs over the source compute: the first for sizes and bounds, one more if some key has
    few values, and one more for check_unique.

    check_unique: look for keys that occur twice, which shuffles the keys; without it, `is_unique` is False."""
    bounds = _bounds(merge.parts)
    aggregates = [F.count(F.lit(1)).alias("rows"), *_byte_sums(merge, source.frame)]
    for number, bound in enumerate(bounds):
        value = bound.source
        aggregates.append(_exact_in_python(F.min(value), bound.data_type).alias(f"min{number}"))
        aggregates.append(_exact_in_python(F.max(value), bound.data_type).alias(f"max{number}"))
        aggregates.append(F.count(value).alias(f"count{number}"))
        aggregates.append(F.approx_count_distinct(value).alias(f"distinct{number}"))
    # Not <=>, by which null keys match too: _is_unique looks only at keys that are not null.
    equal_bounds = [bound for bound in bounds if bound.comparison == "="]
    aggregated = source.frame.agg(*aggregates).first()
    assert aggregated is not None
    bounds_to_list = [
        number for number, bound in enumerate(bounds) if _may_list_keys(bound) and aggregated[f"distinct{number}"] <= _FEW_KEYS
    ]
    distinct_keys = _distinct_keys(source.frame, bounds, bounds_to_list)
    target_limits = [_target_limit(bound, number, aggregated, distinct_keys.get(number)) for number, bound in enumerate(bounds)]
    conditions = [*merge.parts.of_target, *target_limits]
    is_unique = check_unique and bool(equal_bounds) and _is_unique(source.frame, equal_bounds)
    restriction = reduce(and_, conditions) if conditions else None
    return SourceFacts(
        row_count=aggregated["rows"],
        restriction=restriction,
        is_unique=is_unique,
        has_equal_keys=merge.parts.has_equal_keys,
        key_bytes=aggregated["key_bytes"],
        source_bytes=aggregated["source_bytes"],
    )


def facts_without_rows(merge: ResolvedMerge, source: Source) -> SourceFacts:
    """Return the facts about a source before its rows are known: no job runs. The size in bytes is Spark's estimate; 0 over Spark
    Connect, which has no estimate."""
    restriction = reduce(and_, merge.parts.of_target) if merge.parts.of_target else None
    size = adapter_of(source.frame.sparkSession).estimated_bytes(source.frame)
    return SourceFacts(
        row_count=0,
        restriction=restriction,
        is_unique=False,
        has_equal_keys=merge.parts.has_equal_keys,
        key_bytes=size,
        source_bytes=size,
    )


def _bounds(parts: ConditionParts) -> list[_Bound]:
    """Return the comparisons for which the least and greatest value of the source limit the target's values. Only rows of the
    source for which the condition's parts about the source alone are true count: the key of the other rows is null.
    """
    of_source = reduce(and_, parts.of_source) if parts.of_source else None
    return [
        _Bound(part.target, part.operator, part.source if of_source is None else F.when(of_source, part.source), part.data_type)
        for part in parts.comparisons
        if part.is_ordered and _has_bounds(part.data_type)
    ]


def _byte_sums(merge: ResolvedMerge, frame: DataFrame) -> list[Column]:
    """Return two aggregates, the approximate bytes that a broadcast of the source takes: `key_bytes` for the columns that the
    condition needs, and `source_bytes` for all. They are very large over Spark Connect, where Spark decides what to broadcast."""
    if merge.condition.expression is None:
        return [F.lit(_MANY_BYTES).alias(name) for name in ("key_bytes", "source_bytes")]
    internals, used_attributes = SparkInternals(frame.sparkSession), used_by(merge.condition.expression)
    key_width, source_width = _RowWidth(), _RowWidth()
    for attribute, field in zip(internals.attributes(frame), frame.schema.fields, strict=True):
        is_text = isinstance(field.dataType, StringType | BinaryType)
        for width in (source_width, key_width) if holds(used_attributes, attribute) else (source_width,):
            if is_text:
                width.add_text(internals.column(attribute))
            else:
                width.fixed_bytes += default_size(attribute)
    widths = {"key_bytes": key_width, "source_bytes": source_width}
    return [F.coalesce(F.sum(width.column()), F.lit(0)).alias(name) for name, width in widths.items()]


class _RowWidth:
    """The approximate bytes that some columns of a row take. fixed_bytes: the part that is the same in each row. `_lengths` has
    the bytes of each text and binary column."""

    def __init__(self) -> None:
        self.fixed_bytes = _ROW_BYTES
        self._lengths: list[Column] = []

    def add_text(self, column: Column) -> None:
        self.fixed_bytes += _TEXT_BYTES
        self._lengths.append(F.coalesce(F.octet_length(column), F.lit(0)))

    def column(self) -> Column:
        """Return the sum as a tree of minimal depth: Spark walks expressions recursively, and a chain of thousands of additions
        overflows its stack."""
        terms = [F.lit(self.fixed_bytes), *self._lengths]
        while len(terms) > 1:
            pairs = [left + right for left, right in zip(terms[::2], terms[1::2], strict=False)]
            terms = [*pairs, terms[-1]] if len(terms) % 2 else pairs
        return terms[0]


def _distinct_keys(frame: DataFrame, bounds: Sequence[_Bound], numbers: Sequence[int]) -> dict[int, list[Any]]:
    """Return the distinct values of some keys of the source, in the form of _exact_in_python, by the number of the bound.
    numbers: the positions of these keys in `bounds`."""
    if not numbers:
        return {}
    sets = [
        F.collect_set(_exact_in_python(bounds[number].source, bounds[number].data_type)).alias(str(number)) for number in numbers
    ]
    values = frame.agg(*sets).first()
    assert values is not None
    return {number: values[str(number)] for number in numbers}


def _may_list_keys(bound: _Bound) -> bool:
    """Return whether the target may be limited to a list of the key's values. This needs an equality, and floats are limited only
    to their range."""
    return bound.comparison in ("=", "<=>") and not isinstance(bound.data_type, (FloatType, DoubleType))


def _target_limit(bound: _Bound, number: int, aggregated: Any, keys: list[Any] | None) -> Column:
    """Return the condition that the target's value must fulfil to match any value of the source.

    number: the bound's position, which is part of the names in `aggregated`, the row of aggregates over the source. keys: all
    values of the source, in the form of _exact_in_python; None if only the least and greatest value are used.
    """
    kind, key_count = bound.data_type, aggregated[f"count{number}"]
    if key_count == 0:  # all keys are null
        condition = F.lit(False)
    elif keys is not None:
        is_unchanged = isinstance(kind, (IntegralType, StringType, BooleanType))  # _exact_in_python changes keys of other types
        condition = bound.target.isin(keys if is_unchanged else [_constant(key, kind) for key in keys])
    else:
        low, high = _constant(aggregated[f"min{number}"], kind), _constant(aggregated[f"max{number}"], kind)
        match bound.comparison:
            case "=" | "<=>":
                condition = (bound.target >= low) & (bound.target <= high)
            case "<":
                condition = bound.target < high
            case "<=":
                condition = bound.target <= high
            case ">":
                condition = bound.target > low
            case _:
                condition = bound.target >= low
    nulls_match = bound.comparison == "<=>" and key_count < aggregated["rows"]
    return condition | bound.target.isNull() if nulls_match else condition


def _is_unique(frame: DataFrame, equal_bounds: Sequence[_Bound]) -> bool:
    """Return whether no two rows of the source have the same non-null keys: then no row of the target matches two of them."""
    names = [f"k{number}" for number in range(len(equal_bounds))]
    keys = [bound.source.alias(name) for name, bound in zip(names, equal_bounds, strict=True)]
    has_keys = reduce(and_, (bound.source.isNotNull() for bound in equal_bounds))
    repeated_keys = frame.where(has_keys).select(*keys).groupBy(*names).count().where("count > 1")
    return repeated_keys.limit(1).count() == 0


# ---------------------------------------------------------------- values that pass through Python


def _has_bounds(kind: DataType) -> bool:
    """Return whether values of the type have an order that the bounds in the table's statistics share."""
    is_ordered = isinstance(kind, (IntegralType, FractionalType, DateType, TimestampType, TimestampNTZType, BooleanType))
    return is_ordered or kind.simpleString() == "string"  # another collation would have another order than the statistics


def _exact_in_python(value: Column, kind: DataType) -> Column:
    """Return a value in a form that Python represents exactly, whatever the time zone."""
    match kind:
        case DateType():
            return F.unix_date(value)
        case TimestampType():
            return F.unix_micros(value)
        case TimestampNTZType() | DecimalType():
            return value.cast("string")
    return value


def _constant(value: Any, kind: DataType) -> Column:
    """Return a value in the form of _exact_in_python as a constant of its original type."""
    match kind:
        case DateType():
            return F.date_from_unix_date(F.lit(value))
        case TimestampType():
            return F.timestamp_micros(F.lit(value))
    return F.lit(value).cast(kind)
