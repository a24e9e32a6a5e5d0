"""Make the log of a table with very many files, without the data files, to measure how fast its state is loaded.

    python benchmarks/tables/make_log_table.py /tmp/t --files 300000
    python benchmarks/tables/make_log_table.py /tmp/t --files 10000000 --columns 3 --stats struct --parts 20 --kind sidecars

The checkpoint is built from Arrow arrays, one row group at a time, so its size is not limited by memory. Column `id` is
clustered: file i holds ids [1000 i, 1000 i + 999], so a predicate on one id selects one file. Each commit after the checkpoint
adds 10 files and removes 5 older ones.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROWS_PER_FILE = 1000
ADDS_PER_COMMIT = 10
REMOVES_PER_COMMIT = 5
_T0 = 1_700_000_000_000

_KINDS = ("long", "double", "string", "date", "timestamp", "integer", "decimal(12,2)", "string", "long", "double")


@dataclass(frozen=True)
class _Column:
    name: str
    kind: str
    minimum: pa.Array
    maximum: pa.Array


def make_table(
    path: str,
    files: int = 300_000,
    columns: int = 10,
    commits: int = 20,
    stats_json: bool = True,
    stats_struct: bool = False,
    row_group_rows: int = 100_000,
    parts: int = 1,
    sidecars: bool = False,
) -> None:
    """Write the log of a table into `path` (which is emptied): a checkpoint at version 0 and `commits` commits.

    parts: the number of files with the checkpoint's adds. sidecars: these are the sidecars of a V2 checkpoint instead of the
    parts of a classic one.
    """
    shutil.rmtree(path, ignore_errors=True)
    log = os.path.join(path, "_delta_log")
    os.makedirs(log)
    names = [("id" if i == 0 else f"column_{i}", _KINDS[i % len(_KINDS)]) for i in range(columns)]
    configuration = {
        "delta.checkpoint.writeStatsAsStruct": str(stats_struct).lower(),
        "delta.checkpoint.writeStatsAsJson": str(stats_json).lower(),
    }
    head = [
        {
            "commitInfo": {
                "timestamp": _T0,
                "operation": "WRITE",
                "operationParameters": {"mode": "Append"},
                "engineInfo": "make_log_table",
            }
        },
        {"protocol": _V2_PROTOCOL if sidecars else {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": _metadata(names, configuration)},
    ]
    _write_commit(log, 0, head)
    total = files + commits * REMOVES_PER_COMMIT
    shape = _Shape(names, stats_json, stats_struct, row_group_rows)
    write = _write_sidecars if sidecars else _write_parts
    hint = write(log, head, shape, total, parts)
    with open(os.path.join(log, "_last_checkpoint"), "w") as file:
        json.dump({"version": 0, "size": total + 2, **hint}, file)
    for version in range(1, commits + 1):
        _write_commit(log, version, _commit_actions(names, total, version))


def _metadata(names: list[tuple[str, str]], configuration: dict[str, str]) -> dict[str, object]:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in names]
    return {
        "id": "b5a1a8f0-0000-4000-8000-000000000001",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": _T0,
    }


def _write_commit(log: str, version: int, actions: list[dict[str, object]]) -> None:
    with open(os.path.join(log, f"{version:020d}.json"), "w") as file:
        file.writelines(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)


def _commit_actions(names: list[tuple[str, str]], total: int, version: int) -> list[dict[str, object]]:
    first = total + (version - 1) * ADDS_PER_COMMIT
    index = np.arange(first, first + ADDS_PER_COMMIT, dtype=np.int64)
    stats, paths = _stats_json(_columns(names, index), len(index)).to_pylist(), _paths(index).to_pylist()
    adds = [
        {
            "add": {
                "path": p,
                "partitionValues": {},
                "size": 1_000_000,
                "modificationTime": _T0 + version,
                "dataChange": True,
                "stats": s,
            }
        }
        for p, s in zip(paths, stats, strict=True)
    ]
    removed_paths = _paths(
        np.arange((version - 1) * REMOVES_PER_COMMIT, version * REMOVES_PER_COMMIT, dtype=np.int64)
    ).to_pylist()
    removes = [
        {"remove": {"path": p, "deletionTimestamp": _T0 + version, "dataChange": True, "extendedFileMetadata": False}}
        for p in removed_paths
    ]
    info = {"timestamp": _T0 + version, "operation": "WRITE", "operationParameters": {"mode": "Append"}}
    return [{"commitInfo": info}, *adds, *removes]


# ---------------------------------------------------------------- columns of values


def _paths(index: np.ndarray) -> pa.Array:
    """Names as Spark makes them: multiplying by an odd number scatters the digits of a file's UUID."""
    scattered = (index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).astype(str)
    part = pc.utf8_lpad(pa.array(index % 100_000).cast(pa.string()), 5, "0")
    tail = pc.utf8_lpad(pa.array(scattered), 20, "0")
    return pc.binary_join_element_wise("part-", part, "-4f1d-", tail, "-8a6e-c000.snappy.parquet", "")


