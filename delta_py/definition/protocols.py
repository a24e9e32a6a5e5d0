"""The protocol that a table needs: the features that its schema and properties use, and the lowest versions that support them.

Protocol: Table Features for New and Existing Tables; Supported Features.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from delta_py.definition.definition_settings import current_definition_settings
from delta_py.errors import InvalidOptionError, UnsupportedTableFeatureError
from delta_py.protocol import column_mapping
from delta_py.protocol.actions import Protocol
from delta_py.protocol.features import FEATURES, READER_FEATURES_VERSION, WRITER_FEATURES_VERSION, Properties, supported_features
from delta_py.types.schema import TIMESTAMP_NTZ, VARIANT, StructType
from delta_py.types.type_walk import all_types

# The features that every writer of version 2 supports, without a list of features.
_VERSION_2_FEATURES = {"appendOnly", "invariants"}
_MAPPING_VERSIONS = (2, 5)
# The protocols without lists of features: reader and writer version, the lowest first.
_LEGACY_VERSIONS = ((1, 1), (1, 2), (1, 3), (1, 4), _MAPPING_VERSIONS, (2, 6))


def lowest_protocol(schema: StructType, properties: Properties, features: Iterable[str], versions: tuple[int, int]) -> Protocol:
    """The lowest protocol that supports what schema and properties use, and what the caller requests by name or version.

    features: requested names. versions: requested reader and writer version.
    Raises InvalidOptionError for versions that do not exist.
    """
    names = {*features_in_use(schema, properties), *features}
    protocol = with_features(protocol_of_versions(*versions), names)
    has_list = protocol.writer_features is not None and versions[1] < WRITER_FEATURES_VERSION
    return _with_lists(_with_needs(names)) if has_list and current_definition_settings().lists_used_features else protocol


def protocol_of_versions(reader: int, writer: int) -> Protocol:
    """The protocol of a reader and a writer version. If versions have lists of features (reader 3, writer 7), the lists contain
    only the features that writer version 2 and the reader version stand for. Reader version 3 also means writer version 7.

    Raises InvalidOptionError for versions that do not exist.
    """
    if reader > READER_FEATURES_VERSION or writer > WRITER_FEATURES_VERSION or reader < 1 or writer < 1:
        raise InvalidOptionError(
            f"There is no protocol ({reader},{writer}); the newest is ({READER_FEATURES_VERSION},{WRITER_FEATURES_VERSION})."
        )
    if reader == _MAPPING_VERSIONS[0] and writer < _MAPPING_VERSIONS[1]:
        reader = 1  # no writer version here supports the additional feature of reader version 2
    writer = WRITER_FEATURES_VERSION if reader == READER_FEATURES_VERSION else writer
    mapping_features = {"columnMapping"} if reader == _MAPPING_VERSIONS[0] else set[str]()
    writer_features = frozenset(_VERSION_2_FEATURES | mapping_features) if writer == WRITER_FEATURES_VERSION else None
    return Protocol(reader, writer, frozenset[str]() if reader == READER_FEATURES_VERSION else None, writer_features)


def with_features(current: Protocol, features: Iterable[str]) -> Protocol:
    """The protocol with these features and all that they need; `current` itself if it supports them already, under their final
    names or the names of their previews.
    """
    supported = supported_features(current)
    lacking_features = _lacking_features(current, features)
    if not lacking_features:
        return current
    names = lacking_features | supported | _VERSION_2_FEATURES
    may_have_others = current_definition_settings().prefers_versions
    protocol = None if current.writer_features is not None else _protocol_without_lists(names, may_have_others=may_have_others)
    if protocol is not None:
        return protocol
    return _with_lists(names, has_reader_list=current.min_reader_version == READER_FEATURES_VERSION)


def without_feature(current: Protocol, name: str) -> Protocol:
    """The protocol without a feature: the lowest versions without lists that support exactly the remaining features; or else a
    protocol that lists them."""
    names = supported_features(current) - {name}
    protocol = _protocol_without_lists(names)
    if protocol is not None:
        return protocol
    return _with_lists(names, (current.reader_features or frozenset()) - {name})


def _with_lists(names: Set[str], more_readers: Set[str] = frozenset(), *, has_reader_list: bool = False) -> Protocol:
    """A protocol with a list of features for writers, and the lowest reader version that supports all of them. Readers get a list
    too if no version without a list supports all reader features. more_readers: additional reader features. has_reader_list:
    readers get a list in any case, even an empty one.
    Protocol: Table Features for New and Existing Tables; Writer Requirements for Column Mapping.
    """
    readers = frozenset(name for name in names if name in FEATURES and FEATURES[name].reader) | more_readers
    versions_without_lists = [FEATURES[name].legacy_reader if name in FEATURES else None for name in readers]
    legacy_versions = [version for version in versions_without_lists if version is not None]
    if has_reader_list or len(legacy_versions) < len(versions_without_lists):
        return Protocol(READER_FEATURES_VERSION, WRITER_FEATURES_VERSION, readers, frozenset(names))
    return Protocol(max(legacy_versions, default=1), WRITER_FEATURES_VERSION, None, frozenset(names))


def _protocol_without_lists(names: Set[str], *, may_have_others: bool = False) -> Protocol | None:
    """The lowest versions that stand for exactly these features; with may_have_others, for these and possibly others. None if
    there are no such versions.
    """
    for versions in _LEGACY_VERSIONS:
        protocol = Protocol(*versions, None, None)
        supported = supported_features(protocol)
        if supported == names or (may_have_others and supported >= names):
            return protocol
    return None


def _lacking_features(current: Protocol, features: Iterable[str]) -> set[str]:
    """The features that the protocol lacks, of these and all that they need. If it has a writer list, a feature outside the list
    is lacking, even if the reader version implies it.
    """
    supported = supported_features(current)
    if current.writer_features is not None:
        supported &= current.writer_features
    # The final features whose previews the protocol has: it does not lack them.
    finals_of_previews = {FEATURES[name].stands_for for name in supported if name in FEATURES}
    return {name for name in _with_needs(set(features)) if name not in supported and name not in finals_of_previews}


_FEATURES_OF_COLUMNS = ("invariants", "generatedColumns", "identityColumns", "allowColumnDefaults", "geospatial")


def features_in_use(schema: StructType, properties: Properties) -> set[str]:
    """Names of the features that a table with this schema and these properties needs."""
    types = list(all_types(schema))
    by_type = {"timestampNtz": TIMESTAMP_NTZ, "variantType": VARIANT}
    features = {feature for feature, data_type in by_type.items() if data_type in types}
    rules = ((name, FEATURES[name].in_use) for name in _FEATURES_OF_COLUMNS)
    features |= {name for name, in_use in rules if in_use is not None and in_use(properties, schema)}
    if properties.get(column_mapping.MODE_PROPERTY, "none").lower() != "none":
        features.add("columnMapping")
    if properties.get("delta.checkpointPolicy", "classic").lower() == "v2":
        features.add("v2Checkpoint")
    if any(name.lower().startswith("delta.constraints.") for name in properties):
        features.add("checkConstraints")
    # Previews are left out: a property enables the feature under its final name.
    finished = (row for row in FEATURES.values() if row.stands_for is None and row.enabled_by is not None)
    return features | {row.name for row in finished if row.enabled_by is not None and properties.boolean(row.enabled_by)}


# Features that a new column of such a type adds to the protocol automatically, as in delta-spark.
_RAISED_BY_COLUMNS = {"geospatial", "variantType"}


def raised_protocol(current: Protocol, schema: StructType, properties: Properties) -> Protocol:
    """The protocol of a table that gets this schema and these properties: the present one if it has the features already, else
    with the features that a column enables automatically.

    Raises UnsupportedTableFeatureError (DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT) for a feature that locks out clients which
    can use the table today: the owner must decide that, not a write.
    Protocol: Table Features for New and Existing Tables.
    """
    used = features_in_use(schema, properties)
    current = with_features(current, used & (_RAISED_BY_COLUMNS | current_definition_settings().enabled_features))
    lacking = _lacking_features(current, used)
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
    """The features and all that they need, directly or indirectly, as far as these are known."""
    result = set(features)
    while needed_features := {need for name in result & FEATURES.keys() for need in FEATURES[name].needs} - result:
        result |= needed_features
    return result
