"""What a caller says about a MERGE: a condition and clauses, in order. Each call gives a new builder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from delta_py.errors import UnsupportedOperationError
from spark_plugin.arguments import as_assignments, as_condition
from spark_plugin.exceptions import as_spark_raises

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Kind: TypeAlias = Literal["matched", "not matched", "not matched by source"]
Action: TypeAlias = Literal["update", "delete", "insert"]


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN clause. condition: None for none. assignments: None for a delete, and for the form that takes all columns
    of the source by their names."""

    kind: Kind
    action: Action
    condition: Column | None = None
    assignments: Mapping[str, Column] | None = None


@dataclass(frozen=True)
class DeltaMergeBuilder:
    """A MERGE in the making; made by DeltaTable.merge. path, alias: of the target."""

    spark: SparkSession
    path: str
    alias: str | None
    source: DataFrame
    condition: Column
    clauses: tuple[Clause, ...] = ()
    schema_evolution: bool = False

    def whenMatchedUpdate(self, condition: Any = None, set: Any = None) -> DeltaMergeBuilder:
        """Raises ValueError when `set` is left out, TypeError for anything but a dict of names to Columns or SQL."""
        return self._with("matched", "update", condition, as_assignments(set, "'set' in whenMatchedUpdate"))

    def whenMatchedUpdateAll(self, condition: Any = None) -> DeltaMergeBuilder:
        return self._with("matched", "update", condition)

    def whenMatchedDelete(self, condition: Any = None) -> DeltaMergeBuilder:
        return self._with("matched", "delete", condition)

    def whenNotMatchedInsert(self, condition: Any = None, values: Any = None) -> DeltaMergeBuilder:
        return self._with("not matched", "insert", condition, as_assignments(values, "'values' in whenNotMatchedInsert"))

    def whenNotMatchedInsertAll(self, condition: Any = None) -> DeltaMergeBuilder:
        return self._with("not matched", "insert", condition)

    def whenNotMatchedBySourceUpdate(self, condition: Any = None, set: Any = None) -> DeltaMergeBuilder:
        assignments = as_assignments(set, "'set' in whenNotMatchedBySourceUpdate")
        return self._with("not matched by source", "update", condition, assignments)

    def whenNotMatchedBySourceDelete(self, condition: Any = None) -> DeltaMergeBuilder:
        return self._with("not matched by source", "delete", condition)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Columns that only the source has are added to the table."""
        return replace(self, schema_evolution=True)

    def execute(self) -> DataFrame:
        """Raises UnsupportedOperationError: this version has no MERGE."""
        with as_spark_raises():
            raise UnsupportedOperationError("MERGE is not supported in this version. Nothing was changed.", operation="MERGE")

    def _with(
        self, kind: Kind, action: Action, condition: Any, assignments: Mapping[str, Column] | None = None
    ) -> DeltaMergeBuilder:
        clause = Clause(kind, action, as_condition(condition), assignments)
        return replace(self, clauses=(*self.clauses, clause))
