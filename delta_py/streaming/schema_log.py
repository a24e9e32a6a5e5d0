"""The schemas with which a stream reads a table, in sequence: entries 0, 1, 2, ... in a directory that belongs to the stream.

    log = SchemaLog.of(store, "_schema_log_<table id>", table_root)
    log.newest                                  # TrackedSchema, or None
    log.append(entry)

An entry is a file, named by its number, of two lines: `v1`, and JSON. delta-spark stores schemaTrackingLocation in the same
form, and each of the two can continue the other's log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import orjson

from delta_py.errors import CorruptTableError, InvalidOptionError, SchemaMismatchError, shown
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.table_config import TableConfig
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import StructType, find_path, parse_schema, schema_to_json

_FORM = b"v1"
_OPTIONAL = ("tableConfigurations", "protocolJson", "previousMetadataSeqNum")
_DIRECTORY = re.compile(r"_schema_log_[^/\\\x00-\x1f\x7f]{1,200}")
_ENTRY = re.compile("0|[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TrackedSchema:
    """An entry of a stream's log of schemas: a schema that the stream reads with. version: of the table, where the schema begins
    or where it was first recorded. configuration, protocol: the table's properties and protocol at that version; None if the
    entry's writer did not record them.

    source_path: identifies the stream, as in Spark: <checkpoint>/sources/<number>. previous: the number of the entry whose schema
    the stream read with before, if it is not the preceding entry; -1 if there is none.
    """

    table_id: str
    version: int
    schema_string: str
    partition_columns: tuple[str, ...]
    source_path: str
    configuration: Mapping[str, str] | None
    protocol: Protocol | None
    previous: int | None = None

    @classmethod
    def of(cls, config: TableConfig, version: int, source_path: str) -> Self:
        entry = cls(config.metadata.id, version, "", (), source_path, None, config.protocol)
        return entry.with_metadata(config.metadata)

    def with_metadata(self, metadata: Metadata) -> Self:
        """The entry with the schema, the partition columns and the properties of this metadata."""
        return replace(
            self,
            schema_string=metadata.schema_string,
            partition_columns=metadata.partition_columns,
            configuration=dict(metadata.configuration),
        )

    def config(self, table: TableConfig) -> TableConfig:
        """The table's state, read with this schema."""
        configuration = table.metadata.configuration if self.configuration is None else self.configuration
        metadata = replace(
            table.metadata,
            schema_string=self.schema_string,
            partition_columns=self.partition_columns,
            configuration=configuration,
        )
        return TableConfig(self.protocol or table.protocol, metadata)

    @property
    def metadata(self) -> Metadata:
        """The table's metadata, as far as the entry has it; the other fields have their defaults."""
        return Metadata(self.table_id, self.schema_string, self.partition_columns, self.configuration or {})

    def to_bytes(self) -> bytes:
        """The content of the entry's file."""
        schema = parse_schema(self.schema_string)
        partitions = StructType(tuple(find_path(schema, (name,))[0] for name in self.partition_columns))
        value = {
            "tableId": self.table_id,
            "deltaCommitVersion": self.version,
            "dataSchemaJson": self.schema_string,
            "partitionSchemaJson": schema_to_json(partitions),
            "sourceMetadataPath": self.source_path,
            "tableConfigurations": self.configuration,
            "protocolJson": None if self.protocol is None else _to_json({"protocol": self.protocol.to_json()}),
            "previousMetadataSeqNum": self.previous,
        }
        return _FORM + b"\n" + _to_json({name: item for name, item in value.items() if item is not None}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The inverse of to_bytes. Raises ValueError, KeyError, TypeError, CorruptTableError for data that is not an entry."""
        form, _, text = data.partition(b"\n")
        if form != _FORM:
            raise ValueError(f"its form is {shown(form)}, and only {_FORM!r} is known")
        value = _parse_object(text)
        configuration, protocol, previous = (value.get(name) for name in _OPTIONAL)
        partition_schema = parse_schema(value["partitionSchemaJson"])
        metadata = Metadata.from_json(
            {"id": value["tableId"], "schemaString": _require_text(value["dataSchemaJson"]), "configuration": configuration}
        )
        parse_schema(metadata.schema_string)  # only to check it
        return cls(
            table_id=metadata.id,
            version=_require_number(value["deltaCommitVersion"], 0),
            schema_string=metadata.schema_string,
            partition_columns=tuple(field.name for field in partition_schema.fields),
            source_path=_require_text(value["sourceMetadataPath"]),
            configuration=None if configuration is None else metadata.configuration,
            protocol=None if protocol is None else Protocol.from_json(_parse_object(_parse_object(protocol)["protocol"])),
            previous=None if previous is None else _require_number(previous, -1),
        )


def _to_json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _parse_object(value: Any) -> dict[str, Any]:
    """The JSON object. value: its text, or the object itself. Raises TypeError for other JSON."""
    parsed = orjson.loads(value) if isinstance(value, str | bytes) else value
    if not isinstance(parsed, dict):
        raise TypeError(f"{shown(value)} is no object")
    return parsed


def _require_text(value: Any) -> str:
    """The value, if it is text. Raises TypeError otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"{shown(value)} is no text")
    return value


