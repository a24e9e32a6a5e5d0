"""Row ids for the existing rows of a table, so that row tracking can be enabled.

    give_row_ids(store)

The feature is committed first, so that new files get ids from then on. Then the files without ids are added again with ids, a
batch per commit. Their rows do not change, and other writers may continue during this.
Protocol: Row Tracking; Writer Requirements for Row Tracking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import TypeAlias, TypeVar

from delta_py.commit.action_rules import suspended_row_tracking_error
from delta_py.commit.prepared import ROW_TRACKING_SUSPENDED, num_records
from delta_py.commit.transaction import Transaction
from delta_py.definition.protocols import with_features
from delta_py.errors import DeltaConcurrentModificationException, UnsupportedOperationError
from delta_py.protocol.actions import AddFile
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.scan.scan_state import ScanFile
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.write.data_files import WrittenFiles
from delta_py.write.rewrite import add_action_of

FileKey: TypeAlias = tuple[str, str | None]
"""AddFile.key."""
Numbered = TypeVar("Numbered", AddFile, ScanFile)
# How many files one commit adds again at most; and how many conflicts with other writers are accepted.
_FILES_A_COMMIT = 10_000
_MAX_ATTEMPTS = 20


def give_row_ids(store: ObjectStore) -> None:
    """Give base row ids to all files that have none, in separate commits.

    Raises UnsupportedOperationError, before anything is committed, for files whose statistics lack the row count; conflicts as
    Transaction.commit when other writers change the files again and again.
    """
    snapshot = Snapshot.load(store)
    _check_row_counts(snapshot)
    protocol = with_features(snapshot.protocol, {"rowTracking"})
    if protocol != snapshot.protocol:
        Transaction(snapshot).set_protocol(protocol).commit("UPGRADE PROTOCOL", {"newProtocol": protocol.to_json()})
    _change_ids_in_commits(store, gives=True)


def remove_row_ids(store: ObjectStore) -> bool:
    """Add the files that have row ids again without them, in separate commits; returns whether such files existed. The property
    delta.rowTrackingSuspended prevents commits from giving new ids. Raises as give_row_ids on conflicts.
    """
    return _change_ids_in_commits(store, gives=False)


def _change_ids_in_commits(store: ObjectStore, *, gives: bool) -> bool:
    """Add files again, some in each commit, until none remains: files without row ids get ids (gives), or files with ids lose
    them. Returns whether there were such files. Raises an error if another writer enables or suspends row ids in the meantime:
    then no further commit could succeed.
    """
    operation = "ROW TRACKING BACKFILL" if gives else "ROW TRACKING UNBACKFILL"
    commit_count, conflict_count = 0, 0
    while True:
        snapshot = Snapshot.load(store)
        adds = _adds_of_some_files(snapshot, with_ids=not gives)
        if not adds:
            return commit_count > 0
        # Ids can be given only if row tracking is not suspended, and removed only if it is.
        if snapshot.config.properties.boolean(ROW_TRACKING_SUSPENDED) is gives:
            raise suspended_row_tracking_error(store.root)
        if not gives:
            adds = tuple(replace(add, base_row_id=None, default_row_commit_version=None) for add in adds)
        transaction = Transaction(snapshot).read_files(add.path for add in adds).add(WrittenFiles(adds=adds))
        try:
            transaction.commit(operation, {"batchId": str(commit_count)})
            commit_count += 1
        except DeltaConcurrentModificationException:  # another writer removed or changed a file
            conflict_count += 1
            if conflict_count == _MAX_ATTEMPTS:
                raise


def count_files_without_ids(snapshot: Snapshot) -> int:
    """The number of files without row ids."""
    return sum(batch.files["base_row_id"].null_count for batch in snapshot.file_batches())


def files_to_renumber(
    past_files: Mapping[FileKey, Numbered], present_files: Mapping[FileKey, ScanFile], config: TableConfig, highest_row_id: int
) -> list[Numbered]:
    """Select the files that are in the table now and also in an earlier state, or in a clone, and must be added again for their
    row ids.

    past_files: the files in that state, by AddFile.key. present_files: the files now. config, highest_row_id: those of the
    earlier state.

    Files get the ids of the earlier state. A file that had no id there retains its present one, unless a row of that state may
    have the same id: this happens if the feature was dropped and enabled again since then. A file that must have ids and has none
    gets new ones.
    """
    must_have = config.enabled("rowTracking") and not config.properties.boolean(ROW_TRACKING_SUSPENDED)
    return [
        file
        for key, file in past_files.items()
        if key in present_files and _must_be_added_again(file, present_files[key], highest_row_id, must_have)
    ]


def _must_be_added_again(file: AddFile | ScanFile, present_file: ScanFile, highest_row_id: int, must_have: bool) -> bool:
    """Whether a file must be added again, by the rules of `files_to_renumber`. file, present_file: the file in the earlier state,
    and now. must_have: whether files of that state must have ids."""
    if file.base_row_id is not None:
        return _ids_of(file) != _ids_of(present_file)
    return must_have if present_file.base_row_id is None else present_file.base_row_id <= highest_row_id


def _ids_of(file: AddFile | ScanFile) -> tuple[int | None, int | None]:
    return file.base_row_id, file.default_row_commit_version


def _adds_of_some_files(snapshot: Snapshot, *, with_ids: bool) -> tuple[AddFile, ...]:
    """Adds for some files that have ids, or that have none: at most _FILES_A_COMMIT."""
    scan = plan_scan(snapshot, None, None, ScanOptions(keep_all=True))
    files = (file for file in scan.scan_files() if (file.base_row_id is not None) is with_ids)
    return tuple(add_action_of(file, data_change=False) for file in islice(files, _FILES_A_COMMIT))


def _check_row_counts(snapshot: Snapshot) -> None:
    """Raise UnsupportedOperationError if a file that needs ids has no row count: a file takes as many ids as it has rows."""
    scan = plan_scan(snapshot, None, None, ScanOptions(keep_all=True))
    uncounted = sum(num_records(add_action_of(file)) is None for file in scan.scan_files() if file.base_row_id is None)
    if uncounted:
        raise UnsupportedOperationError(
            f"The rows of the table at {snapshot.table_root} cannot be given ids: the statistics of {uncounted} files do not say "
            "how many rows they have. Nothing was changed. Rewrite these files first.",
            error_class="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
            sql_state="22000",
            files=uncounted,
        )
