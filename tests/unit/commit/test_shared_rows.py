"""Vectors of two commits for the same files, read from storage and written as one."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from delta_py.commit.conflicts import rebase
from delta_py.commit.prepared import PreparedCommit, ReadSet, WinningCommit
from delta_py.commit.shared_rows import merge_shared_vectors
from delta_py.errors import ConcurrentDeleteDeleteException, ConcurrentDeleteReadException, StorageError
from delta_py.protocol.actions import AddFile, RemoveFile
from delta_py.protocol.deletion_vectors import (
    DeletionVectorDescriptor,
    dv_file_bytes,
    from_row_indexes,
    inline_descriptor,
    read_deletion_vector,
)
from delta_py.storage.local import LocalStore

FILES = [f"file {number}" for number in range(20)]


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def put_vectors(store: LocalStore, *rows: list[int]) -> tuple[DeletionVectorDescriptor, ...]:
    data, descriptors = dv_file_bytes([from_row_indexes(some) for some in rows], uuid.uuid4())
    assert descriptors[0].path is not None
    store.put_if_absent(descriptors[0].path, data)
    return descriptors


def add(path: str, vector: DeletionVectorDescriptor) -> AddFile:
    return AddFile(path, {}, 10, 0, stats='{"numRecords":5}', deletion_vector=vector)


def commit(*vectors: DeletionVectorDescriptor, before: DeletionVectorDescriptor | None = None) -> PreparedCommit:
    """Our commit, with these vectors for the first of the files; it only reads the others."""
    adds = tuple(add(path, vector) for path, vector in zip(FILES, vectors, strict=False))
    removes = tuple(RemoveFile(each.path, deletion_vector=before) for each in adds)
    reads = ReadSet(paths=frozenset(FILES), only_deleted_rows=True)
    return PreparedCommit(1, 0, "ours", {"operation": "DELETE"}, adds=adds, removes=removes, reads=reads)


def winner(*vectors: DeletionVectorDescriptor, before: DeletionVectorDescriptor | None = None) -> WinningCommit:
    adds = tuple(add(path, vector) for path, vector in zip(FILES, vectors, strict=False))
    removes = tuple(RemoveFile(each.path, deletion_vector=before) for each in adds)
    return WinningCommit(1, "theirs", "DELETE", adds=adds, removes=removes)


def vector_files(store: LocalStore) -> list[Path]:
    return sorted(Path(store.root).glob("*.bin"))


def test_vectors_of_many_files_are_joined_into_one_new_file(store: LocalStore) -> None:
    (before,) = put_vectors(store, [0])
    ours = put_vectors(store, *([0, 1] for _ in FILES))
    theirs = put_vectors(store, *([0, 2] for _ in FILES))
    merged, path = merge_shared_vectors(store, rebase(commit(*ours, before=before), [winner(*theirs, before=before)]))
    assert path is not None and (Path(store.root) / path).exists() and len(vector_files(store)) == 4
    for each, remove, their in zip(merged.adds, merged.removes, theirs, strict=True):
        assert each.deletion_vector is not None and each.deletion_vector.path == path
        assert list(read_deletion_vector(store, each.deletion_vector)) == [0, 1, 2]
        assert (each.path, remove.deletion_vector) == (remove.path, their)


def test_files_only_read_are_compared_and_nothing_is_written(store: LocalStore) -> None:
    merged, path = merge_shared_vectors(store, rebase(commit(), [winner(*put_vectors(store, [0], [1]))]))
    assert path is None and merged.adds == () and len(vector_files(store)) == 1
    back = rebase(commit(), [winner(inline_descriptor(from_row_indexes([1])), before=put_vectors(store, [0])[0])])
    with pytest.raises(ConcurrentDeleteReadException, match="gave back 1 rows of the file file 0"):
        merge_shared_vectors(store, back)


def test_files_that_lose_their_last_row_get_no_vector(store: LocalStore) -> None:
    ours, theirs = put_vectors(store, [0, 1]), put_vectors(store, [2, 3, 4])
    merged, path = merge_shared_vectors(store, rebase(commit(*ours), [winner(*theirs)]))
    assert (path, merged.adds, merged.removes[0].deletion_vector) == (None, (), theirs[0])


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"\x01junk, and more of it to be read")])
def test_unreadable_vector_is_a_conflict_and_writes_nothing(store: LocalStore, damage) -> None:  # type: ignore[no-untyped-def]
    ours, theirs = put_vectors(store, [0]), put_vectors(store, [1])
    later = rebase(commit(*ours), [winner(*theirs)])
    damage(Path(store.root) / str(theirs[0].path))
    before = vector_files(store)
    with pytest.raises(ConcurrentDeleteDeleteException, match="cannot be told whether they are the same") as caught:
        merge_shared_vectors(store, later)
    assert caught.value.__cause__ is not None and vector_files(store) == before


@pytest.mark.parametrize("error", [OSError("reply lost"), StorageError("read-only")])
def test_failed_write_of_vectors_is_an_error_and_leaves_none(store: LocalStore, error: Exception) -> None:
    later = rebase(commit(*put_vectors(store, [0])), [winner(*put_vectors(store, [1]))])
    before = vector_files(store)
    with pytest.raises(StorageError):
        merge_shared_vectors(_Unsure(store.root, error), later)
    assert vector_files(store) == before


class _Unsure(LocalStore):
    """Puts the object, and then reports a failure."""

    def __init__(self, root: str, error: Exception) -> None:
        super().__init__(root)
        self._error = error

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        super().put_if_absent(path, data, durably=durably)
        raise self._error
