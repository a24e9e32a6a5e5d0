"""Names in a MERGE: which side they belong to, as far as the schemas of both show it."""

from __future__ import annotations

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from spark_plugin.dml.merge_names import NameMeaning, Names

INNER = StructType([StructField("id", IntegerType())])
TARGET = StructType([StructField("id", LongType()), StructField("name", StringType()), StructField("st", INNER)])
SOURCE = StructType([StructField("id", IntegerType()), StructField("key", StringType()), StructField("own", INNER)])
AS_T = Names(TARGET, SOURCE, ("t",), case_sensitive=False)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("t.id", NameMeaning("target", LongType())),
        ("T.ID", NameMeaning("target", LongType())),
        ("t.st.id", None),  # or id in the source's table st of a database t
        ("name", NameMeaning("target", StringType())),
        ("s.id", NameMeaning("source", IntegerType())),
        ("db.s.id", NameMeaning("source", IntegerType())),
        ("key", NameMeaning("source", StringType())),
        ("own.id", NameMeaning("source", None)),  # the field, or the column of a frame that is called own
        ("st.id", None),  # the target's field, or the source's column id
        ("id", None),
        ("nothing", None),
        ("id.deeper", None),
    ],
)
def test_name_is_of_the_side_that_alone_can_have_it(name: str, meant: NameMeaning | None) -> None:
    assert AS_T.column(tuple(name.split("."))) == meant


def test_case_sensitive_session_distinguishes_names_by_case() -> None:
    names = Names(TARGET, SOURCE, ("t",), case_sensitive=True)
    assert names.column(("t", "ID")) is None and names.column(("t", "id")) == NameMeaning("target", LongType())
    assert names.column(("T", "id")) == NameMeaning("source", IntegerType()), "the target is not called so"


def test_name_without_an_alias_of_the_target_is_of_the_source() -> None:
    names = Names(TARGET, SOURCE, (), case_sensitive=False)
    assert names.column(("t", "id")) == NameMeaning("source", IntegerType())
    assert names.column(("t", "name")) is None


def test_name_of_several_parts_calls_the_target_by_its_last_ones() -> None:
    names = Names(TARGET, SOURCE, ("spark_catalog", "a", "t"), case_sensitive=False)
    for name in ("spark_catalog.a.t.id", "A.T.id", "t.id"):
        assert names.column(tuple(name.split("."))) == NameMeaning("target", LongType())
    assert names.column(("b", "t", "id")) == NameMeaning("source", IntegerType())
    assert names.column(("spark_catalog", "b", "t", "id")) == NameMeaning("source", IntegerType())
    assert names.column(("a", "t", "name")) == NameMeaning("target", StringType()) and names.column(("a", "t")) is None


def test_name_of_two_columns_of_one_side_has_no_type() -> None:
    twice = StructType([StructField("k", LongType()), StructField("k", StringType())])
    assert Names(TARGET, twice, ("t",), case_sensitive=False).column(("a", "k")) == NameMeaning("source", None)


def test_name_is_known_where_a_column_or_field_may_be_meant() -> None:
    assert AS_T.is_known(("t", "st", "id"), "target") and AS_T.is_known(("s", "key"), "source")
    assert not AS_T.is_known(("key",), "target") and not AS_T.is_known(("t", "st", "more"), "target")
