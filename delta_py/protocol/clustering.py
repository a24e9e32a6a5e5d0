"""Clustering columns: a clustered table has a metadata domain that names them by physical path.

Protocol: Clustered Table; Writer Requirements for Clustered Table.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from delta_py.errors import CorruptTableError, SchemaMismatchError
from delta_py.protocol.actions import DomainMetadata
from delta_py.protocol.collations import is_collated
from delta_py.protocol.column_mapping import PHYSICAL_NAME, logical_path, physical_path
from delta_py.types.names import split_name
from delta_py.types.schema import (
    ArrayType,
    DataType,
    GeospatialType,
    MapType,
    Path,
    StructType,
    find_named,
    find_path,
    leaves,
    type_name,
)

CLUSTERING_DOMAIN = "delta.clustering"
MAX_CLUSTERING_COLUMNS = 4


def clustering_domain(schema: StructType, names: Sequence[str], mode: str) -> DomainMetadata:
    """The domain that names the columns. names: top-level or dotted, quoted or not. mode: of column mapping.

    Raises SchemaMismatchError if a column does not exist, is named twice, or has a type without statistics, and if there are more
    columns than clustering can use.
    """
    resolved_fields = [find_path(schema, split_name(name)) if "`" in name else find_named(schema, name) for name in names]
    paths = [tuple(f.name for f in fields) for fields in resolved_fields]
    if len(set(paths)) < len(paths) or len(paths) > MAX_CLUSTERING_COLUMNS:
        raise SchemaMismatchError(
            f"clusterBy({', '.join(names)}): name at most {MAX_CLUSTERING_COLUMNS} columns, each once.",
            error_class="DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
            sql_state="54000",
            columns=list(names),
        )
    for path in paths:
        leaf = find_path(schema, path)[-1].data_type
        if not _has_order(leaf):
            raise SchemaMismatchError(
                f"Column {'.'.join(path)} is of type {type_name(leaf)}, which cannot be used for clustering: it has no minimum "
                "and maximum. Choose another column.",
                error_class="DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
                sql_state="0A000",
                column=".".join(path),
            )
    return _domain_of_paths([physical_path(schema, path, mode) for path in paths])


def _has_order(kind: DataType) -> bool:
    """Whether files have a minimum and maximum of columns of this type, so that rows can be clustered by it."""
    nested = isinstance(kind, StructType | ArrayType | MapType | GeospatialType)
    return not nested and type_name(kind) not in ("binary", "boolean", "variant", "void")


def with_changed_columns(domain: DomainMetadata, before: StructType, after: StructType, mode: str) -> DomainMetadata:
    """The clustering domain for a table whose columns change, for example because the table is replaced. It names the columns
    that have the same logical names as the clustering columns, ignoring case.

    domain: before the change. before, after: the schema before and after the change. mode: of column mapping after the change.
    The domain names no columns if one of the clustering columns does not exist any more, or its new type cannot be used for
    clustering.
    """
    logical_paths = [_to_logical_path(before, path) for path in clustering_paths(domain)]  # None: the path leads to no column
    # The columns of the changed table that can be used for clustering.
    paths_by_name = {
        _lower_case(path): path for path, leaf in leaves(after) if _has_order(leaf.data_type) and not is_collated(leaf)
    }
    paths = [paths_by_name.get(_lower_case(path)) for path in logical_paths if path is not None]
    physical_paths = [physical_path(after, path, mode) for path in paths if path is not None]
    return _domain_of_paths(physical_paths if len(physical_paths) == len(logical_paths) else [])


def _lower_case(path: Path) -> Path:
    """The path in lower case, for comparison."""
    return tuple(name.lower() for name in path)


def with_logical_names(schema: StructType, domain: DomainMetadata) -> DomainMetadata:
    """The domain for a table whose column mapping is turned off: with the logical path of each column instead of the physical
    one.
    schema: with column mapping. A path that leads to no column is kept unchanged."""
    return _domain_of_paths([_to_logical_path(schema, path) or path for path in clustering_paths(domain)])


def _domain_of_paths(paths: Sequence[Path]) -> DomainMetadata:
    """The domain that names these physical paths."""
    text = orjson.dumps({"clusteringColumns": [list(path) for path in paths], "domainName": CLUSTERING_DOMAIN}).decode()
    return DomainMetadata(CLUSTERING_DOMAIN, text)


def clustering_paths(domain: DomainMetadata | None) -> tuple[Path, ...]:
    """The physical paths in the domain; () for a table without it. Raises CorruptTableError if the domain is not valid."""
    if domain is None:
        return ()
    try:
        paths = [tuple(path) for path in orjson.loads(domain.configuration)["clusteringColumns"]]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise _damaged_domain_error(domain) from error
    if not all(isinstance(name, str) for path in paths for name in path):
        raise _damaged_domain_error(domain)
    return tuple(paths)


def clustering_leaves(schema: StructType, domain: DomainMetadata | None) -> tuple[Path, ...]:
    """The physical paths in the domain that lead to a column of the schema. These columns need statistics.
    Raises CorruptTableError as clustering_paths."""
    return tuple(path for path in clustering_paths(domain) if _to_logical_path(schema, path) is not None)


def _damaged_domain_error(domain: DomainMetadata) -> CorruptTableError:
    """The error for a domain that is not a list of paths."""
    return CorruptTableError(
        f"The domain {CLUSTERING_DOMAIN} holds {domain.configuration!r}, which names no columns of the table. The log is damaged."
    )


def clustering_columns(schema: StructType, domain: DomainMetadata | None) -> tuple[str, ...]:
    """The logical names of the columns in the domain, dotted; () for a table without it.

    A path that leads to no column of the schema is returned as it is in the log. Another client's commit may leave such a domain,
    and the order of rows does not affect their content. Raises CorruptTableError if the domain is not a list of paths.
    """
    return tuple(map(".".join, logical_clustering_paths(schema, domain)))


def logical_clustering_paths(schema: StructType, domain: DomainMetadata | None) -> tuple[Path, ...]:
    """The logical paths of the columns in the domain; () for a table without it. A path that leads to no column of the schema is
    returned as it is in the log."""
    assert domain is None or domain.domain == CLUSTERING_DOMAIN
    return tuple(_to_logical_path(schema, path) or path for path in clustering_paths(domain))


def _to_logical_path(schema: StructType, physical: Path) -> Path | None:
    """The logical path of a physical one; None if it leads to no field. Physical names in the schema count in any mapping mode,
    as in delta-spark."""
    return logical_path(schema, physical, lambda f: str(f.metadata.get(PHYSICAL_NAME, f.name)))
