"""Statements that Spark's parser does not know: what is parsed from their text, and where a text is wrong; without a session."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import AnalysisException, ParseException

from delta_py.types.names import quoted
from spark_plugin.sql import grammar as g
from spark_plugin.sql.grammar import Utility, Version, parse_utility
from spark_plugin.sql.syntax import SyntaxFault, TableName
from spark_plugin.sql_router import route_of


def name(*parts: str, place: int) -> TableName:
    return TableName(parts, None, place)


READ: list[tuple[str, Utility]] = [
    ("OPTIMIZE t", g.Optimize(name("t", place=9))),
    ("optimize a.b FULL;", g.Optimize(name("a", "b", place=9), full=True)),
    ("OPTIMIZE FULL a.b", g.Optimize(name("a", "b", place=14), full=True)),
    ("OPTIMIZE full", g.Optimize(name("full", place=9))),
    ("OPTIMIZE full FULL", g.Optimize(name("full", place=9), full=True)),
    ("OPTIMIZE full.t;;", g.Optimize(name("full", "t", place=9))),
    ("OPTIMIZE '/a''b' ZORDER BY a, `b c`.d", g.Optimize(TableName((), "/a'b", 9), z_order=("a", "`b c`.d"))),
    (
        "OPTIMIZE delta.`/a``b` WHERE d = 'x''y; ZORDER BY' AND (e IN (1, 2)) -- c\n ZORDER BY (id, b.c)",
        g.Optimize(name("delta", "/a`b", place=9), False, "d = 'x''y; ZORDER BY' AND (e IN (1, 2))", ("id", "b.c")),
    ),
    ("VACUUM t", g.Vacuum(name("t", place=7))),
    ("VACUUM vacuum LITE", g.Vacuum(name("vacuum", place=7), lite=True)),
    ("VACUUM t FULL", g.Vacuum(name("t", place=7), lite=False)),
    ("VACUUM t RETAIN 0.5 HOURS DRY RUN", g.Vacuum(name("t", place=7), hours=0.5, dry_run=True)),
    ("VACUUM t RETAIN 168L HOURS", g.Vacuum(name("t", place=7), hours=168)),
    ("VACUUM t RETAIN 168bd HOURS", g.Vacuum(name("t", place=7), hours=168)),
    ("VACUUM t RETAIN -1.5D HOURS", g.Vacuum(name("t", place=7), hours=-1.5)),
    ("VACUUM t DRY RUN RETAIN -1 HOURS LITE", g.Vacuum(name("t", place=7), True, None, -1, True)),
    ("VACUUM t USING INVENTORY i.j", g.Vacuum(name("t", place=7), inventory=name("i", "j", place=25))),
    ("VACUUM t USING INVENTORY (SELECT (1) FROM x) RETAIN 1 HOURS", g.Vacuum(name("t", place=7), None, "SELECT (1) FROM x", 1)),
    ("VACUUM t USING INVENTORY (SELECT v:path FROM x)", g.Vacuum(name("t", place=7), inventory="SELECT v:path FROM x")),
    ("DESC HISTORY t LIMIT 3", g.History(name("t", place=13), 3)),
    ("describe history 'x'", g.History(TableName((), "x", 17))),
    ("DESCRIBE DETAIL `history`", g.Detail(name("history", place=16))),
    ("RESTORE TABLE t TO VERSION AS OF 3", g.Restore(name("t", place=14), Version(3))),
    ("RESTORE t VERSION AS OF '3'", g.Restore(name("t", place=8), Version(3))),
    ("RESTORE table TO VERSION AS OF 3", g.Restore(name("table", place=8), Version(3))),
    ("RESTORE t FOR SYSTEM_TIME AS OF '2024-01-01'", g.Restore(name("t", place=8), Version(timestamp="2024-01-01"))),
    ("CONVERT TO DELTA parquet.`/p`", g.Convert(name("parquet", "/p", place=17))),
    (
        "CONVERT TO DELTA t NO STATISTICS PARTITIONED BY (a DECIMAL(10, 2), `b` STRING NOT NULL)",
        g.Convert(name("t", place=17), False, "a DECIMAL(10, 2), `b` STRING NOT NULL"),
    ),
    ("GENERATE symlink_format_manifest FOR TABLE t", g.Generate(name("t", place=43), "symlink_format_manifest")),
    ("REORG TABLE t APPLY (PURGE)", g.Reorg(name("t", place=12))),
    ("REORG TABLE t WHERE apply = (1) APPLY (PURGE)", g.Reorg(name("t", place=12), "apply = (1)")),
    ("REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", g.Reorg(name("t", place=12), purge=False)),
    ("FSCK REPAIR TABLE t DRY RUN", g.Fsck(name("t", place=18), True)),
    ("CREATE TABLE a SHALLOW CLONE b", g.Clone(name("a", place=13), name("b", place=29), True)),
    (
        "CREATE OR REPLACE TABLE a CLONE b VERSION AS OF 1 TBLPROPERTIES (delta.x.y = 'q', 'z' 5, w true) LOCATION \"/l\"",
        g.Clone(
            name("a", place=24),
            name("b", place=32),
            False,
            Version(1),
            replaces=True,
            properties={"delta.x.y": "q", "z": "5", "w": "true"},
            location="/l",
        ),
    ),
    (
        "CREATE TABLE IF NOT EXISTS a DEEP CLONE b TIMESTAMP AS OF 't'",
        g.Clone(name("a", place=27), name("b", place=40), False, Version(timestamp="t"), if_not_exists=True),
    ),
    (
        "CREATE TABLE a CLONE b TBLPROPERTIES ('k' 'v', 'l' = 'm' 'n', o 'p' \"q\", 'r' true) LOCATION '/l' '/m'",
        g.Clone(
            name("a", place=13),
            name("b", place=21),
            False,
            properties={"k": "v", "l": "mn", "o": "pq", "r": "true"},
            location="/l/m",
        ),
    ),
    (
        "CREATE TABLE a SHALLOW CLONE parquet.`/p` PARTITIONED BY (d DATE, n DECIMAL(9, 2)) TBLPROPERTIES (k = 'v')",
        g.Clone(
            name("a", place=13),
            name("parquet", "/p", place=29),
            True,
            properties={"k": "v"},
            partitions="d DATE, n DECIMAL(9, 2)",
        ),
    ),
    ("REPLACE TABLE a SHALLOW CLONE b", g.Clone(name("a", place=14), name("b", place=30), True, creates=False, replaces=True)),
    ("ALTER TABLE t ADD CONSTRAINT c CHECK (a > (1))", g.AddConstraint(name("t", place=12), "c", "a > (1)")),
    (
        "ALTER TABLE t ADD CONSTRAINT c CHECK (start IS NULL OR (end IS NOT NULL AND end >= start))",
        g.AddConstraint(name("t", place=12), "c", "start IS NULL OR (end IS NOT NULL AND end >= start)"),
    ),
    ("ALTER TABLE t ADD CONSTRAINT c CHECK ((end > case))", g.AddConstraint(name("t", place=12), "c", "(end > case)")),
    (
        "ALTER TABLE t ADD CONSTRAINT c CHECK (coalesce(end, 1) > start)",
        g.AddConstraint(name("t", place=12), "c", "coalesce(end, 1) > start"),
    ),
    (
        "ALTER TABLE t ADD CONSTRAINT c CHECK (v:a::int > 0 AND `v`:b[0]:c IS NULL)",
        g.AddConstraint(name("t", place=12), "c", "v:a::int > 0 AND `v`:b[0]:c IS NULL"),
    ),
    ("ALTER TABLE t DROP CONSTRAINT IF EXISTS `c d`", g.DropConstraint(name("t", place=12), "c d", True)),
    ("ALTER TABLE t ADD FEATURE 'a-b'", g.AddFeature(name("t", place=12), "a-b")),
    ("ALTER TABLE t DROP FEATURE f TRUNCATE HISTORY", g.DropFeature(name("t", place=12), "f", True)),
    ("ALTER TABLE t CLUSTER BY NONE", g.ClusterBy(name("t", place=12), ())),
    ("ALTER TABLE t CLUSTER BY (a, b.`c.d`)", g.ClusterBy(name("t", place=12), ("a", "b.`c.d`"))),
    ("ALTER TABLE t ALTER COLUMN a.b SYNC IDENTITY", g.SyncIdentity(name("t", place=12), "a.b")),
    ("CREATE INDEX i ON TABLE t (a.b)", g.CreateIndex(name("t", place=24), "i", ("a.b",))),
    ("DROP INDEX i ON t", g.DropIndex(name("t", place=16), "i")),
]


@pytest.mark.parametrize(("text", "expected"), READ, ids=[text for text, _ in READ])
def test_a_statement_is_read(text: str, expected: Utility) -> None:
    assert parse_utility(text) == expected
    assert route_of(text) is not None, "the router would not ask"


@pytest.mark.parametrize(
    "condition",
    [
        "end >= 3",
        "(end >= 3)",
        "case = 1",
        "1 = case",
        "case NOT IN (1, 2)",
        "(case) > 1 AND t.case + case[0] > t.end",
        "CASE -a WHEN end THEN case ELSE end END = end",
        "CASE NOT a WHEN CASE WHEN b THEN (zorder) END THEN zorder END",
        "f(CASE WHEN a THEN end END) AND CASE f(a, b) WHEN 1 THEN t.end END",
    ],
)
def test_end_and_case_may_be_columns(condition: str) -> None:
    expected = g.Optimize(name("t", place=9), where=condition, z_order=("x",))
    assert parse_utility(f"OPTIMIZE t WHERE {condition} ZORDER BY (x)") == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "",
        "DESCRIBE t",
        "DESCRIBE HISTORY",
        "CREATE TABLE a AS SELECT 1 AS clone",
        "CREATE TABLE clone (a INT)",
        "ALTER TABLE t ADD CONSTRAINT c PRIMARY KEY (a)",
        "ALTER TABLE t ALTER COLUMN a TYPE BIGINT",
        "ALTER TABLE t ADD COLUMNS (a INT)",
        "DROP TABLE index",
        "CONVERT x",
        "OPTIMIZE 'not closed",
        "VACUUM t /* not closed",
        "VACUUM a.1.t",
    ],
)
def test_other_statements_are_spark_s(text: str) -> None:
    assert parse_utility(text) is None


FAULTS = [
    ("OPTIMIZE t FOO", 1, 11, "'FOO'"),
    ("OPTIMIZE", 1, 8, "end of input"),
    ("OPTIMIZE t\nWHERE", 2, 5, "end of input"),
    ("OPTIMIZE t\n  ZORDER BY ()", 2, 13, "')'"),
    ("OPTIMIZE t WHERE a = 1; DROP TABLE t", 1, 22, "';'"),
    ("OPTIMIZE t; DROP TABLE t", 1, 10, "';'"),
    ("OPTIMIZE 'a' 1", 1, 13, "'1'"),
    ("OPTIMIZE a-b", 1, 10, "'-'"),
    ("VACUUM t RETAIN x HOURS", 1, 16, "'x'"),
    ("VACUUM t RETAIN 1 HOURS RETAIN 2 HOURS", 1, 24, "'RETAIN'"),
    ("VACUUM t DRY", 1, 12, "end of input"),
    ("RESTORE t TO VERSION AS OF x", 1, 27, "'x'"),
    ("RESTORE t TO VERSION AS OF 1.5", 1, 27, "'1.5'"),
    ("RESTORE t TO VERSION AS OF 3L", 1, 27, "'3L'"),
    ("RESTORE t TO VERSION AS OF '²'", 1, 27, "''²''"),
    ("RESTORE t TO VERSION AS OF ²", 1, 27, "'²'"),
    (f"RESTORE t TO VERSION AS OF {'9' * 5000}", 1, 27, f"'{'9' * 5000}'"),
    (f"RESTORE t TO VERSION AS OF '{'9' * 5000}'", 1, 27, f"''{'9' * 5000}''"),
    ("VACUUM t RETAIN ² HOURS", 1, 16, "'²'"),
    ("VACUUM t RETAIN 1.5L HOURS", 1, 16, "'1.5L'"),
    ("VACUUM t RETAIN 300Y HOURS", 1, 16, "'300Y'"),
    ("VACUUM t RETAIN 1e999 HOURS", 1, 16, "'1e999'"),
    ("VACUUM t RETAIN 1e HOURS", 1, 16, "'1e'"),
    ("RESTORE t TO NOW", 1, 13, "'NOW'"),
    ("CREATE TABLE a CLONE b TBLPROPERTIES ('k')", 1, 41, "')'"),
    ("CREATE TABLE a SHALLOW CLONE b WHERE x", 1, 31, "'WHERE'"),
    ("ALTER TABLE t DROP CONSTRAINT c d", 1, 32, "'d'"),
    ("VACUUM :a", 1, 7, "':'"),
]


@pytest.mark.parametrize(("text", "line", "position", "near"), FAULTS, ids=[text[:40] for text, *_ in FAULTS])
def test_a_wrong_statement_is_pointed_at_as_spark_does(text: str, line: int, position: int, near: str) -> None:
    with pytest.raises(SyntaxFault) as fault:
        parse_utility(text)
    error = fault.value.raised()
    assert isinstance(error, ParseException) and isinstance(error, AnalysisException)
    assert (error.line, error.position) == (line, position)
    assert error.getCondition() == "PARSE_SYNTAX_ERROR" and error.getSqlState() == "42601"
    shown = str(error).splitlines()
    assert shown[0].startswith(f"[PARSE_SYNTAX_ERROR] Syntax error at or near {near}")
    assert shown[0].endswith(f"SQLSTATE: 42601 (line {line}, pos {position})")
    assert shown[1:3] == ["", "== SQL =="] and shown[3 : 3 + line] == text.splitlines()[:line]
    assert shown[3 + line] == "-" * position + "^^^"


LETTERS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.lists(LETTERS, min_size=1, max_size=3))
def test_names_in_backticks_are_data(parts: list[str]) -> None:
    text = ".".join(map(quoted, parts))
    assert parse_utility(f"OPTIMIZE {text} FULL") == g.Optimize(name(*parts, place=9), full=True)
    assert parse_utility("VACUUM IDENTIFIER(:t) DRY RUN", {"t": text}) == g.Vacuum(name(*parts, place=7), dry_run=True)


@given(LETTERS, st.sampled_from(["'", '"']))
def test_texts_in_quotes_are_data(text: str, quote: str) -> None:
    written = quote + text.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote
    assert parse_utility(f"DESC DETAIL {written}") == g.Detail(TableName((), text, 12))
    assert parse_utility("DESC DETAIL ?", [text]) == g.Detail(TableName((), text, 12))


def test_parameters_stand_for_values_by_name_and_by_position() -> None:
    expected = g.Vacuum(TableName((), "/p", 7), hours=12)
    assert parse_utility("VACUUM :p RETAIN :h HOURS", {"h": 12, "p": "/p"}) == expected
    assert parse_utility("VACUUM ? RETAIN ? HOURS", ["/p", 12]) == expected
    assert parse_utility("VACUUM ? RETAIN -? HOURS", ["/p", -12]) == expected
    assert parse_utility("VACUUM IDENTIFIER(:db || '.' || '`t.u`')", {"db": "a"}) == g.Vacuum(name("a", "t.u", place=7))
    assert parse_utility("VACUUM IDENTIFIER(? || '.t') RETAIN ? HOURS", ["a", 1]) == g.Vacuum(name("a", "t", place=7), hours=1)
    assert parse_utility("RESTORE t TO VERSION AS OF ?", [2]) == g.Restore(name("t", place=8), Version(2))


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("VACUUM ? RETAIN ? HOURS", ["/p"]),
        ("VACUUM t RETAIN :h HOURS", {"h": "1; DROP TABLE t"}),
        ("VACUUM t RETAIN :h HOURS", {"h": True}),
        ("VACUUM t RETAIN :h HOURS", {"h": float("nan")}),
        ("VACUUM t RETAIN :h HOURS", {"h": 10**400}),
        ("VACUUM ?", [1]),
        ("OPTIMIZE t WHERE a = :x", {"x": 1}),
        ("OPTIMIZE t WHERE a = v:x AND:x", {"x": 1}),
        ("VACUUM IDENTIFIER(?)", ["a..b"]),
        ("VACUUM IDENTIFIER(? || '.')", ["a"]),
        ("VACUUM IDENTIFIER('a' ||)", None),
        ("VACUUM IDENTIFIER('a' || :b)", {"b": 1}),
        ("VACUUM IDENTIFIER(concat('a', '.b'))", None),
        ("RESTORE t TO VERSION AS OF ?", ["x"]),
    ],
)
def test_parameters_that_do_not_fit_are_faults(text: str, args: Any) -> None:
    with pytest.raises(SyntaxFault):
        parse_utility(text, args)


@given(st.text())
def test_any_text_behind_a_beginning_is_read_or_a_fault(text: str) -> None:
    for beginning in ("OPTIMIZE ", "VACUUM t ", "RESTORE ", "CREATE TABLE a CLONE ", "ALTER TABLE t ADD CONSTRAINT "):
        try:
            parse_utility(beginning + text)
        except SyntaxFault as fault:
            assert 0 <= fault.place <= len(beginning + text)
            str(fault.raised())
