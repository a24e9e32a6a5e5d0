"""Docstrings name the protocol's sections as `Protocol: <heading>`; the headings must exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HEADINGS = ROOT / "tests" / "support" / "documents" / "protocol_headings.txt"
SOURCES = sorted(path for package in ("delta_py", "spark_plugin") for path in (ROOT / package).rglob("*.py"))


def known_headings() -> set[str]:
    lines = (line.strip() for line in HEADINGS.read_text().splitlines())
    return {line.lower() for line in lines if line and not line.startswith("#")}


def named_headings(path: Path) -> Iterator[str]:
    """The headings after `Protocol:` in docstrings, up to a full stop or the end of the line, separated by `;`."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for sections in re.findall(r"\bProtocol: ([^.\n]+)", ast.get_docstring(node) or ""):
                yield from (section.strip() for section in sections.split(";"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_docstring_headings_are_headings_of_the_protocol(path: Path) -> None:
    headings = known_headings()
    unknown = [heading for heading in named_headings(path) if heading.lower() not in headings]
    assert unknown == [], f"not in {HEADINGS.relative_to(ROOT)}"


def test_headings_are_named_at_all() -> None:
    assert sum(1 for path in SOURCES for _ in named_headings(path)) > 20
