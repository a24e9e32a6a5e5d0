"""What a write will do to a table, decided before any row is written.

    plan = plan_on_snapshot(store, snapshot, data_schema, request)     # CreatePlan, ReplacePlan, ChangePlan, or NothingToDo
    ... tasks: write_files(plan.state, rows)
    transaction = plan.begin(store, snapshot)

Nothing is written here.
Protocol: Requirements for Writers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

from delta_py.commit.transaction import Transaction
from delta_py.definition.create import TableDefinition, check_empty, create_parameters, define_table
from delta_py.definition.evolve import DefinitionChanges, changed_definition
from delta_py.definition.overwrite import Overwrites, choose_overwritten_rows, needs_change_files
from delta_py.definition.replace import OPERATIONS, Replacement, table_not_found
from delta_py.definition.request import WriteRequest
from delta_py.errors import SchemaMismatchError, TableAlreadyExistsError
from delta_py.protocol.actions import DomainMetadata
from delta_py.protocol.clustering import clustering_columns, clustering_leaves, logical_clustering_paths
from delta_py.protocol.identity_columns import START as IDENTITY_START
from delta_py.protocol.table_config import TableConfig
from delta_py.row_rules.conform import Conformer
from delta_py.row_rules.evolution import without_foreign_metadata
from delta_py.row_rules.geospatial import check_same_shapes
from delta_py.row_rules.hidden_rule_columns import HiddenColumns
from delta_py.row_rules.write_state import WriteState, write_state
from delta_py.snapshot import Snapshot, replaced_table_error
from delta_py.statistics.stats_columns import with_added_paths
from delta_py.storage.store import ObjectStore
from delta_py.types.column_rules import DEFAULT, GENERATION
from delta_py.types.names import joined_name
from delta_py.types.schema import Path, StructField, StructType, map_fields, to_arrow_schema


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """No plan is needed: the mode is ignore and the table exists, or the table has recorded the request's transaction. version:
    the table's newest version.
    """

    version: int


@dataclass(frozen=True, slots=True)
class CreatePlan:
    """The commit creates the table."""

    overwrites: ClassVar[Overwrites] = Overwrites.NOTHING
    changes_definition: ClassVar[bool] = True

    request: WriteRequest
    state: WriteState
    definition: TableDefinition

    def begin(self, store: ObjectStore, snapshot: Snapshot | None) -> Transaction:
        """A transaction that gives the table its definition. snapshot: always None, because the table does not exist yet."""
        transaction = Transaction(None, store=store, isolation=self.request.isolation)
        transaction.set_protocol(self.definition.protocol).set_metadata(self.definition.metadata)
        for domain in self.definition.domains:
            transaction.set_domain(domain)
        return transaction

    @property
    def history(self) -> tuple[str, Mapping[str, Any]]:
        """The operation and its parameters."""
        if self.request.as_select is None:
            return "WRITE", _history_parameters(self.request, self.overwrites)
        return _history_of_as_select(self.request, self.definition)


@dataclass(frozen=True, slots=True)
class ReplacePlan:
    """The commit gives an existing table a new definition, and replaces all of its rows. table_id: the existing table's id."""

    overwrites: ClassVar[Overwrites] = Overwrites.TABLE
    changes_definition: ClassVar[bool] = True

    request: WriteRequest
    state: WriteState
    replacement: Replacement
    table_id: str

    def begin(self, store: ObjectStore, snapshot: Snapshot | None) -> Transaction:
        """As Replacement.begin. snapshot: the version on which the write was planned; if it is None, it is loaded again. Raises
        as ChangePlan.begin."""
        return self.replacement.begin(snapshot or _load_planned_version(store, self.state, self.table_id), self.request.isolation)

    @property
    def history(self) -> tuple[str, Mapping[str, Any]]:
        """The operation and its parameters."""
        return _history_of_as_select(self.request, self.replacement.definition)


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The commit adds rows to an existing table. changes: how it changes the table's definition, for example new columns.
    overwrites: which rows the write replaces. table_id: the table's id, to detect that another table has taken its place.
    """

    request: WriteRequest
    state: WriteState
    changes: DefinitionChanges
    overwrites: Overwrites
    table_id: str

    @property
    def changes_definition(self) -> bool:
        return not self.changes.is_empty

    def begin(self, store: ObjectStore, snapshot: Snapshot | None) -> Transaction:
        """A transaction with the changes of the definition. snapshot: the version on which the write was planned; if it is None,
        it is loaded again. Raises SchemaMismatchError (DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS) if the version now belongs to another
        table.
        """
        snapshot = snapshot or _load_planned_version(store, self.state, self.table_id)
        transaction = Transaction(snapshot, isolation=self.request.isolation)
        self.changes.add_to(transaction)
        return transaction

    @property
    def history(self) -> tuple[str, Mapping[str, Any]]:
        """The operation and its parameters."""
        return "WRITE", _history_parameters(self.request, self.overwrites)


WritePlan: TypeAlias = CreatePlan | ReplacePlan | ChangePlan
"""A planned write. Small and picklable. request: the caller's. state: the tasks write files by it."""


