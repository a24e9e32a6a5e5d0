"""DEFAULT as the value of a column in SET, and in the values of an INSERT: the value of the column in a new row that omits it.

is_default_word(frame, F.expr("DEFAULT"))        # True, unless the frame has a column of that name
default_of(spark, field)                          # the column's default expression; NULL if it has none
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_py.errors import DeltaError
from delta_py.expressions.sql_text.spark_rules import checked_default, type_text
from delta_py.row_rules.store_assignment_casts import unenforceable
from delta_py.types.column_rules import DEFAULT
from delta_py.types.schema import ArrayType, MapType, StructField, StructType
from spark_plugin.dml.analyzer import analyzer_of
from spark_plugin.spark_versions import resolvable_rule_text

_WORD = "default"


def is_default_word(frame: DataFrame, value: Column) -> bool:
    """Return whether the value is the word DEFAULT alone. As in Spark's own SQL, a column of that name takes precedence."""
    text = analyzer_of(frame.sparkSession).written_text(value)
    return text.strip().lower() == _WORD and _WORD not in (name.lower() for name in frame.columns)


def default_of(spark: SparkSession, field: StructField) -> Column:
    """Return the value of the column's default expression; NULL if it has none. Raises the same as default_text."""
    return F.expr(default_text(spark, field))


def default_text(spark: SparkSession, field: StructField) -> str:
    """Return the column's default expression as SQL that Spark may evaluate; NULL if it has none. A struct, array or map is
    cast to the column's type, and this cast matches the fields of structs by position.

    Raises UnsupportedTableFeatureError for an expression with anything but built-in functions that depend on their arguments and
    the clock; UnsupportedOperationError as resolvable_rule_text.
    """
    text = str(field.metadata.get(DEFAULT, "NULL"))
    try:
        checked = checked_default(text)
        nested = isinstance(field.data_type, StructType | ArrayType | MapType)
        typed = f"cast({checked} AS {type_text(field.data_type)})" if nested else checked
    except DeltaError as error:
        raise unenforceable(f"the default of column {field.name}", text, "allowColumnDefaults", error) from error
    return resolvable_rule_text(spark, typed)
