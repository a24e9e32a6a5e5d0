"""What Spark's analyzer says of a condition and of values: in a classic session by the plan that it makes, over Spark Connect
by what it takes and refuses, for the plan stays on the server.

    text = analysed_text(frame, F.expr("a > 1"), "DELETE")    # raises what is wrong with it
    reads_tables(frame, [condition, *values])                 # whether there is a subquery
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NoReturn

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from delta_py.errors import UnsupportedOperationError
from spark_plugin.dml.connect_conditions import condition_text, is_plain
from spark_plugin.spark_internals import (
    SparkInternals,
    expression_sql,
    is_connect,
    is_deterministic_expression,
    may_have_subqueries,
)

_NON_DETERMINISTIC = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"


def analysed_text(frame: DataFrame, condition: Column, operation: str) -> str:
    """The condition of a filter of the frame as SQL text.

    Raises Spark's AnalysisException for what is no condition of its rows; UnsupportedOperationError
    (DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED).
    """
    if is_connect(frame.sparkSession):
        check_filters(frame, [condition])
        text = condition_text(condition)
        if not is_deterministic(frame, condition):
            refuse_non_deterministic(operation, text)
        return text
    found = SparkInternals(frame.sparkSession).filter_condition(frame, condition)
    if not is_deterministic_expression(found):
        refuse_non_deterministic(operation, expression_sql(found))
    return expression_sql(found)


def check_filters(frame: DataFrame, conditions: Sequence[Column]) -> None:
    """Raises Spark's AnalysisException for what is no condition of the frame's rows. No job runs."""
    filtered = reduce(lambda found, condition: found.where(condition), conditions, frame)
    # A client of Spark Connect takes a filter's schema for the frame's, which it may know; it asks the server for another one.
    filtered.select(F.lit(1)).schema  # noqa: B018 - which analyses all of it


def is_deterministic(frame: DataFrame, condition: Column) -> bool:
    """Whether Spark takes it as the condition of a join, over Spark Connect. Raises UnsupportedOperationError for one that it
    refuses there for another reason."""
    if is_plain(condition):
        return True
    other = frame.sparkSession.createDataFrame([], "__pydelta_other int")
    try:
        frame.join(other, condition, "left_semi").schema  # noqa: B018 - the server analyses it when it is asked
    except AnalysisException as error:
        if error.getCondition() == _NON_DETERMINISTIC:
            return False
        raise UnsupportedOperationError(
            f"Over Spark Connect the condition cannot be checked for functions that give another result each time: "
            f"{str(error).partition(chr(10))[0]} Collect what the subquery gives first, or use a classic session."
        ) from error
    return True


def refuse_non_deterministic(where: str, condition: str) -> NoReturn:
    raise UnsupportedOperationError(
        f"Non-deterministic functions are not supported in the {where} (condition = {condition}): a task that Spark repeats "
        "would find other rows. Write the values of the function into a column first.",
        error_class="DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
        sql_state="0AKDC",
        condition=condition,
    )


def reads_tables(frame: DataFrame, columns: Sequence[Column]) -> bool:
    """Whether any of the columns, as the frame understands them, has a subquery."""
    connect = is_connect(frame.sparkSession)
    if connect and all(is_plain(column) for column in columns):
        return False
    chosen = frame.select(*(column.alias(f"c{number}") for number, column in enumerate(columns)))
    return may_have_subqueries(chosen) if connect else SparkInternals(frame.sparkSession).has_subqueries(chosen)
