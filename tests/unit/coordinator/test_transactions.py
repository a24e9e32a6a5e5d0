"""DeltaTransaction: several tables changed together, and one state of all of them read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.commit import added_rows, group
from delta_py.coordinator import open_coordinator
from delta_py.coordinator.ledger import (
    CoordinatorContendedError,
    CoordinatorUnavailableError,
    TokenUsedError,
    TransactionEndedError,
)
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.copies.clone import shallow_clone
from delta_py.copies.restore import restore
from delta_py.errors import (
    CommitOutcomeUnknownError,
    ConcurrentAppendException,
    DataFileError,
    DeltaConcurrentModificationException,
    DeltaError,
    InvalidOptionError,
    SchemaMismatchError,
    StorageError,
    UnsupportedOperationError,
)
from delta_py.object_stores.open_store import coordination_of
from delta_py.transactions import CheckFailedError, DeltaTransaction, Step, check, delete, transact, update
from delta_py.transactions import append as append_rows
from delta_py.vacuum.vacuum import VacuumRequest, vacuum
from tests.support.stores.coordination import (
    FaultyLedger,
    LateLedger,
    clock_ahead,
    coordinated,
    create_coordinated,
    ledger_url,
    rows_of,
)
from tests.unit.vacuum.test_vacuum import in_hours

pytestmark = pytest.mark.usefixtures("publication_at_once")

VECTORS = {"delta__enableDeletionVectors": "true"}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return ledger_url(tmp_path)


@pytest.fixture
def a(tmp_path: Path, url: str) -> Path:
    create_coordinated(tmp_path / "a", url, {"id": [1, 2, 3]}, **VECTORS)
    return tmp_path / "a"


@pytest.fixture
def b(tmp_path: Path, url: str) -> Path:
    create_coordinated(tmp_path / "b", url, {"id": [10]}, delta__enableRowTracking="true")
    return tmp_path / "b"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def append(path: Path, url: str, *ids: int) -> int:
    return write_delta(str(path), rows(*ids), mode="append", store=coordinated(path, url))


def versions(url: str, *paths: Path) -> list[int]:
    return [DeltaTable(str(path), store=coordinated(path, url)).version for path in paths]


def staged(path: Path) -> list[str]:
    directory = path / "_delta_log/_staged_commits"
    return os.listdir(directory) if directory.exists() else []


def check_tables(url: str, *paths: Path) -> None:
    for path in paths:
        DeltaTable(str(path), store=coordinated(path, url)).snapshot.check_integrity()
        assert staged(path) == []


def test_changes_of_all_tables_become_visible_at_once(url: str, a: Path, b: Path) -> None:
    with DeltaTransaction(url) as tx:
        tx.append(str(a), rows(4))
        assert tx.delete(str(a), "id = 1")["numDeletedRows"] == 1
        tx.update(str(a), {"id": "id + 100"}, predicate="id = 4")
        tx.merge(str(b), rows(10, 11), "source.id = target.id").when_matched_delete().when_not_matched_insert_all().execute()
        assert sorted(tx.read(str(a))["id"].to_pylist()) == [2, 3, 104], "own changes are seen"
        assert (rows_of(a, url), rows_of(b, url)) == ([1, 2, 3], [10]), "and by nobody else"
    assert (rows_of(a, url), rows_of(b, url)) == ([2, 3, 104], [11])
    assert tx.versions == {str(a): 3, str(b): 1} and versions(url, a, b) == [3, 1]
    check_tables(url, a, b)


def test_each_commit_names_the_transaction_and_all_its_commits(url: str, a: Path, b: Path) -> None:
    with DeltaTransaction(url) as tx:
        identity = tx.identity
        tx.append(str(a), rows(4))
        tx.append(str(b), rows(4))
    ids = [DeltaTable(str(path), store=coordinated(path, url)).metadata.id for path in (a, b)]
    expected_info = {"transactionId": identity, "participants": [{"tableId": table, "version": 1} for table in ids]}
    for path in (a, b):
        info = json.loads((path / "_delta_log/00000000000000000001.json").read_text().splitlines()[0])["commitInfo"]
        assert info["transactionGroup"] == expected_info


def test_draft_of_a_commit_names_the_transaction_and_no_commits(url: str, a: Path) -> None:
    with DeltaTransaction(url) as tx:
        identity = tx.identity
        tx.append(str(a), rows(4))
        (name,) = staged(a)
        info = json.loads((a / "_delta_log/_staged_commits" / name).read_text().splitlines()[0])["commitInfo"]
    assert info["transactionGroup"] == {"transactionId": identity}


def test_exception_leaves_no_trace(url: str, a: Path, b: Path) -> None:
    with pytest.raises(ZeroDivisionError), DeltaTransaction(url) as tx:
        tx.append(str(a), rows(4))
        tx.append(str(b), rows(4))
        raise ZeroDivisionError
    assert versions(url, a, b) == [0, 0]
    check_tables(url, a, b)
    with pytest.raises(UnsupportedOperationError, match="has ended"):
        tx.append(str(a), rows(4))


@pytest.mark.parametrize("is_read", [False, True])
def test_table_that_is_made_anew_meanwhile_gets_nothing_of_it(url: str, a: Path, b: Path, is_read: bool) -> None:
    with pytest.raises(SchemaMismatchError, match="deleted and created again"), DeltaTransaction(url) as tx:
        if is_read:
            tx.read(str(a))
        else:
            tx.append(str(a), rows(4))
        tx.append(str(b), rows(11))
        shutil.rmtree(a)
        open_ledger(url).forget(str(a))
        create_coordinated(a, url, {"id": [50]})
    assert (rows_of(a, url), rows_of(b, url)) == ([50], [10])
    check_tables(url, a, b)


def test_table_that_the_ledger_has_forgotten_is_named_at_once(url: str, a: Path, b: Path) -> None:
    with pytest.raises(UnsupportedOperationError, match="does not know the table"), DeltaTransaction(url) as tx:
        tx.append(str(a), rows(4))
        ratify, ledger = open_ledger(url).ratify, open_ledger(url)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ledger, "ratify", lambda *arguments, **named: ledger.forget(str(a)) and ratify(*arguments, **named))
            tx.commit()
    assert rows_of(a, url) == [1, 2, 3]


def test_tables_are_read_as_they_were_when_it_began(url: str, a: Path, b: Path) -> None:
    with DeltaTransaction(url) as tx:
        append(a, url, 4)
        append(b, url, 4)
        assert sorted(tx.read(str(a))["id"].to_pylist()) == [1, 2, 3]
        assert tx.table(str(b)).version == 0
        tx.abort()


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_rows_that_were_read_are_held_against_others(url: str, a: Path, b: Path, isolation: str) -> None:
    def attempt() -> None:
        with DeltaTransaction(url, isolation=isolation) as tx:
            tx.read(str(a), filter="id < 4")
            tx.append(str(b), rows(11))
            append(a, url, 3)

    if isolation == "snapshot":
        attempt()
    else:
        with pytest.raises(ConcurrentAppendException):
            attempt()
    assert versions(url, a, b) == [1, int(isolation == "snapshot")]
    check_tables(url, a, b)


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
def test_delete_conflicts_by_isolation_of_transaction_not_table(url: str, tmp_path: Path, isolation: str) -> None:
    """The first moves the ones from one table to the other; the second adds a one if the other table has none."""
    a, b = tmp_path / "from", tmp_path / "to"
    for path in (a, b):
        create_coordinated(path, url, {"id": [1, 2] if path is a else [0]}, delta__isolationLevel="WriteSerializable")

    def attempt() -> None:
        with DeltaTransaction(url, isolation=isolation) as first:
            first.append(str(b), rows(*[1] * first.delete(str(a), "id = 1")["numDeletedRows"]))
            with DeltaTransaction(url, isolation=isolation) as second:
                assert second.read(str(b), filter="id = 1").num_rows == 0
                second.append(str(a), rows(1))

    if isolation == "snapshot":
        attempt()
        assert (rows_of(a, url), rows_of(b, url)) == ([1, 2], [0, 1])
    else:
        with pytest.raises(ConcurrentAppendException):
            attempt()
        assert (rows_of(a, url), rows_of(b, url)) == ([1, 1, 2], [0])


def test_overwrite_conflicts_with_new_rows_that_match_it(url: str, a: Path, b: Path) -> None:
    with DeltaTransaction(url) as tx:
        tx.overwrite(str(a), rows(), replace_where="id = 5")
        tx.append(str(b), rows())
        tx.append(str(b), rows(11))
        append(a, url, 4)
        append(b, url, 12)
    assert rows_of(b, url) == [10, 11, 12], "other rows do not matter"
    with pytest.raises(ConcurrentAppendException), DeltaTransaction(url) as tx:
        tx.overwrite(str(a), rows(), replace_where="id = 5")
        tx.append(str(b), rows(13))
        append(a, url, 5)
    assert (rows_of(a, url), rows_of(b, url)) == ([1, 2, 3, 4, 5], [10, 11, 12])
    check_tables(url, a, b)


def test_reads_by_another_path_spelling_conflict_with_others(url: str, a: Path, b: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(a)
    for first, second in ((a, link), (link, a)):
        with pytest.raises(DeltaConcurrentModificationException), DeltaTransaction(url) as tx:
            assert tx.read(str(first), filter="id = 1").num_rows == 1
            tx.append(str(second), rows(4))
            tx.append(str(b), rows(11))
            DeltaTable(str(a), store=coordinated(a, url)).delete("id = 1")
            append(a, url, 1)
    assert (rows_of(a, url), rows_of(b, url)) == ([1, 2, 3], [10])


def test_versions_are_listed_by_each_path_of_a_table(url: str, a: Path, b: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(a)
    spellings = [str(a), f"{a}/", f"file://{a}", str(tmp_path / "link")]
    with DeltaTransaction(url) as tx:
        for number, path in enumerate(spellings, start=4):
            tx.append(path, rows(number))
        tx.read(str(b))
    assert tx.versions == dict.fromkeys(spellings, 4)


def test_commits_of_others_that_do_not_matter_are_followed(url: str, a: Path, b: Path) -> None:
    with DeltaTransaction(url) as tx:
        tx.read(str(a), filter="id < 4")
        tx.delete(str(a), "id = 1")
        tx.append(str(b), rows(11))
        append(a, url, 7)
        append(b, url, 12, 13)
    assert (rows_of(a, url), rows_of(b, url)) == ([2, 3, 7], [10, 11, 12, 13])
    assert tx.versions == {str(a): 2, str(b): 2}
    check_tables(url, a, b)
    ids = [file["base_row_id"] for file in DeltaTable(str(b), store=coordinated(b, url)).snapshot.files().to_pylist()]
    assert sorted(ids) == [0, 1, 3], "each row has an id of its own"


def test_several_commits_to_one_table_follow_others(url: str, a: Path, b: Path) -> None:
    with DeltaTransaction(url) as tx:
        tx.append(str(b), rows(11))
        tx.append(str(b), rows(12))
        tx.delete(str(a), "id = 1")
        tx.delete(str(a), "id = 2")
        append(a, url, 7)
        append(b, url, 13)
    assert (rows_of(a, url), rows_of(b, url)) == ([3, 7], [10, 11, 12, 13])
    assert tx.versions == {str(a): 3, str(b): 3}
    check_tables(url, a, b)
    ids = [file["base_row_id"] for file in DeltaTable(str(b), store=coordinated(b, url)).snapshot.files().to_pylist()]
    assert sorted(ids) == [0, 1, 2, 3]


def test_delete_with_row_tracking_commits_after_an_append(url: str, tmp_path: Path) -> None:
    path = tmp_path / "both"
    create_coordinated(path, url, {"id": [1, 2, 3]}, delta__enableRowTracking="true", **VECTORS)
    with DeltaTransaction(url) as tx:
        tx.delete(str(path), "id = 1")
        append(path, url, 13)
    assert rows_of(path, url) == [2, 3, 13]
    check_tables(url, path)


def test_second_change_with_row_tracking_conflicts_with_append(url: str, a: Path, b: Path) -> None:
    with pytest.raises(DeltaConcurrentModificationException, match="row tracking"), DeltaTransaction(url) as tx:
        tx.append(str(b), rows(11))
        tx.update(str(b), {"id": "id + 1"}, predicate="id = 11")
        append(b, url, 13)
    assert rows_of(b, url) == [10, 13]
    check_tables(url, b)


def test_retries_read_files_and_commits_of_others_only_once(
    url: str, a: Path, b: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, moves = open_ledger(url), iter(range(50, 54))

    def run(name: str, call: Callable[[], Any]) -> Any:
        if name == "ledger ratify" and (number := next(moves, None)) is not None:
            with monkeypatch.context() as patch_of_others:
                patch_of_others.setitem(open_coordinator._open_ledgers, url, inner)
                append(b, url, number)
        return call()

    files, commits = list[str](), list[int]()
    read_files, read_winning_commit = added_rows.read_files, group.read_winning_commit
    with DeltaTransaction(url) as tx:
        tx.delete(str(a), "id = 2")
        tx.append(str(b), rows(11))
        append(a, url, 1, 3)  # whose bounds would include the row
        with monkeypatch.context() as patch:
            patch.setattr(
                added_rows, "read_files", lambda state, each: files.extend(file.path for file in each) or read_files(state, each)
            )
            patch.setattr(
                group,
                "read_winning_commit",
                lambda store, version: commits.append(version) or read_winning_commit(store, version),
            )
            patch.setitem(open_coordinator._open_ledgers, url, FaultyLedger(inner, run))
            tx.commit()
    assert tx.versions == {str(a): 2, str(b): 5} and len(files) == 1
    assert sorted(commits) == [1, 1, 2, 3, 4], "one of a, four of b"
    check_tables(url, a, b)


def test_commit_of_another_that_is_gone_is_named(url: str, a: Path, b: Path) -> None:
    lost = a / "_delta_log/00000000000000000001.json"
    with pytest.raises(StorageError, match=rf"{lost.name}.*Nothing of it was committed"), DeltaTransaction(url) as tx:
        tx.append(str(a), rows(4))
        append(a, url, 5)
        kept_path = lost.rename(lost.with_name("kept"))
    kept_path.rename(lost)
    assert rows_of(a, url) == [1, 2, 3, 5]


def test_storage_that_fails_at_the_end_is_named(url: str, a: Path, b: Path) -> None:
    directory = b / "_delta_log/_staged_commits"
    with pytest.raises(StorageError, match="Nothing of it was committed"), DeltaTransaction(url) as tx:
        tx.append(str(a), rows(4))
        tx.append(str(b), rows(11))
        shutil.rmtree(directory)
        directory.write_text("no directory")
    directory.unlink()
    assert (rows_of(a, url), rows_of(b, url)) == ([1, 2, 3], [10])
    check_tables(url, a, b)


def test_delete_of_the_same_rows_conflicts_and_commits_nothing(url: str, a: Path, b: Path) -> None:
    with pytest.raises(DeltaConcurrentModificationException), DeltaTransaction(url) as tx:
        tx.append(str(b), rows(11))
        tx.delete(str(a), "id = 1")
        DeltaTable(str(a), store=coordinated(a, url)).delete("id = 1")
    assert (rows_of(a, url), rows_of(b, url)) == ([2, 3], [10])
    check_tables(url, a, b)


def test_transaction_ignores_checkpoints_and_checksums_of_others(url: str, a: Path) -> None:
    for number in range(9):
        append(a, url, 10 + number)
    with DeltaTransaction(url) as tx:  # at version 9
        tx.append(str(a), rows(1000))
        append(a, url, 500)  # version 10 has a checkpoint
        assert (a / "_delta_log/00000000000000000010.checkpoint.parquet").exists()
        assert 1000 in tx.read(str(a), filter="id < 2000")["id"].to_pylist()
        assert 500 not in tx.read(str(a), filter="id > 499 AND id < 501")["id"].to_pylist()
        assert tx.delete(str(a), "id = 1000")["numDeletedRows"] == 1
        tx.abort()
    assert versions(url, a) == [10]


def test_ids_of_rows_are_given_once_over_all_own_commits(url: str, b: Path) -> None:
    with DeltaTransaction(url) as tx:
        tx.append(str(b), rows(11, 12, 13))
        tx.delete(str(b), "id = 10")
        tx.append(str(b), rows(14, 15))
        append(b, url, 16)
    check_tables(url, b)
    snapshot = DeltaTable(str(b), store=coordinated(b, url)).snapshot
    assert sorted(file["base_row_id"] for file in snapshot.files().to_pylist()) == [1, 2, 5]
    assert json.loads(snapshot.domain_metadata()["delta.rowTracking"].configuration) == {"rowIdHighWaterMark": 6}


def test_feature_is_not_dropped_within_a_transaction(url: str, a: Path) -> None:
    with pytest.raises(UnsupportedOperationError, match="transaction"), DeltaTransaction(url) as tx:
        tx.append(str(a), rows(4))
        tx.table(str(a)).alter.drop_feature("catalogManaged")
    assert versions(url, a) == [0] and append(a, url, 5) == 1
    assert rows_of(a, url) == [1, 2, 3, 5]


def test_table_without_coordinator_is_read_and_not_changed(url: str, a: Path, tmp_path: Path) -> None:
    write_delta(str(tmp_path / "plain"), rows(1))
    with pytest.raises(UnsupportedOperationError) as caught, DeltaTransaction(url) as tx:
        tx.append(str(a), rows(4))
        assert tx.read(str(tmp_path / "plain")).num_rows == 1
        tx.append(str(tmp_path / "plain"), rows(2))
    assert caught.value.error_class == "DELTA_MULTI_TABLE_PARTICIPANT_NOT_CATALOG_MANAGED"
    assert "Set its property delta.feature.catalogManaged to supported before" in str(caught.value)
    assert DeltaTable(str(tmp_path / "plain")).version == 0 and versions(url, a) == [0]
    with pytest.raises(UnsupportedOperationError, match="Create it before"), DeltaTransaction(url) as tx:
        tx.append(str(tmp_path / "new"), rows(1))
    with pytest.raises(UnsupportedOperationError, match="no longer knows the table, for example"), DeltaTransaction(url) as tx:
        tx.append(str(a), rows(4))
        open_ledger(url).forget(str(a))
    assert versions(url, a) == [0]
    with DeltaTransaction(url) as tx:
        tx.append(str(a), rows(4))
        tx.read(str(tmp_path / "plain"))
        write_delta(str(tmp_path / "plain"), rows(2), mode="append")
    assert versions(url, a) == [1]


def test_log_is_not_maintained_within_a_transaction(url: str, a: Path) -> None:
    with DeltaTransaction(url) as tx:
        for refused in (lambda: tx.table(str(a)).checkpoint(), lambda: tx.table(str(a)).vacuum(dry_run=False)):
            with pytest.raises(UnsupportedOperationError, match="transaction"):
                refused()
        tx.abort()
    assert sorted(file.name for file in (a / "_delta_log").glob("*.parquet")) == []


def test_manifests_of_uncommitted_rows_are_not_written(url: str, b: Path) -> None:
    with DeltaTransaction(url) as tx:
        tx.append(str(b), rows(11))
        with pytest.raises(UnsupportedOperationError, match="GENERATE"):
            tx.table(str(b)).generate()
        tx.abort()
    assert not (b / "_symlink_format_manifest").exists()


def test_lease_in_a_transaction_protects_its_first_version(url: str, a: Path) -> None:
    append(a, url, 4)
    with DeltaTransaction(url) as tx:
        tx.append(str(a), rows(5))
        table = tx.table(str(a))
        with table.lease():
            (lease,) = (a / "_delta_log" / "_pydelta_leases").iterdir()
            assert table.version == 2 and int(lease.name.partition("-")[0]) == 1
        assert list((a / "_delta_log" / "_pydelta_leases").iterdir()) == []


def test_restore_in_a_transaction_conflicts_with_other_writers(url: str, a: Path, b: Path) -> None:
    append(a, url, 4)
    with DeltaTransaction(url) as tx:
        tx.append(str(a), rows(5))
        restore(tx.table(str(a)).snapshot.store, version=0)
        tx.append(str(b), rows(11))
        assert tx.read(str(a))["id"].to_pylist() == [1, 2, 3]
        assert rows_of(a, url) == [1, 2, 3, 4]
    assert (rows_of(a, url), rows_of(b, url)) == ([1, 2, 3], [10, 11])
    with pytest.raises(DeltaConcurrentModificationException), DeltaTransaction(url) as tx:
        restore(tx.table(str(a)).snapshot.store, version=1)
        tx.append(str(b), rows(12))
        append(a, url, 6)
    assert (rows_of(a, url), rows_of(b, url)) == ([1, 2, 3, 6], [10, 11])


def test_vacuum_keeps_files_of_a_restore_until_transaction_ends(url: str, a: Path, b: Path) -> None:
    write_delta(str(a), rows(4), mode="overwrite", store=coordinated(a, url))
    with DeltaTransaction(url) as tx:
        restore(tx.table(str(a)).snapshot.store, version=0)
        assert vacuum(coordinated(a, url), VacuumRequest(0, check_retention=False), in_hours(0.01)).deleted == 0
        tx.append(str(b), rows(11))
    assert rows_of(a, url) == [1, 2, 3]
    assert vacuum(coordinated(a, url), VacuumRequest(0, check_retention=False), in_hours(25)).deleted == 1
    assert list((a / "_delta_log" / "_pydelta_leases").iterdir()) == []


def test_restore_that_fails_within_a_transaction_leaves_no_lease(url: str, a: Path) -> None:
    (missing_path,) = DeltaTable(str(a), store=coordinated(a, url)).files()["path"].to_pylist()
    write_delta(str(a), rows(4), mode="overwrite", store=coordinated(a, url))
    (a / missing_path).unlink()
    with pytest.raises(DataFileError), DeltaTransaction(url) as tx:
        restore(tx.table(str(a)).snapshot.store, version=0)
    assert list((a / "_delta_log" / "_pydelta_leases").iterdir()) == []


@pytest.mark.parametrize("is_restore", [False, True])
def test_vacuum_keeps_files_of_a_clone_made_in_a_transaction(url: str, a: Path, b: Path, is_restore: bool) -> None:
    if is_restore:
        shallow_clone(DeltaTable(str(a), store=coordinated(a, url)).snapshot, coordinated(b, url), replace_table=True)
        write_delta(str(b), rows(5), mode="overwrite", store=coordinated(b, url))
    with DeltaTransaction(url) as tx:
        store = tx.table(str(b)).snapshot.store
        if is_restore:
            restore(store, version=1)
        else:
            shallow_clone(tx.table(str(a)).snapshot, store, replace_table=True)
        write_delta(str(a), rows(4), mode="overwrite", store=coordinated(a, url))
        assert vacuum(coordinated(a, url), VacuumRequest(0, check_retention=False), in_hours(0.01)).deleted == 0
    assert rows_of(b, url) == [1, 2, 3]
    assert vacuum(coordinated(a, url), VacuumRequest(0, check_retention=False), in_hours(25)).deleted == 0


def test_transaction_ends_by_its_time(url: str, a: Path) -> None:
    with pytest.raises(TransactionEndedError), DeltaTransaction(url, seconds=-1) as tx:
        tx.append(str(a), rows(4))
    assert versions(url, a) == [0]


def test_token_makes_a_commit_that_can_be_repeated(url: str, a: Path) -> None:
    for number in range(2):
        tx = DeltaTransaction(url)
        with tx:
            tx.append(str(a), rows(4))
            if number == 0:
                assert tx.commit(token="once") == {str(a): 1}
            else:
                with pytest.raises(TokenUsedError):
                    tx.commit(token="once")
    assert rows_of(a, url) == [1, 2, 3, 4]
    check_tables(url, a)


def test_steps_are_carried_out_once_for_a_token_or_not_at_all(url: str, a: Path, b: Path) -> None:
    steps = [check(str(a), "id = 1", rows=1), delete(str(a), "id = 1"), append_rows(str(b), rows(1))]
    assert transact(url, steps, token="t") is True
    assert transact(url, steps, token="t") is False
    assert (rows_of(a, url), rows_of(b, url)) == ([2, 3], [1, 10])
    with pytest.raises(CheckFailedError, match="0 rows of the table"):
        transact(url, [append_rows(str(b), rows(2)), *steps], token="other")
    with pytest.raises(CheckFailedError, match=r"1 rows .* and 2 should"):
        transact(url, [check(str(a), "id = 2", rows=2)])
    assert transact(url, [update(str(a), {"id": "9"}, "id = 3"), check(str(a), "id = 9")], token="other")
    assert (rows_of(a, url), rows_of(b, url)) == ([2, 9], [1, 10])
    check_tables(url, a, b)


def test_rows_of_a_stream_are_there_when_it_is_tried_again(url: str, a: Path, b: Path) -> None:
    other_ids = iter([20])

    def meanwhile(tx: DeltaTransaction) -> None:
        for number in other_ids:
            append(b, url, number)

    stream = pa.RecordBatchReader.from_batches(rows().schema, rows(4, 5).to_batches())
    steps = [check(str(b), "id >= 10"), append_rows(str(a), stream), Step(str(b), meanwhile), append_rows(str(b), rows(11))]
    assert transact(url, steps)
    assert (rows_of(a, url), rows_of(b, url)) == ([1, 2, 3, 4, 5], [10, 11, 20])
    check_tables(url, a, b)


def test_transaction_without_changes_commits_nothing(url: str, a: Path) -> None:
    with DeltaTransaction(url) as tx:
        tx.read(str(a))
    assert tx.versions == {} and versions(url, a) == [0]


def test_transaction_stands_if_ratified_after_connection_loss(
    url: str, a: Path, b: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DeltaTransaction(url) as tx:
        for path in (a, b):
            tx.append(str(path), rows(4))
        with monkeypatch.context() as patch:
            patch.setitem(open_coordinator._open_ledgers, url, late := LateLedger(open_ledger(url), "ratify"))
            tx.commit()
            late.settle()
    assert tx.versions == {str(a): 1, str(b): 1}
    assert (rows_of(a, url), rows_of(b, url)) == ([1, 2, 3, 4], [4, 10])
    check_tables(url, a, b)


def lost_and_given_up(url: str, *, is_ratified: bool, meanwhile: Callable[[], None] = lambda: None) -> FaultyLedger:
    """A ledger that loses the answer to `ratify`. Before it is asked again, another machine, whose clock is days ahead, has given
    up the transaction."""
    inner, ratified_ids = open_ledger(url), list[str]()

    def run(name: str, call: Callable[[], Any]) -> Any:
        ratified_ids.append(name)
        if name != "ledger ratify" or ratified_ids.count(name) > 1:
            return call()
        if is_ratified:
            call()
        with clock_ahead(3 * 24 * 3600.0):
            inner.begin(60)
        meanwhile()
        raise OSError("the answer was lost")

    return FaultyLedger(inner, run)


@pytest.mark.parametrize("meanwhile", ["nothing", "published", "followed"])
def test_ratified_but_forgotten_transaction_stands(
    url: str, a: Path, b: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    def go_on() -> None:
        for path in (a, b):
            if meanwhile == "published":
                store = coordination_of(coordinated(path, url))
                assert store is not None
                store.publish()
            elif meanwhile == "followed":
                append(path, url, 5)

    with DeltaTransaction(url) as tx:
        for path in (a, b):
            tx.append(str(path), rows(4))
        with monkeypatch.context() as patch:
            patch.setitem(open_coordinator._open_ledgers, url, lost_and_given_up(url, is_ratified=True, meanwhile=go_on))
            tx.commit()
    own_ids = [5] if meanwhile == "followed" else []
    assert tx.versions == {str(a): 1, str(b): 1}
    assert (rows_of(a, url), rows_of(b, url)) == ([1, 2, 3, 4, *own_ids], [4, *own_ids, 10])
    check_tables(url, a, b)


@pytest.mark.parametrize("meanwhile", ["nothing", "others commit"])
def test_forgotten_unratified_transaction_changes_no_table(
    url: str, a: Path, b: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    def go_on() -> None:
        if meanwhile == "others commit":
            for path in (a, b):
                append(path, url, 5)

    with pytest.raises(CoordinatorUnavailableError, match="the answer was lost"), DeltaTransaction(url) as tx:
        for path in (a, b):
            tx.append(str(path), rows(4))
        drafts = {path: staged(path) for path in (a, b)}
        with monkeypatch.context() as patch:
            patch.setitem(open_coordinator._open_ledgers, url, lost_and_given_up(url, is_ratified=False, meanwhile=go_on))
            tx.commit()
    own_ids = [5] if meanwhile == "others commit" else []
    assert (rows_of(a, url), rows_of(b, url)) == ([1, 2, 3, *own_ids], [*own_ids, 10])
    assert {path: staged(path) for path in (a, b)} == drafts, "what the ledger was to tell of is left, and nothing else"


def test_contended_transaction_leaves_no_change(
    url: str, a: Path, b: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = open_ledger(url)

    def run(name: str, call: Callable[[], Any]) -> Any:
        if name == "ledger ratify":
            raise CoordinatorContendedError("others were always before")
        return call()

    with pytest.raises(DeltaConcurrentModificationException, match="always before"), DeltaTransaction(url) as tx:
        for path in (a, b):
            tx.append(str(path), rows(4))
        with monkeypatch.context() as patch:
            patch.setitem(open_coordinator._open_ledgers, url, FaultyLedger(inner, run))
            tx.commit()
    assert versions(url, a, b) == [0, 0]
    check_tables(url, a, b)


@pytest.mark.parametrize("lost", ["commit", "table"])
def test_transaction_of_unknown_outcome_keeps_staged_commits(
    url: str, a: Path, b: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    staged_names: dict[Path, list[str]] = {}

    def lose() -> None:
        staged_names.update({path: staged(path) for path in (a, b)})
        ledger = open_ledger(url)
        for path in (a, b):
            place = str(path.resolve())
            ledger.acknowledge(place, 1) if lost == "commit" else ledger.forget(place)

    with pytest.raises(CommitOutcomeUnknownError, match="transactionGroup"), DeltaTransaction(url) as tx:
        for path in (a, b):
            tx.append(str(path), rows(4))
        with monkeypatch.context() as patch:
            patch.setitem(open_coordinator._open_ledgers, url, lost_and_given_up(url, is_ratified=True, meanwhile=lose))
            tx.commit()
    assert {path: staged(path) for path in (a, b)} == staged_names and [len(names) for names in staged_names.values()] == [2, 2]


def test_commit_ratified_after_connection_loss_happens_once(
    url: str, a: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(open_coordinator._open_ledgers, url, late := LateLedger(open_ledger(url), "ratify"))
        append(a, url, 4)
        late.settle()
    assert rows_of(a, url) == [1, 2, 3, 4]
    check_tables(url, a)


def test_wrong_isolation_is_named(url: str) -> None:
    with pytest.raises(InvalidOptionError, match="serializable"):
        DeltaTransaction(url, isolation="dirty")


@pytest.mark.parametrize("seconds", [1e300, float("inf"), float("nan")])
def test_time_that_no_transaction_can_have_is_refused(url: str, seconds: float) -> None:
    with pytest.raises(InvalidOptionError, match="number of seconds"):
        DeltaTransaction(url, seconds=seconds)


def test_transaction_that_is_under_way_does_not_begin_anew(url: str, a: Path, b: Path) -> None:
    tx = DeltaTransaction(url)
    with pytest.raises(UnsupportedOperationError, match="has begun and not ended"), tx:
        tx.append(str(a), rows(4))
        with tx:
            tx.append(str(b), rows(11))
    assert versions(url, a, b) == [0, 0]
    check_tables(url, a, b)


def test_reads_of_the_transaction_before_do_not_count(url: str, a: Path, b: Path) -> None:
    tx = DeltaTransaction(url)
    with tx:
        tx.read(str(a))
        tx.append(str(b), rows(11))
    with tx:
        tx.append(str(b), rows(12))
        append(a, url, 4)
    assert tx.versions == {str(b): 2} and rows_of(b, url) == [10, 11, 12]


def test_ledger_that_is_gone_is_named(url: str, a: Path, tmp_path: Path) -> None:
    with pytest.raises(DeltaError, match="DELTA_PATH_BASED_ACCESS"), DeltaTransaction(ledger_url(tmp_path / "a")) as tx:
        tx.append(str(a), rows(4))


def test_transaction_is_gone_on_with_by_its_identity(tmp_path: Path) -> None:
    url = ledger_url(tmp_path)
    a, b = tmp_path / "a", tmp_path / "b"
    for path in (a, b):
        create_coordinated(path, url, {"id": [0]})
    read_paths: list[str] = []

    def options(path: str) -> dict[str, str]:
        read_paths.append(path)
        return {}

    begun = DeltaTransaction(url, isolation="snapshot").__enter__()
    begun.append(str(a), pa.table({"id": [1]}))
    begun.append(str(b), pa.table({"id": [2]}))
    with pytest.raises(UnsupportedOperationError, match="isolation snapshot"):
        DeltaTransaction(url).resume(begun.identity)
    resumed = DeltaTransaction(url, isolation="snapshot", storage_options=options).resume(begun.identity)
    assert resumed.commit() == {str(a): 1, str(b): 1} and {str(a), str(b)} <= set(read_paths)
    assert (rows_of(a, url), rows_of(b, url)) == ([0, 1], [0, 2])
    with pytest.raises(TransactionEndedError):
        DeltaTransaction(url, isolation="snapshot").resume(begun.identity)


def test_abort_of_a_resumed_transaction_deletes_staged_commits(tmp_path: Path) -> None:
    url, path = ledger_url(tmp_path), tmp_path / "a"
    create_coordinated(path, url, {"id": [0]})
    begun = DeltaTransaction(url, isolation="snapshot").__enter__()
    begun.append(str(path), pa.table({"id": [1]}))
    assert list((path / "_delta_log/_staged_commits").iterdir())
    DeltaTransaction(url, isolation="snapshot").resume(begun.identity).abort()
    assert not list((path / "_delta_log/_staged_commits").iterdir()) and rows_of(path, url) == [0]


def test_checkpoint_of_later_versions_is_no_reason_for_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url, path = ledger_url(tmp_path), tmp_path / "a"
    create_coordinated(path, url, {"id": [0]})
    with DeltaTransaction(url) as tx:
        write_delta(str(path), pa.table({"id": [1]}), mode="append", store=coordinated(path, url))
        DeltaTable(str(path), store=coordinated(path, url)).checkpoint()
        assert tx.read(str(path))["id"].to_pylist() == [0]
        tx.abort()
    assert caplog.records == []
    assert (path / "_delta_log/_last_checkpoint").exists()
