"""REORG ... APPLY (PURGE): remove rows that deletion vectors deleted, and columns that were dropped, from the data files.

    optimize(store, OptimizeRequest("day < date'2024-01-01'"), LocalBinWriters(), kind=Purge).metrics()

Files with a deletion vector are rewritten without the deleted rows, and files with columns that the schema does not have any more
are rewritten without these columns; the others stay as they are. The old files exist until VACUUM deletes them, and earlier
versions stay readable until then. It is OPTIMIZE (optimize.py) with another choice of files, and runs as well next to other
writers.
Protocol: Deletion Vectors; Column Mapping; Add File and Remove File.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_py.errors import DataFileError, StorageError
from delta_py.optimize.optimize import LocalBinWriters, optimize
from delta_py.optimize.optimize_bins import Compaction, OptimizeRequest
from delta_py.parquet.unknown_columns import UnknownColumns
from delta_py.storage.storage_errors import raises_storage_errors
from delta_py.storage.store import ObjectStore

_FOOTER_READERS = 16  # threads


class Purge(Compaction):
    """The compaction that rewrites each file with deleted rows or dropped columns, however large. Reads the footers of all files
    without a deletion vector, many in parallel."""

    operation = "REORG"

    def _select_candidates(self, files: pa.Table, limit: int) -> pa.ChunkedArray:
        """For each file, whether it has a deletion vector, or columns that the table does not have. Raises DataFileError."""
        has_vector = files["deletion_vector"].is_valid()
        unmarked_files = files.filter(pc.invert(has_vector))
        return pc.or_(has_vector, pc.is_in(files["path"], self._find_unknown_columns(unmarked_files)))

    def _find_unknown_columns(self, files: pa.Table) -> pa.Array:
        """The paths of the files that hold columns which the table does not have."""
        return self._select_by_footer(files, UnknownColumns.of(self.snapshot.config).are_in)

    def _select_by_footer(self, files: pa.Table, fulfils_condition: Callable[[pq.ParquetFile], bool]) -> pa.Array:
        """The paths of the files whose footers fulfil the condition."""
        store = self.snapshot.store
        paths, sizes = files["path"].to_pylist(), files["size"].to_pylist()
        with ThreadPoolExecutor(_FOOTER_READERS, "delta_py-reorg") as pool:
            is_selected = list(pool.map(lambda path, size: _footer_fulfils(store, path, size, fulfils_condition), paths, sizes))
        return files["path"].combine_chunks().filter(pa.array(is_selected, pa.bool_()))

    def _select_worthwhile_bins(self, files: pa.Table, bins: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
        """Every chosen file must be rewritten, also if it is alone in its bin."""
        return pa.array(np.ones(len(bins), np.bool_))

    def _parameters(self) -> dict[str, Any]:
        return {"predicate": self._predicate_texts(), "applyPurge": True}

    def _tags(self) -> dict[str, str]:
        return {}  # small files stay candidates for OPTIMIZE


def _footer_fulfils(store: ObjectStore, path: str, size: int, fulfils_condition: Callable[[pq.ParquetFile], bool]) -> bool:
    """Whether a file fulfils a condition on its footer. fulfils_condition: gets the opened file, whose rows are not read. Raises
    DataFileError."""
    try:
        with store.open_input(path, size) as source, pq.ParquetFile(source) as file:
            return fulfils_condition(file)
    except FileNotFoundError as error:
        raise DataFileError(
            f"The data file {path} of the table at {store.root} is missing. VACUUM or another program deleted it. Nothing was "
            "changed. Restore it from a backup, or look with fsck what else is missing.",
            path=path,
        ) from error
    except (OSError, pa.ArrowException, StorageError) as error:
        raise DataFileError(
            f"The footer of the data file {path} of the table at {store.root} cannot be read: {error}. Which columns it holds is "
            "not known. Nothing was changed. Restore the file from a backup.",
            error_class="FAILED_READ_FILE.NO_HINT",
            sql_state="KD001",
            path=path,
        ) from error


# ---------------------------------------------------------------- without Spark


@raises_storage_errors(lambda reorg: reorg.store.root)
@dataclass(frozen=True, slots=True)
class TableReorg:
    """`DeltaTable.reorg`: REORG TABLE on the table's newest version, in threads of this process."""

    store: ObjectStore
    time_zone: str = "UTC"

    def purge(self, filter: str | None = None, *, batch_bytes: int | None = None) -> dict[str, Any]:
        """Rewrite files without their deleted rows and dropped columns; returns metrics by delta-spark's names.

        filter: SQL over partition columns. batch_bytes: about the size of the files that one commit replaces; None for one commit
        of all. Raises as `optimize`, and DataFileError for files that cannot be read.
        """
        request = OptimizeRequest(filter, batch_bytes=batch_bytes, time_zone=self.time_zone)
        return optimize(self.store, request, LocalBinWriters(), kind=Purge).metrics()
