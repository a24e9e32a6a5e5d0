"""Column changes of ALTER TABLE, and the schema that results. Nothing is read or written here.

    schema = with_new_columns(config.schema, [NewColumn("s.c", LONG, after="b")])
    schema = with_change(config, schema, ColumnChange("s.c", data_type=LONG, comment="x"))

Protocol: Change Metadata; Type Widening; Default Columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from delta_py.errors import UnsupportedOperationError
from delta_py.protocol.identity_columns import identity_of
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.new_columns import check_default
from delta_py.row_rules.type_changes import is_widening
from delta_py.types.char_types import char_type_of, with_char_as_string, with_string_as_char
from delta_py.types.column_rules import DEFAULT, GENERATION
from delta_py.types.names import joined_name, split_name
from delta_py.types.schema import (
    STRING,
    VOID,
    ArrayType,
    DataType,
    MapType,
    Path,
    StructField,
    StructType,
    type_name,
)
from delta_py.types.schema_edits import edit_field, edit_fields, field_at, insert_field, is_field, resolve_path
from delta_py.types.type_walk import all_fields

COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column, or a field of a struct, to add to a table.

    name: dotted for a field (backticks around names with dots), or a sequence of names. first: put it before all others. after:
    put it after this column. Without both, it comes last. default: SQL. metadata: more keys of the field's metadata.
    """

    name: str | Sequence[str]
    data_type: DataType
    nullable: bool = True
    comment: str | None = None
    default: str | None = None
    first: bool = False
    after: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return split_name(self.name) if isinstance(self.name, str) else tuple(self.name)

    def as_field(self) -> StructField:
        comment = {} if self.comment is None else {COMMENT: self.comment}
        return StructField(self.path[-1], self.data_type, self.nullable, {**self.metadata, **comment})


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A change of a column, of a field of a struct, or of a part of an array or map (`element`, `key`, `value`). name: as in
    NewColumn. None and False mean unchanged. default: SQL. drop_default: remove the default. first, after: the new position.
    """

    name: str | Sequence[str]
    data_type: DataType | None = None
    nullable: bool | None = None
    comment: str | None = None
    default: str | None = None
    drop_default: bool = False
    first: bool = False
    after: str | None = None

    @property
    def moves(self) -> bool:
        return self.first or self.after is not None


# ---------------------------------------------------------------- new columns


def with_new_columns(schema: StructType, columns: Sequence[NewColumn]) -> StructType:
    """The schema with additional columns, in the given order.

    Raises UnsupportedOperationError for one that is not nullable or has a default: existing rows have no value for it.
    SchemaMismatchError for a parent that does not exist or is no struct.
    """
    for column in columns:
        _check_new_column(column)
    for column in columns:
        schema = _with_new_column(schema, column, resolve_path(schema, column.path[:-1]))
    return schema


def _with_new_column(schema: StructType, column: NewColumn, parent_path: Path) -> StructType:
    """The schema with the new column, at the end or at the requested position. parent_path: the path of the struct that gets the
    column; empty for the table."""
    new_field = column.as_field()

    def add_column(fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
        return insert_field(fields, new_field, column.after) if column.first or column.after is not None else (*fields, new_field)

    top_name = parent_path[0] if parent_path else new_field.name
    return _with_plain_texts(edit_fields(_with_char_lengths(schema, top_name), parent_path, add_column), top_name)


def _with_char_lengths(schema: StructType, name: str) -> StructType:
    """The schema, in which the top-level column `name` has the types CHAR(n) and VARCHAR(n). The log stores such a type as
    string, and the lengths of all its parts in one text in the column's metadata. In this form an edit of one part keeps the
    lengths of the others. _with_plain_texts undoes this."""
    return StructType(tuple(with_string_as_char(f) if f.name == name else f for f in schema.fields))


def _with_plain_texts(schema: StructType, name: str) -> StructType:
    """The inverse of _with_char_lengths: in the top-level column `name`, the types CHAR(n) and VARCHAR(n) become string, and the
    lengths go to the column's metadata, as the log stores them."""
    return StructType(tuple(with_char_as_string(StructType((f,))).fields[0] if f.name == name else f for f in schema.fields))


