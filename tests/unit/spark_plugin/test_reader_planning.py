"""What the source plans on the driver and hands to tasks, called as Spark's planning calls it."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from spark_plugin.data_source import DeltaSource
from spark_plugin.options.private import signed
from spark_plugin.options.read_options import read_options
from spark_plugin.session_source import source_with
from spark_plugin.source import pinned as pinned_module
from spark_plugin.source.pinned import PinnedTable, pin
from spark_plugin.source.readers import DeltaReader
from spark_plugin.source.task_batches import DeltaPartition
from tests.support.small_table import make_table


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Three files of one partition each."""
    commits = [pa.table({"id": pa.array([number], pa.int64()), "day": [day]}) for number, day in enumerate(("mon", "tue", "wed"))]
    return make_table(tmp_path / "t", commits, partition_by=["day"])


def test_pinned_table_plans_without_looking_for_the_version_again(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = pickle.loads(pickle.dumps(pin(read_options({"path": table}))))

    def boom(*_: Any, **__: Any) -> None:
        raise AssertionError("the log was listed again")

    monkeypatch.setattr("delta_py.snapshot.load_segment", boom)
    monkeypatch.setattr("delta_py.log.segment.load_segment", boom)
    assert pinned.plan(pinned.schema, None).report.files_kept == 3


def test_rows_are_counted_where_the_log_is_small(table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_delta(str(tmp_path / "v2"), pa.table({"id": [1, 2]}), configuration={"delta.checkpointPolicy": "v2"})

    def counted(path: str) -> int | None:
        pinned = pin(read_options({"path": path}))
        assert isinstance(pinned, PinnedTable)
        return pinned.plan(pinned.schema, None).report.rows_kept

    assert (counted(table), counted(str(tmp_path / "v2"))) == (3, 2)
    DeltaTable(str(tmp_path / "v2")).checkpoint()
    assert counted(str(tmp_path / "v2")) is None, "it may have sidecars, however small the file is that names them"
    monkeypatch.setattr(pinned_module, "_SMALL_LOG_BYTES", 10)
    assert counted(table) is None


def test_source_in_a_task_carries_neither_the_table_nor_its_files(table: str) -> None:
    source = DeltaSource({"path": table})
    reader = source.reader(source.schema())
    assert isinstance(reader, DeltaReader)
    assert len(pickle.dumps(source)) < 1000
    text = pickle.dumps(reader)
    assert b"part-" not in text and b".json" not in text


def test_partitions_hold_all_files_and_are_packed_by_bytes(table: str) -> None:
    def sizes(**settings: int) -> list[int]:
        source = source_with("n")(signed({"path": table, "pydelta.session": json.dumps(settings)}, "n"))
        partitions = source.reader(source.schema()).partitions()
        assert all(isinstance(part, DeltaPartition) for part in partitions)
        return [len(list(part.files.scan_files())) for part in partitions if isinstance(part, DeltaPartition)]

    assert sizes(wantedPartitions=1) == [3]
    assert sizes(wantedPartitions=3) == [1, 1, 1]
    assert sizes(wantedPartitions=100) == [1, 1, 1]
    assert sizes(wantedPartitions=1, maxPartitionBytes=10 << 20, openCostInBytes=4 << 20) == [1, 2]
