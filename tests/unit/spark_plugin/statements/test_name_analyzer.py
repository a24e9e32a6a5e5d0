"""The columns in SET of a Spark Connect client, found by the table's schema."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructType

from spark_plugin.dml.name_analyzer import _paths_by_name
from spark_plugin.exceptions import UnsupportedOperationError

FIELDS = StructType().add("x", IntegerType()).add("name", StringType())
TABLE = StructType().add("id", IntegerType()).add("name", StringType()).add("T", FIELDS).add("arr", ArrayType(FIELDS))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("id", ("id",)),
        ("t.id", ("id",)),
        ("t.name", ("name",)),  # of the alias, not of the struct
        ("t.x", ("T", "x")),
        ("t.t.x", ("T", "x")),
        ("T.NAME", ("name",)),
        ("`t`.`t`", ("T",)),
    ],
)
def test_path_of_a_name_where_the_alias_is_a_column_too(name: str, path: tuple[str, ...]) -> None:
    assert _paths_by_name(TABLE, [name], ("t",)) == [path]


@pytest.mark.parametrize("name", ["t.arr.x", "arr.x", "t.nope"])
def test_path_of_what_is_no_field_of_a_struct(name: str) -> None:
    with pytest.raises(UnsupportedOperationError, match="cannot be assigned"):
        _paths_by_name(TABLE, [name], ("t",))
