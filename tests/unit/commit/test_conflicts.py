"""Prepared commits and the commits that won before them: ours x theirs -> the next version, or a conflict."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import orjson
import pytest

from delta_py.commit.conflicts import (
    NEW_TABLE,
    PreparedCommit,
    WinningCommit,
    num_records,
    rebase,
    row_id_high_water_mark,
)
from delta_py.errors import (
    ConcurrentWriteException,
    CorruptTableError,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from delta_py.protocol.actions import (
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    action_to_line,
)


def add(path: str, rows: int = 1, **values: Any) -> AddFile:
    return AddFile(path, {}, 10, 0, stats=f'{{"numRecords":{rows}}}', **values)


def append(version: int = 5, **values: Any) -> PreparedCommit:
    given = {"adds": (add("ours", 3), add("more", 2)), "is_blind_append": True, **values}
    return PreparedCommit(version, version - 1, "ours", {"operation": "WRITE"}, **given)


def winner(version: int, *actions: Any, txn_id: str = "theirs") -> WinningCommit:
    info = CommitInfo({"operation": "OPTIMIZE", "txnId": txn_id, "inCommitTimestamp": version * 1000})
    return WinningCommit.parse(version, b"\n".join(action_to_line(a) for a in (info, *actions)) + b"\n")


# ---------------------------------------------------------------- ours x theirs

THEIRS = {
    "append": [add("theirs")],
    "delete": [RemoveFile("old")],
    "rewrite": [RemoveFile("old"), add("theirs")],
    "txn": [SetTransaction("app", 3)],
    "domain": [DomainMetadata("their.domain", "{}")],
    "nothing": [],
    "metadata": [Metadata("t", '{"type":"struct","fields":[]}')],
    "protocol": [Protocol(1, 2)],
    "protocol and metadata": [Protocol(1, 2), Metadata("t", '{"type":"struct","fields":[]}')],
}
OURS = {
    "blind append": append(),
    "append that read": append(is_blind_append=False),
    "rewrite": append(removes=(RemoveFile("x"),), is_blind_append=False),
    "create": PreparedCommit(0, NEW_TABLE, "ours", {}, Protocol(1, 2), THEIRS["metadata"][0], is_blind_append=True),
}
_FOLLOWS: dict[str, Any] = dict.fromkeys(("append", "delete", "rewrite", "txn", "domain", "nothing"), None)
_CHANGED = {
    "metadata": MetadataChangedException,
    "protocol": ProtocolChangedException,
    "protocol and metadata": ProtocolChangedException,
}
OUTCOMES: dict[str, dict[str, type[DeltaConcurrentModificationException] | None]] = {
    "blind append": {**_FOLLOWS, **_CHANGED},
    "append that read": {**dict.fromkeys(_FOLLOWS, ConcurrentWriteException), **_CHANGED},
    "rewrite": {**dict.fromkeys(_FOLLOWS, ConcurrentWriteException), **_CHANGED},
    "create": dict.fromkeys(THEIRS, ProtocolChangedException),
}


@pytest.mark.parametrize("ours", OURS)
@pytest.mark.parametrize("theirs", THEIRS)
def test_rebase_over_a_winner_follows_or_conflicts(ours: str, theirs: str) -> None:
    commit, conflict = OURS[ours], OUTCOMES[ours][theirs]
    winners = [winner(commit.version, *THEIRS[theirs])]
    if conflict is None:
        assert rebase(commit, winners).version == commit.version + 1
        return
    with pytest.raises(conflict, match=f"commit {commit.version} \\(OPTIMIZE\\)") as caught:
        rebase(commit, winners)
    assert caught.value.message_parameters == {"version": commit.version, "operation": "OPTIMIZE"}
    assert type(pickle.loads(pickle.dumps(caught.value))) is conflict


def test_rebase_over_several_winners_takes_the_version_after_the_last() -> None:
    assert rebase(append(), [winner(5), winner(6), winner(7)]).version == 8


def test_rebase_conflict_may_be_with_a_later_winner() -> None:
    with pytest.raises(MetadataChangedException, match="commit 6"):
        rebase(append(), [winner(5), winner(6, *THEIRS["metadata"])])


# ---------------------------------------------------------------- what depends on the version


def domain_of(actions: list[Any]) -> dict[str, Any]:
    return next(orjson.loads(a.configuration) for a in actions if isinstance(a, DomainMetadata))


def test_actions_of_a_table_without_row_ids_are_plain() -> None:
    actions = append().actions(123)
    assert isinstance(actions[0], CommitInfo)
    assert actions[0].values == {"timestamp": 123, "operation": "WRITE", "txnId": "ours"}
    assert actions[1:] == [add("ours", 3), add("more", 2)]


def test_actions_with_row_ids_number_rows_from_the_mark() -> None:
    actions = append(row_id_high_water_mark=9).actions(0)
    adds = [a for a in actions if isinstance(a, AddFile)]
    assert [(a.base_row_id, a.default_row_commit_version) for a in adds] == [(10, 5), (13, 5)]
    assert domain_of(actions) == {"rowIdHighWaterMark": 14}


def test_rebase_row_ids_go_on_from_the_winners_mark() -> None:
    mark = DomainMetadata("delta.rowTracking", '{"rowIdHighWaterMark":99}')
    later = rebase(append(row_id_high_water_mark=9), [winner(5, mark), winner(6)])
    actions = later.actions(0)
    adds = [a for a in actions if isinstance(a, AddFile)]
    assert [(a.base_row_id, a.default_row_commit_version) for a in adds] == [(100, 7), (103, 7)]
    assert domain_of(actions) == {"rowIdHighWaterMark": 104}


def test_rebase_mark_of_a_winner_is_not_ours_where_the_table_has_no_row_ids() -> None:
    mark = DomainMetadata("delta.rowTracking", '{"rowIdHighWaterMark":99}')
    assert rebase(append(), [winner(5, mark)]).row_id_high_water_mark is None


def test_actions_row_ids_that_files_have_already_are_kept() -> None:
    moved = append(adds=(add("moved", 3, base_row_id=2, default_row_commit_version=1),), row_id_high_water_mark=9)
    actions = moved.actions(0)
    assert actions[1] == moved.adds[0] and len(actions) == 2


def test_actions_first_rows_of_a_table_get_the_ids_from_0() -> None:
    actions = append(row_id_high_water_mark=-1).actions(0)
    assert domain_of(actions) == {"rowIdHighWaterMark": 4}
    assert next(a for a in actions if isinstance(a, AddFile)).base_row_id == 0


@pytest.mark.parametrize(("previous", "now", "expected"), [(None, 50, 50), (10, 50, 50), (50, 50, 51), (99, 50, 100)])
def test_actions_in_commit_timestamp_always_rises(previous: int | None, now: int, expected: int) -> None:
    (info, *_) = append(in_commit_timestamps=True, previous_timestamp_ms=previous).actions(now)
    assert isinstance(info, CommitInfo)
    assert info.in_commit_timestamp_ms == expected and info.values["timestamp"] == now


def test_rebase_in_commit_timestamp_is_after_the_last_winners() -> None:
    later = rebase(append(in_commit_timestamps=True, previous_timestamp_ms=1), [winner(5), winner(6)])
    (info, *_) = later.actions(7)
    assert isinstance(info, CommitInfo) and info.in_commit_timestamp_ms == 6001


# ---------------------------------------------------------------- reading what others wrote


def test_winning_commit_of_nothing_known_is_still_a_winner() -> None:
    found = WinningCommit.parse(3, b'{"somethingNew":{"a":1}}\n\n')
    assert found == WinningCommit(3, None, "an unnamed operation", None, None, None, None)


def test_winning_commit_damaged_line_is_corruption() -> None:
    with pytest.raises(CorruptTableError):
        WinningCommit.parse(3, b'{"add":')


@pytest.mark.parametrize(
    ("stats", "expected"),
    [(None, None), ("", None), ("{}", None), ("x", None), ('{"numRecords":-1}', None), ('{"numRecords":4}', 4)],
)
def test_num_records_unknown_is_none(stats: str | None, expected: int | None) -> None:
    assert num_records(replace(add("a"), stats=stats)) == expected


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"rowIdHighWaterMark":null}'])
def test_row_id_mark_that_cannot_be_read_is_corruption(text: str) -> None:
    with pytest.raises(CorruptTableError, match="rowTracking"):
        row_id_high_water_mark(DomainMetadata("delta.rowTracking", text))


def test_row_id_mark_of_no_domain_is_before_the_first() -> None:
    assert row_id_high_water_mark(None) == -1
    assert row_id_high_water_mark(DomainMetadata("delta.rowTracking", "", removed=True)) == -1
