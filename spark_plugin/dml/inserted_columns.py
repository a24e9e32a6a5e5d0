"""Converts columns of a query to columns of the table that an insert fills: names, fields of structs, and types.

    rule = StoreAssignment.of(spark, evolves=False)
    table_column(rule, table, "s", value, by_name=False)       # ("s", the query's column under the table's names and types)

By position, the fields of structs get the names of the table's fields in order, at any depth: in structs, arrays and maps. By
name, each field goes to the table's field with the same name. The casts are those of `StoreAssignment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    MapType,
    NullType,
    NumericType,
    StructField,
    StructType,
    TimestampNTZType,
)

from delta_py.errors import SchemaMismatchError
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.evolution import has_fixed_type, takes_type
from delta_py.types.names import quoted
from spark_plugin.dml.store_assignment import StoreAssignment, Typed
from spark_plugin.schema_conversion import FieldsByName, from_spark_schema, to_spark_schema

WIDENABLE_TYPES = (NumericType, DateType, TimestampNTZType)
"""Types that type widening may change, and the types that they may become."""
_VALUE_PREFIX = "__pydelta_value_of_"


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table. config: as in the log. schema: as in Spark."""

    config: TableConfig
    schema: StructType

    @classmethod
    def of(cls, config: TableConfig) -> TableColumns:
        return cls(config, to_spark_schema(config.schema))

    def find(self, name: str) -> StructField | None:
        """Return the field with exactly this name, else one whose name differs only in case, else None."""
        return self._fields.find(name)

    @cached_property
    def _fields(self) -> FieldsByName:
        return FieldsByName(self.schema)


def table_column(
    rule: StoreAssignment, table: TableColumns, name: str, query_field: StructField, *, by_name: bool
) -> tuple[str, Column]:
    """Return the table's name of a column, and the values for it. query_field: the query's column with the values. name: the name
    of the table's column, in any case. by_name: whether fields of structs go to the table's fields by name, not by position.

    A column that the table lacks is not changed, and neither is a value for a void column or field: the write gives the column
    the value's type, or refuses the value. Raises the same as StoreAssignment.cast, and by position the same as
    _with_table_names.
    """
    field = table.find(name)
    column = F.col(quoted(query_field.name))
    if field is None:
        return name, column
    query_type, table_type = query_field.dataType, field.dataType
    if not by_name:
        query_type = _with_table_names(query_type, table_type, field.name, evolves=rule.evolves)
        if query_type != query_field.dataType:
            column = column.cast(query_type)
    table_type = _without_void(table_type, query_type)
    logged_field = table.config.schema.find(name)
    if rule.evolves and logged_field is not None and not has_fixed_type(logged_field):
        table_type = _evolved_type(table.config, table_type, query_type)
    return field.name, rule.cast(Typed(column, query_type), table_type, field.name)


def with_table_columns(frame: DataFrame, columns: Sequence[tuple[str, Column]]) -> tuple[DataFrame, dict[str, str]]:
    """Return the query with the table's columns after its own, for the condition of REPLACE ON. columns: from table_column.

    Also returns, for each column of the table, the name of the query's column that contains its values.
    """
    values = {name: f"{_VALUE_PREFIX}{number}" for number, (name, _) in enumerate(columns)}
    return frame.select("*", *(column.alias(values[name]) for name, column in columns)), values


def _without_void(table_type: DataType, query_type: DataType) -> DataType:
    """Return the table's type, with the query's type in place of each void column, field, element, key or value."""
    match table_type, query_type:
        case NullType(), _:
            return query_type
        case StructType(), StructType():
            query_fields = FieldsByName(query_type)
            field_pairs = [(table_field, query_fields.find(table_field.name)) for table_field in table_type.fields]
            types = [
                table_field.dataType if query_field is None else _without_void(table_field.dataType, query_field.dataType)
                for table_field, query_field in field_pairs
            ]
            fields = zip(table_type.fields, types, strict=True)
            return StructType(
                [
                    StructField(table_field.name, data_type, table_field.nullable, table_field.metadata)
                    for table_field, data_type in fields
                ]
            )
        case ArrayType(), ArrayType():
            return ArrayType(_without_void(table_type.elementType, query_type.elementType), table_type.containsNull)
        case MapType(), MapType():
            key = _without_void(table_type.keyType, query_type.keyType)
            return MapType(key, _without_void(table_type.valueType, query_type.valueType), table_type.valueContainsNull)
    return table_type


