"""The actions of one commit, one frozen dataclass each.

They are for commits and for single files. The list of a table's files is an Arrow table (log/commit_reader.py). `from_json` takes
the decoded JSON value of the action in a commit line, and ignores unknown fields, as the protocol requires. `to_json` returns the
JSON value without nulls. Both raise CorruptTableError if a field breaks the protocol (`checked`). Paths are decoded only here
(with paths.py).
Protocol: Actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import orjson

from delta_py.errors import CorruptTableError, UnsupportedOperationError, shown
from delta_py.protocol.action_fields import (
    DAMAGED,
    check_bool,
    check_int,
    check_map,
    check_text,
    check_texts,
    check_vector,
    fields_of,
    int_or_none,
    list_as,
    map_or_none,
    spelling_of,
    text_or_none,
    texts_of,
    vector_of,
)
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.protocol.paths import decode_path, encode_path


def _drop_nulls(value: dict[str, Any]) -> dict[str, Any]:
    """The JSON object without null fields: actions leave out optional fields without a value."""
    return {name: item for name, item in value.items() if item is not None}


@dataclass(frozen=True, slots=True)
class Protocol:
    """The action `protocol`: what readers and writers of the table must know. The feature sets are None if the version has none.
    Protocol: Protocol Evolution."""

    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        features = (list_as(value.get(name), frozenset) for name in ("readerFeatures", "writerFeatures"))
        return cls(value.get("minReaderVersion"), value.get("minWriterVersion"), *features).checked()  # type: ignore[arg-type]

    def checked(self) -> Self:
        """Check the fields and return the action itself. Raises CorruptTableError if a field has another type or range than the
        protocol allows. All actions do this on read and on write, so both refuse the same values."""
        check_int(self.min_reader_version, "protocol.minReaderVersion", 0)
        check_int(self.min_writer_version, "protocol.minWriterVersion", 0)
        for features, name in ((self.reader_features, "readerFeatures"), (self.writer_features, "writerFeatures")):
            if features is not None:
                check_texts(features, f"protocol.{name}")
        return self

    def to_json(self) -> dict[str, Any]:
        self.checked()
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
    """The action `metaData`: the table's definition. schema_string is the schema's JSON text; created_time_ms counts from 1970.
    Protocol: Change Metadata.

    An action without a schema means a table without columns: older writers created tables with such a first version.
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
        form, schema, columns = fields_of(value.get("format"), "format"), value.get("schemaString"), value.get("partitionColumns")
        provider = form.get("provider")
        return cls(
            id=value.get("id"),  # type: ignore[arg-type]
            schema_string=_NO_COLUMNS if schema is None else schema,
            partition_columns=() if columns is None else list_as(columns, tuple),
            configuration=texts_of(value.get("configuration"), "configuration"),
            name=value.get("name"),
            description=value.get("description"),
            format_provider="parquet" if provider is None else provider,
            format_options=texts_of(form.get("options"), "format.options"),
            created_time_ms=value.get("createdTime"),
        ).checked()

    def checked(self) -> Self:
        """Check the fields, except the text of the schema, and return the action itself. Raises as Protocol.checked does."""
        for text, name in ((self.id, "id"), (self.schema_string, "schemaString"), (self.format_provider, "format.provider")):
            check_text(text, f"metaData.{name}")
        for optional, name in ((self.name, "name"), (self.description, "description")):
            if optional is not None:
                check_text(optional, f"metaData.{name}")
        check_texts(self.partition_columns, "metaData.partitionColumns")
        check_map(self.configuration, "metaData.configuration", nulls=False)
        check_map(self.format_options, "metaData.format.options", nulls=False)
        if self.created_time_ms is not None:
            check_int(self.created_time_ms, "metaData.createdTime")
        return self

    def to_json(self) -> dict[str, Any]:
        self.checked()
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
    """The action `add`: a data file of the table. path is decoded; stats is JSON text or None; times are ms since 1970.
    Protocol: Add File and Remove File.

    path_text: the encoded path in the log, if it differs from our encoding; otherwise None. A later action on the file must
    repeat the same text, because clients compare the texts.
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
        text = value.get("path")
        check_text(text, "add.path")
        path = decode_path(text)  # type: ignore[arg-type]
        return cls(
            path=path,
            partition_values=value.get("partitionValues"),  # type: ignore[arg-type]
            size_bytes=value.get("size"),  # type: ignore[arg-type]
            modification_time_ms=value.get("modificationTime"),  # type: ignore[arg-type]
            data_change=bool(value.get("dataChange", True)),
            stats=text_or_none(value.get("stats")),
            tags=map_or_none(value.get("tags")),
            deletion_vector=vector_of(value.get("deletionVector"), "add.deletionVector"),
            base_row_id=value.get("baseRowId"),
            default_row_commit_version=value.get("defaultRowCommitVersion"),
            clustering_provider=text_or_none(value.get("clusteringProvider")),
            path_text=None if text == encode_path(path) else text,
        ).checked()

    def checked(self) -> Self:
        """Check the fields and return the action itself. Raises CorruptTableError, as Protocol.checked does."""
        check_text(self.path, "add.path")
        check_map(self.partition_values, "add.partitionValues")
        check_int(self.size_bytes, "add.size", 0)
        check_int(self.modification_time_ms, "add.modificationTime")
        check_bool(self.data_change, "add.dataChange")
        if self.stats is not None:
            check_text(self.stats, "add.stats")
        if self.tags is not None:
            check_map(self.tags, "add.tags")
        check_vector(self.deletion_vector, "add.deletionVector")
        if self.base_row_id is not None:
            check_int(self.base_row_id, "add.baseRowId")
        if self.default_row_commit_version is not None:
            check_int(self.default_row_commit_version, "add.defaultRowCommitVersion")
        if self.clustering_provider is not None:
            check_text(self.clustering_provider, "add.clusteringProvider")
        return self

    def to_json(self) -> dict[str, Any]:
        self.checked()
        return _drop_nulls(
            {
                "path": spelling_of(self.path, self.path_text, "add.path"),
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
        """The key of the logical file: (path, deletion vector's unique id). Protocol: Action Reconciliation."""
        return self.path, None if self.deletion_vector is None else self.deletion_vector.unique_id


_NUMBERS_OF_REMOVES = ("remove.deletionTimestamp", "remove.size", "remove.baseRowId", "remove.defaultRowCommitVersion")


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """The action `remove`: a data file that is no longer part of the table. partition_values and size_bytes are None unless
    extended file metadata is set. path: decoded. path_text: the encoded path in the log, if it differs from our encoding;
    otherwise None. Protocol: Add File and Remove File.
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
        """A tombstone is about a deleted file. So, except for its path and deletion vector, invalid values are ignored, as in
        checkpoints."""
        text, extended = value.get("path"), value.get("extendedFileMetadata")
        check_text(text, "remove.path")
        path = decode_path(text)  # type: ignore[arg-type]
        return cls(
            path=path,
            data_change=bool(value.get("dataChange", True)),
            deletion_timestamp_ms=int_or_none(value.get("deletionTimestamp")),
            extended_file_metadata=extended if type(extended) is bool else None,
            partition_values=map_or_none(value.get("partitionValues")),
            size_bytes=int_or_none(value.get("size")),
            stats=text_or_none(value.get("stats")),
            tags=map_or_none(value.get("tags")),
            deletion_vector=vector_of(value.get("deletionVector"), "remove.deletionVector"),
            base_row_id=int_or_none(value.get("baseRowId")),
            default_row_commit_version=int_or_none(value.get("defaultRowCommitVersion")),
            path_text=None if text == encode_path(path) else text,
        )

    def checked(self) -> Self:
        """Check the fields and return the action itself. Raises CorruptTableError, as Protocol.checked does."""
        check_text(self.path, "remove.path")
        check_bool(self.data_change, "remove.dataChange")
        if self.extended_file_metadata is not None:
            check_bool(self.extended_file_metadata, "remove.extendedFileMetadata")
        for texts, name in ((self.partition_values, "partitionValues"), (self.tags, "tags")):
            if texts is not None:
                check_map(texts, f"remove.{name}")
        if self.stats is not None:
            check_text(self.stats, "remove.stats")
        check_vector(self.deletion_vector, "remove.deletionVector")
        numbers = (self.deletion_timestamp_ms, self.size_bytes, self.base_row_id, self.default_row_commit_version)
        for number, name in zip(numbers, _NUMBERS_OF_REMOVES, strict=True):
            if number is not None:
                check_int(number, name)
        return self

    def to_json(self) -> dict[str, Any]:
        self.checked()
        return _drop_nulls(
            {
                "path": spelling_of(self.path, self.path_text, "remove.path"),
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
        """The key of the logical file: (path, deletion vector's unique id). It is equal to the key of the file's add."""
        return self.path, None if self.deletion_vector is None else self.deletion_vector.unique_id


@dataclass(frozen=True, slots=True)
class AddCDCFile:
    """The action `cdc`: a file under _change_data with the column _change_type. path: decoded. Protocol: Add CDC File."""

    path: str
    partition_values: Mapping[str, str | None]
    size_bytes: int
    tags: Mapping[str, str | None] | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        check_text(value.get("path"), "cdc.path")
        return cls(
            path=decode_path(value["path"]),
            partition_values=value.get("partitionValues"),  # type: ignore[arg-type]
            size_bytes=value.get("size"),  # type: ignore[arg-type]
            tags=map_or_none(value.get("tags")),
        ).checked()

    def checked(self) -> Self:
        """Check the fields and return the action itself. Raises CorruptTableError, as Protocol.checked does."""
        check_text(self.path, "cdc.path")
        check_map(self.partition_values, "cdc.partitionValues")
        check_int(self.size_bytes, "cdc.size", 0)
        if self.tags is not None:
            check_map(self.tags, "cdc.tags")
        return self

    def to_json(self) -> dict[str, Any]:
        self.checked()
        return _drop_nulls(
            {
                "path": spelling_of(self.path, None, "cdc.path"),
                "partitionValues": dict(self.partition_values),
                "size": self.size_bytes,
                "dataChange": False,
                "tags": None if self.tags is None else dict(self.tags),
            }
        )


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """The action `txn`: the newest transaction version of an application. last_updated_ms: ms since 1970.
    Protocol: Transaction Identifiers."""

    app_id: str
    version: int
    last_updated_ms: int | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(value.get("appId"), value.get("version"), value.get("lastUpdated")).checked()  # type: ignore[arg-type]

    def checked(self) -> Self:
        """Check the fields and return the action itself. Raises CorruptTableError, as Protocol.checked does."""
        check_text(self.app_id, "txn.appId")
        check_int(self.version, "txn.version")
        if self.last_updated_ms is not None:
            check_int(self.last_updated_ms, "txn.lastUpdated")
        return self

    def to_json(self) -> dict[str, Any]:
        self.checked()
        return _drop_nulls({"appId": self.app_id, "version": self.version, "lastUpdated": self.last_updated_ms})


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """The action `domainMetadata`: named metadata of a feature. configuration is text, JSON by convention; removed marks a
    tombstone. Protocol: Domain Metadata."""

    domain: str
    configuration: str
    removed: bool = False

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        configuration = value.get("configuration")
        text = "" if configuration is None else configuration
        return cls(value.get("domain"), text, bool(value.get("removed", False))).checked()  # type: ignore[arg-type]

    def checked(self) -> Self:
        """Check the fields and return the action itself. Raises CorruptTableError, as Protocol.checked does."""
        check_text(self.domain, "domainMetadata.domain")
        check_text(self.configuration, "domainMetadata.configuration")
        check_bool(self.removed, "domainMetadata.removed")
        return self

    def to_json(self) -> dict[str, Any]:
        self.checked()
        return {"domain": self.domain, "configuration": self.configuration, "removed": self.removed}


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """The action `commitInfo`: who made a commit and how, in any form. `values` is the JSON object in the log.
    Protocol: Commit Provenance Information."""

    values: Mapping[str, Any]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(dict(value))

    def checked(self) -> Self:
        """Check the fields and return the action itself. Raises CorruptTableError, as Protocol.checked does."""
        if self.values.get("inCommitTimestamp") is not None:
            check_int(self.values["inCommitTimestamp"], "commitInfo.inCommitTimestamp")
        return self

    def to_json(self) -> dict[str, Any]:
        self.checked()
        return dict(self.values)

    @property
    def in_commit_timestamp_ms(self) -> int | None:
        """The in-commit timestamp, ms since 1970; None if the commit has none. Raises CorruptTableError if it is no number."""
        value: int | None = self.checked().values.get("inCommitTimestamp")
        return value

    @property
    def txn_id(self) -> str | None:
        """The unique text by which the writer recognizes its commit; None if the commit has none."""
        value = self.values.get("txnId")
        return value if isinstance(value, str) else None


Action = Protocol | Metadata | AddFile | RemoveFile | AddCDCFile | SetTransaction | DomainMetadata | CommitInfo

# The actions by their names in the log.
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
    """The action as one line of a commit file, without the newline.

    Raises UnsupportedOperationError if no reader could read the action.
    """
    try:
        return orjson.dumps({_NAMES[type(action)]: action.to_json()})
    except CorruptTableError as error:  # the caller made the action, so the log is not damaged
        why = error.message.removesuffix(DAMAGED)
    except orjson.JSONEncodeError as error:
        why = f"its {_NAMES[type(action)]} cannot be written as JSON: {error}."
    raise UnsupportedOperationError(f"No reader could read the commit: {why} Nothing was committed.")
