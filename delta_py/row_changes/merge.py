"""MERGE without Spark: merge the rows of an Arrow source into a table.

    merger = TableMerger(store, source, "t.id = s.id", "s", "t")
    metrics = merger.when_matched_update_all().when_not_matched_insert_all().execute()

The source is held in memory; the table's rows stream past it, batch by batch, in threads. The source's keys tell which files can
hold matching rows (merge_join.py); no other file is read, unless a clause is about rows without a match. The first clause of its
kind whose condition is true applies to a row. Source rows without a match are inserted after all other changes.
Protocol: Requirements for Writers; Row Tracking; Add CDC File.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.definition.arrow_data import arrow_stream
from delta_py.definition.evolve import DefinitionChanges, changed_definition
from delta_py.definition.request import WriteRequest
from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.resolve import resolve_condition
from delta_py.expressions.tree import FALSE, Expression, Or, transform_columns
from delta_py.expressions.tree import Column as ColumnName
from delta_py.parquet.values.buffers import Ndarray
from delta_py.row_changes.dml import Candidates, Dml
from delta_py.row_changes.merge_clauses import (
    ResolvedClause,
    SqlClause,
    assigned_columns,
    changes_every_match,
    deletes_all_matches,
    effective_clauses,
    of_kind,
    only_inserts,
    recorded_parameters,
    resolved_clauses,
)
from delta_py.row_changes.merge_join import JoinCondition, SourceIndex, paired_rows
from delta_py.row_changes.merge_metrics import Kind, merge_metrics
from delta_py.row_changes.row_jobs import address_columns, change_rows, plan_target_scan
from delta_py.row_changes.sql_scope import SOURCE, TARGET, Scope, Side
from delta_py.row_rules.new_columns import check_duplicates
from delta_py.row_rules.row_constraints import Clock
from delta_py.row_rules.store_assignment_casts import TimeRules, assign
from delta_py.scan.planning import ROW_ADDRESS
from delta_py.snapshot import Snapshot
from delta_py.storage.storage_errors import raises_storage_errors
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import StructType, from_arrow_schema, to_arrow_type
from delta_py.write.data_files import combine_batches
from delta_py.write.rewrite import Repeats, multiple_matches
from delta_py.write.task_changes import CHANGE, CLAUSE, DELETED, FILE, INSERTED, NEW, ROW, ROW_ID, UPDATED

_CHANGE_CODES = {"delete": DELETED, "update": UPDATED, "insert": INSERTED}
# Rows of the source that are inserted at a time.
_SLICE_ROWS = 1 << 16
_UNCHANGED, _CHANGED, _REMOVED = 0, 1, 2  # a delete without a condition removes a row, and may do so several times
# Small batches of the table's rows, and of changed rows, are combined to batches of this size.
_BATCH_BYTES = 32 * 1024 * 1024


@raises_storage_errors(lambda merger: merger._store.root)
class TableMerger:
    """A MERGE that is being built. Its methods add clauses and return it; `execute` runs it on the newest version.

    source: anything with an Arrow stream, read once and held in memory. predicate: SQL over columns of both sides. source_alias,
    target_alias: their names in SQL, by default `source` and `target`; a name that only one side has needs no alias.
    files_scanned, files_skipped: how many files of the table the last `execute` has read, and left out.
    """

    def __init__(
        self,
        store: ObjectStore,
        source: Any,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        *,
        time_zone: str = "UTC",
        truncate_nanoseconds: bool = False,
        merge_schema: bool = False,
        allows_idle_matches: bool = False,
    ) -> None:
        """time_zone: the session's, as in TimeRules. truncate_nanoseconds: as in TimeRules, for the source. merge_schema: columns
        of the source that clauses assign and the table lacks are added to the table.

        allows_idle_matches: several source rows may match a row of the table if clauses apply to at most one of these matches, as
        in deltalake; otherwise all matches count, as in delta-spark. Raises InvalidOptionError when both sides have the same
        alias."""
        self._merge_schema, self._allows_idle_matches = merge_schema, allows_idle_matches
        self.files_scanned = self.files_skipped = 0
        self._store, self._source, self._predicate, self._time_zone = store, source, predicate, time_zone
        self._source_times = TimeRules(time_zone, truncate_nanoseconds)
        self._aliases = (target_alias or "target", source_alias or "source")
        self._clauses: list[SqlClause] = []
        self._source_rows: _SourceRows | None = None
        if self._aliases[0].lower() == self._aliases[1].lower():
            raise InvalidOptionError(f"The table and the source are both called {self._aliases[0]}.", option="source_alias")

    def when_matched_update(self, updates: Mapping[str, str], predicate: str | None = None) -> Self:
        """Set columns of matched rows. updates: SQL over columns of both sides, by column of the table; fields of structs by
        their path."""
        return self._add_clause(SqlClause("matched", "update", predicate, dict(updates)))

    def when_matched_update_all(self, predicate: str | None = None, except_cols: Sequence[str] | None = None) -> Self:
        """Each column of the table, except those in except_cols, gets the value of the source's column with the same name."""
        return self._add_clause(SqlClause("matched", "update", predicate, None, tuple(except_cols or ())))

    def when_matched_delete(self, predicate: str | None = None) -> Self:
        return self._add_clause(SqlClause("matched", "delete", predicate))

    def when_not_matched_insert(self, updates: Mapping[str, str], predicate: str | None = None) -> Self:
        """Insert rows of the source without a match. updates: SQL over columns of the source, by column of the table; others get
        their default, or null."""
        return self._add_clause(SqlClause("not matched", "insert", predicate, dict(updates)))

    def when_not_matched_insert_all(self, predicate: str | None = None, except_cols: Sequence[str] | None = None) -> Self:
        return self._add_clause(SqlClause("not matched", "insert", predicate, None, tuple(except_cols or ())))

    def when_not_matched_by_source_update(self, updates: Mapping[str, str], predicate: str | None = None) -> Self:
        """For rows of the table that match no row of the source. updates: SQL over columns of the table."""
        return self._add_clause(SqlClause("not matched by source", "update", predicate, dict(updates)))

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> Self:
        return self._add_clause(SqlClause("not matched by source", "delete", predicate))

    def execute(self) -> dict[str, int]:
        """Run the MERGE in one commit, or in none when nothing changes. Returns metrics by delta-spark's names.

        The method may be called again, for example after a conflict: the source stays in memory.

        Raises, before any row is read, the errors of Scope, `resolve_assignments` and check_order.
        Raises UnsupportedOperationError (DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE) if several rows of the source
        match one row of the table. This is no error if the clauses only delete matched rows without a condition, or only insert.
        With allows_idle_matches, only matches to which a clause applies count.
        Raises the errors of row_rules/conform.py for new rows, and conflicts as Transaction.commit. After an error nothing is
        changed.
        """
        clauses = effective_clauses(self._clauses)
        self._source_rows = self._source_rows or _SourceRows.of(self._source, self._source_times)
        dml = self._begin(clauses)
        clock = Clock(dml.state.write_micros, self._time_zone)
        target = Side(dml.config.schema, self._aliases[0], TARGET)
        source = Side(self._source_rows.schema, self._aliases[1], SOURCE)
        scope = Scope((target, source), clock, "search condition")
        condition = JoinCondition.of(scope.predicate(self._predicate), scope.rows)
        resolved = resolved_clauses(clauses, target, source, clock)
        merge = _Merge(dml, condition, resolved, self._source_rows.rows, self._allows_idle_matches)
        metrics = merge.run(
            recorded_parameters(self._predicate, clauses, [clause.condition for clause in clauses]),
            partial(_merge_metrics, clauses, self._source_rows.rows.num_rows, self._source_rows.elapsed_ms),
        )
        self.files_scanned, self.files_skipped = dml.files_scanned, dml.files_skipped
        return metrics

    def _begin(self, clauses: Sequence[SqlClause]) -> Dml:
        """Begin the operation on the newest version. With merge_schema, the operation also adds the columns of the source that
        clauses assign and the table lacks."""
        assert self._source_rows is not None
        snapshot = Snapshot.load(self._store)
        changes = DefinitionChanges()
        assigned_names = assigned_columns(clauses, self._source_rows.schema) if self._merge_schema else frozenset()
        source_fields = self._source_rows.schema.fields
        new_columns = tuple(f for f in source_fields if f.name.lower() in assigned_names and snapshot.schema.find(f.name) is None)
        if new_columns:
            changes = changed_definition(snapshot, StructType(new_columns), WriteRequest(mode="append", merge_schema=True))
        return Dml.on(snapshot, "MERGE", WriteRequest(time_zone=self._time_zone), changes)

    def _add_clause(self, clause: SqlClause) -> Self:
        self._clauses.append(clause)
        return self


