"""MERGE of delta_py compared with plain Python: random rows with nulls, NaN and repeated keys, random conditions and clauses."""

from __future__ import annotations

import itertools
import math
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py import DeltaTable, write_delta
from delta_py.errors import UnsupportedOperationError
from delta_py.row_changes.merge import TableMerger
from tests.support.runs.sampling import examples

Row = dict[str, Any]
SCHEMA = pa.schema([("k", pa.int64()), ("f", pa.float64()), ("w", pa.string()), ("n", pa.int64())])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.one_of(st.none(), st.integers(-2, 4)),
            "f": st.sampled_from([None, math.nan, 0.0, -0.0, 1.0, math.inf]),
            "w": st.sampled_from([None, "", "a", "ä", "b"]),
            "n": st.integers(0, 9),
        }
    ),
    max_size=8,
)
CONFIGURATIONS: list[dict[str, str]] = [
    {},
    {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    {"delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"},
]


def order(a: Any, b: Any) -> int:
    nan = [isinstance(x, float) and math.isnan(x) for x in (a, b)]
    return int(nan[0]) - int(nan[1]) if any(nan) else int(a > b) - int(a < b)


def equal(a: Any, b: Any) -> bool:
    return a is not None and b is not None and order(a, b) == 0


def null_safe(a: Any, b: Any) -> bool:
    return equal(a, b) or (a is None and b is None)


def above(a: Any, b: Any) -> bool:
    return a is not None and b is not None and order(a, b) > 0


JOINS: dict[str, Callable[[Row, Row], bool]] = {
    "t.k = s.k": lambda t, s: equal(t["k"], s["k"]),
    "s.f = t.f": lambda t, s: equal(t["f"], s["f"]),
    "t.w <=> s.w AND s.k <=> t.k": lambda t, s: null_safe(t["w"], s["w"]) and null_safe(t["k"], s["k"]),
    "t.k = s.k AND t.f <=> s.f AND t.w = s.w": lambda t, s: (
        equal(t["k"], s["k"]) and null_safe(t["f"], s["f"]) and equal(t["w"], s["w"])
    ),
    "t.k = s.k + 1 AND t.n > s.n": lambda t, s: s["k"] is not None and equal(t["k"], s["k"] + 1) and t["n"] > s["n"],
    "t.k = s.f AND s.n < 5 AND t.n < 8": lambda t, s: equal(t["k"], s["f"]) and s["n"] < 5 and t["n"] < 8,
    "t.k > s.k AND t.n = 3": lambda t, s: above(t["k"], s["k"]) and t["n"] == 3,
    "t.f <= s.f": lambda t, s: t["f"] is not None and s["f"] is not None and order(t["f"], s["f"]) <= 0,
    "t.k + s.k = 3 OR s.w = 'b' AND t.w = 'a'": lambda t, s: (
        (t["k"] is not None and s["k"] is not None and t["k"] + s["k"] == 3) or (s["w"] == "b" and t["w"] == "a")
    ),
}


@dataclass(frozen=True)
class Case:
    """One clause. holds, made: take the row of the table and that of the source, if they exist; made: None for a delete."""

    kind: str
    add: Callable[[TableMerger], Any]
    holds: Callable[[Row, Row], bool]
    made: Callable[[Row, Row], Row] | None


CONDITIONAL = [
    Case("m", lambda m: m.when_matched_delete("s.n > t.n"), lambda t, s: s["n"] > t["n"], None),
    Case("m", lambda m: m.when_matched_update({"n": "t.n + s.n"}, "t.w = 'a'"), lambda t, s: t["w"] == "a",
         lambda t, s: {**t, "n": t["n"] + s["n"]}),
    Case("m", lambda m: m.when_matched_update_all("s.k = 2"), lambda t, s: s["k"] == 2, lambda t, s: dict(s)),
    Case("i", lambda m: m.when_not_matched_insert({"K": "k", "n": "'7'"}, "s.n < 5"), lambda t, s: s["n"] < 5,
         lambda t, s: {"k": s["k"], "f": None, "w": None, "n": 7}),
    Case("l", lambda m: m.when_not_matched_by_source_delete("t.n = 1"), lambda t, s: t["n"] == 1, None),
    Case("l", lambda m: m.when_not_matched_by_source_update({"t.w": "concat(w, 'x')"}, "n > 6"), lambda t, s: t["n"] > 6,
         lambda t, s: {**t, "w": None if t["w"] is None else t["w"] + "x"}),
]  # fmt: skip
LAST = [
    Case("m", lambda m: m.when_matched_delete(), lambda t, s: True, None),
    Case("m", lambda m: m.when_matched_update_all(except_cols=["n"]), lambda t, s: True, lambda t, s: {**s, "n": t["n"]}),
    Case("i", lambda m: m.when_not_matched_insert_all(), lambda t, s: True, lambda t, s: dict(s)),
    Case("l", lambda m: m.when_not_matched_by_source_delete(), lambda t, s: True, None),
]


def expected(target: Sequence[Row], source: Sequence[Row], join: Callable[[Row, Row], bool], cases: Sequence[Case]) -> list[Row]:
    """Raises UnsupportedOperationError as MERGE does."""
    kinds = [case.kind for case in cases]
    lone_delete = [case for case in cases if case.kind == "m"] == [LAST[0]]
    rows: list[Row] = []
    for t in target:
        matches = [s for s in source if join(t, s)]
        if len(matches) > 1 and set(kinds) != {"i"} and not lone_delete:
            raise UnsupportedOperationError("several")
        s = matches[0] if matches else {}
        case = next((c for c in cases if c.kind == ("m" if matches else "l") and c.holds(t, s)), None)
        rows += [t] if case is None else [] if case.made is None else [case.made(t, s)]
    for s in source:
        if not any(join(t, s) for t in target):
            case = next((c for c in cases if c.kind == "i" and c.holds({}, s)), None)
            rows += [] if case is None or case.made is None else [case.made({}, s)]
    return rows


def sorted_rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted(repr([row[name] for name in SCHEMA.names]) for row in rows)


@settings(max_examples=examples(40), deadline=None)
@given(
    parts=st.lists(ROWS, min_size=1, max_size=3),
    source=ROWS,
    join=st.sampled_from(list(JOINS)),
    conditional=st.lists(st.sampled_from(CONDITIONAL), max_size=3, unique=True),
    last=st.lists(st.sampled_from(LAST), min_size=1, max_size=3, unique_by=lambda case: case.kind),
    configuration=st.sampled_from(CONFIGURATIONS),
)
def test_merge_leaves_the_rows_that_plain_python_leaves(
    parts: list[list[Row]],
    source: list[Row],
    join: str,
    conditional: list[Case],
    last: list[Case],
    configuration: dict[str, str],
) -> None:
    path = tempfile.mkdtemp()
    try:
        for number, rows in enumerate(parts):
            table = pa.Table.from_pylist(rows, SCHEMA)
            write_delta(path, table, mode="append", configuration=None if number else configuration)
        before = list(itertools.chain(*parts))
        cases = [*conditional, *last]
        merger = DeltaTable(path).merge(pa.Table.from_pylist(source, SCHEMA), join, "s", "t")
        for case in cases:
            case.add(merger)
        try:
            after, refused = expected(before, source, JOINS[join], cases), False
        except UnsupportedOperationError:
            after, refused = before, True
        try:
            metrics = merger.execute()
        except UnsupportedOperationError as error:
            assert refused, error
            assert error.error_class == "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
        else:
            assert not refused
            change = metrics["numTargetRowsInserted"] - metrics["numTargetRowsDeleted"]
            assert (metrics["numSourceRows"], len(before) + change) == (len(source), len(after))
        assert sorted_rows(DeltaTable(path).to_arrow().to_pylist()) == sorted_rows(after)
    finally:
        shutil.rmtree(path)
