"""Which adapter a session gets, and what the adapter of a Spark Connect client says without a server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import ArrayType, DataType, IntegerType, LongType, StringType, VariantType

from spark_plugin.internals.classic_adapter import ClassicAdapter
from spark_plugin.internals.connect_adapter import ConnectAdapter
from spark_plugin.internals.session_adapter import adapter_of


def client(**attributes: Any) -> Any:
    """A session of Spark Connect."""
    spark: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    vars(spark).update(attributes)
    return spark


def test_session_gets_the_adapter_of_its_kind() -> None:
    classic, connect = adapter_of(SimpleNamespace()), adapter_of(client())
    assert isinstance(classic, ClassicAdapter) and classic.is_driver and classic.internals is classic
    assert isinstance(connect, ConnectAdapter) and not connect.is_driver and connect.internals is None


def test_client_has_the_settings_and_the_id_of_the_server() -> None:
    adapter = adapter_of(client(session_id="s", conf=SimpleNamespace(getAll={"a": "1"})))
    assert adapter.session_id == "s"
    assert adapter.settings() == {"a": "1"} and adapter.hadoop_settings("fs.") == {}


@pytest.mark.parametrize(
    ("source", "target", "known"),
    [
        (IntegerType(), StringType(), True),
        (IntegerType(), LongType(), None),
        (VariantType(), StringType(), None),
        (ArrayType(LongType()), StringType(), None),
    ],
)
def test_client_knows_only_up_casts_of_simple_values_to_text(source: DataType, target: DataType, known: bool | None) -> None:
    assert adapter_of(client()).can_up_cast(source, target) is known


def test_client_calls_a_frame_by_the_last_part_of_a_name() -> None:
    frame: Any = SimpleNamespace(alias=lambda name: f"frame called {name}")
    assert adapter_of(client()).alias_frame(frame, ("spark_catalog", "shop", "sales")) == "frame called sales"
