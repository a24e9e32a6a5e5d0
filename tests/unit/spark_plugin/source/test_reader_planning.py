"""What the source plans on the driver and passes to tasks, with the calls that Spark's planning makes."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.definition.create import create_table, define_table
from delta_py.errors import SchemaMismatchError
from delta_py.object_stores.open_store import open_store
from delta_py.scan.log_answers import Question
from delta_py.streaming.stream_options import StreamStart
from delta_py.types.schema import LONG, STRING, StructField, StructType
from spark_plugin.data_source import DeltaSource
from spark_plugin.options import read_limits
from spark_plugin.options.common import VIEW
from spark_plugin.options.private import signed
from spark_plugin.options.read_options import read_options
from spark_plugin.session_source import source_with
from spark_plugin.source.pinned import PinnedTable, PinnedView, pin
from spark_plugin.source.readers import DeltaReader
from spark_plugin.source.task_batches import DeltaPartition
from spark_plugin.streaming.stream_reader import pin_stream
from tests.support.tables.small_table import make_table


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Three files of one partition each."""
    commits = [pa.table({"id": pa.array([number], pa.int64()), "day": [day]}) for number, day in enumerate(("mon", "tue", "wed"))]
    return make_table(tmp_path / "t", commits, partition_by=["day"])


def test_pinned_table_plans_without_another_listing(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = pickle.loads(pickle.dumps(pin(read_options({"path": table}))))

    def boom(*_: Any, **__: Any) -> None:
        raise AssertionError("the log was listed again")

    monkeypatch.setattr("delta_py.snapshot.load_segment", boom)
    monkeypatch.setattr("delta_py.log.segment.load_segment", boom)
    assert pinned.plan(pinned.schema, None).report.files_kept == 3


@pytest.mark.parametrize("versions", [1, 2])
@pytest.mark.parametrize("anew", [{"id": [5]}, {"id": [7], "day": ["thu"]}, {"x": ["other"]}])
def test_pinned_read_refuses_a_table_that_was_created_again(
    tmp_path: Path, anew: dict[str, list[Any]], versions: int
) -> None:
    path = str(tmp_path / "t")
    changes = {"readChangeFeed": "true", "startingVersion": "0"}
    first, feed = pa.table({"id": [1], "day": ["mon"]}), {"delta.enableChangeDataFeed": "true"}
    for _ in range(versions):
        write_delta(path, first, configuration=feed, mode="append")
    pinned_tables = [pickle.loads(pickle.dumps(pin(read_options({"path": path, **more})))) for more in ({}, changes)]
    detail = pin(read_options({"path": path, VIEW: "detail"}))
    assert isinstance(detail, PinnedView)
    assert pinned_tables[0].answer(Question(), None) is not None
    opened = DeltaTable(path)
    shutil.rmtree(path)
    write_delta(path, pa.table(anew), configuration=feed)
    plans = [
        lambda: pinned_tables[0].plan(pinned_tables[0].schema, None),
        lambda: pinned_tables[1].plan(pinned_tables[1].schema, None),
    ]
    reads = [lambda: pinned_tables[0].answer(Question(), None), detail.rows, opened.files, opened.explain_files, opened.to_arrow]
    for ask in plans + reads:
        with pytest.raises(SchemaMismatchError, match="deleted and created again") as raised:
            ask()
        assert raised.value.error_class == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"


def test_new_identity_values_are_no_change_of_the_schema(tmp_path: Path) -> None:
    path = str(tmp_path)
    number = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    schema = StructType((StructField("id", LONG, metadata=number), StructField("v", STRING)))
    create_table(open_store(path), define_table(schema))
    write_delta(path, pa.table({"v": ["a"]}), mode="append")
    following, stream = pin(read_options({"path": path, "followLatest": "true"})), pin_stream({"path": path})
    write_delta(path, pa.table({"v": ["b"]}), mode="append")
    assert isinstance(following, PinnedTable)
    assert following.plan(following.schema, None).report.files_kept == 2
    assert stream.source(stream.schema).initial_offset(StreamStart()).version == 2


def test_log_whose_files_got_other_times_is_the_same_one(table: str) -> None:
    pinned = pin(read_options({"path": table}))
    assert isinstance(pinned, PinnedTable)
    for file in Path(table, "_delta_log").iterdir():
        os.utime(file, (1_700_000_000, 1_700_000_000))
    assert pinned.plan(pinned.schema, None).report.files_kept == 3


def test_log_that_was_cleaned_up_since_is_still_read(table: str) -> None:
    DeltaTable(table).checkpoint()
    pinned = pin(read_options({"path": table}))
    assert isinstance(pinned, PinnedTable)
    write_delta(table, pa.table({"id": pa.array([9], pa.int64()), "day": ["thu"]}), mode="append")
    for version in range(pinned.snapshot.version + 1):
        Path(table, "_delta_log", f"{version:020}.json").unlink()
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
    monkeypatch.setattr(read_limits, "SMALL_LOG_BYTES", 10)
    assert counted(table) is None


def test_source_in_a_task_contains_neither_table_nor_files(table: str) -> None:
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
