"""CoordinatedStore: the storage of a table whose commits are determined by a ledger: a database that says which of the staged
commits are versions of the table.

    put_if_absent("_delta_log/00..7.json")
      bytes -> _delta_log/_staged_commits/00..7.<uuid>.json     nobody reads it there
      ledger: ratify 7                                          from here on the commit stands
    later, for all ratified commits (publication.py):
      bytes -> _delta_log/00..7.json;  ledger: acknowledge 7    published; the next writer does it if this one died

To its callers the log looks like any other: a ratified commit is listed and read at its place before it is published, and files
of versions after the ledger's newest one are hidden. Tables that the ledger does not know are read and written as without a
ledger.
Protocol: Reading Catalog-managed Tables; Commit Protocol; Publishing Commits.
"""

from __future__ import annotations

import errno
import heapq
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from delta_py.coordinator.ledger import (
    CoordinatorContendedError,
    Ledger,
    ProposedCommit,
    Ratified,
    Tail,
    VersionTakenError,
    forget_call,
)
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.errors import CorruptTableError, DeltaError, StorageError, UnsupportedOperationError
from delta_py.protocol.paths import (
    CLONE_DIRECTORY,
    LEASE_DIRECTORY,
    LOG_DIRECTORY,
    STAGED_DIRECTORY,
    LogKind,
    LogName,
    commit_file_name,
    parse_log_name,
    staged_commit_name,
)
from delta_py.storage import publication
from delta_py.storage.addresses import address_of, azure_host, kind_of
from delta_py.storage.store import ObjectInfo, ObjectStore
from delta_py.storage.store_options import StorageOptions

T = TypeVar("T")

_log = logging.getLogger("delta_py")

# Directories of files that tell VACUUM what it must not delete: leases of readers, and notes of clones. They belong to no version
# of the table, so they may also be written in a transaction.
_VACUUM_NOTES = (f"{LEASE_DIRECTORY}/", f"{CLONE_DIRECTORY}/")


def place_of(root: str) -> str:
    """The name by which ledgers know a table: the same for all spellings of a URL. Examples: `/data/t`, `s3://bucket/t`,
    `az://container@account/t`."""
    kind = kind_of(root)
    if kind is None:
        return os.path.realpath(root)  # a link to a table counts as that table
    address = address_of(root)
    return f"{kind}://{address.container}{'@' if address.account else ''}{address.account}/{address.key}"


def root_of(place: str) -> str:
    """The root of the table at a place, as `open_store` takes it."""
    if kind_of(place) != "az":
        return place
    container_and_account, _, key = place.removeprefix("az://").partition("/")
    container, _, account = container_and_account.partition("@")
    return f"abfss://{container}@{azure_host(account, 'dfs')}/{key}" if account else place


