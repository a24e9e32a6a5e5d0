"""Rules that Spark computes: what a table's rules may contain, and that Spark only gets text that was printed from the checked
tree.
"""

from __future__ import annotations

import re
import time

import pytest

from delta_py.errors import DeltaError, ExpressionError
from delta_py.expressions.functions.function_table import ALIASES, FUNCTIONS
from delta_py.expressions.sql_text.spark_rules import FUNCTIONS as BUILT_INS
from delta_py.expressions.sql_text.spark_rules import checked_default, checked_sql, spark_type_name
from delta_py.types.schema import (
    BOOLEAN,
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    ArrayType,
    MapType,
    StructField,
    StructType,
)

POINT = StructType((StructField("X", LONG), StructField("hash", LONG)))
SCHEMA = StructType(
    (
        StructField("id", LONG),
        StructField("Name", STRING),
        StructField("d", DATE),
        StructField("ts", TIMESTAMP),
        StructField("a", ArrayType(INTEGER)),
        StructField("m", MapType(STRING, INTEGER)),
        StructField("s", POINT),
        StructField("ss", ArrayType(POINT)),
        StructField("b", BOOLEAN),
        StructField("we`ird", LONG),
        StructField("v${env:HOME}", LONG),
        StructField("kana", STRING, True, {"__COLLATIONS": {"kana": "spark.UTF8_LCASE"}}),
    )
)


@pytest.mark.parametrize(
    ("sql", "printed"),
    [
        ("hash(ID) % 2 = 0", "((system.builtin.`hash`(`id`) % 2) = 0)"),
        ("HASH(id) IS NOT NULL", "(NOT (system.builtin.`hash`(`id`) IS NULL))"),
        ("sha2(name, 256)", "system.builtin.`sha2`(`Name`, 256)"),
        ("d + INTERVAL 1 DAY < date'2020-01-01'", "((`d` + (INTERVAL 1 DAY)) < DATE'2020-01-01')"),
        ("d - interval '1-2' year to month", "(`d` - (INTERVAL '1-2' YEAR TO MONTH))"),
        ("d - interval -1 day 2 hours", "(`d` - (INTERVAL -1 DAY 2 HOURS))"),
        ("ts + interval '1 day 2 hours'", "(`ts` + (INTERVAL '1 day 2 hours'))"),
        ("s.x > 0", "(`s`.`X` > 0)"),
        ("`we``ird` > 0", "(`we``ird` > 0)"),
        ("id - 1 - 2 * 3", "(`id` - 1 - (2 * 3))"),
        ("id - (1 - 2)", "(`id` - (1 - 2))"),
        ("b OR b AND NOT b", "(`b` OR (`b` AND (NOT `b`)))"),
        ("id BETWEEN 1 AND 2 OR id IN (3, -4)", "(system.builtin.`between`(`id`, 1, 2) OR (`id` IN (3, (-4))))"),
        ("CASE id WHEN 1 THEN 2 ELSE 3 END", "CASE `id` WHEN 1 THEN 2 ELSE 3 END"),
        ("cast(ts AS timestamp) <=> ts", "(cast(`ts` AS TIMESTAMP_LTZ) <=> `ts`)"),
        ("name::decimal(10, 2)", "cast(`Name` AS DECIMAL(10,2))"),
        ("cast(a AS array<struct<`x``y`: int>>) IS NULL", "(cast(`a` AS ARRAY<STRUCT<`x``y`: INT>>) IS NULL)"),
        ("extract(YEAR FROM d)", "system.builtin.`date_part`('YEAR', `d`)"),
        ("trim(LEADING 'x' FROM name)", "system.builtin.`ltrim`('x', `Name`)"),
        ("position('a' IN name)", "system.builtin.`locate`('a', `Name`)"),
        ("a[0] + m['x']", "(`a`[0] + `m`['x'])"),
        ("name LIKE 'a%' AND name NOT LIKE 'b#%' ESCAPE '#'", None),
        ("struct(s.x).col1", "(system.builtin.`struct`(`s`.`X`)).`col1`"),
    ],
)
def test_expression_prints_qualified_builtins_and_parentheses(sql: str, printed: str | None) -> None:
    text_of_rule = checked_sql(sql, SCHEMA).text
    assert printed is None or text_of_rule == printed


def test_columns_are_told_in_the_schemas_spelling() -> None:
    assert checked_sql("hash(NAME, S.x) = hash(s.hash, Name)", SCHEMA).columns == (("Name",), ("s", "X"), ("s", "hash"))


