"""Converts columns of a query to columns of the table that an insert fills: names, fields of structs, and types.

    rule = Assigning.of(spark, evolves=False)
    table_column(rule, table, "s", given, by_name=False)       # ("s", the query's column under the table's names and types)

By position, the fields of structs get the names of the table's fields in order, at any depth: in structs, arrays and maps. By
name, each field goes to the table's field with the same name. The casts are those of `Assigning`.
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
from delta_py.row_rules.evolution import keeps_type, takes_type
from delta_py.types.names import quoted
from spark_plugin.dml.store_assignment import Assigning, Typed
from spark_plugin.schema_conversion import FieldsByName, from_spark_schema, to_spark_schema

WIDENED = (NumericType, DateType, TimestampNTZType)
"""Types that may become wider, and what they become."""
_VALUE = "__pydelta_value_of_"


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
    rule: Assigning, table: TableColumns, name: str, given: StructField, *, by_name: bool
) -> tuple[str, Column]:
    """Return the table's name of a column, and the values for it. given: the query's column. name: the column that it is for.

    A column that the table lacks is not changed, and neither is a value for a void column or field: the write gives the column
    the value's type, or refuses the value. Raises the same as Assigning.cast, and by position the same as _renamed.
    """
    field = table.find(name)
    column = F.col(quoted(given.name))
    if field is None:
        return name, column
    found, wanted = given.dataType, field.dataType
    if not by_name:
        found = _renamed(found, wanted, field.name, evolves=rule.evolves)
        if found != given.dataType:
            column = column.cast(found)
    wanted = _without_void(wanted, found)
    logged = table.config.schema.find(name)
    if rule.evolves and logged is not None and not keeps_type(logged):
        wanted = _evolved(table.config, wanted, found)
    return field.name, rule.cast(Typed(column, found), wanted, field.name)


def with_table_columns(frame: DataFrame, columns: Sequence[tuple[str, Column]]) -> tuple[DataFrame, dict[str, str]]:
    """Return the query with the table's columns after its own, for the condition of REPLACE ON. columns: from table_column.

    Also returns, for each column of the table, the name of the query's column that contains its values.
    """
    values = {name: f"{_VALUE}{number}" for number, (name, _) in enumerate(columns)}
    return frame.select("*", *(column.alias(values[name]) for name, column in columns)), values


def _without_void(wanted: DataType, found: DataType) -> DataType:
    """Return the table's type with the query's types in place of void."""
    match wanted, found:
        case NullType(), _:
            return found
        case StructType(), StructType():
            given_fields = FieldsByName(found)
            pairs = [(f, given_fields.find(f.name)) for f in wanted.fields]
            kinds = [f.dataType if given is None else _without_void(f.dataType, given.dataType) for f, given in pairs]
            fields = zip(wanted.fields, kinds, strict=True)
            return StructType([StructField(f.name, kind, f.nullable, f.metadata) for f, kind in fields])
        case ArrayType(), ArrayType():
            return ArrayType(_without_void(wanted.elementType, found.elementType), wanted.containsNull)
        case MapType(), MapType():
            key = _without_void(wanted.keyType, found.keyType)
            return MapType(key, _without_void(wanted.valueType, found.valueType), wanted.valueContainsNull)
    return wanted


def _evolved(table: TableConfig, wanted: DataType, found: DataType) -> DataType:
    """Return the column's type after the write: it adds fields of structs that only the query has, after the column's own, and
    takes the query's type if the table allows type widening."""
    match wanted, found:
        case StructType(), StructType():
            given = {f.name.lower(): f for f in found.fields}
            kinds = [_evolved(table, f.dataType, given.pop(f.name.lower(), f).dataType) for f in wanted.fields]
            own = [StructField(f.name, kind, f.nullable) for f, kind in zip(wanted.fields, kinds, strict=True)]
            return StructType([*own, *given.values()])
        case ArrayType(), ArrayType():
            return ArrayType(_evolved(table, wanted.elementType, found.elementType), wanted.containsNull)
        case MapType(), MapType():
            key = _evolved(table, wanted.keyType, found.keyType)
            return MapType(key, _evolved(table, wanted.valueType, found.valueType), wanted.valueContainsNull)
    return found if _is_wider(table, wanted, found) else wanted


def _is_wider(table: TableConfig, wanted: DataType, found: DataType) -> bool:
    if not (isinstance(wanted, WIDENED) and isinstance(found, WIDENED)):
        return False
    old, new = (from_spark_schema(StructType([StructField("c", kind)])).fields[0].data_type for kind in (wanted, found))
    return takes_type(table, old, new)


def _renamed(found: DataType, wanted: DataType, name: str, *, evolves: bool) -> DataType:
    """Give the query's type the names of the table's fields, by position. evolves: structs may have more fields, which are new.

    Raises SchemaMismatchError: DELTA_INSERT_COLUMN_ARITY_MISMATCH for a struct with fewer fields, DELTA_METADATA_MISMATCH for one
    with more.
    """
    match found, wanted:
        case StructType(), StructType():
            if len(found.fields) < len(wanted.fields) or (len(found.fields) > len(wanted.fields) and not evolves):
                raise _other_fields(found, wanted, name)
            pairs = zip(found.fields, wanted.fields, strict=False)
            renamed = [
                StructField(w.name, _renamed(f.dataType, w.dataType, f"{name}.{w.name}", evolves=evolves), f.nullable)
                for f, w in pairs
            ]
            return StructType([*renamed, *found.fields[len(wanted.fields) :]])
        case ArrayType(), ArrayType():
            element = _renamed(found.elementType, wanted.elementType, f"{name}.element", evolves=evolves)
            return ArrayType(element, found.containsNull)
        case MapType(), MapType():
            key = _renamed(found.keyType, wanted.keyType, f"{name}.key", evolves=evolves)
            value = _renamed(found.valueType, wanted.valueType, f"{name}.value", evolves=evolves)
            return MapType(key, value, found.valueContainsNull)
    return found


def _other_fields(found: StructType, wanted: StructType, name: str) -> SchemaMismatchError:
    is_short = len(found.fields) < len(wanted.fields)
    advice = "Give each field a value." if is_short else "Leave fields out, or add them with mergeSchema or schema evolution."
    return SchemaMismatchError(
        f"Fields of structs go by position: column {name} of the table has {len(wanted.fields)} fields "
        f"({', '.join(wanted.names)}), the data has {len(found.fields)} ({', '.join(found.names)}). Nothing was written. "
        f"{advice}",
        error_class="DELTA_INSERT_COLUMN_ARITY_MISMATCH" if is_short else "DELTA_METADATA_MISMATCH",
        sql_state="42802" if is_short else "42KDG",
        column=name,
    )
