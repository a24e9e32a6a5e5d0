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

# How much of an object's end is fetched to check its size. Most Parquet footers fit into it.
_TAIL_BYTES = 64 * 1024
# The shortest request for a read that was not announced: small reads are mostly followed by reads of the next bytes.
_READ_AHEAD_BYTES = 64 * 1024
_PART_BYTES = 8 * 1024 * 1024  # the length of the first parts of an upload
# Stores accept at most 10,000 parts of an object: after this many parts, the part length doubles.
_PARTS_PER_LENGTH = 1000
_MAX_PARTS_IN_FLIGHT = 4  # parts of one upload that are sent at the same time


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Bytes of an object that were requested together: from `start` to `end` (exclusive). view: their buffer, which the requests
    fill. parts: (start, end, future) of each request, in positions of the object; the future returns the number of bytes that
    arrived. `parts` is empty if the buffer was complete from the beginning."""

    start: int
    end: int
    view: memoryview
    parts: Sequence[tuple[int, int, Future[int]]]


def _allocate(length: int) -> memoryview:
    """A buffer for expected bytes, from Arrow's pool: heap memory that many threads have freed is not returned to the system."""
    return memoryview(pa.allocate_buffer(length)).cast("B")


class RemoteInput(io.RawIOBase):
    """A seekable file over one object. pyarrow does not use it from two threads at once.

    pyarrow announces the ranges that it will read (`expect`), and they are fetched in other threads. Other bytes are fetched when
    they are read. `_stretches`: the bytes that are fetched or requested. `_tail`: the position and bytes of the object's end, if
    the check of the size fetched it.
    """

    def __init__(
        self, connection: Connection, address: Address, name: str, size_bytes: int | None, *, is_size_verified: bool = False
    ) -> None:
        """size_bytes: the size that the caller expects; None to ask the store. The object's end is fetched now to check this
        size, unless is_size_verified. Raises FileNotFoundError for a missing object; with is_size_verified, only a read raises
        it."""
        super().__init__()
        self._connection, self._address, self._name = connection, address, name
        self._position = 0
        self._tail: tuple[int, bytes] | None = None
        self._stretches: list[_Stretch] = []
        if size_bytes is None or size_bytes <= 0:
            self._size = self._request_size()
        elif is_size_verified or self._has_size(size_bytes):
            self._size = size_bytes
        else:
            self._size = self._request_size()

    def _has_size(self, size_bytes: int) -> bool:
        """Whether the object has exactly this size. This fetches the object's end, where a Parquet file has its footer, and
        caches it. The request asks for one byte more, which must not exist."""
        start = max(0, size_bytes - _TAIL_BYTES)
        tail = self._fetch(start, size_bytes - start + 1)
        if len(tail) != size_bytes - start:
            return False
        self._tail = (start, tail)
        return True

    def _request_size(self) -> int:
        """Ask the store for the object's size in bytes. Raises FileNotFoundError."""
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
        self._retain_stretches(lambda stretch: False)  # cancels the requests that have not begun
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
        """The bytes of a range: from the stretches, and by requests for the bytes that no stretch has. Raises OSError if the
        object was replaced."""
        parts, next_byte, end = list[bytes | memoryview](), start, start + length
        for stretch in self._available_stretches():
            if stretch.end <= next_byte or stretch.start >= end:
                continue
            if stretch.start > next_byte:  # a gap before a stretch is fetched exactly: the stretch has the bytes after it
                gap_bytes = stretch.start - next_byte
                parts.append(self._checked_length(self._fetch(next_byte, gap_bytes), gap_bytes))
                next_byte = stretch.start
            last = min(stretch.end, end)
            parts.append(self._wait_for_bytes(stretch, next_byte, last))
            next_byte = last
        if next_byte < end:  # no stretch begins here, so the next reads probably need the following bytes too
            parts.append(self._fetch_with_read_ahead(next_byte, end - next_byte))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _wait_for_bytes(self, stretch: _Stretch, start: int, end: int) -> memoryview:
        """The bytes from `start` to `end` of a stretch; waits until they have arrived."""
        for first, last, future in stretch.parts:
            if first < end and start < last and future.result() != last - first:
                raise self._replaced_error()
        return stretch.view[start - stretch.start : end - stretch.start]

    def _fetch_with_read_ahead(self, start: int, length: int) -> bytes | memoryview:
        """Fetch bytes that were not announced. A read of fewer than _READ_AHEAD_BYTES fetches that many, because small reads are
        mostly followed by reads of the next bytes. These bytes replace all stretches, so memory does not grow."""
        if length >= _READ_AHEAD_BYTES:
            return self._checked_length(self._fetch(start, length), length)
        end = min(start + _READ_AHEAD_BYTES, self._size)
        data = self._checked_length(self._fetch(start, end - start), end - start)
        self._stretches = [_Stretch(start, end, memoryview(data), [])]
        return data[:length]

    def _checked_length(self, data: bytes, length: int) -> bytes:
        """The data. Raises OSError if it has another length, in bytes: the object was replaced."""
        if len(data) != length:
            raise self._replaced_error()
        return data

    def _replaced_error(self) -> OSError:
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
    """A new object, uploaded while it is written. The object exists once the file is closed. If the file is aborted or never
    closed, the object never exists.

    `_unsent_pieces`: written bytes that are too few for a part. `_upload`: None until the first part is sent. `_part_uploads`:
    the parts that other threads send now. Memory is bounded by _MAX_PARTS_IN_FLIGHT + 1 parts.
    """

    def __init__(self, connection: Connection, address: Address, name: str) -> None:
        super().__init__()
        self._connection, self._address, self._name = connection, address, name
        self._unsent_pieces: list[bytes] = []
        self._unsent_bytes = self._position = self._part_count = 0
        self._upload: Upload | None = None
        self._part_uploads: deque[Future[None]] = deque()
        self._has_failed = False

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: object) -> int:
        """Append bytes; if they are enough for a part, it is sent in the background. data: anything with bytes; it is copied.
        Raises StoreUnavailableError, StorageError."""
        piece = bytes(memoryview(data).cast("B"))  # type: ignore[arg-type]
        self._unsent_pieces.append(piece)
        self._unsent_bytes += len(piece)
        self._position += len(piece)
        if self._unsent_bytes >= self._part_bytes():
            self._run_or_abort(self._send_part)
        return len(piece)

    def close(self) -> None:
        """Finish the upload: the object exists afterwards. After an error or `abort`, there is nothing to finish."""
        if self.closed:
            return
        try:
            if not self._has_failed:
                self._run_or_abort(self._finish)
        finally:
            super().close()

    def abort(self) -> None:
        """End the upload without an object, and have the store delete its parts. A failure of that request is only logged."""
        self._has_failed = True
        self._unsent_pieces = []
        for future in self._part_uploads:
            future.cancel()
        for future in self._part_uploads:  # wait for the requests that run: a part that arrives after the abort would stay
            if not future.cancelled():
                future.exception()
        self._part_uploads.clear()
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
        return _PART_BYTES << (self._part_count // _PARTS_PER_LENGTH)

    def _run_or_abort(self, action: Callable[[], None]) -> None:
        """Run the action; if it fails, abort the upload and raise its error."""
        try:
            action()
        except BaseException:
            self.abort()
            raise

    def _send_part(self) -> None:
        """Upload the unsent bytes as a part, in another thread. Waits first while too many parts are in flight."""
        client, address, connection = self._connection.client, self._address, self._connection
        if self._upload is None:
            self._upload = connection.run(f"write {self._name}", lambda: client.begin_upload(address.container, address.key))
        upload, number, data = self._upload, self._part_count, b"".join(self._unsent_pieces)
        what = f"write {self._name}"  # a call that refers to `self` would keep an unfinished output from being garbage-collected
        self._unsent_pieces, self._unsent_bytes, self._part_count = [], 0, number + 1
        while len(self._part_uploads) >= (_MAX_PARTS_IN_FLIGHT if upload.takes_many else 1):
            self._part_uploads.popleft().result()
        self._part_uploads.append(connection.submit(lambda: connection.run(what, lambda: upload.put_part(number, data))))

    def _finish(self) -> None:
        """Write a small file in one request. For a large file, send the last part, wait for all parts, and have the store join
        them."""
        client, address, connection = self._connection.client, self._address, self._connection
        if self._upload is None:
            data = b"".join(self._unsent_pieces)
            connection.run(f"write {self._name}", lambda: client.put(address.container, address.key, data))
            return
        if self._unsent_pieces:
            self._send_part()
        while self._part_uploads:
            self._part_uploads.popleft().result()
        upload, count = self._upload, self._part_count
        connection.run(f"write {self._name}", lambda: upload.finish(count))
