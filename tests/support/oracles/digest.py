"""Counts and hash sums of columns as Spark computes them, for tables with too many rows to store next to the test."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
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
    """One row with the selected values: count(*), count(`c`), or the sum of xxhash64(`c`)."""
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
    """Spark's xxhash64 of all values, summed: a null leaves the seed unchanged."""
    counted = pc.value_counts(column.drop_null())
    hashes = (xxhash.xxh64_intdigest(data, _SEED) for data in _as_bytes(counted.field("values")))
    signed = (unsigned - (1 << 64) if unsigned >> 63 else unsigned for unsigned in hashes)
    return _SEED * column.null_count + sum(map(operator.mul, signed, counted.field("counts").to_pylist()))


def _as_bytes(values: pa.Array) -> Iterable[bytes]:
    """The bytes that Spark hashes of each value: 8 of a long, 4 of an int or less."""
    kind = values.type
    if pt.is_string(kind):
        return (value.encode() for value in values.to_pylist())
    if pt.is_integer(kind):
        width = 8 if pt.is_int64(kind) else 4
        return map(bytes, values.to_numpy().astype(f"<i{width}").view(f"V{width}"))
    if pt.is_decimal(kind):
        return (_decimal_bytes(value, kind) for value in values.to_pylist())
    raise AssertionError(f"the digest has no form for {kind}")


def _decimal_bytes(value: Decimal, kind: pa.DataType) -> bytes:
    """A decimal of up to 18 digits as its unscaled long; a larger one as Java's BigInteger.toByteArray."""
    unscaled = int(value.scaleb(kind.scale, Context(prec=40)))
    if kind.precision <= 18:
        return unscaled.to_bytes(8, "little", signed=True)
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)
