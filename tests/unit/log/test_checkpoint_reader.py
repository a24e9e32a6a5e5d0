"""Checkpoints by any writer: which columns are read, the source of each part, and which files are unreadable."""

from __future__ import annotations

import datetime
import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py.log.checkpoint_content.checkpoint_files import CheckpointUnreadableError, RawFiles, RequestedStats
from delta_py.log.checkpoint_content.checkpoint_reader import CheckpointReader
from delta_py.log.commit_reader import FILE_SCHEMA, CommitReader
from delta_py.log.segment import load_segment
from delta_py.protocol.paths import decode_path
from delta_py.types.schema import DATE, LONG, STRING, TIMESTAMP
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add, remove, stats, vector

KINDS = ["classic", "multipart", "v2-json", "v2-parquet", "v2-classic"]
ID = ("id",)
PARSED = pa.struct(
    [
        ("numRecords", pa.int64()),
        ("tightBounds", pa.bool_()),
        ("minValues", pa.struct([("id", pa.int64())])),
        ("maxValues", pa.struct([("id", pa.int64())])),
        ("nullCount", pa.struct([("id", pa.int64())])),
    ]
)


@pytest.fixture
def table() -> TableBuilder:
    builder = TableBuilder(MemoryStore())
    builder.create(
        add("a", stats=stats(1, 1, 10), partitionValues={"p": "x", "q": None}),
        add("b%20c", stats=stats(2, 11, 20), deletionVector=vector(), baseRowId=5, defaultRowCommitVersion=0),
        add("d", tags={"t": "u"}, clusteringProvider="liquid"),
        remove("gone"),
        {"txn": {"appId": "app", "version": 3, "lastUpdated": 9}},
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
    )
    return builder


def open_checkpoint(table: TableBuilder) -> CheckpointReader:
    checkpoint = load_segment(table.store).checkpoint
    assert checkpoint is not None
    return CheckpointReader(checkpoint, CommitReader(table.store))


def read(table: TableBuilder, wanted_stats: RequestedStats | None = None) -> list[RawFiles]:
    return list(open_checkpoint(table).files(wanted_stats or RequestedStats()))


def rows(batches: list[RawFiles]) -> list[dict[str, Any]]:
    """Everything except the spelling of the path."""
    file_table = pa.Table.from_batches([batch.files for batch in batches], schema=FILE_SCHEMA)
    assert [decode_path(text) for text in file_table["path_text"].to_pylist()] == file_table["path"].to_pylist()
    return sorted(file_table.drop_columns(["path_text"]).to_pylist(), key=lambda row: row["path"])


# ---------------------------------------------------------------- kinds


