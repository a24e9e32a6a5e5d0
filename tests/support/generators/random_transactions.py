"""Random transactions over a few coordinated tables, whose histories contain the reads and writes of each (serialisability.py).

    create(url, paths)
    for _ in transactions(Work(url, paths, seed=3), file): ...    # step by step, so that others can take turns
    history = history_of(url, paths, files)

Rows are (id, grp, value). A writer has a seed: the values and new ids that it writes are its own.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from delta_py import DeltaTable
from delta_py.errors import CommitOutcomeUnknownError, DeltaConcurrentModificationException
from delta_py.log.commit_reader import read_actions
from delta_py.log.coordination import GROUP
from delta_py.protocol.actions import CommitInfo
from delta_py.transactions import DeltaTransaction
from tests.support.oracles.serialisability import (
    COLUMNS,
    History,
    Read,
    Row,
    Step,
    Where,
    Write,
    intent_line,
    outcome_line,
    read_transactions,
)
from tests.support.stores.coordination import coordinated, create_coordinated

IDS, GROUPS = 8, 3
_OWN = 1_000_000
FIRST_ROWS: tuple[Row, ...] = tuple((key, key % GROUPS, key) for key in range(0, IDS, 2))


def create(url: str, paths: Sequence[Path]) -> None:
    for path in paths:
        columns = zip(COLUMNS, zip(*FIRST_ROWS, strict=True), strict=True)
        rows = {name: list(values) for name, values in columns}
        create_coordinated(path, url, rows, delta__enableDeletionVectors="true")


@dataclass(frozen=True)
class Work:
    """seed: of the writer. count: of its transactions; None for no end."""

    url: str
    paths: Sequence[Path]
    seed: int
    isolation: str = "serializable"
    count: int | None = None


class _Aborted(Exception):
    """The writer gives up the transaction."""


def transactions(work: Work, file: TextIO) -> Iterator[None]:
    """Others may take their turns whenever it yields. The steps of each transaction are in the file before it commits."""
    draw, numbers, transaction_count = random.Random(work.seed), iter(range(1, _OWN)), 0
    while work.count is None or transaction_count < work.count:
        yield from _Running(work, draw, numbers, file).run()
        transaction_count += 1


def run(work: Work, file: Path) -> None:
    """In a separate process."""
    with file.open("w") as opened:
        for _ in transactions(work, opened):
            pass


class _Running:
    """One transaction."""

    def __init__(self, work: Work, draw: random.Random, numbers: Iterator[int], file: TextIO) -> None:
        self._work, self._draw, self._numbers, self._file = work, draw, numbers, file
        self._steps: list[Step] = []
        self._bases: dict[str, int] = {}
        self._only_read = draw.choice((*work.paths, None))
        self._began = time.monotonic_ns()
        self._tx = DeltaTransaction(work.url, isolation=work.isolation)

    def run(self) -> Iterator[None]:
        outcome = "aborted"
        with self._tx:
            name = self._tx.identity
            try:
                for _ in range(self._draw.randint(1, 4)):
                    yield
                    self._step()
                if self._draw.random() < 0.1:
                    raise _Aborted
                self._write(intent_line(name, self._began, self._bases, self._steps))
                yield
                outcome = "unknown"
                self._tx.commit()
                outcome = "committed"
            except CommitOutcomeUnknownError:
                pass
            except (_Aborted, DeltaConcurrentModificationException):
                if outcome == "aborted":
                    self._write(intent_line(name, self._began, self._bases, self._steps))
                    self._tx.abort()
                outcome = "aborted"
        self._write(outcome_line(name, outcome, time.monotonic_ns()))

    def _write(self, line: str) -> None:
        self._file.write(line)
        self._file.flush()

    # ------------------------------------------------------------ steps

    def _step(self) -> None:
        path = self._draw.choice(self._work.paths)
        if str(path) not in self._bases:
            self._bases[str(path)] = self._tx.table(str(path)).version
        column = self._draw.choice(("id", "id", "grp", "value"))
        low = self._draw.randrange(IDS if column == "id" else GROUPS)
        where = Where(column, low, low + self._draw.randrange(3) if column != "value" else low + _OWN)
        kind = self._draw.choice(("update", "update", "update all", "delete", "delete all", "insert", "merge"))
        if path == self._only_read:
            kind = "look"
        if kind.endswith("all") and self._draw.random() < 0.5:
            # A statement that finds rows is a read itself, so it needs none before.
            rows = _rows(self._tx.table(str(path)).to_arrow(filter=where.sql))
            if rows:
                self._steps.append(Read(str(path), where, frozenset(rows)))
        else:
            rows = self._read(path, where)
        match kind:
            case "update" if rows:
                row = self._draw.choice(rows)
                self._change(path, f"id = {row[0]}", [self._new_row(row[0])])
            case "update all" if rows:
                self._change(path, where.sql, [self._new_row(row[0]) for row in rows])
            case "delete" if rows:
                key = self._draw.choice(rows)[0]
                self._delete(path, f"id = {key}", [key])
            case "delete all" if rows:
                self._delete(path, where.sql, [row[0] for row in rows])
            case "insert":
                self._insert(path, where, {row[0] for row in rows})
            case "merge" if self._work.isolation == "serializable":
                self._merge(path)
        if self._draw.random() < 0.3:
            self._read(path, where)

    def _read(self, path: Path, where: Where) -> list[Row]:
        rows = _rows(self._tx.read(str(path), filter=where.sql))
        self._steps.append(Read(str(path), where, frozenset(rows)))
        return rows

    def _new_row(self, key: int) -> Row:
        return key, self._draw.randrange(GROUPS), self._own()

    def _own(self) -> int:
        return (self._work.seed + 1) * _OWN + next(self._numbers)

    def _change(self, path: Path, predicate: str, rows: Sequence[Row]) -> None:
        values = {
            name: f"CASE {' '.join(f'WHEN id = {row[0]} THEN {row[number]}' for row in rows)} END"
            for number, name in enumerate(COLUMNS)
            if number
        }
        assert self._tx.update(str(path), values, predicate=predicate)["numUpdatedRows"] == len(rows)
        self._steps += [Write(str(path), row[0], row) for row in rows]

    def _delete(self, path: Path, predicate: str, keys: Sequence[int]) -> None:
        assert self._tx.delete(str(path), predicate)["numDeletedRows"] == len(keys)
        self._steps += [Write(str(path), key, None) for key in keys]

    def _insert(self, path: Path, where: Where, present: set[int]) -> None:
        """A row with an id that was looked up and does not exist, or that no other writer uses."""
        key = self._own()
        if where.column == "id" and self._work.isolation == "serializable":
            key = next((each for each in range(where.low, where.high + 1) if each not in present), key)
        row = self._new_row(key)
        self._tx.append(str(path), _table([row]))
        self._steps.append(Write(str(path), key, row))

    def _merge(self, path: Path) -> None:
        """A row, whether one with the id exists or not."""
        row = self._new_row(self._draw.randrange(IDS))
        merger = self._tx.merge(str(path), _table([row]), "source.id = target.id")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
        self._steps.append(Write(str(path), row[0], row))


def _rows(table: pa.Table) -> list[Row]:
    return sorted((row["id"], row["grp"], row["value"]) for row in table.to_pylist())


def _table(rows: Sequence[Row]) -> pa.Table:
    return pa.table({name: [row[number] for row in rows] for number, name in enumerate(COLUMNS)})


# ---------------------------------------------------------------- what became of them


def history_of(url: str, paths: Sequence[Path], files: Sequence[Path]) -> History:
    """The tables show which transactions were committed, and as which versions. Their newest versions are compared with the
    history."""
    groups: dict[str, dict[str, int]] = {}
    for path in paths:
        store = coordinated(path, url)
        for version in range(1, DeltaTable(str(path), store=store).version + 1):
            info = next(action for action in read_actions(store, version) if isinstance(action, CommitInfo))
            groups.setdefault(info.values[GROUP]["transactionId"], {})[str(path)] = version
    history = History({str(path): FIRST_ROWS for path in paths}, read_transactions(files, groups))
    for path in paths:
        table = DeltaTable(str(path), store=coordinated(path, url))
        table.snapshot.check_integrity()
        assert _rows(table.to_arrow()) == sorted(history.rows(str(path), table.version))
    return history


def counted(history: History) -> dict[str, Any]:
    """The number of transactions by outcome, and of each kind of dependency."""
    counts: dict[str, Any] = {"transactions": len(history.transactions)}
    for one in history.transactions:
        counts[one.outcome] = counts.get(one.outcome, 0) + 1
    for kinds in history.dependencies().values():
        for kind in kinds - {"rt"}:
            counts[kind] = counts.get(kind, 0) + 1
    return counts
