"""Finds files of a version that are missing or differ from the log: data files and deletion vectors.

    faults = file_faults(Snapshot.load(store, version=3))      # FAULT_SCHEMA
    faults = file_faults(snapshot, check_data=True)            # reads all data files, too

Many files are compared with a listing of the store. Files that do not match it are checked again one by one, as a link may
lead to them, or they may be in another store. Deletion vectors are read and compared with their checksums, and so are the pages
of data files on request. A file that cannot be checked is reported too, and does not count as missing.
Protocol: Add File and Remove File; Deletion Vectors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import CorruptTableError, StorageError, UnsupportedOperationError, readable
from delta_py.parquet.page_check import find_page_fault
from delta_py.progress import steps
from delta_py.protocol.actions import AddFile
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor, read_deletion_vector
from delta_py.scan.scan_state import ScanFile
from delta_py.snapshot import Snapshot
from delta_py.storage.listing import listed_objects
from delta_py.storage.store import ObjectStore
from delta_py.vacuum.quarantine import list_quarantine

DATA_FILE, DELETION_VECTOR = "dataFile", "deletionVector"

# kind: DATA_FILE, DELETION_VECTOR, or of the log (log_check.py). path: of the faulty file. data_file: the table's file that
# cannot be read because of the fault, null for the log. version: the checked one. size: bytes by the log. reason: for people.
# can_repair: whether a repair can fix it. rows_lost: rows that the table loses by the repair; null if unknown.
FAULT_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("path", pa.string()),
        ("data_file", pa.string()),
        ("version", pa.int64()),
        ("size", pa.int64()),
        ("reason", pa.string()),
        ("can_repair", pa.bool_()),
        ("rows_lost", pa.int64()),
    ]
)

_CHECKING_THREADS = 16  # for single files
_PAGE_READERS = min(8, os.cpu_count() or 1)
# Up to this number, files are checked one by one: a listing of the directory may hold very many more.
_FEW_FILES = 64
_FILES_IN_A_PART = 1_024  # files that are checked before the progress line moves
# After these errors it is unknown whether a file exists, so it does not count as missing.
_UNCHECKABLE_ERRORS = (OSError, StorageError, UnsupportedOperationError)


def file_faults(snapshot: Snapshot, only: pa.Array | pa.ChunkedArray | None = None, *, check_data: bool = False) -> pa.Table:
    """Find the faults of the live files of a version: FAULT_SCHEMA. only: check only the data files with these paths; None for
    all files. check_data: read all pages of all data files and compare them with their checksums. Memory: the names of all live
    files, and those of the store's objects; with check_data also a batch of rows for each thread.
    """
    files = _list_live_files(snapshot)
    files = files if only is None else files.filter(pc.is_in(files["path"], only))
    checks_each = only is not None or files.num_rows <= _FEW_FILES  # `only` names files that a check found faulty
    suspects = files if checks_each else files.filter(pc.invert(_is_listed(snapshot.store, files)))
    faults = _check_in_parts(suspects, partial(_find_file_faults, snapshot))
    faulty_files = pa.chunked_array([part["data_file"] for part in faults], pa.string())
    sound_files = files.filter(pc.invert(pc.is_in(files["path"], faulty_files)))
    if check_data:
        faults.append(_find_page_faults(snapshot, sound_files))
    files_with_vector = sound_files.filter(sound_files["deletion_vector"].is_valid())
    faults += _check_in_parts(files_with_vector, partial(_find_vector_faults, snapshot))
    return pa.Table.from_batches(faults, FAULT_SCHEMA)


def _check_in_parts(files: pa.Table, find_faults: Callable[[pa.Table], pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Check the files in parts, so that the progress line moves. find_faults: checks one part. Returns the faults:
    FAULT_SCHEMA."""
    faults = []
    with steps(files.num_rows, "files") as count:
        for part in _in_parts(files):
            faults.append(find_faults(part))
            count(part.num_rows)
    return faults


def paths_named_by(files: Sequence[AddFile | ScanFile]) -> list[str]:
    """The paths of the data files and of their deletion vectors."""
    vectors = {file.deletion_vector.path for file in files if file.deletion_vector is not None}
    return [*(file.path for file in files), *sorted(path for path in vectors if path is not None)]


def find_absent(store: ObjectStore, paths: Sequence[str]) -> list[str]:
    """The paths at which no file exists. Raises OSError and StorageError for paths that cannot be checked."""

    def is_absent(path: str) -> bool:
        try:
            store.open_input(path).close()
        except FileNotFoundError:
            return True
        return False

    absent_paths = []
    with steps(len(paths), "files") as count, ThreadPoolExecutor(_CHECKING_THREADS, "delta_py-look") as pool:
        for path, is_missing in zip(paths, pool.map(is_absent, paths), strict=True):
            absent_paths += [path] if is_missing else []
            count(1)
    return absent_paths


