"""Defaults and generation expressions when columns get them: those that delta-spark 4.4 accepts are accepted, and the others are
refused in the same way.
"""

from __future__ import annotations

import pytest

from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.row_rules.new_columns import check_default, check_new_rules
from delta_py.types.column_rules import DEFAULT, GENERATION
from delta_py.types.schema import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

STRUCT = StructType((StructField("a", INTEGER),))


def default(data_type: DataType, sql: str) -> StructField:
    return StructField("x", data_type, True, {DEFAULT: sql})


@pytest.mark.parametrize(
    ("data_type", "sql"),
    [
        *((INTEGER, sql) for sql in ("7", "'7'", "1.5", "1 + 1", "NULL", "hash(3)", "CAST('5' AS INT)", "7L")),
        (BYTE, "1"),
        (STRING, "5"),
        (STRING, "concat('a', 'b')"),
        (DATE, "'2024-01-01'"),
        (DATE, "current_date"),
        (TIMESTAMP, "current_timestamp()"),
        (TIMESTAMP, "DATE'2024-01-01'"),
        (DOUBLE, "1"),
        (DecimalType(3, 1), "1.25"),
        (STRUCT, "named_struct('a', 1)"),
        (STRUCT, "struct(1)"),
        (STRUCT, "named_struct('b', 1S)"),
        (STRUCT, "CAST(named_struct('a', 5L) AS STRUCT<a: INT>)"),
        (STRUCT, "CAST(NULL AS STRUCT<`a`: INT>)"),
        (ArrayType(INTEGER), "array(1, 2)"),
        (ArrayType(INTEGER), "array()"),
        (ArrayType(STRUCT), "array(named_struct('a', 1), CAST(NULL AS STRUCT<a: INT>))"),
        (MapType(STRING, INTEGER), "map('k', 1, 'j', NULL)"),
        (MapType(STRING, INTEGER), "map()"),
        (PrimitiveType("varchar(3)"), "'abc'"),
        (PrimitiveType("varchar(3)"), "'abc   '"),  # blanks at the end do not count here, as in delta-spark
        (PrimitiveType("char(3)"), "concat('abc', '   ')"),
        (StructType((StructField("a", PrimitiveType("varchar(3)")),)), "named_struct('a', 'abc   ')"),
        (MapType(STRING, ArrayType(PrimitiveType("char(3)"))), "map('k', array('abc   ', NULL))"),
    ],
    ids=str,
)
def test_default_of_the_type_of_its_column_is_accepted(data_type: DataType, sql: str) -> None:
    check_default(default(data_type, sql))


@pytest.mark.parametrize(
    ("data_type", "sql", "condition"),
    [
        (INTEGER, "nope", "INVALID_DEFAULT_VALUE.NOT_CONSTANT"),
        (INTEGER, "'y'", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (INTEGER, "5000000000", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (BYTE, "300", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (DATE, "'nodate'", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (BOOLEAN, "1", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (INTEGER, "true", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (INTEGER, "1/0", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (INTEGER, "array(1)", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (ArrayType(INTEGER), "5", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (STRUCT, "named_struct('a', 'x')", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (STRUCT, "named_struct('a', 1, 'b', 2)", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (STRUCT, "named_struct('a', 5L)", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (DecimalType(3, 1), "123.45", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (INTEGER, "(SELECT 1)", "INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION"),
        (DOUBLE, "rand()", "INVALID_DEFAULT_VALUE.NON_DETERMINISTIC"),
        (STRING, "uuid()", "INVALID_DEFAULT_VALUE.NON_DETERMINISTIC"),
        (ArrayType(INTEGER), "array('7')", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (MapType(STRING, INTEGER), "map('a', 1, 'a', 2)", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
        (MapType(STRING, INTEGER), "map(NULL, 1)", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
        (MapType(STRING, INTEGER), "map('a')", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
        (ArrayType(INTEGER), "CAST(array('x') AS ARRAY<INT>)", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
        (INTEGER, "nosuch(1)", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
        (DOUBLE, "1/0", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
        (INTEGER, "1 +", "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION"),
        (PrimitiveType("varchar(3)"), "'toolong'", "EXCEED_LIMIT_LENGTH"),
        (PrimitiveType("varchar(3)"), "' abc'", "EXCEED_LIMIT_LENGTH"),
        (PrimitiveType("varchar(3)"), "'abc\\t'", "EXCEED_LIMIT_LENGTH"),
        (StructType((StructField("a", PrimitiveType("char(3)")),)), "named_struct('a', 'abcd  ')", "EXCEED_LIMIT_LENGTH"),
    ],
    ids=str,
)
def test_default_that_no_row_could_have_is_refused(data_type: DataType, sql: str, condition: str) -> None:
    with pytest.raises(InvalidOptionError) as refused:
        check_default(default(data_type, sql))
    assert refused.value.error_class == condition
    assert sql in refused.value.message


def columns(generated: DataType, sql: str) -> StructType:
    plain = (("id", INTEGER), ("ts", TIMESTAMP), ("s", STRUCT), ("d", DecimalType(5, 2)), ("word", PrimitiveType("varchar(3)")))
    fields = tuple(StructField(name, data_type) for name, data_type in plain)
    other = StructField("y", INTEGER, True, {GENERATION: "id"})
    return StructType((*fields, other, StructField("x", generated, True, {GENERATION: sql})))


@pytest.mark.parametrize(
    ("data_type", "sql"),
    [
        (INTEGER, "id + 1"),
        (LONG, "id + 1L"),
        (DATE, "CAST(ts AS DATE)"),
        (INTEGER, "s.a"),
        (DecimalType(6, 2), "d + 1"),
        (STRING, "word"),
        (STRING, "'a'"),
        (STRUCT, "named_struct('a', id)"),
        (ArrayType(INTEGER), "array(id)"),
        (INTEGER, "hash(id)"),  # refused, because Spark does not compute it here
    ],
    ids=str,
)
def test_generation_expression_of_the_column_s_type_is_taken(data_type: DataType, sql: str) -> None:
    check_new_rules(columns(data_type, sql))


@pytest.mark.parametrize(
    ("data_type", "sql", "condition"),
    [
        (STRING, "id + 1", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        (LONG, "id + 1", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        (INTEGER, "id + 1L", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        (INTEGER, "null", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        (TIMESTAMP, "CAST(ts AS DATE)", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        (STRING, "s.a", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        (INTEGER, "nope", "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        (INTEGER, "x + 1", "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        (INTEGER, "y", "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        (DOUBLE, "rand()", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
    ],
    ids=str,
)
def test_invalid_generation_expression_is_refused(
    data_type: DataType, sql: str, condition: str
) -> None:
    with pytest.raises(UnsupportedOperationError) as refused:
        check_new_rules(columns(data_type, sql))
    assert refused.value.error_class == condition
    assert sql in refused.value.message
