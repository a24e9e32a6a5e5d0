"""Features that are removed from the protocol, with everything that a table had because of them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter import drop_feature as module
from delta_py.alter import feature_traces
from delta_py.alter.alter import set_properties
from delta_py.alter.alter_columns import change_columns
from delta_py.alter.column_changes import ColumnChange
from delta_py.alter.drop_feature import drop_feature
from delta_py.alter.feature_traces import TRACES
from delta_py.alter.table_constraints import add_constraint
from delta_py.commit.transaction import Transaction
from delta_py.copies.restore import restore
from delta_py.errors import DeltaError
from delta_py.log.segment import list_log
from delta_py.protocol.actions import DomainMetadata
from delta_py.protocol.features import supported_features
from delta_py.protocol.paths import LogKind
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import LONG, ArrayType, DecimalType, StructField, StructType, parse_schema
from delta_py.vacuum.vacuum import VacuumRequest, vacuum
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add, remove, vector
from tests.unit.optimize.test_optimize import meanwhile

DAY_MS = 86_400_000
PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"


def made(path: Path, **configuration: str) -> ObjectStore:
    properties = {key.replace("__", "."): value for key, value in configuration.items()}
    rows = pa.table({"id": pa.array(range(10), pa.int32()), "l": [[{"x": pa.scalar(1, pa.int32())}]] * 10})
    write_delta(str(path), rows, configuration=properties)
    return LocalStore(str(path))


def with_vectors(path: Path) -> ObjectStore:
    store = made(path, delta__enableDeletionVectors="true")
    DeltaTable(store.root).delete("id < 3")
    return store


def features(store: ObjectStore) -> set[str]:
    return set(supported_features(Snapshot.load(store).protocol))


def condition(run: Callable[[], Any]) -> str:
    with pytest.raises(DeltaError) as caught:
        run()
    return caught.value.error_class


def later(days: int) -> int:
    return time.time_ns() // 1_000_000 + days * DAY_MS


def test_drop_of_vectors_keeps_rows_and_writes_checkpoints(tmp_path: Path) -> None:
    store = with_vectors(tmp_path)
    version = drop_feature(store, "DELETIONVECTORS")
    snapshot = Snapshot.load(store)
    assert features(store) == {"appendOnly", "invariants", "checkpointProtection"}
    assert snapshot.protocol.min_reader_version == 1 and snapshot.protocol.reader_features is None
    assert dict(snapshot.metadata.configuration) == {PROTECTED: str(version)}
    assert sorted(DeltaTable(store.root).to_arrow()["id"].to_pylist()) == [*range(3, 10)]
    assert DeltaTable(store.root, version=1).to_arrow().num_rows == 7
    assert [checkpoint.version for checkpoint in list_log(store, 0).checkpoints] == [
        version,
        version - 1,
        version - 2,
        version - 3,
    ]
    write_delta(store.root, pa.table({"id": pa.array([11], pa.int32())}), mode="append")
    assert DeltaTable(store.root).to_arrow().num_rows == 8


def test_vacuum_without_vectors_keeps_those_of_versions_before(tmp_path: Path) -> None:
    store = with_vectors(tmp_path)
    drop_feature(store, "deletionVectors")
    tombstones = Snapshot.load(store).tombstones()
    vectors = [path for path in tombstones["path"].to_pylist() if "deletion_vector" in path]
    assert len(vectors) == 1 and Path(store.root, vectors[0]).exists()
    vacuum(store, VacuumRequest())
    assert DeltaTable(store.root, version=1).to_arrow().num_rows == 7


def test_truncated_history_takes_two_runs_and_a_day(tmp_path: Path) -> None:
    store = with_vectors(tmp_path)
    wait = "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
    assert condition(lambda: drop_feature(store, "deletionVectors", truncate_history=True)) == wait
    exist = "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
    assert condition(lambda: drop_feature(store, "deletionVectors", truncate_history=True)) == exist
    assert "deletionVectors" in features(store)
    drop_feature(store, "deletionVectors", truncate_history=True, now_ms=later(2))
    protocol = Snapshot.load(store).protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert min(list_log(store, 0).commits) > 1
    assert DeltaTable(store.root).to_arrow().num_rows == 7


def test_protection_goes_with_the_versions_that_it_protects(tmp_path: Path) -> None:
    store = with_vectors(tmp_path)
    protected = drop_feature(store, "deletionVectors")
    for _ in range(2):  # a newer checkpoint than the protected ones
        DeltaTable(store.root).checkpoint()
        set_properties(store, {"n": str(Snapshot.load(store).version)})
    only = "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION"
    assert condition(lambda: drop_feature(store, "checkpointProtection")) == only
    wait = "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
    assert condition(lambda: drop_feature(store, "checkpointProtection", truncate_history=True)) == wait
    drop_feature(store, "checkpointProtection", truncate_history=True, now_ms=later(2))
    assert features(store) == {"appendOnly", "invariants"}
    assert PROTECTED not in Snapshot.load(store).metadata.configuration
    assert min(list_log(store, 0).commits) >= protected


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_dropped_widening_leaves_only_files_of_the_tables_types(tmp_path: Path, mode: str) -> None:
    store = made(tmp_path, delta__enableTypeWidening="true", delta__columnMapping__mode=mode)
    change_columns(store, [ColumnChange("id", data_type=DecimalType(12, 1))])
    rows = pa.table({"id": pa.array([77], pa.decimal128(12, 1)), "l": pa.array([[{"x": 1}]])})
    write_delta(store.root, rows, mode="append")
    newest = set(DeltaTable(store.root).files()["path"].to_pylist())
    before = DeltaTable(store.root).to_arrow().sort_by("id")
    drop_feature(store, "typeWidening")
    assert "typeWidening" not in features(store)
    assert "delta.typeChanges" not in Snapshot.load(store).metadata.schema_string
    assert DeltaTable(store.root).to_arrow().sort_by("id") == before
    assert len(newest & set(DeltaTable(store.root).files()["path"].to_pylist())) == 1, "the wide file stays"


def test_drop_stops_if_conflicts_prevent_rewrite_of_narrow_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(str(tmp_path))
    for number in range(6):
        properties = None if number else {"delta.enableTypeWidening": "true"}
        write_delta(store.root, pa.table({"id": pa.array([number], pa.int32())}), mode="append", configuration=properties)
    change_columns(store, [ColumnChange("id", data_type=LONG)])
    numbers = iter(range(3))

    def update_one() -> None:
        DeltaTable(store.root).update({"id": "id + 100"}, predicate=f"id = {next(numbers)}")

    with monkeypatch.context() as patch:
        patch.setattr(feature_traces, "LocalBinWriters", lambda: meanwhile(update_one, times=3))
        assert condition(lambda: drop_feature(store, "typeWidening")) == "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"
    assert "delta.typeChanges" in Snapshot.load(store).metadata.schema_string
    drop_feature(store, "typeWidening")
    files = [Path(store.root, path) for path in DeltaTable(store.root).files()["path"].to_pylist()]
    assert {pq.read_schema(file).field("id").type for file in files} == {pa.int64()}
    assert sorted(DeltaTable(store.root).to_arrow()["id"].to_pylist()) == [3, 4, 5, 100, 101, 102]


def test_dropped_widening_looks_into_nested_columns(tmp_path: Path) -> None:
    rows = pa.table({"l": pa.array([[{"x": 1}]], pa.list_(pa.struct({"x": pa.int32()})))})
    write_delta(str(tmp_path), rows, configuration={"delta.enableTypeWidening": "true"})
    store = LocalStore(str(tmp_path))
    change_columns(store, [ColumnChange("l.element.x", data_type=LONG)])
    old = DeltaTable(store.root).files()["path"].to_pylist()
    drop_feature(store, "typeWidening")
    assert DeltaTable(store.root).files()["path"].to_pylist() != old
    (column,) = parse_schema(Snapshot.load(store).metadata.schema_string).fields
    assert column.data_type == ArrayType(StructType((StructField("x", LONG),)))
    parameters = [dict(one["operationParameters"]) for one in DeltaTable(str(tmp_path)).history().to_pylist()]
    (changed,) = next(json.loads(one["columns"]) for one in parameters if "columns" in one)
    change = [{"toType": "long", "fromType": "integer"}]
    assert changed == {"name": "l.element.x", "type": "long", "nullable": True, "metadata": {"delta.typeChanges": change}}


def test_dropped_row_tracking_takes_ids_and_the_domain(tmp_path: Path) -> None:
    store = made(tmp_path, delta__enableRowTracking="true")
    assert condition(lambda: drop_feature(store, "domainMetadata")) == "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"
    drop_feature(store, "rowTracking")
    snapshot = Snapshot.load(store)
    assert dict(snapshot.metadata.configuration) == {} and snapshot.domain_metadata() == {}
    assert snapshot.files()["base_row_id"].null_count == snapshot.num_files
    drop_feature(store, "domainMetadata")
    assert features(store) == {"appendOnly", "invariants"}


def test_dropped_domain_metadata_takes_the_domains_first(tmp_path: Path) -> None:
    """A commit has domains only if its protocol supports them."""
    store = made(tmp_path, delta__feature__domainMetadata="supported")
    Transaction(Snapshot.load(store)).set_domain(DomainMetadata("my.app", "{}", removed=False)).commit("TEST", {})
    before = Snapshot.load(store).version
    assert drop_feature(store, "domainMetadata") == before + 2
    assert features(store) == {"appendOnly", "invariants"}
    assert Snapshot.load(store, version=before + 1).domain_metadata() == {}


def test_dropped_timestamps_and_checkpoints_leave_a_plain_table(tmp_path: Path) -> None:
    store = made(tmp_path, delta__enableInCommitTimestamps="true", delta__checkpointPolicy="v2")
    DeltaTable(store.root).checkpoint()
    times = DeltaTable(store.root).history()["timestamp"].to_pylist()
    drop_feature(store, "inCommitTimestamp")
    assert "inCommitTimestamp" not in features(store)
    assert len(DeltaTable(store.root).history()) == len(times) + 2
    drop_feature(store, "v2Checkpoint")
    assert "v2Checkpoint" not in features(store)
    newest = Snapshot.load(store).segment.checkpoint
    assert newest is not None and newest.kind is LogKind.CHECKPOINT_CLASSIC
    assert DeltaTable(store.root).to_arrow().num_rows == 10


def test_feature_that_leaves_no_traces_goes_at_once(tmp_path: Path) -> None:
    store = made(tmp_path / "kept", delta__feature__vacuumProtocolCheck="supported")
    assert drop_feature(store, "vacuumProtocolCheck") == 4
    assert features(store) == {"appendOnly", "invariants", "checkpointProtection"}
    store = made(tmp_path / "given up", delta__feature__vacuumProtocolCheck="supported")
    assert drop_feature(store, "vacuumProtocolCheck", truncate_history=True) == 2
    assert features(store) == {"appendOnly", "invariants"}


def test_restore_of_a_version_with_the_feature_keeps_protection(tmp_path: Path) -> None:
    store = with_vectors(tmp_path)
    version = drop_feature(store, "deletionVectors")
    restore(store, version=1)
    assert Snapshot.load(store).metadata.configuration[PROTECTED] == str(version)
    assert features(store) >= {"deletionVectors", "checkpointProtection"}
    assert DeltaTable(store.root).to_arrow().num_rows == 7


REFUSED = {
    "nothing": ("nothing", {}, "UNSUPPORTED_CLIENT_FEATURE"),
    "a property": ("delta.appendOnly", {}, "FEATURE_IS_DELTA_PROPERTY"),
    "what stays": ("appendOnly", {}, "NONREMOVABLE_FEATURE"),
    "what this version cannot": ("identityColumns", {"delta__feature__identityColumns": "supported"}, "NONREMOVABLE_FEATURE"),
    "what is not there": ("rowTracking", {}, "FEATURE_NOT_PRESENT"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_feature_that_cannot_be_dropped_changes_nothing(tmp_path: Path, name: str) -> None:
    feature, configuration, why = REFUSED[name]
    store = made(tmp_path, **configuration)
    assert condition(lambda: drop_feature(store, feature)) == f"DELTA_FEATURE_DROP_{why}"
    assert Snapshot.load(store).version == 0


def test_documentation_names_all_features_that_can_be_dropped() -> None:
    text = (Path(__file__).parents[3] / "docs" / "altering.md").read_text()
    table = text.partition("| feature | what is removed |")[2].partition("\n\n")[0]
    names = {name for line in table.splitlines() for name in re.findall("`([^`]*)`", line.partition("|")[2].partition("|")[0])}
    assert names == TRACES.keys() - {"checkpointProtection"}, "checkpointProtection goes with its history alone"


def test_history_is_not_given_up_for_features_of_writers(tmp_path: Path) -> None:
    store = made(tmp_path, delta__enableInCommitTimestamps="true")
    why = "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"
    assert condition(lambda: drop_feature(store, "inCommitTimestamp", truncate_history=True)) == why


def test_constraints_must_go_before_their_feature(tmp_path: Path) -> None:
    store = made(tmp_path)
    add_constraint(store, "c", "id >= 0")
    assert condition(lambda: drop_feature(store, "checkConstraints")) == "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE"


def test_writer_that_enables_the_feature_again_stops_the_drop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = with_vectors(tmp_path)
    barrier = module._put_barrier

    def beside(arguments: ObjectStore) -> None:
        barrier(arguments)
        set_properties(store, {"delta.enableDeletionVectors": "true"})

    monkeypatch.setattr(module, "_put_barrier", beside)
    assert condition(lambda: drop_feature(store, "deletionVectors")) == "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"
    assert "deletionVectors" in features(store)


def test_writer_that_adds_rows_meanwhile_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = with_vectors(tmp_path)
    commit = module.Transaction.commit
    turns = iter([True])

    def beside(transaction: Any, operation: str, *arguments: Any, **options: Any) -> int:
        if operation == "DROP FEATURE" and next(turns, False):
            write_delta(store.root, pa.table({"id": pa.array([50], pa.int32())}), mode="append")
        return commit(transaction, operation, *arguments, **options)

    monkeypatch.setattr(module.Transaction, "commit", beside)
    version = drop_feature(store, "deletionVectors")
    assert Snapshot.load(store).metadata.configuration[PROTECTED] == str(version) == str(Snapshot.load(store).version)
    assert DeltaTable(store.root).to_arrow().num_rows == 8


def test_drop_checks_history_after_a_checkpoint_without_commit() -> None:
    """Another engine has cleaned the log: version 2 is read from the checkpoint before it, whatever checkpoints come later."""
    table = TableBuilder(MemoryStore())
    table.commit(table.protocol(features=["deletionVectors"]), table.metadata(), add("a"))
    for action in (add("b"), add("c", deletionVector=vector()), remove("c", deletionVector=vector()), add("d")):
        table.commit(action)
    for version in (1, 4):
        table.checkpoint(version)
    for version in (0, 1):
        table.delete(f"{version:020d}.json")
    files = Snapshot.load(table.store, version=2).files()
    assert files.num_rows - files["deletion_vector"].null_count == 1
    with pytest.raises(DeltaError) as refused:
        module._check_history(table.store, "deletionVectors", TRACES["deletionVectors"])
    assert refused.value.error_class == "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
    table.delete(f"{1:020d}.checkpoint.parquet")
    for version in (2, 3):
        table.delete(f"{version:020d}.json")
    module._check_history(table.store, "deletionVectors", TRACES["deletionVectors"])
