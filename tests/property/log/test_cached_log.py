"""Random histories of a remote table, read with the cache directory and without: the state is always the same."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py.checkpoint.checkpoint import write_checkpoint
from delta_py.checkpoint.cleanup import clean_log
from delta_py.errors import DeltaError
from delta_py.log.log_writer import LogWriter
from delta_py.log.segment import load_segment
from delta_py.snapshot import Snapshot
from delta_py.storage.cache import cached_objects
from delta_py.storage.cache.cached_objects import CachedObjects
from delta_py.storage.cache.disk_cache import DiskCache
from delta_py.storage.store import ObjectInfo
from tests.support.runs.sampling import examples
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add, remove

DAY_MS = 86_400_000
START_MS = 1_700_006_400_000
PROPERTIES = {"delta.logRetentionDuration": "interval 2 days"}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(0, 5)),
        st.tuples(st.just("commit"), st.integers(0, 5)),
        st.tuples(st.just("checkpoint"), st.sampled_from(["classic", "multipart", "v2-json", "v2-parquet", "ours"])),
        st.tuples(st.just("compact"), st.integers(1, 3)),
        st.tuples(st.just("cleanup"), st.integers(1, 4)),
        st.tuples(st.just("recreate"), st.booleans()),
        st.tuples(st.just("damage"), st.integers(0, 3)),
    ),
    min_size=4,
    max_size=14,
)


class History:
    """A table whose commits differ only in a file of one letter that they name, so that sizes repeat."""

    def __init__(self, has_etags: bool, places: Path) -> None:
        self.store, self.places = MemoryStore(has_etags=has_etags), places
        self.now_ms = START_MS
        self.create(False)

    def create(self, is_v2: bool) -> None:
        self.store.objects.clear()
        self.now_ms += 1000
        self.table, self.is_v2 = TableBuilder(self.store, self.now_ms), is_v2
        properties = {**PROPERTIES, **({"delta.checkpointPolicy": "v2"} if is_v2 else {})}
        self.table.commit(self.table.protocol(features=["v2Checkpoint"]), self.table.metadata(configuration=properties), add("a"))
        self.now_ms = self.table.time_ms

    def take(self, step: str, value: Any) -> None:
        table, version = self.table, max(self.table.commits)
        table.time_ms = self.now_ms
        match step:
            case "commit":
                path = "abcdef"[value]
                table.commit(remove(path) if (path, None) in table.live() else add(path))
            case "checkpoint" if value == "ours":
                write_checkpoint(self.store, self.writer(), load_segment(self.store), now_ms=self.now_ms)
            case "checkpoint":
                table.checkpoint(kind=value, sidecars=2 if value.startswith("v2") else 0)
            case "compact" if version - value > 0 and all(
                f"_delta_log/{number:020d}.json" in self.store.objects for number in range(version - value, version + 1)
            ):
                table.compact(version - value, version)
            case "cleanup":
                self.now_ms += value * DAY_MS
                self.store.now_ms = self.now_ms
                clean_log(self.store, self.writer(), Snapshot.load(self.store).config, now_ms=self.now_ms)
            case "recreate":
                self.create(value)
            case "damage":
                for entry in sorted(self.places.iterdir())[value::4]:
                    entry.write_bytes(entry.read_bytes()[:-1])
        self.now_ms = max(self.now_ms, table.time_ms)

    def writer(self) -> LogWriter:
        return LogWriter(self.store, Snapshot.load(self.store).config)

    def states(self) -> list[Any]:
        return [self._state(version) for version in (None, *range(max(self.table.commits) + 1))]

    def _state(self, version: int | None) -> Any:
        try:
            snapshot = Snapshot.load(self.store, version)
            files = sorted(snapshot.files().to_pylist(), key=lambda row: row["path"])
            return snapshot.version, snapshot.protocol, snapshot.metadata, files
        except DeltaError as error:
            return type(error), error.message


@settings(max_examples=examples(16, 100))
@given(st.booleans(), st.booleans(), STEPS)
def test_any_history_reads_with_the_cache_as_without(has_etags: bool, in_blocks: bool, steps: list[tuple[str, Any]]) -> None:
    with (
        tempfile.TemporaryDirectory() as place,
        patch.dict("os.environ", PYDELTA_CACHE_DIR=place),
        patch.object(cached_objects, "_WHOLE_BYTES", 100 if in_blocks else 1 << 20),
        patch.object(cached_objects, "_BLOCK_BYTES", 1000),
    ):
        history = History(has_etags, Path(place))
        for step, value in steps:
            history.take(step, value)
            cached_states = history.states()
            assert any(Path(place).iterdir())
            with patch.dict("os.environ", PYDELTA_CACHE_DIR=""):
                assert history.states() == cached_states, (step, value)
        live = {path for path, _ in history.table.live()}
        assert {row["path"] for row in cached_states[0][3]} == live


@given(
    st.binary(min_size=1, max_size=500),
    st.lists(st.tuples(st.integers(0, 520), st.integers(0, 520)), min_size=1, max_size=8),
    st.integers(1, 60),
)
def test_any_ranges_of_a_large_object_are_its_bytes(content: bytes, ranges: list[tuple[int, int]], block: int) -> None:
    store = MemoryStore()
    store.put("a", content)
    (info,) = store.list_from("")
    assert isinstance(info, ObjectInfo)
    with (
        tempfile.TemporaryDirectory() as place,
        patch.object(cached_objects, "_WHOLE_BYTES", 0),
        patch.object(cached_objects, "_BLOCK_BYTES", block),
    ):
        for _ in range(2):
            source = CachedObjects(store, DiskCache(Path(place), 1 << 30)).open_input(info)
            assert [source.read_at(length, start) for start, length in ranges] == [
                content[start : start + length] for start, length in ranges
            ]
            call_count = len(store.calls)
        source = CachedObjects(store, DiskCache(Path(place), 1 << 30)).open_input(info)
        assert [source.read_at(length, start) for start, length in ranges] and len(store.calls) == call_count
