"""Written checkpoints: their content, read back without the commits, and what they leave out."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py.checkpoint import checkpoint_file, checkpoint_v2
from delta_py.checkpoint.checkpoint import write_checkpoint
from delta_py.checkpoint.checkpoint_file import RowFile, WrittenCheckpoint
from delta_py.errors import CorruptTableError
from delta_py.log.checkpoint_content.checkpoint_files import RequestedStats
from delta_py.log.last_checkpoint import json_checksum
from delta_py.log.log_writer import LogWriter
from delta_py.log.segment import load_segment
from delta_py.protocol.features import Properties
from delta_py.protocol.parquet_settings import ParquetSettings
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import DOUBLE, LONG, STRING
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import Json, TableBuilder, add, remove, stats, vector

WEEK_MS = 7 * 86_400_000
V2 = {"delta.checkpointPolicy": "v2"}


@pytest.fixture
def table() -> TableBuilder:
    return TableBuilder(MemoryStore())


def checkpoint(table: TableBuilder, version: int | None = None, now_ms: int = 2) -> WrittenCheckpoint:
    segment = load_segment(table.store, version)
    return write_checkpoint(
        table.store, LogWriter(table.store, Snapshot.load(table.store, version).config), segment, now_ms=now_ms
    )


def rows(table: TableBuilder, version: int, column: str) -> list[Json]:
    data = table.store.read(f"_delta_log/{version:020d}.checkpoint.parquet")
    values = pq.read_table(io.BytesIO(data), columns=[column])[column].to_pylist()
    return [row for row in values if row is not None]


def forget_commits(table: TableBuilder, before: int) -> None:
    for version in range(before):
        table.delete(f"{version:020d}.json")


def paths(table: TableBuilder, version: int | None = None) -> set[str]:
    return set(Snapshot.load(table.store, version).files()["path"].to_pylist())


def test_checkpoint_gives_the_same_state_without_old_commits(table: TableBuilder) -> None:
    table.create(add("a%20b", tags={"k": "v"}, clusteringProvider="liquid"), add("gone"), {"txn": {"appId": "x", "version": 3}})
    table.commit(add("dv", deletionVector=vector(), baseRowId=7, defaultRowCommitVersion=1), remove("gone"))
    table.commit({"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}})
    table.commit(
        {"domainMetadata": {"domain": "e", "configuration": "{}", "removed": True}}, {"txn": {"appId": "x", "version": 4}}
    )
    before = Snapshot.load(table.store)
    files, transactions, domains = before.files(), before.set_transactions(), before.domain_metadata()
    written = checkpoint(table)
    forget_commits(table, 3)
    after = Snapshot.load(table.store)
    assert after.segment.checkpoint is not None and after.segment.commits == ()
    assert after.files().sort_by("path") == files.sort_by("path")
    assert (after.protocol, after.metadata) == (before.protocol, before.metadata)
    assert (after.set_transactions(), after.domain_metadata()) == (transactions, domains)
    assert (written.file_count, written.table_bytes) == (2, 200)


def test_rows_of_adds_keep_all_fields_and_change_no_data(table: TableBuilder) -> None:
    table.create(
        add("a%20b", tags={"k": "v", "n": None}, clusteringProvider="liquid", deletionVector=vector(), baseRowId=7, size=5)
    )
    checkpoint(table)
    (row,) = rows(table, 0, "add")
    assert (row["path"], row["tags"], row["clusteringProvider"]) == ("a%20b", [("k", "v"), ("n", None)], "liquid")
    assert (row["dataChange"], row["size"], row["baseRowId"], row["deletionVector"]) == (False, 5, 7, vector())


def test_next_checkpoint_omits_files_that_newer_commits_removed(table: TableBuilder) -> None:
    table.create(add("a"), add("b"), add("c", deletionVector=vector("v1")))
    checkpoint(table)
    table.commit(remove("a"), remove("c", deletionVector=vector("v1")), add("c", deletionVector=vector("v2")))
    checkpoint(table, now_ms=2 * WEEK_MS)
    forget_commits(table, 1)
    assert paths(table) == {"b", "c"}
    assert len(rows(table, 1, "add")) == 2
    assert len(rows(table, 1, "remove")) == 0


@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-json", "v2-parquet"])
@pytest.mark.parametrize("sidecars", [0, 2])
def test_checkpoints_of_all_kinds_are_gone_on_from(kind: str, sidecars: int, table: TableBuilder) -> None:
    features = ["v2Checkpoint", "deletionVectors"]
    table.commit(table.protocol(features=features), table.metadata(), *[add(f"f{i}", stats=stats(i + 1, 0, i)) for i in range(9)])
    table.commit(remove("f3", deletionTimestamp=50), add("g", tags={"a": "b"}))
    table.checkpoint(1, kind=kind, sidecars=sidecars)
    table.commit(remove("f4", deletionTimestamp=50))
    files = Snapshot.load(table.store).files().sort_by("path")
    assert checkpoint(table, now_ms=WEEK_MS).file_count == 8
    forget_commits(table, 2)
    assert Snapshot.load(table.store).files().sort_by("path") == files
    assert sorted(row["path"] for row in rows(table, 2, "remove")) == ["f3", "f4"]
    assert [row["tags"] for row in rows(table, 2, "add") if row["path"] == "g"] == [[("a", "b")]]


def test_checkpoint_has_each_file_once_after_a_duplicate_sidecar(table: TableBuilder) -> None:
    table.commit(table.protocol(features=["v2Checkpoint"]), table.metadata(configuration=V2), add("a"), add("b"))
    name = table.checkpoint(0, kind="v2-json", sidecars=2)[0]
    lines = table.store.read(f"_delta_log/{name}").splitlines(keepends=True)
    table.write(name, b"".join([*lines, *(line for line in lines if b'"sidecar"' in line)]))
    table.commit(add("c"))
    assert checkpoint(table).file_count == 3
    forget_commits(table, 1)
    assert paths(table) == {"a", "b", "c"}


@pytest.mark.parametrize("has_counts", [True, False])
def test_checkpoint_after_one_that_has_files_twice_has_each_once(table: TableBuilder, has_counts: bool) -> None:
    table.create(add("a"), add("b"), add("d", deletionVector=vector("v1")))
    (name,) = table.checkpoint(0)
    if has_counts:
        table.checksum(0)
    rows_once = pq.read_table(pa.BufferReader(table.store.read(f"_delta_log/{name}")))
    sink = io.BytesIO()
    pq.write_table(pa.concat_tables([rows_once, rows_once]), sink)
    table.write(name, sink.getvalue())
    table.commit(add("c"), remove("b"))
    assert checkpoint(table).file_count == 3
    forget_commits(table, 1)
    assert paths(table) == {"a", "c", "d"}


def test_fields_that_readers_pass_over_are_null_in_a_checkpoint(table: TableBuilder) -> None:
    table.create(add("a", dataChange="x", tags=5, clusteringProvider=[7], stats={"numRecords": 1}), add("b", tags={"k": "v"}))
    table.commit(remove("c", deletionTimestamp="yesterday"), remove("d", deletionTimestamp=50, size="x", partitionValues=1))
    assert checkpoint(table, now_ms=WEEK_MS).file_count == 2
    forget_commits(table, 1)
    assert paths(table) == {"a", "b"}
    assert [(row["path"], row["tags"]) for row in rows(table, 1, "add")] == [("a", None), ("b", [("k", "v")])]
    assert [(row["path"], row["size"]) for row in rows(table, 1, "remove")] == [("d", None)]


@pytest.mark.parametrize("field", ["size", "modificationTime", "partitionValues", "baseRowId"])
def test_field_that_readers_need_stops_a_checkpoint(table: TableBuilder, field: str) -> None:
    table.create(add("a"), add("b", **{field: [True]}))
    with pytest.raises(CorruptTableError, match=field):
        checkpoint(table)


ODD_FIELDS: list[Json] = [
    *(
        {name: value}
        for name in ("path", "size", "modificationTime", "partitionValues")
        for value in (None, 5.5, [], "x", {"a": 1})
    ),
    *({name: value} for name in ("baseRowId", "deletionVector") for value in (5.5, [], "x", {"a": 1})),
    *({"size": -1}, {"size": 2**63}, {"modificationTime": -(2**64)}, {"baseRowId": 2**63}, {"partitionValues": {"a": [1]}}),
    {"deletionVector": {**vector(), "sizeInBytes": 2**40}},
]


@pytest.mark.parametrize("odd", ODD_FIELDS, ids=str)
def test_checkpoint_ignores_a_compaction_that_readers_ignore(table: TableBuilder, odd: Json) -> None:
    table.create(add("a"))
    table.commit(add("b", partitionValues={"part": "1"}))
    table.commit(add("c"))
    table.write(table.compact(1, 2), b"\n".join(json.dumps({"add": {**add(n)["add"], **odd}}).encode() for n in ("b", "c")))
    before = Snapshot.load(table.store).files().to_pylist()
    checkpoint(table)
    forget_commits(table, 2)
    table.delete(f"{1:020d}.{2:020d}.compacted.json")
    assert sorted(Snapshot.load(table.store).files().to_pylist(), key=str) == sorted(before, key=str)


# ---------------------------------------------------------------- what expires


def test_checkpoint_keeps_tombstones_until_retention_ends(table: TableBuilder) -> None:
    table.create(add("a"), add("b"), add("c"), configuration={"delta.deletedFileRetentionDuration": "interval 2 days"})
    table.commit(remove("a", deletionTimestamp=1_000), remove("b", deletionTimestamp=2_000), {"remove": {"path": "c"}})
    checkpoint(table, now_ms=1_000 + 2 * 86_400_000)
    assert [row["path"] for row in rows(table, 1, "remove")] == ["b"]
    table.commit(add("d"))
    checkpoint(table, now_ms=2_000 + 2 * 86_400_000)
    assert rows(table, 2, "remove") == []


def test_tombstones_keep_what_vacuum_needs(table: TableBuilder) -> None:
    table.create(add("a"))
    table.commit(remove("a", deletionVector=vector(), size=4, partitionValues={"p": "1"}, extendedFileMetadata=True))
    checkpoint(table)
    (row,) = rows(table, 1, "remove")
    assert (row["deletionVector"], row["size"], row["partitionValues"]) == (vector(), 4, [("p", "1")])


def test_transactions_with_a_time_expire_by_the_table_property(table: TableBuilder) -> None:
    table.create(
        {"txn": {"appId": "old", "version": 1, "lastUpdated": 1_000}},
        {"txn": {"appId": "new", "version": 1, "lastUpdated": 1_001}},
        {"txn": {"appId": "timeless", "version": 1}},
        configuration={"delta.setTransactionRetentionDuration": "interval 1 hour"},
    )
    checkpoint(table, now_ms=1_000 + 3_600_000)
    assert sorted(row["appId"] for row in rows(table, 0, "txn")) == ["new", "timeless"]


# ---------------------------------------------------------------- statistics


def stats_table(table: TableBuilder, **properties: str) -> None:
    configuration = {f"delta.checkpoint.{name}": value for name, value in properties.items()}
    table.create(add("a", stats=stats(3, 1, 9)), add("b"), configuration=configuration)


def test_statistics_are_text_and_struct_where_nothing_is_set(table: TableBuilder) -> None:
    stats_table(table)
    checkpoint(table)
    by_path = {row["path"]: row for row in rows(table, 0, "add")}
    assert json.loads(by_path["a"]["stats"])["numRecords"] == 3
    assert by_path["a"]["stats_parsed"] == {
        "numRecords": 3,
        "minValues": {"id": 1},
        "maxValues": {"id": 9},
        "nullCount": {"id": 0},
    }
    assert by_path["b"]["stats"] is None and by_path["b"]["stats_parsed"] is None


@pytest.mark.parametrize(("text", "struct"), [("true", "false"), ("false", "true"), ("false", "false")])
def test_statistics_have_the_forms_that_the_table_asks_for(text: str, struct: str, table: TableBuilder) -> None:
    stats_table(table, writeStatsAsJson=text, writeStatsAsStruct=struct)
    checkpoint(table)
    row = rows(table, 0, "add")[0]
    assert ("stats" in row, "stats_parsed" in row) == (text == "true", struct == "true")


def test_statistics_that_exist_as_struct_only_become_text_again(table: TableBuilder) -> None:
    stats_table(table, writeStatsAsJson="false")
    checkpoint(table)
    table.commit(table.metadata(configuration={"delta.checkpoint.writeStatsAsStruct": "false"}), add("c", stats=stats(1, 5, 5)))
    checkpoint(table)
    by_path = {row["path"]: row for row in rows(table, 1, "add")}
    assert json.loads(by_path["a"]["stats"]) == json.loads(stats(3, 1, 9))
    assert json.loads(by_path["c"]["stats"]) == json.loads(stats(1, 5, 5))
    assert by_path["b"]["stats"] is None and "stats_parsed" not in by_path["a"]


def test_statistics_of_a_new_column_are_built_from_the_text(table: TableBuilder) -> None:
    text = json.dumps({"numRecords": 1, "minValues": {"id": 1, "x": 0.5}, "maxValues": {"id": 1, "x": 0.5}})
    table.create(add("a", stats=text))
    checkpoint(table)
    table.commit(table.metadata(("id", "long"), ("x", "double")))
    checkpoint(table)
    assert rows(table, 1, "add")[0]["stats_parsed"]["minValues"] == {"id": 1, "x": 0.5}
    (batch,) = Snapshot.load(table.store).file_batches({("id",): LONG, ("x",): DOUBLE})
    assert batch.stats is not None and batch.stats.maximum[("x",)].to_pylist() == [0.5]


def test_damaged_statistics_of_a_file_are_unknown_but_keep_text(table: TableBuilder) -> None:
    table.create(add("a", stats="{damaged"), add("b", stats=stats(2, 1, 2)))
    checkpoint(table)
    by_path = {row["path"]: row for row in rows(table, 0, "add")}
    assert by_path["a"]["stats"] == "{damaged" and by_path["a"]["stats_parsed"]["numRecords"] is None
    assert by_path["b"]["stats_parsed"]["numRecords"] == 2


def test_partition_values_are_typed_under_physical_names(table: TableBuilder) -> None:
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"},
        }
        for number, (name, kind) in enumerate([("day", "date"), ("n", "long")], 1)
    ]
    metadata = table.metadata(partition_by=["day"], configuration={"delta.columnMapping.mode": "name"})
    metadata["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": fields})
    text = json.dumps({"numRecords": 1, "minValues": {"col-2": 4}, "maxValues": {"col-2": 4}, "nullCount": {"col-2": 0}})
    values = [{"col-1": "2024-02-29"}, {"col-1": None}, {"col-1": "no day"}]
    table.commit(
        table.protocol(2, 5), metadata, *[add(f"f{i}", partitionValues=value, stats=text) for i, value in enumerate(values)]
    )
    checkpoint(table)
    add_rows = rows(table, 0, "add")
    assert [str(row["partitionValues_parsed"]["col-1"]) for row in add_rows] == ["2024-02-29", "None", "None"]
    assert add_rows[0]["partitionValues"] == [("col-1", "2024-02-29")]
    assert add_rows[0]["stats_parsed"]["maxValues"] == {"col-2": 4}


# ---------------------------------------------------------------- damage


def test_older_checkpoint_that_is_damaged_is_passed_over(table: TableBuilder, caplog: pytest.LogCaptureFixture) -> None:
    table.create(add("a"))
    table.checkpoint(0)
    table.commit(add("b"))
    (name,) = table.checkpoint(1)
    full_bytes = table.store.read(f"_delta_log/{name}")
    table.write(name, full_bytes[:-40])
    table.commit(remove("a"))
    with caplog.at_level(logging.WARNING):
        checkpoint(table)
    forget_commits(table, 2)
    assert "is skipped" in caplog.text
    assert paths(table) == {"b"}


def test_checkpoint_without_anything_to_build_on_is_refused(table: TableBuilder) -> None:
    table.create(add("a"))
    (name,) = table.checkpoint(0)
    table.commit(add("b"))
    segment, config = load_segment(table.store), Snapshot.load(table.store).config
    table.write(name, b"nothing")
    table.delete(f"{0:020d}.json")
    with pytest.raises(CorruptTableError):
        write_checkpoint(table.store, LogWriter(table.store, config), segment, now_ms=2)
    with pytest.raises(FileNotFoundError):
        table.store.read(f"_delta_log/{1:020d}.checkpoint.parquet")


# ---------------------------------------------------------------- _last_checkpoint


def test_hint_has_a_checksum_and_moves_forwards_only(table: TableBuilder) -> None:
    table.create(add("a"))
    table.commit(add("b"))
    checkpoint(table, 1)
    value = json.loads(table.store.read("_delta_log/_last_checkpoint"))
    assert (value["version"], value["size"], value["numOfAddFiles"]) == (1, 4, 2)
    assert value["checksum"] == json_checksum({name: item for name, item in value.items() if name != "checksum"})
    checkpoint(table, 0)
    assert json.loads(table.store.read("_delta_log/_last_checkpoint"))["version"] == 1


def test_hint_that_cannot_be_written_leaves_a_good_checkpoint(table: TableBuilder, caplog: pytest.LogCaptureFixture) -> None:
    table.create(add("a"))

    def fail(moment: str, name: str, path: str) -> None:
        if name == "put" and path.endswith("_last_checkpoint") and moment == "before":
            raise OSError("injected")

    assert isinstance(table.store, MemoryStore)
    table.store.hook = fail
    checkpoint(table)
    table.store.hook = None
    assert "_last_checkpoint is not" in caplog.text
    assert Snapshot.load(table.store).segment.checkpoint is not None


# ---------------------------------------------------------------- V2


def v2_table(table: TableBuilder, files: int = 6) -> None:
    table.commit(
        table.protocol(features=["v2Checkpoint"]),
        table.metadata(configuration=V2),
        *[add(f"f{i}", stats=stats(1, i, i)) for i in range(files)],
        {"txn": {"appId": "x", "version": 1}},
    )


def sidecars(table: TableBuilder) -> set[str]:
    reader = Snapshot.load(table.store)._log._open(load_segment(table.store))[1]
    assert reader is not None
    return {row["path"] for row in reader.rows("sidecar")}


@pytest.fixture
def small_sidecars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch has its own sidecar, each large enough to be reused."""
    monkeypatch.setattr(checkpoint_v2, "SIDECAR_ROWS", 1)
    monkeypatch.setattr(checkpoint_v2, "REUSED_ROWS", 1)


