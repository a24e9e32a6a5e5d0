"""Random histories: the state that is read through our checkpoints and compactions is that of the commits alone."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_py.checkpoint import checkpoint_state, checkpoint_v2
from delta_py.checkpoint.checkpoint import write_checkpoint
from delta_py.log.checkpoint_content import checkpoint_rows
from delta_py.log.log_compaction import compact
from delta_py.log.log_writer import LogWriter
from delta_py.log.segment import load_segment
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats import json_to_struct
from delta_py.statistics.stats_text import struct_to_json
from delta_py.types.schema import DOUBLE, LONG, STRING
from tests.support.runs.sampling import examples
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import Json, TableBuilder, add, key, remove, stats, vector

PATHS = ["a", "b%20b", "c/d=1/x", "e%25", "file:/abs/f", "%C3%BC", "g", "h"]
VECTORS = st.sampled_from([None, None, vector("v1"), vector("v2", offset=None), vector("v1", offset=9)])
STATS = st.none() | st.builds(stats, st.integers(0, 9), st.integers(-(2**63), 0), st.integers(0, 2**63 - 1)) | st.just("{damaged")
APPS = st.sampled_from(["x", "y"])


@st.composite
def action(draw: st.DrawFn) -> Json:
    match draw(st.sampled_from(["add", "add", "add", "remove", "remove", "txn", "domain"])):
        case "txn":
            return {"txn": {"appId": draw(APPS), "version": draw(st.integers(-5, 5))}}
        case "domain":
            return {
                "domainMetadata": {
                    "domain": draw(APPS),
                    "configuration": draw(st.text(max_size=4)),
                    "removed": draw(st.booleans()),
                }
            }
        case kind:
            path, descriptor = draw(st.sampled_from(PATHS)), draw(VECTORS)
            fields: dict[str, Any] = {} if descriptor is None else {"deletionVector": descriptor}
            if kind == "remove":
                return remove(path, deletionTimestamp=draw(st.integers(0, 4)), **fields)
            row_id, tags = (
                draw(st.none() | st.integers(0, 9)),
                draw(st.none() | st.dictionaries(APPS, st.text(max_size=3), max_size=2)),
            )
            return add(path, size=draw(st.integers(0, 2**40)), stats=draw(STATS), baseRowId=row_id, tags=tags, **fields)


def identity(value: Json) -> Any:
    name, body = next(iter(value.items()))
    return ("file", key(body)) if name in ("add", "remove") else (name, body.get("appId"), body.get("domain"))


def commits() -> st.SearchStrategy[list[list[Json]]]:
    return st.lists(st.lists(action(), max_size=8, unique_by=identity), min_size=2, max_size=8)


def small_batches(patch: pytest.MonkeyPatch) -> None:
    """So that a few files already need several batches, sidecars, and reused sidecars."""
    patch.setattr(checkpoint_rows, "_BATCH_ROWS", 3)
    patch.setattr(checkpoint_state, "_JOINED_ROWS", 2)
    patch.setattr(checkpoint_v2, "SIDECAR_ROWS", 2)
    patch.setattr(checkpoint_v2, "REUSED_ROWS", 1)


def found(snapshot: Snapshot) -> Any:
    files = sorted(snapshot.files().to_pylist(), key=lambda row: (row["path"], str(row["deletion_vector"])))
    return files, snapshot.set_transactions(), snapshot.domain_metadata(), snapshot.protocol, snapshot.metadata


@settings(max_examples=examples(25, 160), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=commits(), data=st.data())
def test_state_through_what_we_write_is_the_state_of_the_commits(
    history: list[list[Json]], data: st.DataObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_batches(monkeypatch)
    policy = data.draw(st.sampled_from(["classic", "v2"]), label="policy")
    table = TableBuilder(MemoryStore())
    table.commit(
        table.protocol(features=["v2Checkpoint", "deletionVectors", "domainMetadata"]),
        table.metadata(configuration={"delta.checkpointPolicy": policy, "delta.deletedFileRetentionDuration": "interval 0 days"}),
        *history[0],
    )
    for actions in history[1:]:
        table.commit(*actions)
    last = len(history) - 1
    expected = [found(Snapshot.load(table.store, version)) for version in range(last + 1)]
    writer = LogWriter(table.store, Snapshot.load(table.store).config)
    tombstones_ms = data.draw(st.integers(0, 4), label="now")
    checkpoints = sorted(data.draw(st.sets(st.integers(0, last), min_size=1, max_size=3), label="checkpoints"))
    if data.draw(st.booleans(), label="compaction"):
        start = data.draw(st.integers(0, last - 1), label="start")
        end = data.draw(st.integers(start + 1, last), label="end")
        if (text := compact(table.store, start, end)) is not None:
            writer.put_compaction(start, end, text)
    for version in checkpoints:
        written = write_checkpoint(table.store, writer, load_segment(table.store, version), now_ms=tombstones_ms)
        assert (written.file_count, written.table_bytes) == totals(expected[version])
    for version in range(checkpoints[-1]):
        table.delete(f"{version:020d}.json")
    for version in range(checkpoints[-1], last + 1):
        snapshot = Snapshot.load(table.store, version)
        assert found(snapshot) == expected[version]
    assert tombstones(table, last, tombstones_ms) <= {identity(a) for a in table.replay(last) if "remove" in a}


def totals(state: Any) -> tuple[int, int]:
    return len(state[0]), sum(row["size"] for row in state[0])


def tombstones(table: TableBuilder, version: int, now_ms: int) -> set[Any]:
    """The removed files that a checkpoint of a later version still contains."""
    writer = LogWriter(table.store, Snapshot.load(table.store).config)
    write_checkpoint(table.store, writer, load_segment(table.store, version), now_ms=now_ms)
    reader = Snapshot.load(table.store)._log._open(load_segment(table.store, version))[1]
    assert reader is not None
    keys = set()
    for part in [*reader.top_parts, *reader.sidecars]:
        assert isinstance(part, checkpoint_state.ParquetPart)
        for columns in checkpoint_rows.removes_of_part(part):
            for path, descriptor, time in zip(
                *(columns[n].to_pylist() for n in ("path", "deletionVector", "deletionTimestamp")), strict=True
            ):
                assert time > now_ms
                keys.add(("file", key({"path": path, "deletionVector": descriptor})))
    return keys


JSON_STATS = st.fixed_dictionaries(
    {"numRecords": st.integers(0, 2**40)},
    optional={
        "minValues": st.fixed_dictionaries(
            {},
            optional={
                "n": st.integers(-(2**63), 2**63 - 1),
                "x": st.floats(allow_nan=False, allow_infinity=False),
                "s": st.text(),
            },
        ),
        "nullCount": st.fixed_dictionaries({}, optional={"n": st.integers(0, 9), "s": st.integers(0, 9)}),
        "tightBounds": st.booleans(),
    },
)


@given(st.lists(st.none() | JSON_STATS, min_size=1, max_size=6))
def test_statistics_survive_the_way_to_a_struct_and_back(values: list[dict[str, Any] | None]) -> None:
    leaves = {("n",): LONG, ("x",): DOUBLE, ("s",): STRING}
    texts = pa.array([None if value is None else orjson.dumps(value).decode() for value in values], pa.string())
    back = struct_to_json(json_to_struct(texts, leaves, tight_bounds=True)).to_pylist()
    assert [None if text is None else orjson.loads(text) for text in back] == [
        None if value is None else {name: item for name, item in value.items() if item != {}} for value in values
    ]