def _check_new_column(column: NewColumn) -> None:
    """Raises UnsupportedOperationError for a column for which existing rows would need a value: NOT NULL, generated, identity,
    or with a default.
    """
    name = joined_name(column.path)
    required_fields = [f for f in all_fields(column.data_type) if not f.nullable]
    if not column.nullable or required_fields:
        raise UnsupportedOperationError(
            f"Column {name} cannot be added as NOT NULL: existing rows have no value for it. Nothing was changed. Add "
            "it nullable.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
            sql_state="0AKDC",
            column=name,
        )
    fields = (column.as_field(), *all_fields(column.data_type))
    rules = sorted({key for f in fields for key in f.metadata if key.startswith("delta.")})
    if rules:
        raise UnsupportedOperationError(
            f"Column {name} cannot be added with {', '.join(rules)}: generated and identity columns have values for all rows, "
            "and existing rows would have none. Nothing was changed. Define such columns when you create the table.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
            sql_state="0AKDC",
            column=name,
        )
    default = column.metadata.get(DEFAULT) if column.default is None else column.default
    if default is not None:
        check_default(StructField(column.path[-1], column.data_type, metadata={**column.metadata, DEFAULT: default}))
        raise UnsupportedOperationError(
            f"Column {name} cannot be added with a default: existing rows would lack it, and readers give them null. "
            "Nothing was changed. Add the column first, and set its default then: it holds for new rows.",
            error_class="WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
            sql_state="0AKDC",
            column=name,
        )


# ---------------------------------------------------------------- changed columns


def with_change(config: TableConfig, schema: StructType, change: ColumnChange) -> StructType:
    """The schema after a change. config: the table before all changes. schema: the schema after the earlier changes of the same
    command.

    Raises UnsupportedOperationError (DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP and others) for a change that would require
    rewriting rows; SchemaMismatchError for a column that does not exist; InvalidOptionError for an invalid default.
    """
    path = resolve_path(schema, change.name)
    schema = _with_char_lengths(schema, path[0])
    old_field = field_at(schema, path)
    is_part = not is_field(schema, path)
    if is_part and (change.comment is not None or change.moves or change.default is not None or change.drop_default):
        raise UnsupportedOperationError(
            f"{joined_name(path)} is the part of an array or map, which has no comment, default or place of its own. Nothing was "
            "changed.",
            error_class="DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY",
            sql_state="0AKDC",
            column=joined_name(path),
        )
    new_field = _changed_field(config, path, old_field, change, is_part=is_part)
    schema = edit_field(schema, path, lambda _: new_field)
    if change.moves:
        schema = edit_fields(schema, path[:-1], lambda fields: _with_field_moved(fields, new_field, change.after))
    return _with_plain_texts(schema, path[0])


def _with_field_moved(
    fields: tuple[StructField, ...], field: StructField, previous_column: str | None
) -> tuple[StructField, ...]:
    """The fields with `field` moved after the previous column; None moves it before all others."""
    if previous_column is not None and previous_column.lower() == field.name.lower():
        return fields
    return insert_field(tuple(f for f in fields if f.name != field.name), field, previous_column)


def _changed_field(
    config: TableConfig, path: Path, old_field: StructField, change: ColumnChange, *, is_part: bool
) -> StructField:
    """The field after the change. is_part: the field stands for a part of an array or map, which can never become NOT NULL or
    nullable. Raises as with_change."""
    new_field = old_field
    if change.data_type is not None and change.data_type != old_field.data_type:
        _check_identity(path, old_field)
        _check_type(config, path, old_field, change.data_type)
        _check_generated(path, old_field, change.data_type)
        new_field = replace(new_field, data_type=change.data_type)
    if change.nullable or change.drop_default:
        _check_identity(path, old_field)
    if change.nullable is not None and change.nullable != old_field.nullable:
        if is_part or not change.nullable:
            _refuse_change(path, old_field, replace(old_field, nullable=change.nullable), "existing rows may be null")
        new_field = replace(new_field, nullable=True)
    if change.comment is not None:
        new_field = replace(new_field, metadata={**new_field.metadata, COMMENT: change.comment})
    if change.drop_default:
        new_field = replace(new_field, metadata={key: value for key, value in new_field.metadata.items() if key != DEFAULT})
    if change.default is not None:
        _check_identity(path, old_field)
        new_field = replace(new_field, metadata={**new_field.metadata, DEFAULT: change.default})
        _check_default(config, path, new_field)
    return new_field


def _check_identity(path: Path, column: StructField) -> None:
    """Raises UnsupportedOperationError for an identity column."""
    if identity_of(column) is not None:
        raise UnsupportedOperationError(
            f"Column {joined_name(path)} is an identity column: its numbers are bigint, and the table gives them to all rows. "
            "Nothing was changed.",
            error_class="DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED",
            sql_state="429BQ",
            column=joined_name(path),
        )