def test_operand_repeated_for_many_patterns_is_refused_quickly() -> None:
    sql = "name"
    for _ in range(25):
        sql = f"if({sql} like any ('a', 'b', 'c'), 'a', 'b')"
    began = time.thread_time()
    with pytest.raises(ExpressionError, match="too long"):
        checked_sql(f"hash({sql}) = 1", SCHEMA)
    with pytest.raises(ExpressionError, match="too long"):
        checked_sql(f"hash(name) in ({'1, ' * 1_000_000}1)", SCHEMA)
    assert time.thread_time() - began < 5


def test_lambda_variables_get_names_of_our_own_and_hide_columns() -> None:
    inner = "system.builtin.`exists`(`ss`, __pydelta_x5_0 -> (__pydelta_x5_0.`X` > __pydelta_x2_0))"
    checked_rule = checked_sql("forall(a, id -> ID > 0 AND exists(ss, e -> e.X > id))", SCHEMA)
    assert checked_rule.text == f"system.builtin.`forall`(`a`, __pydelta_x2_0 -> ((__pydelta_x2_0 > 0) AND {inner}))"
    assert checked_rule.columns == (("a",), ("ss",))
    two = checked_sql("aggregate(a, 0, (acc, x) -> acc + x)", SCHEMA).text
    assert two == "system.builtin.`aggregate`(`a`, 0, (__pydelta_x2_0, __pydelta_x2_1) -> (__pydelta_x2_0 + __pydelta_x2_1))"


def test_variable_of_a_lambda_is_unknown_outside_of_it() -> None:
    with pytest.raises(DeltaError, match="Column x is not in the schema"):
        checked_sql("forall(a, x -> x > 0) AND x > 0", SCHEMA)


@pytest.mark.parametrize(
    "value", ["it's", "${env:HOME}", "back\\slash", "' OR 1=1 --", "\n", "ü", "`", '"', "/* */", "\0", "$", "{"]
)
def test_text_that_is_not_plain_is_printed_as_its_bytes(value: str) -> None:
    literal = "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    printed = checked_sql(f"hash({literal})", SCHEMA).text
    assert printed == f"system.builtin.`hash`(cast(X'{value.encode().hex().upper()}' AS STRING))"


@pytest.mark.parametrize(
    "sql",
    [
        # functions that are not in the list, however they are spelled
        *("reflect('java.lang.Runtime', 'x')", "java_method('a', 'b')", "try_reflect('a', 'b')", "`reflect`('a', 'b')"),
        *("system.builtin.reflect('a', 'b')", "`system.builtin.reflect`('a', 'b')", "session.hash(id)", "default.mine(id)"),
        *("id.hash(1)", "s.hash(1)", "hash(id).reflect('a')", "mine(id)", "identifier('reflect')", "getvariable('x')"),
        *("rand()", "uuid()", "shuffle(a)", "current_user()", "session_user()", "user()", "version()", "now()", "current_date()"),
        *("current_timestamp()", "unix_timestamp()", "to_unix_timestamp()", "input_file_name()", "spark_partition_id()"),
        *(
            "monotonically_increasing_id()",
            "secret('a', 'b')",
            "aes_encrypt(name, 'k')",
            "xpath(name, 'a')",
            "from_xml(name, 'a')",
        ),
        *("count(id)", "max(id)", "explode(a)", "row_number()", "raise_error('x')", "sequence(1, id)"),
        # names without parentheses that are functions or variables in Spark
        *("current_date", "current_user", "user", "session.variable", "hash(current_timestamp)"),
        # anything more than an expression over columns
        *(
            "(SELECT 1)",
            "id IN (SELECT 1)",
            "EXISTS (SELECT 1)",
            "hash(*)",
            "count(DISTINCT id)",
            "id OVER ()",
            "hash(id) FILTER (b)",
        ),
        *("(id, 1) = (1, 2)", "struct(1 AS x)", "hash(x => id)", "x -> 1", "forall(a, (x, x) -> x > 0)", ":p", "?", "@@x", "$id"),
        *("id; DROP TABLE t", "id /*+ hint */ + 1", "{d '2020-01-01'}", "id COLLATE x", "id AT TIME ZONE 'x'", "", "hash(id"),
        # constants of the clock, and texts that hide one
        *(
            "timestamp'now'",
            "date'today'",
            "date'tomorrow UTC'",
            "timestamp_ntz'epoch'",
            "x'f'' OR 1'",
            "1e400",
            "interval ';' day",
        ),
        *("interval '${env:HOME}' day", "extract(`x'y` FROM d)", "name LIKE 'a' ESCAPE '\\''", "name LIKE 'a' ESCAPE 'ab'"),
        # names
        *("nope = 1", "s.nope", "a.x", "`v${env:HOME}` > 0", "struct(id).`${env:HOME}`", "kana = 'a'"),
        *("cast(a AS array<variant>)", "cast(s AS struct<`${env:HOME}`: int>)"),
        # too large
        *("hash(" * 120 + "id" + ")" * 120, "(" * 3000 + "id" + ")" * 3000, " + ".join(["hash(id)"] * 20_000)),
    ],
)
def test_everything_else_is_refused(sql: str) -> None:
    with pytest.raises(DeltaError):
        checked_sql(sql, SCHEMA)


