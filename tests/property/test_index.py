"""Whatever the history and the values: a lookup with indexes gives the rows that one without gives."""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_py import DeltaTable, write_delta
from delta_py.commands import index_upkeep
from delta_py.commands.index_build import BuildLimits
from delta_py.commands.restore import restore
from delta_py.expressions.tree import Column, Comparison, Expression, In, Literal
from delta_py.index import lookup, segments
from delta_py.parquet.reader import read_files
from delta_py.protocol.schema import from_arrow_type
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.storage.local import LocalStore
from tests.support.sampling import examples
from tests.unit.commands.test_optimize import compacted, delete

UTC = dt.UTC
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [None, -1, 0, 1, 2**31 - 1]),
    "long": (pa.int64(), [None, -1, 0, 2**40, -(2**63)]),
    "float": (pa.float32(), [None, 0.0, -0.0, math.nan, 1.5, math.inf]),
    "double": (pa.float64(), [None, 0.0, -0.0, math.nan, 0.1, -math.inf]),
    "decimal": (pa.decimal128(10, 2), [None, Decimal("0.00"), Decimal("1.50"), Decimal("-99999999.99")]),
    "text": (pa.string(), [None, "", " ", "a", "a ", "A", "ü" * 40, "x" * 129 + "y", "x" * 130]),
    "bytes": (pa.binary(), [None, b"", b"\0", b"\0\0", b"\xff"]),
    "day": (pa.date32(), [None, dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2024, 2, 29)]),
    "time": (pa.timestamp("us", "UTC"), [None, dt.datetime(1900, 1, 1, tzinfo=UTC), dt.datetime(2024, 1, 1, tzinfo=UTC)]),
    "flag": (pa.bool_(), [None, True, False]),
}
STEPS = st.sampled_from(["append", "append", "append", "delete", "optimize", "refresh", "cover", "restore", "checkpoint"])


def rows(kind: str, picked: list[int], start: int) -> pa.Table:
    arrow, values = VALUES[kind]
    column = pa.array([values[number % len(values)] for number in picked], arrow)
    ids = pa.array(range(start, start + len(picked)), pa.int64())
    return pa.table({"id": ids, "v": column, "n": pa.StructArray.from_arrays([column], ["v"])})


def found(path: str, predicate: Expression, version: int | None) -> list[int]:
    snapshot = DeltaTable(path, version=version).snapshot
    scan = plan_scan(snapshot, ["id"], predicate, ScanOptions(drop_rows=True))
    return sorted(number for batch in read_files(scan.state, scan.scan_files()) for number in batch["id"].to_pylist())


def predicates(kind: str) -> list[Expression]:
    arrow, values = VALUES[kind]
    literals = [Literal(value, from_arrow_type(arrow)) for value in values]
    asked: list[Expression] = []
    for column in (Column(("v",)), Column(("n", "v"))):
        asked += [Comparison(op, column, literal) for op in ("=", "<=>") for literal in literals]
        asked += [In(column, tuple(literals[:2])), In(column, tuple(literals[1:3])), In(column, ())]
    return asked


@pytest.mark.usefixtures("no_waits")
@settings(max_examples=examples(8, 48), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=st.sampled_from(sorted(VALUES)),
    steps=st.lists(st.tuples(STEPS, st.lists(st.integers(0, 20), min_size=1, max_size=6)), min_size=2, max_size=9),
)
def test_lookup_gives_the_rows_that_one_without_an_index_gives(kind: str, steps: list[tuple[str, list[int]]]) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        path = f"{directory}/table"
        patch.setattr(index_upkeep, "_DUE_FILES", 2)
        patch.setattr(segments, "_GROUP_ROWS", 2)
        for known in (index_upkeep._uncovered, segments._open_segments):
            known.clear()
        write_delta(path, rows(kind, [0, 1, 2, 3], 0), configuration={"delta.enableDeletionVectors": "true"})
        DeltaTable(path).index.create("v")
        DeltaTable(path).index.create("n.v")
        for number, (step, picked) in enumerate(steps, 1):
            take(step, path, kind, picked, 100 * number)
        versions = (None, DeltaTable(path).version // 2)
        for number, predicate in enumerate(predicates(kind)):
            with_index = found(path, predicate, versions[number % 2])
            with patch.context() as without:
                without.setattr(lookup.IndexLookup, "of", lambda snapshot, predicate: None)
                assert found(path, predicate, versions[number % 2]) == with_index, predicate
        DeltaTable(path).snapshot.check_integrity()


def take(step: str, path: str, kind: str, picked: list[int], start: int) -> None:
    match step:
        case "append":
            write_delta(path, rows(kind, picked, start), mode="append")
        case "delete":
            delete(path, lambda number: number % 7 == picked[0] % 7)
        case "optimize":
            compacted(path)
        case "refresh":
            DeltaTable(path).index.refresh()
        case "cover":
            DeltaTable(path).index.cover("v", BuildLimits(most_bytes=1, merge_count=3))
        case "restore":
            restore(LocalStore(path), version=picked[0] % (DeltaTable(path).version + 1))
            if not pc.any(pc.equal(DeltaTable(path).index.list()["name"], "v")).as_py():
                DeltaTable(path).index.create("v")
        case "checkpoint":
            DeltaTable(path).checkpoint()