def _check_generated(path: Path, column: StructField, new_type: DataType) -> None:
    """Raise UnsupportedOperationError for another type of a generated column: its expression must have the column's type. Texts
    may change their length limit."""
    sql = column.metadata.get(GENERATION)
    if sql is not None and not _accepts_all_texts(column.data_type, new_type):
        raise UnsupportedOperationError(
            f"Column {joined_name(path)} is generated by {sql}, whose type is {type_name(column.data_type)} and not "
            f"{type_name(new_type)}. Nothing was changed.",
            error_class="DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
            sql_state="42K09",
            column=joined_name(path),
        )


def _check_type(config: TableConfig, path: Path, old_field: StructField, new_type: DataType) -> None:
    """Raises UnsupportedOperationError if the column cannot get the type without a rewrite of rows."""
    nested_types: tuple[tuple[type[Any], str, str], ...] = (
        (StructType, "STRUCT", "add, drop or change its fields"),
        (MapType, "MAP", "change its `key` or `value`"),
        (ArrayType, "ARRAY", "change its `element`"),
    )
    for nested_type, name, remedy in nested_types:
        if isinstance(old_field.data_type, nested_type):
            raise UnsupportedOperationError(
                f"{joined_name(path)} is {type_name(old_field.data_type)}, whose type cannot change as a whole. Nothing was "
                f"changed. Instead {remedy}.",
                error_class=f"DELTA_CANNOT_UPDATE_{name}_FIELD",
                sql_state="429BQ",
                column=joined_name(path),
            )
    if _can_read_as(config, old_field.data_type, new_type):
        return
    reason = "existing rows would have to be rewritten"
    if not allows_widening(config) and is_widening(old_field.data_type, new_type):
        reason = "the table property delta.enableTypeWidening is not true"
    _refuse_change(path, old_field, replace(old_field, data_type=new_type), reason)


def _can_read_as(config: TableConfig, old_type: DataType, new_type: DataType) -> bool:
    """Whether readers can read the values of older files as the new type. Void has no values, and may become any simple type."""
    if old_type == VOID:
        return not isinstance(new_type, StructType | ArrayType | MapType)
    return _accepts_all_texts(old_type, new_type) or (allows_widening(config) and is_widening(old_type, new_type))


def allows_widening(config: TableConfig) -> bool:
    """Whether the table may get wider types without a rewrite of files."""
    return config.feature("typeWidening") and config.properties.boolean("delta.enableTypeWidening")


def _accepts_all_texts(old_type: DataType, new_type: DataType) -> bool:
    """Whether every text of the old type, with or without a length limit, is also valid in the new one."""
    old_char_type, new_char_type = char_type_of(old_type), char_type_of(new_type)
    if old_char_type is None or (new_char_type is None and new_type != STRING):
        return False
    if new_char_type is None or new_char_type.kind == "varchar":
        return new_char_type is None or old_char_type.length <= new_char_type.length
    return old_char_type == new_char_type


def _refuse_change(path: Path, old_field: StructField, new_field: StructField, reason: str) -> NoReturn:
    """Raise UnsupportedOperationError for a change of a column's type or nullability. reason: for the message."""
    old_text, new_text = (f"{type_name(f.data_type)}{'' if f.nullable else ' NOT NULL'}" for f in (old_field, new_field))
    raise UnsupportedOperationError(
        f"Column {joined_name(path)} cannot change from {old_text} to {new_text}: {reason}. Nothing was changed.",
        error_class="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        sql_state="0AKDC",
        column=joined_name(path),
        old=old_text,
        new=new_text,
    )


def _check_default(config: TableConfig, path: Path, column: StructField) -> None:
    """Raises UnsupportedOperationError if the table does not support defaults; InvalidOptionError for an invalid default."""
    name = joined_name(path)
    if not config.feature("allowColumnDefaults"):
        raise UnsupportedOperationError(
            f"Column {name} cannot get a default: the table does not support the feature allowColumnDefaults. Nothing was "
            "changed. Set the table property delta.feature.allowColumnDefaults to 'supported' first.",
            error_class="WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
            sql_state="0AKDE",
            column=name,
        )
    check_default(column)  # a default of a nested field is stored; the row check refuses rows that lack the field


# ---------------------------------------------------------------- all columns at once


