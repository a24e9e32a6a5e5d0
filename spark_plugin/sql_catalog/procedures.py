"""The procedures of the catalog `pydelta`, as described to Spark; spark_plugin/statements/call_procedure.py runs them.

CALL pydelta.system.optimize(table => 'shop.sales', zorder_by => array('id'))
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache

NAMESPACE = "system"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a procedure. type: as DDL. default: SQL of a constant; None if the caller must pass the argument."""

    name: str
    type: str
    comment: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure. parameters: in the order of arguments by position."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]


_TABLE = Parameter("table", "STRING", "a table's name in SQL, or its path")
_WHERE = Parameter("where", "STRING", "a condition on partition columns, in SQL; null for the whole table", "NULL")
_VERSION = Parameter("version", "BIGINT", "of the table", "NULL")
_PARTITIONED_BY = Parameter("partitioned_by", "STRING", "partition columns of directories of Parquet files, as DDL", "NULL")
_TIMESTAMP = Parameter("timestamp", "STRING", "a time in the session's time zone, in place of a version", "NULL")


def _flag(name: str, comment: str, default: str = "false") -> Parameter:
    return Parameter(name, "BOOLEAN", comment, default)


_ALL = (
    Procedure(
        "optimize",
        "OPTIMIZE: combines small files, and sorts rows by columns if asked",
        (
            _TABLE,
            _WHERE,
            Parameter("zorder_by", "ARRAY<STRING>", "columns of a Z-order, as in SQL", "NULL"),
            _flag("full", "cluster files again that are already clustered"),
        ),
    ),
    Procedure(
        "vacuum",
        "VACUUM: deletes files that no retained version references",
        (
            _TABLE,
            Parameter("retain_hours", "DOUBLE", "how long removed files are kept; null for the table's retention", "NULL"),
            _flag("dry_run", "list the files and delete none"),
            _flag("lite", "use the log instead of a listing; null: the session's setting", "NULL"),
            Parameter("inventory", "STRING", "name or path of a table that lists the files, instead of a listing", "NULL"),
        ),
    ),
    Procedure(
        "history",
        "DESCRIBE HISTORY: the table's versions, newest first",
        (_TABLE, Parameter("limit", "BIGINT", "the maximum number of versions", "NULL")),
    ),
    Procedure("detail", "DESCRIBE DETAIL: format, location, size and properties", (_TABLE,)),
    Procedure(
        "restore",
        "RESTORE: makes the state of an earlier version the newest version",
        (
            _TABLE,
            _VERSION,
            _TIMESTAMP,
            _flag("ignore_missing_files", "skip data files that are missing; null: the session's setting", "NULL"),
        ),
    ),
    Procedure(
        "generate",
        "GENERATE: writes manifests for engines without Delta",
        (_TABLE, Parameter("mode", "STRING", "which files", "'symlink_format_manifest'")),
    ),
    Procedure("reorg", "REORG ... APPLY (PURGE): rewrites files without deleted rows and columns", (_TABLE, _WHERE)),
    Procedure(
        "fsck",
        "FSCK REPAIR TABLE: finds missing and damaged files, and repairs the table",
        (
            _TABLE,
            _flag("dry_run", "list the faults and repair none"),
            _flag("check_data", "read every page of every data file and check its checksum"),
        ),
    ),
    Procedure(
        "clone",
        "CLONE: makes a table with the rows of another table or of Parquet files",
        (
            _TABLE,
            Parameter("target", "STRING", "the new table's name in SQL, or its path"),
            _flag("shallow", "reference the files of the other table instead of copying them"),
            _VERSION,
            _TIMESTAMP,
            _flag("replace", "replace an existing table"),
            Parameter("properties", "MAP<STRING, STRING>", "table properties in addition to those of the other table", "NULL"),
            Parameter("location", "STRING", "the location of a new table of the catalog", "NULL"),
            _PARTITIONED_BY,
        ),
    ),
    Procedure(
        "convert",
        "CONVERT TO DELTA: makes a directory of Parquet files a table",
        (
            Parameter("table", "STRING", "parquet.`/path`, the path alone, or a table of Parquet files in the catalog"),
            _PARTITIONED_BY,
        ),
    ),
    Procedure(
        "add_constraint",
        "ALTER TABLE ADD CONSTRAINT: adds a CHECK constraint",
        (_TABLE, Parameter("name", "STRING", "of the constraint"), Parameter("check", "STRING", "a condition, in SQL")),
    ),
    Procedure(
        "drop_constraint",
        "ALTER TABLE DROP CONSTRAINT",
        (_TABLE, Parameter("name", "STRING", "of the constraint"), _flag("if_exists", "no error if there is no such constraint")),
    ),
    Procedure("add_feature", "ALTER TABLE ADD FEATURE", (_TABLE, Parameter("feature", "STRING", "its name"))),
    Procedure(
        "drop_feature",
        "ALTER TABLE DROP FEATURE",
        (_TABLE, Parameter("feature", "STRING", "its name"), _flag("truncate_history", "delete versions that need it at once")),
    ),
    Procedure(
        "cluster_by",
        "ALTER TABLE CLUSTER BY",
        (_TABLE, Parameter("columns", "ARRAY<STRING>", "names in SQL; an empty array ends the clustering")),
    ),
    Procedure(
        "sync_identity",
        "ALTER TABLE ALTER COLUMN SYNC IDENTITY: continues after the existing values",
        (_TABLE, Parameter("column", "STRING", "its name")),
    ),
    Procedure(
        "create_index",
        "CREATE INDEX: an index of the files that contain a value",
        (_TABLE, Parameter("name", "STRING", "of the index"), Parameter("column", "STRING", "its name in SQL")),
    ),
    Procedure("drop_index", "DROP INDEX", (_TABLE, Parameter("name", "STRING", "of the index"))),
)

PROCEDURES: Mapping[str, Procedure] = {procedure.name: procedure for procedure in _ALL}


@cache
def procedures_json() -> str:
    """Return the procedures in the form that TableProcedure.java reads."""
    return json.dumps([asdict(procedure) for procedure in _ALL])
