"""Checkpoints: the whole state of a version as Parquet, so that readers need not read the commits before it.

    written = write_checkpoint(store, LogWriter(store, config), segment, now_ms=...)

A classic checkpoint is one file, which is stored when it is complete. With the policy `v2`, file actions go to sidecars
(checkpoint_v2.py). If an older checkpoint turns out to be unreadable, the writer falls back to the one before it. At the end,
`_last_checkpoint` points to the new checkpoint.
A commit of 0 bytes does not prevent a checkpoint. It has no actions, and a checkpoint holds reconciled actions, so readers of
the checkpoint and readers of the commits see the same state. No action shows whether the commit once had more content.
Protocol: Checkpoints; V1 Spec; Checkpoint Naming Scheme; Last Checkpoint File.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from delta_py.checkpoint.checkpoint_check import open_checkpoint
from delta_py.checkpoint.checkpoint_file import RowFile, WrittenCheckpoint, as_rows, rows_of_state
from delta_py.checkpoint.checkpoint_state import FileState
from delta_py.checkpoint.checkpoint_v2 import write_v2_checkpoint
from delta_py.errors import CorruptTableError, DeltaError
from delta_py.log.checkpoint_content.checkpoint_files import CheckpointUnreadableError
from delta_py.log.checkpoint_content.checkpoint_rows import (
    DOMAIN_TYPE,
    METADATA_TYPE,
    PROTOCOL_TYPE,
    REMOVE_TYPE,
    TXN_TYPE,
    RowShape,
)
from delta_py.log.commit_reader import CommitReader
from delta_py.log.log_writer import LogWriter
from delta_py.log.reconciliation import StateWithoutFiles, protocol_and_metadata, transactions_and_domains
from delta_py.log.segment import LogSegment, load_segment
from delta_py.prefetch import prefetch
from delta_py.protocol.intervals import DELETED_FILE_RETENTION, SET_TRANSACTION_RETENTION, interval_property, retention_ms
from delta_py.protocol.paths import classic_checkpoint_name
from delta_py.protocol.table_config import TableConfig
from delta_py.storage.store import ObjectStore

_log = logging.getLogger("delta_py")


def write_checkpoint(store: ObjectStore, writer: LogWriter, segment: LogSegment, *, now_ms: int) -> WrittenCheckpoint:
    """Write the checkpoint of the segment's version, following the table's checkpoint policy.

    now_ms: the time that decides which tombstones are expired.
    The checkpoint may be written again, and two writers may write it at once. Raises CorruptTableError if the state cannot be
    rebuilt, and OSError if the checkpoint cannot be stored. Both leave the table unchanged.
    """
    unusable: frozenset[str] = frozenset()  # the files of the older checkpoints that could not be read
    while True:
        try:
            written = _write_by_policy(store, writer, segment, now_ms)
            break
        except CheckpointUnreadableError as error:
            if segment.checkpoint is None:
                raise
            unusable |= {file.path for file in segment.checkpoint.files}
            segment = _without_unusable(store, segment, unusable, error)
    try:
        writer.put_last_checkpoint(written.version, written.hint)
    except (OSError, DeltaError) as error:  # _last_checkpoint is only a hint
        _log.warning("%s: checkpoint %d is written, but _last_checkpoint is not: %s", store.root, written.version, error)
    return written


def _without_unusable(
    store: ObjectStore, segment: LogSegment, unusable: frozenset[str], error: CheckpointUnreadableError
) -> LogSegment:
    """The segment of the same version without the unusable checkpoints. Raises `error` if the version cannot be rebuilt without
    them."""
    try:
        older_segment = load_segment(store, segment.version, unusable=unusable)
    except CorruptTableError:
        raise error from None
    _log.warning("%s: a checkpoint is skipped while a new one is written: %s", store.root, error.message)
    return older_segment


def _write_by_policy(store: ObjectStore, writer: LogWriter, segment: LogSegment, now_ms: int) -> WrittenCheckpoint:
    """Write the checkpoint in the form that the table's policy requires. Raises CheckpointUnreadableError if the segment's older
    checkpoint cannot be read."""
    commits = CommitReader(store, uses_cache=False)
    # The older checkpoint, with which the segment begins.
    older_checkpoint = None if segment.checkpoint is None else open_checkpoint(store, segment.checkpoint, commits)
    other_actions = protocol_and_metadata(segment, commits, older_checkpoint)
    transaction_state = transactions_and_domains(segment, commits, older_checkpoint)
    if other_actions.protocol is None or other_actions.metadata is None:
        raise CorruptTableError(
            f"No checkpoint of version {segment.version} of the table at {segment.table_root} can be written: its log holds no "
            f"{'protocol' if other_actions.protocol is None else 'metadata'}. Restore the missing files of the log.",
            version=segment.version,
        )
    config = TableConfig(other_actions.protocol, other_actions.metadata)
    other_actions.transactions = _live_transactions(config, transaction_state, now_ms)
    other_actions.domains = transaction_state.domains
    state = FileState(
        segment, commits, older_checkpoint, RowShape.of(config), now_ms - retention_ms(config.properties, DELETED_FILE_RETENTION)
    )
    if uses_v2(config):
        return write_v2_checkpoint(writer, WrittenCheckpoint(segment.version, other_actions), state, RowShape.of(config), now_ms)
    return _write_classic(writer, WrittenCheckpoint(segment.version, other_actions), state, RowShape.of(config))


def uses_v2(config: TableConfig) -> bool:
    """Whether the table's checkpoints are V2. Protocol: V2 Checkpoint Table Feature."""
    return config.feature("v2Checkpoint") and (config.properties.get("delta.checkpointPolicy") or "").lower() == "v2"


