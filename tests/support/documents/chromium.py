"""Debian's Chromium without a screen: pictures of pages, and measurements by a script of a test.

The script is added to a copy of the page, and its hash to the page's Content-Security-Policy, which otherwise stays unchanged.
The page is shown in a frame, which may be narrower than the narrowest window that Chromium opens.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

MEASURES = Path(__file__).parent / "page_measures.js"
_SECONDS = 120
_NARROWEST = 500
_FRAME = """<!DOCTYPE html><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<style>body{margin:0}iframe{border:0;display:block}</style><body>
<script>addEventListener("message", (event) => { document.body.dataset.measured = event.data; });</script>
<iframe src="page.html" width="%d" height="%d"></iframe></body>"""


def program() -> str | None:
    """The path of Chromium; None if it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def picture(page: str, path: Path, width: int, height: int, *, dark: bool = False) -> None:
    """A PNG of the page's upper part."""
    _run(page, width, height, dark, [f"--screenshot={path}"])


def measure(page: str, width: int, *, dark: bool = False) -> dict[str, Any]:
    """The result of page_measures.js: {"width": ..., "problems": [...]}."""
    script = MEASURES.read_text()
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = rf'\1; script-src &#x27;sha256-{allowed}&#x27;"'
    page, count = re.subn(r'(Content-Security-Policy" content="[^"]*)"', policy, page)
    assert count == 1, "the page has one policy"
    dom = _run(page.replace("</body>", f"<script>{script}</script></body>"), width, 900, dark, ["--dump-dom"])
    match = re.search(r'data-measured="([^"]*)"', dom)
    assert match is not None, "the script did not run"
    result: dict[str, Any] = json.loads(html.unescape(match[1]))
    return result


def _run(page: str, width: int, height: int, dark: bool, arguments: list[str]) -> str:
    chromium = program()
    assert chromium is not None, "Chromium is not installed (Debian's package chromium)"
    with tempfile.TemporaryDirectory(prefix="pydelta-chromium-") as directory:
        Path(directory, "page.html").write_text(page, encoding="utf-8")
        frame = Path(directory, "frame.html")
        frame.write_text(_FRAME % (width, height))
        command = [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--user-data-dir={directory}/profile",
            f"--window-size={max(width, _NARROWEST)},{height}",
            "--virtual-time-budget=5000",
            *arguments,
            frame.as_uri(),
        ]
        process = subprocess.run(command, capture_output=True, timeout=_SECONDS, cwd=directory)
        assert process.returncode == 0, process.stderr.decode(errors="replace")[-2_000:]
        return process.stdout.decode(errors="replace")
