"""Actions as they are written: a written action is read back unchanged, and an action that a reader refuses is not written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_py.errors import CorruptTableError, UnsupportedOperationError
from delta_py.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    action_to_line,
    parse_action,
)
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.protocol.paths import decode_path, encode_path

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
LONG = st.integers(-(2**63), 2**63 - 1)
COUNT = st.integers(0, 2**63 - 1)
INT = st.integers(0, 2**31 - 1)
MAPS = st.dictionaries(TEXT, st.none() | TEXT, max_size=3)
PATHS = st.builds(
    lambda start, rest: decode_path(encode_path(start + rest)),
    st.sampled_from(["", "p=a/", "/abs/", "s3://bucket/", "a%20", "time=10:20/", "x:/"]),
    TEXT,
)
VECTORS = st.builds(DeletionVectorDescriptor, st.sampled_from("upi"), TEXT, st.none() | INT, INT, COUNT)

# The names in the log that differ from the names of the attributes.
NAMES: dict[type[Any], dict[str, str]] = {
    Protocol: {
        "min_reader_version": "minReaderVersion",
        "min_writer_version": "minWriterVersion",
        "reader_features": "readerFeatures",
        "writer_features": "writerFeatures",
    },
    Metadata: {
        "id": "id",
        "schema_string": "schemaString",
        "partition_columns": "partitionColumns",
        "configuration": "configuration",
        "name": "name",
        "description": "description",
        "created_time_ms": "createdTime",
    },
    AddFile: {
        "path": "path",
        "partition_values": "partitionValues",
        "size_bytes": "size",
        "modification_time_ms": "modificationTime",
        "data_change": "dataChange",
        "stats": "stats",
        "tags": "tags",
        "deletion_vector": "deletionVector",
        "base_row_id": "baseRowId",
        "default_row_commit_version": "defaultRowCommitVersion",
        "clustering_provider": "clusteringProvider",
    },
    RemoveFile: {
        "path": "path",
        "data_change": "dataChange",
        "deletion_timestamp_ms": "deletionTimestamp",
        "extended_file_metadata": "extendedFileMetadata",
        "partition_values": "partitionValues",
        "size_bytes": "size",
        "stats": "stats",
        "tags": "tags",
        "deletion_vector": "deletionVector",
        "base_row_id": "baseRowId",
        "default_row_commit_version": "defaultRowCommitVersion",
    },
    AddCDCFile: {"path": "path", "partition_values": "partitionValues", "size_bytes": "size", "tags": "tags"},
    SetTransaction: {"app_id": "appId", "version": "version", "last_updated_ms": "lastUpdated"},
    DomainMetadata: {"domain": "domain", "configuration": "configuration", "removed": "removed"},
}
LAWFUL: dict[type[Any], st.SearchStrategy[Any]] = {
    Protocol: st.builds(Protocol, COUNT, COUNT, *(st.none() | st.frozensets(TEXT, max_size=3),) * 2),
    Metadata: st.builds(
        Metadata,
        id=TEXT,
        schema_string=TEXT,
        partition_columns=st.lists(TEXT, max_size=3).map(tuple),
        configuration=st.dictionaries(TEXT, TEXT, max_size=3),
        name=st.none() | TEXT,
        description=st.none() | TEXT,
        format_provider=TEXT,
        format_options=st.dictionaries(TEXT, TEXT, max_size=3),
        created_time_ms=st.none() | LONG,
    ),
    AddFile: st.builds(
        AddFile,
        path=PATHS,
        partition_values=MAPS,
        size_bytes=COUNT,
        modification_time_ms=LONG,
        data_change=st.booleans(),
        stats=st.none() | TEXT,
        tags=st.none() | MAPS,
        deletion_vector=st.none() | VECTORS,
        base_row_id=st.none() | LONG,
        default_row_commit_version=st.none() | LONG,
        clustering_provider=st.none() | TEXT,
    ),
    RemoveFile: st.builds(
        RemoveFile,
        path=PATHS,
        data_change=st.booleans(),
        deletion_timestamp_ms=st.none() | LONG,
        extended_file_metadata=st.none() | st.booleans(),
        partition_values=st.none() | MAPS,
        size_bytes=st.none() | LONG,
        stats=st.none() | TEXT,
        tags=st.none() | MAPS,
        deletion_vector=st.none() | VECTORS,
        base_row_id=st.none() | LONG,
        default_row_commit_version=st.none() | LONG,
    ),
    AddCDCFile: st.builds(AddCDCFile, PATHS, MAPS, COUNT, st.none() | MAPS),
    SetTransaction: st.builds(SetTransaction, TEXT, LONG, st.none() | LONG),
    DomainMetadata: st.builds(DomainMetadata, TEXT, TEXT, st.booleans()),
    CommitInfo: st.builds(CommitInfo, st.dictionaries(st.sampled_from(["operation", "txnId", "tags"]), TEXT | LONG | MAPS)),
}
ANY = st.sampled_from(list(LAWFUL)).flatmap(LAWFUL.__getitem__)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


# Values that JSON cannot express, and path spellings that are not canonical.
ODD = st.sampled_from([float("nan"), "\ud800", b"x", nested(300), {1: "x"}, {"x": 1}, ("x",), -1, 2**63, True])
ODD |= st.sampled_from(["//a", "file:/a", "FILE:///a", "a%", "./s3://b/c"]) | JSON


@given(ANY)
def test_action_that_is_written_is_read_as_the_same(action: Action) -> None:
    assert parse_action(action_to_line(action)) == action


@given(LAWFUL[AddFile] | LAWFUL[RemoveFile], st.sampled_from([encode_path, lambda path: path, lambda path: f"%61/../{path}"]))
def test_spelling_of_a_path_is_repeated_where_it_says_the_path(action: Any, spell: Any) -> None:
    text = spell(action.path)
    try:
        written = parse_action(action_to_line(replace(action, path_text=text)))
    except UnsupportedOperationError:
        assert decode_path(text) != action.path
    else:
        assert written == replace(action, path_text=None if text == encode_path(action.path) else text)


@given(st.data())
def test_action_with_any_value_is_refused_or_read_as_the_same(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([*NAMES, CommitInfo]))
    lawful = data.draw(LAWFUL[kind])
    name = data.draw(st.sampled_from(sorted(NAMES.get(kind, {"values": "values"}))))
    value = data.draw(ODD)
    action = replace(lawful, **{name: {"inCommitTimestamp": value} if kind is CommitInfo else value})
    try:
        line = action_to_line(action)
    except UnsupportedOperationError as error:
        assert "Nothing was committed" in str(error) and len(error.message) < 1000
    else:
        assert parse_action(line) == action


@given(st.data())
def test_what_a_reader_refuses_is_not_written(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(NAMES)))
    lawful = data.draw(LAWFUL[kind])
    name, spelled = data.draw(st.sampled_from(sorted(NAMES[kind].items())))
    value = data.draw(JSON)
    body = {**json.loads(action_to_line(lawful)).popitem()[1], spelled: value}
    try:
        action = kind.from_json(body)
    except CorruptTableError:
        with pytest.raises(UnsupportedOperationError):
            action_to_line(replace(lawful, **{name: value}))
    else:
        assert parse_action(action_to_line(action)) == action
