"""Writing rows to a table: create, append, overwrite all or a part of it.

    write_delta("/data/events", frame, mode="append", partition_by=["day"]) -> version

A writer with many tasks uses the same three steps: plan_write on the driver, write_files(plan.state, ...) in each task, and
commit_write with the results of the tasks.
Protocol: Requirements for Writers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from delta_py.commit.transaction import Transaction
from delta_py.definition.arrow_data import arrow_stream
from delta_py.definition.catalog_entry import enter_in_catalog
from delta_py.definition.overwrite import Overwrites, remove_replaced_rows, replace_metrics
from delta_py.definition.request import StreamBatch, WriteRequest
from delta_py.errors import DeltaError, InvalidOptionError, StorageError, TableNotFoundError
from delta_py.object_stores.open_store import PathLike, coordination_of, open_or_stage
from delta_py.object_stores.table_store import NO_RULES
from delta_py.row_changes.after_commit import after_commit
from delta_py.row_changes.write_plans import NothingToDo, WritePlan, plan_on_snapshot
from delta_py.row_rules.conform import Conformer
from delta_py.snapshot import Snapshot
from delta_py.storage.storage_errors import storage_failures
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from delta_py.types.schema import StructType, from_arrow_schema
from delta_py.write.data_files import WrittenFiles, delete_files, delete_files_of, write_files
from delta_py.write.rewrite import RemovedRows

# Spark kills the Python worker of a task 2 s after the task was cancelled (spark.python.task.killTimeout). So a cancelled task
# writes no files after 3 rounds of 1 s.
_STRAGGLER_ROUNDS, _STRAGGLER_WAIT_SECONDS = 3, 1.0
# A table may be deleted and created again at the same path while a write runs; loading it again detects this. On a remote store
# that costs round trips, so a short write skips it.
_MOST_SECONDS_WITHOUT_RELOAD = 10.0


def write_delta(
    path: PathLike,
    data: Any,
    *,
    mode: str = "error",
    partition_by: Sequence[str] | str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str] | None = None,
    store: ObjectStore | None = None,
    storage_options: Mapping[str, str] | None = None,
    cluster_by: Sequence[str] | None = None,
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    replace_where: str | None = None,
    partition_overwrite_mode: str = "static",
    schema_mode: str | None = None,
    predicate: str | None = None,
    txn_app_id: str | None = None,
    txn_version: int | None = None,
    user_metadata: str | None = None,
    data_change: bool = True,
    max_records_per_file: int | None = None,
    target_file_bytes: int | None = None,
    compression: str | None = None,
    isolation_level: str | None = None,
    time_zone: str = "UTC",
    truncate_nanoseconds: bool = False,
) -> int:
    """Write all rows of `data` in one commit, and return the table's version: the new one, or the newest one if there was nothing
    to do (mode ignore, a transaction that is already recorded, no rows to add and none to replace).

    data: anything with an Arrow stream (pyarrow, polars, duckdb, ...), read once, or a pandas DataFrame (without its index).
    mode: error (fails if the table exists), append (creates the table if it does not exist), ignore (does nothing if it exists),
        overwrite (replaces all rows, or those that replace_where or partition_overwrite_mode="dynamic" select).
    store: the storage to use instead of the one of the path's scheme. storage_options: endpoints, credentials and other settings
    of an object store, by the names of StorageOptions. schema_mode: `merge` and `overwrite` mean merge_schema and
    overwrite_schema. predicate: another name of replace_where. All other parameters: as the fields of WriteRequest.
    Raises TableAlreadyExistsError, SchemaMismatchError, InvariantViolationError, UnsupportedTableFeatureError,
    InvalidOptionError, UnsupportedOperationError; DeltaConcurrentModificationException and CommitOutcomeUnknownError as
    Transaction.commit. After an error no files remain, unless the outcome is unknown.
    """
    rules = NO_RULES  # what a catalog demands of a new table
    if store is None:
        store, rules = open_or_stage(path, StorageOptions.of(storage_options or {}))
    reader = arrow_stream(data)
    _check_schema_mode(schema_mode)
    request = WriteRequest(
        mode=mode,
        partition_by=[partition_by] if isinstance(partition_by, str) else partition_by,
        name=name,
        description=description,
        configuration=configuration,
        cluster_by=cluster_by,
        merge_schema=merge_schema or schema_mode == "merge",
        overwrite_schema=overwrite_schema or schema_mode == "overwrite",
        replace_where=_single_condition(replace_where, predicate),
        partition_overwrite_mode=partition_overwrite_mode,
        txn_app_id=txn_app_id,
        txn_version=txn_version,
        user_metadata=user_metadata,
        data_change=data_change,
        max_records_per_file=max_records_per_file,
        target_file_bytes=target_file_bytes,
        compression=compression,
        isolation_level=isolation_level,
        time_zone=time_zone,
        truncate_nanoseconds=truncate_nanoseconds,
        tasks=1,
    )
    with storage_failures(store.root):
        return write_rows(store, reader, request.following(rules))


def _check_schema_mode(schema_mode: str | None) -> None:
    if schema_mode not in (None, "merge", "overwrite"):
        raise InvalidOptionError(
            f"There is no schema_mode {schema_mode!r}. Use merge or overwrite. Nothing was written.", option="schema_mode"
        )


def _single_condition(replace_where: str | None, predicate: str | None) -> str | None:
    """The value of whichever of the two parameters is given; None if neither is. Raises InvalidOptionError for both."""
    if replace_where is not None and predicate is not None:
        raise InvalidOptionError(
            "replace_where and predicate are two names of one parameter. Nothing was written. Give one of them.",
            option="predicate",
        )
    return predicate if replace_where is None else replace_where


def write_rows(store: ObjectStore, reader: pa.RecordBatchReader, request: WriteRequest) -> int:
    """Write the rows in one commit; returns the version, and raises, as write_delta. reader: the rows, from arrow_stream."""
    request.check()
    snapshot, begin = _load_newest(store), time.monotonic()
    plan = plan_on_snapshot(store, snapshot, from_arrow_schema(reader.schema), request)
    if isinstance(plan, NothingToDo):
        enter_in_catalog(store)  # the table may exist without an entry in its catalog
        return plan.version
    Conformer(plan.state, reader.schema)  # a schema that does not fit is an error even when there are no rows
    written = write_files(plan.state, reader)
    is_reload_costly = store.is_remote or coordination_of(store) is not None
    is_fresh = is_reload_costly and time.monotonic() - begin < _MOST_SECONDS_WITHOUT_RELOAD
    return commit_write(store, plan, [written], snapshot=snapshot if is_fresh else None)


# ---------------------------------------------------------------- driver: before the tasks


def plan_write(store: ObjectStore, data_schema: StructType, request: WriteRequest) -> WritePlan | NothingToDo:
    """Decide what a write of rows with this schema does to the current version.

    Raises as write_delta, before any file is written.
    """
    request.check()
    return plan_on_snapshot(store, _load_newest(store), data_schema, request)


def _load_newest(store: ObjectStore) -> Snapshot | None:
    """The newest version; None if there is no table."""
    try:
        return Snapshot.load(store)
    except TableNotFoundError:
        return None


# ---------------------------------------------------------------- driver: after the tasks


def commit_write(
    store: ObjectStore,
    plan: WritePlan,
    parts: Iterable[WrittenFiles],
    *,
    batch: StreamBatch | None = None,
    snapshot: Snapshot | None = None,
) -> int:
    """Commit the files that the tasks of a planned write have written; returns the version, or the version that was read if
    nothing changes. Raises as Transaction.commit.

    parts: the results of the tasks. batch: the batch of a streaming query that this write commits. If the table has already
    recorded it, nothing changes and its files are deleted. snapshot: the version on which the write was planned, if it was loaded
    just now and in this process; None: it is loaded again.
    Raises as enter_in_catalog if the commit succeeded and the table's name could not be entered.
    """
    version = _commit_files(store, plan, parts, batch, snapshot)
    enter_in_catalog(store)
    return version


def _commit_files(
    store: ObjectStore,
    plan: WritePlan,
    parts: Iterable[WrittenFiles],
    batch: StreamBatch | None,
    snapshot: Snapshot | None,
) -> int:
    """As commit_write, but do not enter the table in a catalog."""
    written = WrittenFiles.of_all(parts)
    request = plan.request
    try:
        transaction = plan.begin(store, snapshot)
        app_id, txn_version = (batch.query_id, batch.batch_id) if batch is not None else (request.txn_app_id, request.txn_version)
        if app_id is not None and txn_version is not None:
            transaction.set_transaction(app_id, txn_version)
        removed_rows = RemovedRows()
        if not transaction.is_recorded:
            removed_rows = remove_replaced_rows(transaction, plan.overwrites, plan.state, written)
    except (DeltaError, OSError) as error:
        delete_files(store, written.new_paths)
        if isinstance(error, DeltaError):
            raise
        raise StorageError(
            f"The files of the table at {store.root} that the write replaces could not be read or rewritten: {error}. "
            "Nothing was committed."
        ) from error
    if _changes_nothing(transaction, plan, written, removed_rows.written):
        transaction.commit_nothing()
        return plan.state.read_version
    operation, parameters = _history_entry(plan, batch)
    transaction.add(written).add(removed_rows.written)
    metrics = _metrics(plan, written, removed_rows, batch)
    version = transaction.commit(operation, parameters, metrics=metrics, user_metadata=request.user_metadata)
    after_commit(store, transaction.config, version, written, request.auto_compact)
    return version


def _changes_nothing(transaction: Transaction, plan: WritePlan, *parts: WrittenFiles) -> bool:
    """Whether the write adds no rows, replaces none, and leaves the table's definition unchanged: like delta-spark, it then makes
    no version.
    """
    if plan.changes_definition or transaction.is_named:
        return False
    return not any(part.adds or part.removes for part in parts)


def _metrics(plan: WritePlan, written: WrittenFiles, replaced: RemovedRows, batch: StreamBatch | None) -> dict[str, int]:
    """Metrics under the names of delta-spark's histories."""
    row_metrics = {"numOutputRows": written.row_count, "numOutputBytes": written.size_bytes}
    if batch is not None:
        return {"numAddedFiles": len(written.adds), "numRemovedFiles": len(replaced.written.removes), **row_metrics}
    if plan.overwrites is Overwrites.MATCHING_ROWS:
        return replace_metrics(written, replaced)
    metrics = {"numFiles": len(written.adds), **row_metrics}
    if plan.overwrites is not Overwrites.NOTHING:
        metrics |= {
            "numRemovedFiles": len(replaced.written.removes),
            "numRemovedBytes": sum(remove.size_bytes or 0 for remove in replaced.written.removes),
        }
    return metrics


def _history_entry(plan: WritePlan, batch: StreamBatch | None) -> tuple[str, Mapping[str, Any]]:
    """The operation and its parameters."""
    if batch is None:
        return plan.history
    return "STREAMING UPDATE", {"outputMode": batch.output_mode, "queryId": batch.query_id, "epochId": str(batch.batch_id)}


def abort_write(
    store: ObjectStore, plan: WritePlan, *, stragglers: bool = False, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Delete the files that the tasks of a write have written, when it will not be committed.

    stragglers: tasks may still be running. Then the files are listed again until Spark has ended these tasks.
    """
    delete_files_of(store, plan.state.write_id)
    for _ in range(_STRAGGLER_ROUNDS if stragglers else 0):
        sleep(_STRAGGLER_WAIT_SECONDS)
        delete_files_of(store, plan.state.write_id)