@pytest.mark.parametrize("sidecars", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_every_checkpoint_kind_returns_only_its_files(table: TableBuilder, kind: str, sidecars: int) -> None:
    table.checkpoint(kind=kind, sidecars=sidecars)
    file_rows = rows(read(table, RequestedStats(whole=True)))
    assert [row["path"] for row in file_rows] == ["a", "b c", "d"]
    assert file_rows[0] == {
        "path": "a",
        "partition_values": [("p", "x"), ("q", None)],
        "size": 100,
        "modification_time": 1,
        "deletion_vector": None,
        "base_row_id": None,
        "default_row_commit_version": None,
        "stats": stats(1, 1, 10),
        "tags": None,
        "clustering_provider": None,
    }
    assert (dict(file_rows[2]["tags"]), file_rows[2]["clustering_provider"]) == ({"t": "u"}, "liquid")
    unasked = rows(read(table))
    assert [(row["stats"], row["tags"], row["clustering_provider"]) for row in unasked] == [(None, None, None)] * 3
    assert file_rows[1]["deletion_vector"] == vector()
    assert (file_rows[1]["base_row_id"], file_rows[1]["default_row_commit_version"], file_rows[1]["partition_values"]) == (
        5,
        0,
        [],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_checkpoint_kind_returns_actions_as_in_a_commit(table: TableBuilder, kind: str) -> None:
    table.checkpoint(kind=kind)
    reader = open_checkpoint(table)
    assert reader.rows("txn") == [{"appId": "app", "version": 3, "lastUpdated": 9}]
    assert reader.rows("domainMetadata") == [{"domain": "d", "configuration": "{}", "removed": False}]
    (protocol,), (metadata,) = reader.rows("protocol"), reader.rows("metaData")
    assert protocol["minReaderVersion"] == 1
    assert metadata["format"] == {"provider": "parquet", "options": {}}
    assert metadata["configuration"] == {}


def test_sidecar_named_by_a_whole_uri_is_found(table: TableBuilder) -> None:
    sidecar = table.checkpoint(kind="v2-json", sidecars=1)[1]
    name = f"{0:020d}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    text = table.store.read(f"_delta_log/{name}").replace(b'"path": "0-0', b'"path": "s3://b/t/_delta_log/_sidecars/0-0')
    assert b"s3://" in text
    table.write(name, text)
    assert sidecar.startswith("_sidecars/0-0")
    assert len(rows(read(table))) == 3


def test_rows_of_many_row_groups_are_all_read(table: TableBuilder) -> None:
    table.commit(*[add(f"f{n}") for n in range(50)])
    table.checkpoint(batch=7)
    assert len(rows(read(table))) == 53


# ---------------------------------------------------------------- writers


def write(table: TableBuilder, columns: dict[str, Any], **options: Any) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, **options)
    table.write(f"{0:020d}.checkpoint.parquet", sink.getvalue())


def test_checkpoint_that_lacks_optional_columns_has_nulls(table: TableBuilder) -> None:
    write(table, {"add": pa.array([{"path": "a", "size": 1}], pa.struct([("path", pa.string()), ("size", pa.int64())]))})
    reader = open_checkpoint(table)
    (batch,) = reader.files(RequestedStats({ID: LONG}, whole=True))
    assert batch.files.schema == FILE_SCHEMA
    assert {
        name: batch.files[name][0].as_py() for name in FILE_SCHEMA.names if name not in ("path", "path_text", "size")
    } == dict.fromkeys(set(FILE_SCHEMA.names) - {"path", "path_text", "size"})
    assert batch.json is None and batch.parsed is None
    assert reader.rows("txn") == reader.rows("protocol") == []


def test_reader_accepts_large_dictionary_and_narrow_types(table: TableBuilder) -> None:
    narrow = pa.struct(
        [
            ("path", pa.large_string()),
            ("partitionValues", pa.map_(pa.large_string(), pa.large_string())),
            ("size", pa.int32()),
            ("modificationTime", pa.int64()),
            ("stats", pa.large_string()),
        ]
    )
    row = {"path": "a%20b", "partitionValues": [("p", "x")], "size": 1, "modificationTime": 2, "stats": "{}"}
    write(table, {"add": pa.array([row], narrow)})
    (file_row,) = rows(read(table, RequestedStats(whole=True)))
    assert (file_row["path"], file_row["partition_values"], file_row["size"], file_row["stats"]) == ("a b", [("p", "x")], 1, "{}")
    encoded = pa.StructArray.from_arrays([pa.array(["a%20b"]).dictionary_encode(), pa.array([1])], ["path", "size"])
    write(table, {"add": encoded})
    assert rows(read(table))[0]["path"] == "a b"


def test_required_fields_below_null_structs_are_no_actions(table: TableBuilder) -> None:
    vectors = pa.struct(
        [pa.field("storageType", pa.string(), nullable=False), pa.field("pathOrInlineDv", pa.string(), nullable=False)]
    )
    files = pa.struct(
        [pa.field("path", pa.string(), nullable=False), pa.field("size", pa.int64(), nullable=False), ("deletionVector", vectors)]
    )
    versions = pa.struct([pa.field(name, pa.int32(), nullable=False) for name in ("minReaderVersion", "minWriterVersion")])
    write(
        table,
        {
            "add": pa.array([None, {"path": "a", "size": 1, "deletionVector": None}, None], files),
            "protocol": pa.array([{"minReaderVersion": 1, "minWriterVersion": 2}, None, None], versions),
        },
    )
    (row,) = rows(read(table))
    assert (row["path"], row["deletion_vector"]) == ("a", None)
    assert open_checkpoint(table).rows("protocol") == [{"minReaderVersion": 1, "minWriterVersion": 2}]


@pytest.mark.parametrize("lacking", ["storageType", "pathOrInlineDv"])
def test_deletion_vectors_without_a_required_field_are_damage(table: TableBuilder, lacking: str) -> None:
    vector_fields = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "sizeInBytes": 40, "cardinality": 6}
    vectors = {name: value for name, value in vector_fields.items() if name != lacking}
    write(table, {"add": pa.array([{"path": "a", "size": 1, "deletionVector": vectors}])})
    with pytest.raises(CheckpointUnreadableError, match=lacking):
        rows(read(table))


