"""Column mapping turned off: every file is rewritten under the columns' logical names, in one commit."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter import remove_mapping
from delta_py.alter.alter import set_properties, unset_properties
from delta_py.alter.alter_columns import add_columns, drop_columns, rename_column
from delta_py.alter.column_changes import NewColumn
from delta_py.alter.drop_feature import drop_feature
from delta_py.commit.transaction import Transaction
from delta_py.definition.cluster_by import cluster_by
from delta_py.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentWriteException,
    DeltaError,
    MetadataChangedException,
    SchemaMismatchError,
)
from delta_py.index_commands.index import TableIndexes
from delta_py.optimize.optimize import LocalBinWriters
from delta_py.optimize.optimize_bins import Bin
from delta_py.protocol.clustering import clustering_columns
from delta_py.protocol.column_mapping import assign
from delta_py.protocol.features import Properties, supported_features
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.scan.scan_state import ScanFile
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import LONG, schema_to_json
from delta_py.write.data_files import WrittenFiles
from delta_py.write.rewrite import Rewrite, add_action_of
from tests.unit.optimize.test_reorg import row_ids
from tests.unit.row_changes.test_commands_at_once import MeanwhileStore

MODE = "delta.columnMapping.mode"
OFF = {MODE: "none"}
ALL = {
    MODE: "name",
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
}


def rows(*ids: int) -> pa.Table:
    structs = [{"a": number, "l": [{"x": number}]} for number in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "s": structs, "p": ["odd" if number % 2 else "even" for number in ids]})


def make(path: Path, properties: dict[str, str] | None = None, partition_by: tuple[str, ...] = ("p",)) -> LocalStore:
    """Mapped, with rows 0 to 5; column id was renamed to k, s.l.element.x to y, p to q, and column gone was dropped."""
    first = rows(0, 1, 2).append_column("gone", pa.array([7, 7, 7]))
    write_delta(str(path), first, partition_by=list(partition_by), configuration=properties or {MODE: "name"})
    store = LocalStore(str(path))
    drop_columns(store, ["gone"])
    write_delta(str(path), rows(3, 4, 5), mode="append")
    for name, new_name in (("id", "k"), ("s.l.element.x", "y"), ("p", "q")):
        rename_column(store, name, new_name)
    return store


def content(store: Any, version: int | None = None) -> list[dict[str, Any]]:
    sorted_rows: list[dict[str, Any]] = DeltaTable(store.root, version=version).to_arrow().sort_by("k").to_pylist()
    return sorted_rows


def actions(store: Any, version: int) -> dict[str, list[dict[str, Any]]]:
    lines = (Path(store.root) / f"_delta_log/{version:020d}.json").read_bytes().splitlines()
    actions_by_kind: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        for kind, action in orjson.loads(line).items():
            actions_by_kind.setdefault(kind, []).append(action)
    return actions_by_kind


def files(path: Path) -> set[Path]:
    return set(path.rglob("*.parquet"))


def condition(run: Callable[[], Any]) -> str:
    with pytest.raises(DeltaError) as caught:
        run()
    return caught.value.error_class


@pytest.mark.parametrize("mode", ["name", "id"])
def test_remove_mapping_restores_logical_names_in_files_and_log(tmp_path: Path, mode: str) -> None:
    store = make(tmp_path, {MODE: mode})
    before, protocol = content(store), Snapshot.load(store).protocol
    version = set_properties(store, OFF)
    assert content(store) == before == content(store, version - 1)
    snapshot = Snapshot.load(store)
    assert snapshot.version == version and snapshot.protocol == protocol
    assert dict(snapshot.metadata.configuration) == OFF
    assert "delta.columnMapping" not in snapshot.metadata.schema_string
    actions_by_kind = actions(store, version)
    assert {add["partitionValues"]["q"] for add in actions_by_kind["add"]} == {"odd", "even"}
    assert all(add["path"].startswith(f"q={add['partitionValues']['q']}/") for add in actions_by_kind["add"])
    stats = [orjson.loads(add["stats"]) for add in actions_by_kind["add"]]
    assert all(set(stat["minValues"]) == {"k", "s"} and stat["minValues"]["s"].keys() == {"a"} for stat in stats)
    assert sum(stat["numRecords"] for stat in stats) == 6
    assert not any(action["dataChange"] for kind in ("add", "remove") for action in actions_by_kind[kind])
    for add in actions_by_kind["add"]:
        schema = pq.read_schema(tmp_path / add["path"])
        assert schema.names == ["k", "s"]
        assert schema.field("s").type.field("l").type.value_type.field(0).name == "y"
        assert all(field.metadata is None or b"PARQUET:field_id" not in field.metadata for field in schema)
    assert actions_by_kind["commitInfo"][0]["operation"] == "REMOVE COLUMN MAPPING"
    snapshot.check_integrity()


def test_remove_mapping_applies_vectors_and_keeps_row_ids(tmp_path: Path) -> None:
    store = make(tmp_path, ALL)
    DeltaTable(store.root).delete("k = 2")
    before, numbered = content(store), _row_ids(store)
    version = set_properties(store, OFF)
    assert content(store) == before and _row_ids(store) == numbered
    assert all(file["deletion_vector"] is None for file in DeltaTable(store.root).files().to_pylist())
    assert "cdc" not in actions(store, version)
    changes = DeltaTable(store.root).changes(starting_version=version).read_all()
    assert changes.num_rows == 0
    write_delta(store.root, content_like(store), mode="append")
    assert DeltaTable(store.root).changes(starting_version=version + 1).read_all().num_rows == 1


def content_like(store: Any) -> pa.Table:
    return DeltaTable(store.root).to_arrow(filter="k = 1").slice(0, 1)


def _row_ids(store: Any) -> dict[int, tuple[int, int]]:
    return row_ids(store.root, "k")


def test_property_is_taken_back_or_set_with_others_in_one_commit(tmp_path: Path) -> None:
    store = make(tmp_path / "unset")
    version = Snapshot.load(store).version
    assert unset_properties(store, ["DELTA.columnMapping.MODE"]) == version + 1
    assert dict(Snapshot.load(store).metadata.configuration) == {}
    store = make(tmp_path / "more")
    assert set_properties(store, {MODE: "NONE", "team": "a"}) == version + 1
    assert dict(Snapshot.load(store).metadata.configuration) == {MODE: "NONE", "team": "a"}
    assert [row["k"] for row in content(store)] == [*range(6)]


def test_where_it_is_off_already_no_file_is_written(tmp_path: Path) -> None:
    store = make(tmp_path)
    version = set_properties(store, OFF)
    assert set_properties(store, OFF) == version
    write_delta(str(tmp_path / "never"), rows(1))
    assert "add" not in actions(LocalStore(str(tmp_path / "never")), set_properties(LocalStore(str(tmp_path / "never")), OFF))


def test_mapping_may_be_turned_on_and_off_again(tmp_path: Path) -> None:
    store = make(tmp_path)
    for _ in range(2):
        set_properties(store, OFF)
        set_properties(store, {MODE: "name"})
        rename_column(store, "k", "other")
        rename_column(store, "other", "k")
        write_delta(store.root, content_like(store), mode="append")
    assert [row["k"] for row in content(store)] == [0, 1, 1, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["a b", "a,b", "a;b", "{a", "a}", "(a", "a)", "a\nb", "a\tb", "a=b"])
@pytest.mark.parametrize("column", ["k", "s.l.element.y"])
def test_names_that_need_mapping_are_refused_and_nothing_changes(tmp_path: Path, name: str, column: str) -> None:
    store = make(tmp_path)
    version = rename_column(store, column, name)
    before = files(tmp_path)
    with pytest.raises(SchemaMismatchError) as caught:
        set_properties(store, OFF)
    assert caught.value.error_class == "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"
    assert repr(name)[1:-1] in caught.value.message
    assert Snapshot.load(store).version == version and files(tmp_path) == before
    assert condition(lambda: drop_feature(store, "columnMapping")) == caught.value.error_class


def test_table_that_is_compatible_with_iceberg_keeps_it(tmp_path: Path) -> None:
    store = make(tmp_path, {"delta.enableIcebergCompatV2": "true", MODE: "name"}, ())
    version = Snapshot.load(store).version
    expected_condition = "DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY"
    assert condition(lambda: set_properties(store, OFF)) == expected_condition
    assert condition(lambda: drop_feature(store, "columnMapping")) == "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"
    assert Snapshot.load(store).version == version


def test_clustering_columns_and_indexes_stay(tmp_path: Path) -> None:
    store = make(tmp_path, partition_by=())
    cluster_by(store, ["k", "s.a"])
    TableIndexes(store).create("k", "by_k")
    set_properties(store, OFF)
    snapshot = Snapshot.load(store)
    domain = snapshot.clustering_domain()
    assert domain is not None
    assert orjson.loads(domain.configuration)["clusteringColumns"] == [["k"], ["s", "a"]]
    assert clustering_columns(snapshot.schema, domain) == ("k", "s.a")
    (index,) = TableIndexes(store).list().to_pylist()
    assert index["column"] == "k"
    TableIndexes(store).refresh("by_k")
    assert [row["k"] for row in DeltaTable(store.root).to_arrow(filter="k = 4").to_pylist()] == [4]
    DeltaTable(store.root).optimize.cluster()
    assert [row["k"] for row in content(store)] == [*range(6)]


def test_empty_table_and_one_that_is_append_only(tmp_path: Path) -> None:
    write_delta(str(tmp_path / "empty"), rows().slice(0, 0), configuration={MODE: "id"})
    assert set_properties(LocalStore(str(tmp_path / "empty")), OFF) == 1
    assert actions(LocalStore(str(tmp_path / "empty")), 1)["commitInfo"][0]["isBlindAppend"] is False
    store = make(tmp_path / "kept", {MODE: "name", "delta.appendOnly": "true"})
    set_properties(store, OFF)
    assert [row["k"] for row in content(store)] == [*range(6)]


# ---------------------------------------------------------------- beside other writers


@pytest.mark.parametrize(
    ("theirs", "kind"),
    [
        (lambda store: write_delta(store.root, DeltaTable(store.root).to_arrow(), mode="append"), ConcurrentAppendException),
        (lambda store: DeltaTable(store.root).delete("k = 1"), ConcurrentDeleteDeleteException),
        (lambda store: DeltaTable(store.root).optimize.compact(), ConcurrentDeleteDeleteException),
        (lambda store: add_columns(store, [NewColumn("y", LONG)]), MetadataChangedException),
    ],
)
@pytest.mark.parametrize("isolation", ["Serializable", "WriteSerializable"])
def test_whoever_was_first_keeps_what_he_did(
    tmp_path: Path, theirs: Callable[[Any], Any], kind: type[DeltaError], isolation: str
) -> None:
    plain = make(tmp_path, {MODE: "name", "delta.isolationLevel": isolation})
    store, before, between = MeanwhileStore(str(tmp_path)), files(tmp_path), list[Any]()

    def meanwhile() -> None:
        ours = files(tmp_path)
        theirs(plain)
        between.append((content(plain), before | (files(tmp_path) - ours)))

    store.meanwhile = meanwhile
    with pytest.raises(kind):
        set_properties(store, OFF)
    assert between == [(content(plain), files(tmp_path))]
    assert Snapshot.load(plain).config.column_mapping_mode == "name"


@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable", "SnapshotIsolation"])
def test_file_added_without_new_rows_conflicts_at_every_level(tmp_path: Path, level: str) -> None:
    """It would stay, with names that nobody knows any more."""
    plain = make(tmp_path, {MODE: "name", "delta.isolationLevel": level})
    store = MeanwhileStore(str(tmp_path))

    def add_arranged() -> None:
        snapshot = Snapshot.load(plain)
        file = next(iter(plan_scan(snapshot, None, None, ScanOptions(keep_all=True)).scan_files()))
        copy = replace(add_action_of(file, data_change=False), path=f"copy-of-{Path(file.path).name}", path_text=None)
        (tmp_path / copy.path).write_bytes((tmp_path / file.path).read_bytes())
        Transaction(snapshot).add(WrittenFiles(adds=(copy,))).commit("OPTIMIZE", {})

    store.meanwhile = add_arranged
    with pytest.raises(ConcurrentAppendException):
        set_properties(store, OFF)
    assert len(content(plain)) > 6


def test_writer_that_began_before_it_is_refused(tmp_path: Path) -> None:
    plain = make(tmp_path)
    store = MeanwhileStore(str(tmp_path))
    store.meanwhile = lambda: set_properties(plain, OFF)
    with pytest.raises(MetadataChangedException):
        rename_column(store, "k", "z")
    assert [row["k"] for row in content(plain)] == [*range(6)]


# ---------------------------------------------------------------- DROP FEATURE


def test_feature_is_dropped_with_mapping(tmp_path: Path) -> None:
    store = make(tmp_path)
    before, newest = content(store), Snapshot.load(store).version
    drop_feature(store, "columnMapping")
    snapshot = Snapshot.load(store)
    assert set(supported_features(snapshot.protocol)) == {"appendOnly", "invariants", "checkpointProtection"}
    assert snapshot.protocol.min_reader_version == 1
    assert MODE not in snapshot.metadata.configuration
    assert content(store) == before == content(store, newest)
    assert actions(store, newest + 1)["commitInfo"][0]["operation"] == "REMOVE COLUMN MAPPING"


def test_drop_feature_deletes_mapping_ids_of_unmapped_schema(tmp_path: Path) -> None:
    write_delta(str(tmp_path), rows(1), configuration={"delta.feature.columnMapping": "supported"})
    store = LocalStore(str(tmp_path))
    snapshot = Snapshot.load(store)
    left, _ = assign(snapshot.schema, lambda f: f.name, Properties({MODE: "name"}))
    metadata = replace(snapshot.metadata, schema_string=schema_to_json(left))
    Transaction(snapshot).read_rows().set_metadata(metadata).commit("OTHER", {})
    drop_feature(store, "columnMapping")
    dropped = Snapshot.load(store)
    assert "columnMapping" not in supported_features(dropped.protocol)
    assert "physicalName" not in dropped.metadata.schema_string
    assert DeltaTable(store.root).to_arrow().to_pylist() == rows(1).to_pylist()


@pytest.mark.parametrize("change", [partial(set_properties, properties=OFF), partial(unset_properties, names=[MODE])])
def test_files_are_not_written_once_more_beside_a_clustering(tmp_path: Path, change: Callable[..., int]) -> None:
    plain, store = make(tmp_path, partition_by=()), MeanwhileStore(str(tmp_path))
    cluster_by(plain, ["k"])
    store.meanwhile = lambda: cluster_by(plain, ["q"])
    with pytest.raises(ConcurrentWriteException) as caught:
        change(store)
    assert caught.value.error_class == "DELTA_CONCURRENT_DOMAIN_METADATA"


def test_truncate_history_drops_the_feature_in_a_later_run(tmp_path: Path) -> None:
    store = make(tmp_path)
    dropped = partial(drop_feature, store, "columnMapping", truncate_history=True)
    assert condition(dropped) == "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
    assert condition(dropped) == "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"
    dropped(now_ms=time.time_ns() // 1_000_000 + 2 * 86_400_000)
    protocol = Snapshot.load(store).protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert [row["k"] for row in content(store)] == [*range(6)]


# ---------------------------------------------------------------- many files


class CountedWriters(LocalBinWriters):
    """Counts the files that are held as values while bins are written, without those of other tests. It fails at a chosen
    batch."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.held: list[int] = []
        self._of_others = _scan_files()
        self._fails_at = fails_at

    def compact(self, rewrite: Rewrite, bins: Sequence[Bin]) -> list[WrittenFiles]:
        self.held.append(_scan_files() - self._of_others)
        if len(self.held) == self._fails_at:
            raise OSError("the disk is full")
        return super().compact(rewrite, bins)


