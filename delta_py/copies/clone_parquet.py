"""Shallow clones of directories of Parquet files: a new table over files that have no log.

    clone_parquet(source_store, target_store, ConvertRequest())     # {"version": 0, "metrics": {...}}

CONVERT TO DELTA's code (convert_to_delta.py) reads columns, partition values and statistics of the files. The result is cloned
like a table (clone.py). Nothing is written at the source. Only the VACUUM of a table around the source lists files there. Neither
source nor clone may contain the other, so that the clone's VACUUM never lists the source's files.
Protocol: Add File and Remove File; Per-file Statistics; Partition Value Serialization.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from delta_py.copies.clone import CloneSource, clone_files, load_table_to_replace
from delta_py.copies.convert_to_delta import ConvertRequest, ParquetTable, ReadFooters, read_directory, read_here
from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.optimize.optimize import AtTable, here
from delta_py.progress import progress
from delta_py.protocol.paths import encode_path
from delta_py.snapshot import Snapshot
from delta_py.storage.addresses import is_within
from delta_py.storage.store import ObjectStore


@progress("CLONE", "files")
def clone_parquet(
    source: ObjectStore,
    target: ObjectStore,
    request: ConvertRequest,
    *,
    replace_table: bool = False,
    properties: Mapping[str, str] | None = None,
    read: ReadFooters | None = None,
    run_at_table: AtTable = here,
) -> dict[str, Any]:
    """Make the target a shallow clone of the Parquet files below the source's root; returns its version and the metrics of the
    commit.

    request: describes the source; its configuration counts as the source's properties. read: reads the footers of the files; None
    for threads of this process. run_at_table: runs a step in the process that has the tables. replace_table, properties: as in
    shallow_clone. Raises as shallow_clone and read_directory; InvalidOptionError if one place contains the other;
    UnsupportedOperationError (DELTA_CLONE_UNSUPPORTED_SOURCE) for a source that is a table.
    """
    _check_apart(source.root, target.root)
    old_table = run_at_table(partial(load_table_to_replace, source.root, target, replace_table=replace_table))
    parquet_table = read_directory(source, request, read or read_here, run_at_table)
    if parquet_table is None:
        raise unsupported_source(f"parquet.`{source.root}`", "Delta", "Name it as a table, by delta.`/path` or its name.")
    old_table = None if old_table is None else old_table.through(target)
    return run_at_table(
        partial(_commit_clone, source.root, request, parquet_table, target, old_table, dict(properties or {})), once=True
    )


def _commit_clone(
    root: str,
    request: ConvertRequest,
    table: ParquetTable,
    target: ObjectStore,
    old_table: Snapshot | None,
    properties: Mapping[str, str],
) -> dict[str, Any]:
    """Commit the clone. root: of the source. table: its files and columns. old_table: the table that is replaced; None if there
    is none. Returns as clone_parquet."""
    label = f"parquet.`{encode_path(root)}`" if request.catalog_table is None else request.catalog_table
    source = CloneSource(root=root, label=label, config=table.definition.config, file_count=len(table.adds))
    return clone_files(source, table.adds, target, old_table, properties)


def _check_apart(source: str, target: str) -> None:
    """Raises InvalidOptionError if one directory contains the other. A clone below the source would write files that then count
    as the source's; and the VACUUM of a clone around the source would delete the source's files.
    """
    if is_within(source, target) or is_within(target, source):
        raise InvalidOptionError(
            f"The clone at {target} and the Parquet files at {source} would lie in each other: files of the one would count as "
            "files of the other. Nothing was changed. Choose a path for the clone outside of that of the files.",
            option="path",
            path=target,
        )


def unsupported_source(name: str, kind: str, cure: str) -> UnsupportedOperationError:
    """The error for a source that cannot be cloned. kind: its format."""
    return UnsupportedOperationError(
        f"Unsupported clone source '{name}', whose format is {kind}. The supported formats are 'delta' and 'parquet'. Nothing "
        f"was changed. {cure}",
        error_class="DELTA_CLONE_UNSUPPORTED_SOURCE",
        sql_state="0AKDC",
        name=name,
        format=kind,
    )
