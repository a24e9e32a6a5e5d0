"""Why a scan reads or skips each file of a version.

    explain_files(snapshot, predicate) -> pa.Table: EXPLANATION_SCHEMA, one row per file of the version

The files that are read are those of plan_scan: each condition of the predicate (its conjuncts) is evaluated for all files at
once, as a plan does. For a skipped file, the row names the first condition that rules the file out, and the smallest part of
the file's statistics that is enough to do so.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.expressions.sql_text.to_sql import to_sql
from delta_py.expressions.tree import Expression, columns_of, conjuncts
from delta_py.index.lookup import IndexLookup
from delta_py.log.commit_reader import PARTITION_VALUES_TYPE
from delta_py.protocol.column_mapping import physical_path
from delta_py.scan.file_pruner import FilePruner, row_predicate
from delta_py.snapshot import FileBatch, Snapshot
from delta_py.statistics.stats import FileStats, unknown_stats
from delta_py.types.arrow_values import all_true
from delta_py.types.names import joined_name

EXPLANATION_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("partition_values", PARTITION_VALUES_TYPE),  # by logical names, as the log writes the values
        ("size", pa.int64()),
        ("rows", pa.int64()),  # not deleted; null if the log does not contain it
        ("is_read", pa.bool_()),
        ("reason", pa.string()),  # a Reason
        ("condition", pa.string()),  # SQL of the condition that the reason refers to; null if there is none
        ("columns", pa.list_(pa.string())),  # of the condition
        ("minimum", pa.string()),  # of the condition's column as text, if exactly one column has statistics
        ("maximum", pa.string()),
        ("null_count", pa.int64()),
    ]
)


class Reason(StrEnum):
    """Why a file is read (the first four) or skipped.

    unknown: the log has no values that could rule the file out for this condition. bounds: minimum and maximum together.
    statistics: the file is ruled out only by all statistics together, or by statistics together with partition values.
    """

    NO_FILTER = "no filter"
    PARTITION_MATCHES = "partition values match"
    MAY_MATCH = "statistics admit it"
    UNKNOWN = "unknown"
    PARTITION = "partition values"
    NULL_COUNT = "null count"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    BOUNDS = "minimum and maximum"
    STATISTICS = "statistics"
    INDEX = "index"


# Parts of the statistics with which skipped files are checked again: the first part that is enough is the reason.
_PARTS: tuple[tuple[Reason, tuple[str, ...]], ...] = (
    (Reason.PARTITION, ()),
    (Reason.NULL_COUNT, ("null_count",)),
    (Reason.MINIMUM, ("minimum",)),
    (Reason.MAXIMUM, ("maximum",)),
    (Reason.BOUNDS, ("minimum", "maximum")),
)


def explain_files(snapshot: Snapshot, predicate: Expression | None, timezone: str = "UTC") -> pa.Table:
    """EXPLANATION_SCHEMA: one row for each file of the version, in the order in which a plan reads them.

    predicate, timezone: as for plan_scan and its ScanOptions. Raises what plan_scan raises.
    """
    conditions = [] if predicate is None else [_Condition.of(snapshot, part, timezone) for part in conjuncts(predicate)]
    leaves = {} if predicate is None else FilePruner.of(snapshot.config, predicate, timezone).stats_leaves
    parts = [
        _explain_batch(snapshot, batch, conditions)
        for batch in snapshot.file_batches(stats_leaves=leaves, want_records=True)
        if batch.files.num_rows
    ]
    table = pa.Table.from_batches(parts, EXPLANATION_SCHEMA)
    return _apply_indexes(snapshot, table, row_predicate(snapshot.config, predicate))


@dataclass(frozen=True, slots=True)
class _Condition:
    """One conjunct of the predicate.

    sql: the conjunct's text. pruner: rules out files by this conjunct alone. columns: logical names of the columns in it.
    is_exact: partition values alone decide the conjunct, so it is true for all rows of a file that it does not rule out.
    """

    sql: str
    pruner: FilePruner
    columns: tuple[str, ...]
    is_exact: bool

    @classmethod
    def of(cls, snapshot: Snapshot, part: Expression, timezone: str) -> _Condition:
        """The condition that a conjunct (`part`) of the predicate is."""
        config = snapshot.config
        pruner = FilePruner.of(config, part, timezone)
        columns = tuple(joined_name(path) for path in sorted(columns_of(part)))
        is_exact = row_predicate(config, part) is None
        return cls(to_sql(part), pruner, columns, is_exact)

    def is_unknown(self, batch: FileBatch) -> pa.BooleanArray:
        """Whether each file has neither a partition value nor a statistic for any of the columns."""
        # Every file has a value for each partition column.
        is_unknown = pa.repeat(pa.scalar(not self.pruner.partition_fields), batch.files.num_rows)
        stats = batch.stats or unknown_stats(batch.files.num_rows)
        for path in self.pruner.stats_leaves:
            for values in (stats.minimum, stats.maximum, stats.null_count):
                if path in values:
                    is_unknown = pc.and_(is_unknown, pc.is_null(values[path]))
        return is_unknown


def _explain_batch(snapshot: Snapshot, batch: FileBatch, conditions: Sequence[_Condition]) -> pa.RecordBatch:
    """EXPLANATION_SCHEMA for a batch of files, without the table's indexes."""
    count = batch.files.num_rows
    answer = _Answer.start(count, has_filter=bool(conditions))
    for index, condition in enumerate(conditions):
        answer.apply(index, condition, batch)
    columns = {
        "path": batch.files["path"],
        "partition_values": _logical_partition_values(snapshot, batch.files["partition_values"]),
        "size": batch.files["size"],
        "rows": batch.live_rows(),
        "is_read": answer.is_read,
        "reason": answer.reason,
        **_condition_columns(answer.condition_index, conditions, batch),
    }
    return pa.RecordBatch.from_arrays([columns[f.name].cast(f.type) for f in EXPLANATION_SCHEMA], schema=EXPLANATION_SCHEMA)


