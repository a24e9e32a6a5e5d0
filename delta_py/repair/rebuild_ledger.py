"""Rebuilds a lost ledger of a coordinator from the tables that name it.

    report = rebuild_ledger(url, ["/data/accounts", "/data/entries"])                    # a dry run
    rebuild_ledger(url, paths, take={"/data/entries": [name]}, dry_run=False)

Published versions are certain. Only the ledger knew which of the staged commits after them were ratified.
ratification_evidence.py derives what the files prove, and the caller decides the rest. No file is written or deleted: if a
writer still runs, the new ledger may ratify its staged commit. The new ledger takes the identity of the lost one and all tables
in one transaction of its database. A process that dies before the end leaves nothing, and can start again.
Protocol: Getting Ratified Commits from the Catalog; Commit Protocol; Publishing Commits.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from delta_py.coordinator.ledger import (
    Ledger,
    RatificationUnknownError,
    Ratified,
    Restored,
    another_ledger_error,
    known_at_other_place_error,
    staged_version,
)
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.errors import CorruptTableError, InvalidOptionError, UnsupportedOperationError
from delta_py.log.coordination import FEATURE, IDENTITY_PROPERTY, OPTION
from delta_py.log.segment import list_commits, list_log, load_segment
from delta_py.object_stores.open_store import open_store
from delta_py.protocol.actions import CommitInfo, parse_action
from delta_py.protocol.paths import LOG_DIRECTORY, STAGED_DIRECTORY, checksum_file_name, commit_file_name
from delta_py.repair.ratification_evidence import (
    ChecksumEvidence,
    Group,
    Settlement,
    StagedCommit,
    Standing,
    TableEvidence,
)
from delta_py.snapshot import Snapshot
from delta_py.storage.coordinated import place_of
from delta_py.storage.storage_errors import storage_failures
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.storage.store_options import StorageOptions
from delta_py.threads import in_threads

_THREADS, _THREAD_NAME = 8, "delta_py-rebuild"
_MOST_NAMED = 10  # paths or commits that a message names at most
_READ_ATTEMPTS = 5
"""Attempts to read a table while a program that still runs publishes its commits."""


@dataclass(frozen=True, slots=True)
class StagedFinding:
    """A staged commit after the published versions. names: the names of its files; several files with the same bytes are one
    commit that was staged again. standing: `ratified`, `rejected` or `unknown`. why: the evidence. commit_info: the commitInfo in
    the file; empty if the file cannot be read.
    """

    version: int
    names: tuple[str, ...]
    standing: str
    why: str
    commit_info: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TableFinding:
    """The part of the report about one table. published: the newest version whose commit is published in the log. version: the
    newest that the rebuilt ledger has, or would have. is_known: the ledger knows the table already, and nothing is decided about
    it.
    """

    path: str
    published: int
    version: int
    staged: tuple[StagedFinding, ...] = ()
    is_known: bool = False


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """The result of rebuild_ledger. identity: of the lost ledger, and of the rebuilt one. tables: in the order in which they were
    named."""

    identity: str
    tables: tuple[TableFinding, ...]

    @property
    def unknown(self) -> dict[str, list[str]]:
        """The staged commits that may or may not have been ratified: one file name of each, by the path of its table. `take`
        decides about them.
        """
        names_by_path = {
            table.path: [staged.names[0] for staged in table.staged if staged.standing == Standing.UNKNOWN.value]
            for table in self.tables
        }
        return {path: names for path, names in names_by_path.items() if names}


def rebuild_ledger(
    url: str,
    tables: Sequence[str],
    *,
    take: Mapping[str, Sequence[str]] | None = None,
    dry_run: bool = True,
    storage_options: Mapping[str, str] | None = None,
) -> RebuildReport:
    """Turn an empty ledger into the one that tables name as theirs, which was permanently lost.

    url: of the new ledger. tables: the paths of all tables that the lost one coordinated; more tables may be given later.
    take: by path, the names of staged commits to count as ratified; the other uncertain commits of such a table are given up.
    dry_run: only report.

    Raises RatificationUnknownError if it remains unknown whether some staged commits were ratified,
    UnsupportedOperationError for tables of different ledgers and a database that is another ledger, CorruptTableError if
    files contradict each other or a ratified commit is missing, InvalidOptionError for an invalid choice. Nothing was
    changed then.
    """
    # Without a coordinator: the ledger of these tables is lost, so they are read by their files alone.
    options = {name: value for name, value in (storage_options or {}).items() if not name.lower().startswith(OPTION)}
    paths = _check_paths(tables, take)
    with storage_failures(", ".join(paths)):
        return _rebuild(url, paths, take or {}, options, dry_run=dry_run)


def _rebuild(
    url: str, paths: Sequence[str], take: Mapping[str, Sequence[str]], options: Mapping[str, str], *, dry_run: bool
) -> RebuildReport:
    """Does what rebuild_ledger describes. paths: of the tables, each once. options: the storage options, without those of a
    coordinator."""
    steps = [partial(_read_table, path, StorageOptions.of(options)) for path in paths]
    read_tables = in_threads(steps, _THREADS, _THREAD_NAME)
    identity = _shared_identity(read_tables)
    ledger = open_ledger(url)
    known_places = _known_places(ledger, identity)
    # Only tables that the new ledger already knows are read through it.
    settlement = Settlement(_collect_evidence(read_tables, known_places, ledger, StorageOptions.of({**options, OPTION: url})))
    _apply_decisions(settlement, read_tables, known_places, take)
    report = RebuildReport(identity, tuple(_table_finding(table, settlement, known_places) for table in read_tables))
    if dry_run:
        return report
    if report.unknown:
        raise _undecided_error(report)
    new_tables = [table for table in read_tables if table.place not in known_places]
    ledger.restore(identity, [_ledger_entry(table, settlement.ratified(table.table_id)) for table in new_tables])
    return report


# ---------------------------------------------------------------- evidence of the tables


@dataclass(frozen=True, slots=True)
class _TableFiles:
    """What a table's files show, read without a ledger. identity: of the ledger that it names. place: its location as ledgers
    identify it. published: its newest published version, which was committed at published_ms (ms since 1970). staged: the staged
    commits after that version. checksums: the version checksums after it, by version.
    """

    path: str
    store: ObjectStore
    place: str
    table_id: str
    identity: str
    published: int
    published_ms: int
    staged: tuple[StagedCommit, ...]
    checksums: Mapping[int, ChecksumEvidence]


def _check_paths(tables: Sequence[str], take: Mapping[str, Sequence[str]] | None) -> list[str]:
    """The paths of the tables, each once. Raises InvalidOptionError if there are none, or if `take` names another path."""
    if isinstance(tables, str) or not tables:
        raise InvalidOptionError("No tables were named. Give the paths of all tables of the ledger, as a list.", option="tables")
    unknown_paths = sorted((take or {}).keys() - set(tables))
    if unknown_paths:
        raise InvalidOptionError(
            f"Commits of {', '.join(unknown_paths)} were chosen, which is not one of the tables. Use the same paths for both.",
            option="take",
        )
    return list(dict.fromkeys(tables))


def _read_table(path: str, options: StorageOptions) -> _TableFiles:
    """Read what the table's files show, again if staged commits are published meanwhile."""
    store = open_store(path, options)
    for _ in range(_READ_ATTEMPTS - 1):
        with contextlib.suppress(FileNotFoundError):  # published since the listing, and not staged any more
            return _read_table_once(path, store)
    return _read_table_once(path, store)


