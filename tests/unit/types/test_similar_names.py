"""Suggestions for unknown names: only for names that are near."""

from __future__ import annotations

import pytest

from delta_py.types.similar_names import did_you_mean, similar_name

KNOWN = ["mergeSchema", "compression", "s3.access_key_id", "--partition-by"]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("merge_schema", "mergeSchema"),
        ("MERGESCHEMAS", "mergeSchema"),
        ("access_key", "s3.access_key_id"),
        ("--partitionBy", "--partition-by"),
        ("comp", "compression"),
    ],
)
def test_name_that_is_near_a_known_one_is_suggested(name: str, nearest: str) -> None:
    assert similar_name(name, KNOWN) == nearest
    assert did_you_mean(name, KNOWN) == f" Did you mean {nearest}?"


@pytest.mark.parametrize("name", ["foo", "", "---", "co", "schema_of_rows", "日本"])
def test_name_that_is_near_no_known_one_gets_no_suggestion(name: str) -> None:
    assert similar_name(name, KNOWN) is None
    assert did_you_mean(name, KNOWN) == ""


def test_no_known_names_are_near_no_name() -> None:
    assert did_you_mean("name", []) == ""
