"""Charts, tested without a browser; tests/page tests them in one."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from delta_py.report.html.charts import MIDDLE, NARROW, WIDE, Bar, Dot, columns, lying_bars, timeline

DAY_MS = 86_400_000
# In px: digits of 12 px are at least this wide in the fonts of the page.
DIGIT = 6.6


def pictures(drawn: str) -> dict[int, str]:
    """The pictures of a chart by their widths."""
    return {int(svg[1]): svg[0] for svg in re.finditer(r'<svg[^>]* width="(\d+)".*?</svg>', drawn, re.DOTALL)}


def ticks(svg: str) -> list[tuple[float, str]]:
    """Texts of an axis and their middles, from left to right."""
    return sorted((float(x), text) for x, text in re.findall(r'<text x="([\d.]+)"[^>]*class="tick">([^<]*)<', svg))


@pytest.mark.parametrize("count", range(1, 40))
@pytest.mark.parametrize("text", ["9", "2,113", "20,000", "1.2 million"])
def test_texts_over_columns_of_equal_height_do_not_overlap(text: str, count: int) -> None:
    drawn = columns("Files by size", [100.0] * count, [""] * count, [text] * count, "size", "files")
    for svg in re.findall(r"<svg.*?</svg>", drawn, re.DOTALL):
        middles = [float(x) for x in re.findall(r'<text x="([\d.]+)"[^>]*class="value"', svg)]
        assert len(middles) in (0, count)
        assert all(right - left > DIGIT * len(text) * 0.99 for left, right in pairwise(middles))
        assert middles or count > 1


@pytest.mark.parametrize("count", range(1, 40))
def test_texts_of_an_axis_neither_collide_nor_leave_the_picture(count: int) -> None:
    edges = [f"{number * 1_000} KB" for number in range(count + 1)]
    for width, svg in pictures(columns("Files by size", [1.0] * count, edges, [], "size", "files")).items():
        shown = ticks(svg)
        assert [text for _, text in shown][:: max(len(shown) - 1, 1)] == [edges[0], edges[-1]]
        halves = [len(text) * DIGIT / 2 for _, text in shown]
        assert all(half <= x <= width - half for (x, _), half in zip(shown, halves, strict=True))
        places = list(zip(shown, halves, strict=True))
        assert all(right - left > one + other for ((left, _), one), ((right, _), other) in pairwise(places))


def test_narrow_timeline_has_whole_names_of_operations() -> None:
    operations = ["STREAMING UPDATE", "CREATE OR REPLACE TABLE AS SELECT"]
    drawn = timeline("Commits", operations, [Dot(DAY_MS * lane, lane, 0.5, "") for lane in range(2)], "time")
    assert re.findall(r'class="label">([^<]*)<', pictures(drawn)[NARROW]) == operations


def test_bars_of_a_narrow_picture_are_as_wide_as_it_is() -> None:
    shares = [(0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")]
    drawn = lying_bars("Share", [Bar("customer", 1.0, "100 %, 100 %")], "share", shares, 1.0)
    lengths = {width: float(re.findall(r'<rect[^>]* width="([\d.]+)"', svg)[0]) for width, svg in pictures(drawn).items()}
    assert set(lengths) == {WIDE, MIDDLE, NARROW}
    assert lengths[NARROW] == NARROW - 4
    assert [text for _, text in ticks(pictures(drawn)[NARROW])] == ["0 %", "50 %", "100 %"]


@pytest.mark.parametrize(
    ("days", "texts"),
    [
        (0, ["2024-05-01 00:00:00 UTC"]),
        (0.5, ["00:00:00", "12:00:00"]),
        (40, ["2024-05-01", "2024-05-09", "2024-05-17", "2024-05-25", "2024-06-02", "2024-06-10"]),
    ],
)
def test_timeline_names_its_ends_and_days_between_them(days: float, texts: list[str]) -> None:
    start_ms = 1_714_521_600_000
    dots = [Dot(time_ms, 0, 0.5, "") for time_ms in (start_ms, start_ms + int(days * DAY_MS))]
    wide = pictures(timeline("Commits", ["WRITE"], dots, "time"))[WIDE]
    assert [text for _, text in ticks(wide)] == texts
