"""The actions of one commit, one frozen dataclass each.

They are for commits and for single files; the list of a table's files is an Arrow table (log/reader.py). `from_json`
takes the value beside the action's name in a commit line, decoded; unknown fields are ignored, as the protocol asks.
`to_json` gives the JSON value with nulls left out. Paths are decoded here (paths.py) and nowhere else.
Protocol: Actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import orjson

from delta_py.errors import CorruptTableError, shown
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.protocol.paths import decode_path, encode_path


def _drop_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if item is not None}


def _int(value: Any, name: str, action: str, *, minimum: int | None = None) -> int:
    """An integer field; refuses fractions, text, booleans, what does not fit 64 bits, and what is below `minimum`."""
    good = isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if not good or (minimum is not None and value < minimum):
        raise CorruptTableError(
            f"{action}.{name} is {shown(value)}, which is no valid number. The log is damaged.", field=f"{action}.{name}"
        )
    return int(value)


def _optional_int(value: Any, name: str, action: str) -> int | None:
    return None if value is None else _int(value, name, action)


def _text(value: Any, name: str, action: str) -> str:
    if not isinstance(value, str):
        raise CorruptTableError(
            f"{action}.{name} is {shown(value)}, which is no text. The log is damaged.", field=f"{action}.{name}"
        )
    return value


def _optional_text(value: Any, name: str, action: str) -> str | None:
    return None if value is None else _text(value, name, action)


def _fields(value: Any, name: str) -> dict[str, Any]:
    """An object of metaData, empty where there is none."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CorruptTableError(
            f"metaData.{name} is {shown(value)}, which is no map. The log is damaged.", field=f"metaData.{name}"
        )
    return value


def _texts(value: Any, name: str) -> dict[str, str]:
    """A map of texts in metaData, without nulls. Numbers and booleans are taken as JSON writes them, as the reference does."""
    texts = {key: item for key, item in _fields(value, name).items() if item is not None}
    return {
        key: orjson.dumps(item).decode() if isinstance(item, bool | int | float) else _text(item, f"{name}.{key}", "metaData")
        for key, item in texts.items()
    }


def _partition_values(value: Any, action: str) -> dict[str, str | None]:
    if not isinstance(value, dict):
        raise CorruptTableError(f"{action}.partitionValues is {shown(value)}, which is no map. The log is damaged.")
    return {str(name): None if item is None else _text(item, "partitionValues", action) for name, item in value.items()}


@dataclass(frozen=True, slots=True)
class Protocol:
    """Protocol: Protocol Evolution. The feature sets are None where the version has none."""

    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        def features(name: str) -> frozenset[str] | None:
            listed = value.get(name)
            return None if listed is None else frozenset(_text(item, name, "protocol") for item in listed)

        return cls(
            _int(value.get("minReaderVersion"), "minReaderVersion", "protocol", minimum=0),
            _int(value.get("minWriterVersion"), "minWriterVersion", "protocol", minimum=0),
            features("readerFeatures"),
            features("writerFeatures"),
        )

    def to_json(self) -> dict[str, Any]:
        return _drop_nulls(
            {
                "minReaderVersion": self.min_reader_version,
                "minWriterVersion": self.min_writer_version,
                "readerFeatures": None if self.reader_features is None else sorted(self.reader_features),
                "writerFeatures": None if self.writer_features is None else sorted(self.writer_features),
            }
        )


_NO_COLUMNS = '{"type":"struct","fields":[]}'


@dataclass(frozen=True, slots=True)
class Metadata:
    """Protocol: Change Metadata. schema_string is the schema's JSON text; created_time_ms since 1970.

    An action without a schema is a table without columns: older writers made such first versions.
    """

    id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    format_provider: str = "parquet"
    format_options: Mapping[str, str] = field(default_factory=dict)
    created_time_ms: int | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        form, schema = _fields(value.get("format"), "format"), value.get("schemaString")
        provider = form.get("provider")
        return cls(
            id=_text(value.get("id"), "id", "metaData"),
            schema_string=_NO_COLUMNS if schema is None else _text(schema, "schemaString", "metaData"),
            partition_columns=tuple(_text(name, "partitionColumns", "metaData") for name in value.get("partitionColumns") or ()),
            configuration=_texts(value.get("configuration"), "configuration"),
            name=_optional_text(value.get("name"), "name", "metaData"),
            description=_optional_text(value.get("description"), "description", "metaData"),
            format_provider=_optional_text(provider, "format.provider", "metaData") or "parquet",
            format_options=_texts(form.get("options"), "format.options"),
            created_time_ms=_optional_int(value.get("createdTime"), "createdTime", "metaData"),
        )

    def to_json(self) -> dict[str, Any]:
        return _drop_nulls(
            {
                "id": self.id,
                "name": self.name,
                "description": self.description,
                "format": {"provider": self.format_provider, "options": dict(self.format_options)},
                "schemaString": self.schema_string,
                "partitionColumns": list(self.partition_columns),
                "configuration": dict(self.configuration),
                "createdTime": self.created_time_ms,
            }
        )


