"""Rules for writers of tables whose files other programs may read as an Iceberg table.

    check_compatible(features, properties, schema)      # of a table before or after a change

The rules for new files are in the modules that write files: partition columns in the files, ids of elements, keys and values, and
record counts. This module converts nothing.
Protocol: Iceberg Compatibility V1; Iceberg Compatibility V2; Writer Requirements for IcebergCompatV1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from delta_py.errors import UnsupportedOperationError
from delta_py.protocol import column_mapping
from delta_py.protocol.features import FEATURES, Properties
from delta_py.types.column_rules import DEFAULT, TYPE_CHANGES
from delta_py.types.schema import (
    BYTE,
    SHORT,
    ArrayType,
    DataType,
    DecimalType,
    GeospatialType,
    MapType,
    Path,
    PrimitiveType,
    StructType,
    type_name,
)
from delta_py.types.type_walk import all_fields, all_types

VIOLATION = "DELTA_ICEBERG_COMPAT_VIOLATION"
_VERSIONS = (1, 2, 3)
_WRITERS = "icebergWriterCompatV1"
# The features that a table of icebergWriterCompatV1 may use (_FOR_WRITERS), and those that its protocol may list if the table
# does not use them (_FOR_WRITERS_UNUSED).
_FOR_WRITERS = frozenset(
    {_WRITERS, "icebergCompatV2", "appendOnly", "columnMapping", "domainMetadata", "vacuumProtocolCheck", "v2Checkpoint"}
    | {"inCommitTimestamp", "clustering", "timestampNtz", "typeWidening", "catalogManaged"}
)
_FOR_WRITERS_UNUSED = frozenset({"invariants", "changeDataFeed", "checkConstraints", "identityColumns", "generatedColumns"})
_V2_TYPES = frozenset(
    "byte short integer long float double string binary boolean timestamp timestamp_ntz date".split()  # noqa: SIM905
)
_V3_TYPES = _V2_TYPES | {"variant"}
_WHOLE_NUMBERS = ("byte", "short", "integer", "long")  # from narrow to wide
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
# A SQL literal: a text, perhaps after the name of its type, a number, true, false or null.
_LITERAL = re.compile(
    r"\s*(?:(?:date|timestamp|timestamp_ntz|timestamp_ltz|x)?\s*(?:'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\")"
    r"|[+-]?[0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?[a-z]{0,2}|true|false|null)\s*",
    re.IGNORECASE,
)


def property_of(version: int) -> str:
    """The property that turns on a version of IcebergCompat."""
    return f"delta.enableIcebergCompatV{version}"


def enabled_versions(properties: Properties) -> tuple[int, ...]:
    """The versions of IcebergCompat that the properties turn on, ascending; mostly none or one."""
    return tuple(n for n in _VERSIONS if properties.boolean(property_of(n)))


def active_versions(features: Set[str], properties: Properties) -> tuple[int, ...]:
    """The versions of IcebergCompat that a table supports (by a feature of the protocol) and has turned on (by a property). A
    valid table has at most one."""
    return tuple(n for n in enabled_versions(properties) if f"icebergCompatV{n}" in features)


def check_files(before: tuple[int, ...], after: tuple[int, ...], *, partitioned: bool, files: int) -> None:
    """Raises UnsupportedOperationError (DELTA_ICEBERG_COMPAT_VIOLATION.CHANGE_VERSION_NEED_REWRITE) if files were written under
    other versions of IcebergCompat and may break the rules of the current versions.

    before: the versions that were active when the files were written. after: the active versions after the commit. partitioned:
    whether the table has partition columns. files: the number of files that remain in the table.
    The first version only requires that existing files contain the partition columns, and files of the second version do.
    Protocol: Writer Requirements for IcebergCompatV1.
    """
    has_partition_values_in_files = not partitioned or before == (2,)
    if not files or not after or after == before or (after == (1,) and has_partition_values_in_files):
        return
    why = f"the {files} files of the table were written without it. Make a new table with it, and write the rows into that"
    raise violation_error(after[-1], "CHANGE_VERSION_NEED_REWRITE", why)


def check_compatible(features: Set[str], properties: Properties, schema: StructType) -> None:
    """Raises UnsupportedOperationError (DELTA_ICEBERG_COMPAT_VIOLATION) if a table breaks a rule of its active version of
    IcebergCompat, or of icebergWriterCompatV1."""
    versions = active_versions(features, properties)
    if len(versions) > 1:
        names = " and ".join(property_of(version) for version in versions)
        raise violation_error(versions[-1], "VERSION_MUTUAL_EXCLUSIVE", f"{names} are both true. Turn one of them off")
    for version in versions:
        _check_features(version, features, properties)
        _check_types(version, schema)
        _check_type_changes(version, schema)
        if version == 3:
            _check_defaults(schema)
    if is_written_by_iceberg(features, properties):
        _check_for_writers(features, properties, schema, versions)


def violation_error(version: int, kind: str, why: str) -> UnsupportedOperationError:
    """The error for a table that breaks a rule of IcebergCompat. kind: the end of the error class; "" if it has none."""
    return UnsupportedOperationError(
        f"The validation of IcebergCompatV{version} has failed: {why}. Nothing was written.",
        error_class=f"{VIOLATION}.{kind}" if kind else VIOLATION,
        sql_state="KD00E",
        version=version,
    )


def _check_features(version: int, features: Set[str], properties: Properties) -> None:
    """Raises UnsupportedOperationError if the table lacks a property or feature that the version of IcebergCompat requires, or
    has one that it excludes."""
    if column_mapping.mode(properties) == "none":
        why = f"it requires {column_mapping.MODE_PROPERTY} to be 'name' or 'id'. Set it for a new table"
        raise violation_error(version, "WRONG_REQUIRED_TABLE_PROPERTY", why)
    if version == 1 and "deletionVectors" in features:
        why = "the table supports deletion vectors, which it excludes. Drop the feature deletionVectors first"
        raise violation_error(version, "INCOMPATIBLE_TABLE_FEATURE", why)
    if version == 2 and properties.boolean("delta.enableDeletionVectors"):
        why = "delta.enableDeletionVectors is true. Set it to false, and purge deletion vectors with REORG"
        raise violation_error(version, "DELETION_VECTORS_SHOULD_BE_DISABLED", why)
    if version == 3 and not ("rowTracking" in features and properties.boolean("delta.enableRowTracking")):
        why = "it requires delta.enableRowTracking to be true. Set it first"
        raise violation_error(version, "WRONG_REQUIRED_TABLE_PROPERTY", why)


# ---------------------------------------------------------------- tables that writers of Iceberg may write


def is_written_by_iceberg(features: Set[str], properties: Properties) -> bool:
    """Whether icebergWriterCompatV1, which is part of a protocol proposal, is supported and turned on."""
    return _WRITERS in features and properties.boolean(column_mapping.NAMED_BY_ID)


def check_map_keys(before: StructType, after: StructType) -> None:
    """Raises UnsupportedOperationError if a struct in the key of a map would change in any way. This is a rule of
    icebergWriterCompatV1. A map that is dropped does not count."""
    keys = dict(_key_structs(after))
    for path, key in _key_structs(before):
        if keys.get(path, key) != key:
            raise _writer_violation_error(
                f"the key of the map {path[-1]} would change from {type_name(key)} to {type_name(keys[path])}"
            )


def _key_structs(data_type: DataType, path: Path = ()) -> Iterator[tuple[Path, DataType]]:
    """The paths of maps whose keys have structs, and the types of these keys. Paths use column ids, so a renamed column keeps its
    path."""
    match data_type:
        case StructType(fields):
            for f in fields:
                yield from _key_structs(f.data_type, (*path, str(f.metadata.get(column_mapping.ID, f.name))))
        case ArrayType(element, _):
            yield from _key_structs(element, (*path, "element"))
        case MapType(key, value, _):
            if any(isinstance(part, StructType) for part in all_types(key)):
                yield path, key
            yield from _key_structs(value, (*path, "value"))


def _check_for_writers(features: Set[str], properties: Properties, schema: StructType, versions: tuple[int, ...]) -> None:
    """Raises UnsupportedOperationError if the table breaks a rule of icebergWriterCompatV1. versions: the active versions of
    IcebergCompat."""
    if versions != (2,):
        raise _writer_violation_error(f"it requires {property_of(2)} to be true. Set it")
    if column_mapping.mode(properties) != "id":
        raise _writer_violation_error(f"it requires {column_mapping.MODE_PROPERTY} to be 'id'. Make a new table with it")
    for f in all_fields(schema):
        number, name = f.metadata.get(column_mapping.ID), f.metadata.get(column_mapping.PHYSICAL_NAME)
        if not isinstance(number, int) or name != column_mapping.name_by_id(number):
            raise _writer_violation_error(f"column {f.name}, of id {number}, has the physical name {name!r}. Make a new table")
    narrow_columns = [f.name for f in all_fields(schema) if any(kind in (BYTE, SHORT) for kind in all_types(f.data_type))]
    if narrow_columns:
        raise _writer_violation_error(
            f"it has no types byte and short, which the columns {', '.join(narrow_columns)} have. Make them int"
        )
    # The preview of a feature counts as the feature.
    final_names = {name: FEATURES[name].stands_for or name if name in FEATURES else name for name in features}
    excluded = sorted(name for name in features if final_names[name] not in _FOR_WRITERS | _FOR_WRITERS_UNUSED)
    if excluded:
        raise _writer_violation_error(f"it excludes the table features {', '.join(excluded)}. Drop them first")
    used = sorted(name for name in features & _FOR_WRITERS_UNUSED if _is_used(name, properties, schema))
    if used:
        raise _writer_violation_error(f"it excludes the use of the features {', '.join(used)}. Remove what uses them first")


def _is_used(name: str, properties: Properties, schema: StructType) -> bool:
    """Whether the table's properties or schema show that it uses the feature."""
    feature = FEATURES[name]
    is_turned_on = feature.enabled_by is not None and properties.boolean(feature.enabled_by)
    return is_turned_on or (feature.in_use is not None and feature.in_use(properties, schema))