def _history_of_as_select(request: WriteRequest, definition: TableDefinition) -> tuple[str, Mapping[str, Any]]:
    """The operation and its parameters in the history, for CREATE or REPLACE TABLE ... AS SELECT."""
    assert request.as_select is not None, "other writes never replace a definition"
    return f"{OPERATIONS[request.as_select]} AS SELECT", create_parameters(definition)


def _history_parameters(request: WriteRequest, overwrites: Overwrites) -> Mapping[str, Any]:
    """The parameters of a WRITE in the history, as delta-spark names them. partitionBy is the caller's value, not the table's."""
    parameters: dict[str, Any] = {"mode": request.save_mode, "partitionBy": list(request.partition_by or ())}
    if overwrites is Overwrites.MATCHING_ROWS:
        parameters["predicate"] = [request.replace_where]
    if overwrites is Overwrites.PARTITIONS:
        parameters["isDynamicPartitionOverwrite"] = True
    if request.overwrite_schema:
        parameters["canOverwriteSchema"] = True
    if request.merge_schema:
        parameters["canMergeSchema"] = True
    return {**parameters, **request.recorded}


def _load_planned_version(store: ObjectStore, state: WriteState, table_id: str) -> Snapshot:
    """The version on which the write was planned, loaded again. Raises as ChangePlan.begin."""
    snapshot = Snapshot.load(store, version=state.read_version)
    if snapshot.metadata.id != table_id:
        raise replaced_table_error(store.root, "the write was planned")
    return snapshot


# ---------------------------------------------------------------- planning


def plan_on_snapshot(
    store: ObjectStore, snapshot: Snapshot | None, data_schema: StructType, request: WriteRequest
) -> WritePlan | NothingToDo:
    """Decide what a write of rows with this schema does to the snapshot, or to a location without a table (None). Raises as
    write_delta, before any file is written.
    """
    mode = request.save_mode
    # The data may have been read from another table, whose rules do not apply here.
    data_schema = map_fields(data_schema, without_foreign_metadata)
    visible_columns = _without_hidden_columns(data_schema, HiddenColumns(request.rule_nonce, data_schema.names))
    if snapshot is None:
        if request.as_select == "replace":
            raise table_not_found(store)
        if request.as_select == "create":
            check_empty(store)
        return _plan_create(store, visible_columns, request)
    if mode == "ErrorIfExists":
        raise TableAlreadyExistsError(
            f"There is a table at {store.root} already (version {snapshot.version}), and the write mode is error. "
            "Use mode append to add the rows to it, or choose another path.",
            path=store.root,
        )
    if mode == "Ignore" or _is_recorded(snapshot, request):
        return NothingToDo(snapshot.version)
    # The commit of this write must not follow a broken one; the check comes before rows are written.
    snapshot.check_last_commit()
    if request.as_select in ("replace", "createOrReplace"):
        return _plan_replacement(snapshot, visible_columns, request)
    return plan_change(snapshot, data_schema, request)


def _without_hidden_columns(data_schema: StructType, hidden: HiddenColumns) -> StructType:
    """Drop the hidden columns that hold the results of rules; they are not the table's."""
    return StructType(tuple(f for f in data_schema.fields if not hidden.is_hidden(f.name)))


def _is_recorded(snapshot: Snapshot, request: WriteRequest) -> bool:
    """Whether the table has already recorded the request's transaction of an application, or a later one."""
    if request.txn_app_id is None or request.txn_version is None:
        return False
    transaction = snapshot.set_transactions().get(request.txn_app_id)
    return transaction is not None and transaction.version >= request.txn_version


def _plan_create(store: ObjectStore, data_schema: StructType, request: WriteRequest) -> CreatePlan:
    """The plan of a write that creates the table."""
    # A caller may name the columns of the new table; otherwise it gets those of the rows.
    definition = _definition(request.columns or data_schema, request)
    state = write_state(definition.config, store, read_version=-1)
    return CreatePlan(request, _with_request_options(state, request, definition.domains), definition)


