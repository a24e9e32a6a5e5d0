"""The changed rows of a MERGE where columns are names, as over Spark Connect.

A clause for matched rows can name the columns of both sides; a clause for rows without a match only those of its own side. The
same name may refer to the target in one clause and to the source in another. So the join goes through three projections, one for
each kind of clause. Each has only the columns that its clauses may name.

    changed = MergeScopes(target, merge, rows, source).changed(target_rows)
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
    """Return the number of the first clause of a kind whose condition is true for a row; null if there is none."""
    tests = [
        F.lit(number) if clause.condition is None else F.when(clause.condition.column, number)
        for number, clause in merge.of_kind(kind)
    ]
    return F.coalesce(*tests) if tests else F.lit(None).cast("int")


def evaluated_in_place(merge: ResolvedMerge, number: Column) -> Column:
    """Return the number of a row's clause. If clauses have conditions, Spark's optimizer must not move the number to another
    place, so it is marked as if it could differ each time. Otherwise Spark would move a filter by such a condition into the join,
    or before it, and it would fail for rows that do not match."""
    if all(clause.condition is None for clause in merge.clauses):
        return number
    return F.when(F.monotonically_increasing_id() >= 0, number)


@dataclass(frozen=True)
class MergeScopes:
    target: Target
    merge: ResolvedMerge
    rows: MergeRows
    source: Source

    def changed(self, target_rows: DataFrame | None) -> DataFrame:
        """Return ROW_ADDRESS (if `target_rows` is not None), CLAUSE and NEW (if a clause makes rows) of the rows that some clause
        applies to. target_rows: the target's rows that may matter."""
        source = self.source.frame.select("*", F.lit(True).alias(FROM_SOURCE))
        if target_rows is None:
            rows = self._decided(source, "not matched", F.lit(True))
        else:
            rows = target_rows.join(source, self.merge.condition.column, self._how())
            of_target, of_source = F.col(f"{ROW_ADDRESS}.file_number").isNotNull(), F.col(FROM_SOURCE).isNotNull()
            rows = self._decided(rows, "matched", of_target & of_source)
            # From here on only the source's columns have names; the target's row is one value.
            rows = rows.select(source["*"], *self._beside(rows), self._packed())
            rows = self._decided(rows, "not matched", of_source & ~of_target)
            # From here on only the target's columns have names.
            rows = rows.select(f"{_TARGET_ROW}.*", FROM_SOURCE, *self._beside(rows))
            rows = self._decided(alias_frame(rows, self.target.alias), "not matched by source", of_target & ~of_source)
        new_names = [name for name in rows.columns if name.startswith(f"{NEW}_")]
        clause = F.coalesce(*(F.col(name) for name in rows.columns if name.startswith(f"{CLAUSE}_"))).alias(CLAUSE)
        places = [] if target_rows is None else [ROW_ADDRESS]
        new = [F.coalesce(*(F.col(name) for name in new_names)).alias(NEW)] if new_names else []
        return rows.select(*places, clause, *new).where(F.col(CLAUSE).isNotNull())

    def _how(self) -> str:
        """Return the type of the join between the target's rows (left) and the source's (right)."""
        inserts, lone = bool(self.merge.of_kind("not matched")), bool(self.merge.of_kind("not matched by source"))
        if lone:
            return "full_outer" if inserts else "left_outer"
        return "right_outer" if inserts else "inner"

    def _decided(self, rows: DataFrame, kind: Kind, where: Column) -> DataFrame:
        """Add the number of the clause of this kind that applies to a row, and the new row that the clause makes. where: true for
        the rows to which clauses of this kind can apply."""
        clauses = self.merge.of_kind(kind)
        if not clauses:
            return rows
        number = f"{CLAUSE}_{_KINDS.index(kind)}"
        clause = evaluated_in_place(self.merge, F.when(where, first_clause(self.merge, kind)))
        rows = rows.select("*", clause.alias(number))
        new_rows = [F.when(F.col(number) == n, self.rows.new_row(clause)) for n, clause in clauses if clause.action != "delete"]
        return rows.select("*", F.coalesce(*new_rows).alias(f"{NEW}_{_KINDS.index(kind)}")) if new_rows else rows

    def _packed(self) -> Column:
        """Return the target's row as one value, so that clauses for rows of the source cannot name its columns."""
        names = self.target.dml.snapshot.schema.names
        return F.struct(*(self.target.frame[quoted(name)].alias(name) for name in names)).alias(_TARGET_ROW)

    def _beside(self, rows: DataFrame) -> Sequence[str]:
        """Return the columns to carry along: the address of the target's row, and what was computed for earlier kinds."""
        return [ROW_ADDRESS, *(name for name in rows.columns if name.startswith((f"{CLAUSE}_", f"{NEW}_")))]
