"""Prepared commits and the commits that won before them: ours x theirs -> the next version, or a conflict."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import orjson
import pytest
from pyroaring import BitMap64

from delta_py.commit.conflicts import merged_rows, rebase
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
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    action_to_line,
)
from delta_py.protocol.deletion_vectors import (
    DeletionVectorDescriptor,
    from_row_indexes,
    inline_descriptor,
    read_deletion_vector,
)
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.file_pruner import FilePruner

METADATA = Metadata("t", '{"type":"struct","fields":[]}')


def add(path: str, rows: int = 1, **values: Any) -> AddFile:
    return AddFile(path, {}, 10, 0, stats=f'{{"numRecords":{rows}}}', **values)


def append(version: int = 5, **values: Any) -> PreparedCommit:
    fields = {"commit_info": {"operation": "WRITE"}, "adds": (add("ours", 3), add("more", 2)), **values}
    return PreparedCommit(version, version - 1, "ours", **fields)


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
    pruner = FilePruner.of(CONFIG, tree)
    return ReadSet((predicate or "true",), pruner.may_match, frozenset(paths))


def remove(path: str, **values: Any) -> RemoveFile:
    return RemoveFile(path, **values)


def vector(*rows: int) -> DeletionVectorDescriptor:
    return inline_descriptor(from_row_indexes(rows))


def without(path: str, *rows: int, before: tuple[int, ...] = (), low: int = 1, high: int = 9, **values: Any) -> list[Any]:
    """The actions that delete rows of a file by a deletion vector, which already deleted the rows `before`."""
    was = vector(*before) if before else None
    return [remove(path, deletion_vector=was), data(path, "a", low, high, deletion_vector=vector(*before, *rows), **values)]


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
    "rows out of the file read": (False, without("read", 1)),
    "rows out of another file": (False, without("other", 1, low=100, high=200)),
    "rows out of the file read that had lost some": (False, without("read", 1, before=(0,))),
    "rows of the file read changed, still in the rows read": (False, [*without("read", 1), data("theirs", "a", 1, 9)]),
    "rows of the file read changed, out of the rows read": (False, [*without("read", 1), data("theirs", "a", 100, 200)]),
    "all rows back into the file read": (False, [remove("read", deletion_vector=vector(0)), data("read", "a", 1, 9)]),
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
_TAKEN = replace(_READ, only_deleted_rows=True)
_EVERY_ROW = ReadSet(("true",), lambda adds: [True] * len(adds), frozenset({"read", "other"}), all_rows=True)
_REMOVE, _ADD = without("read", 3)
OURS = {
    "blind append": append(),
    "append with a transaction": append(transactions=(SetTransaction("app", 4),)),
    "append with new columns": append(metadata=METADATA),
    "change of rows": append(reads=_READ, removes=(remove("read"),)),
    "delete of rows": append(reads=_TAKEN, adds=(_ADD,), removes=(_REMOVE,)),
    "delete of rows, where others matter": append(reads=_READ, adds=(_ADD,), removes=(_REMOVE,)),
    "update of rows": append(reads=_TAKEN, adds=(_ADD, add("ours", 1)), removes=(_REMOVE,), cdc=(AddCDCFile("c", {}, 1),)),
    "delete of rows of another file": append(
        reads=replace(_TAKEN, paths=frozenset({"read", "third"})), adds=tuple(without("third", 3)[1:]), removes=(remove("third"),)
    ),
    "delete of all rows of a file": append(reads=_TAKEN, adds=(), removes=(_REMOVE,)),
    "rewrite of a file": append(reads=_TAKEN, removes=(_REMOVE,)),
    "append that read": append(reads=_READ),
    "append that read, with new columns": append(reads=_READ, metadata=METADATA),
    "append that read all rows": append(reads=replace(_EVERY_ROW, paths=frozenset({"read"}))),
    "overwrite": append(reads=_EVERY_ROW, removes=(remove("read"), remove("other"))),
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
# The conflicts at each level; everything else passes.
_ROWS_READ = {
    "append that depends on rows": {S: _APPEND, W: _APPEND},
    "append in the rows read": {S: _APPEND},
    "append without statistics": {S: _APPEND},
}
_ROWS_READ_AT_EACH_LEVEL = {name: dict.fromkeys((S, W, N), _APPEND) for name in _ROWS_READ}
_FILES_READ = {
    name: dict.fromkeys((S, W, N), _READ_LOST)
    for name in (
        "rewrite of the file read",
        "compaction of the file read",
        "delete of the file read",
        "rows out of the file read",
        "rows out of the file read that had lost some",
        "rows of the file read changed, still in the rows read",
        "rows of the file read changed, out of the rows read",
        "all rows back into the file read",
        "delete that lies about being blind",
    )
}
_FILES_REMOVED = {name: dict.fromkeys((S, W, N), _BOTH) for name in _FILES_READ}
# Their rows are compared afterwards; rows that the winner wrote count as always.
_COMPARED = {
    "rows out of the file read": {},
    "rows of the file read changed, still in the rows read": {S: _APPEND, W: _APPEND},
    "rows of the file read changed, out of the rows read": {},
}
_LOST_SOME_BEFORE = "rows out of the file read that had lost some"
CONFLICTS: dict[str, dict[str, Any]] = {
    "blind append": {},
    "append with a transaction": {
        "transaction of the same application": dict.fromkeys((S, W, N), ConcurrentTransactionException)
    },
    "append with new columns": {},
    "change of rows": {**_ROWS_READ, **_FILES_REMOVED},
    "delete of rows": {**_ROWS_READ, **_FILES_REMOVED, **_COMPARED},
    "delete of rows, where others matter": {**_ROWS_READ, **_FILES_REMOVED},
    "update of rows": {**_ROWS_READ, **_FILES_REMOVED, **_COMPARED},
    "delete of rows of another file": {**_ROWS_READ, **_FILES_READ, **_COMPARED, _LOST_SOME_BEFORE: {}},
    "delete of all rows of a file": {**_ROWS_READ, **_FILES_REMOVED},
    "rewrite of a file": {**_ROWS_READ, **_FILES_REMOVED},
    "append that read": {**_ROWS_READ, **_FILES_READ},
    "append that read, with new columns": {**_ROWS_READ_AT_EACH_LEVEL, **_FILES_READ},
    "overwrite": {
        **_ROWS_READ,
        "append in the partition, other ids": {S: _APPEND},
        "append in another partition": {S: _APPEND},
        "append elsewhere that depends on rows": {S: _APPEND, W: _APPEND},
        **_FILES_REMOVED,
        "compaction of other files": dict.fromkeys((S, W, N), _BOTH),
        "delete of another file": dict.fromkeys((S, W, N), _BOTH),
        "rows out of another file": dict.fromkeys((S, W, N), _BOTH),
    },
    "append that read all rows": {
        **_ROWS_READ,
        "append in the partition, other ids": {S: _APPEND},
        "append in another partition": {S: _APPEND},
        "append elsewhere that depends on rows": {S: _APPEND, W: _APPEND},
        **_FILES_READ,
        "delete of another file": dict.fromkeys((S, W, N), _READ_LOST),
        "rows out of another file": dict.fromkeys((S, W, N), _READ_LOST),
    },
    "domain": {"the same domain": dict.fromkeys((S, W, N), ConcurrentWriteException)},
}


def expected(ours: str, theirs: str, level: IsolationLevel) -> type[DeltaConcurrentModificationException] | None:
    if ours == "create":
        return ProtocolChangedException
    expected_error: type[DeltaConcurrentModificationException] | None = _CHANGED.get(theirs)
    return expected_error or CONFLICTS[ours].get(theirs, {}).get(level)


@pytest.mark.parametrize("level", IsolationLevel, ids=lambda level: level.value)
@pytest.mark.parametrize("theirs", THEIRS)
@pytest.mark.parametrize("ours", OURS)
def test_rebase_over_a_winner_follows_or_conflicts(ours: str, theirs: str, level: IsolationLevel) -> None:
    commit, conflict = replace(OURS[ours], isolation=level), expected(ours, theirs, level)
    is_blind, actions = THEIRS[theirs]
    winners = [winner(commit.version, *actions, is_blind_append=is_blind)]
    if conflict is None:
        later = rebase(commit, winners)
        assert later.version == commit.version + 1
        compared = theirs in _COMPARED or theirs == _LOST_SOME_BEFORE
        assert [file.path for file in later.shared] == (["read"] if compared and "read" in commit.reads.paths else [])
        return
    with pytest.raises(conflict, match=f"commit {commit.version} \\(OPTIMIZE\\)") as caught:
        rebase(commit, winners)
    assert caught.value.message_parameters["version"] == commit.version
    assert caught.value.message_parameters["isolation_level"] == level.value
    assert type(pickle.loads(pickle.dumps(caught.value))) is conflict


def test_conflict_over_added_files_names_rows_and_weaker_level() -> None:
    theirs = winner(5, data("theirs", "a", 1, 9), is_blind_append=True)
    with pytest.raises(ConcurrentAppendException) as caught:
        rebase(OURS["change of rows"], [theirs])
    text = str(caught.value)
    assert "day = 'a' AND id < 50" in text and "day=a" in text and "theirs" in text
    assert "WriteSerializable would have let it pass (Serializable is in force)" in text


def test_dependent_append_would_pass_at_snapshot_isolation() -> None:
    with pytest.raises(ConcurrentAppendException, match="Isolation level SnapshotIsolation would have let it pass"):
        rebase(OURS["change of rows"], [winner(5, data("theirs", "a", 1, 9))])


def test_schema_change_conflicts_with_an_append_at_every_level() -> None:
    ours = replace(OURS["append that read, with new columns"], isolation=N)
    with pytest.raises(ConcurrentAppendException, match="no isolation level lets it pass"):
        rebase(ours, [winner(5, data("theirs", "a", 1, 9), is_blind_append=True)])


@pytest.mark.parametrize("level", IsolationLevel, ids=lambda level: level.value)
def test_conflict_level_that_is_said_to_pass_passes(level: IsolationLevel) -> None:
    for ours in OURS:
        for is_blind, actions in THEIRS.values():
            commit = replace(OURS[ours], isolation=level)
            winners = [winner(commit.version, *actions, is_blind_append=is_blind)]
            try:
                rebase(commit, winners)
            except DeltaConcurrentModificationException as error:
                if not isinstance(error, ConcurrentAppendException) or commit.metadata is not None:
                    continue
                (enough,) = [other for other in IsolationLevel if f"Isolation level {other.value} would" in str(error)]
                assert rebase(replace(commit, isolation=enough), winners).version == commit.version + 1


@pytest.mark.parametrize("text", ["serializable", "WRITESERIALIZABLE", "SnapshotIsolation"])
def test_isolation_level_is_parsed_in_any_case(text: str) -> None:
    assert IsolationLevel.parse(text).value.lower() == text.lower()


def test_isolation_level_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="ReadCommitted"):
        IsolationLevel.parse("ReadCommitted")


def test_rebase_over_several_winners_takes_the_next_version() -> None:
    assert rebase(append(), [winner(5), winner(6), winner(7)]).version == 8


def test_rebase_over_a_file_that_came_and_went_meanwhile_follows() -> None:
    ours = replace(OURS["append that read all rows"], isolation=W)
    came = winner(5, data("theirs", "a", 1, 9), is_blind_append=True)
    assert rebase(ours, [came, winner(6, remove("theirs"))]).version == 7
    with pytest.raises(ConcurrentDeleteReadException, match="commit 6"):
        rebase(ours, [came, winner(6, remove("theirs"), remove("other"))])


def test_rebase_conflict_may_be_with_a_later_winner() -> None:
    with pytest.raises(MetadataChangedException, match="commit 6"):
        rebase(append(), [winner(5), winner(6, METADATA)])


# ---------------------------------------------------------------- files of which both took rows


def taking(*rows: int, before: tuple[int, ...] = (), rows_in_file: int = 9, **values: Any) -> PreparedCommit:
    """Our commit, which deletes rows of the file `read`."""
    removed, there = without("read", *rows, before=before)
    stats = orjson.dumps({"numRecords": rows_in_file, "tightBounds": False}).decode()
    fields = {"adds": (replace(there, stats=stats),), "removes": (removed,), "reads": _TAKEN, **values}
    return append(**fields)


def settle(commit: PreparedCommit, winners: list[WinningCommit]) -> PreparedCommit:
    """As shared_rows does, with the vectors that are inline in the descriptors."""
    later = rebase(commit, winners)
    vectors: dict[str, DeletionVectorDescriptor | None] = {}
    for file in later.shared:
        ours = None if file.ours is None else rows_of(file.ours.deletion_vector)
        rows = merged_rows(later, file, rows_of(file.before), rows_of(file.theirs.deletion_vector), ours)
        if file.ours is not None:
            vectors[file.path] = None if len(rows) == num_records(file.ours) else inline_descriptor(rows)
    return later.with_vectors(vectors)


def rows_of(descriptor: DeletionVectorDescriptor | None) -> BitMap64:
    return BitMap64() if descriptor is None else read_deletion_vector(None, descriptor)  # type: ignore[arg-type]


def outcome(commit: PreparedCommit) -> tuple[list[int], list[int]]:
    """The deleted rows of the file `read`: in the vector that our commit removes, and in the one that it adds."""
    (removed,), (there,) = commit.removes, [a for a in commit.adds if a.path == "read"]
    return list(rows_of(removed.deletion_vector)), list(rows_of(there.deletion_vector))


def test_rebase_over_other_rows_of_a_file_merges_both_vectors() -> None:
    theirs = without("read", 1, 7, base_row_id=40, default_row_commit_version=2, tags={"t": "x"})
    later = settle(taking(3), [winner(5, *theirs)])
    assert outcome(later) == ([1, 7], [1, 3, 7])
    (there,) = later.adds
    assert (there.base_row_id, there.default_row_commit_version, there.tags) == (40, 2, {"t": "x"})
    assert orjson.loads(there.stats or "") == {"numRecords": 9, "tightBounds": False} and there.data_change
    assert later.removes[0].key == theirs[1].key
    assert (later.removes[0].base_row_id, later.removes[0].default_row_commit_version) == (40, 2)


def test_rebase_over_several_winners_merges_the_newest_vector() -> None:
    first = winner(5, *without("read", 1, before=(0,)))
    second = winner(6, remove("read", deletion_vector=vector(0, 1)), data("read", "a", 1, 9, deletion_vector=vector(0, 1, 2)))
    later = settle(taking(3, before=(0,)), [first, second])
    assert outcome(later) == ([0, 1, 2], [0, 1, 2, 3]) and later.version == 7
    third = winner(
        7, remove("read", deletion_vector=vector(0, 1, 2)), data("read", "a", 1, 9, deletion_vector=vector(0, 1, 2, 8))
    )
    assert outcome(settle(later, [third])) == ([0, 1, 2, 8], [0, 1, 2, 3, 8])
    with pytest.raises(ConcurrentDeleteDeleteException, match="commit 7"):
        third = winner(
            7, remove("read", deletion_vector=vector(0, 1, 2)), data("read", "a", 1, 9, deletion_vector=vector(0, 1, 2, 3))
        )
        settle(later, [third])


@pytest.mark.parametrize("ours", [(1,), (0, 1, 2)])
def test_rebase_over_the_same_row_conflicts(ours: tuple[int, ...]) -> None:
    with pytest.raises(ConcurrentDeleteDeleteException, match="commit 5 \\(OPTIMIZE\\) took 1 rows out of the file read"):
        settle(taking(*ours), [winner(5, *without("read", 1))])


def test_rebase_over_a_file_given_rows_back_conflicts() -> None:
    back = [remove("read", deletion_vector=vector(0, 1)), data("read", "a", 1, 9, deletion_vector=vector(1))]
    with pytest.raises(ConcurrentDeleteDeleteException, match="gave back 1 rows"):
        settle(taking(3, before=(0, 1)), [winner(5, *back)])
    with pytest.raises(ConcurrentDeleteReadException, match="gave back 1 rows"):
        settle(OURS["delete of rows of another file"], [winner(5, *back)])


def test_rebase_over_a_file_only_read_keeps_our_actions() -> None:
    ours = OURS["delete of rows of another file"]
    later = settle(ours, [winner(5, *without("read", 1))])
    assert (later.adds, later.removes, later.shared) == (ours.adds, ours.removes, ())


def test_rebase_that_leaves_no_row_removes_the_file() -> None:
    metrics = {"numDeletionVectorsAdded": "1", "numDeletionVectorsRemoved": "0", "numRemovedFiles": "0", "numRemovedBytes": "0"}
    ours = taking(3, 4, rows_in_file=4, commit_info={"operationMetrics": {**metrics, "numDeletedRows": "2"}})
    later = settle(ours, [winner(5, *without("read", 1, 2))])
    assert later.adds == () and list(rows_of(later.removes[0].deletion_vector)) == [1, 2]
    assert later.commit_info["operationMetrics"] == {
        "numDeletionVectorsAdded": "0",
        "numDeletionVectorsRemoved": "1",
        "numRemovedFiles": "1",
        "numRemovedBytes": "10",
        "numDeletedRows": "2",
    }


def test_rebase_of_an_update_counts_a_file_that_goes_once() -> None:
    info = {"operation": "UPDATE", "operationMetrics": {"numRemovedFiles": "1", "numRemovedBytes": "0"}}
    later = settle(taking(3, 4, rows_in_file=4, commit_info=info), [winner(5, *without("read", 1, 2))])
    assert later.adds == () and later.commit_info["operationMetrics"] == {"numRemovedFiles": "1", "numRemovedBytes": "10"}


def test_rebase_counts_a_first_vector_as_an_update_of_theirs() -> None:
    metrics = {
        "numTargetDeletionVectorsAdded": "5",
        "numTargetDeletionVectorsUpdated": "2",
        "numTargetDeletionVectorsRemoved": "2",
        "numTargetFilesRemoved": "1",
    }
    ours = taking(3, commit_info={"operationMetrics": metrics})
    later = settle(ours, [winner(5, *without("read", 1))])
    assert later.commit_info["operationMetrics"] == {
        "numTargetDeletionVectorsAdded": "5",
        "numTargetDeletionVectorsUpdated": "3",
        "numTargetDeletionVectorsRemoved": "3",
        "numTargetFilesRemoved": "1",
    }
    later = settle(
        later, [winner(6, remove("read", deletion_vector=vector(1)), data("read", "a", 1, 9, deletion_vector=vector(1, 2)))]
    )
    assert later.commit_info["operationMetrics"]["numTargetDeletionVectorsUpdated"] == "3"


def test_rebase_that_leaves_no_row_takes_back_an_updated_vector() -> None:
    names = ("numDeletionVectorsAdded", "numDeletionVectorsUpdated", "numDeletionVectorsRemoved")
    ours = taking(3, 4, before=(0,), rows_in_file=5, commit_info={"operationMetrics": dict.fromkeys(names, "1")})
    later = settle(ours, [winner(5, *without("read", 1, 2, before=(0,)))])
    assert later.adds == ()
    assert later.commit_info["operationMetrics"] == dict(zip(names, "001", strict=True))


def test_rebase_over_a_different_removed_vector_conflicts() -> None:
    with pytest.raises(ConcurrentDeleteDeleteException):
        rebase(taking(3, before=(0,)), [winner(5, *without("read", 1, before=(8,)))])
    with pytest.raises(ConcurrentDeleteDeleteException, match="commit 5"):
        rebase(taking(3), [winner(5, *without("read", 1)), winner(6, *without("read", 2))])


def test_rebase_over_a_vector_and_then_a_rewrite_conflicts() -> None:
    rewrite = [remove("read", deletion_vector=vector(1), data_change=False), data("new", "a", 1, 9, data_change=False)]
    with pytest.raises(ConcurrentDeleteDeleteException):
        rebase(taking(3), [winner(5, *without("read", 1)), winner(6, *rewrite)])


def test_rebase_repeats_the_spelling_of_the_path_that_is_live() -> None:
    removed, there = without("a b", 1, path_text="a b")
    ours = taking(3, reads=replace(_TAKEN, paths=frozenset({"a b"})))
    ours = replace(ours, adds=(replace(ours.adds[0], path="a b"),), removes=(replace(ours.removes[0], path="a b"),))
    later = settle(ours, [winner(5, removed, there)])
    assert (later.adds[0].to_json()["path"], later.removes[0].to_json()["path"]) == ("a b", "a b")


def test_commit_with_shared_files_needs_a_comparison_first() -> None:
    with pytest.raises(AssertionError, match="have not been compared"):
        rebase(taking(3), [winner(5, *without("read", 1))]).actions(0)


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


def test_rebase_ignores_a_row_id_mark_if_table_has_no_row_ids() -> None:
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
    winner = WinningCommit.parse(3, b'{"somethingNew":{"a":1}}\n\n')
    assert winner == WinningCommit(3, None, "an unnamed operation")


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


@pytest.mark.parametrize("mark", [2**63 - 1, 2**63 - 2, 2**63 - 4])
def test_row_ids_beyond_64_bits_are_refused(mark: int) -> None:
    with pytest.raises(CorruptTableError, match="64 bits"):
        append(adds=(add("new", 4),), row_id_high_water_mark=mark).actions(0)


def test_row_ids_may_go_to_the_end_of_64_bits() -> None:
    actions = append(adds=(add("new", 4),), row_id_high_water_mark=2**63 - 5).actions(0)
    (domain,) = [action for action in actions if isinstance(action, DomainMetadata)]
    assert domain.configuration == f'{{"rowIdHighWaterMark":{2**63 - 1}}}'


def test_in_commit_timestamp_beyond_64_bits_is_refused() -> None:
    with pytest.raises(CorruptTableError, match="64 bits"):
        append(in_commit_timestamps=True, previous_timestamp_ms=2**63 - 1).actions(5)


@pytest.mark.parametrize("mark", ["9", True, 1.5, -2, 2**63, None, []])
def test_high_water_mark_of_another_form_is_refused(mark: object) -> None:
    domain = DomainMetadata("delta.rowTracking", json.dumps({"rowIdHighWaterMark": mark}))
    with pytest.raises(CorruptTableError, match="no high water mark"):
        row_id_high_water_mark(domain)
