"""Procedures of the catalog `pydelta`: the meaning of their arguments, and how a client of Spark Connect parses a CALL; without a
session.
"""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import Mock, call

import pytest
from pyspark.errors import AnalysisException

from delta_py.errors import InvalidOptionError, TableNotFoundError
from spark_plugin.driver_channel.sql_requests import failure_json, leave_error
from spark_plugin.exceptions import as_spark_raises, delta_error_of
from spark_plugin.sql import grammar as g
from spark_plugin.sql.grammar import Utility, Version
from spark_plugin.sql.syntax import SqlSyntaxError, SyntaxFault, TableName
from spark_plugin.sql_catalog.procedures import PROCEDURES, procedures_json
from spark_plugin.statements.call_procedure import _DEFAULTS, _REQUESTS, _TYPES, parse_call, table_name, utility_of


def asked(text: str, args: Any = None) -> Utility:
    request = parse_call(text, args)
    assert request is not None
    return utility_of(request["procedure"], request["arguments"])


T = TableName(("t",))

READ: list[tuple[str, Any, Utility]] = [
    ("CALL pydelta.system.optimize('t')", None, g.Optimize(T)),
    (
        "call PyDelta.SYSTEM.`optimize`(TABLE => 't', where => 'a = ''x''', zorder_by => array('a', 'b.c'), full => true);",
        None,
        g.Optimize(T, True, "a = 'x'", ("a", "b.c")),
    ),
    ("CALL pydelta.system.optimize(?, zorder_by => ?)", ["t", ["a"]], g.Optimize(T, z_order=("a",))),
    ("CALL pydelta.system.vacuum('t', 1.5, true)", None, g.Vacuum(T, hours=1.5, dry_run=True)),
    ("CALL pydelta.system.vacuum(:t, 0, lite => false)", {"t": "t"}, g.Vacuum(T, lite=False, hours=0)),
    ("CALL pydelta.system.vacuum('t', retain_hours => 168D)", None, g.Vacuum(T, hours=168.0)),
    ("CALL pydelta.system.vacuum('t', 1.5BD)", None, g.Vacuum(T, hours=1.5)),
    ("CALL pydelta.system.vacuum('t', -2F)", None, g.Vacuum(T, hours=-2.0)),
    ("CALL pydelta.system.vacuum('t', NULL, inventory => 'i.j')", None, g.Vacuum(T, inventory=TableName(("i", "j")))),
    ("CALL pydelta.system.history('a.`b.c`', limit => 3)", None, g.History(TableName(("a", "b.c")), 3)),
    ("CALL pydelta.system.detail('/a')", None, g.Detail(TableName(("pydelta", "/a")))),
    ("CALL pydelta.system.restore('t', 3)", None, g.Restore(T, Version(3))),
    ("CALL pydelta.system.history('t', 10L)", None, g.History(T, 10)),
    ("CALL pydelta.system.restore('t', 3, ignore_missing_files => true)", None, g.Restore(T, Version(3), True)),
    ("CALL pydelta.system.restore('t', 3s)", None, g.Restore(T, Version(3))),
    ("CALL pydelta.system.restore('t', 3Y)", None, g.Restore(T, Version(3))),
    ("CALL pydelta.system.restore('t', timestamp => '2024-01-01')", None, g.Restore(T, Version(timestamp="2024-01-01"))),
    ("CALL pydelta.system.generate('t')", None, g.Generate(T, "symlink_format_manifest")),
    ("CALL pydelta.system.reorg('t', 'a = 1')", None, g.Reorg(T, "a = 1")),
    ("CALL pydelta.system.fsck('t', dry_run => true)", None, g.Fsck(T, True)),
    ("CALL pydelta.system.fsck('t', check_data => true)", None, g.Fsck(T, False, True)),
    (
        "CALL pydelta.system.clone('parquet.`/p`', 'c', true, partitioned_by => 'd DATE')",
        None,
        g.Clone(TableName(("c",)), TableName(("parquet", "/p")), True, partitions="d DATE"),
    ),
    (
        "CALL pydelta.system.clone('t', '/x', shallow => true, version => 2, properties => map('a', 'b'))",
        None,
        g.Clone(TableName(("pydelta", "/x")), T, True, Version(2), properties={"a": "b"}),
    ),
    ("CALL pydelta.system.convert('/p', 'a INT')", None, g.Convert(TableName(("parquet", "/p")), partitions="a INT")),
    ("CALL pydelta.system.add_constraint('t', 'c', 'a > 0')", None, g.AddConstraint(T, "c", "a > 0")),
    ("CALL pydelta.system.drop_constraint('t', 'c', true)", None, g.DropConstraint(T, "c", True)),
    ("CALL pydelta.system.add_feature('t', 'f')", None, g.AddFeature(T, "f")),
    ("CALL pydelta.system.drop_feature('t', 'f', true)", None, g.DropFeature(T, "f", True)),
    ("CALL pydelta.system.cluster_by('t', array())", None, g.ClusterBy(T, ())),
    ("CALL pydelta.system.sync_identity('t', 'a')", None, g.SyncIdentity(T, "a")),
    ("CALL pydelta.system.create_index('t', 'i', 'a')", None, g.CreateIndex(T, "i", ("a",))),
    ("CALL pydelta.system.drop_index('t', 'i')", None, g.DropIndex(T, "i")),
]


