"""Whether a stream can continue from an offset: it must fit the table and its order, and the rows after it must be readable.

    offset_check = OffsetCheck(log, read_state, order=None, has_feed=False, tracks_schema=False)
    offset_check.check(offset)

Checks that read the log run only for the first offset of a run: later commits are checked when they are read.
"""

from __future__ import annotations

from delta_py.errors import ChangeDataFeedError, InvalidOptionError, LogFileNotFoundError, UnsupportedOperationError
from delta_py.protocol.table_config import TableConfig
from delta_py.streaming.commits import ReadState, check_state, check_table_id
from delta_py.streaming.log import StreamLog
from delta_py.streaming.offset import BEFORE_FIRST, StreamOffset


class OffsetCheck:
    """Checks offsets before a stream continues from them. order: the column whose times order the rows of the start, or None.
    has_feed: the stream reads the changes of rows. tracks_schema: it has a log of schemas, which decides what the stream can
    read.

    `check` raises SchemaMismatchError, UnsupportedTableFeatureError (commits.py); LogFileNotFoundError (log.py, and
    DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT); InvalidOptionError; UnsupportedOperationError; ChangeDataFeedError.
    """

    def __init__(self, log: StreamLog, read_state: ReadState, *, order: str | None, has_feed: bool, tracks_schema: bool) -> None:
        self._log, self._read_state = log, read_state
        self._order, self._has_feed, self._tracks_schema = order, has_feed, tracks_schema
        self._checked_from_version: int | None = None  # offsets from this version on need no more checks that read the log

    def check(self, offset: StreamOffset) -> None:
        """Raise unless the stream can continue from the offset; see the class for the errors."""
        check_table_id(offset.table_id, self._read_state.config.metadata.id, self._read_state.root)
        self._check_order(offset)
        if offset.is_schema_change and not self._tracks_schema:
            raise UnsupportedOperationError(
                f"The stream's checkpoint stands at a change of the schema in version {offset.version}, as only streams with a "
                "log of schemas do. Name the log again in the option schemaTrackingLocation.",
                option="schemaTrackingLocation",
                version=offset.version,
            )
        if self._checked_from_version is not None and offset.version >= self._checked_from_version:
            return
        if not self._tracks_schema:
            self._check_state_of(offset)
        if self._has_feed:
            version = min(offset.version, self._read_state.version)
            state = self._log.state_if_in_log(version)
            check_feed(self._read_state.config if state is None else state.config, version, self._read_state.root)
        self._checked_from_version = offset.version

    def _check_order(self, offset: StreamOffset) -> None:
        """Raise InvalidOptionError if the index in the offset counts the files of the start in another order than the options
        say."""
        if offset.is_initial and offset.index > BEFORE_FIRST and offset.order != self._order:
            names = [f"the times of {order}" if order else "the age of files" for order in (offset.order, self._order)]
            raise InvalidOptionError(
                f"The stream is reading the rows that the table had at version {offset.version}, by {names[0]}, and the options "
                f"now say by {names[1]}. Leave withEventTimeOrder and eventTimeColumn as they were until these rows are read.",
                option="withEventTimeOrder",
                version=offset.version,
            )

    def _check_state_of(self, offset: StreamOffset) -> None:
        """Check that the rows after an offset belong to a state that the stream can read."""
        version = offset.version if offset.is_initial else self._version_of_state(offset)
        state = self._log.state_at(version) if offset.is_initial else self._log.state_if_in_log(version)
        if state is not None:
            check_state(self._read_state, state.protocol, state.metadata, version)
        elif self._read_state.config.feature("columnMapping"):  # else columns are never renamed, or dropped without rows
            raise LogFileNotFoundError(
                f"The stream goes on with version {offset.version} of the table at {self._read_state.root}, which has or had "
                f"column mapping, and the state of version {version} cannot be rebuilt any more: whether columns were renamed or "
                "dropped since then cannot be told. Start again with a new checkpoint; a longer delta.logRetentionDuration "
                "leaves more time.",
                error_class="DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT",
                sql_state="KD002",
                version=version,
            )

    def _version_of_state(self, offset: StreamOffset) -> int:
        """The version before the first commit to read. It is the offset's own version if no commit before it is read: a stream
        may begin with a change of the schema, be in the middle of its commit, or continue with it where the log begins."""
        commits = self._log.commits_from(offset.version)
        if not commits:
            return max(0, offset.version - 1)
        first = commits[0].version
        is_state_of_first = offset.begins or offset.index > BEFORE_FIRST or first > offset.version
        return first if is_state_of_first else max(0, first - 1)


def check_feed(config: TableConfig, version: int, root: str) -> None:
    """Check that a version records the changes of rows. Raises ChangeDataFeedError (DELTA_MISSING_CHANGE_DATA) if changes are not
    recorded from a version on. config: of that version."""
    if not config.enabled("delta.enableChangeDataFeed"):
        raise ChangeDataFeedError(
            f"The stream reads the change feed of the table at {root}, and version {version} did not record "
            "changes: delta.enableChangeDataFeed is not true there. Start with a version from which it is (startingVersion).",
            error_class="DELTA_MISSING_CHANGE_DATA",
            sql_state="KD002",
            version=version,
        )
