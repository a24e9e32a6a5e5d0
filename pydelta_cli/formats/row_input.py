"""Files of rows as streams of Arrow batches: CSV, JSON lines, Parquet."""

from __future__ import annotations

import io
import os
import re
import select
import signal
import sys
from base64 import b64decode
from bisect import bisect_left
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from csv import reader as csv_lines
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import typer

from delta_py.errors import DataFileError, DeltaError, ExpressionError, SchemaMismatchError, StorageError, shown
from delta_py.expressions.text_casts import to_timestamp
from delta_py.object_stores.open_store import open_store
from delta_py.storage.addresses import has_scheme
from delta_py.storage.store_options import StorageOptions
from delta_py.types.nested_arrays import child_offsets, with_elements
from pydelta_cli.formats.json_lines import BLOCK_BYTES, Names, for_pyarrow, names, whole_lines

T = TypeVar("T")

_BY_SUFFIX = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
STANDARD_INPUT = "-"
_CSV_ROW = re.compile(r"Row #(\d+): ")
_CSV_COLUMN = re.compile(r"In CSV column #(\d+): ")
_JSON_ROW = re.compile(r" in row \d+$")


def open_rows(
    file: str, file_format: str | None, schema: pa.Schema | None, zone: str, storage: Mapping[str, str]
) -> pa.RecordBatchReader:
    """The rows of a local file, of an object (a URL), or of standard input (`-`), block by block.

    file_format: csv, json (one line per row) or parquet; None: by the file's suffix. schema: of the table that gets the rows.
    Columns of CSV and JSON get their types from it, ignoring the case of names; the types of other columns are inferred
    from the first block. values.py describes how values are written. zone: of timestamps that have no offset. storage: options
    of object stores.
    Raises StorageError and DataFileError for a file that cannot be read; SchemaMismatchError for a value that does not fit its
    column in the schema; typer.BadParameter for an unknown format.
    """
    file_format = file_format or _BY_SUFFIX.get(Path(file).suffix.lower())
    if file_format is None:
        raise typer.BadParameter(f"the name {file!r} tells no format; say csv, json or parquet.", param_hint="--format")
    table = pa.struct([]) if schema is None else pa.struct(list(schema))
    match file_format:
        case "csv":
            return _csv(_Source(file, _opened(file, storage)), table, zone)
        case "json":
            return _json(_Source(file, _opened(file, storage)), table, zone)
        case _:
            if file == STANDARD_INPUT or Path(file).is_fifo():
                raise typer.BadParameter("Parquet is not read from a pipe: its footer comes last.", param_hint="FILE")
            return _parquet(file, _opened(file, storage))


def _opened(file: str, storage: Mapping[str, str]) -> Any:
    """An existing local file is opened, even if its name begins like a URL."""
    if file == STANDARD_INPUT:
        if sys.stdin is None:
            raise StorageError("Standard input is closed, so there are no rows. Nothing was written. Give a file.", path=file)
        is_pipe = sys.stdin is sys.__stdin__ and os.name == "posix"
        return _Pipe(sys.stdin.fileno()) if is_pipe else sys.stdin.buffer
    try:
        if Path(file).is_fifo():
            return _Pipe(os.open(file, os.O_RDONLY))
        if not has_scheme(file) or Path(file).exists():
            return pa.OSFile(file)
        directory, _, name = file.rpartition("/")
        return open_store(directory, StorageOptions.of(storage)).open_input(name)
    except DeltaError:
        raise
    except OSError as error:
        raise StorageError(
            f"The file {file} cannot be read: {error}. Nothing was written. Give a file of this machine, the URL of an object, "
            "or - for standard input.",
            path=file,
        ) from error


