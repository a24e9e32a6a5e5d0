"""Writes batches of rows to standard output: CSV, JSON lines, Parquet, Arrow IPC. At most one batch is in memory."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import typer

from pydelta_cli.formats.terminal_text import printable_json, printable_lines
from pydelta_cli.formats.values import json_rows, text_cells

# The empty text, which would be a null; separators; and the mark of UTF-8, which readers drop at the beginning of a file.
_NEEDS_QUOTES = r'^$|[",\r\n]|^\x{FEFF}'


def write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], zone: str) -> None:
    """A header, then one line per row. Null is an empty field, and the empty text is `""`. Quotes are only around texts that need
    them. Values are those of text_columns."""
    out, is_terminal = _binary_stdout(), sys.stdout.isatty()
    names = [pa.array([name]) for name in schema.names]
    for columns in chain([names], (_csv_columns(batch, zone) for batch in batches)):
        if lines := _csv_lines(columns):
            text = "\n".join(lines) + "\n"
            out.write((printable_lines(text) if is_terminal else text).encode())
    out.flush()


def _csv_columns(batch: pa.RecordBatch, zone: str) -> list[pa.Array]:
    """The values as text. Vectorized for whole numbers and booleans, whose texts are those of Arrow."""
    return [
        column.cast(pa.string())
        if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
        else pa.array(text_cells(column, zone), pa.string())
        for column in batch.columns
    ]


def _csv_lines(columns: Sequence[pa.Array]) -> list[str]:
    """columns: texts."""
    fields = [_quoted(column.cast(pa.large_string())) for column in columns]  # a line may be longer than a string's offset
    comma = pa.scalar(",", pa.large_string())
    lines = pc.binary_join_element_wise(*fields, comma, null_handling="replace", null_replacement="") if fields else pa.array([])
    return lines.to_pylist()  # type: ignore[no-any-return]


def _quoted(texts: pa.Array) -> pa.Array:
    quote, nothing = (pa.scalar(text, texts.type) for text in ('"', ""))
    quoted_texts = pc.binary_join_element_wise(quote, pc.replace_substring(texts, '"', '""'), quote, nothing)
    return pc.if_else(pc.match_substring_regex(texts, _NEEDS_QUOTES), quoted_texts, texts)


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


class _Forward(io.RawIOBase):
    """Passes data on and knows its position, which a pipe does not. It does not close the target."""

    def __init__(self, out: BinaryIO) -> None:
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