def _scan_files() -> int:
    gc.collect()
    return sum(type(value) is ScanFile for value in gc.get_objects())


def many(path: Path, monkeypatch: pytest.MonkeyPatch, writers: CountedWriters) -> LocalStore:
    """Twelve files in twelve bins; each bin is a batch."""
    monkeypatch.setattr(remove_mapping, "_TARGETS_OF_A_BATCH", 1)
    monkeypatch.setattr(remove_mapping, "LocalBinWriters", lambda: writers)
    for number in range(12):
        write_delta(str(path), rows(number), mode="append", configuration={MODE: "name", "delta.targetFileSize": "100"})
    return LocalStore(str(path))


def test_files_go_through_in_batches_and_become_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writers = CountedWriters()
    store = many(tmp_path, monkeypatch, writers)
    version = set_properties(store, OFF)
    assert len(writers.held) == 12 and max(writers.held) <= 2, "the batch, and the bin that begins the next one"
    actions_by_kind = actions(store, version)
    assert version == 12 and len(actions_by_kind["add"]) == len(actions_by_kind["remove"]) == 12
    assert sorted(DeltaTable(store.root).to_arrow()["id"].to_pylist()) == [*range(12)]


def test_batch_that_fails_leaves_nothing_of_those_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = many(tmp_path, monkeypatch, CountedWriters(fails_at=5))
    before = files(tmp_path)
    with pytest.raises(OSError, match="the disk is full"):
        set_properties(store, OFF)
    assert files(tmp_path) == before and Snapshot.load(store).version == 11
