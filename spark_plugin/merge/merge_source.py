"""The source of a MERGE: it is computed once, and its keys limit the rows of the target.

with cached_source(merge, level) as source:
    facts = source_facts(merge, source, ask_unique=True)
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

# A key of the source with at most this many values limits the target by a list of them, any other by the least and the greatest.
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
    """frame: the columns that the MERGE names, and SOURCE_ROW if `is_cached`. is_cached: whether its rows were cached, so that
    each read returns the same rows with the same numbers. elapsed_ms: how long the caching took."""

    frame: DataFrame
    is_cached: bool
    elapsed_ms: int = 0


@contextmanager
def cached_source(merge: ResolvedMerge, level: StorageLevel) -> Iterator[Source]:
    """Yield the source so that each read of it returns the same rows. Its cached rows are deleted at the end.

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
    """Return whether the source is computed for each read, and not cached. False over Spark Connect, where the client does not
    know the plan."""
    internals = adapter_of(frame.sparkSession).internals
    if internals is None:
        return False
    # With this setting Spark skips missing files, so a second read may return fewer rows.
    skips_files = is_on(frame.sparkSession, IGNORE_MISSING_FILES, default=False)
    repeats = merge.parts.has_equal_keys and not skips_files and internals.is_repeatable(frame, FORMAT)
    return repeats and internals.estimated_bytes(frame) > _MOST_CACHED_BYTES


def reads_table(source: DataFrame, table: TablePath) -> bool:
    """Return whether the source also reads this table. False over Spark Connect, where the plan is on the server."""
    paths = adapter_of(source.sparkSession).read_paths(source)
    return any(is_same_place(local_path(table.url), local_path(path)) for path in paths)


def unread_source(merge: ResolvedMerge) -> Source:
    """Return the source without caching it, for plans: no job runs."""
    return Source(needed_columns(merge), False)


def needed_columns(merge: ResolvedMerge) -> DataFrame:
    """Return the source's columns that the MERGE names; all columns over Spark Connect, whose clients do not know which are
    named."""
    internals = adapter_of(merge.source.sparkSession).internals
    if internals is None:
        return merge.source
    both = merge.target.crossJoin(merge.source)
    named = [value.column.alias(f"v{number}") for number, value in enumerate(merge.values())]
    used = internals.used_attributes(both.select(*named))
    attributes = [attribute for attribute in internals.attributes(merge.source) if holds(used, attribute)]
    return merge.source.select(*(internals.column(attribute) for attribute in attributes))


# ---------------------------------------------------------------- facts from the keys


@dataclass(frozen=True, slots=True)
class _Bound:
    """A part of the condition that compares a value of the target with one of the source: target <comparison> source. source:
    null in rows that can match nothing because of other parts of the condition."""

    target: Column
    comparison: str
    source: Column
    data_type: DataType


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """rows: of the source. restriction: true for each row of the target that matches some row of the source; None if
    nothing is known. unique: each row of the target matches at most one row of the source, by the source's keys.
    equal: some part of the condition requires equal values, by which rows can be joined. key_bytes: the approximate size
    of the columns that the condition needs, source_bytes: of all."""

    rows: int
    restriction: Column | None
    unique: bool
    equal: bool
    key_bytes: int
    source_bytes: int


def source_facts(merge: ResolvedMerge, source: Source, *, ask_unique: bool) -> SourceFacts:
    """Return the facts from jobs over the source: one for sizes and bounds, another if some key has few values, and another for
    ask_unique. ask_unique: look for keys that occur twice (a shuffle of the keys); without it, `unique` is False."""
    bounds = _bounds(merge.parts)
    aggregates = [F.count(F.lit(1)).alias("rows"), *_widths(merge, source.frame)]
    for number, bound in enumerate(bounds):
        value = bound.source
        aggregates.append(_exact_in_python(F.min(value), bound.data_type).alias(f"min{number}"))
        aggregates.append(_exact_in_python(F.max(value), bound.data_type).alias(f"max{number}"))
        aggregates.append(F.count(value).alias(f"count{number}"))
        aggregates.append(F.approx_count_distinct(value).alias(f"distinct{number}"))
    # Not <=>, by which null keys match too: _is_unique looks only at keys that are not null.
    equal = [bound for bound in bounds if bound.comparison == "="]
    aggregated = source.frame.agg(*aggregates).first()
    assert aggregated is not None
    few = [number for number, bound in enumerate(bounds) if _lists_keys(bound) and aggregated[f"distinct{number}"] <= _FEW_KEYS]
    keys = _keys(source.frame, bounds, few)
    restricted = [_restricted(bound, number, aggregated, keys.get(number)) for number, bound in enumerate(bounds)]
    parts = [*merge.parts.of_target, *restricted]
    unique = ask_unique and bool(equal) and _is_unique(source.frame, equal)
    restriction = reduce(and_, parts) if parts else None
    return SourceFacts(
        aggregated["rows"], restriction, unique, merge.parts.has_equal_keys, aggregated["key_bytes"], aggregated["source_bytes"]
    )