def faults_table(rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """The faults as a batch: FAULT_SCHEMA. rows: values by column; missing ones are null."""
    columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in FAULT_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=FAULT_SCHEMA)


def _list_live_files(snapshot: Snapshot) -> pa.Table:
    """path, size, deletion_vector and live row count of the live files."""
    schema: pa.Schema | None = None
    parts = []
    for batch in snapshot.file_batches(want_records=True):
        part = batch.files.select(["path", "size", "deletion_vector"])
        schema = part.schema.append(pa.field("rows", pa.int64()))
        parts.append(pa.RecordBatch.from_arrays([*part.columns, batch.live_rows()], schema=schema))
    if schema is None:
        return pa.table({"path": pa.array([], pa.string()), "size": [], "deletion_vector": [], "rows": []})
    return pa.Table.from_batches(parts, schema)


def _in_parts(files: pa.Table) -> Iterator[pa.Table]:
    """The files in slices of _FILES_IN_A_PART."""
    for start in range(0, files.num_rows, _FILES_IN_A_PART):
        yield files.slice(start, _FILES_IN_A_PART)


def _is_listed(store: ObjectStore, files: pa.Table) -> pa.ChunkedArray:
    """For each file, whether a listing of the store has it with the right size."""
    listed = listed_objects(store)
    places = pc.index_in(files["path"], listed["path"])
    return pc.fill_null(pc.equal(listed["size"].take(places), files["size"]), False)


# ---------------------------------------------------------------- checks of single files


class _FileState(Enum):
    """The result of the check of one file."""

    SOUND = "sound"
    WRONG = "wrong"  # it exists, and differs from the log
    MISSING = "missing"
    UNCHECKED = "unseen"  # it cannot be checked


@dataclass(frozen=True, slots=True)
class _CheckResult:
    """The result of the check of one file. reason: for people; empty for a sound file."""

    state: _FileState
    reason: str = ""


def _find_file_faults(snapshot: Snapshot, files: pa.Table) -> pa.RecordBatch:
    """Faults of data files: missing, unreadable, or of another size than the log says."""
    store, rows = snapshot.store, []
    with ThreadPoolExecutor(_CHECKING_THREADS, "delta_py-look") as pool:
        paths, sizes = files["path"].to_pylist(), files["size"].to_pylist()
        results = pool.map(lambda path, size: _check_file(store, path, size), paths, sizes)
        for file, result in zip(files.select(["path", "size", "rows"]).to_pylist(), results, strict=True):
            if result.state is not _FileState.SOUND:
                rows.append(_fault_row(snapshot, DATA_FILE, file["path"], file, result, result.state is _FileState.MISSING))
    return faults_table(_explain_quarantined(store, rows))


def _find_page_faults(snapshot: Snapshot, files: pa.Table) -> pa.RecordBatch:
    """Find files with damaged pages. None of them can be repaired: a user may want to recover the remaining bytes."""
    rows = []
    size_bytes = pc.sum(files["size"]).as_py() or 0
    with steps(size_bytes, "bytes") as count, ThreadPoolExecutor(_PAGE_READERS, "delta_py-pages") as pool:
        for part in _in_parts(files.select(["path", "size", "rows"])):
            listed = part.to_pylist()
            results = pool.map(lambda file: _check_pages(snapshot.store, file["path"], file["size"], count), listed)
            for file, result in zip(listed, results, strict=True):
                if result.state is not _FileState.SOUND:
                    rows.append(_fault_row(snapshot, DATA_FILE, file["path"], file, result, can_repair=False))
    return faults_table(rows)


