"""Random tables whose files have statistics, deletion vectors and partitions of every kind: the log's answer equals the counts of
the rows, and there is an answer if every file has complete statistics.
"""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py.expressions.tree import Column, Comparison, Literal, Not
from delta_py.scan.log_answers import Question, answer_from_log
from delta_py.snapshot import Snapshot
from delta_py.types.schema import INTEGER
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import Json, TableBuilder, add

COLUMNS = (("id", "long"), ("day", "date"), ("money", "decimal(9,2)"), ("flag", "boolean"), ("text", "string"))
PARTITIONS = (("p", "string"), ("q", "integer"))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "id": st.one_of(st.integers(-3, 3), st.sampled_from([2**53 + 1, -(2**63), 2**63 - 1])),
    "day": st.dates(datetime.date(1600, 1, 1), datetime.date(2100, 1, 1)),
    "money": st.decimals(-9_999_999, 9_999_999, places=2),
    "flag": st.booleans(),
    "text": st.sampled_from(["", "a", "b"]),
}
ROWS = st.lists(st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=5)
NUMBERS = st.sampled_from([None, "-1", "0", "1", "01"])


@dataclass(frozen=True)
class File:
    """kind: the form of its statistics. deleted: positions of rows that a deletion vector hides; None: no vector."""

    rows: list[dict[str, Any]]
    p: str | None
    q: str | None
    kind: str
    deleted: frozenset[int] | None

    @property
    def live(self) -> list[dict[str, Any]]:
        number = None if self.q is None else int(self.q)
        live_rows = [row for place, row in enumerate(self.rows) if place not in (self.deleted or ())]
        return [{**row, "p": self.p, "q": number} for row in live_rows]

    def action(self, name: str) -> Json:
        fields: Json = {"partitionValues": {"p": self.p, "q": self.q}, "stats": self._stats()}
        if self.deleted is not None:
            cardinality = len(self.deleted)
            fields["deletionVector"] = {"storageType": "i", "pathOrInlineDv": name, "sizeInBytes": 8, "cardinality": cardinality}
        return add(name, **fields)

    def _stats(self) -> str | None:
        if self.kind == "none":
            return None
        stats: Json = {"numRecords": len(self.rows)} if self.kind != "no_count" else {}
        if self.kind == "only_count":
            return json.dumps(stats)
        seen = self.rows if self.kind != "wide" else [*self.rows, *self.rows[:1]]
        for section, choose in (("minValues", min), ("maxValues", max)):
            stats[section] = {name: _text(choose(v)) for name in VALUES if (v := [r[name] for r in seen if r[name] is not None])}
        stats["nullCount"] = {name: sum(row[name] is None for row in self.rows) for name in VALUES}
        if self.kind == "wide":
            stats["tightBounds"] = False
        if self.kind == "no_null_count":
            del stats["nullCount"]
        return json.dumps(stats)


def _text(value: Any) -> Any:
    if isinstance(value, datetime.date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


@st.composite
def files(draw: st.DrawFn) -> File:
    rows = draw(ROWS)
    positions = st.frozensets(st.integers(0, len(rows) - 1)) if rows else st.just(frozenset())
    kind = draw(st.sampled_from(["whole"] * 8 + ["none", "only_count", "no_count", "wide", "no_null_count"]))
    p = draw(st.sampled_from([None, "a", "b", "z/ü"]))
    return File(rows, p, draw(NUMBERS), kind, draw(st.none() | positions))


NAMES = [name for name, _ in (*COLUMNS, *PARTITIONS)]
QUESTIONS = st.builds(
    Question,
    by=st.sampled_from([(), ("p",), ("q",), ("q", "p")]),
    valued=st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
    minima=st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
    maxima=st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
)


def expected(question: Question, rows: Iterable[dict[str, Any]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in question.by)].append(row)

    def extreme(group: list[dict[str, Any]], name: str, choose: Callable[[list[Any]], Any]) -> Any:
        values = [row[name] for row in group if row[name] is not None]
        return choose(values) if values else None

    return {
        key: (
            len(group),
            *(sum(row[name] is not None for row in group) for name in question.valued),
            *(extreme(group, name, min) for name in question.minima),
            *(extreme(group, name, max) for name in question.maxima),
        )
        for key, group in groups.items()
    }


def combined(question: Question, answer: pa.Table) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """The answer with the rows of one key combined: texts with the same value are separate rows."""
    rows_by_key: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    width, counted = len(question.by), 1 + len(question.valued)
    for values in zip(*(column.to_pylist() for column in answer.columns), strict=True):
        key, row_values = values[:width], values[width:]
        before = rows_by_key.get(key)
        if before is not None:
            sides = [sum] * counted + [_least] * len(question.minima) + [_most] * len(question.maxima)
            row_values = tuple(join((one, other)) for join, one, other in zip(sides, before, row_values, strict=True))
        rows_by_key[key] = row_values
    return rows_by_key


def _least(values: tuple[Any, ...]) -> Any:
    return min((value for value in values if value is not None), default=None)


def _most(values: tuple[Any, ...]) -> Any:
    return max((value for value in values if value is not None), default=None)


def is_told(question: Question, file: File) -> bool:
    """Whether this file's statistics suffice by themselves. More can be answered, for example if all values are null."""
    data = {name for name, _ in COLUMNS}
    requested_columns = data & {*question.valued, *question.minima, *question.maxima}
    return (file.kind == "whole" and file.deleted is None) or (not requested_columns and file.kind not in ("none", "no_count"))


@settings(max_examples=150)
@given(st.lists(files(), max_size=6), QUESTIONS, st.booleans(), st.sampled_from([None, "classic", "v2-json"]))
def test_answer_from_log_on_random_tables_is_what_the_rows_say(
    parts: list[File], question: Question, only_some: bool, checkpoint: str | None
) -> None:
    builder = TableBuilder(MemoryStore())
    features = ["deletionVectors", "v2Checkpoint"]
    head = (builder.protocol(features=features), builder.metadata(*COLUMNS, *PARTITIONS, partition_by=["p", "q"]))
    builder.commit(*head, *(part.action(f"f{place}") for place, part in enumerate(parts)))
    if checkpoint is not None:
        builder.checkpoint(kind=checkpoint)
    # q is not 1: excludes whole files, also those in which q is null.
    predicate = Not(Comparison("=", Column(("q",)), Literal(1, INTEGER))) if only_some else None
    matching_parts = [part for part in parts if not only_some or (part.q is not None and int(part.q) != 1)]

    answer = answer_from_log(Snapshot.load(builder.store), question, predicate)

    if answer is None:
        assert "text" in (*question.minima, *question.maxima) or not all(is_told(question, part) for part in matching_parts)
    else:
        assert combined(question, answer) == expected(question, (row for part in matching_parts for row in part.live))
