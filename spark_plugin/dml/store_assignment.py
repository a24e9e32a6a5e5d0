"""Store assignment on Spark's Columns: casts that fail instead of losing data, structs matched by the names of their fields, and
new rows in which only some columns, or fields, are assigned. delta_py does this on Arrow (row_rules/store_assignment_casts.py).

    rule = StoreAssignment.of(spark, evolves=False)
    rule.cast(Typed(column, data_type), target_type, "name")
    rule.new_row_columns(schema, current_value, {("a", "b"): AssignedValue(Typed(...))})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    StructField,
    StructType,
)

from delta_py.errors import SchemaMismatchError, UnsupportedOperationError
from delta_py.types.schema import group_by_first_name
from spark_plugin.internals.session_adapter import SessionAdapter, adapter_of
from spark_plugin.options.settings import conf
from spark_plugin.schema_conversion import FieldsByName

Path: TypeAlias = tuple[str, ...]

_OVERFLOWS = ("CAST_OVERFLOW_IN_TABLE_INSERT", "CAST_OVERFLOW")


@dataclass(frozen=True, slots=True)
class Typed:
    """A column and its type."""

    column: Column
    data_type: DataType

    def field(self, f: StructField) -> Typed:
        """Return a field of this struct."""
        return Typed(self.column.getField(f.name), f.dataType)

    def fields(self) -> Callable[[str], Typed | None]:
        """Return a function that finds a field by name, in any case, or returns None."""
        assert isinstance(self.data_type, StructType)
        fields = FieldsByName(self.data_type)

        def find(name: str) -> Typed | None:
            f = fields.find(name)
            return None if f is None else self.field(f)

        return find


@dataclass(frozen=True, slots=True)
class AssignedValue:
    """A value that a statement assigns to a column or field. keeps_missing_fields: if a struct of the value lacks fields of the
    column, these fields keep the row's current values (UPDATE SET * with schema evolution); otherwise they become null."""

    value: Typed
    keeps_missing_fields: bool = False


