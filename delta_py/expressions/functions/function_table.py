"""The table of functions by Spark's lower-case names.

Conditionals (coalesce, if, case) are not here: evaluate.py evaluates their branches only for the rows that need them.

The table is closed: no function is added. If a rule needs another function, Spark computes it, if Spark is available
(expressions/sql_text/spark_rules.py): a new function goes into that module's list, which costs a name and no code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from delta_py.expressions.evaluation_errors import not_supported
from delta_py.expressions.functions.calendar import MONTHS
from delta_py.expressions.functions.codes import BYTES
from delta_py.expressions.functions.formats import FORMATS
from delta_py.expressions.functions.function_types import Function, not_evaluated
from delta_py.expressions.functions.math import MATH
from delta_py.expressions.functions.nested import NESTED
from delta_py.expressions.functions.numbers import NUMBERS
from delta_py.expressions.functions.patterns import PATTERNS
from delta_py.expressions.functions.text_functions import TEXTS
from delta_py.expressions.functions.times import TIMES
from delta_py.types.schema import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        **NUMBERS,
        **TEXTS,
        **TIMES,
        **PATTERNS,
        **BYTES,
        **MONTHS,
        **FORMATS,
        **MATH,
        **NESTED,
        # Values of the time of evaluation: clock.py replaces them by constants.
        "current_date": not_evaluated(DATE),
        "current_timestamp": not_evaluated(TIMESTAMP),
        "localtimestamp": not_evaluated(TIMESTAMP_NTZ),
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
        "curdate": "current_date",
        "power": "pow",
        "signum": "sign",
        "cardinality": "size",
        "char": "chr",
        "<<": "shiftleft",
        ">>": "shiftright",
        ">>>": "shiftrightunsigned",
    }
)


def call_values(name: str, arguments: Sequence[Any], constants: Sequence[Any], result: DataType) -> Any:
    """Calls a function of the table on Arrow values.

    arguments: Arrays, or Scalars if at least one is an Array. constants: the arguments' Python values if they are
    literals; used at the positions where the function needs a constant.
    """
    function = FUNCTIONS[name]
    if function.run is None:
        raise not_supported(f"The function {name}")
    call_arguments = list(arguments)
    for position in function.constants.intersection(range(len(arguments))):
        call_arguments[position] = constants[position]
    return function.run(call_arguments, result)
