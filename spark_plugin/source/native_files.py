"""Decides which files of a scan executors may read with Spark's own Parquet reader, and describes them for the reader's Java
code.

    native, why = native_files(scan, wish)  # None: Python reads all of them
    simple_files, other_files, share = native.split(scan.files)
    native.stream_of(files)                  # a task's files, for the task's partition
    native.facts                             # facts about the scan, for the plan

A "simple" file or column is one that Spark's reader reads as Python does. Unknown means Python: Python reads every column, type
or file that Spark might not read in the same way. FileSchema.java checks whether a file stores the table's types when it reads
the file.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import DeltaError, shown
from delta_py.expressions.tree import (
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    StringMatch,
    conjuncts,
)
from delta_py.parquet.row_counts import read_first_group_row_count
from delta_py.protocol.collations import is_collated
from delta_py.protocol.paths import are_plain
from delta_py.scan.char_padding import padded_chars
from delta_py.scan.file_groups import PART_BYTES, PART_START, bytes_to_read
from delta_py.scan.file_pruner import partition_texts, typed_partition_values
from delta_py.scan.planning import Scan
from delta_py.scan.scan_state import ColumnSource, ScanColumn, ScanState
from delta_py.types.char_types import DECLARED_TYPE
from delta_py.types.column_rules import TYPE_CHANGES
from delta_py.types.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    schema_to_json,
)
from delta_py.types.sizes import bytes_text
from spark_plugin.options import read_limits
from spark_plugin.pruning import NativeWish

_TYPES = frozenset(
    {
        *("boolean", "byte", "short", "integer", "long", "float", "double"),
        *("string", "binary", "date", "timestamp", "timestamp_ntz"),
    }
)
_PARTITION_TYPES = _TYPES - {"float", "double", "binary"}
# The types whose comparisons Spark's reader gets (NativeScan.java, and Spark itself).
_COMPARED_TYPES = _PARTITION_TYPES - {"timestamp_ntz"}
# A rough estimate of how much faster Spark's reader is than Python for a column of the type, in small row groups; below 0 it is
# slower. Arrow decodes plain numbers faster. Values from Python are copied, and decimals, texts and nested values are expensive
# to copy.
_GAINS = {
    **dict.fromkeys(("long", "double", "timestamp", "timestamp_ntz"), -1),
    **dict.fromkeys(("boolean", "byte", "short", "integer", "float"), 0),
    **dict.fromkeys(("string", "binary", "date"), 1),
}
_GAIN_OF_DECIMALS, _GAIN_OF_NESTED = 2, 4
# The column sources that Spark's reader knows, by the letters that the Java code uses for them.
_SOURCE_LETTERS = {ColumnSource.DATA: "d", ColumnSource.PARTITION: "p"}
# Spark's reader fills columns of these names with row numbers.
_RESERVED = frozenset({"_tmp_metadata_row_index", "row_index"})
# The fields of a file that the reader's Java code takes. The values of partition columns follow; their texts are for Python.
_FIELDS_FOR_JAVA = ("path", "size", "modification_time", "deletion_vector", PART_START, PART_BYTES)


@dataclass(frozen=True, slots=True)
class NativeFiles:
    """Tells which files of a scan Spark's own Parquet reader may read, and describes them for it.

    facts: how it reads all of them, as messages.json describes `parquet` in the plan. partitions: the scan's partition columns,
    in order; their values are in no file, so the description of each file contains them. timezone: the time zone of partition
    values that are timestamps without an offset."""

    facts: Mapping[str, Any]
    partitions: tuple[ScanColumn, ...]
    timezone: str

    def split(self, files: pa.Table) -> tuple[pa.Table, pa.Table, float]:
        """Return the simple files, the other files, and the share of all bytes that the simple files have."""
        are_simple = _are_simple(files)
        return files.filter(are_simple), files.filter(pc.invert(are_simple)), _share_of_bytes(files, are_simple)

    def stream_of(self, files: pa.Table) -> bytes:
        """Return a task's files as an Arrow stream with one row per file: the fields of _FIELDS_FOR_JAVA, a typed value for each
        partition column, and the untyped partition values, from which Python reads if Spark's reader gives up. files: only simple
        files."""
        values = [self._partition_values(column, files) for column in self.partitions]
        value_names = [f"value {position}" for position in range(len(values))]
        columns = [*(files[name] for name in _FIELDS_FOR_JAVA), *values, files["partition_values"]]
        table = pa.table(columns, names=[*_FIELDS_FOR_JAVA, *value_names, "partition_values"])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        stream: bytes = sink.getvalue().to_pybytes()
        return stream

    def _partition_values(self, column: ScanColumn, files: pa.Table) -> pa.Array:
        """Return the value that each file has in a partition column, in the column's type."""
        texts = [partition_texts(batch, column.physical.name) for batch in files.to_batches()]
        return typed_partition_values(pa.chunked_array(texts, pa.string()), column.logical, self.timezone)


