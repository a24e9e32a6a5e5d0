"""Small tables with different parts of the format. They are made once, and their copies are damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_py import write_delta
from delta_py.definition.create import create_table, define_table
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor, inline_descriptor, read_deletion_vector
from delta_py.storage.local import LocalStore
from delta_py.types.schema import INTEGER, LONG, STRING, StructField, StructType
from tests.fuzz.child import in_child
from tests.support.tables.table_builder import TableBuilder

COMMITS = 7


def rows(first: int, count: int = 4) -> pa.Table:
    ids = range(first, first + count)
    names = [None if id % 3 == 0 else f"name {id}" for id in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "name": names, "part": [f"p{id % 2}" for id in ids]})


def _written(path: Path, configuration: dict[str, str], *, partitioned: bool = False) -> None:
    for number in range(COMMITS):
        if number == COMMITS - 2:  # deletes rows of files
            write_delta(str(path), rows(8, 2), mode="overwrite", replace_where="id IN (8, 9)")
            continue
        settings = {"configuration": configuration, "partition_by": ["part"] if partitioned else None} if number == 0 else {}
        write_delta(str(path), rows(4 * number), mode="append", **settings)  # type: ignore[arg-type]


def _with_rules(path: Path) -> None:
    schema = StructType(
        (
            StructField("id", LONG),
            StructField("name", STRING, True, {"CURRENT_DEFAULT": "'none'"}),
            StructField("part", STRING),
            StructField("twice", LONG, True, {"delta.generationExpression": "id * 2"}),
            StructField("n", INTEGER, True, {"CURRENT_DEFAULT": "6 * 7"}),
        )
    )
    configuration = {
        **{"delta.constraints.small": "id < 1000000", "delta.feature.allowColumnDefaults": "supported"},
        **{"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true", "delta.checkpointInterval": "3"},
    }
    create_table(LocalStore(str(path)), define_table(schema, configuration=configuration))
    for number in range(COMMITS - 1):
        write_delta(str(path), rows(4 * number), mode="append")


def _with_checkpoint(path: Path, kind: str, **shape: int) -> None:
    """Adds a checkpoint of the version before the newest, in a form that other writers use."""
    _written(path, {"delta.checkpointInterval": "100", "delta.checkpointPolicy": "v2"} if kind.startswith("v2") else {})
    log = path / "_delta_log"
    commits = {int(file.stem): _actions(file) for file in log.glob("*.json") if file.stem.isdigit()}
    builder = TableBuilder(LocalStore(str(path)), commits=commits)
    builder.checkpoint(COMMITS - 2, kind=kind, **shape)  # type: ignore[arg-type]
    builder.last_checkpoint(COMMITS - 2, **({"parts": shape["parts"]} if "parts" in shape else {}))


def _with_inline_vectors(path: Path) -> None:
    _written(path, {"delta.enableDeletionVectors": "true"})
    store = LocalStore(str(path))
    for file in (path / "_delta_log").glob("*.json"):
        actions = _actions(file)
        for action in actions:
            body = next(iter(action.values()))
            if body.get("deletionVector"):
                vector = read_deletion_vector(store, DeletionVectorDescriptor.from_json(body["deletionVector"]))
                body["deletionVector"] = inline_descriptor(vector).to_json()
        file.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for vector_file in path.glob("deletion_vector_*"):
        vector_file.unlink()


def _actions(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def made_tables(directory: Path, *names: str) -> dict[str, Path]:
    """The directories of these tables, or of all. Tables that do not exist yet are made."""
    paths = {name: directory / "tables" / name for name in names or TABLES}
    for name, path in paths.items():
        if not path.exists():
            unfinished = path.with_name(f"{name}, unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            result = in_child(partial(TABLES[name], unfinished))
            assert result.failure is None, (name, result)
            unfinished.rename(path)
    return paths


TABLES: dict[str, Callable[[Path], None]] = {
    "commits": lambda path: _written(path, {}, partitioned=True),
    "checkpoint": lambda path: _written(path, {"delta.checkpointInterval": "3"}),
    "struct statistics": lambda path: _written(
        path,
        {
            "delta.checkpointInterval": "4",
            "delta.checkpoint.writeStatsAsStruct": "true",
            "delta.checkpoint.writeStatsAsJson": "false",
        },
    ),
    "v2 checkpoint": lambda path: _written(
        path, {"delta.checkpointInterval": "3", "delta.checkpointPolicy": "v2"}, partitioned=True
    ),
    "v2 checkpoint of JSON": lambda path: _with_checkpoint(path, "v2-json", sidecars=2),
    "checkpoint in parts": lambda path: _with_checkpoint(path, "multipart", parts=3),
    "compaction": lambda path: _written(path, {"delta.checkpointInterval": "10"}),
    "vectors": lambda path: _written(path, {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "4"}),
    "inline vectors": _with_inline_vectors,
    "change feed": lambda path: _written(path, {"delta.enableChangeDataFeed": "true"}, partitioned=True),
    "row ids": lambda path: _written(
        path, {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true", "delta.checkpointInterval": "4"}
    ),
    "rules": _with_rules,
}