@dataclass(frozen=True, slots=True)
class AddFile:
    """Protocol: Add File and Remove File. path is decoded; stats is JSON text or None; times are ms since 1970.

    path_text: the path as the log spells it, where that is not the usual way. An action about a file that is in the log must
    repeat that spelling, because clients compare the texts; None for the usual one.
    """

    path: str
    partition_values: Mapping[str, str | None]
    size_bytes: int
    modification_time_ms: int
    data_change: bool = True
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None
    path_text: str | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        vector, text = value.get("deletionVector"), _text(value.get("path"), "path", "add")
        path = decode_path(text)
        return cls(
            path=path,
            partition_values=_partition_values(value.get("partitionValues"), "add"),
            size_bytes=_int(value.get("size"), "size", "add", minimum=0),
            modification_time_ms=_int(value.get("modificationTime"), "modificationTime", "add"),
            data_change=bool(value.get("dataChange", True)),
            stats=value.get("stats"),
            tags=value.get("tags"),
            deletion_vector=None if vector is None else DeletionVectorDescriptor.from_json(vector),
            base_row_id=_optional_int(value.get("baseRowId"), "baseRowId", "add"),
            default_row_commit_version=_optional_int(value.get("defaultRowCommitVersion"), "defaultRowCommitVersion", "add"),
            clustering_provider=value.get("clusteringProvider"),
            path_text=None if text == encode_path(path) else text,
        )

    def to_json(self) -> dict[str, Any]:
        return _drop_nulls(
            {
                "path": self.path_text or encode_path(self.path),
                "partitionValues": dict(self.partition_values),
                "size": self.size_bytes,
                "modificationTime": self.modification_time_ms,
                "dataChange": self.data_change,
                "stats": self.stats,
                "tags": None if self.tags is None else dict(self.tags),
                "deletionVector": None if self.deletion_vector is None else self.deletion_vector.to_json(),
                "baseRowId": self.base_row_id,
                "defaultRowCommitVersion": self.default_row_commit_version,
                "clusteringProvider": self.clustering_provider,
            }
        )

    @property
    def key(self) -> tuple[str, str | None]:
        """What identifies the logical file: (path, deletion vector's unique id). Protocol: Action Reconciliation."""
        return self.path, None if self.deletion_vector is None else self.deletion_vector.unique_id


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """Protocol: Add File and Remove File. partition_values and size_bytes are None unless extended file metadata is set.

    path_text: as of AddFile.
    """

    path: str
    data_change: bool = True
    deletion_timestamp_ms: int | None = None
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size_bytes: int | None = None
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    path_text: str | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        vector, partitions = value.get("deletionVector"), value.get("partitionValues")
        return cls(
            path=decode_path(_text(value.get("path"), "path", "remove")),
            data_change=bool(value.get("dataChange", True)),
            deletion_timestamp_ms=_optional_int(value.get("deletionTimestamp"), "deletionTimestamp", "remove"),
            extended_file_metadata=value.get("extendedFileMetadata"),
            partition_values=None if partitions is None else _partition_values(partitions, "remove"),
            size_bytes=_optional_int(value.get("size"), "size", "remove"),
            stats=value.get("stats"),
            tags=value.get("tags"),
            deletion_vector=None if vector is None else DeletionVectorDescriptor.from_json(vector),
            base_row_id=_optional_int(value.get("baseRowId"), "baseRowId", "remove"),
            default_row_commit_version=_optional_int(value.get("defaultRowCommitVersion"), "defaultRowCommitVersion", "remove"),
        )

    def to_json(self) -> dict[str, Any]:
        return _drop_nulls(
            {
                "path": self.path_text or encode_path(self.path),
                "deletionTimestamp": self.deletion_timestamp_ms,
                "dataChange": self.data_change,
                "extendedFileMetadata": self.extended_file_metadata,
                "partitionValues": None if self.partition_values is None else dict(self.partition_values),
                "size": self.size_bytes,
                "stats": self.stats,
                "tags": None if self.tags is None else dict(self.tags),
                "deletionVector": None if self.deletion_vector is None else self.deletion_vector.to_json(),
                "baseRowId": self.base_row_id,
                "defaultRowCommitVersion": self.default_row_commit_version,
            }
        )

    @property
    def key(self) -> tuple[str, str | None]:
        """As AddFile.key."""
        return self.path, None if self.deletion_vector is None else self.deletion_vector.unique_id


