"""SQL text -> resolved trees: literals, coercion, names, and texts that must be refused."""

from __future__ import annotations

import datetime
import time
from decimal import Decimal

import pytest

from delta_py.errors import DeltaError, ExpressionError, SchemaMismatchError
from delta_py.expressions.parse import parse_expression, parse_predicate, to_sql
from delta_py.expressions.tree import And, Call, Cast, Column, Comparison, Expression, In, IsNull, Literal, Not, Or, StringMatch
from delta_py.types.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    StructField,
    StructType,
)

SCHEMA = StructType(
    (
        StructField("b", BYTE),
        StructField("i", INTEGER),
        StructField("l", LONG),
        StructField("f", FLOAT),
        StructField("d", DOUBLE),
        StructField("m", DecimalType(10, 2)),
        StructField("s", STRING),
        StructField("t", DATE),
        StructField("ts", TIMESTAMP),
        StructField("nt", TIMESTAMP_NTZ),
        StructField("y", BOOLEAN),
        StructField("raw", BINARY),
        StructField("Address", StructType((StructField("City", STRING), StructField("zip.code", INTEGER)))),
        StructField("two words", INTEGER),
        StructField("tick`ed", INTEGER),
        StructField("date", STRING),
        StructField("as", INTEGER),
        StructField("end", INTEGER),
        StructField("order", INTEGER),
        StructField("tags", ArrayType(STRING)),
        StructField("code", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}),
        StructField("mark", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
        StructField("lower", STRING, metadata={"__COLLATIONS": {"lower": "spark.UTF8_LCASE"}}),
    )
)
INT, LNG, TXT, TS = Column(("i",)), Column(("l",)), Column(("s",)), Column(("ts",))


def parse(sql: str, zone: str = "UTC") -> Expression:
    return parse_predicate(sql, SCHEMA, session_timezone=zone)


def utc(*parts: int) -> Literal:
    return Literal(datetime.datetime(*parts, tzinfo=datetime.UTC), TIMESTAMP)  # type: ignore[arg-type,misc]


# ---------------------------------------------------------------- how much may be asked


# An operand that is needed several times: each level may need the one below twice or more.
NEEDED_TWICE = [
    ("i between 1 and 2", "({}) between true and true"),
    ("i", "nullif({}, 1)"),
    ("i", "case {} when 1 then 2 when 3 then 4 when 5 then 6 end"),
    ("y", "({}) in (true, y)"),
    ("s", "if({} like any ('a', 'b', 'c'), 'a', 'b')"),
    ("s", "if({} not like all ('a', 'b', 'c'), 'a', 'b')"),
]


def in_itself(start: str, form: str, depth: int) -> str:
    sql = start
    for _ in range(depth):
        sql = form.format(sql)
    return sql


@pytest.mark.parametrize(("start", "form"), NEEDED_TWICE)
def test_operand_that_doubles_at_each_level_is_refused_quickly(start: str, form: str) -> None:
    parse_expression(in_itself(start, form, 4), SCHEMA)
    began = time.thread_time()
    with pytest.raises(ExpressionError, match="more than 100000 parts"):
        parse_expression(in_itself(start, form, 20), SCHEMA)
    assert time.thread_time() - began < 5


def test_long_lists_and_chains_are_parsed() -> None:
    numbers = [*range(20_000), -1]
    assert parse(f"i in ({', '.join(map(str, numbers))})") == In(INT, tuple(Literal(n, INTEGER) for n in numbers))
    assert parse(" and ".join(["i >= 0"] * 1000)) == And((Comparison(">=", INT, Literal(0, INTEGER)),) * 1000)


def test_options_of_in_may_be_any_constant_expressions() -> None:
    assert parse("i in (1, -2, 1 + 2, cast('4' as int))") == In(INT, tuple(Literal(n, INTEGER) for n in (1, -2, 3, 4)))
    assert parse("s in ('a', 'b' 'c', concat('d', 'e'))") == In(TXT, tuple(Literal(t, STRING) for t in ("a", "bc", "de")))


# ---------------------------------------------------------------- literals


