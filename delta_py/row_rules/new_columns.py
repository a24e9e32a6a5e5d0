"""Check the name, the default or the generation expression of a column when a table is defined or a column is changed.

    check_new_schema(schema, "none")    # the names of a table that is created, or that gets columns
    check_new_rules(schema)             # the rules of a table that is created or replaced
    check_default(column)               # of a column that gets one

Existing rules are not checked here: another program's table may contain an invalid default, or an expression of another type.
These are refused when rows need them.
Protocol: Default Columns; Generated Columns.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa

from delta_py.errors import DeltaError, ExpressionError, InvalidOptionError, SchemaMismatchError, UnsupportedOperationError
from delta_py.expressions.coercion import is_up_cast
from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.evaluation_errors import SUBQUERY
from delta_py.expressions.parse import parse_expression
from delta_py.expressions.resolve import resolve
from delta_py.expressions.tree import Call, Expression, Literal, columns_of
from delta_py.protocol.column_mapping import MODE_PROPERTY
from delta_py.row_rules.geospatial import check_shape_columns
from delta_py.row_rules.row_constraints import Clock, check_lengths, default_value, one_row
from delta_py.types.char_types import char_types, with_char_as_string
from delta_py.types.column_rules import DEFAULT, GENERATION
from delta_py.types.schema import BOOLEAN, ArrayType, DataType, MapType, Path, StructField, StructType, type_name
from delta_py.types.type_walk import direct_parts, fields_with_paths

# The checks need some time for current_timestamp() and similar functions. The types of expressions do not depend on it.
_CLOCK = Clock(0)
_NO_COLUMNS = StructType(())
# Functions that give another value for each row, or for each call.
_NON_DETERMINISTIC = frozenset(
    {
        *("rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "spark_partition_id", "input_file_name"),
        *("monotonically_increasing_id", "input_file_block_start", "input_file_block_length"),
    }
)


def check_new_rules(schema: StructType) -> None:
    """Check the defaults and the generation expressions of all columns. Raises as check_default and check_generated."""
    for column in schema.fields:
        if DEFAULT in column.metadata:
            check_default(column)
        if GENERATION in column.metadata:
            check_generated(column, schema)


# ---------------------------------------------------------------- defaults


def check_default(column: StructField) -> None:
    """Check the default in the column's metadata. It must be an expression without columns, of the column's type or of a type
    whose values all fit into the column's; or a number, a text or a time that the column's type can hold as well.

    A default that Spark can compute and pydelta cannot is accepted: then only data that lacks the column is refused.
    Raises InvalidOptionError: INVALID_DEFAULT_VALUE.NOT_CONSTANT, .SUBQUERY_EXPRESSION, .NON_DETERMINISTIC, .DATA_TYPE,
    .UNRESOLVED_EXPRESSION, or EXCEED_LIMIT_LENGTH.
    """
    # CHAR and VARCHAR columns are checked as texts of any length here, and _check_length checks the length.
    column = with_char_as_string(StructType((column,))).fields[0]
    sql = str(column.metadata[DEFAULT])
    try:
        node = resolve(_CLOCK.set(parse_expression(sql, _NO_COLUMNS)), _NO_COLUMNS)
    except SchemaMismatchError as error:
        # The text names a column. Or it has a word such as current_user, which means a function without parentheses in Spark.
        if _can_spark_compute(sql):
            return
        raise _invalid_default(column, "NOT_CONSTANT", f"{error.message} A default names no columns.") from error
    except DeltaError as error:
        if error.error_class == ExpressionError.error_class and _can_spark_compute(sql):
            return
        raise _invalid_default(column, _default_error_condition(error), error.message) from error
    if not is_up_cast(node.data_type, column.data_type) and not _can_hold(column.data_type, node.expression, node.data_type):
        raise _invalid_default(column, "DATA_TYPE", f"It is {type_name(node.data_type)}.")
    try:
        value = default_value(column, _CLOCK)
    except DeltaError as error:
        raise _invalid_default(column, "UNRESOLVED_EXPRESSION", error.message) from error
    _check_length(column, value)


def _can_spark_compute(sql: str) -> bool:
    """Whether Spark may compute the default although pydelta cannot."""
    from delta_py.expressions.sql_text.spark_rules import checked_default  # few defaults need it

    try:
        checked_default(sql)
    except DeltaError:
        return False
    return True


def _default_error_condition(error: DeltaError) -> str:
    """The error condition for a default that pydelta cannot evaluate: the part after `INVALID_DEFAULT_VALUE.`"""
    unknown_function = str(error.message_parameters.get("function", ""))
    if unknown_function == SUBQUERY:
        return "SUBQUERY_EXPRESSION"
    return "NON_DETERMINISTIC" if _is_non_deterministic(unknown_function) else "UNRESOLVED_EXPRESSION"


def _is_non_deterministic(unknown_function: str) -> bool:
    """Whether the unknown function gives another value for each row or call. unknown_function: the parameter `function` of the
    error for an unknown function, such as `The function rand`."""
    return unknown_function.removeprefix("The function ").lower() in _NON_DETERMINISTIC


def _can_hold(target: DataType, expression: Expression, source: DataType) -> bool:
    """Whether the expression's value can be cast to the target type, although not all values of its own type can. Booleans and
    nested values are only accepted by columns of their own type. source: the type of the expression, which names no columns."""
    if any(data_type == BOOLEAN or isinstance(data_type, StructType | ArrayType | MapType) for data_type in (source, target)):
        return False
    try:
        return bool(evaluate(Call("try_cast", (expression, Literal(None, target))), one_row())[0].is_valid)
    except ExpressionError:
        return False


def _check_length(column: StructField, value: pa.Scalar) -> None:
    """Raise InvalidOptionError if the default is longer than its CHAR(n) or VARCHAR(n). Trailing blanks do not count here, as
    when Spark creates a column; they count in each row that gets the default."""
    lengths = char_types(column, strict=True)
    if lengths is None:
        return
    try:
        check_lengths(pa.repeat(value, 1), lengths, column.name, counts_blanks=False)
    except DeltaError as error:
        raise InvalidOptionError(
            f"{column.metadata[DEFAULT]} cannot be the default of column {column.name}: {error.message}",
            error_class="EXCEED_LIMIT_LENGTH",
            sql_state="54006",
            column=column.name,
        ) from error


def _invalid_default(column: StructField, condition: str, why: str) -> InvalidOptionError:
    """The error for a default. condition: the part of the error class after `INVALID_DEFAULT_VALUE.`. why: a sentence."""
    sql = str(column.metadata[DEFAULT])
    return InvalidOptionError(
        f"{sql} cannot be the default of column {column.name} of type {type_name(column.data_type)}. {why} Nothing was changed.",
        error_class=f"INVALID_DEFAULT_VALUE.{condition}",
        sql_state="42623",
        column=column.name,
        default=sql,
    )


# ---------------------------------------------------------------- generated columns


def check_generated(column: StructField, schema: StructType) -> None:
    """Check the column's generation expression: it must name only columns of the schema that are not generated themselves, be
    deterministic, and have the column's type. An expression that cannot be parsed here is not refused here; the write refuses it.

    Raises UnsupportedOperationError: DELTA_INVALID_GENERATED_COLUMN_REFERENCES, DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN,
    DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH.
    """
    schema = with_char_as_string(schema)
    sql = str(column.metadata[GENERATION])
    try:
        node = resolve(_CLOCK.set(parse_expression(sql, schema)), schema)
    except SchemaMismatchError as error:
        raise _invalid_generation(column, "DELTA_INVALID_GENERATED_COLUMN_REFERENCES", "42621", error.message) from error
    except DeltaError as error:
        # pydelta has none of the functions in _NON_DETERMINISTIC, so an expression with one of them always fails here.
        if _is_non_deterministic(str(error.message_parameters.get("function", ""))):
            condition, why = "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN", "It gives another value each time that it is asked."
            raise _invalid_generation(column, condition, "42621", why) from error
        return
    generated = {f.name for f in schema.fields if GENERATION in f.metadata}
    generated_inputs = sorted(generated & {path[0] for path in columns_of(node.expression)})
    if generated_inputs:
        why = f"It needs {', '.join(generated_inputs)}, which is generated itself."
        raise _invalid_generation(column, "DELTA_INVALID_GENERATED_COLUMN_REFERENCES", "42621", why)
    column_type = next(f.data_type for f in schema.fields if f.name == column.name)
    if type_name(node.data_type).lower() != type_name(column_type).lower():
        why = f"Its type is {type_name(node.data_type)}. Cast it to {type_name(column_type)}, or give the column that type."
        raise _invalid_generation(column, "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH", "42K09", why)


def _invalid_generation(column: StructField, condition: str, sql_state: str, why: str) -> UnsupportedOperationError:
    """The error for a generation expression. condition: the error class. why: a sentence."""
    sql = str(column.metadata[GENERATION])
    return UnsupportedOperationError(
        f"{sql} cannot generate column {column.name} of type {type_name(column.data_type)}. {why} Nothing was changed.",
        error_class=condition,
        sql_state=sql_state,
        column=column.name,
        expression=sql,
    )


# ---------------------------------------------------------------- names

INVALID_CHARACTERS = " ,;{}()\n\t="


def check_new_schema(schema: StructType, column_mapping_mode: str, present: StructType | None = None) -> None:
    """Check names and CRSs of a new table, at every depth. present: the table's schema so far, which may contain empty names from
    other writers.

    Raises SchemaMismatchError: DELTA_DUPLICATE_COLUMNS_FOUND for names that are equal or differ only in case,
    DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED for a type in which each value has its own CRS, DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES
    for empty names, and for characters that need column mapping.
    """
    check_duplicates(schema)
    _check_no_new_empty_names(schema, present)
    check_shape_columns(schema)
    if column_mapping_mode != "none":
        return
    invalid_names = names_needing_mapping(schema)
    if invalid_names:
        raise SchemaMismatchError(
            f"Column names with any of the characters {INVALID_CHARACTERS!r} need column mapping: "
            f"{', '.join(map(repr, invalid_names))}. "
            f"Rename the columns, or create the table with the property {MODE_PROPERTY} = name.",
            error_class="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
            sql_state="42K05",
            columns=invalid_names,
        )


def _check_no_new_empty_names(schema: StructType, present: StructType | None) -> None:
    """Raise SchemaMismatchError for empty names that the table does not have yet. present: as in check_new_schema."""
    present_paths = set() if present is None else _paths_without_name(present)
    nameless = sorted(_paths_without_name(schema) - present_paths)
    if nameless:
        parent = ".".join(nameless[0][:-1])
        what = f"A field of column {parent} has" if parent else "A column has"
        raise SchemaMismatchError(
            f"{what} the empty text as its name, by which no SQL can call it. Nothing was written or changed. Give it a name.",
            error_class="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
            sql_state="42K05",
            columns=[".".join(path) for path in nameless],
        )


def _paths_without_name(schema: StructType) -> set[Path]:
    return {path for path, f in fields_with_paths(schema) if not f.name}


def names_needing_mapping(schema: StructType) -> list[str]:
    """Dotted paths of columns, at any depth, whose names files cannot use."""
    return [".".join(path) for path, f in fields_with_paths(schema) if not set(INVALID_CHARACTERS).isdisjoint(f.name)]


def check_duplicates(data_type: DataType, path: Path = ()) -> None:
    """Check that no struct has two fields of one name. Raises SchemaMismatchError (DELTA_DUPLICATE_COLUMNS_FOUND) for names that
    are equal or differ only in case, at any depth."""
    if isinstance(data_type, StructType):
        names = Counter(f.name.lower() for f in data_type.fields)
        duplicate_names = sorted({f.name for f in data_type.fields if names[f.name.lower()] > 1})
        if duplicate_names:
            where = f" in {'.'.join(path)}" if path else ""
            raise SchemaMismatchError(
                f"Columns have one name{where} (names that differ only in case are the same): {', '.join(duplicate_names)}. "
                "Rename one.",
                error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
                sql_state="42711",
                columns=duplicate_names,
            )
    for inner_path, inner in direct_parts(data_type, path):
        check_duplicates(inner, inner_path)
