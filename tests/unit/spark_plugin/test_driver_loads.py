"""What the driver's own Python makes and plans, without Spark: the values that go between the processes."""

from __future__ import annotations

import io
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

from spark_plugin.data_source import DeltaSource, pickled_whole
from spark_plugin.driver_planning import loads, offer
from spark_plugin.driver_planning.planner import Planning, planned
from spark_plugin.session_source import source_with
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
        monkeypatch.setitem(offer._loads, self.sparkContext, object())
        monkeypatch.setattr(offer, "installed_rule", lambda spark: SimpleNamespace(notLoadedByDriver=self.told.append))

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
    assert offer._loads[spark.sparkContext] is not None


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
