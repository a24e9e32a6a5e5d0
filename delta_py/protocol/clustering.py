"""Clustering columns: the metadata domain in which a clustered table names them, by physical path.

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
    """The domain that names the columns. names: top-level or dotted, quoted or not; mode: of column mapping.

    Raises SchemaMismatchError for a column that is not there, is named twice, or has a type without statistics, and for
    more columns than clustering can use.
    """
    found = [find_path(schema, split_name(name)) if "`" in name else find_named(schema, name) for name in names]
    paths = [tuple(f.name for f in fields) for fields in found]
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
                f"Column {'.'.join(path)} is {type_name(leaf)}, by which a table cannot be clustered: it has no minimum and "
                "maximum. Choose another column.",
                error_class="DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
                sql_state="0A000",
                column=".".join(path),
            )
    return _domain([physical_path(schema, path, mode) for path in paths])


def _has_order(kind: DataType) -> bool:
    nested = isinstance(kind, StructType | ArrayType | MapType | GeospatialType)
    return not nested and type_name(kind) not in ("binary", "boolean", "variant", "void")


def with_columns_of(domain: DomainMetadata, before: StructType, after: StructType, mode: str) -> DomainMetadata:
    """The domain for a table that gets other columns: those of the same names, ignoring case. It names none where one of them is
    not there any more, or has become one by which no table can be clustered. mode: of column mapping."""
    wanted = [_logical(before, path) for path in clustering_paths(domain)]
    known = {_folded(path): path for path, leaf in leaves(after) if _has_order(leaf.data_type) and not is_collated(leaf)}
    paths = [known.get(_folded(path)) for path in wanted if path is not None]
    found = [physical_path(after, path, mode) for path in paths if path is not None]
    return _domain(found if len(found) == len(wanted) else [])


def _folded(path: Path) -> Path:
    return tuple(name.lower() for name in path)


def by_own_names(schema: StructType, domain: DomainMetadata) -> DomainMetadata:
    """The domain for the table without column mapping. schema: with it. A path that leads to no column stays as it stands."""
    return _domain([_logical(schema, path) or path for path in clustering_paths(domain)])


def _domain(paths: Sequence[Path]) -> DomainMetadata:
    text = orjson.dumps({"clusteringColumns": [list(path) for path in paths], "domainName": CLUSTERING_DOMAIN}).decode()
    return DomainMetadata(CLUSTERING_DOMAIN, text)


def clustering_paths(domain: DomainMetadata | None) -> tuple[Path, ...]:
    """The physical paths that the domain gives; () for a table without. Raises CorruptTableError for anything else."""
    if domain is None:
        return ()
    try:
        paths = [tuple(path) for path in orjson.loads(domain.configuration)["clusteringColumns"]]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise _damaged(domain) from error
    if not all(isinstance(name, str) for path in paths for name in path):
        raise _damaged(domain)
    return tuple(paths)


def clustering_leaves(schema: StructType, domain: DomainMetadata | None) -> tuple[Path, ...]:
    """The physical paths that the domain gives, as far as they lead to a column of the schema: those that need statistics.
    Raises CorruptTableError as clustering_paths."""
    return tuple(path for path in clustering_paths(domain) if _logical(schema, path) is not None)


def _damaged(domain: DomainMetadata) -> CorruptTableError:
    return CorruptTableError(
        f"The domain {CLUSTERING_DOMAIN} holds {domain.configuration!r}, which names no columns of the table. The log is damaged."
    )


def clustering_columns(schema: StructType, domain: DomainMetadata | None) -> tuple[str, ...]:
    """The logical names, dotted, that the domain gives; () for a table without.

    A path that leads to no column of the schema (another client's commit may leave such a domain behind) is given as it
    stands in the log: how rows are arranged does not decide what they are. Raises CorruptTableError for a domain that is no
    list of paths.
    """
    return tuple(map(".".join, logical_clustering_paths(schema, domain)))


def logical_clustering_paths(schema: StructType, domain: DomainMetadata | None) -> tuple[Path, ...]:
    """As clustering_columns, the names on the way to each column."""
    assert domain is None or domain.domain == CLUSTERING_DOMAIN
    return tuple(_logical(schema, path) or path for path in clustering_paths(domain))


def _logical(schema: StructType, physical: Path) -> Path | None:
    """By the physical names that the fields have, whatever the mapping's mode: the reference does so too."""
    return logical_path(schema, physical, lambda f: str(f.metadata.get(PHYSICAL_NAME, f.name)))
