"""A checkpoint compared with what else is known of its version: the version checksum, and `_last_checkpoint`.

A checkpoint may be sound Parquet and still lack files, or name them twice. Both records tell how many files there are; one that
agrees with the footers costs nothing more. Where none does, the files that come twice are looked for when files are first read,
and count once.
Protocol: Checkpoints; Version Checksum File; Last Checkpoint File Schema.
"""

from __future__ import annotations

from delta_py.log.checkpoint_files import CheckpointUnreadableError
from delta_py.log.checkpoint_reader import CheckpointReader
from delta_py.log.checksum import VersionChecksum, read_checksum
from delta_py.log.commit_reader import CommitReader
from delta_py.log.segment import LAST_CHECKPOINT_PATH, Checkpoint
from delta_py.storage.store import ObjectStore


def open_checkpoint(
    store: ObjectStore, checkpoint: Checkpoint, commits: CommitReader, known: VersionChecksum | None = None
) -> CheckpointReader:
    """known: a checksum that was read already; if it is that of the checkpoint's version, it is not read again.

    Raises CheckpointUnreadableError as CheckpointReader, and for a checkpoint of another number of files than the version's
    checksum, or else `_last_checkpoint`, speaks of, those that come twice counted once.
    """
    reader = CheckpointReader(checkpoint, commits)
    record, file_count = _recorded_files(store, checkpoint, known)
    if file_count is None:
        action_count = None if checkpoint.hint is None else checkpoint.hint.action_count
        reader.names_each_file_once = action_count is not None and action_count == reader.action_count
    elif reader.file_count == file_count:
        reader.names_each_file_once = True
    elif (distinct := reader.count_files()) != file_count:
        why = f"it holds {distinct} files, but {record} says {file_count} (delete that, if you know the checkpoint to be whole)"
        raise CheckpointUnreadableError.of(checkpoint.files[0].path, why)
    return reader


def _recorded_files(store: ObjectStore, checkpoint: Checkpoint, known: VersionChecksum | None) -> tuple[str, int | None]:
    """How many files the version has, and what says so."""
    if (file := checkpoint.checksum) is not None:
        checksum = known if known is not None and known.path == file.path else read_checksum(store, file)
        if checksum is not None:
            return f"the version checksum {checksum.path}", checksum.file_count
    return LAST_CHECKPOINT_PATH, None if checkpoint.hint is None else checkpoint.hint.file_count