def test_printed_expression_has_no_unsafe_quote_or_variable() -> None:
    """Whatever the text, no part of it can end a literal, or be replaced by Spark's parser."""
    hostile = "concat('a\\'', r'\\', \"'\", '${x}', 'b') || `we``ird` || x'00' || date'2020-01-01 00:00'"
    printed = checked_sql(hostile, SCHEMA).text
    assert not re.search(r"\\|\$\{|\"|--|/\*|;", printed)
    assert printed.count("'") % 2 == 0


def test_type_names_do_not_depend_on_the_session() -> None:
    assert [spark_type_name(kind) for kind in (TIMESTAMP, LONG, STRING)] == ["TIMESTAMP_LTZ", "BIGINT", "STRING"]
    with pytest.raises(ExpressionError):
        spark_type_name(ArrayType(LONG))


def test_builtins_run_no_code_and_depend_only_on_arguments() -> None:
    forbidden = """
        reflect java_method try_reflect input_file_name input_file_block_start input_file_block_length rand randn random randstr
        uniform uuid shuffle monotonically_increasing_id spark_partition_id current_user session_user user current_catalog
        current_database current_schema current_date curdate current_timestamp current_time now localtimestamp current_timezone
        version secret aes_encrypt aes_decrypt try_aes_decrypt raise_error assert_true xpath from_xml schema_of_xml from_avro
        read_files stack explode posexplode inline count sum collect_list session_window window python_worker_info
    """
    assert sorted(BUILT_INS & set(forbidden.split())) == []


def test_functions_of_the_evaluator_are_also_spark_builtins() -> None:
    """A rule that needs Spark for one function still has the others; those of the clock are no functions for rules."""
    here_only = {"element", "get_field", "parse_date", "parse_timestamp", "try_parse_timestamp", "timestamp_in_zone"}
    clock = {"current_date", "current_timestamp", "current_timezone", "localtimestamp", "curdate", "now"}
    operators = {"div", "ilike"}  # these have their own grammar
    named = {name for name in (*FUNCTIONS, *ALIASES) if name.isidentifier()}
    assert sorted(named - here_only - clock - operators - BUILT_INS) == []


def test_table_of_our_own_functions_does_not_grow() -> None:
    """Spark computes rules that need another function: add its name to the list of spark_rules.py. Defaults are not computed by
    Spark."""
    assert len(FUNCTIONS) <= 153
    assert len(ALIASES) <= 22


@pytest.mark.parametrize(
    ("sql", "printed"),
    [
        ("concat('no', 'ne')", "system.builtin.`concat`('no', 'ne')"),
        ("6 * 7", "(6 * 7)"),
        ("NULL", "NULL"),
        ("current_date", "system.builtin.`current_date`()"),
        ("CURRENT_TIMESTAMP()", "system.builtin.`current_timestamp`()"),
        ("date_add(now(), 1)", "system.builtin.`date_add`(system.builtin.`now`(), 1)"),
        ("array(1, 2)", "system.builtin.`array`(1, 2)"),
        ("CURRENT_USER", "system.builtin.`current_user`()"),
        ("upper(session_user())", "system.builtin.`upper`(system.builtin.`session_user`())"),
        ("current_database()", "system.builtin.`current_database`()"),
    ],
)
def test_default_may_use_builtins_the_clock_and_the_session(sql: str, printed: str) -> None:
    assert checked_default(sql) == printed


@pytest.mark.parametrize(
    "sql",
    [
        "reflect('java.lang.System', 'setProperty', 'a', 'b')",
        "java_method('java.lang.System', 'exit', 1)",
        "try_reflect('java.lang.System', 'exit', 1)",
        "(SELECT max(v) FROM private)",
        "exists(SELECT 1)",
        "of_the_session()",
        "`current_date` + id",
        "now(1)",
        "system.session.my_variable",
        "my_variable",
        "rand()",
        "uuid()",
        "current_user(1)",
        "session.current_user",
        "input_file_name()",
        "'a'; DROP TABLE t",
    ],
)
def test_default_of_anything_else_is_refused(sql: str) -> None:
    with pytest.raises(DeltaError):
        checked_default(sql)


def test_rule_may_not_ask_the_user() -> None:
    with pytest.raises(DeltaError):
        checked_sql("current_user() = 'x'", SCHEMA)


def test_rule_may_not_ask_the_clock() -> None:
    with pytest.raises(DeltaError):
        checked_sql("d < current_date()", SCHEMA)
