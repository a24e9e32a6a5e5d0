"""What the driver's own Python makes and plans, without Spark: the values that go between the processes."""

from __future__ import annotations

import io
import json
import logging
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from delta_py.kept_snapshots import KeptSnapshot
from delta_py.scan.filtered_columns import FILTERED
from delta_py.snapshot import Snapshot
from delta_py.storage.opening import open_store
from spark_plugin.data_source import DeltaSource, pickled_whole
from spark_plugin.driver_planning import loads, offers
from spark_plugin.driver_planning.planner import Planning, planned
from spark_plugin.pruning.handover import MARKER_KEY
from spark_plugin.session_source import source_with
from spark_plugin.source.pinned import PinnedTable
from tests.support.small_table import make_table


@pytest.fixture
def table(tmp_path: Path) -> str:
    commits = [pa.table({"id": pa.array([number], pa.int64()), "day": [day]}) for number, day in enumerate(("mon", "tue"))]
    return make_table(tmp_path / "t", commits, partition_by=["day"])


def source_of(table: str) -> DeltaSource:
    source = source_with("nonce")({"path": table})
    source.schema()
    return source


def test_source_that_is_pickled_whole_is_pinned_and_small_pickles_stay_small(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(table)
    made = pickled_whole(source)
    assert type(pickle.loads(pickle.dumps(DeltaSource({"path": table})))).__name__ == "TaskSource"
    monkeypatch.setattr("spark_plugin.data_source.pin", pytest.fail)
    opened = pickle.loads(made)
    assert isinstance(opened, DeltaSource) and opened.nonce == "nonce"
    assert opened.schema() == source.schema()


def test_loads_of_the_same_version_have_the_same_pickle_so_that_spark_reads_once(table: str) -> None:
    assert pickled_whole(source_of(table)) == pickled_whole(source_of(table))


def parts(answer: bytes) -> list[bytes]:
    """The read function and the partitions."""
    stream = io.BytesIO(answer)

    def block() -> bytes:
        (length,) = struct.unpack("!i", stream.read(4))
        return stream.read(length)

    function = block()
    (count,) = struct.unpack("!i", stream.read(4))
    found = [function, *(block() for _ in range(count))]
    assert stream.read() == b""
    return found


def test_planning_gives_a_read_function_and_partitions_as_tasks_take_them(table: str) -> None:
    source = source_of(table)
    answer = planned(Planning(pickled_whole(source), source.schema().json(), 10_000, True))
    function, *partitions = parts(answer)
    read, schema = pickle.loads(function)
    assert schema == source.schema()
    rows = []
    for partition in partitions:
        batch = pa.record_batch([pa.array([partition], pa.binary())], names=["partition"])
        rows += [row for read_batch in read(iter([batch])) for row in read_batch.to_pylist()]
    assert sorted(rows, key=lambda row: row["id"]) == [{"id": 0, "day": "mon"}, {"id": 1, "day": "tue"}]
    assert b"part-" not in function, "files are in partitions alone"


def test_planning_again_reads_nothing_of_the_log(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_py.storage.kept_objects._SETTLED_MS", 0)
    source = source_of(table)
    planning = Planning(pickled_whole(source), source.schema().json(), 10_000, True)
    _, *partitions = parts(planned(planning))
    monkeypatch.setattr("delta_py.snapshot._Log.files", pytest.fail)
    assert parts(planned(planning))[1:] == partitions


def test_what_keeps_does_not_travel(table: str) -> None:
    source = source_with("nonce")({"path": table}).keeping()
    source.schema()
    assert isinstance(source._pinned, PinnedTable) and type(source._pinned.snapshot) is KeptSnapshot
    made = pickled_whole(source)
    assert made == pickled_whole(source_of(table))
    opened = pickle.loads(made)
    assert type(opened._pinned.snapshot) is Snapshot and opened._snapshots is Snapshot
    assert type(opened.keeping()._pinned.snapshot) is KeptSnapshot


def test_scans_are_not_counted_here_as_the_rule_counts_them(table: str) -> None:
    source = source_of(table)
    predicate = '{"name": "=", "children": [{"column": ["id"]}, {"type": "long", "value": 1}]}'
    schema = json.loads(source.schema().json())
    schema["fields"][0]["metadata"] = {MARKER_KEY: f'{{"predicates": [{predicate}], "limit": null, "nonce": "n"}}'}
    _, *partitions = parts(planned(Planning(pickled_whole(source), json.dumps(schema), 10_000, True)))
    assert b"kept:n:1/2 files" in partitions[0]
    assert FILTERED.of(Snapshot.load(open_store(table))) == {}


@pytest.mark.parametrize("value", [{"no": "source"}, object])
def test_planning_for_what_is_no_source_of_ours_is_an_error(value: Any) -> None:
    with pytest.raises(TypeError, match="is no source of pydelta"):
        planned(Planning(pickle.dumps(value), "{}", 1, True))


# ---------------------------------------------------------------- who loads


class Session:
    """As much of a session as `load` asks for, whose JVM fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Context:
            pass

        self.sparkContext: Any = Context()
        self.told: list[str] = []
        monkeypatch.setitem(offers._loads, self.sparkContext, object())
        monkeypatch.setattr(offers, "installed_rule", lambda spark: SimpleNamespace(notLoadedByDriver=self.told.append))

        def broken(*_: Any) -> None:
            raise OSError("no more files can be opened here")

        monkeypatch.setattr(loads, "_load", broken)

    def load(self, by_worker: Callable[[], Any]) -> Any:
        spark: Any = self
        return loads.load(spark, lambda: None, "/data/t", {}, by_worker)


def test_load_that_fails_here_is_a_workers_and_after_three_in_a_row_all_are(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spark = Session(monkeypatch)
    assert [spark.load(lambda: "frame") for _ in range(5)] == ["frame"] * 5
    assert spark.told == ["OSError: no more files can be opened here"] * 3
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "not loaded by the driver's own Python any more: OSError: no more files" in record.getMessage()


def test_error_that_workers_raise_too_is_theirs_and_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Session(monkeypatch)

    def failing() -> None:
        raise ValueError("no such table")

    for _ in range(5):
        with pytest.raises(ValueError, match="no such table") as raised:
            spark.load(failing)
        assert raised.value.__context__ is None
    assert spark.told == []
    assert offers._loads[spark.sparkContext] is not None


def test_path_that_is_no_text_is_for_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    spark: Any = Session(monkeypatch)
    assert loads.load(spark, lambda: None, ["/data/t", "/data/u"], {}, lambda: "frame") == "frame"
    assert spark.told == []


@pytest.mark.parametrize(
    ("path", "directory", "same"),
    [
        ("/data/t", "/elsewhere", True),
        ("s3://bucket/t", "/elsewhere", True),
        ("file:/data/t", "/elsewhere", True),
        ("t", "/elsewhere", False),
        ("t@v1", "/elsewhere", False),
        ("t", os.getcwd(), True),
    ],
)
def test_relative_path_counts_from_a_processs_directory(path: str, directory: str, same: bool) -> None:
    assert loads._is_the_same_here(path, directory) == same