@dataclass(frozen=True, slots=True)
class StoreAssignment:
    """How values are converted to the type of the column that gets them. session: makes the casts. policy: ANSI, STRICT or
    LEGACY, the value of spark.sql.storeAssignmentPolicy. evolves: whether structs may lack fields that the column has."""

    session: SessionAdapter
    policy: str
    evolves: bool

    @classmethod
    def of(cls, spark: SparkSession, *, evolves: bool) -> StoreAssignment:
        return cls(adapter_of(spark), (conf(spark, "spark.sql.storeAssignmentPolicy") or "ANSI").upper(), evolves)

    # ------------------------------------------------------------ rows

    def new_row_columns(
        self,
        schema: StructType,
        current_value: Callable[[str], Typed | None],
        assigned: Mapping[Path, AssignedValue],
        omitted_columns: Set[str] = frozenset(),
    ) -> list[Column]:
        """Return the columns of a new row, each under its name in `schema`: the assigned value, else the current value, else
        null.

        current_value: returns the current row's value of a column, or None if there is no current row or the row has no such
        column. assigned: the assigned values by path in the schema; no path is a prefix of another. omitted_columns: names of
        columns that are left out of the result. Raises SchemaMismatchError
        (DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION) and UnsupportedOperationError (DELTA_UNSUPPORTED_FIELD_UPDATE_NON_STRUCT).
        """
        columns, assigned_by_name = [], _by_folded_name(assigned)
        for field in schema.fields:
            if field.name not in omitted_columns:
                values_inside = assigned_by_name.get(field.name.lower(), {})
                columns.append(self._new_value(field, current_value(field.name), values_inside, (field.name,)).alias(field.name))
        return columns

    def _new_value(self, field: StructField, current: Typed | None, inside: Mapping[Path, AssignedValue], path: Path) -> Column:
        """Return the new value of a field. current: the row's value of the field; None if the row has none. inside: the assigned
        values of the field and of fields inside it, by path from the field; () for the whole field. path: of the field in the
        schema."""
        if not inside:
            if current is None:
                return self._null_of(field.dataType)
            return self._rule_for_row_values.cast(current, field.dataType, ".".join(path))
        whole_value = inside.get(())
        if whole_value is not None:
            row_value = current if whole_value.keeps_missing_fields else None
            return self.cast(whole_value.value, field.dataType, ".".join(path), current=row_value)
        if not isinstance(field.dataType, StructType):
            raise UnsupportedOperationError(
                f"Updating nested fields is only supported for StructType, and {'.'.join(path)} is of type "
                f"{field.dataType.simpleString()}. Assign the whole column.",
                error_class="DELTA_UNSUPPORTED_FIELD_UPDATE_NON_STRUCT",
                sql_state="0AKDC",
                column=".".join(path),
            )
        new_fields, inside_by_name, old_field = [], _by_folded_name(inside), _fields_of(current)
        for child in field.dataType.fields:
            values_inside_child = inside_by_name.get(child.name.lower(), {})
            new_value = self._new_value(child, old_field(child.name), values_inside_child, (*path, child.name))
            new_fields.append(new_value.alias(child.name))
        return F.struct(*new_fields)

    @property
    def _rule_for_row_values(self) -> StoreAssignment:
        """The rule for current values of the row: their structs may lack fields that the table gets with this statement."""
        return StoreAssignment(self.session, self.policy, True)

    # ------------------------------------------------------------ values

    def cast(self, value: Typed, target_type: DataType, name: str, *, current: Typed | None = None) -> Column:
        """Return the value in the type `target_type`. name: of the column, for messages. current: supplies the fields of structs
        that the value lacks; None: they are null.

        Structs are matched by the names of their fields, in any case, and null structs stay null. A value that the type cannot
        represent is an error when the row is made, unless spark.sql.storeAssignmentPolicy is LEGACY.
        """
        column, source_type = value.column, value.data_type
        if source_type.simpleString() == target_type.simpleString() and current is None:
            return column
        if isinstance(source_type, NullType):
            return self._null_of(target_type)
        if isinstance(source_type, StructType) and isinstance(target_type, StructType):
            return self._cast_struct(value, target_type, name, current)
        if (
            isinstance(source_type, ArrayType)
            and isinstance(target_type, ArrayType)
            and _contains_struct(source_type)
            and _contains_struct(target_type)
        ):
            return F.transform(
                column, lambda item: self.cast(Typed(item, source_type.elementType), target_type.elementType, name)
            )
        if (
            isinstance(source_type, MapType)
            and isinstance(target_type, MapType)
            and _contains_struct(source_type)
            and _contains_struct(target_type)
        ):
            return self._cast_map(column, source_type, target_type, name)
        # `current` matters only inside of structs.
        is_same_type = source_type.simpleString() == target_type.simpleString()
        return column if is_same_type else self._cast_by_policy(value, target_type, name)

    def _cast_struct(self, value: Typed, target_type: StructType, name: str, row_value: Typed | None) -> Column:
        """Return the struct with the fields of the target type, in its order. row_value: the row's value, which supplies missing
        fields; None: they are null.

        Raises SchemaMismatchError (DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION) for fields that the target type lacks, and for
        missing fields if the schema does not evolve.
        """
        source_type = value.data_type
        assert isinstance(source_type, StructType)
        target_fields, source_fields = FieldsByName(target_type), FieldsByName(source_type)
        unknown_fields = [field.name for field in source_type.fields if target_fields.find(field.name) is None]
        missing_fields = [field.name for field in target_type.fields if source_fields.find(field.name) is None]
        if unknown_fields or (missing_fields and not self.evolves):
            raise SchemaMismatchError(
                f"Cannot cast {source_type.simpleString()} to {target_type.simpleString()} for {name}. All nested "
                f"columns must match: {', '.join(unknown_fields or missing_fields)} "
                f"{'is not in the table' if unknown_fields else 'is missing'}.",
                error_class="DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
                sql_state="42846",
                column=name,
            )
        new_fields, source_field, old_field = [], value.fields(), _fields_of(row_value)
        for field in target_type.fields:
            new_field = self._cast_field(source_field(field.name), old_field(field.name), field, f"{name}.{field.name}")
            new_fields.append(new_field.alias(field.name))
        is_present = value.column.isNotNull()
        # Fields that only the row has keep their values, even if the assigned struct is null.
        if row_value is not None and _has_fields_missing_in(row_value.data_type, source_type):
            is_present = is_present | row_value.column.isNotNull()
        return F.when(is_present, F.struct(*new_fields))

    def _cast_field(self, value: Typed | None, old: Typed | None, field: StructField, name: str) -> Column:
        """Return a field of a new struct. value: the field's value in the assigned struct; None if that struct lacks the field.
        old: the field's value in the row, which a missing field keeps; None if the field becomes null instead. name: the dotted
        path, for messages."""
        if value is not None:
            return self.cast(value, field.dataType, name, current=old if isinstance(field.dataType, StructType) else None)
        return self._null_of(field.dataType) if old is None else self._rule_for_row_values.cast(old, field.dataType, name)

    def _cast_map(self, column: Column, source_type: MapType, target_type: MapType, name: str) -> Column:
        """Return the map with its keys and values cast separately, by `cast`: Spark's own cast of the map would match the fields
        of structs by position."""
        if source_type.keyType.simpleString() != target_type.keyType.simpleString():
            to_key = partial(self._cast_item, source_type.keyType, target_type.keyType, name)
            column = F.transform_keys(column, lambda key, _: to_key(key))
        if source_type.valueType.simpleString() != target_type.valueType.simpleString():
            to_value = partial(self._cast_item, source_type.valueType, target_type.valueType, name)
            column = F.transform_values(column, lambda _, item: to_value(item))
        return column

    def _cast_item(self, source_type: DataType, target_type: DataType, name: str, item: Column) -> Column:
        return self.cast(Typed(item, source_type), target_type, name)

    def _null_of(self, target_type: DataType) -> Column:
        return F.lit(None).cast(target_type)

    def constant(self, text: str | None, target_type: DataType) -> Column:
        """Return the value that the clause PARTITION of an INSERT gives a column. Spark's parser passes it as text (None for
        NULL), and Spark always casts it in ANSI mode."""
        return self.session.cast(F.lit(text), target_type, ansi=True)

    def _cast_by_policy(self, value: Typed, target_type: DataType, name: str) -> Column:
        """Return a cast by the policy, whatever spark.sql.ansi.enabled is: Catalyst's cast has its own mode. Raises
        SchemaMismatchError (CANNOT_UP_CAST_DATATYPE) if the policy is STRICT and the type may not hold every value;
        UnsupportedOperationError if over Spark Connect only the server knows whether it may."""
        up_casts = self.session.can_up_cast(value.data_type, target_type)
        if self.policy == "STRICT" and up_casts is None:
            raise UnsupportedOperationError(
                f"{name} needs a cast to {target_type.simpleString()}. spark.sql.storeAssignmentPolicy is STRICT, which cannot "
                "be followed over Spark Connect. Cast the value, or set the policy to ANSI."
            )
        if self.policy == "STRICT" and not up_casts:
            raise SchemaMismatchError(
                f"Cannot up cast {name} from {value.data_type.simpleString()} to {target_type.simpleString()}, and "
                "spark.sql.storeAssignmentPolicy is STRICT. Cast it, or set the policy to ANSI.",
                error_class="CANNOT_UP_CAST_DATATYPE",
                sql_state="42846",
                column=name,
            )
        # With overflow_of, Spark names the column in the error for a value that is too large.
        overflow_of = name if self.policy == "ANSI" and not up_casts else None
        return self.session.cast(value.column, target_type, ansi=self.policy != "LEGACY", overflow_of=overflow_of)


