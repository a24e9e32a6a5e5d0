"""Answers about a table's rows from the log alone: row counts, counts of values, smallest and largest values.

    answer_from_log(snapshot, Question(by=("day",), maxima=("id",)), predicate) -> Arrow table, or None

None means that the log does not contain the exact answer, for whatever reason: then the files must be read. The log has the
exact answer if every file has `numRecords` and, for values, statistics that are exactly those of its rows: no deletion
vector, tight bounds, a type whose bounds no writer cuts or rounds. Partition columns are exact by themselves.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import SchemaMismatchError
from delta_py.expressions.tree import Expression
from delta_py.protocol.collations import is_collated
from delta_py.protocol.column_mapping import physical_path
from delta_py.protocol.partition_values import find_malformed
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.file_pruner import FilePruner, partition_texts, row_predicate, typed_partition_values
from delta_py.scan.planning import ScanOptions
from delta_py.snapshot import FileBatch, Snapshot
from delta_py.statistics.stats import FileStats
from delta_py.types.arrow_values import all_false
from delta_py.types.schema import DataType, DecimalType, Path, PrimitiveType, StructField, find_path, to_arrow_type

MAX_GROUPS = 10_000
"""No answer is given for more distinct partitions than this, because the answer has one row per partition."""

_FIRST_SAFE_DAY = -141_427  # 1582-10-15: older writers number the days before it by another calendar
_EXACT_DECIMAL_DIGITS = 15  # some writers convert longer ones to double
# Types whose bounds in the statistics are values of the column. The values of partition columns are exact for more types.
_EXACT = frozenset({"byte", "short", "integer", "long", "boolean", "date"})
_EXACT_IN_PARTITIONS = _EXACT | {"string", "binary", "timestamp", "timestamp_ntz"}


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a table's rows. Names are of top-level columns.

    by: partition columns; there is one answer for each combination of their values. valued: columns whose rows with a
    value are counted. minima, maxima: columns whose smallest or largest value is requested.
    """

    by: tuple[str, ...] = ()
    valued: tuple[str, ...] = ()
    minima: tuple[str, ...] = ()
    maxima: tuple[str, ...] = ()


def answer_from_log(
    snapshot: Snapshot, question: Question, predicate: Expression | None = None, options: ScanOptions | None = None
) -> pa.Table | None:
    """A row for each combination of partition values that occurs in rows: the columns of `by`, the number of rows, then the
    requested counts, minima and maxima, in that order; their names have no meaning. A combination may occur more than
    once if the log spells its values in several ways. Without `by` there is one row, or none if the table has no rows.

    predicate: skips files in which no row can match, but does not drop single rows. If rows would have to be dropped
    (options.drop_rows), there is no answer. Raises what Snapshot.file_batches raises.
    """
    options = options or ScanOptions()
    remaining_predicate = row_predicate(snapshot.config, predicate)
    # The log does not know which files are missing, nor how many rows of a file the predicate drops.
    if options.ignore_missing_files or (options.drop_rows and remaining_predicate is not None):
        return None
    columns = _Columns.of(snapshot.config, question, options.timezone)
    if columns is None:
        return None
    return _answer(snapshot, columns, FilePruner.of(snapshot.config, predicate, options.timezone))


