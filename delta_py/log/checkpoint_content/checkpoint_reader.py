"""Read checkpoints of every kind into Arrow batches of files, and read their few other actions.

A thread decodes the next batch while the caller works on the current one.
Protocol: Checkpoints; Checkpoint Schema; V2 Spec; Sidecar File Information.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from delta_py.errors import CorruptTableError, StorageError, shown
from delta_py.log.checkpoint_content.checkpoint_files import CheckpointUnreadableError, RawFiles, RequestedStats
from delta_py.log.checkpoint_content.json_part import JsonPart
from delta_py.log.checkpoint_content.parquet_part import ParquetPart, sum_if_known
from delta_py.log.commit_reader import CommitReader
from delta_py.log.file_keys import NO_KEYS, keys_of, path_of, repeated_keys
from delta_py.log.segment import Checkpoint, LogFile
from delta_py.prefetch import prefetch
from delta_py.protocol.paths import SIDECAR_DIRECTORY, LogKind, decode_path
from delta_py.storage.store import ObjectInfo

_log = logging.getLogger("delta_py")

Part: TypeAlias = ParquetPart | JsonPart


class CheckpointReader:
    """One opened checkpoint. The constructor reads the footers (or the JSON top level) and checks that all sidecars exist.

    Raises CheckpointUnreadableError with the name of the file, from the constructor if possible.
    """

    def __init__(self, checkpoint: Checkpoint, commits: CommitReader) -> None:
        self.checkpoint, self._table_root = checkpoint, commits.objects.store.root
        # top_parts: the checkpoint's own files, in `_delta_log`. sidecars: the files that they name.
        self.top_parts: list[Part] = [_open_part(file, commits) for file in checkpoint.files]
        infos = {
            info.path: info for info in map(self.sidecar_of, self.rows("sidecar"))
        }  # a sidecar that is named twice counts once
        self.sidecars = [_open_sidecar(info, commits) for info in _with_listed_times(infos, commits)]
        may_hold_files = any(isinstance(part, JsonPart) or "add" in part.schema.names for part in self.top_parts)
        # A V2 checkpoint of an empty table may have neither sidecars nor a column add.
        if not (may_hold_files or self.sidecars or checkpoint.kind is LogKind.CHECKPOINT_V2):
            raise CheckpointUnreadableError.of(checkpoint.files[0].path, "it has no column add")
        self.names_each_file_once = False  # set by open_checkpoint if known; otherwise the keys are compared

    @cached_property
    def file_count(self) -> int | None:
        """The number of adds, from the footers; None if the footers do not have it."""
        return sum_if_known(part.file_count for part in (*self.top_parts, *self.sidecars))

    @property
    def action_count(self) -> int | None:
        """The number of actions, from the footers; None if the top level is JSON."""
        return sum_if_known(None if isinstance(part, JsonPart) else part.row_count for part in (*self.top_parts, *self.sidecars))

    def count_files(self) -> int:
        """The number of distinct files. Reads the paths and deletion vectors of all files."""
        return self._count_and_repeated[0]

    @property
    def repeated_keys(self) -> pa.Array:
        """The keys (file_keys.py) of files that the checkpoint names more than once. Reads the keys of all files, unless it is
        known that each file is named once."""
        return NO_KEYS if self.names_each_file_once else self._count_and_repeated[1]

    @cached_property
    def _count_and_repeated(self) -> tuple[int, pa.Array]:
        """The number of distinct keys, and the keys that occur more than once."""
        count, repeated = repeated_keys(lambda: (keys_of(raw.files) for raw in self.files(RequestedStats())))
        if len(repeated):
            text = "%s: the checkpoint of version %d names %d files more than once; they count once: %s"
            shown_keys = [path_of(key) for key in repeated.slice(0, 3).to_pylist()]
            _log.warning(text, self._table_root, self.checkpoint.version, len(repeated), shown(shown_keys))
        return count, repeated

    def rows(self, action: str) -> list[dict[str, Any]]:
        """All actions of one kind (not add or remove), as the JSON objects that a commit would hold."""
        return [row for part in self.top_parts for row in part.rows(action)]

    def sidecar_of(self, row: Mapping[str, Any]) -> ObjectInfo:
        """The file that a sidecar action names. It is always in the table's own directory, although some writers write a whole
        URI before the name."""
        path = row.get("path")
        size, time = (number if isinstance(number := row.get(name), int) else 0 for name in ("sizeInBytes", "modificationTime"))
        fault = CheckpointUnreadableError.of(self.checkpoint.files[0].path, f"a sidecar's path is {shown(path)}")
        if not isinstance(path, str):
            raise fault
        try:
            return ObjectInfo(f"{SIDECAR_DIRECTORY}/{decode_path(path).rpartition('/')[2]}", size, time)
        except CorruptTableError as error:
            raise fault from error

    def files(self, requested_stats: RequestedStats) -> Iterator[RawFiles]:
        """All add actions, batch by batch."""
        return prefetch(batch for part in [*self.top_parts, *self.sidecars] for batch in part.files(requested_stats))


def _with_listed_times(infos: Mapping[str, ObjectInfo], commits: CommitReader) -> list[ObjectInfo]:
    """The sidecars with the times and etags that the store lists. infos: path -> what the sidecar actions say.

    The cache of remote files identifies a sidecar by the time and etag in the listing. The times in the sidecar actions are not
    enough, because a checkpoint that replaced another may name sidecars of the same names, sizes and times. A sidecar that is not
    listed gets the time 0, with which the cache does not keep it. If the directory cannot be listed, this holds for all sidecars.
    """
    objects, listed_infos = commits.objects, dict[str, ObjectInfo]()
    if infos and (objects.has_cache or not objects.store.is_remote):
        first = min(infos).rpartition("/")[2]
        try:
            listed_infos = {info.path: info for info in objects.store.list_from(SIDECAR_DIRECTORY, first) if info.path in infos}
        except (StorageError, OSError) as error:
            _log.debug("the sidecars of %s are not cached: %s", objects.store.root, error)
    unlisted = {path: replace(info, modification_time_ms=0) for path, info in infos.items()}
    return [replace(listed_infos.get(path, info), size_bytes=info.size_bytes) for path, info in unlisted.items()]


def _open_sidecar(info: ObjectInfo, commits: CommitReader) -> ParquetPart:
    """Open a sidecar. info: its size is 0 if the sidecar action has none. Raises CheckpointUnreadableError if the file has
    another size than the action says: then it may have other content."""
    part = ParquetPart(commits.objects, info)
    if info.size_bytes and part.size_bytes != info.size_bytes:
        raise CheckpointUnreadableError.of(
            part.path, f"it has {part.size_bytes} bytes, but its sidecar action says {info.size_bytes}"
        )
    return part


def _open_part(file: LogFile, commits: CommitReader) -> Part:
    return JsonPart(file, commits) if file.path.endswith(".json") else ParquetPart(commits.objects, file.info)
