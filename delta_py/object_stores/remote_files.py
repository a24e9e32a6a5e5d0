"""Objects of a remote store as files: read by prefetched ranges, uploaded in parts while they are written."""

from __future__ import annotations

import io
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import pyarrow as pa

from delta_py.object_stores.client import Upload
from delta_py.object_stores.connection import Connection
from delta_py.storage.addresses import Address
from delta_py.storage.arrow_files import ByteRange, as_requests, as_stretches

_log = logging.getLogger("delta_py")

# Most Parquet footers fit into it. It is fetched to check whether the object exists.
_TAIL_BYTES = 64 * 1024
_LEAST_REQUEST_BYTES = 64 * 1024  # small reads are mostly followed by more reads of what comes next
_PART_BYTES = 8 * 1024 * 1024
# Stores accept at most 10,000 parts of an object: after this many parts, the part length doubles.
_PARTS_OF_A_LENGTH = 1000
_PARTS_UNDER_WAY = 4


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Bytes of an object that were requested together: from `start` to `end` (exclusive). view: their buffer. parts: (start, end,
    future) of each request, in positions of the object; the future returns the number of bytes that arrived. Empty if all bytes
    have arrived."""

    start: int
    end: int
    view: memoryview
    parts: Sequence[tuple[int, int, Future[int]]]


def _allocate(length: int) -> memoryview:
    """A buffer for expected bytes, from Arrow's pool: heap memory that many threads have freed is not returned to the system."""
    return memoryview(pa.allocate_buffer(length)).cast("B")


