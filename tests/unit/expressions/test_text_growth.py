"""Short rules over few rows that would make very long text: refused before the memory is used."""

from __future__ import annotations

import tracemalloc
import zlib
from typing import Any

import pyarrow as pa
import pytest

from delta_py.errors import ExpressionError
from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.functions.text_growth import repeat_in_rows
from delta_py.expressions.parse import parse_expression
from delta_py.types.schema import from_arrow_schema

ROWS = pa.record_batch({"s": ["a", "bcd", None, ""], "n": pa.array([2_000_000_000, 1, 1, 1], pa.int32()), "b": [b"x" * 30] * 4})


def values(sql: str) -> list[Any]:
    results: list[Any] = evaluate(parse_expression(sql, from_arrow_schema(ROWS.schema)), ROWS).to_pylist()
    return results


def in_itself(form: str, depth: int, start: str = "s") -> str:
    for _ in range(depth):
        start = form.format(start)
    return start


LARGE = {
    "rpad": "rpad(s, 2147483647, 'y')",
    "lpad of a constant": "lpad('x', 2147483647, 'y')",
    "repeat": "repeat(s, 2000000000)",
    "repeat of repeat": "repeat(repeat(s, 100000), 100000)",
    "constants": "concat(" + ", ".join(["repeat('x', 1000000)"] * 50) + ")",
    "space": "space(n)",
    "replace": in_itself("replace({}, 'a', 'aaaaaaaaaa')", 20),
    "regexp_replace": in_itself("regexp_replace({}, '[a-z]', '$0$0$0$0')", 20),
    "hex": in_itself("hex({})", 20, "repeat(s, 1000)"),
    "base64": in_itself("base64(cast({} as binary))", 10, "repeat(s, 1000000)"),
    "concat": in_itself("concat({}, repeat(s, 1000000))", 20),
    "concat_ws": f"concat_ws('-', {', '.join(['repeat(s, 1000000)'] * 20)})",
    "array": f"array({', '.join(['repeat(s, 2000000)'] * 10)})",
    "one in each row": "rpad('x', 9000000, 'y')",
}


@pytest.mark.parametrize("what", LARGE)
def test_oversized_text_is_refused_before_it_is_built(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_py.expressions.evaluate.MOST_BYTES", 2**24)
    tracemalloc.start()
    with pytest.raises(ExpressionError, match="so many are not made") as caught:
        values(LARGE[what])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.error_class == "COLLECTION_SIZE_LIMIT_EXCEEDED.FUNCTION"
    assert peak < 2**26


def test_texts_of_usual_length_are_filled_and_repeated() -> None:
    assert values("rpad(s, 100000, 'xyz')")[1] == ("bcd" + "xyz" * 40_000)[:100_000]
    assert values("lpad(s, 4, 'xy')") == ["xyxa", "xbcd", None, "xyxy"]
    assert values("length(repeat(s, 100000))") == [100_000, 300_000, None, 0]
    assert values("concat(repeat('x', 70000), s)")[0] == "x" * 70_000 + "a"
    assert values("crc32(cast(repeat(s, 1000) as binary))")[1] == zlib.crc32(b"bcd" * 1000)


def test_repeated_value_is_refused_if_all_rows_are_too_long() -> None:
    assert repeat_in_rows(pa.scalar("ab"), 3).to_pylist() == ["ab"] * 3
    with pytest.raises(ExpressionError, match="so many are not made"):
        repeat_in_rows(pa.scalar("x" * 2**20), 10_000)
