"""Deep clones as Spark jobs: each task copies some files.

delta_py/copies/deep_clone.py decides which files are copied, and commits them, where the tables are: on the driver, or over Spark
Connect in a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from delta_py.copies.deep_clone import deep_clone
from delta_py.progress import part
from delta_py.scan.time_travel import parse_timestamp_ms
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.write.file_copies import Copy, minimum_bytes
from spark_plugin.maintenance.job_tasks import copier
from spark_plugin.options.settings import TablePath, active
from spark_plugin.tasks.run_near_table import at_table, in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

# The most bytes and files that one task copies.
_TASK_BYTES, _TASK_FILES = 256 * 1024 * 1024, 200


def run_deep_clone(spark: SparkSession, source: TablePath, target: TablePath, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Copy a version of a table with all its files to the target. arguments: version, timestamp, time_zone, replace_table,
    properties, as in the command for shallow clones. Returns the clone's version and the metrics of its commit."""
    source_store, target_store = source.open_store(spark), target.open_store(spark)
    timestamp = arguments["timestamp"]
    timestamp_ms = None if timestamp is None else parse_timestamp_ms(timestamp, arguments["time_zone"])

    def run_at_table(step: Callable[[], T], *, once: bool = False) -> T:
        return at_table(spark, step, once=once)

    with active(spark):
        load = partial(Snapshot.load, source_store, version=arguments["version"], timestamp_ms=timestamp_ms)
        return deep_clone(
            run_at_table(load).through(source_store),
            target_store,
            replace_table=arguments["replace_table"],
            properties=arguments["properties"],
            copy_all=partial(_copy_in_tasks, spark),
            run_at_table=run_at_table,
        )


def _copy_in_tasks(spark: SparkSession, source: ObjectStore, target: ObjectStore, copies: Sequence[Copy]) -> None:
    """Copy the files, and show the bytes as progress of the command."""
    with part(minimum_bytes(copies), "bytes"):
        in_tasks(spark, list(_groups(copies)), copier(source, target))


def _groups(copies: Sequence[Copy]) -> Iterator[list[Copy]]:
    """Yield the copies of each task: up to _TASK_BYTES and _TASK_FILES, and at least one. The field `least` of a copy is the
    minimum size of its file in bytes."""
    group: list[Copy] = []
    group_bytes = 0
    for copy in copies:
        if group and (group_bytes + copy["least"] > _TASK_BYTES or len(group) == _TASK_FILES):
            yield group
            group, group_bytes = [], 0
        group.append(copy)
        group_bytes += copy["least"]
    if group:
        yield group
