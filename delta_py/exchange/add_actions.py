"""The data files of a version, one row each, with typed statistics and partition values, as deltalake's get_add_actions shows
them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from delta_py.protocol.column_mapping import physical_path
from delta_py.scan.file_pruner import partition_texts, typed_partition_values
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats import has_bounds, json_to_struct
from delta_py.statistics.stats_columns import stats_columns
from delta_py.types.schema import ArrayType, MapType, Path, find_path, leaves

_SECTIONS = {"nullCount": "null_count", "minValues": "min", "maxValues": "max"}


def add_actions(snapshot: Snapshot, flatten: bool = False, *, timezone: str = "UTC") -> pa.Table:
    """path, size_bytes, modification_time (ms), num_records, and the structs null_count, min, max and partition by column.

    flatten: a column for each value instead, such as `min.price`. Statistics are those of the log, without deletion vectors; null
    if unknown. Raises as Snapshot.files.
    """
    files = snapshot.files()
    config = snapshot.config
    mode, collected = config.column_mapping_mode, set(stats_columns(config))
    named = ((path, physical_path(config.schema, path, mode), leaf.data_type) for path, leaf in leaves(config.schema))
    named = ((path, name, kind) for path, name, kind in named if name in collected and not isinstance(kind, ArrayType | MapType))
    physical, kinds = {}, {}
    for path, name, kind in named:
        physical[name], kinds[name] = path, kind
    texts = files["stats"].combine_chunks()
    stats = json_to_struct(texts, kinds, tight_bounds=False)
    columns: dict[str, pa.Array] = {
        "path": files["path"].combine_chunks(),
        "size_bytes": files["size"].combine_chunks(),
        "modification_time": files["modification_time"].combine_chunks(),
        "num_records": stats.field("numRecords"),
    }
    sections = {
        shown: {
            name: _leaf(stats, (section, *path))
            for path, name in physical.items()
            if section == "nullCount" or has_bounds(kinds[path])
        }
        for section, shown in _SECTIONS.items()
    }
    sections["partition"] = {(name,): values for name, values in _partitions(snapshot, files, timezone)}
    for section, values in sections.items():
        if flatten:
            columns.update({".".join((section, *path)): array for path, array in values.items()})
        elif values:
            columns[section] = _struct(values)
    return pa.table(columns)


def _leaf(stats: pa.StructArray, path: Path) -> pa.Array:
    array: pa.Array = stats
    for name in path:
        array = array.flatten()[array.type.get_field_index(name)]
    return array


def _partitions(snapshot: Snapshot, files: pa.Table, timezone: str) -> Iterator[tuple[str, pa.Array]]:
    config = snapshot.config
    batches = files.select(["partition_values"]).combine_chunks().to_batches()
    for name, physical in zip(config.partition_columns, config.physical_partition_columns, strict=True):
        column = find_path(config.schema, (name,))[0]
        texts = partition_texts(batches[0], physical) if batches else pa.nulls(0, pa.string())
        yield name, typed_partition_values(texts, column, timezone)


def _struct(values: dict[Path, pa.Array]) -> pa.StructArray:
    """Nested structs of the values by path."""
    heads: dict[str, dict[Path, pa.Array]] = {}
    for path, array in values.items():
        heads.setdefault(path[0], {})[path[1:]] = array
    arrays = [inner[()] if () in inner else _struct(inner) for inner in heads.values()]
    return pa.StructArray.from_arrays(arrays, names=list(heads))
