"""The contract of ledgers: what is ratified, in which order, and the state of a table at a moment.

A test module that imports all of these (`from tests.support.stores.ledger_contract import *`) runs them on the ledgers of its
fixture `url`: the URL of an empty ledger.
"""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

import pytest

from delta_py.coordinator import open_coordinator
from delta_py.coordinator.ledger import (
    Inventory,
    Ledger,
    ProposedCommit,
    Ratified,
    Restored,
    Tail,
    TokenUsedError,
    TransactionEndedError,
    VersionTakenError,
)
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.errors import UnsupportedOperationError
from tests.support.stores.coordination import clock_ahead

HOUR, DAY = 3600.0, 24 * 3600.0


@pytest.fixture
def ledger(url: str) -> Ledger:
    return open_ledger(url)


def commit(table: str, version: int, name: str = "x") -> Ratified:
    return Ratified(table, version, f"{version:020}.{name}.json", 10 + version, 1_000 + version)


def test_table_that_is_not_known_has_no_tail(ledger: Ledger) -> None:
    assert ledger.tail("/t") is None and ledger.version_at("/t", 0) is None
    with pytest.raises(VersionTakenError):
        ledger.ratify([commit("/t", 0)])


def test_ratified_commits_are_told_until_they_are_published(ledger: Ledger) -> None:
    ledger.register("/t", 3, "t")
    ledger.register("/t", 9, "t")  # known already
    assert ledger.tail("/t") == Tail(3, (), "t")
    ledger.ratify([commit("/t", 4)])
    ledger.ratify([commit("/t", 5), commit("/t", 6)])
    assert ledger.tail("/t") == Tail(6, (commit("/t", 4), commit("/t", 5), commit("/t", 6)), "t")
    ledger.acknowledge("/t", 5)
    ledger.acknowledge("/t", 4)  # a late one changes nothing
    assert ledger.tail("/t") == Tail(6, (commit("/t", 6),), "t")


def test_commits_of_tables_may_take_turns(ledger: Ledger) -> None:
    ledger.register("/a", 0, "a")
    ledger.register("/b", 5, "b")
    moment = ledger.ratify([commit("/a", 1), commit("/b", 6), commit("/a", 2)])
    assert ledger.tail("/a") == Tail(2, (commit("/a", 1), commit("/a", 2)), "a")
    assert [ledger.version_at(table, moment) for table in ("/a", "/b")] == [2, 6]


@pytest.mark.parametrize("versions", [[3], [5], [4, 6], [4, 4], [5, 4]])
def test_only_the_versions_behind_the_newest_are_ratified(ledger: Ledger, versions: list[int]) -> None:
    ledger.register("/t", 3, "t")
    with pytest.raises(VersionTakenError) as caught:
        ledger.ratify([commit("/t", version) for version in versions])
    assert caught.value.message_parameters["version"] == 3
    assert ledger.tail("/t") == Tail(3, (), "t")


def test_all_tables_are_ratified_or_none(ledger: Ledger) -> None:
    ledger.register("/a", 0, "a")
    ledger.register("/b", 5, "b")
    with pytest.raises(VersionTakenError):
        ledger.ratify([commit("/a", 1), commit("/b", 5)])
    with pytest.raises(VersionTakenError):
        ledger.ratify([commit("/a", 1)], expected={"/b": 4})
    assert ledger.tail("/a") == Tail(0, (), "a")
    moment = ledger.ratify([commit("/a", 1), commit("/b", 6)], expected={})
    assert [ledger.version_at(table, moment) for table in ("/a", "/b")] == [1, 6]
    assert [ledger.version_at(table, moment - 1) for table in ("/a", "/b")] == [0, 5]
    assert ledger.moment() == moment


def test_moments_are_found_by_time(ledger: Ledger) -> None:
    ledger.register("/a", 0, "a")
    assert ledger.moment(2**62) is None
    moment = ledger.ratify([commit("/a", 1)])
    assert ledger.moment(2**62) == moment and ledger.moment(0) is None


def test_state_before_a_table_was_known_is_not_told(ledger: Ledger) -> None:
    ledger.register("/a", 0, "a")
    before = ledger.ratify([commit("/a", 1)])
    ledger.ratify([commit("/a", 2)])
    ledger.register("/b", 7, "b")
    assert ledger.version_at("/b", before) is None
    assert ledger.version_at("/b", before + 1) == 7


