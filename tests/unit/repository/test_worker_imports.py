"""The imports of Spark's worker processes: each process pays for them, and most live for one query."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from delta_py import write_delta
from spark_plugin.data_source import DeltaSource

COSTLY = ("pandas", "pyarrow.dataset", "sqlglot", "hypothesis", "deltalake", "polars")
PLANNING = (
    "delta_py.snapshot",
    "delta_py.scan.planning",
    "delta_py.log.commit_reader",
    "delta_py.expressions.evaluate",
    "spark_plugin.source.pinned",
)
WRITING = ("delta_py.row_rules.conform", "delta_py.commit.transaction", "spark_plugin.source.task_writer")
COMMITTING = (
    "delta_py.row_changes.write",
    "delta_py.definition.request",
    "delta_py.commit.transaction",
    "delta_py.snapshot",
    "spark_plugin.options.write_options",
    "spark_plugin.source.pinned",
)
NOT_OF_LOCAL_READS = (
    "delta_py.protocol.actions",
    "delta_py.protocol.features",
    "delta_py.object_stores.remote",
    "delta_py.storage.coordinated",
    "delta_py.coordinator.ledger",
    "spark_plugin.data_source",
    "spark_plugin.options.common",
)
OTHER_READS = (
    "delta_py.changes.change_feed",
    "delta_py.streaming.source",
    "delta_py.scan.log_answers",
    "delta_py.expressions.evaluate",
)
DRIVER = (
    "spark_plugin.session",
    "spark_plugin.dataframe_api.method_patches",
    "spark_plugin.tables",
    "spark_plugin.pruning.rule",
    "spark_plugin.internals.spark_internals",
    "spark_plugin.internals.jvm_plans",
    "spark_plugin.internals.pyspark_internals",
    "spark_plugin.internals.connect_internals",
)


def imported_by(module: str) -> set[str]:
    """The modules of a new process after it imported this one."""
    code = f"import sys, {module}; print(*sys.modules, sep='\\n')"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines())


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("delta_py.parquet.file_reader", (*COSTLY, *PLANNING, *WRITING, "zoneinfo")),  # pyspark imports it anyway
        ("spark_plugin.source.readers", (*COSTLY, *PLANNING, *WRITING, *DRIVER)),
        ("spark_plugin.data_source", (*COSTLY, *WRITING, *DRIVER, *OTHER_READS)),
        ("spark_plugin.source.task_writer", (*COSTLY, *COMMITTING, *DRIVER)),
        ("spark_plugin.tasks.task_answers", (*COSTLY, *PLANNING, *WRITING, *DRIVER)),
        ("spark_plugin.dml.dml_tasks", (*COSTLY, *DRIVER, "delta_py.row_changes.dml", "spark_plugin.dml.jobs")),
        ("spark_plugin.streaming.stream_writer", (*COSTLY, *COMMITTING, *DRIVER)),
    ],
)
def test_worker_imports_nothing_that_it_does_not_need(module: str, unwanted: tuple[str, ...]) -> None:
    assert sorted(imported_by(module) & set(unwanted)) == []


def test_local_read_task_imports_no_other_store_and_no_log(tmp_path: Path) -> None:
    write_delta(str(tmp_path / "t"), pa.table({"x": [1, 2]}))
    source = DeltaSource({"path": str(tmp_path / "t")})
    reader = source.reader(source.schema())
    sent = tmp_path / "sent"
    sent.write_bytes(cloudpickle.dumps((reader, reader.partitions()[0])))
    code = """
import pickle, sys
reader, partition = pickle.load(open(sys.argv[1], "rb"))
[batch] = reader.read(partition)
print(batch.num_rows, *sys.modules)
"""
    rows, *modules = subprocess.run(
        [sys.executable, "-c", code, str(sent)], capture_output=True, text=True, check=True
    ).stdout.split()
    assert rows == "2"
    assert sorted({*modules} & {*COSTLY, *PLANNING, *WRITING, *DRIVER, *NOT_OF_LOCAL_READS}) == []
