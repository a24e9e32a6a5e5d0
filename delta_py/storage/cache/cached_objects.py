"""Objects of remote stores that never change: they are read over the network once, and afterwards from the cache directory.

    objects = CachedObjects.of(store)                # a local store, or no cache: all reads go to the store
    objects.read(info), objects.open_input(info)   # as the store's methods, for an object as it was listed
    objects.footer(info)                           # of a Parquet file: its footer as parsed by pyarrow, or None

This is for files of the log that are written once: commits, compactions, checkpoints and their sidecars, version checksums.
Listings and `_last_checkpoint` are always read from the store.

An entry belongs to one content of an object. Its name depends on the store's endpoint and root, the path, and the listed size,
time and, if the store reports one, etag. So a table that is deleted and created again at the same place, with the same names, has
other entries. Without an etag an object is cached only if it is at least a minute old: a later object of the same name then has a
later time, however coarse the store's clock is. Objects that were not listed are not cached, and neither is an object whose size
differs from the listed one: it was replaced since then.

Objects up to 4 MB are cached whole: one request fetches them, and takes no longer than the three to ten requests for a
checkpoint's footer and columns. For larger objects only the blocks of 256 KB that are read are fetched, neighbouring blocks by
one request. So a checkpoint's columns of statistics are not fetched if nobody reads them. This fetches up to two blocks more for
each range, with the same number of requests.

For data files only footers are cached: data is large, and is mostly read once. Data files are not listed. Their entries depend on
the table's id, and on size and time of the add action; the protocol demands that no writer of the table reuses the name of a data
file. If the same files are read again and again, PYDELTA_CACHE_DATA=true caches the data that was read as well, and
PYDELTA_CACHE_MB should be large.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from delta_py.storage.arrow_files import ByteRange, PrefetchingFile
from delta_py.storage.cache.content_identity import is_settled
from delta_py.storage.cache.disk_cache import DiskCache, entry_name
from delta_py.storage.store import ObjectInfo, ObjectStore

_WHOLE_BYTES = 4 * 1024 * 1024  # objects up to this size are cached whole
_BLOCK_BYTES = 256 * 1024
_REQUESTS = 8  # at the same time, for one file
_LONGEST_RUN = 32  # blocks in one request
_FOOTER_BYTES = 64 * 1024  # pyarrow starts with the same size
_PARQUET = b"PAR1"
_ENDPOINTS = ("s3.endpoint", "gcs.endpoint", "azure.endpoint", "azure.account_name")
_ENDPOINTS_OF_AWS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")


class CachedObjects:
    """The objects of one store, read through the cache. disk: None if nothing is cached. table_id: of the table whose data files
    are read; None for the files of the log. It distinguishes data files of tables at the same place, because data files are not
    listed. After the disk has refused an entry, this object writes no more entries."""

    def __init__(self, store: ObjectStore, disk: DiskCache | None = None, table_id: str | None = None) -> None:
        self.store, self._disk = store, disk
        self._owner = (_endpoints(store), store.root, table_id)  # a part of the entries' names
        self._can_write_entries = True

    @classmethod
    def of(cls, store: ObjectStore, table_id: str | None = None) -> Self:
        """The objects of a store, with the cache that the environment configures. Local files are not cached."""
        return cls(store, DiskCache.of_environment() if store.is_remote else None, table_id)

    @property
    def has_cache(self) -> bool:
        return self._disk is not None

    def read(self, info: ObjectInfo) -> bytes:
        """The whole object."""
        if not self._is_cacheable(info):
            return self.store.read(info.path)
        content = self.find_part(info, 0, info.size_bytes)
        if content is None:
            content = self.store.read(info.path)
            if len(content) == info.size_bytes:  # otherwise the object was replaced since it was listed
                self.put_part(info, 0, content)
        return content

    def open_input(self, info: ObjectInfo) -> pa.NativeFile:
        """A seekable file for pyarrow. A small object is cached as a whole, a large one by blocks."""
        if not self._is_cacheable(info):
            return self.store.open_input(info.path, info.size_bytes)
        if info.size_bytes <= _WHOLE_BYTES:
            return pa.BufferReader(self.read(info))
        blocks = _BlockFile(self, info)
        # An object without the listed end was replaced: it is not cached, and the store asks for its size.
        return PrefetchingFile.over(blocks) if blocks.has_end() else self.store.open_input(info.path)

    def open_data(self, info: ObjectInfo, *, is_size_verified: bool) -> pa.NativeFile:
        """A data file. is_size_verified: as in ObjectStore.open_input. With PYDELTA_CACHE_DATA, the data that is read is cached
        too."""
        if os.environ.get("PYDELTA_CACHE_DATA", "").lower() == "true" and self._is_cacheable(info):
            return self.open_input(info)
        return self.store.open_input(info.path, info.size_bytes, is_size_verified=is_size_verified)

    def footer(self, info: ObjectInfo) -> Any:
        """pyarrow.parquet.FileMetaData, for `ParquetFile(metadata=...)`; None if the caller must read the file itself: it is not
        cached, its footer cannot be read, or it does not have the expected size."""
        if not self._is_cacheable(info):
            return None
        assert self._disk is not None
        name = self._name(info, "footer")
        cached_footer = self._disk.read(name)
        footer = _read_footer(self.store, info) if cached_footer is None else cached_footer
        try:
            metadata = None if footer is None else pq.read_metadata(pa.BufferReader(footer))
        except (pa.ArrowException, OSError):  # pyarrow raises the same error again when it opens the file itself
            return None
        if cached_footer is None and footer is not None:
            self._write_entry(name, footer)
        return metadata

    def find_part(self, info: ObjectInfo, start: int, length: int) -> bytes | None:
        """A part of an object from the cache; None if it is not there. start, length: exactly as in the call of `put_part`."""
        assert self._disk is not None
        content = self._disk.read(self._name(info, start, length))
        return content if content is not None and len(content) == length else None

    def put_part(self, info: ObjectInfo, start: int, data: bytes) -> None:
        """Put a part of an object into the cache. data: the bytes from `start`."""
        self._write_entry(self._name(info, start, len(data)), data)

    def _write_entry(self, name: str, data: bytes) -> None:
        """Write an entry, unless the disk has refused an earlier one."""
        assert self._disk is not None
        if self._can_write_entries:
            self._can_write_entries = self._disk.put(name, data)

    def _is_cacheable(self, info: ObjectInfo) -> bool:
        """Whether there is a cache, and other content that is written under the same name later would get another entry."""
        if self._disk is None or info.size_bytes <= 0:
            return False
        return is_settled(info)

    def _name(self, info: ObjectInfo, *part: object) -> str:
        """The name of the entry for a part of an object. part: its start and length in bytes, or "footer"."""
        listed_attributes = (info.path, info.size_bytes, info.modification_time_ms, info.etag)
        return entry_name(repr((self._owner, listed_attributes, part)).encode(), "object")


def _endpoints(store: ObjectStore) -> tuple[str | None, ...]:
    """The endpoints that a store uses, for the names of its entries: two endpoints may have buckets of the same name, for example
    one for tests and one for production."""
    if not store.is_remote:
        return ()
    return (*(store.options.get(name) for name in _ENDPOINTS), *(os.environ.get(name) for name in _ENDPOINTS_OF_AWS))


def _read_footer(store: ObjectStore, info: ObjectInfo) -> bytes | None:
    """The bytes from the start of the footer to the end of the file, mostly by one request. None if the file does not end as a
    Parquet file does, or does not have the listed size."""
    data = _read_end(store, info, _FOOTER_BYTES)
    if data is None or data[-4:] != _PARQUET:
        return None
    # A Parquet file ends with the footer, its length (4 bytes) and PAR1.
    length = int.from_bytes(data[-8:-4], "little") + 8
    footer_bytes = data if length <= len(data) else _read_end(store, info, length)
    return None if footer_bytes is None or length > len(footer_bytes) else footer_bytes[-length:]


def _read_end(store: ObjectStore, info: ObjectInfo, length: int) -> bytes | None:
    """The last `length` bytes, or all; None if the object does not have the listed size: the request asks for one byte more than
    there should be."""
    start = max(0, info.size_bytes - length)
    data = store.read_range(info.path, start, info.size_bytes - start + 1)
    return data if len(data) == info.size_bytes - start else None


class _BlockFile(io.RawIOBase):
    """A large object as a file whose blocks are read from the cache, or else from the store. pyarrow does not use it from two
    threads at once."""

    def __init__(self, objects: CachedObjects, info: ObjectInfo) -> None:
        super().__init__()
        self._objects, self._info, self._position = objects, info, 0

    def has_end(self) -> bool:
        """Whether the object ends at its listed size. Then its last block, which contains the footer, is in the cache."""
        number = (self._info.size_bytes - 1) // _BLOCK_BYTES
        return self._find_block(number) is not None or self._fetch_blocks(number, number + 1) is not None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._info.size_bytes}[whence]
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """The next `size` bytes, fewer at the end of the file; None or -1: all that remain."""
        remaining_bytes = max(0, self._info.size_bytes - self._position)
        length = remaining_bytes if size is None or size < 0 else min(size, remaining_bytes)
        # The numbers of the first block and of the block after the last one (rounded up).
        first, end = self._position // _BLOCK_BYTES, -(-(self._position + length) // _BLOCK_BYTES)
        start = self._position - first * _BLOCK_BYTES  # in the first block
        self._position += length
        return b"".join(self._read_blocks(first, end))[start : start + length] if length else b""

    def expect(self, ranges: Sequence[ByteRange]) -> None:
        """Fetch the blocks of ranges that are read next into the cache, by many requests at once. Ranges outside of the object,
        from a damaged footer, are left out."""
        blocks = {
            number
            for start, length in ranges
            if start >= 0 and start + length <= self._info.size_bytes
            for number in range(start // _BLOCK_BYTES, -(-(start + length) // _BLOCK_BYTES))
        }
        missing_numbers = [number for number in sorted(blocks) if self._find_block(number) is None]
        with ThreadPoolExecutor(_REQUESTS, "delta_py-store") as pool:
            list(pool.map(lambda run: self._fetch_blocks(run[0], run[-1] + 1), _consecutive_runs(missing_numbers)))

    def _read_blocks(self, first: int, end: int) -> list[bytes]:
        """The blocks from the number `first` to `end` (exclusive), from the cache or else from the store."""
        blocks = {number: block for number in range(first, end) if (block := self._find_block(number)) is not None}
        for run in _consecutive_runs([number for number in range(first, end) if number not in blocks]):
            fetched_blocks = self._fetch_blocks(run[0], run[-1] + 1)
            if fetched_blocks is None:
                raise OSError(f"{self._info.path} has not the {self._info.size_bytes} bytes that were listed: it was replaced.")
            blocks.update(zip(run, fetched_blocks, strict=True))
        return [blocks[number] for number in range(first, end)]

    def _find_block(self, number: int) -> bytes | None:
        """The block of this number from the cache; None if it is not there."""
        start = number * _BLOCK_BYTES
        return self._objects.find_part(self._info, start, min(_BLOCK_BYTES, self._info.size_bytes - start))

    def _fetch_blocks(self, first: int, end: int) -> list[bytes] | None:
        """Neighbouring blocks, in one request; None if the object is shorter or longer than listed. To find out, the request for
        the last block asks for one byte more, which must not exist."""
        start, stop = first * _BLOCK_BYTES, min(end * _BLOCK_BYTES, self._info.size_bytes)
        length = stop - start + (1 if stop == self._info.size_bytes else 0)
        data = self._objects.store.read_range(self._info.path, start, length)
        if len(data) != stop - start:
            return None
        blocks = [data[offset : offset + _BLOCK_BYTES] for offset in range(0, len(data), _BLOCK_BYTES)]
        for number, block in enumerate(blocks, first):
            self._objects.put_part(self._info, number * _BLOCK_BYTES, block)
        return blocks


def _consecutive_runs(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Runs of consecutive numbers, each as long as one request may be. numbers: ascending."""
    run: list[int] = []
    for number in numbers:
        if run and (number != run[-1] + 1 or len(run) == _LONGEST_RUN):
            yield run
            run = []
        run.append(number)
    if run:
        yield run
