"""Which characters of a table's text reach a terminal, a page or a log: every code point, and the places that print."""

from __future__ import annotations

import io
import json
import logging
import sys
import unicodedata

import pytest

from delta_py.errors import LOGGERS, DeltaError, readable, shown
from delta_py.report.html.markup import escaped
from delta_py.visible_text import ESCAPED_CATEGORIES, is_visible, json_escape, visible
from pydelta_cli.formats.terminal_text import printable, printable_json, printable_lines
from pydelta_cli.formats.text_tables import Column, table_text

# Default_Ignorable_Code_Point of Unicode 14, DerivedCoreProperties.txt, without those whose category is escaped.
INVISIBLE_LETTERS = (
    *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x3164, 0xFFA0),
    *range(0xFE00, 0xFE10),
    *range(0xE0100, 0xE01F0),
)
CODE_POINTS = [chr(code) for code in range(sys.maxunicode + 1)]
ESCAPED = [char for char in CODE_POINTS if unicodedata.category(char) in ESCAPED_CATEGORIES] + list(map(chr, INVISIBLE_LETTERS))
ESCAPED_SET = frozenset(ESCAPED)
VAST = ("Cn", "Co")  # nearly a million code points
BLOCK = 4096

PRINTERS = {
    "errors.readable": readable,
    "errors.shown": lambda text: shown(text)[1:-1],
    "an error's text": lambda text: str(DeltaError(text)),
    "the page": lambda text: str(escaped(text)),
    "one line of the command line": printable,
    "lines of the command line": printable_lines,
    "JSON of the command line": printable_json,
    "a table of the command line": lambda text: table_text([Column(text)], [[text]], None, is_styled=False),
}


def blocks(chars: list[str], between: str) -> list[str]:
    return [between.join(chars[start : start + BLOCK]) for start in range(0, len(chars), BLOCK)]


def test_the_categories_are_those_that_nobody_sees() -> None:
    assert {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} == ESCAPED_CATEGORIES
    assert {unicodedata.category(char) for char in ESCAPED} == {*ESCAPED_CATEGORIES, "Mn", "Lo"}


@pytest.mark.parametrize("between", ["", "a", " "])
def test_no_escaped_code_point_is_printed(between: str) -> None:
    for text in blocks([char for char in ESCAPED if not between or unicodedata.category(char) not in VAST], between):
        safe = visible(text)
        assert safe.isascii() and safe.isprintable(), ascii(text[:100])
        assert safe == between.join(char.encode("unicode_escape").decode() for char in (text[:: len(between) + 1]))


def test_every_other_code_point_is_printed_as_it_is() -> None:
    for text in blocks([char for char in CODE_POINTS if char not in ESCAPED_SET], "a"):
        assert visible(text) == text and is_visible(text)


@pytest.mark.parametrize("name", PRINTERS)
def test_no_printer_lets_an_escaped_code_point_out(name: str) -> None:
    most = 150 if name == "errors.shown" else 800  # longer text is cut
    chars = [char for char in ESCAPED if char != "\n" and unicodedata.category(char) not in VAST]
    if name == "JSON of the command line":
        chars = [char for char in chars if ord(char) >= 0x20 and not 0xD800 <= ord(char) < 0xE000]  # orjson has none
    chars += ["\u0378", "\ue000", "\uffff", "\U000f0000", "\U0010ffff"]
    for start in range(0, len(chars), most):
        text = "".join(chars[start : start + most])
        safe = PRINTERS[name](text).replace("\n", "")
        assert ESCAPED_SET.isdisjoint(safe), ascii(safe[:100])
        assert len(safe) > 5 * len(text) or name == "errors.shown" or "characters more" in safe, "they are there to be seen"


