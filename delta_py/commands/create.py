"""New tables: the protocol and metadata that a schema and properties need, and the commit that creates the table.

    definition = define_table(schema, partition_by=("day",), configuration={"delta.enableChangeDataFeed": "true"})
    create_table(store, definition)     # version 0 without data; a first write commits the definition with its files

The protocol is the lowest that holds what the table uses: (1,2), or table features where something newer is asked for.
Protocol: Change Metadata; Table Features for New and Existing Tables; Table Properties.
"""

from __future__ import annotations

import difflib
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from delta_py.commit.transaction import Transaction
from delta_py.errors import InvalidOptionError, SchemaMismatchError, UnsupportedTableFeatureError
from delta_py.protocol import column_mapping
from delta_py.protocol.actions import DomainMetadata, Metadata, Protocol
from delta_py.protocol.clustering import clustering_columns, clustering_domain
from delta_py.protocol.features import (
    FEATURES,
    READER_FEATURES_VERSION,
    WRITER_FEATURES_VERSION,
    Properties,
    all_types,
    supported_features,
)
from delta_py.protocol.schema import (
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    MapType,
    StructType,
    find_path,
    schema_to_json,
    type_name,
)
from delta_py.protocol.sizes import parse_size
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.storage.store import ObjectStore
from delta_py.write.conform import check_new_schema, compression_codec

CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """What the first commit of a table says. Small and picklable."""

    protocol: Protocol
    metadata: Metadata
    domains: tuple[DomainMetadata, ...] = ()

    @property
    def config(self) -> TableConfig:
        return TableConfig(self.protocol, self.metadata)


def define_table(
    schema: StructType,
    *,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str] | None = None,
) -> TableDefinition:
    """The definition of a new table that this library can write.

    partition_by, cluster_by: column names in order, any case; not both. configuration: table properties, those of Delta and
    any others.
    Raises SchemaMismatchError for names or a partitioning that no table can have, InvalidOptionError for a property that
    is unknown, internal or has a senseless value, UnsupportedTableFeatureError for a table that could not be written.
    """
    if partition_by and cluster_by:
        raise SchemaMismatchError(
            f"A table is either partitioned ({', '.join(partition_by)}) or clustered ({', '.join(cluster_by)}). Choose one.",
            error_class="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
            sql_state="42613",
        )
    asked, features = _split_configuration(configuration or {})
    mode = column_mapping.mode(Properties(asked))
    partitions = check_schema(schema, partition_by, mode, Properties(asked))
    if mode != "none":
        schema, last_id = column_mapping.assign(schema, lambda _: f"col-{uuid.uuid4()}")
        asked[column_mapping.MAX_ID_PROPERTY] = str(last_id)
    if Properties(asked).boolean("delta.enableRowTracking"):
        asked["delta.rowTracking.materializedRowIdColumnName"] = f"_row-id-col-{uuid.uuid4()}"
        asked["delta.rowTracking.materializedRowCommitVersionColumnName"] = f"_row-commit-version-col-{uuid.uuid4()}"
    versions = tuple(
        int(asked.pop(key, lowest)) for key, lowest in (("delta.minReaderVersion", 1), ("delta.minWriterVersion", 2))
    )
    metadata = Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema_to_json(schema),
        partition_columns=partitions,
        configuration=asked,
        name=name,
        description=description,
        created_time_ms=time.time_ns() // 1_000_000,
    )
    domains = (clustering_domain(schema, cluster_by, mode),) if cluster_by else ()
    if cluster_by:
        features |= {"clustering"}
    definition = TableDefinition(_protocol(schema, Properties(asked), features, (versions[0], versions[1])), metadata, domains)
    definition.config.require(Operation.WRITE)
    return definition


