"""What the driver's own Python makes and plans, without Spark: the values that travel between the processes."""

from __future__ import annotations

import io
import json
import logging
import os
import pickle
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from delta_py import write_delta
from delta_py.cached_snapshots import SNAPSHOT_CACHE, CachedSnapshot
from delta_py.errors import InvalidOptionError, TableNotFoundError, VersionNotFoundError
from delta_py.object_stores.open_store import open_store
from delta_py.scan.filtered_columns import FILTERED
from delta_py.snapshot import Snapshot
from spark_plugin.data_source import DeltaSource, pickled_whole
from spark_plugin.driver_planning import loads, offers
from spark_plugin.driver_planning.planner import open_source, planned
from spark_plugin.driver_planning.sources import make_source
from spark_plugin.options.common import SESSION
from spark_plugin.options.private import signed
from spark_plugin.pruning.scan_request import MARKER_KEY
from spark_plugin.session_source import source_of_process, source_with
from spark_plugin.source.pinned import PinnedTable, pin
from tests.support.spark.driver_requests import opening_body, planning_body
from tests.support.tables.small_table import append, make_table

ROWS = [{"id": 0, "day": "mon"}, {"id": 1, "day": "tue"}]


@pytest.fixture
def table(tmp_path: Path) -> str:
    commits = [pa.table({"id": pa.array([number], pa.int64()), "day": [day]}) for number, day in enumerate(("mon", "tue"))]
    return make_table(tmp_path / "t", commits, partition_by=["day"])


def source_of(table: str) -> DeltaSource:
    source = source_with("nonce")({"path": table})
    source.schema()
    return source