class RemoteInput(io.RawIOBase):
    """A seekable file over one object. pyarrow does not use it from two threads at once.

    size_bytes: the object's size as the caller expects it; None to ask. The end of the object is fetched immediately to check the
    size, unless is_sure. Raises FileNotFoundError for a missing object; with is_sure, only when it is read.
    """

    def __init__(
        self, connection: Connection, address: Address, name: str, size_bytes: int | None, *, is_sure: bool = False
    ) -> None:
        """size_bytes: the size according to the log; None if it is not known. is_sure: the size need not be checked."""
        super().__init__()
        self._connection, self._address, self._name = connection, address, name
        self._position = 0
        self._tail: tuple[int, bytes] | None = None
        self._stretches: list[_Stretch] = []
        if size_bytes is None or size_bytes <= 0:
            self._size = self._request_size()
        elif is_sure or self._has_size(size_bytes):
            self._size = size_bytes
        else:
            self._size = self._request_size()

    def _has_size(self, size_bytes: int) -> bool:
        """Whether the object has exactly this size. This fetches and keeps its end, where a Parquet file has its footer. The
        request asks for one byte more, which must not exist."""
        start = max(0, size_bytes - _TAIL_BYTES)
        tail = self._fetch(start, size_bytes - start + 1)
        if len(tail) != size_bytes - start:
            return False
        self._tail = (start, tail)
        return True

    def _request_size(self) -> int:
        client, address = self._connection.client, self._address
        return self._connection.run(f"look for {self._name}", lambda: client.size(address.container, address.key))

    # ------------------------------------------------------------ Python's file methods

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """The next `size` bytes, fewer at the end of the file; None or -1: all that remain. Returns a view of bytes if no copy is
        needed; that is enough for pyarrow."""
        remaining_bytes = max(0, self._size - self._position)
        length = remaining_bytes if size is None or size < 0 else min(size, remaining_bytes)
        data = self._read_bytes(self._position, length) if length else b""
        self._position += len(data)
        return data  # type: ignore[return-value]

    def close(self) -> None:
        self._retain_stretches(lambda stretch: False)
        super().close()

    # ------------------------------------------------------------ ranges

    def expect(self, ranges: Sequence[ByteRange]) -> None:
        """Start to fetch ranges that are read next, in other threads. Earlier stretches that overlap none of them are dropped."""
        stretches = [(start, start + length) for start, length in as_stretches(_limit_to_size(ranges, self._size))]
        self._retain_stretches(lambda stretch: any(first < stretch.end and stretch.start < last for first, last in stretches))
        for start, end in stretches:
            self._stretches += [self._begin_fetch(first, last) for first, last in self._gaps(start, end)]
        self._stretches.sort(key=lambda stretch: (stretch.start, stretch.end))

    def _begin_fetch(self, start: int, end: int) -> _Stretch:
        """Start to fetch a range in the background, in requests of limited size."""
        view, parts = _allocate(end - start), []
        for position, length in as_requests((start, end - start)):
            target = view[position - start : position - start + length]
            future = self._connection.submit(lambda position=position, target=target: self._fetch_into(position, target))  # type: ignore[misc]
            parts.append((position, position + length, future))
        return _Stretch(start, end, view, parts)

    def _gaps(self, start: int, end: int) -> list[tuple[int, int]]:
        """The parts (start, end) of a range that are neither fetched nor requested yet."""
        gaps, next_byte = [], start
        for stretch in self._available_stretches():
            if stretch.end <= next_byte or stretch.start >= end:
                continue
            if stretch.start > next_byte:
                gaps.append((next_byte, stretch.start))
            next_byte = max(next_byte, stretch.end)
        return [*gaps, (next_byte, end)] if next_byte < end else gaps

    def _available_stretches(self) -> list[_Stretch]:
        """The stretches that are fetched or requested, and the object's end if it was fetched; sorted by position."""
        tail = [] if self._tail is None else [_Stretch(self._tail[0], self._size, memoryview(self._tail[1]), [])]
        return sorted([*self._stretches, *tail], key=lambda stretch: (stretch.start, stretch.end))

    def _retain_stretches(self, is_needed: Callable[[_Stretch], bool]) -> None:
        """Drop the stretches that are not needed, and cancel their requests that have not begun."""
        for stretch in self._stretches:
            if not is_needed(stretch):
                for _, _, future in stretch.parts:
                    future.cancel()
        self._stretches = [stretch for stretch in self._stretches if is_needed(stretch)]

    def _read_bytes(self, start: int, length: int) -> bytes | memoryview:
        """The bytes of a range: from the stretches, and by a request of its own where they have a gap."""
        parts, next_byte, end = list[bytes | memoryview](), start, start + length
        for stretch in self._available_stretches():
            if stretch.end <= next_byte or stretch.start >= end:
                continue
            if stretch.start > next_byte:
                parts.append(self._checked_length(self._fetch(next_byte, stretch.start - next_byte), stretch.start - next_byte))
                next_byte = stretch.start
            last = min(stretch.end, end)
            parts.append(self._wait_for_bytes(stretch, next_byte, last))
            next_byte = last
        if next_byte < end:
            parts.append(self._fetch_unannounced(next_byte, end - next_byte))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _wait_for_bytes(self, stretch: _Stretch, start: int, end: int) -> memoryview:
        """The bytes from `start` to `end` of a stretch; waits until they have arrived."""
        for first, last, future in stretch.parts:
            if first < end and start < last and future.result() != last - first:
                raise self._was_replaced()
        return stretch.view[start - stretch.start : end - stretch.start]

    def _fetch_unannounced(self, start: int, length: int) -> bytes | memoryview:
        """Read bytes that were not announced. A small read fetches more than it needs, and keeps it as the only stretch, because
        small reads are mostly followed by reads of the next bytes."""
        if length >= _LEAST_REQUEST_BYTES:
            return self._checked_length(self._fetch(start, length), length)
        end = min(start + _LEAST_REQUEST_BYTES, self._size)
        data = self._checked_length(self._fetch(start, end - start), end - start)
        self._stretches = [_Stretch(start, end, memoryview(data), [])]
        return data[:length]

    def _checked_length(self, data: bytes, length: int) -> bytes:
        if len(data) != length:
            raise self._was_replaced()
        return data

    def _was_replaced(self) -> OSError:
        return OSError(f"{self._name} has not the {self._size} bytes that it had when it was opened: it was replaced.")

    def _fetch_into(self, start: int, target: memoryview) -> int:
        """Fetch bytes from `start` into `target`; returns how many arrived."""
        client, address = self._connection.client, self._address
        return self._connection.run(f"read {self._name}", lambda: client.get_into(address.container, address.key, start, target))

    def _fetch(self, start: int, length: int) -> bytes:
        client, address = self._connection.client, self._address
        return self._connection.run(f"read {self._name}", lambda: client.get(address.container, address.key, start, length))


