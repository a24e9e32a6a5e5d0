"""What ALTER TABLE asks of columns, and the schema that a table gets by it. Nothing is read or written here.

    schema = with_new_columns(config.schema, [NewColumn("s.c", LONG, after="b")])
    schema = with_change(config, ColumnChange("s.c", data_type=LONG, comment="x"), version)

Protocol: Change Metadata; Type Widening; Default Columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from delta_py.errors import UnsupportedOperationError
from delta_py.protocol.features import all_fields
from delta_py.protocol.identity_columns import identity_of
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.new_rules import check_default
from delta_py.row_rules.type_changes import is_widening
from delta_py.types.char_types import char_type_of, with_lengths, with_texts
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
from delta_py.types.schema_edits import edit_field, edit_fields, field_at, is_field, placed, resolve_path

COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column, or a field of a struct, that a table is to get.

    name: dotted for a field (backticks around names with dots), or the names one by one. first: before the others, after: behind
    another; else at the end. metadata: of the user's.
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
    """What is to be other about a column, a field of a struct, or an array's or map's part. name: as of NewColumn. None, and
    False, leave a thing as it is. default: SQL; drop_default: none from now on."""

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
    """The schema with more columns, in the order in which they are given.

    Raises UnsupportedOperationError for one that is not nullable or has a default: the rows that are there have no value of it.
    SchemaMismatchError for a place that is not there, or is no struct.
    """
    for column in columns:
        _check_new(column)
    for column in columns:
        schema = _with_new_column(schema, column, resolve_path(schema, column.path[:-1]))
    return schema


def _with_new_column(schema: StructType, column: NewColumn, parent: Path) -> StructType:
    new = column.as_field()

    def more(fields: tuple[StructField, ...]) -> tuple[StructField, ...]:
        return placed(fields, new, column.after) if column.first or column.after is not None else (*fields, new)

    top = parent[0] if parent else new.name
    return _texts_of(edit_fields(_with_lengths_of(schema, top), parent, more), top)


def _with_lengths_of(schema: StructType, name: str) -> StructType:
    return StructType(tuple(with_lengths(f) if f.name == name else f for f in schema.fields))


def _texts_of(schema: StructType, name: str) -> StructType:
    return StructType(tuple(with_texts(StructType((f,))).fields[0] if f.name == name else f for f in schema.fields))


def _check_new(column: NewColumn) -> None:
    name = joined_name(column.path)
    inner = [f for f in all_fields(column.data_type) if not f.nullable]
    if not column.nullable or inner:
        raise UnsupportedOperationError(
            f"Column {name} cannot be added as NOT NULL: the rows that are there have no value of it. Nothing was changed. Add "
            "it nullable.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
            sql_state="0AKDC",
            column=name,
        )
    fields = (column.as_field(), *all_fields(column.data_type))
    foreign = sorted({key for f in fields for key in f.metadata if key.startswith("delta.")})
    if foreign:
        raise UnsupportedOperationError(
            f"Column {name} cannot be added with {', '.join(foreign)}: generated and identity columns have values for all rows, "
            "and those that are there would have none. Nothing was changed. Make such columns with the table.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
            sql_state="0AKDC",
            column=name,
        )
    default = column.metadata.get(DEFAULT) if column.default is None else column.default
    if default is not None:
        check_default(StructField(column.path[-1], column.data_type, metadata={**column.metadata, DEFAULT: default}))
        raise UnsupportedOperationError(
            f"Column {name} cannot be added with a default: the rows that are there would lack it, and readers give them null. "
            "Nothing was changed. Add the column first, and set its default then: it holds for new rows.",
            error_class="WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
            sql_state="0AKDC",
            column=name,
        )


# ---------------------------------------------------------------- changed columns


def with_change(config: TableConfig, schema: StructType, change: ColumnChange) -> StructType:
    """The schema after a change. config: of the table as it is.

    Raises UnsupportedOperationError (DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP and others) for what cannot be without writing
    the rows anew; SchemaMismatchError for a column that is not there; InvalidOptionError for a default that is none.
    """
    path = resolve_path(schema, change.name)
    schema = _with_lengths_of(schema, path[0])
    before = field_at(schema, path)
    inside = not is_field(schema, path)
    if inside and (change.comment is not None or change.moves or change.default is not None or change.drop_default):
        raise UnsupportedOperationError(
            f"{joined_name(path)} is the part of an array or map, which has no comment, default or place of its own. Nothing was "
            "changed.",
            error_class="DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY",
            sql_state="0AKDC",
            column=joined_name(path),
        )
    after = _changed(config, path, before, change, inside=inside)
    schema = edit_field(schema, path, lambda _: after)
    if change.moves:
        schema = edit_fields(schema, path[:-1], lambda fields: _moved(fields, after, change.after))
    return _texts_of(schema, path[0])


def _moved(fields: tuple[StructField, ...], field: StructField, after: str | None) -> tuple[StructField, ...]:
    if after is not None and after.lower() == field.name.lower():
        return fields
    return placed(tuple(f for f in fields if f.name != field.name), field, after)


def _changed(config: TableConfig, path: Path, before: StructField, change: ColumnChange, *, inside: bool) -> StructField:
    after = before
    if change.data_type is not None and change.data_type != before.data_type:
        _check_identity(path, before)
        _check_type(config, path, before, change.data_type)
        _check_generated(path, before, change.data_type)
        after = replace(after, data_type=change.data_type)
    if change.nullable or change.drop_default:
        _check_identity(path, before)
    if change.nullable is not None and change.nullable != before.nullable:
        if inside or not change.nullable:
            _refuse(path, before, replace(before, nullable=change.nullable), "rows that are there may be null")
        after = replace(after, nullable=True)
    if change.comment is not None:
        after = replace(after, metadata={**after.metadata, COMMENT: change.comment})
    if change.drop_default:
        after = replace(after, metadata={key: value for key, value in after.metadata.items() if key != DEFAULT})
    if change.default is not None:
        _check_identity(path, before)
        after = replace(after, metadata={**after.metadata, DEFAULT: change.default})
        _check_default(config, path, after)
    return after


def _check_identity(path: Path, column: StructField) -> None:
    if identity_of(column) is not None:
        raise UnsupportedOperationError(
            f"Column {joined_name(path)} is an identity column: its numbers are bigint, and the table gives them to all rows. "
            "Nothing was changed.",
            error_class="DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED",
            sql_state="429BQ",
            column=joined_name(path),
        )


def _check_generated(path: Path, column: StructField, new: DataType) -> None:
    """What generates a column has the column's type."""
    sql = column.metadata.get(GENERATION)
    if sql is not None and not _takes_texts(column.data_type, new):
        raise UnsupportedOperationError(
            f"Column {joined_name(path)} is generated by {sql}, whose type is {type_name(column.data_type)} and not "
            f"{type_name(new)}. Nothing was changed.",
            error_class="DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
            sql_state="42K09",
            column=joined_name(path),
        )


