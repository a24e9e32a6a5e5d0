"""Statistics in a Parquet file's footer. They are read only if the footer does not contradict itself.

statistics = chunk_statistics(footer, group=0, column=3)       # None if there are none
nulls = chunk_null_count(footer, group=0, column=3)            # None if the footer does not have it
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def chunk_statistics(footer: Any, group: int, column: int) -> Any | None:
    """The statistics of a column chunk, as pyarrow.parquet.Statistics; None if it has none. footer: pyarrow.parquet.FileMetaData.
    group, column: the numbers of the row group and of the Parquet column.

    Raises pyarrow.ArrowInvalid if the chunk's type differs from the schema's: reading such statistics makes pyarrow crash the
    process.
    """
    chunk = footer.row_group(group).column(column)
    declared = footer.schema.column(column).physical_type
    if chunk.physical_type != declared:
        raise pa.ArrowInvalid(f"the chunk of {declared} column {column} in row group {group} says it is of {chunk.physical_type}")
    return chunk.statistics


def chunk_null_count(footer: Any, group: int, column: int) -> int | None:
    """The number of nulls in a column of a row group; None if the footer does not have it. Raises as chunk_statistics."""
    return null_count_of(chunk_statistics(footer, group, column))


def null_count_of(statistics: Any | None) -> int | None:
    """The null count in the result of chunk_statistics; None if it has none."""
    return int(statistics.null_count) if statistics is not None and statistics.has_null_count else None
