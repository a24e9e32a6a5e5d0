"""Which versions of Spark are supported, and the replacements for what one of them lacks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from delta_py.errors import UnsupportedOperationError
from spark_plugin import register
from spark_plugin.data_source import DeltaSource
from spark_plugin.java.supported_versions import SUPPORTED, minor_version, refuse_older
from spark_plugin.spark_versions import (
    CAPABILITIES,
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxFiles,
    capability_table,
    hint_at_newer_clause,
    json_of_read_limit,
    read_limit_of_json,
    resolvable_rule_text,
)
from tests.support.documents.pages import ROOT

PAGE = ROOT / "docs" / "spark-versions-and-connect.md"


@pytest.mark.parametrize(
    ("version", "supported"), [("4.0.5", False), ("4.1.0", True), ("4.2.1", True), ("4.3.9", True), ("4.4.0", False)]
)
def test_supported_versions(version: str, supported: bool) -> None:
    assert (minor_version(version) in SUPPORTED) is supported


@pytest.mark.parametrize("version", ["4.1.0", "4.1.4", "4.2.1", "4.3.0", "4.4.0", "5.0.0.dev1"])
def test_supported_and_newer_versions_are_not_refused(version: str) -> None:
    refuse_older(version)


@pytest.mark.parametrize("version", ["3.5.9", "4.0.0", "4.0.5"])
def test_older_spark_is_refused_with_the_supported_versions(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    session: Any = SimpleNamespace(version=version)
    expected = f"supports Spark 4.1, 4.2 and 4.3, and this is Spark {version}. Nothing was read or written. Install"
    with pytest.raises(UnsupportedOperationError, match=expected):
        register(session)
    with pytest.raises(UnsupportedOperationError, match=expected):
        DeltaSource({"path": "/data/t", "__pydelta_private": "x"})


def test_older_server_of_a_client_is_refused() -> None:
    """The client's pyspark may be newer."""
    client: Any = type("Client", (SimpleNamespace,), {"__module__": "pyspark.sql.connect.session", "__hash__": object.__hash__})
    with pytest.raises(UnsupportedOperationError, match=r"this is Spark 4\.0\.5"):
        register(client(version="4.0.5", session_id="a session of an older server"))


def test_text_without_numbers_is_no_version() -> None:
    with pytest.raises(UnsupportedOperationError, match="its version is 'newest'"):
        minor_version("newest")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT * FROM t CHANGES  FROM VERSION 1", "came with Spark 4.2, and this is Spark 4.1.4. Use the function"),
        ("insert into t replace using (id) select 1", "Use the option replaceUsing of a write."),
        ("INSERT INTO t AS x REPLACE ON x.id = 1 SELECT 1", "Use the option replaceOn of a write."),
        ("INSERT WITH SCHEMA EVOLUTION INTO t SELECT 1", "Use the option mergeSchema of a write."),
    ],
)
def test_refused_clause_of_a_newer_spark_has_a_hint(text: str, hint: str) -> None:
    assert hint in str(hint_at_newer_clause(text, "4.1.4"))
    assert hint_at_newer_clause(text, "4.2.0") is None


def test_refused_statement_without_newer_clauses_has_no_hint() -> None:
    assert hint_at_newer_clause("SELEC changes FRO t", "4.1.4") is None


class Session:
    """A session of one version of Spark, which knows the class behind each function."""

    def __init__(self, version: str, **classes: str) -> None:
        self.version, self._classes = version, classes

    def sql(self, statement: str) -> Any:
        name = statement.removeprefix("DESCRIBE FUNCTION `").removesuffix("`")
        class_name = f"org.apache.spark.sql.catalyst.expressions.{name.title()}"
        rows = [(f"Function: {name}",), (f"Class: {self._classes.get(name, class_name)}",), ("Usage: N/A.",)]
        return SimpleNamespace(collect=lambda: rows)


RULE = "((system.builtin.`hash`(`system.builtin.``hash```) > 0) AND (system.builtin.`length`(`a`) = 'system.builtin.'))"


def test_functions_of_a_rule_have_bare_names_on_spark_41() -> None:
    bare = "((`hash`(`system.builtin.``hash```) > 0) AND (`length`(`a`) = 'system.builtin.'))"
    assert resolvable_rule_text(Session("4.1.4"), RULE) == bare
    assert resolvable_rule_text(Session("4.1.4"), "(`a` > 0)") == "(`a` > 0)"
    for version in ("4.2.0", "4.3.0"):
        assert resolvable_rule_text(Session(version, hash="mine.Hash"), RULE) == RULE


def test_rule_is_refused_if_a_session_function_shadows_it() -> None:
    session = Session("4.1.4", hash="org.apache.spark.sql.classic.UDFRegistration$$Lambda$1721/0x00007f3bd0b8b3d0")
    with pytest.raises(UnsupportedOperationError, match=r"registered a function hash, .* Spark 4\.1\.4 cannot tell them apart"):
        resolvable_rule_text(session, RULE)


@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxFiles(3), ReadMaxBytes(2**40)], ids=["all", "files", "bytes"])
def test_read_limit_comes_back_as_it_was(limit: Any) -> None:
    assert read_limit_of_json(json_of_read_limit(limit)) == limit


def test_table_of_the_docs_is_that_of_the_capabilities() -> None:
    assert capability_table() in PAGE.read_text(), f"put this table into {PAGE.name}:\n{capability_table()}"


def test_capability_is_lacking_in_supported_versions_only() -> None:
    assert {version for each in CAPABILITIES for version in each.without} <= set(SUPPORTED)
