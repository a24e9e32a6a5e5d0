"""Small tables made by hand: one Parquet file for each partition and commit, and the log next to them. They do not use our
writers.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_py.types.schema import from_arrow_schema, schema_to_json

WITH_VECTORS: dict[str, Any] = {
    "properties": {"delta.enableDeletionVectors": "true"},
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    },
}
"""Arguments of make_table for a table whose rows may be deleted by vectors."""


def make_table(
    root: Path,
    commits: Sequence[pa.Table],
    *,
    partition_by: Sequence[str] = (),
    schema_json: str | None = None,
    properties: Mapping[str, str] | None = None,
    times_ms: Sequence[int] | None = None,
    protocol: Mapping[str, Any] | None = None,
    row_group_size: int | None = None,
) -> str:
    """A table whose version n appends commits[n]. times_ms: the times of the commits. row_group_size: rows. Returns its path."""
    schema_json = schema_json or schema_to_json(from_arrow_schema(commits[0].schema))
    head = [
        {"protocol": dict(protocol or {"minReaderVersion": 1, "minWriterVersion": 4})},
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema_json,
                "partitionColumns": list(partition_by),
                "configuration": dict(properties or {}),
                "createdTime": 1_700_000_000_000,
            }
        },
    ]
    for version, rows in enumerate(commits):
        append(root, rows, partition_by=partition_by, head=head if version == 0 else (), row_group_size=row_group_size)
        if times_ms is not None:
            log = root / "_delta_log" / f"{version:020d}.json"
            os.utime(log, ns=(times_ms[version] * 1_000_000,) * 2)
    return str(root)


def reproducible_table(root: Path, commits: Sequence[pa.Table]) -> Path:
    """As a reproducible build makes it: fixed names, one table id, and one time for everything. Other rows with as many digits
    give another table with the same names, sizes and times."""
    make_table(root, commits)
    names = itertools.count()
    for log in sorted((root / "_delta_log").iterdir()):
        text = re.sub(r'"id": "[^"]*", "format"', '"id": "00000000-0000-0000-0000-000000000000", "format"', log.read_text())
        for name in re.findall(r'"path": "([^"]*)"', text):
            fixed = f"part-{next(names):05d}.parquet"
            (root / name).rename(root / fixed)
            text = text.replace(name, fixed)
        log.write_text(re.sub(r'"modificationTime": \d+', '"modificationTime": 1577836800000', text))
    for file in root.rglob("*"):
        os.utime(file, (1_577_836_800, 1_577_836_800))
    return root


def append(
    root: Path,
    rows: pa.Table,
    *,
    partition_by: Sequence[str] = (),
    head: Sequence[Mapping[str, Any]] = (),
    row_group_size: int | None = None,
) -> int:
    """One more commit with the rows; returns its version."""
    log = root / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    version = len(list(log.glob("*.json")))
    adds = [{"add": add} for add in _write_files(root, rows, tuple(partition_by), row_group_size)]
    actions = [{"commitInfo": {"operation": "WRITE", "timestamp": 1_700_000_000_000 + version}}, *head, *adds]
    (log / f"{version:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return version


def append_file(root: Path, file: Path) -> int:
    """One more commit with a data file in the table's directory, for which the log only has the size; returns its version."""
    version = len(list((root / "_delta_log").glob("*.json")))
    add = {"path": file.name, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 1, "dataChange": True}
    (root / "_delta_log" / f"{version:020d}.json").write_text(json.dumps({"add": add}) + "\n")
    return version


def _write_files(root: Path, rows: pa.Table, partition_by: tuple[str, ...], group: int | None) -> list[dict[str, Any]]:
    if not rows.num_rows:
        return []
    if not partition_by:
        return [_write_file(root, "", {}, rows, group)]
    adds = []
    for values in rows.select(partition_by).group_by(list(partition_by)).aggregate([]).to_pylist():
        mask = None
        for name, value in values.items():
            equal = pc.equal(rows[name], value)
            mask = equal if mask is None else pc.and_(mask, equal)
        texts = {name: str(value) for name, value in values.items()}
        folder = "".join(f"{name}={quote(text)}/" for name, text in texts.items())
        adds.append(_write_file(root, folder, texts, rows.filter(mask).drop_columns(list(partition_by)), group))
    return adds


def _write_file(root: Path, folder: str, partition_values: dict[str, str], rows: pa.Table, group: int | None) -> dict[str, Any]:
    name = f"{folder}part-{uuid.uuid4()}.parquet"
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path, row_group_size=group)
    return {
        "path": quote(name),
        "partitionValues": partition_values,
        "size": path.stat().st_size,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        "stats": json.dumps(_stats(rows)),
    }


def _stats(rows: pa.Table) -> dict[str, Any]:
    plain = [name for name, kind in zip(rows.column_names, rows.schema.types, strict=True) if _has_bounds(kind)]
    bounds = {name: pc.min_max(rows[name]).as_py() for name in plain}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: both["min"] for name, both in bounds.items() if both["min"] is not None},
        "maxValues": {name: both["max"] for name, both in bounds.items() if both["max"] is not None},
        "nullCount": {name: rows[name].null_count for name in plain},
    }


def _has_bounds(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind))