def test_table_that_is_forgotten_is_not_known(ledger: Ledger) -> None:
    ledger.register("/a", 0, "a")
    ledger.ratify([commit("/a", 1)])
    ledger.forget("/a")
    assert ledger.tail("/a") is None
    ledger.register("/a", 1, "a")
    assert ledger.tail("/a") == Tail(1, (), "a")


def test_table_is_known_at_one_place_and_a_place_has_one_table(ledger: Ledger) -> None:
    ledger.register("/a", 3, "one")
    for place, table_id in (("/b", "one"), ("/a", "two")):
        with pytest.raises(UnsupportedOperationError, match="/a"):
            ledger.register(place, 9, table_id)
    assert ledger.tail("/a") == Tail(3, (), "one") and ledger.tail("/b") is None


def test_table_is_forgotten_only_at_the_version_that_was_seen(ledger: Ledger) -> None:
    ledger.register("/a", 0, "a")
    ledger.ratify([commit("/a", 1)])
    assert not ledger.forget("/a", 0) and not ledger.forget("/a", 1), "it is not published"
    ledger.acknowledge("/a", 9)  # more than there is
    assert ledger.tail("/a") == Tail(1, (commit("/a", 1),), "a")
    ledger.acknowledge("/a", 1)
    assert ledger.forget("/a", 1) and ledger.tail("/a") is None


# ---------------------------------------------------------------- transactions over tables


def proposed(table: str, version: int) -> ProposedCommit:
    return ProposedCommit(commit(table, version), b'{"some": "thing"}')


def test_transaction_keeps_what_is_proposed_until_it_ends(ledger: Ledger) -> None:
    ledger.register("/a", 0, "a")
    begun = ledger.begin(60)
    assert ledger.find(begun.identity) == begun
    ledger.propose(begun.identity, proposed("/b", 1))
    ledger.propose(begun.identity, proposed("/a", 1))
    with pytest.raises(VersionTakenError):
        ledger.propose(begun.identity, proposed("/a", 1))
    assert ledger.proposed(begun.identity) == [proposed("/a", 1), proposed("/b", 1)]
    assert ledger.proposed(begun.identity, "/b") == [proposed("/b", 1)]
    assert ledger.tail("/a") == Tail(0, (), "a")
    ledger.ratify([commit("/a", 1, "other")], transaction=begun.identity)
    with pytest.raises(TransactionEndedError, match="committed"):
        ledger.find(begun.identity)
    assert ledger.proposed(begun.identity) == [] and ledger.abort(begun.identity) == []


def test_transaction_sees_tables_at_its_start_plus_its_commits(ledger: Ledger) -> None:
    ledger.register("/a", 0, "a")
    ledger.ratify([commit("/a", 1)])
    begun = ledger.begin(60)
    ledger.ratify([commit("/a", 2, "other")])
    ledger.propose(begun.identity, proposed("/a", 2))
    assert ledger.tail_in(begun.identity, "/a") == Tail(2, (commit("/a", 1), commit("/a", 2)), "a", base=1)
    assert ledger.tail_in(begun.identity, "/b") is None
    ledger.register("/b", 0, "b")
    with pytest.raises(TransactionEndedError, match="does not know which version"):
        ledger.tail_in(begun.identity, "/b")
    assert ledger.state_of(begun.identity) == "open"
    ledger.abort(begun.identity)
    assert ledger.state_of(begun.identity) == "aborted" and ledger.state_of("nobody") is None
    with pytest.raises(TransactionEndedError):
        ledger.tail_in(begun.identity, "/a")


def test_transaction_ends_for_a_table_that_was_recreated(ledger: Ledger) -> None:
    ledger.register("/a", 3, "a")
    begun = ledger.begin(60)
    ledger.propose(begun.identity, proposed("/a", 4))
    ledger.forget("/a")
    ledger.register("/a", 0, "another")
    with pytest.raises(TransactionEndedError, match="the table came later"):
        ledger.tail_in(begun.identity, "/a")


def test_expired_transaction_is_aborted_when_another_begins(ledger: Ledger) -> None:
    late = ledger.begin(-1)
    assert ledger.state_of(late.identity) == "open"
    ledger.begin(60)
    assert ledger.state_of(late.identity) is None and ledger.proposed(late.identity) == []


