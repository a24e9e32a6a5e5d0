"""Files of rows as streams of Arrow batches: CSV, JSON lines, Parquet."""

from __future__ import annotations

import io
import re
import sys
from base64 import b64decode
from collections.abc import Iterator
from csv import reader as csv_lines
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import typer

from delta_py.errors import ExpressionError, SchemaMismatchError, UnsupportedOperationError, shown
from delta_py.expressions.text_casts import to_timestamp
from delta_py.write.casts import runs

_BY_SUFFIX = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
_BLOCK_BYTES = 16 << 20
_NOT_BLANK = re.compile(r"\S")
STANDARD_INPUT = "-"

Names: TypeAlias = "dict[str, Names]"
"""Names of columns, and below each those of its fields, as a file spells them. Elements of lists have the names of the list."""


def open_rows(file: str, file_format: str | None, schema: pa.Schema | None, zone: str) -> pa.RecordBatchReader:
    """The rows of a file, or of standard input (`-`), block by block.

    file_format: csv, json (a line a row) or parquet; None: by the file's suffix. schema: of the table that gets the rows.
    Columns of CSV and JSON get the types that they have there, whatever the case of their names; the types of others are found
    out from the first block. Values are spelled as values.py has them. zone: of timestamps that have no offset.
    Raises OSError, pa.ArrowInvalid for what cannot be read; SchemaMismatchError for a value that a column of the schema cannot
    have; typer.BadParameter for a format that is not known.
    """
    file_format = file_format or _BY_SUFFIX.get(Path(file).suffix.lower())
    if file_format is None:
        raise typer.BadParameter(f"the name {file!r} tells no format; say csv, json or parquet.", param_hint="--format")
    table = pa.struct([]) if schema is None else pa.struct(list(schema))
    match file_format:
        case "csv":
            return _csv(_Source(file), table, zone)
        case "json":
            return _json(_Source(file), table, zone)
        case _:
            return _parquet(file)


class _Source(io.RawIOBase):
    """The bytes of a file or of standard input. head: the first block, which stays to be read."""

    def __init__(self, file: str) -> None:
        self._file: Any = sys.stdin.buffer if file == STANDARD_INPUT else pa.OSFile(file)
        self.head: bytes = self._file.read(_BLOCK_BYTES)
        self._unread = io.BytesIO(self.head)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        found: bytes = self._unread.read(size) or self._file.read(size)
        return found

    def close(self) -> None:
        if not self.closed and self._file is not sys.stdin.buffer:
            self._file.close()
        super().close()


def _csv(source: _Source, table: pa.StructType, zone: str) -> pa.RecordBatchReader:
    """Null is nothing at all; `""` is the empty text."""
    from pyarrow import csv

    names = _header(source.head)
    wanted = _spelled(pa.struct([f for f in table if not pa.types.is_nested(f.type)]), {name: {} for name in names})
    convert = csv.ConvertOptions(
        column_types={f.name: _type_read(f.type) for f in wanted},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    # An empty line is a row where one column is all there is, and else no row.
    parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(names) != 1)
    reader = csv.open_csv(pa.PythonFile(source, "r"), csv.ReadOptions(block_size=_BLOCK_BYTES), parse, convert)
    return _typed_rows(reader, wanted, zone)


def _header(head: bytes) -> list[str]:
    lines = csv_lines(io.StringIO(head.decode("utf-8-sig", errors="replace"), newline=""))
    return next((line for line in lines if line), [])


def _json(source: _Source, table: pa.StructType, zone: str) -> pa.RecordBatchReader:
    from pyarrow import json

    if not hasattr(json, "open_json"):
        raise UnsupportedOperationError(
            f"Loading JSON lines needs a newer pyarrow than {pa.__version__}, which reads such files as a whole only. Nothing "
            "was written. Update pyarrow, or load CSV or Parquet."
        )
    wanted = _spelled(table, _names(source.head))
    known = pa.schema([(f.name, _type_read(f.type)) for f in wanted])
    reader = json.open_json(
        pa.PythonFile(source, "r"),
        json.ReadOptions(block_size=_BLOCK_BYTES),
        json.ParseOptions(explicit_schema=known, unexpected_field_behavior="infer"),
    )
    return _typed_rows(reader, wanted, zone)


