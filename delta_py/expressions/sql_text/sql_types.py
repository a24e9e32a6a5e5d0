"""Names of types in SQL text, as in `cast(x as decimal(10, 2))`. Imported only when SQL text is parsed."""

from __future__ import annotations

from sqlglot import exp

from delta_py.expressions.coercion import MAX_PRECISION
from delta_py.expressions.evaluation_errors import not_an_expression, not_supported
from delta_py.types.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

_MAX_DEPTH = 50

_TYPE_KINDS = exp.DataType.Type
_TYPES: dict[object, DataType] = {
    _TYPE_KINDS.TINYINT: BYTE,
    _TYPE_KINDS.SMALLINT: SHORT,
    _TYPE_KINDS.INT: INTEGER,
    _TYPE_KINDS.BIGINT: LONG,
    _TYPE_KINDS.FLOAT: FLOAT,
    _TYPE_KINDS.DOUBLE: DOUBLE,
    _TYPE_KINDS.TEXT: STRING,  # also char(n) and varchar(n): a cast in Spark ignores their lengths
    _TYPE_KINDS.BOOLEAN: BOOLEAN,
    _TYPE_KINDS.BINARY: BINARY,
    _TYPE_KINDS.DATE: DATE,
    _TYPE_KINDS.TIMESTAMPTZ: TIMESTAMP,
    _TYPE_KINDS.TIMESTAMPLTZ: TIMESTAMP,
    _TYPE_KINDS.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    _TYPE_KINDS.DECIMAL: DecimalType(10, 0),
}


def data_type_of(sql: str, type_node: exp.Expression, depth: int = 0) -> DataType:
    """The type in a cast in `sql`. Raises ExpressionError for a type to which this library does not cast.
    depth: the number of types around this one."""
    kind = type_node.this if isinstance(type_node, exp.DataType) else None
    if kind in (_TYPE_KINDS.ARRAY, _TYPE_KINDS.MAP, _TYPE_KINDS.STRUCT) and type_node.expressions:
        return _nested_type(sql, kind, type_node.expressions, depth + 1)
    data_type = _TYPES.get(type_node.this) if isinstance(type_node, exp.DataType) else None
    if data_type is None:
        raise not_supported(f"A cast to {type_node.sql('spark')[:40]}")
    if type_node.args.get("collate") is not None:
        raise not_supported("A cast to a type with a collation")
    parameters = [_whole_number(sql, parameter) for parameter in type_node.expressions]
    if isinstance(data_type, DecimalType):
        return _decimal_type(sql, parameters) if parameters else data_type
    if parameters:
        raise not_an_expression(sql, f"the type {type_node.sql('spark')[:40]} takes no parameters")
    return data_type


def _nested_type(sql: str, kind: object, parts: list[exp.Expression], depth: int) -> DataType:
    """The type STRUCT, ARRAY or MAP of the parsed parts."""
    if depth > _MAX_DEPTH:
        raise not_supported(f"A type nested more than {_MAX_DEPTH} levels deep")
    if kind == _TYPE_KINDS.STRUCT:
        return StructType(tuple(_struct_field(sql, part, depth) for part in parts))
    types = [data_type_of(sql, part, depth) for part in parts]
    if len(types) != (1 if kind == _TYPE_KINDS.ARRAY else 2):
        raise not_an_expression(sql, "ARRAY has one type inside, MAP two")
    return ArrayType(types[0]) if kind == _TYPE_KINDS.ARRAY else MapType(types[0], types[1])


def _struct_field(sql: str, part: exp.Expression, depth: int) -> StructField:
    if not isinstance(part, exp.ColumnDef) or part.args.get("constraints") or not isinstance(part.args.get("kind"), exp.DataType):
        raise not_supported(f"The field {part.sql('spark')[:40]} of a type")
    return StructField(part.name, data_type_of(sql, part.args["kind"], depth))


def _whole_number(sql: str, parameter: exp.Expression) -> int:
    digits = parameter.name
    if not digits.isdecimal() or len(digits) > 9:
        raise not_an_expression(sql, "a type's parameter must be a whole number")
    return int(digits)


def _decimal_type(sql: str, parameters: list[int]) -> DecimalType:
    precision, scale = parameters[0], parameters[1] if len(parameters) > 1 else 0
    if len(parameters) > 2 or not 0 < precision <= MAX_PRECISION or not 0 <= scale <= precision:
        raise not_an_expression(sql, f"there is no decimal({', '.join(map(str, parameters))})")
    return DecimalType(precision, scale)
