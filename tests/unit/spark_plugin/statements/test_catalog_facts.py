"""Facts from the text of SHOW TABLE EXTENDED, for an entry whose columns are not ours, without a session."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StructType

from spark_plugin.dataframe_api import catalog
from spark_plugin.exceptions import InvalidOptionError, UnsupportedOperationError
from spark_plugin.options.settings import TablePath
from spark_plugin.table_api.table_names import clone_table

HEAD = "Catalog: spark_catalog\nDatabase: default\nTable: t\nCreated By: Spark 4.3.0\nType: EXTERNAL\nProvider: delta\n"
TAIL = "Partition Provider: Catalog\nSchema: root\n |-- id: long (nullable = true)\n\n"


def entry(text: str) -> catalog.Entry:
    row = {"tableName": "t", "isTemporary": False, "information": text}

    class Session:
        catalog = SimpleNamespace(currentCatalog=lambda: "spark_catalog")
        conf = SimpleNamespace(get=lambda _name, default: default)
        _jsparkSession = SimpleNamespace(sessionUUID=lambda: "one of which nothing is known")

        def sql(self, _text: str) -> Any:
            return SimpleNamespace(collect=lambda: [row])

        def table(self, _name: str) -> Any:
            return SimpleNamespace(schema=StructType())

    entry_facts = catalog.find(Session(), "t")
    assert entry_facts is not None
    return entry_facts


@pytest.mark.parametrize(("case_sensitive", "path"), [("false", "/upper"), ("true", "/lower")])
def test_names_are_told_apart_where_the_session_does(case_sensitive: str, path: str) -> None:
    settings = {"spark.sql.caseSensitive": case_sensitive}
    rows = [
        {"tableName": table, "isTemporary": False, "information": f"{HEAD}Location: file:/{place}\n{TAIL}"}
        for table, place in (("T", "upper"), ("t", "lower"))
    ]

    class Session:
        catalog = SimpleNamespace(currentCatalog=lambda: "spark_catalog")
        conf = SimpleNamespace(get=lambda name, default: settings.get(name, default))
        _jsparkSession = SimpleNamespace(sessionUUID=lambda: "one of which nothing is known")

        def sql(self, _text: str) -> Any:
            return SimpleNamespace(collect=lambda: rows)

    entry_facts = catalog.find(Session(), "t")
    assert entry_facts is not None and entry_facts.path == path


@pytest.mark.parametrize("provider", ["delta", "pydelta"])
def test_the_only_location_is_the_table_s(provider: str) -> None:
    entry_facts = entry(
        HEAD.replace("Provider: delta", f"Provider: {provider}") + "Comment: x\nLocation: file:/a b%c, d=e\n" + TAIL
    )
    assert (entry_facts.provider, entry_facts.writable_path()) == (provider, "/a b%c, d=e")


@pytest.mark.parametrize(
    "rest",
    [
        "Comment: x\nLocation: file:/other\nLocation: file:/real\n" + TAIL,
        "Table Properties: [a=x\nLocation: file:/other\n]\nLocation: file:/real\n" + TAIL,
        "Location: file:/real\n" + TAIL.replace("id:", "a\nLocation: file:/other\nb:"),
        "Location: file:/real\nof two lines\n" + TAIL,
        "Location: file:/real\nFoo: of two lines\n" + TAIL,
        "Location: file:/real\nStorage Properties: of two lines\n" + TAIL,
        "Location: file:/real\nSchema: root\n" + TAIL,
        "Comment: none has a location\n" + TAIL,
    ],
)
def test_ambiguous_location_in_catalog_text_takes_no_rows(rest: str) -> None:
    with pytest.raises(UnsupportedOperationError, match="DROP TABLE t, which leaves the data"):
        entry(HEAD + rest).writable_path()


@pytest.mark.parametrize("provider", ["delta", "pydelta"])
def test_nobody_is_told_to_drop_a_managed_table(provider: str) -> None:
    head = HEAD.replace("Provider: delta", f"Provider: {provider}").replace("EXTERNAL", "MANAGED")
    with pytest.raises(UnsupportedOperationError, match="DROP TABLE would delete its files"):
        entry(head + "Comment: x\nLocation: file:/other\nLocation: file:/real\n" + TAIL).writable_path()


@pytest.mark.parametrize(
    "rest",
    [
        "Storage Properties: [k=v, w=of\ntwo lines]\n" + TAIL,
        "Serde Library: a.b\nInputFormat: c\nOutputFormat: d\nCompressed: \nStorage Properties: [k=v]\n"
        "Partition Provider: Catalog\nPartition Columns: [`p`]\n"
        "Schema: root\n |-- a\\nb: struct (nullable = true)\n |    |-- c: long\n\n",
        "Schema: root\n |-- id: long (nullable = true)\n\n",
        "Partition Provider: Catalog\n\n",
    ],
)
def test_what_spark_tells_behind_a_location_is_no_part_of_it(rest: str) -> None:
    assert entry(HEAD + "Location: file:/real\n" + rest).writable_path() == "/real"


def test_type_and_provider_stand_before_all_texts_of_users() -> None:
    entry_facts = entry(HEAD + "Comment: x\nType: MANAGED\nProvider: csv\n" + "Location: /real\n" + TAIL)
    assert (entry_facts.provider, entry_facts.external, entry_facts.writable_path()) == ("delta", True, "/real")


def test_partitions_are_in_the_catalog_if_it_says_so() -> None:
    assert entry(HEAD + "Location: file:/real\n" + TAIL).tracks_partitions
    assert not entry(HEAD + "Location: file:/real\n" + TAIL.partition("\n")[2]).tracks_partitions


@pytest.mark.parametrize(
    ("name", "named"),
    [("Parquet.`/a b`", ("parquet", "/a b")), ("csv.`s3://b/t`", ("csv", "s3://b/t")), ("db.t", None), ("a.b.`/c`", None)],
)
def test_formats_and_paths_are_told_from_names(name: str, named: tuple[str, str] | None) -> None:
    assert catalog.format_and_path(name) == named


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("file:/my%20files/it's%2520%23", "/my files/it's%20#/t"),
        ("file:///wh/shop.db/", "/wh/shop.db/t"),
        ("s3://bucket/my%20files", "s3://bucket/my files/t"),
    ],
)
def test_new_table_goes_into_its_database_s_directory(location: str, path: str) -> None:
    """Spark shows the location of a database as a URI, and that of a table unchanged."""

    class Session:
        catalog = SimpleNamespace(currentCatalog=lambda: "spark_catalog", currentDatabase=lambda: "shop")
        conf = SimpleNamespace(get=lambda _name, default: default)
        _jsparkSession = SimpleNamespace(sessionUUID=lambda: "one of which nothing is known")

        def sql(self, _text: str) -> Any:
            return SimpleNamespace(collect=lambda: [("Catalog Name", "spark_catalog"), ("Location", location)])

    assert catalog.new_table_path(Session(), "T", None) == path
    settings = {"spark.sql.caseSensitive": "true"}
    Session.conf = SimpleNamespace(get=lambda name, default: settings.get(name, default))
    assert catalog.new_table_path(Session(), "T", None) == f"{path[:-1]}T", "as Spark spells it there"


def test_clone_that_is_named_by_one_path_goes_to_no_other(tmp_path: Path) -> None:
    target, location = tmp_path / "target", tmp_path / "location"
    with pytest.raises(InvalidOptionError) as refused:
        clone_table(None, TablePath("/source"), f"delta.`{target}`", {}, is_shallow=True, location=str(location))
    assert refused.value.error_class == "DELTA_CLONE_AMBIGUOUS_TARGET"
