"""Definitions of new tables: the protocol that schema and properties need, and invalid definitions."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import orjson
import pytest

from delta_py.definition.create import TableDefinition, create_table, define_table
from delta_py.errors import DeltaError, ProtocolChangedException
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import (
    DATE,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    ArrayType,
    MapType,
    StructField,
    StructType,
)

SCHEMA = StructType(
    (StructField("id", LONG), StructField("Day", DATE), StructField("s", StructType((StructField("x", STRING),))))
)


def protocol_of(schema: StructType = SCHEMA, **configuration: str) -> tuple[int, int, set[str] | None, set[str] | None]:
    named = {name.replace("__", "."): value for name, value in configuration.items()}
    protocol = define_table(schema, configuration=named).protocol
    readers, writers = protocol.reader_features, protocol.writer_features
    return (
        protocol.min_reader_version,
        protocol.min_writer_version,
        None if readers is None else set(readers),
        None if writers is None else set(writers),
    )


BASE = {"appendOnly", "invariants"}


def test_define_table_of_plain_schema_needs_the_oldest_protocol() -> None:
    definition = define_table(SCHEMA, partition_by=["DAY"], name="n", description="d", configuration={"my.key": "v"})
    assert protocol_of() == (1, 2, None, None)
    metadata = definition.metadata
    assert metadata.partition_columns == ("Day",)
    assert (metadata.name, metadata.description, dict(metadata.configuration)) == ("n", "d", {"my.key": "v"})
    assert metadata.created_time_ms is not None and len(metadata.id) == 36
    assert definition.config.schema == SCHEMA
    assert pickle.loads(pickle.dumps(definition)) == definition
    assert define_table(SCHEMA).metadata.id != metadata.id


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({"delta__appendOnly": "true"}, (1, 2, None, None)),
        ({"delta__enableChangeDataFeed": "true"}, (1, 7, None, BASE | {"changeDataFeed"})),
        ({"DELTA__ENABLEDELETIONVECTORS": "true"}, (3, 7, {"deletionVectors"}, BASE | {"deletionVectors"})),
        ({"delta__enableDeletionVectors": "false"}, (1, 2, None, None)),
        ({"delta__columnMapping__mode": "name"}, (2, 7, None, BASE | {"columnMapping"})),
        ({"delta__checkpointPolicy": "v2"}, (3, 7, {"v2Checkpoint"}, BASE | {"v2Checkpoint"})),
        ({"delta__enableInCommitTimestamps": "true"}, (1, 7, None, BASE | {"inCommitTimestamp"})),
        ({"delta__enableRowTracking": "true"}, (1, 7, None, BASE | {"rowTracking", "domainMetadata"})),
        ({"delta__feature__vacuumProtocolCheck": "supported"}, (3, 7, {"vacuumProtocolCheck"}, BASE | {"vacuumProtocolCheck"})),
        ({"delta__minReaderVersion": "2", "delta__minWriterVersion": "5"}, (2, 5, None, None)),
        ({"delta__minWriterVersion": "4", "delta__enableChangeDataFeed": "true"}, (1, 4, None, None)),
        ({"delta__minReaderVersion": "3", "delta__minWriterVersion": "7"}, (3, 7, set(), BASE)),
    ],
)
def test_define_table_property_brings_the_features_it_needs(configuration: dict[str, str], expected: Any) -> None:
    assert protocol_of(**configuration) == expected


def test_define_table_nested_timestamp_ntz_needs_its_feature() -> None:
    schema = StructType((StructField("m", MapType(STRING, ArrayType(TIMESTAMP_NTZ))),))
    assert protocol_of(schema) == (3, 7, {"timestampNtz"}, BASE | {"timestampNtz"})


def test_define_table_stores_properties_in_known_spelling() -> None:
    definition = define_table(SCHEMA, configuration={"DELTA.appendonly": "TRUE", "delta.feature.deletionVectors": "enabled"})
    assert dict(definition.metadata.configuration) == {"delta.appendOnly": "TRUE"}


def test_define_table_mapping_gives_ids_and_physical_names() -> None:
    spaced = StructType((StructField("a b", LONG), StructField("s", StructType((StructField("c=d", LONG),)))))
    definition = define_table(spaced, partition_by=["a b"], configuration={"delta.columnMapping.mode": "id"})
    fields = [definition.config.schema.fields[0], definition.config.schema.fields[1]]
    assert [f.metadata["delta.columnMapping.id"] for f in fields] == [1, 2]
    assert all(f.metadata["delta.columnMapping.physicalName"].startswith("col-") for f in fields)
    assert definition.metadata.partition_columns == ("a b",)
    assert definition.metadata.configuration["delta.columnMapping.maxColumnId"] == "3"


def test_define_table_row_tracking_names_its_hidden_columns() -> None:
    configuration = define_table(SCHEMA, configuration={"delta.enableRowTracking": "true"}).metadata.configuration
    assert configuration["delta.rowTracking.materializedRowIdColumnName"].startswith("_row-id-col-")
    assert configuration["delta.rowTracking.materializedRowCommitVersionColumnName"].startswith("_row-commit-version-col-")


@pytest.mark.parametrize(
    ("schema", "partitions", "configuration", "condition"),
    [
        (StructType(), [], {}, "DELTA_EMPTY_DATA"),
        (SCHEMA, ["nope"], {}, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (SCHEMA, ["id", "ID"], {}, "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (SCHEMA, ["s"], {}, "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        (SCHEMA, ["s.x"], {}, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (StructType(SCHEMA.fields[:2]), ["id", "day"], {}, "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"),
        (StructType((StructField("a b", LONG),)), [], {}, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (StructType((StructField("a", LONG), StructField("A", LONG))), [], {}, "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (
            StructType((StructField("_Change_Type", LONG),)),
            [],
            {"delta.enableChangeDataFeed": "true"},
            "RESERVED_CDC_COLUMNS_ON_WRITE",
        ),
        (SCHEMA, [], {"delta.appendOnlyy": "true"}, "DELTA_UNKNOWN_CONFIGURATION"),
        (SCHEMA, [], {"delta.columnMapping.maxColumnId": "9"}, "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
        (SCHEMA, [], {"delta.appendOnly": "yes"}, "DELTA_ILLEGAL_OPTION"),
        (SCHEMA, [], {"delta.checkpointInterval": "ten"}, "DELTA_ILLEGAL_OPTION"),
        (SCHEMA, [], {"delta.columnMapping.mode": "both"}, "DELTA_ILLEGAL_OPTION"),
        (SCHEMA, [], {"delta.appendOnly": "true", "DELTA.APPENDONLY": "true"}, "DELTA_ILLEGAL_OPTION"),
        (SCHEMA, [], {"delta.minWriterVersion": "8"}, "DELTA_ILLEGAL_OPTION"),
        (SCHEMA, [], {"delta.feature.nope": "supported"}, "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"),
        (SCHEMA, [], {"delta.feature.deletionVectors": "on"}, "DELTA_ILLEGAL_OPTION"),
        (SCHEMA, [], {"delta.feature.catalogOwned-preview": "supported"}, "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"),
    ],
)
def test_define_table_that_cannot_be_is_refused(
    schema: StructType, partitions: list[str], configuration: dict[str, str], condition: str
) -> None:
    with pytest.raises(DeltaError) as caught:
        define_table(schema, partition_by=partitions, configuration=configuration)
    assert caught.value.error_class == condition


def test_define_table_unknown_property_names_the_nearest() -> None:
    with pytest.raises(DeltaError, match=r"Did you mean delta\.appendOnly\?"):
        define_table(SCHEMA, configuration={"delta.appendOnlly": "true"})
    with pytest.raises(DeltaError, match=r"Did you mean deletionVectors\?"):
        define_table(SCHEMA, configuration={"delta.feature.deletionVector": "supported"})
    with pytest.raises(DeltaError) as caught:
        define_table(SCHEMA, configuration={"delta.foo": "true"})
    assert "Did you mean" not in str(caught.value)


def test_create_table_makes_version_0_without_files(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path / "t"))
    definition = define_table(SCHEMA, partition_by=["day"], description="d", configuration={"delta.appendOnly": "true"})
    assert create_table(store, definition) == 0
    snapshot = Snapshot.load(store)
    assert (snapshot.version, snapshot.num_files) == (0, 0)
    assert TableDefinition(snapshot.protocol, snapshot.metadata) == definition
    info = orjson.loads((tmp_path / "t/_delta_log/00000000000000000000.json").read_bytes().split(b"\n")[0])["commitInfo"]
    assert info["operation"] == "CREATE TABLE"
    assert info["operationParameters"] == {
        "partitionBy": '["Day"]',
        "clusterBy": "[]",
        "description": "d",
        "isManaged": "false",
        "properties": '{"delta.appendOnly":"true"}',
    }
    assert "readVersion" not in info


def test_create_table_where_one_is_loses(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(SCHEMA))
    with pytest.raises(ProtocolChangedException, match="created the table"):
        create_table(store, define_table(SCHEMA))
    assert Snapshot.load(store).version == 0
