"""The metrics of an OPTIMIZE, for one commit and for the whole run, by delta-spark's names."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from delta_py.protocol.table_config import TableConfig
from delta_py.types.schema import Path
from delta_py.write.data_files import WrittenFiles


def count_changes(parts: Sequence[WrittenFiles]) -> dict[str, Any]:
    """What the bins of a commit removed and added, as plain values that a Spark task can return. parts: the result of each bin.
    added, removed: the sizes of these files in bytes. vectors, vector_rows: the number of removed deletion vectors, and of the
    rows that these had deleted."""
    all_files = WrittenFiles.of_all(parts)
    vectors = [remove.deletion_vector for remove in all_files.removes if remove.deletion_vector is not None]
    return {
        "bins": len(parts),
        "partitions": [sorted((part.removes[0].partition_values or {}).items()) for part in parts],
        "added": [add.size_bytes for add in all_files.adds],
        "removed": [remove.size_bytes or 0 for remove in all_files.removes],
        "vectors": len(vectors),
        "vector_rows": sum(vector.cardinality for vector in vectors),
    }


def history_metrics(commit_counts: Mapping[str, Any]) -> dict[str, int]:
    """The operationMetrics of a commit, by delta-spark's names. commit_counts: from count_changes."""
    sizes: list[int] = sorted(commit_counts["added"]) or [0]
    names = {"minFileSize": 0.0, "p25FileSize": 0.25, "p50FileSize": 0.5, "p75FileSize": 0.75, "maxFileSize": 1.0}
    return {
        "numRemovedFiles": len(commit_counts["removed"]),
        "numRemovedBytes": sum(commit_counts["removed"]),
        "numAddedFiles": len(commit_counts["added"]),
        "numAddedBytes": sum(commit_counts["added"]),
        **{name: sizes[min(len(sizes) - 1, int(len(sizes) * share))] for name, share in names.items()},
        "numDeletionVectorsRemoved": commit_counts["vectors"],
    }


class ChosenFiles(Protocol):
    """What the metrics need of ChosenBins (optimize_bins.py). considered: the number of files that the predicate selects.
    clustering: clusteringStats of delta-spark, without the written cubes."""

    @property
    def considered(self) -> int: ...

    @property
    def clustering(self) -> Mapping[str, Any] | None: ...


@dataclass(slots=True)
class Optimized:
    """The work of an OPTIMIZE so far, over all its commits. version: the version of the last commit; None if there was none.
    added, removed: the bytes of each such file. partitions: the partition values of the bins. vectors, vector_rows: the number of
    deletion vectors that were removed, and of the rows that these had deleted.
    """

    table_root: str
    version: int | None = None
    started_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    kind: str = "compaction"
    considered: int | None = None
    clustering: Mapping[str, Any] | None = None
    columns: int = 0
    columns_with_stats: int = 0
    bins: int = 0
    batches: int = 0
    added: list[int] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)
    partitions: set[tuple[tuple[str, str | None], ...]] = field(default_factory=set)
    vectors: int = 0
    vector_rows: int = 0

    def begin(self, kind: str, chosen: ChosenFiles, config: TableConfig, stats_columns: Sequence[Path]) -> None:
        """Record what the run is about to do. Called before the batches of each round; only the first call has an effect, because
        later rounds plan some of the same files again."""
        if self.considered is None:
            self.kind, self.considered, self.clustering = kind, chosen.considered, chosen.clustering
            self.columns = len(config.schema.fields)
            self.columns_with_stats = len({path[0] for path in stats_columns}) + len(config.partition_columns)

    def count(self, committed: Mapping[str, Any]) -> None:
        """Add the result of one commit. committed: as Compaction.commit returns it."""
        self.version = committed.get("version", self.version)
        self.bins += committed["bins"]
        self.batches += 1
        self.added.extend(committed["added"])
        self.removed.extend(committed["removed"])
        self.partitions |= {tuple(tuple(pair) for pair in values) for values in committed["partitions"]}
        self.vectors += committed["vectors"]
        self.vector_rows += committed["vector_rows"]

    def metrics(self) -> dict[str, Any]:
        """The struct `metrics` of delta-spark's result. Bytes, and ms since 1970; null for metrics that do not apply."""
        considered = self.considered or 0
        vectors = {"numDeletionVectorsRemoved": self.vectors, "numDeletionVectorRowsRemoved": self.vector_rows}
        return {
            "numFilesAdded": len(self.added),
            "numFilesRemoved": len(self.removed),
            "filesAdded": _sizes(self.added),
            "filesRemoved": _sizes(self.removed),
            "partitionsOptimized": len(self.partitions),
            "zOrderStats": self._z_order_stats() if self.kind == "zorder" else None,
            "clusteringStats": None if self.clustering is None else {**self.clustering, "numOutputZCubes": self.bins},
            "numBins": self.bins,
            "numBatches": max(1, self.batches),
            "totalConsideredFiles": considered,
            "totalFilesSkipped": max(0, considered - len(self.removed)),
            "preserveInsertionOrder": self.kind == "compaction",
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

    def _z_order_stats(self) -> dict[str, Any]:
        """zOrderStats of delta-spark. Every file that was read counts as unordered, because Z-order makes no cubes."""
        no_files, merged_files = {"num": 0, "size": 0}, {"num": len(self.removed), "size": sum(self.removed)}
        return {
            "strategyName": "all",
            "inputCubeFiles": no_files,
            "inputOtherFiles": merged_files,
            "inputNumCubes": 0,
            "mergedFiles": merged_files,
            "numOutputCubes": len(self.partitions),
            "mergedNumCubes": None,
        }


def _sizes(sizes: Sequence[int]) -> dict[str, Any]:
    """The struct of delta-spark's result that describes the sizes of files, in bytes."""
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": sum(sizes) / len(sizes) if sizes else 0.0,
        "totalFiles": len(sizes),
        "totalSize": sum(sizes),
    }
