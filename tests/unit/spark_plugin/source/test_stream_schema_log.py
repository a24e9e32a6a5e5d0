"""A stream that follows changes of its table's schema, with a schema log: called as Spark's workers call it."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from delta_py import write_delta
from delta_py.errors import CorruptTableError, DeltaError, InvalidOptionError, SchemaMismatchError, UnsupportedOperationError
from delta_py.streaming.schema_evolution import java_hash
from delta_py.types.schema import StructType, find_path, parse_schema, schema_to_json
from spark_plugin.options.private import signed
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.session_source import source_with
from spark_plugin.streaming.stream_reader import DeltaStreamReader, pin_stream
from tests.support.tables.changing_table import Table, rows


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


class Query:
    """What Spark does with a source: after a stop, a new source continues from the offsets."""

    def __init__(self, table: Table, root: Path, **options: str) -> None:
        self.checkpoint = root / "checkpoint"
        self.checkpoint.mkdir(exist_ok=True)
        (self.checkpoint / "metadata").write_text('{"id":"1"}')
        self.options = {"path": table.path, "schemaTrackingLocation": str(self.checkpoint), **options}
        self.offsets: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []

    def open(self, **options: str) -> DeltaStreamReader:
        query_options = {**self.options, **options}
        reader = source_with("n")(signed(query_options, "n")).streamReader(to_spark_schema(pin_stream(query_options).schema))
        assert isinstance(reader, DeltaStreamReader)
        return reader

    def run(self, **options: str) -> list[dict[str, Any]]:
        """The rows until none remain."""
        before, reader = len(self.rows), self.open(**options)
        reader.prepareForTriggerAvailableNow()
        while self.step(reader):
            pass
        return self.rows[before:]

    def step(self, reader: DeltaStreamReader) -> bool:
        start = self.offsets[-1] if self.offsets else reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        if end == start:
            return False
        self.offsets.append(end)
        if len(self.offsets) > 1:  # Spark reports it when it records the next batch
            reader.commit(self.offsets[-2])
        self.rows += batch_rows(reader, start, end)
        return True

    def stopped(self, **options: str) -> str:
        """The condition with which a run ends."""
        with pytest.raises(DeltaError) as caught:
            self.run(**options)
        return caught.value.error_class

    @property
    def log(self) -> list[dict[str, Any]]:
        (folder,) = self.checkpoint.glob("_schema_log_*")
        entries = []
        for number in range(len(list(folder.iterdir()))):
            form, text = (folder / str(number)).read_text().split("\n")
            assert form == "v1"
            entries.append(json.loads(text))
        return entries


def batch_rows(reader: DeltaStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    task: DeltaStreamReader = pickle.loads(pickle.dumps(reader))
    return [
        {name: value for name, value in row.items() if not name.startswith("_commit")}
        for part in reader.partitions(start, end)
        for batch in task.read(part)
        for row in batch.to_pylist()
    ]


EVOLUTION = "DELTA_STREAMING_METADATA_EVOLUTION"
BLOCKED = "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"


def test_stream_with_log_stops_at_rename_and_uses_both_schemas(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path)
    assert sorted(row["id"] for row in query.run()) == [1, 2]
    table.add(3, a="a", b="b")
    version = table.rename("b", "c")
    table.add(4, a="a", c="c")
    assert query.stopped() == EVOLUTION
    assert query.rows[2:] == [{"id": 3, "a": "a 3", "b": "b 3"}]
    assert [(place["reservoirVersion"], place["index"]) for place in query.offsets[-2:]] == [(version, -20), (version, -19)]
    assert query.stopped() == BLOCKED
    assert query.run(allowSourceColumnRename=str(version)) == [{"id": 4, "a": "a 4", "c": "c 4"}]
    assert [entry["deltaCommitVersion"] for entry in query.log] == [0, version]
    table.add(5, a="a", c="c")
    assert query.run(allowSourceColumnRename="always") == [{"id": 5, "a": "a 5", "c": "c 5"}]


@pytest.mark.parametrize(
    "change, option, other, expected",
    [
        (lambda table: table.drop("b"), "allowSourceColumnDrop", "allowSourceColumnRename", {"id": 4, "a": "a 4"}),
        (
            lambda table: table.retype("id", "long"),
            "allowSourceColumnTypeChange",
            "allowSourceColumnDrop",
            {"id": 4, "a": "a 4", "b": None},
        ),
    ],
    ids=["drop", "type"],
)
def test_stream_with_a_log_goes_on_after_what_its_option_allows(
    table: Table, tmp_path: Path, change: Any, option: str, other: str, expected: dict[str, Any]
) -> None:
    query = Query(table, tmp_path)
    query.run()
    version = change(table)
    table.add(4, a="a")
    assert query.stopped() == EVOLUTION
    assert query.stopped(**{other: "always"}) == BLOCKED
    assert query.stopped(**{option: str(version + 1)}) == BLOCKED
    assert query.run(**{option: "always"}) == [expected]


def test_stream_with_log_restarts_freely_after_an_added_column(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path)
    query.run()
    table.add(3, a="a", b="b", more="m")
    table.add(4, a="a", b="b", more="m")
    assert query.stopped() == EVOLUTION
    assert query.rows[2:] == [], "the commit with the change is not read yet"
    assert query.run() == [{"id": id, "a": f"a {id}", "b": f"b {id}", "more": f"m {id}"} for id in (3, 4)]


def test_stream_with_log_takes_consecutive_changes_as_one(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path)
    query.run()
    table.rename("b", "c")
    table.rename("c", "d")
    last = table.drop("a")
    table.add(3, d="d")
    assert query.stopped() == EVOLUTION
    assert query.stopped(allowSourceColumnRename="always") == BLOCKED
    assert query.run(allowSourceColumnRename="always", allowSourceColumnDrop=str(last)) == [{"id": 3, "d": "d 3"}]
    assert [entry["deltaCommitVersion"] for entry in query.log] == [0, last - 2, last]
    assert query.log[-1]["previousMetadataSeqNum"] == 0


def test_session_setting_allows_changes_of_all_or_one_stream(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path)
    query.run()
    version = table.rename("b", "c")
    table.add(3, a="a", c="c")
    assert query.stopped() == EVOLUTION
    conf = "spark.databricks.delta.streaming.allowSourceColumn"
    mine = java_hash(f"file:{query.checkpoint}/sources/0")
    for name, value in (("Drop", "always"), ("Rename.ckpt_1", "always"), (f"Rename.ckpt_{mine}", str(version + 1))):
        assert query.stopped(**session(conf + name, value)) == BLOCKED
    for name, value in (("RenameAndDrop", "always"), ("Rename", "ALWAYS"), (f"RenameAndDrop.ckpt_{mine}", str(version))):
        offsets = list(query.offsets)
        assert [row["id"] for row in query.run(**session(conf + name, value))] == [3]
        query.offsets = offsets


def session(name: str, value: str) -> dict[str, str]:
    return {"pydelta.session": json.dumps({"confs": {name: value}}), "pydelta.stream": "true"}


def test_change_feed_with_a_log_follows_the_schema(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path, readChangeFeed="true", startingVersion="0", allowSourceColumnDrop="always")
    query.run()
    table.drop("b")
    write_delta(table.path, rows(7, a="a"), mode="overwrite", replace_where="id IN (1, 7)")
    assert query.stopped() == EVOLUTION
    feed_rows = query.run()
    assert sorted((row["_change_type"], row["id"], row["a"]) for row in feed_rows) == [("delete", 1, "a 1"), ("insert", 7, "a 7")]
    assert all("b" not in row for row in feed_rows)


def test_commits_before_one_that_stops_the_stream_are_read(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path, readChangeFeed="true", startingVersion="0")
    query.run()
    table.add(7)
    table.add(8)
    table.change(lambda fields: fields, **{"delta.enableChangeDataFeed": "false"})
    before = len(query.rows)
    assert query.stopped() == "DELTA_MISSING_CHANGE_DATA"
    assert [row["id"] for row in query.rows[before:]] == [7, 8]


def test_stream_before_a_change_stops_then_uses_the_old_schema(table: Table, tmp_path: Path) -> None:
    table.rename("b", "c")
    table.add(3, a="a", c="c")
    query = Query(table, tmp_path, startingVersion="0", allowSourceColumnRename="always")
    assert (query.stopped(), query.rows) == (EVOLUTION, [])
    assert query.stopped() == EVOLUTION
    assert query.rows == [{"id": 1, "a": "a 1", "b": "b 1"}, {"id": 2, "a": "a 2", "b": "b 2"}]
    assert query.run() == [{"id": 3, "a": "a 3", "c": "c 3"}]


def test_schema_change_before_the_first_read_replaces_the_entry(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path)
    reader = query.open()
    reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())  # the log begins, and the query is killed
    table.add(3, a="a", b="b")
    table.rename("b", "c")
    assert query.stopped() == EVOLUTION
    assert sorted(row["c"] for row in query.run()) == ["b 1", "b 2", "b 3"]
    assert query.log[-1]["previousMetadataSeqNum"] == -1


def test_log_added_to_a_running_stream_starts_at_its_offset(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path)
    query.options.pop("schemaTrackingLocation")
    query.run()
    table.add(3, a="a", b="b")
    table.rename("b", "c")
    table.add(4, a="a", c="c")
    assert query.stopped() == "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
    query.options.update(schemaTrackingLocation=str(query.checkpoint), allowSourceColumnRename="always")
    assert [query.stopped(), query.stopped()] == [EVOLUTION, EVOLUTION]
    assert query.rows[2:] == [{"id": 3, "a": "a 3", "b": "b 3"}]
    assert query.run() == [{"id": 4, "a": "a 4", "c": "c 4"}]


def test_batch_planned_before_the_log_needs_one_schema(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path, startingVersion="0")
    table.add(3, a="a", b="b")
    place = query.open().initialOffset()
    ends = {version: {**place, "reservoirVersion": version, "begins": False} for version in (2, 4)}
    assert len(batch_rows(query.open(), place, ends[2])) == 3
    assert [entry["deltaCommitVersion"] for entry in query.log] == [1]
    for path in query.checkpoint.glob("_schema_log_*/*"):
        path.unlink()
    table.rename("b", "c")
    table.add(4, a="a", c="c")
    with pytest.raises(SchemaMismatchError) as caught:
        batch_rows(query.open(), place, ends[4])
    assert caught.value.error_class == "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA"


def test_types_that_do_not_widen_stop_the_stream_for_good(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path)
    query.run()
    table.retype("id", "string")
    assert query.stopped() == EVOLUTION
    assert query.stopped(allowSourceColumnTypeChange="always") == "DELTA_SCHEMA_CHANGED_WITH_VERSION"


def test_stream_loaded_before_a_schema_entry_must_reload(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path)
    query.run()
    pinned = pin_stream(query.options)
    table.add(3, a="a", b="b", more="m")
    assert query.stopped() == EVOLUTION
    with pytest.raises(SchemaMismatchError) as caught:
        DeltaStreamReader(pinned, to_spark_schema(pinned.schema))
    assert caught.value.error_class == "DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART"


def test_log_that_is_not_this_streams_is_refused(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path)
    query.run()
    first, second = query.open(), query.open()
    version = table.rename("b", "c")
    change = {**query.offsets[-1], "reservoirVersion": version, "index": -20, "sourceVersion": 3}
    with pytest.raises(SchemaMismatchError, match=EVOLUTION):
        first.commit(change)
    with pytest.raises(InvalidOptionError) as caught:
        second.commit(change)
    assert caught.value.error_class == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
    (folder,) = query.checkpoint.glob("_schema_log_*")
    entry = (folder / "1").read_text()
    (folder / "1").write_text(entry.replace(f"file:{query.checkpoint}", "file:/elsewhere"))
    assert query.stopped(allowSourceColumnRename="always") == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
    (folder / "1").write_text(entry.replace('"tableId":"', '"tableId":"x'))
    assert query.stopped() == "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID"


def test_stream_that_died_before_a_schema_entry_writes_it_later(table: Table, tmp_path: Path) -> None:
    """Spark records the next batch, and only then reports that the batch before the change is done."""
    query = Query(table, tmp_path)
    query.run()
    version = table.rename("b", "c")
    table.add(4, a="a", c="c")
    reader = query.open()
    for _ in range(2):
        start = query.offsets[-1]
        query.offsets.append(reader.latestOffset(start, reader.getDefaultReadLimit()))
    assert [(place["reservoirVersion"], place["index"]) for place in query.offsets[-2:]] == [(version, -20), (version, -19)]
    assert batch_rows(query.open(), *query.offsets[-2:]) == []
    assert query.stopped() == EVOLUTION
    assert query.run(allowSourceColumnRename="always") == [{"id": 4, "a": "a 4", "c": "c 4"}]


DEEP = "[" * 1_000 + "]" * 1_000
ODD_FIELDS = {
    "tableId": [DEEP, "5", "null"],
    "deltaCommitVersion": [DEEP, "-1", "1.0", "true", str(2**63)],
    "dataSchemaJson": [DEEP, "null", "{}", '"{}"', '"x"', '"[]"', json.dumps(DEEP)],
    "partitionSchemaJson": [DEEP, "5", '"[]"', json.dumps(DEEP), '"{\\"type\\":\\"struct\\",\\"fields\\":[{\\"name\\":5}]}"'],
    "sourceMetadataPath": [DEEP, "null", "[]"],
    "tableConfigurations": [DEEP, "[]", '"x"', '{"delta.columnMapping.mode":[]}'],
    "protocolJson": [DEEP, "5", '"5"', '"{}"', '"[]"', '"{\\"protocol\\":[]}"', '"{\\"protocol\\":{\\"minReaderVersion\\":[]}}"'],
    "previousMetadataSeqNum": [DEEP, "-2", '"0"', "1.0", str(2**63), "99"],
}


@pytest.mark.parametrize("name", ["whole", *ODD_FIELDS])
def test_damaged_schema_log_entry_is_refused(table: Table, tmp_path: Path, name: str) -> None:
    query = Query(table, tmp_path)
    query.run()
    table.rename("b", "c")
    assert query.stopped() == EVOLUTION
    (folder,) = query.checkpoint.glob("_schema_log_*")
    entry = (folder / "1").read_text()
    value = json.loads(entry[3:])
    wholes = ["", entry[:-20], entry.replace("v1", "v2"), "v1\n{}", "v1\n[]", "v1\n5", "v1\nnull", 'v1\n"x"', f"v1\n{DEEP}"]
    fields = ODD_FIELDS.get(name, [])
    for damaged in [f"v1\n{json.dumps({**value, name: '@'}).replace(json.dumps('@'), odd)}" for odd in fields] or wholes:
        (folder / "1").write_text(damaged)
        with pytest.raises(DeltaError) as damage:
            query.open(allowSourceColumnRename="always")
        assert damage.value.error_class == "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED", damaged


@pytest.mark.parametrize("table_id", ["x/../../evil", "a/b", "/etc", "a\\u0000b", "a\\nb", "a\\\\b", "x" * 300])
def test_log_goes_to_no_place_that_the_tables_id_names(table: Table, tmp_path: Path, table_id: str) -> None:
    for file in Path(table.path, "_delta_log").iterdir():
        text = file.read_text()
        file.write_text(re.sub(r'"id":"[^"]+"', lambda _: f'"id":"{table_id}"', text)) if "metaData" in text else file.unlink()
    for file in Path(table.path, "_delta_log").glob("*.crc"):
        file.unlink()
    query = Query(table, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CorruptTableError, match="after the table's id"):
        query.open()
    assert sorted(tmp_path.rglob("*")) == before


def test_sources_of_one_query_have_logs_by_tracking_id(table: Table, tmp_path: Path) -> None:
    for name in ("left", "right"):
        Query(table, tmp_path, streamingSourceTrackingId=name).run()
    assert sorted(path.name.rpartition("_")[2] for path in (tmp_path / "checkpoint").glob("_schema_log_*")) == ["left", "right"]


@pytest.mark.parametrize(
    "options, error",
    [
        ({"schemaTrackingLocation": "/nowhere"}, "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT"),
        ({"schemaLocation": "/other"}, "DELTA_ILLEGAL_OPTION"),
        ({"allowSourceColumnDrop": "sometimes"}, "DELTA_ILLEGAL_OPTION"),
        ({"failOnDataLoss": "false"}, "DELTA_OPERATION_NOT_SUPPORTED"),
    ],
    ids=str,
)
def test_option_of_schema_tracking_that_cannot_be_is_refused(
    table: Table, tmp_path: Path, options: dict[str, str], error: str
) -> None:
    with pytest.raises((InvalidOptionError, UnsupportedOperationError)) as caught:
        Query(table, tmp_path).open(**options)
    assert caught.value.error_class == error


def test_place_at_a_change_of_the_schema_needs_the_log(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path)
    query.run()
    table.rename("b", "c")
    query.stopped()
    query.options.pop("schemaTrackingLocation")
    with pytest.raises(UnsupportedOperationError, match="schemaTrackingLocation"):
        query.run()


def test_numbers_of_identity_columns_are_no_change(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path)
    mark = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True}

    def marked(number: int) -> Any:
        more = {**mark, "delta.identity.highWaterMark": number}
        return lambda fields: [{**f, "metadata": {**f["metadata"], **(more if f["name"] == "id" else {})}} for f in fields]

    table.change(marked(1))
    query.run()
    table.change(marked(2))
    assert query.run() == [] and len(query.log) == 1


def test_entry_says_what_the_reference_says(table: Table, tmp_path: Path) -> None:
    """The names and forms of its values; tests/interop shows that delta-spark reads it."""
    query = Query(table, tmp_path)
    query.run()
    (entry,) = query.log
    schema = parse_schema(entry["dataSchemaJson"])
    assert schema.names == ("id", "a", "b") and schema_to_json(schema) == schema_to_json(StructType(schema.fields))
    assert find_path(schema, ("a",))[0].metadata["delta.columnMapping.id"] == 2
    assert json.loads(entry["protocolJson"])["protocol"]["minReaderVersion"] >= 2
    assert entry["tableConfigurations"]["delta.columnMapping.mode"] == "name"
    assert (entry["partitionSchemaJson"], entry["sourceMetadataPath"]) == (
        '{"type":"struct","fields":[]}',
        f"file:{query.checkpoint}/sources/0",
    )
