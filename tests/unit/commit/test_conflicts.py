"""Prepared commits and the commits that won before them: ours x theirs -> the next version, or a conflict."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import orjson
import pytest

from delta_py.commit.conflicts import rebase
from delta_py.commit.prepared import (
    NEW_TABLE,
    IsolationLevel,
    PreparedCommit,
    ReadSet,
    WinningCommit,
    num_records,
    row_id_high_water_mark,
)
from delta_py.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    CorruptTableError,
    DeltaConcurrentModificationException,
    InvalidOptionError,
    MetadataChangedException,
    ProtocolChangedException,
)
from delta_py.expressions.parse import parse_predicate
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
from delta_py.protocol.table_config import TableConfig
from delta_py.read.scan import FilePruner, ScanOptions

METADATA = Metadata("t", '{"type":"struct","fields":[]}')


def add(path: str, rows: int = 1, **values: Any) -> AddFile:
    return AddFile(path, {}, 10, 0, stats=f'{{"numRecords":{rows}}}', **values)


def append(version: int = 5, **values: Any) -> PreparedCommit:
    given = {"adds": (add("ours", 3), add("more", 2)), **values}
    return PreparedCommit(version, version - 1, "ours", {"operation": "WRITE"}, **given)


def winner(version: int, *actions: Any, is_blind_append: bool = False) -> WinningCommit:
    info = CommitInfo(
        {"operation": "OPTIMIZE", "txnId": "theirs", "isBlindAppend": is_blind_append, "inCommitTimestamp": version * 1000}
    )
    return WinningCommit.parse(version, b"\n".join(action_to_line(a) for a in (info, *actions)) + b"\n")


# ---------------------------------------------------------------- ours x theirs x isolation

CONFIG = TableConfig(
    Protocol(1, 2),
    Metadata(
        "t",
        '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
        '{"name":"day","type":"string","nullable":true,"metadata":{}}]}',
        partition_columns=("day",),
    ),
)


def data(path: str, day: str, low: int, high: int, **values: Any) -> AddFile:
    stats = {"numRecords": 2, "minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}}
    return AddFile(path, {"day": day}, 10, 0, stats=orjson.dumps(stats).decode(), **values)


def reading(predicate: str | None, *paths: str) -> ReadSet:
    """As a transaction makes it: rows by predicate (None for all), and files by path."""
    tree = None if predicate is None else parse_predicate(predicate, CONFIG.schema)
    pruner = FilePruner.of(CONFIG, tree, ScanOptions())
    return ReadSet((predicate or "true",), pruner.may_match, frozenset(paths))


def remove(path: str, **values: Any) -> RemoveFile:
    return RemoveFile(path, **values)


# name -> (whether its writer calls it a blind append, actions)
THEIRS: dict[str, tuple[bool, list[Any]]] = {
    "append in the rows read": (True, [data("theirs", "a", 1, 9)]),
    "append in the partition, other ids": (True, [data("theirs", "a", 100, 200)]),
    "append in another partition": (True, [data("theirs", "b", 1, 9)]),
    "append without statistics": (True, [AddFile("theirs", {"day": "a"}, 10, 0)]),
    "append that depends on rows": (False, [data("theirs", "a", 1, 9)]),
    "append elsewhere that depends on rows": (False, [data("theirs", "b", 1, 9)]),
    "rewrite of the file read": (False, [remove("read"), data("theirs", "a", 1, 9)]),
    "compaction of the file read": (
        False,
        [remove("read", data_change=False), data("theirs", "a", 1, 9, data_change=False)],
    ),
    "compaction of other files": (False, [remove("other", data_change=False), data("theirs", "a", 1, 9, data_change=False)]),
    "delete of the file read": (False, [remove("read")]),
    "delete of another file": (False, [remove("other")]),
    "delete that lies about being blind": (True, [remove("read"), data("theirs", "b", 1, 9)]),
    "transaction of the same application": (True, [SetTransaction("app", 3)]),
    "transaction of another application": (True, [SetTransaction("another", 3)]),
    "the same domain": (False, [DomainMetadata("our.domain", "{}")]),
    "another domain": (False, [DomainMetadata("their.domain", "{}")]),
    "nothing": (False, []),
    "metadata": (False, [METADATA]),
    "protocol": (False, [Protocol(1, 2)]),
    "protocol and metadata": (False, [Protocol(1, 2), METADATA]),
}
_READ = reading("day = 'a' AND id < 50", "read")
OURS = {
    "blind append": append(),
    "append with a transaction": append(transactions=(SetTransaction("app", 4),)),
    "append with new columns": append(metadata=METADATA),
    "change of rows": append(reads=_READ, removes=(remove("read"),)),
    "append that read": append(reads=_READ),
    "append that read, with new columns": append(reads=_READ, metadata=METADATA),
    "overwrite": append(reads=ReadSet.whole_table(frozenset({"read", "other"})), removes=(remove("read"), remove("other"))),
    "domain": append(adds=(), domains=(DomainMetadata("our.domain", "{}"),)),
    "create": PreparedCommit(0, NEW_TABLE, "ours", {}, Protocol(1, 2), METADATA),
}

S, W, N = IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE, IsolationLevel.SNAPSHOT_ISOLATION
_APPEND, _READ_LOST, _BOTH = ConcurrentAppendException, ConcurrentDeleteReadException, ConcurrentDeleteDeleteException
_CHANGED = {
    "metadata": MetadataChangedException,
    "protocol": ProtocolChangedException,
    "protocol and metadata": ProtocolChangedException,
}
# What conflicts at each level; what is not named passes.
_ROWS_READ = {
    "append that depends on rows": {S: _APPEND, W: _APPEND},
    "append in the rows read": {S: _APPEND},
    "append without statistics": {S: _APPEND},
}
_ROWS_READ_BLIND_TOO = {name: {S: _APPEND, W: _APPEND} for name in _ROWS_READ}
_FILES_READ = {
    name: dict.fromkeys((S, W, N), _READ_LOST)
    for name in (
        "rewrite of the file read",
        "compaction of the file read",
        "delete of the file read",
        "delete that lies about being blind",
    )
}
_FILES_REMOVED = {name: dict.fromkeys((S, W, N), _BOTH) for name in _FILES_READ}
CONFLICTS: dict[str, dict[str, Any]] = {
    "blind append": {},
    "append with a transaction": {
        "transaction of the same application": dict.fromkeys((S, W, N), ConcurrentTransactionException)
    },
    "append with new columns": {},
    "change of rows": {**_ROWS_READ, **_FILES_REMOVED},
    "append that read": {**_ROWS_READ, **_FILES_READ},
    "append that read, with new columns": {**_ROWS_READ_BLIND_TOO, **_FILES_READ},
    "overwrite": {
        **_ROWS_READ,
        "append in the partition, other ids": {S: _APPEND},
        "append in another partition": {S: _APPEND},
        "append elsewhere that depends on rows": {S: _APPEND, W: _APPEND},
        **_FILES_REMOVED,
        "compaction of other files": dict.fromkeys((S, W, N), _BOTH),
        "delete of another file": dict.fromkeys((S, W, N), _BOTH),
    },
    "domain": {"the same domain": dict.fromkeys((S, W, N), ConcurrentWriteException)},
}


def expected(ours: str, theirs: str, level: IsolationLevel) -> type[DeltaConcurrentModificationException] | None:
    if ours == "create":
        return ProtocolChangedException
    found: type[DeltaConcurrentModificationException] | None = _CHANGED.get(theirs)
    return found or CONFLICTS[ours].get(theirs, {}).get(level)


@pytest.mark.parametrize("level", IsolationLevel, ids=lambda level: level.value)
@pytest.mark.parametrize("theirs", THEIRS)
@pytest.mark.parametrize("ours", OURS)
def test_rebase_over_a_winner_follows_or_conflicts(ours: str, theirs: str, level: IsolationLevel) -> None:
    commit, conflict = replace(OURS[ours], isolation=level), expected(ours, theirs, level)
    is_blind, actions = THEIRS[theirs]
    winners = [winner(commit.version, *actions, is_blind_append=is_blind)]
    if conflict is None:
        assert rebase(commit, winners).version == commit.version + 1
        return
    with pytest.raises(conflict, match=f"commit {commit.version} \\(OPTIMIZE\\)") as caught:
        rebase(commit, winners)
    assert caught.value.message_parameters["version"] == commit.version
    assert caught.value.message_parameters["isolation_level"] == level.value
    assert type(pickle.loads(pickle.dumps(caught.value))) is conflict


def test_conflict_over_added_files_names_the_rows_the_partition_and_the_level_that_would_do() -> None:
    theirs = winner(5, data("theirs", "a", 1, 9), is_blind_append=True)
    with pytest.raises(ConcurrentAppendException) as caught:
        rebase(OURS["change of rows"], [theirs])
    text = str(caught.value)
    assert "day = 'a' AND id < 50" in text and "day=a" in text and "theirs" in text
    assert "WriteSerializable would have let it pass (Serializable is in force)" in text


def test_conflict_over_an_append_that_depends_on_rows_passes_at_snapshot_isolation_only() -> None:
    with pytest.raises(ConcurrentAppendException, match="Isolation level SnapshotIsolation would have let it pass"):
        rebase(OURS["change of rows"], [winner(5, data("theirs", "a", 1, 9))])


@pytest.mark.parametrize("level", IsolationLevel, ids=lambda level: level.value)
def test_conflict_level_that_is_said_to_pass_passes(level: IsolationLevel) -> None:
    for ours in OURS:
        for is_blind, actions in THEIRS.values():
            commit = replace(OURS[ours], isolation=level)
            winners = [winner(commit.version, *actions, is_blind_append=is_blind)]
            try:
                rebase(commit, winners)
            except DeltaConcurrentModificationException as error:
                if not isinstance(error, ConcurrentAppendException):
                    continue
                (enough,) = [other for other in IsolationLevel if f"Isolation level {other.value} would" in str(error)]
                assert rebase(replace(commit, isolation=enough), winners).version == commit.version + 1


@pytest.mark.parametrize("text", ["serializable", "WRITESERIALIZABLE", "SnapshotIsolation"])
def test_isolation_level_is_parsed_in_any_case(text: str) -> None:
    assert IsolationLevel.parse(text).value.lower() == text.lower()


def test_isolation_level_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="ReadCommitted"):
        IsolationLevel.parse("ReadCommitted")


def test_rebase_over_several_winners_takes_the_version_after_the_last() -> None:
    assert rebase(append(), [winner(5), winner(6), winner(7)]).version == 8


def test_rebase_conflict_may_be_with_a_later_winner() -> None:
    with pytest.raises(MetadataChangedException, match="commit 6"):
        rebase(append(), [winner(5), winner(6, METADATA)])


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
    assert found == WinningCommit(3, None, "an unnamed operation")


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