def create_table(store: ObjectStore, definition: TableDefinition) -> int:
    """Commit a table without data; returns its version, 0.

    Raises ProtocolChangedException when there is a table already.
    """
    metadata = definition.metadata
    parameters = {
        "partitionBy": list(metadata.partition_columns),
        "clusterBy": list(clustering_columns(definition.config.schema, next(iter(definition.domains), None))),
        "description": metadata.description,
        "isManaged": "false",
        "properties": dict(metadata.configuration),
    }
    transaction = Transaction(None, store=store).set_protocol(definition.protocol).set_metadata(metadata)
    for domain in definition.domains:
        transaction.set_domain(domain)
    return transaction.commit("CREATE TABLE", parameters)


# ---------------------------------------------------------------- schema and partitioning


def check_schema(schema: StructType, partition_by: Sequence[str], mode: str, properties: Properties) -> tuple[str, ...]:
    """The partition columns in the schema's spelling, after all checks."""
    if not schema.fields:
        raise SchemaMismatchError("A table needs at least one column.", error_class="DELTA_EMPTY_DATA", sql_state="428GU")
    check_new_schema(schema, mode)
    if properties.boolean("delta.enableChangeDataFeed"):
        reserved = [f.name for f in schema.fields if f.name.lower() in CHANGE_COLUMNS]
        if reserved:
            raise SchemaMismatchError(
                f"Columns {', '.join(reserved)} have names that the change data feed adds itself. Rename them, or create the "
                "table without delta.enableChangeDataFeed.",
                error_class="RESERVED_CDC_COLUMNS_ON_WRITE",
                sql_state="42939",
                columns=reserved,
            )
    return _partition_columns(schema, partition_by)


def _partition_columns(schema: StructType, partition_by: Sequence[str]) -> tuple[str, ...]:
    fields = [find_path(schema, (name,))[0] for name in partition_by]
    names = tuple(f.name for f in fields)
    if len(set(names)) < len(names):
        raise SchemaMismatchError(
            f"The table would be partitioned by one column twice: {', '.join(names)}.",
            error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
            sql_state="42711",
        )
    for f in fields:
        if isinstance(f.data_type, StructType | ArrayType | MapType) or f.data_type in (VARIANT, VOID):
            raise SchemaMismatchError(
                f"Column {f.name} is {type_name(f.data_type)}, which no partition value can have. Partition by another.",
                error_class="DELTA_INVALID_PARTITION_COLUMN_TYPE",
                sql_state="42996",
                column=f.name,
            )
    if len(names) == len(schema.fields):
        raise SchemaMismatchError(
            f"All columns ({', '.join(names)}) are partition columns, so no data would be left for the files.",
            error_class="DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
            sql_state="428FT",
        )
    return names


# ---------------------------------------------------------------- properties

