"""Actions with fields of another form than the protocol's: an error that names it, or the value that the reference reads."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from delta_py.errors import CorruptTableError, UnsupportedOperationError
from delta_py.protocol.actions import AddFile, Metadata, Protocol, RemoveFile
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.protocol.table_config import TableConfig
from delta_py.types.schema import LONG, ArrayType, StructField, StructType, parse_schema, schema_to_json

METADATA: dict[str, Any] = {"id": "1", "schemaString": '{"type":"struct","fields":[]}', "format": {"provider": "parquet"}}


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", {}),
        ("name", 5),
        ("description", ["x"]),
        ("configuration", []),
        ("configuration", "delta.appendOnly"),
        ("configuration", {"delta.appendOnly": {}}),
        ("configuration", {"delta.dataSkippingNumIndexedCols": [1]}),
        ("format", "parquet"),
        ("format", {"provider": 5}),
        ("format", {"provider": "parquet", "options": {"a": []}}),
        ("configuration", {"x": nested(100_000)}),
    ],
)
def test_metadata_field_of_another_type_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(CorruptTableError, match=rf"metaData\.{field}|metaData\.format\.") as caught:
        Metadata.from_json({**METADATA, field: value})
    assert len(caught.value.message) < 500


def test_properties_of_numbers_and_booleans_become_texts() -> None:
    configuration = {"delta.appendOnly": True, "delta.checkpointInterval": 5, "mine": 1.5, "gone": None, "text": "x"}
    read = Metadata.from_json({**METADATA, "configuration": configuration}).configuration
    assert read == {"delta.appendOnly": "true", "delta.checkpointInterval": "5", "mine": "1.5", "text": "x"}


@pytest.mark.parametrize("field", ["path", "partitionValues", "size"])
def test_deeply_nested_file_field_fails_with_a_short_message(field: str) -> None:
    good = {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    with pytest.raises(CorruptTableError) as caught:
        AddFile.from_json({**good, field: nested(100_000)})
    assert len(caught.value.message) < 500


def test_deeply_nested_vector_field_fails_with_a_short_message() -> None:
    with pytest.raises(CorruptTableError) as caught:
        DeletionVectorDescriptor.from_json({"storageType": "u", "pathOrInlineDv": nested(100_000)})
    assert len(caught.value.message) < 500


def deep_schema(opened: str, closed: str, depth: int, metadata: Any = None) -> str:
    return (
        '{"type":"struct","fields":[{"name":"a","nullable":true,"type":'
        + opened * depth
        + '"long"'
        + closed * depth
        + f',"metadata":{json.dumps({"x": metadata})}}}]}}'
    )


ARRAYS = ('{"type":"array","containsNull":true,"elementType":', "}")
STRUCTS = ('{"type":"struct","fields":[{"name":"x","nullable":true,"metadata":{},"type":', "}]}")


@pytest.mark.parametrize("text", [deep_schema(*ARRAYS, 150), deep_schema(*STRUCTS, 60), deep_schema(*ARRAYS, 1, nested(150))])
def test_deeply_nested_schema_can_be_parsed_and_pickled(text: str) -> None:
    config = TableConfig(Protocol(1, 2), Metadata("1", text))
    assert parse_schema(schema_to_json(config.schema)) == pickle.loads(pickle.dumps(config.schema))


@pytest.mark.parametrize("depth", [250, 300, 2000])
def test_schema_that_could_not_be_read_again_is_not_written(depth: int) -> None:
    kind: Any = LONG
    for _ in range(depth):
        kind = ArrayType(kind)
    for schema in (StructType((StructField("a", kind),)), StructType((StructField("a", LONG, True, {"x": nested(depth)}),))):
        with pytest.raises(UnsupportedOperationError, match="The schema cannot be written"):
            schema_to_json(schema)


@pytest.mark.parametrize(("field", "value"), [("stats", 5), ("tags", {"a": 1}), ("tags", []), ("clusteringProvider", {})])
def test_invalid_optional_fields_of_a_file_are_ignored(field: str, value: Any) -> None:
    good = {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    assert AddFile.from_json({**good, field: value}) == AddFile.from_json(good)


@pytest.mark.parametrize("field", ["deletionTimestamp", "size", "partitionValues", "extendedFileMetadata", "baseRowId", "stats"])
def test_tombstone_keeps_its_path_with_invalid_other_fields(field: str) -> None:
    assert RemoveFile.from_json({"path": "a%20b", field: ["x"]}).path == "a b"


@pytest.mark.parametrize("features", ["appendOnly", {"appendOnly": 1}, [1]])
def test_features_that_are_no_list_of_names_are_refused(features: Any) -> None:
    with pytest.raises(CorruptTableError, match=r"protocol\.writerFeatures"):
        Protocol.from_json({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features})


@pytest.mark.parametrize(
    "text",
    [
        deep_schema(*ARRAYS, 250),
        deep_schema(*ARRAYS, 990),
        deep_schema(*ARRAYS, 100_000),
        deep_schema(*STRUCTS, 150),
        deep_schema(*ARRAYS, 1, nested(300)),
        '{"type":"struct","fields":[5]}',
        '{"type":"struct","fields":["x"]}',
        '{"type":"struct","fields":[{"name":"a","type":[]}]}',
        '{"type":"struct","fields":{}}' + " " * 10 + "x",
    ],
)
def test_schema_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(CorruptTableError, match="schema"):
        parse_schema(text)
