"""Where a stream with `schemaTrackingLocation` stores its log of schemas, and which stream owns the log.

The log has the table's schemas that the stream has reached, so that the stream can follow changes of the schema that would
otherwise stop it.

Spark passes neither its checkpoint nor the number of the source in the query to a Python source. The log has to lie in the
checkpoint. Its directory contains the file in which Spark stores the query's id; the file exists when the query runs, not when
the stream is loaded.
"""

from __future__ import annotations

from delta_py.errors import InvalidOptionError, SchemaMismatchError, StorageError
from delta_py.object_stores.open_store import open_store
from delta_py.protocol.table_config import TableConfig
from delta_py.snapshot import Snapshot
from delta_py.storage.store_options import StorageOptions
from delta_py.streaming.schema_log import SchemaLog, TrackedSchema
from delta_py.streaming.schema_tracking import SchemaTracker, merge_bare_changes, reads_same_rows
from spark_plugin.options.streaming_options import SchemaTracking

_QUERY_ID, _SOURCES = "metadata", "sources"


def look_up(tracking: SchemaTracking, snapshot: Snapshot) -> TrackedSchema | None:
    """Return the schema with which the stream continues, the newest of its log; None for a new stream, whose log is empty. If
    further changes of the schema follow directly, without rows between them, the log gets them as one, so that they stop the
    stream only once. Raises the errors of SchemaLog.check_owner."""
    log = _open_log(tracking, snapshot)
    log.check_owner(snapshot.metadata.id, None)
    return merge_bare_changes(log, snapshot.store).newest


def open_tracker(tracking: SchemaTracking, snapshot: Snapshot, config: TableConfig) -> SchemaTracker:
    """Open the tracker of a running query. config: the configuration from which the stream's columns were taken.

    Raises InvalidOptionError (DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT); SchemaMismatchError
    (DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART); the errors of SchemaTracker and its check_allowed.
    """
    log = _open_log(tracking, snapshot)
    if log.newest is not None and not reads_same_rows(config, log.newest.config(snapshot.config)):
        raise SchemaMismatchError(
            f"The stream of the table at {snapshot.table_root} was loaded before the schema of version {log.newest.version} was "
            f"noted in its log of schemas at {log.location}. Load it again (readStream...load), and start the query again.",
            error_class="DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART",
            sql_state="KD007",
            version=log.newest.version,
        )
    tracker = SchemaTracker(config, log, _source_path(tracking, log, snapshot.store.options))
    tracker.check_allowed(tracking.allowed)
    return tracker


def _open_log(tracking: SchemaTracking, snapshot: Snapshot) -> SchemaLog:
    """Open the log in the directory `_schema_log_<table id>`, with `_<tracking id>` after it if there is one."""
    suffix = "" if tracking.tracking_id is None else f"_{tracking.tracking_id}"
    directory = f"_schema_log_{snapshot.metadata.id}{suffix}"
    store = open_store(tracking.location, snapshot.store.options)
    return SchemaLog.of(store, directory, snapshot.table_root)


def _source_path(tracking: SchemaTracking, log: SchemaLog, options: StorageOptions) -> str:
    """Return Spark's name of the source: a directory in the checkpoint, which ends in the source's number in the query. A Python
    source does not learn this number, so it is 0, the first one, unless the log names another."""
    checkpoint = _checkpoint_of(tracking.location, options)
    sources = f"{'file:' if checkpoint.startswith('/') else ''}{checkpoint}/{_SOURCES}/"
    logged_path = None if log.newest is None else log.newest.source_path
    return logged_path if logged_path is not None and logged_path.startswith(sources) else f"{sources}0"


def _checkpoint_of(location: str, options: StorageOptions) -> str:
    """Return the location, or the nearest directory above it in which Spark has stored a query's id."""
    directory = open_store(location, options).root
    # How many directories are above it; in a URL, below the host.
    depth = directory.partition("://")[2].count("/") or directory.count("/")
    # The location itself and the directories above it, the nearest first.
    candidates = [directory.rsplit("/", levels_up)[0] for levels_up in range(depth)]
    checkpoint = next((path for path in candidates if _is_checkpoint(path, options)), None)
    if checkpoint is None:
        raise InvalidOptionError(
            f"The schemaTrackingLocation {location} is in no query's checkpoint. Name the checkpointLocation of the query that "
            "reads the stream, or a directory in it.",
            error_class="DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT",
            sql_state="22000",
            option="schemaTrackingLocation",
            location=location,
        )
    return checkpoint


def _is_checkpoint(directory: str, options: StorageOptions) -> bool:
    """Return whether the directory has the file with the query's id. A directory that cannot be read counts as one without."""
    try:
        open_store(directory, options).read_range(_QUERY_ID, 0, 1)
    except (FileNotFoundError, PermissionError, StorageError):
        return False
    return True
