"""Which writes go without Spark's weighing of batches, and what the session's settings are afterwards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from spark_plugin.source.arrow_batches import unweighed

BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"


pytestmark = pytest.mark.usefixtures("spark")  # Spark reads the DDL of the schemas


class Settings:
    def __init__(self, **values: str) -> None:
        self.getAll: dict[str, str] = values

    def set(self, name: str, value: str) -> None:
        self.getAll[name] = value

    def unset(self, name: str) -> None:
        del self.getAll[name]


def inside(schema: str, settings: Settings | None = None) -> dict[str, str]:
    """The settings while a write of such rows starts; they must be the old ones again afterwards."""
    conf = settings or Settings()
    before = dict(conf.getAll)
    spark: Any = SimpleNamespace(conf=conf)
    with unweighed(spark, StructType.fromDDL(schema)):
        found = dict(conf.getAll)
    assert conf.getAll == before
    return found


@pytest.mark.parametrize(
    "schema", ["id long, x double, d date, t timestamp, n timestamp_ntz, p decimal(38,2), f boolean", "s struct<x: int>"]
)
def test_rows_of_a_fixed_width_are_not_weighed(schema: str) -> None:
    assert inside(schema) == {BYTES: "2147483647"}


def test_rows_with_texts_are_not_weighed_but_come_in_small_batches() -> None:
    found = inside("id long, name string")
    assert found[BYTES] == "2147483647" and int(found[RECORDS]) <= 2048


@pytest.mark.parametrize("schema", ["b binary", "a array<int>", "m map<string, int>", "s struct<x: array<int>>", "v variant"])
def test_rows_that_may_be_large_are_weighed(schema: str) -> None:
    assert inside(f"id long, {schema}") == {}


@pytest.mark.parametrize("name", [BYTES, RECORDS])
def test_sizes_that_the_user_set_stay(name: str) -> None:
    settings = Settings()
    settings.set(name, "77")
    assert inside("id long", settings) == {name: "77"}


def test_settings_are_restored_when_the_write_fails() -> None:
    conf = Settings()
    spark: Any = SimpleNamespace(conf=conf)
    with pytest.raises(ZeroDivisionError), unweighed(spark, StructType.fromDDL("id long")):
        raise ZeroDivisionError
    assert conf.getAll == {}


def test_a_real_session_takes_the_settings_and_gives_them_back(spark: SparkSession) -> None:
    before = spark.conf.get(BYTES)
    with unweighed(spark, StructType.fromDDL("id long, name string")):
        assert spark.conf.get(BYTES) == "2147483647"
    assert spark.conf.get(BYTES) == before and BYTES not in spark.conf.getAll