_FEATURE_PREFIX = "delta.feature."
_OPEN_PREFIXES = (_FEATURE_PREFIX, "delta.constraints.", "delta.universalformat.config.")
_BOOLEANS = (
    "delta.ignoreProtocolDefaults",
    "delta.autoOptimize",
    "delta.autoOptimize.autoCompact",
    "delta.autoOptimize.optimizeWrite",
    "delta.enableExpiredLogCleanup",
    "delta.enableFullRetentionRollback",
    "delta.randomizeFilePrefixes",
    "delta.appendOnly",
    "delta.enableDeletionVectors",
    "delta.enableVariantShredding",
    "delta.compatibility.symlinkFormatManifest.enabled",
    "delta.checkpoint.writeStatsAsJson",
    "delta.checkpoint.writeStatsAsStruct",
    "delta.enableChangeDataCapture",
    "delta.enableChangeDataFeed",
    "delta.enableRowTracking",
    "delta.enableIcebergCompatV1",
    "delta.enableIcebergCompatV2",
    "delta.enableIcebergCompatV3",
    "delta.castIcebergTimeType",
    "delta.ignoreIcebergBucketPartition",
    "delta.enableTypeWidening",
    "delta.enableInCommitTimestamps",
    "delta.enableMaterializePartitionColumnsFeature",
    "delta.writePartitionColumnsToParquet",
    "delta.tuneFileSizesForRewrites",
    "delta.enforceRetentionOnTimeTravel",
)
_INTEGERS = (
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.checkpointInterval",
    "delta.randomPrefixLength",
    "delta.dataSkippingNumIndexedCols",
    "delta.dataSkippingStringPrefixLength",
)
_TEXTS = (
    "delta.logRetentionDuration",
    "delta.sampleRetentionDuration",
    "delta.checkpointRetentionDuration",
    "delta.dropFeatureTruncateHistory.retentionDuration",
    "delta.deletedFileRetentionDuration",
    "delta.parquet.format.version",
    "delta.dataSkippingStatsColumns",
    "delta.columnMapping.mode",
    "delta.setTransactionRetentionDuration",
    "delta.isolationLevel",
    "delta.checkpointPolicy",
    "delta.universalFormat.enabledFormats",
    "delta.parquet.compression.codec",
    "delta.targetFileSize",
)
_SPELLING = {name.lower(): name for name in (*_BOOLEANS, *_INTEGERS, *_TEXTS)}
_FIXED_VALUES = {
    "delta.columnMapping.mode": ("none", "name", "id"),
    "delta.checkpointPolicy": ("classic", "v2"),
    "delta.isolationLevel": ("serializable", "writeserializable", "snapshotisolation"),
}