@pytest.mark.parametrize(
    ("sql", "value", "data_type"),
    [
        ("1", 1, INTEGER),
        ("2147483648", 2147483648, LONG),
        ("-2147483648", -2147483648, INTEGER),
        ("-9223372036854775808", -(2**63), LONG),
        ("9223372036854775808", Decimal(2**63), DecimalType(19, 0)),
        ("1L", 1, LONG),
        ("1S", 1, SHORT),
        ("-128Y", -128, BYTE),
        ("1.5", Decimal("1.5"), DecimalType(2, 1)),
        ("1.", Decimal(1), DecimalType(1, 0)),
        (".05", Decimal("0.05"), DecimalType(2, 2)),
        ("1.50BD", Decimal("1.50"), DecimalType(3, 2)),
        ("1e2BD", Decimal(100), DecimalType(3, 0)),
        ("1.0D", 1.0, DOUBLE),
        ("1e5", 100000.0, DOUBLE),
        ("1.5F", 1.5, FLOAT),
        ("true", True, BOOLEAN),
        ("X'1f'", b"\x1f", BINARY),
        ("X'1'", b"\x01", BINARY),
        ("'x'", "x", STRING),
        ('"x"', "x", STRING),
        ("'it''s'", "it's", STRING),
        ("'it' 's'", "its", STRING),
        (r"'a\nb\\c\'d\%e\u00e9\101\q'", "a\nb\\c'd\\%eéAq", STRING),
        (r"r'a\nb'", r"a\nb", STRING),
        (r"'\uD83D\uDE00'", "😀", STRING),
        ("date'2024-02-29'", datetime.date(2024, 2, 29), DATE),
        ("timestamp'2024-02-29 01:02:03.5+01:00'", datetime.datetime(2024, 2, 29, 0, 2, 3, 500000, datetime.UTC), TIMESTAMP),
        ("timestamp_ntz'2024-02-29 01:02:03'", datetime.datetime(2024, 2, 29, 1, 2, 3), TIMESTAMP_NTZ),
    ],
)
def test_literal_has_value_and_type_of_spark(sql: str, value: object, data_type: DataType) -> None:
    assert parse_expression(sql, SCHEMA) == Literal(value, data_type)
    parsed = parse_expression(to_sql(Literal(value, data_type)), SCHEMA)
    assert parsed == Literal(value, data_type)


def test_timestamp_literal_without_zone_uses_the_session_zone() -> None:
    assert parse("ts = timestamp'2024-07-01 12:00:00'", "Europe/Berlin") == Comparison("=", TS, utc(2024, 7, 1, 10))
    assert parse("ts = '2024-07-01 12:00:00'", "America/New_York") == Comparison("=", TS, utc(2024, 7, 1, 16))
    assert parse("ts = date'2024-07-01'", "+02:00") == Comparison("=", TS, utc(2024, 6, 30, 22))
    assert parse("nt = '2024-07-01 12:00:00'", "Europe/Berlin") == Comparison(
        "=", Column(("nt",)), Literal(datetime.datetime(2024, 7, 1, 12), TIMESTAMP_NTZ)
    )


def test_unknown_time_zone_is_refused_by_name() -> None:
    with pytest.raises(ExpressionError, match="Mars/Phobos") as caught:
        parse("ts = '2024-07-01'", "Mars/Phobos")
    assert caught.value.error_class == "INVALID_TIMEZONE"


# ---------------------------------------------------------------- columns beside literals


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("i = 5", Comparison("=", INT, Literal(5, INTEGER))),
        ("i = 5L", Comparison("=", INT, Literal(5, INTEGER))),
        ("5 < i", Comparison(">", INT, Literal(5, INTEGER))),
        ("i = '5'", Comparison("=", INT, Literal(5, INTEGER))),
        ("i = 5.0", Comparison("=", INT, Literal(5, INTEGER))),
        ("i = 5.0D", Comparison("=", INT, Literal(5, INTEGER))),
        ("b = 127", Comparison("=", Column(("b",)), Literal(127, BYTE))),
        ("m = 1.5", Comparison("=", Column(("m",)), Literal(Decimal("1.50"), DecimalType(10, 2)))),
        ("m > 1", Comparison(">", Column(("m",)), Literal(Decimal("1.00"), DecimalType(10, 2)))),
        ("f = 0.5", Comparison("=", Column(("f",)), Literal(0.5, FLOAT))),
        ("d = 1", Comparison("=", Column(("d",)), Literal(1.0, DOUBLE))),
        ("t > '2024-01-01'", Comparison(">", Column(("t",)), Literal(datetime.date(2024, 1, 1), DATE))),
        ("l = null", Comparison("=", LNG, Literal(None, LONG))),
        ("y = 'true'", Comparison("=", Column(("y",)), Literal(True, BOOLEAN))),
    ],
)
def test_literal_gets_the_columns_type_where_that_is_exact(sql: str, expected: Expression) -> None:
    assert parse(sql) == expected


