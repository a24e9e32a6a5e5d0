"""Writing rows to a table: create and append.

    write_delta("/data/events", frame, mode="append", partition_by=["day"]) -> version

The same three steps serve a writer with many tasks: plan_write on the driver, write_files(plan.state, ...) in each task,
commit_write with what the tasks gave back.
Protocol: Requirements for Writers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from delta_py.commands.create import TableDefinition, define_table
from delta_py.commit.transaction import Transaction
from delta_py.errors import (
    DeltaError,
    InvalidOptionError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_py.protocol.actions import Metadata
from delta_py.protocol.schema import StructType, from_arrow_schema, to_arrow_schema
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore, open_store
from delta_py.write.conform import Conformer, WriteState, write_state
from delta_py.write.files import WrittenFiles, delete_files, delete_files_of, write_files

_MODES = {
    "error": "ErrorIfExists",
    "errorifexists": "ErrorIfExists",
    "append": "Append",
    "ignore": "Ignore",
    "overwrite": "Overwrite",
}


# Spark kills the Python worker of a task 2 s after the task was cancelled (spark.python.task.killTimeout).
_STRAGGLER_ROUNDS, _STRAGGLER_WAIT_SECONDS = 3, 1.0


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """What a caller asks for. mode: error (or errorifexists), append, ignore, overwrite, in any case of letters.

    partition_by, cluster_by: None where nothing was said. name, description, configuration: of a table that the write
    creates. merge_schema: add the data's new columns to the table; overwrite_schema: give it the data's schema (overwrite).
    replace_where: SQL; overwrite only the rows for which it is true. partition_overwrite_mode: `static`, or `dynamic` to
    overwrite only the partitions that the data has. txn_app_id, txn_version: both or none; a write that the table has
    recorded already does nothing. data_change: False says that the rows are only arranged anew.
    max_records_per_file, target_file_bytes, compression: None for what the table says. isolation_level: for this write
    only. time_zone: of the session, in which texts and times are turned into each other.
    """

    mode: str = "error"
    partition_by: Sequence[str] | None = None
    name: str | None = None
    description: str | None = None
    configuration: Mapping[str, str] | None = None
    cluster_by: Sequence[str] | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    replace_where: str | None = None
    partition_overwrite_mode: str = "static"
    txn_app_id: str | None = None
    txn_version: int | None = None
    user_metadata: str | None = None
    data_change: bool = True
    max_records_per_file: int | None = None
    target_file_bytes: int | None = None
    compression: str | None = None
    isolation_level: str | None = None
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A write that may go ahead. Small and picklable.

    state: for the tasks. definition: of the table that the commit creates, None for a table that exists.
    """

    state: WriteState
    mode: str
    definition: TableDefinition | None


def write_delta(
    path: str,
    data: Any,
    *,
    mode: str = "error",
    partition_by: Sequence[str] | str | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str] | None = None,
    store: ObjectStore | None = None,
) -> int:
    """Write all rows of `data` in one commit, and return the table's version: the new one, or for mode ignore the newest.

    data: anything with an Arrow stream (pyarrow, polars, duckdb, ...) or a pandas DataFrame (its index is left out).
        It is read once, as a stream.
    mode: error (a table that is there is an error), append (creates it if need be), ignore (does nothing if it is there).
    partition_by: columns of a new table; for a table that is there they must be its own.
    name, description, configuration: of a new table; for a table that is there they must be what it has already.
    store: the storage to use instead of the one that the path's scheme means.
    Raises TableAlreadyExistsError, SchemaMismatchError, InvariantViolationError, UnsupportedTableFeatureError,
    UnsupportedOperationError for overwrite; DeltaConcurrentModificationException and CommitOutcomeUnknownError as
    Transaction.commit. Unless the outcome is unknown nothing is left behind after an error.
    """
    store = store or open_store(path)
    reader = _arrow_stream(data)
    partitions = [partition_by] if isinstance(partition_by, str) else partition_by
    plan = plan_write(store, from_arrow_schema(reader.schema), WriteRequest(mode, partitions, name, description, configuration))
    if isinstance(plan, int):
        return plan
    Conformer(plan.state, reader.schema)  # a schema that does not fit is an error even when there are no rows
    return commit_write(store, plan, [write_files(plan.state, reader, store)])


