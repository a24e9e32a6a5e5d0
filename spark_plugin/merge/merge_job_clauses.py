"""The clauses of a MERGE, resolved by Spark's analyzer. Clause, and rules for any clauses: delta_py/row_changes/merge_clauses.py.

merge = ResolvedMerge.of(frame of the target, source, condition, clauses, evolves=False)
merge.evolved_columns()                             # columns of the source that the table will get
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import BooleanType, StructField, StructType

from delta_py.errors import SchemaMismatchError
from delta_py.row_changes.assigned_rows import AssignedPaths, nested_in_insert
from delta_py.row_changes.merge_clauses import Clause, of_kind
from delta_py.row_changes.merge_metrics import Action, Kind
from delta_py.types.names import split_name
from spark_plugin.dml.analysis import ConditionParts, Resolved, unresolved_name_error
from spark_plugin.dml.analyzer import Analyzer, analyzer_of
from spark_plugin.dml.column_defaults import is_default_word
from spark_plugin.dml.merge_names import Names
from spark_plugin.dml.store_assignment import AssignedValue, Path, Typed
from spark_plugin.dml.target_names import Alias
from spark_plugin.options.settings import is_case_sensitive


@dataclass(frozen=True, slots=True)
class ResolvedClause:
    """One clause, with Spark's columns in place of names.

    assigned_values: for an update or insert, the values by the path of the column or field that gets them; in an insert all paths
    are columns. defaults: columns that get their defaults because the clause says so."""

    kind: Kind
    action: Action
    condition: Resolved | None
    assigned_values: Mapping[Path, AssignedValue]
    defaults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedMerge:
    """A MERGE whose names Spark's analyzer has resolved. target, source: frames of one session. names: decides by the
    schemas of both sides to which side a name belongs. condition: joins target and source. parts: the parts of the condition.
    clauses: in the caller's order."""

    target: DataFrame
    source: DataFrame
    names: Names
    condition: Resolved
    parts: ConditionParts
    clauses: tuple[ResolvedClause, ...]

    @classmethod
    def of(
        cls,
        target: DataFrame,
        columns: Sequence[str],
        source: DataFrame,
        condition: Column,
        clauses: Sequence[Clause[Column]],
        *,
        evolves: bool,
        alias: Alias = (),
    ) -> ResolvedMerge:
        """Resolve the condition and the clauses. columns: the names of the table's columns. alias: the target's. evolves: columns
        that only the source has may be assigned.

        Raises the errors of Analyzer.resolve and check_condition; SchemaMismatchError and UnsupportedOperationError for
        assignments that contradict each other, or whose target cannot be assigned.
        """
        analyzer, both = analyzer_of(target.sparkSession), target.crossJoin(source)
        (join_condition,) = analyzer.resolve(both, [condition], "search condition")
        if not isinstance(join_condition.data_type, BooleanType):
            # Here Spark raises its special error for a join condition that is not boolean.
            target.join(source, join_condition.column).schema  # noqa: B018 - reading the schema analyses the join
        analyzer.check_condition(both, join_condition, "search condition of MERGE operation")
        names = Names(target.schema, source.schema, alias, is_case_sensitive(target.sparkSession))
        resolver = _ClauseResolver(analyzer, target, tuple(columns), source, both, names, evolves)
        parts = analyzer.parts(join_condition, target, source, names)
        return cls(target, source, names, join_condition, parts, tuple(resolver.resolve(clause) for clause in clauses))

    def of_kind(self, kind: Kind) -> list[tuple[int, ResolvedClause]]:
        """Return the clauses of a kind in order, each with its number among all clauses."""
        return of_kind(self.clauses, kind)

    def values(self) -> list[Resolved | Typed]:
        """Return all values that the MERGE computes from rows: the conditions and the assigned values."""
        conditions = [clause.condition for clause in self.clauses if clause.condition is not None]
        values = (assigned.value for clause in self.clauses for assigned in clause.assigned_values.values())
        return [self.condition, *conditions, *values]

    def evolved_columns(self) -> StructType:
        """Return the source's columns that a clause assigns by name: the table must have them after the merge."""
        # A clause "not matched by source" can assign only columns of the table.
        source_clauses = [clause for clause in self.clauses if clause.kind != "not matched by source"]
        paths = {tuple(part.lower() for part in path) for clause in source_clauses for path in clause.assigned_values}
        parents = {path[:length] for path in paths for length in range(1, len(path))}
        return _assigned_part(self.source.schema, paths, parents, ())


def _assigned_part(schema: StructType, paths: set[Path], parents: set[Path], base: Path) -> StructType:
    """Return the columns, or the fields of a struct, whose paths are assigned. If only some fields of a struct are assigned, the
    result has the struct with only these fields.

    paths: in lower case. parents: all parents of the paths. base: the path of the struct; () for the whole schema.
    """
    assigned = []
    for field in schema.fields:
        path = (*base, field.name.lower())
        if path in paths:
            assigned.append(field)
        elif isinstance(field.dataType, StructType) and path in parents:
            assigned.append(StructField(field.name, _assigned_part(field.dataType, paths, parents, path), field.nullable))
    return StructType(assigned)


