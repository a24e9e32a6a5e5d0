"""Auto compaction: after a commit that left many small files, those of a partition become few larger ones.

    compact_if_due(store, transaction.config, version, written, request.auto_compact)

It is on by the table's property delta.autoOptimize.autoCompact or by the session, and runs in the process that commits, in
threads, as a commit of its own of a bounded size. Whatever fails in it is told, not raised: the commit before stands.

Most commits do not look at the table's files: the version checksum says how many there are, and each process remembers how many
small ones it saw, and adds its own. A process that has not looked yet does so at every tenth version, too. One that has looked
asks at these how many files there are more than it knows of: others may have added them, and they may be small.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.commit.post_commit import harmless
from delta_py.commit.table_cache import LOOK_EVERY, CountPerTable, table_key
from delta_py.definition.request import AutoCompact
from delta_py.errors import DeltaConcurrentModificationException
from delta_py.log.checksum import read_checksum_of
from delta_py.optimize.optimize import LocalBinWriters
from delta_py.optimize.optimize_bins import ChosenBins, Compaction, OptimizeRequest, batches_of
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.planning import plan_scan
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.write.data_files import WrittenFiles

_log = logging.getLogger("delta_py")

_MOST_BYTES = 2 << 30

# The small files of the partition that had most when this process looked, if it has, and those that it has added since.
_small_files = CountPerTable()

# What added to the number of a table's files gives the most small ones that there can be by now: those that were small when this
# process looked, less all that there were then, and less the large ones that it has added since.
_by_others = CountPerTable()


def compact_if_due(
    store: ObjectStore, config: TableConfig, version: int, written: WrittenFiles, asked: AutoCompact
) -> int | None:
    """After the commit of `version`, which added `written`. config: of that version. Returns the version of the compaction, None
    where there was none. Raises nothing, unless PYDELTA_POST_COMMIT_ERRORS asks for it."""
    with harmless(store, version, "small files were not compacted"):
        if written.adds and asked.is_on(config) and _is_due(store, config, version, written, asked):
            return _compact(store, asked)
    return None


def _is_due(store: ObjectStore, config: TableConfig, version: int, written: WrittenFiles, asked: AutoCompact) -> bool:
    """Whether some partition may have as many small files as are wanted."""
    key, added = table_key(store, config), sum(add.size_bytes < asked.min_file_bytes for add in written.adds)
    known, others = _small_files.add(key, added), _by_others.add(key, added - len(written.adds))
    if known is None:
        known = added
        _small_files.put(key, added)
    if known < asked.min_files and version % LOOK_EVERY:
        return False
    checksum = read_checksum_of(store, version)
    if others is None or known >= asked.min_files:
        return checksum is None or checksum.file_count >= asked.min_files
    return checksum is not None and checksum.file_count + others >= asked.min_files


def _compact(store: ObjectStore, asked: AutoCompact) -> int | None:
    snapshot = Snapshot.load(store)
    request = OptimizeRequest(target_file_bytes=asked.max_file_bytes, min_file_bytes=asked.min_file_bytes)
    compaction = AutoCompaction.of(snapshot, request).wanting(asked.min_files)
    chosen = compaction.choose()
    key, new = table_key(store, snapshot.config), len(pc.unique(chosen.bins["bin"]))
    _small_files.put(key, 0 if new else compaction.largest)
    _by_others.put(key, (0 if new else compaction.largest) - (chosen.considered - chosen.bins.num_rows + new))
    bins = next(batches_of(chosen.bins, _MOST_BYTES), None)
    if bins is None:
        return None
    written = compaction.write(LocalBinWriters(), bins)
    try:
        version: int | None = compaction.commit(bins, written).get("version")
    except DeltaConcurrentModificationException as error:  # whoever was quicker leaves it to the next commit
        _log.info("%s: an auto compaction was not committed: %s", store.root, error.message)
        return None
    return version


class AutoCompaction(Compaction):
    """Takes the small files of partitions that have enough of them. largest: after choose, the most that a partition has."""

    min_files: int
    largest: int

    def wanting(self, min_files: int) -> AutoCompaction:
        self.min_files, self.largest = min_files, 0
        return self

    def choose(self) -> ChosenBins:
        files = plan_scan(self.snapshot, None, None, self._scan_options).files
        considered = files.num_rows
        is_small = pc.less(files["size"], self.request.min_file_bytes)
        files = files.filter(pc.and_(is_small, files["clustering_provider"].is_null()))
        groups = self._partition_numbers(files)
        counts = np.bincount(groups) if len(groups) else np.zeros(1, np.int64)
        self.largest = int(counts.max())
        files = files.filter(pa.array(counts[groups] >= self.min_files))
        return ChosenBins(self._in_bins(files), considered)

    def _parameters(self) -> dict[str, Any]:
        return {**super()._parameters(), "auto": True}
