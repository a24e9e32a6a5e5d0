"""The report as one HTML page: everything is inline, it fetches nothing and has no script. style.py has its style.

The page forbids itself the network by a Content-Security-Policy, which allows only its own style.
"""

from __future__ import annotations

import base64
import hashlib

from delta_py.report.facts import Advice, Commands, TableFacts, Unknown
from delta_py.report.html.markup import Child, Markup, data, shortened, tag
from delta_py.report.html.parts import known_text, soft, source_line
from delta_py.report.html.sections import Section, sections
from delta_py.report.html.style import STYLE
from delta_py.report.words import day_text, length_text, moment_text
from delta_py.types.sizes import bytes_text

_LONGEST_TITLE = 80
_NO_COMMAND = "No command is shown: a name in it is very long, or has characters that could mislead the person who types it."


def page(facts: TableFacts) -> str:
    """A complete document."""
    page_sections = sections(facts)
    identity = facts.identity
    title = f"{shortened(identity.name or identity.root, _LONGEST_TITLE)}, version {identity.version}"
    style_hash = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{style_hash}'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Markup(STYLE)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the report", href="#report", class_="skip"),
        _header(facts, page_sections),
        tag("main", _advice(facts.advice), [_section(part) for part in page_sections], id="report"),
        _footer(facts),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, body, lang="en")


def _header(facts: TableFacts, parts: tuple[Section, ...]) -> Markup:
    """The top of the page: name, key numbers, and links to the sections."""
    identity, files, commits = facts.identity, facts.files, facts.commits
    key_numbers = [("Version", tag("span", f"{identity.version:,}"))]
    for name, value in (
        ("Files", files if isinstance(files, Unknown) else files.count),
        ("Size", files if isinstance(files, Unknown) else files.bytes),
        ("Rows", files if isinstance(files, Unknown) else files.rows),
        ("Commits in the log", commits if isinstance(commits, Unknown) else commits.in_log),
    ):
        # A size has a unit, all other numbers have none.
        text = "unknown" if isinstance(value, Unknown) else bytes_text(value) if name == "Size" else f"{value:,}"
        key_numbers.append((name, tag("span", text)))
    committed_ms = identity.timestamp_ms
    key_numbers.append(("Committed", tag("span", "unknown" if isinstance(committed_ms, Unknown) else day_text(committed_ms))))
    links = [("advice", "Advice"), *((part.anchor, part.title) for part in parts)]
    return tag(
        "header",
        tag("h1", data(identity.name or identity.root)),
        tag("p", tag("code", data(identity.root))) if identity.name else None,
        tag("p", data(shortened(identity.description, 400))) if identity.description else None,
        _times_line(facts),
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in key_numbers], class_="keys"),
        tag("nav", tag("ul", [tag("li", tag("a", text, href=f"#{anchor}")) for anchor, text in links]), aria_label="Sections"),
    )


def _times_line(facts: TableFacts) -> Markup:
    """The times of the version and of the report. The age is the time between these two, because the page may be read years
    later."""
    committed_ms = facts.identity.timestamp_ms
    committed = known_text(committed_ms, moment_text)
    age = ""
    if not isinstance(committed_ms, Unknown) and facts.generated_ms >= committed_ms:
        age = f", {length_text(facts.generated_ms - committed_ms, parts=1)} after the commit"
    report_text = f". This report was made {moment_text(facts.generated_ms)}{age}."
    return soft(f"Version {facts.identity.version:,}, committed ", committed, report_text)


def _section(part: Section) -> Markup:
    title = f"{part.anchor}-title"
    return tag("section", tag("h2", part.title, id=title), part.body, id=part.anchor, aria_labelledby=title)


# ---------------------------------------------------------------- advice


def _advice(items: tuple[Advice, ...]) -> Markup:
    body = tag("ol", [_advice_item(item) for item in items], class_="advice")
    if not items:
        body = tag("p", "No advice. The sections below name what is unknown.")
    return tag("section", tag("h2", "Advice", id="advice-title"), body, id="advice", aria_labelledby="advice-title")


def _advice_item(item: Advice) -> Markup:
    """One piece of advice: title, reason, commands, source."""
    commands: Child = _commands(item)
    if item.after_dry_run is not None:
        commands = [
            tag("p", "First a dry run, which changes nothing:"),
            commands,
            tag("p", "Then the same without the dry run:"),
            _commands(item.after_dry_run),
        ]
    return tag(
        "li",
        tag("h3", "Damaged: " if item.urgent else "", shortened(item.title, 300)),
        tag("p", shortened(item.reason, 1_000)),
        commands if item.cli or item.sql or item.python else soft(_NO_COMMAND),
        source_line(item.source),
        class_="urgent" if item.urgent else None,
    )


def _commands(commands: Advice | Commands) -> Markup:
    """The forms of a command that exist: for a shell, SQL, Python."""
    form_items = [
        (tag("dt", name), tag("dd", tag("code", text)))
        for name, text in (("shell", commands.cli), ("SQL", commands.sql), ("Python", commands.python))
        if text is not None
    ]
    return tag("dl", form_items, class_="commands")


def _footer(facts: TableFacts) -> Markup:
    return tag(
        "footer",
        tag("p", f"Made by pydelta on {moment_text(facts.generated_ms)}."),
        tag("p", "The numbers at the top are those of the sections, which name their sources."),
        tag("p", "1 KiB is 1,024 bytes. Times are in UTC. The page is complete: it has no script, and fetches nothing."),
    )
