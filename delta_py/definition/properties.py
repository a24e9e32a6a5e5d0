"""Table properties that a caller sets: their names and values, and how this library treats each.

    properties, features = split_configuration({"delta.appendOnly": "true", "delta.feature.deletionVectors": "supported"})

PROPERTIES is the list of Delta's own. Their names are matched ignoring case; all others are the user's, and stored unchanged.
Protocol: Table Properties; Table Features for New and Existing Tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from delta_py.definition.definition_settings import current_definition_settings
from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.protocol import column_mapping
from delta_py.protocol.features import FEATURES, FORMATS_PROPERTY, PROTECTED_BEFORE, Properties
from delta_py.protocol.intervals import parse_interval
from delta_py.protocol.parquet_settings import CODEC_PROPERTY, PAGES_PROPERTY, compression_codec, is_page_version
from delta_py.types.similar_names import did_you_mean
from delta_py.types.sizes import parse_size

MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"
VECTORS = "delta.enableDeletionVectors"
VALIDATION_FAILED = "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"
READER_VERSION, WRITER_VERSION = "delta.minReaderVersion", "delta.minWriterVersion"
IGNORE_DEFAULTS = "delta.ignoreProtocolDefaults"

_FEATURE_PREFIX = "delta.feature."
# After these prefixes, names are free (such as names of constraints), so PROPERTIES cannot list them.
_OPEN_PREFIXES = (_FEATURE_PREFIX, "delta.constraints.", "delta.universalformat.config.")


class Treatment(Enum):
    """How this library treats a property. HONOURED: this library does what it says. WITHOUT_EFFECT: stored in the table for other
    clients; nothing here depends on it. BOOKKEEPING: writers set it, users cannot. ELSEWHERE: it needs another product, and
    setting it is refused.
    """

    HONOURED = "honoured"
    WITHOUT_EFFECT = "without effect"
    BOOKKEEPING = "bookkeeping"
    ELSEWHERE = "elsewhere"


Check = Callable[[str], str | None]
"""Returns the requirement that a value violates; None if it is valid."""


@dataclass(frozen=True, slots=True)
class Property:
    """A property of Delta. check: checks a value. treatment: how this library treats the property. why: the reason why it has no
    effect, or is refused; empty for other properties."""

    name: str
    check: Check
    treatment: Treatment = Treatment.HONOURED
    why: str = ""


# ---------------------------------------------------------------- values


def _any_text(value: str) -> str | None:
    """A check (see Check) that accepts every value."""
    return None


def _boolean(value: str) -> str | None:
    """A check (see Check) for true and false."""
    return None if value.strip().lower() in ("true", "false") else "true or false"


def _whole_number(least: int | None = None) -> Check:
    """A check for whole numbers. least: the smallest valid number, None for any. Numbers of 18 digits always fit into 64 bits."""

    def check(value: str) -> str | None:
        if not re.fullmatch(r"-?[0-9]{1,18}", value):
            return "a whole number"
        return f"a whole number of at least {least}" if least is not None and int(value) < least else None

    return check


def _interval(value: str) -> str | None:
    """A check (see Check) for intervals without months and years, whose length varies."""
    try:
        parse_interval(value)
    except ValueError:
        return "an interval of fixed length, such as interval 7 days"
    return None


def _one_of(*allowed: str) -> Check:
    """Return a check for these values, in any case of letters. allowed: in lower case."""
    return lambda value: None if value.lower() in allowed else f"one of {', '.join(allowed)}"


def _size(value: str) -> str | None:
    """A check (see Check) for a number of bytes with a unit."""
    return None if parse_size(value) else "a size, such as 128mb"


def _page_version(value: str) -> str | None:
    """A check (see Check) for the version of Parquet's data pages."""
    return None if is_page_version(value) else "1.0.0, or 2.x.x such as 2.12.0"


def _codec(value: str) -> str | None:
    """A check (see Check) for compression codecs. It never returns a requirement: compression_codec raises
    UnsupportedOperationError for a codec that pydelta cannot write."""
    compression_codec(value)
    return None


# ---------------------------------------------------------------- the list

