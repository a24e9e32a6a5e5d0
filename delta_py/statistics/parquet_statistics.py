"""Statistics in a Parquet file's footer, asked for only where the footer does not contradict itself.

statistics = chunk_statistics(footer, group=0, column=3)       # None where there are none
nulls = chunk_null_count(footer, group=0, column=3)            # None where it is not said
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def chunk_statistics(footer: Any, group: int, column: int) -> Any | None:
    """footer: pyarrow.parquet.FileMetaData. The Statistics of a column chunk; None where it has none.

    Raises pyarrow.ArrowInvalid for a chunk of another type than the schema's: asked for these, pyarrow ends the process.
    """
    chunk = footer.row_group(group).column(column)
    declared = footer.schema.column(column).physical_type
    if chunk.physical_type != declared:
        raise pa.ArrowInvalid(f"the chunk of {declared} column {column} in row group {group} says it is of {chunk.physical_type}")
    return chunk.statistics


def chunk_null_count(footer: Any, group: int, column: int) -> int | None:
    """How many rows of a row group have no value in a column; None where the footer does not say. Raises as chunk_statistics."""
    return null_count_of(chunk_statistics(footer, group, column))


def null_count_of(statistics: Any | None) -> int | None:
    """statistics: of chunk_statistics."""
    return int(statistics.null_count) if statistics is not None and statistics.has_null_count else None
