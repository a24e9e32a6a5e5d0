"""The sections of the report's page, in its order. Each shows one part of the facts, as charts, tables and words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from delta_py.report.facts import TableFacts, Unknown
from delta_py.report.html.commit_sections import commits_body, streams_body
from delta_py.report.html.file_sections import files_body, partitions_body, vectors_body
from delta_py.report.html.log_sections import log_body, retention_body
from delta_py.report.html.markup import Child, Markup, data, joined, shortened, tag
from delta_py.report.html.parts import fact_table, folded, known_text, list_table, number, optional, source_line, unknown
from delta_py.report.html.skipping_section import skipping_body
from delta_py.report.words import count_text, moment_text

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section:
    """anchor: the id that links in the page lead to."""

    anchor: str
    title: str
    body: Markup


def sections(facts: TableFacts) -> tuple[Section, ...]:
    """In the page's order; the partitions section is only for a partitioned table."""
    return tuple(
        Section(anchor, title, body)
        for anchor, title, body in (
            ("commits", "Commits", _or_unknown(facts.commits, commits_body)),
            ("files", "Files", _or_unknown(facts.files, files_body)),
            ("skipping", "Skipping", _or_unknown(facts.skipping, skipping_body)),
            ("partitions", "Partitions", None if facts.partitions is None else _or_unknown(facts.partitions, partitions_body)),
            ("deleted-rows", "Deleted rows", _or_unknown(facts.vectors, vectors_body)),
            ("log", "Log", _or_unknown(facts.log, log_body)),
            ("retention", "Removed files", _or_unknown(facts.retention, retention_body)),
            ("streams", "Streams", _or_unknown(facts.streams, streams_body)),
            ("table", "Definition", _definition(facts)),
        )
        if body is not None
    )


def _or_unknown(part: T | Unknown, show: Callable[[T], Markup]) -> Markup:
    """The section's content; the reason if the part of the facts is unknown."""
    return tag("p", unknown(part)) if isinstance(part, Unknown) else show(part)


def _definition(facts: TableFacts) -> Markup:
    """The section Definition: what metaData and protocol say about the table."""
    identity = facts.identity
    metadata, protocol = "metaData action", "protocol action"
    clustering = identity.clustering_columns
    created = None if identity.created_ms is None else moment_text(identity.created_ms)
    rows: list[tuple[str, Child, str]] = [
        ("Path", data(identity.root), "the path by which the table was opened"),
        ("Id", data(identity.table_id), metadata),
        ("Created", optional(created), f"{metadata}: createdTime"),
        ("Columns", number(identity.columns), f"{metadata}: schemaString"),
        ("Partition columns", data(", ".join(identity.partition_columns) or "none"), metadata),
        ("Clustering columns", known_text(clustering, lambda names: data(", ".join(names) or "none")), "domain delta.clustering"),
        ("Minimum reader version", number(identity.min_reader), protocol),
        ("Minimum writer version", number(identity.min_writer), protocol),
        ("Table features", data(shortened(", ".join(identity.features), 2_000) or "none"), protocol),
    ]
    properties = sorted(identity.properties.items())
    table = list_table(
        "Table properties, from the metaData action.",
        ("Property", "Value"),
        [(data(name), data(value)) for name, value in properties[:100]],
    )
    properties_part: Child = tag("p", "The table has no properties.", class_="soft")
    if properties:
        properties_part = folded(count_text(len(properties), "property"), table)
    return joined([fact_table("Definition of the table.", rows), properties_part, source_line(identity.source)])
