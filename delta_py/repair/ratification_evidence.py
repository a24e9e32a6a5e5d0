"""Derives which staged commits a lost ledger had ratified, from staged and published commits and version checksums.

    settlement = Settlement([TableEvidence(...), ...])
    settlement.verdict(commit)          # RATIFIED, REJECTED or UNKNOWN, and why
    settlement.take(commit); settlement.give_up([table_id])      # decisions of a caller who knows more

A writer stages a commit: it writes the commit to `_staged_commits`. The ledger ratifies it: then it is a version of the table.
Later a writer publishes it: copies it to its place in the log.

Nothing here reads a table. The rules of commits are known: a commit is staged completely before it is ratified, and stays staged
until it is published; versions are ratified without gaps and published in order; a transaction over several tables is ratified in
all of them or in none, as its commits record, and is tried again only at later versions; a commit has one txnId at all versions
at which it is tried, and is ratified once; a version checksum is written when the version is ratified. Anything that does not
follow from these rules stays unknown.
Protocol: Commit Protocol; Publishing Commits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from delta_py.errors import CorruptTableError, InvalidOptionError, shown
from delta_py.log.coordination import GROUP


class Standing(Enum):
    """Whether the ledger has ratified a staged commit, as far as the files tell."""

    RATIFIED = "ratified"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a staged commit was ratified, and how that is known. why: the evidence, for messages."""

    standing: Standing
    why: str


_UNKNOWN = Verdict(Standing.UNKNOWN, "only the ledger knew whether it was ratified")


@dataclass(frozen=True, slots=True)
class Group:
    """The transaction over several tables that a commit belongs to. participants: table id and version of each of its commits,
    sorted; empty in a draft, which is staged again when the transaction ends.
    """

    transaction: str
    participants: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Group | None:
        """Return None for a commit without a group. Raises CorruptTableError if the group is malformed."""
        value = info.get(GROUP)
        if value is None:
            return None
        try:
            participants = [(participant["tableId"], participant["version"]) for participant in value.get("participants") or ()]
            if isinstance(value["transactionId"], str) and all(isinstance(t, str) and type(v) is int for t, v in participants):
                return cls(value["transactionId"], tuple(sorted(participants)))
        except (AttributeError, KeyError, TypeError):
            pass
        raise CorruptTableError(f"its {GROUP} is {shown(value)}")

    def versions_of(self, table_id: str) -> list[int]:
        """The versions of one table, ascending."""
        return [version for table, version in self.participants if table == table_id]

    def is_later_than(self, other: Group) -> bool:
        """Whether this group is a later attempt of the same transaction, started after the attempt `other` failed: all versions
        are the same or higher."""
        if self.transaction != other.transaction or len(self.participants) != len(other.participants):
            return False
        is_same_or_later = all(
            table == other_table and version >= other_version
            for (table, version), (other_table, other_version) in zip(self.participants, other.participants, strict=True)
        )
        return self != other and is_same_or_later


@dataclass(frozen=True, slots=True, eq=False)
class StagedCommit:
    """A staged commit after the published versions. names: of its files, which have the same bytes: a writer whose reply was lost
    stages it again. time_ms: of the file, since 1970. info: its commitInfo. fault: why it cannot be read, or None.
    """

    table_id: str
    version: int
    names: tuple[str, ...]
    size_bytes: int = 0
    time_ms: int = 0
    info: Mapping[str, Any] = field(default_factory=dict)
    group: Group | None = None
    fault: str | None = None

    @property
    def txn_id(self) -> str | None:
        value = self.info.get("txnId")
        return value if isinstance(value, str) else None

    @property
    def timestamp_ms(self) -> int | None:
        return _integer_or_none(self.info.get("inCommitTimestamp"))

    @property
    def known_version(self) -> int | None:
        """A version that its writer has read; None if the commit does not show it. The commits of a transaction to one table
        build on each other, so only the version that the first one has read existed by then.
        """
        read = _integer_or_none(self.info.get("readVersion"))
        if read is None or read >= self.version:
            return None
        if self.group is None:
            return read
        versions = self.group.versions_of(self.table_id)
        return read - versions.index(self.version) if self.version in versions else None

    @property
    def is_draft(self) -> bool:
        """Whether it is the draft of a transaction over several tables (see Group)."""
        return self.group is not None and not self.group.participants


