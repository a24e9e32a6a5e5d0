"""Histories of transactions over tables, and whether one serial order, or snapshot isolation, explains them.

    history = History(initial, transactions)
    history.anomalies("serializable")        # [] or what this isolation forbids, each with the transactions that show it

Rows are (id, grp, value), and each value is written once, so a row shows which transaction wrote it. Each transaction reports the
version of each table that it started from, what it read and wrote in order, and its outcome; the versions of its writes come from
the log of the tables. The dependencies follow from these: a transaction read what another one had written (wr), wrote it again
(ww), had read what another one wrote later (rw, also rows that a condition would have found), or began after another one had
ended (rt). A serial order exists if they form no cycle; under snapshot isolation each cycle has two consecutive rw. (Adya 1999;
Fekete et al. 2005; Cerone and Gotsman 2018.)
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

Row = tuple[int, int, int]
COLUMNS = ("id", "grp", "value")


@dataclass(frozen=True)
class Where:
    """Rows whose column is from low to high, both included."""

    column: str
    low: int
    high: int

    @property
    def sql(self) -> str:
        return f"{self.column} BETWEEN {self.low} AND {self.high}"

    def matches(self, row: Row | None) -> bool:
        return row is not None and self.low <= row[COLUMNS.index(self.column)] <= self.high


@dataclass(frozen=True)
class Read:
    table: str
    where: Where
    rows: frozenset[Row]


@dataclass(frozen=True)
class Write:
    """row: None if the row with the id was deleted."""

    table: str
    id: int
    row: Row | None


Step = Read | Write


@dataclass
class Transaction:
    """bases: the version of each table when it began. outcome: as its process reports, `committed`, `aborted`, or `unknown`, also
    if the process died. versions: of the tables, made by its writes; from the tables. began, ended: ns of one clock, ended None
    if it is unknown."""

    name: str
    steps: tuple[Step, ...]
    bases: Mapping[str, int]
    outcome: str = "committed"
    versions: Mapping[str, int] = field(default_factory=dict)
    began: int = 0
    ended: int | None = None

    @property
    def tables_written(self) -> set[str]:
        return {step.table for step in self.steps if isinstance(step, Write)}

    @property
    def last_writes(self) -> dict[tuple[str, int], Row | None]:
        """The writes that others can see."""
        return {(step.table, step.id): step.row for step in self.steps if isinstance(step, Write)}

    @property
    def took_place(self) -> bool:
        return bool(self.versions) or (self.outcome == "committed" and not self.tables_written)


@dataclass(frozen=True)
class Anomaly:
    kind: str
    transactions: tuple[str, ...]
    what: str


@dataclass(frozen=True)
class _State:
    """A row's state from a version of its table on. writer: None for the initial state."""

    version: int
    row: Row | None
    writer: str | None


