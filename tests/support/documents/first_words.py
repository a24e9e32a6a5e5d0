"""Texts of statements and their first words in capitals: sql_router.py and StatementRouter.java must read the same ones."""

from __future__ import annotations

import json
from pathlib import Path


def first_words() -> list[tuple[str, str]]:
    """The pairs of first_words.json."""
    pairs = json.loads(Path(__file__).with_suffix(".json").read_text())
    return [(text, word) for text, word in pairs]
