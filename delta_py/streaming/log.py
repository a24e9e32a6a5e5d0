"""A table's log as a stream reads it, version after version: no version may be missing, and the table must stay the same one.

log = StreamLog(snapshot, with_stats=False, fail_on_data_loss=True)
for file in log.commits_from(version):
    commit = log.read(file)                 # cached for the next trigger, within bounds
"""

from __future__ import annotations

import logging
from collections import OrderedDict

from delta_py.errors import CorruptTableError, LogFileNotFoundError, TableNotFoundError, VersionNotFoundError
from delta_py.log.commit_reader import CommitReader
from delta_py.log.segment import LogFile, list_log
from delta_py.snapshot import Snapshot
from delta_py.streaming.commits import StreamCommit, check_table_id, read_commit

_log = logging.getLogger("delta_py")

# Limits of the cache for the next trigger.
_MOST_CACHED_COMMITS = 4_096
MOST_CACHED_FILES = 200_000


class StreamLog:
    """The log of one table for one stream. snapshot: of the table. with_stats: keep the statistics of files. fail_on_data_loss:
    raise if commits are missing.

    Methods raise LogFileNotFoundError (DELTA_MISSING_FILES_UNEXPECTED_VERSION,
    DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE), SchemaMismatchError (DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE),
    CorruptTableError.
    """

    def __init__(self, snapshot: Snapshot, *, with_stats: bool, fail_on_data_loss: bool) -> None:
        self._snapshot, self._store = snapshot, snapshot.store
        self._with_stats, self._fail_on_data_loss = with_stats, fail_on_data_loss
        self._commits: OrderedDict[int, StreamCommit] = OrderedDict()
        self._cached_files = 0
        self._newest_commit: LogFile | None = None

    def commits_from(self, version: int, last: int | None = None) -> list[LogFile]:
        """The commits from `version` to `last` (None: the newest), without a gap (unless data loss is allowed)."""
        # The commit before `version` is listed too: it shows whether this is still the log that the stream has read.
        listing = list_log(self._store, max(0, version - 1), last)
        self._check_same_log(listing.commits, version)
        commits = [listing.commits[number] for number in sorted(listing.commits) if number >= version]
        expected = version
        for commit in commits:
            if commit.version != expected:
                self.report_data_loss(expected, commit.version)
            expected = commit.version + 1
        newest = listing.newest()
        if last is None and newest is not None and newest >= expected:  # a checkpoint refers to a commit that does not exist
            self.report_data_loss(expected, newest + 1)
        return commits

    def _check_same_log(self, commits: dict[int, LogFile], version: int) -> None:
        """Check that the log is still the one that the stream reads: a table that was deleted and created again has other
        commits.

        commits: by version, as listed now, from the commit before `version` on. The newest commit of the last listing must be the
        same file. If it is not, or if no commits are listed, the table's newest version is loaded to compare the tables' ids.
        """
        known_commit = self._newest_commit
        if commits:
            self._newest_commit = commits[max(commits)]
        elif version > 0 or known_commit is not None:
            self._check_current_table(version - 1)  # no commits: the table is unchanged, or gone
        current_commit = None if known_commit is None else commits.get(known_commit.version)
        if current_commit is not None and current_commit != known_commit:
            self._check_current_table(version - 1)

    def _check_current_table(self, version: int) -> None:
        """Load the table's newest version. Raises if another table is there now, or if the table no longer has the version; with
        failOnDataLoss=false, the latter is only a warning."""
        newest = Snapshot.load(self._store)
        check_table_id(self._snapshot.metadata.id, newest.metadata.id, self._store.root)
        if newest.version >= version:
            return
        if self._fail_on_data_loss:
            raise LogFileNotFoundError(
                f"The stream should go on after version {version} of the table at {self._store.root}, and the newest version "
                f"there is {newest.version}: the commits after it are lost. Restore them, set failOnDataLoss=false to go on "
                "without them, or start again with a new checkpoint.",
                error_class="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
                sql_state="42K03",
                expected=version,
                found=newest.version,
            )
        _log.warning(
            "%s: versions %d to %d are gone, and the newest version is %d; the stream goes on, as failOnDataLoss=false asks",
            self._store.root,
            newest.version + 1,
            version,
            newest.version,
        )

    def report_data_loss(self, expected: int, found_version: int) -> None:
        """Raise LogFileNotFoundError, or only warn if failOnDataLoss is false: commits before `found_version` are missing.

        expected: the version that the stream should read next. found_version: the first version after the missing ones.
        """
        if self._fail_on_data_loss:
            raise self._lost_commits_error(expected, found_version)
        _log.warning(
            "%s: versions %d to %d are gone and left out, as failOnDataLoss=false asks",
            self._store.root,
            expected,
            found_version - 1,
        )

    def _lost_commits_error(self, expected: int, found_version: int) -> LogFileNotFoundError:
        """The error for missing commits before `found_version`. expected: the version that the stream should read next."""
        return LogFileNotFoundError(
            f"The stream should go on with version {expected} of the table at {self._store.root}, and the log goes on with "
            f"version {found_version}: the commits between were cleaned up (delta.logRetentionDuration) or lost, and their "
            "rows are not known. Set failOnDataLoss=false to go on without them, or start again with a new checkpoint.",
            error_class="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
            sql_state="42K03",
            expected=expected,
            found=found_version,
        )

    def newest_version(self) -> int:
        """The newest version in the log now; the snapshot's version if the log has lost it."""
        return max((commit.version for commit in self.commits_from(self._snapshot.version)), default=self._snapshot.version)

    def commit_at(self, version: int) -> StreamCommit:
        """The commit of a version."""
        commits = self.commits_from(version, version)
        if not commits:  # also with failOnDataLoss=false, because nothing else has the commit's schema
            raise self._lost_commits_error(version, version + 1)
        return self.read(commits[0])

    def read(self, file: LogFile) -> StreamCommit:
        """The commit in a log file, from the cache if it was read before."""
        commit = self._commits.get(file.version)
        if commit is not None and commit.file == file:
            self._commits.move_to_end(file.version)
            return commit
        commit = read_commit(CommitReader(self._store), file, with_stats=self._with_stats)
        self._cache_commit(commit)
        return commit

    def _cache_commit(self, commit: StreamCommit) -> None:
        """Cache the commit for the next trigger. If the cache then has too many commits or files, the commits that were
        used longest ago are dropped."""
        self._uncache_commit(commit.version)
        self._commits[commit.version] = commit
        self._cached_files += commit.files.num_rows
        while len(self._commits) > 1 and (len(self._commits) > _MOST_CACHED_COMMITS or self._cached_files > MOST_CACHED_FILES):
            self._uncache_commit(next(iter(self._commits)))

    def _uncache_commit(self, version: int) -> None:
        commit = self._commits.pop(version, None)
        self._cached_files -= 0 if commit is None else commit.files.num_rows

    def state_at(self, version: int) -> Snapshot:
        """The table at a version. Raises LogFileNotFoundError (DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE) if its state cannot
        be rebuilt any more."""
        if version == self._snapshot.version:
            self._snapshot.check_log()
            return self._snapshot
        try:
            return Snapshot.load(self._store, version)
        except (VersionNotFoundError, CorruptTableError, TableNotFoundError) as error:
            raise LogFileNotFoundError(
                f"The stream began with version {version} of the table at {self._store.root} and has not read all of it, and "
                f"its state cannot be rebuilt any more: {error.message} Start again with a new checkpoint; a longer "
                "delta.logRetentionDuration leaves more time.",
                error_class="DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE",
                sql_state="42K03",
                version=version,
            ) from error

    def state_if_in_log(self, version: int) -> Snapshot | None:
        """The table at a version; None if its state cannot be rebuilt any more."""
        try:
            return self.state_at(version)
        except LogFileNotFoundError:
            return None