@dataclass(frozen=True, slots=True)
class ChecksumEvidence:
    """The txnId and the in-commit timestamp in a version checksum, which identify its commit; each is None if the checksum lacks
    it."""

    txn_id: str | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TableEvidence:
    """What the files of one table show. path: for messages. published: the table's newest version that is certain. published_ms:
    its in-commit timestamp. checksums: the version checksums of later versions, by version. groups: the transactions of those
    versions up to `published` that staged commits, of any table, name as parts of their transaction, by version; None for a
    commit outside of a transaction. A version whose commit file is gone is left out. published_txn_ids: the txnIds of the
    versions up to `published`, after the oldest version that a writer of a staged commit is known to have read.
    """

    table_id: str
    path: str
    published: int
    published_ms: int | None = None
    staged: tuple[StagedCommit, ...] = ()
    checksums: Mapping[int, ChecksumEvidence] = field(default_factory=dict)
    groups: Mapping[int, Group | None] = field(default_factory=dict)
    published_txn_ids: frozenset[str] = frozenset()


class Settlement:
    """Decides for each staged commit whether it was ratified. The constructor decides all commits for which the files suffice.
    tables: the tables of the lost ledger, each once. Raises CorruptTableError if the files contradict each other, or lack a
    commit that was ratified.

    _verdicts: the decision about each commit so far. _commits_at: the staged commits by table id and version. _groups: the
    transactions over several tables. _has_changed: the last pass over the rules has decided something.
    """

    def __init__(self, tables: Sequence[TableEvidence]) -> None:
        self._tables = {table.table_id: table for table in tables}
        self._commits_at: dict[tuple[str, int], list[StagedCommit]] = defaultdict(list)
        for table in tables:
            for commit in table.staged:
                self._commits_at[table.table_id, commit.version].append(commit)
        self._verdicts = {commit: _UNKNOWN for table in tables for commit in table.staged}
        self._groups = {commit.group for commit in self._verdicts if commit.group is not None and not commit.is_draft}
        # By table id: the newest version that was certainly ratified, and why. It may be unknown which commit that version is.
        self._ratified_up_to = {table.table_id: (table.published, "it is published") for table in tables}
        self._has_changed = False
        # First the facts that need only the files. Then the rules, whose conclusions may lead to others.
        self._reject_drafts()
        self._reject_earlier_attempts()
        for table in tables:
            self._reject_published(table)
            self._note_checksums(table)
            self._note_versions_that_writers_read(table)
        self._apply_rules()

    # ------------------------------------------------------------ queries and decisions

    def verdict(self, commit: StagedCommit) -> Verdict:
        """The decision about a commit, and its reason. For an undecided commit, the reason also says what is known about its
        version and its transaction."""
        verdict = self._verdicts[commit]
        if verdict.standing is not Standing.UNKNOWN:
            return verdict
        why = commit.fault or verdict.why
        newest, reason = self._ratified_up_to[commit.table_id]
        if commit.version <= newest:
            why = f"version {commit.version} was ratified ({reason}), as this commit or as another one that is staged"
        unnamed_ids = sorted({table for table, _ in commit.group.participants} - self._tables.keys()) if commit.group else []
        if unnamed_ids:
            why += f"; its transaction has also changed the tables with the ids {', '.join(unnamed_ids)}, which were not named"
        return Verdict(Standing.UNKNOWN, why)

    def unknown(self) -> list[StagedCommit]:
        """The commits that may or may not have been ratified."""
        return [commit for commit, verdict in self._verdicts.items() if verdict.standing is Standing.UNKNOWN]

    def published(self, table_id: str) -> int:
        """The table's newest version that is certain."""
        return self._tables[table_id].published

    def ratified(self, table_id: str) -> list[StagedCommit]:
        """A table's commits after the published versions, ascending, up to the first undecided version."""
        commits, version = [], self._tables[table_id].published + 1
        while (commit := self._ratified_at(table_id, version)) is not None:
            commits.append(commit)
            version += 1
        return commits

    def take(self, commit: StagedCommit) -> None:
        """Count a commit as ratified, and everything that follows from that. Raises InvalidOptionError for a rejected commit."""
        verdict = self._verdicts[commit]
        if verdict.standing is Standing.REJECTED or commit.fault is not None:
            raise _take_error(commit, self._path(commit), commit.fault or verdict.why)
        try:
            self._decide(commit, Standing.RATIFIED, "the caller takes it")
            self._apply_rules()
        except CorruptTableError as error:
            raise _take_error(commit, self._path(commit), error.message) from error

    def give_up(self, table_ids: Collection[str]) -> None:
        """Count the undecided commits of these tables as rejected, and everything that follows from that.
        Versions that were ratified as one of several commits stay undecided. Raises InvalidOptionError if one of them would
        have no commit at all.
        """
        try:
            for commit in self.unknown():
                if commit.table_id in table_ids and commit.version > self._ratified_up_to[commit.table_id][0]:
                    self._decide(commit, Standing.REJECTED, "the caller gives it up")
            self._apply_rules()
        except CorruptTableError as error:
            what = f"The commits that were not taken cannot be given up: {error.message} Nothing was done."
            raise InvalidOptionError(what, option="take") from error

    # ------------------------------------------------------------ facts from the start

    def _reject_drafts(self) -> None:
        """Reject drafts. A transaction over tables stages drafts while it is open, and stages its commits again when it ends."""
        txn_ids_of_groups = {commit.txn_id for commit in self._verdicts if commit.group is not None and not commit.is_draft}
        for commit in self._verdicts:
            if commit.is_draft or (commit.group is None and commit.txn_id is not None and commit.txn_id in txn_ids_of_groups):
                self._decide(commit, Standing.REJECTED, "it is the draft of a transaction over tables")

    def _reject_earlier_attempts(self) -> None:
        """Reject earlier attempts of transactions over several tables: each attempt has later versions than the one before. For
        other commits this is not so: a commit may be tried again at an earlier version, if a commit that was to precede it in
        the same call of the ledger has failed.
        """
        for commit in self.unknown():
            if commit.group is not None and any(group.is_later_than(commit.group) for group in self._groups):
                self._decide(commit, Standing.REJECTED, "its transaction was tried again later, at other versions")

    def _reject_published(self, table: TableEvidence) -> None:
        """Reject commits that are published as an earlier version. A commit may be tried at several versions, and is ratified
        once."""
        for commit in table.staged:
            if commit.txn_id in table.published_txn_ids:
                self._decide(commit, Standing.REJECTED, "the same commit is published as an earlier version")

    def _note_checksums(self, table: TableEvidence) -> None:
        """A version checksum is written after ratification, so its version was ratified, and only a commit that agrees with it
        can be that version.
        """
        for version, checksum in table.checksums.items():
            self._note_ratified(table.table_id, version, "its version checksum exists")
            for commit in self._possible_commits(table.table_id, version):
                has_same_id = _may_be_equal(checksum.txn_id, commit.txn_id)
                if not has_same_id or not _may_be_equal(checksum.timestamp_ms, commit.timestamp_ms):
                    self._decide(commit, Standing.REJECTED, "the version checksum is that of another commit")

    def _note_versions_that_writers_read(self, table: TableEvidence) -> None:
        """A writer reads only ratified versions, so the versions that the writers of staged commits have read were ratified."""
        for commit in table.staged:
            if commit.known_version is not None:
                self._note_ratified(table.table_id, commit.known_version, f"the writer of {commit.names[0]} has read it")

    # ------------------------------------------------------------ conclusions, until none is new

    def _apply_rules(self) -> None:
        """Apply all rules again until none decides anything more."""
        self._has_changed = True
        while self._has_changed:
            self._has_changed = False
            for table in self._tables.values():
                self._apply_version_rule(table)
                self._apply_attempt_rule(table)
                self._apply_time_rule(table)
            for group in self._groups:
                self._apply_group_rule(group)

    def _apply_version_rule(self, table: TableEvidence) -> None:
        """Each version has one commit, and follows the version before. If no staged commit can be a version, no later version was
        ratified.
        """
        newest, reason = self._ratified_up_to[table.table_id]
        expected = table.published + 1  # the first version for which no possible commit was seen yet
        for version in sorted({commit.version for commit in table.staged}):
            possible = self._possible_commits(table.table_id, version)
            if version > expected:
                for commit in possible:
                    self._decide(commit, Standing.REJECTED, f"no staged commit could be version {expected}, which comes before")
                continue
            ratified = self._ratified_at(table.table_id, version)
            if ratified is None and len(possible) == 1 and version <= newest:
                ratified = possible[0]
                self._decide(ratified, Standing.RATIFIED, f"version {version} was ratified ({reason}), and no other could be it")
            for commit in possible:
                if ratified is not None and commit is not ratified:
                    self._decide(commit, Standing.REJECTED, f"version {version} is {ratified.names[0]}")
            expected += bool(possible)
        if expected <= newest:
            raise CorruptTableError(
                f"Version {expected} of the table at {table.path} was ratified (of version {newest}: {reason}), and no staged "
                "commit that is left could be it. Restore the file from a backup; or, to give it up, move the staged commits and "
                "version checksums away that come after it.",
                version=expected,
            )

    def _apply_attempt_rule(self, table: TableEvidence) -> None:
        """A commit that was tried at several versions is one of them. Protocol: Commit Provenance Information."""
        ratified = {commit.txn_id: commit for commit in table.staged if self._verdicts[commit].standing is Standing.RATIFIED}
        for commit in table.staged:
            ratified_commit = None if commit.txn_id is None else ratified.get(commit.txn_id)
            if ratified_commit is not None and ratified_commit is not commit:
                self._decide(commit, Standing.REJECTED, f"the same commit is version {ratified_commit.version}")

    def _apply_time_rule(self, table: TableEvidence) -> None:
        """In-commit timestamps grow from version to version. Protocol: In-Commit Timestamps."""
        for commit in table.staged:
            if self._verdicts[commit].standing is not Standing.UNKNOWN or commit.timestamp_ms is None:
                continue
            previous_ms, next_ms = (self._timestamp_of(table, version) for version in (commit.version - 1, commit.version + 1))
            if (previous_ms is not None and commit.timestamp_ms <= previous_ms) or (
                next_ms is not None and commit.timestamp_ms >= next_ms
            ):
                self._decide(commit, Standing.REJECTED, "its in-commit timestamp does not fit between its neighbours")

    def _apply_group_rule(self, group: Group) -> None:
        """A transaction is ratified with all of its commits, or with none."""
        verdicts = [self._verdict_of(group, table_id, version) for table_id, version in group.participants]
        ratified = next((verdict.why for verdict in verdicts if verdict.standing is Standing.RATIFIED), None)
        rejected = next((verdict.why for verdict in verdicts if verdict.standing is Standing.REJECTED), None)
        if ratified is not None and rejected is not None:
            raise CorruptTableError(f"The transaction {group.transaction} was ratified and was not: {ratified}; {rejected}.")
        for table_id, version in group.participants:
            if table_id not in self._tables:
                continue
            group_commits = [commit for commit in self._possible_commits(table_id, version) if commit.group == group]
            if rejected is not None:
                for commit in group_commits:
                    self._decide(commit, Standing.REJECTED, f"its transaction was not ratified: {rejected}")
            elif ratified is not None:
                self._note_ratified(table_id, version, f"its transaction was: {ratified}")
                if len(group_commits) == 1:
                    self._decide(group_commits[0], Standing.RATIFIED, f"its transaction was ratified: {ratified}")

    def _verdict_of(self, group: Group, table_id: str, version: int) -> Verdict:
        """Whether one participant of a transaction shows that the transaction was ratified, or that it was not."""
        table = self._tables.get(table_id)
        if table is None or (version <= table.published and version not in table.groups):
            return _UNKNOWN
        where = f"version {version} of the table at {table.path}"
        if version <= table.published:
            if table.groups[version] == group:
                return Verdict(Standing.RATIFIED, f"{where} is a part of it")
            return Verdict(Standing.REJECTED, f"{where} is another commit")
        group_commits = [commit for commit in self._commits_at[table_id, version] if commit.group == group]
        standings = {self._verdicts[commit].standing for commit in group_commits}
        if Standing.RATIFIED in standings:
            return Verdict(Standing.RATIFIED, f"{where} is a part of it")
        if Standing.UNKNOWN in standings:
            return _UNKNOWN
        return Verdict(Standing.REJECTED, f"{where} is another commit" if group_commits else f"none of it is staged for {where}")

    # ------------------------------------------------------------ helpers

    def _decide(self, commit: StagedCommit, standing: Standing, why: str) -> None:
        """Record the verdict. Raises CorruptTableError if it contradicts an earlier one."""
        previous = self._verdicts[commit]
        if previous.standing is standing:
            return
        if previous.standing is not Standing.UNKNOWN:
            raise CorruptTableError(
                f"The staged commit {commit.names[0]} of the table at {self._path(commit)} was ratified and was not: "
                f"{previous.why}; {why}. Restore the files of its _delta_log from a backup.",
                version=commit.version,
            )
        if standing is Standing.RATIFIED and commit.fault is not None:
            raise CorruptTableError(
                f"The staged commit {commit.names[0]} of the table at {self._path(commit)} was ratified ({why}), and cannot be "
                f"read: {commit.fault}. Restore the file from a backup.",
                version=commit.version,
            )
        self._verdicts[commit] = Verdict(standing, why)
        self._has_changed = True
        if standing is Standing.RATIFIED:
            self._note_ratified(commit.table_id, commit.version, f"{commit.names[0]} was")

    def _note_ratified(self, table_id: str, version: int, why: str) -> None:
        """Record that the version was ratified, and so were all before it. why: the evidence."""
        if version > self._ratified_up_to[table_id][0]:
            self._ratified_up_to[table_id] = version, why
            self._has_changed = True

    def _possible_commits(self, table_id: str, version: int) -> list[StagedCommit]:
        """The staged commits of a version that are not rejected."""
        commits = self._commits_at[table_id, version]
        return [commit for commit in commits if self._verdicts[commit].standing is not Standing.REJECTED]

    def _ratified_at(self, table_id: str, version: int) -> StagedCommit | None:
        """The staged commit that was ratified as a version; None if that is not known."""
        staged = self._commits_at.get((table_id, version), ())
        return next((commit for commit in staged if self._verdicts[commit].standing is Standing.RATIFIED), None)

    def _timestamp_of(self, table: TableEvidence, version: int) -> int | None:
        """The in-commit timestamp of a version; None if it is not known which commit the version is."""
        if version == table.published:
            return table.published_ms
        ratified = self._ratified_at(table.table_id, version)
        return None if ratified is None else ratified.timestamp_ms

    def _path(self, commit: StagedCommit) -> str:
        """The path of the commit's table."""
        return self._tables[commit.table_id].path


def _integer_or_none(value: Any) -> int | None:
    return value if type(value) is int else None


def _may_be_equal(first: Any, second: Any) -> bool:
    """Whether two values are equal, or one of them is unknown (None)."""
    return first is None or second is None or first == second


def _take_error(commit: StagedCommit, path: str, why: str) -> InvalidOptionError:
    """The error for a commit that cannot count as ratified. path: of its table."""
    return InvalidOptionError(
        f"The staged commit {commit.names[0]} of the table at {path} cannot be taken: {why}. Nothing was done.", option="take"
    )
