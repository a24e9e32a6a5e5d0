"""Files of rows as streams of Arrow batches: CSV, JSON lines, Parquet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer

from delta_py.errors import UnsupportedOperationError

_BY_SUFFIX = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
_BLOCK_BYTES = 16 << 20
STANDARD_INPUT = "-"


def open_rows(file: str, file_format: str | None, schema: pa.Schema | None) -> pa.RecordBatchReader:
    """The rows of a file, or of standard input (`-`), block by block.

    file_format: csv, json (a line a row) or parquet; None: by the file's suffix. schema: of the table that gets the rows; CSV and
    JSON take the types of its columns, and find out those of others from their first block.
    Raises OSError, pa.ArrowInvalid for what cannot be read; typer.BadParameter for a format that is not known.
    """
    file_format = file_format or _BY_SUFFIX.get(Path(file).suffix.lower())
    if file_format is None:
        raise typer.BadParameter(f"the name {file!r} tells no format; say csv, json or parquet.", param_hint="--format")
    plain = {} if schema is None else {f.name: f.type for f in schema if not pa.types.is_nested(f.type)}
    match file_format:
        case "csv":
            return _csv(_opened(file), plain)
        case "json":
            return _json(_opened(file), schema)
        case _:
            return _parquet(file)


def _opened(file: str) -> Any:
    return pa.PythonFile(sys.stdin.buffer, mode="r") if file == STANDARD_INPUT else pa.OSFile(file)


def _csv(source: Any, types: dict[str, pa.DataType]) -> pa.RecordBatchReader:
    """Null is nothing at all; `""` is the empty text."""
    from pyarrow import csv

    convert = csv.ConvertOptions(
        column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    return csv.open_csv(
        source,
        csv.ReadOptions(block_size=_BLOCK_BYTES),
        csv.ParseOptions(newlines_in_values=True),
        convert,
    )


def _json(source: Any, schema: pa.Schema | None) -> pa.RecordBatchReader:
    from pyarrow import json

    if not hasattr(json, "open_json"):
        raise UnsupportedOperationError(
            f"Loading JSON lines needs a newer pyarrow than {pa.__version__}, which reads such files as a whole only. Nothing "
            "was written. Update pyarrow, or load CSV or Parquet."
        )
    known = None if schema is None else pa.schema([f for f in schema if not pa.types.is_binary(f.type)])
    return json.open_json(
        source,
        json.ReadOptions(block_size=_BLOCK_BYTES),
        json.ParseOptions(explicit_schema=known, unexpected_field_behavior="infer"),
    )


def _parquet(file: str) -> pa.RecordBatchReader:
    from pyarrow.parquet import ParquetFile

    if file == STANDARD_INPUT:
        raise typer.BadParameter("Parquet is not read from standard input: its footer comes last.", param_hint="FILE")
    opened = ParquetFile(file)

    def batches() -> Iterator[pa.RecordBatch]:
        with opened:
            yield from opened.iter_batches()

    return pa.RecordBatchReader.from_batches(opened.schema_arrow, batches())