@dataclass(frozen=True, slots=True)
class AddCDCFile:
    """Protocol: Add CDC File. A file under _change_data with the column _change_type."""

    path: str
    partition_values: Mapping[str, str | None]
    size_bytes: int
    tags: Mapping[str, str | None] | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            path=decode_path(_text(value.get("path"), "path", "cdc")),
            partition_values=_partition_values(value.get("partitionValues"), "cdc"),
            size_bytes=_int(value.get("size"), "size", "cdc", minimum=0),
            tags=value.get("tags"),
        )

    def to_json(self) -> dict[str, Any]:
        return _drop_nulls(
            {
                "path": encode_path(self.path),
                "partitionValues": dict(self.partition_values),
                "size": self.size_bytes,
                "dataChange": False,
                "tags": None if self.tags is None else dict(self.tags),
            }
        )


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """Protocol: Transaction Identifiers. last_updated_ms: ms since 1970."""

    app_id: str
    version: int
    last_updated_ms: int | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            _text(value.get("appId"), "appId", "txn"),
            _int(value.get("version"), "version", "txn"),
            _optional_int(value.get("lastUpdated"), "lastUpdated", "txn"),
        )

    def to_json(self) -> dict[str, Any]:
        return _drop_nulls({"appId": self.app_id, "version": self.version, "lastUpdated": self.last_updated_ms})


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """Protocol: Domain Metadata. configuration is text, JSON by convention; removed marks a tombstone."""

    domain: str
    configuration: str
    removed: bool = False

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        configuration = value.get("configuration")
        return cls(_text(value.get("domain"), "domain", "domainMetadata"), configuration or "", bool(value.get("removed", False)))

    def to_json(self) -> dict[str, Any]:
        return {"domain": self.domain, "configuration": self.configuration, "removed": self.removed}


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """Protocol: Commit Provenance Information. Free-form; `values` is the JSON object as it is in the log."""

    values: Mapping[str, Any]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(dict(value))

    def to_json(self) -> dict[str, Any]:
        return dict(self.values)

    @property
    def in_commit_timestamp_ms(self) -> int | None:
        value = self.values.get("inCommitTimestamp")
        return None if value is None else _int(value, "inCommitTimestamp", "commitInfo")

    @property
    def txn_id(self) -> str | None:
        value = self.values.get("txnId")
        return value if isinstance(value, str) else None


Action = Protocol | Metadata | AddFile | RemoveFile | AddCDCFile | SetTransaction | DomainMetadata | CommitInfo

_CLASSES: dict[str, Any] = {
    "protocol": Protocol,
    "metaData": Metadata,
    "add": AddFile,
    "remove": RemoveFile,
    "cdc": AddCDCFile,
    "txn": SetTransaction,
    "domainMetadata": DomainMetadata,
    "commitInfo": CommitInfo,
}
_NAMES = {cls: name for name, cls in _CLASSES.items()}


def parse_action(line: bytes) -> Action | None:
    """One line of a commit file -> its action; None for an action of an unknown kind.

    Raises CorruptTableError for a line that is not a JSON object or whose action breaks the protocol.
    """
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise CorruptTableError(f"A log line is no JSON: {error}. The file is damaged or cut short.") from error
    if not isinstance(value, dict):
        raise CorruptTableError("A log line is no JSON object. The file is damaged.")
    for name, body in value.items():
        if name in _CLASSES and body is not None:
            if not isinstance(body, dict):
                raise CorruptTableError(f"The action {name} is {shown(body)} and no JSON object. The log is damaged.")
            action: Action = _CLASSES[name].from_json(body)
            return action
    return None


def action_to_line(action: Action) -> bytes:
    """The action as one line of a commit file, without the newline."""
    return orjson.dumps({_NAMES[type(action)]: action.to_json()})