def _merge_metrics(
    clauses: Sequence[SqlClause],
    source_row_count: int,
    elapsed_ms: int,
    metrics: Mapping[str, int],
    rows_by_clause: Mapping[int, int],
) -> dict[str, int]:
    """The metrics of the MERGE, as merge_metrics computes them, from the clauses as the caller of TableMerger wrote them."""
    kinds_and_actions = [(clause.kind, clause.action) for clause in clauses]
    return merge_metrics(kinds_and_actions, source_row_count, elapsed_ms, metrics, rows_by_clause)


# ---------------------------------------------------------------- the source


@dataclass(frozen=True, slots=True)
class _SourceRows:
    """The source in memory. schema: its columns as Delta types; rows: their values in these types, named with their prefix.
    elapsed_ms: how long reading and converting the source took."""

    schema: StructType
    rows: pa.RecordBatch
    elapsed_ms: int

    @classmethod
    def of(cls, source: Any, times: TimeRules) -> _SourceRows:
        """Read the source and convert it to Delta types. Raises TypeError for data without an Arrow stream; SchemaMismatchError
        for two columns with the same name; UnsupportedOperationError for column types that no table has, and for a column of more
        than 2 GiB of text.
        """
        start = time.monotonic()
        table = arrow_stream(source).read_all()
        schema = from_arrow_schema(table.schema)
        check_duplicates(schema)
        columns = []
        for f, column in zip(schema.fields, table.columns, strict=True):
            chunks = [assign(chunk, f.data_type, f.name, times) for chunk in column.chunks]
            columns.append(pa.chunked_array(chunks, to_arrow_type(f.data_type)))
        batches = pa.table(columns, names=[SOURCE + name for name in schema.names]).combine_chunks().to_batches()
        if len(batches) > 1:
            raise UnsupportedOperationError(
                f"The source has {table.nbytes} bytes, with more than 2 GiB in one of its columns: more than a MERGE "
                "without Spark holds. Nothing was changed. Merge it in parts."
            )
        names = [SOURCE + name for name in schema.names]
        no_rows = pa.RecordBatch.from_arrays([pa.nulls(0, column.type) for column in columns], names)
        return cls(schema, batches[0] if batches else no_rows, round((time.monotonic() - start) * 1000))


