"""New rows of an UPDATE or MERGE: column values from SQL or from Python, in the columns' types.

    values = resolve_assignments(scope, target, {"price": "price * 2", "address.city": "'Ulm'"}, "UPDATE")
    rows = updated_rows(schema, values)         # or inserted_rows
    rows.compute(batch)                              # the struct NEW of task_changes.py, one per row of the batch

Types are checked before any row is read: Spark's store assignment rules apply, and texts are parsed as values of the column.
Generated columns without an assigned value are left out; they are computed when rows are written.
Protocol: Generated Columns; Default Columns; Identity Columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from delta_py.errors import SchemaMismatchError, UnsupportedOperationError
from delta_py.expressions.coercion import is_atomic, may_assign
from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.functions.text_growth import repeat_in_rows
from delta_py.expressions.parse import type_of
from delta_py.expressions.resolve import resolve_cast
from delta_py.expressions.tree import Expression, columns_of
from delta_py.protocol.identity_columns import identity_of
from delta_py.row_changes.sql_scope import Scope, Side
from delta_py.row_rules.row_constraints import default_value
from delta_py.row_rules.store_assignment_casts import TimeRules, assign, converter
from delta_py.types.column_rules import DEFAULT, GENERATION
from delta_py.types.names import split_name
from delta_py.types.nested_arrays import Converter, struct_children
from delta_py.types.schema import DataType, Path, StructField, StructType, find_path, group_by_first_name, to_arrow_type

ArrayMaker: TypeAlias = Callable[[pa.RecordBatch], pa.Array]


@dataclass(frozen=True, slots=True)
class Computed:
    """An assigned value that an SQL expression gives for each row. convert: converts the expression's results to the column's
    type; None if they already have it."""

    expression: Expression
    convert: Converter | None

    def compute(self, batch: pa.RecordBatch) -> pa.Array:
        values = evaluate(self.expression, batch)
        return values if self.convert is None else self.convert(values)


@dataclass(frozen=True, slots=True)
class Constant:
    """An assigned value that is the same for all rows. value: has the column's type."""

    value: pa.Scalar

    def compute(self, batch: pa.RecordBatch) -> pa.Array:
        return repeat_in_rows(self.value, batch.num_rows)


Value: TypeAlias = Computed | Constant
Values: TypeAlias = Mapping[Path, Value]


@dataclass(frozen=True, slots=True)
class NewRows:
    """How a clause makes its new rows from a batch. fields: the columns of the new rows. makers: for each field, the function
    that makes its values. columns: the columns of the batch that the makers read, by name."""

    fields: tuple[pa.Field, ...]
    makers: tuple[ArrayMaker, ...]
    columns: frozenset[str]

    def compute(self, batch: pa.RecordBatch) -> pa.StructArray:
        return pa.StructArray.from_arrays([make(batch) for make in self.makers], fields=list(self.fields))


# ---------------------------------------------------------------- assignments


def resolve_assignments(scope: Scope, target: Side, updates: Mapping[str, str], action: str) -> Values:
    """Values by the path of the column or field in the table. target: the side whose columns are assigned; names may begin with
    its alias. DEFAULT means the column's default, or NULL if it has none; for a generated column it means the computed value.

    action: UPDATE or INSERT. Raises what Scope raises; SchemaMismatchError for a column that the table lacks and for a type that
    does not fit; UnsupportedOperationError for identity columns, columns that are assigned twice, fields in an INSERT.
    """
    values: dict[Path, Value] = {}
    paths = AssignedPaths(action)
    for name, sql in updates.items():
        path = paths.add(_assigned_path(target, name, action))
        column = find_path(target.schema, path)[0]
        if not _is_default_keyword(sql, scope):
            values[path] = _computed_value(scope, sql, find_path(target.schema, path)[-1].data_type, name)
        elif len(path) > 1:
            raise _misplaced_default(name)
        elif GENERATION not in column.metadata:
            values[path] = _default_constant(column, scope)
    return values


def convert_constants(scope: Scope, target: Side, new_values: Mapping[str, Any], action: str) -> Values:
    """Values by the path of the column or field in the table, from Python values. new_values: by name, as the caller spells it.
    Timestamps without a zone are read in the session's zone. Raises as `resolve_assignments`."""
    values: dict[Path, Value] = {}
    paths = AssignedPaths(action)
    for name, value in new_values.items():
        path = paths.add(_assigned_path(target, name, action))
        data_type = find_path(target.schema, path)[-1].data_type
        values[path] = Constant(_scalar_from_python(value, data_type, name, scope.clock.time_zone))
    return values


