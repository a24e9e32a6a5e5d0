"""Files of one version, numbered by their index, and which of them a stream reads.

Indexes do not depend on `filter` and similar options: a stream can continue from an index with other options than before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.protocol.paths import encode_paths
from delta_py.scan.file_pruner import FilePruner
from delta_py.statistics.stats import parse_stats

_FILES_AT_ONCE = 8_192
_PLACE = "place"


class VersionFiles(Protocol):
    """The files that a stream reads of one version, each with its index: the initial files, the added files of a commit, or the
    changes of a commit. is_whole: whether all of them must be in one batch."""

    @property
    def is_whole(self) -> bool: ...

    @property
    def last_change(self) -> int | None:
        """The index of a feed's last change, whether the stream reads it or not; None if there is none, and for
        streams of rows."""

    def indexes_and_sizes(self, first_index: int) -> Iterator[tuple[Any, Any]]:
        """(indexes, sizes in bytes) of the files to read, from the index `first_index` on, in pieces, ascending."""


@dataclass(frozen=True, slots=True)
class FileChoice:
    """Which files to read: those that may hold a row of pruner's predicate. exclude: an RE2 pattern; a file is left out if
    the pattern matches a part of its percent-encoded path, as in delta-spark's streams."""

    pruner: FilePruner
    exclude: str | None

    @property
    def needs_stats(self) -> bool:
        return bool(self.pruner.stats_leaves)

    def choose(self, files: pa.RecordBatch) -> pa.RecordBatch:
        """Those of the files that the stream reads."""
        if self.exclude is not None:
            files = files.filter(pc.invert(pc.match_substring_regex(encode_paths(files["path"]), self.exclude)))
        stats = parse_stats(files["stats"], self.pruner.stats_leaves) if self.needs_stats else None
        return self.pruner.prune(files, stats)


@dataclass(frozen=True, slots=True)
class NumberedFiles:
    """Data files that are numbered by their index, in the order in which a stream reads them. Implements VersionFiles."""

    files: pa.Table
    choice: FileChoice

    @property
    def is_whole(self) -> bool:
        return False

    @property
    def last_change(self) -> None:
        return None

    def indexes_and_sizes(self, first_index: int) -> Iterator[tuple[Any, Any]]:
        """(indexes, sizes in bytes) of the files to read, from the index `first_index` on, in pieces, ascending."""
        for batch in self.files.slice(first_index).to_batches(max_chunksize=_FILES_AT_ONCE):
            indexes = pa.array(np.arange(first_index, first_index + batch.num_rows))
            chosen_files = self.choice.choose(batch.append_column(_PLACE, indexes))
            yield chosen_files[_PLACE].to_numpy(), chosen_files["size"].to_numpy()
            first_index += batch.num_rows

    def batches(self, first_index: int, stop: int | None) -> Iterator[pa.RecordBatch]:
        """The files to read from the index `first_index` up to `stop` (exclusive)."""
        length = None if stop is None else max(0, stop - first_index)
        for batch in self.files.slice(first_index, length).to_batches(max_chunksize=_FILES_AT_ONCE):
            chosen_files = self.choice.choose(batch)
            if chosen_files.num_rows:
                yield chosen_files
