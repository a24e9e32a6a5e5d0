"""Segments of an index: Parquet files of (hash, number of the data file), sorted by hash, with the names of the data files.

    builder = SegmentBuilder(definition)
    builder.add(files, hashes, numbers)                 # files: FILES_SCHEMA
    data, segment = builder.finish_segment()                      # the bytes of the file, and its entry for the log

    open_segment(store, definition, segment).find_candidates(hashes)       # numbers of the data files that may hold these hashes

The footer has the names of the data files and the first hash of each row group. It stays in memory after the first read, so that
a lookup reads one row group. Pages have checksums, which reads verify: a damaged segment is not used.
"""

from __future__ import annotations

import base64
import uuid
import zlib
from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from delta_py.errors import StorageError
from delta_py.index.definition import FORMAT, IndexDefinition, Segment
from delta_py.index.hashing import HASH, Hashes
from delta_py.storage.store import ObjectStore

FILES_SCHEMA = pa.schema([("path", pa.string()), ("size", pa.int64())])
MAX_ROWS = 4 << 20

_ROWS_SCHEMA = pa.schema([("hash", pa.uint64()), ("file", pa.int32())])
_GROUP_ROWS = 32_768  # of a row group
# Keys of the footer: the index, the data files by their numbers, and the first hash of each row group.
_IDENTITY, _FILES, _STARTS = b"pydelta.index", b"pydelta.index.files", b"pydelta.index.starts"
_CHECKSUM = b"pydelta.index.crc32"  # of files and starts, because pages have checksums and footers have none
_FOOTER_LIMIT = 1 << 30  # bytes; it replaces pyarrow's lower limit, because the footer has the names of all data files
_CACHED_BYTES = 256 << 20  # memory of this process for opened segments


class UnusableSegmentError(Exception):
    """A segment that is missing, damaged, or not what the log says."""


class SegmentBuilder:
    """Builds one segment. Memory: about 30 bytes a row during `finish_segment`."""

    def __init__(self, definition: IndexDefinition) -> None:
        self._definition = definition
        self._start_segment()

    def _start_segment(self) -> None:
        self._files: list[pa.Table] = []
        self._hashes: list[Hashes] = []
        self._numbers: list[Any] = []
        self.rows = self.file_count = 0

    def add(self, files: pa.Table, hashes: Hashes, numbers: Any) -> None:
        """Add hashes of values. files: FILES_SCHEMA, the data files that have them. numbers: for each hash, the position of its
        file in this table."""
        self._files.append(files)
        self._hashes.append(hashes)
        self._numbers.append(numbers.astype(np.int32) + np.int32(self.file_count))
        self.rows += len(hashes)
        self.file_count += files.num_rows

    def finish_segment(self) -> tuple[bytes, Segment]:
        """Return the segment's file with the added rows, and its entry for the log; start the next segment."""
        hashes = np.concatenate([np.zeros(0, np.uint64), *self._hashes])
        numbers = np.concatenate([np.zeros(0, np.int32), *self._numbers])
        order = np.argsort(hashes, kind="stable")
        rows = pa.table([pa.array(hashes[order]), pa.array(numbers[order])], schema=_ROWS_SCHEMA)
        files = pa.concat_tables([FILES_SCHEMA.empty_table(), *self._files])
        path = f"{self._definition.directory}/{uuid.uuid4()}.parquet"
        data = _file_bytes(self._definition, rows, files)
        segment = Segment(path, rows.num_rows, files.num_rows, len(data))
        self._start_segment()
        return data, segment


def _file_bytes(definition: IndexDefinition, rows: pa.Table, files: pa.Table) -> bytes:
    """A segment as a Parquet file. rows: _ROWS_SCHEMA, sorted by hash. files: FILES_SCHEMA, in the order of their numbers."""
    sink = pa.BufferOutputStream()
    encodings = dict.fromkeys(_ROWS_SCHEMA.names, "DELTA_BINARY_PACKED")
    files_text = base64.b64encode(_ipc_bytes(files))
    starts = base64.b64encode(rows["hash"].to_numpy()[::_GROUP_ROWS].astype("<u8").tobytes())
    with pq.ParquetWriter(
        sink,
        _ROWS_SCHEMA,
        use_dictionary=False,
        column_encoding=encodings,
        compression="none",
        write_statistics=False,
        write_page_checksum=True,
        store_schema=False,
    ) as writer:
        writer.write_table(rows, row_group_size=_GROUP_ROWS)
        writer.add_key_value_metadata(
            {
                _IDENTITY: _index_identity(definition),
                _FILES: files_text,
                _STARTS: starts,
                _CHECKSUM: _checksum_text(files_text, starts),
            }
        )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _index_identity(definition: IndexDefinition) -> bytes:
    """What a segment says about its index, as JSON."""
    return orjson.dumps({"format": FORMAT, "column": definition.column, "kind": definition.kind, "hash": HASH})


def _checksum_text(files_text: bytes, starts: bytes) -> bytes:
    """The CRC-32 of two values of the footer, as a decimal number."""
    return str(zlib.crc32(starts, zlib.crc32(files_text))).encode()


