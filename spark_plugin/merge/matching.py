"""Decides which rows of a table match the source of an overwrite: the options replaceUsing and replaceOn. An overwrite with one
of them replaces only the matching rows (replace_matching.py).

matching_of({"replaceusing": "id, day"})      # Matching.using(("id", "day"))
Matching.on("t.id = s.id", "t")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from delta_py.errors import InvalidOptionError, SchemaMismatchError
from delta_py.types.names import list_parts, quoted, split_name
from spark_plugin.dml.target_names import Alias

MATCHING_OPTIONS = ("replaceusing", "replaceon", "targetalias")
_TARGET, _SOURCE = "__pydelta_target", "__pydelta_source"


@dataclass(frozen=True, slots=True)
class Matching:
    """Which rows of the table match the source: those with the same values in some columns (`using`), or those for which a
    condition is true (`on`).

    columns: the names of the columns of `using`; empty for `on`. condition: for `using` the columns as the user wrote them, for
    the history; for `on` the condition as SQL. alias: the table's name in the condition; empty if it has none. condition_column:
    the condition of `on` as a Column; None if there is only the SQL. source_columns: for each column of the new rows, the name of
    the source's column that contains its values; None if the new rows have exactly the source's columns.
    """

    columns: tuple[str, ...] = ()
    condition: str = ""
    alias: Alias = ()
    condition_column: Column | None = None
    source_columns: Mapping[str, str] | None = None

    @classmethod
    def using(cls, columns: Sequence[str], user_text: str | None = None) -> Matching:
        """Match rows with the same values in these columns. user_text: the columns as the user wrote them, for the history; None
        to list the names."""
        return cls(columns=tuple(columns), condition=", ".join(columns) if user_text is None else user_text, alias=(_TARGET,))

    @classmethod
    def on(cls, condition: str, alias: str | None) -> Matching:
        """Match rows for which the condition, SQL text, is true. alias: the table's name in the condition; None if it has
        none."""
        return cls(condition=condition, alias=() if alias is None else (alias,))

    def history_parameter(self) -> dict[str, Any]:
        """Return the parameter of the operation that the history records for this matching."""
        return {"replaceUsingCols": f"({self.condition})"} if self.columns else {"replaceOnCond": self.condition}

    def join_inputs(self, columns: Sequence[str], source: DataFrame, *, case_sensitive: bool) -> tuple[DataFrame, Column]:
        """Return the source, for `using` under an alias, and the condition that joins it with the table. columns: the names of
        the table's columns.

        Raises SchemaMismatchError (UNRESOLVED_INSERT_REPLACE_USING_COLUMN) for a column that one side lacks.
        """
        if not self.columns:
            return source, F.expr(self.condition) if self.condition_column is None else self.condition_column
        for name in self.columns:
            for relation, column_names in (("table", columns), ("query", source.columns)):
                _check_column_exists(name, relation, column_names, case_sensitive=case_sensitive)
        quoted_names = [quoted(split_name(name)[0]) for name in self.columns]
        equalities = [F.col(f"{_TARGET}.{name}") == F.col(f"{_SOURCE}.{name}") for name in quoted_names]
        return source.alias(_SOURCE), reduce(and_, equalities)


def _check_column_exists(text: str, relation: str, column_names: Sequence[str], *, case_sensitive: bool) -> None:
    """Raise SchemaMismatchError unless the text names one of the columns. relation: the side that has them, `table` or `query`,
    for the error."""
    path = split_name(text)
    names = column_names if case_sensitive else [name.lower() for name in column_names]
    if len(path) == 1 and (path[0] if case_sensitive else path[0].lower()) in names:
        return
    raise SchemaMismatchError(
        f"The option replaceUsing names {text}, and the {relation} has the columns {', '.join(column_names)}. Nothing was "
        "written. Name columns that both have, fields of structs not among them.",
        error_class="UNRESOLVED_INSERT_REPLACE_USING_COLUMN",
        sql_state="42703",
        column=text,
        relation=relation,
    )


def matching_of(options: Mapping[str, str]) -> Matching | None:
    """Return the matching of an overwrite's options, by lower-case name; None if they replace no matching rows.

    Raises InvalidOptionError for options that do not go together (DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS,
    DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING,
    DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING), and for empty names (DELTA_ILLEGAL_OPTION).
    """
    using, on = options.get("replaceusing"), options.get("replaceon")
    if using is None and on is None:
        return None
    if using is not None and on is not None:
        raise _incompatible("replaceOn", "replaceUsing")
    name = "replaceOn" if using is None else "replaceUsing"
    if "replacewhere" in options:
        raise _incompatible("replaceWhere", name, "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING")
    if options.get("partitionoverwritemode", "static").strip().lower() != "static":
        raise _incompatible("partitionOverwriteMode", name, "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING")
    # A new schema replaces all rows, and dataChange=false says that all rows stay the same.
    for other_option, excluded_value in (("overwriteSchema", "true"), ("dataChange", "false")):
        if options.get(other_option.lower(), "").strip().lower() == excluded_value:
            raise _incompatible(other_option, name)
    if on is not None:
        return Matching.on(on, options.get("targetalias"))
    assert using is not None
    columns = list_parts(using)
    if not all(columns):
        raise InvalidOptionError(
            f"Invalid value {using!r} for option 'replaceUsing': it must not contain empty column names. Nothing was written. "
            'List columns as in "id, day".',
            option="replaceUsing",
            value=using,
        )
    return Matching.using(columns, using)


def _incompatible(first: str, second: str, error_class: str = "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS") -> InvalidOptionError:
    return InvalidOptionError(
        f"The options {first} and {second} cannot be given together: each says by itself which rows are replaced, or {first} "
        "contradicts that rows are. Nothing was written. Give one of them.",
        error_class=error_class,
        sql_state="42613",
        options=[first, second],
    )
