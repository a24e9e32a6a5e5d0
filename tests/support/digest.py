"""Counts and hash sums of columns as Spark computes them, for tables whose rows are too many to keep beside the test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
import xxhash

_SEED = 42
_FORMS = re.compile(
    r"(?P<rows>count\(\*\)) AS n"
    r"|count\(`(?P<counted>\w+)`\) AS `n\d+`"
    r"|sum\(cast\(xxhash64\(`(?P<hashed>\w+)`\) AS decimal\(38,0\)\)\) AS `h\d+`"
)


def digest(table: pa.Table, selected: Sequence[str]) -> pa.Table:
    """One row with what `selected` asks for: count(*), count(`c`), or the sum of xxhash64(`c`)."""
    values: list[Any] = []
    for text in selected:
        form = _FORMS.fullmatch(text)
        assert form is not None, f"the digest has no form for {text}"
        if form["rows"]:
            values.append(pa.array([table.num_rows]))
        elif form["counted"]:
            values.append(pa.array([pc.count(table[form["counted"]]).as_py()]))
        else:
            values.append(pa.array([Decimal(_hash_sum(table[form["hashed"]]))], pa.decimal128(38, 0)))
    return pa.table(values, names=[str(position) for position in range(len(values))])


def _hash_sum(column: pa.ChunkedArray) -> int:
    total = 0
    for entry in pc.value_counts(column):
        total += _hash(entry["values"].as_py(), column.type) * entry["counts"].as_py()
    return total


def _hash(value: Any, kind: pa.DataType) -> int:
    """Spark's xxhash64 of one value: a null leaves the seed as it is; 8 bytes for a long, 4 for an int or less."""
    if value is None:
        return _SEED
    if pt.is_string(kind):
        data = value.encode()
    elif pt.is_int64(kind):
        data = value.to_bytes(8, "little", signed=True)
    elif pt.is_integer(kind):
        data = value.to_bytes(4, "little", signed=True)
    elif pt.is_decimal(kind):
        data = _decimal_bytes(value, kind)
    else:
        raise AssertionError(f"the digest has no form for {kind}")
    unsigned = xxhash.xxh64_intdigest(data, _SEED)
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned


def _decimal_bytes(value: Decimal, kind: pa.DataType) -> bytes:
    """A decimal of up to 18 digits as its unscaled long; a larger one as Java's BigInteger.toByteArray."""
    unscaled = int(value.scaleb(kind.scale, Context(prec=40)))
    if kind.precision <= 18:
        return unscaled.to_bytes(8, "little", signed=True)
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