def test_whole_pickle_is_pinned_and_task_pickle_stays_small(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(table)
    pickled = pickled_whole(source)
    assert type(pickle.loads(pickle.dumps(DeltaSource({"path": table})))).__name__ == "TaskSource"
    monkeypatch.setattr("spark_plugin.data_source.pin", pytest.fail)
    opened = pickle.loads(pickled)
    assert isinstance(opened, DeltaSource) and opened.nonce == "nonce"
    assert opened.schema() == source.schema()


def test_loads_of_the_same_version_have_equal_pickles(table: str) -> None:
    assert pickled_whole(source_of(table)) == pickled_whole(source_of(table))


@pytest.mark.parametrize("has_checksums", [True, False])
def test_load_from_cached_version_has_the_pickle_of_the_first(
    has_checksums: bool, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_checksums:
        write_delta(table, pa.table({"id": pa.array([9], pa.int64()), "day": ["sun"]}), mode="append")
    monkeypatch.setattr("delta_py.storage.cache.content_identity._SETTLED_MS", 0)
    SNAPSHOT_CACHE.forget()

    def load() -> DeltaSource:
        source = make_source({"path": table}, os.getcwd())
        assert source is not None
        source.schema()
        return source

    one, other = load(), load()
    assert isinstance(one._pinned, PinnedTable) and isinstance(other._pinned, PinnedTable)
    one_view, other_view = (pin(replace(loaded._pinned.options, view="detail"), CachedSnapshot) for loaded in (one, other))
    assert pickle.dumps(one_view) == pickle.dumps(other_view)
    assert one._pinned.snapshot.metadata is other._pinned.snapshot.metadata, "the second is of what was kept"
    assert pickled_whole(one) == pickled_whole(other)


def parts(answer: bytes) -> list[bytes]:
    """The read function and the partitions."""
    stream = io.BytesIO(answer)

    def block() -> bytes:
        (length,) = struct.unpack("!i", stream.read(4))
        return stream.read(length)

    function = block()
    (count,) = struct.unpack("!i", stream.read(4))
    answer_parts = [function, *(block() for _ in range(count))]
    assert stream.read() == b""
    return answer_parts


def rows_of(answer: bytes) -> list[dict[str, Any]]:
    """As tasks read them, by id."""
    function, *partitions = parts(answer)
    read, _ = pickle.loads(function)
    batches = [pa.record_batch([pa.array([partition], pa.binary())], names=["partition"]) for partition in partitions]
    rows = [row for batch in batches for read_batch in read(iter([batch])) for row in read_batch.to_pylist()]
    return sorted(rows, key=lambda row: row["id"])


def test_planning_returns_read_function_and_partitions_for_tasks(table: str) -> None:
    source = source_of(table)
    answer = planned(planning_body(pickled_whole(source), source.schema().json()))
    function = parts(answer)[0]
    _, schema = pickle.loads(function)
    assert schema == source.schema()
    assert rows_of(answer) == ROWS
    assert b"part-" not in function, "files are in partitions alone"


def test_planning_again_reads_nothing_of_the_log(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_py.storage.cache.content_identity._SETTLED_MS", 0)
    source = source_of(table)
    planning = planning_body(pickled_whole(source), source.schema().json())
    _, *partitions = parts(planned(planning))
    monkeypatch.setattr("delta_py.snapshot._Log.files", pytest.fail)
    assert parts(planned(planning))[1:] == partitions


def test_what_keeps_does_not_travel(table: str) -> None:
    source = source_with("nonce")({"path": table}).with_snapshot_cache()
    source.schema()
    assert isinstance(source._pinned, PinnedTable) and type(source._pinned.snapshot) is CachedSnapshot
    pickled = pickled_whole(source)
    assert pickled == pickled_whole(source_of(table))
    opened = pickle.loads(pickled)
    assert type(opened._pinned.snapshot) is Snapshot and opened._snapshot_class is Snapshot
    assert type(opened.with_snapshot_cache()._pinned.snapshot) is CachedSnapshot


def test_scans_are_not_counted_here_as_the_rule_counts_them(table: str) -> None:
    source = source_of(table)
    predicate = '{"name": "=", "children": [{"column": ["id"]}, {"type": "long", "value": 1}]}'
    schema = json.loads(source.schema().json())
    schema["fields"][0]["metadata"] = {MARKER_KEY: f'{{"predicates": [{predicate}], "limit": null, "scan_id": "n"}}'}
    _, *partitions = parts(planned(planning_body(pickled_whole(source), json.dumps(schema))))
    assert b'"kept": {"files": 1, "files_total": 2' in partitions[0]
    assert FILTERED.of(Snapshot.load(open_store(table))) == {}


@pytest.mark.parametrize("value", [{"no": "source"}, object])
def test_planning_for_what_is_no_source_of_ours_is_an_error(value: Any) -> None:
    with pytest.raises(TypeError, match="is no source of pydelta"):
        planned(planning_body(pickle.dumps(value), "{}"))


def test_planning_that_is_cut_off_is_an_error(table: str) -> None:
    source = source_of(table)
    body = planning_body(pickled_whole(source), source.schema().json())
    assert len(parts(planned(body))) == 3
    for length in (0, 8, 9, 10, len(body) // 2, len(body) - len(source.schema().json()), len(body) - 1):
        with pytest.raises((struct.error, pickle.UnpicklingError, EOFError, ValueError)):
            planned(body[:length])


# ---------------------------------------------------------------- who loads


class Session:
    """The part of a session that `load` uses, with a JVM that fails."""

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


def test_failed_load_goes_to_a_worker_and_after_three_all_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spark = Session(monkeypatch)
    assert [spark.load(lambda: "frame") for _ in range(5)] == ["frame"] * 5
    assert spark.told == ["OSError: no more files can be opened here"] * 3
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "not loaded by the driver's own Python any more: OSError: no more files" in record.getMessage()


def test_error_that_workers_raise_too_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
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


# ---------------------------------------------------------------- tables that are opened here


@pytest.mark.parametrize(
    ("path", "directory", "is_here"),
    [
        ("/data/t", "/elsewhere", True),
        ("s3://bucket/t", "/elsewhere", True),
        ("file:/data/t", "/elsewhere", True),
        ("t", "/elsewhere", False),
        ("t@v1", "/elsewhere", False),
        ("t", os.getcwd(), True),
    ],
)
def test_relative_path_counts_from_a_processs_directory(path: str, directory: str, is_here: bool) -> None:
    source = make_source({"path": path}, directory)
    assert (source is not None) == is_here
    if source is not None:
        assert isinstance(source, source_of_process()) and source.options["path"] == path


def opened_parts(answer: bytes) -> tuple[DeltaSource, str]:
    """The DataSource, and its columns as JSON."""
    (length,) = struct.unpack_from("!i", answer)
    return pickle.loads(answer[4 : 4 + length]), answer[4 + length :].decode()


def test_table_that_is_opened_is_read_as_it_was_then(table: str) -> None:
    source, schema = opened_parts(open_source(opening_body({"path": table}, "/elsewhere")))
    assert isinstance(source, DeltaSource) and isinstance(source._pinned, PinnedTable)
    assert type(source._pinned.snapshot) is Snapshot, "what keeps does not travel"
    assert schema == source_of(table).schema().json()
    append(Path(table), pa.table({"id": pa.array([2], pa.int64()), "day": ["wed"]}), partition_by=["day"])
    assert rows_of(planned(planning_body(pickled_whole(source), schema))) == ROWS


def test_open_applies_options_of_the_table_and_signed_ones(table: str) -> None:
    own_options = signed({SESSION: '{"timeZone": "Asia/Tokyo"}'}, source_of_process().nonce or "")
    source, _ = opened_parts(open_source(opening_body({"path": table, "versionAsOf": "0", **own_options}, "/elsewhere")))
    assert isinstance(source._pinned, PinnedTable) and source._pinned.snapshot.version == 0
    assert source._pinned.options.session.time_zone == "Asia/Tokyo"


def test_relative_path_opens_only_in_the_directory_of_workers(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(table).parent)
    source, schema = opened_parts(open_source(opening_body({"path": "t"}, os.getcwd())))
    assert schema == source_of(table).schema().json()
    plan = planned(planning_body(pickled_whole(source), schema))
    assert rows_of(plan) == ROWS
    with pytest.raises(ValueError, match=re.escape(f"t is relative to /elsewhere, and this process is in {os.getcwd()}")):
        open_source(opening_body({"path": "t"}, "/elsewhere"))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        pytest.param({"versionAsOf": "seven"}, InvalidOptionError, "'seven'", id="no_number"),
        pytest.param({"versionAsOf": "7"}, VersionNotFoundError, " 7", id="no_such_version"),
        pytest.param({"path": "/no/such/table"}, TableNotFoundError, "/no/such/table", id="no_table"),
        pytest.param({SESSION: "{}"}, InvalidOptionError, "gives the options pydelta.session", id="unsigned"),
        pytest.param(signed({SESSION: "{}"}, "x"), InvalidOptionError, "gives the options pydelta.nonce", id="of_another"),
    ],
)
def test_options_that_open_no_table_raise_what_is_wrong(
    table: str, options: dict[str, str], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        open_source(opening_body({"path": table, **options}, "/elsewhere"))


def test_question_that_is_cut_off_opens_no_table(table: str) -> None:
    body = opening_body({"path": table}, "/elsewhere")
    with pytest.raises(ValueError, match="unexpected end"):
        open_source(body[:-1])
