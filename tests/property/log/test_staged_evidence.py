"""What staged commits prove, compared with ledgers that are lost at any moment. Writers and transactions over tables take steps
in turn and die between any two of them, and no verdict may contradict the lost ledger.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_py.repair.ratification_evidence import (
    ChecksumEvidence,
    Group,
    Settlement,
    StagedCommit,
    Standing,
    TableEvidence,
)
from tests.support.runs.sampling import examples
from tests.support.runs.seeds import seed_of

TABLES, WRITERS = 3, 5


@dataclass(eq=False)
class Commit:
    """Represents its bytes: two files with equal bytes are one commit."""

    version: int
    info: Mapping[str, Any]


@dataclass
class Table:
    """versions: as the ledger has them. published: how many of them are at their places. staged: files by name."""

    table_id: str
    versions: list[Commit]
    published: int = 1
    staged: dict[str, Commit] = field(default_factory=dict)
    checksums: dict[int, Commit] = field(default_factory=dict)

    @property
    def newest(self) -> int:
        return len(self.versions) - 1


class World:
    """Steps of writers are generators: each step may be the last."""

    def __init__(self, seed: int) -> None:
        self.draw, self.count, self.clock = random.Random(seed), 0, 1000
        self.tables = [Table(f"t{number}", [Commit(0, {"inCommitTimestamp": 1})]) for number in range(TABLES)]

    def run(self) -> None:
        writers = [self.writer() for _ in range(WRITERS)]
        for _ in range(self.draw.randrange(10, 120)):
            number = self.draw.randrange(len(writers))
            if self.draw.random() < 0.05:
                writers[number] = self.writer()  # the earlier one has died
            next(writers[number])

    def writer(self) -> Iterator[None]:
        while True:
            work = self.draw.choices((self.single, self.batch, self.transaction, self.publication), (5, 3, 4, 1))[0]
            yield from work()
            yield

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def stage(self, table: Table, commit: Commit) -> str:
        name = self.name("file")
        table.staged[name] = commit
        return name

    def drop(self, table: Table, name: str) -> None:
        if self.draw.random() < 0.8:
            table.staged.pop(name, None)

    def commit(self, version: int, before: Commit, **info: Any) -> Commit:
        """Writers' clocks differ, but in-commit timestamps grow."""
        self.clock += 1
        clock = self.clock + self.draw.randrange(-20, 20)
        return Commit(version, {**info, "inCommitTimestamp": max(clock, before.info["inCommitTimestamp"] + 1)})

    # ------------------------------------------------------------ what writers do

    def single(self) -> Iterator[None]:
        table, txn_id = self.draw.choice(self.tables), self.name("txn")
        read = table.newest
        yield
        while True:
            before = table.versions[-1]
            commit = self.commit(before.version + 1, before, txnId=txn_id, readVersion=read)
            while True:
                name = self.stage(table, commit)
                yield
                if table.newest < commit.version:
                    table.versions.append(commit)
                    if self.draw.random() < 0.7:
                        break  # or the reply is lost, and the attempt is repeated
                else:
                    self.drop(table, name)
                    break
                yield
            if table.versions[commit.version] is commit:
                break
            yield
        yield
        yield from self.after(table, commit)

    def batch(self) -> Iterator[None]:
        """Commits of one process, each after the one before, which one call of the ledger ratifies. If one fails, those that
        should follow it are tried again at earlier versions."""
        table = self.draw.choice(self.tables)
        waiting, read = [self.name("txn") for _ in range(3)], table.newest
        while waiting:
            last, placed = table.versions[-1], list[tuple[Commit, str]]()
            for txn_id in waiting:
                last = self.commit(last.version + 1, last, txnId=txn_id, readVersion=read)
                placed.append((last, self.stage(table, last)))
                yield
            good = self.draw.randrange(len(placed) + 1)  # up to the first that could not be staged
            for _, name in placed[good:]:
                self.drop(table, name)
                yield
            if good and table.newest + 1 == placed[0][0].version:
                table.versions += [commit for commit, _ in placed[:good]]
                yield
                for commit, _ in placed[:good]:
                    yield from self.after(table, commit)
                waiting = waiting[good:]
            else:
                for _, name in placed[:good]:
                    self.drop(table, name)
                    yield
            if waiting and self.draw.random() < 0.5:
                waiting.pop(0)  # it conflicts with commits of others

    def transaction(self) -> Iterator[None]:
        transaction, drafts = self.name("transaction"), list[tuple[Table, str]]()
        chosen = self.draw.sample(self.tables, self.draw.randrange(1, TABLES + 1))
        counts = {table.table_id: self.draw.choice((1, 1, 2)) for table in chosen}
        bases = {table.table_id: table.newest for table in chosen}
        txn_ids = {table.table_id: [self.name("txn") for _ in range(counts[table.table_id])] for table in chosen}
        for table in chosen:
            base, last = bases[table.table_id], table.versions[bases[table.table_id]]
            for number, txn_id in enumerate(txn_ids[table.table_id]):
                group = {"transactionId": transaction}
                last = self.commit(
                    base + 1 + number, last, txnId=txn_id, readVersion=base + number, transactionGroup=group
                )
                drafts.append((table, self.stage(table, last)))
                yield
        for _ in range(20):
            places = [(table, table.versions[-1]) for table in chosen]
            participants = [
                {"tableId": table.table_id, "version": last.version + 1 + number}
                for table, last in places
                for number in range(counts[table.table_id])
            ]
            group = {"transactionId": transaction, "participants": participants}
            ours: list[tuple[Table, str, Commit]] = []
            for table, last in places:
                for number, txn_id in enumerate(txn_ids[table.table_id]):
                    read = bases[table.table_id] + number
                    last = self.commit(last.version + 1, last, txnId=txn_id, readVersion=read, transactionGroup=group)
                    ours.append((table, self.stage(table, last), last))
                    yield
            if all(table.newest == first.version for table, first in places) and self.draw.random() < 0.9:
                for table, _, commit in ours:
                    table.versions.append(commit)
                yield
                for table, _, commit in ours:
                    yield from self.after(table, commit)
                for table, name in drafts:
                    self.drop(table, name)
                    yield
                return
            for table, name, _ in ours:
                self.drop(table, name)
                yield

    def after(self, table: Table, commit: Commit) -> Iterator[None]:
        if self.draw.random() < 0.6:
            yield from self.publish(table)
        yield
        if self.draw.random() < 0.6:
            table.checksums[commit.version] = commit
            yield

    def publication(self) -> Iterator[None]:
        yield from self.publish(self.draw.choice(self.tables))

    def publish(self, table: Table) -> Iterator[None]:
        waiting = table.versions[table.published :]
        for commit in waiting:
            if self.draw.random() < 0.1:
                return
            table.published = max(table.published, commit.version + 1)
            yield
        for name in [name for name, commit in table.staged.items() if commit in waiting]:
            self.drop(table, name)
            yield

    # ------------------------------------------------------------ what is left when the ledger is lost

    def evidence(self) -> tuple[list[TableEvidence], dict[StagedCommit, bool]]:
        """And for each staged commit, whether it was ratified."""
        evidences, truth = [], {}
        for table in self.tables:
            names: dict[Commit, list[str]] = {}
            for name, commit in table.staged.items():
                if commit.version >= table.published:
                    names.setdefault(commit, []).append(name)
            staged = {
                commit: StagedCommit(table.table_id, commit.version, tuple(files), info=commit.info, group=Group.of(commit.info))
                for commit, files in names.items()
            }
            for commit, one in staged.items():
                truth[one] = commit in table.versions
            checksums = {
                version: ChecksumEvidence(*(commit.info[key] for key in ("txnId", "inCommitTimestamp")))
                for version, commit in table.checksums.items()
                if version >= table.published
            }
            evidences.append(
                TableEvidence(
                    table.table_id,
                    table.table_id,
                    table.published - 1,
                    table.versions[table.published - 1].info["inCommitTimestamp"],
                    tuple(staged.values()),
                    checksums,
                    {commit.version: Group.of(commit.info) for commit in table.versions[: table.published]},
                    frozenset(commit.info["txnId"] for commit in table.versions[1 : table.published]),
                )
            )
        return evidences, truth


