"""The configuration of a table: protocol, metadata, schema and properties as one checked value.

`require` is the only place that decides whether a table may be read or written. Everything else is computed lazily, so that an
unknown protocol is refused before anything else about the table is interpreted.
Protocol: Protocol Evolution; Change Metadata; Table Features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from delta_py.errors import CorruptTableError, UnsupportedOperationError, UnsupportedTableFeatureError
from delta_py.protocol import column_mapping
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.features import (
    FEATURES,
    Operation,
    Properties,
    check_readable,
    check_writable,
    supported_features,
)
from delta_py.protocol.iceberg_compat import active_versions, check_compatible
from delta_py.types.char_types import with_char_as_string
from delta_py.types.schema import ArrayType, MapType, StructField, StructType, parse_schema, type_name

__all__ = ["Operation", "TableConfig"]


@lru_cache(maxsize=4)
def _parsed_schema(text: str) -> StructType:
    """The parsed schema, cached: a command creates several TableConfigs of one schema, which may have thousands of columns."""
    return with_char_as_string(parse_schema(text))


@dataclass(frozen=True)
class TableConfig:
    """A table's protocol and metadata, and all values derived from them. It is pickled as these two actions."""

    protocol: Protocol
    metadata: Metadata

    def __reduce__(self) -> tuple[Any, ...]:
        return TableConfig, (self.protocol, self.metadata)

    def require(self, operation: Operation) -> None:
        """Check that this library may read, or write to, the table.

        Raises UnsupportedTableFeatureError with the unsupported features, CorruptTableError if the table's metadata contradicts
        itself, and, on write, UnsupportedOperationError if the table's files are not Parquet.
        """
        check_readable(self.protocol)
        self._check_consistency()
        if operation is Operation.WRITE:
            check_writable(self.protocol, self.properties, self.schema)
            check_compatible(supported_features(self.protocol), self.properties, self.schema)
            self._check_format()

    @cached_property
    def schema(self) -> StructType:
        """The logical schema. Raises CorruptTableError if its text cannot be parsed."""
        return _parsed_schema(self.metadata.schema_string)

    @cached_property
    def physical_schema(self) -> StructType:
        """The schema with the names inside data files, including nested fields."""
        return column_mapping.to_physical(self.schema, self.column_mapping_mode)

    @cached_property
    def partition_fields(self) -> tuple[StructField, ...]:
        """The fields of the partition columns, in partition order. Raises CorruptTableError for an invalid partition column."""
        return tuple(self._partition_field(name) for name in self.metadata.partition_columns)

    @cached_property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the partition columns as the schema spells them."""
        return tuple(f.name for f in self.partition_fields)

    @cached_property
    def physical_partition_columns(self) -> tuple[str, ...]:
        """The partition columns with the names that `partitionValues` uses."""
        return tuple(column_mapping.physical_name(f, self.column_mapping_mode) for f in self.partition_fields)

    @cached_property
    def column_mapping_mode(self) -> str:
        """`none`, `name` or `id`."""
        return column_mapping.mode(self.properties)

    @cached_property
    def properties(self) -> Properties:
        """The table's properties. Lookup ignores case."""
        return Properties(self.metadata.configuration)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of all supported features as the protocol spells them, including implied features, sorted."""
        return tuple(sorted(supported_features(self.protocol)))

    @cached_property
    def iceberg_versions(self) -> tuple[int, ...]:
        """The versions of IcebergCompat that the table supports and has turned on; at most one if the table is valid."""
        return active_versions(frozenset(self.features), self.properties)

    def feature(self, name: str) -> bool:
        """Whether the protocol supports a feature. A final name also matches a preview of the feature; the name of a preview
        matches only that preview."""
        return name in self._final_names or name in self.features

    def enabled(self, name: str) -> bool:
        """Whether a feature is supported and turned on, or a boolean property (a name with a dot) is true.

        A feature without its own property is on if it is supported.
        """
        if "." in name:
            return self.properties.boolean(name)
        if not self.feature(name):
            return False
        if name == "columnMapping":
            return self.column_mapping_mode != "none"
        row = FEATURES.get(name)
        return row is None or row.enabled_by is None or self.properties.boolean(row.enabled_by)

    @cached_property
    def _final_names(self) -> frozenset[str]:
        """The final names of the supported features: for a preview, the name of the feature that it became."""
        rows = (FEATURES[name] for name in self.features if name in FEATURES)
        return frozenset(row.stands_for or row.name for row in rows)

    def _check_consistency(self) -> None:
        """Check that names and partition columns can be interpreted. Raises as require."""
        mode = self.column_mapping_mode
        if mode != "none" and not self.feature("columnMapping"):
            raise UnsupportedTableFeatureError(
                f"Table property {column_mapping.MODE_PROPERTY} is {mode!r}, but the protocol does not list columnMapping: "
                "it is unknown whether the files use physical names. The table's metadata is damaged.",
                error_class="DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH",
                sql_state="KD004",
                features=["columnMapping"],
            )
        # Computing these raises CorruptTableError if names or partition columns are not valid.
        _ = self.physical_schema, self.physical_partition_columns

    def _check_format(self) -> None:
        """Raises UnsupportedOperationError if the table's files are not Parquet."""
        provider = self.metadata.format_provider
        if provider.lower() != "parquet":
            raise UnsupportedOperationError(
                f"The table's format provider is {provider!r}. Only Parquet files can be written; nothing was written.",
                provider=provider,
            )

    def _partition_field(self, name: str) -> StructField:
        """The field of a partition column. Raises CorruptTableError if the schema lacks it, or its type cannot partition a
        table."""
        field = self.schema.find(name)
        if field is None:
            raise CorruptTableError(
                f"Partition column {name!r} is not in the schema, which has {', '.join(self.schema.names)}. "
                "The metaData action is damaged.",
                column=name,
            )
        if isinstance(field.data_type, (StructType, ArrayType, MapType)):
            raise CorruptTableError(
                f"Partition column {name!r} is of type {type_name(field.data_type)}, which no partition value can have. "
                "The metaData action is damaged.",
                column=name,
            )
        return field
