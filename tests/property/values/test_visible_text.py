"""Text of any characters, in any order: the printed form has no invisible character, and the same meaning."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from delta_py.errors import readable
from delta_py.visible_text import ESCAPED_CATEGORIES, json_escape, visible
from pydelta_cli.formats.terminal_text import printable, printable_json, printable_lines

# Characters after which a joiner or a selector may stay, and others.
CONTEXTS = "क्षর্যمیخ葛\U0001f468\U0001f3fd\u2764\u2194\u20e31é \n"
INVISIBLE = "\u200c\u200d\ufe0f\ufe00\U000e0100\u180b\u3164\u034f\u202e\U000e0041\x1b\u2028"
CHARS = st.one_of(st.sampled_from(CONTEXTS), st.sampled_from(INVISIBLE), st.characters())
TEXTS = st.text(CHARS, max_size=30)
KEPT_IN_CONTEXT = {"\u200c", "\u200d"}


@given(TEXTS)
def test_what_is_printed_is_seen(text: str) -> None:
    safe = visible(text)
    assert not [char for char in safe if unicodedata.category(char) in ESCAPED_CATEGORIES and char not in KEPT_IN_CONTEXT]
    assert not {"\u3164", "\u034f"} & set(safe)
    assert visible(safe) == safe
    assert printable(text) == safe and readable(safe) == readable(readable(safe))


@given(TEXTS)
def test_no_invisible_character_follows_another(text: str) -> None:
    """Two invisible characters in a row could carry a text; a single one changes the look of the character before it."""
    hidden = [char in INVISIBLE for char in visible(text)]
    joined_emoji = "\ufe0f\u200d"
    pairs = zip(visible(text), visible(text)[1:], hidden, hidden[1:], strict=False)
    assert not [a + b for a, b, first, second in pairs if first and second and a + b != joined_emoji]


@given(TEXTS)
def test_escapes_lose_nothing(text: str) -> None:
    pieces = [char if char in printable_lines(text) else char.encode("unicode_escape").decode() for char in text]
    assert len(printable_lines(text)) >= len(text) and all(piece in printable_lines(text) for piece in pieces)


@given(st.recursive(st.text(CHARS.filter(lambda char: not "\ud800" <= char <= "\udfff"), max_size=10), st.lists, max_leaves=5))
def test_json_says_the_same(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=1)
    safe = printable_json(text)
    assert json.loads(safe) == value
    assert visible(safe, line_breaks=True, escape=json_escape) == safe
