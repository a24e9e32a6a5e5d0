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
    """type: as DDL. default: SQL of a constant; None if the caller must pass the argument."""

    name: str
    type: str
    comment: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Procedure:
    name: str
    description: str
    parameters: tuple[Parameter, ...]


_TABLE = Parameter("table", "STRING", "a table's name as SQL has it, or its path")
_WHERE = Parameter("where", "STRING", "a condition on partition columns, in SQL; null for the whole table", "NULL")
_VERSION = Parameter("version", "BIGINT", "of the table", "NULL")
_PARTITIONED_BY = Parameter("partitioned_by", "STRING", "partition columns of directories of Parquet files, as DDL", "NULL")
_TIMESTAMP = Parameter("timestamp", "STRING", "a time in the session's time zone, in place of a version", "NULL")


def _flag(name: str, comment: str, default: str = "false") -> Parameter:
    return Parameter(name, "BOOLEAN", comment, default)


_ALL = (
    Procedure(
        "optimize",
        "OPTIMIZE: few large files in place of many small ones, in the order of columns",
        (
            _TABLE,
            _WHERE,
            Parameter("zorder_by", "ARRAY<STRING>", "columns of a Z-order, names as SQL has them", "NULL"),
            _flag("full", "clustered files are clustered again"),
        ),
    ),
    Procedure(
        "vacuum",
        "VACUUM: deletes files that no version needs which is to stay readable",
        (
            _TABLE,
            Parameter("retain_hours", "DOUBLE", "how long removed files stay; null for the table's retention", "NULL"),
            _flag("dry_run", "tells the files, and deletes none"),
            _flag("lite", "takes what the log says instead of a listing; null for the session's setting", "NULL"),
            Parameter("inventory", "STRING", "a table of files in place of a listing, by its name or path", "NULL"),
        ),
    ),
    Procedure(
        "history",
        "DESCRIBE HISTORY: the table's versions, newest first",
        (_TABLE, Parameter("limit", "BIGINT", "at most so many versions", "NULL")),
    ),
    Procedure("detail", "DESCRIBE DETAIL: what the table is", (_TABLE,)),
    Procedure(
        "restore",
        "RESTORE: an earlier version's state as a new version",
        (
            _TABLE,
            _VERSION,
            _TIMESTAMP,
            _flag("ignore_missing_files", "restores without data files that are gone; null for the session's setting", "NULL"),
        ),
    ),
    Procedure(
        "generate",
        "GENERATE: files beside the table for engines without Delta",
        (_TABLE, Parameter("mode", "STRING", "which files", "'symlink_format_manifest'")),
    ),
    Procedure("reorg", "REORG ... APPLY (PURGE): deleted rows and dropped columns leave the files", (_TABLE, _WHERE)),
    Procedure(
        "fsck",
        "FSCK REPAIR TABLE: what is missing or damaged, and its repair",
        (
            _TABLE,
            _flag("dry_run", "tells the faults, and repairs none"),
            _flag("check_data", "reads every page of every data file, and compares it with its checksum"),
        ),
    ),
    Procedure(
        "clone",
        "CLONE: a table with the rows of another, or of Parquet files",
        (
            _TABLE,
            Parameter("target", "STRING", "the new table's name as SQL has it, or its path"),
            _flag("shallow", "over the files of the other table, without copies"),
            _VERSION,
            _TIMESTAMP,
            _flag("replace", "in the place of a table that is there"),
            Parameter("properties", "MAP<STRING, STRING>", "table properties beside those of the other table", "NULL"),
            Parameter("location", "STRING", "where a new table of the catalog goes", "NULL"),
            _PARTITIONED_BY,
        ),
    ),
    Procedure(
        "convert",
        "CONVERT TO DELTA: a directory of Parquet files becomes a table",
        (
            Parameter("table", "STRING", "parquet.`/path`, the path alone, or a table of Parquet files in the catalog"),
            _PARTITIONED_BY,
        ),
    ),
    Procedure(
        "add_constraint",
        "ALTER TABLE ADD CONSTRAINT: a CHECK constraint, which all rows keep",
        (_TABLE, Parameter("name", "STRING", "of the constraint"), Parameter("check", "STRING", "a condition, in SQL")),
    ),
    Procedure(
        "drop_constraint",
        "ALTER TABLE DROP CONSTRAINT",
        (_TABLE, Parameter("name", "STRING", "of the constraint"), _flag("if_exists", "one that is not there is no error")),
    ),
    Procedure("add_feature", "ALTER TABLE ADD FEATURE", (_TABLE, Parameter("feature", "STRING", "its name"))),
    Procedure(
        "drop_feature",
        "ALTER TABLE DROP FEATURE",
        (_TABLE, Parameter("feature", "STRING", "its name"), _flag("truncate_history", "versions that need it go at once")),
    ),
    Procedure(
        "cluster_by",
        "ALTER TABLE CLUSTER BY",
        (_TABLE, Parameter("columns", "ARRAY<STRING>", "names as SQL has them; none ends the clustering")),
    ),
    Procedure(
        "sync_identity",
        "ALTER TABLE ALTER COLUMN SYNC IDENTITY: an identity column goes on behind the values that are there",
        (_TABLE, Parameter("column", "STRING", "its name")),
    ),
    Procedure(
        "create_index",
        "CREATE INDEX: which files hold a value",
        (_TABLE, Parameter("name", "STRING", "of the index"), Parameter("column", "STRING", "its name as SQL has it")),
    ),
    Procedure("drop_index", "DROP INDEX", (_TABLE, Parameter("name", "STRING", "of the index"))),
)

PROCEDURES: Mapping[str, Procedure] = {procedure.name: procedure for procedure in _ALL}


@cache
def procedures_json() -> str:
    """Return the procedures in the form that TableProcedure.java reads."""
    return json.dumps([asdict(procedure) for procedure in _ALL])
