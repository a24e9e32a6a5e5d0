"""Charts, tested without a browser; tests/page tests them in one."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from delta_py.report.html.charts import columns


@pytest.mark.parametrize("count", range(1, 40))
@pytest.mark.parametrize("text", ["9", "2,113", "20,000", "1.2 million"])
def test_texts_over_columns_of_about_one_height_stand_side_by_side(text: str, count: int) -> None:
    drawn = columns("Files by size", [100.0] * count, [""] * count, [text] * count, "size", "files")
    for svg in re.findall(r"<svg.*?</svg>", drawn, re.DOTALL):
        middles = [float(x) for x in re.findall(r'<text x="([\d.]+)"[^>]*class="value"', svg)]
        assert len(middles) in (0, count)
        # Digits of 12 px are at least 6.6 px wide in the fonts of the page.
        assert all(right - left > 6.6 * len(text) * 0.99 for left, right in pairwise(middles))
        assert middles or count > 1