@dataclass(frozen=True)
class _ClauseResolver:
    """Resolves the names of clauses. columns: the names of the table's columns. both: the cross join of target and source, in
    which the names of clauses for matched rows are resolved. evolves: whether columns that only the source has may be
    assigned."""

    analyzer: Analyzer
    target: DataFrame
    columns: tuple[str, ...]
    source: DataFrame
    both: DataFrame
    names: Names
    evolves: bool

    def resolve(self, clause: Clause[Column]) -> ResolvedClause:
        """Resolve one clause. Its condition and values can name the columns of `scope`, the frame for its kind of clause."""
        scope = {"matched": self.both, "not matched": self.source, "not matched by source": self.target}[clause.kind]
        condition = None
        if clause.condition is not None:
            (condition,) = self.analyzer.resolve(scope, [clause.condition], f"{clause.action.upper()} condition")
            self.analyzer.check_condition(scope, condition, f"{clause.action.upper()} condition of MERGE operation")
        if clause.action == "delete":
            return ResolvedClause(clause.kind, clause.action, condition, {})
        if clause.assignments is None:
            return ResolvedClause(clause.kind, clause.action, condition, self._resolve_star(clause))
        assigned_values, defaults = self._resolve_assignments(clause, clause.assignments, scope)
        return ResolvedClause(clause.kind, clause.action, condition, assigned_values, defaults)

    def _resolve_star(self, clause: Clause[Column]) -> dict[Path, AssignedValue]:
        """Return the values that `*` assigns, by path. With schema evolution it assigns the columns that the source has;
        otherwise it assigns all columns of the table, each with the value of the source's column of this name."""
        names = self.source.columns if self.evolves else list(self.columns)
        values = self.analyzer.resolve_names(self.source, names, clause.where)
        keeps_missing_fields = self.evolves and clause.action == "update"
        return {
            (self._table_names.get(name.lower(), name),): AssignedValue(
                Typed(value.column, value.data_type), keeps_missing_fields
            )
            for name, value in zip(names, values, strict=True)
        }

    def _resolve_assignments(
        self, clause: Clause[Column], assignments: Mapping[str, Column], scope: DataFrame
    ) -> tuple[dict[Path, AssignedValue], tuple[str, ...]]:
        """Return the assigned values, by path, and the names of the columns that get their defaults.

        assignments: the values of SET or VALUES, by the name as the user wrote it; the word DEFAULT stands for a column's
        default. scope: the frame in which the values are resolved.
        """
        default_names = {name for name, value in assignments.items() if is_default_word(scope, value)}
        expressions = {name: value for name, value in assignments.items() if name not in default_names}
        values = dict(zip(expressions, self.analyzer.resolve(scope, list(expressions.values()), clause.where), strict=True))
        assigned_values: dict[Path, AssignedValue] = {}
        defaults: list[Path] = []
        assigned_paths, table_columns = AssignedPaths(clause.action.upper()), frozenset(self.columns)
        for name, path in zip(assignments, self._resolve_paths(list(assignments), clause), strict=True):
            if clause.action == "insert" and len(path) > 1:
                raise nested_in_insert(path)
            assigned_paths.add(path)  # raises an error if two assignments contradict each other
            if name in values:
                assigned_values[path] = AssignedValue(Typed(values[name].column, values[name].data_type))
            elif len(path) == 1 and path[0] in table_columns:
                defaults.append(path)
            else:
                raise _no_default(name, clause)
        return assigned_values, tuple(path[0] for path in defaults)

    def _resolve_paths(self, names: Sequence[str], clause: Clause[Column]) -> list[Path]:
        """Return the path of the column or field that each name refers to. A name that only the source has refers to a column or
        field that the MERGE adds to the table, if it may add one."""
        may_be_new = self.evolves and clause.kind != "not matched by source"
        new_names = [name for name in names if may_be_new and self._is_new(split_name(name))]
        only_in_source = frozenset(new_names)
        table_names = [name for name in names if name not in only_in_source]
        table_paths = self.analyzer.resolve_assigned(self.target, table_names, self.names.alias, clause.where)
        source_paths = self.analyzer.resolve_assigned(self.source, new_names, (), clause.where)
        paths = dict(zip([*table_names, *new_names], [*table_paths, *source_paths], strict=True))
        return [self._in_table_spelling(paths[name], name, clause) for name in names]

    def _in_table_spelling(self, path: Path, name: str, clause: Clause[Column]) -> Path:
        """Return the path with the table's spelling of the column. The path of a column that the table lacks stays the same if
        the merge may add the column; otherwise an error is raised. name: as the user wrote it."""
        column = self._table_names.get(path[0].lower())
        if column is None and not self.evolves:
            raise unresolved_name_error(name, clause.where, self.columns)
        return (path[0] if column is None else column, *path[1:])

    @cached_property
    def _table_names(self) -> Mapping[str, str]:
        """The table's columns by their names in lower case."""
        return {name.lower(): name for name in self.columns}

    def _is_new(self, path: Path) -> bool:
        """Return whether only the source has this column or field."""
        return self.names.is_known(path, "source") and not self.names.is_known(path, "target")


def _no_default(name: str, clause: Clause[Column]) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"DEFAULT is for whole columns of the table, and {name} in the {clause.where} is none. Write the value out.",
        error_class="DEFAULT_PLACEMENT_INVALID",
        sql_state="42608",
        column=name,
    )
