"""Tables for people: at their full width, folded for a terminal, or as lists."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from pydelta_cli.formats.text_tables import Column, table_text

COLUMNS = [Column("id"), Column("name")]
ROWS = [["1", "日本"], ["20", None], [None, "\x1b[1m"]]


def columns(*names: str) -> list[Column]:
    return [Column(name) for name in names]


def test_table_has_columns_of_their_width() -> None:
    assert table_text(COLUMNS, ROWS, None, is_styled=False).splitlines() == [
        "id     name",
        "--------------",
        "1      日本",
        "20     null",
        "null   \\x1b[1m",
    ]


def test_styles_are_for_the_header_and_nulls_alone() -> None:
    lines = table_text(COLUMNS, [["null", None]], None, is_styled=True).splitlines()
    assert lines == ["\x1b[1mid     name\x1b[0m", "-----------", "null   \x1b[2mnull\x1b[0m"]


@pytest.mark.parametrize("width", [41, 50, 80])
def test_widest_column_is_folded_so_that_the_table_fits(width: int) -> None:
    text, number = "x" * 200, "7" * 10
    lines = table_text(columns("a", "text", "b"), [["1", text, number], ["2", "short", ""]], width, is_styled=False).splitlines()
    left = width - len(number) - 1 - 2 * 3
    assert max(map(len, lines)) == width and lines[1] == "-" * width
    assert lines[2] == f"1   {'x' * left}   {number}" and lines[3] == f"    {'x' * left}"
    assert "".join(line.replace(number, "")[4:].strip() for line in lines[2:-1]) == text and lines[-1] == "2   short"


def test_wide_characters_are_folded_whole() -> None:
    lines = table_text(columns("a", "text"), [["1", "日" * 30]], 40, is_styled=False).splitlines()
    assert max(map(cell_len, lines)) <= 40 and sum(line.count("日") for line in lines) == 30


def test_rows_are_lists_where_folding_is_not_enough() -> None:
    lines = table_text(columns("a", "text"), [["x" * 30, "y" * 30], ["1", None]], 40, is_styled=True).splitlines()
    assert lines == ["-- 1", f"a     {'x' * 30}", f"text  {'y' * 30}", "-- 2", "a     1", "text  null"]


@pytest.mark.parametrize(("names", "rows"), [([], [[], []]), (["name" * 20], [])])
def test_table_without_columns_or_rows(names: list[str], rows: list[list[str]]) -> None:
    assert "".join(table_text(columns(*names), rows, 30, is_styled=False).split()).strip("-") == "".join(names)


def test_numbers_are_aligned_to_the_right() -> None:
    rows = [["1", "a"], ["1,200", "b"], [None, "c"]]
    lines = table_text([Column("n", is_number=True), Column("t")], rows, None, is_styled=False)
    assert lines.splitlines() == ["    n   t", "---------", "    1   a", "1,200   b", " null   c"]


def test_prose_is_folded_between_words_and_values_anywhere() -> None:
    words = " ".join(["word"] * 12)
    prose = table_text([Column("p", is_prose=True)], [[words]], 27, is_styled=False).splitlines()[2:]
    assert prose == ["word word word word word", "word word word word word", "word word"]
    value = table_text([Column("v")], [["x  y" * 20]], 30, is_styled=False).splitlines()[2:]
    assert "".join(line.ljust(30) for line in value).rstrip() == "x  y" * 20


def test_several_wide_columns_are_folded_together() -> None:
    lines = table_text(columns("a", "b", "c"), [["x" * 90, "y" * 90, "1"]], 80, is_styled=False).splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) == 5
    assert "".join(line.partition("   ")[0] for line in lines[2:]) == "x" * 90


def test_empty_cells_have_no_line_in_lists() -> None:
    lines = table_text(columns("a", "text"), [["x" * 60, None]], 20, is_styled=False, null="").splitlines()
    assert lines == ["-- 1", f"a     {'x' * 60}"]
