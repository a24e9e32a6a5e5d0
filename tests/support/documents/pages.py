"""README and the pages in docs/: their text, headings and code.

Code that runs is in blocks marked ```python, and all blocks of a page run in one namespace, from the top. Paths in them begin
with /data/, which stands for a directory of the test. If the value of an expression matters, `# => value` follows it. Other
blocks are marked ```bash or ```text. No list skips any block; the page of object stores runs with tests/storage, in a bucket of a
test instead of s3://lake, and the page of Unity Catalog with tests/unit/unity, on a server of a test.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DATA, BUCKET, CATALOG = "/data/", "s3://lake/", "unity://catalog.example.com/"
ON_OBJECT_STORES = ROOT / "docs" / "object-stores.md"
ON_UNITY_CATALOG = ROOT / "docs" / "unity-catalog.md"
PLACES = {ON_OBJECT_STORES: BUCKET, ON_UNITY_CATALOG: CATALOG}
"""What stands for a place of the test on pages whose tables are not on a disk."""

_FENCE = re.compile(r"^```(.*)$")
_EXPECTED = re.compile(r"# => (.+)$")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. line: of its first line in the page, from 1."""

    language: str
    line: int
    text: str


def blocks(page: Path) -> list[Block]:
    page_blocks, start, language = [], 0, None
    lines = page.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if language is None:
            start, language = number + 1, fence[1].strip()
        else:
            page_blocks.append(Block(language, start, "\n".join(lines[start - 1 : number - 1])))
            language = None
    assert language is None, f"{page.name} has a block that does not end"
    return page_blocks


def without_blocks(page: Path) -> str:
    """The text with empty lines instead of fenced blocks."""
    inside, lines = False, []
    for line in page.read_text().splitlines():
        fence = _FENCE.match(line) is not None
        lines.append("" if inside or fence else line)
        inside = inside != fence
    return "\n".join(lines)


def run(page: Path, directory: Path | str) -> int:
    """Run the page's python blocks; returns the number of compared values. directory: replaces DATA, or the URL of
    PLACES.

    Raises AssertionError if the value of an expression differs from the page.
    """
    namespace: dict[str, Any] = {"__name__": "page"}
    compared = 0
    for block in blocks(page):
        if block.language == "python":
            compared += _run_block(page, block, namespace, directory)
    return compared


def _run_block(page: Path, block: Block, namespace: dict[str, Any], directory: Path | str) -> int:
    source = "\n" * (block.line - 1) + block.text.replace(PLACES.get(page, DATA), f"{directory}/")
    lines, compared = source.splitlines(), 0
    for statement in ast.parse(source, page.name).body:
        expected = _EXPECTED.search(lines[(statement.end_lineno or statement.lineno) - 1])
        if expected is None:
            exec(compile(ast.Module([statement], []), page.name, "exec"), namespace)
            continue
        assert isinstance(statement, ast.Expr), f"{page.name}:{statement.lineno}: only an expression has a value"
        value = eval(compile(ast.Expression(statement.value), page.name, "eval"), namespace)
        assert repr(value) == expected[1].strip(), f"{page.name}:{statement.lineno}: {value!r}"
        compared += 1
    return compared


def anchors(page: Path) -> set[str]:
    """The names by which links reach the page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> Iterator[str]:
    """Targets of links and pictures, without those on the network."""
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(page)):
        if not re.match(r"[a-z]+:", target):
            yield target
