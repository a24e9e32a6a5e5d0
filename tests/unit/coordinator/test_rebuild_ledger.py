"""A lost ledger is rebuilt from its tables: by what the files prove, and otherwise by what the caller says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.drop_feature import drop_feature
from delta_py.coordinator.ledger import RatificationUnknownError
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.errors import CorruptTableError, InvalidOptionError, UnsupportedOperationError
from delta_py.log.coordination import IDENTITY_PROPERTY
from delta_py.log.segment import LogSegment
from delta_py.repair import rebuild_ledger as rebuild_module
from delta_py.repair.rebuild_ledger import RebuildReport, StagedFinding, rebuild_ledger
from delta_py.storage.coordinated import CoordinatedStore, place_of
from delta_py.storage.store import ObjectStore
from delta_py.transactions import DeltaTransaction, transact
from delta_py.transactions import append as append_rows
from tests.support.stores.coordination import coordinated, create_coordinated, ledger_url, rows_of

pytestmark = pytest.mark.usefixtures("publication_at_once")


@pytest.fixture
def lost(tmp_path: Path) -> str:
    return ledger_url(tmp_path)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of an empty ledger."""
    return f"sqlite://{tmp_path / 'new.db'}"


@pytest.fixture
def a(tmp_path: Path, lost: str) -> Path:
    create_coordinated(tmp_path / "a", lost, {"id": [0]})
    return tmp_path / "a"


@pytest.fixture
def b(tmp_path: Path, lost: str) -> Path:
    create_coordinated(tmp_path / "b", lost, {"id": [0]})
    return tmp_path / "b"


def append(path: Path, url: str, *ids: int) -> int:
    return write_delta(str(path), pa.table({"id": ids}), mode="append", store=coordinated(path, url))


def publishing_only(patch: pytest.MonkeyPatch, *paths: Path) -> None:
    """From here on, only commits of these tables are published."""
    publish, places = CoordinatedStore.publish, {place_of(str(path)) for path in paths}
    patch.setattr(CoordinatedStore, "publish", lambda self: publish(self) if self.place in places else None)


def without_checksums(*paths: Path) -> None:
    """As if the writer died between the ledger's answer and the steps after it."""
    for path in paths:
        for file in (path / "_delta_log").glob("*.crc"):
            file.unlink()


def staged(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "_delta_log/_staged_commits").glob("*.json"))


def stage(path: Path, version: int, like: str | None = None, unique: str = "other", **info: object) -> str:
    """One more staged commit: of a writer that died before it was ratified, or of an unknown one."""
    directory = path / "_delta_log/_staged_commits"
    directory.mkdir(exist_ok=True)
    source = path / f"_delta_log/{version - 1:020}.json" if like is None else directory / like
    first, *lines = source.read_text().splitlines()
    values = {**json.loads(first)["commitInfo"], "txnId": f"of {unique}"}
    values |= {"inCommitTimestamp": values["inCommitTimestamp"] + (like is None), **info}
    (directory / f"{version:020}.{unique}.json").write_text("\n".join([json.dumps({"commitInfo": values}), *lines]) + "\n")
    return f"{version:020}.{unique}.json"


def standings(report: RebuildReport, path: Path) -> dict[str, str]:
    (table,) = [table for table in report.tables if table.path == str(path)]
    return {finding.names[0]: finding.standing for finding in table.staged}


def finding(report: RebuildReport, name: str) -> StagedFinding:
    (finding_of_name,) = [each for table in report.tables for each in table.staged if name in each.names]
    return finding_of_name


def rebuild(url: str, *paths: Path, **options: object) -> RebuildReport:
    return rebuild_ledger(url, [str(path) for path in paths], dry_run=False, **options)  # type: ignore[arg-type]


def check_works(url: str, *paths: Path) -> None:
    """The tables can be read and committed to, each alone and together."""
    for path in paths:
        before = rows_of(path, url)
        append(path, url, 1000)
        assert rows_of(path, url) == [*before, 1000]
    before = [rows_of(path, url) for path in paths]
    with DeltaTransaction(url) as tx:
        for path in paths:
            assert sorted(tx.read(str(path))["id"].to_pylist()) == rows_of(path, url)
            tx.append(str(path), pa.table({"id": [1001]}))
    assert [rows_of(path, url) for path in paths] == [[*rows, 1001] for rows in before]
    for path in paths:
        DeltaTable(str(path), store=coordinated(path, url)).snapshot.check_integrity()


