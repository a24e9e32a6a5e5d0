"""Methods of DeltaTable that change what a table is: properties, protocol, columns, constraints, clustering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spark_plugin.options.settings import TablePath
from spark_plugin.run_command import run_command
from spark_plugin.table_api.alter_methods import (
    add_constraint,
    check_defaults,
    column_changes,
    new_columns,
    replaced_columns,
)
from spark_plugin.table_api.arguments import check_flag, check_integer, check_properties, check_text, names_of
from spark_plugin.table_api.table_names import refresh_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructField, StructType


class DefinitionMethods:
    """The methods of DeltaTable that change the definition of a table."""

    _spark: SparkSession
    _table: TablePath

    # ------------------------------------------------------------ what the table is

    def setProperties(self, properties: Mapping[str, str]) -> None:
        """Set table properties, Delta's and others. A property also enables the table feature that it needs.

        Raises InvalidOptionError for an invalid name or value; UnsupportedOperationError and
        UnsupportedTableFeatureError for a property that this table cannot have.
        """
        check_properties(properties)
        run_command(self._spark, self._table, "setProperties", {"properties": dict(properties)})

    def unsetProperties(self, names: Sequence[str], ifExists: bool = False) -> None:
        """Remove properties. Raises InvalidOptionError for one that the table does not have, unless ifExists."""
        check_flag(ifExists, "ifExists")
        for name in names:
            check_text(name, "Each name of a property")
        run_command(self._spark, self._table, "unsetProperties", {"names": list(names), "if_exists": ifExists})

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Raise the protocol's versions. Lower ones than the table's change nothing."""
        check_integer(readerVersion, "The readerVersion", "an integer")
        check_integer(writerVersion, "The writerVersion", "an integer")
        versions = {"reader_version": readerVersion, "writer_version": writerVersion}
        run_command(self._spark, self._table, "upgradeProtocol", versions)

    def addFeatureSupport(self, featureName: str) -> None:
        """Let the table support a feature, and those that it needs. Raises InvalidOptionError for an unknown feature name."""
        check_text(featureName, "featureName")
        run_command(self._spark, self._table, "addFeature", {"name": featureName})

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Remove a feature from the protocol, after everything that uses it: ALTER TABLE ... DROP FEATURE ... [TRUNCATE HISTORY].

        truncateHistory: delete the versions that use it, once they are old enough (delta.dropFeatureTruncateHistory.
        retentionDuration), instead of protecting their checkpoints. Raises the same as delta_py's drop_feature.
        """
        check_text(featureName, "featureName")
        if truncateHistory is not None:
            check_flag(truncateHistory, "truncateHistory")
        self._alter("dropFeature", {"name": featureName, "truncate_history": bool(truncateHistory)})

    # ------------------------------------------------------------ columns and constraints

    def addColumns(self, columns: str | StructType | list[Any]) -> None:
        """Add columns, or fields of structs: DDL, a StructType, or a list of StructFields and dicts with name, dataType and
        optional entries (comment, first, after). In lists names may be dotted, with backticks around names that contain dots.

        Existing rows have null. Raises the same as delta_py's add_columns. delta.tables has neither this method nor those below.
        """
        self._alter("addColumns", {"columns": check_defaults(self._spark, new_columns(columns))})

    def renameColumn(self, name: str, newName: str) -> None:
        """Give a column, or a field of a struct (dotted), another name; needs column mapping."""
        check_text(name, "name")
        check_text(newName, "newName")
        self._alter("renameColumn", {"name": name, "new_name": newName})

    def dropColumns(self, *names: str | list[str] | tuple[str, ...], ifExists: bool = False) -> None:
        """Remove columns, or fields of structs (dotted), from the schema; needs column mapping."""
        check_flag(ifExists, "ifExists")
        self._alter("dropColumns", {"names": names_of(names, "Column"), "if_exists": ifExists})

    def alterColumn(
        self,
        name: str,
        *,
        dataType: str | DataType | None = None,
        nullable: bool | None = None,
        comment: str | None = None,
        default: str | None = None,
        dropDefault: bool = False,
        first: bool = False,
        after: str | None = None,
    ) -> None:
        """Change a column, a field of a struct, or an array's or map's part (`a.element`, `m.key`): ALTER COLUMN.

        dataType: a wider one, where delta.enableTypeWidening is true. default: SQL. first, after: its new position.
        Raises the same as delta_py's change_columns.
        """
        change = {"dataType": dataType, "nullable": nullable, "comment": comment, "default": default, "dropDefault": dropDefault}
        self.alterColumns({name: {**change, "first": first, "after": after}})

    def alterColumns(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Do the same as alterColumn for several columns in one commit. changes: by name, the arguments of alterColumn."""
        self._alter("changeColumns", {"changes": check_defaults(self._spark, column_changes(changes))})

    def replaceColumns(self, columns: str | StructType | list[StructField]) -> None:
        """Give the table these columns, in this order: REPLACE COLUMNS. Raises the same as delta_py's replace_columns."""
        self._alter("replaceColumns", {"schema": replaced_columns(columns)})

    def syncIdentity(self, name: str) -> None:
        """Move the next number of an identity column past the existing values: ALTER COLUMN ... SYNC IDENTITY."""
        check_text(name, "name")
        self._alter("syncIdentity", {"name": name})

    def addConstraint(self, name: str, expression: str) -> None:
        """Add a CHECK constraint, if it is true for every row: ADD CONSTRAINT ... CHECK (...). Spark checks the rows.

        Raises the same as delta_py's add_constraint.
        """
        check_text(name, "name")
        check_text(expression, "expression")
        add_constraint(self._spark, self._table, name, expression)
        refresh_name(self._spark, self._table.name)

    def dropConstraint(self, name: str, *, ifExists: bool = False) -> None:
        """Drop a CHECK constraint. Raises InvalidOptionError (DELTA_CONSTRAINT_DOES_NOT_EXIST) unless ifExists."""
        check_text(name, "name")
        check_flag(ifExists, "ifExists")
        self._alter("dropConstraint", {"name": name, "if_exists": ifExists})

    def _alter(self, command: str, arguments: Mapping[str, Any]) -> None:
        """Run a command that changes columns or constraints, and then give the table's name in the catalog the new columns."""
        run_command(self._spark, self._table, command, arguments)
        refresh_name(self._spark, self._table.name)

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> None:
        """ALTER TABLE ... CLUSTER BY (cols), with dots in nested names; without arguments CLUSTER BY NONE. No file changes:
        optimize() clusters new files, and executeCompaction(full=True) also those that were clustered by other columns. Raises
        the same as delta_py/definition/cluster_by.py."""
        run_command(self._spark, self._table, "clusterBy", {"columns": names_of(cols, "Column")})
