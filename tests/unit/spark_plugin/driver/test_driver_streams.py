"""The sources of streams in the driver's own Python: the answers of Spark's own process, and which streams it serves."""

from __future__ import annotations

import io
import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming import python_streaming_source_runner as process

from delta_py import write_delta
from delta_py.errors import UnsupportedOperationError
from spark_plugin.data_source import DeltaSource, pickled_whole
from spark_plugin.driver_planning import stream_requests as streams_module
from spark_plugin.driver_planning.stream_requests import Streams
from spark_plugin.pruning.stream_question import QUESTION_KEY
from spark_plugin.spark_versions import read_limit_of_json
from spark_plugin.streaming.stream_reader import DeltaStreamReader
from tests.support.spark.driver_requests import stream_body
from tests.support.spark.needs_spark import needs_spark
from tests.support.tables.streamed_tables import daily_table, rows

ALL = '{"_type": "ReadAllAvailable"}'


@pytest.fixture
def table(tmp_path: Path) -> str:
    return daily_table(tmp_path / "t")


class Asked:
    """A stream in the driver's Python."""

    def __init__(self, streams: Streams, table: str, name: str = "s", **options: str) -> None:
        self.streams, self.name = streams, name
        source = DeltaSource({"path": table, **options})
        self.schema = DeltaSource({"path": table}).schema()
        self.is_open = bool(self("open", self.schema.json(), data_source=pickled_whole(source)))

    def __call__(self, call: str, *arguments: str, data_source: bytes = b"") -> bytes:
        return self.streams.answer(stream_body(self.name, call, *arguments, data_source=data_source))


def written(call: Callable[[Any], None]) -> bytes:
    """The output of Spark's process, without the length before it."""
    out = io.BytesIO()
    call(out)
    return out.getvalue()[4:]


def texts(*sent: str) -> io.BytesIO:
    """The input that the JVM sends to that process."""
    return io.BytesIO(b"".join(len(each.encode()).to_bytes(4, "big") + each.encode() for each in sent))


@needs_spark("4.2", "processes of streams that know limits")
def test_answers_are_byte_by_byte_those_of_sparks_process(table: str) -> None:
    here = Asked(Streams(), table, maxFilesPerTrigger="2")
    other = DeltaSource({"path": table, "maxFilesPerTrigger": "2"}).streamReader(here.schema)
    assert here.is_open
    start, limit = here("initialOffset"), here("getDefaultReadLimit")
    assert start == written(lambda out: process.initial_offset_func(other, out))
    assert limit == written(lambda out: process.get_default_read_limit_func(other, out))
    assert here("reportLatestOffset") == b"", "nothing was read yet"
    for allowed in (limit.decode(), ALL):
        end = here("latestOffset", start.decode(), allowed)
        parameters = (start.decode(), allowed)
        assert end == written(
            lambda out, asked=parameters: process.latest_offset_admission_control_func(other, texts(*asked), out)
        )
        assert here("reportLatestOffset") == written(lambda out: process.report_latest_offset_func(other, out))
        bounds = (start.decode(), end.decode())
        source, schema = DeltaSource({}), here.schema
        parts = io.BytesIO()
        process.partitions_func(other, source, schema, 1000, texts(*bounds), parts)
        assert here("partitions", *bounds) + b"\0\0\0\0" == parts.getvalue(), "which has a word more: no rows come with them"
        here("commit", end.decode())
        start = end


@pytest.mark.parametrize("call", ["latestOffset", "getDefaultReadLimit", "prepareForTriggerAvailableNow", "reportLatestOffset"])
def test_process_of_each_spark_answers_questions(call: str, table: str) -> None:
    """In a request for the tasks of a batch. The answer is that of the driver's Python."""
    here = Asked(Streams(), table, maxFilesPerTrigger="2")
    other = DeltaSource({"path": table, "maxFilesPerTrigger": "2"}).streamReader(here.schema)
    first = [here("initialOffset").decode(), here("getDefaultReadLimit").decode()]
    here("latestOffset", *first)
    other.latestOffset(json.loads(first[0]), read_limit_of_json(first[1]))
    arguments = first if call == "latestOffset" else []
    question = json.dumps({QUESTION_KEY: {"call": call, "arguments": arguments}})
    pickled = io.BytesIO()
    process.partitions_func(other, DeltaSource({}), here.schema, 1000, texts(question, "{}"), pickled)
    count, length = struct.unpack(">ii", pickled.getvalue()[:8])
    assert count == 1
    assert pickle.loads(pickled.getvalue()[8 : 8 + length]).messages == {"answer": here(call, *arguments).decode()}


def test_stream_that_is_not_told_its_start_is_refused(table: str) -> None:
    """As Spark's own stream of version 4.1 asks."""
    reader = DeltaSource({"path": table}).streamReader(DeltaSource({"path": table}).schema())
    with pytest.raises(UnsupportedOperationError, match=r"Call register\(spark\) before readStream"):
        reader.latestOffset()


def test_available_now_ends_at_the_version_of_its_start(table: str) -> None:
    here = Asked(Streams(), table)
    here("prepareForTriggerAvailableNow")
    write_delta(table, rows(5), mode="append")
    end = here("latestOffset", here("initialOffset").decode(), ALL)
    assert json.loads(end)["reservoirVersion"] == 3
    other = Asked(Streams(), table)
    assert json.loads(other("latestOffset", end.decode(), ALL))["reservoirVersion"] == 4


@pytest.mark.parametrize("option", ["schemaTrackingLocation", "readLease"])
def test_stream_that_writes_is_left_to_a_process(option: str, table: str, tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"1"}')  # from a query's checkpoint
    values = {"schemaTrackingLocation": str(tmp_path / "schemas"), "readLease": "true"}
    streams = Streams()
    here = Asked(streams, table, **{option: values[option]})
    assert not here.is_open
    with pytest.raises(KeyError):
        here("initialOffset")


def test_errors_are_those_of_the_source(table: str) -> None:
    here = Asked(Streams(), table)
    start = here("latestOffset", here("initialOffset").decode(), ALL).decode()
    write_delta(table, rows(7), mode="overwrite")
    with pytest.raises(UnsupportedOperationError, match="DELTA_SOURCE_TABLE_IGNORE_CHANGES"):
        here("latestOffset", start, ALL)
    with pytest.raises(ValueError, match="no call nothing"):
        here("nothing")


def test_stream_that_ended_is_not_kept(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[DeltaStreamReader] = []
    monkeypatch.setattr(DeltaStreamReader, "stop", lambda reader: stopped.append(reader))
    here = Asked(Streams(), table)
    here("close")
    assert len(stopped) == 1
    with pytest.raises(KeyError):
        here("initialOffset")
    here("close")
    assert len(stopped) == 1, "once"


def test_least_recently_used_stream_is_closed_beyond_the_limit(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "MOST_STREAMS", 2)
    streams = Streams()
    one, two = Asked(streams, table, "1"), Asked(streams, table, "2")
    one("initialOffset")
    three = Asked(streams, table, "3")
    with pytest.raises(KeyError):
        two("initialOffset")
    assert one("initialOffset") == three("initialOffset")


def test_stream_that_is_closed_while_it_is_opened_is_not_kept(table: str) -> None:
    """Its query was stopped at the same time, and the two calls are in different threads."""
    streams = Streams()
    streams.answer(stream_body("s", "close"))
    here = Asked(streams, table)
    with pytest.raises(KeyError):
        here("initialOffset")
    assert Asked(streams, table, "other")("initialOffset")
