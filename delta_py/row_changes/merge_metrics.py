"""The metrics of a MERGE, by delta-spark's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["matched", "not matched", "not matched by source"]
Action: TypeAlias = Literal["update", "delete", "insert"]


def merge_metrics(
    clauses: Sequence[tuple[Kind, Action]],
    source_rows: int,
    materialized_ms: int,
    done: Mapping[str, int],
    by_clause: Mapping[int, int],
) -> dict[str, int]:
    """done: the metrics that Dml.commit counts. by_clause: row count of each clause, by its number in `clauses`. materialized_ms:
    the time to read the source."""
    inserted = sum(by_clause.get(number, 0) for number, (kind, _) in enumerate(clauses) if kind == "not matched")
    unmatched_counts = {"delete": 0, "update": 0}
    for number, (kind, action) in enumerate(clauses):
        if kind == "not matched by source":
            unmatched_counts[action] += by_clause.get(number, 0)
    deleted, updated, copied = (done.get(f"num{name}Rows", 0) for name in ("Deleted", "Updated", "Copied"))
    return {
        "numSourceRows": source_rows,
        "materializeSourceTimeMs": materialized_ms,
        "numTargetRowsInserted": inserted,
        "numTargetRowsUpdated": updated,
        "numTargetRowsMatchedUpdated": updated - unmatched_counts["update"],
        "numTargetRowsNotMatchedBySourceUpdated": unmatched_counts["update"],
        "numTargetRowsDeleted": deleted,
        "numTargetRowsMatchedDeleted": deleted - unmatched_counts["delete"],
        "numTargetRowsNotMatchedBySourceDeleted": unmatched_counts["delete"],
        "numTargetRowsCopied": copied,
        "numOutputRows": copied + updated + inserted,
        **{ours: done.get(theirs, 0) for ours, theirs in _RENAMED.items()},
        **{name: value for name, value in done.items() if name.endswith("Ms")},
    }


_RENAMED = {
    "numTargetFilesAdded": "numAddedFiles",
    "numTargetBytesAdded": "numAddedBytes",
    "numTargetFilesRemoved": "numRemovedFiles",
    "numTargetBytesRemoved": "numRemovedBytes",
    "numTargetChangeFilesAdded": "numAddedChangeFiles",
    "numTargetDeletionVectorsAdded": "numDeletionVectorsAdded",
    "numTargetDeletionVectorsRemoved": "numDeletionVectorsRemoved",
    "numTargetDeletionVectorsUpdated": "numDeletionVectorsUpdated",
}