def _scalar_from_python(value: Any, data_type: DataType, name: str, time_zone: str) -> pa.Scalar:
    """A Python value in the Arrow type of the column or field `name`. time_zone: the session's, for times without a zone."""
    try:
        # A simple value gets the Arrow type of its Python type, and store assignment then converts it to the column's type.
        array = pa.array([value]) if is_atomic(data_type) else pa.array([value], to_arrow_type(data_type))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise SchemaMismatchError(
            f"{value!r:.100} is no value of column {name}: {error}. Nothing was changed.",
            error_class="DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
            sql_state="42846",
            column=name,
        ) from error
    return assign(array, data_type, name, TimeRules(time_zone))[0]


def nested_in_insert(path: Path) -> UnsupportedOperationError:
    """The error for an INSERT clause that assigns a value to a field of a struct."""
    return UnsupportedOperationError(
        f"Nested field is not supported in the INSERT clause of MERGE operation (field = {'.'.join(path)}). Give the whole "
        "column a value.",
        error_class="DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
        sql_state="0AKDC",
        column=".".join(path),
    )


class AssignedPaths:
    """The columns and fields to which a clause assigns values, ignoring case. action: UPDATE or INSERT."""

    def __init__(self, action: str) -> None:
        self._action = action
        self._paths: dict[Path, Path] = {}
        self._parents: set[Path] = set()

    def add(self, path: Path) -> Path:
        """Add a path and return it. Raises UnsupportedOperationError if the path, a field in it, or a struct around it already
        has a value.
        """
        lower_path = tuple(name.lower() for name in path)
        # The paths of the structs around the column or field.
        parents = [lower_path[:length] for length in range(1, len(lower_path))]
        if lower_path in self._parents or not self._paths.keys().isdisjoint([*parents, lower_path]):
            # Earlier paths that are equal to this one, that begin with it, or with which it begins.
            overlapping = (
                earlier_path for key, earlier_path in self._paths.items() if key[: len(lower_path)] == lower_path[: len(key)]
            )
            raise assigned_twice(self._action, next(overlapping), path)
        self._paths[lower_path] = path
        self._parents.update(parents)
        return path


def assigned_twice(action: str, earlier_path: Path, path: Path) -> UnsupportedOperationError:
    """The error for a column that gets two values in one clause. action: UPDATE or INSERT."""
    return UnsupportedOperationError(
        f"There is a conflict from these {action} columns: {['.'.join(earlier_path), '.'.join(path)]}. A column can be given "
        "one value. Nothing was changed.",
        error_class="DELTA_CONFLICT_SET_COLUMN" if action == "UPDATE" else "DELTA_DUPLICATE_COLUMNS_ON_INSERT",
        sql_state="42701",
        columns=[".".join(earlier_path), ".".join(path)],
    )


def _assigned_path(target: Side, name: str, action: str) -> Path:
    """The path of an assigned column or field, in the table's spelling. Raises as `resolve_assignments`."""
    name_path = split_name(name)
    fields = find_path(target.schema, target.without_alias(name_path) or name_path)
    path = tuple(f.name for f in fields)
    identity = identity_of(fields[0])
    if identity is not None and (action == "UPDATE" or not identity.explicit):
        raise identity_assigned(fields[0].name, action)
    if action == "INSERT" and len(path) > 1:
        raise nested_in_insert(path)
    return path


def identity_assigned(name: str, action: str) -> UnsupportedOperationError:
    """The error for a clause that assigns a value to an identity column. action: UPDATE or INSERT."""
    update = action.upper() == "UPDATE"
    return UnsupportedOperationError(
        f"{'UPDATE on' if update else 'Providing values for GENERATED ALWAYS AS'} IDENTITY column {name} is not supported. Leave "
        "it out of the clause.",
        error_class=f"DELTA_IDENTITY_COLUMNS_{'UPDATE' if update else 'EXPLICIT_INSERT'}_NOT_SUPPORTED",
        sql_state="42808",
        column=name,
    )


def _is_default_keyword(sql: str, scope: Scope) -> bool:
    """Whether the SQL is only the word DEFAULT. A column of that name takes precedence."""
    is_word = str(sql).strip().lower() == "default"  # Scope raises the error for values that are not text
    return is_word and all(side.schema.find("default") is None for side in scope.sides)


def _misplaced_default(name: str) -> SchemaMismatchError:
    """The error for DEFAULT as the value of a field in a struct."""
    return SchemaMismatchError(
        f"DEFAULT is for whole columns of the table, and {name} is not one. Write the value itself.",
        error_class="DEFAULT_PLACEMENT_INVALID",
        sql_state="42608",
        column=name,
    )


