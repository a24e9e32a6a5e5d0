"""The text that identifies a logical file."""

from __future__ import annotations

from typing import Any

import pytest

from delta_py.errors import CorruptTableError
from delta_py.log.file_keys import file_key, path_and_key

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40, "cardinality": 6}


def deep(levels: int) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for _ in range(levels):
        nested = {"a": nested}
    return nested


def test_file_is_known_by_its_path_and_its_vectors_id() -> None:
    assert file_key("a b", None) == "a b"
    assert file_key("a b", VECTOR) == "a b\0uab^-aqEH.-t@S}K{vb[*k^@4"
    assert file_key("a b", {**VECTOR, "offset": None}) == "a b\0uab^-aqEH.-t@S}K{vb[*k^"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("storageType", "pathOrInlineDv") for value in (deep(2_000), [1], 1, None)),
        *(("offset", value) for value in (deep(2_000), [1], "1", 1.5, True)),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_vector_of_another_form_is_an_error_that_callers_know(name: str, value: Any) -> None:
    with pytest.raises(CorruptTableError, match="descriptor is not valid"):
        file_key("a", {**VECTOR, name: value})


@pytest.mark.parametrize("vector", ["text", 5, [], {}, False], ids=repr)
def test_vector_that_is_none_is_an_error(vector: Any) -> None:
    with pytest.raises(CorruptTableError, match="descriptor is not valid"):
        path_and_key({"path": "a", "deletionVector": vector})


@pytest.mark.parametrize("action", ["text", 5, [], {}, {"path": None}, {"path": 5}, {"path": "a%FF"}, {"path": ["a"]}], ids=repr)
def test_action_of_another_form_is_an_error(action: Any) -> None:
    with pytest.raises(CorruptTableError):
        path_and_key(action)


def test_action_is_known_by_its_decoded_path() -> None:
    assert path_and_key({"path": "a%20b"}) == ("a b", "a b")
    assert path_and_key({"path": "a%20b", "deletionVector": VECTOR}) == ("a b", file_key("a b", VECTOR))
