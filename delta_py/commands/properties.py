"""Table properties that a caller sets: which names and values there are.

    kept, features = split_configuration({"delta.appendOnly": "true", "delta.feature.deletionVectors": "supported"})

Names of Delta's own properties are found ignoring case; all others are the user's, and kept as they are.
Protocol: Table Properties; Table Features for New and Existing Tables.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.protocol import column_mapping
from delta_py.protocol.features import FEATURES, Properties
from delta_py.protocol.sizes import parse_size
from delta_py.write.conform import compression_codec

MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"
VECTORS = "delta.enableDeletionVectors"
VALIDATION_FAILED = "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"

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
    VECTORS,
    "delta.enableVariantShredding",
    MANIFESTS,
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
    column_mapping.MODE_PROPERTY,
    "delta.setTransactionRetentionDuration",
    "delta.isolationLevel",
    "delta.checkpointPolicy",
    "delta.universalFormat.enabledFormats",
    "delta.parquet.compression.codec",
    "delta.targetFileSize",
)
_SPELLING = {name.lower(): name for name in (*_BOOLEANS, *_INTEGERS, *_TEXTS)}
_FIXED_VALUES = {
    column_mapping.MODE_PROPERTY: column_mapping.MODES,
    "delta.checkpointPolicy": ("classic", "v2"),
    "delta.isolationLevel": ("serializable", "writeserializable", "snapshotisolation"),
}


def split_configuration(configuration: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    """Checked properties under the names that are stored, and the features that `delta.feature.*` asks for."""
    properties: dict[str, str] = {}
    features = set()
    for given, value in configuration.items():
        if given.lower().startswith(_FEATURE_PREFIX):
            features.add(feature_asked_for(given, value))
            continue
        name = known_name(given)
        if name in properties:
            raise InvalidOptionError(f"Table property {name} is given twice.", property=name)
        _check_value(name, value)
        properties[name] = value
    return properties, frozenset(features)


def check_manifests(properties: Properties) -> None:
    """Raises UnsupportedOperationError for a table that would have both symlink manifests and deletion vectors."""
    if properties.boolean(MANIFESTS) and properties.boolean(VECTORS):
        raise UnsupportedOperationError(
            f"{MANIFESTS} and {VECTORS} cannot both be true: readers of symlink manifests know no deletion vectors. Nothing was "
            "changed. Turn one of them off.",
            error_class=f"{VALIDATION_FAILED}.PERSISTENT_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION",
            sql_state="0A000",
        )


def feature_asked_for(given: str, value: str) -> str:
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


def known_name(given: str) -> str:
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
