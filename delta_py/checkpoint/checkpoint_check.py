"""Compare a checkpoint with the other records of its version: the version checksum and `_last_checkpoint`.

A checkpoint may be valid Parquet and still lack files, or name files twice. Both records hold the number of files. If one of them
agrees with the Parquet footers, nothing more is read. If neither agrees, the reader looks for repeated files when it first reads
files, and counts each of them once.
Protocol: Checkpoints; Version Checksum File; Last Checkpoint File Schema.
"""

from __future__ import annotations

from delta_py.log.checkpoint_content.checkpoint_files import CheckpointUnreadableError
from delta_py.log.checkpoint_content.checkpoint_reader import CheckpointReader
from delta_py.log.checksum import VersionChecksum, read_checksum
from delta_py.log.commit_reader import CommitReader
from delta_py.log.last_checkpoint import LAST_CHECKPOINT_PATH
from delta_py.log.segment import Checkpoint
from delta_py.storage.store import ObjectStore


def open_checkpoint(
    store: ObjectStore, checkpoint: Checkpoint, commits: CommitReader, known_checksum: VersionChecksum | None = None
) -> CheckpointReader:
    """Open a checkpoint, and compare its number of files with the other records of its version.

    known_checksum: a checksum that was already read. It is not read again if it belongs to the checkpoint's version.
    Raises CheckpointUnreadableError as CheckpointReader does. Also raises it if the number of distinct files differs from the
    version's checksum, or from `_last_checkpoint` if there is no checksum.
    """
    reader = CheckpointReader(checkpoint, commits)
    record, file_count = _recorded_files(store, checkpoint, known_checksum)
    if file_count is None:  # compare the number of all actions instead, if `_last_checkpoint` and the footers have it
        action_count = None if checkpoint.hint is None else checkpoint.hint.action_count
        reader.names_each_file_once = action_count is not None and action_count == reader.action_count
    elif reader.file_count == file_count:
        reader.names_each_file_once = True
    elif (distinct_count := reader.count_files()) != file_count:
        why = f"it holds {distinct_count} files, but {record} says {file_count}"
        advice = "delete that, if you know that the checkpoint is complete"
        raise CheckpointUnreadableError.of(checkpoint.files[0].path, f"{why} ({advice})")
    return reader


def _recorded_files(store: ObjectStore, checkpoint: Checkpoint, known_checksum: VersionChecksum | None) -> tuple[str, int | None]:
    """The name of the record that holds the version's file count, and the count. The count is None if no record holds it."""
    if (file := checkpoint.checksum) is not None:
        checksum = (
            known_checksum if known_checksum is not None and known_checksum.path == file.path else read_checksum(store, file)
        )
        if checksum is not None:
            return f"the version checksum {checksum.path}", checksum.file_count
    return LAST_CHECKPOINT_PATH, None if checkpoint.hint is None else checkpoint.hint.file_count