def _names(head: bytes) -> Names:
    """Of the JSON objects up to one that is cut off or none; pyarrow tells what is wrong with that."""
    names: Names = {}
    text, place = head.decode(errors="replace"), 0
    while start := _NOT_BLANK.search(text, place):
        try:
            value, place = JSONDecoder(strict=False).raw_decode(text, start.start())
        except JSONDecodeError:
            break
        _note(names, value)
    return names


def _note(names: Names, value: Any) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            _note(names.setdefault(name, {}), inner)
    elif isinstance(value, list):
        for inner in value:
            _note(names, inner)


# ---------------------------------------------------------------- types of the table


def _spelled(kind: pa.DataType, names: Names) -> pa.DataType:
    """A type with the names that the file has for its fields; those that it does not have keep theirs."""
    if pa.types.is_struct(kind):
        types = {f.name.lower(): f.type for f in kind}
        fields = [(name, _spelled(types[name.lower()], inner)) for name, inner in names.items() if name.lower() in types]
        given = {name.lower() for name in names}
        return pa.struct([*fields, *((f.name, f.type) for f in kind if f.name.lower() not in given)])
    if pa.types.is_list(kind):
        return pa.list_(_spelled(kind.value_type, names))
    if pa.types.is_map(kind):
        return pa.map_(_spelled(kind.key_type, names.get("key", {})), _spelled(kind.item_type, names.get("value", {})))
    return kind


def _type_read(kind: pa.DataType) -> pa.DataType:
    """What pyarrow is told to read: text for what it would read otherwise than it is written, lists of pairs for maps."""
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _type_read(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(_type_read(kind.value_type))
    if pa.types.is_map(kind):
        return pa.list_(pa.struct([("key", _type_read(kind.key_type)), ("value", _type_read(kind.item_type))]))
    is_text = pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_binary(kind)
    return pa.string() if is_text else kind


def _typed_rows(reader: pa.RecordBatchReader, wanted: pa.StructType, zone: str) -> pa.RecordBatchReader:
    """The rows with the types that are wanted of columns; those of others stay as they were found out."""
    kinds = {f.name: f.type for f in wanted}
    names = reader.schema.names

    def typed(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            _typed(column, kinds[name], name, zone) if name in kinds else column
            for name, column in zip(names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names)

    none = pa.RecordBatch.from_arrays([pa.array([], f.type) for f in reader.schema], names)
    return pa.RecordBatchReader.from_batches(typed(none).schema, map(typed, reader))


def _typed(array: pa.Array, kind: pa.DataType, name: str, zone: str) -> pa.Array:
    """array: of the type _type_read(kind), or with more fields in its structs. name: of the column, for the error."""
    if array.type == kind:
        return array
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        types = {f.name: f.type for f in kind}
        fields = [array.type.field(number).name for number in range(array.type.num_fields)]
        children = [
            _typed(child, types[field], f"{name}.{field}", zone) if field in types else child
            for field, child in zip(fields, array.flatten(), strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields, mask=mask)
    if pa.types.is_list(kind):
        offsets, first, count = runs(array)
        return pa.ListArray.from_arrays(offsets, _typed(array.values.slice(first, count), kind.value_type, name, zone), mask=mask)
    if pa.types.is_map(kind):
        offsets, first, count = runs(array)
        pairs = array.values.slice(first, count)
        keys = _typed(pairs.field("key"), kind.key_type, name, zone)
        return pa.MapArray.from_arrays(offsets, keys, _typed(pairs.field("value"), kind.item_type, name, zone), mask=mask)
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
            f"The column {name} of the file has a value that is no {kind} of a table: {error}. Nothing was committed. Mend the "
            "file: timestamps and dates are as 2024-01-31T10:00:00+01:00 and 2024-01-31, bytes are base64.",
            column=name,
        ) from error


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"{shown(text)} is not base64 ({error})") from error


def _parquet(file: str) -> pa.RecordBatchReader:
    from pyarrow.parquet import ParquetFile

    if file == STANDARD_INPUT:
        raise typer.BadParameter("Parquet is not read from standard input: its footer comes last.", param_hint="FILE")
    opened = ParquetFile(file)

    def batches() -> Iterator[pa.RecordBatch]:
        with opened:
            yield from opened.iter_batches()

    return pa.RecordBatchReader.from_batches(opened.schema_arrow, batches())
