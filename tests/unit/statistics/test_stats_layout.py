from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from delta_py.statistics import stats
from delta_py.statistics.stats import parse_stats
from delta_py.statistics.stats_collector import StatsCollector
from delta_py.types.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    LONG,
    STRING,
    DataType,
    DecimalType,
    Path,
    StructField,
    StructType,
    to_arrow_schema,
)

COUNT = 300
LEAVES: dict[Path, DataType] = {("id",): LONG, ("day",): DATE, ("name",): STRING, ("price",): DecimalType(9, 2), ("x",): DOUBLE}


def text(number: int, last: str = "") -> str:
    low = f'"id":{number},"name":"a,}}{number}","day":"2024-01-02","price":1.50,"x":-1.5e3'
    high = f'"other":[1,2],"id":{number + 5},"day":"2024-01-03","price":2,"x":null,"name":"é"'
    return f'{{"numRecords":{number},"minValues":{{{low}}},"maxValues":{{{high}}},"nullCount":{{"id":0,"x":{number}}}{last}}}'


@pytest.fixture
def without_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("the texts were parsed")

    monkeypatch.setattr(stats, "read_json_objects", fail)


@pytest.mark.parametrize("last", ["", ',"tightBounds":true', ',"tightBounds":false'])
def test_texts_of_the_usual_layout_are_not_parsed(without_the_parser: None, last: str) -> None:
    parsed = parse_stats(pa.array([text(number, last) for number in range(COUNT)]), LEAVES)
    assert parsed.num_records.to_pylist() == list(range(COUNT))
    assert parsed.tight_bounds.to_pylist() == ["false" not in last] * COUNT
    assert parsed.minimum[("id",)].to_pylist() == list(range(COUNT))
    assert parsed.maximum[("id",)].to_pylist() == list(range(5, COUNT + 5))
    assert parsed.maximum[("x",)].null_count == COUNT
    assert parsed.null_count[("x",)].to_pylist() == list(range(COUNT))
    assert parsed.null_count[("day",)].null_count == COUNT
    assert parsed.minimum[("name",)][7].as_py() == "a,}7"


BY_DELTALAKE = (
    '{"numRecords":2,"minValues":{"price":1.2,"name":"a","x":1.5,"id":1,"day":"2024-01-01"},"maxValues":{"name":"b","id":2,"x":2.0,'
    '"day":"2024-01-01","price":1.2},"nullCount":{"name":0,"price":0,"day":0,"x":0,"id":0}}'
)


def by_pydelta() -> str:
    schema = StructType(tuple(StructField(path[0], kind) for path, kind in LEAVES.items()))
    collector = StatsCollector(schema, list(LEAVES))
    values = {"id": [1, 2], "day": [date(2024, 1, 1)] * 2, "name": ["a", "b"], "price": [Decimal("1.2")] * 2, "x": [1.5, 2.0]}
    collector.update(pa.RecordBatch.from_pydict(values, schema=to_arrow_schema(schema)))
    return collector.to_json()


@pytest.mark.parametrize("written", [BY_DELTALAKE, by_pydelta()])
def test_texts_as_writers_write_them_are_not_parsed(without_the_parser: None, written: str) -> None:
    parsed = parse_stats(pa.array([written] * COUNT), LEAVES)
    lows = {path[0]: array[COUNT - 1].as_py() for path, array in parsed.minimum.items()}
    assert lows == {"id": 1, "day": date(2024, 1, 1), "name": "a", "price": Decimal("1.2"), "x": 1.5}
    assert [array.null_count for array in (*parsed.maximum.values(), *parsed.null_count.values())] == [0] * 10


@pytest.mark.parametrize(
    "odd",
    [
        None,
        "",
        text(1).replace(":", ": "),
        text(1, ',"more":{}'),
        text(1).replace('"id":1,', '"id":1.0,'),
        text(1).replace('"id":1,', '"id":01,'),
        text(1).replace('"id":1,', '"id":+1,'),
        text(1).replace('"id":1,', '"id":0x1,'),
        text(1).replace('"id":1,', '"id":"1",'),
        text(1).replace('"id":1,', '"id":{"id":1},'),
        text(1).replace("a,}", "a\\n}"),
        text(1).replace("maxValues", "maximum"),
        text(1)[:-2],
        text(1).replace('"name":"a,}1"', '"name":n'),
        "{{{{",
        '{"numRecords":{{{',
    ],
)
@pytest.mark.parametrize("place", [0, 100, COUNT - 1])
def test_one_text_of_another_layout_has_all_parsed(odd: str | None, place: int) -> None:
    texts = [text(number) for number in range(COUNT)]
    texts[place : place + 1] = [odd]  # type: ignore[list-item]
    parsed, alone = parse_stats(pa.array(texts, pa.string()), LEAVES), parse_stats(pa.array([odd], pa.string()), LEAVES)
    for side, one in ((parsed.minimum, alone.minimum), (parsed.maximum, alone.maximum), (parsed.null_count, alone.null_count)):
        for path in LEAVES:
            assert side[path][place].as_py() == one[path][0].as_py()
    assert parsed.minimum[("id",)][5].as_py() == 5


def test_leaves_that_are_no_numbers_or_texts_are_parsed() -> None:
    texts = pa.array([text(number).replace("-1.5e3", "true") for number in range(COUNT)])
    assert parse_stats(texts, {("x",): BOOLEAN}).minimum[("x",)].to_pylist() == [True] * COUNT


def test_texts_without_a_byte_say_nothing() -> None:
    assert parse_stats(pa.array([""] * COUNT), LEAVES).minimum[("id",)].null_count == COUNT
