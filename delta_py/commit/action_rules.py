"""Rules on the actions of one commit: append-only tables, duplicate files, row ids, tables that are compatible with Iceberg.

In: the actions of a commit, and the table before and after it. A rule that is broken raises, and nothing is committed.
Protocol: Append-only Tables; Writer Requirements for Row Tracking; Writer Requirements for IcebergCompatV1.
"""

from __future__ import annotations

from delta_py.commit.prepared import ROW_TRACKING_ENABLED, ROW_TRACKING_SUSPENDED, num_records
from delta_py.errors import UnsupportedOperationError
from delta_py.protocol.features import Properties
from delta_py.protocol.iceberg_compat import check_files, check_map_keys, is_written_by_iceberg, violation_error
from delta_py.protocol.table_config import TableConfig
from delta_py.snapshot import Snapshot
from delta_py.write.data_files import WrittenFiles


def append_only_error(root: str) -> UnsupportedOperationError:
    """The error for a commit that would delete or change rows of an append-only table."""
    return UnsupportedOperationError(
        f"The table at {root} is append-only (delta.appendOnly is true): no row may be deleted or changed. Nothing was "
        "committed. Set delta.appendOnly to false to allow it.",
        error_class="DELTA_CANNOT_MODIFY_APPEND_ONLY",
        sql_state="42809",
    )


def check_row_tracking(root: str, properties: Properties) -> None:
    """Raises UnsupportedOperationError if the table enables row tracking and suspends it: rows would need ids and get none.
    Protocol: Writer Requirements for Row Tracking.
    """
    if properties.boolean(ROW_TRACKING_ENABLED) and properties.boolean(ROW_TRACKING_SUSPENDED):
        raise suspended_row_tracking_error(root)


def suspended_row_tracking_error(root: str) -> UnsupportedOperationError:
    """The error for a table in which row tracking is enabled and suspended at once."""
    return UnsupportedOperationError(
        f"{ROW_TRACKING_ENABLED} and {ROW_TRACKING_SUSPENDED} exclude each other in the table at {root}: rows need ids, and get "
        "none while a DROP FEATURE rowTracking is under way, or has died. Nothing was committed. Set "
        f"{ROW_TRACKING_ENABLED} to false if it is true, unset {ROW_TRACKING_SUSPENDED}, and then set {ROW_TRACKING_ENABLED} to "
        "true; or drop the feature rowTracking.",
        error_class="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
    )


def check_iceberg(snapshot: Snapshot | None, config: TableConfig, written: WrittenFiles, restored: Snapshot | None) -> None:
    """Raises UnsupportedOperationError if a commit breaks the rules for changes of a table that is compatible with Iceberg.

    Files that were written before a table became compatible with Iceberg lack what Iceberg requires of them, and a compatible
    table keeps the names of its partition columns. snapshot: before the commit; None for a new table. config: after the commit.
    restored: the version whose files will be the only ones; None unless the commit restores a version.
    Protocol: Writer Requirements for IcebergCompatV1.
    """
    versions = config.iceberg_versions
    if snapshot is None or not versions:
        return
    # Each is the tuple of enabled IcebergCompat versions. versions: after the commit. previous_versions: before it.
    # versions_of_files: when the files were written which the table will have.
    previous_versions = snapshot.config.iceberg_versions
    versions_of_files = previous_versions if restored is None else restored.config.iceberg_versions
    if versions_of_files != versions:
        remaining = snapshot.num_files - len(written.removes) if restored is None else restored.num_files
        check_files(versions_of_files, versions, partitioned=bool(config.partition_columns), files=remaining)
    if is_written_by_iceberg(frozenset(config.features), config.properties):
        check_map_keys(snapshot.schema, config.schema)
    previous_columns, new_columns = snapshot.config.partition_columns, config.partition_columns
    if previous_versions and previous_columns and previous_columns != new_columns:
        before_names, after_names = ", ".join(previous_columns), ", ".join(new_columns)
        why = f"a table that is partitioned by ({before_names}) cannot become one by ({after_names}). Make a new table"
        raise violation_error(versions[-1], "REPLACE_TABLE_CHANGE_PARTITION_NAMES", why)


def check_actions(root: str, config: TableConfig, written: WrittenFiles, before: TableConfig) -> None:
    """Raises UnsupportedOperationError if a commit adds or removes a file twice, deletes rows of an append-only table, or adds a
    file without the row count that IcebergCompat requires.

    config: after the commit. before: before the commit; the commit that ends append-only mode cannot delete rows.
    Protocol: Add File and Remove File; Append-only Tables; Writer Requirement for Deletion Vectors.
    """
    paths = [add.path for add in written.adds]
    keys = [remove.key for remove in written.removes]
    if len(set(paths)) < len(paths) or len(set(keys)) < len(keys):
        raise UnsupportedOperationError(
            "A file would be added or removed twice in one commit. Nothing was committed.",
            error_class="DELTA_DUPLICATE_ACTIONS_FOUND",
            sql_state="2D521",
        )
    # If the commit ends append-only mode, the mode still holds for this commit.
    keeps_rows = before.enabled("delta.appendOnly") or config.enabled("delta.appendOnly")
    if keeps_rows and any(remove.data_change for remove in written.removes):
        raise append_only_error(root)
    iceberg = config.iceberg_versions
    for add in written.adds if iceberg else ():
        if num_records(add) is None:
            why = f"the file {add.path} does not say how many records it has (numRecords)"
            raise violation_error(iceberg[-1], "", why)