def _plan_replacement(snapshot: Snapshot, data_schema: StructType, request: WriteRequest) -> ReplacePlan:
    """The plan of a write that gives an existing table a new definition."""
    replacement = Replacement.of(snapshot, _definition(data_schema, request))
    state = write_state(replacement.config(snapshot), snapshot.store, snapshot.version)
    return ReplacePlan(request, _with_request_options(state, request, replacement.domains), replacement, snapshot.metadata.id)


def _definition(data_schema: StructType, request: WriteRequest) -> TableDefinition:
    """The definition that the request describes, for a table that the write creates or replaces."""
    return define_table(
        data_schema,
        partition_by=request.partition_by or (),
        cluster_by=request.cluster_by or (),
        name=request.name,
        description=request.description,
        configuration=request.configuration,
        defaults=request.defaults,
    )


def _with_request_options(state: WriteState, request: WriteRequest, domains: Iterable[DomainMetadata]) -> WriteState:
    """The state with the request's options in place of the table's settings. domains: metadata domains of the table, which may
    name clustering columns; these get statistics, wherever they stand in the schema.
    """
    clustering = [path for domain in domains if not domain.removed for path in clustering_leaves(state.schema, domain)]
    return replace(
        request.with_file_settings(state),
        stats_columns=with_added_paths(state.stats_columns, clustering),
        data_change=request.data_change,
        time_zone=request.time_zone,
        truncate_nanoseconds=request.truncate_nanoseconds,
        tasks=request.tasks,
        rule_nonce=request.rule_nonce,
    )


def plan_change(snapshot: Snapshot, data_schema: StructType, request: WriteRequest) -> ChangePlan:
    """The plan of a write to an existing table that keeps its definition, or only changes a part of it, such as adding columns.
    Raises as plan_on_snapshot."""
    if not data_schema.fields:
        raise SchemaMismatchError(
            "The data has no columns. Its rows would be all null, and an overwrite would only delete. Nothing was written.",
            error_class="DELTA_EMPTY_DATA",
            sql_state="428GU",
        )
    hidden = HiddenColumns(request.rule_nonce, data_schema.names)
    visible_columns = _without_hidden_columns(data_schema, hidden)
    changes = changed_definition(snapshot, visible_columns, request)
    config = changes.config(snapshot)
    clustering = changes.clustering or snapshot.clustering_domain()
    state = write_state(config, snapshot.store, snapshot.version, hidden=hidden)
    state = _with_request_options(state, request, () if clustering is None else (clustering,))
    _check_partition_columns(config, visible_columns)
    _check_partitioning(state, request.partition_by)
    _check_clustering(snapshot, config, clustering, request.cluster_by)
    _check_same_metadata(snapshot.config, request)
    check_same_shapes(data_schema, state.schema)
    # Raises for data that does not fit, before any task starts.
    Conformer(state, to_arrow_schema(data_schema))
    overwrites = choose_overwritten_rows(config, request)
    insert_changes = overwrites is Overwrites.MATCHING_ROWS and needs_change_files(config, request)
    state = replace(
        state,
        replace_where=request.replace_where,
        checks_replace_where=request.checks_replace_where,
        insert_changes=insert_changes,
    )
    return ChangePlan(request, state, changes, overwrites, snapshot.metadata.id)


def is_filled_by_table(f: StructField) -> bool:
    """Whether the table has a value for the column if rows lack it."""
    return any(rule in f.metadata for rule in (GENERATION, DEFAULT, IDENTITY_START))


def _check_partition_columns(config: TableConfig, data_schema: StructType) -> None:
    """The rows must have the partition columns, unless the table has a rule for their values: without this check a forgotten
    column would put all rows into the partition of null. Raises SchemaMismatchError (DELTA_PARTITION_COLUMN_NOT_FOUND).
    Columns that the table lacks are reported first, by another check.
    """
    if any(config.schema.find(name) is None for name in data_schema.names):
        return
    for f in config.partition_fields:
        if data_schema.find(f.name) is None and not is_filled_by_table(f):
            raise SchemaMismatchError(
                f"Partition column {f.name} is not among the columns of the data ({', '.join(data_schema.names)}). Nothing was "
                "written. Add it; null in it puts a row into the partition of null.",
                error_class="DELTA_PARTITION_COLUMN_NOT_FOUND",
                sql_state="42703",
                column=f.name,
                columns=list(data_schema.names),
            )


def _check_partitioning(state: WriteState, partition_by: Sequence[str] | None) -> None:
    """Raise SchemaMismatchError unless partition_by is None, or names the table's partition columns in their order."""
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
    """Raise SchemaMismatchError unless cluster_by is None, or names the clustering columns in their order. config, domain: the
    table's configuration and its clustering domain after the write."""
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
    """The two texts by which a user may name the columns, in lower case: the parts of each path joined by dots, and the same with
    backticks around a part that contains a dot."""
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
