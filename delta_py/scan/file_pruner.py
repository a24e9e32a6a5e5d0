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
from delta_py.protocol.partition_values import malformed, malformed_value, parse_partition_values
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.char_padding import ends_in_char, pad, padded_chars
from delta_py.snapshot import FileBatch
from delta_py.statistics.stats import FileStats, parse_stats, unknown_stats
from delta_py.types.arrow_values import all_false, all_true, scalar
from delta_py.types.schema import DataType, Path, StructField, StructType, find_path


def row_predicate(config: TableConfig, predicate: Expression | None) -> Expression | None:
    """The part of the predicate that must be checked for each row, because partition values do not decide it for whole files."""
    if predicate is None:
        return None
    from delta_py.expressions.skipping_conditions import is_exact_on_partitions  # not needed by processes that only read rows

    partitions = frozenset((name,) for name in config.partition_columns)
    row_conditions = tuple(part for part in conjuncts(predicate) if not is_exact_on_partitions(part, partitions))
    return conjunction(row_conditions) if row_conditions else None


def has_path(schema: StructType, path: Path) -> bool:
    try:
        find_path(schema, path)
    except SchemaMismatchError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class FilePruner:
    """Decides which files may hold rows for which a predicate is true. Columns are identified by physical path.

    same_in_file: columns in the list of files that hold, under these names, one value for all rows of a file."""

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
        """timezone: as in ScanOptions. same_in_file: columns that the table does not have."""
        if predicate is None:
            return cls(None)
        from delta_py.expressions.skipping_conditions import columns_with_stats

        mode, schema, same = config.column_mapping_mode, config.schema, dict(same_in_file or {})
        pruning = conjunction(tuple(part for part in conjuncts(predicate) if _prunable(schema, part, same)))
        pruning_paths = [path for path in columns_of(pruning) if path[0] not in same]
        fields = {physical_path(schema, path, mode): find_path(schema, path) for path in pruning_paths}
        partitions = {physical_path(schema, (name,), mode) for name in config.partition_columns}
        leaf_types = {path: path_fields[-1].data_type for path, path_fields in fields.items() if not ends_in_char(path_fields)}
        paths = {path: physical_path(schema, path, mode) for path in pruning_paths}
        physical = transform_columns(pruning, lambda path: Column(paths.get(path, path)))
        return cls(
            physical,
            {path: path_fields[0] for path, path_fields in fields.items() if path in partitions},
            {path: leaf_types[path] for path in columns_with_stats(physical) if path in leaf_types and path not in partitions},
            timezone,
            tuple(sorted({path[0] for path in columns_of(pruning)} & same.keys())),
        )

    def prune(self, files: pa.RecordBatch, stats: FileStats | None) -> pa.RecordBatch:
        return self.pruned(FileBatch(files, stats)).files

    def pruned(self, batch: FileBatch) -> FileBatch:
        """The files that may hold such a row, with their statistics.

        Raises CorruptTableError (CAST_INVALID_INPUT) for a file whose partition value in a column of the predicate is not a valid
        value of the column's type: it is unknown whether its rows match, also for callers that select whole files by partition.
        """
        return batch if self.predicate is None else batch.filter(self.keeps(batch))

    def pruned_from(self, batch: FileBatch) -> tuple[FileBatch, int]:
        """As pruned, and the total size in bytes of the files that partition values did not rule out. Raises as pruned."""
        if self.predicate is None:
            return batch, file_bytes(batch.files)
        values = self._sound_partition_values(batch.files)
        pruned = batch.filter(self._mask(self.predicate, batch.files, batch.stats, values))
        if not values:  # the predicate has no partition columns
            return pruned, file_bytes(batch.files)
        if not self.stats_leaves:  # partition values alone have decided
            return pruned, file_bytes(pruned.files)
        in_partitions = self._mask(self.predicate, batch.files, None, values)
        return pruned, file_bytes(batch.files.select(["size"]).filter(in_partitions))

    def keeps(self, batch: FileBatch) -> pa.BooleanArray:
        """True for each file that may hold such a row, never null. Raises as pruned."""
        if self.predicate is None:
            return all_true(batch.files.num_rows)
        return self._mask(self.predicate, batch.files, batch.stats, self._sound_partition_values(batch.files))

    def may_match(self, adds: Sequence[AddFile]) -> list[bool]:
        """For each file of a commit, whether it may hold such a row. A file with an invalid partition value may hold any row."""
        if self.predicate is None or not adds:
            return [True] * len(adds)
        stats = parse_stats(pa.array([add.stats for add in adds], pa.string()), self.stats_leaves)
        files = with_partition_values(add.partition_values for add in adds)
        values, unknown = partition_values(files, self.partition_fields, self.timezone)
        answers: list[bool] = pc.or_(self._mask(self.predicate, files, stats, values), unknown).to_pylist()
        return answers

    def _sound_partition_values(self, files: pa.RecordBatch) -> dict[Path, pa.Array]:
        """Raises as pruned."""
        return sound_partition_values(files, self.partition_fields, self.timezone)

    def _mask(
        self, predicate: Expression, files: pa.RecordBatch, stats: FileStats | None, values: Mapping[Path, pa.Array]
    ) -> pa.BooleanArray:
        from delta_py.expressions.skipping_conditions import keep_mask

        same: dict[Path, pa.Array] = {(name,): files[name] for name in self.same_in_file}
        return keep_mask(predicate, stats or unknown_stats(files.num_rows), {**values, **same})