def _columns(names: list[tuple[str, str]], index: np.ndarray) -> list[_Column]:
    return [_Column(name, kind, *_VALUES[kind](index, position)) for position, (name, kind) in enumerate(names)]


def _longs(index: np.ndarray, position: int) -> tuple[pa.Array, pa.Array]:
    low = index * ROWS_PER_FILE if position == 0 else (index * 7919 * (position + 1)) % 1_000_000
    return pa.array(low), pa.array(low + ROWS_PER_FILE - 1)


def _integers(index: np.ndarray, position: int) -> tuple[pa.Array, pa.Array]:
    low, high = _longs(index, position)
    return low.cast(pa.int32()), high.cast(pa.int32())


def _doubles(index: np.ndarray, position: int) -> tuple[pa.Array, pa.Array]:
    low = ((index * 104729 * (position + 1)) % 1_000_000) / 8 + 0.125
    return pa.array(low), pa.array(low + 1000.5)


def _decimals(index: np.ndarray, position: int) -> tuple[pa.Array, pa.Array]:
    low, high = _longs(index, position)
    return low.cast(pa.decimal128(21, 2)).cast(pa.decimal128(12, 2)), high.cast(pa.decimal128(21, 2)).cast(pa.decimal128(12, 2))


def _strings(index: np.ndarray, position: int) -> tuple[pa.Array, pa.Array]:
    low, high = _longs(index, position)
    return tuple(pc.binary_join_element_wise("customer-", pc.utf8_lpad(a.cast(pa.string()), 12, "0"), "") for a in (low, high))  # type: ignore[return-value]


def _dates(index: np.ndarray, position: int) -> tuple[pa.Array, pa.Array]:
    low = (18_000 + index % 2_000).astype(np.int32)
    return pa.array(low).cast(pa.date32()), pa.array(low + np.int32(3)).cast(pa.date32())


def _timestamps(index: np.ndarray, position: int) -> tuple[pa.Array, pa.Array]:
    low = (_T0 + index * 60_000) * 1000
    return pa.array(low).cast(pa.timestamp("us", "UTC")), pa.array(low + 59_999_000).cast(pa.timestamp("us", "UTC"))


_VALUES: dict[str, Callable[[np.ndarray, int], tuple[pa.Array, pa.Array]]] = {
    "long": _longs,
    "integer": _integers,
    "double": _doubles,
    "decimal(12,2)": _decimals,
    "string": _strings,
    "date": _dates,
    "timestamp": _timestamps,
}


