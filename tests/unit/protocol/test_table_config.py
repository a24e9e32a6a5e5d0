"""Features and table configuration: what is refused, and with which name."""

from __future__ import annotations

import pickle

import pytest

from delta_py.errors import CorruptTableError, DeltaError, UnsupportedOperationError, UnsupportedTableFeatureError
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.features import FEATURES, Properties, supported_features
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.types.schema import (
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    ArrayType,
    StructField,
    StructType,
    schema_to_json,
)

PLAIN = StructType((StructField("id", LONG), StructField("p", STRING)))
READER_WRITER = sorted(name for name, row in FEATURES.items() if row.reader)
WRITER_ONLY = sorted(name for name, row in FEATURES.items() if not row.reader)


def listed(*names: str) -> Protocol:
    """Versions 3 and 7 with these features, each in its list."""
    readers = frozenset(name for name in names if name not in FEATURES or FEATURES[name].reader)
    return Protocol(3, 7, readers, frozenset(names))


def config(
    protocol: Protocol, schema: StructType = PLAIN, partitions: tuple[str, ...] = (), provider: str = "parquet", **properties: str
):
    named = {key.replace("__", "."): value for key, value in properties.items()}
    return TableConfig(protocol, Metadata("id", schema_to_json(schema), partitions, named, format_provider=provider))


def refused(table: TableConfig, operation: Operation) -> list[str]:
    with pytest.raises(UnsupportedTableFeatureError) as caught:
        table.require(operation)
    for name in caught.value.message_parameters["features"]:
        assert name in caught.value.message
    features: list[str] = caught.value.message_parameters["features"]
    return features


# ---------------------------------------------------------------- reading

READABLE = [
    "columnMapping", "deletionVectors", "timestampNtz", "timestampWithoutTimezone", "v2Checkpoint", "vacuumProtocolCheck",
    "typeWidening", "typeWidening-preview", "variantType", "variantType-preview", "variantShredding",
    "variantShredding-preview", "catalogManaged", "catalogOwned-preview", "geospatial",
    "geospatial-dev",
]  # fmt: skip


def test_readable_features_are_these() -> None:
    assert sorted(READABLE) == sorted(name for name in READER_WRITER if FEATURES[name].read)


@pytest.mark.parametrize("name", READABLE)
def test_read_of_a_table_with_a_readable_feature_is_allowed(name: str) -> None:
    config(listed(name)).require(Operation.READ)


@pytest.mark.parametrize("name", [*WRITER_ONLY, "fancyWriterThing"])
def test_read_is_never_blocked_by_a_writer_only_feature(name: str) -> None:
    config(Protocol(3, 7, frozenset(), frozenset([name]))).require(Operation.READ)
    config(Protocol(1, 7, None, frozenset([name]))).require(Operation.READ)


@pytest.mark.parametrize("name", ["catalogOwned", "fancyNewThing", "adaptiveMetadata-preview"])
def test_read_with_an_unknown_reader_feature_is_refused_by_name(name: str) -> None:
    table = config(listed("deletionVectors", name, "zeta"))
    assert refused(table, Operation.READ) == sorted([name, "zeta"])
    with pytest.raises(UnsupportedTableFeatureError, match="DELTA_UNSUPPORTED_FEATURES_FOR_READ"):
        table.require(Operation.WRITE)


def test_unknown_feature_is_reported_before_the_schema_is_read() -> None:
    table = TableConfig(listed("fancyNewThing"), Metadata("id", '{"type":"hypercube"}'))
    assert refused(table, Operation.READ) == ["fancyNewThing"]


@pytest.mark.parametrize("version", [4, 5, 99])
def test_read_of_a_newer_reader_version_is_refused(version: int) -> None:
    with pytest.raises(UnsupportedTableFeatureError, match=f"reader version {version}") as caught:
        config(Protocol(version, 7, frozenset(), frozenset())).require(Operation.READ)
    assert (caught.value.error_class, caught.value.sql_state) == ("DELTA_INVALID_PROTOCOL_VERSION", "KD004")


def test_newer_writer_version_blocks_writing_only() -> None:
    table = config(Protocol(1, 8))
    table.require(Operation.READ)
    with pytest.raises(UnsupportedTableFeatureError, match="writer version 8"):
        table.require(Operation.WRITE)


def test_feature_lists_that_are_missing_are_an_error() -> None:
    with pytest.raises(CorruptTableError, match="readerFeatures"):
        config(Protocol(3, 7, None, frozenset())).require(Operation.READ)
    with pytest.raises(CorruptTableError, match="writerFeatures"):
        config(Protocol(3, 7, frozenset(), None)).require(Operation.WRITE)


