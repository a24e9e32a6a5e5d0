"""The page as text: well formed, self-contained, and no text of a table becomes markup."""

from __future__ import annotations

import ast
import base64
import hashlib
import re
import shlex
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from delta_py.report.facts import Commands
from delta_py.report.html.markup import Markup, data, escaped, shortened, tag
from delta_py.report.report import Report
from delta_py.report.words import length_text, moment_text, percent_text
from delta_py.types.sizes import bytes_text
from tests.support.tables import report_states
from tests.support.tables.report_states import HOSTILE, STATES

EMPTY = {"meta", "br", "col"}
ATTRIBUTES = {
    *("id", "class", "href", "lang", "charset", "http-equiv", "content", "name", "scope", "role", "tabindex", "aria-label"),
    *("aria-labelledby", "viewbox", "width", "height", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "d"),
    "text-anchor",
}
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "a", "header", "main", "footer", "nav", "section", "h1", "h2", "h3", "p"),
    *("ul", "ol", "li", "dl", "dt", "dd", "div", "span", "bdi", "code", "table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("details", "summary", "figure", "figcaption", "svg", "g", "rect", "circle", "line", "path", "text"),
}


class Document(HTMLParser):
    """The elements of a page. Raises AssertionError if tags are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"{tag} has an attribute twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"{tag} is closed where it is not open"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


@cache
def html_of(name: str) -> str:
    return STATES[name]().html()


def section(state: str, anchor: str) -> str:
    """The markup of a section of a page."""
    match = re.search(rf'<section id="{anchor}".*?</section>', html_of(state), re.DOTALL)
    assert match is not None
    return match[0]


@pytest.mark.parametrize("name", STATES)
def test_page_is_well_formed_and_fetches_nothing(name: str) -> None:
    text = html_of(name)
    document = Document(text)
    used = {tag for tag, _ in document.tags}
    assert used <= TAGS, "an element that the page does not have"
    assert {attribute for _, attrs in document.tags for attribute in attrs} <= ATTRIBUTES
    ids = [attrs["id"] for _, attrs in document.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = [str(attrs["href"]) for _, attrs in document.tags if "href" in attrs]
    assert targets and all(target.startswith("#") and target[1:] in ids for target in targets)
    assert re.findall(r"url\(|@import|://", text[text.index("<style>") : text.index("</style>")]) == []
    labelled = [attrs["aria-labelledby"] for _, attrs in document.tags if "aria-labelledby" in attrs]
    assert labelled and set(labelled) <= set(ids)


@pytest.mark.parametrize("name", STATES)
def test_page_can_be_used_without_seeing_it(name: str) -> None:
    document = Document(html_of(name))
    assert [attrs.get("lang") for tag, attrs in document.tags if tag == "html"] == ["en"]
    headings = [int(tag[1]) for tag, _ in document.tags if tag in ("h1", "h2", "h3")]
    assert headings.count(1) == 1 and headings[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))
    pictures = [attrs for tag, attrs in document.tags if tag == "svg"]
    assert all(attrs.get("role") == "img" and attrs.get("aria-label") for attrs in pictures)
    tables = [tag for tag, _ in document.tags if tag == "table"]
    assert len(tables) == len([tag for tag, _ in document.tags if tag == "caption"]) > 3
    assert all(attrs.get("scope") in ("row", "col") for tag, attrs in document.tags if tag == "th")
    scrolled = [attrs for _, attrs in document.tags if attrs.get("class") == "scroll"]
    assert all(attrs.get("tabindex") == "0" and attrs.get("aria-label") for attrs in scrolled)


def test_policy_allows_the_style_and_nothing_else() -> None:
    text = html_of("one file")
    (policy,) = [attrs["content"] for tag, attrs in Document(text).tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    style = re.search(r"<style>(.*)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_text_of_a_table_is_never_markup() -> None:
    text = html_of("hostile")
    document = Document(text)
    assert not {"script", "img"} & {tag for tag, _ in document.tags}
    assert text.count("<style") == text.count("</style>") == 1
    shown = "".join(document.text)
    for name in HOSTILE[:3]:
        assert name in shown, "it is shown as it is"
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)
    assert "abc\\u202egnp.exe\\u200f\\u2066" in shown and "\\x1b[31mred\\r\\n\\t\\x85\\x9f" in shown
    assert "very long name " * 20 not in text
    assert "naïve 名前 اسم 😀" in shown


def test_no_command_is_shown_with_names_that_could_mislead() -> None:
    store = report_states.MemoryStore("/lake/\u202eelbat")
    table = report_states.TableBuilder(store)
    table.create(*(report_states.add(f"{number}", stats=report_states.stats(1, 0, 9)) for number in range(9)))
    table.commit(report_states.remove("gone.parquet", deletionTimestamp=1, size=1))
    report = report_states.report(store)
    assert all((item.cli, item.sql, item.python) == (None, None, None) for item in report.facts.advice)
    assert {item.after_dry_run for item in report.facts.advice} == {None, Commands(None, None, None)}
    assert "No command is shown" in report.html() and "\u202e" not in report.html()


@pytest.mark.parametrize("root", ["/lake/it's; rm -rf $HOME", "/lake/a`b", '/lake/"q"'])
def test_commands_quote_the_path(root: str) -> None:
    store = report_states.MemoryStore(root)
    table = report_states.TableBuilder(store)
    table.create(*(report_states.add(f"{number}", stats=report_states.stats(1, 0, 9)) for number in range(9)))
    item = report_states.report(store).facts.advice[0]
    assert item.cli is not None and shlex.split(item.cli) == ["pydelta", "optimize", root]
    assert item.sql == f"OPTIMIZE pydelta.`{root.replace('`', '``')}`"
    assert item.after_dry_run is None
    assert item.python is not None and ast.literal_eval(item.python[len("DeltaTable(") : item.python.index(").optimize")]) == root


def test_commands_that_change_the_table_follow_the_dry_run() -> None:
    texts = re.findall(r"<code>(.*?)</code>", section("usual", "advice"))
    vacuum = "pydelta vacuum /lake/shop/orders"
    assert texts[texts.index(vacuum) :] == [
        *(vacuum, "VACUUM pydelta.`/lake/shop/orders` DRY RUN", "DeltaTable(&#x27;/lake/shop/orders&#x27;).vacuum()"),
        *(f"{vacuum} --delete", "VACUUM pydelta.`/lake/shop/orders`"),
        "DeltaTable(&#x27;/lake/shop/orders&#x27;).vacuum(dry_run=False)",
    ]


def test_tables_that_are_wider_than_a_phone_say_that_they_scroll() -> None:
    captions = {anchor: re.findall("<caption>(.*?)</caption>", section("usual", anchor)) for anchor in ("files", "commits")}
    scrolled = {anchor: ["Scroll sideways" in caption for caption in each] for anchor, each in captions.items()}
    assert scrolled == {"files": [False, False], "commits": [True, True, True]}


def test_page_names_times_and_no_age_that_becomes_wrong() -> None:
    text = "".join(Document(html_of("usual")).text)
    assert "Version 51, committed 2024-06-09 00:00:00 UTC. This report was made 2024-06-10 00:00:00 UTC, 1 day after the" in text
    assert "Committed2024-06-09" in text and " ago" not in text


def test_largest_partitions_are_bars_with_their_names() -> None:
    drawn = section("many partitions", "partitions")
    labels = re.findall(r'class="label">([^<]*)<', drawn[: drawn.index("</svg>")])
    assert labels == [f"shop {number}" for number in range(12)]
    assert "12 largest of 2,000 partitions, by shop" in drawn


def test_report_is_written_and_shown_in_notebooks(tmp_path: Path) -> None:
    report = report_states.one_file()
    report.write(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.html()
    frame = HTMLParser()
    shown: list[tuple[str, dict[str, str | None]]] = []
    frame.handle_starttag = lambda tag, attrs: shown.append((tag, dict(attrs)))  # type: ignore[method-assign]
    frame.feed(report._repr_html_())
    ((name, attrs),) = shown
    assert (name, attrs["sandbox"]) == ("iframe", "")
    assert attrs["srcdoc"] == report.html()
    assert isinstance(report, Report) and report.to_json() == report.facts.to_json()


# ---------------------------------------------------------------- markup and words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<b>&\"'", "&lt;b&gt;&amp;&quot;&#x27;"),
        ("a\nb\x00\x7f", "a\\nb\\x00\\x7f"),
        ("\u202e\u200f\u2066\ufeff", "\\u202e\\u200f\\u2066\\ufeff"),
        ("\ud800\uffff\U000e0041", "\\ud800\\uffff\\U000e0041"),
        ("é名😀اسم", "é名😀اسم"),
    ],
)
def test_escaped_text(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_tags_escape_children_and_attributes_that_are_no_markup() -> None:
    assert tag("p", "<", Markup("<b>"), ["&", None, 3], class_='"', aria_label=None) == '<p class="&quot;">&lt;<b>&amp;3</p>'
    assert data("x" * 500).count("x") == 120 and shortened("abcdef", 4) == "ab…ef"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        *((0, "0 bytes"), (1, "1 byte"), (1_023, "1023 bytes"), (1_024, "1 KiB"), (1_536, "1.5 KiB")),
        *((1_023 * 1_024, "0.999 MiB"), (2**40, "1 TiB")),
    ],
)
def test_bytes(size: int, text: str) -> None:
    assert bytes_text(size) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        *((0.0, "0 %"), (0.0004, "under 0.1 %"), (0.05, "5 %"), (0.0123, "1.2 %"), (0.5, "50 %")),
        *((0.996, "over 99 %"), (1.0, "100 %")),
    ],
)
def test_percents(share: float, text: str) -> None:
    assert percent_text(share) == text


def test_lengths_and_moments() -> None:
    assert [length_text(ms) for ms in (0, 999, 61_000, 3_600_000, 90_061_000)] == [
        *("0 ms", "999 ms", "1 minute 1 second", "1 hour", "1 day 1 hour")
    ]
    assert length_text(-61_000) == "-1 minute 1 second" and length_text(90_061_000, parts=1) == "1 day"
    assert moment_text(0) == "1970-01-01 00:00:00 UTC" and moment_text(10**17) == f"{10**17} ms"
