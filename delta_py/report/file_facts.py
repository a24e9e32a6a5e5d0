"""Facts about the live files for a report: sizes, partitions, deletion vectors. Columnar, because there may be very many files.

Protocol: Add File and Remove File; Deletion Vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.optimize.optimize_bins import DEFAULT_DELETED_RATIO, DEFAULT_TARGET_BYTES, OptimizeRequest
from delta_py.optimize.optimize_ordering import choose_compaction
from delta_py.report.facts import (
    FileFacts,
    OptimizeDebt,
    Partition,
    PartitionFacts,
    SizeBin,
    Unknown,
    VectorFacts,
    known,
    total,
)
from delta_py.snapshot import Snapshot

_KB = 1 << 10
_BIN_EDGES = (0, 4 * _KB, *(_KB * 4**power for power in range(2, 11)), 4 << 30)  # 0, 4 KB, 16 KB ... 1 GB, 4 GB
_PROFILE_GROUPS = 60  # the most groups of partitions
_LARGEST_COUNT = 20  # the most partitions that are listed
_SHARE_EDGES = (0.05, 0.1, 0.25, 0.5, 1.0)  # the upper ends of the shares of deleted rows


def file_facts(snapshot: Snapshot, files: pa.Table, records: pa.Int64Array) -> FileFacts:
    """Facts about the sizes of the live files. files: FILE_SCHEMA. records: the number of rows of each, including deleted ones;
    null if it is not known."""
    sizes = files["size"].to_numpy()
    target = _target_bytes(snapshot)
    unknown_count = records.null_count
    deleted_rows = total(pc.struct_field(files["deletion_vector"], "cardinality"))
    small_sizes = files["size"].filter(
        pa.array(np.zeros(len(sizes), np.bool_) if isinstance(target, Unknown) else sizes < target)
    )
    return FileFacts(
        count=len(sizes),
        bytes=total(files["size"]),
        rows=total(records) - deleted_rows if not unknown_count else Unknown(_missing_rows_reason(unknown_count, len(sizes))),
        files_without_row_count=unknown_count,
        sizes=_histogram(sizes, target),
        median_bytes=int(np.median(sizes)) if len(sizes) else None,
        largest_bytes=int(sizes.max()) if len(sizes) else None,
        target_bytes=target,
        small_count=target if isinstance(target, Unknown) else len(small_sizes),
        small_bytes=target if isinstance(target, Unknown) else total(small_sizes),
        optimize=known(lambda: _optimize_debt(snapshot)),
        source=f"add actions of version {snapshot.version}: size, stats.numRecords",
    )


def _missing_rows_reason(unknown: int, count: int) -> str:
    """Why a number of rows is not known."""
    return f"{unknown:,} of {count:,} files have no stats.numRecords"


def _target_bytes(snapshot: Snapshot) -> int | Unknown:
    """The file size in bytes that OPTIMIZE aims at."""
    return known(lambda: snapshot.config.properties.size("delta.targetFileSize", DEFAULT_TARGET_BYTES))


def _histogram(sizes: np.ndarray[Any, np.dtype[np.int64]], target: int | Unknown) -> tuple[SizeBin, ...]:
    """The bins from the first that has files to the last, extended to that of the target size."""
    bin_numbers = np.searchsorted(np.array(_BIN_EDGES), sizes, "right") - 1
    counts = np.bincount(bin_numbers, minlength=len(_BIN_EDGES))
    totals = np.bincount(bin_numbers, sizes, minlength=len(_BIN_EDGES))
    filled_bins = np.flatnonzero(counts)
    if not len(filled_bins):
        return ()
    target_bin = 0 if isinstance(target, Unknown) else np.searchsorted(np.array(_BIN_EDGES), target, "right") - 1
    upper_edges = (*_BIN_EDGES[1:], None)
    return tuple(
        SizeBin(_BIN_EDGES[place], upper_edges[place], int(counts[place]), int(totals[place]))
        for place in range(filled_bins[0], max(filled_bins[-1], target_bin) + 1)
    )


def _optimize_debt(snapshot: Snapshot) -> OptimizeDebt:
    """The work of OPTIMIZE if it ran now, from its plan; nothing is rewritten."""
    chosen_files = choose_compaction(snapshot, snapshot.clustering_domain(), OptimizeRequest()).choose().files
    return OptimizeDebt(
        files=chosen_files.num_rows, bytes=total(chosen_files["size"]), bins=len(pc.unique(chosen_files["bin"]))
    )


# ---------------------------------------------------------------- partitions


def partition_facts(snapshot: Snapshot, files: pa.Table) -> PartitionFacts:
    """Facts about the partitions of a partitioned table. files: FILE_SCHEMA."""
    config, columns = snapshot.config, snapshot.config.partition_columns
    value_texts = [
        pc.map_lookup(files["partition_values"], pa.scalar(name), "first") for name in config.physical_partition_columns
    ]
    # Other names than the columns', which could be equal to `size`.
    keys = [f"k{position}" for position in range(len(columns))]
    # The empty text means null too.
    null = pa.scalar(None, pa.string())
    values_by_key = {key: pc.if_else(pc.equal(text, ""), null, text) for key, text in zip(keys, value_texts, strict=True)}
    # The log may contain any sizes: a sum beyond 64 bits is an error of the cast below, and not a wrong number.
    sizes = files["size"].cast(pa.decimal128(19, 0))
    groups = pa.table({**values_by_key, "size": sizes}).group_by(keys).aggregate([("size", "sum"), ("size", "count")])
    groups = groups.set_column(groups.schema.get_field_index("size_sum"), "size_sum", groups["size_sum"].cast(pa.int64()))
    groups = groups.sort_by([("size_sum", "descending"), *((key, "ascending") for key in keys)])
    sizes, counts = groups["size_sum"].to_numpy(), groups["size_count"].to_numpy()
    median, target = (float(np.median(sizes)), _target_bytes(snapshot)) if len(sizes) else (None, _target_bytes(snapshot))
    return PartitionFacts(
        columns=tuple(columns),
        count=len(sizes),
        largest=tuple(
            Partition(tuple(row[key] for key in keys), row["size_count"], row["size_sum"])
            for row in groups.slice(0, _LARGEST_COUNT).to_pylist()
        ),
        profile=tuple(float(part.mean()) for part in np.array_split(sizes, min(_PROFILE_GROUPS, len(sizes))))
        if len(sizes)
        else (),
        median_bytes=None if median is None else int(median),
        skew=float(sizes[0] / median) if median else None,
        median_files=float(np.median(counts)) if len(counts) else None,
        small_count=target if isinstance(target, Unknown) else int(((sizes < target) & (counts > 1)).sum()),
        source=f"add actions of version {snapshot.version}: partitionValues, size",
    )


# ---------------------------------------------------------------- deletion vectors


def vector_facts(snapshot: Snapshot, files: pa.Table, records: pa.Int64Array) -> VectorFacts:
    """Facts about the files with deletion vectors. files: FILE_SCHEMA. records: the number of rows of each, including deleted
    ones; null if it is not known."""
    has_vector = files["deletion_vector"].is_valid().combine_chunks()
    vectors, rows = files["deletion_vector"].combine_chunks().filter(has_vector), records.filter(has_vector)
    deleted = pc.fill_null(pc.struct_field(vectors, "cardinality"), 0)
    has_rows = pc.fill_null(pc.greater(rows, 0), False)
    # A share needs no exact numbers: integers above 2**53 are rounded.
    row_counts, deleted_counts = (numbers.filter(has_rows).cast(pa.float64(), safe=False) for numbers in (rows, deleted))
    shares = pc.divide(deleted_counts, row_counts).to_numpy()
    bin_numbers = np.minimum(np.searchsorted(np.array(_SHARE_EDGES), shares, "left"), len(_SHARE_EDGES) - 1)
    unknown_count = len(rows) - len(shares)
    return VectorFacts(
        files=len(rows),
        deleted_rows=total(deleted),
        rows=Unknown(_missing_rows_reason(rows.null_count, len(rows))) if rows.null_count else total(rows),
        bytes=total(pc.struct_field(vectors, "sizeInBytes")),
        shares=tuple(zip(_SHARE_EDGES, np.bincount(bin_numbers, minlength=len(_SHARE_EDGES)).tolist(), strict=True)),
        max_share=DEFAULT_DELETED_RATIO,
        beyond=int((shares > DEFAULT_DELETED_RATIO).sum()),
        files_without_share=unknown_count,
        source=f"add actions of version {snapshot.version}: deletionVector.cardinality and sizeInBytes, stats.numRecords",
    )
