"""The driver's side of a DELETE, UPDATE or MERGE, and of a WRITE that replaces matching rows: it chooses the files that may hold
the rows, the changes that go back to them, and the commit.

    dml = Dml.begin(store, "DELETE", time_zone="UTC")
    candidates = dml.find_candidates(predicate)      # the files that may hold the rows, numbered; recorded as read
    ... tasks: task_changes.write_changes(dml.change_state(), rows) -> TaskChanges
    files = dml.touched_files(changes)               # the files that lose rows; checks the row counts
    ... tasks: rewrite.remove_rows(files, dml.rewrite) -> RemovedRows
    version = dml.commit(parameters, changes, removals)

The caller calls `abort` when anything before `commit` fails, and `close` after it.
Protocol: Requirements for Writers; Deletion Vectors; Add CDC File; Row Tracking.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.commit.action_rules import append_only_error
from delta_py.commit.transaction import Transaction
from delta_py.definition.evolve import DefinitionChanges
from delta_py.definition.overwrite import replace_metrics
from delta_py.definition.request import WriteRequest
from delta_py.errors import RowCountMismatchError
from delta_py.expressions.skipping_conditions import is_exact_on_partitions
from delta_py.expressions.tree import Call, Cast, Column, Expression, IsNull, Literal, Not, Or, conjuncts, nodes_of
from delta_py.protocol.table_config import TableConfig
from delta_py.row_changes.after_commit import after_commit
from delta_py.row_rules.write_state import WriteState, write_state
from delta_py.scan.file_groups import scan_files
from delta_py.scan.file_pruner import FilePruner
from delta_py.scan.planning import NUMBERED_FILE_SCHEMA, ScanOptions
from delta_py.scan.scan_state import ScanFile
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats import parse_stats
from delta_py.storage.store import ObjectStore
from delta_py.write.data_files import WrittenFiles, delete_files, delete_files_of
from delta_py.write.rewrite import RemovedRows, Repeats, Rewrite, TouchedFile, remove_action_of, row_count_of
from delta_py.write.row_ids import RowIdColumns
from delta_py.write.task_changes import ChangeState, TaskChanges, TouchedRows

# A change has two jobs: the first one writes new rows and reports the positions of old ones, the second one removes the old rows
# from their files. This is about the most work of one task of the second job: bytes of files that it reads, or rows whose
# positions it writes.
_TASK_FILE_BYTES = 128 * 1024 * 1024
_TASK_ROWS = 64 * 1024 * 1024
_NO_CHANGES = DefinitionChanges()


@dataclass(frozen=True, slots=True)
class Candidates:
    """Files that may hold rows which an operation changes. files: NUMBERED_FILE_SCHEMA; row i is file number i."""

    files: pa.Table

    @classmethod
    def numbered(cls, files: pa.Table) -> Candidates:
        """Number the files in their order. files: FILE_SCHEMA."""
        numbers = pa.array(np.arange(files.num_rows, dtype=np.int32))
        return cls(files.append_column(NUMBERED_FILE_SCHEMA.field("number"), numbers))

    def __len__(self) -> int:
        return int(self.files.num_rows)

    def of(self, numbers: Sequence[int]) -> Iterator[ScanFile]:
        """The files with these numbers, in their order."""
        for batch in self.files.take(pa.array(numbers, pa.int64())).to_batches(max_chunksize=4096):
            yield from scan_files(batch)

    def write_stream(self, sink: pa.NativeFile) -> None:
        """Write the list, as an Arrow stream, for the process that plans the scan."""
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_stream(sink, self.files.schema, options=options) as writer:
            writer.write_table(self.files, max_chunksize=65_536)


@dataclass(frozen=True, slots=True)
class ChosenFiles:
    """The files that an operation changes. candidates: the files to read (NUMBERED_FILE_SCHEMA). whole_files: files whose rows
    are all deleted; they are removed without a read.
    """

    candidates: pa.Table
    whole_files: tuple[ScanFile, ...]


class Dml:
    """One operation on the newest version of a table.

    The caller may set only_inserts (no row is removed, so the change feed needs no change data files), recorded_operation (the
    operation's name in the history) and repeats (what it means if the first job passes the same row more than once).
    files_scanned, files_skipped: how many files `find_candidates` selected and left out.
    """

    def __init__(
        self, snapshot: Snapshot, operation: str, request: WriteRequest, state: WriteState, transaction: Transaction
    ) -> None:
        self.snapshot, self.operation, self.state, self.transaction = snapshot, operation, state, transaction
        self._request = request
        self.recorded_operation = operation
        self.files_scanned = self.files_skipped = 0
        self.repeats = Repeats.FORBIDDEN
        self.only_inserts = False
        self._store = snapshot.store
        self._candidates = Candidates.numbered(NUMBERED_FILE_SCHEMA.empty_table().drop_columns(["number"]))
        self._whole_files: tuple[ScanFile, ...] = ()
        self._started = time.time()  # not monotonic: another machine may carry out the commit

    @classmethod
    def begin(cls, store: ObjectStore, operation: str, *, time_zone: str) -> Self:
        """Begin the operation on the newest version of a table, with the table's settings. Raises what Snapshot.load and `on`
        raise."""
        return cls.on(Snapshot.load(store), operation, WriteRequest(time_zone=time_zone))

    @classmethod
    def on(cls, snapshot: Snapshot, operation: str, request: WriteRequest, changes: DefinitionChanges = _NO_CHANGES) -> Self:
        """Begin the operation on a version of a table. operation: DELETE, UPDATE, MERGE or WRITE. request: its time zone,
        isolation level, file settings, auto compaction, text for the history, and application transaction (see
        Transaction.set_transaction) apply. changes: how the operation changes the table's definition (schema evolution).

        Raises what write_state raises, UnsupportedOperationError (DELTA_CANNOT_MODIFY_APPEND_ONLY) for an append-only table. A
        MERGE is let through, because it may only insert rows; the commit raises the error if it removes rows.
        """
        config = changes.config(snapshot)
        state = write_state(config, snapshot.store, snapshot.version, new_rows=operation != "DELETE")
        if config.enabled("delta.appendOnly") and operation != "MERGE":
            raise append_only_error(snapshot.table_root)
        state = replace(request.with_file_settings(state), time_zone=request.time_zone, keeps_identities=True)
        transaction = Transaction(snapshot, isolation=request.isolation)
        changes.add_to(transaction)
        if request.txn_app_id is not None and request.txn_version is not None:
            transaction.set_transaction(request.txn_app_id, request.txn_version)
        return cls(snapshot, operation, request, state, transaction)

    @property
    def config(self) -> TableConfig:
        """The table as it will be after the commit."""
        return self.transaction.config

    @property
    def store(self) -> ObjectStore:
        return self._store

    # ------------------------------------------------------------ which files

    def find_candidates(self, predicate: Expression | None) -> Candidates:
        """Find the files that may hold rows for which the predicate is true (None: all files), and retain them for the next
        steps. The transaction records the files and the predicate as read.

        predicate: true for all rows that the operation changes, and perhaps for others; over the columns of the version that was
        read.
        """
        scan = self.transaction.scan(predicate, options=self._scan_options)
        self.files_scanned, self.files_skipped = scan.report.files_kept, scan.report.files_total - scan.report.files_kept
        self._candidates = Candidates.numbered(scan.files)
        return self._candidates

    def split_off_whole_files(self, predicate: Expression | None) -> Candidates:
        """Split the candidates of `find_candidates`: files whose partition values and statistics prove that all of their rows are
        deleted are removed by `commit`, without being read. Returns the other candidates, with new numbers.

        predicate: true for exactly the rows to delete; None for all rows.
        """
        files = self._candidates.files
        is_whole = self._find_whole_files(files, predicate)
        whole_files = files.filter(is_whole)
        self._whole_files = tuple(file for batch in whole_files.to_batches() for file in scan_files(batch))
        self._candidates = Candidates.numbered(files.filter(pc.invert(is_whole)).drop_columns(["number"]))
        return self._candidates

    @property
    def chosen(self) -> ChosenFiles:
        """The result of find_candidates and split_off_whole_files."""
        return ChosenFiles(self._candidates.files, self._whole_files)

    def apply_chosen_files(self, predicate: Expression | None, chosen: ChosenFiles) -> None:
        """Apply the files that a copy of this operation has chosen in another process, so that this one commits with them.
        predicate: the one that the copy passed to find_candidates. chosen: the copy's `chosen`.
        """
        self._candidates, self._whole_files = Candidates(chosen.candidates), chosen.whole_files
        self.transaction.read_rows(predicate, self._scan_options.timezone)
        self.transaction.read_files([*chosen.candidates["path"].to_pylist(), *(file.path for file in chosen.whole_files)])

    @property
    def _scan_options(self) -> ScanOptions:
        return ScanOptions(timezone=self.state.time_zone, keep_all=True)

    def _find_whole_files(self, files: pa.Table, predicate: Expression | None) -> pa.Array:
        """For each file, whether the predicate is true for all of its rows, by partition values and statistics."""
        partitions = frozenset((name,) for name in self.snapshot.config.partition_columns)
        remaining_parts = () if predicate is None else conjuncts(predicate)
        # The candidates already satisfy the parts about partition columns alone, for all of their rows.
        remaining_parts = tuple(part for part in remaining_parts if not is_exact_on_partitions(part, partitions))
        if not remaining_parts:
            return pa.array(np.ones(files.num_rows, bool))
        # If a commit has change data files, they must hold all of its changes: then no file may be removed unread. And
        # _not_surely_true cannot express that a literal NULL makes a part null.
        if self.rewrite.change_data or any(_has_null_literal(part) for part in remaining_parts):
            return pa.array(np.zeros(files.num_rows, bool))
        # The pruner selects the files that may have a row for which the predicate is not true. The other files are whole.
        pruner = FilePruner.of(self.snapshot.config, _not_surely_true(remaining_parts), self.state.time_zone)
        parts = []
        for batch in files.to_batches(max_chunksize=65_536):
            matching = pruner.prune(batch, parse_stats(batch["stats"], pruner.stats_leaves))
            parts.append(pc.invert(pc.is_in(batch["number"], matching["number"])))
        return pa.chunked_array(parts, pa.bool_()).combine_chunks()

    # ------------------------------------------------------------ input of the tasks

    @cached_property
    def row_ids(self) -> RowIdColumns | None:
        """The columns that carry the ids of changed and copied rows to their new files; None for a table without row tracking."""
        return RowIdColumns.of(self.config)

    @property
    def writes_change_data(self) -> bool:
        """Whether the table's change feed needs change data files from this operation. It does not for deletions by vectors,
        nor for files that hold only new rows: the feed reads those rows from the files themselves.
        """
        if not self.config.enabled("changeDataFeed") or self.only_inserts:
            return False
        return self.operation in ("UPDATE", "MERGE") or not self.config.enabled("deletionVectors")

    @property
    def rewrite(self) -> Rewrite:
        """How the tasks of the second job remove rows from their files."""
        return Rewrite.of(self.config, self.state, change_data=self.writes_change_data, repeats=self.repeats)

    def change_state(self) -> ChangeState:
        """The state for the tasks that receive the changed rows."""
        store, write_id = self.state.store, self.state.write_id
        if self.operation == "DELETE":
            return ChangeState(store, write_id)
        state = self.state if self.row_ids is None else self.row_ids.add_to_state(self.state)
        return ChangeState(store, write_id, state, self.row_ids, self.writes_change_data)

    # ------------------------------------------------------------ between the jobs

    def touched_files(self, changes: Sequence[TaskChanges]) -> list[TouchedFile]:
        """The files from which the second job removes rows, with the positions of all rows that the tasks of the first job
        reported. Raises RowCountMismatchError when the counts of new and old rows do not match.
        """
        # The numbers of new rows, of updated rows and of inserted ones, as the tasks counted them.
        updated = sum(part.updated for part in changes)
        inserted = sum(part.inserted for part in changes)
        touched_by_file: dict[int, list[TouchedRows]] = {}
        for part in changes:
            for rows in part.touched:
                touched_by_file.setdefault(rows.file, []).append(rows)
        # The number of old rows that updated rows replace.
        replaced = sum(rows.updated_count for changed_rows in touched_by_file.values() for rows in changed_rows)
        written = sum(part.written.row_count for part in changes)
        if replaced != updated or written != updated + inserted:
            raise RowCountMismatchError(
                f"{self.operation} was to replace {replaced} rows by {updated} and to insert {inserted}, and {written} rows were "
                "written. Nothing was committed. This is a bug in pydelta: please report it.",
                replaced=replaced,
                updated=updated,
                inserted=inserted,
                written=written,
            )
        numbers = sorted(touched_by_file)
        files = self._candidates.of(numbers)
        return [_touched_file(file, touched_by_file[number]) for number, file in zip(numbers, files, strict=True)]

    def group_for_tasks(self, files: Sequence[TouchedFile], parallelism: int) -> list[list[TouchedFile]]:
        """Group the files for the tasks of the second job, with about equal work in each group. parallelism: the number of
        groups. There are fewer groups if there are fewer files, and more groups if a group would get too much work."""
        reads_files = self.writes_change_data or not self.config.enabled("deletionVectors")
        work_of_files = [file.file.size_bytes if reads_files else file.deleted_count + file.updated_count for file in files]
        most_work = _TASK_FILE_BYTES if reads_files else _TASK_ROWS
        # -(-a // b) rounds a / b up.
        count = min(len(files), max(parallelism, -(-sum(work_of_files) // most_work)))
        # From the largest file to the smallest, each goes to the group with the least work so far.
        loads = [(0, number) for number in range(count)]  # a heap of (work, number of the group)
        groups: list[list[TouchedFile]] = [[] for _ in loads]
        for work, file in sorted(zip(work_of_files, files, strict=True), key=lambda pair: pair[0], reverse=True):
            load, number = heapq.heappop(loads)
            groups[number].append(file)
            heapq.heappush(loads, (load + work, number))
        return groups

    def is_light(self, files: Sequence[TouchedFile]) -> bool:
        """Whether the second job would only write a few small deletion vectors: the driver does that faster than a job."""
        if self.writes_change_data or not self.config.enabled("deletionVectors") or len(files) > _FEW_FILES:
            return False
        vectors = [vector for file in files for vector in (*file.deleted, *file.updated, file.file.deletion_vector)]
        return sum(vector.size_in_bytes for vector in vectors if vector is not None) <= _FEW_BYTES

    # ------------------------------------------------------------ commit

    def commit(
        self,
        parameters: Mapping[str, Any],
        changes: Sequence[TaskChanges],
        removals: RemovedRows,
        metrics: Mapping[str, int] | None = None,
        *,
        name_metrics: MetricNames | None = None,
    ) -> tuple[int, dict[str, int]]:
        """Commit, unless nothing changes; a transaction of an application is always recorded, so that a repetition does nothing
        either. Returns the version (the version that was read if nothing was committed) and the metrics.

        parameters: those of the operation in the history. changes, removals: the results of the first and the second job.
        metrics: additional metrics, which override those computed here. name_metrics: makes the operation's own metrics from all
        metrics and from the row count of each clause of a MERGE. Raises as Transaction.commit, and RowCountMismatchError.
        """
        written = WrittenFiles.of_all(part.written for part in changes)
        whole_removals = WrittenFiles(removes=tuple(remove_action_of(file) for file in self._whole_files))
        try:
            self._check_rows(changes, removals)
        except RowCountMismatchError:
            self.abort()
            raise
        all_metrics = {**self._metrics(written, removals), **(metrics or {})}
        all_metrics["executionTimeMs"] = round((time.time() - self._started) * 1000)
        if name_metrics is not None:
            all_metrics = name_metrics(all_metrics, _rows_by_clause(changes))
        all_files = WrittenFiles.of_all([written, removals.written, whole_removals])
        if not (all_files.adds or all_files.removes or self._changes_table() or self.transaction.is_named):
            delete_files(self._store, all_files.new_paths)
            self.transaction.commit_nothing()
            return self.snapshot.version, all_metrics
        self.transaction.add(all_files)
        user_metadata = self._request.user_metadata
        version = self.transaction.commit(self.recorded_operation, parameters, metrics=all_metrics, user_metadata=user_metadata)
        after_commit(self._store, self.transaction.config, version, all_files, self._request.auto_compact)
        return version, all_metrics

    def _changes_table(self) -> bool:
        """Whether the operation changes the table's definition."""
        return (self.config.metadata, self.config.protocol) != (self.snapshot.metadata, self.snapshot.protocol)

    def _check_rows(self, changes: Sequence[TaskChanges], removals: RemovedRows) -> None:
        """Raise RowCountMismatchError unless the second job removed as many rows as the first job reported."""
        touched = [rows for part in changes for rows in part.touched]
        updated = sum(rows.updated_count for rows in touched)
        deleted = sum(rows.deleted_count for rows in touched)
        # If rows may be passed more than once, the first job counts each pass, and the removal counts the row once.
        is_repeat_possible = self.repeats is Repeats.IGNORED and removals.deleted <= deleted
        if removals.updated != updated or (removals.deleted != deleted and not is_repeat_possible):
            raise RowCountMismatchError(
                f"{self.operation} found {deleted} rows to delete and {updated} to update, and took {removals.deleted} and "
                f"{removals.updated} out of their files. Nothing was committed. This is a bug in pydelta: please report it.",
                deleted=deleted,
                updated=updated,
            )

    def _metrics(self, written: WrittenFiles, removals: RemovedRows) -> dict[str, int]:
        """Metrics under delta-spark's names, counted as delta-spark counts: an UPDATE "removes" each file from which it takes
        rows, though the file stays with a larger vector; an updated vector counts as one removed and one added. numDeletedRows is
        left out if the statistics of a whole file do not tell its row count.
        """
        if self.operation == "WRITE":
            return replace_metrics(written, removals)
        rewritten_paths = {add.path for add in removals.written.adds}
        removed_files = [remove for remove in removals.written.removes if remove.path not in rewritten_paths]
        vectors = {add.path for add in removals.written.adds if add.deletion_vector is not None}
        added = [*written.adds, *(add for add in removals.written.adds if add.path not in vectors)]
        whole_row_count = row_count_of(self._whole_files)
        vectors_of_whole = sum(file.deletion_vector is not None for file in self._whole_files)
        metrics = {
            "numRemovedFiles": len(self._whole_files)
            + len(removals.written.removes if self.operation == "UPDATE" else removed_files),
            "numRemovedBytes": sum(r.size_bytes or 0 for r in removed_files) + sum(file.size_bytes for file in self._whole_files),
            "numAddedFiles": len(added),
            "numAddedBytes": sum(add.size_bytes for add in added),
            "numAddedChangeFiles": len(written.cdc) + len(removals.written.cdc),
            "numCopiedRows": removals.copied,
            "numDeletionVectorsAdded": removals.vectors_added + removals.vectors_updated,
            "numDeletionVectorsRemoved": removals.vectors_removed + removals.vectors_updated + vectors_of_whole,
            "numDeletionVectorsUpdated": removals.vectors_updated,
        }
        if self.operation != "DELETE":
            metrics["numUpdatedRows"] = removals.updated
        if self.operation != "UPDATE" and whole_row_count is not None:
            metrics["numDeletedRows"] = removals.deleted + whole_row_count
        return metrics

    def abort(self) -> None:
        """Delete all files that the operation wrote, found by the write id in their names."""
        delete_files_of(self._store, self.state.write_id)

    def close(self, changes: Sequence[TaskChanges]) -> None:
        """Delete the files with row positions that the tasks of the first job left for the second one."""
        delete_files(self._store, [path for part in changes for path in part.scratch])


MetricNames: TypeAlias = Callable[[Mapping[str, int], Mapping[int, int]], dict[str, int]]
"""Makes an operation's own metrics from those of Dml.commit, and from the row count of each clause, by the clause's number."""


def _rows_by_clause(changes: Sequence[TaskChanges]) -> dict[int, int]:
    """How many rows each clause of a MERGE made, by the clause's number."""
    row_counts: Counter[int] = Counter()
    for part in changes:
        row_counts.update(dict(part.by_clause))
    return row_counts


# The driver itself writes the deletion vectors of at most this many files, if their row positions have at most this many bytes.
_FEW_FILES, _FEW_BYTES = 200, 4 * 1024 * 1024


def _not_surely_true(parts: Sequence[Expression]) -> Expression:
    """A condition that is true for each row for which one of the parts is false or may be null: a part is null only if a column,
    a cast or the result of a function in it is null.
    """
    nullable = dict.fromkeys(node for part in parts for node in nodes_of(part) if isinstance(node, Column | Cast | Call))
    return Or((*(Not(part) for part in parts), *map(IsNull, nullable)))


def _has_null_literal(expression: Expression) -> bool:
    """Whether the expression contains a literal NULL: it may then be null although no column, cast or function in it is."""
    return any(isinstance(node, Literal) and node.value is None for node in nodes_of(expression))


def _touched_file(file: ScanFile, changed_rows: Sequence[TouchedRows]) -> TouchedFile:
    """The file with the positions of all rows that are removed from it. changed_rows: the rows that each task reported."""
    return TouchedFile(
        file,
        deleted=tuple(rows.deleted for rows in changed_rows if rows.deleted is not None),
        updated=tuple(rows.updated for rows in changed_rows if rows.updated is not None),
        deleted_count=sum(rows.deleted_count for rows in changed_rows),
        updated_count=sum(rows.updated_count for rows in changed_rows),
    )
