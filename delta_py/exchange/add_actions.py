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
from delta_py.types.schema import ArrayType, DataType, MapType, Path, find_path, group_by_first_name, leaves

# The fields of the statistics in the log, and the columns of the result that show them.
_STATS_COLUMNS = {"nullCount": "null_count", "minValues": "min", "maxValues": "max"}


def add_actions(snapshot: Snapshot, flatten: bool = False, *, timezone: str = "UTC") -> pa.Table:
    """One row for each data file of the version.

    The columns are path, size_bytes, modification_time (ms since 1970), num_records, and the structs null_count, min, max and
    partition, which have a field for each column of the table that has such a value. flatten: return the fields of these structs
    as columns, such as `min.price`. timezone: the zone of partition values that are timestamps without an offset.
    Statistics are those of the log, which ignore deletion vectors; null if unknown. Raises as Snapshot.files.
    """
    files = snapshot.files()
    config = snapshot.config
    mode = config.column_mapping_mode
    paths_with_statistics = set(stats_columns(config))
    # The columns with statistics, by their physical paths: the logical path, and the type.
    logical_paths: dict[Path, Path] = {}
    types: dict[Path, DataType] = {}
    for path, leaf in leaves(config.schema):
        physical = physical_path(config.schema, path, mode)
        if physical in paths_with_statistics and not isinstance(leaf.data_type, ArrayType | MapType):
            logical_paths[physical], types[physical] = path, leaf.data_type
    stats = json_to_struct(files["stats"].combine_chunks(), types, tight_bounds=False)
    columns: dict[str, pa.Array] = {
        "path": files["path"].combine_chunks(),
        "size_bytes": files["size"].combine_chunks(),
        "modification_time": files["modification_time"].combine_chunks(),
        "num_records": stats.field("numRecords"),
    }
    # By the name of a struct in the result: the arrays of its fields, by their logical paths.
    sections = {
        column_name: {
            path: _nested_array(stats, (section, *physical))
            for physical, path in logical_paths.items()
            if section == "nullCount" or has_bounds(types[physical])  # some types have null counts only
        }
        for section, column_name in _STATS_COLUMNS.items()
    }
    sections["partition"] = {(name,): values for name, values in _typed_partitions(snapshot, files, timezone)}
    for section, values in sections.items():
        if flatten:
            columns.update({".".join((section, *path)): array for path, array in values.items()})
        elif values:
            columns[section] = _nested_struct(values)
    return pa.table(columns)


def _nested_array(stats: pa.StructArray, path: Path) -> pa.Array:
    """The values of a nested field; null where a parent is null."""
    array: pa.Array = stats
    for name in path:
        array = array.flatten()[array.type.get_field_index(name)]
    return array


def _typed_partitions(snapshot: Snapshot, files: pa.Table, timezone: str) -> Iterator[tuple[str, pa.Array]]:
    """Yield each partition column's name, and its values for the files in the column's type."""
    config = snapshot.config
    batches = files.select(["partition_values"]).combine_chunks().to_batches()  # one batch; none if there are no files
    for name, physical in zip(config.partition_columns, config.physical_partition_columns, strict=True):
        column = find_path(config.schema, (name,))[0]
        texts = partition_texts(batches[0], physical) if batches else pa.nulls(0, pa.string())
        yield name, typed_partition_values(texts, column, timezone)


def _nested_struct(values: dict[Path, pa.Array]) -> pa.StructArray:
    """A struct with the arrays at their paths: a path of several names leads through nested structs."""
    groups = group_by_first_name(values)
    # The path () in a group means that the group is a single array, which is a field of this struct itself.
    arrays = [group[()] if () in group else _nested_struct(group) for group in groups.values()]
    return pa.StructArray.from_arrays(arrays, names=list(groups))
