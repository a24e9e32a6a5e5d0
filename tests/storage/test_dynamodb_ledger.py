"""The contract of ledgers, on DynamoDB; and what only a ledger there meets."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from botocore.exceptions import ReadTimeoutError

from delta_py.coordinator.dynamodb_ledger import DynamoDbLedger
from delta_py.coordinator.ledger import Tail
from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from tests.support.emulators import _ACCESS_KEY, _SECRET_KEY, Emulator
from tests.unit.coordinator.test_ledger import (  # noqa: F401
    commit,
    ledger,
    proposed,
    test_all_tables_are_ratified_or_none,
    test_empty_ledger_becomes_one_that_was_lost,
    test_ledger_is_the_same_when_it_is_opened_again,
    test_ledger_that_became_another_since_it_was_opened_takes_no_tables,
    test_ledger_that_knows_tables_becomes_no_other,
    test_moments_are_found_by_time,
    test_only_the_versions_behind_the_newest_are_ratified,
    test_processes_share_a_ledger_and_no_version_has_two_commits,
    test_ratified_commits_are_told_until_they_are_published,
    test_state_before_a_table_was_known_is_not_told,
    test_table_is_forgotten_only_at_the_version_that_was_seen,
    test_table_is_known_at_one_place_and_a_place_has_one_table,
    test_table_that_is_forgotten_is_not_known,
    test_table_that_is_not_known_has_no_tail,
    test_token_is_used_once,
    test_transaction_keeps_what_is_proposed_until_it_ends,
    test_transaction_that_is_aborted_or_late_is_never_ratified,
)


@pytest.fixture
def url(emulators: Callable[[str], Emulator]) -> str:
    """Of a ledger that is empty."""
    server, table = emulators("dynamodb"), f"t{uuid.uuid4().hex}"
    server.make_container(table)
    keys = f"access_key_id={_ACCESS_KEY}&secret_access_key={_SECRET_KEY}"
    return f"dynamodb://{table}?region=us-east-1&endpoint={quote(server.endpoint, safe='')}&{keys}"


def lose_replies(database: DynamoDbLedger, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first reply of each transaction that is written is lost; returns the tokens of requests as they come."""
    database.moment()
    assert database._made is not None
    client, tokens = database._made[1], list[str]()
    write = client.transact_write_items

    def losing(**asked: Any) -> Any:
        tokens.append(asked["ClientRequestToken"])
        answer = write(**asked)
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


def test_ratification_of_which_a_late_try_was_carried_out_is_recognised(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write is reported as cancelled, and has been carried out: as a try does that arrives late."""
    database = DynamoDbLedger(url)
    database.register("/a", 0, "a")
    write, answers = database._write, list[bool]()

    def late(actions: Any) -> bool:
        answers.append(write(actions))
        return False

    monkeypatch.setattr(database, "_write", late)
    assert database.ratify([commit("/a", 1)]) == 1
    assert answers == [True] and database.tail("/a") == Tail(1, (commit("/a", 1),), "a")


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
