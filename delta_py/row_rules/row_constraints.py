"""Rules on rows in addition to their types: CHECK constraints, column invariants, generated columns, the condition of
replaceWhere, lengths of CHAR and VARCHAR; and the defaults of columns that the data lacks.

    rules = table_rules(config)                                 # driver: text, small
    RowCheck(rule, schema, clock).check(batch)                  # executor: raises for the first row that breaks it

A row satisfies a rule if the rule's expression is true; false and null break it, as in delta-spark. Expressions are evaluated
on whole batches with Spark's semantics (delta_py/expressions). A rule that cannot be evaluated is refused by name before any row
is read.
Protocol: Column Invariants; CHECK Constraints; Generated Columns; Default Columns.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import DeltaError, ExpressionError, InvariantViolationError
from delta_py.expressions.clock import replace_clock_functions
from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.parse import parse_expression, parse_predicate
from delta_py.expressions.resolve import resolve_cast, resolve_condition
from delta_py.expressions.tree import Column, Comparison, Expression, columns_of
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.store_assignment_casts import unenforceable
from delta_py.types.char_types import DECLARED_TYPE, CharType, CharTypes
from delta_py.types.column_rules import DEFAULT, GENERATION, INVARIANT
from delta_py.types.names import quoted
from delta_py.types.nested_arrays import child_offsets, struct_children
from delta_py.types.schema import (
    Path,
    StructField,
    StructType,
    find_path,
    to_arrow_schema,
)

CHECK_PREFIX = "delta.constraints."
_SHOWN_CHARACTERS = 200  # of a value or rule in a message
_MOST_CHARACTERS = 200_000  # of the texts of a table's rules and defaults together

Kind: TypeAlias = Literal["check", "invariant", "generated", "replace_where"]


@dataclass(frozen=True, slots=True)
class RowRule:
    """A condition that every row must satisfy. name: the constraint's name, or the column that has the invariant or the
    generation expression; empty for replaceWhere. sql: the condition; for a generated column, the expression of its value."""

    kind: Kind
    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Clock:
    """The time that `current_timestamp()` and similar functions return in one write. micros: microseconds since 1970 in UTC.
    time_zone: the session's."""

    micros: int
    time_zone: str = "UTC"

    def set(self, expression: Expression) -> Expression:
        """Replace current_timestamp() and similar functions in the expression by this clock's values."""
        now = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(microseconds=self.micros)
        return replace_clock_functions(expression, now, self.time_zone)


# ---------------------------------------------------------------- rules of a table


def table_rules(config: TableConfig) -> tuple[RowRule, ...]:
    """The invariants and CHECK constraints of a table, in the order of the schema and by name.

    Raises UnsupportedTableFeatureError for an invariant that cannot be parsed or that is inside an array or map.
    """
    invariants = (_invariant(path, text) for path, text in marked_fields(config.schema, INVARIANT))
    checks = (
        RowRule("check", key[len(CHECK_PREFIX) :], text)
        for key, text in sorted(config.properties.items())
        if key.lower().startswith(CHECK_PREFIX)
    )
    return (*invariants, *checks)


def check_rule_lengths(config: TableConfig) -> None:
    """Raises UnsupportedTableFeatureError when the texts of the table's rules and defaults together exceed the limit: their cost
    grows with their length, and anybody may have created the table."""
    texts = [rule.sql for rule in table_rules(config)]
    texts += [str(f.metadata[key]) for f in config.schema.fields for key in (GENERATION, DEFAULT) if key in f.metadata]
    length = sum(map(len, texts))
    if length > _MOST_CHARACTERS:
        what = f"rules and defaults of {length} characters, of which {_MOST_CHARACTERS} are read at most"
        raise unenforceable(what, max(texts, key=len)[:_SHOWN_CHARACTERS], "checkConstraints")


def generation_rule(column: StructField) -> RowRule:
    """The rule of a generated column."""
    return RowRule("generated", column.name, str(column.metadata[GENERATION]))