def _read_table_once(path: str, store: ObjectStore) -> _TableFiles:
    """Read what the table's files show. Raises FileNotFoundError if a staged commit is published, and its file deleted,
    meanwhile."""
    # Listed before the log, which then has all commits that are published in the meantime.
    staged_files = list(store.list_from(STAGED_DIRECTORY))
    snapshot = Snapshot.of_segment(store, load_segment(store))
    identity = snapshot.config.properties.get(IDENTITY_PROPERTY)
    if not snapshot.config.feature(FEATURE) or identity is None:
        raise UnsupportedOperationError(
            f"No ledger coordinates the table at {path}, by its version {snapshot.version}. Nothing was done. Leave it out.",
            path=path,
        )
    table_id, published = snapshot.metadata.id, snapshot.version
    return _TableFiles(
        path,
        store,
        place_of(store.root),
        table_id,
        identity,
        published,
        snapshot.timestamp_ms,
        _staged_commits(store, staged_files, table_id, published),
        {version: _read_checksum(store, version) for version in list_log(store, published + 1).checksums if version > published},
    )


def _staged_commits(
    store: ObjectStore, staged_files: Sequence[ObjectInfo], table_id: str, published: int
) -> tuple[StagedCommit, ...]:
    """The staged commits after the published version, each once however often it was staged."""
    commits: dict[tuple[int, bytes], StagedCommit] = {}
    for info in staged_files:
        name = info.path.rpartition("/")[2]
        version = staged_version(name)
        if version is None or version <= published:
            continue
        data = store.read(info.path)
        key = version, hashlib.sha256(data).digest()
        if key in commits:
            first = commits[key]  # the same commit, in a file that was listed before
            commits[key] = StagedCommit(
                table_id, version, (*first.names, name), len(data), first.time_ms, first.info, first.group, first.fault
            )
        else:
            commits[key] = _staged_commit(table_id, version, name, data, info.modification_time_ms)
    return tuple(commits.values())