# Short names, and reasons, for the rows of the list.
_NO_EFFECT, _BOOKKEEPING, _ELSEWHERE = Treatment.WITHOUT_EFFECT, Treatment.BOOKKEEPING, Treatment.ELSEWHERE
_NOT_CLEANED = "this library deletes checkpoints and commits by delta.logRetentionDuration alone"
_NO_SAMPLES = "no client writes sample files any more"
_OF_ICEBERG = "it is for CONVERT and CLONE of Iceberg tables, which this library does not read"
_OF_CATALOG = "it belongs to entries of a metastore, not to the log"
_COORDINATED = "commits that a coordinator makes need that coordinator's service"
_REDIRECT = "this library follows no redirects"
_UNIFORM = (
    "this library makes no metadata of other formats, so that theirs would stay behind the table. Have the engine that needs it "
    "set it and write the table, or read the table as Delta"
)

_ROWS: tuple[Property, ...] = (
    Property(READER_VERSION, _whole_number(1)),
    Property(WRITER_VERSION, _whole_number(1)),
    Property(IGNORE_DEFAULTS, _boolean),
    Property("delta.logRetentionDuration", _interval),
    Property("delta.sampleRetentionDuration", _interval, _NO_EFFECT, _NO_SAMPLES),
    Property("delta.checkpointRetentionDuration", _interval, _NO_EFFECT, _NOT_CLEANED),
    Property("delta.checkpointInterval", _whole_number(1)),
    Property("delta.redirectReaderWriter-preview", _any_text, _ELSEWHERE, _REDIRECT),
    Property("delta.redirectWriterOnly-preview", _any_text, _ELSEWHERE, _REDIRECT),
    Property("delta.autoOptimize", _boolean),
    Property("delta.autoOptimize.autoCompact", _boolean),
    Property("delta.autoOptimize.optimizeWrite", _boolean),
    Property("delta.enableExpiredLogCleanup", _boolean),
    Property("delta.enableFullRetentionRollback", _boolean, _NO_EFFECT, _NOT_CLEANED),
    Property("delta.dropFeatureTruncateHistory.retentionDuration", _interval),
    Property("delta.deletedFileRetentionDuration", _interval),
    Property("delta.randomizeFilePrefixes", _boolean),
    Property("delta.randomPrefixLength", _whole_number(1)),
    Property("delta.appendOnly", _boolean),
    Property(VECTORS, _boolean),
    Property(PAGES_PROPERTY, _page_version),
    Property("delta.enableVariantShredding", _boolean, _NO_EFFECT, "it allows shredded files, and this library writes none"),
    Property("delta.dataSkippingNumIndexedCols", _whole_number(-1)),
    Property("delta.dataSkippingStatsColumns", _any_text),
    Property("delta.dataSkippingStringPrefixLength", _whole_number(0)),
    Property(MANIFESTS, _boolean),
    Property("delta.checkpoint.writeStatsAsJson", _boolean),
    Property("delta.checkpoint.writeStatsAsStruct", _boolean),
    Property("delta.enableChangeDataCapture", _boolean),
    Property("delta.enableChangeDataFeed", _boolean),
    Property(column_mapping.MODE_PROPERTY, _one_of(*column_mapping.MODES)),
    Property(column_mapping.MAX_ID_PROPERTY, _any_text, _BOOKKEEPING),
    Property("delta.columnMapping.hasDroppedOrRenamed", _any_text, _BOOKKEEPING),
    Property("delta.setTransactionRetentionDuration", _interval),
    Property("delta.isolationLevel", _one_of("serializable", "writeserializable", "snapshotisolation")),
    Property("delta.checkpointPolicy", _one_of("classic", "v2")),
    Property("delta.enableRowTracking", _boolean),
    Property("delta.rowTrackingSuspended", _any_text, _BOOKKEEPING),
    Property("delta.rowTracking.materializedRowIdColumnName", _any_text, _BOOKKEEPING),
    Property("delta.rowTracking.materializedRowCommitVersionColumnName", _any_text, _BOOKKEEPING),
    Property(FORMATS_PROPERTY, _any_text, _ELSEWHERE, _UNIFORM),
    Property("delta.universalFormat.iceberg.atomicConversion.supported", _boolean, _NO_EFFECT, "there is no conversion here"),
    Property("delta.enableIcebergCompatV1", _boolean),
    Property("delta.enableIcebergCompatV2", _boolean),
    Property("delta.enableIcebergCompatV3", _boolean),
    Property("delta.enableIcebergWriterCompatV1", _boolean),
    Property("delta.castIcebergTimeType", _boolean, _NO_EFFECT, _OF_ICEBERG),
    Property("delta.ignoreIcebergBucketPartition", _boolean, _NO_EFFECT, _OF_ICEBERG),
    Property("delta.enableTypeWidening", _boolean),
    Property("delta.coordinatedCommits.commitCoordinator-preview", _any_text, _ELSEWHERE, _COORDINATED),
    Property("delta.coordinatedCommits.commitCoordinatorConf-preview", _any_text, _ELSEWHERE, _COORDINATED),
    Property("delta.coordinatedCommits.tableConf-preview", _any_text, _ELSEWHERE, _COORDINATED),
    Property("delta.enableInCommitTimestamps", _boolean),
    Property("delta.inCommitTimestampEnablementVersion", _any_text, _BOOKKEEPING),
    Property("delta.inCommitTimestampEnablementTimestamp", _any_text, _BOOKKEEPING),
    Property(PROTECTED_BEFORE, _any_text, _BOOKKEEPING),
    Property("delta.enableMaterializePartitionColumnsFeature", _boolean),
    Property("delta.writePartitionColumnsToParquet", _boolean),
    Property(CODEC_PROPERTY, _codec),
    Property("delta.targetFileSize", _size),
    Property("delta.tuneFileSizesForRewrites", _boolean, _NO_EFFECT, "file sizes follow delta.targetFileSize"),
    Property("delta.lastUpdateVersion", _any_text, _BOOKKEEPING, _OF_CATALOG),
    Property("delta.lastCommitTimestamp", _any_text, _BOOKKEEPING, _OF_CATALOG),
)

