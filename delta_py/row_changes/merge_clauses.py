"""The clauses of a MERGE, with Spark and without: as the caller wrote them, their order, and what they do together.

Without Spark, they are also resolved here, against the schemas of the table and the source:

clauses = resolved_clauses(effective_clauses(clauses), target, source, clock)     # raises before any row is read
clauses[0].condition, clauses[0].rows.compute(batch)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from delta_py.errors import SchemaMismatchError, UnsupportedOperationError
from delta_py.expressions.tree import Expression, columns_of
from delta_py.row_changes.assigned_rows import NewRows, inserted_rows, resolve_assignments, updated_rows
from delta_py.row_changes.merge_metrics import Action, Kind
from delta_py.row_changes.sql_scope import Scope, Side
from delta_py.row_rules.row_constraints import Clock
from delta_py.types.names import quoted, split_name
from delta_py.types.schema import StructType

# The error class for a clause without a condition that other clauses of its kind follow.
_ERRORS_BY_KIND: dict[Kind, str] = {
    "matched": "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    "not matched": "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    "not matched by source": "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
}
# The parameter of the operation in the table's history that lists the clauses of a kind.
_HISTORY_PARAMETERS: dict[Kind, str] = {
    "matched": "matchedPredicates",
    "not matched": "notMatchedPredicates",
    "not matched by source": "notMatchedBySourcePredicates",
}

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Clause(Generic[V]):
    """One WHEN clause, with conditions and values as the caller writes them: SQL without Spark, Columns with Spark.

    condition: None if there is none. assignments: values by column; None for a delete, and for the form that takes all columns
    of the source by their names.
    """

    kind: Kind
    action: Action
    condition: V | None = None
    assignments: Mapping[str, V] | None = None

    @property
    def where(self) -> str:
        """The clause's name in errors."""
        return f"{self.action.upper()} clause"


@dataclass(frozen=True, slots=True)
class SqlClause(Clause[str]):
    """A WHEN clause whose condition and values are SQL. except_columns: the columns that a clause without assignments leaves out;
    it takes all other columns from the source."""

    except_columns: tuple[str, ...] = ()


class AnyClause(Protocol):
    """A clause in any form, resolved or not."""

    @property
    def kind(self) -> Kind: ...

    @property
    def action(self) -> Action: ...

    @property
    def condition(self) -> object | None: ...


C = TypeVar("C", bound=Clause[Any])
A = TypeVar("A", bound=AnyClause)


def check_order(clauses: Sequence[AnyClause]) -> None:
    """Check that each clause can apply. Raises UnsupportedOperationError for no clause (DELTA_MERGE_MISSING_WHEN), and for a
    clause without a condition that others of its kind follow: they could never apply.
    """
    if not clauses:
        raise UnsupportedOperationError(
            "There must be at least one WHEN clause in a MERGE. Add one, such as an update of all columns of matched rows.",
            error_class="DELTA_MERGE_MISSING_WHEN",
            sql_state="42601",
        )
    for kind, error_class in _ERRORS_BY_KIND.items():
        has_condition = [clause.condition is not None for _, clause in of_kind(clauses, kind)]
        if not all(has_condition[:-1]):
            name = kind.upper()
            raise UnsupportedOperationError(
                f"When there are more than one {name} clauses in a MERGE, only the last {name} clause can omit the condition: "
                "the ones after it could never apply. Give it a condition, or put it last.",
                error_class=error_class,
                sql_state="42601",
            )


def effective_clauses(clauses: Sequence[C]) -> tuple[C, ...]:
    """Leave out the clauses that change nothing: updates without assignments and without a condition that are the last of their
    kind. The rows of such a clause do not count as changed.

    Raises as check_order, also for an update of nothing that other clauses of its kind follow; delta-spark then applies these.
    """
    effective: list[C] = []
    # From the last clause on, so that `effective` has the clauses that come later.
    for clause in reversed(clauses):
        is_idle = clause.action == "update" and clause.assignments == {} and clause.condition is None
        if not is_idle or any(later_clause.kind == clause.kind for later_clause in effective):
            effective.insert(0, clause)
    check_order(effective)
    return tuple(effective)


# ---------------------------------------------------------------- what the clauses do together


def of_kind(clauses: Sequence[A], kind: Kind) -> list[tuple[int, A]]:
    """The clauses of a kind in order, with their numbers."""
    return [(number, clause) for number, clause in enumerate(clauses) if clause.kind == kind]


def only_inserts(clauses: Sequence[AnyClause]) -> bool:
    """Whether the MERGE changes and deletes no rows of the table."""
    return all(clause.kind == "not matched" for clause in clauses)


def deletes_all_matches(clauses: Sequence[AnyClause]) -> bool:
    """Whether every matched row is deleted, by a single clause without a condition: then a row may match several source rows."""
    matched = [clause for _, clause in of_kind(clauses, "matched")]
    return len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None


def changes_every_match(clauses: Sequence[AnyClause]) -> bool:
    """Whether a clause applies to every matched row: the last one of its kind has no condition."""
    matched = of_kind(clauses, "matched")
    return bool(matched) and matched[-1][1].condition is None


