"""ALTER TABLE on columns: add, rename, drop, change and replace them, also nested ones, without rewriting rows.

    add_columns(store, [NewColumn("s.c", LONG, comment="of s")])
    rename_column(store, "s.c", "d")
    change_columns(store, [ColumnChange("s.d", data_type=DecimalType(20, 0))])

Each is one commit of metadata; returns its version, or the newest if nothing changes. Files stay unchanged: a renamed column
keeps its physical name, a dropped one is not read any more, one of a wider type is widened when it is read. A concurrent commit
that changes the metadata is a conflict, one that adds rows is not.
Protocol: Change Metadata; Column Mapping; Type Widening; Writer Requirements for Column Mapping.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from delta_py.alter.column_changes import (
    ColumnChange,
    NewColumn,
    with_change,
    with_columns_replaced,
    with_new_columns,
)
from delta_py.commit.transaction import Transaction
from delta_py.definition.evolve import metadata_with_schema
from delta_py.definition.protocols import raised_protocol
from delta_py.errors import SchemaMismatchError, UnsupportedOperationError
from delta_py.protocol import column_mapping
from delta_py.protocol.clustering import CLUSTERING_DOMAIN, clustering_paths
from delta_py.protocol.features import Properties
from delta_py.protocol.identity_columns import identity_columns
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.row_rules.dependents import rules_naming
from delta_py.row_rules.type_changes import with_recorded_changes
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats_columns import PROPERTY as STATS_COLUMNS
from delta_py.storage.store import ObjectStore
from delta_py.types.names import joined_name, split_list, split_name
from delta_py.types.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    Path,
    PrimitiveType,
    StructField,
    StructType,
    type_name,
)
from delta_py.types.schema_edits import edit_field, edit_fields, field_at, is_field, resolve_path


def add_columns(store: ObjectStore, columns: Sequence[NewColumn]) -> int:
    """Add columns, or fields of structs; existing rows have null.

    Raises UnsupportedOperationError for columns that are NOT NULL or have a default; SchemaMismatchError for names that already
    exist, or positions that do not; UnsupportedTableFeatureError for types that need a feature which the table does not have.
    """
    snapshot = Snapshot.load(store)
    schema = with_new_columns(snapshot.schema, columns)
    described_columns = [
        {"column": describe_column(column.path, column.as_field()), **_position_parameter(column.first, column.after)}
        for column in columns
    ]
    return commit_schema(snapshot, schema, "ADD COLUMNS", {"columns": described_columns})


def rename_column(store: ObjectStore, name: str | Sequence[str], new_name: str) -> int:
    """Rename a column, or a field of a struct; its data does not move.

    Raises UnsupportedOperationError: DELTA_UNSUPPORTED_RENAME_COLUMN for a table without column mapping,
    DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE and DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE for a column that a rule names.
    """
    snapshot = Snapshot.load(store)
    config = snapshot.config
    path = resolve_path(config.schema, name)
    new_path = (*path[:-1], new_name)
    _check_column_mapping(config, path, "DELTA_UNSUPPORTED_RENAME_COLUMN", "have another name")
    if new_name == path[-1]:
        return snapshot.version
    check_no_rule_names(config, path)
    schema = edit_field(config.schema, path, lambda f: replace(f, name=new_name))
    partitions = [new_name if len(path) == 1 and column == path[0] else column for column in config.partition_columns]
    properties = _with_stats_columns(config.metadata.configuration, path, new_path)
    parameters = {"oldColumnPath": joined_name(path), "newColumnPath": joined_name(new_path)}
    return commit_schema(snapshot, schema, "RENAME COLUMN", parameters, partition_columns=partitions, properties=properties)


def drop_columns(store: ObjectStore, names: Sequence[str | Sequence[str]], *, if_exists: bool = False) -> int:
    """Remove columns, or fields of structs, from the schema. Their data stays in the files for earlier versions, until the files
    are rewritten (REORG APPLY (PURGE)). if_exists: ignore names that the table does not have.

    Raises UnsupportedOperationError: DELTA_UNSUPPORTED_DROP_COLUMN for a table without column mapping,
    DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN, DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN, and as rename_column.
    """
    snapshot = Snapshot.load(store)
    config = snapshot.config
    paths = _outermost_paths(config.schema, names, if_exists=if_exists)
    schema, properties = config.schema, config.metadata.configuration
    for path in paths:
        _check_column_mapping(config, path, "DELTA_UNSUPPORTED_DROP_COLUMN", "be dropped")
        check_can_be_dropped(snapshot, path)
        schema = edit_fields(schema, path[:-1], partial(_without_field, path))
        properties = _with_stats_columns(properties, path, None)
    parameters = {"columns": [joined_name(path) for path in paths]}
    return commit_schema(snapshot, schema, "DROP COLUMNS", parameters, properties=properties) if paths else snapshot.version


def change_columns(store: ObjectStore, changes: Sequence[ColumnChange]) -> int:
    """Change types, comments, defaults and positions of columns, and make them nullable.

    Raises UnsupportedOperationError for a change that would require rewriting rows, and as rename_column for another type of a
    column that a rule names; SchemaMismatchError; InvalidOptionError for an invalid default.
    """
    snapshot = Snapshot.load(store)
    config, schema = snapshot.config, snapshot.schema
    for change in changes:
        path = resolve_path(schema, change.name)
        schema = with_change(config, schema, change)
        # A rule depends on the column's type, and not on its comment, default or position.
        if _simple_type(field_at(schema, path).data_type) != _simple_type(field_at(config.schema, path).data_type):
            check_no_rule_names(config, path)
    paths = [resolve_path(schema, change.name) for change in changes]
    columns = [describe_column(path, field_at(schema, path)) for path in paths]
    positions = [_position_parameter(change.first, change.after) for change in changes]
    schema = _with_recorded_types(snapshot, schema)
    if len(changes) == 1:  # delta-spark records one change and several changes as two different operations
        return commit_schema(snapshot, schema, "CHANGE COLUMN", {"column": columns[0], **positions[0]})
    described_columns = [{**column, **position} for column, position in zip(columns, positions, strict=True)]
    return commit_schema(snapshot, schema, "CHANGE COLUMNS", {"columns": described_columns})


def replace_columns(store: ObjectStore, columns: StructType) -> int:
    """Give the table these columns, in this order. They are the table's own, perhaps with other comments, types or nullability,
    and new ones; with column mapping, they may also be a subset of the table's own.

    Raises UnsupportedOperationError: DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP,
    DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED, and as drop_columns and change_columns.
    """
    snapshot = Snapshot.load(store)
    config = snapshot.config
    if identity_columns(config.schema):
        identity_names = ", ".join(column.name for column in identity_columns(config.schema))
        raise UnsupportedOperationError(
            f"The table at {store.root} has identity columns ({identity_names}), with which columns cannot be replaced. "
            "Nothing was changed. Change them one by one.",
            error_class="DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED",
            sql_state="429BQ",
        )
    schema = with_columns_replaced(config, columns)
    for path in _dropped_paths(config.schema, schema, ()):
        check_can_be_dropped(snapshot, path)
    for path in _retyped_paths(config.schema, schema, ()):
        check_no_rule_names(config, path)
    parameters = {"columns": [describe_column((f.name,), f) for f in columns.fields]}
    return commit_schema(snapshot, _with_recorded_types(snapshot, schema), "REPLACE COLUMNS", parameters)


# ---------------------------------------------------------------- allowed changes


def check_no_rule_names(config: TableConfig, path: Path, *, except_invariant: bool = False) -> None:
    """Raises UnsupportedOperationError for a column that a CHECK constraint, an invariant or a generated column names.
    except_invariant: accept the column's own invariant, which is dropped with it.
    """
    column_name = ".".join(path)
    invariant = ("invariant", column_name) if except_invariant else None
    rules = [rule for rule in rules_naming(config, path) if (rule.kind, rule.name) != invariant]
    generated = [rule for rule in rules if rule.kind == "generated"]
    # Constraints and generated columns have different errors; if both name the column, the error is about the constraints.
    blocking_rules = [rule for rule in rules if rule.kind != "generated"] or generated
    if not blocking_rules:
        return
    rules_text = "generated columns" if blocking_rules is generated else "constraints"
    raise UnsupportedOperationError(
        f"Column {joined_name(path)} cannot be changed so: these {rules_text} name it: "
        + "; ".join(f"{rule.name} -> {rule.sql}" for rule in blocking_rules)
        + ". Nothing was changed. Drop them first.",
        error_class="DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"
        if blocking_rules is generated
        else "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
        sql_state="42K09",
        column=joined_name(path),
        rules=[rule.name for rule in blocking_rules],
    )


def check_can_be_dropped(snapshot: Snapshot, path: Path) -> None:
    """Raises UnsupportedOperationError for a column that cannot be dropped: the table is partitioned or clustered by it, or a
    rule names it."""
    config, name = snapshot.config, joined_name(path)
    if path in [(column,) for column in config.partition_columns]:
        raise UnsupportedOperationError(
            f"Column {name} cannot be dropped: the table is partitioned by it. Nothing was changed.",
            error_class="DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN",
            sql_state="0AKDC",
            column=name,
        )
    physical_path = _physical_path(config, path)
    clustered_paths = clustering_paths(snapshot.domain_metadata().get(CLUSTERING_DOMAIN))
    if any(column[: len(physical_path)] == physical_path for column in clustered_paths):
        raise UnsupportedOperationError(
            f"Column {name} cannot be dropped: the table is clustered by it. Nothing was changed. Cluster it by other "
            "columns first.",
            error_class="DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
            sql_state="0AKDC",
            column=name,
        )
    check_no_rule_names(config, path, except_invariant=True)


def _physical_path(config: TableConfig, path: Path) -> Path:
    """The path by the physical names of columns and fields, which data files use. The parts of arrays and maps (`element`, `key`,
    `value`) have no physical names."""
    steps = [path[: depth + 1] for depth in range(len(path))]
    fields = [(step, field_at(config.schema, step)) for step in steps]
    mode = config.column_mapping_mode
    return tuple(column_mapping.physical_name(f, mode) if is_field(config.schema, step) else step[-1] for step, f in fields)


def _check_column_mapping(config: TableConfig, path: Path, condition: str, what: str) -> None:
    """Raises UnsupportedOperationError unless the table has column mapping and the path is a column or a field of a struct.
    condition: the error's class. what: the change, for the message, such as `be dropped`.
    """
    name = joined_name(path)
    if config.column_mapping_mode == "none":
        raise UnsupportedOperationError(
            f"Column {name} cannot {what}: the table has no column mapping, by which its files would still be understood. "
            f"Nothing was changed. Set the table property {column_mapping.MODE_PROPERTY} to 'name' first.",
            error_class=condition,
            sql_state="0AKDC",
            column=name,
        )
    if not is_field(config.schema, path):
        raise UnsupportedOperationError(
            f"{name} is the part of an array or map and cannot {what}. Nothing was changed.",
            error_class=condition if "RENAME" in condition else "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE",
            sql_state="0AKDC",
            column=name,
        )


def _without_field(path: Path, fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
    """The fields of a struct without the last one of the path. Raises UnsupportedOperationError if it is the only one."""
    if len(fields) == 1:
        raise UnsupportedOperationError(
            f"Column {joined_name(path)} cannot be dropped: it is the only one. Nothing was changed.",
            error_class="DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
            sql_state="0AKDC",
            column=joined_name(path),
        )
    return tuple(f for f in fields if f.name != path[-1])


def _outermost_paths(schema: StructType, names: Sequence[str | Sequence[str]], *, if_exists: bool) -> list[Path]:
    """The paths of the columns with these names, without duplicates and without paths inside another path of the list. if_exists:
    leave out names that the schema lacks; else they raise SchemaMismatchError."""
    paths = []
    for name in names:
        try:
            paths.append(resolve_path(schema, name))
        except SchemaMismatchError:
            if not if_exists:
                raise
    unique_paths = list(dict.fromkeys(paths))
    return [
        path
        for path in unique_paths
        if not any(path != outer_path and path[: len(outer_path)] == outer_path for outer_path in unique_paths)
    ]


def _dropped_paths(old_type: DataType, new_type: DataType, path: Path) -> list[Path]:
    """The paths of the columns and fields that the old type has and the new one lacks. path: where both types are in the schema;
    empty for the whole schema."""
    match old_type, new_type:
        case StructType(), StructType():
            new_fields = {f.name.lower(): f for f in new_type.fields}
            field_pairs = [(f, new_fields.get(f.name.lower())) for f in old_type.fields]
            nested_paths = [
                _dropped_paths(f.data_type, new_field.data_type, (*path, f.name))
                for f, new_field in field_pairs
                if new_field is not None
            ]
            return [
                *((*path, f.name) for f, new_field in field_pairs if new_field is None),
                *(nested_path for paths in nested_paths for nested_path in paths),
            ]
        case ArrayType(old_element, _), ArrayType(new_element, _):
            return _dropped_paths(old_element, new_element, (*path, "element"))
        case MapType(old_key, old_value, _), MapType(new_key, new_value, _):
            return [*_dropped_paths(old_key, new_key, (*path, "key")), *_dropped_paths(old_value, new_value, (*path, "value"))]
    return []


def _retyped_paths(old_type: DataType, new_type: DataType, path: Path) -> list[Path]:
    """The paths of the columns and fields that both types have, with different simple types. path: as in _dropped_paths."""
    match old_type, new_type:
        case StructType(), StructType():
            field_pairs = [(f, new_type.find(f.name)) for f in old_type.fields]
            nested_paths = [
                _retyped_paths(f.data_type, new_field.data_type, (*path, f.name))
                for f, new_field in field_pairs
                if new_field is not None
            ]
            return [path for paths in nested_paths for path in paths]
        case ArrayType(old_element, _), ArrayType(new_element, _):
            return _retyped_paths(old_element, new_element, (*path, "element"))
        case MapType(old_key, old_value, _), MapType(new_key, new_value, _):
            return [*_retyped_paths(old_key, new_key, (*path, "key")), *_retyped_paths(old_value, new_value, (*path, "value"))]
    return [] if old_type == new_type else [path]


def _simple_type(data_type: DataType) -> DataType:
    """The type; an empty struct for each struct, array and map. So a comparison ignores changes inside these types."""
    return data_type if isinstance(data_type, PrimitiveType | DecimalType) else StructType()


# ---------------------------------------------------------------- properties that name columns


def _with_stats_columns(properties: Mapping[str, str], path: Path, new_path: Path | None) -> Mapping[str, str]:
    """The properties, where the list of columns with statistics has the new path of a column. new_path: None for a dropped
    column, which leaves the list with all its fields."""
    column_list = properties.get(STATS_COLUMNS)
    if column_list is None:
        return properties
    folded = [name.lower() for name in path]
    columns = []
    for column in map(split_name, split_list(column_list)):
        is_inside = [name.lower() for name in column[: len(path)]] == folded
        if is_inside and new_path is not None:
            columns.append((*new_path, *column[len(path) :]))
        elif not is_inside:
            columns.append(column)
    return {**properties, STATS_COLUMNS: ",".join(map(joined_name, columns))}


# ---------------------------------------------------------------- the commit


def _with_recorded_types(snapshot: Snapshot, schema: StructType) -> StructType:
    """The schema with a record of its type changes since the snapshot, in the metadata of the fields. If the table has only the
    preview of type widening, the records also name the version of the change, which clients of the preview need."""
    preview = "typeWidening-preview" in snapshot.config.features
    return with_recorded_changes(snapshot.schema, schema, snapshot.version + 1 if preview else None)


def commit_schema(
    snapshot: Snapshot,
    schema: StructType,
    operation: str,
    parameters: Mapping[str, Any],
    *,
    partition_columns: Sequence[str] | None = None,
    properties: Mapping[str, str] | None = None,
    transaction: Transaction | None = None,
) -> int:
    """Commit another schema; returns the version. If the metadata stays the same, nothing is committed.

    operation, parameters: for the history. partition_columns, properties: all of them after the change; None for the present
    ones. transaction: one of the snapshot in which the caller has read rows; None if no rows were read.
    """
    config = snapshot.config
    partitions = config.partition_columns if partition_columns is None else tuple(partition_columns)
    metadata = metadata_with_schema(config, schema, partitions, properties)
    if metadata == snapshot.metadata:
        return snapshot.version
    protocol = raised_protocol(snapshot.protocol, schema, Properties(metadata.configuration))
    new_config = TableConfig(protocol, metadata)
    new_config.require(Operation.WRITE)
    transaction = transaction or Transaction(snapshot)
    if "tableVersion" in metadata.schema_string and "typeWidening-preview" in config.features:
        transaction.must_be_next()  # a type change in the metadata names the version of this commit
    transaction.set_metadata(metadata)
    if protocol != snapshot.protocol:
        transaction.set_protocol(protocol)
    return transaction.commit(operation, parameters)


def _position_parameter(first: bool, previous_column: str | None) -> dict[str, str]:
    """The position of a new or moved column as the history describes it, such as `AFTER b`; empty if it has none."""
    if previous_column is not None:
        return {"position": f"AFTER {previous_column}"}
    return {"position": "FIRST"} if first else {}


def describe_column(path: Path, f: StructField) -> dict[str, Any]:
    """A column as the history describes it."""
    type_text = type_name(f.data_type) if isinstance(f.data_type, DecimalType) else getattr(f.data_type, "name", "")
    nested_kind = {StructType: "struct", ArrayType: "array", MapType: "map"}.get(type(f.data_type))
    return {"name": joined_name(path), "type": nested_kind or type_text, "nullable": f.nullable, "metadata": dict(f.metadata)}
