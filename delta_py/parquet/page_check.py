"""Checks that all pages of a data file can be decoded and match their checksums.

    fault = find_page_fault(source, size_bytes)      # why the file is damaged; None for a sound one

All columns are read, also those that the table does not have. A page without a checksum (some writers omit it) is only
checked for decoding. Memory: a batch of a row group, and the pages that it comes from.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from delta_py.parquet.batch_size import BatchSizer
from delta_py.storage.arrow_files import is_prefetching

_BATCH_ROWS, _BATCH_BYTES = 65_536, 8 << 20
# Larger files are read through a buffer for each column, because all column chunks of a row group may not fit into memory.
_WHOLE_CHUNKS_BYTES, _BUFFER_BYTES = 16 << 20, 256 << 10


def find_page_fault(source: pa.NativeFile, size_bytes: int, count_rows: Callable[[int, int], None] | None = None) -> str | None:
    """Why the file is damaged; None if it is sound.

    size_bytes: the size of the file. count_rows: a function that is called after each batch with two numbers: the rows that were
    read so far, and all rows of the file.
    Raises OSError and StorageError if the storage failed, pa.ArrowNotImplementedError for a kind of file that this pyarrow
    does not read, and MemoryError: none of them means that the file is damaged.
    """
    try:
        _read_all(source, size_bytes, count_rows)
    except pa.ArrowNotImplementedError:
        raise
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        return str(error)
    except OSError as error:
        if error.errno is not None:  # from the operating system; Parquet errors have no errno
            raise
        return str(error)
    return None


def _read_all(source: pa.NativeFile, size_bytes: int, count_rows: Callable[[int, int], None] | None) -> None:
    """Read all pages. Raises the errors of pyarrow's reader for damaged ones.

    The footer's metadata of column chunks is left to the reader: it raises if the metadata is damaged, and pyarrow's access to
    such metadata ends the process.
    """
    buffer_size = _BUFFER_BYTES if size_bytes > _WHOLE_CHUNKS_BYTES and not is_prefetching(source) else 0
    sizer = BatchSizer(_BATCH_ROWS, _BATCH_BYTES)
    with pq.ParquetFile(
        source, buffer_size=buffer_size, pre_buffer=False, coerce_int96_timestamp_unit="us", page_checksum_verification=True
    ) as parquet:
        total, rows_read = parquet.metadata.num_rows, 0
        for number in range(parquet.num_row_groups):
            group = parquet.metadata.row_group(number)
            # A dictionary may take all bytes of the group, and contain a single value that all rows share.
            rows = sizer.start_range(group.num_rows, group.total_byte_size, group.total_byte_size)
            for batch in parquet.reader.iter_batches(rows, row_groups=[number], use_threads=False):
                sizer.split_batch(batch)  # only sets the size of the next batch: the pieces are not needed
                parquet.reader.set_batch_size(sizer.rows)
                rows_read += batch.num_rows
                if count_rows is not None:
                    count_rows(rows_read, total)
        if rows_read != total:
            raise pa.ArrowInvalid(f"its row groups hold {rows_read} rows where the footer says {total}")
