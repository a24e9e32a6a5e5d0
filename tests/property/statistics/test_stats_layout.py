"""Statistics that are read by the positions of their members equal those from a JSON parser."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_py.statistics import stats_layout
from delta_py.statistics.json_objects import read_json_objects
from delta_py.statistics.stats_layout import read_plain_stats

SCHEMA = pa.schema(
    [
        ("numRecords", pa.int64()),
        ("tightBounds", pa.bool_()),
        *(
            (name, pa.struct([("a", pa.int64()), ("b c", pa.string()), ("id", pa.float64()), ("d", pa.decimal128(9, 2))]))
            for name in ("minValues", "maxValues")
        ),
        ("nullCount", pa.struct([("a", pa.int64()), ("id", pa.int64())])),
    ]
)
NAMES = st.sampled_from(["a", "b c", "id", "d", "x", "aa", 'a"', "minValues", "numRecords", "é", ",", "{"])
TEXTS = st.one_of(st.text(max_size=8), st.sampled_from(['","a":5', '"a":', "},", '},"maxValues":{"a":1', "\\", "a", ":", "null"]))
NUMBERS = st.one_of(
    st.integers(-(10**6), 10**6), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.floats(-1e4, 1e4).map(str)
)
FITTING = {
    "a": st.integers(1 - 10**18, 10**18 - 1),  # the parser reads longer ones
    "b c": st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    "id": st.floats(allow_nan=False, allow_infinity=False),
    "d": st.integers(-(10**6), 10**6),
    "x": TEXTS,
    "aa": NUMBERS,
}
PLAIN = st.fixed_dictionaries({}, optional={name: st.one_of(values, st.none()) for name, values in FITTING.items()}).flatmap(
    lambda members: st.permutations(list(members.items())).map(dict)
)
ODD = st.dictionaries(NAMES, st.one_of(TEXTS, NUMBERS, st.none(), st.booleans(), st.dictionaries(NAMES, NUMBERS, max_size=2)))
COUNTS = st.fixed_dictionaries({}, optional={name: st.integers(0, 10) for name in ("a", "id", "x")})


def text(records: Any, minima: Any, maxima: Any, counts: Any, tight: Any, ascii_only: bool) -> str:
    members = {"numRecords": records, "minValues": minima, "maxValues": maxima, "nullCount": counts, "tightBounds": tight}
    there = {name: value for name, value in members.items() if value is not None}
    return json.dumps(there, separators=(",", ":"), ensure_ascii=ascii_only)


PLAIN_TEXTS = st.builds(text, st.integers(0, 10**12), PLAIN, PLAIN, COUNTS, st.sampled_from([None, True, False]), st.booleans())
ODD_TEXTS = st.builds(text, NUMBERS, ODD, ODD, st.one_of(st.none(), ODD), st.one_of(st.none(), NUMBERS), st.booleans())


@pytest.fixture(autouse=True, scope="module")
def few_texts_too() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stats_layout, "_LEAST_TEXTS", 1)
        yield


def parsed(texts: list[str]) -> list[Any]:
    return [read_json_objects(pa.array([one], pa.string()), SCHEMA)[0].as_py() for one in texts]


def is_utf8(one: str) -> bool:
    try:
        one.encode()
    except UnicodeEncodeError:
        return False
    return True


@given(st.lists(st.one_of(PLAIN_TEXTS, PLAIN_TEXTS, PLAIN_TEXTS, ODD_TEXTS).filter(is_utf8), min_size=1, max_size=4))
def test_members_found_by_their_places_are_those_of_the_parser(texts: list[str]) -> None:
    stats = read_plain_stats(pa.array(["", *texts, ""], pa.string()).slice(1, len(texts)), SCHEMA)
    if stats is not None:
        assert stats.to_pylist() == parsed(texts)


@given(st.lists(PLAIN_TEXTS, max_size=8))
def test_texts_of_the_usual_layout_are_read_so(texts: list[str]) -> None:
    texts = [one for one in texts if "\\" not in one and one.count("{") == 4]
    stats = read_plain_stats(pa.array(texts, pa.string()), SCHEMA)
    assert stats is not None or not texts


@given(st.lists(PLAIN_TEXTS, min_size=2, max_size=3), st.data())
def test_damaged_text_is_unknown_or_parsed_and_changes_no_other(texts: list[str], data: st.DataObject) -> None:
    damaged, rest = texts[0], texts[1:]
    place = data.draw(st.integers(0, len(damaged)))
    inserted = data.draw(st.one_of(st.just(""), st.sampled_from(list('{}",:\\n019-e. \n')), st.text(max_size=3).filter(is_utf8)))
    damaged = damaged[:place] + inserted + damaged[place + data.draw(st.integers(0, 12)) :]
    stats = read_plain_stats(pa.array([*rest, damaged], pa.string()), SCHEMA)
    if stats is None:
        return
    assert stats.to_pylist()[:-1] == parsed(rest)
    if is_json(damaged):
        assert stats.to_pylist()[-1] == parsed([damaged])[0]


def is_json(one: str) -> bool:
    """Whether it is JSON in which no object has a name twice."""

    def unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(members)) != len(members):
            raise ValueError("a name twice")
        return dict(members)

    try:
        json.loads(one, object_pairs_hook=unique)
    except ValueError:
        return False
    return True