def file_bytes(files: pa.RecordBatch | pa.Table) -> int:
    """The sum of `size`."""
    return int(pc.sum(files["size"]).as_py() or 0)


def partition_texts(files: pa.RecordBatch, physical_name: str) -> pa.Array:
    return pc.map_lookup(files["partition_values"], scalar(physical_name, pa.string()), "first")


def typed_partition_values(texts: pa.Array, column: StructField, timezone: str) -> pa.Array:
    """Typed values as in rows; null also for a text that is not a value of the type (malformed marks those)."""
    return pad(parse_partition_values(texts, column.data_type, timezone=timezone, errors="null"), padded_chars(column))


def partition_values(
    files: pa.RecordBatch, fields: Mapping[Path, StructField], timezone: str
) -> tuple[dict[Path, pa.Array], pa.BooleanArray]:
    """Typed values by path, and a mask of the files with an invalid value for the column's type. fields: by physical path."""
    values: dict[Path, pa.Array] = {}
    unknown = all_false(files.num_rows)
    for path, column in fields.items():
        texts = partition_texts(files, path[0])
        values[path] = typed_partition_values(texts, column, timezone)
        unknown = pc.or_(unknown, malformed(texts, values[path]))
    return values, unknown


def sound_partition_values(files: pa.RecordBatch, fields: Mapping[Path, StructField], timezone: str) -> dict[Path, pa.Array]:
    """As partition_values. Raises CorruptTableError (CAST_INVALID_INPUT) for a file with an invalid value."""
    values, unknown = partition_values(files, fields, timezone)
    if pc.any(unknown).as_py():
        raise _malformed(files.filter(unknown).slice(0, 1), fields, timezone)
    return values


def _malformed(file: pa.RecordBatch, fields: Mapping[Path, StructField], timezone: str) -> CorruptTableError:
    """The error for a file with a partition value that is invalid for its column's type."""
    for path, column in fields.items():
        texts = partition_texts(file, path[0])
        if malformed(texts, typed_partition_values(texts, column, timezone))[0].as_py():
            return malformed_value(file["path"][0].as_py(), column.name, texts[0].as_py(), column.data_type)
    raise AssertionError("no partition value of the file is malformed")


def with_partition_values(values: Iterable[Mapping[str, str | None]]) -> pa.RecordBatch:
    """The partition values of actions, as the column in the lists of files. values: texts by physical name, one
    mapping per file."""
    return pa.record_batch({"partition_values": pa.array([list(each.items()) for each in values], PARTITION_VALUES_TYPE)})


def _prunable(schema: StructType, part: Expression, same_in_file: Container[str]) -> bool:
    """Whether files have statistics or values for every column of the conjunct; they have none for `_metadata`."""
    return all(path[0] in same_in_file or has_path(schema, path) for path in columns_of(part))