def _explain_quarantined(store: ObjectStore, faults: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The faults, with another reason for missing files that are in quarantine. VACUUM moved these there: they are not lost, and
    a repair does not remove them from the table."""
    if not any(fault["can_repair"] for fault in faults):
        return faults
    quarantined = set(list_quarantine(store)["path"].to_pylist())
    why = "it is in quarantine, where VACUUM moved it. Bring it back with restore_quarantined (in Spark restoreQuarantined)"
    replacement = {"reason": why, "can_repair": False, "rows_lost": 0}
    return [{**fault, **replacement} if fault["can_repair"] and fault["path"] in quarantined else fault for fault in faults]


def _find_vector_faults(snapshot: Snapshot, files: pa.Table) -> pa.RecordBatch:
    """Faults of files with deletion vectors: a vector that is missing or damaged."""
    store, rows = snapshot.store, []
    listed = files.to_pylist()
    with ThreadPoolExecutor(_CHECKING_THREADS, "delta_py-look") as pool:
        results = pool.map(lambda file: _check_vector(store, file["deletion_vector"]), listed)
        for file, (path, size, result) in zip(listed, results, strict=True):
            if result.state is not _FileState.SOUND:
                can_repair = result.state is not _FileState.UNCHECKED
                rows.append(
                    _fault_row(snapshot, DELETION_VECTOR, path or file["path"], file | {"size": size}, result, can_repair)
                )
    return faults_table(rows)


def _fault_row(
    snapshot: Snapshot, kind: str, path: str, file: dict[str, Any], result: _CheckResult, can_repair: bool
) -> dict[str, Any]:
    """A row of FAULT_SCHEMA. path: of the faulty file. file: has the keys path (of the data file), size (of the faulty file, in
    bytes) and rows (the live rows of the data file, which a repair loses; None if unknown)."""
    return {
        "kind": kind,
        "path": path,
        "data_file": file["path"],
        "version": snapshot.version,
        "size": file["size"],
        "reason": result.reason,
        "can_repair": can_repair,
        "rows_lost": file["rows"] if can_repair else 0,
    }


def _check_file(store: ObjectStore, path: str, size: int) -> _CheckResult:
    """Whether a data file exists and has the size in bytes that the log says."""
    try:
        with store.open_input(path) as source:
            size_bytes = source.size()
    except FileNotFoundError:
        return _CheckResult(_FileState.MISSING, "it is missing; a repair takes it out of the table, and its rows are lost")
    except _UNCHECKABLE_ERRORS as error:
        return _CheckResult(_FileState.UNCHECKED, f"it cannot be looked at: {error}")
    if size_bytes == size:
        return _CheckResult(_FileState.SOUND)
    why = f"it has {size_bytes} bytes, and the log says {size}: it was cut short or replaced. Restore it from a backup"
    return _CheckResult(_FileState.WRONG, f"{why}; or, to give up its rows, delete it and repair the table")


def _check_pages(store: ObjectStore, path: str, size: int, count: Callable[[int], None]) -> _CheckResult:
    """Read all pages of a data file and compare them with their checksums. count: is called with numbers of bytes, whose sum is
    the file's size. They are estimated from the rows that were read."""
    counted_bytes = 0

    def count_rows(done: int, total: int) -> None:
        nonlocal counted_bytes
        done_bytes = size * done // max(1, total)
        count(done_bytes - counted_bytes)
        counted_bytes = done_bytes

    try:
        with store.open_input(path, size) as source:
            fault = find_page_fault(source, size, count_rows)
    except FileNotFoundError:
        return _CheckResult(_FileState.UNCHECKED, "it was there, and was deleted before its pages were read. Run FSCK again")
    except (*_UNCHECKABLE_ERRORS, pa.ArrowNotImplementedError, MemoryError) as error:
        return _CheckResult(_FileState.UNCHECKED, f"its pages cannot be looked at: {readable(str(error))}")
    count(size - counted_bytes)
    if fault is None:
        return _CheckResult(_FileState.SOUND)
    why = f"its pages are damaged: {readable(fault)}. Restore it from a backup"
    return _CheckResult(_FileState.WRONG, f"{why}; or, to give up its rows, delete it and repair the table")


def _check_vector(store: ObjectStore, value: dict[str, Any]) -> tuple[str | None, int | None, _CheckResult]:
    """Check a deletion vector. Returns three values: the path of the vector's file (None for a vector in the log itself), its
    size in bytes by the log, and the result of the check. value: the descriptor, as JSON."""
    path, size = None, value["sizeInBytes"]
    try:
        vector = DeletionVectorDescriptor.from_json(value)
        path = vector.path
        read_deletion_vector(store, vector)
    except FileNotFoundError:
        why = "it is missing, and which rows of the data file are deleted is not known any more"
        reason = f"{why}; a repair takes the data file out of the table, with all its rows"
        return path, size, _CheckResult(_FileState.MISSING, reason)
    except CorruptTableError as error:
        why = f"which rows of the data file are deleted cannot be told: {error.message}"
        reason = f"{why} A repair takes the data file out of the table, with all its rows"
        return path, size, _CheckResult(_FileState.WRONG, reason)
    except _UNCHECKABLE_ERRORS as error:
        return path, size, _CheckResult(_FileState.UNCHECKED, f"it cannot be looked at: {error}")
    return path, size, _CheckResult(_FileState.SOUND)
