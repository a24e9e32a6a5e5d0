"""What a store's SDK does for us: single requests, each tried once. The patience is `connection.py`'s.

A client is made for one kind of store and one set of options, and is used by many threads. Keys are text, `/` between parts.
Errors, in all methods:

    FileNotFoundError    there is no object of that key
    FileExistsError      put_new: there is one already. It may be our own, if a request was repeated on its way
    NotAnswered          nobody knows whether it happened: throttled, timed out, cut off, a fault of the server. Worth another try
    StorageError         refused for good, and nothing was changed: no access, no such container, a request that cannot be
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from delta_py.storage.store import ObjectInfo

PIECE_BYTES = 1024 * 1024
"""Of a long answer, so much at a time is taken from the socket to its place."""


@dataclass(frozen=True, slots=True)
class ListedPage:
    """Of one request. objects: path is the whole key; directories and their markers are left out. token: of the next page, None
    after the last one."""

    objects: Sequence[ObjectInfo]
    token: str | None


class Upload(Protocol):
    """A new object in the making, of parts; nobody sees it before `finish`."""

    @property
    def takes_many(self) -> bool:
        """Whether several parts may be on their way at once."""

    def put_part(self, number: int, data: bytes) -> None:
        """Parts are numbered from 0; the same part may be sent again."""

    def finish(self, count: int) -> None:
        """Make the object of `count` parts."""

    def abort(self) -> None:
        """Give it up. What cannot be told to the store is left to its own clean-up."""


class ObjectClient(Protocol):
    @property
    def copies_up_to(self) -> int:
        """The most bytes of an object that `copy` takes; -1 where the store copies nothing by itself."""

    def get(self, container: str, key: str, start: int = 0, length: int | None = None) -> bytes:
        """`length` bytes from `start`, fewer at the end of the object, none beyond it; None: to the end."""

    def get_into(self, container: str, key: str, start: int, target: memoryview) -> int:
        """As many bytes from `start` as `target` has, put there; how many were answered, which may be fewer or, of a store that
        does not know parts, more."""

    def size(self, container: str, key: str) -> int: ...

    def list_page(self, container: str, prefix: str, start: str, *, deep: bool, token: str | None) -> ListedPage:
        """Objects whose keys begin with `prefix` and are at least `start`, in the order of keys: some, or all that follow, or
        such before `start` too. deep: at any depth below the prefix; else without a further `/` behind it."""

    def put(self, container: str, key: str, data: bytes) -> None: ...

    def put_new(self, container: str, key: str, data: bytes) -> None: ...

    def copy(self, container: str, key: str, to_container: str, to_key: str) -> None:
        """Make an object a copy of another, or replace it by one, in the store; nobody sees it before it is whole."""

    def delete(self, container: str, key: str) -> None:
        """One that is missing is no error."""

    def begin_upload(self, container: str, key: str) -> Upload: ...

    def abort_uploads(self, container: str, prefix: str, part_of_name: str) -> None:
        """Give up uploads that others began and will not finish, of keys below the prefix whose last part has the text in it.
        Where a store cannot list them, they go by its own clean-up."""
