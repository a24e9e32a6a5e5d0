"""Finds the files that may hold rows for which a predicate is true, by partition values and statistics.

A file with unknown values is kept.

Protocol: Per-file Statistics.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import CorruptTableError, SchemaMismatchError
from delta_py.expressions.tree import Column, Expression, columns_of, conjunction, conjuncts, transform_columns
from delta_py.log.commit_reader import PARTITION_VALUES_TYPE
from delta_py.protocol.actions import AddFile
from delta_py.protocol.column_mapping import physical_path
from delta_py.protocol.partition_values import find_malformed, malformed_value_error, parse_partition_values
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.char_padding import ends_in_char, pad, padded_chars
from delta_py.snapshot import FileBatch
from delta_py.statistics.stats import FileStats, parse_stats, unknown_stats
from delta_py.types.arrow_values import all_false, all_true, scalar
from delta_py.types.schema import DataType, Path, StructField, StructType, find_path


def row_predicate(config: TableConfig, predicate: Expression | None) -> Expression | None:
    """The part of the predicate that must be checked for each row, because partition values do not decide it for whole files.
    None if there is no such part, or no predicate."""
    if predicate is None:
        return None
    from delta_py.expressions.skipping_conditions import is_exact_on_partitions  # not needed by processes that only read rows

    partitions = frozenset((name,) for name in config.partition_columns)
    row_conditions = tuple(part for part in conjuncts(predicate) if not is_exact_on_partitions(part, partitions))
    return conjunction(row_conditions) if row_conditions else None


def has_path(schema: StructType, path: Path) -> bool:
    """Whether the schema has the column or nested field."""
    try:
        find_path(schema, path)
    except SchemaMismatchError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class FilePruner:
    """Decides which files may hold rows for which a predicate is true. Columns are identified by physical path.

    predicate: the conjuncts that files can be checked for; None if there is no filter, so that every file may match.
    partition_fields: the partition columns in it. stats_leaves: the columns whose statistics it needs, with their types.
    timezone: the zone in which partition values of timestamps without an offset are read.
    same_in_file: columns in the list of files that hold, under these names, one value for all rows of a file.
    """

    predicate: Expression | None
    partition_fields: Mapping[Path, StructField] = field(default_factory=dict)
    stats_leaves: Mapping[Path, DataType] = field(default_factory=dict)
    timezone: str = "UTC"
    same_in_file: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        config: TableConfig,
        predicate: Expression | None,
        timezone: str = "UTC",
        same_in_file: Mapping[str, StructField] | None = None,
    ) -> FilePruner:
        """The pruner for a predicate on a table. predicate: over logical paths; None for no filter. timezone: as in ScanOptions.
        same_in_file: columns that the table does not have, such as those of the change feed; the predicate may use them. The list
        of files must have these columns, with one value for all rows of a file."""
        if predicate is None:
            return cls(None)
        from delta_py.expressions.skipping_conditions import columns_with_stats

        mode, schema, file_columns = config.column_mapping_mode, config.schema, dict(same_in_file or {})
        pruning_predicate = conjunction(tuple(part for part in conjuncts(predicate) if _is_prunable(schema, part, file_columns)))
        pruning_paths = [path for path in columns_of(pruning_predicate) if path[0] not in file_columns]
        # The fields on the way to each column: the top-level column first, the column itself last.
        fields_by_path = {physical_path(schema, path, mode): find_path(schema, path) for path in pruning_paths}
        partitions = {physical_path(schema, (name,), mode) for name in config.partition_columns}
        leaf_types = {
            path: path_fields[-1].data_type for path, path_fields in fields_by_path.items() if not ends_in_char(path_fields)
        }
        physical_paths = {path: physical_path(schema, path, mode) for path in pruning_paths}
        physical_predicate = transform_columns(pruning_predicate, lambda path: Column(physical_paths.get(path, path)))
        return cls(
            physical_predicate,
            {path: path_fields[0] for path, path_fields in fields_by_path.items() if path in partitions},
            {
                path: leaf_types[path]
                for path in columns_with_stats(physical_predicate)
                if path in leaf_types and path not in partitions
            },
            timezone,
            tuple(sorted({path[0] for path in columns_of(pruning_predicate)} & file_columns.keys())),
        )

    def prune(self, files: pa.RecordBatch, stats: FileStats | None) -> pa.RecordBatch:
        return self.prune_batch(FileBatch(files, stats)).files

    def prune_batch(self, batch: FileBatch) -> FileBatch:
        """The files that may hold a row for which the predicate is true, with their statistics.

        Raises CorruptTableError (CAST_INVALID_INPUT) for a file whose partition value in a column of the predicate is not a valid
        value of the column's type: it is unknown whether its rows match, also for callers that select whole files by partition.
        """
        return batch if self.predicate is None else batch.filter(self.find_possible_matches(batch))

    def prune_and_measure_partitions(self, batch: FileBatch) -> tuple[FileBatch, int]:
        """The result of `prune_batch`, and the total size in bytes of the files that partition values alone do not rule out. The
        difference of the sizes tells how much the statistics rule out. Raises as prune_batch.
        """
        if self.predicate is None:
            return batch, file_bytes(batch.files)
        values = self._sound_partition_values(batch.files)
        pruned = batch.filter(self._mask(self.predicate, batch.files, batch.stats, values))
        if not values:  # the predicate has no partition columns
            return pruned, file_bytes(batch.files)
        if not self.stats_leaves:  # partition values alone have decided
            return pruned, file_bytes(pruned.files)
        in_partitions = self._mask(self.predicate, batch.files, None, values)  # None: as if no file had statistics
        return pruned, file_bytes(batch.files.select(["size"]).filter(in_partitions))

    def find_possible_matches(self, batch: FileBatch) -> pa.BooleanArray:
        """True for each file that may hold a row for which the predicate is true; never null. Raises as prune_batch."""
        if self.predicate is None:
            return all_true(batch.files.num_rows)
        return self._mask(self.predicate, batch.files, batch.stats, self._sound_partition_values(batch.files))

    def may_match(self, adds: Sequence[AddFile]) -> list[bool]:
        """For each file of a commit, whether it may hold a row for which the predicate is true. A file with an invalid partition
        value may hold any row: this is for the conflict check, which must not miss a conflict."""
        if self.predicate is None or not adds:
            return [True] * len(adds)
        stats = parse_stats(pa.array([add.stats for add in adds], pa.string()), self.stats_leaves)
        files = with_partition_values(add.partition_values for add in adds)
        values, is_invalid = partition_values(files, self.partition_fields, self.timezone)
        answers: list[bool] = pc.or_(self._mask(self.predicate, files, stats, values), is_invalid).to_pylist()
        return answers

    def _sound_partition_values(self, files: pa.RecordBatch) -> dict[Path, pa.Array]:
        """The files' values in the partition columns of the predicate, typed. Raises CorruptTableError as prune_batch."""
        return sound_partition_values(files, self.partition_fields, self.timezone)

    def _mask(
        self, predicate: Expression, files: pa.RecordBatch, stats: FileStats | None, values: Mapping[Path, pa.Array]
    ) -> pa.BooleanArray:
        """True for each file that may hold a row for which the predicate is true. stats: None if no file has statistics. values:
        the files' values in the partition columns."""
        from delta_py.expressions.skipping_conditions import keep_mask

        file_values: dict[Path, pa.Array] = {(name,): files[name] for name in self.same_in_file}
        return keep_mask(predicate, stats or unknown_stats(files.num_rows), {**values, **file_values})


