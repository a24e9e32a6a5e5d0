"""Actions with fields of another form than the protocol's: an error that says which, or the value that the reference reads."""

from __future__ import annotations

from typing import Any

import pytest

from delta_py.errors import CorruptTableError
from delta_py.protocol.actions import AddFile, Metadata
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.protocol.schema import parse_schema

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
def test_metadata_with_a_field_of_another_type_is_refused_by_its_name(field: str, value: Any) -> None:
    with pytest.raises(CorruptTableError, match=rf"metaData\.{field}|metaData\.format\.") as caught:
        Metadata.from_json({**METADATA, field: value})
    assert len(caught.value.message) < 500


def test_numbers_and_booleans_in_properties_are_texts_as_the_reference_reads_them() -> None:
    configuration = {"delta.appendOnly": True, "delta.checkpointInterval": 5, "mine": 1.5, "gone": None, "text": "x"}
    read = Metadata.from_json({**METADATA, "configuration": configuration}).configuration
    assert read == {"delta.appendOnly": "true", "delta.checkpointInterval": "5", "mine": "1.5", "text": "x"}


@pytest.mark.parametrize("field", ["path", "partitionValues", "size"])
def test_file_with_a_field_that_is_nested_deep_is_refused_with_a_short_message(field: str) -> None:
    good = {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    with pytest.raises(CorruptTableError) as caught:
        AddFile.from_json({**good, field: nested(100_000)})
    assert len(caught.value.message) < 500


def test_deletion_vector_with_a_field_that_is_nested_deep_is_refused_with_a_short_message() -> None:
    with pytest.raises(CorruptTableError) as caught:
        DeletionVectorDescriptor.from_json({"storageType": "u", "pathOrInlineDv": nested(100_000)})
    assert len(caught.value.message) < 500


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"array","containsNull":true,"elementType":' * 990 + '"long"' + "}" * 990,
        '{"type":"struct","fields":[5]}',
        '{"type":"struct","fields":["x"]}',
        '{"type":"struct","fields":[{"name":"a","type":[]}]}',
        '{"type":"struct","fields":{}}' + " " * 10 + "x",
    ],
)
def test_schema_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(CorruptTableError, match="schema"):
        parse_schema(text)