def with_columns_replaced(config: TableConfig, columns: StructType) -> StructType:
    """The schema with these columns, in this order, if they match the table's: other comments, wider types, columns that are now
    nullable, and new ones; or, with column mapping, a subset.

    Raises UnsupportedOperationError (DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP).
    """
    old_schema = StructType(tuple(map(with_string_as_char, config.schema.fields)))
    columns = StructType(tuple(map(with_string_as_char, with_char_as_string(columns).fields)))
    try:
        return with_char_as_string(_replaced_struct(config, old_schema, columns, ()))
    except _CannotReplace as error:
        raise UnsupportedOperationError(
            f"The columns of the table cannot be replaced: {error}. Nothing was changed. Its columns are "
            f"{type_name(config.schema)}, and those given {type_name(columns)}.",
            error_class="DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
            sql_state="0AKDC",
        ) from error


class _CannotReplace(Exception):
    """Why the columns cannot be replaced; with_columns_replaced makes it an error for the user."""


def _replaced_struct(config: TableConfig, old_struct: StructType, new_struct: StructType, path: Path) -> StructType:
    """The new struct, whose fields keep the ids and other metadata of the old fields of the same names. path: the struct's path;
    empty for the table. Raises _CannotReplace if fields are removed and others added, because the user may have meant to rename
    them; and if fields are removed without column mapping.
    """
    old_fields = [old_struct.find(f.name) for f in new_struct.fields]
    removed_names = [f.name for f in old_struct.fields if f not in old_fields]
    added_names = [f.name for f, old_field in zip(new_struct.fields, old_fields, strict=True) if old_field is None]
    struct_text = f" of {joined_name(path)}" if path else ""
    if removed_names and added_names:
        raise _CannotReplace(
            f"{', '.join(removed_names)}{struct_text} would go and {', '.join(added_names)} come, which may be meant as new names"
        )
    if removed_names and config.column_mapping_mode == "none":
        raise _CannotReplace(f"{', '.join(removed_names)}{struct_text} would go, and the table has no column mapping")
    return StructType(
        tuple(
            _check_new_field(f, path) if old_field is None else _replaced_field(config, old_field, f, (*path, old_field.name))
            for f, old_field in zip(new_struct.fields, old_fields, strict=True)
        )
    )


def _check_new_field(column: StructField, path: Path) -> StructField:
    """Return the new column. Raises _CannotReplace if old rows may not lack it: it is NOT NULL, or has a default."""
    if not column.nullable or any(not f.nullable for f in all_fields(column.data_type)):
        raise _CannotReplace(f"the new column {joined_name((*path, column.name))} is NOT NULL")
    if DEFAULT in column.metadata:
        raise _CannotReplace(f"the new column {joined_name((*path, column.name))} has a default")
    return column


def _replaced_field(config: TableConfig, old_field: StructField, new_field: StructField, path: Path) -> StructField:
    """The old field with the type and nullability of the new one. Raises _CannotReplace if old rows may not fit it."""
    if old_field.nullable and not new_field.nullable:
        raise _CannotReplace(f"{joined_name(path)} would become NOT NULL")
    comment = {COMMENT: new_field.metadata[COMMENT]} if COMMENT in new_field.metadata else {}
    data_type = _replaced_type(config, old_field.data_type, new_field.data_type, path)
    return replace(old_field, data_type=data_type, nullable=new_field.nullable, metadata={**old_field.metadata, **comment})


def _replaced_type(config: TableConfig, old_type: DataType, new_type: DataType, path: Path) -> DataType:
    """The new type, with the metadata of old nested fields. Raises _CannotReplace if readers cannot read old values as the new
    type."""
    match old_type, new_type:
        case StructType(), StructType():
            return _replaced_struct(config, old_type, new_type, path)
        case ArrayType(element, nulls), ArrayType(new, new_nulls):
            _check_parts_nullable(nulls, new_nulls, path)
            return ArrayType(_replaced_type(config, element, new, (*path, "element")), nulls)
        case MapType(key, value, nulls), MapType(new_key, new_value, new_nulls):
            _check_parts_nullable(nulls, new_nulls, path)
            key = _replaced_type(config, key, new_key, (*path, "key"))
            return MapType(key, _replaced_type(config, value, new_value, (*path, "value")), nulls)
    if old_type == new_type or _can_read_as(config, old_type, new_type):
        return new_type
    raise _CannotReplace(f"{joined_name(path)} would change from {type_name(old_type)} to {type_name(new_type)}")


def _check_parts_nullable(old_nullable: bool, new_nullable: bool, path: Path) -> None:
    """Raise _CannotReplace if the elements or values, which may be null so far, would become NOT NULL."""
    if old_nullable and not new_nullable:
        raise _CannotReplace(f"the parts of {joined_name(path)} would become NOT NULL")
