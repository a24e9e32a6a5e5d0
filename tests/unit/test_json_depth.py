"""Deeply nested JSON, wherever a table has JSON: every operation on the table returns the rows, or raises our error."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import set_properties
from delta_py.copies.clone import clone_table
from delta_py.copies.restore import restore
from delta_py.errors import DeltaError
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.table_config import TableConfig
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.streaming.batch_limits import Limits
from delta_py.streaming.offset import StreamOffset
from delta_py.streaming.schema_log import SchemaLog
from delta_py.streaming.source import StreamSource
from delta_py.streaming.stream_options import StreamStart
from tests.support.runs.sampling import sampled
from tests.support.tables.table_builder import TableBuilder, add

DEPTHS = {"deeper than is written": 300, "as deep as is parsed": 1000, "deeper than the stack": 200_000}
DEEP = "a value that is nested"  # a placeholder for the nested value in the output of json.dumps
LAST = 5
PROPERTIES = {"delta.checkpointInterval": "3", "delta.enableChangeDataFeed": "true"}


def array(depth: int) -> str:
    return "[" * depth + "]" * depth


def objects(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


# ---------------------------------------------------------------- where it stands


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _change(path: Path, change: Callable[[list[dict[str, Any]]], None], deep: str) -> None:
    actions = _lines(path)
    change(actions)
    text = "".join(json.dumps(action) + "\n" for action in actions)
    quoted = json.dumps(json.dumps(deep)[1:-1])[1:-1]  # within a text, once and twice
    path.write_text(text.replace(f'\\\\\\"{DEEP}\\\\\\"', quoted).replace(f'\\"{DEEP}\\"', quoted).replace(f'"{DEEP}"', deep))


def _body(actions: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(action[name] for action in actions if name in action)


def _of_commit(name: str, field: str, value: Any = DEEP) -> Callable[[Path, str], None]:
    """In the newest commit, which repeats protocol and metadata of the first one."""

    def put(table: Path, deep: str) -> None:
        log = table / "_delta_log"
        for checksum in log.glob("*.crc"):
            checksum.unlink()
        repeated = [{name: _body(_lines(log / f"{0:020d}.json"), name)}] if name in ("protocol", "metaData") else []

        def change(actions: list[dict[str, Any]]) -> None:
            actions.extend(repeated)
            _body(actions, name)[field] = value

        _change(log / f"{LAST:020d}.json", change, deep)

    return put


def _statistics(table: Path, deep: str) -> None:
    """In the statistics of a file, which are JSON in a text."""
    text = json.dumps({"numRecords": 2, "minValues": {"id": DEEP}, "maxValues": {"id": 9}, "nullCount": {"id": DEEP}, "x": DEEP})
    _of_commit("add", "stats", text)(table, deep)


def _schema(field: dict[str, Any]) -> Callable[[Path, str], None]:
    fields = [{"name": "id", "type": "long", "nullable": True, "metadata": {}, **field}]
    return _of_commit("metaData", "schemaString", json.dumps({"type": "struct", "fields": fields}))


def _new_action(name: str, value: Any) -> Callable[[Path, str], None]:
    return lambda table, deep: _change(
        table / "_delta_log" / f"{LAST:020d}.json", lambda actions: actions.append({name: value}), deep
    )


def _checksum(field: str) -> Callable[[Path, str], None]:
    def put(table: Path, deep: str) -> None:
        _change(table / "_delta_log" / f"{LAST:020d}.crc", lambda values: values[0].update({field: DEEP}), deep)

    return put


def _hint(table: Path, deep: str) -> None:
    (table / "_delta_log" / "_last_checkpoint").write_text(f'{{"version":3,"checksum":"x","size":5,"a":{deep}}}')


def _compaction(table: Path, deep: str) -> None:
    name = table / "_delta_log" / f"{1:020d}.{2:020d}.compacted.json"
    lines = [line for version in (1, 2) for line in (table / "_delta_log" / f"{version:020d}.json").read_text().splitlines()]
    name.write_text("\n".join([*(line for line in lines if "commitInfo" not in line), f'{{"x":{deep}}}']))


PLACES: dict[str, Callable[[Path, str], None]] = {
    "unknown action": _new_action("x", DEEP),
    "unknown field": _of_commit("add", "x"),
    "tags": _of_commit("add", "tags"),
    "a tag": _of_commit("add", "tags", {"x": DEEP}),
    "partition values": _of_commit("add", "partitionValues"),
    "deletion vector": _of_commit("add", "deletionVector"),
    "statistics": _statistics,
    "commitInfo": _of_commit("commitInfo", "operationParameters"),
    "a parameter": _of_commit("commitInfo", "operationParameters", {"predicate": DEEP}),
    "configuration": _of_commit("metaData", "configuration", {"x": DEEP}),
    "format": _of_commit("metaData", "format"),
    "partition columns": _of_commit("metaData", "partitionColumns"),
    "features": _of_commit("protocol", "writerFeatures"),
    "type in the schema": _schema({"type": DEEP}),
    "metadata of a field": _schema({"metadata": {"x": DEEP}}),
    "invariant": _schema({"metadata": {"delta.invariants": json.dumps({"expression": {"expression": DEEP}})}}),
    "domain": _new_action("domainMetadata", {"domain": "x", "configuration": DEEP, "removed": False}),
    "domain's text": _new_action(
        "domainMetadata", {"domain": "delta.clustering", "configuration": json.dumps(DEEP), "removed": False}
    ),
    "transaction": _new_action("txn", {"appId": DEEP, "version": 1}),
    "change data": _new_action("cdc", {"path": DEEP, "partitionValues": DEEP, "size": 1}),
    "checksum, unknown field": _checksum("x"),
    "checksum, domains": _checksum("domainMetadata"),
    "hint": _hint,
    "compaction": _compaction,
}


# ---------------------------------------------------------------- what is done


def _stream(table: str) -> None:
    source = StreamSource(Snapshot.load(LocalStore(table)))
    start = source.initial_offset(StreamStart(version=0))
    source.plan(start, source.admit(start, Limits(None, None)))


ROWS = pa.table({"id": pa.array([7, 8], pa.int64())})
USES: dict[str, Callable[[str], object]] = {
    "read": lambda table: DeltaTable(table).to_arrow(filter="id > 3"),
    "files": lambda table: DeltaTable(table).files(),
    "history": lambda table: DeltaTable(table).history(),
    "changes": lambda table: DeltaTable(table).changes(starting_version=0),
    "stream": _stream,
    "append": lambda table: write_delta(table, ROWS, mode="append"),
    "delete rows": lambda table: write_delta(table, ROWS.slice(0, 0), mode="overwrite", replace_where="id = 5"),
    "checkpoint": lambda table: DeltaTable(table).checkpoint(),
    "properties": lambda table: set_properties(LocalStore(table), {"delta.enableDeletionVectors": "true"}),
    "restore": lambda table: restore(LocalStore(table), version=1),
    "clone": lambda table: clone_table(Snapshot.load(LocalStore(table)), LocalStore(table + "-clone")),
    "read afterwards": lambda table: DeltaTable(table).to_arrow(),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("depth") / "t"
    for number in range(LAST + 1):
        configuration = {"configuration": PROPERTIES} if number == 0 else {}
        write_delta(str(path), pa.table({"id": pa.array([number, number + 1], pa.int64())}), mode="append", **configuration)  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize(("place", "depth"), sampled(product(PLACES, DEPTHS), 4))
def test_deeply_nested_value_is_ignored_or_a_delta_error(
    table: Path, tmp_path: Path, place: str, depth: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYDELTA_POST_COMMIT_ERRORS", "mistakes")
    path = tmp_path / "t"
    shutil.copytree(table, path)
    form = array if len(place) % 2 else objects
    PLACES[place](path, form(DEPTHS[depth]))
    for use in USES.values():
        _only_our_errors(lambda use=use: use(str(path)))  # type: ignore[misc]


def _only_our_errors(use: Callable[[], object]) -> None:
    try:
        use()
    except DeltaError as error:
        assert len(error.message) < 10_000


# ---------------------------------------------------------------- checkpoints in JSON, logs of schemas, offsets


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(("action", "field"), [("sidecar", "path"), ("sidecar", "x"), ("checkpointMetadata", "tags"), ("x", "x")])
def test_checkpoint_in_json_that_is_nested_deep(tmp_path: Path, action: str, field: str, depth: str) -> None:
    builder = TableBuilder(LocalStore(str(tmp_path)))
    builder.commit(builder.protocol(features=["v2Checkpoint"]), builder.metadata(), add("a"), add("b"))
    (name, *_) = builder.checkpoint(kind="v2-json", sidecars=2)
    checkpoint = tmp_path / "_delta_log" / name
    _change(checkpoint, lambda actions: _body([*actions, {"x": {}}], action).update({field: DEEP}), array(DEPTHS[depth]))
    if action == "x":
        checkpoint.write_text(checkpoint.read_text() + f'{{"x":{array(DEPTHS[depth])}}}\n')
    assert DeltaTable(str(tmp_path)).files().num_rows == 2, "by the commit, where the checkpoint is damaged"
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    builder.commit(add("c"), version=1)
    _only_our_errors(lambda: DeltaTable(str(tmp_path)).files())


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(
    "field", ["x", "dataSchemaJson", "partitionSchemaJson", "tableConfigurations", "protocolJson", "tableId"]
)
def test_log_of_schemas_that_is_nested_deep(tmp_path: Path, field: str, depth: str) -> None:
    empty = json.dumps({"type": "struct", "fields": []})
    entry = {"tableId": "t", "deltaCommitVersion": 0, "dataSchemaJson": empty, "partitionSchemaJson": empty}
    deep = array(DEPTHS[depth])
    value = json.dumps(deep) if field.endswith("Json") else deep
    text = json.dumps({**entry, "sourceMetadataPath": "s", field: DEEP}).replace(f'"{DEEP}"', value)
    directory = tmp_path / "_schema_log_t"
    directory.mkdir()
    (directory / "0").write_text(f"v1\n{text}")

    def use() -> None:
        newest = SchemaLog.of(LocalStore(str(tmp_path)), directory.name, "/t").newest
        assert newest is not None and newest.config(TableConfig(Protocol(1, 2), Metadata("t", empty))).schema.fields == ()

    _only_our_errors(use)


@pytest.mark.parametrize("field", ["sourceVersion", "reservoirId", "reservoirVersion", "index", "eventTimeColumn", "x"])
def test_offset_that_is_nested_deep(field: str) -> None:
    value: Any = []
    for _ in range(5_000):
        value = [value]
    offset = StreamOffset("t", 1).to_json()
    _only_our_errors(lambda: StreamOffset.from_json({**offset, field: value}))
