"""Names of columns as text: quoted names are parsed back, and separators inside backticks do not count."""

from __future__ import annotations

import pytest

from delta_py.errors import SchemaMismatchError
from delta_py.types.names import quoted, split_list, split_name, unquoted
from delta_py.types.schema import LONG, StructField, StructType, find_named


@pytest.mark.parametrize("name", ["a", "a.b", "a,b", "a`b", "`", "``", "a b", "ü"])
def test_quoted_names_come_back_as_they_were(name: str) -> None:
    assert unquoted(quoted(name)) == name
    assert split_name(f"{quoted(name)}.x.{quoted(name)}") == (name, "x", name)
    assert split_list(f" {quoted(name)} , x,") == [quoted(name), "x"]


def test_plain_names_are_split_at_dots_and_commas() -> None:
    assert split_name("a.b c.d") == ("a", "b c", "d")
    assert split_list("a, b.c,, `x,y`.z ") == ["a", "b.c", "`x,y`.z"]
    assert unquoted("`") == "`" and unquoted("a") == "a"


def test_name_in_backticks_is_found_as_one_column() -> None:
    nested = StructType((StructField("x", LONG),))
    schema = StructType((StructField("a.b", LONG), StructField("a", nested)))
    assert [field.name for field in find_named(schema, "`a.b`")] == ["a.b"]
    assert [field.name for field in find_named(schema, "a.b")] == ["a.b"]
    assert [field.name for field in find_named(schema, "A.`x`")] == ["a", "x"]
    with pytest.raises(SchemaMismatchError):
        find_named(schema, "`a.x`")
