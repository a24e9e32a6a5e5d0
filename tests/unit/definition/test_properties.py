"""Every table property: honoured, kept without effect, refused by name; and the defaults of new tables."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import set_properties, unset_properties
from delta_py.commit.post_commit import checkpoint
from delta_py.definition.create import define_table
from delta_py.definition.properties import PROPERTIES, Treatment, split_configuration
from delta_py.definition.replace import build_table
from delta_py.errors import DeltaError, InvalidOptionError, SchemaMismatchError, UnsupportedOperationError
from delta_py.object_stores.open_store import open_store
from delta_py.row_changes.row_commands import delete
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import INTEGER, LONG, STRING, ArrayType, StructField, StructType

SCHEMA = StructType((StructField("id", LONG), StructField("day", STRING)))
ROWS = pa.table({"id": pa.array(range(6), pa.int64()), "day": ["mon", "tue"] * 3})

# The names of delta-spark 4.4's DeltaConfig, of PROTOCOL.md, and those that other clients set.
_OF_DELTA = """
minReaderVersion minWriterVersion ignoreProtocolDefaults logRetentionDuration sampleRetentionDuration checkpointRetentionDuration
checkpointInterval redirectReaderWriter-preview redirectWriterOnly-preview autoOptimize.autoCompact autoOptimize
autoOptimize.optimizeWrite enableExpiredLogCleanup enableFullRetentionRollback dropFeatureTruncateHistory.retentionDuration
deletedFileRetentionDuration randomizeFilePrefixes randomPrefixLength appendOnly enableDeletionVectors parquet.format.version
enableVariantShredding dataSkippingNumIndexedCols dataSkippingStatsColumns dataSkippingStringPrefixLength
compatibility.symlinkFormatManifest.enabled checkpoint.writeStatsAsJson checkpoint.writeStatsAsStruct enableChangeDataCapture
enableChangeDataFeed columnMapping.mode columnMapping.maxColumnId setTransactionRetentionDuration isolationLevel checkpointPolicy
enableRowTracking rowTrackingSuspended rowTracking.materializedRowIdColumnName rowTracking.materializedRowCommitVersionColumnName
universalFormat.enabledFormats enableIcebergCompatV1 enableIcebergCompatV2 enableIcebergCompatV3
universalFormat.iceberg.atomicConversion.supported castIcebergTimeType ignoreIcebergBucketPartition enableTypeWidening
coordinatedCommits.commitCoordinator-preview coordinatedCommits.commitCoordinatorConf-preview coordinatedCommits.tableConf-preview
enableInCommitTimestamps inCommitTimestampEnablementVersion inCommitTimestampEnablementTimestamp
requireCheckpointProtectionBeforeVersion enableMaterializePartitionColumnsFeature writePartitionColumnsToParquet
parquet.compression.codec targetFileSize tuneFileSizesForRewrites lastUpdateVersion lastCommitTimestamp
columnMapping.hasDroppedOrRenamed enableIcebergWriterCompatV1
"""
OF_DELTA = _OF_DELTA.split()

VALUES = {
    "delta.minReaderVersion": "3",
    "delta.minWriterVersion": "7",
    "delta.checkpointInterval": "20",
    "delta.randomPrefixLength": "3",
    "delta.parquet.format.version": "2.12.0",
    "delta.dataSkippingNumIndexedCols": "-1",
    "delta.dataSkippingStatsColumns": "id",
    "delta.dataSkippingStringPrefixLength": "0",
    "delta.columnMapping.mode": "name",
    "delta.isolationLevel": "Serializable",
    "delta.checkpointPolicy": "v2",
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.parquet.compression.codec": "snappy",
    "delta.targetFileSize": "64mb",
}
ICEBERG = {f"delta.enableIceberg{kind}" for kind in ("CompatV1", "CompatV2", "CompatV3", "WriterCompatV1")}
"""Which need more than themselves: tests of their own."""


def value_of(name: str) -> str:
    return VALUES.get(name, "interval 8 days" if name.endswith("Duration") else "true")


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    write_delta(str(tmp_path), ROWS, partition_by=["day"])
    return open_store(str(tmp_path))


# ---------------------------------------------------------------- the list


def test_properties_are_just_those_of_delta() -> None:
    assert sorted(PROPERTIES) == sorted(f"delta.{name}" for name in OF_DELTA)
    assert all(row.why for row in PROPERTIES.values() if row.treatment in (Treatment.WITHOUT_EFFECT, Treatment.ELSEWHERE))


@pytest.mark.parametrize("name", sorted(PROPERTIES.keys() - ICEBERG))
def test_property_is_accepted_or_refused_on_create_and_alter(store: ObjectStore, name: str) -> None:
    is_taken = PROPERTIES[name].treatment in (Treatment.HONOURED, Treatment.WITHOUT_EFFECT)
    configuration = {name.upper(): value_of(name)}
    for act in (lambda: define_table(SCHEMA, configuration=configuration), lambda: set_properties(store, configuration)):
        if is_taken:
            act()
        else:
            with pytest.raises(DeltaError, match=re.escape(name)):
                act()
    assert (Snapshot.load(store).version > 0) == is_taken
    if is_taken and name not in ("delta.minReaderVersion", "delta.minWriterVersion"):
        assert Snapshot.load(store).metadata.configuration[name] == value_of(name)


@pytest.mark.parametrize(
    ("name", "value", "condition"),
    [
        ("delta.columnMapping.maxColumnId", "7", "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
        ("delta.rowTrackingSuspended", "true", "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
        ("delta.universalFormat.enabledFormats", "iceberg,hudi", "DELTA_UNIVERSAL_FORMAT_VIOLATION"),
        ("delta.noSuchThing", "true", "DELTA_UNKNOWN_CONFIGURATION"),
    ],
)
def test_refused_property_has_the_condition_of_delta_spark(name: str, value: str, condition: str) -> None:
    with pytest.raises(DeltaError) as caught:
        split_configuration({name: value})
    assert caught.value.error_class == condition


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.logRetentionDuration", "interval 1 month"),
        ("delta.deletedFileRetentionDuration", "a week"),
        ("delta.checkpointInterval", "0"),
        ("delta.dataSkippingNumIndexedCols", "-2"),
        ("delta.dataSkippingStringPrefixLength", "-1"),
        ("delta.randomPrefixLength", "0"),
        ("delta.parquet.format.version", "1.1.0"),
        ("delta.appendOnly", "yes"),
        ("delta.targetFileSize", "many"),
        ("delta.checkpointPolicy", "v3"),
    ],
)
def test_invalid_property_value_is_refused_at_definition(name: str, value: str) -> None:
    with pytest.raises(InvalidOptionError, match=re.escape(f"{name} is {value!r}; it must be ")):
        split_configuration({name: value})


@pytest.mark.parametrize(
    ("named", "condition"),
    [
        ("day", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN"),
        ("id,`Id`", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
        ("list", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"),
        ("none", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    ],
)
def test_statistics_of_columns_that_cannot_have_them_are_refused(named: str, condition: str) -> None:
    schema = StructType((*SCHEMA.fields, StructField("list", ArrayType(INTEGER))))
    with pytest.raises(SchemaMismatchError) as caught:
        define_table(schema, partition_by=["day"], configuration={"delta.dataSkippingStatsColumns": named})
    assert caught.value.error_class == condition


# ---------------------------------------------------------------- what they do


def test_former_name_of_the_change_data_feed_turns_it_on(tmp_path: Path) -> None:
    write_delta(str(tmp_path), ROWS, configuration={"delta.enableChangeDataCapture": "true"})
    store = open_store(str(tmp_path))
    assert Snapshot.load(store).config.enabled("changeDataFeed")
    delete(store, "id = 3")
    assert list(tmp_path.glob("_change_data/*.parquet"))
    set_properties(store, {"delta.enableChangeDataFeed": "false"})
    assert not Snapshot.load(store).config.enabled("changeDataFeed")


@pytest.mark.parametrize("version", ["1.0.0", "2.12.0"])
def test_parquet_version_sets_pages_of_data_and_checkpoints(tmp_path: Path, version: str) -> None:
    configuration = {"delta.parquet.format.version": version, "delta.parquet.compression.codec": "snappy"}
    write_delta(str(tmp_path), ROWS, configuration=configuration)
    checkpoint(Snapshot.load(open_store(str(tmp_path))))
    (data,) = tmp_path.glob("*.parquet")
    (checkpoint_path,) = tmp_path.glob("_delta_log/*.checkpoint.parquet")
    for path in (data, checkpoint_path):
        column = pq.ParquetFile(path).metadata.row_group(0).column(0)
        assert column.compression == "SNAPPY"
        assert has_second_pages(path) == version.startswith("2")
    assert DeltaTable(str(tmp_path)).to_arrow().sort_by("id") == ROWS


def has_second_pages(path: Path) -> bool:
    """Whether a data page's header says DATA_PAGE_V2 (3), not DATA_PAGE (0): its first field in Thrift's compact form."""
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    kind = path.read_bytes()[column.data_page_offset + 1]
    assert kind in (0, 6)
    return kind == 6


def test_random_prefixes_replace_partition_directories(tmp_path: Path) -> None:
    configuration = {"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "3"}
    write_delta(str(tmp_path), ROWS, partition_by=["day"], configuration=configuration)
    paths = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.parquet")]
    assert len(paths) == 2 and all(re.fullmatch(r"[0-9A-Za-z]{3}/part-.*", path) for path in paths)
    assert DeltaTable(str(tmp_path)).to_arrow().sort_by("id") == ROWS


def test_property_writes_partition_columns_into_files(tmp_path: Path) -> None:
    for value, columns in (("true", ["id", "day"]), ("false", ["id"])):
        path = tmp_path / value
        write_delta(str(path), ROWS, partition_by=["day"], configuration={"delta.writePartitionColumnsToParquet": value})
        assert {tuple(pq.read_schema(file).names) for file in path.rglob("*.parquet")} == {tuple(columns)}
        assert DeltaTable(str(path)).to_arrow().sort_by("id") == ROWS


def test_universal_format_blocks_writes_not_reads_until_unset(store: ObjectStore) -> None:
    snapshot = Snapshot.load(store)
    configuration = {"delta.universalFormat.enabledFormats": "iceberg"}
    action = {"metaData": {**snapshot.metadata.to_json(), "configuration": configuration}}
    (Path(store.root) / "_delta_log" / f"{1:020}.json").write_bytes(orjson.dumps(action))
    assert DeltaTable(store.root).to_arrow().num_rows == 6
    with pytest.raises(UnsupportedOperationError, match=r"unset delta\.universalFormat\.enabledFormats first") as caught:
        write_delta(store.root, ROWS, mode="append")
    assert caught.value.error_class == "DELTA_UNIVERSAL_FORMAT_VIOLATION"
    unset_properties(store, ["delta.universalFormat.enabledFormats"])
    write_delta(store.root, ROWS, mode="append")
    assert DeltaTable(store.root).to_arrow().num_rows == 12


# ---------------------------------------------------------------- defaults of new tables


@pytest.mark.parametrize(
    "name", sorted(name for name in PROPERTIES if PROPERTIES[name].treatment in (Treatment.HONOURED, Treatment.WITHOUT_EFFECT))
)
def test_default_of_a_property_means_what_the_property_means(name: str) -> None:
    if name in ICEBERG or name == "delta.ignoreProtocolDefaults":
        pytest.skip("tested elsewhere")
    definition = define_table(SCHEMA, configuration={name: value_of(name)})
    default = define_table(SCHEMA, defaults={name: value_of(name)})
    assert default.protocol == definition.protocol
    stable = {key for key in definition.metadata.configuration if not key.startswith("delta.rowTracking.")}
    assert {key: default.metadata.configuration[key] for key in stable} == {
        key: definition.metadata.configuration[key] for key in stable
    }


def test_named_property_overrides_its_default_in_any_case() -> None:
    defaults = {"delta.appendOnly": "true", "delta.feature.deletionVectors": "supported", "delta.checkpointInterval": "20"}
    definition = define_table(SCHEMA, configuration={"DELTA.APPENDONLY": "false"}, defaults=defaults)
    assert dict(definition.metadata.configuration) == {"delta.appendOnly": "false", "delta.checkpointInterval": "20"}
    assert "deletionVectors" in definition.config.features


def test_ignore_protocol_defaults_applies_and_is_not_stored() -> None:
    defaults = {
        "delta.minReaderVersion": "3",
        "delta.minWriterVersion": "7",
        "delta.feature.deletionVectors": "supported",
        "delta.appendOnly": "true",
    }
    definition = define_table(SCHEMA, configuration={"delta.ignoreProtocolDefaults": "true"}, defaults=defaults)
    protocol = definition.protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert dict(definition.metadata.configuration) == {"delta.appendOnly": "true"}


@pytest.mark.parametrize("place", ["configuration", "defaults"])
def test_ignored_defaults_are_true_or_false(place: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"delta\.ignoreProtocolDefaults is 'maybe'"):
        define_table(SCHEMA, **{place: {"DELTA.ignoreProtocolDefaults": "maybe"}})  # type: ignore[arg-type]


def test_table_that_is_there_is_joined_whatever_the_defaults_are(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    build_table(store, "create", define_table(SCHEMA))
    second_definition = define_table(SCHEMA, defaults={"delta.appendOnly": "true"})
    assert build_table(store, "create", second_definition, join=True) == 0
    assert dict(Snapshot.load(store).metadata.configuration) == {}
    assert build_table(store, "createOrReplace", second_definition) == 1
    assert dict(Snapshot.load(store).metadata.configuration) == {"delta.appendOnly": "true"}


def test_defaults_of_other_products_are_passed_over() -> None:
    definition = define_table(SCHEMA, defaults={"delta.parquet.format.version.afe.internal": "1", "delta.appendOnly": "true"})
    assert definition.metadata.configuration == {"delta.appendOnly": "true"}