def _ipc_bytes(files: pa.Table) -> bytes:
    """The table in Arrow's stream format, compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, files.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(files.combine_chunks())
    data: bytes = sink.getvalue().to_pybytes()
    return data


class OpenSegment:
    """A segment whose footer was read. files: FILES_SCHEMA, the data files that it covers, in the order of their numbers.
    metadata: pyarrow's FileMetaData. starts: the first hash of each row group."""

    def __init__(self, store: ObjectStore, segment: Segment, metadata: Any, files: pa.Table, starts: Hashes) -> None:
        self.segment, self.files = segment, files
        self._store, self._metadata, self._starts = store, metadata, starts

    @property
    def memory_bytes(self) -> int:
        """About how much memory this object takes: the parsed footer counts as twice its size in the file."""
        return int(self.files.nbytes) + self._starts.nbytes + 2 * int(self._metadata.serialized_size)

    def through(self, store: ObjectStore) -> OpenSegment:
        """The same segment, read through a store that was opened with other options."""
        return OpenSegment(store, self.segment, self._metadata, self.files, self._starts)

    def find_candidates(self, value_hashes: Hashes) -> Any:
        """The numbers of the files that have one of the hashes (sorted, distinct). Raises UnusableSegmentError."""
        # Hashes are sorted. So a hash may be in the last row group that begins with a smaller hash, and in all that begin with
        # it.
        first_groups = np.searchsorted(self._starts, value_hashes, side="left") - 1
        last_groups = np.searchsorted(self._starts, value_hashes, side="right") - 1
        group_ranges = (
            range(max(0, low), high + 1) for low, high in zip(first_groups.tolist(), last_groups.tolist(), strict=True)
        )
        group_hashes, numbers = self._rows_of_groups(sorted({group for group_range in group_ranges for group in group_range}))
        positions = np.minimum(np.searchsorted(value_hashes, group_hashes), len(value_hashes) - 1)
        return np.unique(numbers[value_hashes[positions] == group_hashes])

    def read_rows(self) -> tuple[Hashes, Any]:
        """All hashes and the numbers of their files. Raises UnusableSegmentError."""
        return self._rows_of_groups(list(range(len(self._starts))))

    def _rows_of_groups(self, groups: list[int]) -> tuple[Hashes, Any]:
        """The hashes in these row groups, and the numbers of their files. groups: ascending. Raises UnusableSegmentError."""
        if not groups:
            return np.zeros(0, np.uint64), np.zeros(0, np.int32)
        try:
            with self._store.open_input(self.segment.path, self.segment.bytes) as file:
                parquet = pq.ParquetFile(file, metadata=self._metadata, page_checksum_verification=True)
                rows = parquet.read_row_groups(groups, use_threads=False)
        except (pa.ArrowException, OSError, StorageError, ValueError) as error:
            raise UnusableSegmentError(f"{self.segment.path} cannot be read: {error}") from error
        hashes, numbers = rows["hash"].to_numpy(), rows["file"].to_numpy()
        # Every _GROUP_ROWS-th hash must be the recorded first hash of a row group: all groups except the last have _GROUP_ROWS
        # rows.
        if not np.array_equal(hashes[::_GROUP_ROWS], self._starts[groups]):
            raise UnusableSegmentError(f"{self.segment.path} has other row groups than it says")
        if not 0 <= numbers.min() <= numbers.max() < self.files.num_rows:
            raise UnusableSegmentError(f"{self.segment.path} names files that it does not list")
        return hashes, numbers


_lock = Lock()
_open_segments: OrderedDict[tuple[str, str], OpenSegment] = OrderedDict()


def open_segment(store: ObjectStore, definition: IndexDefinition, segment: Segment) -> OpenSegment:
    """The segment, from the memory of this process if it was opened before. Raises UnusableSegmentError."""
    key = store.root, segment.path
    with _lock:
        cached = _open_segments.get(key)
        if cached is not None and cached.segment == segment:
            _open_segments.move_to_end(key)
            return cached.through(store)
    opened = _read_footer(store, definition, segment)
    with _lock:
        _open_segments[key] = opened
        total = sum(cached_segment.memory_bytes for cached_segment in _open_segments.values())
        while total > _CACHED_BYTES and len(_open_segments) > 1:
            total -= _open_segments.popitem(last=False)[1].memory_bytes
    return opened


def _read_footer(store: ObjectStore, definition: IndexDefinition, segment: Segment) -> OpenSegment:
    """The segment with its footer, from the store. Raises UnusableSegmentError if the file is missing, damaged or not the one
    that the log describes."""
    try:
        with store.open_input(segment.path, segment.bytes) as file:
            size = file.size()
            metadata = pq.ParquetFile(
                file, thrift_string_size_limit=_FOOTER_LIMIT, thrift_container_size_limit=_FOOTER_LIMIT
            ).metadata
        footer = metadata.metadata or {}
        if footer[_CHECKSUM] != _checksum_text(footer[_FILES], footer[_STARTS]):
            raise ValueError("its list of files is damaged")
        files = pa.ipc.open_stream(base64.b64decode(footer[_FILES])).read_all()
        starts = np.frombuffer(base64.b64decode(footer[_STARTS]), "<u8")
    except FileNotFoundError as error:
        raise UnusableSegmentError(f"{segment.path} is missing") from error
    except (pa.ArrowException, OSError, StorageError, ValueError, KeyError) as error:
        raise UnusableSegmentError(f"{segment.path} cannot be read: {error}") from error
    has_recorded_sizes = (size, metadata.num_rows, files.num_rows) == (segment.bytes, segment.rows, segment.files)
    if footer.get(_IDENTITY) != _index_identity(definition) or not has_recorded_sizes or files.schema != FILES_SCHEMA:
        raise UnusableSegmentError(f"{segment.path} is not the segment that the log speaks of")
    if len(starts) != (metadata.num_row_groups if segment.rows else 0) or files["path"].null_count or files["size"].null_count:
        raise UnusableSegmentError(f"{segment.path} is damaged")
    return OpenSegment(store, segment, metadata, files, starts)