def test_deletion_vectors_in_some_rows_only_stay_with_their_rows(table: TableBuilder) -> None:
    table.commit(
        *[add(f"n{i}", **({"deletionVector": vector(f"v{i}", offset=None if i % 4 else i)} if i % 2 else {})) for i in range(40)]
    )
    table.checkpoint()
    vectors = {row["path"]: row["deletion_vector"] for row in rows(read(table))}
    assert vectors["n4"] is None
    assert vectors["n5"] == vector("v5", offset=None)


# ---------------------------------------------------------------- statistics


def test_statistics_come_from_the_struct_or_else_from_json(table: TableBuilder) -> None:
    table.checkpoint(stats_parsed=PARSED)
    (batch,) = read(table, RequestedStats({ID: LONG, ("other",): STRING}))
    assert dict(batch.parsed_leaves) == {ID: LONG}
    assert dict(batch.json_leaves) == {("other",): STRING}
    assert batch.parsed is not None and batch.parsed.type.field("minValues").type == pa.struct([("id", pa.int64())])
    assert batch.json is not None and batch.json.to_pylist() == [stats(1, 1, 10), stats(2, 11, 20), None]
    assert batch.files["stats"].null_count == 3, "the text was not asked for"


def test_json_is_not_read_when_the_struct_has_every_leaf(table: TableBuilder) -> None:
    table.checkpoint(stats_parsed=PARSED)
    (batch,) = read(table, RequestedStats({ID: LONG}))
    assert batch.json is None
    assert not batch.json_leaves


def test_empty_struct_column_gives_way_to_json(table: TableBuilder) -> None:
    names = table.checkpoint(stats_parsed=PARSED)
    full_table = pq.read_table(pa.BufferReader(table.store.read(f"_delta_log/{names[0]}")))
    adds = full_table["add"].combine_chunks()
    children = [pa.nulls(len(adds), f.type) if f.name == "stats_parsed" else adds.field(f.name) for f in adds.type]
    emptied = pa.StructArray.from_arrays(children, fields=list(adds.type), mask=adds.is_null())
    write(table, {"add": emptied})
    (batch,) = read(table, RequestedStats({ID: LONG}))
    assert dict(batch.json_leaves) == {ID: LONG}


def test_statistics_are_not_read_unless_asked_for(table: TableBuilder) -> None:
    table.checkpoint(stats_parsed=PARSED)
    (batch,) = read(table)
    assert batch.json is None and batch.parsed is None and batch.files["stats"].null_count == 3


