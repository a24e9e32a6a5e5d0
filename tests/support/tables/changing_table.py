"""A table whose schema changes as `ALTER TABLE` changes it, for streams that follow it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_py import write_delta

MAPPED = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true", "delta.enableTypeWidening": "true"}


def rows(*ids: int, **columns: str) -> pa.Table:
    named = {name: [f"{text} {id}" for id in ids] for name, text in columns.items()}
    return pa.table({"id": pa.array(ids, pa.int32()), **named})


class Table:
    """A table with column mapping, made unless it exists, whose columns are changed by commits written here."""

    def __init__(self, root: Path) -> None:
        self.path = str(root / "t")
        if not self.log.exists():
            write_delta(self.path, rows(1, 2, a="a", b="b"), configuration=MAPPED)

    def add(self, *ids: int, **columns: str) -> None:
        write_delta(self.path, rows(*ids, **columns), mode="append", merge_schema=True)

    @property
    def log(self) -> Path:
        return Path(self.path, "_delta_log")

    @property
    def version(self) -> int:
        return max(int(path.stem) for path in self.log.glob("*.json") if path.stem.isdigit())

    def _metadata(self) -> dict[str, Any]:
        metadata_actions = [
            json.loads(line)["metaData"]
            for path in sorted(self.log.glob("*.json"))
            for line in path.read_text().splitlines()
            if "metaData" in json.loads(line)
        ]
        last: dict[str, Any] = metadata_actions[-1]
        return last

    def change(self, change: Any, **properties: str) -> int:
        """Commit the schema that `change` makes from the current fields; returns its version."""
        metadata = self._metadata()
        schema = json.loads(metadata["schemaString"])
        schema["fields"] = change(schema["fields"])
        metadata["schemaString"] = json.dumps(schema)
        metadata["configuration"].update(properties)
        version = self.version + 1
        info = {"commitInfo": {"timestamp": 0, "operation": "CHANGE COLUMN", "operationParameters": {}}}
        text = "\n".join(json.dumps(action) for action in (info, {"metaData": metadata}))
        (self.log / f"{version:020}.json").write_text(text)
        return version

    def rename(self, old: str, new: str) -> int:
        return self.change(lambda fields: [{**f, "name": new} if f["name"] == old else f for f in fields])

    def drop(self, name: str) -> int:
        return self.change(lambda fields: [f for f in fields if f["name"] != name])

    def retype(self, name: str, data_type: str) -> int:
        return self.change(lambda fields: [{**f, "type": data_type} if f["name"] == name else f for f in fields])
