"""Names of types in SQL text, as in `cast(x as decimal(10, 2))`."""

from __future__ import annotations

from delta_py.expressions.coercion import MAX_PRECISION
from delta_py.expressions.failures import not_an_expression, not_supported
from delta_py.expressions.tokens import TokenStream
from delta_py.protocol.schema import (
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
    VOID,
    DataType,
    DecimalType,
)

TYPES: dict[str, DataType] = {
    **dict.fromkeys(("TINYINT", "BYTE"), BYTE),
    **dict.fromkeys(("SMALLINT", "SHORT"), SHORT),
    **dict.fromkeys(("INT", "INTEGER"), INTEGER),
    **dict.fromkeys(("BIGINT", "LONG"), LONG),
    **dict.fromkeys(("FLOAT", "REAL"), FLOAT),
    "DOUBLE": DOUBLE,
    **dict.fromkeys(("STRING", "VARCHAR", "CHAR", "CHARACTER"), STRING),
    "BOOLEAN": BOOLEAN,
    "BINARY": BINARY,
    "DATE": DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), TIMESTAMP),
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
    "VOID": VOID,
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC"), DecimalType(10, 0)),
}


def parse_type(stream: TokenStream) -> DataType:
    """The type that comes next. Raises ExpressionError for one that nothing is cast to here."""
    token = stream.next
    found = TYPES.get(token.word)
    if found is None:
        raise not_supported(f"A cast to {token.text[:40] or 'nothing'}")
    stream.take()
    parameters = _parameters(stream)
    if stream.next.word == "COLLATE":
        raise not_supported("A cast to a type with a collation")
    if isinstance(found, DecimalType):
        return _decimal(stream, parameters) if parameters else found
    if parameters and not (found == STRING and token.word != "STRING" and len(parameters) == 1):
        raise not_an_expression(stream.sql, f"the type {token.text} takes no parameters")
    return found


def _parameters(stream: TokenStream) -> list[int]:
    if not stream.accept("("):
        return []
    values: list[int] = []
    while not values or stream.accept(","):
        digits = stream.take().text
        if not digits.isdecimal() or len(digits) > 9:
            raise not_an_expression(stream.sql, "a type's parameter must be a whole number")
        values.append(int(digits))
    stream.expect(")")
    return values


def _decimal(stream: TokenStream, parameters: list[int]) -> DecimalType:
    precision, scale = parameters[0], parameters[1] if len(parameters) > 1 else 0
    if len(parameters) > 2 or not 0 < precision <= MAX_PRECISION or not 0 <= scale <= precision:
        raise not_an_expression(stream.sql, f"there is no decimal({', '.join(map(str, parameters))})")
    return DecimalType(precision, scale)
