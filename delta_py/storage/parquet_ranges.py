"""The byte ranges of columns in a Parquet file, from its footer.

column_ranges(footer, groups=[0], leaves=[2, 3])       # [(offset, length), ...], in bytes
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any


def column_ranges(footer: Any, groups: Iterable[int], leaves: Collection[int]) -> list[tuple[int, int]]:
    """The ranges of some leaf columns in some row groups, including dictionaries. footer: pyarrow.parquet.FileMetaData. Ranges
    from a damaged footer may be outside the file."""
    ranges = []
    for group in groups:
        row_group = footer.row_group(group)
        for leaf in leaves:
            chunk = row_group.column(leaf)
            dictionary, data = chunk.dictionary_page_offset, chunk.data_page_offset
            # An offset that is 0, or not before the data, belongs to no dictionary.
            start = data if dictionary is None or not 0 < dictionary < data else dictionary
            ranges.append((start, chunk.total_compressed_size))
    return ranges
