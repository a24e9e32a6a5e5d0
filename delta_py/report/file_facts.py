"""Facts about the live files for a report: sizes, partitions, deletion vectors. Columnar, because there may be very many files.

Protocol: Add File and Remove File; Deletion Vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.optimize.optimize_bins import DEFAULT_DELETED_RATIO, DEFAULT_TARGET_BYTES, OptimizeRequest
from delta_py.optimize.optimize_ordering import compaction_of
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
_EDGES = (0, 4 * _KB, *(_KB * 4**power for power in range(2, 11)), 4 << 30)  # 0, 4 KB, 16 KB ... 1 GB, 4 GB
_PROFILE = 60  # the most groups of partitions
_LARGEST = 20  # the most partitions that are listed
_SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)  # the upper ends of the shares of deleted rows


def file_facts(snapshot: Snapshot, files: pa.Table, records: pa.Int64Array) -> FileFacts:
    """Facts about the sizes of the live files. files: FILE_SCHEMA. records: the number of rows of each, including deleted ones;
    null if it is not known."""
    sizes = files["size"].to_numpy()
    target = _target(snapshot)
    unknown = records.null_count
    deleted = total(pc.struct_field(files["deletion_vector"], "cardinality"))
    small = files["size"].filter(pa.array(np.zeros(len(sizes), np.bool_) if isinstance(target, Unknown) else sizes < target))
    return FileFacts(
        count=len(sizes),
        bytes=total(files["size"]),
        rows=total(records) - deleted if not unknown else Unknown(_without_rows(unknown, len(sizes))),
        files_without_row_count=unknown,
        sizes=_histogram(sizes, target),
        median_bytes=int(np.median(sizes)) if len(sizes) else None,
        largest_bytes=int(sizes.max()) if len(sizes) else None,
        target_bytes=target,
        small_count=target if isinstance(target, Unknown) else len(small),
        small_bytes=target if isinstance(target, Unknown) else total(small),
        optimize=known(lambda: _debt(snapshot)),
        source=f"add actions of version {snapshot.version}: size, stats.numRecords",
    )


def _without_rows(unknown: int, count: int) -> str:
    """Why a number of rows is not known."""
    return f"{unknown:,} of {count:,} files have no stats.numRecords"


def _target(snapshot: Snapshot) -> int | Unknown:
    """The file size in bytes that OPTIMIZE aims at."""
    return known(lambda: snapshot.config.properties.size("delta.targetFileSize", DEFAULT_TARGET_BYTES))


def _histogram(sizes: np.ndarray[Any, np.dtype[np.int64]], target: int | Unknown) -> tuple[SizeBin, ...]:
    """The bins from the first that has files to the last, extended to that of the target size."""
    places = np.searchsorted(np.array(_EDGES), sizes, "right") - 1
    counts = np.bincount(places, minlength=len(_EDGES))
    totals = np.bincount(places, sizes, minlength=len(_EDGES))
    filled = np.flatnonzero(counts)
    if not len(filled):
        return ()
    aimed_at = 0 if isinstance(target, Unknown) else np.searchsorted(np.array(_EDGES), target, "right") - 1
    highs = (*_EDGES[1:], None)
    return tuple(
        SizeBin(_EDGES[place], highs[place], int(counts[place]), int(totals[place]))
        for place in range(filled[0], max(filled[-1], aimed_at) + 1)
    )


def _debt(snapshot: Snapshot) -> OptimizeDebt:
    """What OPTIMIZE would do now, from its plan; nothing is rewritten."""
    compaction = compaction_of(snapshot, snapshot.clustering_domain(), OptimizeRequest()).choose()
    return OptimizeDebt(compaction.bins.num_rows, total(compaction.bins["size"]), len(pc.unique(compaction.bins["bin"])))


# ---------------------------------------------------------------- partitions


def partition_facts(snapshot: Snapshot, files: pa.Table) -> PartitionFacts:
    """Facts about the partitions of a partitioned table. files: FILE_SCHEMA."""
    config, columns = snapshot.config, snapshot.config.partition_columns
    texts = [pc.map_lookup(files["partition_values"], pa.scalar(name), "first") for name in config.physical_partition_columns]
    # Other names than the columns', which could be equal to `size`.
    keys = [f"k{position}" for position in range(len(columns))]
    # The empty text means null too.
    null = pa.scalar(None, pa.string())
    values_by_key = {key: pc.if_else(pc.equal(text, ""), null, text) for key, text in zip(keys, texts, strict=True)}
    # The log may contain any sizes: a sum beyond 64 bits is an error of the cast below, and not a wrong number.
    sizes = files["size"].cast(pa.decimal128(19, 0))
    groups = pa.table({**values_by_key, "size": sizes}).group_by(keys).aggregate([("size", "sum"), ("size", "count")])
    groups = groups.set_column(groups.schema.get_field_index("size_sum"), "size_sum", groups["size_sum"].cast(pa.int64()))
    groups = groups.sort_by([("size_sum", "descending"), *((key, "ascending") for key in keys)])
    sizes, counts = groups["size_sum"].to_numpy(), groups["size_count"].to_numpy()
    median, target = (float(np.median(sizes)), _target(snapshot)) if len(sizes) else (None, _target(snapshot))
    return PartitionFacts(
        columns=tuple(columns),
        count=len(sizes),
        largest=tuple(
            Partition(tuple(row[key] for key in keys), row["size_count"], row["size_sum"])
            for row in groups.slice(0, _LARGEST).to_pylist()
        ),
        profile=tuple(float(part.mean()) for part in np.array_split(sizes, min(_PROFILE, len(sizes)))) if len(sizes) else (),
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
    known_rows = pc.fill_null(pc.greater(rows, 0), False)
    # A share needs no exact numbers: integers above 2**53 are rounded.
    of_rows, of_deleted = (numbers.filter(known_rows).cast(pa.float64(), safe=False) for numbers in (rows, deleted))
    shares = pc.divide(of_deleted, of_rows).to_numpy()
    places = np.minimum(np.searchsorted(np.array(_SHARES), shares, "left"), len(_SHARES) - 1)
    unknown = len(rows) - len(shares)
    return VectorFacts(
        files=len(rows),
        deleted_rows=total(deleted),
        rows=Unknown(_without_rows(rows.null_count, len(rows))) if rows.null_count else total(rows),
        bytes=total(pc.struct_field(vectors, "sizeInBytes")),
        shares=tuple(zip(_SHARES, np.bincount(places, minlength=len(_SHARES)).tolist(), strict=True)),
        max_share=DEFAULT_DELETED_RATIO,
        beyond=int((shares > DEFAULT_DELETED_RATIO).sum()),
        files_without_share=unknown,
        source=f"add actions of version {snapshot.version}: deletionVector.cardinality and sizeInBytes, stats.numRecords",
    )
