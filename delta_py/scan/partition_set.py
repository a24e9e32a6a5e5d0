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
from delta_py.protocol.partition_values import malformed
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

_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Step:
    """One column of the lookup. values: the distinct ones. combinations: these values combined with those of the previous
    columns, one number each."""

    values: pa.Array
    combinations: pa.Array


@dataclass(frozen=True, slots=True)
class PartitionSet:
    """values: for each partition, the texts by physical name, as in the log; no two partitions have the same texts. timezone: in
    which timestamps without an offset are read."""

    values: tuple[Mapping[str, str | None], ...]
    timezone: str
    _fields: Mapping[Path, StructField]
    _steps: tuple[_Step, ...]

    @classmethod
    def of(cls, config: TableConfig, values: Iterable[Mapping[str, str | None]], timezone: str = "UTC") -> PartitionSet:
        """values: at least one mapping, as in the actions of files. All partition columns of config are compared, and a column
        that a mapping lacks is null. Raises CorruptTableError (CAST_INVALID_INPUT) for a text that is not a value of its column's
        type."""
        logical = [find_path(config.schema, (name,))[0] for name in config.partition_columns]
        fields: dict[Path, StructField] = {(to_physical(f, config.column_mapping_mode).name,): f for f in logical}
        assert fields, "a table without partition columns has no partitions"
        names = [path[0] for path in fields]
        distinct = tuple(dict(zip(names, key, strict=True)) for key in {tuple(map(each.get, names)): None for each in values})
        rows = with_partition_values(distinct)
        codes = _zeros(len(distinct))
        steps = []
        for path, column in fields.items():
            # codes: for each partition, the number of its combination of values in the columns so far.
            typed = _comparable(_sound(partition_texts(rows, path[0]), column, timezone))
            present = pc.unique(typed)
            combined = _combined(codes, typed, present)
            step = _Step(present, pc.unique(combined))
            codes = pc.index_in(combined, step.combinations)
            steps.append(step)
        return cls(distinct, timezone, fields, tuple(steps))

    def has(self, files: pa.RecordBatch) -> pa.BooleanArray:
        """True for each file in one of the partitions, false for each other file; never null. files: FILE_SCHEMA.

        Raises CorruptTableError (CAST_INVALID_INPUT) for a file with an invalid partition value: its partition is unknown.
        """
        return self._has(sound_partition_values(files, self._fields, self.timezone), files.num_rows)

    def may_match(self, adds: Sequence[AddFile]) -> list[bool]:
        """For each file of a commit, whether it belongs to one of the partitions. A file with an invalid value may
        belong to any."""
        if not adds:
            return []
        files = with_partition_values(add.partition_values for add in adds)
        values, unknown = partition_values(files, self._fields, self.timezone)
        answers: list[bool] = pc.or_(self._has(values, len(adds)), unknown).to_pylist()
        return answers

    def _has(self, values: Mapping[Path, pa.Array], count: int) -> pa.BooleanArray:
        codes = _zeros(count)  # as in `of`, for each file; null if no partition has the file's values in the columns so far
        for path, step in zip(self._fields, self._steps, strict=True):
            combined = _combined(codes, _comparable(values[path]), step.values)
            codes = pc.index_in(combined, step.combinations)
        return pc.is_valid(codes)

    def __str__(self) -> str:
        """For messages: the first partitions by logical names, and the number of remaining ones."""
        shown = [
            f"partition [{', '.join(f'{column.name}={each[path[0]]}' for path, column in self._fields.items())}]"
            for each in self.values[:_MOST_SHOWN]
        ]
        remaining_count = len(self.values) - len(shown)
        return " or ".join([*shown, f"{remaining_count} more"] if remaining_count else shown)


def _sound(texts: pa.Array, column: StructField, timezone: str) -> pa.Array:
    """Typed values of a partition column. Raises CorruptTableError for a text that is not a value of its type."""
    values = typed_partition_values(texts, column, timezone)
    bad = malformed(texts, values)
    if not pc.any(bad).as_py():
        return values
    text = texts.filter(bad)[0].as_py()
    raise CorruptTableError(
        f"The partition value {text!r} is no value of column {column.name} of type {type_name(column.data_type)}: which files "
        "are of that partition cannot be told. Nothing was committed.",
        error_class="CAST_INVALID_INPUT",
        sql_state="22018",
        column=column.name,
        value=text,
    )


def _comparable(values: pa.Array) -> pa.Array:
    """Values that Arrow compares as equal if and only if Spark does."""
    if not pa.types.is_floating(values.type):
        return values
    positive = pc.add(values, pa.scalar(0.0, values.type))  # -0.0 becomes 0.0
    return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), values.type), positive)


def _combined(codes: pa.Array, values: pa.Array, present: pa.Array) -> pa.Array:
    """One number for a combination's number (codes) and a value. present: the distinct values of the partitions. The result is
    null if the code is null, or if the value is not among these. A null value counts like any other value."""
    numbers = pc.index_in(values, present).cast(pa.int64())
    return pc.add(pc.multiply(codes.cast(pa.int64()), scalar(len(present), pa.int64())), numbers)


def _zeros(count: int) -> pa.Array:
    return from_numpy(np.zeros(count, np.int64))
