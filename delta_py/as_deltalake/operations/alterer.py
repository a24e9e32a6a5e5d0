"""deltalake's TableAlterer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from delta_py.alter.column_changes import NewColumn
from delta_py.as_deltalake.arguments import COMMIT_FIRST, HOOKS_FIRST
from delta_py.as_deltalake.exceptions import raises_deltalake_errors
from delta_py.as_deltalake.features import TableFeatures
from delta_py.as_deltalake.operations.sessions import DEFINITIONS, TableSession
from delta_py.as_deltalake.operations.written_files import commit_empty
from delta_py.as_deltalake.schema import Field
from delta_py.as_deltalake.sql_dialects import spark_sql
from delta_py.definition.definition_settings import definition_settings
from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.protocol.actions import Protocol
from delta_py.protocol.features import FEATURES, READER_FEATURES_VERSION, WRITER_FEATURES_VERSION
from delta_py.row_rules.row_constraints import CHECK_PREFIX
from delta_py.types.column_rules import GENERATION
from delta_py.types.schema import Path, StructField, StructType


@raises_deltalake_errors
class TableAlterer:
    """Changes a table's definition. Each method takes commit_properties and post_commithook_properties, by name or in deltalake's
    older positional form."""

    def __init__(self, session: TableSession) -> None:
        self._table, self._block = session.as_delta, session.block

    def add_feature(
        self,
        feature: TableFeatures | Sequence[TableFeatures],
        allow_protocol_versions_increase: bool = False,
        *args: Any,
        commit_properties: Any = None,
        post_commithook_properties: Any = None,
    ) -> None:
        """Add table features. Raises UnsupportedOperationError if they need higher protocol versions and
        allow_protocol_versions_increase is False."""
        features = [feature] if isinstance(feature, TableFeatures) else list(feature)
        if not allow_protocol_versions_increase:
            _refuse_higher_versions(self._table.protocol, features)
        properties = (commit_properties, post_commithook_properties)
        block = self._block("add_feature", args, COMMIT_FIRST, *properties, operation_name="ADD FEATURE")
        with block, definition_settings(replace(DEFINITIONS, prefers_versions=False)):
            properties_of_features = {f"delta.feature.{requested_feature.value}": "supported" for requested_feature in features}
            version = self._table.version
            if self._table.alter.set_table_properties(properties_of_features) == version:
                # The table has all features, so nothing was committed. The history gets an entry all the same.
                commit_empty(
                    self._table.snapshot, "ADD FEATURE", {"feature": [requested_feature.value for requested_feature in features]}
                )

    def add_columns(
        self,
        fields: Field | Sequence[Field],
        *args: Any,
        commit_properties: Any = None,
        post_commithook_properties: Any = None,
    ) -> None:
        """Add columns, or fields that a struct of the table lacks. Columns that the table has already are left out. Raises
        UnsupportedOperationError for generated columns."""
        columns = [fields] if isinstance(fields, Field) else list(fields)
        generated = [column.name for column in columns if GENERATION in column.as_delta.metadata]
        if generated:
            raise UnsupportedOperationError(
                f"New columns cannot be generated: {', '.join(generated)}. Existing rows would have no value. Nothing was "
                "changed. Create a table with it, and copy the rows."
            )
        with self._block("add_columns", args, COMMIT_FIRST, commit_properties, post_commithook_properties):
            schema = self._table.struct_type
            new_columns = [new_column for column in columns for new_column in _new_columns(schema, (), column.as_delta)]
            if new_columns:
                self._table.alter.add_columns(new_columns)

    def add_constraint(
        self,
        constraints: Mapping[str, str],
        *args: Any,
        commit_properties: Any = None,
        post_commithook_properties: Any = None,
    ) -> None:
        """Add CHECK constraints, by name and SQL. Constraints that the table has with the same condition change nothing."""
        with self._block("add_constraint", args, HOOKS_FIRST, commit_properties, post_commithook_properties):
            properties = self._table.metadata.configuration
            conditions = {name: spark_sql(sql) for name, sql in constraints.items()}
            # A constraint that the table has with the same condition is left out.
            new_constraints = {name: sql for name, sql in conditions.items() if properties.get(CHECK_PREFIX + name) != sql}
            self._table.alter.add_constraint(new_constraints)

    def drop_constraint(
        self,
        name: str,
        raise_if_not_exists: bool = True,
        *args: Any,
        commit_properties: Any = None,
        post_commithook_properties: Any = None,
    ) -> None:
        with self._block("drop_constraint", args, HOOKS_FIRST, commit_properties, post_commithook_properties):
            self._table.alter.drop_constraint(name, raise_if_not_exists)

    def drop_column_not_null(
        self, column_name: str, commit_properties: Any = None, post_commithook_properties: Any = None
    ) -> None:
        """Make a column nullable. Raises InvalidOptionError if it is nullable already."""
        column = self._table.struct_type.find(column_name)
        if column is not None and column.nullable:
            raise InvalidOptionError(f"Column {column_name} has no NOT NULL. Nothing was changed.", option="column_name")
        with self._block("drop_column_not_null", (), COMMIT_FIRST, commit_properties, post_commithook_properties):
            self._table.alter.drop_column_not_null(column_name)

    def set_table_properties(
        self,
        properties: Mapping[str, str],
        raise_if_not_exists: bool = True,
        *args: Any,
        commit_properties: Any = None,
        post_commithook_properties: Any = None,
    ) -> None:
        """raise_if_not_exists: whether an unknown property of Delta is refused."""
        block = self._block("set_table_properties", args, COMMIT_FIRST, commit_properties, post_commithook_properties)
        with block, definition_settings(replace(DEFINITIONS, allows_any_property=not raise_if_not_exists)):
            self._table.alter.set_table_properties(properties)

    def set_table_name(
        self, name: str, *args: Any, commit_properties: Any = None, post_commithook_properties: Any = None
    ) -> None:
        with self._block("set_table_name", args, COMMIT_FIRST, commit_properties, post_commithook_properties):
            self._table.alter.set_table_name(name)

    def set_table_description(
        self, description: str, *args: Any, commit_properties: Any = None, post_commithook_properties: Any = None
    ) -> None:
        with self._block("set_table_description", args, COMMIT_FIRST, commit_properties, post_commithook_properties):
            self._table.alter.set_table_description(description)

    def set_column_metadata(
        self,
        column: str,
        metadata: Mapping[str, Any],
        *args: Any,
        commit_properties: Any = None,
        post_commithook_properties: Any = None,
    ) -> None:
        with self._block("set_column_metadata", args, COMMIT_FIRST, commit_properties, post_commithook_properties):
            self._table.alter.set_column_metadata(column, metadata)


def _refuse_higher_versions(protocol: Protocol, features: Sequence[TableFeatures]) -> None:
    """Raises UnsupportedOperationError if the features need a higher reader or writer version than the protocol has."""
    if protocol.min_writer_version < WRITER_FEATURES_VERSION:
        side, needed_version, table_version = "writer", WRITER_FEATURES_VERSION, protocol.min_writer_version
    elif any(FEATURES[feature.value].reader for feature in features) and protocol.min_reader_version < READER_FEATURES_VERSION:
        side, needed_version, table_version = "reader", READER_FEATURES_VERSION, protocol.min_reader_version
    else:
        return
    raise UnsupportedOperationError(
        f"Table features need {side} version {needed_version}, and the table has {table_version}. Nothing was changed. Set "
        "allow_protocol_versions_increase=True."
    )


def _new_columns(schema: StructType, parents: Path, field: StructField) -> Iterator[NewColumn]:
    """The columns to add so that the schema has the field. Yields nothing if the schema has a column of that name and type; the
    missing nested fields if both are structs; and else the field itself. parents: the path of the struct with this schema; empty
    for the table."""
    table_column = schema.find(field.name)
    if table_column is not None and table_column.name == field.name and table_column.data_type == field.data_type:
        return
    if table_column is not None and isinstance(table_column.data_type, StructType) and isinstance(field.data_type, StructType):
        for nested_field in field.data_type.fields:
            if nested_field != table_column.data_type.find(nested_field.name):
                yield from _new_columns(table_column.data_type, (*parents, table_column.name), nested_field)
    else:
        yield NewColumn((*parents, field.name), field.data_type, field.nullable, metadata=field.metadata)