class _Pipe(io.RawIOBase):
    """Reads a pipe up to its end or to Ctrl-C: pyarrow reads in a thread of its own, where no signal interrupts the wait for
    more data. pipe: its file descriptor."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._woken, wakes = os.pipe()  # Python writes a byte into `wakes` when a signal arrives
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes)

    def read(self, size: int = -1) -> bytes:
        """Returns `size` bytes, or fewer only at the end. A size below 0 returns all remaining bytes."""
        parts: list[bytes] = []
        byte_count = sys.maxsize if size < 0 else size
        while byte_count > 0:
            ready, _, _ = select.select([self._pipe, self._woken], [], [])
            if self._woken in ready:
                raise InterruptedError("interrupted while a pipe was read")
            part = os.read(self._pipe, min(byte_count, BLOCK_BYTES))
            if not part:
                break
            parts.append(part)
            byte_count -= len(part)
        return b"".join(parts)


class _Source(io.RawIOBase):
    """The bytes of a text file, without the UTF-8 mark at its beginning. name: for errors. head: the first block, which
    is still returned by reads."""

    def __init__(self, name: str, file: Any) -> None:
        self.name, self._file = name, file
        self.head: bytes = self._file.read(BLOCK_BYTES).removeprefix(BOM_UTF8)
        self._unread = io.BytesIO(self.head)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Returns at most `size` bytes, and none only at the end. A size below 0 returns all remaining bytes."""
        if size < 0:
            return self._unread.read() + bytes(self._file.read())
        data: bytes = self._unread.read(size) or self._file.read(size)
        return data

    def close(self) -> None:
        if not self.closed and self.name != STANDARD_INPUT:
            self._file.close()
        super().close()


def _csv(source: _Source, table: pa.StructType, zone: str) -> pa.RecordBatchReader:
    """An empty field is null; `""` is the empty text."""
    from pyarrow import csv

    header = _header(source.head)
    file_type = _spelled(pa.struct([f for f in table if not pa.types.is_nested(f.type)]), {name: {} for name in header})
    convert = csv.ConvertOptions(
        column_types={f.name: _type_read(f.type) for f in file_type},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    # An empty line is a row if the file has only one column, and else no row.
    parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(header) != 1)
    read = csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False)  # with threads, errors do not name their row
    with _csv_errors(source.name, header):
        reader = csv.open_csv(pa.PythonFile(source, "r"), read, parse, convert)

    known_names = {f.name for f in file_type}
    no_text = [f.name for f in reader.schema if pa.types.is_binary(f.type) and f.name not in known_names]
    if no_text:
        raise SchemaMismatchError(
            f"The column {no_text[0]} of the file {source.name} has text that is not UTF-8. Nothing was committed. Convert the "
            "file, as `iconv -t UTF-8` does.",
            column=no_text[0],
            path=source.name,
        )

    def batches() -> Iterator[pa.RecordBatch]:
        row_count = 0
        with _csv_errors(source.name, header):
            for batch in reader:
                yield _typed_records(batch, file_type, zone, source.name, row_count)
                row_count += batch.num_rows

    return pa.RecordBatchReader.from_batches(_typed_schema(reader.schema, file_type, zone), batches())


@contextmanager
def _csv_errors(file: str, header: list[str]) -> Iterator[None]:
    """pyarrow's errors about a CSV file, with the file, the record and the name of the column."""
    try:
        yield
    except pa.ArrowInvalid as error:
        text = str(error)
        row, column = _CSV_ROW.search(text), _CSV_COLUMN.search(text)
        places = [] if row is None else [_record(int(row[1]))]
        places += [f"column {header[int(column[1])]}"] if column is not None and int(column[1]) < len(header) else []
        reason = _CSV_ROW.sub("", text if column is None else _CSV_COLUMN.sub("", text))
        raise _unreadable(file, "CSV", f"{', '.join(places)}: {reason}" if places else reason) from error


def _record(number: int) -> str:
    return f"record {number} (the header is record 1)"


def _unreadable(file: str, kind: str, reason: str) -> DataFileError:
    return DataFileError(
        f"The file {file} cannot be read as {kind}: {reason.rstrip('.')}. Nothing was committed. Say its --format, or correct "
        "the file.",
        error_class="FAILED_READ_FILE.NO_HINT",
        sql_state="KD001",
        path=file,
    )


def _typed_records(batch: pa.RecordBatch, file_type: pa.StructType, zone: str, file: str, rows_before: int) -> pa.RecordBatch:
    """rows_before: rows of the CSV file before the batch. Raises SchemaMismatchError, which names the record."""
    try:
        return _typed_batch(batch, file_type, zone)
    except SchemaMismatchError as error:
        row = _first_failure(batch.num_rows, lambda count: _typed_batch(batch.slice(0, count), file_type, zone))
        # `row` counts from 0, and record 1 is the header.
        raise _placed(error, f"{file}, {_record(rows_before + row + 2)}") from error


