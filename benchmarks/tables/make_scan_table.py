"""Make a table of plain rows in two versions: 0 is complete, in 1 deletion vectors delete a share of the rows.

    python benchmarks/tables/make_scan_table.py DIRECTORY --rows 8000000

The rows are the same in every run. Both versions have the same data files. So the difference between their scans is what deletion
vectors cost, and Spark's own Parquet reader can read DIRECTORY/*.parquet.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from delta_py.protocol.deletion_vectors import deletion_vector_file_name, dv_file_bytes, from_row_indexes

FILES, LARGE_FILES = 16, 4
_T0_MS = 1_700_000_000_000
_FIELDS = [
    ("id", "long"),
    ("a", "integer"),
    ("b", "long"),
    ("x", "double"),
    ("y", "double"),
    ("kind", "string"),
    ("name", "string"),
    ("day", "date"),
    ("at", "timestamp"),
    ("price", "decimal(12,2)"),
]


def make_table(directory: str, rows: int = 8_000_000, deleted_share: float = 0.1) -> int:
    """Write the table into `directory`, which is emptied. Returns the number of rows in version 1."""
    shutil.rmtree(directory, ignore_errors=True)
    per_file = rows // FILES
    adds = [_write_file(directory, _name(number), number, per_file, {"row_group_size": 1 << 17}) for number in range(FILES)]
    _write_first_commit(directory, adds)
    deletions = _deletions(directory, adds, per_file, deleted_share)
    _write_commit(directory, 1, deletions)
    return per_file * FILES - sum(action["add"]["deletionVector"]["cardinality"] for action in deletions if "add" in action)


def make_large_files(directory: str, rows: int, *, partitioned: bool) -> None:
    """Write a table of the same kind of rows in one version into `directory`, which is emptied. Its layout is that of Spark's own
    writer: four files of one row group with an index of its pages. partitioned: each file is a partition of the column `part`, 0
    to 3."""
    shutil.rmtree(directory, ignore_errors=True)
    per_file, adds = rows // LARGE_FILES, list[dict[str, Any]]()
    layout = {"row_group_size": per_file, "write_page_index": True}  # and pages of 20,000 rows, the default of pyarrow 26
    for number in range(LARGE_FILES):
        name = f"part={number}/{_name(number)}" if partitioned else _name(number)
        add = _write_file(directory, name, number, per_file, layout)
        adds.append({**add, "partitionValues": {"part": str(number)}} if partitioned else add)
    _write_first_commit(directory, adds, "part" if partitioned else None)


def _name(number: int) -> str:
    return f"part-{number:05d}.snappy.parquet"


def _write_first_commit(directory: str, adds: list[dict[str, Any]], partition: str | None = None) -> None:
    features = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    fields = _FIELDS if partition is None else [*_FIELDS, (partition, "integer")]
    metadata = {
        "id": "b5a1a8f0-0000-4000-8000-000000000002",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(
            {"type": "struct", "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields]}
        ),
        "partitionColumns": [] if partition is None else [partition],
        "configuration": {"delta.enableDeletionVectors": "true"},
        "createdTime": _T0_MS,
    }
    _write_commit(directory, 0, [{"protocol": protocol}, {"metaData": metadata}, *({"add": add} for add in adds)])


def _write_file(directory: str, name: str, number: int, rows: int, layout: dict[str, Any]) -> dict[str, Any]:
    """number: the number of the file, which determines its rows. layout: options of pyarrow's writer."""
    random = np.random.default_rng(number)
    ids = np.arange(number * rows, (number + 1) * rows, dtype=np.int64)
    cents = pa.array(random.integers(0, 10**9, rows)).cast(pa.decimal128(21, 0))
    table = pa.table(
        {
            "id": ids,
            "a": random.integers(0, 1000, rows, dtype=np.int32),
            "b": random.integers(0, 2**60, rows),
            "x": random.random(rows),
            "y": random.normal(size=rows),
            "kind": pa.array([f"kind-{i}" for i in range(20)]).take(pa.array(random.integers(0, 20, rows))),
            "name": pa.array(random.integers(0, 2**40, rows)).cast(pa.string()),
            "day": pa.array((18_000 + ids % 2_000).astype(np.int32)).cast(pa.date32()),
            "at": pa.array(_T0_MS * 1000 + ids * 1_000_000).cast(pa.timestamp("us", "UTC")),
            "price": pa.Array.from_buffers(pa.decimal128(12, 2), rows, cents.buffers()),
        }
    )
    path = os.path.join(directory, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    pq.write_table(table, path, compression="snappy", **layout)
    stats = {"numRecords": rows, "minValues": {"id": int(ids[0])}, "maxValues": {"id": int(ids[-1])}, "nullCount": {"id": 0}}
    return {
        "path": name,
        "partitionValues": {},
        "size": os.path.getsize(path),
        "modificationTime": _T0_MS,
        "dataChange": True,
        "stats": json.dumps(stats),
    }


def _deletions(directory: str, adds: list[dict[str, Any]], rows: int, share: float) -> list[dict[str, Any]]:
    """Remove and add actions that give each file a deletion vector; one DV file holds all of them."""
    random = np.random.default_rng(1)
    bitmaps = [from_row_indexes(np.flatnonzero(random.random(rows) < share)) for _ in adds]
    file_id = UUID("b5a1a8f0-0000-4000-8000-000000000003")
    data, descriptors = dv_file_bytes(bitmaps, file_id)
    with open(os.path.join(directory, deletion_vector_file_name(file_id)), "wb") as file:
        file.write(data)
    actions: list[dict[str, Any]] = []
    for add, descriptor in zip(adds, descriptors, strict=True):
        stats = json.dumps({**json.loads(add["stats"]), "tightBounds": False})
        removed = {"path": add["path"], "deletionTimestamp": _T0_MS, "dataChange": True}
        actions += [{"remove": removed}, {"add": {**add, "stats": stats, "deletionVector": descriptor.to_json()}}]
    return actions


def _write_commit(directory: str, version: int, actions: list[dict[str, Any]]) -> None:
    os.makedirs(os.path.join(directory, "_delta_log"), exist_ok=True)
    info = {"commitInfo": {"timestamp": _T0_MS + version, "operation": "DELETE" if version else "WRITE"}}
    with open(os.path.join(directory, "_delta_log", f"{version:020d}.json"), "w") as file:
        file.writelines(json.dumps(action, separators=(",", ":")) + "\n" for action in [info, *actions])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--rows", type=int, default=8_000_000)
    arguments = parser.parse_args()
    make_table(arguments.directory, arguments.rows)