def test_v2_checkpoint_gives_the_same_state_without_the_commits(table: TableBuilder) -> None:
    v2_table(table)
    table.commit(remove("f1", deletionTimestamp=10), add("g", tags={"k": "v"}))
    before = Snapshot.load(table.store)
    files = before.files().sort_by("path")
    assert checkpoint(table, now_ms=11).file_count == 6
    forget_commits(table, 1)
    after = Snapshot.load(table.store)
    assert after.segment.checkpoint is not None and len(sidecars(table)) == 2  # adds, tombstones
    assert after.files().sort_by("path") == files
    assert after.set_transactions() == before.set_transactions()
    after.check_integrity()


def test_sidecar_is_taken_over_while_all_its_files_live(table: TableBuilder, small_sidecars: None) -> None:
    v2_table(table)
    checkpoint(table)
    first = sidecars(table)
    table.commit(add("g"))
    assert checkpoint(table).file_count == 7
    assert first < sidecars(table) and len(sidecars(table)) == 2
    table.commit(remove("g"), add("h"))
    assert checkpoint(table).file_count == 7
    assert first < sidecars(table)
    table.commit(remove("f0"))
    assert checkpoint(table).file_count == 6
    assert first.isdisjoint(sidecars(table))
    forget_commits(table, 3)
    assert paths(table) == {"f1", "f2", "f3", "f4", "f5", "h"}


