"""The lowest protocol of new tables, of tables that get more features, and of tables from which features are dropped.

The expected values are what delta-spark 4.4 made of the same statements (CREATE TABLE, SET TBLPROPERTIES, DROP FEATURE). One
difference is not tested here: if a statement sets versions with feature lists by number, for a table without lists, delta-spark
goes back to the versions that stand for the features in use, and this library makes the lists. If a statement sets a reader
version for a table with lists, the expected values follow from delta-spark's rules of normalization: a version adds no feature,
and what no feature needs is removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from delta_py.alter.alter import set_properties
from delta_py.alter.drop_feature import drop_feature
from delta_py.definition.create import create_table, define_table
from delta_py.definition.protocols import with_features
from delta_py.protocol.actions import Protocol
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import LONG, STRING, TIMESTAMP_NTZ, StructField, StructType

SCHEMA = StructType((StructField("id", LONG), StructField("day", STRING)))
Told = tuple[int, int, str | None, str | None]
"""Versions, and the names in each list, in order, but for appendOnly and invariants of writers."""

# The prefix `delta.` of names is omitted.
R, W = "minReaderVersion", "minWriterVersion"
ON = "true"
FOURTH = "changeDataFeed checkConstraints generatedColumns"
CREATED: list[tuple[dict[str, str], Told]] = [
    ({}, (1, 2, None, None)),
    ({"appendOnly": ON}, (1, 2, None, None)),
    ({"enableChangeDataFeed": ON}, (1, 7, None, "changeDataFeed")),
    ({"columnMapping.mode": "name"}, (2, 7, None, "columnMapping")),
    ({"columnMapping.mode": "name", "enableChangeDataFeed": ON}, (2, 7, None, "changeDataFeed columnMapping")),
    ({"enableDeletionVectors": ON}, (3, 7, "deletionVectors", "deletionVectors")),
    ({R: "2", W: "5"}, (2, 5, None, None)),
    ({R: "1", W: "4"}, (1, 4, None, None)),
    ({W: "4", "enableChangeDataFeed": ON}, (1, 4, None, None)),
    ({W: "4", "enableDeletionVectors": ON}, (3, 7, "deletionVectors", f"deletionVectors {FOURTH}")),
    ({"feature.checkConstraints": "supported"}, (1, 3, None, None)),
    ({"feature.appendOnly": "supported"}, (1, 2, None, None)),
    ({"feature.columnMapping": "supported"}, (2, 7, None, "columnMapping")),
    ({"enableRowTracking": ON}, (1, 7, None, "domainMetadata rowTracking")),
    ({"enableInCommitTimestamps": ON}, (1, 7, None, "inCommitTimestamp")),
    ({"checkpointPolicy": "v2"}, (3, 7, "v2Checkpoint", "v2Checkpoint")),
    ({"enableTypeWidening": ON}, (3, 7, "typeWidening", "typeWidening")),
    ({"enableVariantShredding": ON}, (3, 7, "variantShredding variantType", "variantShredding variantType")),
    ({"enableMaterializePartitionColumnsFeature": ON}, (1, 7, None, "materializePartitionColumns")),
    ({"enableIcebergCompatV1": ON}, (2, 7, None, "columnMapping icebergCompatV1")),
    ({"enableIcebergCompatV2": ON}, (2, 7, None, "columnMapping icebergCompatV2")),
    ({"enableIcebergCompatV3": ON}, (2, 7, None, "columnMapping domainMetadata icebergCompatV3 rowTracking")),
    (
        {R: "2", W: "5", "enableDeletionVectors": ON},
        (3, 7, "columnMapping deletionVectors", f"columnMapping deletionVectors {FOURTH}"),
    ),
    ({"feature.checkConstraints": "supported", W: "3"}, (1, 3, None, None)),
    ({R: "2"}, (1, 2, None, None)),
    ({R: "1", W: "1"}, (1, 1, None, None)),
    ({R: "1", W: "6"}, (1, 6, None, None)),
    ({R: "2", W: "6"}, (2, 6, None, None)),
]
ALTERED: list[tuple[dict[str, str], dict[str, str], Told]] = [
    ({}, {"enableChangeDataFeed": ON}, (1, 7, None, "changeDataFeed")),
    ({}, {"columnMapping.mode": "name"}, (2, 7, None, "columnMapping")),
    ({}, {R: "2", W: "5"}, (2, 5, None, None)),
    ({W: "4"}, {"enableDeletionVectors": ON}, (3, 7, "deletionVectors", f"deletionVectors {FOURTH}")),
    ({R: "2", W: "5"}, {"enableRowTracking": ON}, (2, 7, None, f"columnMapping domainMetadata rowTracking {FOURTH}")),
    ({}, {"feature.checkConstraints": "supported"}, (1, 3, None, None)),
    ({"columnMapping.mode": "name"}, {"enableIcebergCompatV2": ON}, (2, 7, None, "columnMapping icebergCompatV2")),
    *(
        (start, versions, expected)
        for start, expected in (
            ({"enableChangeDataFeed": ON}, (1, 7, None, "changeDataFeed")),
            ({"columnMapping.mode": "name"}, (2, 7, None, "columnMapping")),
        )
        for versions in ({R: "3"}, {R: "3", W: "7"}, {R: "2"}, {R: "2", W: "7"})
    ),
    ({"enableChangeDataFeed": ON}, {R: "3", "enableRowTracking": ON}, (1, 7, None, "changeDataFeed domainMetadata rowTracking")),
    ({"enableChangeDataFeed": ON}, {R: "3", "enableTypeWidening": ON}, (3, 7, "typeWidening", "changeDataFeed typeWidening")),
]
DROPPED: list[tuple[dict[str, str], list[str], Told]] = [
    ({"enableRowTracking": ON}, ["rowTracking"], (1, 7, None, "domainMetadata")),
    ({"enableRowTracking": ON}, ["rowTracking", "domainMetadata"], (1, 2, None, None)),
    ({"enableInCommitTimestamps": ON}, ["inCommitTimestamp"], (1, 2, None, None)),
    ({"feature.checkConstraints": "supported"}, ["checkConstraints"], (1, 2, None, None)),
    ({W: "3"}, ["checkConstraints"], (1, 2, None, None)),
    ({R: "2", W: "5"}, ["checkConstraints"], (2, 7, None, "changeDataFeed columnMapping generatedColumns")),
    ({R: "2", W: "5", "enableInCommitTimestamps": ON}, ["inCommitTimestamp"], (2, 5, None, None)),
    ({"enableChangeDataFeed": ON, "enableInCommitTimestamps": ON}, ["inCommitTimestamp"], (1, 7, None, "changeDataFeed")),
    ({"enableDeletionVectors": ON}, ["deletionVectors"], (1, 7, None, "checkpointProtection")),
]


def named(properties: Mapping[str, str]) -> dict[str, str]:
    return {f"delta.{name}": value for name, value in properties.items()}


def make(path: Path, properties: Mapping[str, str]) -> ObjectStore:
    store = LocalStore(str(path))
    create_table(store, define_table(SCHEMA, configuration=named(properties)))
    return store


def told(protocol: Protocol) -> Told:
    readers, writers = protocol.reader_features, protocol.writer_features
    if writers is not None:
        assert {"appendOnly", "invariants"} <= writers
        writers -= {"appendOnly", "invariants"}
    texts = (None if names is None else " ".join(sorted(names)) for names in (readers, writers))
    return (protocol.min_reader_version, protocol.min_writer_version, *texts)  # type: ignore[return-value]


def ordered(expected: Told) -> Told:
    reader, writer, *lists = expected
    texts = (None if text is None else " ".join(sorted(text.split())) for text in lists)
    return (reader, writer, *texts)  # type: ignore[return-value]


@pytest.mark.parametrize(("properties", "expected"), CREATED)
def test_new_table_has_the_least_protocol(properties: Mapping[str, str], expected: Told) -> None:
    assert told(define_table(SCHEMA, configuration=named(properties)).protocol) == ordered(expected)


def test_new_table_has_the_least_protocol_of_its_columns() -> None:
    rule = {"delta.generationExpression": "id + 1"}
    number = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    columns = {
        "timestampNtz": StructField("c", TIMESTAMP_NTZ),
        "generatedColumns": StructField("c", LONG, metadata=rule),
        "identityColumns": StructField("c", LONG, metadata=number),
    }
    protocols = {name: told(define_table(StructType((*SCHEMA.fields, column))).protocol) for name, column in columns.items()}
    assert protocols == {
        "timestampNtz": (3, 7, "timestampNtz", "timestampNtz"),
        "generatedColumns": (1, 7, None, "generatedColumns"),
        "identityColumns": (1, 7, None, "identityColumns"),
    }
    assert told(define_table(SCHEMA, cluster_by=("id",)).protocol) == (1, 7, None, "clustering domainMetadata")


@pytest.mark.parametrize(("start", "properties", "expected"), ALTERED)
def test_table_that_gets_more_has_the_least_protocol(
    tmp_path: Path, start: Mapping[str, str], properties: Mapping[str, str], expected: Told
) -> None:
    store = make(tmp_path, start)
    set_properties(store, named(properties))
    assert told(Snapshot.load(store).protocol) == ordered(expected)


@pytest.mark.parametrize(("start", "features", "expected"), DROPPED)
def test_drop_of_features_lowers_the_protocol_to_the_least(
    tmp_path: Path, start: Mapping[str, str], features: Sequence[str], expected: Told
) -> None:
    store = make(tmp_path, start)
    for feature in features:
        drop_feature(store, feature)
    assert told(Snapshot.load(store).protocol) == ordered(expected)
    assert Snapshot.load(store).num_files == 0


def test_column_mapping_is_listed_wherever_writers_have_a_list() -> None:
    """Protocol: Supported Features. Readers of version 2 do not stand for it then."""
    versions = {"delta.minReaderVersion": "2", "delta.minWriterVersion": "7"}
    definition = define_table(SCHEMA, configuration={**versions, "delta.columnMapping.mode": "name"})
    assert definition.protocol == Protocol(2, 7, None, frozenset({"appendOnly", "invariants", "columnMapping"}))
    unlisted = Protocol(2, 7, None, frozenset({"appendOnly"}))
    assert "columnMapping" in (with_features(unlisted, {"columnMapping"}).writer_features or ())
