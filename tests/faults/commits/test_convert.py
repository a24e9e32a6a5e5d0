"""CONVERT TO DELTA with each storage call failed in turn: there is the whole table or none, and the files do not change."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable
from delta_py.copies.convert_to_delta import ConvertRequest, convert
from delta_py.errors import TableNotFoundError
from delta_py.storage.local import LocalStore
from delta_py.types.schema import INTEGER, StructField, StructType
from tests.support.stores.faulty_store import FAULTS, Fault, FaultyStore, outcome_of

pytestmark = pytest.mark.usefixtures("no_waits")

REQUEST = ConvertRequest(StructType((StructField("p", INTEGER),)))


def make(path: Path) -> Path:
    """Two files with different columns, so that footers are read twice."""
    for number in range(2):
        directory = path / f"p={number}"
        directory.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number], f"c{number}": ["x"]}), directory / "a.parquet")
    return path


def data(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*.parquet") if "_delta_log" not in file.parts}


def ids(path: Path) -> list[int] | None:
    try:
        return sorted(DeltaTable(str(path)).to_arrow(["id"])["id"].to_pylist())
    except TableNotFoundError:
        return None


def run(store: Any) -> int | None:
    return convert(store, REQUEST).version


@pytest.mark.parametrize("kind", FAULTS)
def test_convert_with_a_failed_call_makes_the_table_or_nothing(tmp_path: Path, kind: str) -> None:
    store = FaultyStore(LocalStore(str(make(tmp_path / "count"))))
    assert run(store) == 0
    outcomes = Counter(one_fault(tmp_path / str(number), Fault(number, **FAULTS[kind])) for number in range(len(store.calls)))
    assert outcomes["refused"] + outcomes["killed"] > 0, "no fault was felt"


def one_fault(directory: Path, fault: Fault) -> str:
    path = make(directory)
    before, store = data(path), FaultyStore(LocalStore(str(path)), fault)
    version, outcome = outcome_of(lambda: run(store))
    call, actual_ids = store.calls[min(fault.call, len(store.calls) - 1)], ids(path)
    assert data(path) == before, call
    assert actual_ids in (None, [0, 1]), call
    assert (actual_ids is not None, outcome) not in ((False, "done"), (True, "refused")), call
    assert version == 0 or outcome != "done", call
    assert run(LocalStore(str(path))) == (0 if actual_ids is None else None), call
    assert ids(path) == [0, 1] and data(path) == before, call
    return outcome