def test_leaf_name_with_a_dot_differs_from_a_nested_leaf(table: TableBuilder) -> None:
    values = pa.struct([("a.b", pa.int64()), ("a", pa.struct([("b", pa.int64())]))])
    parsed = pa.struct([("numRecords", pa.int64()), ("minValues", values), ("maxValues", values), ("nullCount", values)])
    one = {"a.b": 1, "a": {"b": 2}}
    row = {"path": "x", "size": 1, "stats_parsed": {"numRecords": 1, "minValues": one, "maxValues": one, "nullCount": one}}
    write(table, {"add": pa.array([row], pa.struct([("path", pa.string()), ("size", pa.int64()), ("stats_parsed", parsed)]))})
    (batch,) = read(table, RequestedStats({("a.b",): LONG, ("a", "b"): LONG}))
    assert set(batch.parsed_leaves) == {("a.b",), ("a", "b")}
    assert batch.parsed is not None
    assert batch.parsed.to_pylist()[0]["minValues"] == one


def test_int96_times_in_the_struct_keep_instants_of_any_year(table: TableBuilder) -> None:
    late = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
    values = pa.struct([("until", pa.timestamp("us", "UTC"))])
    parsed = pa.struct([("numRecords", pa.int64()), ("minValues", values), ("maxValues", values)])
    bound = {"until": late}
    row = {"path": "x", "size": 1, "stats_parsed": {"numRecords": 1, "minValues": bound, "maxValues": bound}}
    adds = pa.array([row], pa.struct([("path", pa.string()), ("size", pa.int64()), ("stats_parsed", parsed)]))
    write(table, {"add": adds}, use_deprecated_int96_timestamps=True, store_schema=False)
    (batch,) = read(table, RequestedStats({("until",): TIMESTAMP}))
    assert batch.parsed is not None
    assert batch.parsed.to_pylist()[0]["maxValues"] == {"until": late}
    (batch,) = read(table, RequestedStats(whole=True))
    assert json.loads(batch.files["stats"][0].as_py())["maxValues"]["until"] == "9999-12-31T23:59:59.000000Z"


@pytest.mark.parametrize("mark", ["org.apache.spark.legacyINT96", "org.apache.spark.legacyDateTime", None])
def test_old_legacy_calendar_times_in_the_struct_are_unknown(table: TableBuilder, mark: str | None) -> None:
    kinds = [("at", pa.timestamp("us", "UTC")), ("day", pa.date32())]
    old = {"at": datetime.datetime(1500, 1, 10, tzinfo=datetime.UTC), "day": datetime.date(1500, 1, 10)}
    new = {"at": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), "day": datetime.date(2020, 1, 1)}
    parsed = pa.struct([("numRecords", pa.int64()), ("minValues", pa.struct(kinds)), ("maxValues", pa.struct(kinds))])
    row = {"path": "x", "size": 1, "stats_parsed": {"numRecords": 1, "minValues": old, "maxValues": new}}
    adds = pa.array([row], pa.struct([("path", pa.string()), ("size", pa.int64()), ("stats_parsed", parsed)]))
    footer_metadata = {"org.apache.spark.version": "4.0.0", **({} if mark is None else {mark: ""})}
    sink = io.BytesIO()
    pq.write_table(pa.table({"add": adds}).replace_schema_metadata(footer_metadata), sink)
    table.write(f"{0:020d}.checkpoint.parquet", sink.getvalue())
    (batch,) = read(table, RequestedStats({("at",): TIMESTAMP, ("day",): DATE}))
    assert batch.parsed is not None
    unknown = {"at": None, "day": None}
    assert batch.parsed.to_pylist() == [{"numRecords": 1, "minValues": unknown if mark else old, "maxValues": new}]


# ---------------------------------------------------------------- unreadable


def unreadable(table: TableBuilder) -> CheckpointUnreadableError:
    with pytest.raises(CheckpointUnreadableError) as caught:
        read(table)
    return caught.value


