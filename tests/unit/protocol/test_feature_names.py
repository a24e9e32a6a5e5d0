"""Every name of a table feature: whether pydelta reads and writes tables that have it, and otherwise why not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from delta_py.errors import DeltaError
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.features import FEATURES
from delta_py.protocol.table_config import Operation, TableConfig

_SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'

# Names that delta-spark 4.4 knows, those of the protocol and its proposals, and those that other clients write.
ALL_USE = [
    "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping", "identityColumns",
    "deletionVectors", "rowTracking", "timestampNtz", "timestampWithoutTimezone", "domainMetadata", "v2Checkpoint",
    "icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "clustering", "vacuumProtocolCheck", "inCommitTimestamp",
    "allowColumnDefaults", "typeWidening", "typeWidening-preview", "variantType", "variantType-preview", "variantShredding",
    "variantShredding-preview", "checkpointProtection", "materializePartitionColumns", "collations", "collations-preview",
    "geospatial", "geospatial-dev", "columnMappingUsageTracking", "catalogManaged", "icebergWriterCompatV1",
]  # fmt: skip
# Always readable; writable as long as the table uses nothing that needs another product. The value is the property for that.
WRITTEN_UNLESS = {
    "coordinatedCommits-preview": ("delta.coordinatedCommits.commitCoordinator-preview", "dynamodb"),
    "redirectWriterOnly-preview": ("delta.redirectWriterOnly-preview", "{}"),
}
# A catalog decides the next version.
READ_ONLY = ["catalogOwned-preview"]
# Another table, a catalog or another format decides where the rows are.
REFUSED = ["redirectReaderWriter-preview", "adaptiveMetadata-preview"]


def table(name: str, properties: Mapping[str, str] | None = None) -> TableConfig:
    names = {name, *FEATURES[name].needs}
    readers = frozenset(other for other in names if FEATURES[other].reader)
    metadata = Metadata("t", _SCHEMA, configuration=dict(properties or {}))
    return TableConfig(Protocol(3, 7, readers, frozenset(names)), metadata)


def refused(config: TableConfig, operation: Operation) -> list[str]:
    with pytest.raises(DeltaError) as caught:
        config.require(operation)
    assert caught.value.error_class.startswith("DELTA_UNSUPPORTED_FEATURES_FOR_")
    return list(caught.value.message_parameters["features"])


def test_each_name_is_in_one_class() -> None:
    assert sorted(FEATURES) == sorted([*ALL_USE, *WRITTEN_UNLESS, *READ_ONLY, *REFUSED])


@pytest.mark.parametrize("name", ALL_USE)
def test_tables_with_the_feature_are_read_and_written(name: str) -> None:
    table(name).require(Operation.WRITE)


@pytest.mark.parametrize("name", WRITTEN_UNLESS)
def test_table_with_the_feature_is_writable_until_it_is_in_use(name: str) -> None:
    table(name).require(Operation.WRITE)
    in_use = table(name, dict([WRITTEN_UNLESS[name]]))
    in_use.require(Operation.READ)
    assert refused(in_use, Operation.WRITE) == [name]


@pytest.mark.parametrize("name", READ_ONLY)
def test_tables_with_the_feature_are_read_alone(name: str) -> None:
    table(name).require(Operation.READ)
    assert refused(table(name), Operation.WRITE) == [name]


@pytest.mark.parametrize("name", REFUSED)
def test_tables_with_the_feature_are_refused_by_name(name: str) -> None:
    assert refused(table(name), Operation.READ) == [name]
    assert refused(table(name), Operation.WRITE) == [name]
