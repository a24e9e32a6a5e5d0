"""Small tables, each with other parts of the format, made once and then damaged in copies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from delta_py import write_delta
from delta_py.commands.create import create_table, define_table
from delta_py.protocol.schema import INTEGER, LONG, STRING, StructField, StructType
from delta_py.storage.local import LocalStore

COMMITS = 7


def _rows(first: int, count: int = 4) -> pa.Table:
    ids = range(first, first + count)
    names = [None if id % 3 == 0 else f"name {id}" for id in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "name": names, "part": [f"p{id % 2}" for id in ids]})


def _written(path: Path, configuration: dict[str, str], *, partitioned: bool = False) -> None:
    for number in range(COMMITS):
        if number == COMMITS - 2:  # takes rows out of files
            write_delta(str(path), _rows(8, 2), mode="overwrite", replace_where="id IN (8, 9)")
            continue
        settings = {"configuration": configuration, "partition_by": ["part"] if partitioned else None} if number == 0 else {}
        write_delta(str(path), _rows(4 * number), mode="append", **settings)  # type: ignore[arg-type]


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
        write_delta(str(path), _rows(4 * number), mode="append")


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
    "compaction": lambda path: _written(path, {"delta.checkpointInterval": "10"}),
    "vectors": lambda path: _written(path, {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "4"}),
    "row ids": lambda path: _written(
        path, {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true", "delta.checkpointInterval": "4"}
    ),
    "rules": _with_rules,
}
