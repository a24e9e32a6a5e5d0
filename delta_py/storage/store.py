"""The interface of all storage: the operations that a Delta log needs from an object store.

Paths inside a store are text relative to the table's root, `/` between parts, not percent-encoded. A store also reads absolute
paths and URIs of its own kind, which shallow clones put into `add.path`. Many threads and processes may call every method at the
same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from delta_py.storage.store_options import StorageOptions


class FileId(NamedTuple):
    """Distinguishes a file of this machine from another one of the same name, size and modification time, which any program can
    set.

    change_time_ns: when the file system last changed anything of the file (ctime), since 1970; no program can set it. A file that
    only got another name, link, owner or mode has another FileId and the same content.
    """

    device: int
    inode: int
    change_time_ns: int


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One listed object. path: relative to the table's root. modification_time_ms: since 1970, UTC. etag: the store's identifier
    for this content of the object, if its listings contain one. file_id: for a file of this machine."""

    path: str
    size_bytes: int
    modification_time_ms: int
    etag: str | None = None
    file_id: FileId | None = None


class ObjectStore(Protocol):
    """All access to one table's storage. A missing object raises FileNotFoundError. A refused call that changed nothing raises
    StorageError. Other failures raise OSError; then a write may or may not have happened."""

    @property
    def root(self) -> str:
        """The URL or directory that was passed to `open_store`, normalised: equal roots are the same table."""

    @property
    def options(self) -> StorageOptions:
        """The storage options that the store was opened with."""

    @property
    def is_remote(self) -> bool:
        """Whether reads go over a network, so that a cache on this machine's disk is worthwhile."""

    def list_from(self, directory: str, start: str = "") -> Iterator[ObjectInfo]:
        """Objects directly in `directory` whose name is >= start, in byte order of names. Empty if the directory is missing."""

    def list_recursive(self, directory: str) -> Iterator[ObjectInfo]:
        """All objects under `directory` at any depth, in any order."""

    def read(self, path: str) -> bytes:
        """The whole object."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`; fewer only at the end of the object."""

    def open_input(self, path: str, size_bytes: int | None = None, *, is_size_verified: bool = False) -> pa.NativeFile:
        """A seekable file for pyarrow.

        size_bytes: the size that the caller expects, which saves a remote store a request. is_size_verified: the caller has
        verified that size. Then no request is sent to a remote store yet, and a missing object raises an error when it is read.
        """

    def open_output(self, path: str) -> pa.NativeFile:
        """A stream for a new data file; parent directories are created. No reader mistakes an unfinished file for a complete one,
        because no commit names it yet."""

    def open_atomic_output(self, path: str) -> pa.NativeFile:
        """A stream that writes an object. The object appears, complete, when the stream is closed, and replaces any other of that
        name. `discard` (arrow_files.py) ends the stream without an object. If the process dies, a local store has an unfinished
        file of another name, which VACUUM finds; other stores have no object."""

    def copy_from(self, source: ObjectStore, source_path: str, path: str, size_bytes: int) -> bool:
        """Let the store copy an object as a whole. Returns False, and does nothing, if the store cannot copy.

        source: the store that reads source_path. size_bytes: of the object.
        """

    def link(self, path: str, new_path: str) -> bool:
        """Give an object below the root a second name. Returns False, and does nothing, if the store has no links.

        Raises FileExistsError, and changes nothing, if the new name is taken; FileNotFoundError.
        """

    def put(self, path: str, data: bytes) -> None:
        """Write or replace an object as a whole: a reader sees the old or the new one."""

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        """Write a new object, as a whole.

        durably: the object survives a failure of the machine. False: do not wait for the disk. This is only for objects that
        readers can do without if they are missing or damaged.
        Raises FileExistsError, and changes nothing, if the object exists: of two callers exactly one succeeds.
        """

    def abort_uploads(self, part_of_name: str) -> None:
        """Abort unfinished uploads of processes that died, found by a part of their names. They never appeared as files."""

    def delete(self, path: str) -> None:
        """Remove an object; a missing object is not an error."""
