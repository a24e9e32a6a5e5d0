"""DELETE and UPDATE without Spark.

    delete(store, "price < 15")                               # metrics, by delta-spark's names
    update(store, {"price": "price * 2"}, None, "id = 2")

Conditions and values are SQL in Spark's dialect, evaluated on Arrow. An expression that cannot be evaluated is refused by its
name before any row is read. A row is deleted or changed only if the condition is true for it, not null. Memory is bounded by some
batches per thread.
Protocol: Requirements for Writers; Deletion Vectors; Add CDC File.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from delta_py.errors import InvalidOptionError
from delta_py.expressions.tree import columns_of
from delta_py.row_changes.assigned_rows import convert_constants, resolve_assignments, updated_rows
from delta_py.row_changes.dml import Dml
from delta_py.row_changes.row_jobs import address_columns, change_rows, plan_target_scan
from delta_py.row_changes.sql_scope import Scope, Side
from delta_py.row_rules.row_constraints import Clock
from delta_py.storage.store import ObjectStore
from delta_py.write.task_changes import DELETED, NEW, UPDATED


def delete(store: ObjectStore, predicate: str | None = None, *, time_zone: str = "UTC") -> dict[str, int]:
    """Delete the rows for which the predicate is true; None: all. Returns metrics.

    A file whose rows are all deleted is removed without being read, if partition values and statistics prove it. Raises
    ExpressionError and SchemaMismatchError for a predicate that cannot be evaluated, UnsupportedOperationError
    (DELTA_CANNOT_MODIFY_APPEND_ONLY); conflicts as Transaction.commit.
    """
    dml = Dml.begin(store, "DELETE", time_zone=time_zone)
    condition = None if predicate is None else _scope(dml, "DELETE").predicate(predicate)
    dml.transaction.only_deleted_rows_matter()
    dml.find_candidates(condition)  # the next line splits them
    partial_files = dml.split_off_whole_files(condition)

    def mark_deleted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (pa.record_batch(address_columns(dml, batch, DELETED)) for batch in batches)

    # No column is needed in addition to the positions of the rows.
    scan = plan_target_scan(dml, partial_files, columns=(), predicate=condition) if len(partial_files) else None
    return change_rows(dml, scan, mark_deleted, _history_parameters(predicate))


def update(
    store: ObjectStore,
    updates: Mapping[str, str] | None = None,
    new_values: Mapping[str, Any] | None = None,
    predicate: str | None = None,
    *,
    time_zone: str = "UTC",
) -> dict[str, int]:
    """Assign new values to columns of the rows for which the predicate is true (None: of all rows). Returns metrics.

    updates: SQL by column, over the row's old values; fields of structs by their path; DEFAULT is the column's default.
    new_values: Python values, instead of updates. Raises as `delete`; what `resolve_assignments`, `convert_constants` and the row
    checks raise.
    """
    if (updates is None) == (new_values is None):
        raise InvalidOptionError("Give updates (SQL expressions) or new_values (values), one of the two.", option="updates")
    dml = Dml.begin(store, "UPDATE", time_zone=time_zone)
    scope = _scope(dml, "UPDATE")
    condition = None if predicate is None else scope.predicate(predicate)
    target = scope.sides[0]
    if new_values is not None:
        values = convert_constants(scope, target, new_values, "UPDATE")
    else:
        values = resolve_assignments(scope, target, updates or {}, "UPDATE")
    rows = updated_rows(target, values)
    dml.transaction.only_deleted_rows_matter()
    # An empty mapping assigns nothing: no row changes, and no file is read.
    candidates = dml.find_candidates(condition) if updates or new_values else None

    def make_updates(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (pa.record_batch({**address_columns(dml, batch, UPDATED), NEW: rows.compute(batch)}) for batch in batches)

    if not candidates:
        return change_rows(dml, None, make_updates, _history_parameters(predicate))
    needed_columns = rows.columns | {path[0] for path in (columns_of(condition) if condition is not None else ())}
    columns = [f for f in dml.snapshot.schema.fields if f.name in needed_columns]
    return change_rows(dml, plan_target_scan(dml, candidates, columns, condition), make_updates, _history_parameters(predicate))


def _scope(dml: Dml, where: str) -> Scope:
    """The names that SQL of the command may use: the table's columns. where: the command's name, for errors."""
    return Scope((Side(dml.snapshot.schema),), Clock(dml.state.write_micros, dml.state.time_zone), where)


def _history_parameters(predicate: str | None) -> dict[str, Any]:
    """The parameters of the operation in the table's history, as delta-spark writes them."""
    return {"predicate": [] if predicate is None else [predicate]}
