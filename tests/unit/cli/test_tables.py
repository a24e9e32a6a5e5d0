"""Tables for people: at their full width, folded for a terminal, or as lists."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from pydelta_cli.formats.text_tables import table_text

NAMES = ["id", "name"]
ROWS = [["1", "日本"], ["20", None], [None, "\x1b[1m"]]


def test_table_has_columns_of_their_width() -> None:
    assert table_text(NAMES, ROWS, None, is_styled=False).splitlines() == [
        "id     name",
        "--------------",
        "1      日本",
        "20     null",
        "null   \\x1b[1m",
    ]


def test_styles_are_for_the_header_and_nulls_alone() -> None:
    lines = table_text(NAMES, [["null", None]], None, is_styled=True).splitlines()
    assert lines == ["\x1b[1mid     name\x1b[0m", "-----------", "null   \x1b[2mnull\x1b[0m"]


@pytest.mark.parametrize("width", [41, 50, 80])
def test_widest_column_is_folded_so_that_the_table_fits(width: int) -> None:
    text, number = "x" * 200, "7" * 10
    lines = table_text(["a", "text", "b"], [["1", text, number], ["2", "short", ""]], width, is_styled=False).splitlines()
    left = width - len(number) - 1 - 2 * 3
    assert max(map(len, lines)) == width and lines[1] == "-" * width
    assert lines[2] == f"1   {'x' * left}   {number}" and lines[3] == f"    {'x' * left}"
    assert "".join(line.replace(number, "")[4:].strip() for line in lines[2:-1]) == text and lines[-1] == "2   short"


def test_wide_characters_are_folded_whole() -> None:
    lines = table_text(["a", "text"], [["1", "日" * 30]], 40, is_styled=False).splitlines()
    assert max(map(cell_len, lines)) <= 40 and sum(line.count("日") for line in lines) == 30


def test_rows_are_lists_where_folding_is_not_enough() -> None:
    lines = table_text(["a", "text"], [["x" * 30, "y" * 30], ["1", None]], 40, is_styled=True).splitlines()
    assert lines == ["-- 1", f"a     {'x' * 30}", f"text  {'y' * 30}", "-- 2", "a     1", "text  null"]


@pytest.mark.parametrize(("names", "rows"), [([], [[], []]), (["name" * 20], [])])
def test_table_without_columns_or_rows(names: list[str], rows: list[list[str]]) -> None:
    assert "".join(table_text(names, rows, 30, is_styled=False).split()).strip("-") == "".join(names)
