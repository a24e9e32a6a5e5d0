"""Which leaves of a table get statistics, in data files and in checkpoints.

Protocol: Per-file Statistics.
"""

from __future__ import annotations

from collections.abc import Sequence

from delta_py.errors import SchemaMismatchError
from delta_py.protocol.actions import DomainMetadata
from delta_py.protocol.clustering import clustering_columns, clustering_paths
from delta_py.protocol.collations import is_collated
from delta_py.protocol.column_mapping import physical_path
from delta_py.protocol.table_config import TableConfig
from delta_py.types.names import split_list, split_name
from delta_py.types.schema import VOID, ArrayType, MapType, Path, StructField, find_path, leaves, type_name

PROPERTY = "delta.dataSkippingStatsColumns"
_DEFAULT_COLUMN_COUNT = 32  # of delta.dataSkippingNumIndexedCols


def stats_columns(config: TableConfig) -> tuple[Path, ...]:
    """Physical paths of the leaves with statistics, in the schema's order.

    With delta.dataSkippingStatsColumns: the leaves that it names, and the leaves inside the structs that it names. Otherwise: the
    first leaves outside partition columns, as many as delta.dataSkippingNumIndexedCols (all if it is negative).
    """
    partitions = set(config.partition_columns)
    data_leaves = [path for path, leaf in leaves(config.schema) if path[0] not in partitions and _can_have_statistics(leaf)]
    names_text = config.properties.get(PROPERTY)
    if names_text is not None:
        prefixes = [split_name(text) for text in split_list(names_text)]
        chosen_leaves = [path for path in data_leaves if any(_starts_with(path, prefix) for prefix in prefixes)]
    else:
        count = config.properties.integer("delta.dataSkippingNumIndexedCols", _DEFAULT_COLUMN_COUNT)
        chosen_leaves = data_leaves if count < 0 else data_leaves[:count]
    return tuple(physical_path(config.schema, path, config.column_mapping_mode) for path in chosen_leaves)


def check_stats_columns(config: TableConfig) -> None:
    """Raises SchemaMismatchError for columns of delta.dataSkippingStatsColumns that cannot have statistics."""
    names_text = config.properties.get(PROPERTY)
    if names_text is None:
        return
    checked_paths: set[tuple[str, ...]] = set()
    for text in split_list(names_text):
        path = find_path(config.schema, split_name(text))
        lower_path = tuple(name.lower() for name in split_name(text))
        if lower_path in checked_paths:
            raise _column_error(text, "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS", "42701", "is named twice")
        checked_paths.add(lower_path)
        if lower_path[0] in {name.lower() for name in config.partition_columns}:
            condition = "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN"
            raise _column_error(text, condition, "0AKDC", "is a partition column, and the log already has its values")
        kind = path[-1].data_type
        if isinstance(kind, ArrayType | MapType) or kind == VOID:
            condition = "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"
            raise _column_error(text, condition, "0AKDC", f"is of type {type_name(kind)}, which has no statistics")


def _column_error(name: str, condition: str, sql_state: str, why: str) -> SchemaMismatchError:
    """The error for a column in the property. condition: Delta's name of the error. why: what is wrong with the column."""
    return SchemaMismatchError(
        f"{PROPERTY}: column {name} {why}. Nothing was changed. Leave it out.",
        error_class=condition,
        sql_state=sql_state,
        column=name,
    )


def _can_have_statistics(leaf: StructField) -> bool:
    """Whether a leaf can get statistics. A text with a collation cannot: its bounds would be in the order of bytes."""
    return leaf.data_type != VOID and not is_collated(leaf)


def _starts_with(path: Path, prefix: Path) -> bool:
    """Whether the path is the prefix, or lies below it. Case does not matter."""
    return [name.lower() for name in path[: len(prefix)]] == [name.lower() for name in prefix]


def with_added_paths(columns: tuple[Path, ...], needed: Sequence[Path]) -> tuple[Path, ...]:
    """All leaves that get statistics. columns: those that the table's properties choose (stats_columns). needed: those that must
    have statistics for another reason, such as clustering columns. Protocol: Writer Requirements for Clustered Table."""
    return (*columns, *(path for path in needed if path not in columns))


def check_clustering(config: TableConfig, domain: DomainMetadata) -> None:
    """Raises SchemaMismatchError (DELTA_CLUSTERING_COLUMN_MISSING_STATS) for clustering columns that get no statistics because of
    the table properties."""
    paths_with_stats = set(stats_columns(config))
    names = clustering_columns(config.schema, domain)
    unusable_names = [name for name, path in zip(names, clustering_paths(domain), strict=True) if path not in paths_with_stats]
    if unusable_names:
        raise SchemaMismatchError(
            f"The table collects no statistics of {', '.join(unusable_names)}, so no reader could use this clustering to skip "
            "files. Nothing was changed. Name the column in delta.dataSkippingStatsColumns, or cluster by another one.",
            error_class="DELTA_CLUSTERING_COLUMN_MISSING_STATS",
            sql_state="22000",
            columns=unusable_names,
        )
