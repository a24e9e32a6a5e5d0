"""Identity columns: the table assigns numbers to new rows: start, start + step, start + 2 * step, ...

The column's metadata has the highest number assigned so far (the lowest, for a negative step) as the high water mark. Each commit
that assigns numbers raises it. No number is assigned twice; some numbers are skipped.
Protocol: Identity Columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from delta_py.errors import CorruptTableError, InvariantViolationError, SchemaMismatchError, UnsupportedOperationError, shown
from delta_py.types.column_rules import GENERATION
from delta_py.types.schema import LONG, StructField, StructType, map_fields, type_name

START = "delta.identity.start"
STEP = "delta.identity.step"
HIGH_WATER_MARK = "delta.identity.highWaterMark"
ALLOW_EXPLICIT_INSERT = "delta.identity.allowExplicitInsert"

_LONGS = range(-(2**63), 2**63)


def without_marks(schema: StructType) -> StructType:
    """The schema without high water marks, for comparisons: each append to a table with an identity column changes a mark."""
    return map_fields(
        schema, lambda f: replace(f, metadata={name: value for name, value in f.metadata.items() if name != HIGH_WATER_MARK})
    )


def is_equal_ignoring_marks(schema: StructType, other: StructType) -> bool:
    """Whether two schemas are equal, ignoring high water marks."""
    return schema == other or without_marks(schema) == without_marks(other)


@dataclass(frozen=True, slots=True)
class Identity:
    """An identity column. start, step: of its sequence of numbers. mark: the high water mark; None if no number was assigned yet.
    explicit: whether writers may give rows their own values."""

    name: str
    start: int
    step: int
    mark: int | None
    explicit: bool

    def number(self, index: int) -> int:
        """The number at an index of the sequence that begins after the mark. Raises InvariantViolationError
        (ARITHMETIC_OVERFLOW) if it does not fit into 64 bits."""
        number = self._first_after_mark() + index * self.step
        if number not in _LONGS:
            raise self._overflow_error(number)
        return number

    def _first_after_mark(self) -> int:
        """The first number of the sequence after the mark; the start if there is no mark."""
        if self.mark is None or (self.mark - self.start) * self.step < 0:  # a mark before the start was set by mistake
            return self.start
        return self.start + ((self.mark - self.start) // self.step + 1) * self.step

    def mark_covering(self, value: int) -> int | None:
        """The high water mark that ensures that an existing value is never assigned again: the value if it is in the sequence,
        otherwise the next number of the sequence after it. None for a value before the start. Raises as `number`."""
        offset = value - self.start
        if offset * self.step < 0:
            return None
        # The number of steps is offset / step, rounded up: Python's // rounds down, so both signs are changed.
        mark = self.start - (-offset // self.step) * self.step
        if mark not in _LONGS:
            raise self._overflow_error(mark)
        return mark

    def _overflow_error(self, number: int) -> InvariantViolationError:
        """The error for a number of the sequence that does not fit into 64 bits."""
        return InvariantViolationError(
            f"Identity column {self.name} has run out of numbers: the next would be {number}, which has more than 64 bits. "
            "Nothing was written.",
            error_class="ARITHMETIC_OVERFLOW",
            sql_state="22003",
            column=self.name,
        )

    def later_of(self, first: int, second: int) -> int:
        """The number that comes later in the sequence, which descends if the step is negative."""
        return max(first, second) if self.step > 0 else min(first, second)


def identity_of(f: StructField) -> Identity | None:
    """The identity in the field's metadata; None if it is not an identity column. Raises CorruptTableError if the metadata is not
    valid."""
    if START not in f.metadata and STEP not in f.metadata:
        return None
    start, step, mark = (_parse_long(f, key) for key in (START, STEP, HIGH_WATER_MARK))
    explicit = f.metadata.get(ALLOW_EXPLICIT_INSERT)
    if start is None or not step or not isinstance(explicit, bool):
        raise _invalid_metadata_error(f)
    return Identity(f.name, start, step, mark, explicit)


def _parse_long(f: StructField, key: str) -> int | None:
    """A number of 64 bits in the field's metadata; None if the key is missing. Raises CorruptTableError for any other value."""
    value = f.metadata.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value in _LONGS):
        return value
    raise _invalid_metadata_error(f)


def _invalid_metadata_error(f: StructField) -> CorruptTableError:
    """The error for an identity column whose metadata is not valid."""
    return CorruptTableError(
        f"Identity column {f.name} has the metadata {shown(dict(f.metadata))}: it needs integers {START} and {STEP} (not "
        f"0), {ALLOW_EXPLICIT_INSERT} true or false, and an integer {HIGH_WATER_MARK} or none.",
        column=f.name,
    )


def identity_columns(schema: StructType) -> tuple[Identity, ...]:
    """The identity columns, in the schema's order."""
    return tuple(identity for identity in map(identity_of, schema.fields) if identity is not None)


def with_marks(schema: StructType, assigned: Iterable[tuple[str, int]]) -> StructType:
    """The schema with the high water marks after numbers were assigned. assigned: pairs of a column name and the furthest number,
    from any number of tasks."""
    furthest: dict[str, int] = {}
    columns = {column.name: column for column in identity_columns(schema)}
    for name, number in assigned:
        previous = furthest.get(name, columns[name].mark)
        furthest[name] = number if previous is None else columns[name].later_of(previous, number)
    return StructType(
        tuple(
            replace(f, metadata={**f.metadata, HIGH_WATER_MARK: furthest[f.name]}) if f.name in furthest else f
            for f in schema.fields
        )
    )


def check_new_identities(schema: StructType, partition_columns: Sequence[str]) -> None:
    """Raises UnsupportedOperationError or SchemaMismatchError if a new table cannot have one of the identity columns. Raises
    CorruptTableError as identity_of."""
    for f in schema.fields:
        if identity_of(f) is None:
            continue
        if f.data_type != LONG:
            raise unsupported_type_error(f.name, type_name(f.data_type))
        why = None  # error class, SQL state, and the end of the message's first sentence
        if f.name in partition_columns:
            why = ("DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED", "42601", "cannot be a partition column")
        elif GENERATION in f.metadata:
            why = ("DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION", "42613", "cannot have a generation expression as well")
        if why is not None:
            raise SchemaMismatchError(
                f"Identity column {f.name} {why[2]}. Nothing was changed.", error_class=why[0], sql_state=why[1], column=f.name
            )


def unsupported_type_error(column_name: str, type_text: str) -> UnsupportedOperationError:
    """The error for an identity column of another type than bigint."""
    return UnsupportedOperationError(
        f"Identity column {column_name} is {type_text}, and must be bigint. Nothing was changed.",
        error_class="DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
        sql_state="428H2",
        column=column_name,
    )
