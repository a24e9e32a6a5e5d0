"""The contract of ledgers, on DynamoDB; and cases that only a ledger there has."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from delta_py.coordinator import dynamodb_items, dynamodb_keys, dynamodb_ledger, dynamodb_transactions
from delta_py.coordinator.dynamodb_ledger import DynamoDbLedger
from delta_py.coordinator.ledger import (
    CoordinatorContendedError,
    CoordinatorUnavailableError,
    Inventory,
    Restored,
    Tail,
)
from delta_py.errors import DeltaConcurrentModificationException, InvalidOptionError, UnsupportedOperationError
from tests.support.servers.emulators import _ACCESS_KEY, _SECRET_KEY, Emulator, dynamodb_ledger_url
from tests.support.stores.coordination import clock_ahead
from tests.support.stores.ledger_contract import *  # noqa: F403
from tests.support.stores.ledger_contract import DAY, HOUR, commit, proposed


@pytest.fixture
def url(emulators: Callable[[str], Emulator]) -> str:
    """The URL of an empty ledger."""
    return dynamodb_ledger_url(emulators("dynamodb"))


def lose_replies(database: DynamoDbLedger, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first reply to each written transaction is lost. Returns the tokens of requests as they come."""
    database.moment()
    assert database.items._client_of_process is not None
    client, tokens = database.items._client_of_process[1], list[str]()
    write = client.transact_write_items

    def losing(**request: Any) -> Any:
        tokens.append(request["ClientRequestToken"])
        answer = write(**request)
        if tokens.count(tokens[-1]) == 1:
            raise ReadTimeoutError(endpoint_url="the emulator")
        return answer

    monkeypatch.setattr(client, "transact_write_items", losing)
    return tokens