def _first_failure(count: int, step: Callable[[int], object]) -> int:
    """The position of the first of `count` items with which a step fails. step: is called with a number n, and takes the first n
    items; it fails with all numbers from some number on, so the position is searched by halves."""

    def fails(item_count: int) -> bool:
        try:
            step(item_count)
        except (DeltaError, pa.ArrowInvalid):
            return True
        return False

    return bisect_left(range(1, count + 1), True, key=fails)


def _placed(error: SchemaMismatchError, place: str) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"{place}: {error.message}",
        error_class=error.error_class,
        sql_state=error.sql_state,
        **error.message_parameters,
    )


def _header(head: bytes) -> list[str]:
    """The names in the first line that is not empty; none if there is no such line. head: the first block of a CSV file."""
    lines = csv_lines(io.StringIO(head.decode(errors="replace"), newline=""))
    return next((line for line in lines if line), [])


def _json(source: _Source, table: pa.StructType, zone: str) -> pa.RecordBatchReader:
    """The first block tells the types of columns that the table does not have. Later blocks may have no other columns."""
    file_type = _spelled(table, names(source.head))
    known_schema = pa.schema([(f.name, _type_read(f.type)) for f in file_type])
    blocks = whole_lines(source)
    first = next(blocks, b"")
    if not first and not len(known_schema):
        raise SchemaMismatchError(f"The file {source.name} has no rows, which would tell the columns of a new table.")

    def typed(block: bytes, line: int, schema: pa.Schema, unknown_columns: str) -> tuple[pa.Schema, list[pa.RecordBatch]]:
        """The schema that pyarrow reads from a block, and the rows with the table's types. line: the number of its first line.
        schema, unknown_columns: as in _json_rows."""
        def read(lines: bytes) -> tuple[pa.Schema, list[pa.RecordBatch]]:
            rows = _json_rows(lines, file_type, schema, unknown_columns)
            return rows.schema, [_typed_batch(batch, file_type, zone) for batch in rows.to_batches()]

        return _with_line(read, block, source.name, line)

    schema, first_batches = typed(first, 1, known_schema, "infer") if first else (known_schema, [])

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first_batches
        line = 1 + first.count(b"\n")
        for block in blocks:
            yield from typed(block, line, schema, "error")[1]
            line += block.count(b"\n")

    return pa.RecordBatchReader.from_batches(_typed_schema(schema, file_type, zone), batches())


def _json_rows(block: bytes, file_type: pa.StructType, known_schema: pa.Schema, unknown_columns: str) -> pa.Table:
    """The rows of a block, as pyarrow reads them. known_schema: the types of columns that are known. unknown_columns: `infer` for
    the first block; `error` for the others, which must not have other columns."""
    from pyarrow import json

    lines = for_pyarrow(block, file_type)
    return json.read_json(
        pa.BufferReader(lines),
        json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        json.ParseOptions(explicit_schema=known_schema, unexpected_field_behavior=unknown_columns),
    )


def _with_line(read: Callable[[bytes], T], block: bytes, file: str, line: int) -> T:
    """The result of reading a block of whole lines. line: the number of its first line. An error names the line: the first with
    which reading fails."""
    try:
        return read(block)
    except (SchemaMismatchError, pa.ArrowInvalid) as error:
        lines = block.splitlines(keepends=True)
        number = _first_failure(len(lines), lambda count: read(b"".join(lines[:count])))
        place = f"line {line + number}"
        if isinstance(error, SchemaMismatchError):
            raise _placed(error, f"{file}, {place}") from error
        raise _unreadable(file, "JSON, a row a line", f"{place}: {_JSON_ROW.sub('', str(error))}") from error


# ---------------------------------------------------------------- types of the table