@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-parquet"])
def test_parquet_file_cut_short_is_unreadable_by_name(table: TableBuilder, kind: str) -> None:
    name = table.checkpoint(kind=kind)[-1]
    data = table.store.read(f"_delta_log/{name}")
    table.write(name, data[: len(data) // 2])
    assert name in unreadable(table).message


@pytest.mark.parametrize("kind", ["v2-json", "v2-parquet"])
def test_missing_sidecar_is_found_when_the_checkpoint_is_opened(table: TableBuilder, kind: str) -> None:
    name = table.checkpoint(kind=kind, sidecars=2)[-1]
    table.delete(name)
    with pytest.raises(CheckpointUnreadableError, match=name):
        open_checkpoint(table)


@pytest.mark.parametrize("kind", ["v2-json", "v2-parquet"])
def test_other_file_in_place_of_a_sidecar_is_unreadable_by_name(table: TableBuilder, kind: str) -> None:
    """It may contain no files at all, like a checkpoint that has sidecars itself."""
    *_, other, name = table.checkpoint(kind=kind, sidecars=2)
    data = table.store.read(f"_delta_log/{name}")
    assert len(rows(read(table))) == 3
    for content in (table.store.read(f"_delta_log/{other}"), pq_of_no_action()):
        table.write(name, content)
        message = unreadable(table).message
        assert name in message and f"it has {len(content)} bytes, but its sidecar action says {len(data)}" in message


def pq_of_no_action() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"protocol": pa.array([None], pa.struct([("minReaderVersion", pa.int32())]))}), sink)
    return sink.getvalue()


