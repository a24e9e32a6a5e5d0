"""Checks and converts rows before they are written: the rules of a table, applied to Arrow batches.

    state = write_state(config, store, read_version)      # driver
    conformed = Conformer(state, data_schema).conform(batch)      # executor

In: batches in any column order and any case of names, with types that Spark's store assignment accepts for the columns.
Out: ConformedBatch, in the table's column order and Arrow types, with every rule of the table satisfied. The Parquet encoder
(data_files.py) accepts nothing else.
Protocol: Requirements for Writers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import InvariantViolationError, SchemaMismatchError
from delta_py.expressions.functions.text_growth import repeat_in_rows
from delta_py.protocol.identity_columns import identity_of
from delta_py.row_rules.hidden_rule_columns import HiddenColumns
from delta_py.row_rules.identity_numbers import IdentityValues
from delta_py.row_rules.new_columns import check_duplicates
from delta_py.row_rules.not_null import check_not_null
from delta_py.row_rules.row_constraints import (
    Clock,
    GeneratedColumn,
    RowCheck,
    RowRule,
    check_lengths,
    default_value,
    generation_rule,
)
from delta_py.row_rules.store_assignment_casts import TimeRules, check_may_be_absent, converter, extra_columns
from delta_py.row_rules.write_state import WriteState
from delta_py.types.char_types import CharTypes, char_types
from delta_py.types.column_rules import DEFAULT, GENERATION
from delta_py.types.nested_arrays import Converter
from delta_py.types.schema import BINARY, STRING, StructField, StructType, to_arrow_schema, to_arrow_type


@dataclass(frozen=True, slots=True)
class ConformedBatch:
    """Rows that may be written. Only Conformer.conform and `as_conformed` make it.

    batch: schema exactly `to_arrow_schema(state.schema)`, logical names.
    """

    batch: pa.RecordBatch


def as_conformed(batch: pa.RecordBatch) -> ConformedBatch:
    """Rows that were read from the same table, with its schema, and are written back unchanged."""
    return ConformedBatch(batch)


# ---------------------------------------------------------------- batches, on an executor


@dataclass(frozen=True, slots=True)
class _Column:
    """Where the values of a column of the table come from: the data's column at position `place`, converted if `convert` is not
    None; or the default, if the data lacks the column (place is None); or null, if there is no default either.

    lengths: the declared lengths of CHAR and VARCHAR in the column's type, None if there are none. empty_is_null: empty texts
    become null; set for partition columns if there are rules, because an empty text in such a column is read back as null.
    """

    field: StructField
    place: int | None
    convert: Converter | None
    default: pa.Scalar | None
    lengths: CharTypes
    empty_is_null: bool = False

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """The column's values, one for each row of the batch of data, before identity numbers and generated values."""
        values = self._source_values(batch)
        if self.empty_is_null and pc.any(empty := pc.equal(pc.binary_length(values), 0)).as_py():
            values = pc.if_else(empty, None, values)
        return values

    def _source_values(self, batch: pa.RecordBatch) -> pa.Array:
        """As `values`, before empty texts become null."""
        if self.place is not None:
            values = batch.column(self.place)
            return values if self.convert is None else self.convert(values)
        if self.default is not None and self.default.is_valid:
            return repeat_in_rows(self.default, batch.num_rows)
        return pa.nulls(batch.num_rows, to_arrow_type(self.field.data_type))