def test_small_sidecars_are_joined(table: TableBuilder) -> None:
    v2_table(table)
    for name in ("g", "h"):
        table.commit(add(name))
        checkpoint(table)
    assert len(sidecars(table)) == 1


def test_sidecar_of_an_outdated_form_is_rewritten(table: TableBuilder, small_sidecars: None) -> None:
    v2_table(table)
    checkpoint(table)
    first = sidecars(table)
    table.commit(table.metadata(("id", "long"), ("name", "string"), configuration=V2))
    checkpoint(table)
    assert first.isdisjoint(sidecars(table))
    (batch,) = Snapshot.load(table.store).file_batches({("id",): LONG, ("name",): STRING})
    assert batch.stats is not None and batch.stats.minimum[("id",)].to_pylist() == list(range(6))


def test_policy_without_the_feature_writes_classic_checkpoints(table: TableBuilder) -> None:
    table.create(add("a"), configuration=V2)
    checkpoint(table)
    assert len(rows(table, 0, "add")) == 1


# ---------------------------------------------------------------- peers


@pytest.mark.parametrize("properties", [{}, {"delta.checkpoint.writeStatsAsJson": "false"}, V2])
def test_deltalake_reads_the_files_of_our_checkpoint(properties: dict[str, str], tmp_path: Any) -> None:
    table = TableBuilder(LocalStore(str(tmp_path)))
    protocol = table.protocol(features=["v2Checkpoint"]) if properties == V2 else table.protocol()
    metadata = table.metadata(("id", "long"), ("p", "string"), partition_by=["p"], configuration=properties)
    table.commit(
        protocol,
        metadata,
        add("p=x%20y/a", partitionValues={"p": "x y"}, stats=stats(3, 1, 9)),
        add("b", partitionValues={"p": None}),
    )
    table.commit(remove("b", partitionValues={"p": None}), {"txn": {"appId": "app", "version": 5}})
    checkpoint(table, now_ms=2)
    forget_commits(table, 1)
    theirs = deltalake.DeltaTable(str(tmp_path))
    actions = pa.table(theirs.get_add_actions(flatten=True))
    assert actions["num_records"].to_pylist() == [3] and actions["max.id"].to_pylist() == [9]
    assert actions["partition.p"].to_pylist() == ["x y"]
    assert theirs.transaction_version("app") == 5
    assert theirs.version() == 1


