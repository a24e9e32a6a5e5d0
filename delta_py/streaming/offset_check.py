"""Whether a stream can continue from an offset: it must fit the table and its order, and the rows after it must be readable.

    places = PlaceCheck(log, read_state, order=None, has_feed=False, tracks_schema=False)
    places.check(offset)

Checks that read the log run only for the first offset of a run: later commits are checked when they are read.
"""

from __future__ import annotations

from delta_py.errors import ChangeDataFeedError, InvalidOptionError, LogFileNotFoundError, UnsupportedOperationError
from delta_py.protocol.table_config import TableConfig
from delta_py.streaming.commits import ReadState, check_state, check_table_id
from delta_py.streaming.log import StreamLog
from delta_py.streaming.offset import BEFORE_FIRST, StreamOffset


class PlaceCheck:
    """order: the column whose times order the rows of the start, or None. has_feed: the stream reads the changes of rows.
    tracks_schema: it has a log of schemas, which decides what the stream can read.

    `check` raises SchemaMismatchError, UnsupportedTableFeatureError (commits.py); LogFileNotFoundError (log.py, and
    DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT); InvalidOptionError; UnsupportedOperationError; ChangeDataFeedError.
    """

    def __init__(self, log: StreamLog, read_state: ReadState, *, order: str | None, has_feed: bool, tracks_schema: bool) -> None:
        self._log, self._ours = log, read_state
        self._order, self._has_feed, self._tracks_schema = order, has_feed, tracks_schema
        self._known_start: int | None = None  # offsets from this version on need no more checks that read the log

    def check(self, place: StreamOffset) -> None:
        """Raise an error of the list above unless the stream can continue from the offset."""
        check_table_id(place.table_id, self._ours.config.metadata.id, self._ours.root)
        self._check_order(place)
        if place.is_schema_change and not self._tracks_schema:
            raise UnsupportedOperationError(
                f"The stream's checkpoint stands at a change of the schema in version {place.version}, as only streams with a "
                "log of schemas do. Name the log again in the option schemaTrackingLocation.",
                option="schemaTrackingLocation",
                version=place.version,
            )
        if self._known_start is not None and place.version >= self._known_start:
            return
        if not self._tracks_schema:
            self._check_state_of(place)
        if self._has_feed:
            version = min(place.version, self._ours.version)
            state = self._log.state_if_in_log(version)
            check_feed(self._ours.config if state is None else state.config, version, self._ours.root)
        self._known_start = place.version

    def _check_order(self, place: StreamOffset) -> None:
        if place.is_initial and place.index > BEFORE_FIRST and place.order != self._order:
            names = [f"the times of {order}" if order else "the age of files" for order in (place.order, self._order)]
            raise InvalidOptionError(
                f"The stream is reading the rows that the table had at version {place.version}, by {names[0]}, and the options "
                f"now say by {names[1]}. Leave withEventTimeOrder and eventTimeColumn as they were until these rows are read.",
                option="withEventTimeOrder",
                version=place.version,
            )

    def _check_state_of(self, place: StreamOffset) -> None:
        """Check that the rows after an offset belong to a state that the stream can read."""
        version = place.version if place.is_initial else self._version_of_state(place)
        state = self._log.state_at(version) if place.is_initial else self._log.state_if_in_log(version)
        if state is not None:
            check_state(self._ours, state.protocol, state.metadata, version)
        elif self._ours.config.feature("columnMapping"):  # else columns are never renamed, or dropped without rows
            raise LogFileNotFoundError(
                f"The stream goes on with version {place.version} of the table at {self._ours.root}, which has or had column "
                f"mapping, and the state of version {version} cannot be rebuilt any more: whether columns were renamed or "
                "dropped since then cannot be told. Start again with a new checkpoint; a longer delta.logRetentionDuration "
                "leaves more time.",
                error_class="DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT",
                sql_state="KD002",
                version=version,
            )

    def _version_of_state(self, place: StreamOffset) -> int:
        """The version before the first commit to read. It is the offset's own version if no commit before it is read: a stream
        may begin with a change of the schema, be in the middle of its commit, or continue with it where the log begins."""
        commits = self._log.commits_from(place.version)
        if not commits:
            return max(0, place.version - 1)
        first = commits[0].version
        is_own = place.begins or place.index > BEFORE_FIRST or first > place.version
        return first if is_own else max(0, first - 1)


def check_feed(config: TableConfig, version: int, root: str) -> None:
    """Raises ChangeDataFeedError (DELTA_MISSING_CHANGE_DATA) if changes are not recorded from a version on.
    config: of that version."""
    if not config.enabled("delta.enableChangeDataFeed"):
        raise ChangeDataFeedError(
            f"The stream reads the change feed of the table at {root}, and version {version} did not record "
            "changes: delta.enableChangeDataFeed is not true there. Start with a version from which it is (startingVersion).",
            error_class="DELTA_MISSING_CHANGE_DATA",
            sql_state="KD002",
            version=version,
        )
