"""Random logs, compared with a replay of plain dictionaries; random damage, which must give clean errors."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from delta_py.errors import DeltaError
from delta_py.log.commit_reader import CommitReader
from delta_py.log.segment import list_commits
from delta_py.snapshot import Snapshot
from tests.support.runs.sampling import examples
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import Json, TableBuilder, add, key, remove, vector

PATHS = ["a", "b%20b", "c/d=1/x", "e%25", "file:/abs/f", "%C3%BC"]
VECTORS = st.sampled_from([None, vector("v1"), vector("v2", offset=None), vector("v1", offset=9)])


@st.composite
def file_action(draw: st.DrawFn) -> Json:
    path, descriptor = draw(st.sampled_from(PATHS)), draw(VECTORS)
    fields: dict[str, Any] = {} if descriptor is None else {"deletionVector": descriptor}
    if draw(st.booleans()):
        return remove(path, **fields)
    return add(path, size=draw(st.integers(0, 2**60)), baseRowId=draw(st.none() | st.integers(0, 9)), **fields)


@st.composite
def commit_actions(draw: st.DrawFn) -> list[Json]:
    """At most one action for each logical file."""
    actions = draw(st.lists(file_action(), max_size=8))
    return list({key(next(iter(action.values()))): action for action in actions}.values())


def build(commits: list[list[Json]]) -> TableBuilder:
    table = TableBuilder(MemoryStore())
    table.create(*commits[0])
    for actions in commits[1:]:
        table.commit(*actions)
    return table


def found(snapshot: Snapshot) -> dict[tuple[str, str | None], tuple[int, int | None]]:
    rows = snapshot.files().to_pylist()
    result = {
        key({"path": row["path"].replace("%", "%25"), "deletionVector": row["deletion_vector"]}): (
            row["size"],
            row["base_row_id"],
        )
        for row in rows
    }
    assert len(result) == len(rows), "a file was given twice"
    return result


def expected(table: TableBuilder, version: int) -> dict[tuple[str, str | None], tuple[int, int | None]]:
    live = table.live(version)
    return {
        (path.removeprefix("file:"), identity): (action["size"], action.get("baseRowId"))
        for (path, identity), action in live.items()
    }


@settings(max_examples=examples(40))
@given(st.lists(commit_actions(), min_size=1, max_size=7), st.data())
def test_snapshot_equals_replay_whatever_files_hold_the_log(
    commits: list[list[Json]], data: st.DataObject
) -> None:
    table = build(commits)
    last = len(commits) - 1
    kinds = st.sampled_from(["classic", "multipart", "v2-json", "v2-parquet", "v2-classic"])
    for version in data.draw(st.sets(st.integers(0, last), max_size=3), label="checkpoints"):
        table.checkpoint(
            version, kind=data.draw(kinds), sidecars=data.draw(st.integers(0, 2)), batch=data.draw(st.integers(1, 20))
        )
    for start in data.draw(st.sets(st.integers(0, last), max_size=2), label="compactions"):
        end = data.draw(st.integers(start, last))
        if end > start:
            table.compact(start, end)
    for version in data.draw(st.sets(st.integers(0, last), max_size=2), label="checksums"):
        table.checksum(version)
    version = data.draw(st.integers(0, last), label="version")
    assert found(Snapshot.load(table.store, version)) == expected(table, version)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = [
    "path",
    "partitionValues",
    "size",
    "modificationTime",
    "deletionVector",
    "stats",
    "baseRowId",
    "defaultRowCommitVersion",
    "tags",
]


@given(st.sampled_from(["add", "remove"]), st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES, min_size=1, max_size=3))
def test_action_with_any_fields_is_read_or_refused_cleanly(kind: str, fields: dict[str, Any]) -> None:
    table = TableBuilder(MemoryStore())
    table.create({kind: {**next(iter(add("x").values())), **fields}})
    try:
        Snapshot.load(table.store).files()
        list(CommitReader(table.store).actions(list_commits(table.store)[0]))
    except DeltaError as error:
        assert f"{0:020d}.json, line 4" in error.message


@given(st.data())
def test_commit_with_changed_bytes_is_read_or_refused_cleanly(data: st.DataObject) -> None:
    table = TableBuilder(MemoryStore())
    table.create(add("x", stats='{"numRecords":1}', deletionVector=vector()), remove("y"))
    text = bytearray(table.store.read(f"_delta_log/{0:020d}.json"))
    start = data.draw(st.integers(0, len(text) - 1))
    text[start : start + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=10))
    table.write(f"{0:020d}.json", bytes(text))
    try:
        Snapshot.load(table.store).files()
    except DeltaError as error:
        assert error.message


@given(st.data())
def test_hint_with_any_content_never_changes_what_is_read(data: st.DataObject) -> None:
    table = build([[add("a")], [add("b")], [remove("a")]])
    table.checkpoint(1)
    value = data.draw(JSON_VALUES | st.fixed_dictionaries({"version": JSON_VALUES | st.integers(0, 4)}))
    table.write("_last_checkpoint", json.dumps(value).encode()[: data.draw(st.integers(0, 60))])
    assert found(Snapshot.load(table.store)) == expected(table, 2)


@given(st.data())
def test_truncated_checkpoint_never_changes_the_snapshot(data: st.DataObject) -> None:
    table = build([[add("a"), add("b", deletionVector=vector())], [add("c")], [remove("a")]])
    kind = data.draw(st.sampled_from(["classic", "v2-json", "v2-parquet"]))
    name = data.draw(st.sampled_from(table.checkpoint(1, kind=kind, sidecars=2 if kind != "classic" else 0)))
    complete_bytes = table.store.read(f"_delta_log/{name}")
    table.write(name, complete_bytes[: data.draw(st.integers(0, len(complete_bytes) - 1))])
    assert found(Snapshot.load(table.store)) == expected(table, 2)
