"""Table features: one row for each feature, and the features that a protocol requires from readers and writers.

A row has the legacy versions that imply the feature, the other features that it needs, whether this library can read and write
tables with it, and how to see from the metadata that it is in use. A writer-only feature never prevents reading. A listed feature
that is not in use requires nothing from a writer, so writing is refused only if the feature is in use.
Protocol: Table Features; Protocol Evolution; Valid Feature Names in Table Features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from delta_py.errors import CorruptTableError, UnsupportedOperationError, UnsupportedTableFeatureError
from delta_py.protocol.actions import Protocol
from delta_py.protocol.identity_columns import START as IDENTITY_START
from delta_py.types.column_rules import DEFAULT, GENERATION, INVARIANT
from delta_py.types.schema import VARIANT, DataType, GeospatialType, StructType
from delta_py.types.sizes import parse_size
from delta_py.types.type_walk import all_fields, all_types

READER_FEATURES_VERSION = 3
PROTECTION = "checkpointProtection"
PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"
FORMATS_PROPERTY = "delta.universalFormat.enabledFormats"
WRITER_FEATURES_VERSION = 7
_FORMER_NAMES = {"delta.enableChangeDataFeed": "delta.enableChangeDataCapture"}  # used if the current name is not set


class Operation(Enum):
    READ = "read"
    WRITE = "write"


class Properties(Mapping[str, str]):
    """Table properties. Lookup ignores case, as in delta-spark. Iteration returns the names as they were set."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)
        self._values_by_lower_name = {name.lower(): value for name, value in self._values.items()}  # by the name in lower case

    def __getitem__(self, name: str) -> str:
        return self._values_by_lower_name[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def boolean(self, name: str, default: bool = False) -> bool:
        """A property that is true or false. Raises CorruptTableError for any other value."""
        text = self.get(name, self.get(_FORMER_NAMES.get(name, name)))
        if text is None:
            return default
        if text.strip().lower() not in ("true", "false"):
            raise CorruptTableError(f"Table property {name} is {text!r}; it must be true or false.", property=name)
        return text.strip().lower() == "true"

    def integer(self, name: str, default: int) -> int:
        """A property that is a whole number. Raises CorruptTableError for any other value."""
        text = self.get(name)
        try:
            return default if text is None else int(text)
        except ValueError as error:
            raise CorruptTableError(f"Table property {name} is {text!r}; it must be a whole number.", property=name) from error

    def size(self, name: str, default: int) -> int:
        """A size in bytes. Raises CorruptTableError for a value that is not a size above 0."""
        text = self.get(name)
        size = default if text is None else parse_size(text)
        if not size:
            raise CorruptTableError(f"Table property {name} is {text!r}; it must be a size, such as 128mb.", property=name)
        return size


# Takes a table's properties and schema. Returns whether a feature is in use: see Feature.in_use.
InUse = Callable[[Properties, StructType], bool]


@dataclass(frozen=True, slots=True)
class Feature:
    """One table feature.

    reader: whether readers must know it too, and not only writers. legacy_reader, legacy_writer: the first protocol versions that
    imply it; None if no version does. needs: features that must be listed with it. enabled_by: the boolean property that turns it
    on; None if there is none. read, write: whether this library can read and write tables with it. in_use: whether the table's
    properties and schema show that the feature requires something from a writer who only adds rows; None if they cannot show
    that, so that a listed feature counts as in use.
    stands_for: the final name, if this is the name of a preview.
    """

    name: str
    reader: bool = False
    legacy_reader: int | None = None
    legacy_writer: int | None = None
    needs: tuple[str, ...] = ()
    enabled_by: str | None = None
    read: bool = True
    write: bool = False
    in_use: InUse | None = None
    stands_for: str | None = None


def _field_has(key: str) -> InUse:
    """Returns a check for Feature.in_use: the feature is in use if a field at any depth has this key in its metadata."""
    return lambda properties, schema: any(key in f.metadata for f in all_fields(schema))


def _property_on(name: str) -> InUse:
    """Returns a check for Feature.in_use: the feature is in use if the property is true."""
    return lambda properties, schema: properties.boolean(name)


def _property_set(prefix: str) -> InUse:
    """Returns a check for Feature.in_use: the feature is in use if any property whose name begins with `prefix` is set."""
    return lambda properties, schema: any(name.lower().startswith(prefix.lower()) for name in properties)


def _has_variant(properties: Properties, schema: StructType) -> bool:
    return any(t == VARIANT for t in all_types(schema))


def has_geospatial(data_type: DataType) -> bool:
    """Whether the type is geometry or geography, or contains one of them."""
    return any(isinstance(t, GeospatialType) for t in all_types(data_type))


def _has_geospatial(properties: Properties, schema: StructType) -> bool:
    return has_geospatial(schema)


_CATALOG_NEEDS = ("inCommitTimestamp", "vacuumProtocolCheck")
_WIDENING = "delta.enableTypeWidening"
_SHREDDING = "delta.enableVariantShredding"

_SHREDDED = Feature(
    "variantShredding",
    reader=True,
    needs=("variantType",),
    enabled_by=_SHREDDING,
    in_use=_property_on(_SHREDDING),
    write=True,
)
_ROWS: tuple[Feature, ...] = (
    Feature("appendOnly", legacy_writer=2, enabled_by="delta.appendOnly", write=True),
    Feature("invariants", legacy_writer=2, in_use=_field_has(INVARIANT), write=True),
    Feature("checkConstraints", legacy_writer=3, in_use=_property_set("delta.constraints."), write=True),
    Feature("changeDataFeed", legacy_writer=4, enabled_by="delta.enableChangeDataFeed", write=True),
    Feature("generatedColumns", legacy_writer=4, in_use=_field_has(GENERATION), write=True),
    Feature("columnMapping", reader=True, legacy_reader=2, legacy_writer=5, write=True),
    Feature("identityColumns", legacy_writer=6, in_use=_field_has(IDENTITY_START), write=True),
    Feature("deletionVectors", reader=True, enabled_by="delta.enableDeletionVectors", write=True),
    Feature("rowTracking", needs=("domainMetadata",), enabled_by="delta.enableRowTracking", write=True),
    Feature("timestampNtz", reader=True, write=True),
    Feature("timestampWithoutTimezone", reader=True, write=True, stands_for="timestampNtz"),
    Feature("domainMetadata", write=True),
    Feature("v2Checkpoint", reader=True, write=True),
    Feature("catalogManaged", reader=True, needs=_CATALOG_NEEDS, write=True),
    Feature("catalogOwned-preview", reader=True, needs=_CATALOG_NEEDS, stands_for="catalogManaged"),
    Feature("icebergCompatV1", needs=("columnMapping",), enabled_by="delta.enableIcebergCompatV1", write=True),
    Feature("icebergCompatV2", needs=("columnMapping",), enabled_by="delta.enableIcebergCompatV2", write=True),
    Feature("icebergCompatV3", needs=("columnMapping", "rowTracking"), enabled_by="delta.enableIcebergCompatV3", write=True),
    Feature("icebergWriterCompatV1", needs=("icebergCompatV2",), enabled_by="delta.enableIcebergWriterCompatV1", write=True),
    Feature("clustering", needs=("domainMetadata",), write=True),
    Feature("vacuumProtocolCheck", reader=True, write=True),
    Feature("inCommitTimestamp", enabled_by="delta.enableInCommitTimestamps", write=True),
    Feature("allowColumnDefaults", in_use=_field_has(DEFAULT), write=True),
    Feature("typeWidening", reader=True, enabled_by=_WIDENING, write=True),
    Feature("typeWidening-preview", reader=True, enabled_by=_WIDENING, write=True, stands_for="typeWidening"),
    Feature("variantType", reader=True, in_use=_has_variant, write=True),
    Feature("variantType-preview", reader=True, in_use=_has_variant, write=True, stands_for="variantType"),
    _SHREDDED,
    replace(_SHREDDED, name="variantShredding-preview", stands_for="variantShredding"),
    Feature(PROTECTION, write=True),
    Feature("materializePartitionColumns", enabled_by="delta.enableMaterializePartitionColumnsFeature", write=True),
    Feature("columnMappingUsageTracking", needs=("columnMapping",), write=True),
    Feature("collations", write=True),
    Feature("collations-preview", write=True, stands_for="collations"),
    Feature(
        "coordinatedCommits-preview",
        needs=_CATALOG_NEEDS,
        in_use=_property_set("delta.coordinatedCommits.commitCoordinator-preview"),
    ),
    Feature("redirectWriterOnly-preview", in_use=_property_set("delta.redirectWriterOnly-preview")),
    Feature("redirectReaderWriter-preview", reader=True, read=False),
    Feature("geospatial", reader=True, in_use=_has_geospatial, write=True),
    Feature("geospatial-dev", reader=True, in_use=_has_geospatial, write=True, stands_for="geospatial"),
    Feature("adaptiveMetadata-preview", reader=True, read=False),
)

FEATURES: Mapping[str, Feature] = {row.name: row for row in _ROWS}


# ---------------------------------------------------------------- features that a protocol requires


def reader_features(protocol: Protocol) -> frozenset[str]:
    """Names of the features that a reader must know.

    Raises CorruptTableError if the version requires a list of features that is missing.
    """
    if protocol.min_reader_version < READER_FEATURES_VERSION:
        implied = (f.name for f in _ROWS if f.legacy_reader is not None and f.legacy_reader <= protocol.min_reader_version)
        return frozenset(implied)
    return _require_list(protocol.reader_features, "readerFeatures", "minReaderVersion", protocol.min_reader_version)


def writer_features(protocol: Protocol) -> frozenset[str]:
    """Names of the features that a writer must know. Raises CorruptTableError as `reader_features`."""
    if protocol.min_writer_version < WRITER_FEATURES_VERSION:
        implied = (f.name for f in _ROWS if f.legacy_writer is not None and f.legacy_writer <= protocol.min_writer_version)
        # columnMapping is for readers too: the reader version must also imply it.
        return frozenset(name for name in implied if not FEATURES[name].reader or name in reader_features(protocol))
    return _require_list(protocol.writer_features, "writerFeatures", "minWriterVersion", protocol.min_writer_version)


def supported_features(protocol: Protocol) -> frozenset[str]:
    """Names of all features that the table supports in the sense of the protocol, including implied features.

    A reader-writer feature counts only if it is listed for readers. Protocol: Supported Features.
    """
    readers = reader_features(protocol)
    return frozenset(name for name in writer_features(protocol) if name not in FEATURES or not FEATURES[name].reader) | readers


def _require_list(names: frozenset[str] | None, field: str, version_field: str, version: int) -> frozenset[str]:
    """The features that a protocol lists. Raises CorruptTableError if it has no list (None), although its version requires one.
    field, version_field: the names of both fields, for the message."""
    if names is None:
        raise CorruptTableError(
            f"The protocol action has {version_field} {version} but no {field}, so it is unknown which features it requires. "
            "The log is damaged.",
            field=field,
        )
    return names


# ---------------------------------------------------------------- tables that this library refuses


def check_readable(protocol: Protocol) -> None:
    """Raises UnsupportedTableFeatureError, with all unsupported features, if this library cannot read the protocol."""
    if protocol.min_reader_version > READER_FEATURES_VERSION:
        raise _version_error("reader", protocol.min_reader_version, READER_FEATURES_VERSION)
    missing = sorted(name for name in reader_features(protocol) if name not in FEATURES or not FEATURES[name].read)
    if missing:
        raise UnsupportedTableFeatureError(
            f"The table needs reader features that this version of pydelta cannot read: {', '.join(missing)}. "
            "Read it with a newer version, or drop the feature with the engine that added it.",
            features=missing,
        )


def check_writable(protocol: Protocol, properties: Properties, schema: StructType) -> None:
    """Raises UnsupportedTableFeatureError, with all unsupported features, if this library cannot add rows to the table."""
    if protocol.min_writer_version > WRITER_FEATURES_VERSION:
        raise _version_error("writer", protocol.min_writer_version, WRITER_FEATURES_VERSION)
    names = writer_features(protocol) | reader_features(protocol)
    missing = sorted(name for name in names if not _can_write(name, properties, schema))
    if missing:
        raise UnsupportedTableFeatureError(
            f"The table uses writer features that this version of pydelta cannot write: {', '.join(missing)}. "
            "Nothing was written. Write with an engine that supports them, or with a newer version.",
            error_class="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            features=missing,
        )
    formats = properties.get(FORMATS_PROPERTY, "").strip()
    if formats:
        raise UnsupportedOperationError(
            f"The table has metadata for other formats ({FORMATS_PROPERTY} is {formats!r}), but pydelta cannot write it: readers "
            "of these formats would not see the new rows. Nothing was written. Write with the engine that maintains this "
            f"metadata, or unset {FORMATS_PROPERTY} first.",
            error_class="DELTA_UNIVERSAL_FORMAT_VIOLATION",
            sql_state="KD00E",
            property=FORMATS_PROPERTY,
        )


def _can_write(name: str, properties: Properties, schema: StructType) -> bool:
    """Whether this library can add rows to a table that lists the feature: because it supports the feature, or because the table
    does not use it."""
    feature = FEATURES.get(name)
    if feature is None:
        return False
    return feature.write or (feature.in_use is not None and not feature.in_use(properties, schema))


def _version_error(kind: str, version: int, newest: int) -> UnsupportedTableFeatureError:
    """The error for a protocol version that is too new. kind: `reader` or `writer`. newest: the newest that is supported."""
    return UnsupportedTableFeatureError(
        f"The table needs {kind} version {version}, but this version of pydelta supports {kind} versions up to {newest}. "
        "Use a newer version.",
        error_class="DELTA_INVALID_PROTOCOL_VERSION",
        sql_state="KD004",
        version=version,
        supported=newest,
    )
