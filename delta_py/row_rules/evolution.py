"""The schema of a table after a write that may change it: mergeSchema adds columns and widens types, overwriteSchema uses the
schema of the data. Pure functions; the caller assigns ids and physical names of new columns.

    merged_schema(config, data_schema, widen=True, casts=False)
    replaced_schema(config, data_schema)

Protocol: Change Metadata; Type Widening; Column Mapping.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from delta_py.errors import SchemaMismatchError
from delta_py.expressions.coercion import may_assign
from delta_py.protocol import column_mapping, identity_columns
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.dependents import rules_naming
from delta_py.row_rules.new_columns import check_new_schema
from delta_py.row_rules.type_changes import is_widening, type_change
from delta_py.types.column_rules import DEFAULT, EXISTS_DEFAULT, GENERATION, TYPE_CHANGES
from delta_py.types.schema import (
    BYTE,
    INTEGER,
    SHORT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    Path,
    StructField,
    StructType,
    map_fields,
    type_name,
)

# The beginnings of metadata keys that hold rules or internal facts of the table that the data was read from. They do not apply to
# another table.
FOREIGN_METADATA = ("delta.", DEFAULT, EXISTS_DEFAULT)
STORED_AS_INT32 = (BYTE, SHORT, INTEGER)
_WIDENING_FEATURE = "typeWidening"
_FEATURES_THAT_RECORD_CHANGES = {_WIDENING_FEATURE, "typeWidening-preview"}


def merged_schema(table: TableConfig, data: StructType, *, widen: bool, casts: bool = False) -> StructType:
    """The table's schema, extended by the data's schema.

    Columns, and fields of structs at any depth, that the table lacks are added at the end, nullable. Other columns keep name,
    nullability and metadata, and also their type, if it is the wider one. A column takes the data's type if its type is void. It
    also takes it if the data's type is wider, widening is requested (`widen`) and delta.enableTypeWidening is true; then the
    change is recorded in its metadata. Generated and identity columns keep their types. Files store bytes and shorts as integers,
    so these become wider in any table, as in delta-spark.
    casts: a column also keeps its type if store assignment can cast the data's values to it.
    Raises SchemaMismatchError: DELTA_FAILED_TO_MERGE_FIELDS for all other types, whose values would change,
    DELTA_DUPLICATE_COLUMNS_FOUND for names in the data that are equal or differ only in case, DELTA_CONSTRAINT_DATA_TYPE_MISMATCH
    and DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH for a new type of a column that a rule of the table names.
    Protocol: Type Change Metadata; Writer Requirements for Type Widening.
    """
    # With mode "name" any character is accepted: metadata_with_schema checks the characters of names.
    check_new_schema(data, "name", table.schema)
    # stores_alike gives a column the data's wider integer type. With `casts` the column keeps its type, and the data is cast.
    stores_alike = not casts and _FEATURES_THAT_RECORD_CHANGES.isdisjoint(table.features)
    merge = SchemaMerge(widen and _may_widen(table), _follows_iceberg(table), casts=casts, stores_alike=stores_alike)
    merged = merge.merge_structs(table.schema, data, ())
    _check_rules_allow(table, merge.retyped)
    return merged


def takes_type(table: TableConfig, present: DataType, data_type: DataType) -> bool:
    """Whether merged_schema with `widen` gives a column of the table the data's wider type. present: the column's type."""
    return _may_widen(table) and is_widening(present, data_type, like_iceberg=_follows_iceberg(table))


def has_fixed_type(field: StructField) -> bool:
    """Whether a column's rule fixes its type: it is a generated or an identity column."""
    return GENERATION in field.metadata or identity_columns.START in field.metadata


def check_same_types(table: StructType, data: StructType, path: Path = ()) -> None:
    """Check that columns of the data, and fields of structs, have the types of the table's columns. Integers that files store in
    the same way may be narrower, and void fits any type.

    Raises SchemaMismatchError (DELTA_FAILED_TO_MERGE_FIELDS).
    """
    for f in data.fields:
        table_field = table.find(f.name)
        if table_field is not None:
            _check_same_type(table_field.data_type, f.data_type, (*path, table_field.name))


def _check_same_type(table: DataType, data: DataType, path: Path) -> None:
    """Raise unless the data has the type of the table, or void, or an integer type that is narrower than the table's and that
    files store in the same way."""
    match table, data:
        case StructType(), StructType():
            check_same_types(table, data, path)
        case ArrayType(element, _), ArrayType(data_element, _):
            _check_same_type(element, data_element, (*path, "element"))
        case MapType(key, value, _), MapType(data_key, data_value, _):
            _check_same_type(key, data_key, (*path, "key"))
            _check_same_type(value, data_value, (*path, "value"))
        case _ if data in (table, VOID) or (data in STORED_AS_INT32 and table in STORED_AS_INT32 and is_widening(data, table)):
            pass
        case _:
            raise _cannot_merge(path, table, data)


