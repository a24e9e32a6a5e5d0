"""The one door to storage: what a Delta log needs of an object store.

Paths inside a store are text relative to the table's root, `/` between parts, not percent-encoded. A store also reads
absolute paths and URIs of its own kind, which shallow clones put into `add.path`. Every method may be called from many
threads and processes at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from delta_py.storage.store_options import StorageOptions


class FileId(NamedTuple):
    """What tells a file of this machine from another one of the same name, size and modification time, which anybody may set.

    change_time_ns: when the file system last changed anything of the file (ctime), since 1970; no program can set it. A file that
    only got another name, link, owner or mode has another FileId and the same content.
    """

    device: int
    inode: int
    change_time_ns: int


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One listed object. path: relative to the table's root. modification_time_ms: since 1970, UTC. etag: the store's own name
    for this content of the object, if its listings tell one. file_id: of a file of this machine."""

    path: str
    size_bytes: int
    modification_time_ms: int
    etag: str | None = None
    file_id: FileId | None = None


class ObjectStore(Protocol):
    """All access to one table's storage. A missing object is FileNotFoundError; what is refused for good, and has changed
    nothing, is StorageError; other failures are OSError, after which a write may have been done or not."""

    @property
    def root(self) -> str:
        """The URL or directory that `open_store` was given, normalised: equal roots are the same table."""

    @property
    def options(self) -> StorageOptions:
        """What was said of stores when it was opened."""

    @property
    def is_remote(self) -> bool:
        """Whether reads go over a network, so that keeping what was read on this machine's disk is worth while."""

    def list_from(self, directory: str, start: str = "") -> Iterator[ObjectInfo]:
        """Objects directly in `directory` whose name is >= start, in byte order of names. Nothing if it is missing."""

    def list_recursive(self, directory: str) -> Iterator[ObjectInfo]:
        """All objects under `directory` at any depth, in no certain order."""

    def read(self, path: str) -> bytes:
        """The whole object."""

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`; fewer only at the end of the object."""

    def open_input(self, path: str, size_bytes: int | None = None, *, is_sure: bool = False) -> pa.NativeFile:
        """A seekable file for pyarrow.

        size_bytes: what the caller believes it to have, which spares a remote store a request. is_sure: the caller has seen that
        it has; then nothing is asked of a remote store yet, and a missing object shows when it is read.
        """

    def open_output(self, path: str) -> pa.NativeFile:
        """A stream for a new data file; parent directories are made. Nobody sees a half-written file as whole because
        no commit names it yet."""

    def open_whole(self, path: str) -> pa.NativeFile:
        """A stream for an object that appears, as a whole, when it is closed, in the place of any other; `files.discard` gives it
        up. What a process that died had begun has another name, by which VACUUM finds it, or none."""

    def copy_from(self, source: ObjectStore, source_path: str, path: str, size_bytes: int) -> bool:
        """Have the store make an object a copy of another, as a whole; False, and nothing is done, where it cannot.

        source: the store that reads source_path. size_bytes: of the object.
        """

    def link(self, path: str, new_path: str) -> bool:
        """Give an object below the root a second name; False, and nothing is done, where the store has no such thing.

        Raises FileExistsError, and changes nothing, if the new name is taken; FileNotFoundError.
        """

    def put(self, path: str, data: bytes) -> None:
        """Write or replace an object as a whole: a reader sees the old or the new one."""

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        """Write a new object, as a whole.

        durably: it is there after a failure of the machine too. One that readers do without when it is missing or damaged may
        spare the wait for the disk.
        Raises FileExistsError, and changes nothing, if the object is there: of two callers exactly one succeeds.
        """

    def abort_uploads(self, part_of_name: str) -> None:
        """Give up files that processes which died have begun, by a part of their names; as files they never appeared."""

    def delete(self, path: str) -> None:
        """Remove an object; one that is missing is no error."""
