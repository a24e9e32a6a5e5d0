"""Writes batches of rows to standard output: CSV, JSON lines, Parquet, Arrow IPC. At most one batch is in memory."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from typing import BinaryIO

import pyarrow as pa
import typer

from pydelta_cli.formats.terminal_text import printable_json, printable_lines
from pydelta_cli.formats.values import json_rows, text_cells


def write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], zone: str) -> None:
    """A header, then one line per row. Null is an empty field, and the empty text is `""`. Values are those of text_columns."""
    from pyarrow.csv import CSVWriter

    texts = pa.schema([(field.name, _csv_type(field.type)) for field in schema])
    with _lines_sink() as sink, CSVWriter(sink, texts) as writer:
        for batch in batches:
            arrays = [
                pa.array(text_cells(column, zone), pa.string()) if pa.types.is_string(field.type) else column
                for column, field in zip(batch.columns, texts, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=texts))


def _csv_type(kind: pa.DataType) -> pa.DataType:
    """Whole numbers and booleans are written as they are, all other types as text."""
    return kind if pa.types.is_integer(kind) or pa.types.is_boolean(kind) else pa.string()


def write_json_lines(batches: Iterable[pa.RecordBatch], zone: str) -> None:
    import orjson

    out = _binary_stdout()
    for batch in batches:
        text = b"\n".join(map(orjson.dumps, json_rows(batch, zone)))
        if text:
            out.write(printable_json(text.decode()).encode() + b"\n")
    out.flush()


def write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    from pyarrow.parquet import ParquetWriter

    with _no_terminal("parquet") as sink, ParquetWriter(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    with _no_terminal("arrow") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _binary_stdout() -> BinaryIO:
    sys.stdout.flush()
    return sys.stdout.buffer


def _no_terminal(name: str) -> pa.PythonFile:
    if sys.stdout.isatty():
        raise typer.BadParameter(f"{name} is no text for a terminal: send it to a file or a pipe.", param_hint="--format")
    return pa.PythonFile(_Forward(_binary_stdout()), mode="w")


def _lines_sink() -> pa.PythonFile:
    out = _binary_stdout()
    return pa.PythonFile(_Forward(_Printable(out) if sys.stdout.isatty() else out), mode="w")


class _Forward(io.RawIOBase):
    """Passes data on and knows its position, which a pipe does not. It does not close the target."""

    def __init__(self, out: BinaryIO | io.RawIOBase) -> None:
        self._out, self._written = out, 0

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:  # type: ignore[no-untyped-def]
        self._out.write(data)
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        if not self.closed:
            self._out.flush()


class _Printable(io.RawIOBase):
    """CSV on a terminal. Each write of CSVWriter ends with a whole line, so no character is cut in two."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def write(self, data) -> int:  # type: ignore[no-untyped-def]
        self._out.write(printable_lines(bytes(data).decode(errors="replace")).encode())
        return len(data)

    def flush(self) -> None:
        self._out.flush()
