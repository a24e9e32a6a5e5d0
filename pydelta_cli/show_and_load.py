"""Shows rows of a table, writes them to standard output, and loads rows from files."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from pydelta_cli.parameters import At, Columns, Filter, Path, Place, Properties, VerifyChecksums, Version, columns_of, pairs_of
from pydelta_cli.run import Run

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

    from pydelta_cli.formats.values import text_columns

    table = run.table(path, version, at)
    reader = table.to_batches(columns_of(columns), filter, verify_checksums=verify_checksums)
    head = pa.Table.from_batches(_first(reader, limit), reader.schema)
    if run.as_json:
        run.write_json({"version": table.version, "columns": head.schema.names, "rows": run.rows(head)})
    else:
        run.print_table(head.schema.names, list(zip(*text_columns(head, run.zone), strict=True)))


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
    batches = _first(reader, limit)
    match CatFormat.JSON if run.as_json else format:
        case CatFormat.CSV:
            row_output.write_csv(reader.schema, batches, run.zone)
        case CatFormat.JSON:
            row_output.write_json_lines(batches, run.zone)
        case CatFormat.PARQUET:
            row_output.write_parquet(reader.schema, batches)
        case CatFormat.ARROW:
            row_output.write_arrow(reader.schema, batches)


def _first(batches: pa.RecordBatchReader, limit: int | None) -> Iterator[pa.RecordBatch]:
    """Does not read files beyond the limit."""
    if limit is None:
        yield from batches
        return
    while limit > 0:
        batch = next(batches, None)
        if batch is None:
            return
        yield batch.slice(0, min(limit, batch.num_rows))
        limit -= batch.num_rows


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
    from delta_py.row_changes.write import write_delta
    from pydelta_cli.formats.row_input import open_rows

    path = run.place(path)
    present = _table_or_none(run, path)
    keeps_columns = present is not None and not (overwrite_schema and mode is Mode.OVERWRITE)
    schema = present.schema() if present is not None and keeps_columns else None
    reader = open_rows(file, None if format is None else str(format), schema, run.zone, run.storage)
    version = write_delta(
        path,
        reader,
        mode=str(mode),
        partition_by=columns_of(partition_by),
        configuration=pairs_of(property_, "--property") or None,
        merge_schema=merge_schema,
        overwrite_schema=overwrite_schema,
        truncate_nanoseconds=truncate_nanoseconds,
        storage_options=run.storage,
        time_zone=run.zone,
    )
    run.answer({"version": version, "mode": str(mode)})


def _table_or_none(run: Run, path: str) -> DeltaTable | None:
    from delta_py.errors import TableNotFoundError

    try:
        return run.table(path)
    except TableNotFoundError:
        return None