def test_transaction_that_is_aborted_or_late_is_never_ratified(ledger: Ledger) -> None:
    ledger.register("/a", 0, "a")
    aborted, late = ledger.begin(60), ledger.begin(-1)
    ledger.propose(aborted.identity, proposed("/a", 1))
    assert ledger.abort(aborted.identity) == [proposed("/a", 1)]
    for begun in (aborted, late):
        with pytest.raises(TransactionEndedError):
            ledger.ratify([commit("/a", 1)], transaction=begun.identity)
        with pytest.raises(TransactionEndedError):
            ledger.propose(begun.identity, proposed("/a", 1))
    assert ledger.tail("/a") == Tail(0, (), "a")


def test_committed_transaction_stays_known_for_a_day(ledger: Ledger) -> None:
    """So a writer that lost the answer learns it, even if others have begun new transactions since."""
    ledger.register("/a", 0, "a")
    committed, aborted = ledger.begin(60), ledger.begin(60)
    ledger.ratify([commit("/a", 1)], transaction=committed.identity)
    ledger.abort(aborted.identity)
    for hours in (1, 23, 23):
        with clock_ahead(hours * HOUR):
            ledger.begin(60)
        assert [ledger.state_of(one.identity) for one in (committed, aborted)] == ["committed", None]
    with clock_ahead(2 * DAY):
        ledger.begin(60)
    assert ledger.state_of(committed.identity) is None
    assert ledger.tail("/a") == Tail(1, (commit("/a", 1),), "a")


def test_expired_transaction_is_aborted_with_its_proposals(ledger: Ledger) -> None:
    """By another machine's clock there may still be time, or its call may still be running: then it comes too late."""
    ledger.register("/a", 0, "a")
    begun = ledger.begin(60)
    ledger.propose(begun.identity, proposed("/a", 1))
    with clock_ahead(HOUR):
        assert ledger.abort(begun.identity) == [proposed("/a", 1)]
    assert ledger.state_of(begun.identity) == "aborted"
    with pytest.raises(TransactionEndedError, match="aborted"):
        ledger.ratify([commit("/a", 1)], transaction=begun.identity)
    assert ledger.tail("/a") == Tail(0, (), "a")


def test_transaction_keeps_what_was_read_until_it_ends(ledger: Ledger) -> None:
    begun, other = ledger.begin(60), ledger.begin(60)
    large = b'{"predicates": ["' + b"x" * 700_000 + b'"]}'
    for table, reads in (("/a", b'["1"]'), ("/b", large), ("/a", b'["2"]')):
        ledger.hold_reads(begun.identity, table, reads)
    held_rows = ledger.held_reads(begun.identity)
    assert {table: sorted(reads) for table, reads in held_rows.items()} == {"/a": [b'["1"]', b'["2"]'], "/b": [large]}
    assert ledger.held_reads(other.identity) == {} and ledger.proposed(begun.identity) == []
    assert ledger.abort(begun.identity) == []
    ledger.ratify([], transaction=other.identity)
    for ended in (begun, other):
        assert ledger.held_reads(ended.identity) == {}
        with pytest.raises(TransactionEndedError):
            ledger.hold_reads(ended.identity, "/a", b"[]")


def test_reads_of_a_transaction_that_is_given_up_are_not_kept(ledger: Ledger) -> None:
    begun = ledger.begin(60)
    ledger.hold_reads(begun.identity, "/a", b"[]")
    with clock_ahead(HOUR):
        ledger.begin(60)
    assert ledger.held_reads(begun.identity) == {}


def test_token_is_used_once(ledger: Ledger) -> None:
    ledger.register("/a", 0, "a")
    assert ledger.moment_of("t1") is None
    moment = ledger.ratify([commit("/a", 1)], token="t1")
    with pytest.raises(TokenUsedError) as caught:
        ledger.ratify([commit("/a", 2)], token="t1")
    assert caught.value.message_parameters["moment"] == moment == ledger.moment_of("t1")
    assert ledger.tail("/a") == Tail(1, (commit("/a", 1),), "a")


# ---------------------------------------------------------------- made anew