def test_changed_byte_under_a_page_checksum_names_the_file(table: TableBuilder) -> None:
    (name,) = table.checkpoint()
    full_table = pq.read_table(pa.BufferReader(table.store.read(f"_delta_log/{name}")))
    sink = io.BytesIO()
    pq.write_table(full_table, sink, write_page_checksum=True, use_dictionary=False, compression="none")
    table.write(name, sink.getvalue())
    assert len(rows(read(table))) == 3
    group = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)
    (chunk,) = [group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema == "add.size"]
    data = bytearray(sink.getvalue())
    data[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 0xFF
    table.write(name, bytes(data))
    assert name in unreadable(table).message


def test_damaged_line_of_a_json_checkpoint_is_unreadable_by_name(table: TableBuilder) -> None:
    (name,) = table.checkpoint(kind="v2-json")
    table.write(name, table.store.read(f"_delta_log/{name}")[:-20])
    assert name in unreadable(table).message


@pytest.mark.parametrize("line_count", [1, 2, 4, 6])
def test_json_checkpoint_cut_after_a_whole_line_is_unreadable(table: TableBuilder, line_count: int) -> None:
    name = table.checkpoint(kind="v2-json", sidecars=2)[0]
    lines = table.store.read(f"_delta_log/{name}").splitlines(keepends=True)
    table.write(name, b"".join(lines[:line_count]))
    assert "cut short" in unreadable(table).message


def test_json_checkpoint_with_damaged_sidecar_is_unreadable(table: TableBuilder) -> None:
    name = table.checkpoint(kind="v2-json", sidecars=1)[0]
    table.write(name, table.store.read(f"_delta_log/{name}").replace(b'"sidecar": {"path": ', b'"sidecar": {"road": '))
    assert "a sidecar's path is None" in unreadable(table).message


@pytest.mark.parametrize("size", [-1, None])
def test_absurd_size_is_unreadable_and_names_the_file(table: TableBuilder, size: int | None) -> None:
    write(table, {"add": pa.array([{"path": "x", "size": size}], pa.struct([("path", pa.string()), ("size", pa.int64())]))})
    assert f"the file x has size {size}" in unreadable(table).message


@pytest.mark.parametrize("tags", ['"x"', "5", "[1]", '{"sidecarSizeInBytes": "' + "9" * 5000 + '"}'])
def test_json_checkpoint_with_odd_tags_is_unreadable(table: TableBuilder, tags: str) -> None:
    name, *_ = table.checkpoint(kind="v2-json", sidecars=2)
    text = json.dumps({"checkpointMetadata": {"version": 2, "tags": "@"}}).replace('"@"', tags)
    lines = table.store.read(f"_delta_log/{name}").splitlines()
    table.write(name, b"\n".join([text.encode(), *lines[1:]]))
    assert name in unreadable(table).message


@pytest.mark.parametrize("column", ["add", "remove", "txn", "metaData", "sidecar"])
def test_column_of_an_action_that_is_no_struct_is_unreadable(table: TableBuilder, column: str) -> None:
    name, *_ = table.checkpoint(kind="v2-parquet", sidecars=0)
    rows = pq.read_table(pa.BufferReader(table.store.read(f"_delta_log/{name}")))
    sink = pa.BufferOutputStream()
    pq.write_table(rows.set_column(rows.column_names.index(column), column, pa.nulls(rows.num_rows, pa.float64())), sink)
    table.write(name, sink.getvalue().to_pybytes())
    assert name in unreadable(table).message


def test_column_of_another_type_is_unreadable(table: TableBuilder) -> None:
    write(table, {"add": pa.array([{"path": "x", "size": "big"}], pa.struct([("path", pa.string()), ("size", pa.string())]))})
    assert "big" in unreadable(table).message


def test_classic_checkpoint_without_add_column_is_unreadable(table: TableBuilder) -> None:
    (name,) = table.checkpoint()
    full_table = pq.read_table(pa.BufferReader(table.store.read(f"_delta_log/{name}")))
    write(table, {column: full_table[column] for column in full_table.column_names if column != "add"})
    assert "it has no column add" in unreadable(table).message


@pytest.mark.parametrize("action", [b"true", b'"x"', b"[]"])
def test_json_checkpoint_with_a_non_object_action_is_unreadable(table: TableBuilder, action: bytes) -> None:
    name = table.checkpoint(kind="v2-json", sidecars=2)[0]
    table.write(name, table.store.read(f"_delta_log/{name}") + b'{"sidecar": ' + action + b"}\n")
    assert "its sidecar is no object" in unreadable(table).message


@pytest.mark.parametrize("path", [b"{}", b"5", b"null"])
def test_json_checkpoint_with_a_nameless_sidecar_is_unreadable(table: TableBuilder, path: bytes) -> None:
    name = table.checkpoint(kind="v2-json", sidecars=1)[0]
    table.write(name, table.store.read(f"_delta_log/{name}") + b'{"sidecar": {"path": ' + path + b"}}\n")
    assert "a sidecar's path is" in unreadable(table).message


def test_sidecar_that_is_named_twice_counts_once(table: TableBuilder) -> None:
    name = table.checkpoint(kind="v2-json", sidecars=2)[0]
    lines = table.store.read(f"_delta_log/{name}").splitlines(keepends=True)
    table.write(name, b"".join([*lines, *(line for line in lines if b'"sidecar"' in line)]))
    assert [row["path"] for row in rows(read(table))] == ["a", "b c", "d"]


def test_deletion_vectors_that_are_no_structs_are_unreadable(table: TableBuilder) -> None:
    kind = pa.struct([("path", pa.string()), ("size", pa.int64()), ("deletionVector", pa.float64())])
    write(table, {"add": pa.array([{"path": "x", "size": 1, "deletionVector": 1.5}], kind)})
    assert "deletionVector" in unreadable(table).message


def test_chunk_of_a_wrong_type_is_unreadable_without_a_crash(table: TableBuilder) -> None:
    (name,) = table.checkpoint()
    data = table.store.read(f"_delta_log/{name}")
    length = int.from_bytes(data[-8:-4], "little")
    body, footer = data[: -8 - length], data[-8 - length :]
    # Thrift: ColumnMetaData begins; its field 1, the type: int32 and byte array; then a list of encodings.
    number, text = bytes([0x1C, 0x15, 2, 0x19]), bytes([0x1C, 0x15, 12, 0x19])
    assert footer.count(number) >= 1, "the versions of the protocol"
    table.write(name, body + footer.replace(number, text))
    with pytest.raises(CheckpointUnreadableError, match="says it is of"):
        open_checkpoint(table).rows("protocol")
