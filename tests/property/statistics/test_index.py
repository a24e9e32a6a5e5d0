"""Whatever the history and the values: a lookup with indexes returns the same rows as one without."""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_py import DeltaTable, write_delta
from delta_py.copies.restore import restore
from delta_py.expressions.tree import Column, Comparison, Expression, In, Literal
from delta_py.index import lookup, segments
from delta_py.index_commands import index_upkeep
from delta_py.index_commands.index_build import BuildLimits
from delta_py.parquet.file_reader import read_files
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.storage.local import LocalStore
from delta_py.types.schema import StructField, StructType, to_arrow_type
from tests.support.runs.sampling import examples
from tests.unit.optimize.test_optimize import compacted, delete

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
# The wider types of each type. The first ones keep their hashes; a date becomes another kind of value.
WIDER: dict[str, pa.DataType] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "decimal": pa.decimal128(14, 2),
    "day": pa.timestamp("us"),
}
STEPS = st.one_of(
    st.sampled_from(["append", "append", "append", "delete", "optimize", "refresh", "cover", "restore", "checkpoint"]),
    st.sampled_from(["rename", "widen", "clone", "shallow clone"]),
)
CONFIGURATION = {
    "delta.enableDeletionVectors": "true",
    "delta.enableTypeWidening": "true",
    "delta.feature.timestampNtz": "supported",  # a date may become this kind of timestamp
}
MAPPED = {"delta.columnMapping.mode": "name"}


def fields(table: DeltaTable) -> tuple[StructField, StructField, StructField]:
    """The indexed column, the struct, and the indexed field in it, whatever their current names are."""
    _, value, struct = table.struct_type.fields
    assert isinstance(struct.data_type, StructType)
    return value, struct, struct.data_type.fields[0]


def rows(kind: str, picked: list[int], start: int, table: DeltaTable | None = None) -> pa.Table:
    """With the table's types and names."""
    arrow, values = VALUES[kind]
    column = pa.array([values[number % len(values)] for number in picked], arrow)
    ids = pa.array(range(start, start + len(picked)), pa.int64())
    if table is None:
        return pa.table({"id": ids, "v": column, "n": pa.StructArray.from_arrays([column], ["v"])})
    value, struct, inner = fields(table)
    nested = pa.StructArray.from_arrays([column.cast(to_arrow_type(inner.data_type))], [inner.name])
    return pa.table({"id": ids, value.name: column.cast(to_arrow_type(value.data_type)), struct.name: nested})


def found(table: DeltaTable, predicate: Expression) -> list[int]:
    scan = plan_scan(table.snapshot, ["id"], predicate, ScanOptions(drop_rows=True))
    return sorted(number for batch in read_files(scan.state, scan.scan_files()) for number in batch["id"].to_pylist())


def predicates(kind: str, table: DeltaTable) -> list[Expression]:
    arrow, values = VALUES[kind]
    value, struct, inner = fields(table)
    all_predicates: list[Expression] = []
    for path, data_type in (((value.name,), value.data_type), ((struct.name, inner.name), inner.data_type)):
        column = Column(path)
        now = pa.array(values, arrow).cast(to_arrow_type(data_type)).to_pylist()
        literals = [Literal(one, data_type) for one in now]
        all_predicates += [Comparison(op, column, literal) for op in ("=", "<=>") for literal in literals]
        all_predicates += [In(column, tuple(literals[:2])), In(column, tuple(literals[1:3])), In(column, ())]
    return all_predicates


@pytest.mark.usefixtures("no_waits")
@settings(max_examples=examples(8, 48), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=st.sampled_from(sorted(VALUES)),
    is_mapped=st.booleans(),
    steps=st.lists(st.tuples(STEPS, st.lists(st.integers(0, 20), min_size=1, max_size=6)), min_size=2, max_size=9),
)
def test_lookup_gives_the_rows_that_one_without_an_index_gives(
    kind: str, is_mapped: bool, steps: list[tuple[str, list[int]]]
) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        path = f"{directory}/0"
        patch.setattr(index_upkeep, "_DUE_FILES", 2)
        patch.setattr(segments, "_GROUP_ROWS", 2)
        for cache in (index_upkeep._uncovered, segments._open_segments):
            cache.clear()
        write_delta(path, rows(kind, [0, 1, 2, 3], 0), configuration=CONFIGURATION | (MAPPED if is_mapped else {}))
        DeltaTable(path).index.create("v")
        DeltaTable(path).index.create("n.v")
        for number, (step, picked) in enumerate(steps, 1):
            path = take(step, path, kind, picked, 100 * number)
        tables = (DeltaTable(path), DeltaTable(path, version=DeltaTable(path).version // 2))
        for place, table in enumerate(tables):
            for predicate in predicates(kind, table)[place::2]:
                with_index = found(table, predicate)
                with patch.context() as without:
                    without.setattr(lookup.IndexLookup, "of", lambda snapshot, predicate: None)
                    assert found(table, predicate) == with_index, predicate
        DeltaTable(path).snapshot.check_integrity()


def take(step: str, path: str, kind: str, picked: list[int], start: int) -> str:
    """Returns the table's current path."""
    table = DeltaTable(path)
    match step:
        case "append":
            write_delta(path, rows(kind, picked, start, table), mode="append")
        case "delete":
            delete(path, lambda number: number % 7 == picked[0] % 7)
        case "optimize":
            compacted(path)
        case "refresh":
            table.index.refresh()
        case "cover":
            table.index.cover("v", BuildLimits(most_bytes=1, merge_count=3))
        case "restore":
            restore(LocalStore(path), version=picked[0] % (table.version + 1))
            if "v" not in DeltaTable(path).index.list()["name"].to_pylist():
                DeltaTable(path).index.create(fields(DeltaTable(path))[0].name, name="v")
        case "checkpoint":
            table.checkpoint()
        case "rename" if table.snapshot.config.column_mapping_mode != "none":
            value, struct, inner = fields(table)
            name = [value.name, struct.name, f"{struct.name}.{inner.name}"][picked[0] % 3]
            table.alter.rename_column(name, f"r{start}")
        case "widen" if kind in WIDER:
            value, struct, inner = fields(table)
            table.alter.change_column(value.name, data_type=WIDER[kind])
            DeltaTable(path).alter.change_column(f"{struct.name}.{inner.name}", data_type=WIDER[kind])
        case "clone" | "shallow clone":
            directory, _, name = path.rpartition("/")
            copy = f"{directory}/{1 - int(name)}"
            table.clone(copy, shallow=step == "shallow clone", replace=True)
            return copy
    return path
