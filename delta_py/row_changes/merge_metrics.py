"""The metrics of a MERGE, by delta-spark's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["matched", "not matched", "not matched by source"]
Action: TypeAlias = Literal["update", "delete", "insert"]


def merge_metrics(
    clauses: Sequence[tuple[Kind, Action]],
    source_rows: int,
    source_read_ms: int,
    commit_metrics: Mapping[str, int],
    rows_by_clause: Mapping[int, int],
) -> dict[str, int]:
    """The metrics of a MERGE. clauses: the kind and action of each. source_read_ms: the time to read the source. commit_metrics:
    the metrics that Dml.commit counts. rows_by_clause: the row count of each clause, by its position in `clauses`."""
    inserted = sum(rows_by_clause.get(number, 0) for number, (kind, _) in enumerate(clauses) if kind == "not matched")
    # Rows of the table without a match in the source, by what happened to them.
    unmatched_counts = {"delete": 0, "update": 0}
    for number, (kind, action) in enumerate(clauses):
        if kind == "not matched by source":
            unmatched_counts[action] += rows_by_clause.get(number, 0)
    deleted, updated, copied = (commit_metrics.get(f"num{name}Rows", 0) for name in ("Deleted", "Updated", "Copied"))
    return {
        "numSourceRows": source_rows,
        "materializeSourceTimeMs": source_read_ms,
        "numTargetRowsInserted": inserted,
        "numTargetRowsUpdated": updated,
        "numTargetRowsMatchedUpdated": updated - unmatched_counts["update"],
        "numTargetRowsNotMatchedBySourceUpdated": unmatched_counts["update"],
        "numTargetRowsDeleted": deleted,
        "numTargetRowsMatchedDeleted": deleted - unmatched_counts["delete"],
        "numTargetRowsNotMatchedBySourceDeleted": unmatched_counts["delete"],
        "numTargetRowsCopied": copied,
        "numOutputRows": copied + updated + inserted,
        **{merge_name: commit_metrics.get(commit_name, 0) for merge_name, commit_name in _COMMIT_NAMES.items()},
        **{name: value for name, value in commit_metrics.items() if name.endswith("Ms")},
    }


# The metrics that a MERGE takes over from Dml.commit: their names for a MERGE, and their names in Dml.commit.
_COMMIT_NAMES = {
    "numTargetFilesAdded": "numAddedFiles",
    "numTargetBytesAdded": "numAddedBytes",
    "numTargetFilesRemoved": "numRemovedFiles",
    "numTargetBytesRemoved": "numRemovedBytes",
    "numTargetChangeFilesAdded": "numAddedChangeFiles",
    "numTargetDeletionVectorsAdded": "numDeletionVectorsAdded",
    "numTargetDeletionVectorsRemoved": "numDeletionVectorsRemoved",
    "numTargetDeletionVectorsUpdated": "numDeletionVectorsUpdated",
}
