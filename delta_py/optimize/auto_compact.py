"""Auto compaction: after a commit that left many small files, it merges the small files of a partition into a few larger ones.

    compact_if_due(store, transaction.config, version, written, request.auto_compact)

The table's property delta.autoOptimize.autoCompact or the session enables it. It runs in the process that commits, in threads, as
a separate commit of a bounded size. Its failures are logged, not raised: the commit before it stands.

Most commits do not list the table's files: the version checksum tells their number, and each process remembers how many small
ones it saw, and adds its own. A process that has not listed the files yet does so at every tenth version, too. A process that has
listed them compares, at these versions, the number of files with the number that it knows: the difference are files of other
writers, which may be small.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.commit.post_commit import logging_failures
from delta_py.commit.table_cache import READ_EVERY_VERSIONS, CountPerTable, table_key
from delta_py.definition.request import AutoCompact
from delta_py.errors import DeltaConcurrentModificationException
from delta_py.log.catalog_contract import Maintenance, is_forbidden
from delta_py.log.checksum import read_checksum_of
from delta_py.optimize.optimize import LocalBinWriters
from delta_py.optimize.optimize_bins import ChosenBins, Compaction, OptimizeRequest, batch_bins
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.planning import plan_scan
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.write.data_files import WrittenFiles

_log = logging.getLogger("delta_py")

_MOST_REWRITTEN_BYTES = 2 << 30  # about the bytes of small files that one auto compaction rewrites

# The small files of the partition that had most of them when this process listed the files, if it has, and those that it has
# added since.
_small_files = CountPerTable()

# The number of a table's files plus this offset is the greatest possible number of small files. The offset is the number of small
# files when this process listed them, minus that of all files at that time, minus that of large files that it has added since.
_small_count_offsets = CountPerTable()


def compact_if_due(
    store: ObjectStore, config: TableConfig, version: int, written: WrittenFiles, settings: AutoCompact
) -> int | None:
    """Compact small files if auto compaction is enabled and there are enough of them. Called after the commit of `version`, which
    added `written`. config: the table at that version. Returns the version of the compaction, or None if there was none. Raises
    nothing, unless PYDELTA_POST_COMMIT_ERRORS is set.
    """
    with logging_failures(store, version, "small files were not compacted"):
        is_allowed = written.adds and settings.is_on(config) and not is_forbidden(store, Maintenance.REORGANIZATION)
        if is_allowed and _is_due(store, config, version, written, settings):
            return _compact(store, settings)
    return None


def _is_due(store: ObjectStore, config: TableConfig, version: int, written: WrittenFiles, settings: AutoCompact) -> bool:
    """Whether some partition may have enough small files."""
    # added_small_count: small files that this commit added.
    key, added_small_count = table_key(store, config), sum(add.size_bytes < settings.min_file_bytes for add in written.adds)
    small_count = _small_files.add(key, added_small_count)
    offset = _small_count_offsets.add(key, added_small_count - len(written.adds))
    if small_count is None:  # this process has not listed the files yet
        small_count = added_small_count
        _small_files.put(key, added_small_count)
    # Files of other processes are not counted, so look at the table from time to time.
    if small_count < settings.min_files and version % READ_EVERY_VERSIONS:
        return False
    checksum = read_checksum_of(store, version)
    # The table's number of files bounds the number of small files, which the offset makes tighter.
    if offset is None or small_count >= settings.min_files:
        return checksum is None or checksum.file_count >= settings.min_files
    return checksum is not None and checksum.file_count + offset >= settings.min_files


def _compact(store: ObjectStore, settings: AutoCompact) -> int | None:
    """Compact one batch of bins, and store in this process's counts how many small files remain. Returns the version; None if
    nothing was committed."""
    snapshot = Snapshot.load(store)
    request = OptimizeRequest(target_file_bytes=settings.max_file_bytes, min_file_bytes=settings.min_file_bytes)
    compaction = AutoCompaction.of(snapshot, request).with_min_files(settings.min_files)
    chosen = compaction.choose()
    key, bin_count = table_key(store, snapshot.config), len(pc.unique(chosen.files["bin"]))
    # The number of small files in the partition that has most of them, after this compaction. It counts as 0 if partitions are
    # compacted, although others may have a few.
    small_count = 0 if bin_count else compaction.largest_count
    file_count = chosen.considered - chosen.files.num_rows + bin_count
    _small_files.put(key, small_count)
    _small_count_offsets.put(key, small_count - file_count)
    bins = next(batch_bins(chosen.files, _MOST_REWRITTEN_BYTES), None)
    if bins is None:
        return None
    written = compaction.write(LocalBinWriters(), bins)
    try:
        version: int | None = compaction.commit(bins, written).get("version")
    except DeltaConcurrentModificationException as error:  # another writer was faster; the next commit tries again
        _log.info("%s: an auto compaction was not committed: %s", store.root, error.message)
        return None
    return version


class AutoCompaction(Compaction):
    """Compacts the small files of partitions that have enough of them. min_files: the number that is enough. largest_count: after
    choose, the number of small files in the partition that has most of them.
    """

    min_files: int
    largest_count: int

    def with_min_files(self, min_files: int) -> AutoCompaction:
        """Set the number of small files from which a partition is compacted, and return this compaction."""
        self.min_files, self.largest_count = min_files, 0
        return self

    def choose(self) -> ChosenBins:
        """Choose the small files that are not clustered, in partitions with enough of them, and divide them into bins."""
        files = plan_scan(self.snapshot, None, None, self._scan_options).files
        considered = files.num_rows
        is_small = pc.less(files["size"], self.request.min_file_bytes)
        files = files.filter(pc.and_(is_small, files["clustering_provider"].is_null()))
        groups = self._partition_numbers(files)
        counts = np.bincount(groups) if len(groups) else np.zeros(1, np.int64)
        self.largest_count = int(counts.max())
        files = files.filter(pa.array(counts[groups] >= self.min_files))
        return ChosenBins(self._pack_bins(files), considered)

    def _parameters(self) -> dict[str, Any]:
        return {**super()._parameters(), "auto": True}
