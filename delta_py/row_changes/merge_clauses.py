"""The clauses of a MERGE without Spark: as the caller gave them, and resolved against the schemas of the table and the source.

clauses = resolved_clauses(clauses, target, source, clock)     # raises before any row is read
clauses[0].condition, clauses[0].rows.of(batch)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from delta_py.errors import SchemaMismatchError, UnsupportedOperationError
from delta_py.expressions.tree import Expression, columns_of
from delta_py.row_changes.assigned_rows import NewRows, assigned, inserted_rows, updated_rows
from delta_py.row_changes.merge_metrics import Action, Kind
from delta_py.row_changes.sql_scope import Scope, Side
from delta_py.row_rules.row_constraints import Clock
from delta_py.types.names import quoted, split_name
from delta_py.types.schema import StructType

_OMITTED = {
    "matched": "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    "not matched": "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    "not matched by source": "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
}


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN clause. predicate: SQL, or None. updates: SQL by column; None for a delete, and for the form that takes all
    columns of the source by their names, except except_columns.
    """

    kind: Kind
    action: Action
    predicate: str | None = None
    updates: Mapping[str, str] | None = None
    except_columns: tuple[str, ...] = ()

    def described(self) -> dict[str, str]:
        """The clause for the history."""
        predicate = {} if self.predicate is None else {"predicate": self.predicate}
        return {**predicate, "actionType": self.action}


@dataclass(frozen=True, slots=True)
class ResolvedClause:
    """condition, rows: over the columns of both sides, each with its side's prefix. rows: the new ones, None for a delete."""

    kind: Kind
    action: Action
    condition: Expression | None
    rows: NewRows | None

    @property
    def columns(self) -> frozenset[str]:
        """Names of the columns that the clause needs."""
        condition_columns = frozenset() if self.condition is None else frozenset(path[0] for path in columns_of(self.condition))
        return condition_columns if self.rows is None else condition_columns | self.rows.columns


def check_order(clauses: Sequence[tuple[Kind, bool]]) -> None:
    """clauses: kinds, and whether there is a condition.

    Raises UnsupportedOperationError for no clause (DELTA_MERGE_MISSING_WHEN), and for a clause without a condition that others
    of its kind follow: they could never apply.
    """
    if not clauses:
        raise UnsupportedOperationError(
            "There must be at least one WHEN clause in a MERGE. Add one, such as an update of all columns of matched rows.",
            error_class="DELTA_MERGE_MISSING_WHEN",
            sql_state="42601",
        )
    for kind, error_class in _OMITTED.items():
        conditional = [has_condition for other, has_condition in clauses if other == kind]
        if not all(conditional[:-1]):
            name = kind.upper()
            raise UnsupportedOperationError(
                f"When there are more than one {name} clauses in a MERGE, only the last {name} clause can omit the condition: "
                "the ones after it could never apply. Give it a condition, or put it last.",
                error_class=error_class,
                sql_state="42601",
            )


class OfKind(Protocol):
    """A clause of any engine."""

    @property
    def kind(self) -> Kind: ...


C = TypeVar("C", bound=OfKind)


def effective_clauses(
    clauses: Sequence[C], updates_nothing: Callable[[C], bool], has_condition: Callable[[C], bool]
) -> tuple[C, ...]:
    """The clauses, except updates of nothing without a condition at the end of their kind: rows that these match do not count as
    changed.
    Raises as check_order.
    """
    effective: list[C] = []
    for clause in reversed(clauses):
        idle = updates_nothing(clause) and not has_condition(clause)
        if not idle or any(other.kind == clause.kind for other in effective):
            effective.insert(0, clause)
    check_order([(clause.kind, has_condition(clause)) for clause in effective])
    return tuple(effective)


def assigned_columns(clauses: Sequence[Clause], source: StructType) -> frozenset[str]:
    """The top-level columns that the clauses assign, in lower case: those of the source, if a clause takes all of them."""
    names: set[str] = set()
    for clause in clauses:
        excluded = {split_name(name)[-1].lower() for name in clause.except_columns}
        if clause.updates is not None:
            names |= {part.lower() for name in clause.updates for part in split_name(name)[:2]}
        elif clause.action != "delete":
            names |= {name.lower() for name in source.names} - excluded
    return frozenset(names)


def resolved_clauses(clauses: Sequence[Clause], target: Side, source: Side, clock: Clock) -> tuple[ResolvedClause, ...]:
    """Raises what Scope and `assigned` raise; SchemaMismatchError for a column of the table that the source lacks when all
    columns are taken by their names.
    """
    sides = {"matched": (target, source), "not matched": (source,), "not matched by source": (target,)}
    result = []
    for clause in clauses:
        scope = Scope(sides[clause.kind], clock, f"{clause.action.upper()} clause")
        condition = None if clause.predicate is None else scope.predicate(clause.predicate)
        result.append(ResolvedClause(clause.kind, clause.action, condition, _new_rows(clause, scope, target, source)))
    return tuple(result)


def _new_rows(clause: Clause, scope: Scope, target: Side, source: Side) -> NewRows | None:
    if clause.action == "delete":
        return None
    updates = _by_name(clause, target, source) if clause.updates is None else clause.updates
    values = assigned(scope, target, updates, clause.action.upper())
    return inserted_rows(scope, target, values) if clause.action == "insert" else updated_rows(target, values)


def _by_name(clause: Clause, target: Side, source: Side) -> dict[str, str]:
    excluded_columns = {split_name(name)[-1].lower() for name in clause.except_columns}
    _check_known(excluded_columns, target, source, clause)
    updates = {}
    for name in target.schema.names:
        if name.lower() in excluded_columns:
            continue
        column = source.schema.find(name)
        if column is None:
            raise SchemaMismatchError(
                f"Cannot resolve {name} in {clause.action.upper()} clause given columns {', '.join(source.schema.names)}: the "
                "clause takes all columns of the table from the source. Nothing was changed. Name the column in except_cols, "
                "or the values one by one.",
                error_class="DELTA_MERGE_UNRESOLVED_EXPRESSION",
                sql_state="42601",
                name=name,
                clause=f"{clause.action.upper()} clause",
            )
        updates[quoted(name)] = f"{quoted(source.alias or '')}.{quoted(column.name)}"
    return updates


def _check_known(excluded_columns: Collection[str], target: Side, source: Side, clause: Clause) -> None:
    schemas = (target.schema, source.schema)
    unknown: list[Any] = sorted(name for name in excluded_columns if all(schema.find(name) is None for schema in schemas))
    if unknown:
        raise SchemaMismatchError(
            f"except_cols of the {clause.action.upper()} clause names {', '.join(unknown)}, and the table has "
            f"{', '.join(target.schema.names)}. Nothing was changed.",
            error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
            sql_state="42703",
            columns=unknown,
        )