PROPERTIES: Mapping[str, Property] = {row.name: row for row in _ROWS}
_ROWS_BY_LOWER_NAME = {row.name.lower(): row for row in _ROWS}


# ---------------------------------------------------------------- what a caller gives


def split_configuration(configuration: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    """Return the checked properties under their stored names, and the features that `delta.feature.*` requests.

    Raises InvalidOptionError for a name that is unknown or that users cannot set, and for an invalid value;
    UnsupportedOperationError for a property that needs another product.
    """
    properties: dict[str, str] = {}
    features = set()
    for requested_name, value in configuration.items():
        if requested_name.lower().startswith(_FEATURE_PREFIX):
            features.add(requested_feature(requested_name, value))
            continue
        name = known_name(requested_name)
        if name in properties:
            raise InvalidOptionError(f"Table property {name} is given twice.", property=name)
        _check_value(name, value)
        properties[name] = value
    return properties, frozenset(features)


def with_defaults(configuration: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """The properties of a new table: those of the configuration, and the defaults for those that it does not name.
    delta.ignoreProtocolDefaults, which is not stored, leaves out defaults of the protocol. Defaults with unknown names belong to
    other products and are left out.
    """
    configured = {name.lower(): value for name, value in configuration.items()}
    for name, value in (*configuration.items(), *defaults.items()):
        if name.lower() == IGNORE_DEFAULTS.lower():
            _check_value(IGNORE_DEFAULTS, value)
    ignores_protocol = Properties(configuration).boolean(IGNORE_DEFAULTS) or Properties(defaults).boolean(IGNORE_DEFAULTS)
    # Defaults whose names begin with these texts are about the protocol. They are left out if the caller asks for it.
    protocol_prefixes = (READER_VERSION.lower(), WRITER_VERSION.lower(), _FEATURE_PREFIX) if ignores_protocol else ()
    known_defaults = {name: value for name, value in defaults.items() if _stored_name(name) is not None}
    used_defaults = {
        name: value
        for name, value in known_defaults.items()
        if name.lower() not in configured and not (protocol_prefixes and name.lower().startswith(protocol_prefixes))
    }
    return {name: value for name, value in {**used_defaults, **configuration}.items() if name.lower() != IGNORE_DEFAULTS.lower()}


def without_bookkeeping(configuration: Mapping[str, str]) -> dict[str, str]:
    """A table's properties without those that writers maintain and users cannot set."""
    bookkeeping_names = {name.lower() for name, row in PROPERTIES.items() if row.treatment is Treatment.BOOKKEEPING}
    return {name: value for name, value in configuration.items() if name.lower() not in bookkeeping_names}


def check_manifests(properties: Properties) -> None:
    """Raises UnsupportedOperationError for a table that would have both symlink manifests and deletion vectors."""
    if properties.boolean(MANIFESTS) and properties.boolean(VECTORS):
        raise UnsupportedOperationError(
            f"{MANIFESTS} and {VECTORS} cannot both be true: readers of symlink manifests know no deletion vectors. Nothing was "
            "changed. Turn one of them off.",
            error_class=f"{VALIDATION_FAILED}.PERSISTENT_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION",
            sql_state="0A000",
        )


def refuse_constraints(properties: Mapping[str, str]) -> None:
    """Raises UnsupportedOperationError (DELTA_ADD_CONSTRAINTS) for constraints among properties of a table that has rows."""
    checks = [name for name in properties if name.lower().startswith("delta.constraints.")]
    if checks:
        raise UnsupportedOperationError(
            f"{', '.join(checks)}: a CHECK constraint holds for all rows, and a property would not check the existing ones. "
            "Nothing was changed. Add it with addConstraint, or without Spark with alter.add_constraint.",
            error_class="DELTA_ADD_CONSTRAINTS",
            sql_state="0A000",
            properties=checks,
        )


def requested_feature(property_name: str, value: str) -> str:
    """The feature that a property such as `delta.feature.deletionVectors` requests, in the protocol's spelling.

    Raises InvalidOptionError for an unknown feature (DELTA_UNSUPPORTED_FEATURES_IN_CONFIG), or a value other than `supported` and
    `enabled`.
    """
    spelling = {feature.lower(): feature for feature in FEATURES}
    feature = spelling.get(property_name[len(_FEATURE_PREFIX) :].lower())
    if feature is None:
        known_features = ", ".join(sorted(FEATURES))
        raise InvalidOptionError(
            f"{property_name}: there is no such table feature."
            f"{did_you_mean(property_name[len(_FEATURE_PREFIX) :], FEATURES) or f' Known are {known_features}.'}",
            error_class="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            sql_state="56038",
            property=property_name,
        )
    if value.lower() not in ("supported", "enabled"):
        raise InvalidOptionError(f"{property_name} is {value!r}; the only value is 'supported'.", property=property_name)
    return feature


def known_name(requested_name: str) -> str:
    """The name as it is stored. Raises InvalidOptionError (DELTA_UNKNOWN_CONFIGURATION) for an unknown name with the prefix
    `delta.`.
    """
    name = _stored_name(requested_name)
    if name is None and current_definition_settings().allows_any_property:
        return requested_name
    if name is None:
        raise InvalidOptionError(
            f"{requested_name} is no table property that can be set."
            f"{did_you_mean(requested_name, (row.name for row in _ROWS_BY_LOWER_NAME.values()))}",
            error_class="DELTA_UNKNOWN_CONFIGURATION",
            sql_state="F0000",
            property=requested_name,
        )
    return name


def _stored_name(requested_name: str) -> str | None:
    """The name as it is stored: that of PROPERTIES, in its spelling; or the requested name itself if it does not begin with
    `delta.`, or begins with one of _OPEN_PREFIXES. None for an unknown name that begins with `delta.`.
    """
    lower_name = requested_name.lower()
    if not lower_name.startswith("delta.") or lower_name.startswith(_OPEN_PREFIXES):
        return requested_name
    row = _ROWS_BY_LOWER_NAME.get(lower_name)
    return None if row is None else row.name


def _check_value(name: str, value: str) -> None:
    """Raises InvalidOptionError for a value that the property cannot have, and for a property that users cannot set;
    UnsupportedOperationError for a property that needs another product. name: the property's stored name."""
    if not isinstance(value, str):
        raise InvalidOptionError(
            f"Table property {name} is {value!r}; properties are text, such as 'true' or '10'.", property=name
        )
    row = PROPERTIES.get(name)
    if row is None:
        return
    if row.treatment is Treatment.BOOKKEEPING:
        raise InvalidOptionError(
            f"Table property {name} is Delta's own bookkeeping, which writers keep; it cannot be set. Nothing was changed. Leave "
            "it out.",
            error_class="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
            sql_state="42939",
            property=name,
        )
    # An empty value and `false` turn the property off, which needs no other product.
    if row.treatment is Treatment.ELSEWHERE and value.strip() and value.strip().lower() != "false":
        raise UnsupportedOperationError(
            f"Table property {name} cannot be set to {value!r} by pydelta: {row.why}. Nothing was changed.",
            error_class="DELTA_UNIVERSAL_FORMAT_VIOLATION" if name == FORMATS_PROPERTY else None,
            sql_state="KD00E" if name == FORMATS_PROPERTY else None,
            property=name,
        )
    expectation = row.check(value)
    if expectation is not None:
        is_interval = row.check is _interval
        raise InvalidOptionError(
            f"Table property {name} is {value!r}; it must be {expectation}.",
            error_class="DELTA_INVALID_INTERVAL" if is_interval else None,
            sql_state="22006" if is_interval else None,
            property=name,
        )