@pytest.mark.parametrize(
    ("sql", "compared_as"),
    [
        ("i > 1.5", DecimalType(11, 1)),
        ("b = 300", INTEGER),
        ("i < 2147483648", LONG),
        ("f = 0.1", DOUBLE),
        ("l = 1.0D", DOUBLE),
        ("m = 1.555", DecimalType(11, 3)),
        ("s = 5", LONG),
        ("s > date'2024-01-01'", DATE),
    ],
)
def test_column_is_cast_if_its_type_cannot_express_the_literal(sql: str, compared_as: DataType) -> None:
    tree = parse(sql)
    assert isinstance(tree, Comparison)
    assert isinstance(tree.left, Cast)
    assert tree.left.data_type == compared_as
    assert isinstance(tree.right, Literal)
    assert tree.right.data_type == compared_as


def test_comparison_of_date_with_invalid_text_names_the_text() -> None:
    with pytest.raises(ExpressionError, match="yesterday") as caught:
        parse("t = 'yesterday'")
    assert caught.value.error_class == "CAST_INVALID_INPUT"


def test_char_column_is_compared_with_padded_text() -> None:
    assert parse("code = 'ab'") == Comparison("=", Column(("code",)), Literal("ab   ", STRING))
    assert parse("code in ('ab', 'x')") == In(Column(("code",)), (Literal("ab   ", STRING), Literal("x    ", STRING)))
    mark = Call("rpad", (Column(("mark",)), Literal(5, INTEGER), Literal(" ", STRING)))
    assert parse("code < mark") == Comparison("<", Column(("code",)), mark)
    assert parse("mark <=> code") == Comparison("<=>", mark, Column(("code",)))


def test_column_with_a_collation_is_refused() -> None:
    with pytest.raises(ExpressionError, match="lower with a collation"):
        parse("lower = 'a'")


def test_cast_of_timestamp_to_date_happens_in_the_sessions_zone() -> None:
    tree = parse("cast(ts as date) = date'2024-01-01'", "Europe/Berlin")
    local = Call("from_utc_timestamp", (TS, Literal("Europe/Berlin", STRING)))
    assert tree == Comparison("=", Cast(local, DATE), Literal(datetime.date(2024, 1, 1), DATE))
    assert parse("cast(ts as date) = date'2024-01-01'") == Comparison(
        "=", Cast(TS, DATE), Literal(datetime.date(2024, 1, 1), DATE)
    )


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("sql", "path"),
    [
        ("ADDRESS.city", ("Address", "City")),
        ("`address`.`CITY`", ("Address", "City")),
        ("address.`zip.code`", ("Address", "zip.code")),
        ("`two words`", ("two words",)),
        ("`tick``ed`", ("tick`ed",)),
        ("date", ("date",)),
        ("DATE", ("date",)),
        ("as", ("as",)),
        ("END", ("end",)),
        ("order", ("order",)),
    ],
)
def test_column_ignores_case_and_keeps_the_schema_spelling(sql: str, path: tuple[str, ...]) -> None:
    assert parse_expression(sql, SCHEMA) == Column(path)
    assert parse_expression(to_sql(Column(path)), SCHEMA) == Column(path)


@pytest.mark.parametrize("sql", ["nothere = 1", "address.street = 'x'", "i.x = 1", "tags.x = 1", "`Address.City` = 'x'"])
def test_unknown_column_is_refused_by_name(sql: str) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        parse(sql)
    assert caught.value.error_class == "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"


# ---------------------------------------------------------------- grammar