@pytest.mark.parametrize(("text", "args", "utility"), READ, ids=[text for text, _, _ in READ])
def test_a_call_asks_for_what_the_statement_asks_for(text: str, args: Any, utility: Utility) -> None:
    assert asked(text, args) == utility


def test_all_procedures_are_carried_out_and_read_by_clients() -> None:
    assert set(_REQUESTS) == set(PROCEDURES)
    told_parameters = [parameter for procedure in json.loads(procedures_json()) for parameter in procedure["parameters"]]
    assert {parameter["type"] for parameter in told_parameters} == set(_TYPES)
    assert {parameter["default"] for parameter in told_parameters} - {None} == set(_DEFAULTS)


@pytest.mark.parametrize(
    "path", ["/a/it's `b`; DROP TABLE t --", "dir/`x`", "s3://b/x.y", '/a"b\nc', "/a`/`b.c"]
)
def test_a_path_is_taken_as_it_is(path: str) -> None:
    assert table_name(path) == TableName(("pydelta", path))
    assert asked("CALL pydelta.system.detail(?)", [path]) == g.Detail(TableName(("pydelta", path)))


@pytest.mark.parametrize(
    ("text", "parts"),
    [("t", ("t",)), ("a.b", ("a", "b")), ("pydelta.`/a.b/c`", ("pydelta", "/a.b/c")), ("`a``b; --`.c", ("a`b; --", "c"))],
)
def test_a_name_is_read_as_sql_has_it(text: str, parts: tuple[str, ...]) -> None:
    assert table_name(text) == TableName(parts)


def test_a_name_without_parts_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="names no table"):
        table_name("")


@pytest.mark.parametrize("text", ["CALL other.thing(1)", "CALL pydelta.system.nothing('t')", "CALL pydelta.other.detail('t')"])
def test_other_procedures_are_left_to_the_server(text: str) -> None:
    assert parse_call(text) is None


@pytest.mark.parametrize(
    "arguments",
    [
        "()",
        "('t', 'x')",
        "('t', true)",
        "('t', 1, 2)",
        "('t', wrong => 1)",
        "(table => 't', 1)",
        "('t', table => 't')",
        "(upper('t'))",
        "('t', 1.5)",
        "('t', 1BD)",
        "('t', 1D)",
        "('t', 1.5L)",
        "('t', 128Y)",
        "('t', 9223372036854775808)",
        f"('t', {'9' * 5000})",
        "('t', ²)",
        "(array('t'))",
        "('t'",
        "('t') x",
    ],
)
def test_arguments_that_do_not_fit_are_left_to_the_server(arguments: str) -> None:
    with pytest.raises(SyntaxFault):
        parse_call(f"CALL pydelta.system.history{arguments}")


@pytest.mark.parametrize("value", [2**63, -(10**400)])
@pytest.mark.parametrize("procedure", ["history", "vacuum"])
def test_a_parameter_beyond_bigint_is_left_to_the_server(procedure: str, value: int) -> None:
    with pytest.raises(SyntaxFault):
        parse_call(f"CALL pydelta.system.{procedure}('t', ?)", [value])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CALL pydelta.system.history(NULL)", "the argument table is null"),
        ("CALL pydelta.system.optimize('t', zorder_by => array('a', NULL))", "the argument zorder_by is null, or a part of it"),
        ("CALL pydelta.system.clone('t', '/x', properties => map('a', NULL))", "properties is null, or a part of it"),
        ("CALL pydelta.system.restore('t')", "neither a version nor a timestamp"),
        ("CALL pydelta.system.restore('t', 1, '2024-01-01')", "both a version and a timestamp"),
        ("CALL pydelta.system.clone('t', '/x', false, 1, '2024-01-01')", "both a version and a timestamp"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidOptionError, match=why):
        asked(text)


# ---------------------------------------------------------------- errors on their way to the JVM


def test_error_is_equal_in_jvm_and_python_with_its_condition() -> None:
    error = TableNotFoundError("There is no table.\n - one", table="x")
    with pytest.raises(AnalysisException) as raised, as_spark_raises():
        raise error
    for one in (error, raised.value):
        failure = json.loads(failure_json(one))
        assert failure["condition"] == error.error_class and failure["state"] == error.sql_state
        assert failure["parameters"] == {"table": "x"}
        same_error = delta_error_of(failure["message"])
        assert type(same_error) is TableNotFoundError and str(same_error) == str(error)


def test_pyspark_errors_keep_conditions_others_are_internal() -> None:
    assert json.loads(failure_json(SqlSyntaxError("OPTIMIZE", 8, None)))["condition"] == "PARSE_SYNTAX_ERROR"
    failure = json.loads(failure_json(ValueError("odd")))
    assert failure["condition"] == "INTERNAL_ERROR" and "ValueError: odd" in failure["message"]


def test_what_the_jvm_raised_goes_back_to_it_as_it_was() -> None:
    thrown, error, pending = object(), AnalysisException("no"), Mock()
    error._origin = thrown
    leave_error(error, pending)
    assert pending.mock_calls == [call.raised(thrown)]


def test_delta_error_reaches_the_jvm_despite_a_jvm_error() -> None:
    error, pending = TableNotFoundError("There is no table.", table="x"), Mock()
    error._origin = object()  # type: ignore[attr-defined]
    leave_error(error, pending)
    assert pending.mock_calls == [call.failed(failure_json(error))]
