"""Makes untrusted text visible: every invisible character, or one that controls a terminal, becomes its escape.

    visible("a\\u202eb")      # => 'a\\\\u202eb', seven printable characters between a and b

The Unicode category of a character decides. These are escaped:

    Cc, Cf            control characters, marks of direction, tags (U+E0020 and so on), zero-width characters, soft hyphens
    Zl, Zp            separators of lines and paragraphs
    Cs, Co, Cn        surrogates, private use and unassigned code points: terminals show them in different ways
    _INVISIBLE        the few letters and marks that fonts draw as nothing

Real text needs some of the invisible characters. They are kept where they change how their neighbours look: joiners after the
virama of an Indic script, between letters of Arabic scripts and in emoji; one variation selector after an ideograph or a symbol.
Everywhere else they hide something, such as in a name that looks like another one, and are escaped too.
Spaces (Zs) are kept: they have a width.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

_JOINER = "\u200d"
_JOINERS = "\u200c\u200d"
_MONGOLIAN_SELECTORS = "\u180b-\u180d\u180f"
_SELECTOR = re.compile(f"[{_MONGOLIAN_SELECTORS}\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# Default_Ignorable_Code_Point of Unicode, for characters whose category does not show it: the grapheme joiner, fillers of Hangul,
# inherent vowels of Khmer, variation selectors.
_INVISIBLE = re.compile(f"[\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0{_MONGOLIAN_SELECTORS}\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# All except ASCII and the Latin letters after it, so that most European text is accepted quickly.
_SUSPECT = re.compile("[^\x20-\x7e\u00c0-\u024f]+")
_SUSPECT_IN_LINES = re.compile("[^\x20-\x7e\u00c0-\u024f\n]+")
_EMOJI_SELECTOR, _KEYCAP = "\ufe0f", "\u20e3"
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_ARROWS_IN_EMOJI = "\u2194\u2195"
_VIRAMA = 9  # combining class


def python_escape(char: str) -> str:
    """`\\x1b`, `\\u202e`, `\\U000e0041`."""
    return char.encode("unicode_escape").decode("ascii")


def json_escape(char: str) -> str:
    """`\\u202e`; two of them for a character beyond U+FFFF. The meaning of the JSON text does not change."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def visible(text: str, *, line_breaks: bool = False, escape: Callable[[str], str] = python_escape) -> str:
    """The text with escapes instead of invisible characters. line_breaks: `\\n` is kept. A second call changes nothing."""
    if text.isprintable() and _INVISIBLE.search(text) is None:
        return text
    suspect = _SUSPECT_IN_LINES if line_breaks else _SUSPECT
    return suspect.sub(lambda run: _visible_run(text, run.start(), run.end(), escape), text)


def is_visible(text: str) -> bool:
    """Whether `visible` would not change the text."""
    return visible(text) == text


def _visible_run(text: str, start: int, end: int, escape: Callable[[str], str]) -> str:
    """The part of the text with escapes in place of characters that cannot be seen, or that change how others look."""
    run = text[start:end]
    if run.isprintable() and _INVISIBLE.search(run) is None:
        return run
    parts = []
    previous = text[start - 1] if start else ""  # the preceding character in the result, if it is not an escape
    for position in range(start, end):
        char = text[position]
        following = text[position + 1] if position + 1 < len(text) else ""
        is_harmless = _is_harmless(char, previous, following)
        parts.append(char if is_harmless else escape(char))
        previous = char if is_harmless else ""
    return "".join(parts)


def _is_harmless(char: str, previous: str, following: str) -> bool:
    """Whether the character is visible, or only changes how its neighbours are displayed."""
    if char in _JOINERS:
        return previous != "" and _is_joining(char, previous, following)
    if _INVISIBLE.match(char) is not None:
        return previous != "" and _SELECTOR.match(char) is not None and _is_selecting(char, previous, following)
    return unicodedata.category(char) not in ESCAPED_CATEGORIES


def _is_joining(char: str, previous: str, following: str) -> bool:
    """Whether a joiner changes how its neighbours look. char: zero-width joiner or non-joiner. The rules for a virama before it
    and for Arabic letters follow RFC 5892 (appendix A) for host names. A letter before and a virama after it make Bengali's
    ya-phalaa. The last rule is for emoji."""
    if unicodedata.combining(previous) == _VIRAMA:
        return True
    if following == "":
        return False
    if _is_arabic(previous) and _is_arabic(following):
        return True
    if char != _JOINER:
        return False
    if unicodedata.category(previous) == "Lo":
        return unicodedata.combining(following) == _VIRAMA
    is_emoji = unicodedata.category(previous) == "So" or previous in _SKIN_TONES or previous == _EMOJI_SELECTOR
    return is_emoji and (unicodedata.category(following) == "So" or following in _ARROWS_IN_EMOJI)


def _is_arabic(char: str) -> bool:
    return unicodedata.bidirectional(char) == "AL" and unicodedata.category(char) == "Lo"


def _is_selecting(char: str, previous: str, following: str) -> bool:
    """Whether a variation selector changes how the previous character looks. A selector after another selector does not:
    such a sequence could carry a hidden text."""
    if char == _EMOJI_SELECTOR and following == _KEYCAP:
        return True
    return not previous.isascii() and unicodedata.category(previous) in ("Lo", "So", "Sm", "Po", "Pd")
