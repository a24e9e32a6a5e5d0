"""Files that are pruned part by part, while the log is read, are those that pruning the whole list keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py.expressions.tree import Column, Comparison, Literal
from delta_py.log import reconciliation
from delta_py.log.checkpoint_content import parquet_part
from delta_py.scan.planning import plan_scan
from delta_py.snapshot import Snapshot
from delta_py.statistics import stats_layout
from delta_py.types.schema import LONG
from tests.support.runs.sampling import examples
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import Json, TableBuilder, add, key, remove, vector

STATS_PARSED = pa.struct(
    [
        ("numRecords", pa.int64()),
        ("minValues", pa.struct([("id", pa.int64())])),
        ("maxValues", pa.struct([("id", pa.int64())])),
        ("nullCount", pa.struct([("id", pa.int64())])),
    ]
)
PATHS = [f"part-{number}" for number in range(12)]
VECTORS = st.sampled_from([None, None, vector("v1"), vector("v2", offset=None)])


@pytest.fixture(autouse=True, scope="module")
def small_batches() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_part, "_BATCH_ROWS", 3)
        patch.setattr(parquet_part, "_LEAST_ROWS_WITH_TEXT", 2)
        patch.setattr(parquet_part, "_MOST_ROWS_WITH_TEXT", 2)
        patch.setattr(stats_layout, "_LEAST_TEXTS", 1)
        yield


@st.composite
def file_actions(draw: st.DrawFn) -> Json:
    path, descriptor = draw(st.sampled_from(PATHS)), draw(VECTORS)
    fields = {} if descriptor is None else {"deletionVector": descriptor}
    if draw(st.integers(0, 3)) == 0:
        return remove(path, **fields)
    low = draw(st.none() | st.integers(0, 20))
    return add(path, size=draw(st.integers(0, 9)), **fields, **({} if low is None else {"stats": text(low, draw)}))


def text(low: int, draw: st.DrawFn) -> str:
    high = low + draw(st.integers(0, 5))
    members = {"numRecords": 5, "minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}}
    return json.dumps(members, separators=draw(st.sampled_from([(",", ":"), (",", ":"), (", ", ": ")])))


@st.composite
def commits(draw: st.DrawFn) -> list[Json]:
    """At most one action for each logical file."""
    actions = draw(st.lists(file_actions(), max_size=10))
    return list({key(next(iter(action.values()))): action for action in actions}.values())


def may_hold(action: Json, value: int) -> bool:
    if "stats" not in action:
        return True
    stats = json.loads(action["stats"])
    return bool(stats["minValues"]["id"] <= value <= stats["maxValues"]["id"])


@settings(max_examples=examples(80))
@given(st.lists(commits(), min_size=1, max_size=6), st.integers(0, 25), st.booleans(), st.data())
def test_files_pruned_part_by_part_are_those_pruned_as_a_whole(
    versions: list[list[Json]], value: int, many: bool, data: st.DataObject
) -> None:
    table = TableBuilder(MemoryStore())
    table.create(*versions[0])
    for actions in versions[1:]:
        table.commit(*actions)
    last = len(versions) - 1
    kinds = st.sampled_from(["classic", "multipart", "v2-json", "v2-parquet"])
    names: list[str] = []
    for version in sorted(data.draw(st.sets(st.integers(0, last), max_size=2), label="checkpoints")):
        parsed = data.draw(st.sampled_from([None, STATS_PARSED]))
        names = table.checkpoint(
            version,
            kind=data.draw(kinds),
            parts=3,
            sidecars=data.draw(st.integers(0, 3)),
            stats_json=parsed is None or data.draw(st.booleans()),
            stats_parsed=parsed,
            batch=data.draw(st.integers(1, 6)),
        )
    if names and data.draw(st.booleans(), label="damaged"):  # commits and older checkpoints still have everything
        name = data.draw(st.sampled_from(names))
        complete_bytes = table.store.read(f"_delta_log/{name}")
        place = data.draw(st.integers(4, len(complete_bytes) - 1))
        table.write(name, complete_bytes[:place] if data.draw(st.booleans()) else b"")
    live = table.live()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconciliation, "_MANY_KEYS", 0 if many else 1_000)
        scan = plan_scan(Snapshot.load(table.store), None, Comparison("=", Column(("id",)), Literal(value, LONG)))
    planned_keys = [key({"path": row["path"], "deletionVector": row["deletion_vector"]}) for row in scan.files.to_pylist()]
    assert sorted(planned_keys, key=str) == sorted((name for name, action in live.items() if may_hold(action, value)), key=str)
    assert (scan.report.files_total, scan.report.bytes_total) == (len(live), sum(action["size"] for action in live.values()))
