"""Logs made by hand for tests: commits from actions, checkpoints of every kind, compactions, checksums, hints.

    builder = TableBuilder(MemoryStore())
    builder.commit(builder.protocol(), builder.metadata(), add("a.parquet"))
    builder.checkpoint(kind="v2-json", sidecars=2)

Actions are JSON objects as in the log. `live` and `replay` return what a reader must find: they replay plain dictionaries,
without delta_py. Files named by the actions need not exist.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from delta_py.storage.store import ObjectStore

Json = dict[str, Any]

_TEXT_MAP = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_ADD = [
    ("path", pa.string()),
    ("partitionValues", _TEXT_MAP),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("dataChange", pa.bool_()),
    ("deletionVector", _VECTOR),
    ("baseRowId", pa.int64()),
    ("defaultRowCommitVersion", pa.int64()),
    ("tags", _TEXT_MAP),
    ("clusteringProvider", pa.string()),
]
_REMOVE = [
    ("path", pa.string()),
    ("deletionTimestamp", pa.int64()),
    ("dataChange", pa.bool_()),
    ("deletionVector", _VECTOR),
    ("size", pa.int64()),
]
_OTHER = {
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _TEXT_MAP)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _TEXT_MAP),
            ("createdTime", pa.int64()),
        ]
    ),
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "domainMetadata": pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
}
_V2_ONLY = {
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", _TEXT_MAP)]),
    "sidecar": pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]),
}
UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"


def add(path: str, **fields: Any) -> Json:
    """An add action; fields by their names in the log."""
    return {"add": {"path": path, "partitionValues": {}, "size": 100, "modificationTime": 1, "dataChange": True, **fields}}


def remove(path: str, **fields: Any) -> Json:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, **fields}}


def vector(name: str = "ab^-aqEH.-t@S}K{vb[*k^", offset: int | None = 4) -> Json:
    """A deletion vector's descriptor; its file need not exist."""
    return {"storageType": "u", "pathOrInlineDv": name, "offset": offset, "sizeInBytes": 40, "cardinality": 6}


def stats(rows: int, low: Any, high: Any, column: str = "id", nulls: int = 0) -> str:
    return json.dumps({"numRecords": rows, "minValues": {column: low}, "maxValues": {column: high}, "nullCount": {column: nulls}})


def schema_string(*fields: tuple[str, Any]) -> str:
    described = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields]
    return json.dumps({"type": "struct", "fields": described})


def key(action: Mapping[str, Any]) -> tuple[str, str | None]:
    """(path, deletion vector's unique id) of the body of an add or remove."""
    vector_fields = action.get("deletionVector")
    offset = None if not vector_fields else vector_fields.get("offset")
    identity = (
        None
        if not vector_fields
        else vector_fields["storageType"] + vector_fields["pathOrInlineDv"] + ("" if offset is None else f"@{offset}")
    )
    return unquote(action["path"]), identity


