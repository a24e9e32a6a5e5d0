"""The new rows that the clauses of a MERGE make.

row_maker = MergeRows(target, merge, store_assignment)
row_maker.check_assigned_columns()
new_row = row_maker.new_row(clause)                       # the column NEW of the rows to which the clause applies
changed = row_maker.with_generated(changed)               # a frame with NEW: computes the generated columns in it
with_values = row_maker.with_partition_values(changed)    # adds the partition values of each new row
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from delta_py.errors import SchemaMismatchError
from delta_py.expressions.sql_text.spark_rules import checked_sql
from delta_py.protocol.identity_columns import identity_columns
from delta_py.row_changes.assigned_rows import identity_assigned
from delta_py.types.column_rules import DEFAULT, GENERATION
from delta_py.types.names import quoted
from delta_py.types.schema import VOID
from delta_py.write.task_changes import CHANGE, CLAUSE, DELETED, NEW
from spark_plugin.dml.analyzer import analyzer_of
from spark_plugin.dml.column_defaults import default_of
from spark_plugin.dml.jobs import Target
from spark_plugin.dml.store_assignment import AssignedValue, Path, StoreAssignment, Typed
from spark_plugin.merge.merge_job_clauses import ResolvedClause, ResolvedMerge
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.spark_versions import resolvable_rule_text

PARTITION_VALUE = "__pydelta_partition_"
"""The beginning of the names of columns with partition values, next to a new row. The column's number follows."""


