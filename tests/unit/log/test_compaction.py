"""Log compaction: which ranges, the content of a file, and that a version reads the same with it."""

from __future__ import annotations

import json

import pytest

from delta_py.errors import CorruptTableError
from delta_py.log import log_compaction
from delta_py.log.log_compaction import compact, compaction_range
from delta_py.log.log_writer import LogWriter
from delta_py.snapshot import Snapshot
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import Json, TableBuilder, add, remove, vector


@pytest.fixture
def table() -> TableBuilder:
    return TableBuilder(MemoryStore())


def compacted(table: TableBuilder, start: int, end: int) -> list[Json]:
    data = compact(table.store, start, end)
    assert data is not None
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.parametrize(
    ("interval", "ranges"),
    [
        (10, {5: (1, 5), 15: (11, 15)}),
        (1, {}),
        (3, {}),
        (4, {2: (1, 2), 6: (5, 6), 10: (9, 10), 14: (13, 14), 18: (17, 18)}),
        (11, {5: (1, 5), 16: (12, 16)}),
        (100, {10: (1, 10), 20: (11, 20)}),
    ],
)
def test_ranges_lie_between_checkpoints_and_do_not_overlap(interval: int, ranges: dict[int, tuple[int, int]]) -> None:
    assert {version: version_range for version in range(21) if (version_range := compaction_range(version, interval))} == ranges


def test_last_action_on_each_file_stays_and_provenance_goes(table: TableBuilder) -> None:
    table.create(add("old"))
    table.commit(add("a"), add("dv", deletionVector=vector("v1")), {"cdc": {"path": "c", "partitionValues": {}, "size": 1}})
    table.commit(remove("old"), remove("a"), remove("dv", deletionVector=vector("v1")), add("dv", deletionVector=vector("v2")))
    table.commit(add("a", size=7))
    action_list = compacted(table, 1, 3)
    assert sorted((*line, next(iter(line.values()))["path"]) for line in action_list) == [
        ("add", "a"),
        ("add", "dv"),
        ("remove", "dv"),
        ("remove", "old"),
    ]
    assert {"add": table.commits[3][1]["add"]} in action_list


def test_compaction_keeps_removed_domains_and_newest_actions(table: TableBuilder) -> None:
    table.create(add("a"), {"domainMetadata": {"domain": "d", "configuration": "1", "removed": False}})
    table.commit({"txn": {"appId": "x", "version": 9}}, table.metadata(configuration={"a": "1"}))
    removed_domain = {"domainMetadata": {"domain": "d", "configuration": "1", "removed": True}}
    table.commit(removed_domain, {"txn": {"appId": "x", "version": 2}})
    table.commit(table.metadata(configuration={"a": "2"}))
    action_list = compacted(table, 1, 3)
    assert {"txn": {"appId": "x", "version": 2}} in action_list
    assert removed_domain in action_list
    assert [line["metaData"]["configuration"] for line in action_list if "metaData" in line] == [{"a": "2"}]
    assert len(action_list) == 3


def test_version_reads_the_same_from_compaction_and_commits(table: TableBuilder) -> None:
    table.create(add("a"), add("b"), {"txn": {"appId": "x", "version": 1}})
    table.commit(remove("a"), add("c%20c"))
    table.commit(add("d"), {"txn": {"appId": "x", "version": 2}})
    table.commit(remove("c%20c"))
    before = Snapshot.load(table.store)
    data = compact(table.store, 1, 2)
    assert data is not None
    LogWriter(table.store, before.config).put_compaction(1, 2, data)
    after = Snapshot.load(table.store)
    assert len(after.segment.compactions) == 1
    assert after.files().sort_by("path") == before.files().sort_by("path")
    assert after.set_transactions() == before.set_transactions()


def test_large_commits_are_left_alone(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    table.create(add("a"))
    table.commit(add("b"))
    monkeypatch.setattr(log_compaction, "_MOST_BYTES", 300)
    assert compact(table.store, 0, 1) is None


@pytest.mark.parametrize(
    "line",
    [
        *('{"add":{}}', "[1]", "{", '{"add":5}', '{"remove":{"path":7}}', '{"txn":{}}', '{"txn":{"appId":["a"]}}'),
        *('{"txn":"text"}', '{"domainMetadata":[]}', '{"domainMetadata":{"domain":1}}'),
        '{"add":{"path":"a","deletionVector":"text"}}',
    ],
)
def test_commit_that_is_gone_or_damaged_makes_no_compaction(table: TableBuilder, line: str) -> None:
    table.create(add("a"))
    table.commit(add("b"))
    table.write(f"{1:020d}.json", f"{line}\n".encode())
    with pytest.raises(CorruptTableError, match=r"line 1"):
        compact(table.store, 0, 1)
    table.delete(f"{1:020d}.json")
    with pytest.raises(FileNotFoundError):
        compact(table.store, 0, 1)