def native_files(scan: Scan, wish: NativeWish) -> tuple[NativeFiles | None, str]:
    """Return the files that Spark's own reader reads, or None if Python reads every file, and why. wish: whether Spark's reader
    reads all files that it can, or only if that is likely quicker."""
    state = scan.state
    why_not = _why_not_as_spark(state)
    if why_not is not None:
        return None, why_not
    if not scan.files.num_rows:
        return None, "no file is read"
    are_simple = _are_simple(scan.files)
    share = _share_of_bytes(scan.files, are_simple)
    if not share:
        return None, "no file lies below the table's directory, with its deletion vector"
    # If some column is nested, rows of other files, which Python reads, are converted to columns again.
    if share < read_limits.PARQUET_LEAST_SHARE and any(_is_nested(column.logical.data_type) for column in state.columns):
        return None, f"columns are nested, and only {share:.0%} of the bytes are in simple files"
    why = "it is preferred in this session"
    if wish is NativeWish.WHERE_QUICKER:
        is_quicker, why = _is_quicker(scan, are_simple)
        if not is_quicker:
            return None, why
    facts = {
        "kinds": "".join(_SOURCE_LETTERS[column.source] for column in state.columns),
        "root": state.store.root,
        "schema": json.loads(schema_to_json(StructType(tuple(_bare(column.physical) for column in state.columns)))),
        "verify_checksums": state.verify_checksums,
        "most_batch_bytes": read_limits.PARQUET_BATCH_BYTES,
    }
    partitions = tuple(column for column in state.columns if column.source is ColumnSource.PARTITION)
    return NativeFiles(facts, partitions, state.timezone), why


def _why_not_as_spark(state: ScanState) -> str | None:
    """Return why Spark's reader would not read the columns as Python does, or None if it would."""
    # Only Python applies the predicate exactly, checks values before they are written again, and finds columns by field ids.
    if state.drop_rows:
        return "the scan itself leaves out rows"
    if state.to_write:
        return "the rows are read to be written"
    if state.match_by_id:
        return "columns are found by their ids"
    names = [column.physical.name.lower() for column in state.columns]
    if len(set(names)) < len(names):
        return "two columns have the same name but for case"
    if not state.store.root.startswith("/"):
        return "the table is not on a local disk"
    special_column = next((column for column in state.columns if not _is_simple(column)), None)
    if special_column is None:
        return None
    return f"Spark's reader does not read the column {shown(special_column.logical.name)} as Python does"


def _are_simple(files: pa.Table) -> pa.ChunkedArray:
    """Return, for each file, whether it lies below the table's directory, and so does its deletion vector if it has one."""
    # The storage type "u" is a file in the table's directory that is named by a UUID.
    storage_type, offset = (pc.struct_field(files["deletion_vector"], name) for name in ("storageType", "offset"))
    has_vector_in_table = pc.and_(pc.fill_null(pc.equal(storage_type, "u"), False), pc.is_valid(offset))
    return pc.and_(pc.or_(pc.is_null(storage_type), has_vector_in_table), are_plain(files["path"]))


def _share_of_bytes(files: pa.Table, are_simple: pa.ChunkedArray) -> float:
    """Return the share of bytes that the simple files have, from 0 to 1; 0 if there are none."""
    if not pc.any(are_simple).as_py():
        return 0.0
    sizes = np.maximum(bytes_to_read(files).to_numpy(), 1)  # the log may contain sizes of 0, and their sum is a divisor
    return float(sizes[are_simple.to_numpy()].sum() / sizes.sum())


# ---------------------------------------------------------------- which road is quicker


def _is_quicker(scan: Scan, are_simple: pa.ChunkedArray) -> tuple[bool, str]:
    """Return whether Spark's reader is likely faster than Python for the columns that are read from the files, and why.
    are_simple: for each file, whether Spark's reader may read it."""
    if pc.any(pc.is_valid(pc.struct_field(scan.files["deletion_vector"], "storageType"))).as_py():
        return True, "files have deleted rows"
    size = bytes_to_read(scan.files).to_numpy().sum(dtype=np.float64)
    if size <= read_limits.PARQUET_SMALL_BYTES:
        return True, f"the files have at most {bytes_text(read_limits.PARQUET_SMALL_BYTES)}"
    if size <= read_limits.PARQUET_NARROWED_BYTES and _is_narrow(scan):
        return True, "rows that match likely lie on few pages of few files"
    stored_types = [column.logical.data_type for column in scan.state.columns if column.source is ColumnSource.DATA]
    if sum(map(_gain, stored_types)) > 0:
        return True, "it is quicker for columns of these types"
    if _has_large_groups(scan.state, scan.files.filter(are_simple)):
        return True, f"row groups have {read_limits.PARQUET_GROUP_ROWS:,} rows and more"
    return False, "Python is likely quicker for columns of these types in small row groups"


