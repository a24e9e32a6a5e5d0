"""The join of a MERGE: it joins each row of the source and of the target with its match, as far as a clause may need the row.

    joined = join(merge, source, target_rows, facts)

Out: the source's columns and FROM_SOURCE (true; null for a row of the target that matches none), the target's columns and its
ROW_ADDRESS (null for a row of the source that matches none). If only rows without a match are needed, the target's columns are
missing.
"""

from __future__ import annotations

import sys

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from delta_py.types.sizes import parse_size
from spark_plugin.internals.jvm_plans import holds, used_by
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.merge.merge_job_clauses import ResolvedMerge
from spark_plugin.merge.merge_source import SOURCE_ROW, Source, SourceFacts
from spark_plugin.options.settings import conf

FROM_SOURCE = "__pydelta_from_source"

_MATCH = "__pydelta_match"


def join(merge: ResolvedMerge, source: Source, target_rows: DataFrame, facts: SourceFacts) -> DataFrame:
    """Join the source and the target. target_rows: the rows of the target that may match, and those that clauses for rows without
    a match may need.

    In an outer join Spark cannot broadcast a side whose rows it preserves, so it would sort the whole target even for a source of
    few rows. Therefore, if the source has few keys, only the keys are broadcast and joined to the target; then the matching rows
    are joined to the source by SOURCE_ROW. Without equal keys Spark must broadcast one side. This is the source, whatever its
    size: otherwise Spark would broadcast the target.
    """
    rows = source.frame.select("*", F.lit(True).alias(FROM_SOURCE))
    condition = merge.condition.column
    keeps_source, keeps_target = bool(merge.of_kind("not matched")), bool(merge.of_kind("not matched by source"))
    limit = broadcast_limit(target_rows) if facts.has_equal_keys else sys.maxsize
    if keeps_target or (not keeps_source and facts.source_bytes <= limit):
        # `keeps_source` means a full outer join here. With equal keys Spark cannot broadcast a side of it.
        is_broadcast = facts.source_bytes <= limit and not (keeps_source and facts.has_equal_keys)
        how = "full_outer" if keeps_source else ("left_outer" if keeps_target else "inner")
        return target_rows.join(F.broadcast(rows) if is_broadcast else rows, condition, how)
    changes_matches = bool(merge.of_kind("matched"))  # otherwise only the source's rows without a match are needed
    how = "left_anti" if not changes_matches else ("left_outer" if keeps_source else "inner")
    # Only a cached source has SOURCE_ROW.
    if not source.is_cached or facts.key_bytes > limit:
        return rows.join(target_rows, condition, how)
    matches = _matches(merge, source, target_rows, _columns_of(target_rows) if changes_matches else [])
    return rows.join(matches, F.col(SOURCE_ROW) == F.col(_MATCH), how)


def _matches(merge: ResolvedMerge, source: Source, target_rows: DataFrame, columns: list[Column]) -> DataFrame:
    """Return one row for each pair of a source row and a target row that match: the number of the source's row, as _MATCH, and
    these columns of the target. Only the source's keys are broadcast."""
    used_attributes = used_by(merge.condition.expression)
    internals = SparkInternals(target_rows.sparkSession)
    keys = [internals.column(attribute) for attribute in internals.attributes(source.frame) if holds(used_attributes, attribute)]
    source_keys = source.frame.select(*keys, F.col(SOURCE_ROW).alias(_MATCH))
    return target_rows.join(F.broadcast(source_keys), merge.condition.column, "inner").select(F.col(_MATCH), *columns)


def _columns_of(frame: DataFrame) -> list[Column]:
    internals = SparkInternals(frame.sparkSession)
    return [internals.column(attribute) for attribute in internals.attributes(frame)]


def broadcast_limit(frame: DataFrame) -> int:
    """Return the session's broadcast limit in bytes; -1 for never."""
    text = conf(frame.sparkSession, "spark.sql.autoBroadcastJoinThreshold")
    size = None if text is None else parse_size(text)
    return -1 if size is None else size
