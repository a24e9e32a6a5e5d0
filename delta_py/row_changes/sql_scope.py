"""Names in the SQL of a row command: columns of the table, of a MERGE's source, or of both, with aliases or without.

    scope = Scope((Side(table, "t", TARGET), Side(source, "s", SOURCE)), clock, "search condition")
    scope.predicate("t.id = s.id")        # an expression over the columns of scope.rows

A row may hold columns of both sides; their names differ, because each side's columns have its prefix. A name with an alias
belongs to that side; a name without an alias must exist in one side only. Functions of the clock have one value for the whole
command.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from delta_py.errors import ExpressionError, SchemaMismatchError
from delta_py.expressions.evaluate import can_evaluate
from delta_py.expressions.evaluation_errors import not_supported
from delta_py.expressions.parse import parse_named
from delta_py.expressions.tree import Column, Expression
from delta_py.row_rules.row_constraints import Clock
from delta_py.types.schema import DataType, Path, StructType, find_path

TARGET, SOURCE = "t.", "s."
"""Prefixes of the columns of the table, and of a MERGE's source, in rows that hold columns of both."""


@dataclass(frozen=True)
class Side:
    """The table or the source of a command. alias: the qualifier of its names in SQL, as in `t.id`. prefix: what the names of its
    columns begin with in rows that hold columns of both sides; empty if there is one side."""

    schema: StructType
    alias: str | None = None
    prefix: str = ""

    @cached_property
    def rows(self) -> StructType:
        """The side's columns with their prefix."""
        return StructType(tuple(replace(f, name=self.prefix + f.name) for f in self.schema.fields))

    def without_alias(self, path: Path) -> Path | None:
        """The path of one of this side's columns without the alias; None if the path does not begin with the alias, or if the
        side has no such column."""
        if self.alias is None or len(path) < 2 or path[0].lower() != self.alias.lower():
            return None
        return path[1:] if _has_path(self.schema, path[1:]) else None


def _has_path(schema: StructType, path: Path) -> bool:
    """Whether the schema has a column, or a field of structs, at the path."""
    struct: DataType = schema
    for name in path:
        field = struct.find(name) if isinstance(struct, StructType) else None
        if field is None:
            return False
        struct = field.data_type
    return True


@dataclass(frozen=True)
class Scope:
    """What the names in SQL text of a command may mean. sides: the table, and a MERGE's source, if their columns may be named.
    clock: the time that functions such as current_timestamp return. where: how errors call the SQL text."""

    sides: tuple[Side, ...]
    clock: Clock
    where: str

    @cached_property
    def rows(self) -> StructType:
        """The columns of all sides with their prefixes."""
        return StructType(tuple(f for side in self.sides for f in side.rows.fields))

    @cached_property
    def _names(self) -> StructType:
        """All columns, by their names without an alias."""
        return StructType(tuple(f for side in self.sides for f in side.schema.fields))

    def predicate(self, sql: str) -> Expression:
        """The condition over the columns of `rows`.

        Raises ExpressionError for text that is not a condition or cannot be evaluated; SchemaMismatchError
        (DELTA_MERGE_UNRESOLVED_EXPRESSION) for an unknown name, ExpressionError (AMBIGUOUS_REFERENCE) for a name that both sides
        have.
        """
        return self._parse(sql, condition=True)

    def expression(self, sql: str) -> Expression:
        """The expression over the columns of `rows`, of any type. Raises as predicate."""
        return self._parse(sql, condition=False)

    def _parse(self, sql: str, *, condition: bool) -> Expression:
        """As predicate if `condition`, otherwise as expression."""
        if not isinstance(sql, str):
            raise TypeError(f"In the {self.where} SQL text is expected, not {type(sql).__name__}.")
        zone = self.clock.time_zone
        parsed = parse_named(sql, self._names, self.rows, self._resolve_column, condition=condition, session_timezone=zone)
        expression = self.clock.set(parsed)
        if not can_evaluate(expression, self.rows):
            raise not_supported(f"{sql[:60]} in the {self.where}", "It has a function that has no evaluation without Spark.")
        return expression

    def _resolve_column(self, path: Path) -> Expression:
        """The column that the path means. A qualified meaning takes precedence over a column with fields of the same names."""
        qualified = [(side, column_path) for side in self.sides if (column_path := side.without_alias(path)) is not None]
        matches = qualified or [(side, path) for side in self.sides if _has_path(side.schema, path)]
        if not matches:
            raise self._unresolved(path)
        if len(matches) > 1:
            raise self._ambiguous(path)
        side, column_path = matches[0]
        fields = find_path(side.schema, column_path)
        return Column((side.prefix + fields[0].name, *(f.name for f in fields[1:])))

    def _unresolved(self, path: Path) -> SchemaMismatchError:
        """The error for a name that is a column of no side."""
        name, known_names = ".".join(path), ", ".join(self._all_names())
        return SchemaMismatchError(
            f"Cannot resolve {name} in {self.where} given columns {known_names}. Nothing was changed. Correct the name or "
            "its alias.",
            error_class="DELTA_MERGE_UNRESOLVED_EXPRESSION" if len(self.sides) > 1 else "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
            sql_state="42703",
            name=name,
            column=name,
            clause=self.where,
        )

    def _ambiguous(self, path: Path) -> ExpressionError:
        """The error for a name without an alias that both sides have."""
        name = ".".join(path)
        aliases = " or ".join(f"{side.alias}.{name}" for side in self.sides)
        return ExpressionError(
            f"{name} in the {self.where} is a column of the table and of the source. Nothing was changed. Write {aliases}.",
            error_class="AMBIGUOUS_REFERENCE",
            sql_state="42704",
            name=name,
        )

    def _all_names(self) -> list[str]:
        """The names of all columns, with the aliases of their sides, for messages."""
        return [name if side.alias is None else f"{side.alias}.{name}" for side in self.sides for name in side.schema.names]