def test_empty_ledger_becomes_one_that_was_lost(ledger: Ledger, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.restore("lost", [Restored("/a", "a", 3, (commit("/a", 4), commit("/a", 5))), Restored("/b", "b", 7)])
    assert ledger.identity == "lost" and ledger.inventory() == Inventory("lost", ("/a", "/b"))
    assert ledger.tail("/a") == Tail(5, (commit("/a", 4), commit("/a", 5)), "a") and ledger.tail("/b") == Tail(7, (), "b")
    assert ledger.moment() == 1
    assert [ledger.version_at(table, moment) for table in ("/a", "/b") for moment in (0, 1)] == [3, 5, 7, 7]
    ledger.restore("lost", [Restored("/c", "c", 0)])
    assert ledger.ratify([commit("/a", 6), commit("/c", 1)]) == 2
    monkeypatch.setattr(open_coordinator, "_open_ledgers", {})
    assert open_ledger(url).identity == "lost"


def test_ledger_that_knows_tables_becomes_no_other(ledger: Ledger) -> None:
    identity = ledger.identity
    ledger.register("/a", 3, "a")
    with pytest.raises(UnsupportedOperationError, match=identity):
        ledger.restore("lost", [Restored("/b", "b", 7)])
    with pytest.raises(VersionTakenError) as caught:
        ledger.restore(identity, [Restored("/b", "b", 7), Restored("/a", "a", 2, (commit("/a", 3),))])
    assert caught.value.message_parameters == {"table": "/a", "version": 3}
    with pytest.raises(UnsupportedOperationError, match="knows it as /a"):
        ledger.restore(identity, [Restored("/b", "b", 7), Restored("/c", "a", 3)])
    assert ledger.inventory() == Inventory(identity, ("/a",)), "all of them or none"
    ledger.forget("/a")
    ledger.restore("lost", [])
    assert ledger.inventory() == Inventory("lost", ())


def test_table_is_restored_at_one_place_and_once(ledger: Ledger) -> None:
    identity = ledger.identity
    with pytest.raises(VersionTakenError):
        ledger.restore(identity, [Restored("/a", "a", 3), Restored("/a", "a", 3)])
    with pytest.raises(UnsupportedOperationError, match="knows it as /a"):
        ledger.restore(identity, [Restored("/a", "a", 3), Restored("/b", "a", 3)])
    with pytest.raises(UnsupportedOperationError, match="another table at that place"):
        ledger.restore(identity, [Restored("/a", "a", 3), Restored("/a", "b", 3)])
    with pytest.raises(VersionTakenError):
        ledger.restore(identity, [Restored("/a", "a", 3, (commit("/a", 5),))])
    assert ledger.inventory() == Inventory(identity, ())


def test_ledger_with_another_identity_takes_no_tables(
    ledger: Ledger, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_coordinator, "_open_ledgers", {})
    open_ledger(url).restore("lost", [])
    with pytest.raises(UnsupportedOperationError, match="is the ledger lost"):
        ledger.register("/a", 0, "a")
    assert ledger.inventory() == Inventory("lost", ())
    ledger.register("/a", 0, "a")


# ---------------------------------------------------------------- databases


def ratify_many(url: str, name: str, count: int, finished: Any) -> None:
    ledger, won = open_ledger(url), 0
    while won < count:
        tail = ledger.tail("/t")
        assert tail is not None
        try:
            ledger.ratify([commit("/t", tail.version + 1, name)])
            won += 1
        except VersionTakenError:
            continue
    finished.put(os.getpid())


def test_processes_share_a_ledger_and_no_version_has_two_commits(url: str) -> None:
    open_ledger(url).register("/t", 0, "t")
    context = multiprocessing.get_context("fork")  # the child inherits an open ledger
    finished = context.SimpleQueue()
    workers = [context.Process(target=ratify_many, args=(url, f"w{number}", 10, finished)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    tail = open_ledger(url).tail("/t")
    assert tail is not None and [one.version for one in tail.commits] == list(range(1, 31))
    assert open_ledger(url).moment() == 30


def test_ledger_is_the_same_when_it_is_opened_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_ledger(url)
    monkeypatch.setattr(open_coordinator, "_open_ledgers", {})
    second = open_ledger(url)
    assert first is not second and first.identity == second.identity