def replaced_schema(table: TableConfig, data: StructType, *, keeps_not_null: bool = False) -> StructType:
    """The schema of the data, nullable at every depth unless NOT NULL is kept, without rules and metadata of the table's columns.

    With column mapping, a field with the name and type of a field of the table keeps that field's id and physical name; the other
    fields have none yet.
    """
    mode = table.column_mapping_mode
    check_new_schema(data, column_mapping_mode="name")  # metadata_with_schema checks the characters of names
    if keeps_not_null:
        new_schema = map_fields(data, without_foreign_metadata)
    else:
        new_schema = StructType(tuple(_new_field(f) for f in data.fields))
    return new_schema if mode == "none" else _with_known_ids(new_schema, table.schema)


# ---------------------------------------------------------------- new fields


def _new_field(f: StructField) -> StructField:
    """A field of the data as a new field of the table: nullable inside and out."""
    return StructField(f.name, _nullable(f.data_type), True, without_foreign_metadata(f).metadata)


def without_foreign_metadata(f: StructField) -> StructField:
    """The field without the metadata of the table that the data was read from (ids, defaults, generation), which does not apply
    to another table."""
    metadata = {key: value for key, value in f.metadata.items() if not key.startswith(FOREIGN_METADATA)}
    return f if len(metadata) == len(f.metadata) else dataclasses.replace(f, metadata=metadata)


def _nullable(data_type: DataType) -> DataType:
    """The type with nullable fields, elements and values at every depth, and without foreign metadata."""
    match data_type:
        case StructType(fields):
            return StructType(tuple(_new_field(f) for f in fields))
        case ArrayType(element, _):
            return ArrayType(_nullable(element))
        case MapType(key, value, _):
            return MapType(_nullable(key), _nullable(value))
    return data_type


def _with_known_ids(new_schema: StructType, table_schema: StructType) -> StructType:
    """The new schema, in which fields with the name and type of a field of the table get that field's id and physical name."""
    fields = []
    for f in new_schema.fields:
        table_field = table_schema.find(f.name)
        data_type, metadata = f.data_type, dict(f.metadata)
        if table_field is not None:
            data_type = _with_known_inner_ids(f.data_type, table_field.data_type)
            if _comparable_type(f.data_type) == _comparable_type(table_field.data_type):
                metadata |= {key: table_field.metadata[key] for key in column_mapping.FIELD_KEYS if key in table_field.metadata}
        fields.append(StructField(f.name, data_type, f.nullable, metadata))
    return StructType(tuple(fields))


def _with_known_inner_ids(new_type: DataType, table_type: DataType) -> DataType:
    """The new type, whose structs have the ids and physical names of the table's fields, as in _with_known_ids."""
    match new_type, table_type:
        case StructType(), StructType():
            return _with_known_ids(new_type, table_type)
        case ArrayType(element, nulls), ArrayType(known_element, _):
            return ArrayType(_with_known_inner_ids(element, known_element), nulls)
        case MapType(key, value, nulls), MapType(known_key, known_value, _):
            return MapType(_with_known_inner_ids(key, known_key), _with_known_inner_ids(value, known_value), nulls)
    return new_type


def _comparable_type(data_type: DataType) -> DataType:
    """The type without nullability, metadata and case of names, to compare types."""
    match data_type:
        case StructType(fields):
            return StructType(tuple(StructField(f.name.lower(), _comparable_type(f.data_type)) for f in fields))
        case ArrayType(element, _):
            return ArrayType(_comparable_type(element))
        case MapType(key, value, _):
            return MapType(_comparable_type(key), _comparable_type(value))
    return data_type


# ---------------------------------------------------------------- merging