class History:
    """initial: rows of the tables at version 0."""

    def __init__(self, initial: Mapping[str, Iterable[Row]], transactions: Sequence[Transaction]) -> None:
        self.transactions = list(transactions)
        self._by_name = {transaction.name: transaction for transaction in self.transactions}
        self._first_values = {row[2] for rows in initial.values() for row in rows}
        self._writer_of: dict[int, Transaction] = {}
        for transaction in self.transactions:
            for step in transaction.steps:
                if isinstance(step, Write) and step.row is not None:
                    assert step.row[2] not in self._writer_of, f"the value of {step} is written twice"
                    self._writer_of[step.row[2]] = transaction
        self._states = self._chains(initial)

    def _chains(self, initial: Mapping[str, Iterable[Row]]) -> dict[str, dict[int, list[_State]]]:
        """By table and id, the states of the row, by version."""
        chains: dict[str, dict[int, list[_State]]] = {table: {} for table in initial}
        for table, rows in initial.items():
            for row in rows:
                chains[table][row[0]] = [_State(0, row, None)]
        for transaction in self.transactions:
            if not transaction.versions:
                continue
            for (table, key), row in transaction.last_writes.items():
                if table in transaction.versions:
                    states = chains[table].setdefault(key, [_State(0, None, None)])
                    states.append(_State(transaction.versions[table], row, transaction.name))
        for by_key in chains.values():
            for states in by_key.values():
                states.sort(key=lambda state: state.version)
        return chains

    def at(self, table: str, key: int, version: int) -> _State:
        return [state for state in self._states[table].get(key, [_State(0, None, None)]) if state.version <= version][-1]

    def rows(self, table: str, version: int) -> set[Row]:
        """The table at a version."""
        states = (self.at(table, key, version) for key in self._states[table])
        return {state.row for state in states if state.row is not None}

    # ------------------------------------------------------------ what must not be

    def anomalies(self, isolation: str = "serializable") -> list[Anomaly]:
        """isolation: `serializable` or `snapshot`."""
        return [*self._outcomes(), *self._strange_reads(), *self._cycles(isolation)]

    def _outcomes(self) -> Iterator[Anomaly]:
        for one in self.transactions:
            if one.versions and one.versions.keys() != one.tables_written:
                where, written_tables = sorted(one.versions), sorted(one.tables_written)
                yield Anomaly("torn", (one.name,), f"its writes to {written_tables} are in {where} alone")
            elif one.versions and one.outcome == "aborted":
                yield Anomaly("aborted write", (one.name,), f"it is in {sorted(one.versions)}, and was aborted")
            elif one.outcome == "committed" and one.tables_written and not one.versions:
                yield Anomaly("lost write", (one.name,), "it was committed, and is in no table")

    def _strange_reads(self) -> Iterator[Anomaly]:
        """A read returns the rows of one version, with the transaction's own writes; also in aborted transactions."""
        for reader in self.transactions:
            own_writes: dict[tuple[str, int], Row | None] = {}
            for step in reader.steps:
                if isinstance(step, Write):
                    own_writes[step.table, step.id] = step.row
                    continue
                before = {row[0]: row for row in self.rows(step.table, reader.bases[step.table])}
                before |= {key: row for (table, key), row in own_writes.items() if table == step.table}
                expected_rows = frozenset(row for row in before.values() if row is not None and step.where.matches(row))
                for row in sorted(step.rows - expected_rows):
                    yield self._strange(reader, step, row)
                for row in sorted(expected_rows - step.rows):
                    what = f"{step.where.sql} of {step.table} at version {reader.bases[step.table]} lacks {row}"
                    yield Anomaly("missing row", (reader.name,), what)

    def _strange(self, reader: Transaction, step: Read, row: Row) -> Anomaly:
        writer, base = self._writer_of.get(row[2]), reader.bases[step.table]
        what = f"{step.where.sql} of {step.table} at version {base} gave {row}"
        if writer is None:
            return Anomaly("not one state" if row[2] in self._first_values else "row of nobody", (reader.name,), what)
        names = reader.name, writer.name
        if not writer.versions:
            kind = "aborted read" if writer.outcome == "aborted" else "dirty read"
            return Anomaly(kind, names, f"{what}, which {writer.name} wrote, and which was never committed")
        if writer.last_writes.get((step.table, row[0])) != row:
            return Anomaly("intermediate read", names, f"{what}, which {writer.name} has written anew itself")
        return Anomaly("not one state", names, f"{what}, which {writer.name} wrote as version {writer.versions[step.table]}")

    # ------------------------------------------------------------ dependencies

    def dependencies(self) -> dict[tuple[str, str], set[str]]:
        """Their kinds, by the names of the two transactions, of which the first comes first."""
        edges: dict[tuple[str, str], set[str]] = defaultdict(set)

        def add(first: str | None, then: str | None, kind: str) -> None:
            if first is not None and then is not None and first != then:
                edges[first, then].add(kind)

        for by_key in self._states.values():
            for states in by_key.values():
                for before, after in pairwise(states):
                    add(before.writer, after.writer, "ww")
        placed = [one for one in self.transactions if one.took_place]
        for reader in placed:
            own_keys: set[tuple[str, int]] = set()
            for step in reader.steps:
                if isinstance(step, Write):
                    own_keys.add((step.table, step.id))
                    continue
                for key, states in self._states[step.table].items():
                    if (step.table, key) not in own_keys:
                        self._add_read(add, reader, step, states)
        for one in placed:
            for other in placed:
                if one.ended is not None and one.ended < other.began:
                    add(one.name, other.name, "rt")
        return dict(edges)

    @staticmethod
    def _add_read(add: Any, reader: Transaction, step: Read, states: Sequence[_State]) -> None:
        """The dependencies of a read from one row, which may or may not be among the rows that were read: who wrote its state,
        and who changed it then. A state matters if it matches, or if the one before did."""
        base, matches = reader.bases[step.table], step.where.matches
        seen = [state for state in states if state.version <= base]
        for number in range(len(seen) - 1, -1, -1):
            if matches(seen[number].row) or (number and matches(seen[number - 1].row)):
                add(seen[number].writer, reader.name, "wr")
                break
        before = seen[-1].row
        for state in states[len(seen) :]:
            if matches(before) or matches(state.row):
                if state.writer != reader.name:
                    add(reader.name, state.writer, "rw")
                break
            before = state.row

    def _cycles(self, isolation: str) -> Iterator[Anomaly]:
        edges = {pair: "+".join(sorted(kinds)) for pair, kinds in self.dependencies().items()}
        if isolation == "snapshot":
            edges = _without_skew(self.dependencies())
        sorter: TopologicalSorter[str] = TopologicalSorter()
        for first, then in edges:
            sorter.add(then, first)
        try:
            sorter.prepare()
        except CycleError as error:
            names = tuple(error.args[1])  # the first again at the end
            text = "".join(f" -{edges[pair]}-> {pair[1]}" for pair in pairwise(names))
            yield Anomaly("cycle", names[:-1], names[0] + text)


