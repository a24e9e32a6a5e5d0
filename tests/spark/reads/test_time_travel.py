"""Versions and timestamps through Spark, in the session's time zone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_plugin.exceptions import InvalidOptionError, TimestampOutOfRangeError, VersionNotFoundError
from tests.support.tables.small_table import make_table

pytestmark = pytest.mark.usefixtures("plain_plans")


def at(hour: int) -> int:
    return round(datetime(2024, 3, 10, hour, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Version n has n + 1 rows; 0, 1 and 2 were committed at 10, 11 and 12 o'clock UTC on 2024-03-10."""
    commits = [pa.table({"id": pa.array([n], pa.int64())}) for n in range(3)]
    return make_table(tmp_path / "t", commits, times_ms=[at(10), at(11), at(12)])


@pytest.fixture
def time_zone(spark: SparkSession) -> Iterator[Any]:
    yield lambda name: spark.conf.set("spark.sql.session.timeZone", name)
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def count(spark: SparkSession, path: str, **options: Any) -> int:
    return spark.read.format("pydelta").options(**options).load(path).count()


@pytest.mark.parametrize("version", [0, 1, 2, "1"])
def test_version_as_of_reads_that_version(spark: SparkSession, table: str, version: Any) -> None:
    assert count(spark, table, versionAsOf=version) == int(version) + 1


def test_version_as_of_beyond_the_newest_is_refused(spark: SparkSession, table: str) -> None:
    with pytest.raises(VersionNotFoundError, match=r"\[0, 2\]") as caught:
        count(spark, table, versionAsOf=3)
    assert caught.value.error_class == "DELTA_VERSION_NOT_FOUND"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-03-10 10:00:00", 1),
        ("2024-03-10 10:59:59.999", 1),
        ("2024-03-10T11:00:00", 2),
        ("2024-03-10 11:30:00.123456789", 2),
        ("2024-03-10 12:00:00Z", 3),
        ("2024-03-10 12:00:00+01:00", 2),
        ("2024-03-10 13:00:00 Europe/Paris", 3),
        ("2024-03-10 12:00:00 GMT+1", 2),
    ],
)
def test_timestamp_as_of_reads_the_newest_version_at_that_time(spark: SparkSession, table: str, text: str, expected: int) -> None:
    assert count(spark, table, timestampAsOf=text) == expected


def test_timestamp_as_of_without_offset_uses_session_time_zone(spark: SparkSession, table: str, time_zone: Any) -> None:
    time_zone("Asia/Tokyo")
    assert count(spark, table, timestampAsOf="2024-03-10 20:30:00") == 2
    assert spark.read.load(table, format="pydelta", timestampAsOf="2024-03-10 19:30:00").count() == 1
    time_zone("America/Los_Angeles")
    # Clocks went forward at 2 o'clock on that day: 3:30 there is 10:30 UTC.
    assert count(spark, table, timestampAsOf="2024-03-10 03:30:00") == 1
    assert count(spark, table, timestampAsOf="2024-03-10 12:00:00", timeZone="UTC") == 3


def test_timestamp_as_of_outside_the_history_is_refused(spark: SparkSession, table: str) -> None:
    with pytest.raises(TimestampOutOfRangeError) as late:
        count(spark, table, timestampAsOf="2024-03-10 12:00:01")
    assert late.value.error_class == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    with pytest.raises(TimestampOutOfRangeError) as early:
        count(spark, table, timestampAsOf="2024-03-10")
    assert early.value.error_class == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"


def test_version_and_timestamp_together_are_refused(spark: SparkSession, table: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        count(spark, table, versionAsOf=1, timestampAsOf="2024-03-10 11:00:00")
    assert caught.value.error_class == "DELTA_ONEOF_IN_TIMETRAVEL"


@pytest.mark.parametrize(("suffix", "expected"), [("@v0", 1), ("@V1", 2), ("@20240310113000000", 2), ("@20240310120000000", 3)])
def test_path_with_a_version_or_time_reads_that_version(spark: SparkSession, table: str, suffix: str, expected: int) -> None:
    assert count(spark, table + suffix) == expected


def test_path_with_a_time_is_in_the_session_time_zone(spark: SparkSession, table: str, time_zone: Any) -> None:
    time_zone("Asia/Tokyo")
    assert count(spark, table + "@20240310193000000") == 1


def test_table_path_that_ends_like_a_version_is_a_plain_path(spark: SparkSession, tmp_path: Path) -> None:
    make_table(tmp_path / "t", [pa.table({"id": pa.array([1, 2], pa.int64())})])
    own_table = make_table(tmp_path / "t@v0", [pa.table({"id": pa.array([7], pa.int64())})])
    assert count(spark, own_table) == 1
    assert count(spark, own_table, versionAsOf=0) == 1


def test_path_with_a_version_and_an_option_is_refused(spark: SparkSession, table: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        count(spark, table + "@v1", versionAsOf=1)
    assert caught.value.error_class == "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"
