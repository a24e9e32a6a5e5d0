from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from spark_plugin.sql_definitions import _partitioning


def transform(name: str, *columns: tuple[str, ...]) -> Any:
    """As py4j shows that of another jar: what it has from its interface alone is not there."""
    arguments = [SimpleNamespace(fieldNames=lambda names=column: list(names)) for column in columns]
    return SimpleNamespace(name=lambda: name, arguments=lambda: arguments, toString=lambda: f"{name}(...)")


def test_clustering_columns_are_read_off_the_parsers_of_spark_and_delta_spark() -> None:
    for name in ("cluster_by", "temp_cluster_by"):
        assert _partitioning([transform(name, ("k",), ("s", "a"))]) == ((), ("k", "s.a"), ())


def test_what_is_no_column_is_told_apart() -> None:
    found = _partitioning([transform("identity", ("p",)), transform("bucket", ("k",)), transform("identity", ("q",))])
    assert found == (("p", "q"), None, ("bucket(...)",))