def _has_large_groups(state: ScanState, files: pa.Table) -> bool:
    """Return whether the first row group of the largest file has PARQUET_GROUP_ROWS rows: most bytes are likely in files like
    this one. Returns False if its footer cannot be read, or is too large to read here.

    files: files on this machine without deletion vectors.
    """
    largest = files.slice(int(np.argmax(files["size"].to_numpy())), 1).select(["path", "size"]).to_pylist()[0]
    try:
        rows = read_first_group_row_count(
            state.store, largest["path"], largest["size"], most_bytes=read_limits.PARQUET_FOOTER_BYTES
        )
    except (OSError, DeltaError, pa.ArrowException):
        return False  # Python reports the error better when it reads the file
    return rows is not None and rows >= read_limits.PARQUET_GROUP_ROWS


def _is_narrow(scan: Scan) -> bool:
    """Return whether matching rows likely lie on few pages of few files, and Spark's reader can find these pages: it gets every
    condition of the predicate, and can compare each with the bounds of pages."""
    if scan.ruled_out < read_limits.PARQUET_RULED_OUT or scan.files.num_rows > read_limits.PARQUET_NARROWED_FILES:
        return False
    if scan.state.predicate is None:
        return False
    if scan.state.verify_checksums:
        return False  # in this case Spark's reader does not use page indexes (NativeReads.java)
    data = [column.logical for column in scan.state.columns if column.source is ColumnSource.DATA]
    comparable_columns = {column.name for column in data if _is_one_of(_COMPARED_TYPES, column.data_type)}
    # Spark itself adds IS NOT NULL to comparisons, so these parts say nothing about the query.
    parts = [part for part in conjuncts(scan.state.predicate) if not _is_null_check(part)]
    return len(parts) > 0 and all(_is_decided_by_pages(part, comparable_columns) for part in parts)


def _is_null_check(part: Expression) -> bool:
    """Return whether a condition is IS NULL or IS NOT NULL."""
    return isinstance(part.operand if isinstance(part, Not) else part, IsNull)


def _is_decided_by_pages(part: Expression, comparable_columns: Container[str]) -> bool:
    """Return whether Spark's reader compares the condition with the bounds of pages. comparable_columns: names of the columns
    whose bounds it can compare."""
    match part:
        case Comparison(_, Column((name,)), Literal()) | Comparison(_, Literal(), Column((name,))) | In(Column((name,))):
            return name in comparable_columns
        case StringMatch("startswith", Column((name,))):
            return name in comparable_columns
        case And(operands) | Or(operands):
            return all(_is_decided_by_pages(operand, comparable_columns) for operand in operands)
        case Not(operand):
            return _is_decided_by_pages(operand, comparable_columns)
    return False


def _gain(kind: DataType) -> int:
    """Return how much faster Spark's reader is for one column of the type, in the rough units of _GAINS."""
    match kind:
        case PrimitiveType(name):
            return _GAINS[name]
        case DecimalType():
            return _GAIN_OF_DECIMALS
    return _GAIN_OF_NESTED


# ---------------------------------------------------------------- columns


def _is_simple(column: ScanColumn) -> bool:
    """Return whether Spark's reader returns the column as Python does, without a conversion afterwards."""
    logical = column.logical
    # Not simple: values that no file stores, types that have changed, names that Spark's reader reserves, CHAR texts that may
    # need padding, and texts with a collation.
    if column.source not in _SOURCE_LETTERS or not _is_type_unchanged(logical) or column.physical.name.lower() in _RESERVED:
        return False
    if padded_chars(logical) is not None or is_collated(logical):
        return False
    if DECLARED_TYPE in logical.metadata and _is_nested(logical.data_type):
        return False
    if column.source is ColumnSource.PARTITION:
        return _is_one_of(_PARTITION_TYPES, logical.data_type)
    return _spark_reads_the_same(logical.data_type)


def _is_type_unchanged(field: StructField) -> bool:
    """Return whether the type of the field has never changed."""
    return TYPE_CHANGES not in field.metadata


def _is_one_of(names: Container[str], kind: DataType) -> bool:
    """Return whether the type is a decimal or one of the primitive types."""
    return isinstance(kind, DecimalType) or (isinstance(kind, PrimitiveType) and kind.name in names)


def _is_nested(kind: DataType) -> bool:
    return isinstance(kind, StructType | ArrayType | MapType)


def _spark_reads_the_same(kind: DataType) -> bool:
    """Return whether Spark's Parquet reader returns the same values of this type as Python's."""
    match kind:
        case DecimalType():
            return True
        case PrimitiveType(name):
            return name in _TYPES
        case StructType(fields):
            return len(fields) > 0 and all(
                _is_type_unchanged(field) and _spark_reads_the_same(field.data_type) for field in fields
            )
        case ArrayType(element):
            return _spark_reads_the_same(element)
        case MapType(key, value):
            return _spark_reads_the_same(key) and _spark_reads_the_same(value)
    return False


def _bare(field: StructField) -> StructField:
    """Return the field with only its name and its type. Every value may be null, because a file may lack a column."""
    return StructField(field.name, _bare_type(field.data_type))


def _bare_type(kind: DataType) -> DataType:
    match kind:
        case StructType(fields):
            return StructType(tuple(map(_bare, fields)))
        case ArrayType(element):
            return ArrayType(_bare_type(element), True)
        case MapType(key, value):
            return MapType(_bare_type(key), _bare_type(value), True)
    return kind