@dataclass
class TableBuilder:
    """Builds the log of one table in a store. time_ms: of the next file; it grows by a second with each commit."""

    store: ObjectStore
    time_ms: int = 1_700_000_000_000
    commits: dict[int, list[Json]] = field(default_factory=dict)

    # ------------------------------------------------------------ actions

    def protocol(self, reader: int = 1, writer: int = 2, features: Sequence[str] | None = None) -> Json:
        """features: table features of a protocol (3, 7), for both readers and writers."""
        if features is None:
            return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}
        listed = {"readerFeatures": list(features), "writerFeatures": list(features)}
        return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **listed}}

    def metadata(
        self, *columns: tuple[str, Any], partition_by: Sequence[str] = (), configuration: Mapping[str, str] | None = None
    ) -> Json:
        return {
            "metaData": {
                "id": "b5a1a8f0-0000-4000-8000-000000000001",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema_string(*(columns or (("id", "long"),))),
                "partitionColumns": list(partition_by),
                "configuration": dict(configuration or {}),
                "createdTime": 1_700_000_000_000,
            }
        }

    # ------------------------------------------------------------ files of the log

    def commit(self, *actions: Json, version: int | None = None, time_ms: int | None = None) -> int:
        """Write the next commit (or that of `version`), a commitInfo first; returns its version."""
        number = len(self.commits) if version is None else version
        self.time_ms += 1000
        info = {"commitInfo": {"timestamp": self.time_ms, "operation": "WRITE"}}
        listed = [*([] if any("commitInfo" in action for action in actions) else [info]), *actions]
        self.commits[number] = listed
        self.write(f"{number:020d}.json", _lines(listed), time_ms=time_ms)
        return number

    def create(self, *actions: Json, **metadata: Any) -> int:
        """Commit a protocol, metadata and the actions."""
        return self.commit(self.protocol(), self.metadata(**metadata), *actions)

    def checkpoint(
        self,
        version: int | None = None,
        *,
        kind: str = "classic",
        parts: int = 2,
        sidecars: int = 0,
        unique: str = UUID,
        stats_json: bool = True,
        stats_parsed: pa.DataType | None = None,
        batch: int | None = None,
        last: Callable[[bytes], bytes] = bytes,
    ) -> list[str]:
        """Write a checkpoint of a version: kind classic, multipart, v2-parquet, v2-json or v2-classic. Returns the names.

        stats_parsed: the type of that column, filled from the JSON statistics. batch: rows of a row group. last: changes the last
        Parquet file that has files.
        """
        version = max(self.commits) if version is None else version
        actions = self.replay(version)
        shape = _shape(stats_json, stats_parsed)
        prefix = f"{version:020d}.checkpoint"
        files = [action for action in actions if "add" in action or "remove" in action]
        other_actions = [action for action in actions if action not in files]
        if kind == "multipart":
            names = [f"{prefix}.{part:010d}.{parts:010d}.parquet" for part in range(1, parts + 1)]
            for part, name in enumerate(names):
                data = _parquet(actions[part::parts], shape, batch)
                self.write(name, last(data) if part == parts - 1 else data)
            return names
        if kind == "classic":
            self.write(f"{prefix}.parquet", last(_parquet(actions, shape, batch)))
            return [f"{prefix}.parquet"]
        tags: dict[str, str] = {}
        v2: list[Json] = [{"checkpointMetadata": {"version": version, "tags": tags}}, *other_actions]
        names = []
        for position in range(sidecars):
            data = _parquet(files[position::sidecars], shape, batch, only_files=True)
            data = last(data) if position == sidecars - 1 else data
            names.append(f"_sidecars/{version}-{position}-{unique}.parquet")
            self.write(names[-1], data)
            v2.append(
                {"sidecar": {"path": names[-1].partition("/")[2], "sizeInBytes": len(data), "modificationTime": self.time_ms}}
            )
        if sidecars:
            tags["sidecarSizeInBytes"] = str(sum(action["sidecar"]["sizeInBytes"] for action in v2 if "sidecar" in action))
        v2 += [] if sidecars else files
        name = {
            "v2-parquet": f"{prefix}.{unique}.parquet",
            "v2-json": f"{prefix}.{unique}.json",
            "v2-classic": f"{prefix}.parquet",
        }[kind]
        self.write(name, _lines(v2) if kind == "v2-json" else _parquet(v2, {**shape, **_V2_ONLY}, batch))
        return [name, *names]

    def last_checkpoint(self, version: int, *, checksum: bool = False, **fields: Any) -> None:
        """Write the hint. checksum: add one that is right for a hint of plain fields."""
        value: Json = {"version": version, "size": 10, **fields}
        if checksum:
            text = ",".join(f'"{name}"={json.dumps(value[name])}' for name in sorted(value))
            value["checksum"] = hashlib.md5(text.encode()).hexdigest()
        self.write("_last_checkpoint", json.dumps(value).encode())

    def compact(self, start: int, end: int) -> str:
        """Write the compaction of the commits start to end."""
        newest: dict[Any, Json] = {}
        for number in range(start, end + 1):
            for action in self.commits[number]:
                newest[_identity(action)] = action
        name = f"{start:020d}.{end:020d}.compacted.json"
        self.write(name, _lines([action for action in newest.values() if "commitInfo" not in action]))
        return name

    def checksum(self, version: int | None = None, **changes: Any) -> None:
        """Write the version checksum; `changes` replace its fields, None leaves one out."""
        version = max(self.commits) if version is None else version
        live, state = self.live(version), self.replay(version)
        value = {
            "txnId": "1",
            "tableSizeBytes": sum(action["size"] for action in live.values()),
            "numFiles": len(live),
            "numMetadata": 1,
            "numProtocol": 1,
            "metadata": next(action["metaData"] for action in state if "metaData" in action),
            "protocol": next(action["protocol"] for action in state if "protocol" in action),
            **changes,
        }
        self.write(f"{version:020d}.crc", json.dumps({name: item for name, item in value.items() if item is not None}).encode())

    def write(self, name: str, data: bytes, *, time_ms: int | None = None) -> None:
        """Write a file of the log unchanged."""
        if hasattr(self.store, "now_ms"):
            self.store.now_ms = self.time_ms if time_ms is None else time_ms
        self.store.put(f"_delta_log/{name}", data)

    def delete(self, name: str) -> None:
        self.store.delete(f"_delta_log/{name}")

    # ------------------------------------------------------------ what a reader must find

    def replay(self, version: int | None = None) -> list[Json]:
        """The reconciled actions of a version, including tombstones of files, but not of domains."""
        newest: dict[Any, Json] = {}
        for number in sorted(self.commits):
            if version is None or number <= version:
                for action in self.commits[number]:
                    newest[_identity(action)] = action
        latest_actions = [action for action in newest.values() if next(iter(action)) in ("add", "remove", *_OTHER)]
        return [action for action in latest_actions if not action.get("domainMetadata", {}).get("removed")]

    def live(self, version: int | None = None) -> dict[tuple[str, str | None], Json]:
        """The live files of a version: key -> body of the add."""
        return {key(action["add"]): action["add"] for action in self.replay(version) if "add" in action}


