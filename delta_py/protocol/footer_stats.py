"""Statistics of a data file that another program wrote, out of its footer alone, as the JSON text of `add.stats`.

    footer_stats(footer, leaves, columns, string_prefix=32)

What the footer does not say of every row group is left out, which readers take as unknown. So are upper bounds of floats: footers
pass over NaN, which is larger than any number. Null counts are those of leaves in no list or map; of these a footer counts parts.
Protocol: Per-file Statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.protocol.schema import DOUBLE, FLOAT, DataType, Path, StructType, find_path
from delta_py.protocol.stats import FileStats, stats_from_parquet_footer
from delta_py.protocol.stats_collector import StatsCollector, is_bounded


def footer_stats(
    footer: Any,
    schema: StructType,
    leaves: Mapping[Path, int],
    columns: Sequence[Path],
    *,
    absent: Sequence[Path] = (),
    string_prefix: int,
) -> str:
    """footer: pyarrow.parquet.FileMetaData. schema: the file's columns. leaves: the Parquet column of each leaf that is in no
    list or map. columns: the leaves that get statistics, all of the file. absent: such leaves that the file does not have, and so
    has nulls for.

    Raises pyarrow.ArrowInvalid for a footer that contradicts itself.
    """
    types = {path: find_path(schema, path)[-1].data_type for path in columns if path in leaves}
    groups = stats_from_parquet_footer(footer, leaves, types)
    groups = groups.filter(pc.greater(groups.num_records, 0))
    nulls = {path: pc.sum(counts).as_py() or 0 for path, counts in groups.null_count.items() if not counts.null_count}
    nulls |= dict.fromkeys(absent, footer.num_rows)
    bounded = {path: kind for path, kind in types.items() if is_bounded(kind)}
    collector = StatsCollector(schema, columns, string_prefix=string_prefix)
    collector.take_known(
        footer.num_rows,
        nulls,
        _whole(groups, groups.minimum, bounded, "min"),
        _whole(groups, groups.maximum, {path: kind for path, kind in bounded.items() if kind not in (FLOAT, DOUBLE)}, "max"),
    )
    return collector.to_json()


def _whole(
    groups: FileStats, bounds: Mapping[Path, pa.Array], leaves: Mapping[Path, DataType], side: str
) -> dict[Path, pa.Scalar]:
    """The bounds of all row groups together, where each has one or no value at all."""
    found: dict[Path, pa.Scalar] = {}
    for path in leaves:
        has_values = pc.fill_null(pc.less(groups.null_count[path], groups.num_records), True)
        if not pc.any(pc.and_(has_values, bounds[path].is_null())).as_py():
            found[path] = pc.min_max(bounds[path])[side]
    return found
