"""Writing rows to a table: create, append, overwrite all or a part of it.

    write_delta("/data/events", frame, mode="append", partition_by=["day"]) -> version

A writer with many tasks uses the same three steps: plan_write on the driver, write_files(plan.state, ...) in each task, and
commit_write with the results of the tasks.
Protocol: Requirements for Writers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from delta_py.commit.prepared import IsolationLevel
from delta_py.commit.transaction import Transaction
from delta_py.definition.arrow_data import arrow_stream
from delta_py.definition.create import TableDefinition, check_empty, create_parameters, define_table
from delta_py.definition.evolve import changed_clustering, changed_metadata
from delta_py.definition.overwrite import (
    Overwrites,
    needs_change_files,
    replace_metrics,
    replaced_files,
    what_is_overwritten,
)
from delta_py.definition.replace import OPERATIONS, Replacement, not_there
from delta_py.definition.request import StreamBatch, WriteRequest
from delta_py.errors import (
    DeltaError,
    InvalidOptionError,
    SchemaMismatchError,
    StorageError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from delta_py.object_stores.open_store import PathLike, coordination_of, open_store
from delta_py.protocol.actions import DomainMetadata, Metadata, Protocol
from delta_py.protocol.clustering import clustering_columns, clustering_leaves, clustering_paths, logical_clustering_paths
from delta_py.protocol.identity_columns import START as IDENTITY_START
from delta_py.protocol.table_config import TableConfig
from delta_py.row_changes.after_commit import after_commit
from delta_py.row_rules.conform import Conformer, WriteState, write_state
from delta_py.row_rules.evolution import FOREIGN_METADATA
from delta_py.row_rules.geospatial import check_same_shapes
from delta_py.row_rules.rule_columns import HiddenColumns
from delta_py.snapshot import Snapshot
from delta_py.snapshot import replaced as made_anew
from delta_py.statistics.stats_columns import with_paths
from delta_py.storage.storage_errors import storage_failures
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from delta_py.types.column_rules import DEFAULT, GENERATION
from delta_py.types.names import joined_name
from delta_py.types.schema import Path, StructField, StructType, from_arrow_schema, map_fields, to_arrow_schema
from delta_py.write.data_files import WrittenFiles, delete_files, delete_files_of, write_files
from delta_py.write.rewrite import TakenOut

# Spark kills the Python worker of a task 2 s after the task was cancelled (spark.python.task.killTimeout).
_STRAGGLER_ROUNDS, _STRAGGLER_WAIT_SECONDS = 3, 1.0
# A table may be deleted and created again at the same path while a write runs; loading it again detects this. On a remote store
# that costs round trips, so a short write skips it.
_FRESH_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A planned write. Small and picklable.

    state: for the tasks. mode: as the history names it. definition: of the table that the commit creates, None if the table
    exists.
    metadata, protocol, clustering: the values that the commit gives an existing table, or None. overwrites: the rows that the
    write replaces.
    replacement: the new definition of an existing table, or None. table_id: of the existing table.
    """

    request: WriteRequest
    state: WriteState
    mode: str
    definition: TableDefinition | None = None
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    overwrites: Overwrites = Overwrites.NOTHING
    replacement: Replacement | None = None
    clustering: DomainMetadata | None = None
    table_id: str | None = None


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
    store = store or open_store(path, StorageOptions.of(storage_options or {}))
    reader = arrow_stream(data)
    request = WriteRequest(
        mode=mode,
        partition_by=[partition_by] if isinstance(partition_by, str) else partition_by,
        name=name,
        description=description,
        configuration=configuration,
        cluster_by=cluster_by,
        merge_schema=merge_schema or schema_mode == "merge",
        overwrite_schema=overwrite_schema or schema_mode == "overwrite",
        replace_where=_one_of(replace_where, predicate),
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
    if schema_mode not in (None, "merge", "overwrite"):
        raise InvalidOptionError(
            f"There is no schema_mode {schema_mode!r}. Use merge or overwrite. Nothing was written.", option="schema_mode"
        )
    with storage_failures(store.root):
        return write_rows(store, reader, request)


def _one_of(replace_where: str | None, predicate: str | None) -> str | None:
    if replace_where is not None and predicate is not None:
        raise InvalidOptionError(
            "replace_where and predicate are two names of one parameter. Nothing was written. Give one of them.",
            option="predicate",
        )
    return predicate if replace_where is None else replace_where


def write_rows(store: ObjectStore, reader: pa.RecordBatchReader, request: WriteRequest) -> int:
    """As write_delta. reader: from arrow_stream."""
    request.check()
    snapshot, begin = _newest(store), time.monotonic()
    plan = _plan(store, snapshot, from_arrow_schema(reader.schema), request)
    if isinstance(plan, int):
        return plan
    Conformer(plan.state, reader.schema)  # a schema that does not fit is an error even when there are no rows
    written = write_files(plan.state, reader)
    is_reload_costly = store.is_remote or coordination_of(store) is not None
    is_fresh = is_reload_costly and time.monotonic() - begin < _FRESH_SECONDS
    return commit_write(store, plan, [written], snapshot=snapshot if is_fresh else None)


# ---------------------------------------------------------------- driver: before the tasks


def plan_write(store: ObjectStore, data_schema: StructType, request: WriteRequest) -> WritePlan | int:
    """Decide what a write of rows with this schema does to the current version.

    Returns the plan; or the newest version when there is nothing to do, because mode is ignore and the table exists, or because
    the table has recorded the request's transaction. Raises as write_delta, before any file is written.
    """
    request.check()
    return _plan(store, _newest(store), data_schema, request)


def _newest(store: ObjectStore) -> Snapshot | None:
    """Return None if there is no table."""
    try:
        return Snapshot.load(store)
    except TableNotFoundError:
        return None


def _plan(store: ObjectStore, snapshot: Snapshot | None, data_schema: StructType, request: WriteRequest) -> WritePlan | int:
    mode = request.save_mode
    data_schema = map_fields(data_schema, _without_rules)
    visible = _visible(data_schema, HiddenColumns(request.rule_nonce, data_schema.names))
    if snapshot is None:
        if request.as_select == "replace":
            raise not_there(store)
        if request.as_select == "create":
            check_empty(store)
        return _plan_create(store, visible, request, mode)
    if mode == "ErrorIfExists":
        raise TableAlreadyExistsError(
            f"There is a table at {store.root} already (version {snapshot.version}), and the write mode is error. "
            "Use mode append to add the rows to it, or choose another path.",
            path=store.root,
        )
    if mode == "Ignore" or _is_recorded(snapshot, request):
        return snapshot.version
    snapshot.check_last_commit()  # before rows are written
    if request.as_select in ("replace", "createOrReplace"):
        return _plan_replacement(snapshot, visible, request, mode)
    return plan_change(snapshot, data_schema, request, mode)


def _visible(data_schema: StructType, hidden: HiddenColumns) -> StructType:
    """Drop the hidden columns that hold the results of rules; they are not the table's."""
    return StructType(tuple(f for f in data_schema.fields if not hidden.is_hidden(f.name)))


def _without_rules(column: StructField) -> StructField:
    """Drop the metadata of another table (ids, defaults, generation) that a column of the rows carries; it does not apply to this
    table.
    """
    metadata = {key: value for key, value in column.metadata.items() if not key.startswith(FOREIGN_METADATA)}
    return column if len(metadata) == len(column.metadata) else replace(column, metadata=metadata)


def _is_recorded(snapshot: Snapshot, request: WriteRequest) -> bool:
    if request.txn_app_id is None or request.txn_version is None:
        return False
    transaction = snapshot.set_transactions().get(request.txn_app_id)
    return transaction is not None and transaction.version >= request.txn_version


def _plan_create(store: ObjectStore, data_schema: StructType, request: WriteRequest, mode: str) -> WritePlan:
    definition = _definition(request.columns or data_schema, request)
    state = _tuned(write_state(definition.config, store, read_version=-1), request)
    return WritePlan(request, _with_statistics_of(definition.domains, state), mode, definition)


def _plan_replacement(snapshot: Snapshot, data_schema: StructType, request: WriteRequest, mode: str) -> WritePlan:
    """As _plan_create, for a replacement of an existing table."""
    replacement = Replacement.of(snapshot, _definition(data_schema, request))
    state = _tuned(write_state(replacement.config(snapshot), snapshot.store, snapshot.version), request)
    state = _with_statistics_of(replacement.domains, state)
    table_id = snapshot.metadata.id
    return WritePlan(request, state, mode, overwrites=Overwrites.TABLE, replacement=replacement, table_id=table_id)


def _definition(data_schema: StructType, request: WriteRequest) -> TableDefinition:
    return define_table(
        data_schema,
        partition_by=request.partition_by or (),
        cluster_by=request.cluster_by or (),
        name=request.name,
        description=request.description,
        configuration=request.configuration,
        defaults=request.defaults,
    )


def _with_statistics_of(domains: Iterable[DomainMetadata], state: WriteState) -> WriteState:
    """Collect statistics for the clustering columns, wherever they stand in the schema."""
    for domain in domains:
        if not domain.removed:
            state = replace(state, stats_columns=with_paths(state.stats_columns, clustering_paths(domain)))
    return state


def plan_change(snapshot: Snapshot, data_schema: StructType, request: WriteRequest, mode: str) -> WritePlan:
    """As plan_write, for an existing table."""
    if not data_schema.fields:
        raise SchemaMismatchError(
            "The data has no columns. Its rows would be all null, and an overwrite would only delete. Nothing was written.",
            error_class="DELTA_EMPTY_DATA",
            sql_state="428GU",
        )
    hidden = HiddenColumns(request.rule_nonce, data_schema.names)
    visible = _visible(data_schema, hidden)
    metadata, protocol = changed_metadata(snapshot, visible, request)
    config = TableConfig(protocol or snapshot.protocol, metadata or snapshot.metadata)
    changed_domain = changed_clustering(snapshot, config, request)
    clustering = changed_domain or snapshot.clustering_domain()
    state = _tuned(write_state(config, snapshot.store, snapshot.version, hidden=hidden), request)
    _check_partition_columns(config, visible)
    _check_partitioning(state, request.partition_by)
    _check_clustering(snapshot, config, clustering, request.cluster_by)
    _check_same_metadata(snapshot.config, request)
    check_same_shapes(data_schema, state.schema)
    Conformer(state, to_arrow_schema(data_schema))
    overwrites = what_is_overwritten(config, request, mode == "Overwrite")
    state = replace(
        state,
        stats_columns=with_paths(state.stats_columns, clustering_leaves(config.schema, clustering)),
        replace_where=request.replace_where,
        insert_changes=overwrites is Overwrites.MATCHING_ROWS and needs_change_files(config, request),
    )
    table_id = snapshot.metadata.id
    return WritePlan(request, state, mode, None, metadata, protocol, overwrites, clustering=changed_domain, table_id=table_id)


def _tuned(state: WriteState, request: WriteRequest) -> WriteState:
    """Return the state with the request's settings for files and rows."""
    return replace(
        request.with_file_settings(state),
        data_change=request.data_change,
        time_zone=request.time_zone,
        truncate_nanoseconds=request.truncate_nanoseconds,
        tasks=request.tasks,
        rule_nonce=request.rule_nonce,
    )


def has_own_value(f: StructField) -> bool:
    """Whether the table has a value for the column if rows lack it."""
    return any(rule in f.metadata for rule in (GENERATION, DEFAULT, IDENTITY_START))


def _check_partition_columns(config: TableConfig, data_schema: StructType) -> None:
    """The rows must have the partition columns, unless the table has a rule for their values: without this check a forgotten
    column would put all rows into the partition of null. Raises SchemaMismatchError (DELTA_PARTITION_COLUMN_NOT_FOUND). Another
    check reports columns that the table lacks first.
    """
    if any(config.schema.find(name) is None for name in data_schema.names):
        return
    for f in config.partition_fields:
        if data_schema.find(f.name) is None and not has_own_value(f):
            raise SchemaMismatchError(
                f"Partition column {f.name} is not among the columns of the data ({', '.join(data_schema.names)}). Nothing was "
                "written. Add it; null in it puts a row into the partition of null.",
                error_class="DELTA_PARTITION_COLUMN_NOT_FOUND",
                sql_state="42703",
                column=f.name,
                columns=list(data_schema.names),
            )


def _check_partitioning(state: WriteState, partition_by: Sequence[str] | None) -> None:
    if partition_by is None or [n.lower() for n in partition_by] == [n.lower() for n in state.partition_columns]:
        return
    raise SchemaMismatchError(
        f"The table is partitioned by ({', '.join(state.partition_columns)}), the write asks for ({', '.join(partition_by)}). "
        "Leave the partition columns out, or name the table's own; mode overwrite with overwriteSchema changes them.",
        error_class="DELTA_METADATA_MISMATCH",
        sql_state="42KDG",
        table_partitions=list(state.partition_columns),
        asked=list(partition_by),
    )


def _check_clustering(
    snapshot: Snapshot, config: TableConfig, domain: DomainMetadata | None, cluster_by: Sequence[str] | None
) -> None:
    """domain: of the table after the write."""
    if cluster_by is None:
        return
    paths = logical_clustering_paths(config.schema, domain)
    if [name.lower() for name in cluster_by] not in _spellings(paths):
        table_columns = clustering_columns(snapshot.schema, snapshot.clustering_domain())
        raise SchemaMismatchError(
            f"The table is clustered by ({', '.join(table_columns)}), the write asks for ({', '.join(cluster_by)}). Leave "
            "clusterBy out, or name the table's own columns; ALTER TABLE ... CLUSTER BY changes them.",
            error_class="DELTA_CLUSTERING_COLUMNS_MISMATCH",
            sql_state="42P10",
            table_clustering=list(table_columns),
            asked=list(cluster_by),
        )


def _spellings(paths: Sequence[Path]) -> tuple[list[str], ...]:
    """The names of columns in lower case: dotted, and with backticks if a name contains a dot."""
    return [".".join(path).lower() for path in paths], [joined_name(path).lower() for path in paths]


def _check_same_metadata(config: TableConfig, request: WriteRequest) -> None:
    """A write to an existing table does not change its name, properties and features: those in the request must equal the
    table's.
    """
    metadata = config.metadata
    properties = {name.lower(): value for name, value in metadata.configuration.items()}
    properties.update({f"delta.feature.{feature.lower()}": "supported" for feature in config.features})
    differing = [name for name, value in (request.configuration or {}).items() if properties.get(name.lower()) != value]
    if request.name is not None and request.name != metadata.name:
        differing.append("name")
    if request.description is not None and request.description != metadata.description:
        differing.append("description")
    if differing:
        raise SchemaMismatchError(
            f"The table exists, and its {', '.join(differing)} differ from what the write asks for. A write does not change "
            "them: leave them out.",
            error_class="DELTA_METADATA_MISMATCH",
            sql_state="42KDG",
            properties=differing,
        )


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

    batch: of the stream that writes. If the table has already recorded it, nothing changes and its files are deleted.
    snapshot: the planned one, if it was loaded just now and in this process; else it is loaded again.
    """
    written = WrittenFiles.of_all(parts)
    if batch is not None:
        plan = replace(plan, request=replace(plan.request, txn_app_id=batch.query_id, txn_version=batch.batch_id))
    request = plan.request
    try:
        transaction = _transaction(store, plan, snapshot)
        taken_out = TakenOut()
        if not transaction.is_recorded:
            taken_out = replaced_files(transaction, plan.overwrites, plan.state, written)
    except (DeltaError, OSError) as error:
        delete_files(store, written.new_paths)
        if isinstance(error, DeltaError):
            raise
        raise StorageError(
            f"The files of the table at {store.root} that the write replaces could not be read or rewritten: {error}. "
            "Nothing was committed."
        ) from error
    if _changes_nothing(transaction, plan, written, taken_out.written):
        transaction.commit_nothing()
        return plan.state.read_version
    operation, parameters = _in_history(plan, batch)
    transaction.add(written).add(taken_out.written)
    metrics = _metrics(plan, written, taken_out, batch)
    version = transaction.commit(operation, parameters, metrics=metrics, user_metadata=request.user_metadata)
    after_commit(store, transaction.config, version, written, request.auto_compact)
    return version


def _changes_nothing(transaction: Transaction, plan: WritePlan, *parts: WrittenFiles) -> bool:
    """Whether the write adds no rows, replaces none, and leaves the table's definition unchanged: like delta-spark, it then makes
    no version.
    """
    if plan.definition or plan.replacement or transaction.is_named:
        return False
    return not (plan.metadata or plan.protocol or plan.clustering or any(part.adds or part.removes for part in parts))


def _metrics(plan: WritePlan, written: WrittenFiles, replaced: TakenOut, batch: StreamBatch | None) -> dict[str, int]:
    """Metrics under the names of the reference's histories."""
    of_rows = {"numOutputRows": written.row_count, "numOutputBytes": written.size_bytes}
    if batch is not None:
        return {"numAddedFiles": len(written.adds), "numRemovedFiles": len(replaced.written.removes), **of_rows}
    if plan.overwrites is Overwrites.MATCHING_ROWS:
        return replace_metrics(written, replaced)
    metrics = {"numFiles": len(written.adds), **of_rows}
    if plan.overwrites is not Overwrites.NOTHING:
        metrics |= {
            "numRemovedFiles": len(replaced.written.removes),
            "numRemovedBytes": sum(remove.size_bytes or 0 for remove in replaced.written.removes),
        }
    return metrics


def _in_history(plan: WritePlan, batch: StreamBatch | None) -> tuple[str, Mapping[str, Any]]:
    """The operation and its parameters."""
    if batch is not None:
        return "STREAMING UPDATE", _stream_parameters(batch)
    definition = plan.definition if plan.replacement is None else plan.replacement.definition
    if plan.request.as_select is not None and definition is not None:
        return f"{OPERATIONS[plan.request.as_select]} AS SELECT", create_parameters(definition)
    return "WRITE", _parameters(plan)


def _stream_parameters(batch: StreamBatch) -> dict[str, Any]:
    return {"outputMode": batch.output_mode, "queryId": batch.query_id, "epochId": str(batch.batch_id)}


def _parameters(plan: WritePlan) -> dict[str, Any]:
    """partitionBy: the caller's value, not the table's."""
    request = plan.request
    parameters: dict[str, Any] = {"mode": plan.mode, "partitionBy": list(request.partition_by or ())}
    if plan.overwrites is Overwrites.MATCHING_ROWS:
        parameters["predicate"] = [request.replace_where]
    if plan.overwrites is Overwrites.PARTITIONS:
        parameters["isDynamicPartitionOverwrite"] = True
    if request.overwrite_schema:
        parameters["canOverwriteSchema"] = True
    if request.merge_schema:
        parameters["canMergeSchema"] = True
    return {**parameters, **request.recorded}


def _transaction(store: ObjectStore, plan: WritePlan, snapshot: Snapshot | None) -> Transaction:
    request = plan.request
    isolation = None if request.isolation_level is None else IsolationLevel.parse(request.isolation_level)
    if plan.definition is not None:
        transaction = Transaction(None, store=store, isolation=isolation)
        transaction.set_protocol(plan.definition.protocol).set_metadata(plan.definition.metadata)
        for domain in plan.definition.domains:
            transaction.set_domain(domain)
    elif plan.replacement is not None:
        transaction = plan.replacement.begin(snapshot or _planned_on(store, plan), isolation)
    else:
        transaction = Transaction(snapshot or _planned_on(store, plan), isolation=isolation)
        if plan.metadata is not None:
            transaction.set_metadata(plan.metadata)
        if plan.protocol is not None:
            transaction.set_protocol(plan.protocol)
        if plan.clustering is not None:
            transaction.set_domain(plan.clustering)
    if request.txn_app_id is not None and request.txn_version is not None:
        transaction.set_transaction(request.txn_app_id, request.txn_version)
    return transaction


def _planned_on(store: ObjectStore, plan: WritePlan) -> Snapshot:
    """The version on which the write was planned, loaded again. Raises SchemaMismatchError (DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS)
    if the version now belongs to another table.
    """
    snapshot = Snapshot.load(store, version=plan.state.read_version)
    if snapshot.metadata.id != plan.table_id:
        raise made_anew(store.root, "the write was planned")
    return snapshot


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