def _without_skew(dependencies: Mapping[tuple[str, str], set[str]]) -> dict[tuple[str, str], str]:
    """Each dependency that is not rw, alone and with one rw after it. They form a cycle if there is one without two consecutive
    rw."""
    other_pairs = {pair: "+".join(sorted(kinds - {"rw"})) for pair, kinds in dependencies.items() if kinds - {"rw"}}
    skews: dict[str, list[str]] = defaultdict(list)
    for (first, then), kinds in dependencies.items():
        if "rw" in kinds:
            skews[first].append(then)
    pairs = dict(other_pairs)
    for (first, then), kinds_text in other_pairs.items():
        for last in skews[then]:
            pairs.setdefault((first, last), f"{kinds_text}-> {then} -rw")
    return pairs


# ---------------------------------------------------------------- as files


def intent_line(name: str, began: int, bases: Mapping[str, int], steps: Sequence[Step]) -> str:
    """Written before a transaction commits, so that the tables have no transaction whose actions are unknown."""
    listed: list[Any] = []
    for step in steps:
        if isinstance(step, Read):
            listed.append(["read", step.table, step.where.column, step.where.low, step.where.high, sorted(step.rows)])
        else:
            listed.append(["write", step.table, step.id, step.row])
    return json.dumps({"name": name, "began": began, "bases": dict(bases), "steps": listed}) + "\n"


def outcome_line(name: str, outcome: str, ended: int) -> str:
    return json.dumps({"name": name, "outcome": outcome, "ended": ended}) + "\n"


def read_transactions(files: Iterable[Path], groups: Mapping[str, Mapping[str, int]]) -> list[Transaction]:
    """The transactions of the files, in which a line may be cut off because its process died. groups: for the name of a
    transaction, the versions of the tables that it made."""
    transactions_by_name: dict[str, Transaction] = {}
    for file in files:
        for line in file.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                continue
            value = json.loads(line)
            name = value["name"]
            if "outcome" in value:
                transactions_by_name[name].outcome, transactions_by_name[name].ended = value["outcome"], value["ended"]
            else:
                steps = tuple(_step(step) for step in value["steps"])
                transactions_by_name[name] = Transaction(
                    name, steps, value["bases"], "unknown", groups.get(name, {}), value["began"]
                )
    strangers = groups.keys() - transactions_by_name.keys()
    assert not strangers, f"the tables have transactions of which no file tells: {strangers}"
    return list(transactions_by_name.values())


def _step(value: list[Any]) -> Step:
    if value[0] == "read":
        _, table, column, low, high, rows = value
        return Read(table, Where(column, low, high), frozenset((row[0], row[1], row[2]) for row in rows))
    _, table, key, row = value
    return Write(table, key, None if row is None else (row[0], row[1], row[2]))