def file_bytes(files: pa.RecordBatch | pa.Table) -> int:
    """The sum of `size`."""
    return int(pc.sum(files["size"]).as_py() or 0)


def partition_texts(files: pa.RecordBatch, physical_name: str) -> pa.Array:
    """The text of each file's value in a partition column, as in the log; null if it is null or missing."""
    return pc.map_lookup(files["partition_values"], scalar(physical_name, pa.string()), "first")


def typed_partition_values(texts: pa.Array, column: StructField, timezone: str) -> pa.Array:
    """The values that rows of the files have in a partition column, padded if it is a CHAR. A text that is not a value of the
    type becomes null, too; `find_malformed` tells the two cases apart. texts: from partition_texts."""
    return pad(parse_partition_values(texts, column.data_type, timezone=timezone, errors="null"), padded_chars(column))


def partition_values(
    files: pa.RecordBatch, fields: Mapping[Path, StructField], timezone: str
) -> tuple[dict[Path, pa.Array], pa.BooleanArray]:
    """The files' values in partition columns, typed, by path; and a mask that is true for files with an invalid value for a
    column's type. fields: the partition columns, by physical path."""
    values: dict[Path, pa.Array] = {}
    is_invalid = all_false(files.num_rows)
    for path, column in fields.items():
        texts = partition_texts(files, path[0])
        values[path] = typed_partition_values(texts, column, timezone)
        is_invalid = pc.or_(is_invalid, find_malformed(texts, values[path]))
    return values, is_invalid


def sound_partition_values(files: pa.RecordBatch, fields: Mapping[Path, StructField], timezone: str) -> dict[Path, pa.Array]:
    """The files' values in partition columns, typed, by path. Raises CorruptTableError (CAST_INVALID_INPUT) for a file with an
    invalid value. fields: the partition columns, by physical path."""
    values, is_invalid = partition_values(files, fields, timezone)
    if pc.any(is_invalid).as_py():
        raise _malformed_value_error(files.filter(is_invalid).slice(0, 1), fields, timezone)
    return values


def _malformed_value_error(file: pa.RecordBatch, fields: Mapping[Path, StructField], timezone: str) -> CorruptTableError:
    """The error for a file with an invalid partition value. file: one row of the list of files. It has an invalid value in one of
    the fields."""
    for path, column in fields.items():
        texts = partition_texts(file, path[0])
        if find_malformed(texts, typed_partition_values(texts, column, timezone))[0].as_py():
            return malformed_value_error(file["path"][0].as_py(), column.name, texts[0].as_py(), column.data_type)
    raise AssertionError("no partition value of the file is malformed")


def with_partition_values(values: Iterable[Mapping[str, str | None]]) -> pa.RecordBatch:
    """A list of files with only the column `partition_values`, so that functions for lists of files take the actions of a
    commit. values: texts by physical name, one mapping per file."""
    maps = pa.array([list(file_values.items()) for file_values in values], PARTITION_VALUES_TYPE)
    return pa.record_batch({"partition_values": maps})


def _is_prunable(schema: StructType, part: Expression, same_in_file: Container[str]) -> bool:
    """Whether files have statistics or values for every column of the conjunct; they have none for `_metadata`."""
    return all(path[0] in same_in_file or has_path(schema, path) for path in columns_of(part))