class CoordinatedStore:
    """The store of one coordinated table. file_store: the store without the ledger. url: of the ledger. place: the name by which
    the ledger knows the table (place_of). transaction: the id of a transaction over several tables, if the table is read and
    written in one. Then the table has the state from the transaction's begin, plus the transaction's own changes.

    A tail is the ledger's answer about the table: its newest version, and the ratified commits that may not be published yet.
    `_tail`: the last answer; None if the ledger does not know the table. `_is_tail_known`: False if there is no answer yet, or if
    it is outdated. `Tail.base`: in a transaction, the table's version when the transaction began.
    """

    __slots__ = ("_file_store", "_is_tail_known", "_tail", "_url", "place", "transaction")

    commits_per_request: int = 64
    """How many commits are ratified together, at most."""
    id_property: str | None = None
    """The table property with the id by which the ledger knows the table; None if it is the id of the metadata."""

    def __init__(self, file_store: ObjectStore, url: str, transaction: str | None = None) -> None:
        self._file_store, self._url, self.place, self.transaction = file_store, url, place_of(file_store.root), transaction
        self._is_tail_known = False
        self._tail: Tail | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return CoordinatedStore, (self._file_store, self._url, self.transaction)

    @property
    def ledger(self) -> Ledger:
        return open_ledger(self._url)

    @property
    def root(self) -> str:
        return self._file_store.root

    @property
    def options(self) -> StorageOptions:
        return self._file_store.options

    @property
    def is_remote(self) -> bool:
        return self._file_store.is_remote

    # ------------------------------------------------------------ the ledger's answers

    def tail(self) -> Tail | None:
        """Ask the ledger for the table's newest version and unpublished commits; None if the ledger does not know the table.
        Raises CoordinatorUnavailableError, and in a transaction TransactionEndedError."""
        ledger = self.ledger
        tail = ledger.tail(self.place) if self.transaction is None else ledger.tail_in(self.transaction, self.place)
        self._tail, self._is_tail_known = tail, True
        return tail

    @property
    def last_tail(self) -> Tail | None:
        """The ledger's last answer, for example from the last listing of the log. Asks the ledger if there is none yet."""
        return self._tail if self._is_tail_known else self.tail()

    def register(self, version: int, table_id: str) -> None:
        """Have the ledger coordinate the table from now on. version: the table's newest version."""
        self.ledger.register(self.place, version, table_id)

    def forget_deleted(self) -> None:
        """Stop coordinating the table if its files were deleted; does nothing if its log still exists."""
        if self._has_no_log():
            self.ledger.forget(self.place)

    def _has_no_log(self) -> bool:
        return next(self._file_store.list_from(LOG_DIRECTORY), None) is None

    def _staged_path(self, path: str) -> str | None:
        """The path of a commit's staged file, by the commit's path in the log; None if the ledger's last answer has no such
        commit, or for another file."""
        name = commit_name(path)
        commits = () if self._tail is None else self._tail.commits
        staged_commit = next((commit for commit in commits if name is not None and commit.version == name.version), None)
        return None if staged_commit is None else f"{STAGED_DIRECTORY}/{staged_commit.name}"

    # ------------------------------------------------------------ read the log

    def list_from(self, directory: str, start: str = "") -> Iterator[ObjectInfo]:
        """As the store without the ledger. In the log, ratified commits that are not published are listed too, and newer files
        than the ledger's newest version are not."""
        if directory != LOG_DIRECTORY:
            return self._file_store.list_from(directory, start)
        tail = self.tail()  # before the listing: a commit that is published in the meantime is in both
        if tail is None:
            return self._file_store.list_from(directory, start)
        staged_infos = [_as_published(commit) for commit in tail.commits if commit_file_name(commit.version) >= start]
        return _merge_listings(self._file_store.list_from(directory, start), staged_infos, tail.version, tail.base)

    def read(self, path: str) -> bytes:
        return self._read_staged_or_published(path, self._file_store.read)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self._read_staged_or_published(path, lambda where: self._file_store.read_range(where, offset, length))

    def open_input(self, path: str, size_bytes: int | None = None, *, is_size_verified: bool = False) -> pa.NativeFile:
        is_commit = commit_name(path) is not None  # it may have been published since it was listed
        is_size_verified = is_size_verified and not is_commit
        return self._read_staged_or_published(
            path, lambda where: self._file_store.open_input(where, size_bytes, is_size_verified=is_size_verified)
        )

    def _read_staged_or_published(self, path: str, read: Callable[[str], T]) -> T:
        """Read a commit from its staged file, or else from its published file; another file is just read. If a commit has neither
        file, it may have been ratified since the ledger's last answer, so this asks the ledger again and repeats the read. A
        version that is not ratified counts as missing, even if a file has its name. read: takes the path to read from."""
        name = commit_name(path)
        if name is None:
            return read(path)
        tail = self.last_tail
        if tail is not None and name.version > tail.version:
            tail = self.tail()
        if tail is not None and name.version > tail.version:
            raise FileNotFoundError(2, "The version is not ratified", path)
        try:
            return self._read_commit(path, read)
        except FileNotFoundError:
            self.tail()
            return self._read_commit(path, read)

    def _read_commit(self, path: str, read: Callable[[str], T]) -> T:
        """Read the staged commit, or the published one if it was moved there in the meantime."""
        staged_path = self._staged_path(path)
        name = commit_name(path)
        base = None if self._tail is None else self._tail.base
        if staged_path is not None:
            try:
                return read(staged_path)
            except FileNotFoundError:
                if base is not None and name is not None and name.version > base:
                    raise  # it is the transaction's own commit; a published one of this version belongs to another writer
        return read(path)

    # ------------------------------------------------------------ commits

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        """Put an object. A commit is staged, and then ratified by the ledger."""
        name = commit_name(path)
        # If the ledger did not know the table, ask it again: it may know the table now.
        tail = None if name is None else (self.last_tail or self.tail())
        if name is None or tail is None:  # no commit, or the ledger does not coordinate the table
            self._publish_before_log_write(path)
            if name is not None:
                self._check_can_commit_without_ledger()
            # If the ledger is lost, a version checksum proves that a commit was ratified (ratification_evidence.py). So in a
            # coordinated table such a file must survive a failure of the machine.
            is_uncoordinated = self._is_tail_known and self._tail is None
            self._file_store.put_if_absent(path, data, durably=durably or not is_uncoordinated)
            return
        if name.version == 0 and self._has_no_log():
            raise StorageError(
                f"The coordinator {self.ledger.shown} knows a table at {self.root}, which no longer exists: it was deleted. "
                f"Nothing was committed. Have the ledger forget the place first ({forget_call(self.place)}), or use another one.",
                root=self.root,
            )
        if name.version <= tail.version:
            raise FileExistsError(errno.EEXIST, "The version is ratified", path)
        staged_commit = self.stage(name.version, data)
        try:
            self.ratify([staged_commit])
        except CoordinatorContendedError:
            self.drop_staged(staged_commit)
            raise
        except VersionTakenError as error:
            self.drop_staged(staged_commit)
            if error.message_parameters["version"] is None:  # the ledger does not know the table any more
                raise OSError(f"{self.root} is not coordinated any more: the commit has to be tried again") from error
            raise FileExistsError(errno.EEXIST, error.message, path) from error

    def forbids(self, maintenance: str) -> bool:
        """Whether the table's catalog forbids its clients a maintenance operation. Only a CatalogStore has a catalog that does
        so."""
        return False

    def _check_can_commit_without_ledger(self) -> None:
        """Called before a commit to a table that the ledger does not know. Raises UnsupportedOperationError if nobody may commit
        to the table without the ledger; here everybody may. Subclasses override this."""

    def ratify(self, staged: Sequence[Ratified]) -> None:
        """Make staged commits versions of the table, or none of them. Raises VersionTakenError, CoordinatorContendedError, and
        CoordinatorUnavailableError if the outcome is unknown."""
        assert self.transaction is None, "propose is for commits of a transaction"
        try:
            self.ledger.ratify(staged)
        except VersionTakenError:
            self._is_tail_known = False  # the ledger's last answer is outdated
            raise
        self.note_ratified(staged)

    def note_ratified(self, staged: Sequence[Ratified]) -> None:
        """Note that staged commits are ratified, without asking the ledger, and have them published."""
        tail = self._tail
        if tail is not None and tail.version + 1 == staged[0].version:
            commits = (replace(commit, content=None) for commit in staged)  # the content need not stay in memory
            self._tail = replace(tail, version=staged[-1].version, commits=(*tail.commits, *commits))
        else:
            self._is_tail_known = False  # the last answer lacks commits of other writers: ask again when it is needed
        publication.publish_later(self)

    def check_version_is_free(self, version: int) -> None:
        """Raises CorruptTableError if the log has a file of a version that the ledger has not ratified: a writer did not ask the
        ledger, or asked a newer state of it. This runs before a commit is ratified, so that a successful
        commit is not mistaken for a failed one. It also runs before files are deleted that such a commit may need.
        """
        place = f"{LOG_DIRECTORY}/{commit_file_name(version)}"
        try:
            self._file_store.read_range(place, 0, 1)
        except FileNotFoundError:
            return
        newest = self.tail()
        if newest is None or newest.version < version:
            raise CorruptTableError(
                f"{place} of {self.root} is no commit that the coordinator {self.ledger.shown} has ratified. Nothing was "
                "committed or deleted. If the ledger was restored from a backup, it is older than the table: have it rebuilt in "
                "an empty database (rebuild_ledger, of delta_py.repair.rebuild_ledger). Otherwise the file was written by a "
                "writer that did not ask the ledger: move it away.",
                version=version,
            )

    def propose(self, version: int, data: bytes, described: bytes) -> None:
        """Stage a commit, and add it to the transaction, which ratifies it later. described: what the commit depends on, and its
        content without the version, as JSON (as in ProposedCommit). Raises FileExistsError if the transaction already has a
        commit of that version; UnsupportedOperationError (DELTA_MULTI_TABLE_PARTICIPANT_NOT_CATALOG_MANAGED)."""
        assert self.transaction is not None
        if self.tail() is None:
            cure = "Set its property delta.feature.catalogManaged to supported" if version else "Create it"
            raise UnsupportedOperationError(
                f"The table at {self.root} is not coordinated by {self.ledger.shown}, so it cannot be changed in a transaction "
                f"over tables. Nothing was written. {cure} before the transaction begins.",
                error_class="DELTA_MULTI_TABLE_PARTICIPANT_NOT_CATALOG_MANAGED",
                sql_state="0AKDC",
                path=self.root,
            )
        staged_commit = self.stage(version, data)
        try:
            self.ledger.propose(self.transaction, ProposedCommit(staged_commit, described))
        except VersionTakenError as error:
            self.drop_staged(staged_commit)
            raise FileExistsError(errno.EEXIST, error.message, f"{LOG_DIRECTORY}/{commit_file_name(version)}") from error

    def stage(self, version: int, data: bytes) -> Ratified:
        """Write a commit to the directory of staged commits. Raises OSError, CorruptTableError."""
        if self.transaction is None:  # other writers may commit the version that a transaction only proposes
            self.check_version_is_free(version)
        name = staged_commit_name(version, str(uuid.uuid4()))
        self._file_store.put(f"{STAGED_DIRECTORY}/{name}", data)
        return Ratified(self.place, version, name, len(data), time.time_ns() // 1_000_000, data)

    def drop_staged(self, staged: Ratified) -> None:
        """Delete the staged file of a commit that was not ratified, or that is published. If the deletion fails, the file does no
        harm."""
        try:
            self._file_store.delete(f"{STAGED_DIRECTORY}/{staged.name}")
        except (OSError, StorageError) as error:
            _log.warning("%s: the staged commit %s is not needed and was not deleted: %s", self.root, staged.name, error)

    def publish(self) -> None:
        """Copy ratified commits to their places, in order. They are versions of the table even if this fails; then the next
        call copies them. Protocol: Publishing Commits.
        """
        assert self.transaction is None, "what a transaction has proposed is not ratified"
        try:
            tail = self.tail()
            for commit in () if tail is None else tail.commits:
                self._publish_commit(commit)
            if tail is not None and tail.commits:
                self.ledger.acknowledge(self.place, tail.version)
                self._drop_published(tail.commits)
        except (OSError, DeltaError) as error:
            _log.warning("%s: ratified commits are not yet published: %s", self.root, error)

    def _drop_published(self, commits: Sequence[Ratified]) -> None:
        """Delete the staged files of published commits: readers find these commits in the log now."""
        for commit in commits:
            self.drop_staged(commit)

    def _publish_commit(self, commit: Ratified) -> None:
        """Put a ratified commit to its place in the log, unless it is there already."""
        staged_path = f"{STAGED_DIRECTORY}/{commit.name}"
        place = f"{LOG_DIRECTORY}/{commit_file_name(commit.version)}"
        try:
            if not self._file_store.link(staged_path, place):
                self._file_store.put_if_absent(place, self._file_store.read(staged_path))
        except FileNotFoundError:
            self._file_store.read_range(place, 0, 1)  # another process has published it; raises if that is not so
        except FileExistsError:
            if not self._is_same_commit(staged_path, place):
                raise CorruptTableError(
                    f"{place} of {self.root} is not the commit that the coordinator {self.ledger.shown} has ratified: it was "
                    "written by a writer that did not ask it. The ratified one counts. Move the file away.",
                    version=commit.version,
                ) from None

    def _is_same_commit(self, staged_path: str, place: str) -> bool:
        """Whether the file at a ratified commit's place in the log is that commit. staged_path, place: the paths of both."""
        try:
            return self._file_store.read(staged_path) == self._file_store.read(place)
        except FileNotFoundError:
            return True  # another process has published it, and has deleted the staged file

    # ------------------------------------------------------------ everything else

    def _publish_before_log_write(self, path: str) -> None:
        """Prepare to write a file. A checkpoint or a compaction may only be written when its versions are published, so this
        publishes them if necessary. Raises StorageError if they cannot be published now; UnsupportedOperationError for a file of
        the log in a transaction.
        Protocol: Maintenance Operations on Catalog-managed Tables.
        """
        directory, _, file_name = path.rpartition("/")
        self._refuse_in_transaction(path)
        name = parse_log_name(file_name) if directory == LOG_DIRECTORY else None
        if name is None or not (name.is_checkpoint or name.kind is LogKind.COMPACTION):
            return
        newest_version = name.version if name.end_version is None else name.end_version
        if self._is_unpublished(newest_version):
            self.publish()
        if self._is_unpublished(newest_version):
            raise StorageError(
                f"Version {newest_version} of the table at {self.root} is ratified and not yet published, so {path} is not "
                "written.",
                root=self.root,
                path=path,
            )

    def _is_unpublished(self, version: int) -> bool:
        """Whether the version is not published yet."""
        tail = self.tail()
        return tail is not None and bool(tail.commits) and version >= tail.commits[0].version

    def _refuse_in_transaction(self, path: str) -> None:
        """Raises UnsupportedOperationError for a file of the log in a transaction, which proposes commits and writes nothing else
        to the log."""
        is_file_of_log = path.startswith(f"{LOG_DIRECTORY}/") and not path.startswith(_VACUUM_NOTES)
        if self.transaction is not None and is_file_of_log:
            raise UnsupportedOperationError(
                f"{path} of the table at {self.root} would be changed outside of the transaction {self.transaction}, in which "
                "the table was opened. Nothing was changed. Do it after the transaction.",
                path=path,
            )

    def put(self, path: str, data: bytes) -> None:
        self._publish_before_log_write(path)
        self._file_store.put(path, data)

    def list_recursive(self, directory: str) -> Iterator[ObjectInfo]:
        return self._file_store.list_recursive(directory)

    def open_output(self, path: str) -> pa.NativeFile:
        return self._file_store.open_output(path)

    def open_atomic_output(self, path: str) -> pa.NativeFile:
        self._publish_before_log_write(path)
        return self._file_store.open_atomic_output(path)

    def copy_from(self, source: ObjectStore, source_path: str, path: str, size_bytes: int) -> bool:
        return self._file_store.copy_from(source, source_path, path, size_bytes)

    def link(self, path: str, new_path: str) -> bool:
        return self._file_store.link(path, new_path)

    def abort_uploads(self, part_of_name: str) -> None:
        self._file_store.abort_uploads(part_of_name)

    def delete(self, path: str) -> None:
        self._refuse_in_transaction(path)
        self._file_store.delete(path)


def commit_name(path: str) -> LogName | None:
    """The name of a commit in the log, from its path; None for other files."""
    directory, _, text = path.rpartition("/")
    name = parse_log_name(text) if directory == LOG_DIRECTORY else None
    return name if name is not None and name.kind is LogKind.COMMIT else None


def _as_published(commit: Ratified) -> ObjectInfo:
    """A ratified commit as a listing shows it once it is published."""
    return ObjectInfo(f"{LOG_DIRECTORY}/{commit_file_name(commit.version)}", commit.size_bytes, commit.time_ms)


def _merge_listings(
    listed_infos: Iterator[ObjectInfo], staged_infos: list[ObjectInfo], newest: int, base: int | None
) -> Iterator[ObjectInfo]:
    """The objects listed in the log's directory and the ratified commits, in the order of names.

    For a commit that is in both lists, the ledger's entry is used. Nothing newer than the version `newest` is listed. base: in a
    transaction, files of other writers that are newer than this are hidden: their versions are not the transaction's.
    """
    ratified_paths = {info.path for info in staged_infos}
    last_visible = newest if base is None else base
    visible_infos = (
        info for info in listed_infos if info.path not in ratified_paths and _newest_covered_version(info) <= last_visible
    )
    return heapq.merge(visible_infos, staged_infos, key=lambda info: info.path.encode())


def _newest_covered_version(info: ObjectInfo) -> int:
    """The newest version that a file of the log covers; 0 for other files, so that they are always listed."""
    name = parse_log_name(info.path.rpartition("/")[2])
    if name is None:
        return 0
    return name.version if name.end_version is None else name.end_version