@pytest.mark.parametrize("name", PRINTERS)
def test_tag_characters_are_seen_wherever_text_is_printed(name: str) -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "rm")
    for text in (f"sales{hidden}", f"\U0001f3f4{hidden}\U000e007f", f"é{hidden}"):
        safe = PRINTERS[name](text)
        assert "\\udb40\\udc72" in safe or "\\U000e0072" in safe, ascii(safe)
        assert not set(text) & set(map(chr, range(0xE0000, 0xE1000))) & set(safe)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("می\u200cروم", id="Persian: I go"),
        pytest.param("क्\u200dष", id="Hindi: half a letter"),
        pytest.param("র\u200d\u09cdয\u09beব", id="Bengali: RAB"),
        pytest.param("අවස\u0dca\u200dථ\u0dcf", id="Sinhala"),
        pytest.param("അവന\u0d4d\u200d", id="Malayalam: he, in the old way of writing"),
        pytest.param("\U0001f468\u200d\U0001f469\u200d\U0001f467", id="a family"),
        pytest.param("\U0001f469\U0001f3fd\u200d\U0001f680", id="an astronaut"),
        pytest.param("\u2764\ufe0f and 1\ufe0f\u20e3", id="a heart and a key"),
        pytest.param("\U0001f469\u200d\u2764\ufe0f\u200d\U0001f468", id="a couple"),
        pytest.param("\U0001f642\u200d\u2194\ufe0f", id="a head that shakes"),
        pytest.param("葛\U000e0100飾区", id="Katsushika, with the variant of its sign"),
        pytest.param("Zoë, Straße, naïve, 東京 \u3000 n\u00a0°1, Ω≈ç√, שלום, ไทย", id="letters, marks and spaces"),
    ],
)
def test_text_of_real_languages_and_emoji_stays_as_it_is(text: str) -> None:
    assert visible(text) == text == readable(text) == printable(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pass\u200cword", "pass\\u200cword"),
        ("\u200d", "\\u200d"),
        ("東\u200d京", "東\\u200d京"),
        ("é\ufe0f", "é\\ufe0f"),
        ("a\ufe0f", "a\\ufe0f"),
        ("葛\U000e0100\U000e0101", "葛\U000e0100\\U000e0101"),
        ("क्\u200d\u200dष", "क्\u200d\\u200dष"),
        ("\U0001f468\u200d", "\U0001f468\\u200d"),
        ("می\u200c", "می\\u200c"),
        ("\u3164\ufe00", "\\u3164\\ufe00"),
        ("a\ufe0f\u200d\U0001f680", "a\\ufe0f\\u200d\U0001f680"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
    ],
)
def test_joiners_and_selectors_without_work_are_escaped(text: str, expected: str) -> None:
    assert visible(text) == expected
    assert visible(expected) == expected


def test_line_breaks_stay_where_they_are_wanted() -> None:
    assert visible("a\nb\r\u2028é\n", line_breaks=True) == "a\nb\\r\\u2028é\n"
    assert readable("values:\n - \u202ea\n\u202eb") == "values:\n - \\u202ea\\n\\u202eb"


def test_escaped_json_means_what_it_meant() -> None:
    values = {"\u202ea": ["\U000e0041\x7f\x9f", "é日本\U0001f600", "می\u200cروم", "\u200d"]}
    text = json.dumps(values, ensure_ascii=False, indent=2)
    safe = visible(text, line_breaks=True, escape=json_escape)
    assert json.loads(safe) == values and safe != text
    assert "\\udb40\\udc41" in safe and is_visible(safe.replace("\n", ""))


def test_long_text_of_escaped_characters_is_cut() -> None:
    safe = readable("\U000e0041" * 100_000)
    assert len(safe) <= 8_000 and safe == readable(safe)


@pytest.mark.parametrize("name", LOGGERS)
def test_warnings_show_what_a_name_hides(name: str) -> None:
    log, stream = logging.getLogger(name), io.StringIO()
    handler = logging.StreamHandler(stream)
    log.addHandler(handler)
    try:
        log.warning("%s: %d files, such as %s", "/t/\U000e0041\x1b[2J", 3, "a\nb")
        log.warning("plain %s", "é")
    finally:
        log.removeHandler(handler)
    assert stream.getvalue() == "/t/\\U000e0041\\x1b[2J: 3 files, such as a\\nb\nplain é\n"