def _limit_to_size(ranges: Sequence[ByteRange], size: int) -> list[ByteRange]:
    """The ranges, limited to the object: a damaged footer must not cause larger requests. A range outside of the object gets a
    length that is not positive, and as_stretches leaves it out."""
    return [(max(0, start), min(start + length, size) - max(0, start)) for start, length in ranges]


class RemoteOutput(io.RawIOBase):
    """A new object, uploaded while it is written; it exists once the file is closed. If the file is not closed, or aborted, it
    never exists.

    Memory is bounded by _PARTS_UNDER_WAY + 1 parts.
    """

    def __init__(self, connection: Connection, address: Address, name: str) -> None:
        super().__init__()
        self._connection, self._address, self._name = connection, address, name
        self._waiting: list[bytes] = []
        self._waiting_bytes = self._position = self._part_count = 0
        self._upload: Upload | None = None
        self._under_way: deque[Future[None]] = deque()
        self._has_failed = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: object) -> int:
        """Append bytes; if they are enough for a part, it is sent in the background. data: anything with bytes; it is copied.
        Raises StoreUnavailableError, StorageError."""
        piece = bytes(memoryview(data).cast("B"))  # type: ignore[arg-type]
        self._waiting.append(piece)
        self._waiting_bytes += len(piece)
        self._position += len(piece)
        if self._waiting_bytes >= self._part_bytes():
            self._run_or_abort(self._send)
        return len(piece)

    def close(self) -> None:
        if self.closed:
            return
        try:
            if not self._has_failed:
                self._run_or_abort(self._finish)
        finally:
            super().close()

    def abort(self) -> None:
        """Give the upload up: nothing of it remains."""
        self._has_failed = True
        self._waiting = []
        for future in self._under_way:
            future.cancel()
        for future in self._under_way:  # wait for the requests that run: a part that arrives after the abort would stay
            if not future.cancelled():
                future.exception()
        self._under_way.clear()
        upload, self._upload = self._upload, None
        if upload is not None:
            try:
                self._connection.run(f"give up {self._name}", upload.abort)
            except Exception as error:
                _log.warning("parts of %s, which is not made, may stay until the store cleans up: %s", self._name, error)

    def __del__(self) -> None:
        """Python closes garbage-collected files, and an incomplete file of a writer that failed must not become an object."""
        if not self.closed:
            self.abort()
        super().__del__()

    def _part_bytes(self) -> int:
        """The length of the next part, in bytes."""
        return _PART_BYTES << (self._part_count // _PARTS_OF_A_LENGTH)

    def _run_or_abort(self, action: Callable[[], None]) -> None:
        """Run the action; if it fails, abort the upload and raise its error."""
        try:
            action()
        except BaseException:
            self.abort()
            raise

    def _send(self) -> None:
        """Upload the waiting bytes as a part."""
        client, address, connection = self._connection.client, self._address, self._connection
        if self._upload is None:
            self._upload = connection.run(f"write {self._name}", lambda: client.begin_upload(address.container, address.key))
        upload, number, data = self._upload, self._part_count, b"".join(self._waiting)
        what = f"write {self._name}"  # a call that refers to `self` would keep an unfinished output from being garbage-collected
        self._waiting, self._waiting_bytes, self._part_count = [], 0, number + 1
        while len(self._under_way) >= (_PARTS_UNDER_WAY if upload.takes_many else 1):
            self._under_way.popleft().result()
        self._under_way.append(connection.submit(lambda: connection.run(what, lambda: upload.put_part(number, data))))

    def _finish(self) -> None:
        """Write a small file in one request; for a large one wait for its parts, and then join them."""
        client, address, connection = self._connection.client, self._address, self._connection
        if self._upload is None:
            data = b"".join(self._waiting)
            connection.run(f"write {self._name}", lambda: client.put(address.container, address.key, data))
            return
        if self._waiting:
            self._send()
        while self._under_way:
            self._under_way.popleft().result()
        upload, count = self._upload, self._part_count
        connection.run(f"write {self._name}", lambda: upload.finish(count))
