"""SET of UPDATE and MERGE: which columns, also nested ones, get which values, and the struct of the new row.

values = assigned_paths(frame, schema, {"a.b": Column, ...})       # names as Spark resolves them in the frame
row = new_row(schema, frame, values)                               # the struct column NEW of task_changes.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from delta_py.errors import SchemaMismatchError, UnsupportedOperationError
from delta_py.expressions.coercion import is_atomic, may_assign
from delta_py.protocol.identity_columns import identity_of
from delta_py.row_changes.assigned_rows import AssignedPaths
from delta_py.types.column_rules import GENERATION
from delta_py.types.names import quoted
from delta_py.types.schema import STRING, DataType, Path, StructField, StructType, find_path, group_by_first_name
from delta_py.write.task_changes import NEW
from spark_plugin.dml.analyzer import analyzer_of
from spark_plugin.dml.column_defaults import default_of, is_default_word
from spark_plugin.dml.store_assignment import StoreAssignment, Typed
from spark_plugin.dml.target_names import Alias
from spark_plugin.schema_conversion import delta_type, is_storable, spark_type

Assignments: TypeAlias = dict[Path, Column]


def assigned_paths(frame: DataFrame, schema: StructType, new_values: Mapping[str, Column], *, alias: Alias = ()) -> Assignments:
    """Return the values of SET by the path of the column in the table, in the order of `new_values`.

    frame: a frame of only the target. Spark resolves the names in it, so that aliases, backticks and the session's case rule
    mean what they mean everywhere. alias: the frame's. Raises Spark's AnalysisException for a name that does not exist;
    UnsupportedOperationError for a name that is no column or struct field, for an identity column, for columns that
    are assigned twice, and for a field that is assigned together with its struct.
    """
    values_by_path: Assignments = {}
    if not new_values:
        return values_by_path
    unique_paths = AssignedPaths("UPDATE")  # refuses a path that overlaps an earlier one
    paths = analyzer_of(frame.sparkSession).assigned_paths(frame, list(new_values), alias)
    for (name, value), path in zip(new_values.items(), paths, strict=True):
        values_by_path[unique_paths.add(_checked_path(schema, path, name))] = value
    return values_by_path


def _checked_path(schema: StructType, path: Path, name: str) -> Path:
    """Return the path with its column in the table's spelling; Spark returns the statement's. name: the whole path as the
    statement has it, for messages."""
    column = schema.find(path[0])
    if column is None:
        raise SchemaMismatchError(
            f"{name} is no column of the table. It has {', '.join(schema.names)}.",
            error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
            column=name,
        )
    if identity_of(column) is not None:
        raise UnsupportedOperationError(
            f"UPDATE on IDENTITY column {name} is not supported. Leave it out of SET.",
            error_class="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
            sql_state="42808",
            column=name,
        )
    return (column.name, *path[1:])


def with_defaults(frame: DataFrame, schema: StructType, values: Assignments) -> Assignments:
    """Return the values with the column's default in place of the word DEFAULT. A generated column with DEFAULT is left out,
    because it is computed later."""
    values_by_path = {}
    for path, value in values.items():
        field = find_path(schema, path)[0]
        # Only a whole column has a default.
        if len(path) > 1 or not is_default_word(frame, value):
            values_by_path[path] = value
        elif GENERATION not in field.metadata:
            values_by_path[path] = default_of(frame.sparkSession, field)
    return values_by_path


def new_row(schema: StructType, frame: DataFrame, values: Assignments) -> Column:
    """Return the column NEW: each column of the table with its new value, or with its value in `frame`.

    Generated columns that are not assigned are left out: they are computed from the other new values when rows are written.
    """
    # A path in another spelling than the schema's would be ignored below.
    assert {path[0] for path in values} <= set(schema.names), "a value would be lost"
    typed_values = _in_assignable_types(schema, frame, values)
    fields, values_by_column = [], group_by_first_name(typed_values)
    for field in schema.fields:
        values_inside = values_by_column.get(field.name, {})
        if values_inside or GENERATION not in field.metadata:
            fields.append(_new_value(field, frame[quoted(field.name)], values_inside).alias(field.name))
    return F.struct(*fields).alias(NEW)


def _new_value(field: StructField, old: Column, inside: Mapping[Path, Column]) -> Column:
    """Return the field's new value. old: its value in the row. inside: the assigned values, by path from this field; () for the
    whole field. A null struct becomes a struct with the assigned fields; its other fields are null."""
    if not inside:
        return old
    if () in inside:
        return inside[()]
    assert isinstance(field.data_type, StructType)
    new_fields, values_by_field = [], group_by_first_name(inside)
    for child in field.data_type.fields:
        new_fields.append(_new_value(child, old.getField(child.name), values_by_field.get(child.name, {})).alias(child.name))
    return F.struct(*new_fields)


# ---------------------------------------------------------------- types


def _in_assignable_types(schema: StructType, frame: DataFrame, values: Assignments) -> Assignments:
    """Return the values by path, with Spark's casts around those that pydelta's own row checks would refuse. SET converts more
    types than a write of rows does, such as text to numbers. If a value cannot be converted, the job fails. SET accepts no
    structs that lack fields.

    frame: the rows with the old values. Raises SchemaMismatchError (DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION) for such structs."""
    if not values:
        return values
    named_values = [value.alias(f"v{number}") for number, value in enumerate(values.values())]
    rule = StoreAssignment.of(frame.sparkSession, evolves=False)
    return {
        path: _cast_for_write(rule, Typed(value, field.dataType), find_path(schema, path)[-1].data_type, ".".join(path))
        for (path, value), field in zip(values.items(), frame.select(*named_values).schema.fields, strict=True)
    }


def _cast_for_write(rule: StoreAssignment, value: Typed, target_type: DataType, name: str) -> Column:
    """Return the value as it is if pydelta can cast it when it writes the row; otherwise with Spark's cast to the column's type.
    name: the dotted path, for messages."""
    if target_type == STRING or not is_storable(value.data_type):  # pydelta does not know how Spark casts every type
        return rule.cast(value, spark_type(target_type), name)
    data_type = delta_type(value.data_type)
    if is_atomic(data_type) and is_atomic(target_type) and may_assign(data_type, target_type):
        return value.column
    return rule.cast(value, spark_type(target_type), name)