@dataclass(slots=True)
class _Answer:
    """Whether each file is read, and why, after the conditions that were applied so far: arrays with one value per file. reason:
    a Reason. condition_index: the number of the condition that the reason refers to; null if there is none."""

    is_read: pa.BooleanArray
    reason: pa.StringArray
    condition_index: pa.Int32Array

    @classmethod
    def start(cls, count: int, *, has_filter: bool) -> _Answer:
        """The answer before any condition is applied: all files are read. count: the number of files. has_filter: whether there
        will be conditions."""
        first_reason = Reason.PARTITION_MATCHES if has_filter else Reason.NO_FILTER
        return cls(all_true(count), pa.repeat(pa.scalar(str(first_reason)), count), pa.nulls(count, pa.int32()))

    def apply(self, index: int, condition: _Condition, batch: FileBatch) -> None:
        """Record which files the condition rules out, and by which part of their statistics. index: the condition's number."""
        may_match = condition.pruner.find_possible_matches(batch)
        ruled_out = pc.and_not(self.is_read, may_match)
        self.is_read = pc.and_(self.is_read, may_match)
        if not condition.is_exact:
            # If a file is read for several reasons, the weakest one is reported: that nothing is known.
            can_change_reason = pc.and_not(self.is_read, pc.equal(self.reason, str(Reason.UNKNOWN)))
            is_unknown = condition.is_unknown(batch)
            self._set_where(pc.and_not(can_change_reason, is_unknown), Reason.MAY_MATCH, index)
            self._set_where(pc.and_(can_change_reason, is_unknown), Reason.UNKNOWN, index)
        # The first part of the statistics that rules a file out without the others is its reason.
        for reason, parts in _PARTS:
            if not ruled_out.true_count:
                return
            batch_with_parts = FileBatch(batch.files, _select_statistics(batch.stats, parts))
            is_enough = pc.and_not(ruled_out, condition.pruner.find_possible_matches(batch_with_parts))
            self._set_where(is_enough, reason, index)
            ruled_out = pc.and_not(ruled_out, is_enough)
        self._set_where(ruled_out, Reason.STATISTICS, index)

    def _set_where(self, mask: pa.BooleanArray, reason: Reason, index: int) -> None:
        """Give the files for which the mask is true this reason, and this number of a condition."""
        self.reason = pc.if_else(mask, str(reason), self.reason)
        self.condition_index = pc.if_else(mask, pa.scalar(index, pa.int32()), self.condition_index)