def _evolved_type(table: TableConfig, table_type: DataType, query_type: DataType) -> DataType:
    """Return the column's type after the write: it adds fields of structs that only the query has, after the column's own, and
    takes the query's type if the table allows type widening."""
    match table_type, query_type:
        case StructType(), StructType():
            remaining_fields = {field.name.lower(): field for field in query_type.fields}
            types = [
                _evolved_type(table, field.dataType, remaining_fields.pop(field.name.lower(), field).dataType)
                for field in table_type.fields
            ]
            table_fields = [
                StructField(field.name, data_type, field.nullable)
                for field, data_type in zip(table_type.fields, types, strict=True)
            ]
            return StructType([*table_fields, *remaining_fields.values()])
        case ArrayType(), ArrayType():
            return ArrayType(_evolved_type(table, table_type.elementType, query_type.elementType), table_type.containsNull)
        case MapType(), MapType():
            key = _evolved_type(table, table_type.keyType, query_type.keyType)
            return MapType(key, _evolved_type(table, table_type.valueType, query_type.valueType), table_type.valueContainsNull)
    return query_type if _is_wider(table, table_type, query_type) else table_type


def _is_wider(table: TableConfig, table_type: DataType, query_type: DataType) -> bool:
    """Return whether the write widens a column of the table to the query's type."""
    if not (isinstance(table_type, WIDENABLE_TYPES) and isinstance(query_type, WIDENABLE_TYPES)):
        return False
    old_type, new_type = (
        from_spark_schema(StructType([StructField("c", data_type)])).fields[0].data_type for data_type in (table_type, query_type)
    )
    return takes_type(table, old_type, new_type)


def _with_table_names(query_type: DataType, table_type: DataType, name: str, *, evolves: bool) -> DataType:
    """Return the query's type with the names of the table's fields, by position. name: of the column or field, for messages.
    evolves: structs of the query may have more fields than the table's; these are new, and keep their names.

    Raises SchemaMismatchError: DELTA_INSERT_COLUMN_ARITY_MISMATCH for a struct with fewer fields, DELTA_METADATA_MISMATCH for one
    with more.
    """
    match query_type, table_type:
        case StructType(), StructType():
            if len(query_type.fields) < len(table_type.fields) or (
                len(query_type.fields) > len(table_type.fields) and not evolves
            ):
                raise _field_count_error(query_type, table_type, name)
            field_pairs = zip(query_type.fields, table_type.fields, strict=False)
            renamed_fields = [
                StructField(
                    table_field.name,
                    _with_table_names(query_field.dataType, table_field.dataType, f"{name}.{table_field.name}", evolves=evolves),
                    query_field.nullable,
                )
                for query_field, table_field in field_pairs
            ]
            return StructType([*renamed_fields, *query_type.fields[len(table_type.fields) :]])
        case ArrayType(), ArrayType():
            element = _with_table_names(query_type.elementType, table_type.elementType, f"{name}.element", evolves=evolves)
            return ArrayType(element, query_type.containsNull)
        case MapType(), MapType():
            key = _with_table_names(query_type.keyType, table_type.keyType, f"{name}.key", evolves=evolves)
            value = _with_table_names(query_type.valueType, table_type.valueType, f"{name}.value", evolves=evolves)
            return MapType(key, value, query_type.valueContainsNull)
    return query_type


def _field_count_error(query_type: StructType, table_type: StructType, name: str) -> SchemaMismatchError:
    is_short = len(query_type.fields) < len(table_type.fields)
    advice = "Give each field a value." if is_short else "Leave fields out, or add them with mergeSchema or schema evolution."
    return SchemaMismatchError(
        f"Fields of structs go by position: column {name} of the table has {len(table_type.fields)} fields "
        f"({', '.join(table_type.names)}), the data has {len(query_type.fields)} ({', '.join(query_type.names)}). Nothing was "
        f"written. {advice}",
        error_class="DELTA_INSERT_COLUMN_ARITY_MISMATCH" if is_short else "DELTA_METADATA_MISMATCH",
        sql_state="42802" if is_short else "42KDG",
        column=name,
    )
