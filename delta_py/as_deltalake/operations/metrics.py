"""Metrics of operations by deltalake's names, from those by delta-spark's names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# The metrics of each operation: delta-spark's names by deltalake's names.
_FILES = {"num_added_files": "numAddedFiles", "num_removed_files": "numRemovedFiles"}
_COPIED = {"num_copied_rows": "numCopiedRows"}
_TIMES = {"execution_time_ms": "executionTimeMs", "scan_time_ms": "scanTimeMs"}
_REWRITE = {"rewrite_time_ms": "rewriteTimeMs"}
DELETE = {**_FILES, "num_deleted_rows": "numDeletedRows", **_COPIED, **_TIMES, **_REWRITE}
UPDATE = {**_FILES, "num_updated_rows": "numUpdatedRows", **_COPIED, **_TIMES}
MERGE = {
    "num_source_rows": "numSourceRows",
    "num_target_rows_inserted": "numTargetRowsInserted",
    "num_target_rows_updated": "numTargetRowsUpdated",
    "num_target_rows_deleted": "numTargetRowsDeleted",
    "num_target_rows_copied": "numTargetRowsCopied",
    "num_output_rows": "numOutputRows",
    "num_target_files_added": "numTargetFilesAdded",
    "num_target_files_removed": "numTargetFilesRemoved",
    **_TIMES,
    **_REWRITE,
}
# Metrics that are left out of the result if they are not known; other unknown metrics are 0. The number of deleted rows is not
# known if removed files have no statistics.
_OMITTED = ("num_deleted_rows",)
RESTORE = {"numRemovedFile": "numRemovedFiles", "numRestoredFile": "numRestoredFiles"}


def by_deltalake_names(metrics: Mapping[str, int], delta_spark_names: Mapping[str, str]) -> dict[str, Any]:
    """The metrics by deltalake's names. metrics: by delta-spark's names. delta_spark_names: for each metric that deltalake
    returns, its name in delta-spark. A metric that the operation does not have is 0; only the number of deleted rows is left
    out."""
    omitted = {name for name in _OMITTED if delta_spark_names.get(name) not in metrics}
    return {
        deltalake_name: metrics.get(delta_spark_name, 0)
        for deltalake_name, delta_spark_name in delta_spark_names.items()
        if deltalake_name not in omitted
    }


def with_numeric_metrics(info: Mapping[str, Any]) -> dict[str, Any]:
    """commitInfo, with numbers in its operationMetrics if pydelta wrote the commit: pydelta writes these metrics as texts, and
    deltalake as numbers. The commitInfo of other writers does not change."""
    metrics = info.get("operationMetrics")
    if not isinstance(metrics, dict) or not str(info.get("engineInfo", "")).startswith("pydelta/"):
        return dict(info)
    numbers = {name: int(value) if str(value).isdecimal() else value for name, value in metrics.items()}
    return {**info, "operationMetrics": numbers}


def optimize_metrics(metrics: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The metrics of an OPTIMIZE in deltalake's form. metrics: of TableOptimizer of delta_py. kind: preserveLocality or zOrder.
    Sizes of files are JSON texts."""
    is_ordered = kind == "zOrder"
    return {
        "numFilesAdded": metrics["numFilesAdded"],
        "numFilesRemoved": metrics["numFilesRemoved"],
        "filesAdded": _file_sizes_json(metrics["filesAdded"]),
        "filesRemoved": _file_sizes_json(metrics["filesRemoved"]),
        "partitionsOptimized": metrics["partitionsOptimized"],
        "numBatches": metrics["numBatches"],
        "totalConsideredFiles": metrics["totalConsideredFiles"],
        "totalFilesSkipped": metrics["totalFilesSkipped"],
        "preserveInsertionOrder": not is_ordered,
        "plannerStrategy": kind,
        "preservedStableOrder": not is_ordered,
        "maxBinSpanFiles": metrics["numFilesRemoved"],
    }


def _file_sizes_json(sizes: Mapping[str, Any]) -> str:
    """Minimum, maximum, average, number and sum of the sizes of files (bytes), as JSON with sorted keys. 0 for no files."""
    values = {
        "min": sizes["min"] or 0,
        "max": sizes["max"] or 0,
        **{name: sizes[name] for name in ("avg", "totalFiles", "totalSize")},
    }
    return json.dumps({name: values[name] for name in sorted(values)}, separators=(",", ":"))
