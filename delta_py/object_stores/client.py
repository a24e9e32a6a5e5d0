"""The interface to a store's SDK: single requests, each tried once. `connection.py` repeats them.

A client is made for one kind of store and one set of options, and is used by many threads. Keys are text, `/` between parts.
Errors, in all methods:

    FileNotFoundError    there is no object of that key
    FileExistsError      put_new: the object already exists. It may be our own, if the request was repeated on its way
    NotAnswered          the outcome is unknown: throttled, timed out, cut off, a fault of the server. Try again
    StorageError         refused permanently, and nothing was changed: no access, no such container, an invalid request
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from delta_py.storage.store import ObjectInfo

PIECE_BYTES = 1024 * 1024
"""A long answer is read from the socket into its target in pieces of this size."""


@dataclass(frozen=True, slots=True)
class ListedPage:
    """The result of one request for a listing. objects: their `path` is the whole key; directories and their markers are left
    out. token: requests the next page; None on the last page."""

    objects: Sequence[ObjectInfo]
    token: str | None


class Upload(Protocol):
    """A new object that is sent in parts; it is not visible before `finish`."""

    @property
    def takes_many(self) -> bool:
        """Whether several parts may be sent at the same time."""

    def put_part(self, number: int, data: bytes) -> None:
        """Send a part. Parts are numbered from 0; the same part may be sent again, because a request without an answer is
        repeated."""

    def finish(self, count: int) -> None:
        """Combine the parts 0 to count - 1 into the object, which then becomes visible."""

    def abort(self) -> None:
        """End the upload without an object, and delete its parts. If the request fails, the store's own cleanup deletes them."""


class ObjectClient(Protocol):
    @property
    def copies_up_to(self) -> int:
        """The largest object in bytes that `copy` can copy; -1 if the store cannot copy."""

    def get(self, container: str, key: str, start: int = 0, length: int | None = None) -> bytes:
        """`length` bytes from `start`: fewer at the end of the object, none after it. If `length` is None, all bytes to the
        end."""

    def get_into(self, container: str, key: str, start: int, target: memoryview) -> int:
        """Fill `target` with the bytes from `start`. Returns how many bytes the answer has: fewer at the end of the object, more
        if the store ignores ranges."""

    def size(self, container: str, key: str) -> int:
        """The object's size in bytes."""

    def list_page(self, container: str, prefix: str, start: str, *, deep: bool, token: str | None) -> ListedPage:
        """One page of the objects whose keys begin with `prefix` and are at least `start`, in the order of keys. A store that
        cannot skip keys also returns objects before `start`. deep: list objects at any depth below the prefix; otherwise only
        keys without another `/` after the prefix. token: of the page before; None for the first page."""

    def put(self, container: str, key: str, data: bytes) -> None:
        """Write an object, replacing any other."""

    def put_new(self, container: str, key: str, data: bytes) -> None:
        """Write an object if there is none of that key: of two callers only one succeeds."""

    def copy(self, container: str, key: str, to_container: str, to_key: str) -> None:
        """Copy an object within the store, replacing any other; the copy is not visible before it is complete."""

    def delete(self, container: str, key: str) -> None:
        """Delete the object. A missing object is not an error."""

    def begin_upload(self, container: str, key: str) -> Upload:
        """Begin an object that is sent in parts."""

    def abort_uploads(self, container: str, prefix: str, part_of_name: str) -> None:
        """Abort uploads that other processes began and will not finish: those of keys below `prefix` whose last part contains
        `part_of_name`. If a store cannot list uploads, this does nothing, and the store's own cleanup removes them."""