@contextmanager
def overflow_as_delta_error(error_class: str = "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE") -> Iterator[None]:
    """Raise SchemaMismatchError, as pydelta's own casts do, if a job inside the block fails because a value is too large for the
    type to which `StoreAssignment` casts it. error_class: of the raised error; the statement INSERT has its own."""
    try:
        yield
    except PySparkException as error:
        if error.getCondition() not in _OVERFLOWS:
            raise
        raise SchemaMismatchError(
            f"A value is too large for the column's type: {str(error).partition(chr(10))[0]} Nothing was written.",
            error_class=error_class,
            sql_state="22003",
        ) from error


def _by_folded_name(assigned_values: Mapping[Path, AssignedValue]) -> dict[str, dict[Path, AssignedValue]]:
    """Group the values by the first name of their path, in lower case. The paths in a group lack this first name."""
    return group_by_first_name({(path[0].lower(), *path[1:]): value for path, value in assigned_values.items()})


def _fields_of(value: Typed | None) -> Callable[[str], Typed | None]:
    return (lambda name: None) if value is None else value.fields()


def _contains_struct(kind: DataType) -> bool:
    match kind:
        case StructType():
            return True
        case ArrayType():
            return _contains_struct(kind.elementType)
        case MapType():
            return _contains_struct(kind.keyType) or _contains_struct(kind.valueType)
    return False


def _has_fields_missing_in(data_type: DataType, other: DataType) -> bool:
    """Return whether a struct has fields, at any depth of structs, that the other type lacks."""
    if not (isinstance(data_type, StructType) and isinstance(other, StructType)):
        return False
    other_fields = FieldsByName(other)
    pairs = [(field, other_fields.find(field.name)) for field in data_type.fields]
    return any(
        other_field is None or _has_fields_missing_in(field.dataType, other_field.dataType) for field, other_field in pairs
    )