def _json_text(column: _Column, values: pa.Array) -> pa.Array:
    match column.kind:
        case "string":
            text = values
        case "timestamp":
            text = pc.strftime(values.cast(pa.timestamp("ms", "UTC")), format="%Y-%m-%dT%H:%M:%SZ")
        case "date":
            text = pc.strftime(values, format="%Y-%m-%d")
        case _:
            return values.cast(pa.string())
    return pc.binary_join_element_wise('"', text, '"', "")


def _stats_json(columns: list[_Column], count: int) -> pa.Array:
    parts: list[object] = [f'{{"numRecords":{ROWS_PER_FILE},"minValues":{{']
    for title, pick in (("maxValues", "minimum"), ("nullCount", "maximum")):
        for position, column in enumerate(columns):
            parts += [f'{"," if position else ""}"{column.name}":', _json_text(column, getattr(column, pick))]
        parts.append(f'}},"{title}":{{')
    parts.append(",".join(f'"{column.name}":0' for column in columns) + "}}")
    array = pc.binary_join_element_wise(*parts, "")
    assert len(array) == count
    return array


def _stats_struct(columns: list[_Column], count: int) -> pa.Array:
    def struct(values: list[pa.Array]) -> pa.Array:
        return pa.StructArray.from_arrays(values, [column.name for column in columns])

    zeros = pa.array(np.zeros(count, np.int64))
    return pa.StructArray.from_arrays(
        [
            pa.array(np.full(count, ROWS_PER_FILE, np.int64)),
            struct([column.minimum for column in columns]),
            struct([column.maximum for column in columns]),
            struct([zeros for _ in columns]),
        ],
        ["numRecords", "minValues", "maxValues", "nullCount"],
    )


# ---------------------------------------------------------------- the checkpoint


@dataclass(frozen=True)
class _Shape:
    """names: (name, type) of each column. stats_json, stats_struct: which forms of statistics the adds carry."""

    names: list[tuple[str, str]]
    stats_json: bool
    stats_struct: bool
    row_group_rows: int


def _write_parts(log: str, head: list[dict[str, object]], shape: _Shape, total: int, parts: int) -> dict[str, object]:
    """A classic checkpoint: the protocol and metadata in a separate row group of the first file, then the adds. Returns the
    fields of `_last_checkpoint` other than version and size."""
    protocol = pa.array([head[1]["protocol"], None], _PROTOCOL_TYPE)
    metadata = pa.array([None, _as_arrow_metadata(head[2]["metaData"])], _METADATA_TYPE)
    add_type = _adds(shape, np.arange(1, dtype=np.int64)).type
    first = _rows(2, {"protocol": protocol, "metaData": metadata}, add_type)
    for part, (start, stop) in enumerate(_shares(total, parts), 1):
        number = f".{part:010d}.{parts:010d}" if parts > 1 else ""
        path = os.path.join(log, f"{0:020d}.checkpoint{number}.parquet")
        with pq.ParquetWriter(path, first.schema, compression="snappy") as writer:
            if part == 1:
                writer.write_table(first)
            for adds in _groups(shape, start, stop):
                writer.write_table(_rows(len(adds), {"add": adds}, add_type), row_group_size=shape.row_group_rows)
    return {"parts": parts} if parts > 1 else {}