# ---------------------------------------------------------------- legacy versions

LEGACY = {
    (1, 1): set(),
    (1, 2): {"appendOnly", "invariants"},
    (1, 3): {"appendOnly", "invariants", "checkConstraints"},
    (1, 4): {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"},
    (2, 5): {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping"},
    (1, 6): {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "identityColumns"},
}  # fmt: skip


@pytest.mark.parametrize("versions", LEGACY)
def test_legacy_versions_imply_features(versions: tuple[int, int]) -> None:
    assert supported_features(Protocol(*versions)) == LEGACY[versions]
    assert config(Protocol(*versions)).features == tuple(sorted(LEGACY[versions]))


@pytest.mark.parametrize("versions", LEGACY)
def test_append_to_a_plain_table_of_any_legacy_version_works(versions: tuple[int, int]) -> None:
    config(Protocol(*versions)).require(Operation.WRITE)


def test_reader_feature_listed_for_writers_only_is_not_supported() -> None:
    assert not config(Protocol(1, 7, None, frozenset(["deletionVectors", "appendOnly"]))).feature("deletionVectors")


# ---------------------------------------------------------------- writing

ALWAYS_WRITABLE = [
    "appendOnly", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "domainMetadata", "columnMapping", "deletionVectors",
    "changeDataFeed", "invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults", "variantType",
    "variantShredding", "clustering",
]  # fmt: skip


@pytest.mark.parametrize("name", ALWAYS_WRITABLE)
def test_append_to_a_table_with_a_writable_feature_is_allowed(name: str) -> None:
    config(listed(name)).require(Operation.WRITE)


IN_USE = [
    ("coordinatedCommits-preview", PLAIN, {"delta__coordinatedCommits__commitCoordinator-preview": "dynamodb"}),
]


@pytest.mark.parametrize(("name", "schema", "properties"), IN_USE)
def test_append_is_refused_by_name_when_the_feature_is_in_use(name: str, schema: StructType, properties: dict[str, str]) -> None:
    assert refused(config(listed(name, "appendOnly"), schema, **properties), Operation.WRITE) == [name]


@pytest.mark.parametrize("name", sorted({name for name, _, _ in IN_USE}))
def test_append_is_allowed_if_a_listed_feature_is_not_in_use(name: str) -> None:
    config(listed(name)).require(Operation.WRITE)


@pytest.mark.parametrize("name", ["catalogOwned-preview", "liquid"])
def test_append_is_refused_if_use_is_unknown_or_always_required(name: str) -> None:
    with pytest.raises(UnsupportedTableFeatureError, match="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE") as caught:
        config(Protocol(1, 7, None, frozenset([name]))).require(Operation.WRITE)
    assert caught.value.message_parameters["features"] == [name]


def test_every_feature_in_the_way_of_an_append_is_named() -> None:
    table = config(listed("catalogOwned-preview", "zzz-unknown-writer"), PLAIN)
    table = TableConfig(Protocol(1, 7, None, table.protocol.writer_features), table.metadata)
    assert refused(table, Operation.WRITE) == ["catalogOwned-preview", "zzz-unknown-writer"]


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("rowTracking", {}),
        ("rowTracking", {"delta__rowTrackingSuspended": "true"}),
        ("inCommitTimestamp", {"delta__enableInCommitTimestamps": "true"}),
        ("materializePartitionColumns", {}),
        ("typeWidening", {"delta__enableTypeWidening": "true"}),
    ],
)
def test_append_is_allowed_if_it_meets_the_feature_requirements(name: str, properties: dict[str, str]) -> None:
    config(listed(name, "domainMetadata"), **properties).require(Operation.WRITE)


def test_other_format_than_parquet_is_read_and_not_written() -> None:
    table = config(Protocol(1, 2), provider="orc")
    table.require(Operation.READ)
    with pytest.raises(UnsupportedOperationError, match="'orc'"):
        table.require(Operation.WRITE)


# ---------------------------------------------------------------- consistency


def test_partition_columns_ignore_case_and_use_schema_spelling() -> None:
    table = config(Protocol(1, 2), partitions=("P",))
    table.require(Operation.READ)
    assert table.partition_columns == ("p",)


@pytest.mark.parametrize("name", ["missing", "l"])
def test_partition_column_that_cannot_be_is_an_error(name: str) -> None:
    schema = StructType((*PLAIN.fields, StructField("l", ArrayType(LONG))))
    with pytest.raises(CorruptTableError, match=f"Partition column '{name}'"):
        config(Protocol(1, 2), schema, (name,)).require(Operation.READ)