# ---------------------------------------------------------------- execution


class _Merge:
    """One execution of a MERGE. clauses: their numbers are their positions. source: the source's rows, with their prefix SOURCE.

    _matched: for each row of the source, whether it has matched a row of the table. Threads share it without a lock, because
    they only set values to true.
    """

    def __init__(
        self,
        dml: Dml,
        condition: JoinCondition,
        clauses: Sequence[ResolvedClause],
        source: pa.RecordBatch,
        allows_idle_matches: bool,
    ) -> None:
        self._dml, self._condition, self._clauses, self._source = dml, condition, clauses, source
        self._allows_idle_matches = allows_idle_matches
        self._matched = np.zeros(source.num_rows, bool)

    def run(self, parameters: Mapping[str, Any], name_metrics: Any) -> dict[str, int]:
        """Change the table and return the metrics. parameters: for the history. name_metrics: as in Dml.commit."""
        dml, inserts = self._dml, self._of_kind("not matched")
        dml.only_inserts = only_inserts(self._clauses)
        # In other cases a source row may be left out because it matches a row that stays unchanged: then that row matters too.
        if changes_every_match(self._clauses) or not inserts:
            dml.transaction.only_deleted_rows_matter()
        dml.repeats = Repeats.IGNORED if deletes_all_matches(self._clauses) else Repeats.AMBIGUOUS
        candidates = self._find_candidates()
        scan = None
        if candidates:
            columns = [f for f in dml.config.schema.fields if TARGET + f.name in self._target_columns]
            scan = plan_target_scan(dml, candidates, columns)
        make_inserts = self._insert_unmatched_rows if inserts else None
        return change_rows(dml, scan, self._make_changes, parameters, make_inserts=make_inserts, name_metrics=name_metrics)

    # ------------------------------------------------------------ properties of the clauses

    def _of_kind(self, kind: Kind) -> list[tuple[int, ResolvedClause]]:
        return of_kind(self._clauses, kind)

    @cached_property
    def _target_columns(self) -> frozenset[str]:
        """The table's and the source's columns that conditions and clauses need, with their prefixes."""
        return self._condition.columns.union(*(clause.columns for clause in self._clauses))

    @cached_property
    def _paired_columns(self) -> list[str]:
        """The columns of both sides that the clauses for matched rows need, with their prefixes."""
        return sorted(frozenset().union(*(clause.columns for _, clause in self._of_kind("matched"))))

    @cached_property
    def _source_index(self) -> SourceIndex:
        return SourceIndex(self._source, self._condition)

    # ------------------------------------------------------------ which files

    def _find_candidates(self) -> Candidates | None:
        """Find the files that may hold rows which match the source or which a clause for rows without a match changes. None when
        no row of the table can matter."""
        # A condition on the table's rows that all matching rows satisfy; None if every row may match.
        restriction = self._condition.restriction(self._source)
        unmatched_conditions = [clause.condition for _, clause in self._of_kind("not matched by source")]
        if restriction is not None and unmatched_conditions:
            # A clause without a condition applies to any row that has no match.
            conditions = [_without_prefix(condition) for condition in unmatched_conditions if condition is not None]
            alternatives = tuple(part for part in (restriction, *conditions) if part != FALSE)
            restriction = Or(alternatives) if len(conditions) == len(unmatched_conditions) else None
        if restriction == FALSE:
            return None
        if restriction is not None:
            restriction = resolve_condition(restriction, self._dml.snapshot.schema).expression
        self._source_index  # noqa: B018 - compute this cached property before the threads use it
        candidates = self._dml.find_candidates(restriction)
        return candidates if len(candidates) else None

    # ------------------------------------------------------------ changed rows

    def _make_changes(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The changed rows of the table, in the columns of task_changes.py. batches: the batches of the scan of the table."""
        table_batches = combine_batches(batches, _BATCH_BYTES)
        return _regroup_by_schema(part for batch in table_batches for part in self._make_changes_of_batch(batch))

    def _make_changes_of_batch(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """As _make_changes, for one batch of the table: changes of matched rows, then of rows without a match."""
        # target, source: row numbers in the batch and in the source.
        names = [name if name == ROW_ADDRESS else TARGET + name for name in batch.schema.names]
        rows = batch.rename_columns(names)
        if self._allows_idle_matches:
            target = yield from self._apply_to_each_match(rows)
        else:
            target, source = self._match_each_row_once(rows)
            if self._of_kind("matched") and len(target):
                yield from self._apply_clauses("matched", self._pair_rows(rows, target, source))
        if self._of_kind("not matched by source"):
            is_unmatched = np.ones(rows.num_rows, bool)
            is_unmatched[target] = False
            yield from self._apply_clauses("not matched by source", rows.filter(pa.array(is_unmatched)))

    def _pair_rows(self, rows: pa.RecordBatch, target: Ndarray, source: Ndarray) -> pa.RecordBatch:
        """The matches as rows with the columns that clauses for matched rows need, and the address of the table's row. target,
        source: for each match, the row number in `rows` and in the source."""
        pairs = paired_rows(rows, target, self._source, source, [*self._paired_columns])
        return pairs.append_column(ROW_ADDRESS, rows.column(ROW_ADDRESS).take(pa.array(target)))

    def _apply_to_each_match(self, rows: pa.RecordBatch) -> Generator[pa.RecordBatch, None, Ndarray]:
        """Apply to each match the first clause whose condition is true; returns the numbers of the rows with a match.

        Raises UnsupportedOperationError if clauses apply to several matches of a row, unless these only delete it.
        """
        has_match = np.zeros(rows.num_rows, bool)
        changes = np.full(rows.num_rows, _UNCHANGED, np.int8)  # what has happened to each row so far
        for target, source in self._source_index.matches(rows):
            self._matched[source], has_match[target] = True, True
            if not self._of_kind("matched"):
                continue
            for number, clause, pairs in self._split_by_clause("matched", self._pair_rows(rows, target, source)):
                # paired_rows puts the row numbers in the batch into the column "".
                positions = _choose_matches_to_change(changes, pairs.column("").to_numpy(), clause)
                if len(positions):
                    yield self._apply_clause(number, clause, pairs.take(pa.array(positions)))
        return np.flatnonzero(has_match)

    def _match_each_row_once(self, rows: pa.RecordBatch) -> tuple[Ndarray, Ndarray]:
        """The number of each matching row of the batch, once, and the number of one source row that it matches.

        Raises UnsupportedOperationError if a row has several matches, unless the clauses only insert or delete every match.
        """
        # For each row of the batch, the number of a source row that it matches; -1 before a match.
        matched_source = np.full(rows.num_rows, -1, np.int64)
        for target, source in self._source_index.matches(rows):
            self._matched[source] = True
            is_new = matched_source[target] < 0
            # Whether a row has matched in an earlier slice, or several times in this one: then it appears twice in succession,
            # because `target` is in ascending order.
            is_repeated = not is_new.all() or (np.diff(target) == 0).any()
            if is_repeated and not (only_inserts(self._clauses) or deletes_all_matches(self._clauses)):
                raise multiple_matches("a row of the target matches more than one row of the source")
            # A row that repeats in this slice gets one of its source rows; where repeats are allowed, it does not matter which.
            matched_source[target[is_new]] = source[is_new]
        matching_rows = np.flatnonzero(matched_source >= 0)
        return matching_rows, matched_source[matching_rows]

    def _insert_unmatched_rows(self) -> Iterator[pa.RecordBatch]:
        """The changes that insert source rows without a match. Called after the threads have found all matches."""
        unmatched_rows = np.flatnonzero(~self._matched)
        slices = (unmatched_rows[start : start + _SLICE_ROWS] for start in range(0, len(unmatched_rows), _SLICE_ROWS))
        return _regroup_by_schema(
            part for numbers in slices for part in self._apply_clauses("not matched", self._source.take(pa.array(numbers)))
        )

    def _apply_clauses(self, kind: Kind, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The changes that the clauses of a kind make of the rows, in the columns of task_changes.py."""
        return (self._apply_clause(*applied) for applied in self._split_by_clause(kind, rows))

    def _split_by_clause(self, kind: Kind, rows: pa.RecordBatch) -> Iterator[tuple[int, ResolvedClause, pa.RecordBatch]]:
        """Give each row to the first clause of the kind whose condition is true for it. Returns the number of each clause that
        gets rows, the clause, and its rows."""
        for number, clause in self._of_kind(kind):
            matching_rows = rows
            if clause.condition is not None and rows.num_rows:
                is_true = pc.fill_null(evaluate(clause.condition, rows), False)
                matching_rows, rows = rows.filter(is_true), rows.filter(pc.invert(is_true))
            if matching_rows.num_rows:
                yield number, clause, matching_rows

    def _apply_clause(self, number: int, clause: ResolvedClause, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The changes that one clause makes of the rows, in the columns of task_changes.py: the addresses of the old rows, the
        kind of change, the clause's number, and the new rows if the clause makes some. An inserted row has no address: null."""
        code, count = _CHANGE_CODES[clause.action], rows.num_rows
        if code == INSERTED:
            columns = {FILE: pa.nulls(count, pa.int32()), ROW: pa.nulls(count, pa.int64())}
            if self._dml.row_ids is not None:
                columns[ROW_ID] = pa.nulls(count, pa.int64())
            columns[CHANGE] = pa.array(np.full(count, INSERTED, np.int8))
        else:
            columns = address_columns(self._dml, rows, code)
        columns[CLAUSE] = pa.array(np.full(count, number, np.int32))
        return pa.record_batch(columns if clause.rows is None else {**columns, NEW: clause.rows.compute(rows)})


def _choose_matches_to_change(changes: Ndarray, rows: Ndarray, clause: ResolvedClause) -> Ndarray:
    """The positions, in `rows`, of the matches that a clause may apply: for a row with several matches that is deleted, the
    first.

    rows: the row number of each match to which the clause applies. changes: how each row was changed so far; it is updated.
    Raises UnsupportedOperationError as _apply_to_each_match.
    """
    only_removes = clause.action == "delete" and clause.condition is None  # may apply to a row several times
    earlier_changes = changes[rows]
    if only_removes:
        is_ambiguous = (earlier_changes == _CHANGED).any()
    else:
        is_ambiguous = (earlier_changes != _UNCHANGED).any() or len(np.unique(rows)) < len(rows)
    if is_ambiguous:
        raise multiple_matches("clauses apply to more than one match of a row of the target")
    if not only_removes:
        changes[rows] = _CHANGED
        return np.arange(len(rows))
    _, first_matches = np.unique(rows, return_index=True)
    # A row that an earlier slice of matches has removed is not removed again.
    first_matches = first_matches[changes[rows[first_matches]] == _UNCHANGED]
    changes[rows] = _REMOVED
    return np.sort(first_matches)


def _without_prefix(condition: Expression) -> Expression:
    """The condition over the table's own names, without the prefix that its columns have in rows of both sides."""
    return transform_columns(condition, lambda path: ColumnName((path[0].removeprefix(TARGET), *path[1:])))


def _regroup_by_schema(parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the same rows in fewer batches, each with the rows of one schema: the batches of different clauses have different
    schemas and alternate, and batches of few rows cost much."""
    pending: dict[pa.Schema, list[pa.RecordBatch]] = {}
    sizes: dict[pa.Schema, int] = {}
    for part in parts:
        pending.setdefault(part.schema, []).append(part)
        sizes[part.schema] = sizes.get(part.schema, 0) + part.nbytes
        if sizes[part.schema] >= _BATCH_BYTES:
            yield pa.concat_batches(pending.pop(part.schema))
            del sizes[part.schema]
    for batches in pending.values():
        yield pa.concat_batches(batches)