def test_commit_that_is_published_while_its_table_is_looked_at(
    a: Path, lost: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, log = rebuild_module.load_segment, a / "_delta_log"
    with monkeypatch.context() as patch:
        publishing_only(patch)
        append(a, lost, 1)
    (name,) = staged(a)
    looks = []

    def published_behind(store: ObjectStore) -> LogSegment:
        segment = load(store)
        if not looks:
            (log / "_staged_commits" / name).rename(log / f"{1:020}.json")
        looks.append(segment.version)
        return segment

    monkeypatch.setattr(rebuild_module, "load_segment", published_behind)
    report = rebuild(url, a)
    assert looks[:2] == [0, 1]
    assert standings(report, a) == {}
    assert rows_of(a, url) == [0, 1]



# ---------------------------------------------------------------- what is certain


def test_rebuild_of_published_tables_allows_new_commits(lost: str, url: str, a: Path, b: Path) -> None:
    append(a, lost, 1)
    transact(lost, [append_rows(str(a), pa.table({"id": [2]})), append_rows(str(b), pa.table({"id": [2]}))], token="order")
    identity = open_ledger(lost).identity
    report = rebuild_ledger(url, [str(a), str(b)])
    assert report.identity == identity and report.unknown == {}
    assert [(table.path, table.published, table.version) for table in report.tables] == [(str(a), 2, 2), (str(b), 1, 1)]
    assert open_ledger(url).inventory().tables == (), "a dry run changes nothing"
    assert rebuild(url, a, b) == report
    properties = DeltaTable(str(a), store=coordinated(a, url)).metadata.configuration
    assert open_ledger(url).identity == identity == properties[IDENTITY_PROPERTY]
    assert (rows_of(a, url), rows_of(b, url)) == ([0, 1, 2], [0, 2])
    assert open_ledger(url).moment() == 0 and open_ledger(url).moment_of("order") is None
    check_works(url, a, b)


def test_checksums_identify_ratified_unpublished_commits(
    lost: str, url: str, a: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        publishing_only(patch)
        for number in range(1, 4):
            append(a, lost, number)
    names = staged(a)
    other = stage(a, 3, names[1])
    report = rebuild(url, a)
    assert standings(report, a) == {**dict.fromkeys(names, "ratified"), other: "rejected"}
    assert (report.tables[0].published, report.tables[0].version) == (0, 3)
    assert rows_of(a, url) == [0, 1, 2, 3]
    assert open_ledger(url).moment() == 1
    check_works(url, a)
    assert staged(a) == [other], "nothing was deleted but what was published"


def test_what_later_writers_have_read_was_ratified(
    lost: str, url: str, a: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        publishing_only(patch)
        for number in range(1, 4):
            append(a, lost, number)
    without_checksums(a)
    report = rebuild_ledger(url, [str(a)])
    assert list(standings(report, a).values()) == ["ratified", "ratified", "unknown"]
    assert report.unknown == {str(a): [staged(a)[2]]} and report.tables[0].version == 2


def test_transaction_that_one_table_shows_is_ratified_in_all(
    lost: str, url: str, a: Path, b: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        publishing_only(patch, a)
        transact(lost, [append_rows(str(path), pa.table({"id": [1]})) for path in (a, b)])
    without_checksums(a, b)
    append(a, lost, 2)
    report = rebuild(url, a, b)
    assert standings(report, a) == {} and standings(report, b) == {staged(b)[0]: "ratified"}
    assert f"version 1 of the table at {a} is a part of it" in finding(report, staged(b)[0]).why
    assert (rows_of(a, url), rows_of(b, url)) == ([0, 1, 2], [0, 1])
    check_works(url, a, b)


def test_transaction_that_lost_in_one_table_is_rejected_in_all(lost: str, url: str, a: Path, b: Path) -> None:
    append(a, lost, 1)
    append(b, lost, 1)
    ids = [DeltaTable(str(path), store=coordinated(path, lost)).metadata.id for path in (a, b)]
    participants = [{"tableId": ids[0], "version": 2}, {"tableId": ids[1], "version": 1}]
    name = stage(a, 2, transactionGroup={"transactionId": "t", "participants": participants})
    report = rebuild(url, a, b)
    assert standings(report, a) == {name: "rejected"}
    assert f"version 1 of the table at {b} is another commit" in finding(report, name).why
    check_works(url, a, b)


def test_transaction_without_all_staged_commits_is_rejected(lost: str, url: str, a: Path, b: Path) -> None:
    ids = [DeltaTable(str(path), store=coordinated(path, lost)).metadata.id for path in (a, b)]
    group = {"transactionId": "t", "participants": [{"tableId": table_id, "version": 1} for table_id in ids]}
    name = stage(a, 1, transactionGroup=group)
    report = rebuild(url, a, b)
    assert standings(report, a) == {name: "rejected"}
    assert f"none of it is staged for version 1 of the table at {b}" in finding(report, name).why
    check_works(url, a, b)


def test_drafts_of_transactions_that_were_under_way_are_rejected(lost: str, url: str, a: Path) -> None:
    with pytest.raises(KeyboardInterrupt), DeltaTransaction(lost) as tx:
        tx.append(str(a), pa.table({"id": [1]}))
        tx.append(str(a), pa.table({"id": [2]}))
        shutil.copytree(a, a.parent / "as it was")
        raise KeyboardInterrupt
    shutil.rmtree(a)
    (a.parent / "as it was").rename(a)
    report = rebuild(url, a)
    assert len(staged(a)) == 2 and set(standings(report, a).values()) == {"rejected"}
    check_works(url, a)


def test_rebuild_rejects_a_commit_ratified_as_another_version(
    lost: str, url: str, a: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(a, lost, 1)
    with monkeypatch.context() as patch:
        publishing_only(patch)
        append(a, lost, 2)
        append(a, lost, 3)
    published = json.loads((a / f"_delta_log/{1:020}.json").read_text().splitlines()[0])["commitInfo"]
    second, third = staged(a)
    waiting = json.loads((a / "_delta_log/_staged_commits" / second).read_text().splitlines()[0])["commitInfo"]
    of_published = stage(a, 2, second, "published", txnId=published["txnId"], readVersion=0)
    of_waiting = stage(a, 3, third, "waiting", txnId=waiting["txnId"])
    without_checksums(a)
    report = rebuild_ledger(url, [str(a)])
    assert standings(report, a) == {second: "ratified", third: "unknown", of_published: "rejected", of_waiting: "rejected"}
    assert finding(report, of_published).why == "the same commit is published as an earlier version"
    assert finding(report, of_waiting).why == "the same commit is version 2"


def test_commit_that_was_staged_twice_is_one(lost: str, url: str, a: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        publishing_only(patch)
        append(a, lost, 1)
    directory = a / "_delta_log/_staged_commits"
    shutil.copy(directory / staged(a)[0], directory / f"{1:020}.again.json")
    report = rebuild(url, a)
    (staged_commit,) = report.tables[0].staged
    assert sorted(staged_commit.names) == staged(a) and staged_commit.standing == "ratified"
    check_works(url, a)


# ---------------------------------------------------------------- what is not


@pytest.fixture
def in_doubt(lost: str, a: Path, b: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A ratified transaction over both tables, whose ratification nothing shows; returns the name of its commit to the first."""
    with monkeypatch.context() as patch:
        publishing_only(patch)
        transact(lost, [append_rows(str(path), pa.table({"id": [1]})) for path in (a, b)])
    without_checksums(a, b)
    return staged(a)[0]


def test_commits_in_doubt_are_refused_by_name(url: str, a: Path, b: Path, in_doubt: str) -> None:
    with pytest.raises(RatificationUnknownError, match=in_doubt) as caught:
        rebuild(url, a, b)
    assert caught.value.error_class == "DELTA_COORDINATOR_RATIFICATION_UNKNOWN"
    assert caught.value.message_parameters["commits"] == {str(a): [in_doubt], str(b): staged(b)}
    assert open_ledger(url).inventory().tables == ()
    report = rebuild_ledger(url, [str(a), str(b)])
    assert finding(report, in_doubt).commit_info["operation"] == "WRITE"
    assert "only the ledger knew" in finding(report, in_doubt).why


def test_commit_that_is_taken_brings_its_whole_transaction(url: str, a: Path, b: Path, in_doubt: str) -> None:
    report = rebuild(url, a, b, take={str(a): [in_doubt]})
    assert standings(report, a) == {in_doubt: "ratified"} and standings(report, b) == {staged(b)[0]: "ratified"}
    assert (rows_of(a, url), rows_of(b, url)) == ([0, 1], [0, 1])
    check_works(url, a, b)


def test_rejected_commit_rejects_its_whole_transaction(url: str, a: Path, b: Path, in_doubt: str) -> None:
    report = rebuild(url, a, b, take={str(b): []})
    assert set(standings(report, a).values()) | set(standings(report, b).values()) == {"rejected"}
    assert (rows_of(a, url), rows_of(b, url)) == ([0], [0])
    check_works(url, a, b)
    assert in_doubt in staged(a), "a writer that still runs may have it ratified"


def test_table_that_was_not_named_is_said(url: str, a: Path, b: Path, in_doubt: str) -> None:
    report = rebuild_ledger(url, [str(a)])
    assert "also changed the tables with the ids" in finding(report, in_doubt).why


def test_take_decides_between_candidates_for_one_version(
    lost: str, url: str, a: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        publishing_only(patch)
        append(a, lost, 1)
        append(a, lost, 2)
    without_checksums(a)
    (first, last), other = staged(a), stage(a, 1)
    with pytest.raises(RatificationUnknownError, match=r"version 1 was ratified .* as this commit or as another one") as caught:
        rebuild(url, a, take={str(a): []})
    assert sorted(caught.value.message_parameters["commits"][str(a)]) == sorted([first, other]), "the last is given up"
    with pytest.raises(InvalidOptionError, match=f"{other}.*cannot be taken: version 1 is {first}"):
        rebuild(url, a, take={str(a): [last, first, other]})
    report = rebuild(url, a, take={str(a): [first, last]})
    assert standings(report, a) == {first: "ratified", last: "ratified", other: "rejected"}
    assert rows_of(a, url) == [0, 1, 2]
    check_works(url, a)


@pytest.mark.parametrize("end", [0, -20])
def test_staged_commit_that_is_not_whole_is_never_taken(lost: str, url: str, a: Path, end: int) -> None:
    name = stage(a, 1)
    file = a / "_delta_log/_staged_commits" / name
    file.write_bytes(file.read_bytes()[:end])
    with pytest.raises(RatificationUnknownError, match=name):
        rebuild(url, a)
    with pytest.raises(InvalidOptionError, match="cannot be taken"):
        rebuild(url, a, take={str(a): [name]})
    rebuild(url, a, take={str(a): []})
    check_works(url, a)


def test_ratified_commit_that_is_gone_is_named(lost: str, url: str, a: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        publishing_only(patch)
        append(a, lost, 1)
        append(a, lost, 2)
    (a / "_delta_log/_staged_commits" / staged(a)[0]).unlink()
    for take in (None, {str(a): []}):
        with pytest.raises(CorruptTableError, match=r"Version 1 of the table .* was ratified"):
            rebuild(url, a, take=take)


@pytest.mark.parametrize(
    ("take", "what"), [({"/other": []}, "/other"), ({"a": [f"{1:020}.missing.json"]}, "is no staged commit")]
)
def test_choice_that_cannot_be_is_refused(
    lost: str, url: str, a: Path, take: dict[str, list[str]], what: str
) -> None:
    stage(a, 1)
    with pytest.raises(InvalidOptionError, match=what):
        rebuild(url, a, take={str(a) if path == "a" else path: names for path, names in take.items()})
    with pytest.raises(InvalidOptionError, match="No tables"):
        rebuild_ledger(url, [])


# ---------------------------------------------------------------- which tables, which ledger


def test_rebuilding_again_and_with_more_tables_ends_well(
    lost: str, url: str, a: Path, b: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        publishing_only(patch, a)
        transact(lost, [append_rows(str(path), pa.table({"id": [1]})) for path in (a, b)])
    without_checksums(a, b)
    rebuild(url, a)
    append(a, url, 2)
    report = rebuild(url, a, b)
    assert [table.is_known for table in report.tables] == [True, False]
    assert (rows_of(a, url), rows_of(b, url)) == ([0, 1, 2], [0, 1])
    append(b, url, 3)
    assert [(table.is_known, table.version) for table in rebuild(url, a, b).tables] == [(True, 2), (True, 2)]
    check_works(url, a, b)


def test_later_rebuild_rejects_a_transaction_missing_in_ledger(
    url: str, a: Path, b: Path, in_doubt: str
) -> None:
    rebuild(url, a, take={str(a): []})
    append(a, url, 5)
    assert standings(rebuild(url, a, b), b) == {staged(b)[0]: "rejected"}
    assert (rows_of(a, url), rows_of(b, url)) == ([0, 5], [0])


def test_table_not_in_a_rebuild_is_not_opened_when_published(url: str, a: Path, b: Path, in_doubt: str) -> None:
    rebuild(url, a, take={str(a): [in_doubt]})
    for use in (lambda: rows_of(b, url), lambda: append(b, url, 2)):
        with pytest.raises(RatificationUnknownError, match="rebuild_ledger"):
            use()
    rebuild(url, a, b)
    assert (rows_of(a, url), rows_of(b, url)) == ([0, 1], [0, 1])


def test_tables_of_different_ledgers_are_refused(lost: str, url: str, a: Path, tmp_path: Path) -> None:
    create_coordinated(tmp_path / "other", f"sqlite://{tmp_path / 'other.db'}", {"id": [0]})
    with pytest.raises(UnsupportedOperationError, match="name different ledgers"):
        rebuild(url, a, tmp_path / "other")


def test_copy_of_a_table_is_refused_beside_it(lost: str, url: str, a: Path, tmp_path: Path) -> None:
    shutil.copytree(a, tmp_path / "copy")
    with pytest.raises(UnsupportedOperationError, match="the same by their id"):
        rebuild(url, a, tmp_path / "copy")
    rebuild(url, tmp_path / "copy")
    check_works(url, tmp_path / "copy")
    with pytest.raises(UnsupportedOperationError, match="knows it as"):
        rebuild(url, a)


def test_table_without_a_ledger_is_refused(lost: str, url: str, a: Path, tmp_path: Path) -> None:
    write_delta(str(tmp_path / "plain"), pa.table({"id": [0]}))
    with pytest.raises(UnsupportedOperationError, match="No ledger coordinates the table"):
        rebuild(url, a, tmp_path / "plain")
    drop_feature(coordinated(a, lost), "catalogManaged")
    with pytest.raises(UnsupportedOperationError, match="No ledger coordinates the table"):
        rebuild(url, a)


def test_database_that_is_another_ledger_is_refused(lost: str, a: Path, tmp_path: Path) -> None:
    other = f"sqlite://{tmp_path / 'other.db'}"
    create_coordinated(tmp_path / "other", other, {"id": [0]})
    for dry_run in (True, False):
        with pytest.raises(UnsupportedOperationError, match="is the ledger"):
            rebuild_ledger(other, [str(a)], dry_run=dry_run)
    assert rows_of(tmp_path / "other", other) == [0]


def test_ledger_that_is_older_than_a_table_is_refused(lost: str, a: Path, tmp_path: Path, url: str) -> None:
    rebuild(url, a)
    append(a, lost, 1)  # it was not lost at all
    with pytest.raises(UnsupportedOperationError, match="the database is older than the table"):
        rebuild(url, a)


def test_process_of_a_lost_ledger_registers_nothing_in_a_new_one(
    lost: str, a: Path, b: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = open_ledger(lost)
    ledger._connections.forget()  # type: ignore[attr-defined]
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    with monkeypatch.context() as patch:
        patch.setattr("delta_py.coordinator.open_coordinator._open_ledgers", {})
        assert open_ledger(lost).identity != ledger.identity
    with pytest.raises(UnsupportedOperationError, match="is the ledger"):
        rows_of(a, lost)
    rebuild(lost, a, b)
    check_works(lost, a, b)


def test_option_that_names_the_lost_ledger_does_not_matter(lost: str, url: str, a: Path) -> None:
    report = rebuild_ledger(url, [str(a)], storage_options={"coordinator": lost}, dry_run=False)
    assert report.tables[0].version == 0 and rows_of(a, url) == [0]