@pytest.mark.parametrize(
    ("sql", "same"),
    [
        ("i = 1 or i = 2 and l = 3", "(i = 1) or ((i = 2) and (l = 3))"),
        ("not i = 1 and l = 2", "(not (i = 1)) and (l = 2)"),
        ("! y", "not y"),
        ("i <> 1", "not (i = 1)"),
        ("i != 1", "not (i = 1)"),
        ("i == 1", "i = 1"),
        ("i !> 1", "i <= 1"),
        ("i between 1 and 2 or y", "((i >= 1) and (i <= 2)) or y"),
        ("i not between 1 and 2", "not ((i >= 1) and (i <= 2))"),
        ("i + 2 * 3 - 1 = 4", "((i + (2 * 3)) - 1) = 4"),
        ("i < 2 = true", "(i < 2) = true"),
        ("s || 'a' || 'b' = 'c'", "((s || 'a') || 'b') = 'c'"),
        ("-i * 2 = 4", "((-i) * 2) = 4"),
        ("i is not distinct from l", "i <=> l"),
        ("i is distinct from l", "not (i <=> l)"),
        ("y is true", "y <=> true"),
        ("y is not unknown", "y is not null"),
        ("i in (1, 2) -- a comment", "i in (1, 2)"),
        ("i /* a /* nested */ comment */ = 1", "i = 1"),
        ("case i when 1 then true else false end", "case when i = 1 then true else false end"),
        ("substring(s from 2 for 3) = 'x'", "substr(s, 2, 3) = 'x'"),
        ("trim(both 'x' from s) = 'a'", "trim('x', s) = 'a'"),
        ("extract(year from t) = 2024", "year(t) = 2024"),
        ("int(s) = 4", "cast(s as int) = 4"),
        ("s::int = 4", "cast(s as int) = 4"),
        ("nvl(i, 0) = 1", "coalesce(i, 0) = 1"),
        ("isnull(i)", "i is null"),
        ("i in (l, 2)", "cast(i as bigint) = l or cast(i as bigint) = 2L"),
        ("s like any ('a%', 'b%')", "s like 'a%' or s like 'b%'"),
        ("s like 'a!%%' escape '!'", r"s like 'a\%%'"),
        ("s not like any ('a%', 'b%')", "not (s like 'a%') or not (s like 'b%')"),
        ("s not like all ('a%', 'b%')", "not (s like 'a%') and not (s like 'b%')"),
        ("s like 'a' 'b%'", "s like 'ab%'"),
        ("i = l < true", "(i = l) < true"),
        ("i = l is null", "(i = l) is null"),
        ("i < 2 between false and true", "(i < 2) between false and true"),
        ("i < l in (true)", "(i < l) in (true)"),
        ("s || i + 1 = 5", "((s || i) + 1) = 5"),
        ("i - 1 - 1 = 1", "((i - 1) - 1) = 1"),
        ("not not y", "not (not y)"),
        ("!y and y", "(not y) and y"),
        ("i -1 = 2", "i - (1) = 2"),
        ("-1::string = '-1'", "cast(-1 as string) = '-1'"),
        ("case when as is null then end else 1 end = 1", "case when `as` is null then `end` else 1 end = 1"),
        ("trim(both from s) = 'a'", "trim(s) = 'a'"),
        ("i % 2 * 3 = 1", "((i % 2) * 3) = 1"),
        ("case when i = 1 then 2 end + 1 = 3", "(case when i = 1 then 2 end) + 1 = 3"),
        ("i = 1 -- a\n and y", "i = 1 and y"),
        ("Address.City = 'x'", "`address`.`city` = 'x'"),
        ("left(s, 1) = 'a'", "LEFT(s, 1) = 'a'"),
        (r"s like '\\\\!%' escape '!'", r"s like '\\\\\\\\\%'"),
    ],
)
def test_text_means_the_same_as_its_longer_form(sql: str, same: str) -> None:
    assert parse(sql) == parse(same)


def test_each_condition_becomes_its_node() -> None:
    assert parse("s like 'a%'") == StringMatch("like", TXT, "a%")
    assert parse("s is not null") == Not(IsNull(TXT))
    assert parse("i in (1, null, 3L)") == In(INT, (Literal(1, INTEGER), Literal(None, INTEGER), Literal(3, INTEGER)))
    assert parse("i not in (1)") == Not(In(INT, (Literal(1, INTEGER),)))
    assert parse("y and s = 'a' and i <=> 1") == And(
        (Column(("y",)), Comparison("=", TXT, Literal("a", STRING)), Comparison("<=>", INT, Literal(1, INTEGER)))
    )
    assert parse("y or y") == Or((Column(("y",)), Column(("y",))))
    assert parse("s rlike 'a.*'") == Call("rlike", (TXT, Literal("a.*", STRING)))
    assert parse("if(y, i, 0) = 1") == Comparison(
        "=", Call("if", (Column(("y",)), INT, Literal(0, INTEGER))), Literal(1, INTEGER)
    )


def test_constants_are_computed() -> None:
    assert parse("t = date'2024-02-28' + 1") == Comparison("=", Column(("t",)), Literal(datetime.date(2024, 2, 29), DATE))
    assert parse("i = -(2 + 3)") == Comparison("=", INT, Literal(-5, INTEGER))
    assert parse("s = upper('a')") == Comparison("=", TXT, Literal("A", STRING))