def _require_number(value: Any, minimum: int) -> int:
    """The value, if it is a whole number of 64 bits from `minimum` on. Raises TypeError otherwise."""
    if type(value) is not int or not minimum <= value < 2**63:
        raise TypeError(f"{shown(value)} is no number that could stand there")
    return value


@dataclass(frozen=True, slots=True)
class SchemaLog:
    """A stream's log of schemas, as it was when it was opened or last appended to. directory: of the entries, below the root of
    `store`. table_root: of the table, for errors. number: of the newest entry, -1 if there is none. newest: the newest entry."""

    store: ObjectStore
    directory: str
    table_root: str
    number: int
    newest: TrackedSchema | None

    @classmethod
    def of(cls, store: ObjectStore, directory: str, table_root: str) -> Self:
        """Open a stream's log. directory: below the store's root. Raises CorruptTableError
        (DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED), also for a table whose id cannot be the name of a directory."""
        if not _DIRECTORY.fullmatch(directory):
            raise CorruptTableError(
                f"The log of schemas of the table at {table_root} would be {shown(directory)}, after the table's id, and that is "
                "no name of a directory. Nothing was written. The metaData action is damaged, or was made so.",
                error_class="DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
                sql_state="22000",
                location=store.root,
            )
        names = (info.path.rpartition("/")[2] for info in store.list_from(directory))
        number = max((int(name) for name in names if _ENTRY.fullmatch(name)), default=-1)
        log = cls(store, directory, table_root, number, None)
        return log if number < 0 else replace(log, newest=log._read_entry(number))

    @property
    def location(self) -> str:
        return f"{self.store.root.rstrip('/')}/{self.directory}"

    @property
    def previous(self) -> TrackedSchema | None:
        """The schema that the stream read with before the newest entry."""
        number = self._number_before
        return None if number < 0 else self._read_entry(number)

    @property
    def _number_before(self) -> int:
        """The number of the entry that `previous` returns; negative if there is none."""
        # An entry that replaced another one names the entry before that one.
        previous = None if self.newest is None else self.newest.previous
        return self.number - 1 if previous is None else previous

    def _read_entry(self, number: int) -> TrackedSchema:
        """Read an entry. Raises CorruptTableError (DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED)."""
        try:
            return TrackedSchema.from_bytes(self.store.read(f"{self.directory}/{number}"))
        except (ValueError, KeyError, TypeError, CorruptTableError, FileNotFoundError) as error:
            raise CorruptTableError(
                f"Entry {number} of the stream's log of schemas at {self.location} cannot be read: {error}. It was changed or is "
                "damaged: restore it, or start again with another schemaTrackingLocation and a new checkpoint.",
                error_class="DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
                sql_state="22000",
                location=self.location,
                number=number,
            ) from error

    def append(self, entry: TrackedSchema, *, replaces_newest: bool = False) -> SchemaLog:
        """The log with one more entry. replaces_newest: nothing was read with the newest entry, and this one replaces it.

        Raises InvalidOptionError (DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT) if another stream was faster.
        """
        if replaces_newest and self.newest is not None:
            entry = replace(entry, previous=self._number_before)
        number = self.number + 1
        try:
            self.store.put_if_absent(f"{self.directory}/{number}", entry.to_bytes())
        except FileExistsError as error:
            raise self._conflict_error("another stream has written to it meanwhile") from error
        return replace(self, number=number, newest=entry)

    def check_owner(self, table_id: str, source_path: str | None) -> None:
        """Check that the entries belong to this table and stream. source_path: None if it is not known yet.

        Raises SchemaMismatchError (DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID), InvalidOptionError
        (DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT).
        """
        if self.newest is None:
            return
        if self.newest.table_id != table_id:
            raise SchemaMismatchError(
                f"The log of schemas at {self.location} is of the table with id {self.newest.table_id}, and the table at "
                f"{self.table_root} has {table_id}. Name another schemaTrackingLocation.",
                error_class="DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
                sql_state="22000",
                expected=self.newest.table_id,
                found=table_id,
            )
        if source_path is not None and self.newest.source_path != source_path:
            raise self._conflict_error(f"its entries are of the stream {self.newest.source_path}, and this is {source_path}")

    def _conflict_error(self, reason: str) -> InvalidOptionError:
        """The error for a log that two streams write to. reason: how it was noticed."""
        return InvalidOptionError(
            f"The log of schemas at {self.location}, of a stream of the table at {self.table_root}, is not this stream's alone: "
            f"{reason}. Give each stream a schemaTrackingLocation of its own, or tell them apart by streamingSourceTrackingId.",
            error_class="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
            sql_state="22000",
            option="schemaTrackingLocation",
            location=self.location,
        )
