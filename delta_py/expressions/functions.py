"""The table of functions by Spark's lower-case names.

Conditionals (coalesce, if, case) are not here: evaluate.py evaluates their branches only for the rows that need them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from delta_py.expressions.failures import not_supported
from delta_py.expressions.function_types import Function, not_evaluated
from delta_py.expressions.functions_number import NUMBERS
from delta_py.expressions.functions_text import TEXTS
from delta_py.expressions.functions_time import TIMES
from delta_py.protocol.schema import BOOLEAN, DATE, STRING, TIMESTAMP, DataType

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        **NUMBERS,
        **TEXTS,
        **TIMES,
        # Java's regular expressions are not Arrow's.
        "rlike": not_evaluated(BOOLEAN),
        "ilike": not_evaluated(BOOLEAN),
        "current_date": not_evaluated(DATE),
        "current_timestamp": not_evaluated(TIMESTAMP),
        "current_timezone": not_evaluated(STRING),
    }
)

# Other names of the same functions.
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "mod": "%",
        "ceiling": "ceil",
        "ucase": "upper",
        "lcase": "lower",
        "char_length": "length",
        "character_length": "length",
        "len": "length",
        "substr": "substring",
        "||": "concat",
        "date_diff": "datediff",
        "dateadd": "date_add",
        "regexp": "rlike",
        "regexp_like": "rlike",
        "now": "current_timestamp",
    }
)


def call_values(name: str, arguments: Sequence[Any], constants: Sequence[Any], result: DataType) -> Any:
    """A function of the table on Arrow values.

    arguments: Arrays, or Scalars beside at least one Array. constants: the arguments' Python values where they are
    literals; used at the positions that the function wants constant.
    """
    function = FUNCTIONS[name]
    if function.run is None:
        raise not_supported(f"The function {name}")
    given = [constants[place] if place in function.constants else argument for place, argument in enumerate(arguments)]
    return function.run(given, result)