def test_write_whose_reply_is_lost_is_done_once_and_succeeds(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = DynamoDbLedger(url)
    tokens = lose_replies(database, monkeypatch)
    database.register("/a", 0, "a")
    begun = database.begin(60)
    database.propose(begun.identity, proposed("/a", 1))
    assert database.ratify([commit("/a", 1)], transaction=begun.identity, token="x") == 1
    database.acknowledge("/a", 1)
    other = database.begin(60)
    database.propose(other.identity, proposed("/a", 2))
    assert database.abort(other.identity) == [proposed("/a", 2)]
    assert database.tail("/a") == Tail(1, (), "a") and database.moment() == 1 and database.moment_of("x") == 1
    assert database.forget("/a", 1) and database.inventory().tables == ()
    assert len(tokens) == 2 * len(set(tokens)) == 18, "nine writes, each sent twice"


def test_ratify_recognises_a_try_that_succeeded_late(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write is reported as cancelled, but has been carried out, as a late try can do."""
    database = DynamoDbLedger(url)
    database.register("/a", 0, "a")
    write, answers = database.items.write, list[bool]()

    def late(actions: Any) -> bool:
        answers.append(write(actions))
        return False

    monkeypatch.setattr(database.items, "write", late)
    assert database.ratify([commit("/a", 1)]) == 1
    assert answers == [True] and database.tail("/a") == Tail(1, (commit("/a", 1),), "a")


def test_contended_ratify_is_known_to_have_failed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamodb_items, "CONTENTION_SECONDS", 0.1)
    database, other = DynamoDbLedger(url), DynamoDbLedger(url)
    for table in ("/a", "/b"):
        database.register(table, 0, table[1:])
    write, versions = database.items.write, iter(range(1, 10_000))

    def too_late(actions: Any) -> bool:
        other.ratify([commit("/b", next(versions))])
        return write(actions)

    begun = database.begin(60)
    monkeypatch.setattr(database.items, "write", too_late)
    for transaction in (None, begun.identity):
        with pytest.raises(CoordinatorContendedError, match=r"Nothing was ratified") as caught:
            database.ratify([commit("/a", 1)], transaction=transaction)
        assert isinstance(caught.value, DeltaConcurrentModificationException) and not isinstance(caught.value, OSError)
    assert database.tail("/a") == Tail(0, (), "a") and database.state_of(begun.identity) == "open"


def test_ratify_is_in_doubt_if_a_try_may_still_succeed_late(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is unchanged since the last try: that try would still succeed if it arrived late."""
    monkeypatch.setattr(dynamodb_items, "CONTENTION_SECONDS", 0.1)
    database = DynamoDbLedger(url)
    database.register("/a", 0, "a")
    monkeypatch.setattr(database.items, "write", lambda actions: False)
    with pytest.raises(CoordinatorUnavailableError):
        database.ratify([commit("/a", 1)])


def test_ratify_recognises_success_of_its_last_try(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamodb_items, "CONTENTION_SECONDS", 0.0)
    database = DynamoDbLedger(url)
    database.register("/a", 0, "a")
    write = database.items.write
    monkeypatch.setattr(database.items, "write", lambda actions: write(actions) and False)
    assert database.ratify([commit("/a", 1)]) == 1
    assert database.tail("/a") == Tail(1, (commit("/a", 1),), "a")


def test_ledger_recognises_its_own_write_that_succeeded_late(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, other = DynamoDbLedger(url), DynamoDbLedger(url)
    write = database.items.write

    def late(actions: Any) -> bool:
        write(actions)
        return False

    monkeypatch.setattr(database.items, "write", late)
    database.restore(database.identity, [Restored("/a", "a", 0, (commit("/a", 1),))])
    database.register("/b", 0, "b")
    assert database.tail("/a") == Tail(1, (commit("/a", 1),), "a") and database.moment() == 1
    database.acknowledge("/a", 1)
    begun = database.begin(60)
    database.propose(begun.identity, proposed("/a", 2))
    assert database.abort(begun.identity) == [proposed("/a", 2)]

    def late_and_made_anew(actions: Any) -> bool:
        late(actions)
        other.register("/a", 1, "a")
        return False

    monkeypatch.setattr(database.items, "write", late_and_made_anew)
    assert database.forget("/a")
    assert database.tail("/a") == Tail(1, (), "a"), "what another process has registered since stays"


class FailingFrom:
    """The requests of a ledger. Those from a number on fail before they are carried out. `count`: how many were made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, database: DynamoDbLedger, first: float = float("inf")) -> None:
        self.count, self._first, self._run = 0, first, database.items._run
        monkeypatch.setattr(database.items, "_run", self)

    def __call__(self, call: Any) -> Any:
        self.count += 1
        if self.count > self._first:
            raise CoordinatorUnavailableError("injected")
        return self._run(call)


def test_ratify_succeeds_although_its_clean_up_fails(url: str) -> None:
    database = DynamoDbLedger(url)
    ends = list[tuple[bool, bool]]()
    for number in range(100):
        table = f"/{number}"
        database.register(table, 0, table)
        begun = database.begin(60)
        database.propose(begun.identity, proposed(table, 1))
        database.propose(begun.identity, proposed("/x", 1))
        with pytest.MonkeyPatch.context() as patch:
            failing = FailingFrom(patch, database, number)
            try:
                database.ratify([commit(table, 1)], transaction=begun.identity)
                is_told = True
            except CoordinatorUnavailableError:
                is_told = False
        tail = database.tail(table)
        assert tail is not None
        ends.append((is_told, tail.version == 1))
        assert database.proposed(begun.identity) == ([] if is_told else [proposed(table, 1), proposed("/x", 1)])
        if failing.count <= number:
            break
    assert set(ends) == {(False, False), (True, True)}


@pytest.mark.parametrize("step", ["acknowledge", "forget"])
def test_acknowledge_and_forget_work_although_old_commits_stay(
    url: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(dynamodb_ledger, "RETAINED_VERSIONS", 2)
    database = DynamoDbLedger(url)
    database.register("/a", 0, "a")
    database.ratify([commit("/a", version) for version in range(1, 7)])
    with pytest.MonkeyPatch.context() as patch:
        FailingFrom(patch, database, 2)
        assert database.acknowledge("/a", 6) is None if step == "acknowledge" else database.forget("/a")
    assert database.tail("/a") == (Tail(6, (), "a") if step == "acknowledge" else None)


def test_commits_are_told_until_they_are_long_published(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamodb_ledger, "RETAINED_VERSIONS", 2)
    database = DynamoDbLedger(url)
    database.register("/a", 0, "a")
    moments = [database.ratify([commit("/a", version)]) for version in range(1, 7)]
    database.acknowledge("/a", 6)
    assert [database.version_at("/a", moment) for moment in (0, *moments)] == [None, None, None, None, 4, 5, 6]


def test_abort_by_a_fast_clock_keeps_all_proposals_or_none(url: str) -> None:
    """By its own clock there is still time. The writer that gives it up dies after any of its requests."""
    owner, other = DynamoDbLedger(url), DynamoDbLedger(url)
    seen, now = set[int](), dynamodb_keys.now_ms
    for number in range(100):
        begun = owner.begin(60)
        owner.propose(begun.identity, proposed("/a", 1))
        owner.propose(begun.identity, proposed("/b", 1))
        with pytest.MonkeyPatch.context() as patch:
            failing = FailingFrom(patch, other, number)
            patch.setattr(dynamodb_transactions, "now_ms", lambda: now() + 3_600_000)
            with contextlib.suppress(CoordinatorUnavailableError):
                other.begin(-4_000)
        seen.add(len(owner.proposed(begun.identity)))
        with pytest.MonkeyPatch.context() as patch:  # the next writer finishes it
            patch.setattr(dynamodb_transactions, "now_ms", lambda: now() + 3_600_000)
            owner.begin(-4_000)
        assert owner.state_of(begun.identity) is None
        assert list(owner.items.query(f"transaction {begun.identity}")) == []
        if failing.count <= number:
            break
    assert seen == {0, 2}


def test_commit_during_an_abort_by_a_fast_clock_stays_committed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a machine whose clock is ahead, and which has read it before."""
    owner, other = DynamoDbLedger(url), DynamoDbLedger(url)
    owner.register("/a", 0, "a")
    begun = owner.begin(60)
    write = other.items.write

    def late(actions: Any) -> bool:
        if "Delete" in actions[0]:
            with clock_ahead(-HOUR):
                owner.ratify([commit("/a", 1)], transaction=begun.identity)
        return write(actions)

    monkeypatch.setattr(other.items, "write", late)
    with clock_ahead(HOUR):
        other.begin(60)
    monkeypatch.setattr(other.items, "write", write)
    with clock_ahead(HOUR):
        other.begin(60)
    assert owner.state_of(begun.identity) == "committed"
    with clock_ahead(2 * DAY):
        other.begin(60)
    assert list(owner.items.query(f"transaction {begun.identity}")) == []
    assert begun.identity not in {item["transaction"] for item in owner.items.query("open")}


def test_version_of_a_concurrently_forgotten_table_is_unknown(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, other = DynamoDbLedger(url), DynamoDbLedger(url)
    database.register("/a", 0, "a")
    moment = database.ratify([commit("/a", 1)])
    query = database.items.query

    def late(*args: Any, **options: Any) -> Any:
        other.forget("/a")
        return query(*args, **options)

    monkeypatch.setattr(database.items, "query", late)
    assert database.version_at("/a", moment) is None, "not 0, which it was before"


def test_table_registered_again_during_a_read_has_no_gap(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database, other = DynamoDbLedger(url), DynamoDbLedger(url)
    database.register("/a", 0, "a")
    database.ratify([commit("/a", 1)])
    begun = database.begin(60)
    query, parts = database.items.query, list[str]()

    def late(part: str, **options: Any) -> Any:
        items = list(query(part, **options))
        parts.append(part)
        if len(parts) == 1:
            other.forget("/a")
            other.register("/a", 9, "a")
        return iter(items)

    monkeypatch.setattr(database.items, "query", late)
    assert database.tail_in(begun.identity, "/a") == Tail(9, (), "a", base=9)


def test_inventory_is_of_one_state(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the inventory is made, a table that comes later replaces one that was already listed."""
    database, other = DynamoDbLedger(url), DynamoDbLedger(url)
    for table in ("/a", "/c"):
        database.register(table, 0, table)
    query, rounds = database.items.query, list[str]()

    def changing(part: str, **options: Any) -> Any:
        rounds.append(part)
        items = query(part, **options)
        yield next(items)
        if len(rounds) == 1:
            other.forget("/a")
            other.register("/d", 0, "/d")
        yield from items

    monkeypatch.setattr(database.items, "query", changing)
    assert database.inventory() == Inventory(database.identity, ("/c", "/d"))


def test_write_in_progress_is_repeated_with_the_same_token(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = DynamoDbLedger(url)
    database.register("/a", 0, "a")
    assert database.items._client_of_process is not None
    client, asked_for = database.items._client_of_process[1], list[str]()
    write = client.transact_write_items

    def under_way(**request: Any) -> Any:
        asked_for.append(request["ClientRequestToken"])
        if len(asked_for) == 1:
            cancellation = {"Code": "TransactionInProgressException", "Message": "it is in progress"}
            answer: Any = {"Error": cancellation, "ResponseMetadata": {"HTTPStatusCode": 400}}
            raise ClientError(answer, "TransactWriteItems")
        return write(**request)

    monkeypatch.setattr(client, "transact_write_items", under_way)
    assert database.ratify([commit("/a", 1)]) == 1
    assert len(asked_for) == 2 and len(set(asked_for)) == 1


def test_tables_whose_places_are_longer_than_a_key_are_not_known(url: str) -> None:
    """A table with a long path and without a coordinator is still opened through one."""
    database, place = DynamoDbLedger(url), "/" + "x" * 1100
    assert database.tail(place) is None and database.version_at(place, 0) is None and database.forget(place)
    assert database.tail_in(database.begin(60).identity, place) is None
    with pytest.raises(UnsupportedOperationError, match=r"2100 bytes.*2000"):
        database.moment_of("t" * 2100)


def test_texts_that_are_longer_than_a_key_are_refused_by_name(url: str) -> None:
    database = DynamoDbLedger(url)
    database.register("/a", 0, "a")
    place, token = f"/{'p' * 1000}", "t" * 2100
    with pytest.raises(UnsupportedOperationError, match=r"1001 bytes.*900"):
        database.register(place, 0, "p")
    with pytest.raises(UnsupportedOperationError, match=r"2100 bytes.*2000"):
        database.ratify([commit("/a", 1)], token=token)
    assert database.inventory().tables == ("/a",) and database.moment() == 0


def test_restore_of_more_tables_than_one_transaction_is_refused(url: str) -> None:
    database = DynamoDbLedger(url)
    tables = [Restored(f"/{number}", f"id {number}", 0) for number in range(50)]
    with pytest.raises(UnsupportedOperationError, match=r"101 items.*100"):
        database.restore("lost", tables)
    assert database.inventory().tables == () and database.identity != "lost"
    database.restore("lost", tables[:25])
    database.restore("lost", tables[25:])
    assert len(database.inventory().tables) == 50


def test_table_that_is_not_there_is_named_with_its_cure(url: str) -> None:
    with pytest.raises(CoordinatorUnavailableError, match=r"not_there.*Make the table, or correct its name"):
        DynamoDbLedger(url.replace("dynamodb://t", "dynamodb://not_there_"))


def test_database_that_never_answers_is_given_up_in_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = DynamoDbLedger(f"{url}&retry_timeout=0.2")
    assert database.items._client_of_process is not None

    def silent(**request: Any) -> Any:
        raise ReadTimeoutError(endpoint_url="the emulator")

    monkeypatch.setattr(database.items._client_of_process[1], "get_item", silent)
    with pytest.raises(CoordinatorUnavailableError, match=r"retry_timeout in the coordinator's URL") as caught:
        database.tail("/a")
    assert _SECRET_KEY not in str(caught.value)


def test_items_that_are_not_wanted_any_more_say_when(url: str) -> None:
    """Seconds since 1970, after which DynamoDB deletes them if the table's time to live is the attribute expireTime."""
    database = DynamoDbLedger(url)
    database.register("/a", 0, "a")
    database.ratify([commit("/a", 1)], token="x")
    begun = database.begin(60)
    database.propose(begun.identity, proposed("/a", 2))
    now = dynamodb_keys.now_ms() // 1000
    (token,) = database.items.query("token x")
    assert now + 86_000 < token["expireTime"] < now + 87_000
    (part,) = database.items.query(f"transaction {begun.identity}", begins="part ")
    assert now + 86_000 < part["expireTime"] < now + 87_000


def test_large_proposal_is_kept_whole(url: str) -> None:
    database = DynamoDbLedger(url)
    begun = database.begin(60)
    large = replace(proposed("/a", 1), described=bytes(range(256)) * 4000)
    database.propose(begun.identity, large)
    assert database.proposed(begun.identity) == [large] == database.abort(begun.identity)


def test_more_than_dynamodb_decides_at_once_is_refused_by_name(url: str) -> None:
    database = DynamoDbLedger(url)
    database.register("/a", 0, "a")
    with pytest.raises(UnsupportedOperationError, match="102 items"):
        database.ratify([commit("/a", version) for version in range(1, 100)])
    assert database.tail("/a") == Tail(0, (), "a") and database.moment() == 0
    assert database.ratify([commit("/a", version) for version in range(1, 98)]) == 1


def test_secrets_are_not_shown(url: str) -> None:
    database = DynamoDbLedger(url)
    assert database.shown.startswith("dynamodb://t") and _SECRET_KEY not in database.shown and _ACCESS_KEY not in database.shown


@pytest.mark.parametrize("wrong", ["dynamodb://", "dynamodb://t/x", "dynamodb://t?colour=red", "dynamodb://u:p@t"])
def test_url_that_names_no_table_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidOptionError, match="dynamodb://TABLE"):
        DynamoDbLedger(wrong)


def test_number_of_seconds_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="retry_timeout='soon'"):
        DynamoDbLedger("dynamodb://t?retry_timeout=soon")
