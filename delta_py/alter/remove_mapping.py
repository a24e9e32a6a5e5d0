"""Turning column mapping off: all rows are rewritten, to files that hold the columns under their own names.

    check_names(schema)                                   # before anything is written
    commit_removal(Transaction(snapshot).set_metadata(metadata), snapshot)

One commit removes all files and adds the new ones, so that no version has files of both kinds. Rows that deletion vectors
deleted and columns that were dropped are not written again; rows keep their ids if the table tracks rows. Any file that
another writer adds in the meantime is a conflict: its columns would have names that the table does not know any more.
Protocol: Column Mapping; Writer Requirements for Column Mapping; Add File and Remove File; Row Tracking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from delta_py.commit.transaction import Transaction
from delta_py.errors import SchemaMismatchError
from delta_py.index.definition import definitions_of
from delta_py.index_commands.index_build import find_indexed_column
from delta_py.index_commands.index_upkeep import index_new_files
from delta_py.optimize.optimize import LocalBinWriters
from delta_py.optimize.optimize_bins import Compaction, OptimizeRequest, batch_bins
from delta_py.optimize.optimize_metrics import count_changes, history_metrics
from delta_py.protocol.actions import DomainMetadata
from delta_py.protocol.clustering import clustering_leaves, with_logical_names
from delta_py.protocol.column_mapping import MODE_PROPERTY
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.new_columns import INVALID_CHARACTERS, names_needing_mapping
from delta_py.row_rules.write_state import write_state
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats_columns import with_added_paths
from delta_py.types.schema import StructType
from delta_py.write.data_files import WrittenFiles, delete_files_on_failure
from delta_py.write.file_compaction import for_compaction
from delta_py.write.rewrite import Rewrite

OPERATION = "REMOVE COLUMN MAPPING"
_TARGETS_OF_A_BATCH = 32  # about how many new files a batch has: many, so that threads rarely wait for its last file


def check_names(schema: StructType) -> None:
    """Raises SchemaMismatchError for names that columns of files cannot have, at any depth."""
    names = names_needing_mapping(schema)
    if names:
        raise SchemaMismatchError(
            f"Column mapping cannot be turned off while names of columns have any of the characters {INVALID_CHARACTERS!r}: "
            f"{', '.join(map(repr, names))}. Nothing was changed. Rename the columns first, and then set {MODE_PROPERTY} to "
            "none.",
            error_class="DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
            sql_state="42K05",
            columns=names,
        )


def commit_removal(transaction: Transaction, snapshot: Snapshot) -> int:
    """Rewrite all rows of the snapshot and commit; returns the version. transaction: one on the snapshot, with the metadata
    that the table has without mapping.

    Memory: as OPTIMIZE of one batch, and the actions of the single commit: a remove for each old file, and an add for each new
    one.
    Raises DeltaConcurrentModificationException if another writer was faster, what reading raises, and RowCountMismatchError for
    files whose row count is wrong; no new files remain then.
    """
    new_config = transaction.config
    compaction, writers = _AllFiles.for_new_config(snapshot, new_config), LocalBinWriters()
    domains = (*_clustering_by_logical_names(snapshot), *_indexes_without_segments(snapshot))
    batches = batch_bins(compaction.choose().files, _TARGETS_OF_A_BATCH * compaction.target_bytes)
    with delete_files_on_failure(compaction.rewrite.state):  # deletes the files of all batches: they have the same write id
        written_parts = [written_part for bins in batches for written_part in compaction.write(writers, bins)]
    all_files = WrittenFiles.of_all(written_parts)
    for domain in domains:
        transaction.set_domain(domain)
    transaction.add(all_files).replaces_all_files(remove.path for remove in all_files.removes)
    version = transaction.commit(OPERATION, {}, metrics=history_metrics(count_changes(written_parts)))
    index_new_files(snapshot.store, new_config, version, all_files)
    return version


class _AllFiles(Compaction):
    """The compaction that rewrites every file, whatever its size. Compaction explains the methods that this class overrides."""

    @classmethod
    def for_new_config(cls, snapshot: Snapshot, new_config: TableConfig) -> Self:
        """The rewrite of all files of the snapshot. new_config: the table without mapping, for which the new files are
        written."""
        state = write_state(new_config, snapshot.store, snapshot.version, new_rows=False)
        clustering_paths = [
            path for domain in _clustering_by_logical_names(snapshot) for path in clustering_leaves(new_config.schema, domain)
        ]
        state = replace(state, stats_columns=with_added_paths(state.stats_columns, clustering_paths))
        compaction = cls.of(snapshot, OptimizeRequest())
        compaction.rewrite = for_compaction(Rewrite.of(snapshot.config, state, change_data=False))
        return compaction

    def _select_candidates(self, files: pa.Table, limit: int) -> pa.ChunkedArray:
        return pa.chunked_array([pa.array(np.ones(files.num_rows, np.bool_))])

    def _select_worthwhile_bins(self, files: pa.Table, bins: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
        return pa.array(np.ones(len(bins), np.bool_))

    def _new_partition_names(self) -> Sequence[str]:
        return [field.name for field in self.snapshot.config.partition_fields]


# ---------------------------------------------------------------- domains that name columns by their physical paths


def _clustering_by_logical_names(snapshot: Snapshot) -> tuple[DomainMetadata, ...]:
    """The metadata domain that lists the clustering columns, here by the columns' own names; empty if the table is not
    clustered."""
    domain = snapshot.clustering_domain()
    return () if domain is None else (with_logical_names(snapshot.schema, domain),)


def _indexes_without_segments(snapshot: Snapshot) -> Iterator[DomainMetadata]:
    """The domains of the indexes, with their columns' own names and without segments, because segments describe the old files. An
    index of a dropped column is removed."""
    for definition in definitions_of(snapshot.domain_metadata())[0]:
        column = find_indexed_column(snapshot.config, definition)
        if column is None:
            yield definition.as_domain(removed=True)
        else:
            yield replace(definition, column=column, segments=()).as_domain()