def test_very_many_options_of_in_are_fine() -> None:
    tree = parse(f"l in ({', '.join(map(str, range(20_000)))})")
    assert isinstance(tree, In)
    assert len(tree.options) == 20_000
    assert {option.data_type for option in tree.options} == {LONG}


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("frobnicate(i) = 1", "frobnicate"),
        ("i in (select 1)", "subquery"),
        ("exists (select 1)", "subquery"),
        ("(i, l) = (1, 2)", "row of values"),
        ("t + interval 1 day > t", "INTERVAL"),
        ("s like s", "constant"),
        ("tags = tags", "array<string>"),
        ("cast(d as string) = '1'", "cast(double as string)"),
        ("cast(tags as string) = 'a'", "CAST"),
        ("substring(s, i) = 'a'", "constant"),
        ("count(*) > 1", "aggregate"),
        ("cast(i as frob) = 1", "frob"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(sql: str, what: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(sql)
    assert what in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        " ",
        ";",
        "i =",
        "= 1",
        "i = 1;",
        "i = 1; drop table t",
        "(i = 1",
        "i = 1)",
        "i = 'abc",
        "i = `abc",
        "i /* = 1",
        "i = 1 2",
        "i in ()",
        "i in (1,",
        "i between 1",
        "i not 1",
        "case when y then 1",
        "case end",
        "cast(i as",
        "cast(i int)",
        "i = 200Y",
        "i = 1e400",
        "i = 1e999999999999",
        "i = 1e99999999BD",
        "i = " + "9" * 39,
        "i = " + "9" * 100_000,
        "i = X'zz'",
        "i = date'2024-13-01'",
        r"s = '\uD83D'",
        r"s = '\UFFFFFFFF'",
        "s = '\ud800'",
        "s like 'a' escape 'ab'",
        r"s like r'a\b'",
        "s like 'a!b' escape '!'",
        "i",
        "i + 1",
        "t",
        "i = y",
        "t = 1",
        "raw + 1 = 2",
        "y + 1 = 2",
        "not i",
        "i and y",
        "if(i, 1, 2) = 1",
        "coalesce() = 1",
        "greatest(i) = 1",
        "abs() = 1",
        "abs(i, i) = 1",
        "round(i, l) = 1",
        "cast(i as decimal(39, 0)) = 1",
        "cast(i as decimal(5, 6)) = 1",
        "cast(i as decimal(0)) = 1",
        "cast(i as int(5)) = 1",
        "cast(t as int) = 1",
        "i . s = 1",
        "a.b.c.d.e = 1",
        ":p = 1",
        "? = 1",
        "@v = 1",
        "${x} = 1",
        "{{x}} = 1",
        "x -> x",
        "i = 1 order by i",
        "select 1",
        "i is",
        "i is not",
        "i in (1,, 2)",
        "abs(i,) = 1",
        "abs(, i) = 1",
        "i in [1, 2]",
        "i {# hidden #} = 1",
        "i > 1.5k",
        "i > 1.t or i = 2",
        "i /*+ hint */ = 1",
        "i = 1 -- a \\\n and y",
        "i between symmetric 1 and 2",
        "case when y true end",
        "i not null",
        "i isnull",
        "abs(i i) = 1",
        "n'x' = s",
        "tags[] = 'x'",
        "tags[0:1] = 'x'",
        "{i} = 1",
        "i ?? 1 = 1",
        "s ~~ 'a'",
        "i ** 2 = 1",
        "i := 1",
        "s:a = 'x'",
        "s at time zone 'UTC' = 'a'",
        "cast(i as int8) = 1",
        "i = any (1)",
        "i = 1 as x",
        "abs(distinct i) = 1",
        "abs(i) over () = 1",
        "abs(i => 1) = 1",
        "abs(i) filter (where y) = 1",
        "x.y.abs(i) = 1",
        "int '5' = 1",
        "\x00",
        "i = 1 \x00",
        "😀 = 1",
        "(" * 5000,
        "(" * 200 + "i = 1" + ")" * 200,
        "not " * 5000 + "y",
        "- " * 5000 + "i = 1",
        "i" + " + i" * 5000 + " = 1",
        "case when y then " * 500 + "true" + " end" * 500,
        "abs(" * 1000 + "i" + ")" * 1000 + " = 1",
    ],
)
def test_text_that_is_no_condition_is_refused_with_a_delta_error(sql: str) -> None:
    with pytest.raises((ExpressionError, SchemaMismatchError)) as caught:
        parse(sql)
    assert isinstance(caught.value, DeltaError)
    assert len(str(caught.value)) < 1000


def test_long_chains_of_and_and_or_are_flat() -> None:
    tree = parse(" or ".join(f"i = {n}" for n in range(5000)))
    assert isinstance(tree, Or)
    assert len(tree.operands) == 5000


def test_error_names_the_place_in_the_text() -> None:
    with pytest.raises(ExpressionError, match=r"'oops' at character 7 is not expected") as caught:
        parse("i = 1 oops")
    assert caught.value.error_class == "PARSE_SYNTAX_ERROR"