def _answer(snapshot: Snapshot, columns: _Columns, pruner: FilePruner) -> pa.Table | None:
    """The answer from the statistics of all files; None if a file has too few, or the groups are too many."""
    leaves = {**pruner.stats_leaves, **columns.leaves}
    parts = [columns.schema.empty_table()]
    for batch in snapshot.file_batches(stats_leaves=leaves, want_records=True):
        part = columns.answers_per_file(pruner.prune_batch(batch))
        if part is None:
            return None
        parts.append(columns.merge_groups(part))
        # Merging now and then limits the memory, and finds too many groups early. A smaller limit would merge too often.
        if sum(part.num_rows for part in parts) > 4 * MAX_GROUPS:
            parts = [columns.merge_groups(pa.concat_tables(parts))]
            if parts[0].num_rows > MAX_GROUPS:
                return None
    answers = columns.merge_groups(pa.concat_tables(parts))
    return columns.with_typed_values(answers) if answers.num_rows <= MAX_GROUPS else None


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a question, found in the table's schema. Each column is a pair of its physical path and its logical field;
    in `by`, of its physical name and its logical field, because partition columns are not nested.

    partitions: the physical paths of all partition columns. leaves: the columns whose statistics the answer needs.
    Every partial answer is a table with `schema`: the texts of the `by` columns, the number of rows, counts, minima and maxima.
    """

    by: tuple[tuple[str, StructField], ...]
    valued: tuple[tuple[Path, StructField], ...]
    minima: tuple[tuple[Path, StructField], ...]
    maxima: tuple[tuple[Path, StructField], ...]
    partitions: frozenset[Path]
    timezone: str
    leaves: Mapping[Path, DataType] = field(default_factory=dict)

    @classmethod
    def of(cls, config: TableConfig, question: Question, timezone: str) -> _Columns | None:
        """Find the question's columns. None if the log cannot have the exact answer for a column, or if a column is not in the
        table."""
        schema, mode = config.schema, config.column_mapping_mode

        def find_columns(names: Sequence[str]) -> tuple[tuple[Path, StructField], ...]:
            columns = [find_path(schema, (name,))[0] for name in names]
            return tuple((physical_path(schema, (f.name,), mode), f) for f in columns)

        try:
            by, valued, minima, maxima = map(find_columns, (question.by, question.valued, question.minima, question.maxima))
        except SchemaMismatchError:
            return None
        partitions = frozenset(physical_path(schema, (name,), mode) for name in config.partition_columns)
        if not all(path in partitions for path, _ in by) or not all(_has_own_null_count(f.data_type) for _, f in valued):
            return None
        if not all(_has_exact_bounds(f.data_type, path in partitions) for path, f in (*minima, *maxima)):
            return None
        if any(is_collated(f) for _, f in (*by, *minima, *maxima)):  # bytes decide neither equality nor order of collated texts
            return None
        leaves = {path: f.data_type for path, f in (*valued, *minima, *maxima) if path not in partitions}
        return cls(tuple((path[0], f) for path, f in by), valued, minima, maxima, partitions, timezone, leaves)

    # ------------------------------------------------------------ one answer a file

    def answers_per_file(self, batch: FileBatch) -> pa.Table | None:
        """A partial answer with a row for each file that has rows. None if a file's statistics do not contain the answer, or a
        partition value is invalid."""
        rows = batch.live_rows()
        if rows.null_count:
            return None
        batch = batch.filter(pc.greater(rows, 0))
        if any(self._has_malformed_value(batch.files, name, column) for name, column in self._partition_columns().items()):
            return None
        files, stats, rows = batch.files, batch.stats, rows.filter(pc.greater(rows, 0))
        assert stats is not None, "rows are known"
        # With a deletion vector, the row with the smallest value may be deleted.
        has_exact_bounds = pc.and_(files["deletion_vector"].is_null(), stats.tight_bounds)
        columns: list[pa.Array | None] = [
            *(partition_texts(files, name) for name, _ in self.by),
            rows,
            *(self._value_counts(files, stats, rows, has_exact_bounds, path, f) for path, f in self.valued),
            *(self._file_bounds(files, stats, has_exact_bounds, path, f, smallest=True) for path, f in self.minima),
            *(self._file_bounds(files, stats, has_exact_bounds, path, f, smallest=False) for path, f in self.maxima),
        ]
        known_columns = [array for array in columns if array is not None]
        return pa.Table.from_arrays(known_columns, schema=self.schema) if len(known_columns) == len(columns) else None

    def _partition_columns(self) -> dict[str, StructField]:
        """The partition columns in the question, by physical name."""
        question_columns = {
            path[0]: column for path, column in (*self.valued, *self.minima, *self.maxima) if path in self.partitions
        }
        return {**dict(self.by), **question_columns}

    def _has_malformed_value(self, files: pa.RecordBatch, name: str, column: StructField) -> bool:
        """Whether a file's value in the partition column cannot be parsed. name: the column's physical name."""
        texts = partition_texts(files, name)
        return bool(pc.any(find_malformed(texts, typed_partition_values(texts, column, self.timezone))).as_py())

    @property
    def schema(self) -> pa.Schema:
        """The columns of a partial answer. Their names tell merge_groups what to do with a column."""
        fields = [
            *((f"by{position}", pa.string()) for position in range(len(self.by))),
            ("rows", pa.int64()),
            *((f"valued{position}", pa.int64()) for position in range(len(self.valued))),
            *((f"min{position}", to_arrow_type(column.data_type)) for position, (_, column) in enumerate(self.minima)),
            *((f"max{position}", to_arrow_type(column.data_type)) for position, (_, column) in enumerate(self.maxima)),
        ]
        return pa.schema(fields)

    def _value_counts(
        self, files: pa.RecordBatch, stats: FileStats, rows: pa.Array, has_exact_bounds: pa.Array, path: Path, column: StructField
    ) -> pa.Array | None:
        """The number of rows with a value in the column, for each file; None if it is unknown for a file.

        Null counts include deleted rows. So they are exact only if no row is deleted, or if no row or every row is null.
        rows: the number of rows of each file that are not deleted.
        """
        if path in self.partitions:
            values = typed_partition_values(partition_texts(files, path[0]), column, self.timezone)
            return pc.if_else(values.is_valid(), rows, pa.scalar(0, pa.int64()))
        nulls = stats.null_count.get(path)
        if nulls is None or not _is_all_true(pc.less_equal(nulls, stats.num_records)):
            return None
        has_no_null, is_all_null = pc.equal(nulls, 0), pc.equal(nulls, stats.num_records)
        if not _is_all_true(pc.or_(has_exact_bounds, pc.or_(has_no_null, is_all_null))):
            return None
        return pc.if_else(has_no_null, rows, pc.if_else(is_all_null, pa.scalar(0, pa.int64()), pc.subtract(rows, nulls)))

    def _file_bounds(
        self,
        files: pa.RecordBatch,
        stats: FileStats,
        has_exact_bounds: pa.Array,
        path: Path,
        column: StructField,
        *,
        smallest: bool,
    ) -> pa.Array | None:
        """The minimum or maximum of the column in each file (null for a file without values); None if it is not exact for a file.
        has_exact_bounds: for each file, whether its bounds are those of its live rows."""
        if path in self.partitions:
            return typed_partition_values(partition_texts(files, path[0]), column, self.timezone)
        minimum, maximum = stats.minimum.get(path), stats.maximum.get(path)
        nulls = stats.null_count.get(path)
        if minimum is None or maximum is None or not _is_all_true(has_exact_bounds):
            return None
        is_all_null = all_false(len(minimum)) if nulls is None else pc.equal(nulls, stats.num_records)
        # The bounds of a file can be used if minimum <= maximum. A file without bounds has no value if all its rows are null.
        is_sound = pc.fill_null(pc.less_equal(minimum, maximum), False)
        if pa.types.is_date(minimum.type):
            is_sound = pc.and_(is_sound, pc.fill_null(pc.greater_equal(minimum.cast(pa.int32()), _FIRST_SAFE_DAY), False))
        has_no_value = pc.and_(pc.fill_null(is_all_null, False), pc.and_(minimum.is_null(), maximum.is_null()))
        return (minimum if smallest else maximum) if _is_all_true(pc.or_(is_sound, has_no_value)) else None

    # ------------------------------------------------------------ one answer a combination

    def merge_groups(self, part: pa.Table) -> pa.Table:
        """A partial answer with one row for each combination of texts: the sums of counts, the smallest minima and the largest
        maxima. part: a partial answer in which a combination may occur more than once."""
        if part.num_rows < 2:
            return part.combine_chunks()
        codes = _combination_codes([part[name].combine_chunks() for name in part.column_names[: len(self.by)]], part.num_rows)
        order = np.argsort(codes, kind="stable")
        # Where each combination begins among the rows in this order.
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        merged_columns = []
        for position, name in enumerate(part.column_names):
            values = part[name].combine_chunks()
            if position < len(self.by):
                merged_columns.append(values.take(pa.array(order[starts])))
            elif name.startswith(("min", "max")):
                merged_columns.append(_smallest_or_largest(codes, values, starts, smallest=name.startswith("min")))
            else:
                merged_columns.append(pa.array(np.add.reduceat(values.to_numpy()[order], starts), pa.int64()))
        return pa.table(merged_columns, names=part.column_names)

    def with_typed_values(self, answers: pa.Table) -> pa.Table:
        """The same table with typed partition values instead of their texts."""
        values = [
            typed_partition_values(answers[position].combine_chunks(), column, self.timezone)
            for position, (_, column) in enumerate(self.by)
        ]
        return pa.table([*values, *answers.columns[len(values) :]], names=answers.column_names)


# ---------------------------------------------------------------- what may be said


def _has_own_null_count(data_type: DataType) -> bool:
    """Whether statistics have a null count for a column of the type itself, not only for fields nested in it."""
    match data_type:
        case PrimitiveType(name):
            return name not in ("void", "variant")
    return isinstance(data_type, DecimalType)


def _has_exact_bounds(data_type: DataType, is_partition: bool) -> bool:
    """Whether the minimum and maximum of the type are values that occur in the column: writers cut texts and round timestamps."""
    match data_type:
        case DecimalType(precision, _):
            return is_partition or precision <= _EXACT_DECIMAL_DIGITS
        case PrimitiveType(name):
            return name in (_EXACT_IN_PARTITIONS if is_partition else _EXACT)
    return False


def _is_all_true(mask: pa.Array) -> bool:
    """Whether no value is false or null."""
    return bool(mask.true_count == len(mask))


# ---------------------------------------------------------------- combinations of texts


def _combination_codes(texts: Sequence[pa.Array], row_count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A number for each row, from 0; rows have the same number if all their texts are equal.

    texts: one array for each `by` column. Without any, all rows get the number 0.
    """
    codes = np.zeros(row_count, np.int64)
    for column in texts:
        encoded = column.dictionary_encode(null_encoding="encode")
        text_numbers = encoded.indices.to_numpy().astype(np.int64)
        # np.unique makes the numbers small again, so that the next product does not overflow.
        codes = np.unique(codes * len(encoded.dictionary) + text_numbers, return_inverse=True)[1].astype(np.int64)
    return codes


def _smallest_or_largest(
    codes: np.ndarray[Any, np.dtype[np.int64]], values: pa.Array, starts: np.ndarray[Any, np.dtype[np.int64]], *, smallest: bool
) -> pa.Array:
    """The smallest or largest value for each code; null only if all its values are null, because nulls are sorted last.

    codes: the code of each row. values: the value of each row. starts: where each code begins after the rows are sorted by code.
    """
    keys = [("code", "ascending"), ("value", "ascending" if smallest else "descending")]
    order = pc.sort_indices(pa.table({"code": codes, "value": values}), sort_keys=keys)
    return values.take(order.take(pa.array(starts)))
