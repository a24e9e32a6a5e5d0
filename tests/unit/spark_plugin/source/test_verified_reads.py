"""Reads of the source that compare pages with their checksums: by option and by setting, for batches, changes, streams and small
queries.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import write_delta
from delta_py.errors import DataFileError, InvalidOptionError
from spark_plugin.data_source import DeltaSource, pickled_whole
from spark_plugin.driver_planning.planner import planned
from spark_plugin.driver_planning.reads import SmallScans
from spark_plugin.options.catalog_session_settings import CATALOG_SETTINGS, SETTINGS, VERIFY_CHECKSUMS, with_session
from spark_plugin.options.common import SESSION
from spark_plugin.options.read_options import read_options
from spark_plugin.options.streaming_options import stream_read_options
from spark_plugin.pruning.scan_request import MARKER_KEY
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.streaming.stream_reader import make_stream_reader, pin_stream
from tests.support.spark.driver_requests import planning_body
from tests.support.tables.flipped_bits import chunk_places, flipped

IDS = list(range(100, 120))


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table of one file, uncompressed, so that a flip in the last byte of a page of plain values gives another value."""
    path = str(tmp_path / "t")
    rows = pa.table({"id": pa.array(IDS, pa.int64())})
    write_delta(path, rows, configuration={"delta.enableChangeDataFeed": "true"}, compression="uncompressed", mode="error")
    return path


def damaged(path: str) -> Any:
    """A value of the table is changed within the context."""
    (file,) = Path(path).glob("*.parquet")
    place = file.read_bytes().index((110).to_bytes(8, "little"))
    assert place in chunk_places(file)
    return flipped(file, place)


def tasks_read(reader: Any, parts: list[Any]) -> list[int]:
    """As Spark's tasks read: they get the plan pickled."""
    task = pickle.loads(pickle.dumps(reader))
    return [row for part in parts for batch in task.read(part) for row in batch["id"].to_pylist()]


def batch_read(path: str, **options: str) -> list[int]:
    source = DeltaSource({"path": path, **options})
    reader = source.reader(source.schema())
    return tasks_read(reader, list(reader.partitions()))


def change_read(path: str, **options: str) -> list[int]:
    return batch_read(path, readChangeFeed="true", startingVersion="0", **options)


def stream_read(path: str, **options: str) -> list[int]:
    pinned = pin_stream({"path": path, **options})
    reader = make_stream_reader(pinned, to_spark_schema(pinned.schema))
    start = reader.initialOffset()
    return tasks_read(reader, reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit())))


def few_rows_read(path: str, **options: str) -> list[int]:
    scans, source = SmallScans(), DeltaSource({"path": path, **options})
    schema = json.loads(source.schema().json())
    schema["fields"][0]["metadata"][MARKER_KEY] = json.dumps({"predicates": [], "limit": None, "scan_id": "n"})
    planned(planning_body(pickled_whole(source), json.dumps(schema)), scans.keep)
    ids: list[int] = pa.ipc.open_stream(scans.read(b"n")).read_all()["id"].to_pylist()
    return ids


ROADS = {"batch": batch_read, "changes": change_read, "stream": stream_read, "few rows": few_rows_read}


@pytest.mark.parametrize("road", ROADS)
def test_option_makes_damage_an_error_that_names_the_file(table: str, road: str) -> None:
    read: Callable[..., list[int]] = ROADS[road]
    assert sorted(read(table, VerifyCHECKSUMS="true")) == IDS
    with damaged(table):
        assert sorted(read(table)) != IDS
        with pytest.raises(DataFileError, match=r"(?s)\.parquet cannot be read.*CRC"):
            read(table, VerifyCHECKSUMS="true")


@pytest.mark.parametrize(
    ("option", "setting", "verifies"),
    [(None, None, False), ("true", None, True), (None, "true", True), ("false", "true", False), ("true", "false", True)],
)
def test_option_comes_before_the_session_s_setting(option: str | None, setting: str | None, verifies: bool) -> None:
    options = {"path": "/t"} if option is None else {"path": "/t", "verifyChecksums": option}
    of_session = {} if setting is None else {"verifyChecksums": setting}
    assert read_options({**options, SESSION: json.dumps(of_session)}).verify_checksums is verifies
    assert stream_read_options({**options, SESSION: json.dumps(of_session)}).batch.verify_checksums is verifies
    confs = {} if setting is None else {VERIFY_CHECKSUMS: setting}
    settings = json.dumps({"confs": confs, "hadoop": {}, "parallelism": 2})
    assert read_options(with_session({**options, CATALOG_SETTINGS: settings})).verify_checksums is verifies
    assert VERIFY_CHECKSUMS in SETTINGS


@pytest.mark.parametrize("options", [{"verifyChecksums": "yes"}, {SESSION: json.dumps({"verifyChecksums": "yes"})}])
def test_value_that_is_no_flag_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match="'yes' for option 'verifyChecksums'"):
        read_options({"path": "/t", **options})
