"""Whatever changes tables that are shallow clones of each other make, VACUUM without retention deletes no row of any of them."""

from __future__ import annotations

import tempfile
import time

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_py import DeltaTable, write_delta
from delta_py.storage.local import LocalStore
from delta_py.vacuum.vacuum import VacuumKind, VacuumRequest, vacuum
from tests.support.runs.sampling import examples
from tests.unit.optimize.test_optimize import compacted, delete

TABLES = 3
WRITES, CLONES = ["append", "overwrite", "delete", "optimize", "checkpoint"], ["clone", "deep clone"]
VACUUMS = ["vacuum", "lite", "quarantine"]
ACTIONS = st.one_of(st.sampled_from(WRITES), st.sampled_from(CLONES), st.sampled_from(VACUUMS))
STEPS = st.tuples(ACTIONS, st.integers(0, TABLES - 1), st.integers(1, TABLES - 1), st.integers(0, 20))


@pytest.mark.usefixtures("no_waits")
@settings(max_examples=examples(12, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, min_size=4, max_size=16))
def test_vacuum_takes_no_row_of_a_table_or_of_its_clones(steps: list[tuple[str, int, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        paths = [f"{directory}/{number}" for number in range(TABLES)]
        for number, path in enumerate(paths):
            write_delta(path, rows(100 * number, number), configuration={"delta.enableDeletionVectors": "true"})
        expected = [ids(path) for path in paths]
        for number, (action, table, other, picked) in enumerate(steps, TABLES):
            other = (table + other) % TABLES
            take(action, paths[table], paths[other], 100 * number, picked)
            match action:
                case "append":
                    expected[table] = expected[table] + ids_of(100 * number, picked)
                case "overwrite":
                    expected[table] = ids_of(100 * number, picked)
                case "delete":
                    expected[table] = [row for row in expected[table] if row % 5 != picked % 5]
                case "clone" | "deep clone":
                    expected[other] = expected[table]
            assert [ids(path) for path in paths] == [sorted(each) for each in expected]


def take(action: str, path: str, other: str, start: int, picked: int) -> None:
    match action:
        case "append" | "overwrite":
            write_delta(path, rows(start, picked), mode=action)
        case "delete":
            delete(path, lambda row: row % 5 == picked % 5)
        case "optimize":
            compacted(path)
        case "clone" | "deep clone":
            DeltaTable(path).clone(other, shallow=action == "clone", replace=True)
        case "vacuum" | "lite" | "quarantine":
            time.sleep(0.003)
            kind = VacuumKind.LITE if action == "lite" else VacuumKind.FULL
            request = VacuumRequest(0, check_retention=False, kind=kind, quarantine=action == "quarantine")
            days = (0, 2, 20)[picked % 3]
            vacuum(LocalStore(path), request, lambda: time.time_ns() // 1_000_000 + days * 86_400_000)
        case "checkpoint":
            DeltaTable(path).checkpoint()


def ids_of(start: int, picked: int) -> list[int]:
    return list(range(start, start + picked % 7 + 1))


def rows(start: int, picked: int) -> pa.Table:
    return pa.table({"id": pa.array(ids_of(start, picked), pa.int64())})


def ids(path: str) -> list[int]:
    return sorted(DeltaTable(path).to_arrow()["id"].to_pylist())