def _write_sidecars(log: str, head: list[dict[str, object]], shape: _Shape, total: int, parts: int) -> dict[str, object]:
    """A V2 checkpoint with a JSON file at its top level. Returns the same as _write_parts."""
    os.makedirs(os.path.join(log, "_sidecars"))
    add_type = _adds(shape, np.arange(1, dtype=np.int64)).type
    actions = [{"checkpointMetadata": {"version": 0}}, *head[1:]]
    for part, (start, stop) in enumerate(_shares(total, parts)):
        name = f"4d5e6f70-0000-4000-8000-{part:012d}.parquet"
        path = os.path.join(log, "_sidecars", name)
        with pq.ParquetWriter(path, pa.schema([("add", add_type)]), compression="snappy") as writer:
            for adds in _groups(shape, start, stop):
                writer.write_table(pa.table({"add": adds}), row_group_size=shape.row_group_rows)
        size = os.path.getsize(path)
        actions.append({"sidecar": {"path": name, "sizeInBytes": size, "modificationTime": _T0}})
    path = os.path.join(log, f"{0:020d}.checkpoint.3f2a1b40-0000-4000-8000-000000000000.json")
    with open(path, "w") as file:
        file.writelines(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
    return {"numOfAddFiles": total}


def _shares(total: int, parts: int) -> Iterator[tuple[int, int]]:
    """The start and the end of each part."""
    return pairwise(total * part // parts for part in range(parts + 1))


def _groups(shape: _Shape, start: int, stop: int) -> Iterator[pa.Array]:
    """The adds of the files from start to stop (excluded), one row group at a time."""
    for first in range(start, stop, shape.row_group_rows):
        yield _adds(shape, np.arange(first, min(first + shape.row_group_rows, stop), dtype=np.int64))


def _rows(count: int, actions: dict[str, pa.Array], add_type: pa.DataType) -> pa.Table:
    types = {"txn": _TXN_TYPE, "add": add_type, "remove": _REMOVE_TYPE, "metaData": _METADATA_TYPE, "protocol": _PROTOCOL_TYPE}
    return pa.table({name: actions.get(name, pa.nulls(count, kind)) for name, kind in types.items()})


def _adds(shape: _Shape, index: np.ndarray) -> pa.Array:
    count = len(index)
    none = pa.array([], pa.string())
    adds = {
        "path": _paths(index),
        "partitionValues": pa.MapArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), none, none),
        "size": pa.array(np.full(count, 1_000_000, np.int64)),
        "modificationTime": pa.array(_T0 - index),
        "dataChange": pa.array(np.zeros(count, bool)),
        "tags": pa.nulls(count, pa.map_(pa.string(), pa.string())),
        "deletionVector": pa.nulls(count, _DELETION_VECTOR_TYPE),
        "baseRowId": pa.nulls(count, pa.int64()),
        "defaultRowCommitVersion": pa.nulls(count, pa.int64()),
    }
    columns = _columns(shape.names, index)
    if shape.stats_json:
        adds["stats"] = _stats_json(columns, count)
    if shape.stats_struct:
        adds["stats_parsed"] = _stats_struct(columns, count)
    return pa.StructArray.from_arrays(list(adds.values()), list(adds))


_V2_PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["v2Checkpoint"],
    "writerFeatures": ["v2Checkpoint"],
}
_PROTOCOL_TYPE = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
_REMOVE_TYPE = pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])
_TXN_TYPE = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
_METADATA_TYPE = pa.struct(
    [
        ("id", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", pa.map_(pa.string(), pa.string()))])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", pa.map_(pa.string(), pa.string())),
        ("createdTime", pa.int64()),
    ]
)
_DELETION_VECTOR_TYPE = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)


def _as_arrow_metadata(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return {
        **value,
        "format": {"provider": "parquet", "options": []},
        "configuration": list(value["configuration"].items()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--files", type=int, default=300_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--commits", type=int, default=20)
    parser.add_argument("--stats", choices=["json", "struct", "both"], default="json")
    parser.add_argument("--row-group-rows", type=int, default=100_000)
    parser.add_argument("--parts", type=int, default=1, help="files that the checkpoint's adds are spread over")
    parser.add_argument("--kind", choices=["classic", "sidecars"], default="classic", help="of the checkpoint")
    arguments = parser.parse_args()
    make_table(
        arguments.path,
        files=arguments.files,
        columns=arguments.columns,
        commits=arguments.commits,
        stats_json=arguments.stats != "struct",
        stats_struct=arguments.stats != "json",
        row_group_rows=arguments.row_group_rows,
        parts=arguments.parts,
        sidecars=arguments.kind == "sidecars",
    )


if __name__ == "__main__":
    main()