def _default_constant(column: StructField, scope: Scope) -> Constant:
    """The column's default, or null if it has none."""
    if DEFAULT in column.metadata:
        return Constant(default_value(column, scope.clock))
    return Constant(pa.scalar(None, to_arrow_type(column.data_type)))


def _computed_value(scope: Scope, sql: str, column_type: DataType, name: str) -> Computed:
    """The value that SQL assigns. column_type, name: those of the assigned column or field."""
    expression = scope.expression(sql)
    expression_type = type_of(expression, scope.rows)
    if is_atomic(expression_type) and is_atomic(column_type) and not may_assign(expression_type, column_type):
        # SET accepts more than an insert does: texts are cast to numbers, or the cast fails.
        return Computed(resolve_cast(expression, scope.rows, column_type, scope.clock.time_zone).expression, None)
    return Computed(expression, converter(to_arrow_type(expression_type), column_type, name, TimeRules(scope.clock.time_zone)))


# ---------------------------------------------------------------- new rows


def updated_rows(target: Side, values: Values) -> NewRows:
    """The new rows of an UPDATE: each column of the table with its new value, or with its value in the batch. Generated columns
    without a new value are left out: they are computed when the rows are written."""
    fields, makers = [], []
    columns = {path[0] for value in values.values() if isinstance(value, Computed) for path in columns_of(value.expression)}
    values_by_column = group_by_first_name(values)
    for f in target.schema.fields:
        inner_values = values_by_column.get(f.name, {})
        if not inner_values and GENERATION in f.metadata:
            continue
        # The old value is needed unless the whole column, whose path is (), gets a new one.
        if () not in inner_values:
            columns.add(target.prefix + f.name)
        fields.append(pa.field(f.name, to_arrow_type(f.data_type)))
        makers.append(_column_maker(f, target.prefix + f.name, inner_values))
    return NewRows(tuple(fields), tuple(makers), frozenset(columns))


def _column_maker(column: StructField, name: str, inner_values: Mapping[Path, Value]) -> ArrayMaker:
    """Return a function that makes the column after the assignments to it or to fields in it. name: the name of the old column in
    the batch. inner_values: the assigned values by path in the column; () is the column itself."""
    if not inner_values:
        return lambda batch: batch.column(name)
    if () in inner_values:
        return inner_values[()].compute
    update = _field_updater(column.data_type, inner_values)
    return lambda batch: update(batch.column(name), batch)


_FieldUpdater: TypeAlias = Callable[[pa.Array, pa.RecordBatch], pa.Array]


def _field_updater(data_type: DataType, inner_values: Mapping[Path, Value]) -> _FieldUpdater:
    """Return a function that takes a struct's values and their batch, and returns the values with the assigned fields. A struct
    that is null becomes one with the assigned fields. inner_values: the assigned values, by path relative to this struct.
    """
    assert isinstance(data_type, StructType)
    fields = list(to_arrow_type(data_type))
    values_by_field = group_by_first_name(inner_values)
    updates = [_child_updater(f, values_by_field.get(f.name, {})) for f in data_type.fields]

    def update(old_structs: pa.StructArray, batch: pa.RecordBatch) -> pa.StructArray:
        parts = [make(child, batch) for make, child in zip(updates, struct_children(old_structs), strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields)

    return update


def _child_updater(f: StructField, inner_values: Mapping[Path, Value]) -> _FieldUpdater:
    """As _field_updater, for one field of a struct: the returned function takes and returns the field's values."""
    if not inner_values:
        return lambda old_values, batch: old_values
    if () in inner_values:
        value = inner_values[()]
        return lambda old_values, batch: value.compute(batch)
    return _field_updater(f.data_type, inner_values)


def inserted_rows(scope: Scope, target: Side, values: Values) -> NewRows:
    """The rows that an INSERT adds. Columns without a value get their default, or null."""
    fields, makers = [], []
    columns = {path[0] for value in values.values() if isinstance(value, Computed) for path in columns_of(value.expression)}
    for f in target.schema.fields:
        value = values.get((f.name,))
        # The value of a generated column is computed when the row is written.
        if value is None and GENERATION in f.metadata:
            continue
        fields.append(pa.field(f.name, to_arrow_type(f.data_type)))
        makers.append((_default_constant(f, scope) if value is None else value).compute)
    return NewRows(tuple(fields), tuple(makers), frozenset(columns))
