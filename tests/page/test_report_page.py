"""The report's page in a real browser: nothing overflows, no elements overlap, everything is legible.

Wide and narrow, light and dark. PYDELTA_PICTURES=directory keeps pictures of all states there.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from tests.support.documents import chromium
from tests.support.tables.report_states import STATES

WIDTHS = {"wide": 1_280, "tablet": 700, "narrow": 360}

pytestmark = pytest.mark.skipif(chromium.program() is None, reason="Chromium is not installed (Debian's package chromium)")


@cache
def html_of(state: str) -> str:
    return STATES[state]().html()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("state", STATES)
def test_page_has_no_text_that_overflows_overlaps_or_is_pale(state: str, width: str, dark: bool) -> None:
    measurements = chromium.measure(html_of(state), WIDTHS[width], dark=dark)
    assert measurements["problems"] == []
    assert (measurements["width"], measurements["isDark"]) == (WIDTHS[width], dark)
    assert measurements["pieces"] > 60
    # The page's policy allows its style.
    assert measurements["background"] == ("rgb(20, 24, 28)" if dark else "rgb(251, 251, 250)")


@pytest.mark.skipif(not os.environ.get("PYDELTA_PICTURES"), reason="PYDELTA_PICTURES does not say where pictures go")
@pytest.mark.parametrize("state", STATES)
def test_pictures(state: str) -> None:
    directory = Path(os.environ["PYDELTA_PICTURES"])
    directory.mkdir(parents=True, exist_ok=True)
    for name, width, height in (("wide", 1_000, 5_000), ("narrow", 360, 9_000)):
        for dark in (False, True):
            path = directory / f"{state.replace(' ', '-')}-{name}-{'dark' if dark else 'light'}.png"
            chromium.picture(html_of(state), path, width, height, dark=dark)
            assert path.read_bytes()[:4] == b"\x89PNG"