def _live_transactions(config: TableConfig, state: StateWithoutFiles, now_ms: int) -> dict[str, Any]:
    """The transaction identifiers (SetTransaction by application) that are within the table's retention time. An identifier
    without a time is always retained."""
    retention = interval_property(config.properties, SET_TRANSACTION_RETENTION, None)
    if retention is None:
        return dict(state.transactions)
    oldest = now_ms - retention  # identifiers of this time or earlier are expired
    transactions = state.transactions.items()
    return {name: txn for name, txn in transactions if txn.last_updated_ms is None or txn.last_updated_ms > oldest}


# ---------------------------------------------------------------- classic


def _write_classic(writer: LogWriter, written: WrittenCheckpoint, state: FileState, shape: RowShape) -> WrittenCheckpoint:
    """Write the checkpoint as one file. written: its version and its actions other than file actions; returned with its counts
    filled in. state: its file actions. shape: the form of the add rows."""
    types = {
        "protocol": PROTOCOL_TYPE,
        "metaData": METADATA_TYPE,
        "txn": TXN_TYPE,
        "domainMetadata": DOMAIN_TYPE,
        "add": shape.add_type,
        "remove": REMOVE_TYPE,
    }
    file = RowFile(types, shape.settings)
    for name, rows in rows_of_state(written.other_actions).items():
        file.write(name, as_rows(rows, types[name]))
    for adds in prefetch(_all_adds(state)):
        written.count_adds(adds)
        file.write("add", adds)
    for removes in state.removes():
        file.write("remove", removes)
    data = file.close()
    writer.put_checkpoint(classic_checkpoint_name(written.version), data)
    written.action_count, written.size_bytes = file.row_count, len(data)
    return written


def _all_adds(state: FileState) -> Iterator[pa.StructArray]:
    """The add rows of all live files, batch by batch: first the files of the commits, then those of the older checkpoint. This
    order is required: only after the commits are read, it is known which files of the checkpoint are still live."""
    yield from state.commit_adds()
    for part in state.parts:
        yield from state.checkpoint_adds(part)
