"""What an OPTIMIZE has done: of one commit, and of the whole, by the reference's names."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delta_py.protocol.schema import Path
from delta_py.protocol.table_config import TableConfig
from delta_py.write.files import WrittenFiles


def counts(parts: Sequence[WrittenFiles]) -> dict[str, Any]:
    """Plain values, as tasks may answer them."""
    whole = WrittenFiles.of_all(parts)
    vectors = [remove.deletion_vector for remove in whole.removes if remove.deletion_vector is not None]
    return {
        "bins": len(parts),
        "partitions": [sorted((part.removes[0].partition_values or {}).items()) for part in parts],
        "added": [add.size_bytes for add in whole.adds],
        "removed": [remove.size_bytes or 0 for remove in whole.removes],
        "vectors": len(vectors),
        "vector_rows": sum(vector.cardinality for vector in vectors),
    }


def history_metrics(done: Mapping[str, Any]) -> dict[str, int]:
    """operationMetrics of the commit, by the reference's names."""
    sizes: list[int] = sorted(done["added"]) or [0]
    names = {"minFileSize": 0.0, "p25FileSize": 0.25, "p50FileSize": 0.5, "p75FileSize": 0.75, "maxFileSize": 1.0}
    return {
        "numRemovedFiles": len(done["removed"]),
        "numRemovedBytes": sum(done["removed"]),
        "numAddedFiles": len(done["added"]),
        "numAddedBytes": sum(done["added"]),
        **{name: sizes[min(len(sizes) - 1, int(len(sizes) * share))] for name, share in names.items()},
        "numDeletionVectorsRemoved": done["vectors"],
    }


@dataclass(slots=True)
class Optimized:
    """What an OPTIMIZE has done so far, over all its commits. version: of the last; None where there was none."""

    table_root: str
    version: int | None = None
    started_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    considered: int | None = None
    columns: int = 0
    columns_with_stats: int = 0
    bins: int = 0
    batches: int = 0
    added: list[int] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    partitions: set[tuple[tuple[str, str | None], ...]] = field(default_factory=set)
    vectors: int = 0
    vector_rows: int = 0

    def begin(self, considered: int, config: TableConfig, stats_columns: Sequence[Path]) -> None:
        """Before the batches of a look at the table; the first one counts what it saw. considered: files that are asked about."""
        if self.considered is None:
            self.considered = considered
            self.columns = len(config.schema.fields)
            self.columns_with_stats = len({path[0] for path in stats_columns}) + len(config.partition_columns)

    def count(self, committed: Mapping[str, Any]) -> None:
        """committed: as Compaction.commit gives."""
        self.version = committed.get("version", self.version)
        self.bins += committed["bins"]
        self.batches += 1
        self.added.extend(committed["added"])
        self.removed.extend(committed["removed"])
        self.partitions |= {tuple(tuple(pair) for pair in values) for values in committed["partitions"]}
        self.vectors += committed["vectors"]
        self.vector_rows += committed["vector_rows"]

    def metrics(self) -> dict[str, Any]:
        """The struct `metrics` of the reference's result. Bytes, and ms since 1970; null for what does not apply."""
        considered = self.considered or 0
        vectors = {"numDeletionVectorsRemoved": self.vectors, "numDeletionVectorRowsRemoved": self.vector_rows}
        return {
            "numFilesAdded": len(self.added),
            "numFilesRemoved": len(self.removed),
            "filesAdded": _sizes(self.added),
            "filesRemoved": _sizes(self.removed),
            "partitionsOptimized": len(self.partitions),
            "zOrderStats": None,
            "clusteringStats": None,
            "numBins": self.bins,
            "numBatches": max(1, self.batches),
            "totalConsideredFiles": considered,
            "totalFilesSkipped": max(0, considered - len(self.removed)),
            "preserveInsertionOrder": True,
            "numFilesSkippedToReduceWriteAmplification": 0,
            "numBytesSkippedToReduceWriteAmplification": 0,
            "startTimeMs": self.started_ms,
            "endTimeMs": time.time_ns() // 1_000_000,
            "totalClusterParallelism": os.cpu_count() or 1,
            "totalScheduledTasks": self.bins,
            "autoCompactParallelismStats": None,
            "deletionVectorStats": vectors if self.vectors else None,
            "numTableColumns": self.columns,
            "numTableColumnsWithStats": self.columns_with_stats,
        }


def _sizes(sizes: Sequence[int]) -> dict[str, Any]:
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": sum(sizes) / len(sizes) if sizes else 0.0,
        "totalFiles": len(sizes),
        "totalSize": sum(sizes),
    }
