"""The builder of a MERGE: a condition and clauses, in order. Each call returns a new builder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from delta_py.row_changes.merge_clauses import Clause
from delta_py.row_changes.merge_metrics import Action, Kind
from spark_plugin.dml.target_names import Alias
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.options.settings import TablePath
from spark_plugin.table_api.arguments import as_assignments, as_condition
from spark_plugin.table_api.retries import run_with_retries

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_RESULT = "num_affected_rows bigint, num_updated_rows bigint, num_deleted_rows bigint, num_inserted_rows bigint"


@dataclass(frozen=True)
class DeltaMergeBuilder:
    """Builds a MERGE; made by DeltaTable.merge. table, alias: of the target. clauses: in the order of the calls; the first that
    applies to a row changes it. schema_evolution: columns that only the source has are added to the table."""

    spark: SparkSession
    table: TablePath
    alias: Alias
    source: DataFrame
    condition: Column
    clauses: tuple[Clause[Column], ...] = ()
    schema_evolution: bool = False

    def whenMatchedUpdate(self, condition: Any = None, set: Any = None) -> DeltaMergeBuilder:
        """Update a matched row. set: a dict of column names to Columns or SQL. Raises ValueError if `set` is left out, TypeError
        for anything but such a dict."""
        return self._with_clause("matched", "update", condition, as_assignments(set, "'set' in whenMatchedUpdate"))

    def whenMatchedUpdateAll(self, condition: Any = None) -> DeltaMergeBuilder:
        return self._with_clause("matched", "update", condition)

    def whenMatchedDelete(self, condition: Any = None) -> DeltaMergeBuilder:
        return self._with_clause("matched", "delete", condition)

    def whenNotMatchedInsert(self, condition: Any = None, values: Any = None) -> DeltaMergeBuilder:
        return self._with_clause("not matched", "insert", condition, as_assignments(values, "'values' in whenNotMatchedInsert"))

    def whenNotMatchedInsertAll(self, condition: Any = None) -> DeltaMergeBuilder:
        return self._with_clause("not matched", "insert", condition)

    def whenNotMatchedBySourceUpdate(self, condition: Any = None, set: Any = None) -> DeltaMergeBuilder:
        assignments = as_assignments(set, "'set' in whenNotMatchedBySourceUpdate")
        return self._with_clause("not matched by source", "update", condition, assignments)

    def whenNotMatchedBySourceDelete(self, condition: Any = None) -> DeltaMergeBuilder:
        return self._with_clause("not matched by source", "delete", condition)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Add columns to the table that only the source has."""
        return replace(self, schema_evolution=True)

    def execute(self, retries: int = 0) -> DataFrame:
        """Run the MERGE completely or not at all. Returns one row: num_affected_rows, num_updated_rows, num_deleted_rows and
        num_inserted_rows.

        retries: how often the whole MERGE may run again if another writer's commit conflicts with it.

        Raises the errors of spark_plugin.merge.merge_job.merge.
        """
        from spark_plugin.merge.merge_job import merge

        run = partial(
            merge,
            self.spark,
            self.table,
            self.source,
            self.condition,
            self.clauses,
            alias=self.alias,
            evolves=self.schema_evolution,
        )
        with as_spark_raises():
            metrics = run_with_retries(run, retries).metrics
        updated, deleted, inserted = (metrics.get(f"numTargetRows{name}", 0) for name in ("Updated", "Deleted", "Inserted"))
        return self.spark.createDataFrame([(updated + deleted + inserted, updated, deleted, inserted)], _RESULT)

    def _with_clause(
        self, kind: Kind, action: Action, condition: Any, assignments: Mapping[str, Column] | None = None
    ) -> DeltaMergeBuilder:
        clause = Clause(kind, action, as_condition(condition), assignments)
        return replace(self, clauses=(*self.clauses, clause))