def _arrow_stream(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        data = pa.Table.from_pandas(data, preserve_index=False)
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if not hasattr(data, "__arrow_c_stream__"):
        raise TypeError(
            f"{type(data).__name__} gives no Arrow stream (__arrow_c_stream__). Pass a pyarrow Table or RecordBatchReader, a "
            "pandas, polars or duckdb frame, or convert it with pyarrow.table(...)."
        )
    return pa.RecordBatchReader.from_stream(data)


# ---------------------------------------------------------------- driver


def plan_write(store: ObjectStore, data_schema: StructType, request: WriteRequest) -> WritePlan | int:
    """Decide what a write of rows with this schema means now.

    Returns the plan; or, when there is nothing to do because mode is ignore and the table is there, its newest version.
    Raises as write_delta, before any file is written.
    """
    mode = _MODES.get(request.mode.lower())
    if mode is None:
        raise InvalidOptionError(f"There is no write mode {request.mode!r}. Use error, append or ignore.", mode=request.mode)
    if mode == "Overwrite":
        raise UnsupportedOperationError(
            "Mode overwrite is not supported by this version. Nothing was written. Use append, or a new path."
        )
    try:
        snapshot = Snapshot.load(store)
    except TableNotFoundError:
        return _plan_create(store, data_schema, request, mode)
    if mode == "ErrorIfExists":
        raise TableAlreadyExistsError(
            f"There is a table at {store.root} already (version {snapshot.version}), and the write mode is error. "
            "Use mode append to add the rows to it, or choose another path.",
            path=store.root,
        )
    return snapshot.version if mode == "Ignore" else _plan_append(snapshot, data_schema, request)


def _plan_create(store: ObjectStore, data_schema: StructType, request: WriteRequest, mode: str) -> WritePlan:
    definition = define_table(
        data_schema,
        partition_by=request.partition_by or (),
        name=request.name,
        description=request.description,
        configuration=request.configuration,
    )
    return WritePlan(write_state(definition.config, store.root, read_version=-1), mode, definition)


def _plan_append(snapshot: Snapshot, data_schema: StructType, request: WriteRequest) -> WritePlan:
    state = write_state(snapshot.config, snapshot.table_root, snapshot.version)
    _check_partitioning(state, request.partition_by)
    _check_same_metadata(snapshot.metadata, request)
    Conformer(state, to_arrow_schema(data_schema))
    return WritePlan(state, "Append", None)


def _check_partitioning(state: WriteState, partition_by: Sequence[str] | None) -> None:
    if partition_by is None or [n.lower() for n in partition_by] == [n.lower() for n in state.partition_columns]:
        return
    raise SchemaMismatchError(
        f"The table is partitioned by ({', '.join(state.partition_columns)}), the write asks for ({', '.join(partition_by)}). "
        "Leave the partition columns out, or name the table's own.",
        error_class="DELTA_METADATA_MISMATCH",
        sql_state="42KDG",
        table_partitions=list(state.partition_columns),
        asked=list(partition_by),
    )


def _check_same_metadata(metadata: Metadata, request: WriteRequest) -> None:
    """An append changes no metadata: what it names must hold already."""
    found = {name.lower(): value for name, value in metadata.configuration.items()}
    differing = [name for name, value in (request.configuration or {}).items() if found.get(name.lower()) != value]
    if request.name is not None and request.name != metadata.name:
        differing.append("name")
    if request.description is not None and request.description != metadata.description:
        differing.append("description")
    if differing:
        raise SchemaMismatchError(
            f"The table exists, and its {', '.join(differing)} differ from what the write asks for. An append does not change "
            "them: leave them out.",
            error_class="DELTA_METADATA_MISMATCH",
            sql_state="42KDG",
            properties=differing,
        )


def commit_write(store: ObjectStore, plan: WritePlan, parts: Iterable[WrittenFiles], *, user_metadata: str | None = None) -> int:
    """Commit what the tasks of a planned write have written; returns the version. Raises as Transaction.commit.

    user_metadata: text for the history.
    """
    written = WrittenFiles.of_all(parts)
    transaction = _transaction(store, plan, written)
    metrics = {"numFiles": len(written.adds), "numOutputRows": written.row_count, "numOutputBytes": written.size_bytes}
    parameters = {"mode": plan.mode, "partitionBy": list(plan.state.partition_columns)}
    return transaction.add(written).commit("WRITE", parameters, metrics=metrics, user_metadata=user_metadata)


def _transaction(store: ObjectStore, plan: WritePlan, written: WrittenFiles) -> Transaction:
    if plan.definition is not None:
        return Transaction(None, store=store).set_protocol(plan.definition.protocol).set_metadata(plan.definition.metadata)
    try:
        return Transaction(Snapshot.load(store, version=plan.state.read_version))
    except (DeltaError, OSError):
        delete_files(store, written.new_paths)
        raise


def abort_write(
    store: ObjectStore, plan: WritePlan, *, stragglers: bool = False, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Delete what the tasks of a write have written, when it is not going to be committed.

    stragglers: tasks may still be running. Then their files are looked for again, until Spark has ended such tasks.
    """
    delete_files_of(store, plan.state.write_id)
    for _ in range(_STRAGGLER_ROUNDS if stragglers else 0):
        sleep(_STRAGGLER_WAIT_SECONDS)
        delete_files_of(store, plan.state.write_id)
