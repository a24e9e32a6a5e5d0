"""Deletion vectors that two commits made for the same files: read, compared, and merged into one.

    commit, path = merge_shared_vectors(store, commit)     # of a rebased commit; path: the new deletion vector file

Protocol: Deletion Vectors; Deletion Vector File Storage Format.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pyroaring import BitMap64

from delta_py.commit.conflicts import merged_rows, shared_conflict_error
from delta_py.commit.prepared import PreparedCommit, SharedFile, num_records
from delta_py.errors import DeletionVectorError, DeltaError, StorageError
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor, dv_file_bytes, read_deletion_vector
from delta_py.storage.store import ObjectStore
from delta_py.write.data_files import delete_files

_THREADS = 8


def merge_shared_vectors(store: ObjectStore, commit: PreparedCommit) -> tuple[PreparedCommit, str | None]:
    """Compare and merge the deletion vectors of the shared files: the data files that the commit has read or changes, and whose
    vectors winners have changed. Files from which the commit deletes rows get a vector with the deleted rows of both sides.

    Returns the commit with these vectors, whose `shared` is empty, and the path of the one file that holds them; None if no file
    was needed.

    Raises a DeltaConcurrentModificationException if both commits deleted the same row, if rows were restored, and if a vector
    cannot be read; StorageError if the new vectors cannot be written. Then the new file is deleted again.
    """
    with ThreadPoolExecutor(min(_THREADS, len(commit.shared)), "delta_py-vectors") as pool:
        merged_by_file = list(pool.map(lambda file: _merge_rows(store, commit, file), commit.shared))
    # Only files from which our commit deletes rows get a new vector. The others were read only to find conflicts.
    rows = {
        file.path: deleted_rows for file, deleted_rows in zip(commit.shared, merged_by_file, strict=True) if file.ours is not None
    }
    # Files of which no row remains: they are removed, and need no vector.
    emptied_paths = {
        file.path for file in commit.shared if file.path in rows and len(rows[file.path]) == num_records(file.theirs)
    }
    changed_paths = [path for path in rows if path not in emptied_paths]
    descriptors = _put_vectors(store, [rows[path] for path in changed_paths]) if changed_paths else ()
    vectors: dict[str, DeletionVectorDescriptor | None] = dict.fromkeys(emptied_paths)  # None: the file is removed
    vectors.update(zip(changed_paths, descriptors, strict=True))
    return commit.with_vectors(vectors), descriptors[0].path if descriptors else None


def _merge_rows(store: ObjectStore, commit: PreparedCommit, file: SharedFile) -> BitMap64:
    """The positions of the rows that either side deleted. Raises a DeltaConcurrentModificationException as
    merge_shared_vectors.
    """
    ours = None if file.ours is None else file.ours.deletion_vector
    try:
        rows_before, theirs, our_rows = (
            BitMap64() if vector is None else read_deletion_vector(store, vector)
            for vector in (file.before, file.theirs.deletion_vector, ours)
        )
    except (OSError, DeletionVectorError) as error:
        what = (
            f"took rows out of the file {file.path}, which this one has read or changes too, and it cannot be told whether they "
            f"are the same: a deletion vector cannot be read ({error})"
        )
        raise shared_conflict_error(commit, file, what) from error
    return merged_rows(commit, file, rows_before, theirs, None if ours is None else our_rows)


def _put_vectors(store: ObjectStore, rows: Sequence[BitMap64]) -> tuple[DeletionVectorDescriptor, ...]:
    """Write the vectors to one new file. Returns their descriptors in the same order; all of them name this file."""
    data, descriptors = dv_file_bytes(rows, uuid.uuid4())
    path = descriptors[0].path
    assert path is not None
    try:
        store.put_if_absent(path, data)
    except (DeltaError, OSError) as error:
        delete_files(store, [path])  # the reply may have been lost: the file may exist all the same
        if isinstance(error, DeltaError):
            raise
        raise StorageError(
            f"The deletion vector file {path} of the table at {store.root} could not be written: {error}. Nothing was committed."
        ) from error
    return descriptors
