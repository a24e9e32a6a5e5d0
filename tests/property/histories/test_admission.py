"""Admission: whatever the limits on a table and its commits, with restarts or without, each file comes once, in one order."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py.snapshot import Snapshot
from delta_py.streaming.batch_limits import Limits
from delta_py.streaming.commits import ChangeRules
from delta_py.streaming.offset import StreamOffset
from delta_py.streaming.source import StreamSource
from delta_py.streaming.stream_options import StreamOptions
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add, remove

# The effect of a commit: add files (their sizes), replace a live file without changing rows, or delete one.
COMMITS = st.lists(st.one_of(st.lists(st.integers(0, 50), max_size=4), st.sampled_from(["optimize", "delete"])), max_size=8)
LIMITS = st.builds(Limits, files=st.one_of(st.none(), st.integers(1, 5)), bytes=st.one_of(st.none(), st.integers(1, 120)))


def build(commits: list[Any], checkpoint_at: int | None) -> TableBuilder:
    builder = TableBuilder(MemoryStore())
    builder.create()
    for number, what in enumerate(commits):
        live = sorted(path for path, _ in builder.live())
        if what == "optimize" and live:
            builder.commit(remove(live[0], dataChange=False), add(f"o{number}", dataChange=False, modificationTime=number % 3))
        elif what == "delete" and live:
            builder.commit(remove(live[-1]))
        else:
            sizes = what if isinstance(what, list) else []
            builder.commit(*(add(f"f{number}-{i}", size=size, modificationTime=i % 2) for i, size in enumerate(sizes)))
    if checkpoint_at is not None and checkpoint_at in builder.commits:
        builder.checkpoint(checkpoint_at)
    return builder


@settings(max_examples=60)
@given(
    commits=COMMITS,
    first=st.integers(0, 8),
    initial=st.booleans(),
    limits=st.lists(LIMITS, min_size=1, max_size=6),
    restarts=st.booleans(),
    checkpoint_at=st.one_of(st.none(), st.integers(0, 8)),
)
def test_batches_of_any_limits_repeat_and_have_each_file_once(
    commits: list[Any], first: int, initial: bool, limits: list[Limits], restarts: bool, checkpoint_at: int | None
) -> None:
    builder = build(commits, checkpoint_at)
    first = min(first, len(commits))
    options = StreamOptions(rules=ChangeRules(ignore_deletes=True))

    def open_source() -> StreamSource:
        return StreamSource(Snapshot.load(builder.store), options)

    stream = open_source()
    table_id = Snapshot.load(builder.store).metadata.id
    begin = StreamOffset(table_id, first, is_initial=initial)
    all_paths = stream.plan(begin, stream.admit(begin, Limits())).paths()
    place, paths, turn = begin, [], 0
    while (end := stream.admit(place, limits[turn % len(limits)])) != place:
        files = stream.plan(place, end).paths()
        assert files, "a batch without files was admitted"
        assert limits[turn % len(limits)].files is None or len(files) <= limits[turn % len(limits)].files
        stream = open_source() if restarts else stream
        assert stream.plan(place, StreamOffset.from_json(end.to_json())).paths() == files
        paths.extend(files)
        place, turn = end, turn + 1
    assert paths == all_paths
    assert sorted(paths) == sorted(expected(builder, first, initial))


def expected(builder: TableBuilder, first: int, initial: bool) -> list[str]:
    """By plain replay: the live files of a version and the files that later commits added."""
    paths = [path for path, _ in builder.live(first)] if initial else []
    for version in range(first + initial, len(builder.commits)):
        adds = [action["add"] for action in builder.commits[version] if "add" in action]
        paths.extend(action["path"] for action in adds if action["dataChange"])
    return paths
