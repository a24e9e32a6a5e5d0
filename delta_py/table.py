"""DeltaTable: a Delta table in Python without Spark, Arrow out.

    table = DeltaTable("/data/events", version=3)
    table.to_arrow(columns=["id", "day"], filter="day >= date'2024-01-01' AND id IN (1, 2)")

Short methods that combine the lower layers: snapshot, scan planning, the reader, the log's history. Each method imports what it
needs except the snapshot, so that a caller who only needs a schema loads nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from operator import index
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import pyarrow as pa

from delta_py.deltalake_methods import DeltalakeMethods, columns_in
from delta_py.errors import InvalidOptionError
from delta_py.object_stores.open_store import PathLike, open_store, path_text
from delta_py.protocol.actions import Metadata, Protocol
from delta_py.scan.time_travel import named_version, to_timestamp_ms
from delta_py.snapshot import Snapshot
from delta_py.storage.storage_errors import raises_storage_errors, storage_failures
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from delta_py.table_methods.table_maintenance import MaintenanceMethods
from delta_py.types.schema import StructType, to_arrow_schema

if TYPE_CHECKING:
    import pandas as pd

    from delta_py.alter.table_alterer import TableAlterer
    from delta_py.expressions.tree import Expression
    from delta_py.report.report import Report
    from delta_py.row_changes.merge import TableMerger
    from delta_py.scan.planning import Scan, ScanOptions
    from delta_py.table_methods.table_summary import TableSummary

_READ_THREADS = 4


@raises_storage_errors(lambda table: table.snapshot.table_root)
class DeltaTable(MaintenanceMethods, DeltalakeMethods):
    """One version of a table. It stays at that version until load_as_version or update_incremental move it to another one.

    path: a directory or URL of the table's root; `path@v12` and `path@yyyyMMddHHmmssSSS` name a version too.
    version: read this one. timestamp: read the newest version committed at or before this time (text as Spark casts
        it, a datetime, a date, or ms since 1970; without a zone it is read in session_timezone).
    store: the storage to use instead of the one for the path's scheme.
    storage_options: settings of an object store such as endpoints and credentials, by the names of StorageOptions.
    Raises TableNotFoundError, VersionNotFoundError, TimestampOutOfRangeError, CorruptTableError,
    UnsupportedTableFeatureError; InvalidOptionError for version and timestamp together. If a file of the table cannot be read or
    written, every method raises StorageError, and nothing else.
    """

    _summary: tuple[Snapshot, TableSummary] | None = None  # the last summary that was made, with its snapshot

    def __init__(
        self,
        path: PathLike,
        *,
        version: SupportsIndex | None = None,
        timestamp: str | date | int | None = None,
        session_timezone: str = "UTC",
        store: ObjectStore | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        path = path_text(path)
        timestamp_ms = None if timestamp is None else to_timestamp_ms(timestamp, session_timezone)
        options = StorageOptions.of(storage_options or {})
        if version is None and timestamp_ms is None and store is None:
            with storage_failures(path):
                suffix = named_version(path, session_timezone, options)
            if suffix is not None:
                path, version, timestamp_ms = suffix.path, suffix.version, suffix.timestamp_ms
        if isinstance(version, SupportsIndex):
            version = index(version)
        elif version is not None:
            raise InvalidOptionError(f"The version is {version!r}, and must be a whole number.", option="version", value=version)
        if version is not None and timestamp_ms is not None:
            raise InvalidOptionError(
                "Give version or timestamp, not both.", error_class="DELTA_ONEOF_IN_TIMETRAVEL", sql_state="42601"
            )
        self._session_timezone = session_timezone
        store = store or open_store(path, options)
        with storage_failures(store.root):
            self._snapshot = Snapshot.load(store, version=version, timestamp_ms=timestamp_ms)

    def __repr__(self) -> str:
        """A short description of this version, from its log. Opens no data file, and never raises: it says what is wrong with a
        broken table."""
        return self._make_summary().text()

    def _repr_html_(self) -> str:
        """A short description of this version for notebooks, as HTML. Never raises."""
        return self._make_summary().html()

    def _make_summary(self) -> TableSummary:
        """The summary of the current snapshot. It is made at most once, unless it has a problem: then the next call tries
        again."""
        from delta_py.table_methods.table_summary import TableSummary, summary_of, summary_or_problem

        if self._summary is None or self._summary[0] is not self._snapshot:
            summary = summary_or_problem(TableSummary("not opened"), lambda: summary_of(self._snapshot))
            if summary.problem is not None:
                return summary
            self._summary = (self._snapshot, summary)
        return self._summary[1]

    @classmethod
    def convert(
        cls,
        path: PathLike,
        partition_schema: StructType | pa.Schema | None = None,
        *,
        collect_stats: bool = True,
        configuration: Mapping[str, str] | None = None,
        name: str | None = None,
        description: str | None = None,
        session_timezone: str = "UTC",
        store: ObjectStore | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Make a directory of Parquet files a table, by writing a log next to them; the files do not change. An existing table is
        returned unchanged.

        partition_schema: the columns that the names of directories (`day=2024-05-01/`) represent, in their order.
        collect_stats: read statistics from the files' footers. configuration: table properties. Raises as
        copies/convert_to_delta.py.
        """
        from delta_py.copies.convert_to_delta import ConvertRequest, convert  # only this method needs it

        partitions = None if partition_schema is None else columns_in(partition_schema, "partition_schema")
        store = store or open_store(path, StorageOptions.of(storage_options or {}))
        request = ConvertRequest(
            partitions, collect_stats, dict(configuration or {}), name, description, time_zone=session_timezone
        )
        with storage_failures(store.root):
            convert(store, request)
        return cls(path, session_timezone=session_timezone, store=store)

    # ------------------------------------------------------------ description

    @property
    def version(self) -> int:
        return self._snapshot.version

    @property
    def snapshot(self) -> Snapshot:
        """The state of this version, for code that needs more than the methods of this class."""
        return self._snapshot

    @property
    def metadata(self) -> Metadata:
        return self._snapshot.metadata

    @property
    def protocol(self) -> Protocol:
        return self._snapshot.protocol

    @property
    def struct_type(self) -> StructType:
        """The schema in the log."""
        return self._snapshot.schema

    def schema(self) -> pa.Schema:
        """The schema of the rows that `to_arrow` returns."""
        return to_arrow_schema(self._snapshot.schema)

    def files(self) -> pa.Table:
        """The version's data files, one row each: path, partition values, size (bytes), times (ms), deletion vector, stats.

        Raises what Snapshot.file_batches raises."""
        return self._snapshot.files()

    def history(self, limit: int | None = None) -> pa.Table:
        """The commits that the log still contains, newest first, with the columns of DESCRIBE HISTORY."""
        from delta_py.log.history import history  # only this method needs it

        return history(self._snapshot.store, limit)

    def detail(self) -> pa.Table:
        """One row about this version, with the columns of DESCRIBE DETAIL."""
        from delta_py.definition.detail import detail_rows  # only this method needs it

        return detail_rows(self._snapshot)

    def explain_files(self, filter: str | Expression | None = None) -> pa.Table:
        """Which files a read with the filter would read, and why it reads or skips each file: EXPLANATION_SCHEMA of
        scan/explanation.py, one row per file of this version."""
        from delta_py.scan.explanation import explain_files  # only this method needs it

        return explain_files(self._snapshot, self._predicate(filter), self._session_timezone)

    # ------------------------------------------------------------ rows

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: str | Expression | None = None,
        *,
        ignore_missing_files: bool = False,
        verify_checksums: bool = False,
    ) -> Scan:
        """The plan of a read: `.report` has the numbers of files and bytes after pruning.

        ignore_missing_files: a missing data file is skipped, with a warning, instead of an error. A missing deletion
        vector is always an error: without it, deleted rows would come back. verify_checksums: the read compares each page that
        it decodes with its checksum, and raises DataFileError for a damaged one.
        """
        from delta_py.scan.planning import plan_scan  # only this method needs it

        options = self._scan_options(ignore_missing_files, verify_checksums)
        return plan_scan(self._snapshot, columns, self._predicate(filter), options)

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        filter: str | Expression | None = None,
        *,
        ignore_missing_files: bool = False,
        verify_checksums: bool = False,
    ) -> pa.RecordBatchReader:
        """The rows as a stream of batches; memory is bounded by a batch. Arguments as in scan."""
        scan = self.scan(columns, filter, ignore_missing_files=ignore_missing_files, verify_checksums=verify_checksums)
        return self._reader(scan)

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        filter: str | Expression | None = None,
        *,
        ignore_missing_files: bool = False,
        verify_checksums: bool = False,
    ) -> pa.Table:
        """The rows for which `filter` (SQL text in Spark's dialect) is true. Other arguments as in scan.

        Rows come in the order of the files in the log, and within a file in its order.
        """
        from delta_py.parquet.file_reader import read_files  # only this method needs it

        scan = self.scan(columns, filter, ignore_missing_files=ignore_missing_files, verify_checksums=verify_checksums)
        # No limit for the bytes of a group: the files are only spread over the threads.
        groups = scan.pack(max_group_bytes=2**62, open_cost_bytes=4 << 20, target_groups=_READ_THREADS)
        schema = to_arrow_schema(scan.output_schema)

        def read(group: Any) -> list[pa.RecordBatch]:
            return list(read_files(scan.state, group.scan_files()))

        with ThreadPoolExecutor(_READ_THREADS, "delta_py-read") as pool:
            batches = [batch for part in pool.map(read, groups) for batch in part]
        return pa.Table.from_batches(batches, schema=schema)

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        filter: str | Expression | None = None,
        *,
        ignore_missing_files: bool = False,
        verify_checksums: bool = False,
    ) -> pd.DataFrame:
        """The rows as a DataFrame of pandas. Arguments as in to_arrow."""
        table = self.to_arrow(columns, filter, ignore_missing_files=ignore_missing_files, verify_checksums=verify_checksums)
        return table.to_pandas()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """All rows as an Arrow C stream: polars, duckdb, pyarrow and others accept the table directly."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    # ------------------------------------------------------------ change data feed

    def changes(
        self,
        *,
        starting_version: int | None = None,
        ending_version: int | None = None,
        starting_timestamp: str | date | int | None = None,
        ending_timestamp: str | date | int | None = None,
        columns: Sequence[str] | None = None,
        filter: str | Expression | None = None,
        ignore_missing_files: bool = False,
        verify_checksums: bool = False,
    ) -> pa.RecordBatchReader:
        """Row changes between two versions, both inclusive: the table's columns and _change_type (insert, delete,
        update_preimage, update_postimage), _commit_version, _commit_timestamp. ignore_missing_files and verify_checksums are
        those of scan.

        Raises ChangeDataFeedError if the feed was off for a version in the range, or the range is invalid.
        """
        from delta_py.changes.change_feed import changes_schema, plan_changes  # only this method needs it

        store = self._snapshot.store
        bounds: dict[str, Any] = {
            "starting_version": starting_version,
            "ending_version": ending_version,
            "starting_timestamp_ms": self._timestamp_ms(starting_timestamp),
            "ending_timestamp_ms": self._timestamp_ms(ending_timestamp),
        }
        predicate = None if filter is None else self._predicate(filter, changes_schema(store, **bounds))
        options = self._scan_options(ignore_missing_files, verify_checksums)
        return self._reader(plan_changes(store, **bounds, columns=columns, predicate=predicate, options=options))

    # ------------------------------------------------------------ changing rows

    def delete(self, predicate: str | None = None) -> dict[str, int]:
        """Delete the rows of the newest version for which the predicate (SQL) is true; None: all. Returns metrics by
        delta-spark's names. This object stays at its version. Raises as row_changes/row_commands.py."""
        from delta_py.row_changes.row_commands import delete  # only this method needs it

        return delete(self._snapshot.store, predicate, time_zone=self._session_timezone)

    def update(
        self,
        updates: Mapping[str, str] | None = None,
        new_values: Mapping[str, Any] | None = None,
        predicate: str | None = None,
    ) -> dict[str, int]:
        """Set columns to new values in the rows of the newest version for which the predicate (SQL) is true; None: in all rows.

        updates: SQL expressions by column, nested fields dotted. new_values: instead, Python values.
        Returns metrics as delete does. Raises as row_changes/row_commands.py.
        """
        from delta_py.row_changes.row_commands import update  # only this method needs it

        return update(self._snapshot.store, updates, new_values, predicate, time_zone=self._session_timezone)

    def merge(
        self,
        source: Any,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        *,
        truncate_nanoseconds: bool = False,
        merge_schema: bool = False,
    ) -> TableMerger:
        """A MERGE of an Arrow source into the newest version: add clauses, then `.execute()`, which returns metrics.

        source: any object with an Arrow stream; it is held in memory. predicate: SQL over both sides, which are named by their
        aliases (`source` and `target` by default). truncate_nanoseconds: cut times of the source down to the microsecond.
        merge_schema: add columns that clauses assign and only the source has. Raises as row_changes/merge.py.
        """
        from delta_py.row_changes.merge import TableMerger  # only this method needs it

        return TableMerger(
            self._snapshot.store,
            source,
            predicate,
            source_alias,
            target_alias,
            time_zone=self._session_timezone,
            truncate_nanoseconds=truncate_nanoseconds,
            merge_schema=merge_schema,
        )

    # ------------------------------------------------------------ changing the definition

    @property
    def alter(self) -> TableAlterer:
        """Change columns, constraints, properties and features of the newest version, with `alter.rename_column("a", "b")` and
        similar methods. This object stays at its version."""
        from delta_py.alter.table_alterer import TableAlterer  # only this method needs it

        return TableAlterer(self._snapshot.store, self._session_timezone)

    # ------------------------------------------------------------ copies and reports

    def clone(
        self,
        target: PathLike,
        *,
        shallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> DeltaTable:
        """Make a table at another path with the rows of this version, and copies of its files; returns it.

        shallow: use the same files instead. replace: an existing table loses its rows and becomes the clone; if it was a
        deep clone of the same table, only new files are copied. properties: set in addition to this table's. storage_options: of
        the target's store. Raises as copies/clone.py and copies/deep_clone.py.
        """
        from delta_py.copies.clone import clone_table  # only this method needs it
        from delta_py.copies.deep_clone import deep_clone

        store = open_store(target, StorageOptions.of(storage_options or {}))
        if shallow:
            clone_table(self._snapshot, store, replace_table=replace, properties=properties)
        else:
            deep_clone(self._snapshot, store, replace_table=replace, properties=properties)
        return DeltaTable(target, session_timezone=self._session_timezone, store=store)

    def report(self, *, vacuum: bool = False, check_log: bool = True) -> Report:
        """A report about this version: commits, files, skipping, partitions, deleted rows, log, and advice.
        `.write(path)` writes it as one HTML page, `.html()` returns the text, `.facts` are the numbers; notebooks display it.
        Facts that are not known are Unknown.

        vacuum: run VACUUM as a dry run, which lists the table's directories. check_log: look for faults in the
        log as FSCK does, which reads every checkpoint.
        """
        from delta_py.report.gathering import ReportRequest  # only this method needs it
        from delta_py.report.report import report_of

        return report_of(self._snapshot, ReportRequest(vacuum=vacuum, check_log=check_log))

    def metrics_text(self, *, vacuum: bool = False, check_log: bool = True) -> str:
        """The same facts in the text format of Prometheus: gauges, with this table's path as a label. Arguments as in report."""
        from delta_py.report.metrics import metrics_text  # only this method needs it

        return metrics_text(self, vacuum=vacuum, check_log=check_log)

    # ------------------------------------------------------------ helpers

    def _scan_options(self, ignore_missing_files: bool, verify_checksums: bool) -> ScanOptions:
        """The options of a read whose rows are filtered: rows for which the predicate is not true are dropped."""
        from delta_py.scan.planning import ScanOptions  # only this method needs it

        return ScanOptions(
            drop_rows=True,
            ignore_missing_files=ignore_missing_files,
            timezone=self._session_timezone,
            verify_checksums=verify_checksums,
        )

    def _reader(self, scan: Scan) -> pa.RecordBatchReader:
        """The rows of a scan as a stream, which reads files while it is consumed. Errors of storage become StorageError."""
        from delta_py.parquet.file_reader import read_files  # only this method needs it

        def batches() -> Iterator[pa.RecordBatch]:
            with storage_failures(self._snapshot.table_root):
                yield from read_files(scan.state, scan.scan_files())

        return pa.RecordBatchReader.from_batches(to_arrow_schema(scan.output_schema), batches())