def _writer_violation_error(why: str) -> UnsupportedOperationError:
    """The error for a table that breaks a rule of icebergWriterCompatV1."""
    return UnsupportedOperationError(
        f"The validation of IcebergWriterCompatV1 has failed: {why}. Nothing was written.",
        error_class=VIOLATION,
        sql_state="KD00E",
    )


# ---------------------------------------------------------------- types


def _check_types(version: int, schema: StructType) -> None:
    """Raises UnsupportedOperationError for a type, at any depth, that the version of IcebergCompat does not allow."""
    for kind in all_types(schema):
        if not _is_allowed(version, kind):
            why = f"it does not support the data type {type_name(kind)}. Leave the column out, or cast it"
            raise violation_error(version, "UNSUPPORTED_DATA_TYPE", why)


def _is_allowed(version: int, kind: DataType) -> bool:
    """Whether a table with this version of IcebergCompat may have the type."""
    if isinstance(kind, ArrayType | MapType):
        return version > 1
    if isinstance(kind, GeospatialType):
        return False
    if isinstance(kind, PrimitiveType):
        return kind.name in (_V3_TYPES if version == 3 else _V2_TYPES)
    return True


def _check_type_changes(version: int, schema: StructType) -> None:
    """Raises UnsupportedOperationError for a recorded type change that Iceberg does not support. A record that cannot be parsed
    counts as such a change.
    Protocol: Type Change Metadata."""
    for f in all_fields(schema):
        for change in f.metadata.get(TYPE_CHANGES, ()):
            old, new = str(change.get("fromType")), str(change.get("toType"))
            if not _iceberg_can_change(old, new):
                why = f"column {f.name} was changed from {old} to {new}, which Iceberg does not support"
                raise violation_error(version, "UNSUPPORTED_TYPE_WIDENING", why)


def _iceberg_can_change(old: str, new: str) -> bool:
    """Whether Iceberg allows this change of a column's type: to a wider whole number, from float to double, or to a decimal with
    more digits of the same scale. old, new: the types' names in the schema."""
    if old in _WHOLE_NUMBERS and new in _WHOLE_NUMBERS:
        return _WHOLE_NUMBERS.index(old) < _WHOLE_NUMBERS.index(new)
    decimals = [_DECIMAL.fullmatch(text) for text in (old, new)]
    if decimals[0] is not None and decimals[1] is not None:
        narrow, wide = (DecimalType(int(decimal[1]), int(decimal[2])) for decimal in decimals if decimal is not None)
        return narrow.scale == wide.scale and narrow.precision < wide.precision
    return (old, new) == ("float", "double")


def _check_defaults(schema: StructType) -> None:
    """Raises UnsupportedOperationError for a column default that is no literal: version 3 of IcebergCompat requires literals."""
    for f in all_fields(schema):
        text = f.metadata.get(DEFAULT)
        if text is not None and not _LITERAL.fullmatch(str(text)):
            raise violation_error(3, "", f"the default of column {f.name} ({text}) is not a literal. Give it a plain value")
