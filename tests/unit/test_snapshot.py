"""Snapshots: which files are live, where protocol and metadata come from, and the use of older checkpoints."""

from __future__ import annotations

import io
import json
import logging
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py.commit.post_commit import checkpoint
from delta_py.errors import CorruptTableError, LogIntegrityError, UnsupportedTableFeatureError, VersionNotFoundError
from delta_py.log import reconciliation
from delta_py.log.checkpoint_content import checkpoint_reader, parquet_part
from delta_py.log.commit_reader import FILE_SCHEMA
from delta_py.protocol.actions import DomainMetadata, SetTransaction
from delta_py.snapshot import Snapshot
from delta_py.types.schema import LONG, STRING
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add, key, remove, stats, vector

KINDS = ["classic", "multipart", "v2-json", "v2-parquet", "v2-classic"]
ID = ("id",)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def table(store: MemoryStore) -> TableBuilder:
    """Files with and without deletion vectors, changed in every way over versions 0 to 5."""
    builder = TableBuilder(store)
    builder.create(*[add(f"{n}", stats=stats(10, n * 10, n * 10 + 9)) for n in range(8)])
    builder.commit(remove("0"), add("1", deletionVector=vector("v1"), stats=stats(10, 10, 19)), remove("1"))
    builder.commit(add("8%20x", size=7), add("0", size=5))
    builder.commit(remove("1", deletionVector=vector("v1")), add("1", deletionVector=vector("v2")), remove("2"))
    builder.commit(add("3", size=333), remove("8%20x"), add("2"))
    builder.commit(remove("4"), remove("never there"), add("9", stats=stats(10, 90, 99)))
    return builder


def live(snapshot: Snapshot) -> dict[tuple[str, str | None], int]:
    """Key -> size of every file that the snapshot returns; a repeated file fails the test."""
    rows = snapshot.files().to_pylist()
    sizes = {
        key({"path": row["path"].replace("%", "%25"), "deletionVector": row["deletion_vector"]}): row["size"] for row in rows
    }
    assert len(sizes) == len(rows)
    return sizes


def expected(table: TableBuilder, version: int | None = None) -> dict[tuple[str, str | None], int]:
    return {identity: action["size"] for identity, action in table.live(version).items()}


# ---------------------------------------------------------------- which files are live


def test_every_version_from_commits_alone_is_right(table: TableBuilder, store: MemoryStore) -> None:
    for version in range(6):
        snapshot = Snapshot.load(store, version)
        assert snapshot.version == version
        assert live(snapshot) == expected(table, version)
        assert snapshot.num_files == len(expected(table, version))