def test_every_batch_of_a_large_checkpoint_is_counted(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_py.log.checkpoint_content.checkpoint_rows._BATCH_ROWS", 7)
    monkeypatch.setattr("delta_py.checkpoint.checkpoint_state._JOINED_ROWS", 5)
    table.create(*[add(f"f{i}") for i in range(40)])
    table.checkpoint(0, batch=9)
    table.commit(*[remove(f"f{i}") for i in range(0, 40, 3)], *[add(f"g{i}") for i in range(12)])
    table.commit(add("h"))
    assert checkpoint(table).file_count == 40 - 14 + 12 + 1
    forget_commits(table, 2)
    snapshot = Snapshot.load(table.store)
    assert (
        snapshot.num_files
        == 39
        == sum(raw.files.num_rows for raw in snapshot._log._open(snapshot.segment)[1].files(RequestedStats()))
    )  # type: ignore[union-attr]


def test_pieces_of_few_rows_share_a_row_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_file, "_ROWS_PER_GROUP", 10)
    types = {name: pa.struct([("id", pa.int64())]) for name in ("txn", "add")}
    file = RowFile(types, ParquetSettings())
    for name, count in (("txn", 3), ("add", 0), ("add", 7), ("add", 4), ("txn", 1), ("add", 20), ("add", 2)):
        file.write(name, pa.array([{"id": number} for number in range(count)], types[name]))
    written = pq.ParquetFile(pa.BufferReader(file.close()))
    groups = [written.metadata.row_group(number).num_rows for number in range(written.num_row_groups)]
    assert groups == [10, 5, 20, 2] and file.row_count == 37
    rows = written.read()
    assert rows["txn"].combine_chunks().field("id").to_pylist()[:3] == [0, 1, 2] and rows["txn"].null_count == 33
    assert [row["id"] for row in rows["add"].to_pylist() if row] == [*range(7), *range(4), *range(20), *range(2)]


def test_settings_that_cannot_be_written_are_for_data_files() -> None:
    """A checkpoint may have any codec, and without checkpoints a log is never cleaned up."""
    for name, value in (("delta.parquet.compression.codec", "brotli"), ("delta.parquet.format.version", "9")):
        assert ParquetSettings.for_checkpoints(Properties({name: value})) == ParquetSettings()
