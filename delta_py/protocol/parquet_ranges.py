"""Where columns lie in a Parquet file, by its footer.

column_ranges(footer, groups=[0], leaves=[2, 3])       # [(offset, length), ...], in bytes
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any


def column_ranges(footer: Any, groups: Iterable[int], leaves: Collection[int]) -> list[tuple[int, int]]:
    """The chunks of some leaf columns in some row groups, dictionaries too. footer: pyarrow.parquet.FileMetaData. What a damaged
    footer says may lie outside of the file."""
    ranges = []
    for group in groups:
        row_group = footer.row_group(group)
        for leaf in leaves:
            chunk = row_group.column(leaf)
            dictionary, data = chunk.dictionary_page_offset, chunk.data_page_offset
            start = data if dictionary is None or not 0 < dictionary < data else dictionary
            ranges.append((start, chunk.total_compressed_size))
    return ranges
