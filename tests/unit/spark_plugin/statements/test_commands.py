"""Commands as they reach a table: the session's settings for new tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_py.errors import InvalidOptionError
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import LONG, StructField, StructType, schema_to_json
from spark_plugin.source.commands import CommandTarget, CommandWriter, carry_out

UNFIT = {"delta.logRetentionDuration": "nonsense"}


def build(store: LocalStore, mode: str, **definition: Any) -> Any:
    schema = schema_to_json(StructType((StructField("id", LONG),)))
    arguments = {"partition_by": [], "cluster_by": [], "description": None, "properties": {}, "join": False, **definition}
    return carry_out(CommandTarget(store), "buildTable", {"mode": mode, "schema": schema, **arguments})


def test_if_not_exists_ignores_invalid_defaults_if_table_exists(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    with pytest.raises(InvalidOptionError, match="nonsense"):
        build(store, "createIfNotExists", defaults=UNFIT)
    build(store, "createIfNotExists")
    assert build(store, "createIfNotExists", defaults=UNFIT) == 0
    with pytest.raises(InvalidOptionError, match="nonsense"):
        build(store, "createOrReplace", defaults=UNFIT)
    assert Snapshot.load(store).version == 0


def test_what_the_statement_itself_says_must_be_fit_always(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    build(store, "createIfNotExists")
    with pytest.raises(InvalidOptionError, match="nonsense"):
        build(store, "createIfNotExists", properties=UNFIT)


def test_clone_has_properties_of_source_and_statement_only(tmp_path: Path) -> None:
    """Like delta-spark 4.4's shallow clones: a session's settings for new tables do not apply to them."""
    source = LocalStore(str(tmp_path / "source"))
    build(source, "create", properties={"of": "source"})
    confs = {
        "spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true",
        "spark.databricks.delta.properties.defaults.feature.v2Checkpoint": "supported",
    }
    named = {"source": source.root, "version": None, "timestamp": None, "time_zone": "UTC", "replace_table": False}
    command = json.dumps({"name": "clone", "arguments": {**named, "properties": {"of.statement": "1"}}})
    target = LocalStore(str(tmp_path / "clone"))
    CommandWriter(CommandTarget(target), command, confs).commit([])
    clone = Snapshot.load(target)
    assert dict(clone.metadata.configuration) == {"of": "source", "of.statement": "1"}
    assert clone.protocol == Snapshot.load(source).protocol
