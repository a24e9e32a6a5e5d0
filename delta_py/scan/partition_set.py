"""A set of partitions of a table, and which files belong to one of them.

    partitions = PartitionSet.of(config, (add.partition_values for add in adds), timezone)
    partitions.has(files)                    # one boolean per file: code that removes whole files uses this
    partitions.may_match(adds)               # unknown counts as a match: the conflict check uses this

Values are compared typed and never by their texts, as Spark compares them: 1 is 01, -0.0 is 0.0, NaN is NaN, null and the empty
text are equal, and texts of CHAR(n) are padded. Texts with a collation are compared by their bytes, as delta-spark does. Each
column is looked up once for all files, and no evaluation can fail for a value.
Protocol: Partition Value Serialization.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import CorruptTableError
from delta_py.protocol.actions import AddFile
from delta_py.protocol.column_mapping import to_physical
from delta_py.protocol.partition_values import find_malformed
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.file_pruner import (
    partition_texts,
    partition_values,
    sound_partition_values,
    typed_partition_values,
    with_partition_values,
)
from delta_py.types.arrow_values import from_numpy, scalar
from delta_py.types.schema import Path, StructField, find_path, type_name

_MAX_SHOWN = 3  # partitions in a message


@dataclass(frozen=True, slots=True)
class _Step:
    """The lookup of one partition column, after those before it. values: the distinct values of the partitions in this column.
    combinations: one number, from _combine, for each combination of values in this column and those before it that occurs in the
    partitions."""

    values: pa.Array
    combinations: pa.Array


@dataclass(frozen=True, slots=True)
class PartitionSet:
    """A set of partitions. values: for each partition, the texts of its values by physical name, as in the log; no two partitions
    have the same texts. timezone: the zone in which timestamps without an offset are read. _fields: the partition columns, by
    physical path. _steps: one for each column."""

    values: tuple[Mapping[str, str | None], ...]
    timezone: str
    _fields: Mapping[Path, StructField]
    _steps: tuple[_Step, ...]

    @classmethod
    def of(cls, config: TableConfig, values: Iterable[Mapping[str, str | None]], timezone: str = "UTC") -> PartitionSet:
        """The set of the partitions with these values. values: for each partition, the texts of its values by physical name, as
        in the actions of files; there is at least one partition. All partition columns of config are compared, and a column that
        a mapping lacks is null. Raises CorruptTableError (CAST_INVALID_INPUT) for a text that is not a value of its column's
        type."""
        logical_fields = [find_path(config.schema, (name,))[0] for name in config.partition_columns]
        fields: dict[Path, StructField] = {(to_physical(f, config.column_mapping_mode).name,): f for f in logical_fields}
        assert fields, "a table without partition columns has no partitions"
        names = [path[0] for path in fields]
        # The keys of a dictionary are distinct, and in order of appearance.
        distinct_texts = {tuple(map(partition.get, names)): None for partition in values}
        partitions = tuple(dict(zip(names, texts, strict=True)) for texts in distinct_texts)
        rows = with_partition_values(partitions)
        codes = _all_zero(len(partitions))
        steps = []
        for path, column in fields.items():
            # codes: for each partition, the number of its combination of values in the columns so far.
            typed = _comparable(_parse_valid(partition_texts(rows, path[0]), column, timezone))
            distinct_values = pc.unique(typed)
            combination_numbers = _combine(codes, typed, distinct_values)
            step = _Step(distinct_values, pc.unique(combination_numbers))
            codes = pc.index_in(combination_numbers, step.combinations)
            steps.append(step)
        return cls(partitions, timezone, fields, tuple(steps))

    def has(self, files: pa.RecordBatch) -> pa.BooleanArray:
        """True for each file in one of the partitions, false for each other file; never null. files: FILE_SCHEMA.

        Raises CorruptTableError (CAST_INVALID_INPUT) for a file with an invalid partition value: its partition is unknown.
        """
        return self._contains(sound_partition_values(files, self._fields, self.timezone), files.num_rows)

    def may_match(self, adds: Sequence[AddFile]) -> list[bool]:
        """For each file of a commit, whether it may belong to one of the partitions. A file with an invalid value may belong to
        any."""
        if not adds:
            return []
        files = with_partition_values(add.partition_values for add in adds)
        values, is_invalid = partition_values(files, self._fields, self.timezone)
        answers: list[bool] = pc.or_(self._contains(values, len(adds)), is_invalid).to_pylist()
        return answers

    def _contains(self, values: Mapping[Path, pa.Array], count: int) -> pa.BooleanArray:
        """Whether each file is in one of the partitions. values: the files' partition values, by physical path. count: the number
        of files."""
        codes = _all_zero(count)  # as in `of`, for each file; null if no partition has the file's values in the columns so far
        for path, step in zip(self._fields, self._steps, strict=True):
            combination_numbers = _combine(codes, _comparable(values[path]), step.values)
            codes = pc.index_in(combination_numbers, step.combinations)
        return pc.is_valid(codes)

    def __str__(self) -> str:
        """For messages: the first partitions by logical names, and the number of remaining ones."""
        descriptions = [
            f"partition [{', '.join(f'{column.name}={texts[path[0]]}' for path, column in self._fields.items())}]"
            for texts in self.values[:_MAX_SHOWN]
        ]
        remaining_count = len(self.values) - len(descriptions)
        return " or ".join([*descriptions, f"{remaining_count} more"] if remaining_count else descriptions)


def _parse_valid(texts: pa.Array, column: StructField, timezone: str) -> pa.Array:
    """Typed values of a partition column. Raises CorruptTableError for a text that is not a value of its type."""
    values = typed_partition_values(texts, column, timezone)
    is_invalid = find_malformed(texts, values)
    if not pc.any(is_invalid).as_py():
        return values
    text = texts.filter(is_invalid)[0].as_py()
    raise CorruptTableError(
        f"The partition value {text!r} is no value of column {column.name} of type {type_name(column.data_type)}: which files "
        "are of that partition cannot be told. Nothing was committed.",
        error_class="CAST_INVALID_INPUT",
        sql_state="22018",
        column=column.name,
        value=text,
    )


def _comparable(values: pa.Array) -> pa.Array:
    """Values that pc.unique and pc.index_in take as the same if and only if they are equal in Spark."""
    if not pa.types.is_floating(values.type):
        return values
    positive = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 becomes 0.0
    # NaNs with different bits become the same one.
    return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), values.type), positive)


def _combine(codes: pa.Array, values: pa.Array, distinct_values: pa.Array) -> pa.Array:
    """One number for each pair of a code and a value; different pairs have different numbers.

    codes: the number of the combination in the previous columns. distinct_values: the distinct values of the partitions in this
    column. The result is null if the code is null, or if the value is not among distinct_values. A null value counts like any
    other value.
    """
    value_numbers = pc.index_in(values, distinct_values).cast(pa.int64())
    return pc.add(pc.multiply(codes.cast(pa.int64()), scalar(len(distinct_values), pa.int64())), value_numbers)


def _all_zero(count: int) -> pa.Array:
    return from_numpy(np.zeros(count, np.int64))