class MergeRows:
    """Makes the new rows of clauses: structs with a field for each column of the table, in the type that the column has after the
    commit. Generated columns that no clause assigns are left out, and are computed when the rows are written. store_assignment:
    how values are cast to the types of columns."""

    def __init__(self, target: Target, merge: ResolvedMerge, store_assignment: StoreAssignment) -> None:
        self._target, self._merge, self._store_assignment = target, merge, store_assignment
        self._analyzer = analyzer_of(target.spark)
        self._delta_schema = target.dml.config.schema
        self.schema: StructType = to_spark_schema(self._delta_schema)
        # The SQL text of each generated column, by the column's name.
        self._generation_texts = {
            f.name: checked_sql(str(f.metadata[GENERATION]), self._delta_schema).text
            for f in self._delta_schema.fields
            if GENERATION in f.metadata
        }
        names = target.dml.snapshot.schema.names
        self._target_columns = {
            name: Typed(value.column, value.data_type)
            for name, value in zip(names, self._analyzer.resolve_names(target.frame, names, "target"), strict=True)
        }

    def _current_values(self, clause: ResolvedClause) -> Mapping[str, Typed]:
        """Return the current values of the target's row, by the names of the table's columns. Over Spark Connect a clause for
        rows without a source must refer to them by their plain names, because merge_scopes.py has put them into a new
        projection."""
        if clause.kind == "matched" or self._analyzer.binds_columns:
            return self._target_columns
        return {name: Typed(F.col(quoted(name)), value.data_type) for name, value in self._target_columns.items()}

    def check_assigned_columns(self) -> None:
        """Raise an error if a clause assigns an identity column that allows no values, or if the merge would add a column without
        a type."""
        identities = {column.name: column for column in identity_columns(self._delta_schema)}
        for clause in self._merge.clauses:
            # DEFAULT for an identity column is allowed in an insert: the row gets the next number.
            defaults = clause.defaults if clause.action == "update" else ()
            for name in (*(path[0] for path in clause.assigned_values), *defaults):
                identity = identities.get(name)
                if identity is not None and (clause.action == "update" or not identity.explicit):
                    raise identity_assigned(identity.name, clause.action)
        for f in self._delta_schema.fields:
            if f.data_type == VOID and f.name not in self._target_columns:
                raise SchemaMismatchError(
                    f"Cannot add column {f.name} with type VOID. Cast it to a type in the source.",
                    error_class="DELTA_MERGE_ADD_VOID_COLUMN",
                    sql_state="42K09",
                    column=f.name,
                )

    @cached_property
    def assigned_generated(self) -> list[str]:
        """Return the generated columns that some clause assigns. The others are computed when rows are written."""
        assigned_names = {path[0] for clause in self._merge.clauses for path in clause.assigned_values}
        return [name for name in self._generation_texts if name in assigned_names]

    @cached_property
    def _left_out_columns(self) -> frozenset[str]:
        """The generated columns that no clause assigns: new rows do not have them yet."""
        return frozenset(self._generation_texts) - frozenset(self.assigned_generated)

    def new_row(self, clause: ResolvedClause) -> Column:
        """Return the struct of the new row that an update or insert makes. A generated column that another clause assigns, but
        not this one, is null in it; with_generated computes it later."""
        values = dict(clause.assigned_values)
        if clause.action == "update":
            values.update(self._defaults(clause.defaults))
            for name in self.assigned_generated:
                data_type = self.schema[name].dataType
                values.setdefault((name,), AssignedValue(Typed(F.lit(None).cast(data_type), data_type)))
            current = self._current_values(clause).get
            return F.struct(*self._store_assignment.new_row_columns(self.schema, current, values, self._left_out_columns))
        assigned_names = {path[0] for path in values}
        # All other columns with a default get it, so the columns in clause.defaults need no special treatment.
        defaults = [f.name for f in self._delta_schema.fields if DEFAULT in f.metadata and f.name not in assigned_names]
        values.update(self._defaults(defaults))
        # An insert has no current row from which columns without a value could keep their values.
        return F.struct(*self._store_assignment.new_row_columns(self.schema, lambda _: None, values, self._left_out_columns))

    def _defaults(self, names: Sequence[str]) -> dict[Path, AssignedValue]:
        """Return the default values of the columns with these names, by path. Generated columns are left out: their values are
        computed later."""
        default_names = frozenset(names) - self._generation_texts.keys()
        fields = [f for f in self._delta_schema.fields if f.name in default_names]
        values = self._analyzer.resolve(self._merge.source, [default_of(self._target.spark, f) for f in fields], "default")
        return {(f.name,): AssignedValue(Typed(value.column, value.data_type)) for f, value in zip(fields, values, strict=True)}

    def with_generated(self, changed: DataFrame) -> DataFrame:
        """Compute the generated columns that `new_row` left null, from the other columns of the new row."""
        if not self.assigned_generated:
            return changed
        clauses = [(number, clause) for number, clause in enumerate(self._merge.clauses) if clause.action != "delete"]
        other_columns = [quoted(name) for name in changed.columns if name != NEW]
        flat_rows = changed.select(*other_columns, f"{NEW}.*")
        row = {name: F.col(quoted(name)) for name in self.schema.names if name not in self._left_out_columns}
        for name in self.assigned_generated:
            computing_clauses = [number for number, clause in clauses if (name,) not in clause.assigned_values]
            computed = self._generated_value(name).cast(self.schema[name].dataType)
            if computing_clauses:
                row[name] = F.when(F.col(CLAUSE).isin(computing_clauses), computed).otherwise(row[name])
        new_row = F.struct(*(value.alias(name) for name, value in row.items()))
        return flat_rows.select(*other_columns, F.when(F.col(CHANGE) != DELETED, new_row).alias(NEW))

    def _generated_value(self, name: str) -> Column:
        """Return the value of a generated column, from the other columns of the new row."""
        return F.expr(resolvable_rule_text(self._target.spark, self._generation_texts[name]))

    def with_partition_values(self, changed: DataFrame) -> DataFrame:
        """Return the rows with additional columns: the partition values of the new row, named PARTITION_VALUE and a number in the
        table's order. A generated column that no clause assigns is not yet in the new row; its value is computed only for
        this."""
        flat_rows = changed.select("*", f"{NEW}.*")
        values = []
        for number, name in enumerate(self._target.dml.config.partition_columns):
            value = self._generated_value(name) if name in self._left_out_columns else F.col(quoted(name))
            values.append(F.when(F.col(CHANGE) != DELETED, value).alias(f"{PARTITION_VALUE}{number}"))
        return flat_rows.select(*changed.columns, *values)
