from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StringType, StructField

from delta_py.errors import InvalidOptionError
from spark_plugin.definition_statements.create_table import _field
from spark_plugin.sql_definitions import ParsedColumn, _method_call_of, _partitioning, _sql_text
from spark_plugin.table_api.alter_methods import check_defaults
from spark_plugin.table_api.arguments import check_rules


def transform(name: str, *columns: tuple[str, ...]) -> Any:
    """As py4j shows an object of another jar: methods that it only has from its interface are missing."""
    arguments = [SimpleNamespace(fieldNames=lambda names=column: list(names)) for column in columns]
    return SimpleNamespace(name=lambda: name, arguments=lambda: arguments, toString=lambda: f"{name}(...)")


def test_clustering_columns_come_from_either_sql_parser() -> None:
    for name in ("cluster_by", "temp_cluster_by"):
        assert _partitioning([transform(name, ("k",), ("s", "a"))]) == ((), ("k", "s.a"), ())


def test_what_is_no_column_is_told_apart() -> None:
    partitioning = _partitioning([transform("identity", ("p",)), transform("bucket", ("k",)), transform("identity", ("q",))])
    assert partitioning == (("p", "q"), None, ("bucket(...)",))


def test_generation_expression_is_text_or_a_spark_node() -> None:
    assert _sql_text("k * 2") == _sql_text(SimpleNamespace(originalSQL=lambda: "k * 2")) == "k * 2"


def test_the_new_name_of_a_column_is_a_name_and_no_sql() -> None:
    plan = SimpleNamespace(
        kind="RenameColumn",
        node=SimpleNamespace(column=lambda: SimpleNamespace(name=lambda: scala("st", "u")), newName=lambda: "w.x"),
    )
    assert _method_call_of(plan) == ("renameColumn", ("`st`.`u`", "w.x"), {})  # type: ignore[arg-type]


def scala(*parts: str) -> Any:
    return SimpleNamespace(length=lambda: len(parts), apply=lambda n: parts[n])


def test_a_default_is_said_once_where_the_protocol_says_it() -> None:
    column = ParsedColumn("n", IntegerType(), True, None, "7", None, None)
    assert _field(column).metadata == {"CURRENT_DEFAULT": "7"}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"spark.sql.ansi.doubleQuotedIdentifiers": "true"}, "upper(\"name\") <> ''"),
        ({"spark.sql.parser.escapedStringLiterals": "true"}, r"name <> 'a\b'"),
        ({"spark.sql.variable.substitute": "true"}, "name <> '${own.setting}'"),
    ],
)
def test_rules_that_the_session_parses_otherwise_are_refused(settings: dict[str, str], text: str) -> None:
    columns = [StructField("c", StringType(), True, {key: text}) for key in ("delta.generationExpression", "CURRENT_DEFAULT")]
    plain = {"spark.sql.variable.substitute": "false"}
    for session, is_refused in ((SimpleNamespace(conf=settings), True), (SimpleNamespace(conf=plain), False)):
        for column, properties in (*((column, {}) for column in columns), (columns[0], {"delta.constraints.k": text})):
            fields = [] if properties else [column]
            if is_refused:
                with pytest.raises(InvalidOptionError, match=next(iter(settings))):
                    check_rules(session, fields, properties)
            else:
                check_rules(session, fields, properties)


def test_default_that_the_session_parses_otherwise_is_refused() -> None:
    session, columns = (
        SimpleNamespace(conf={"spark.sql.parser.escapedStringLiterals": "true"}),
        [{"name": "c", "default": r"'a\b'"}],
    )
    with pytest.raises(InvalidOptionError, match="escapedStringLiterals"):
        check_defaults(session, columns)
    assert check_defaults(SimpleNamespace(conf={}), columns) == columns and check_defaults(session, [{"name": "c"}]) == [
        {"name": "c"}
    ]
