"""The changed rows of a MERGE where columns are names, as over Spark Connect.

A clause for matched rows can name the columns of both sides; a clause for rows without a match only those of its own side. The
same name may refer to the target in one clause and to the source in another. So the join goes through three projections, one for
each kind of clause. Each has only the columns that its clauses may name.

    changed_rows = MergeScopes(target, merge, row_maker, source).changed_rows(target_rows)

Each row of the join gets two values: CLAUSE, the number of the clause that applies to it, and NEW, the new row that this clause
makes. Until the end there is one pair of these columns for each kind of clause, numbered by the position in _KINDS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from delta_py.row_changes.merge_metrics import Kind
from delta_py.scan.planning import ROW_ADDRESS
from delta_py.types.names import quoted
from delta_py.write.task_changes import CLAUSE, NEW
from spark_plugin.dml.jobs import Target
from spark_plugin.dml.target_names import alias_frame
from spark_plugin.merge.merge_job_clauses import ResolvedMerge
from spark_plugin.merge.merge_job_join import FROM_SOURCE
from spark_plugin.merge.merge_rows import MergeRows
from spark_plugin.merge.merge_source import Source

_TARGET_ROW = "__pydelta_target_row"
_KINDS: tuple[Kind, ...] = ("matched", "not matched", "not matched by source")


def first_clause(merge: ResolvedMerge, kind: Kind) -> Column:
    """Return the number of the first clause of a kind whose condition is true for a row, as a column; null if there is none."""
    numbers_if_true = [
        F.lit(number) if clause.condition is None else F.when(clause.condition.column, number)
        for number, clause in merge.of_kind(kind)
    ]
    return F.coalesce(*numbers_if_true) if numbers_if_true else F.lit(None).cast("int")


def evaluated_in_place(merge: ResolvedMerge, number: Column) -> Column:
    """Return `number`, the number of the clause that applies to a row, in a form that Spark's optimizer leaves where it is.

    Otherwise Spark would move a filter by the condition of a clause into the join, or before it, and the condition would fail for
    rows that do not match. So the number depends on monotonically_increasing_id, which Spark treats as if it could differ each
    time. If no clause has a condition, this is not necessary."""
    if all(clause.condition is None for clause in merge.clauses):
        return number
    return F.when(F.monotonically_increasing_id() >= 0, number)


@dataclass(frozen=True)
class MergeScopes:
    """Makes the changed rows of one MERGE. row_maker: makes the new rows of clauses. source: the source as it was cached."""

    target: Target
    merge: ResolvedMerge
    row_maker: MergeRows
    source: Source

    def changed_rows(self, target_rows: DataFrame | None) -> DataFrame:
        """Return ROW_ADDRESS (if `target_rows` is not None), CLAUSE and NEW (if a clause makes rows) of the rows that some clause
        applies to. target_rows: the target's rows that may matter."""
        source = self.source.frame.select("*", F.lit(True).alias(FROM_SOURCE))
        if target_rows is None:
            rows = self._with_clause_of(source, "not matched", F.lit(True))
        else:
            rows = target_rows.join(source, self.merge.condition.column, self._join_type())
            has_target, has_source = F.col(f"{ROW_ADDRESS}.file_number").isNotNull(), F.col(FROM_SOURCE).isNotNull()
            rows = self._with_clause_of(rows, "matched", has_target & has_source)
            # From here on only the source's columns have names; the target's row is one value.
            rows = rows.select(source["*"], *self._columns_to_keep(rows), self._target_row_struct())
            rows = self._with_clause_of(rows, "not matched", has_source & ~has_target)
            # From here on only the target's columns have names.
            rows = rows.select(f"{_TARGET_ROW}.*", FROM_SOURCE, *self._columns_to_keep(rows))
            rows = self._with_clause_of(alias_frame(rows, self.target.alias), "not matched by source", has_target & ~has_source)
        # At most one kind applies to a row, so the columns of the other kinds are null in it.
        clause_columns = [F.col(name) for name in rows.columns if name.startswith(f"{CLAUSE}_")]
        new_row_columns = [F.col(name) for name in rows.columns if name.startswith(f"{NEW}_")]
        clause = F.coalesce(*clause_columns).alias(CLAUSE)
        address = [] if target_rows is None else [ROW_ADDRESS]
        new_row = [F.coalesce(*new_row_columns).alias(NEW)] if new_row_columns else []
        return rows.select(*address, clause, *new_row).where(F.col(CLAUSE).isNotNull())

    def _join_type(self) -> str:
        """Return the type of the join between the target's rows (left) and the source's (right)."""
        keeps_source, keeps_target = bool(self.merge.of_kind("not matched")), bool(self.merge.of_kind("not matched by source"))
        if keeps_target:
            return "full_outer" if keeps_source else "left_outer"
        return "right_outer" if keeps_source else "inner"

    def _with_clause_of(self, rows: DataFrame, kind: Kind, where: Column) -> DataFrame:
        """Add the number of the clause of this kind that applies to a row, and the new row that the clause makes. where: true for
        the rows to which clauses of this kind can apply."""
        clauses = self.merge.of_kind(kind)
        if not clauses:
            return rows
        clause_column = f"{CLAUSE}_{_KINDS.index(kind)}"
        clause_number = evaluated_in_place(self.merge, F.when(where, first_clause(self.merge, kind)))
        rows = rows.select("*", clause_number.alias(clause_column))
        new_rows = [
            F.when(F.col(clause_column) == number, self.row_maker.new_row(clause))
            for number, clause in clauses
            if clause.action != "delete"
        ]
        return rows.select("*", F.coalesce(*new_rows).alias(f"{NEW}_{_KINDS.index(kind)}")) if new_rows else rows

    def _target_row_struct(self) -> Column:
        """Return the target's row as one value, so that clauses for rows of the source cannot name its columns."""
        names = self.target.dml.snapshot.schema.names
        return F.struct(*(self.target.frame[quoted(name)].alias(name) for name in names)).alias(_TARGET_ROW)

    def _columns_to_keep(self, rows: DataFrame) -> Sequence[str]:
        """Return the names of the columns that the next projection keeps: the address of the target's row, and the clause numbers
        and new rows of earlier kinds of clauses."""
        return [ROW_ADDRESS, *(name for name in rows.columns if name.startswith((f"{CLAUSE}_", f"{NEW}_")))]