class Conformer:
    """Converts batches of one Arrow schema to rows that one table accepts: defaults, casts, generated columns, then NOT NULL,
    lengths of texts, and the rules on rows, in the order of Spark.

    Raises, before any row is read, SchemaMismatchError (DELTA_METADATA_MISMATCH for a column that the table lacks,
    DELTA_DUPLICATE_COLUMNS_FOUND, DELTA_FAILED_TO_MERGE_FIELDS for a type that does not fit), InvariantViolationError
    (DELTA_MISSING_NOT_NULL_COLUMN_VALUE), and UnsupportedTableFeatureError for a rule that cannot be enforced in the session's
    time zone or with these columns; ExpressionError for a condition of replaceWhere that cannot be evaluated.
    """

    def __init__(self, state: WriteState, data_schema: pa.Schema, identities: IdentityValues | None = None) -> None:
        """identities: assigns the numbers of identity columns; None if the object only checks the schema and converts no rows."""
        schema, clock = state.schema, Clock(state.write_micros, state.time_zone)
        self._arrow_schema = to_arrow_schema(schema)
        hidden_columns = HiddenColumns(state.rule_nonce, tuple(data_schema.names))
        places = _places(schema, hidden_columns)
        times = TimeRules(state.time_zone, state.truncate_nanoseconds)
        self._columns = tuple(
            _column_source(f, place, data_schema, clock, times) for f, place in zip(schema.fields, places, strict=True)
        )
        self._generated = tuple(
            (position, GeneratedColumn(column.field, schema, clock))
            for position, column in enumerate(self._columns)
            if column.place is None and GENERATION in column.field.metadata
        )
        self._identities = identities
        self._identity_positions = tuple(
            position
            for position, column in enumerate(self._columns)
            if _gets_identity_numbers(column, keeps=state.keeps_identities)
        )
        # Spark may have computed a rule: then a hidden column of the data has its results. Without one (None), pydelta evaluates
        # the rule.
        rules = _row_rules(state, self._columns)
        check_by_rule = {rule: hidden_columns.find(rule, schema, state.partition_columns) for rule in rules}
        self._hidden_checks = tuple(check for check in check_by_rule.values() if check is not None)
        self._checks = tuple(RowCheck(rule, schema, clock) for rule, check in check_by_rule.items() if check is None)
        # Rules and generation expressions must see the values that readers will see.
        if self._checks or self._hidden_checks or self._generated:
            self._columns = tuple(_with_empty_text_as_null(column, state) for column in self._columns)

    def conform(self, batch: pa.RecordBatch, *, new_rows: bool = True) -> ConformedBatch:
        """The batch in the table's columns and types. new_rows: False for rows that were in the table before; these keep the
        numbers of their identity columns.

        Raises SchemaMismatchError (DELTA_CAST_OVERFLOW_IN_TABLE_WRITE) for a value that the column's type cannot hold;
        InvariantViolationError for a forbidden null (DELTA_NOT_NULL_CONSTRAINT_VIOLATED), a text that is too long
        (DELTA_EXCEED_CHAR_VARCHAR_LIMIT), and a row that breaks a rule (DELTA_VIOLATE_CONSTRAINT_WITH_VALUES,
        DELTA_REPLACE_WHERE_MISMATCH); ExpressionError for a row for which an expression cannot be evaluated.
        """
        arrays = [column.values(batch) for column in self._columns]
        # Numbers come first: generation expressions may name identity columns.
        for position in self._identity_positions if new_rows else ():
            arrays[position] = self._replace_nulls_by_numbers(arrays[position], self._columns[position].field.name)
        if self._generated:
            input_columns = pa.RecordBatch.from_arrays(arrays, schema=self._arrow_schema)
            for position, generated in self._generated:
                arrays[position] = generated.values(input_columns)
        for column, array in zip(self._columns, arrays, strict=True):
            check_not_null(array, column.field.data_type, column.field.nullable, column.field.name)
        for column, array in zip(self._columns, arrays, strict=True):
            if column.lengths is not None:
                check_lengths(array, column.lengths, column.field.name)
        conformed = pa.RecordBatch.from_arrays(arrays, schema=self._arrow_schema)
        for check in self._checks:
            check.check(conformed)
        for hidden_check in self._hidden_checks:
            hidden_check.check(conformed, batch)
        return ConformedBatch(conformed)

    def _replace_nulls_by_numbers(self, values: pa.Array, column_name: str) -> pa.Array:
        """The identity column's values, with a new number in place of each null."""
        if not values.null_count:
            return values
        assert self._identities is not None, "no identity numbers for rows that need them"
        numbers = self._identities.take(column_name, values.null_count)
        return numbers if values.null_count == len(values) else pc.replace_with_mask(values, values.is_null(), numbers)


def _gets_identity_numbers(column: _Column, *, keeps: bool) -> bool:
    """Whether the write assigns a number for each null in the column: it is an identity column, and the data lacks it, or
    contains rows of the table with their numbers. keeps: as WriteState.keeps_identities.

    Raises InvariantViolationError (DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED) if the data contains its own numbers for
    a column that does not allow it. Protocol: Identity Columns.
    """
    identity = identity_of(column.field)
    if identity is None:
        return False
    if column.place is None or keeps:
        return True
    if not identity.explicit:
        raise InvariantViolationError(
            f"The data has values for the identity column {identity.name}, which is GENERATED ALWAYS: the table gives its "
            "numbers. Nothing was written. Leave the column out of the data.",
            error_class="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
            sql_state="42808",
            column=identity.name,
        )
    return False


def _column_source(f: StructField, place: int | None, data_schema: pa.Schema, clock: Clock, times: TimeRules) -> _Column:
    """How the write fills a column: from the data's column at `place`, by its default, or with null. A generated value or an
    identity number replaces that null later.
    """
    lengths = char_types(f, strict=True)
    if place is not None:
        convert = converter(data_schema.field(place).type, f.data_type, f.name, times)
        return _Column(f, place, convert, None, lengths)
    if DEFAULT in f.metadata:
        return _Column(f, None, None, default_value(f, clock), lengths)
    if GENERATION not in f.metadata and identity_of(f) is None:
        check_may_be_absent(f, f.name)
    return _Column(f, None, None, None, lengths)


def _with_empty_text_as_null(column: _Column, state: WriteState) -> _Column:
    """The column, in which empty texts become null if it is a partition column: such a column stores an empty text as null, so
    the rules must see null."""
    is_text = column.field.data_type in (STRING, BINARY)
    return replace(column, empty_is_null=is_text and column.field.name in state.partition_columns)


def _row_rules(state: WriteState, columns: tuple[_Column, ...]) -> Iterator[RowRule]:
    """The rules that each row must satisfy. A generated column is only checked if its values come from the data; otherwise the
    write computes them."""
    for column in columns:
        if column.place is not None and GENERATION in column.field.metadata:
            yield generation_rule(column.field)
    yield from state.rules
    if state.replace_where is not None and state.checks_replace_where:
        yield RowRule("replace_where", "", state.replace_where)


def _places(schema: StructType, data: HiddenColumns) -> list[int | None]:
    """For each column of the table, the position of the data's column with its name; None for a column that the data lacks."""
    if not schema.fields:
        raise SchemaMismatchError(
            "The table has no columns, so no rows can be written. Add columns first.", error_class="DELTA_EMPTY_DATA"
        )
    check_duplicates(schema)
    places: dict[str, int] = {}
    for place, name in enumerate(data.names):
        if name.lower() in places:
            raise SchemaMismatchError(
                f"The data has the column {name} more than once (names that differ only in case are the same). Rename one.",
                error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
                sql_state="42711",
                column=name,
            )
        places[name.lower()] = place
    table_names = {f.name.lower() for f in schema.fields}
    unknown_columns = [name for name in data.names if name.lower() not in table_names and not data.is_hidden(name)]
    if unknown_columns:
        raise extra_columns(unknown_columns, schema.names, "the table")
    return [places.get(f.name.lower()) for f in schema.fields]