def test_no_verdict_contradicts_the_ledger_that_was_lost() -> None:
    seen = Counter[Standing]()
    for number in range(examples(1500)):
        seed = seed_of("staged evidence") * 1_000_000 + number
        world = World(seed)
        world.run()
        tables, truth = world.evidence()
        for named in (tables, tables[:-1]):  # of all tables, and with one left out
            settlement = Settlement(named)
            for commit, is_ratified in truth.items():
                if commit.table_id in {table.table_id for table in named}:
                    standing = settlement.verdict(commit).standing
                    seen[standing] += named is tables
                    assert standing is Standing.UNKNOWN or (standing is Standing.RATIFIED) == is_ratified, (seed, commit)
        settlement = Settlement(tables)
        for commit in settlement.unknown():
            if truth[commit] and settlement.verdict(commit).standing is Standing.UNKNOWN:
                settlement.take(commit)
        settlement.give_up({table.table_id for table in tables})
        assert settlement.unknown() == [], seed
        for table, evidence in zip(world.tables, tables, strict=True):
            ratified_infos = [commit.info for commit in settlement.ratified(evidence.table_id)]
            assert ratified_infos == [commit.info for commit in table.versions[table.published :]], (
                seed,
                "who knows all is understood",
            )
    print({standing.value: count for standing, count in seen.items()})
    assert min(seen[standing] for standing in Standing) > 100, "and all kinds of verdicts are given"