def _invariant(path: Path, text: Any) -> RowRule:
    """The invariant of a column. text: JSON such as `{"expression": {"expression": "x > 3"}}`."""
    name = ".".join(path)
    try:
        sql = orjson.loads(text)["expression"]["expression"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        sql = None
    if not isinstance(sql, str):
        raise unenforceable(f"the invariant on column {name}", str(text), "invariants")
    return RowRule("invariant", name, sql)


def marked_fields(schema: StructType, mark: str) -> Iterator[tuple[Path, Any]]:
    """The fields whose metadata has the key `mark`: their paths, and the key's value. Only structs are searched."""
    for f in schema.fields:
        if mark in f.metadata:
            yield (f.name,), f.metadata[mark]
        if isinstance(f.data_type, StructType):
            yield from (((f.name, *path), value) for path, value in marked_fields(f.data_type, mark))


# ---------------------------------------------------------------- rows


class RowCheck:
    """One rule, ready to check batches whose schema is `to_arrow_schema(schema)`."""

    def __init__(self, rule: RowRule, schema: StructType, clock: Clock) -> None:
        """schema: the columns of the batches to check. clock: the time that current_timestamp() and similar functions return.
        Raises UnsupportedTableFeatureError for a rule of the table that cannot be evaluated exactly, and ExpressionError or
        SchemaMismatchError for such a condition of replaceWhere."""
        self.rule = rule
        try:
            self._expression = _condition(rule, _plain_texts(schema), clock)
            _try_without_rows(self._expression, schema)
        except DeltaError as error:
            if rule.kind == "replace_where":
                raise
            raise unenforceable(_describe(rule), rule.sql, _FEATURES[rule.kind], error) from error
        self.columns = in_schema_order(columns_of(self._expression), schema)

    def check(self, batch: pa.RecordBatch) -> None:
        """Check that all rows of the batch satisfy the rule. Raises InvariantViolationError
        (DELTA_VIOLATE_CONSTRAINT_WITH_VALUES, DELTA_REPLACE_WHERE_MISMATCH) with the values of the first row that breaks the
        rule; ExpressionError when the rule cannot be evaluated for a row (division by zero, ...)."""
        answers = _evaluate(self._expression, batch, _describe(self.rule))
        if answers.true_count < len(answers):
            raise violation(self.rule, condition_text(self.rule), self.columns, batch, answers)

    def count_violations(self, batch: pa.RecordBatch) -> int:
        """How many rows of the batch break the rule. Raises ExpressionError as check."""
        return len(batch) - int(_evaluate(self._expression, batch, _describe(self.rule)).true_count)


def violation(
    rule: RowRule, sql: str, columns: Sequence[Path], batch: pa.RecordBatch, answers: pa.BooleanArray
) -> InvariantViolationError:
    """The error for a batch in which at least one row breaks a rule. sql: the condition. columns: the columns that it names; the
    message shows their values. answers: the result of the condition for each row.
    """
    is_broken = pc.invert(answers.fill_null(False))
    first_row, count = is_broken.index(True).as_py(), is_broken.true_count
    values = {".".join(path): _value_text(batch, path, first_row) for path in columns}
    lines = "".join(f"\n - {name} : {value}" for name, value in values.items())
    rows = f"{count} of {batch.num_rows} rows of a batch violate it; the values are those of the first."
    if rule.kind == "replace_where":
        return InvariantViolationError(
            f"A row that was to be written does not match replaceWhere ({sql}); it has the values:{lines}\n {rows} "
            "Nothing was written. Write only rows that match, or widen the condition.",
            error_class="DELTA_REPLACE_WHERE_MISMATCH",
            sql_state="44000",
            replace_where=sql,
            values=values,
            row_count=count,
        )
    name = {"generated": "Generated Column", "invariant": f"Invariant of {rule.name}"}.get(rule.kind, rule.name)
    return InvariantViolationError(
        f"CHECK constraint {name} ({sql}) violated by row with values:{lines}\n {rows} "
        "Nothing was written. Correct the rows, or drop the rule.",
        constraint=name,
        expression=sql,
        values=values,
        row_count=count,
    )


def condition_text(rule: RowRule) -> str:
    """The condition that every row must satisfy, for messages."""
    return f"{_quoted(rule.name)} <=> ({rule.sql})" if rule.kind == "generated" else rule.sql


def in_schema_order(columns: Iterable[Path], schema: StructType) -> list[Path]:
    """The columns in the order of the schema; those that it lacks come first."""

    def order(path: Path) -> tuple[int, Path]:
        position = schema.position(path[0])
        return -1 if position is None else position, path

    return sorted(columns, key=order)


_FEATURES = {"check": "checkConstraints", "invariant": "invariants", "generated": "generatedColumns"}


def _describe(rule: RowRule) -> str:
    """The rule with its kind, for messages."""
    match rule.kind:
        case "check":
            return f"the CHECK constraint {rule.name}"
        case "invariant":
            return f"the invariant on column {rule.name}"
        case "generated":
            return f"the generation expression on column {rule.name}"
    return "replaceWhere"


def _condition(rule: RowRule, schema: StructType, clock: Clock) -> Expression:
    """The condition that rows must fulfil. A generated column must equal its expression, where null equals null. clock: the time
    that current_timestamp() and similar functions return."""
    if rule.kind != "generated":
        parsed = clock.set(parse_predicate(rule.sql, schema, session_timezone=clock.time_zone))
        return resolve_condition(parsed, schema).expression
    target = schema.find(rule.name)
    assert target is not None
    equals_value = Comparison("<=>", Column((target.name,)), _generation(target, rule.sql, schema, clock))
    return resolve_condition(equals_value, schema).expression


def _value_text(batch: pa.RecordBatch, path: Path, row: int) -> str:
    """A value for a message, as text of limited length."""
    value: Any = batch.column(path[0]).slice(row, 1)
    for name in path[1:]:
        value = pc.struct_field(value, [name])
    try:
        shown = value[0].as_py()
        text = "null" if shown is None else str(shown)
    except (ValueError, OverflowError):  # a date that Python's own types cannot hold
        text = " ".join(value.to_string().split())
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."


def _quoted(name: str) -> str:
    return name if name.isidentifier() else quoted(name)


# ---------------------------------------------------------------- generated columns and defaults


class GeneratedColumn:
    """A column whose values come from the other columns of a row."""

    def __init__(self, column: StructField, schema: StructType, clock: Clock) -> None:
        """Raises UnsupportedTableFeatureError for an expression that cannot be evaluated exactly, or that needs another generated
        column."""
        rule = generation_rule(column)
        self._description, sql = _describe(rule), rule.sql
        try:
            self._expression = _generation(column, sql, _plain_texts(schema), clock)
            _try_without_rows(self._expression, schema)
        except DeltaError as error:
            raise unenforceable(self._description, sql, "generatedColumns", error) from error
        if names_generated(columns_of(self._expression), schema):
            raise unenforceable(self._description, f"{sql}, which needs a generated column", "generatedColumns")

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """The column's values; `batch` has the other columns."""
        return _evaluate(self._expression, batch, self._description)


def names_generated(columns: Iterable[Path], schema: StructType) -> bool:
    """Whether one of the columns is generated."""
    return any(GENERATION in find_path(schema, path[:1])[0].metadata for path in columns)


def _generation(column: StructField, sql: str, schema: StructType, clock: Clock) -> Expression:
    """The value of a generated column, in the column's type."""
    parsed = clock.set(parse_expression(sql, schema, session_timezone=clock.time_zone))
    return resolve_cast(parsed, schema, column.data_type, clock.time_zone).expression


def default_value(column: StructField, clock: Clock) -> pa.Scalar:
    """The value of a column that the data lacks, from its default expression.

    Raises UnsupportedTableFeatureError for an expression that cannot be evaluated exactly.
    """
    sql = str(column.metadata[DEFAULT])
    what = f"the default of column {column.name}, which the data lacks"
    try:
        parsed = clock.set(parse_expression(sql, StructType(), session_timezone=clock.time_zone))
        expression = resolve_cast(parsed, StructType(), column.data_type, clock.time_zone).expression
        return evaluate(expression, one_row())[0]
    except DeltaError as error:
        raise unenforceable(what, sql, "allowColumnDefaults", error) from error


def one_row() -> pa.RecordBatch:
    """A batch to evaluate expressions without columns."""
    return pa.RecordBatch.from_arrays([pa.nulls(1)], [""])


# ---------------------------------------------------------------- expressions


def _plain_texts(schema: StructType) -> StructType:
    """The schema without lengths of CHAR columns: rules see texts as they are written, without the padding that readers add."""
    if not any(DECLARED_TYPE in f.metadata for f in schema.fields):
        return schema
    return StructType(tuple(_plain_text(f) for f in schema.fields))


def _plain_text(f: StructField) -> StructField:
    if DECLARED_TYPE not in f.metadata:
        return f
    return dataclasses.replace(f, metadata={key: value for key, value in f.metadata.items() if key != DECLARED_TYPE})


def _try_without_rows(expression: Expression, schema: StructType) -> None:
    """Evaluate the expression on a batch without rows. Raises ExpressionError, with the function's name, for a function that
    cannot be evaluated here."""
    names = sorted({path[0] for path in columns_of(expression)})
    columns = to_arrow_schema(StructType(tuple(find_path(schema, (name,))[0] for name in names)))
    arrays = [pa.nulls(0, column.type) for column in columns]
    evaluate(expression, pa.RecordBatch.from_arrays(arrays, schema=columns))


def _evaluate(expression: Expression, batch: pa.RecordBatch, what: str) -> Any:
    """The expression's value for each row. what: the rule in words, as from _describe, for the error."""
    try:
        return evaluate(expression, batch)
    except ExpressionError as error:
        raise ExpressionError(
            f"A row that was to be written fails {what}: {error.message} Nothing was written.",
            error_class=error.error_class,
            sql_state=error.sql_state,
            **error.message_parameters,
        ) from error


# ---------------------------------------------------------------- lengths of texts


def check_lengths(array: pa.Array, types: CharTypes, name: str, *, counts_blanks: bool = True) -> None:
    """Check the lengths of texts, at any depth of a column. Raises InvariantViolationError (DELTA_EXCEED_CHAR_VARCHAR_LIMIT) for
    a text longer than its CHAR(n) or VARCHAR(n).

    Nothing is padded or cut: readers pad CHAR. types: the lengths in the array's type, from char_types. counts_blanks: whether
    trailing blanks of a text count, as they do in rows.
    """
    check = partial(check_lengths, counts_blanks=counts_blanks)
    match types:
        case CharType():
            _check_length(array if counts_blanks else pc.utf8_rtrim(array, " "), types, name)
        case Mapping():
            for f, values in zip(array.type, struct_children(array), strict=True):
                check(values, types.get(f.name), f"{name}.{f.name}")
        case (element,):
            check(array.flatten(), element, f"{name}.element")
        case (key, value):
            # Keys and values below a null map have no meaning.
            valid_maps = array if array.null_count == 0 else array.drop_null()
            _, first, count = child_offsets(valid_maps)
            check(valid_maps.keys.slice(first, count), key, f"{name}.key")
            check(valid_maps.items.slice(first, count), value, f"{name}.value")


def _check_length(array: pa.Array, declared: CharType, name: str) -> None:
    """Check the lengths of texts that all have the declared type. Raises as check_lengths. name: the column's, for messages."""
    too_long = pc.fill_null(pc.greater(pc.utf8_length(array), declared.length), False)
    count = too_long.true_count
    if count == 0:
        return
    value = array[too_long.index(True).as_py()].as_py()
    shown = value if len(value) <= _SHOWN_CHARACTERS else value[:_SHOWN_CHARACTERS] + "..."
    raise InvariantViolationError(
        f'Value "{shown}" exceeds char/varchar type length limitation: column {name} is {declared.kind}({declared.length}), and '
        f"the value has {len(value)} characters ({count} of {len(array)} values of a batch are too long). Nothing was written. "
        "Shorten the values.",
        error_class="DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
        sql_state="22001",
        column=name,
        value=shown,
        length=declared.length,
    )