def _identity(action: Json) -> Any:
    """Equal for two actions of which only the newer one counts."""
    name, body = next(iter(action.items()))
    match name:
        case "add" | "remove":
            return ("file", key(body))
        case "txn":
            return (name, body["appId"])
        case "domainMetadata":
            return (name, body["domain"])
    return name


def _lines(actions: Sequence[Json]) -> bytes:
    return "".join(json.dumps(action) + "\n" for action in actions).encode()


def _shape(stats_json: bool, stats_parsed: pa.DataType | None) -> dict[str, pa.DataType]:
    extra = [("stats", pa.string())] if stats_json else []
    extra += [("stats_parsed", stats_parsed)] if stats_parsed is not None else []
    return {**_OTHER, "add": pa.struct([*_ADD, *extra]), "remove": pa.struct(_REMOVE)}


def _parquet(actions: Sequence[Json], shape: Mapping[str, pa.DataType], batch: int | None, *, only_files: bool = False) -> bytes:
    names = ("add", "remove") if only_files else tuple(shape)
    columns = {name: pa.array([_row(action.get(name), shape[name]) for action in actions], shape[name]) for name in names}
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=batch)
    return sink.getvalue()


def _row(value: Json | None, kind: pa.StructType) -> Json | None:
    """A JSON object as the row of a checkpoint: maps as pairs, statistics parsed."""
    if value is None:
        return None
    if kind.get_field_index("stats_parsed") >= 0 and value.get("stats"):
        value = {**value, "stats_parsed": json.loads(value["stats"])}
    return {f.name: _cell(value.get(f.name), f.type) for f in kind}


def _cell(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        return list(value.items())
    if pa.types.is_struct(kind):
        return {f.name: _cell(value.get(f.name), f.type) for f in kind}
    return value