def recorded_parameters(search_condition: str, clauses: Sequence[AnyClause], conditions: Sequence[str | None]) -> dict[str, Any]:
    """The parameters of the operation in the table's history. conditions: the condition of each clause as SQL, None if it has
    none."""
    parameters: dict[str, Any] = {"predicate": [search_condition], **{name: [] for name in _HISTORY_PARAMETERS.values()}}
    for clause, condition in zip(clauses, conditions, strict=True):
        predicate = {} if condition is None else {"predicate": condition}
        parameters[_HISTORY_PARAMETERS[clause.kind]].append({**predicate, "actionType": clause.action})
    return parameters


# ---------------------------------------------------------------- resolved clauses


@dataclass(frozen=True, slots=True)
class ResolvedClause:
    """A WHEN clause that is ready to be evaluated. condition: None if it applies to all rows of its kind. rows: how it makes the
    new rows, None for a delete. Both read the columns of both sides, each with its side's prefix."""

    kind: Kind
    action: Action
    condition: Expression | None
    rows: NewRows | None

    @property
    def columns(self) -> frozenset[str]:
        """Names of the columns that the clause needs."""
        condition_columns = frozenset() if self.condition is None else frozenset(path[0] for path in columns_of(self.condition))
        return condition_columns if self.rows is None else condition_columns | self.rows.columns


def assigned_columns(clauses: Sequence[SqlClause], source: StructType) -> frozenset[str]:
    """The top-level columns that the clauses assign, in lower case, and possibly other names. A clause that takes all columns of
    the source assigns these columns, except its except_columns."""
    names: set[str] = set()
    for clause in clauses:
        excluded = {split_name(name)[-1].lower() for name in clause.except_columns}
        if clause.assignments is not None:
            # A name is `column.field` or `alias.column`: its first two parts are added, and one of them may be no column.
            names |= {part.lower() for name in clause.assignments for part in split_name(name)[:2]}
        elif clause.action != "delete":
            names |= {name.lower() for name in source.names} - excluded
    return frozenset(names)


def resolved_clauses(clauses: Sequence[SqlClause], target: Side, source: Side, clock: Clock) -> tuple[ResolvedClause, ...]:
    """Resolve the names in the clauses' conditions and values. target, source: the sides of the MERGE.

    Raises what Scope and `resolve_assignments` raise; SchemaMismatchError for a column of the table that the source lacks when
    all columns are taken by their names.
    """
    # The sides whose columns a clause of each kind may name.
    sides = {"matched": (target, source), "not matched": (source,), "not matched by source": (target,)}
    resolved = []
    for clause in clauses:
        scope = Scope(sides[clause.kind], clock, clause.where)
        condition = None if clause.condition is None else scope.predicate(clause.condition)
        resolved.append(ResolvedClause(clause.kind, clause.action, condition, _new_rows(clause, scope, target, source)))
    return tuple(resolved)


def _new_rows(clause: SqlClause, scope: Scope, target: Side, source: Side) -> NewRows | None:
    """The rows that the clause makes; None for a delete."""
    if clause.action == "delete":
        return None
    assignments = _assign_all_columns(clause, target, source) if clause.assignments is None else clause.assignments
    values = resolve_assignments(scope, target, assignments, clause.action.upper())
    return inserted_rows(scope, target, values) if clause.action == "insert" else updated_rows(target, values)


def _assign_all_columns(clause: SqlClause, target: Side, source: Side) -> dict[str, str]:
    """The assignments of SET * and INSERT *: each column of the target gets the source's column of its name."""
    excluded_columns = {split_name(name)[-1].lower() for name in clause.except_columns}
    _check_known(excluded_columns, target, source, clause)
    assignments = {}
    for name in target.schema.names:
        if name.lower() in excluded_columns:
            continue
        column = source.schema.find(name)
        if column is None:
            raise SchemaMismatchError(
                f"Cannot resolve {name} in {clause.where} given columns {', '.join(source.schema.names)}: the "
                "clause takes all columns of the table from the source. Nothing was changed. Name the column in except_cols, "
                "or the values one by one.",
                error_class="DELTA_MERGE_UNRESOLVED_EXPRESSION",
                sql_state="42601",
                name=name,
                clause=clause.where,
            )
        assignments[quoted(name)] = f"{quoted(source.alias or '')}.{quoted(column.name)}"
    return assignments


def _check_known(excluded_columns: Collection[str], target: Side, source: Side, clause: SqlClause) -> None:
    """Raise SchemaMismatchError for a name in except_cols that neither the table nor the source has."""
    schemas = (target.schema, source.schema)
    unknown: list[Any] = sorted(name for name in excluded_columns if all(schema.find(name) is None for schema in schemas))
    if unknown:
        raise SchemaMismatchError(
            f"except_cols of the {clause.where} names {', '.join(unknown)}, and the table has "
            f"{', '.join(target.schema.names)}. Nothing was changed.",
            error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
            sql_state="42703",
            columns=unknown,
        )
