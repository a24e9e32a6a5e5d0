"""SQL of deltalake's users in the dialects of Spark and duckdb."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_py.as_deltalake import DeltaTable, write_deltalake
from delta_py.as_deltalake.exceptions import DeltaError
from delta_py.as_deltalake.operations.merger import TableMerger
from delta_py.as_deltalake.sql_dialects import duckdb_sql, spark_sql
from delta_py.errors import ExpressionError


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("price > 5 AND day = 'a'", "price > 5 AND day = 'a'"),
        ('"sold items" = 1', "`sold items` = 1"),
        ('s."a""b" = `c``d`', 's.`a"b` = `c``d`'),
        ("x = '\"no name\"'", "x = '\"no name\"'"),
        ("x = 'it''s'", r"x = 'it\'s'"),
        (r"x = 'a\b'", r"x = 'a\\b'"),
        ("sold + int'10'", "sold + CAST('10' AS int)"),
        ("d >= date'2024-05-01' OR t < TIMESTAMP '2024'", "d >= date'2024-05-01' OR t < TIMESTAMP '2024'"),
        ("x IN ('a', 'b') -- it's", "x IN ('a', 'b') -- it's"),
        ("log(abs(log(x))) > 1 AND log(2, x) = 3", "log10(abs(log10(x))) > 1 AND log(2, x) = 3"),
        ("concat(a, 'log(x)') = catalog(x)", "concat_ws('', a, 'log(x)') = catalog(x)"),
        ('"initcap(x)" = \'items[1]\' -- substr(x, 0)', "`initcap(x)` = 'items[1]' -- substr(x, 0)"),
        ("m['k'] = substr(x, 1, 2)", "m['k'] = substr(x, 1, 2)"),
        ("7.0 / 2 > x / 2 -- 7 / 2", "7.0 / 2 > x / 2 -- 7 / 2"),
    ],
)
def test_conditions_become_sql_of_spark(sql: str, expected: str) -> None:
    assert spark_sql(sql) == expected


@pytest.mark.parametrize(
    ("sql", "cure"),
    [
        ("items[1] = 2", "element_at"),
        ("size(items) > 0 AND m['a'] [ 12 ] = 2", "element_at"),
        ("regexp_replace(t, 'a', 'b') = 'x'", "whole text"),
        ("EXTRACT( dow FROM day) = 1", "dayofweek"),
        ("substr(t, 0, 2) = 'a'", "1 as the begin"),
        ("substring(concat(t, u), -2) = 'a'", "right"),
        ("INITCAP (t) = 'A'", "upper"),
        ("id = 7 / 2", "a div b"),
    ],
)
def test_functions_with_other_results_are_refused(sql: str, cure: str) -> None:
    with pytest.raises(ExpressionError, match=cure):
        spark_sql(sql)


def test_division_of_whole_numbers_is_refused_in_conditions(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [7, 8], "x": [7.0, 8.0], "part": ["a", "b"]}))
    table = DeltaTable(tmp_path)
    for sql in ("id / 2 = 3", "x > 0 AND 3 = (id + 1) / 2"):
        with pytest.raises(DeltaError, match="a div b"):
            table.delete(sql)
        with pytest.raises(DeltaError, match="a div b"):
            table.update({"part": "'c'"}, predicate=sql)
        with pytest.raises(DeltaError, match="a div b"):
            write_deltalake(tmp_path, pa.table({"id": [7], "x": [7.0], "part": ["a"]}), mode="overwrite", predicate=sql)
    assert table.version() == 0
    table.delete("x / 2 = 3.5 AND id / 2.0 = 3.5 AND id div 2 = 3")
    assert table.to_pyarrow_table()["id"].to_pylist() == [8]


def test_division_of_whole_numbers_is_refused_in_new_values(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "a": [7, 8], "x": [1.0, 2.0]})
    write_deltalake(tmp_path, rows, configuration={"delta.enableChangeDataFeed": "true"})
    table, source = DeltaTable(tmp_path), pa.table({"id": [1], "b": [2]})

    def merger() -> TableMerger:
        return table.merge(source, "t.id = s.id", "s", "t")

    for change in (
        lambda: table.update({"x": "a / id"}),
        lambda: merger().when_matched_update({"x": "t.a / s.b"}),
        lambda: merger().when_matched_update({"x": "a / b"}),
        lambda: merger().when_matched_delete("a / b > 3"),
        lambda: table.merge(source, "t.id = s.id AND a / b = 3", "s", "t"),
        lambda: table.load_cdf(0, predicate="a / id = 4"),
        lambda: table.load_cdf(0, predicate="_commit_version / 2 = 0"),
    ):
        with pytest.raises(DeltaError, match="a div b"):
            change()
    assert table.version() == 0
    merger().when_matched_update({"x": "t.a / 2.0 + s.b"}, predicate="a div b = 3").execute()
    assert sorted(table.to_pyarrow_table()["x"].to_pylist()) == [2.0, 5.5]
    assert pa.table(table.load_cdf(0, predicate="a / 2.0 = 4")).num_rows == 1


def test_backticks_become_the_quotes_of_duckdb() -> None:
    assert duckdb_sql('SELECT `a"b`, "c" FROM t WHERE x = \'`\'') == 'SELECT "a""b", "c" FROM t WHERE x = \'`\''
