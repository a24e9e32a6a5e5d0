"""Shows rows of a table, writes them to standard output, and loads rows from files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from pydelta_cli.parameters import At, Columns, Filter, Path, Place, Properties, VerifyChecksums, Version, columns_of, pairs_of
from pydelta_cli.run import Run, say

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_py.table import DeltaTable


class CatFormat(StrEnum):
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    ARROW = "arrow"


class LoadFormat(StrEnum):
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class Mode(StrEnum):
    ERROR = "error"
    APPEND = "append"
    OVERWRITE = "overwrite"


HeadLimit = Annotated[int, typer.Option("--limit", min=0, metavar="N", help="The maximum number of rows.")]
CatLimit = Annotated[int | None, typer.Option("--limit", min=0, metavar="N", help="The maximum number of rows (default: all).")]
OutFormat = Annotated[CatFormat, typer.Option("--format", help="csv, json (one line per row), parquet or arrow (an IPC stream).")]
InFormat = Annotated[
    LoadFormat | None, typer.Option("--format", help="csv, json (one line per row) or parquet; default: by the name.")
]
Source = Annotated[str, typer.Argument(metavar="FILE", help="A file, or the URL of an object; - for standard input.")]
SaveMode = Annotated[Mode, typer.Option("--mode", help="What to do with an existing table.")]
PartitionBy = Annotated[str | None, typer.Option("--partition-by", metavar="NAMES", help="For a new table, with commas.")]
MergeSchema = Annotated[bool, typer.Option("--merge-schema", help="Add columns that the table does not have.")]
TruncateNanoseconds = Annotated[bool, typer.Option("--truncate-nanoseconds", help="Cut times down to the microsecond.")]
OverwriteSchema = Annotated[bool, typer.Option("--overwrite-schema", help="With --mode overwrite: use the file's columns.")]


def show(
    run: Run,
    path: Path,
    filter: Filter = None,
    columns: Columns = None,
    version: Version = None,
    at: At = None,
    limit: HeadLimit = 20,
    verify_checksums: VerifyChecksums = False,
) -> None:
    """The first rows, of all or of those for which a filter is true."""
    import pyarrow as pa

    table = run.table(path, version, at)
    reader = table.to_batches(columns_of(columns), filter, verify_checksums=verify_checksums)
    first_rows = _FirstRows(reader, limit, looks_further=not run.as_json)
    head = pa.Table.from_batches(first_rows, reader.schema)
    if run.as_json:
        run.write_json({"version": table.version, "columns": head.schema.names, "rows": run.rows(head)})
    else:
        _show_rows(run, head)
        if first_rows.is_cut:
            say(_more_rows(table, filter, limit))


def _show_rows(run: Run, head: pa.Table) -> None:
    from pydelta_cli.formats.text_tables import Column
    from pydelta_cli.formats.values import is_number, text_columns

    columns = [Column(field.name, is_number=is_number(field.type)) for field in head.schema]
    run.print_table(columns, list(zip(*text_columns(head, run.zone), strict=True)), null="null")


def _more_rows(table: DeltaTable, filter: str | None, limit: int) -> str:
    """The number of rows that are not shown, if the log has it."""
    from delta_py.report.words import count_text
    from delta_py.table_methods.table_summary import recorded_row_count

    row_count = recorded_row_count(table.snapshot) if filter is None else None
    return f"and {'more rows' if row_count is None else count_text(row_count - limit, 'more row')} (--limit N shows more)"


def cat(
    run: Run,
    path: Path,
    format: OutFormat = CatFormat.CSV,
    filter: Filter = None,
    columns: Columns = None,
    version: Version = None,
    at: At = None,
    limit: CatLimit = None,
    verify_checksums: VerifyChecksums = False,
) -> None:
    """All rows to standard output, batch by batch. --json is --format json."""
    from pydelta_cli.formats import row_output

    table = run.table(path, version, at)
    reader = table.to_batches(columns_of(columns), filter, verify_checksums=verify_checksums)
    batches = _FirstRows(reader, limit, looks_further=sys.stdout.isatty())
    match CatFormat.JSON if run.has_json_option else format:
        case CatFormat.CSV:
            row_output.write_csv(reader.schema, batches, run.zone)
        case CatFormat.JSON:
            row_output.write_json_lines(batches, run.zone)
        case CatFormat.PARQUET:
            row_output.write_parquet(reader.schema, batches)
        case CatFormat.ARROW:
            row_output.write_arrow(reader.schema, batches)
    if batches.is_cut and limit is not None:
        say(_more_rows(table, filter, limit), error=True)


class _FirstRows:
    """The first rows of a reader, as batches. Does not read files beyond the limit, unless it looks further: then is_cut says,
    after the iteration, whether there are more rows."""

    def __init__(self, reader: pa.RecordBatchReader, limit: int | None, *, looks_further: bool) -> None:
        self._reader, self._limit, self._looks_further = reader, limit, looks_further
        self.is_cut = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield batches up to the limit. looks_further: read one batch more, to find out whether there are more rows."""
        remaining = self._limit
        while remaining is None or remaining > 0 or self._looks_further:
            batch = next(self._reader, None)
            if batch is None:
                return
            if remaining is not None and batch.num_rows > remaining:
                self.is_cut = self._looks_further
                yield batch.slice(0, remaining)
                return
            yield batch
            remaining = None if remaining is None else remaining - batch.num_rows


def load(
    run: Run,
    path: Place,
    file: Source,
    format: InFormat = None,
    mode: SaveMode = Mode.ERROR,
    partition_by: PartitionBy = None,
    merge_schema: MergeSchema = False,
    overwrite_schema: OverwriteSchema = False,
    truncate_nanoseconds: TruncateNanoseconds = False,
    property_: Properties = None,
) -> None:
    """Write the rows of a file to a table, in one commit."""
    from delta_py.report.words import count_text
    from delta_py.row_changes.write import write_delta
    from pydelta_cli.formats.row_input import open_rows

    path = run.place(path)
    present = _table_or_none(run, path)
    keeps_columns = present is not None and not (overwrite_schema and mode is Mode.OVERWRITE)
    schema = present.schema() if present is not None and keeps_columns else None
    rows = _CountedRows(open_rows(file, None if format is None else str(format), schema, run.zone, run.storage))
    version = write_delta(
        path,
        rows.reader(),
        mode=str(mode),
        partition_by=columns_of(partition_by),
        configuration=pairs_of(property_, "--property") or None,
        merge_schema=merge_schema,
        overwrite_schema=overwrite_schema,
        truncate_nanoseconds=truncate_nanoseconds,
        storage_options=run.storage,
        time_zone=run.zone,
    )
    form = {"version": version, "mode": str(mode), "rows": rows.count}
    kind = "a new table" if present is None else str(mode)
    run.answer(form, lambda: say(f"{count_text(rows.count, 'row')} written as version {version} ({kind})."))


class _CountedRows:
    """count: of the rows that were read until now."""

    def __init__(self, rows: pa.RecordBatchReader) -> None:
        self._rows = rows
        self.count = 0

    def reader(self) -> pa.RecordBatchReader:
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self._rows.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._rows:
            self.count += batch.num_rows
            yield batch


def _table_or_none(run: Run, path: str) -> DeltaTable | None:
    from delta_py.errors import TableNotFoundError

    try:
        return run.table(path)
    except TableNotFoundError:
        return None