def _select_statistics(stats: FileStats | None, parts: tuple[str, ...]) -> FileStats | None:
    """The statistics with only some of `minimum`, `maximum` and `null_count`. parts: the names of those that remain."""
    if stats is None:
        return None
    minimum, maximum, null_count = (
        getattr(stats, name) if name in parts else {} for name in ("minimum", "maximum", "null_count")
    )
    return replace(stats, minimum=minimum, maximum=maximum, null_count=null_count)


def _condition_columns(condition_index: pa.Int32Array, conditions: Sequence[_Condition], batch: FileBatch) -> dict[str, pa.Array]:
    """The columns of EXPLANATION_SCHEMA that describe each file's condition, by name. condition_index: as in _Answer."""
    sql = pa.array([condition.sql for condition in conditions], pa.string())
    columns = pa.array([condition.columns for condition in conditions], pa.list_(pa.string()))
    no_texts = pa.nulls(len(condition_index), pa.string())
    statistics: dict[str, pa.Array] = {"minimum": no_texts, "maximum": no_texts}
    statistics["null_count"] = pa.nulls(len(condition_index), pa.int64())
    for index, condition in enumerate(conditions):
        leaves = list(condition.pruner.stats_leaves)
        # With several columns, a reader could not tell which of them the minimum belongs to.
        if len(leaves) == 1 and batch.stats is not None:
            has_this_condition = pc.fill_null(pc.equal(condition_index, index), False)
            for name in statistics:
                values = getattr(batch.stats, name).get(leaves[0])
                if values is not None:
                    shown_values = values if name == "null_count" else _as_text(values)
                    statistics[name] = pc.if_else(has_this_condition, shown_values, statistics[name])
    return {"condition": sql.take(condition_index), "columns": columns.take(condition_index), **statistics}


def _as_text(values: pa.Array) -> pa.Array:
    """The values as text; all null if the column's type has no text, or if bytes in it are not valid UTF-8."""
    try:
        return values.cast(pa.string())
    except pa.ArrowException:
        return pa.nulls(len(values), pa.string())


def _logical_partition_values(snapshot: Snapshot, values: pa.Array) -> pa.Array:
    """Replace physical names of partition columns by logical ones; an unknown name stays. values: for each file, a map from
    physical names to the values' texts."""
    config = snapshot.config
    names = {physical_path(config.schema, (name,), config.column_mapping_mode)[0]: name for name in config.partition_columns}
    physical, logical = pa.array(names.keys(), pa.string()), pa.array(names.values(), pa.string())
    offsets, keys, items = values.offsets, values.keys, values.items
    renamed = pc.coalesce(logical.take(pc.index_in(keys, physical)), keys)
    return pa.MapArray.from_arrays(offsets, renamed, items)


def _apply_indexes(snapshot: Snapshot, table: pa.Table, predicate: Expression | None) -> pa.Table:
    """The explanations, after the table's indexes have ruled out files too. Indexes are checked last, for the remaining files."""
    index = IndexLookup.of(snapshot, predicate)
    if index is None or predicate is None:
        return table
    is_read = table["is_read"].combine_chunks()
    files_to_read = table.filter(is_read)
    # The index answers only for the files to read: its answers replace the values that are true.
    may_match = pc.replace_with_mask(
        is_read, is_read, pa.array(index.find_possible_matches(files_to_read).to_numpy(zero_copy_only=False))
    )
    ruled_out = pc.and_not(is_read, may_match)
    changed_columns = {"is_read": may_match, "reason": pc.if_else(ruled_out, str(Reason.INDEX), table["reason"])}
    changed_columns["condition"] = pc.if_else(ruled_out, to_sql(predicate), table["condition"])
    paths = [joined_name(path) for path in sorted(columns_of(predicate))]
    columns = pa.chunked_array(
        [pc.if_else(ruled_out, pa.scalar(paths, pa.list_(pa.string())), table["columns"].combine_chunks())]
    )
    changed_columns["columns"] = columns
    for name in ("minimum", "maximum", "null_count"):
        changed_columns[name] = pc.if_else(ruled_out, pa.scalar(None, table.schema.field(name).type), table[name])
    for name, values in changed_columns.items():
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), values)
    return table