MAPPED = StructType(
    tuple(
        StructField(name, kind, True, {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"})
        for number, (name, kind) in enumerate([("id", INTEGER), ("p", STRING)])
    )
)


@pytest.mark.parametrize(
    "protocol", [Protocol(2, 5), Protocol(2, 7, None, frozenset(["columnMapping"])), listed("columnMapping")]
)
def test_column_mapping_gives_physical_schema_and_partitions(protocol: Protocol) -> None:
    table = config(protocol, MAPPED, ("p",), delta__columnMapping__mode="name")
    table.require(Operation.WRITE)
    assert table.column_mapping_mode == "name"
    assert table.physical_schema.names == ("col-0", "col-1")
    assert (table.partition_columns, table.physical_partition_columns) == (("p",), ("col-1",))
    assert table.enabled("columnMapping")


def test_column_mapping_turned_off_uses_logical_names() -> None:
    table = config(Protocol(2, 5), MAPPED, ("p",), delta__columnMapping__mode="none")
    assert table.physical_schema is table.schema
    assert not table.enabled("columnMapping") and table.feature("columnMapping")


def test_column_mapping_without_physical_names_is_an_error() -> None:
    with pytest.raises(CorruptTableError, match="physicalName"):
        config(Protocol(2, 5), PLAIN, delta__columnMapping__mode="name").require(Operation.READ)


@pytest.mark.parametrize("protocol", [Protocol(1, 2), Protocol(3, 7, frozenset(), frozenset(["columnMapping"]))])
def test_column_mapping_without_its_protocol_is_an_error(protocol: Protocol) -> None:
    with pytest.raises(UnsupportedTableFeatureError) as caught:
        config(protocol, MAPPED, delta__columnMapping__mode="name").require(Operation.READ)
    assert caught.value.error_class == "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH"


# ---------------------------------------------------------------- looking things up


def test_properties_are_found_ignoring_case() -> None:
    properties = Properties({"delta.AppendOnly": " True ", "delta.checkpointInterval": "20", "x": "1.5"})
    assert properties["DELTA.appendonly"] == " True "
    assert properties.boolean("delta.appendOnly") and not properties.boolean("delta.other")
    assert properties.integer("delta.checkpointinterval", 10) == 20 and properties.integer("none", 10) == 10
    assert list(properties) == ["delta.AppendOnly", "delta.checkpointInterval", "x"]
    assert "X" in properties and len(properties) == 3 and properties.get("y") is None
    for call in (lambda: properties.integer("x", 1), lambda: properties.boolean("x")):
        with pytest.raises(CorruptTableError, match=r"Table property x is '1\.5'"):
            call()


def test_enabled_needs_both_the_feature_and_its_property() -> None:
    on = config(Protocol(1, 4), delta__enableChangeDataFeed="true", delta__enableDeletionVectors="true")
    assert on.enabled("changeDataFeed") and on.feature("changeDataFeed")
    assert not on.enabled("deletionVectors")
    assert on.enabled("delta.enableDeletionVectors")
    assert not config(Protocol(1, 4)).enabled("changeDataFeed")
    assert config(listed("timestampNtz"), StructType((StructField("t", TIMESTAMP_NTZ),))).enabled("timestampNtz")


def test_previews_are_found_under_their_final_name() -> None:
    table = config(listed("catalogOwned-preview", "typeWidening-preview", "later"))
    assert table.feature("catalogManaged") and table.feature("typeWidening") and table.feature("typeWidening-preview")
    assert table.feature("later") and not table.feature("variantType")


def test_table_config_pickles_as_its_two_actions() -> None:
    table = config(listed("columnMapping"), MAPPED, ("p",), delta__columnMapping__mode="id")
    table.require(Operation.READ)
    copy = pickle.loads(pickle.dumps(table))
    assert copy == table
    assert copy.physical_schema == table.physical_schema
    assert len(pickle.dumps(table)) == len(pickle.dumps(TableConfig(table.protocol, table.metadata)))


def test_errors_of_features_survive_pickling() -> None:
    with pytest.raises(DeltaError) as caught:
        config(listed("fancyNewThing")).require(Operation.READ)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.error_class, copy.message_parameters) == (
        str(caught.value),
        "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        {"features": ["fancyNewThing"]},
    )


def test_needs_of_every_feature_are_known_features() -> None:
    for row in FEATURES.values():
        assert all(need in FEATURES for need in row.needs)
        assert row.stands_for is None or row.stands_for in FEATURES
        assert row.reader or (row.read and row.legacy_reader is None)