def facts_without_rows(merge: ResolvedMerge, source: Source) -> SourceFacts:
    """Return the facts about a source before its rows are known: no job runs. The size in bytes is Spark's estimate; 0 over Spark
    Connect, which has no estimate."""
    restriction = reduce(and_, merge.parts.of_target) if merge.parts.of_target else None
    size = adapter_of(source.frame.sparkSession).estimated_bytes(source.frame)
    return SourceFacts(0, restriction, False, merge.parts.has_equal_keys, size, size)


def _bounds(parts: ConditionParts) -> list[_Bound]:
    """Return the comparisons whose least and greatest source value limit the target's values. Only rows that fulfil the
    condition's other parts about the source count.
    """
    of_source = reduce(and_, parts.of_source) if parts.of_source else None
    return [
        _Bound(part.target, part.operator, part.source if of_source is None else F.when(of_source, part.source), part.data_type)
        for part in parts.comparisons
        if part.is_ordered and _has_bounds(part.data_type)
    ]


def _widths(merge: ResolvedMerge, frame: DataFrame) -> list[Column]:
    """Return the approximate bytes of the columns that the condition needs, and of all, when they are broadcast. Very large over
    Spark Connect, where Spark decides what to broadcast."""
    if merge.condition.expression is None:
        return [F.lit(_MANY_BYTES).alias(name) for name in ("key_bytes", "source_bytes")]
    internals, used = SparkInternals(frame.sparkSession), used_by(merge.condition.expression)
    keys, everything = _RowWidth(), _RowWidth()
    for attribute, field in zip(internals.attributes(frame), frame.schema.fields, strict=True):
        is_text = isinstance(field.dataType, StringType | BinaryType)
        for width in (everything, keys) if holds(used, attribute) else (everything,):
            if is_text:
                width.add_text(internals.column(attribute))
            else:
                width.fixed_bytes += default_size(attribute)
    sums = {"key_bytes": keys, "source_bytes": everything}
    return [F.coalesce(F.sum(width.column()), F.lit(0)).alias(name) for name, width in sums.items()]


class _RowWidth:
    """The approximate bytes of some columns of a row. fixed_bytes: of the columns whose values have a fixed length."""

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


def _keys(frame: DataFrame, bounds: Sequence[_Bound], few: Sequence[int]) -> dict[int, list[Any]]:
    """Return the distinct values of each key that has few values, in the form of _exact_in_python. few: the positions of these
    keys in `bounds`, which are the keys of the result too."""
    if not few:
        return {}
    sets = [F.collect_set(_exact_in_python(bounds[number].source, bounds[number].data_type)).alias(str(number)) for number in few]
    values = frame.agg(*sets).first()
    assert values is not None
    return {number: values[str(number)] for number in few}


def _lists_keys(bound: _Bound) -> bool:
    return bound.comparison in ("=", "<=>") and not isinstance(bound.data_type, (FloatType, DoubleType))


def _restricted(bound: _Bound, number: int, aggregated: Any, keys: list[Any] | None) -> Column:
    """Return the condition that the target's value must fulfil to match any value of the source. number: the bound's position,
    which is part of the names in `aggregated`. keys: all values of the source; None if only the least and greatest are used."""
    kind, count = bound.data_type, aggregated[f"count{number}"]
    if count == 0:
        condition = F.lit(False)
    elif keys is not None:
        plain = isinstance(kind, (IntegralType, StringType, BooleanType))
        condition = bound.target.isin(keys if plain else [_back(key, kind) for key in keys])
    else:
        low, high = _back(aggregated[f"min{number}"], kind), _back(aggregated[f"max{number}"], kind)
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
    source_has_nulls = count < aggregated["rows"]
    return condition | bound.target.isNull() if bound.comparison == "<=>" and source_has_nulls else condition


def _is_unique(frame: DataFrame, equal: Sequence[_Bound]) -> bool:
    """Return whether no two rows of the source have the same non-null keys: then no row of the target matches two."""
    keys = [bound.source.alias(f"k{number}") for number, bound in enumerate(equal)]
    has_keys = reduce(and_, (bound.source.isNotNull() for bound in equal))
    twice = frame.where(has_keys).select(*keys).groupBy(*(f"k{number}" for number in range(len(keys)))).count().where("count > 1")
    return twice.limit(1).count() == 0


# ---------------------------------------------------------------- values that pass through Python


def _has_bounds(kind: DataType) -> bool:
    plain = isinstance(kind, (IntegralType, FractionalType, DateType, TimestampType, TimestampNTZType, BooleanType))
    return plain or kind.simpleString() == "string"  # another collation would have another order than the statistics


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


def _back(value: Any, kind: DataType) -> Column:
    """Return a value of _exact_in_python as a constant of its original type."""
    match kind:
        case DateType():
            return F.date_from_unix_date(F.lit(value))
        case TimestampType():
            return F.timestamp_micros(F.lit(value))
    return F.lit(value).cast(kind)
