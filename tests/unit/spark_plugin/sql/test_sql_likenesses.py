"""CREATE TABLE ... LIKE: the definition of the new table, which must be valid."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import set_properties
from delta_py.alter.drop_feature import drop_feature
from delta_py.commit.transaction import Transaction
from delta_py.definition.create import TableDefinition, define_table
from delta_py.object_stores.open_store import open_store
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import parse_schema
from spark_plugin.definition_statements.create_like import _with_definition_of
from spark_plugin.table_api.builders import TableRequest
from tests.support.stores.coordination import create_coordinated, ledger_url

ROWS = {"id": [1, 2], "name": ["a", "b"]}


def like(source: ObjectStore) -> TableDefinition:
    """The definition from a CREATE TABLE LIKE."""
    arguments = _with_definition_of(Snapshot.load(source), TableRequest("create")).arguments()
    return define_table(
        parse_schema(arguments["schema"]),
        partition_by=arguments["partition_by"],
        description=arguments["description"],
        configuration=arguments["properties"],
    )


def created(path: Path, **configuration: str) -> ObjectStore:
    properties = {name.replace("__", "."): value for name, value in configuration.items()}
    write_delta(str(path), pa.table(ROWS), configuration=properties)
    return open_store(str(path))


def test_create_like_copies_no_checkpoint_protection(tmp_path: Path) -> None:
    source = created(tmp_path, delta__enableDeletionVectors="true", team="a")
    drop_feature(source, "deletionVectors")
    assert "delta.requireCheckpointProtectionBeforeVersion" in Snapshot.load(source).metadata.configuration
    definition = like(source)
    assert dict(definition.metadata.configuration) == {"team": "a"}
    assert set(definition.config.features) == {"appendOnly", "invariants"}


def test_table_like_one_with_columns_dropped_has_dropped_none(tmp_path: Path) -> None:
    source = created(tmp_path, delta__columnMapping__mode="name", delta__feature__columnMappingUsageTracking="supported")
    DeltaTable(source.root).alter.drop_columns(["name"])
    present = Snapshot.load(source).metadata.configuration
    assert present["delta.columnMapping.hasDroppedOrRenamed"] == "true"
    definition = like(source)
    assert definition.config.schema.names == ("id",)
    configuration = dict(definition.metadata.configuration)
    assert configuration == {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    assert definition.config.feature("columnMappingUsageTracking")


@pytest.mark.parametrize("suspended", [False, True])
def test_create_like_copies_no_row_id_column_and_no_suspension(tmp_path: Path, suspended: bool) -> None:
    source = created(tmp_path, delta__enableRowTracking="true")
    if suspended:
        set_properties(source, {"delta.enableRowTracking": "false"})
        _say(source, {"delta.rowTrackingSuspended": "true"})
    before = dict(Snapshot.load(source).metadata.configuration)
    definition = like(source)
    after = dict(definition.metadata.configuration)
    assert "delta.rowTrackingSuspended" not in after
    name = "delta.rowTracking.materializedRowIdColumnName"
    assert (name in after) == (not suspended) and after.get(name) != before[name]


def _say(store: ObjectStore, properties: dict[str, str]) -> None:
    """As another writer that sets its own properties."""
    snapshot = Snapshot.load(store)
    configuration = {**snapshot.metadata.configuration, **properties}
    Transaction(snapshot).set_metadata(replace(snapshot.metadata, configuration=configuration)).commit("TEST", {})


@pytest.mark.usefixtures("publication_at_once")
def test_table_like_a_coordinated_one_has_a_log_of_its_own(tmp_path: Path) -> None:
    source = create_coordinated(tmp_path / "t", ledger_url(tmp_path), ROWS, team="a")
    definition = like(source)
    assert dict(definition.metadata.configuration) == {"team": "a", "delta.enableInCommitTimestamps": "true"}
    assert not definition.config.feature("catalogManaged")


def test_create_like_enables_timestamps_from_the_start(tmp_path: Path) -> None:
    source = created(tmp_path)
    set_properties(source, {"delta.enableInCommitTimestamps": "true"})
    assert dict(like(source).metadata.configuration) == {"delta.enableInCommitTimestamps": "true"}


def test_create_like_copies_user_properties_and_features(tmp_path: Path) -> None:
    source = created(tmp_path, delta__enableChangeDataFeed="true", team="a", delta__feature__timestampNtz="supported")
    definition = like(source)
    assert dict(definition.metadata.configuration) == {"team": "a", "delta.enableChangeDataFeed": "true"}
    assert {"changeDataFeed", "timestampNtz"} <= set(definition.config.features)