def _split_configuration(configuration: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    """Checked properties under the names that are stored, and the features that `delta.feature.*` asks for."""
    kept: dict[str, str] = {}
    features = set()
    for given, value in configuration.items():
        if given.lower().startswith(_FEATURE_PREFIX):
            features.add(_feature_asked_for(given, value))
            continue
        name = _known_name(given)
        if name in kept:
            raise InvalidOptionError(f"Table property {name} is given twice.", property=name)
        _check_value(name, value)
        kept[name] = value
    return kept, frozenset(features)


def _feature_asked_for(given: str, value: str) -> str:
    spelling = {feature.lower(): feature for feature in FEATURES}
    feature = spelling.get(given[len(_FEATURE_PREFIX) :].lower())
    if feature is None:
        raise InvalidOptionError(
            f"{given}: there is no such table feature. Known are {', '.join(sorted(FEATURES))}.",
            error_class="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            sql_state="56038",
            property=given,
        )
    if value.lower() not in ("supported", "enabled"):
        raise InvalidOptionError(f"{given} is {value!r}; the only value is 'supported'.", property=given)
    return feature


def _known_name(given: str) -> str:
    folded = given.lower()
    if not folded.startswith("delta.") or folded.startswith(_OPEN_PREFIXES):
        return given
    name = _SPELLING.get(folded)
    if name is None:
        near = difflib.get_close_matches(folded, _SPELLING, 1)
        hint = f" Did you mean {_SPELLING[near[0]]}?" if near else ""
        raise InvalidOptionError(
            f"{given} is no table property that can be set.{hint}",
            error_class="DELTA_UNKNOWN_CONFIGURATION",
            sql_state="F0000",
            property=given,
        )
    return name


def _check_value(name: str, value: str) -> None:
    if not isinstance(value, str):
        raise InvalidOptionError(
            f"Table property {name} is {value!r}; properties are text, such as 'true' or '10'.", property=name
        )
    if name in _BOOLEANS and value.lower() not in ("true", "false"):
        raise InvalidOptionError(f"Table property {name} is {value!r}; it must be true or false.", property=name)
    if name in _INTEGERS and not value.removeprefix("-").isdecimal():
        raise InvalidOptionError(f"Table property {name} is {value!r}; it must be a whole number.", property=name)
    known = _FIXED_VALUES.get(name)
    if known is not None and value.lower() not in known:
        raise InvalidOptionError(f"Table property {name} is {value!r}; it must be one of {', '.join(known)}.", property=name)
    if name == "delta.targetFileSize" and not parse_size(value):
        raise InvalidOptionError(f"Table property {name} is {value!r}; it must be a size, such as 128mb.", property=name)
    if name == "delta.parquet.compression.codec":
        compression_codec(value)


# ---------------------------------------------------------------- protocol


def _protocol(schema: StructType, properties: Properties, asked: Iterable[str], versions: tuple[int, int]) -> Protocol:
    """The lowest protocol that supports what schema and properties use and what was asked for by name or version."""
    reader, writer = versions
    if reader > READER_FEATURES_VERSION or writer > WRITER_FEATURES_VERSION or reader < 1 or writer < 1:
        raise InvalidOptionError(
            f"There is no protocol ({reader},{writer}); the newest is ({READER_FEATURES_VERSION},{WRITER_FEATURES_VERSION})."
        )
    empty_lists = (
        frozenset[str]() if reader == READER_FEATURES_VERSION else None,
        frozenset[str]() if writer == WRITER_FEATURES_VERSION else None,
    )
    base = Protocol(reader, writer, *empty_lists)
    implied = supported_features(base)
    wanted = _with_needs({*features_in_use(schema, properties), *asked})
    if wanted <= implied and reader < READER_FEATURES_VERSION and writer < WRITER_FEATURES_VERSION:
        return base
    names = wanted | implied | {"appendOnly", "invariants"}
    readers = frozenset(name for name in names if FEATURES[name].reader)
    needs_reader = bool(readers) or reader == READER_FEATURES_VERSION
    return Protocol(
        READER_FEATURES_VERSION if needs_reader else 1,
        WRITER_FEATURES_VERSION,
        readers if needs_reader else None,
        frozenset(names),
    )


def features_in_use(schema: StructType, properties: Properties) -> set[str]:
    types = list(all_types(schema))
    by_type = {"timestampNtz": TIMESTAMP_NTZ, "variantType": VARIANT}
    used = {feature for feature, kind in by_type.items() if kind in types}
    if properties.get(column_mapping.MODE_PROPERTY, "none").lower() != "none":
        used.add("columnMapping")
    if properties.get("delta.checkpointPolicy", "classic").lower() == "v2":
        used.add("v2Checkpoint")
    if any(name.lower().startswith("delta.constraints.") for name in properties):
        used.add("checkConstraints")
    compat = {f"icebergCompatV{n}" for n in (1, 2, 3) if properties.boolean(f"delta.enableIcebergCompatV{n}")}
    finished = (row for row in FEATURES.values() if row.stands_for is None and row.enabled_by is not None)
    return used | compat | {row.name for row in finished if row.enabled_by is not None and properties.boolean(row.enabled_by)}


def raised_protocol(current: Protocol, schema: StructType, properties: Properties) -> Protocol:
    """The protocol of a table that gets this schema and these properties: the present one, if it has the features already.

    Raises UnsupportedTableFeatureError (DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT) for a feature that locks out clients which
    can use the table today: that is the owner's decision, not a write's.
    Protocol: Table Features for New and Existing Tables.
    """
    lacking = _with_needs(features_in_use(schema, properties)) - supported_features(current)
    if not lacking:
        return current
    raise UnsupportedTableFeatureError(
        f"The new schema needs the table features {', '.join(sorted(lacking))}, which the table does not support; clients "
        "without them could not use it any more. Nothing was written. Enable each with the table property "
        + ", ".join(f"delta.feature.{name} = supported" for name in sorted(lacking))
        + ", or leave the columns out.",
        error_class="DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
        sql_state="56038",
        features=sorted(lacking),
    )


def _with_needs(features: set[str]) -> set[str]:
    """The features and all that they need, at any remove."""
    closed = set(features)
    while more := {need for name in closed for need in FEATURES[name].needs} - closed:
        closed |= more
    return closed