def _check_type(config: TableConfig, path: Path, before: StructField, new: DataType) -> None:
    kinds: tuple[tuple[type[Any], str, str], ...] = (
        (StructType, "STRUCT", "add, drop or change its fields"),
        (MapType, "MAP", "change its `key` or `value`"),
        (ArrayType, "ARRAY", "change its `element`"),
    )
    for kind, name, remedy in kinds:
        if isinstance(before.data_type, kind):
            raise UnsupportedOperationError(
                f"{joined_name(path)} is {type_name(before.data_type)}, whose type cannot change as a whole. Nothing was "
                f"changed. Instead {remedy}.",
                error_class=f"DELTA_CANNOT_UPDATE_{name}_FIELD",
                sql_state="429BQ",
                column=joined_name(path),
            )
    if _reads_as(config, before.data_type, new):
        return
    why = "rows that are there would have to be written anew"
    if not widens(config) and is_widening(before.data_type, new):
        why = "the table property delta.enableTypeWidening is not true"
    _refuse(path, before, replace(before, data_type=new), why)


def _reads_as(config: TableConfig, old: DataType, new: DataType) -> bool:
    """Whether readers take the values of older files as the new type. Void has no values, and may become any simple type."""
    if old == VOID:
        return not isinstance(new, StructType | ArrayType | MapType)
    return _takes_texts(old, new) or (widens(config) and is_widening(old, new))


def widens(config: TableConfig) -> bool:
    return config.feature("typeWidening") and config.properties.boolean("delta.enableTypeWidening")


def _takes_texts(old: DataType, new: DataType) -> bool:
    """Whether every text of one type, with or without a length, is one of the other as it stands."""
    before, after = char_type_of(old), char_type_of(new)
    if before is None or (after is None and new != STRING):
        return False
    if after is None or after.kind == "varchar":
        return after is None or before.length <= after.length
    return before == after


