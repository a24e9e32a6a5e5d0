"""FSCK: finds missing and damaged parts of a table, and repairs them.

    fsck(store)                                            # FAULT_SCHEMA, one row a fault; nothing is changed
    fsck(store, check_data=True)                           # reads every page of every live file
    fsck(store, dry_run=False, allow_data_loss=True)

A repair removes files from the table that are missing, or whose deletion vectors are, by a commit named FSCK. If the caller does
not allow the loss of rows, it raises an error, and nothing is changed. It rewrites wrong version checksums and
`_last_checkpoint`, and sets broken checkpoints aside if the log before them still exists. Faults that only a backup can repair,
such as damaged data files, are reported, and left as they are.
Protocol: Add File and Remove File; Checkpoints; Version Checksum File; Last Checkpoint File.
"""

from __future__ import annotations

import logging
import time

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.checkpoint.checkpoint import write_checkpoint
from delta_py.commit.post_commit import compute_checksum
from delta_py.commit.transaction import Transaction
from delta_py.errors import CorruptTableError, DataFileError
from delta_py.log.commit_reader import read_actions
from delta_py.log.log_writer import LogWriter
from delta_py.log.segment import load_segment
from delta_py.progress import progress
from delta_py.repair.file_check import DELETION_VECTOR, FAULT_SCHEMA, faults_table, file_faults
from delta_py.repair.log_check import LogCheck, list_incomplete_parts
from delta_py.scan.file_groups import scan_files
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.write.data_files import WrittenFiles
from delta_py.write.rewrite import remove_action_of

_log = logging.getLogger("delta_py")
_MOST_NAMED_FAULTS = 5  # in a message


def fsck(store: ObjectStore, *, dry_run: bool = True, allow_data_loss: bool = False, check_data: bool = False) -> pa.Table:
    """Check the newest version's files and the log, and repair what can be repaired; returns the faults: FAULT_SCHEMA.

    dry_run: change nothing. allow_data_loss: also remove files from the table if rows are lost by that. check_data: read every
    page of every live file, and compare it with its checksum; damaged files are reported, and never removed from the table.
    Raises DataFileError (DELTA_FILE_NOT_FOUND_DETAILED) for a repair that would lose rows without permission, CorruptTableError
    for a table whose newest version cannot be rebuilt; nothing is changed then. Else as Transaction.commit. An interrupted repair
    does no harm, and continues when it is run again.
    """
    with progress("FSCK", "bytes" if check_data else "files"):
        check = LogCheck(store)
        log_faults = pa.Table.from_batches([faults_table(check.find_faults())], FAULT_SCHEMA)
        faults_of_files = FAULT_SCHEMA.empty_table()
        if check.snapshot is not None:
            faults_of_files = file_faults(check.snapshot, check_data=check_data)
    faults = pa.concat_tables([log_faults, faults_of_files])
    if dry_run:
        return faults
    if check.snapshot is None:
        raise CorruptTableError(
            f"The table at {store.root} cannot be repaired, as its newest version cannot be rebuilt: "
            f"{_reasons_text(log_faults)}. Nothing was changed. Restore the files of the log from a backup."
        )
    repairable = faults_of_files.filter(faults_of_files["can_repair"])
    if not allow_data_loss:
        _check_no_loss(store, faults.filter(faults["can_repair"]))
    if repairable.num_rows:
        check.snapshot.check_last_commit()  # raises if no commit may follow it, before anything is repaired
    _repair_log(check, check.snapshot)
    if repairable.num_rows:
        _remove_files(store, repairable["data_file"])
    unrepaired = faults.filter(pc.invert(faults["can_repair"]))
    if unrepaired.num_rows:
        _log.warning("%s: %d faults cannot be repaired: %s", store.root, unrepaired.num_rows, _reasons_text(unrepaired))
    return faults


def _reasons_text(faults: pa.Table) -> str:
    """The first faults in words, for messages. faults: FAULT_SCHEMA."""
    rows = faults.slice(0, _MOST_NAMED_FAULTS).to_pylist()
    suffix = "" if faults.num_rows <= _MOST_NAMED_FAULTS else f"; and {faults.num_rows - _MOST_NAMED_FAULTS} more"
    return "; ".join(f"{row['path']}: {row['reason']}" for row in rows) + suffix


def _check_no_loss(store: ObjectStore, faults: pa.Table) -> None:
    """Raise DataFileError, unless it is certain that the repair of these faults loses no rows."""
    losing_faults = faults.filter(pc.fill_null(pc.not_equal(faults["rows_lost"], 0), True))
    if not losing_faults.num_rows:
        return
    unknown = losing_faults["rows_lost"].null_count
    rows = pc.sum(losing_faults["rows_lost"]).as_py() or 0
    losses = f"{rows} rows" + (f", and an unknown number for {unknown} more faults" if unknown else "")
    raise DataFileError(
        f"A repair of the table at {store.root} would lose {losses}: {_reasons_text(losing_faults)}. Nothing was changed. "
        "Restore the files from a backup, or the table to a version whose files are all there; or allow that rows are lost "
        "(allow_data_loss=True, in Spark allowDataLoss=True).",
        error_class="DELTA_FILE_NOT_FOUND_DETAILED",
        files=losing_faults["path"].slice(0, 10).to_pylist(),
        rows=rows,
    )


# ---------------------------------------------------------------- the log


def _repair_log(check: LogCheck, snapshot: Snapshot) -> None:
    """Repair in an order in which each step depends only on earlier ones: if the process dies, the table still reads as
    before."""
    store, writer = check.store, LogWriter(check.store, snapshot.config)
    for version in check.wrong_checksums:
        counted = compute_checksum(check.state_at(version), read_actions(store, version))
        writer.replace_checksum(version, counted.to_bytes())
    if check.has_wrong_hint:
        writer.forget_last_checkpoint()
    for path in [file.path for checkpoint in check.broken_checkpoints for file in checkpoint.files]:
        writer.set_aside(path)
    for path in check.wrong_compactions:
        writer.set_aside(path)
    for path in [path for version in check.incomplete_versions for path in list_incomplete_parts(store, version)]:
        writer.set_aside(path)
    if (check.broken_checkpoints or check.incomplete_versions or check.has_wrong_hint) and not check.has_doubts:
        write_checkpoint(store, writer, load_segment(store), now_ms=time.time_ns() // 1_000_000)


# ---------------------------------------------------------------- the files


def _remove_files(store: ObjectStore, paths: pa.ChunkedArray) -> None:
    """Commit the removal of the files that are still missing or damaged in the newest version."""
    newest = Snapshot.load(store)
    faults = file_faults(newest, only=paths)
    faults = faults.filter(faults["can_repair"])
    if not faults.num_rows:
        return
    files = plan_scan(newest, None, None, ScanOptions(keep_all=True)).files
    files = files.filter(pc.is_in(files["path"], faults["data_file"]))
    now_ms = time.time_ns() // 1_000_000
    removes = tuple(remove_action_of(file, now_ms=now_ms) for batch in files.to_batches() for file in scan_files(batch))
    vector_fault_count = pc.sum(pc.equal(faults["kind"], DELETION_VECTOR)).as_py() or 0
    metrics = {
        "numRemovedFiles": len(removes),
        "removedFilesSize": pc.sum(files["size"]).as_py() or 0,
        "numMissingFiles": faults.num_rows - vector_fault_count,
        "numMissingDeletionVectors": vector_fault_count,
    }
    transaction = Transaction(newest).read_files(remove.path for remove in removes).add(WrittenFiles(removes=removes))
    transaction.commit("FSCK", {}, metrics=metrics)