def _staged_commit(table_id: str, version: int, name: str, data: bytes, time_ms: int) -> StagedCommit:
    """A staged commit from the content of its file; one with a fault if that cannot be read."""
    try:
        info = _commit_info(data)
        return StagedCommit(table_id, version, (name,), len(data), time_ms, info, Group.of(info))
    except CorruptTableError as error:
        return StagedCommit(table_id, version, (name,), len(data), time_ms, fault=error.message)


def _commit_info(data: bytes) -> Mapping[str, Any]:
    """The commitInfo of a commit. data: the content of its file. Raises CorruptTableError if a line is damaged, for example
    because the file was cut within it, or if there is no commitInfo.
    """
    actions = [parse_action(line) for line in data.split(b"\n") if line.strip()]
    info = next((action for action in actions if isinstance(action, CommitInfo)), None)
    if info is None:
        raise CorruptTableError("it has no commitInfo, which every commit of a coordinated table has")
    return info.checked().values


def _read_checksum(store: ObjectStore, version: int) -> ChecksumEvidence:
    """The checksum of a version. Its existence proves that the version was ratified, even if it is damaged."""
    try:
        value = orjson.loads(store.read(f"{LOG_DIRECTORY}/{checksum_file_name(version)}"))
    except orjson.JSONDecodeError:
        return ChecksumEvidence()
    if not isinstance(value, dict):
        return ChecksumEvidence()
    txn_id, timestamp = value.get("txnId"), value.get("inCommitTimestampOpt")
    return ChecksumEvidence(txn_id if isinstance(txn_id, str) else None, timestamp if type(timestamp) is int else None)


def _shared_identity(tables: Sequence[_TableFiles]) -> str:
    """The identity of the one ledger of all tables. Raises if there are several, or if two paths have the same table."""
    by_identity: dict[str, list[str]] = {}
    for table in tables:
        by_identity.setdefault(table.identity, []).append(table.path)
    if len(by_identity) > 1:
        ledgers = "; ".join(f"{identity}: {', '.join(paths[:_MOST_NAMED])}" for identity, paths in sorted(by_identity.items()))
        raise UnsupportedOperationError(
            f"The tables name different ledgers ({ledgers}). Nothing was done. Rebuild each in a database of its own."
        )
    ids: dict[str, str] = {}
    for table in tables:
        earlier_path = ids.setdefault(table.table_id, table.path)
        if earlier_path != table.path:
            raise UnsupportedOperationError(
                f"The tables at {earlier_path} and {table.path} are the same by their id {table.table_id}: one is a copy "
                "or a link. Nothing was done. Name the one that writers use."
            )
    return tables[0].identity


# ---------------------------------------------------------------- what the ledger already knows


def _known_places(ledger: Ledger, identity: str) -> frozenset[str]:
    """The places of the tables that the new ledger has from an earlier rebuild. Raises UnsupportedOperationError if the database
    is the ledger of another identity.
    """
    inventory = ledger.inventory()
    if inventory.tables and inventory.identity != identity:
        raise another_ledger_error(ledger.shown, inventory.identity, identity)
    return frozenset(inventory.tables)


def _collect_evidence(
    tables: Sequence[_TableFiles], known_places: frozenset[str], ledger: Ledger, coordinated: StorageOptions
) -> list[TableEvidence]:
    """What the files of each table show. If the new ledger already knows the table, only its newest version matters."""
    # By table id: the versions that are part of a transaction over several tables, by the record in a staged commit.
    group_versions: dict[str, set[int]] = {}
    for table in tables:
        for commit in table.staged:
            for table_id, version in commit.group.participants if commit.group is not None else ():
                group_versions.setdefault(table_id, set()).add(version)
    evidence = []
    for table in tables:
        versions = group_versions.get(table.table_id, set())
        if table.place in known_places:
            newest = _version_in_ledger(table, ledger)
            groups = _read_groups(open_store(table.path, coordinated), versions, newest)
            evidence.append(TableEvidence(table.table_id, table.path, newest, groups=groups))
        else:
            groups = _read_groups(table.store, versions, table.published)
            evidence.append(
                TableEvidence(
                    table_id=table.table_id,
                    path=table.path,
                    published=table.published,
                    published_ms=table.published_ms,
                    staged=table.staged,
                    checksums=table.checksums,
                    groups=groups,
                    published_txn_ids=_published_txn_ids(table),
                )
            )
    return evidence


