"""The tombstones in a log: removed files, and when they were removed.

Tombstones are not reconciled with adds: a file that was added again still has its tombstone. A caller that deletes files must
exclude the live files first.
Protocol: Add File and Remove File.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from delta_py.log.checkpoint_content.checkpoint_reader import CheckpointReader
from delta_py.log.checkpoint_content.checkpoint_rows import Columns, removes_from_json, removes_of_part
from delta_py.log.checkpoint_content.parquet_part import ParquetPart
from delta_py.log.commit_reader import DELETION_VECTOR_TYPE, CommitReader
from delta_py.log.reconciliation import replay
from delta_py.log.segment import LogFile, LogSegment
from delta_py.protocol.paths import decode_paths

# path: decoded, canonical. deletion_timestamp: ms since 1970; size: bytes. Each is null if the writer recorded no value.
TOMBSTONE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("deletion_vector", DELETION_VECTOR_TYPE),
        ("deletion_timestamp", pa.int64()),
        ("size", pa.int64()),
    ]
)


def tombstones(segment: LogSegment, commits: CommitReader, checkpoint: CheckpointReader | None) -> Iterator[pa.RecordBatch]:
    """The tombstones of the commits after the checkpoint, then those of the checkpoint, in batches of TOMBSTONE_SCHEMA.

    checkpoint: the one with which the segment begins; None if it has none. It omits files that were removed longer ago than
    delta.deletedFileRetentionDuration. Raises CheckpointUnreadableError, CorruptTableError.
    """
    for file, rows in replay(segment, commits, commits.file_rows):
        for piece in rows:
            yield _tombstone_batch(removes_from_json(file, piece.removes))
    for part in [] if checkpoint is None else [*checkpoint.top_parts, *checkpoint.sidecars]:
        if isinstance(part, ParquetPart):
            yield from map(_tombstone_batch, removes_of_part(part))
        else:
            yield from (_tombstone_batch(removes_from_json(part.file, rows.removes)) for rows in part.file_rows())


def tombstones_of_commit(commits: CommitReader, file: LogFile) -> Iterator[pa.RecordBatch]:
    """The tombstones of one commit, in the form that `tombstones` returns."""
    return (_tombstone_batch(removes_from_json(file, piece.removes)) for piece in commits.file_rows(file))


def _tombstone_batch(columns: Columns) -> pa.RecordBatch:
    """Columns of removes as TOMBSTONE_SCHEMA."""
    arrays = [decode_paths(columns["path"]), columns["deletionVector"], columns["deletionTimestamp"], columns["size"]]
    return pa.RecordBatch.from_arrays(arrays, schema=TOMBSTONE_SCHEMA)
