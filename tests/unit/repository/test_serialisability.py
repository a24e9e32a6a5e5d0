"""The checker of histories: it finds what each isolation level forbids, and nothing in what it allows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.oracles.serialisability import (
    History,
    Read,
    Row,
    Step,
    Transaction,
    Where,
    Write,
    intent_line,
    outcome_line,
    read_transactions,
)

X, Y = (1, 0, 10), (2, 0, 20)
INITIAL = {"t": [X, Y], "u": [X, Y]}


Versions = Mapping[str, int] | int


def tx(name: str, *steps: Step, base: Versions = 0, at: Versions | None = None, **more: object) -> Transaction:
    """base: of both tables, or of each. at: the version of `t` that it becomes, or of each; None if it becomes none."""
    bases = {"t": base, "u": base} if isinstance(base, int) else base
    versions = {"t": at} if isinstance(at, int) else at or {}
    return Transaction(name, steps, bases, versions=versions, **more)  # type: ignore[arg-type]


def read(*rows: Row, table: str = "t", low: int | None = None, high: int | None = None) -> Read:
    keys = [row[0] for row in rows]
    where = Where("id", min(keys, default=0) if low is None else low, max(keys, default=0) if high is None else high)
    return Read(table, where, frozenset(rows))


def write(key: int, value: int, table: str = "t") -> Write:
    return Write(table, key, (key, 0, value))


def both(*, t: int, u: int) -> dict[str, int]:
    return {"t": t, "u": u}


# The anomalies of each history under serializable and under snapshot isolation.
HISTORIES: dict[str, tuple[list[Transaction], list[str], list[str]]] = {
    "one after the other": (
        [tx("a", read(X), write(1, 11), at=1), tx("b", read((1, 0, 11)), write(1, 12), base=1, at=2)],
        [],
        [],
    ),
    "both read, one writes": ([tx("a", read(X), write(1, 11), at=1), tx("b", read(X), write(2, 21), at=2)], [], []),
    "lost update": (
        [tx("a", read(X), write(1, 11), at=1), tx("b", read(X), write(1, 12), at=2)],
        ["cycle"],
        ["cycle"],
    ),
    "write skew": (
        [tx("a", read(X, Y), write(1, 11), at=1), tx("b", read(X, Y), write(2, 21), at=2)],
        ["cycle"],
        [],
    ),
    "write skew of rows that were not there": (
        [
            tx("a", read(low=5, high=9), Write("t", 3, (3, 0, 31)), at=1),
            tx("b", read(low=3, high=4), Write("t", 6, (6, 0, 61)), at=2),
        ],
        ["cycle"],
        [],
    ),
    "write skew of rows that were deleted": (
        [tx("a", read(X, Y), Write("t", 1, None), at=1), tx("b", read(X, Y), Write("t", 2, None), at=2)],
        ["cycle"],
        [],
    ),
    "rows that both have not looked for": (
        [
            tx("a", read(low=5, high=9), Write("t", 3, (3, 0, 31)), at=1),
            tx("b", read(low=4, high=4), Write("t", 6, (6, 0, 61)), at=2),
        ],
        [],
        [],
    ),
    "read skew": (
        [
            tx("w", write(1, 11), write(1, 12, "u"), at=both(t=1, u=1)),
            tx("r", read((1, 0, 11)), read(X, table="u"), base=both(t=1, u=0)),
        ],
        ["cycle"],
        ["cycle"],
    ),
    "writes in different orders": (
        [
            tx("a", write(1, 11), write(1, 12, "u"), at=both(t=1, u=2)),
            tx("b", write(1, 13), write(1, 14, "u"), at=both(t=2, u=1)),
        ],
        ["cycle"],
        ["cycle"],
    ),
    "read of what is over": (
        [tx("w", write(1, 11), at=1, ended=5), tx("r", read(X), began=6)],
        ["cycle"],
        ["cycle"],
    ),
    "read of what was not over": ([tx("w", write(1, 11), at=1, ended=5), tx("r", read(X), began=4)], [], []),
    "reader of a state that no serial order has": (
        [
            tx("withdraws", read(X, Y), write(1, 11), at=2),
            tx("pays in", read(Y), write(2, 21), at=1),
            tx("looks", read(X, (2, 0, 21)), base=1),
        ],
        ["cycle"],
        [],
    ),
    "read of what was aborted": (
        [tx("w", write(1, 11), outcome="aborted"), tx("r", read((1, 0, 11)))],
        ["aborted read", "missing row"],
        ["aborted read", "missing row"],
    ),
    "read of what is not committed": (
        [tx("w", write(1, 11), outcome="unknown"), tx("r", read((1, 0, 11)))],
        ["dirty read", "missing row"],
        ["dirty read", "missing row"],
    ),
    "read of what is committed later": (
        [tx("w", write(1, 11), at=1), tx("r", read((1, 0, 11)))],
        ["not one state", "missing row"],
        ["not one state", "missing row"],
    ),
    "read of what is written anew": (
        [tx("w", write(1, 11), write(1, 12), at=1), tx("r", read((1, 0, 11)), base=1)],
        ["intermediate read", "missing row"],
        ["intermediate read", "missing row"],
    ),
    "read of what nobody wrote": ([tx("r", read(X, Y, (3, 0, 30)))], ["row of nobody"], ["row of nobody"]),
    "read that lacks a row": ([tx("r", read(X, low=1, high=2))], ["missing row"], ["missing row"]),
    "read that lacks its own row": (
        [tx("r", write(1, 11), read(X), at=1)],
        ["not one state", "missing row"],
        ["not one state", "missing row"],
    ),
    "read of its own row": ([tx("r", write(1, 11), read((1, 0, 11)), at=1)], [], []),
    "read by one that was aborted": (
        [tx("w", write(1, 11), at=1), tx("r", read((1, 0, 11)), outcome="aborted")],
        ["not one state", "missing row"],
        ["not one state", "missing row"],
    ),
    "transaction in one of its tables": (
        [tx("w", write(1, 11), write(1, 12, "u"), at=1)],
        ["torn"],
        ["torn"],
    ),
    "aborted and there": ([tx("w", write(1, 11), at=1, outcome="aborted")], ["aborted write"], ["aborted write"]),
    "committed and not there": ([tx("w", write(1, 11))], ["lost write"], ["lost write"]),
    "unknown and there": ([tx("w", write(1, 11), at=1, outcome="unknown"), tx("r", read((1, 0, 11)), base=1)], [], []),
    "unknown and not there": ([tx("w", write(1, 11), outcome="unknown"), tx("r", read(X))], [], []),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_what_an_isolation_forbids_is_found_and_nothing_else(name: str) -> None:
    transactions, *expected_anomalies = HISTORIES[name]
    history = History(INITIAL, transactions)
    assert [[one.kind for one in history.anomalies(each)] for each in ("serializable", "snapshot")] == expected_anomalies


def test_cycle_says_why() -> None:
    transactions, _, _ = HISTORIES["write skew"]
    (anomaly,) = History(INITIAL, transactions).anomalies()
    assert set(anomaly.transactions) == {"a", "b"} and anomaly.what in ("a -rw-> b -rw-> a", "b -rw-> a -rw-> b")
    transactions, _, _ = HISTORIES["lost update"]
    (anomaly,) = History(INITIAL, transactions).anomalies("snapshot")
    assert "-ww-> b -rw-> a" in anomaly.what


def test_transactions_are_read_from_their_files(tmp_path: Path) -> None:
    steps = (read(X, Y), write(1, 11), Write("u", 2, None))
    file, killed = tmp_path / "one", tmp_path / "killed"
    file.write_text(intent_line("a", 3, {"t": 0}, steps) + outcome_line("a", "committed", 7))
    line = intent_line("b", 4, {}, [write(1, 12)])
    killed.write_text(line + intent_line("c", 5, {}, [write(1, 13)])[:-9])
    a, b = read_transactions([file, killed], {"a": {"t": 1, "u": 1}, "b": {"t": 2}})
    assert a == Transaction("a", steps, {"t": 0}, "committed", {"t": 1, "u": 1}, 3, 7)
    assert b == Transaction("b", (write(1, 12),), {}, "unknown", {"t": 2}, 4, None)
    with pytest.raises(AssertionError, match="of which no file tells"):
        read_transactions([file], {"strange": {"t": 1}})