@pytest.mark.parametrize("sidecars", [0, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", [0, 2, 5])
def test_every_version_over_a_checkpoint_is_right(
    table: TableBuilder, store: MemoryStore, at: int, kind: str, sidecars: int
) -> None:
    table.checkpoint(at, kind=kind, sidecars=sidecars, batch=3)
    for version in range(6):
        assert live(Snapshot.load(store, version)) == expected(table, version)


def test_every_version_over_compactions_is_right(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(0)
    table.compact(1, 2)
    table.compact(3, 5)
    for version in range(6):
        assert live(Snapshot.load(store, version)) == expected(table, version)
    store.calls.clear()
    live(Snapshot.load(store, 5))
    assert not [path for name, path in store.calls if name == "read" and path.endswith(("3.json", "4.json", "1.json"))]


def test_damaged_compaction_is_replaced_by_its_commits(
    table: TableBuilder, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    name = table.compact(1, 3)
    table.write(name, store.read(f"_delta_log/{name}")[:-30])
    assert live(Snapshot.load(store)) == expected(table)
    assert f"{name} is ignored" in caplog.text


@pytest.mark.parametrize("damaged", [b"{]", b"", b"[]\n", b'{"metaData":{}\n', b'"x"\n{}'])
def test_damaged_compaction_is_out_for_metadata_too(table: TableBuilder, store: MemoryStore, damaged: bytes) -> None:
    """If its lines lack something, the commits may still have it."""
    table.commit(table.metadata(configuration={"delta.appendOnly": "true"}))
    expected_metadata = Snapshot.load(store).metadata
    newest = len(table.commits) - 1
    name = table.compact(1, newest)
    lines = store.read(f"_delta_log/{name}").splitlines(keepends=True)
    table.write(name, b"".join(line for line in lines if b'"metaData"' not in line) + damaged if damaged else b"")
    assert expected_metadata.configuration == {"delta.appendOnly": "true"}
    assert Snapshot.load(store).metadata == expected_metadata


def test_file_of_a_remove_that_names_no_vector_stays(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(1)
    table.commit(remove("1"))
    assert ("1", "uv2@4") in live(Snapshot.load(store))


@pytest.mark.parametrize("batch", [1, 2, 100])
@pytest.mark.parametrize("rows_with_text", [1, 3, 100])
def test_many_newer_actions_replace_those_of_the_checkpoint(
    table: TableBuilder, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, batch: int, rows_with_text: int
) -> None:
    monkeypatch.setattr(reconciliation, "_MANY_KEYS", 3)
    monkeypatch.setattr(parquet_part, "_BATCH_ROWS", 2)
    monkeypatch.setattr(parquet_part, "_MOST_ROWS_WITH_TEXT", rows_with_text)
    monkeypatch.setattr(parquet_part, "_LEAST_ROWS_WITH_TEXT", 1)
    table.checkpoint(1, kind="multipart", batch=batch)
    assert live(Snapshot.load(store)) == expected(table)


def test_many_small_commits_come_in_few_batches(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciliation, "_JOINED_ROWS", 4)
    table = TableBuilder(store)
    table.create()
    for number in range(10):
        table.commit(add(str(number), stats=stats(1, number, number)))
    batches = list(Snapshot.load(store).file_batches({ID: LONG}))
    assert [batch.files.num_rows for batch in batches] == [4, 4, 2]
    lows = [low for batch in batches if batch.stats for low in batch.stats.minimum[ID].to_pylist()]
    assert lows == list(range(9, -1, -1))


def test_absolute_path_in_two_spellings_is_one_file(table: TableBuilder, store: MemoryStore) -> None:
    table.commit(add("file:/a%20b/x"), add("/c/x"))
    table.checkpoint()
    table.commit(remove("/a%20b/x"), remove("file:///c/x"))
    assert live(Snapshot.load(store)) == expected(table, 5)


# ---------------------------------------------------------------- batches


def test_batches_have_the_schema_and_statistics_of_the_leaves(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(2, batch=4)
    bounds_by_path: dict[str, Any] = {}
    for batch in Snapshot.load(store).file_batches({ID: LONG, ("no",): STRING}):
        assert batch.files.schema == FILE_SCHEMA
        assert batch.files["stats"].null_count == batch.files.num_rows
        assert batch.stats is not None and batch.stats.file_count == batch.files.num_rows
        low, high = batch.stats.minimum[ID], batch.stats.maximum[ID]
        bounds_by_path.update(
            zip(batch.files["path"].to_pylist(), zip(low.to_pylist(), high.to_pylist(), strict=True), strict=True)
        )
    assert bounds_by_path == {
        "0": (None, None),
        "1": (None, None),
        "2": (None, None),
        "3": (None, None),
        "5": (50, 59),
        "6": (60, 69),
        "7": (70, 79),
        "9": (90, 99),
    }


def test_statistics_from_struct_and_json_are_joined_row_by_row(table: TableBuilder, store: MemoryStore) -> None:
    inner = pa.struct([("id", pa.int64())])
    parsed = pa.struct([("numRecords", pa.int64()), ("minValues", inner), ("maxValues", inner), ("nullCount", inner)])
    table.commit(
        add("w", stats='{"numRecords":4,"minValues":{"id":1,"s":"a"},"maxValues":{"id":2,"s":"b"},"nullCount":{"id":0,"s":3}}')
    )
    table.checkpoint(stats_parsed=parsed)
    table.commit(remove("5"))
    (batch,) = Snapshot.load(store).file_batches({ID: LONG, ("s",): STRING})
    assert batch.stats is not None
    row = batch.files["path"].to_pylist().index("w")
    assert batch.stats.num_records[row].as_py() == 4
    assert (batch.stats.minimum[ID][row].as_py(), batch.stats.maximum[ID][row].as_py()) == (1, 2)
    assert (batch.stats.minimum[("s",)][row].as_py(), batch.stats.null_count[("s",)][row].as_py()) == ("a", 3)
    assert batch.stats.minimum[ID].to_pylist()[batch.files["path"].to_pylist().index("7")] == 70


def test_batches_without_leaves_carry_no_statistics(table: TableBuilder, store: MemoryStore) -> None:
    assert all(batch.stats is None for batch in Snapshot.load(store).file_batches())


def test_statistics_text_is_there_when_asked_for(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(0)
    texts = {row["path"]: row["stats"] for row in Snapshot.load(store).files().to_pylist()}
    assert texts["5"] == stats(10, 50, 59) and texts["9"] == stats(10, 90, 99) and texts["2"] is None


def test_files_of_an_empty_table_have_the_schema(store: MemoryStore) -> None:
    TableBuilder(store).create()
    assert Snapshot.load(store).files().schema == FILE_SCHEMA
    assert Snapshot.load(store).num_files == 0


def test_add_without_necessary_partition_values_is_refused(store: MemoryStore) -> None:
    table = TableBuilder(store)
    table.create(partition_by=["id"])
    table.commit({"add": {"path": "x", "size": 1, "modificationTime": 1, "partitionValues": {"id": "1"}}})
    table.checkpoint()
    assert Snapshot.load(store).num_files == 1
    name = f"_delta_log/{1:020d}.checkpoint.parquet"
    full_table = pq.read_table(pa.BufferReader(store.read(name)))
    adds = full_table["add"].combine_chunks()
    kept_fields = [f for f in adds.type if f.name != "partitionValues"]
    without = pa.StructArray.from_arrays([adds.field(f.name) for f in kept_fields], fields=kept_fields, mask=adds.is_null())
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"add": without}), sink)
    store.put(name, sink.getvalue().to_pybytes())
    table.checksum()
    with pytest.raises(CorruptTableError, match="x has no partitionValues"):
        Snapshot.load(store).files()


# ---------------------------------------------------------------- protocol and metadata


@pytest.mark.parametrize("kind", ["commits", *KINDS])
def test_newest_protocol_and_metadata_hold(store: MemoryStore, kind: str) -> None:
    table = TableBuilder(store)
    table.create()
    table.commit(table.metadata(("id", "long"), ("new", "string"), configuration={"a.b": "c"}))
    table.commit(table.protocol(1, 4), add("x"))
    if kind != "commits":
        table.checkpoint(kind=kind, batch=1)
    table.commit(add("y"))
    snapshot = Snapshot.load(store)
    assert snapshot.schema.names == ("id", "new")
    assert (snapshot.protocol.min_reader_version, snapshot.protocol.min_writer_version) == (1, 4)
    assert dict(snapshot.metadata.configuration) == {"a.b": "c"}
    assert Snapshot.load(store, 0).schema.names == ("id",)


def test_version_checksum_spares_reading_the_log(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(2)
    table.last_checkpoint(2)
    table.checksum()
    store.calls.clear()
    assert Snapshot.load(store).schema.names == ("id",)
    assert [path for name, path in store.calls if name != "list_from"] == [
        "_delta_log/_last_checkpoint",
        f"_delta_log/{5:020d}.crc",
    ]


def test_checksum_of_another_version_is_not_used(table: TableBuilder, store: MemoryStore) -> None:
    table.checksum(4, metadata=table.metadata(("other", "long"))["metaData"])
    assert Snapshot.load(store).schema.names == ("id",)


def test_protocol_and_metadata_load_without_checkpoint_files(table: TableBuilder, store: MemoryStore) -> None:
    names = table.checkpoint(kind="v2-json", sidecars=2)
    opened = pytest.MonkeyPatch()
    with opened.context() as patch:
        patch.setattr(
            "delta_py.log.checkpoint_content.parquet_part.ParquetPart.files",
            lambda self, wanted: pytest.fail("files were read"),
        )
        assert Snapshot.load(store).schema.names == ("id",)
    assert len(names) == 3


@pytest.mark.parametrize("lacking, kept_action", [("metadata", "protocol"), ("protocol", "metadata")])
@pytest.mark.parametrize("checkpoint", [True, False])
def test_log_without_protocol_or_metadata_is_refused(
    store: MemoryStore, lacking: str, kept_action: str, checkpoint: bool
) -> None:
    table = TableBuilder(store)
    table.commit(getattr(table, kept_action)(), add("x"))
    if checkpoint:
        table.checkpoint()
    with pytest.raises(CorruptTableError, match=f"{lacking} of version 0") as caught:
        Snapshot.load(store)
    assert caught.value.error_class == "DELTA_STATE_RECOVER_ERROR"


def test_unknown_reader_feature_is_refused_by_name(store: MemoryStore) -> None:
    table = TableBuilder(store)
    table.commit(table.protocol(features=["fancyNewThing"]), table.metadata())
    with pytest.raises(UnsupportedTableFeatureError, match="fancyNewThing"):
        Snapshot.load(store)


def test_version_beyond_the_newest_is_refused(table: TableBuilder, store: MemoryStore) -> None:
    with pytest.raises(VersionNotFoundError, match=r"\[0, 5\]"):
        Snapshot.load(store, 6)


# ---------------------------------------------------------------- unreadable checkpoints


@pytest.mark.parametrize("kind", [*KINDS, "v2-sidecars"])
def test_unreadable_checkpoint_gives_way_to_the_rest_of_the_log(
    table: TableBuilder, store: MemoryStore, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    table.checkpoint(1)
    names = table.checkpoint(4, kind="v2-json" if kind == "v2-sidecars" else kind, sidecars=2 if kind == "v2-sidecars" else 0)
    table.last_checkpoint(4)
    data = store.read(f"_delta_log/{names[-1]}")
    table.write(names[-1], data[: len(data) // 2])
    snapshot = Snapshot.load(store)
    assert live(snapshot) == expected(table)
    assert snapshot.schema.names == ("id",)
    assert "the checkpoint of version 4 is passed over" in caplog.text
    assert names[-1] in caplog.text


def test_unreadable_checkpoint_is_skipped_beside_a_checksum(table: TableBuilder, store: MemoryStore) -> None:
    (name,) = table.checkpoint(4)
    table.checksum()
    table.write(name, b"garbage")
    assert live(Snapshot.load(store)) == expected(table)


def test_all_checkpoints_unreadable_leaves_the_commits(table: TableBuilder, store: MemoryStore) -> None:
    for version in (1, 3, 4):
        table.write(table.checkpoint(version)[0], b"garbage")
    assert live(Snapshot.load(store)) == expected(table)


def test_unreadable_checkpoint_of_a_cleaned_log_names_the_file(table: TableBuilder, store: MemoryStore) -> None:
    (name,) = table.checkpoint(4)
    table.write(name, b"garbage")
    for version in range(4):
        table.delete(f"{version:020d}.json")
    with pytest.raises(CorruptTableError, match=name):
        Snapshot.load(store)


def doubled(data: bytes, rows: int | None = None) -> bytes:
    """A checkpoint with its rows twice, or with only the first rows."""
    table, sink = pq.read_table(pa.BufferReader(data)), io.BytesIO()
    pq.write_table(pa.concat_tables([table, table]) if rows is None else table.slice(0, rows), sink)
    return sink.getvalue()


def record_counts(table: TableBuilder, version: int, where: str) -> None:
    """Write the number of a version's files: into its checksum, or into the hint, with or without that number."""
    if where == "checksum":
        table.checksum(version)
    elif where == "hint":
        table.last_checkpoint(version, numOfAddFiles=len(table.live(version)))
    elif where == "older hint":
        table.last_checkpoint(version)


@pytest.mark.parametrize("where", ["checksum", "hint"])
@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-parquet", "v2-json"])
@pytest.mark.parametrize("at", [4, 5])
def test_checkpoint_that_lost_files_is_skipped_for_the_log(
    table: TableBuilder, store: MemoryStore, caplog: pytest.LogCaptureFixture, kind: str, where: str, at: int
) -> None:
    table.checkpoint(at, kind=kind, sidecars=1 if kind.startswith("v2") else 0, last=partial(doubled, rows=3))
    record_counts(table, at, where)
    assert live(Snapshot.load(store)) == expected(table)
    assert f"the checkpoint of version {at} is passed over" in caplog.text


@pytest.mark.parametrize(("where", "record"), [("checksum", f"{4:020d}.crc"), ("hint", "_last_checkpoint")])
def test_file_count_that_contradicts_a_checkpoint_can_be_deleted(
    table: TableBuilder, store: MemoryStore, where: str, record: str
) -> None:
    name = table.checkpoint(4)[-1]
    record_counts(table, 4, where)
    table.write(name, doubled(store.read(f"_delta_log/{name}"), rows=3))
    for version in range(4):
        table.delete(f"{version:020d}.json")
    with pytest.raises(CorruptTableError, match=f"{record} says 8 .delete that, if you know that the checkpoint is complete"):
        live(Snapshot.load(store))
    table.delete(record)
    assert len(live(Snapshot.load(store))) > 0


@pytest.mark.parametrize("where", ["checksum", "hint", "older hint", "nowhere"])
@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-parquet", "v2-json"])
@pytest.mark.parametrize("at", [4, 5])
@pytest.mark.parametrize("many", [True, False], ids=["many commits", "few commits"])
def test_files_that_a_checkpoint_names_twice_count_once(
    table: TableBuilder,
    store: MemoryStore,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    where: str,
    at: int,
    many: bool,
) -> None:
    table.checkpoint(at, kind=kind, sidecars=1 if kind.startswith("v2") else 0, last=doubled)
    record_counts(table, at, where)
    for version in range(at):
        table.delete(f"{version:020d}.json")
    monkeypatch.setattr(reconciliation, "_MANY_KEYS", 0 if many else 1_000)
    monkeypatch.setattr(parquet_part, "_BATCH_ROWS", 2)
    assert live(Snapshot.load(store)) == expected(table)
    assert "more than once; they count once" in caplog.text


def test_hint_without_counts_does_not_confirm_a_checkpoint(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(5, kind="v2-json", sidecars=1, last=doubled)
    table.last_checkpoint(5, size=None)
    assert live(Snapshot.load(store)) == expected(table)


def test_file_that_a_sidecar_and_the_top_level_name_counts_once(table: TableBuilder, store: MemoryStore) -> None:
    name = table.checkpoint(5, kind="v2-json", sidecars=2)[0]
    extra = json.dumps({"add": table.live(5)[("2", None)]}).encode() + b"\n"
    table.write(name, store.read(f"_delta_log/{name}") + extra)
    assert live(Snapshot.load(store)) == expected(table)


@pytest.mark.parametrize("where", ["checksum", "hint", "older hint"])
@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-parquet"])
def test_checkpoint_with_a_matching_count_skips_duplicate_search(
    table: TableBuilder, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, kind: str, where: str
) -> None:
    names = table.checkpoint(5, kind=kind, sidecars=1 if kind.startswith("v2") else 0)
    record_counts(table, 5, where)
    if where == "older hint":
        data = [store.read(f"_delta_log/{name}") for name in names]
        table.last_checkpoint(5, size=sum(pq.read_metadata(pa.BufferReader(part)).num_rows for part in data))

    def search(reader: checkpoint_reader.CheckpointReader) -> None:
        raise AssertionError("searched")

    monkeypatch.setattr(checkpoint_reader.CheckpointReader, "_count_and_repeated", property(search))
    assert live(Snapshot.load(store)) == expected(table)


def test_hint_of_another_version_does_not_judge_a_checkpoint(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(3)
    table.checkpoint(5)
    table.last_checkpoint(5, numOfAddFiles=len(table.live(5)))
    assert live(Snapshot.load(store, 3)) == expected(table, 3)


@pytest.mark.parametrize("size", [-1, 0, 10**30, "x", None, 2.5])
def test_sizes_of_the_hint_that_cannot_be_are_taken_for_none(table: TableBuilder, store: MemoryStore, size: Any) -> None:
    table.checkpoint(5)
    table.last_checkpoint(5, size=size)
    assert live(Snapshot.load(store)) == expected(table)


def test_checksum_of_a_version_with_a_checkpoint_is_read_once(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(5)
    table.checksum(5)
    store.calls.clear()
    assert live(Snapshot.load(store)) == expected(table)
    assert [path for name, path in store.calls if name == "read" and path.endswith(".crc")] == [f"_delta_log/{5:020d}.crc"]


@pytest.mark.parametrize(("where", "what"), [("checksum", "the version checksum"), ("hint", "_delta_log/_last_checkpoint")])
def test_checkpoint_that_lost_files_is_refused_without_a_log(
    table: TableBuilder, store: MemoryStore, where: str, what: str
) -> None:
    (name,) = table.checkpoint(4)
    record_counts(table, 4, where)
    table.write(name, doubled(store.read(f"_delta_log/{name}"), rows=3))
    for version in range(4):
        table.delete(f"{version:020d}.json")
    with pytest.raises(CorruptTableError, match=rf"{name}.*files, but {what}"):
        live(Snapshot.load(store))


@pytest.mark.parametrize("gives", [0, 1, 2])
@pytest.mark.parametrize("older", [True, False])
def test_truncated_checkpoint_is_completed_from_the_log(
    table: TableBuilder, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, gives: int, older: bool
) -> None:
    """The statistics column of one part is damaged; paths can still be read."""
    from delta_py.log.checkpoint_content.checkpoint_files import CheckpointUnreadableError, RawFiles, RequestedStats
    from delta_py.log.checkpoint_content.checkpoint_reader import CheckpointReader

    if older:
        table.checkpoint(1)
    table.checkpoint(4, kind="multipart", parts=3)
    original_files = CheckpointReader.files

    def broken(self: CheckpointReader, wanted_stats: RequestedStats) -> Iterator[RawFiles]:
        for number, raw in enumerate(original_files(self, wanted_stats)):
            if self.checkpoint.version == 4 and wanted_stats.whole and number == gives:
                raise CheckpointUnreadableError.of("part", "cut short")
            yield raw

    monkeypatch.setattr(CheckpointReader, "files", broken)
    assert live(Snapshot.load(store)) == expected(table)


# ---------------------------------------------------------------- the version checksum


def test_files_against_the_checksum_warn_and_fail_on_request(
    table: TableBuilder, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    table.checksum(numFiles=77)
    snapshot = Snapshot.load(store)
    assert live(snapshot) == expected(table)
    assert "numFiles 8" in caplog.text and "says 77" in caplog.text
    with pytest.raises(LogIntegrityError, match="numFiles"):
        snapshot.check_integrity()


@pytest.mark.parametrize("field, value", [("tableSizeBytes", 1), ("protocol", {"minReaderVersion": 1, "minWriterVersion": 3})])
def test_integrity_check_names_the_field_that_differs(table: TableBuilder, store: MemoryStore, field: str, value: Any) -> None:
    table.checksum(**{field: value})
    with pytest.raises(LogIntegrityError, match=field) as caught:
        Snapshot.load(store).check_integrity()
    assert caught.value.error_class == "DELTA_TXN_LOG_FAILED_INTEGRITY"


def test_sound_checksum_agrees_silently(table: TableBuilder, store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    table.checkpoint(3)
    table.checksum()
    snapshot = Snapshot.load(store)
    snapshot.check_integrity()
    assert snapshot.num_files == 8
    assert caplog.text == ""


# ---------------------------------------------------------------- the other actions


@pytest.mark.parametrize("kind", ["commits", *KINDS])
def test_newest_transactions_and_domains_hold(store: MemoryStore, kind: str) -> None:
    def txn(app: str, version: int) -> dict[str, Any]:
        return {"txn": {"appId": app, "version": version, "lastUpdated": 5}}

    def domain(name: str, text: str, removed: bool = False) -> dict[str, Any]:
        return {"domainMetadata": {"domain": name, "configuration": text, "removed": removed}}

    table = TableBuilder(store)
    table.create(txn("a", 9), txn("b", 1), domain("x", "1"), domain("y", "1"), domain("z", "1"))
    table.commit(txn("a", 2), domain("x", "2"), domain("y", "1", removed=True))
    if kind != "commits":
        table.checkpoint(kind=kind)
    table.commit(txn("c", 3), domain("z", "1", removed=True), domain("y", "3"))
    snapshot = Snapshot.load(store)
    assert snapshot.set_transactions() == {name: SetTransaction(name, n, 5) for name, n in (("a", 2), ("b", 1), ("c", 3))}
    assert snapshot.domain_metadata() == {"x": DomainMetadata("x", "2"), "y": DomainMetadata("y", "3")}


def test_transactions_and_domains_of_the_checksum_are_used(table: TableBuilder, store: MemoryStore) -> None:
    table.checksum(
        setTransactions=[{"appId": "a", "version": 1}], domainMetadata=[{"domain": "d", "configuration": "{}", "removed": False}]
    )
    snapshot = Snapshot.load(store)
    store.calls.clear()
    assert snapshot.set_transactions() == {"a": SetTransaction("a", 1)}
    assert snapshot.domain_metadata() == {"d": DomainMetadata("d", "{}")}
    assert store.calls == []


# ---------------------------------------------------------------- the value itself


def test_pickled_snapshot_gives_equal_files_after_one_listing(table: TableBuilder, store: MemoryStore) -> None:
    table.checkpoint(3)
    snapshot = Snapshot.load(store)
    copy = pickle.loads(pickle.dumps(snapshot))
    copy.store.calls.clear()
    assert (copy.version, copy.schema, copy.timestamp_ms) == (snapshot.version, snapshot.schema, snapshot.timestamp_ms)
    assert live(copy) == live(snapshot)
    listed = [argument for name, argument in copy.store.calls if name == "list_from"]
    assert listed == ["_delta_log"]


def test_snapshot_from_known_parts_reads_nothing(table: TableBuilder, store: MemoryStore) -> None:
    loaded = Snapshot.load(store)
    store.calls.clear()
    snapshot = Snapshot(store, loaded.segment, loaded.protocol, loaded.metadata)
    assert store.calls == []
    assert live(snapshot) == expected(table)


def test_snapshot_keeps_its_version_when_the_table_moves_on(table: TableBuilder, store: MemoryStore) -> None:
    snapshot = Snapshot.load(store)
    table.commit(add("later"))
    assert live(snapshot) == expected(table, 5)


# ---------------------------------------------------------------- commits of 0 bytes


def test_version_of_an_empty_commit_is_the_one_before_it(table: TableBuilder) -> None:
    before = expected(table)
    table.write(f"{6:020d}.json", b"")
    table.commits[6] = []
    assert live(Snapshot.load(table.store)) == live(Snapshot.load(table.store, 6)) == before
    assert Snapshot.load(table.store).version == 6
    table.commit(add("new"))
    assert live(Snapshot.load(table.store)) == expected(table) != before


def test_checkpoint_over_an_empty_commit_has_the_other_commits(table: TableBuilder) -> None:
    table.write(f"{6:020d}.json", b"")
    table.commits[6] = []
    table.commit(remove("5"))
    checkpoint(Snapshot.load(table.store))
    snapshot = Snapshot.load(table.store)
    assert snapshot.segment.checkpoint is not None and not snapshot.segment.commits
    assert live(snapshot) == expected(table)


def test_checksum_beside_an_empty_commit_is_not_believed(table: TableBuilder, caplog: pytest.LogCaptureFixture) -> None:
    """It shows that actions are lost: metadata, and files."""
    before = expected(table, 4)
    table.checksum(5)
    table.write(f"{5:020d}.json", b"")
    snapshot = Snapshot.load(table.store)
    assert live(snapshot) == before and snapshot.segment.checksum is None
    snapshot.check_integrity()


def test_log_of_an_empty_commit_alone_holds_no_table(store: MemoryStore) -> None:
    TableBuilder(store).write(f"{0:020d}.json", b"")
    with pytest.raises(CorruptTableError, match="The protocol of version 0"):
        Snapshot.load(store)