@dataclasses.dataclass(slots=True)
class SchemaMerge:
    """Merges the data's schema into a table's schema, in one pass.

    widens: a column takes a wider type of the data, and its metadata records the change. like_iceberg: a column takes only a type
    to which Iceberg can widen too. casts: as in merged_schema.
    stores_alike: of two integer types that files store in the same way, the wider one is used, without a record; False if the
    table has the type widening feature, because then each change must be recorded.
    retyped: the columns, or parts of them, that get another type so far: path, the table's type, the new type.
    """

    widens: bool
    like_iceberg: bool
    casts: bool = False
    stores_alike: bool = False
    retyped: list[tuple[Path, DataType, DataType]] = dataclasses.field(default_factory=list)

    def merge_structs(self, table: StructType, data: StructType, path: Path) -> StructType:
        """The table's fields, merged with those of the data, and then the data's other fields. path: the path of the struct; ()
        for the whole schema."""
        data_fields = {f.name.lower(): f for f in data.fields}
        table_fields = tuple(self._merge_fields(f, data_fields.get(f.name.lower()), (*path, f.name)) for f in table.fields)
        table_names = {f.name.lower() for f in table.fields}
        return StructType((*table_fields, *(_new_field(f) for f in data.fields if f.name.lower() not in table_names)))

    def _merge_fields(self, table: StructField, data: StructField | None, path: Path) -> StructField:
        """The merged field, whose metadata records the type changes inside it."""
        if data is None:
            return table
        previous_count = len(self.retyped)  # the entries after these are about this field
        # A rule fixes the type of a generated or identity column, so it is not widened. The copy shares the list `retyped`.
        merge = dataclasses.replace(self, widens=False, stores_alike=False) if has_fixed_type(table) else self
        data_type = merge._merge_types(table.data_type, data.data_type, path)
        # Only type widening records changes. A void column has no values in files, so its new type is not a change for readers.
        changes = [
            type_change(old, new, where[len(path) :])
            for where, old, new in self.retyped[previous_count:]
            if self.widens and old != VOID and _is_nearest_field(table.data_type, where[len(path) :])
        ]
        metadata: Mapping[str, Any] = table.metadata
        if changes:
            recorded_changes = metadata.get(TYPE_CHANGES, ())
            new_changes = [change for change in changes if change not in recorded_changes]
            metadata = {**metadata, TYPE_CHANGES: [*recorded_changes, *new_changes]}
        return StructField(table.name, data_type, table.nullable, metadata)

    def _merge_types(self, table: DataType, data: DataType, path: Path) -> DataType:
        """The merged type of a column, or of a part of it, at `path`."""
        match table, data:
            case StructType(), StructType():
                return self.merge_structs(table, data, path)
            case ArrayType(element, nulls), ArrayType(data_element, _):
                return ArrayType(self._merge_types(element, data_element, (*path, "element")), nulls)
            case MapType(key, value, nulls), MapType(data_key, data_value, _):
                merged_key = self._merge_types(key, data_key, (*path, "key"))
                return MapType(merged_key, self._merge_types(value, data_value, (*path, "value")), nulls)
        return table if data in (table, VOID) else self.merge_plain_types(table, data, path)

    def merge_plain_types(self, table: DataType, data: DataType, path: Path) -> DataType:
        """The common type of two types that differ and are not both structs, arrays or maps. Raises SchemaMismatchError if there
        is none."""
        is_alike = self.stores_alike and table in STORED_AS_INT32 and data in STORED_AS_INT32
        if table == VOID or ((self.widens or is_alike) and is_widening(table, data, like_iceberg=self.like_iceberg)):
            self.retyped.append((path, table, data))
            return _nullable(data)
        if not (is_widening(data, table) or (self.casts and _can_cast(data, table))):
            raise _cannot_merge(path, table, data)
        return table


def _can_cast(data: DataType, table: DataType) -> bool:
    """Whether store assignment can cast the data's values, which are not nested, to the table's type."""
    return not isinstance(data, StructType | ArrayType | MapType) and may_assign(data, table)


def _may_widen(table: TableConfig) -> bool:
    """Whether a write may widen the types of the table's columns. A table that has only the preview of the feature must record
    the version of each change; its types are not changed."""
    return _WIDENING_FEATURE in table.features and table.properties.boolean("delta.enableTypeWidening")


def _follows_iceberg(table: TableConfig) -> bool:
    return any(table.feature(f"icebergCompatV{number}") for number in (1, 2, 3))


def _is_nearest_field(data_type: DataType, inside: Path) -> bool:
    """Whether no struct lies between the field and the changed part of its type: then the change is recorded at this field, and
    otherwise at a field of that struct. data_type: the field's type. inside: the path from the field to the changed part, such as
    ("element",)."""
    for step in inside:
        if isinstance(data_type, StructType):
            return False
        if isinstance(data_type, ArrayType):
            data_type = data_type.element_type
        elif isinstance(data_type, MapType):
            data_type = data_type.key_type if step == "key" else data_type.value_type
    return True


def _cannot_merge(path: Path, table: DataType, data: DataType) -> SchemaMismatchError:
    """The error for a column of the data whose values the column of the table cannot take without a change."""
    name = ".".join(path)
    return SchemaMismatchError(
        f"Failed to merge fields '{name}' and '{name}': the table's type is {type_name(table)}, the data's {type_name(data)}, "
        "and its values would change. Nothing was written. Cast the column before writing; or, if the "
        "data's type is wider, set delta.enableTypeWidening to true, and the column gets that type.",
        error_class="DELTA_FAILED_TO_MERGE_FIELDS",
        sql_state="22005",
        column=name,
        table_type=type_name(table),
        data_type=type_name(data),
    )


# ---------------------------------------------------------------- rules that name a column


def _check_rules_allow(table: TableConfig, retyped: list[tuple[Path, DataType, DataType]]) -> None:
    """Raise SchemaMismatchError if a rule names a column that gets a new type. The rule was written for the old type, and may
    mean something else for existing rows with the new one. retyped: as in SchemaMerge."""
    for path, old, new in retyped:
        for rule in rules_naming(table, path):
            kind = "GENERATED_COLUMNS" if rule.kind == "generated" else "CONSTRAINT"
            what = "the generated column" if rule.kind == "generated" else "the rule"
            raise SchemaMismatchError(
                f"Column {'.'.join(path)} has the type {type_name(old)} and cannot become {type_name(new)}, because {what} "
                f"{rule.name} names it: {rule.sql}. Nothing was written. Cast the column before writing, or drop the rule first.",
                error_class=f"DELTA_{kind}_DATA_TYPE_MISMATCH",
                sql_state="42K09",
                column=".".join(path),
            )