def _spelled(kind: pa.DataType, file_names: Names) -> pa.DataType:
    """A type with the file's spelling of its field names. Names that the file does not have do not change, and neither do those
    of maps, because they are rewritten with them."""
    if pa.types.is_struct(kind):
        types = {f.name.lower(): f.type for f in kind}
        fields = [(name, _spelled(types[name.lower()], inner)) for name, inner in file_names.items() if name.lower() in types]
        lower = {name.lower() for name in file_names}
        return pa.struct([*fields, *((f.name, f.type) for f in kind if f.name.lower() not in lower)])
    if pa.types.is_list(kind):
        return pa.list_(_spelled(kind.value_type, file_names))
    return kind


def _type_read(kind: pa.DataType) -> pa.DataType:
    """The type that pyarrow reads: text for values that it would not read as they are written, lists of pairs for maps."""
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _type_read(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(_type_read(kind.value_type))
    if pa.types.is_map(kind):
        key = _type_read(kind.key_type) if pa.types.is_nested(kind.key_type) else pa.string()
        return pa.list_(pa.struct([("key", key), ("value", _type_read(kind.item_type))]))
    is_text = pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_binary(kind)
    return pa.string() if is_text else kind


def _typed_batch(batch: pa.RecordBatch, file_type: pa.StructType, zone: str) -> pa.RecordBatch:
    """The rows, with the table's columns converted to their types; other columns keep the inferred types."""
    kinds, names = {f.name: f.type for f in file_type}, batch.schema.names
    columns = [
        _typed(column, kinds[name], name, zone) if name in kinds else column
        for name, column in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names)


def _typed_schema(schema: pa.Schema, file_type: pa.StructType, zone: str) -> pa.Schema:
    """The schema of the results of _typed_batch."""
    no_rows = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema.names)
    return _typed_batch(no_rows, file_type, zone).schema


def _typed(array: pa.Array, kind: pa.DataType, name: str, zone: str) -> pa.Array:
    """array: of the type _type_read(kind), or with more fields in its structs. name: of the column, for the error."""
    if array.type == kind:
        return array
    if pa.types.is_struct(kind):
        types = {f.name: f.type for f in kind}
        fields = [array.type.field(number).name for number in range(array.type.num_fields)]
        children = [
            _typed(child, types[field], f"{name}.{field}", zone) if field in types else child
            for field, child in zip(fields, array.flatten(), strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields, mask=array.is_null() if array.null_count else None)
    if pa.types.is_list(kind):
        return with_elements(array, partial(_typed, kind=kind.value_type, name=name, zone=zone))
    if pa.types.is_map(kind):
        offsets, first, count = child_offsets(array)  # a list of pairs
        pairs = array.values.slice(first, count)
        keys = _typed(pairs.field("key"), kind.key_type, name, zone)
        items = _typed(pairs.field("value"), kind.item_type, name, zone)
        return pa.MapArray.from_arrays(offsets, keys, items, mask=array.is_null() if array.null_count else None)
    return _of_text(array, kind, name, zone)


def _of_text(texts: pa.Array, kind: pa.DataType, name: str, zone: str) -> pa.Array:
    try:
        if pa.types.is_binary(kind):
            return pa.array([None if text is None else _bytes(text) for text in texts.to_pylist()], kind)
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            return to_timestamp(texts, zone)
        return texts.cast(kind)
    except (ExpressionError, ValueError) as error:  # pyarrow's are ValueErrors
        raise SchemaMismatchError(
            f"The column {name} of the file has a value that is no {kind} of a table: {error}. Nothing was committed. Correct "
            "the file: timestamps and dates are as 2024-01-31T10:00:00+01:00 and 2024-01-31, bytes are base64.",
            column=name,
        ) from error


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"{shown(text)} is not base64 ({error})") from error


def _parquet(name: str, file: pa.NativeFile) -> pa.RecordBatchReader:
    from pyarrow.parquet import ParquetFile

    with _parquet_errors(name):
        opened = ParquetFile(file)

    def batches() -> Iterator[pa.RecordBatch]:
        with file, _parquet_errors(name):
            yield from opened.iter_batches()

    return pa.RecordBatchReader.from_batches(opened.schema_arrow, batches())


@contextmanager
def _parquet_errors(file: str) -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid as error:
        raise _unreadable(file, "Parquet", str(error)) from error