def _refuse(path: Path, before: StructField, after: StructField, why: str) -> NoReturn:
    old, new = (f"{type_name(f.data_type)}{'' if f.nullable else ' NOT NULL'}" for f in (before, after))
    raise UnsupportedOperationError(
        f"Column {joined_name(path)} cannot change from {old} to {new}: {why}. Nothing was changed.",
        error_class="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        sql_state="0AKDC",
        column=joined_name(path),
        old=old,
        new=new,
    )


def _check_default(config: TableConfig, path: Path, column: StructField) -> None:
    name = joined_name(path)
    if not config.feature("allowColumnDefaults"):
        raise UnsupportedOperationError(
            f"Column {name} cannot get a default: the table does not support the feature allowColumnDefaults. Nothing was "
            "changed. Set the table property delta.feature.allowColumnDefaults to 'supported' first.",
            error_class="WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
            sql_state="0AKDE",
            column=name,
        )
    check_default(column)  # one inside of a column is kept; the gate refuses rows that lack it


# ---------------------------------------------------------------- all columns at once


def with_columns_replaced(config: TableConfig, columns: StructType) -> StructType:
    """The schema with these columns, in this order, as far as they are the table's: comments, types that are wider, columns that
    are nullable now, and new ones; or, with column mapping, fewer.

    Raises UnsupportedOperationError (DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP).
    """
    before = StructType(tuple(map(with_lengths, config.schema.fields)))
    columns = StructType(tuple(map(with_lengths, with_texts(columns).fields)))
    try:
        return with_texts(_replaced_struct(config, before, columns, ()))
    except _CannotReplace as error:
        raise UnsupportedOperationError(
            f"The columns of the table cannot be replaced: {error}. Nothing was changed. Its columns are "
            f"{type_name(config.schema)}, and those given {type_name(columns)}.",
            error_class="DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
            sql_state="0AKDC",
        ) from error


class _CannotReplace(Exception):
    pass


def _replaced_struct(config: TableConfig, before: StructType, after: StructType, path: Path) -> StructType:
    found = [before.find(f.name) for f in after.fields]
    gone = [f.name for f in before.fields if f not in found]
    new = [f.name for f, known in zip(after.fields, found, strict=True) if known is None]
    where = f" of {joined_name(path)}" if path else ""
    if gone and new:
        raise _CannotReplace(f"{', '.join(gone)}{where} would go and {', '.join(new)} come, which may be meant as new names")
    if gone and config.column_mapping_mode == "none":
        raise _CannotReplace(f"{', '.join(gone)}{where} would go, and the table has no column mapping")
    return StructType(
        tuple(
            _new(f, path) if known is None else _replaced(config, known, f, (*path, known.name))
            for f, known in zip(after.fields, found, strict=True)
        )
    )


def _new(column: StructField, path: Path) -> StructField:
    if not column.nullable or any(not f.nullable for f in all_fields(column.data_type)):
        raise _CannotReplace(f"the new column {joined_name((*path, column.name))} is NOT NULL")
    if DEFAULT in column.metadata:
        raise _CannotReplace(f"the new column {joined_name((*path, column.name))} has a default")
    return column


def _replaced(config: TableConfig, before: StructField, after: StructField, path: Path) -> StructField:
    if before.nullable and not after.nullable:
        raise _CannotReplace(f"{joined_name(path)} would become NOT NULL")
    comment = {COMMENT: after.metadata[COMMENT]} if COMMENT in after.metadata else {}
    data_type = _replaced_type(config, before.data_type, after.data_type, path)
    return replace(before, data_type=data_type, nullable=after.nullable, metadata={**before.metadata, **comment})


def _replaced_type(config: TableConfig, before: DataType, after: DataType, path: Path) -> DataType:
    match before, after:
        case StructType(), StructType():
            return _replaced_struct(config, before, after, path)
        case ArrayType(element, nulls), ArrayType(new, new_nulls):
            _check_parts(nulls, new_nulls, path)
            return ArrayType(_replaced_type(config, element, new, (*path, "element")), nulls)
        case MapType(key, value, nulls), MapType(new_key, new_value, new_nulls):
            _check_parts(nulls, new_nulls, path)
            key = _replaced_type(config, key, new_key, (*path, "key"))
            return MapType(key, _replaced_type(config, value, new_value, (*path, "value")), nulls)
    if before == after or _reads_as(config, before, after):
        return after
    raise _CannotReplace(f"{joined_name(path)} would change from {type_name(before)} to {type_name(after)}")


def _check_parts(before: bool, after: bool, path: Path) -> None:
    if before and not after:
        raise _CannotReplace(f"the parts of {joined_name(path)} would become NOT NULL")
