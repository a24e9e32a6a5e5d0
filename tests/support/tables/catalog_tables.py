"""Tables that a Unity Catalog server manages, made as another engine would make them."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pyarrow as pa

from delta_py import write_delta
from delta_py.coordinator.catalog_updates import catalog_type, protocol_form
from tests.support.servers.unity_catalog import UnityCatalogServer

FEATURES = ("v2Checkpoint", "vacuumProtocolCheck", "deletionVectors")


def create_managed(
    server: UnityCatalogServer, name: str, rows: pa.Table, schema: tuple[str, str] = ("uc", "s"), **properties: str
) -> Path:
    """A managed table with these rows as version 0. Returns its directory."""
    staged = server.state.stage()
    path = Path(staged["location"].removeprefix("file://"))
    features = {f"delta.feature.{feature}": "supported" for feature in FEATURES}
    named = {key.replace("__", "."): value for key, value in properties.items()}
    write_delta(str(path), rows, configuration={**staged["required-properties"], **features, **named})
    metadata, protocol, timestamp_ms = _made_catalog_managed(path / "_delta_log" / f"{0:020}.json")
    body = {
        "name": name,
        "location": staged["location"],
        "table-type": "MANAGED",
        "columns": catalog_type(json.loads(metadata["schemaString"])),
        "partition-columns": metadata["partitionColumns"],
        "protocol": protocol_form(protocol),
        "properties": metadata["configuration"],
        "last-commit-timestamp-ms": timestamp_ms,
    }
    server.state.create(schema, body)
    return path


def create_external(server: UnityCatalogServer, name: str, path: Path, rows: pa.Table) -> None:
    """An external table uc.s.<name> in a directory."""
    write_delta(str(path), rows)
    body = {
        "name": name,
        "location": f"file://{path}",
        "table-type": "EXTERNAL",
        "columns": {"type": "struct", "fields": []},
        "protocol": {"min-reader-version": 1, "min-writer-version": 2},
        "last-commit-timestamp-ms": 1,
    }
    server.state.create(("uc", "s"), body)


def _made_catalog_managed(commit: Path) -> tuple[dict, dict, int]:
    actions = [json.loads(line) for line in commit.read_bytes().splitlines()]
    by_kind = {kind: action for line in actions for kind, action in line.items()}
    for side in ("readerFeatures", "writerFeatures"):
        by_kind["protocol"][side] = [*by_kind["protocol"][side], "catalogManaged"]
    commit.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in actions))
    for checksum in commit.parent.glob("*.crc"):
        checksum.unlink()  # it has the protocol before that
    return by_kind["metaData"], by_kind["protocol"], by_kind["commitInfo"]["inCommitTimestamp"]