def _version_in_ledger(table: _TableFiles, ledger: Ledger) -> int:
    """The table's newest version in the ledger. Raises UnsupportedOperationError if the ledger knows another table at this place,
    or lacks published versions.
    """
    tail = ledger.tail(table.place)
    if tail is None or tail.table_id != table.table_id:
        raise known_at_other_place_error(ledger.shown, table.path, table.place)
    if tail.version < table.published:
        raise UnsupportedOperationError(
            f"The ledger {ledger.shown} knows the table at {table.path} up to version {tail.version}, and version "
            f"{table.published} is published: the database is older than the table. Nothing was done. Name an empty database.",
            path=table.path,
        )
    return tail.version


def _read_groups(store: ObjectStore, versions: set[int], newest: int) -> dict[int, Group | None]:
    """The transactions over several tables of the commits of these versions, by version; None for a commit outside of such a
    transaction. A version whose commit file is gone is left out.
    """
    groups = {}
    for version in sorted(version for version in versions if 0 <= version <= newest):
        try:
            data = store.read(f"{LOG_DIRECTORY}/{commit_file_name(version)}")
        except FileNotFoundError:
            continue
        groups[version] = Group.of(_commit_info(data))
    return groups


def _published_txn_ids(table: _TableFiles) -> frozenset[str]:
    """The txnIds of published versions, to find staged commits that were tried again and published under another version. Only
    versions after the oldest one that the writer of a staged commit had read can be such a commit.
    """
    read_versions = [commit.known_version for commit in table.staged if commit.known_version is not None]
    txn_ids = set[str]()
    for file in list_commits(table.store, max(min(read_versions), 0) + 1, table.published) if read_versions else ():
        txn_id = _commit_info(table.store.read(file.path)).get("txnId")
        txn_ids |= {txn_id} if isinstance(txn_id, str) else set()
    return frozenset(txn_ids)


# ---------------------------------------------------------------- decisions


def _apply_decisions(
    settlement: Settlement, tables: Sequence[_TableFiles], known_places: frozenset[str], take: Mapping[str, Sequence[str]]
) -> None:
    """Apply the caller's decisions, and draw conclusions. A table that the ledger knows is already decided."""
    open_tables = [table for table in tables if table.place not in known_places and table.path in take]
    for table in open_tables:
        by_name = {name: commit for commit in table.staged for name in commit.names}
        for name in take[table.path]:
            if name not in by_name:
                raise InvalidOptionError(
                    f"{name} is no staged commit of the table at {table.path} that is newer than its version {table.published}. "
                    "Nothing was done. Take those that the dry run names.",
                    option="take",
                )
            settlement.take(by_name[name])
    settlement.give_up({table.table_id for table in open_tables})


def _table_finding(table: _TableFiles, settlement: Settlement, known_places: frozenset[str]) -> TableFinding:
    """The part of the report about one table."""
    if table.place in known_places:
        return TableFinding(table.path, table.published, settlement.published(table.table_id), is_known=True)
    staged = []
    for commit in sorted(table.staged, key=lambda commit: (commit.version, commit.names)):
        verdict = settlement.verdict(commit)
        staged.append(StagedFinding(commit.version, commit.names, verdict.standing.value, verdict.why, commit.info))
    version = table.published + len(settlement.ratified(table.table_id))
    return TableFinding(table.path, table.published, version, tuple(staged))


def _ledger_entry(table: _TableFiles, commits: Sequence[StagedCommit]) -> Restored:
    """The entry of a table for the new ledger. commits: the commits after the published versions that were ratified."""
    # The files of all names of a commit have the same bytes, so any name will do.
    ratified = [Ratified(table.place, commit.version, commit.names[0], commit.size_bytes, commit.time_ms) for commit in commits]
    return Restored(table.place, table.table_id, table.published, tuple(ratified))


def _undecided_error(report: RebuildReport) -> RatificationUnknownError:
    """The error for staged commits that may or may not have been ratified."""
    lines = [
        f"\n - {table.path}: {staged.names[0]} ({staged.commit_info.get('operation')}): {staged.why}"
        for table in report.tables
        for staged in table.staged
        if staged.standing == Standing.UNKNOWN.value
    ]
    suffix = f"\n - and {len(lines) - _MOST_NAMED} more" if len(lines) > _MOST_NAMED else ""
    return RatificationUnknownError(
        "The ledger was not rebuilt: of these staged commits it is not known whether the lost ledger had ratified them. Say by "
        "take={path: [names]} which of a table's are to count; the others of that table are given up. What was read of them, or "
        f"told to those who wrote them, may help.{''.join(lines[:_MOST_NAMED])}{suffix}",
        commits=report.unknown,
    )
