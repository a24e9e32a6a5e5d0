"""The gate for rows that are written: what a table allows, applied to Arrow batches.

    state = write_state(config, table_root, read_version)      # driver
    lawful = Conformer(state, data_schema).conform(batch)      # executor

In: batches in any column order and any case of names, in Arrow types that the columns' types hold without loss.
Out: LawfulBatch, in the table's own column order and Arrow types, every NOT NULL kept. The Parquet encoder
(files.py) takes nothing else. What cannot be enforced here (a CHECK constraint, a generated column, ...) refuses the
write when the WriteState is built.
Protocol: Requirements for Writers.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from delta_py.errors import (
    InvariantViolationError,
    SchemaMismatchError,
    UnsupportedOperationError,
)
from delta_py.protocol.schema import (
    VOID,
    ArrayType,
    DataType,
    MapType,
    Path,
    PrimitiveType,
    StructField,
    StructType,
    to_arrow_schema,
    type_name,
)
from delta_py.protocol.stats_columns import stats_columns
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.write.casts import assign, check_may_be_absent, extra_columns, runs, unenforceable

_MIB = 1024 * 1024
_CODECS = ("uncompressed", "none", "snappy", "gzip", "lz4", "lz4_raw", "zstd")
_STRING_PREFIX = 32
WRITE_ID_LENGTH = 23  # of a UUID's text; what follows tells the tasks' attempts apart


@dataclass(frozen=True, slots=True)
class WriteState:
    """How to write files of one table; goes from the driver to every task.

    read_version: the version whose schema and properties these are; -1 for a table that the same commit creates.
    schema, partition_columns: logical, in the table's order, with the metadata of column mapping.
    stats_columns: physical paths of the leaves that get statistics, in schema order.
    buffer_bytes: rows held back in memory, over all partitions, before the largest share is written.
    write_id: a part of the names of all files of one write, by which those of a failed one are found.
    data_change: False when the rows are only arranged anew. max_records_per_file: None for no limit.
    time_zone: of the session, in which texts and times are turned into each other.
    """

    table_root: str
    read_version: int
    schema: StructType
    partition_columns: tuple[str, ...] = ()
    column_mapping_mode: str = "none"
    stats_columns: tuple[Path, ...] = ()
    stats_string_prefix: int = _STRING_PREFIX
    compression: str = "zstd"
    keep_partition_columns: bool = False
    target_file_bytes: int = 256 * _MIB
    row_group_bytes: int = 64 * _MIB
    row_group_rows: int = 1 << 20
    buffer_bytes: int = 192 * _MIB
    max_open_files: int = 64
    write_id: str = field(default_factory=lambda: str(uuid.uuid4())[:WRITE_ID_LENGTH])
    data_change: bool = True
    max_records_per_file: int | None = None
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class LawfulBatch:
    """Rows that may be written: made by Conformer.conform and `unchanged`, by nothing else.

    batch: schema exactly `to_arrow_schema(state.schema)`, logical names.
    """

    batch: pa.RecordBatch


def unchanged(batch: pa.RecordBatch) -> LawfulBatch:
    """Rows that were read from the same table, with its schema, and are written back as they are."""
    return LawfulBatch(batch)


# ---------------------------------------------------------------- the state, on the driver


def write_state(config: TableConfig, table_root: str, read_version: int) -> WriteState:
    """What tasks need to write into a table.

    Raises UnsupportedTableFeatureError for a protocol that cannot be written, and for a rule on rows that this version
    cannot enforce, by its name; CorruptTableError for a property whose value makes no sense.
    """
    config.require(Operation.WRITE)
    _refuseunenforceable(config)
    properties = config.properties
    return WriteState(
        table_root=table_root,
        read_version=read_version,
        schema=config.schema,
        partition_columns=tuple(config.partition_columns),
        column_mapping_mode=config.column_mapping_mode,
        stats_columns=stats_columns(config),
        stats_string_prefix=properties.integer("delta.dataSkippingStringPrefixLength", _STRING_PREFIX),
        compression=compression_codec(properties.get("delta.parquet.compression.codec")),
        keep_partition_columns=config.feature("materializePartitionColumns"),
    )


def compression_codec(name: str | None) -> str:
    """A codec's name as pyarrow spells it; the protocol's default for None."""
    codec = (name or "zstd").lower()
    if codec not in _CODECS:
        raise UnsupportedOperationError(
            f"delta.parquet.compression.codec is {name!r}, which this version cannot write. Use one of {', '.join(_CODECS)}.",
            codec=name,
        )
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(codec, codec)


def _refuseunenforceable(config: TableConfig) -> None:
    """A rule that this gate cannot check refuses the write: unknown is not lawful."""
    for key, text in config.properties.items():
        if key.lower().startswith("delta.constraints."):
            raise unenforceable("the CHECK constraint " + key[len("delta.constraints.") :], text, "checkConstraints")
    for path, found in _all_fields(config.schema):
        for mark, (what, feature) in _FIELD_RULES.items():
            if mark in found.metadata:
                raise unenforceable(f"{what} on column {'.'.join(path)}", str(found.metadata[mark]), feature)
    for path, part in _all_types(config.schema):
        if path and not _is_writable(part, len(path) == 1):
            raise unenforceable(f"column {'.'.join(path)}", type_name(part), type_name(part))


def _is_writable(part: DataType, top_level: bool) -> bool:
    """Whether Parquet files of this version can hold the type; void columns are left out of files, at the top only."""
    if isinstance(part, PrimitiveType):
        return part.name in _WRITABLE or (part == VOID and top_level)
    return not isinstance(part, StructType) or bool(part.fields)


_FIELD_RULES = {
    "delta.invariants": ("the invariant", "invariants"),
    "delta.generationExpression": ("the generation expression", "generatedColumns"),
    "delta.identity.start": ("the identity column rule", "identityColumns"),
    "__CHAR_VARCHAR_TYPE_STRING": ("the length limit", "char and varchar"),
}
_NUMBERS = frozenset({"long", "integer", "short", "byte", "float", "double"})
_WRITABLE = _NUMBERS | {"string", "binary", "boolean", "date", "timestamp", "timestamp_ntz"}


def _all_fields(data_type: DataType, path: Path = ()) -> Iterator[tuple[Path, StructField]]:
    """Every struct field at any depth, inside arrays and maps too."""
    match data_type:
        case StructType(fields):
            for f in fields:
                yield (*path, f.name), f
                yield from _all_fields(f.data_type, (*path, f.name))
        case ArrayType(element, _):
            yield from _all_fields(element, (*path, "element"))
        case MapType(key, value, _):
            yield from _all_fields(key, (*path, "key"))
            yield from _all_fields(value, (*path, "value"))


# ---------------------------------------------------------------- batches, on an executor


class Conformer:
    """Makes batches of one Arrow schema lawful for one table.

    Raises, before any row is seen, SchemaMismatchError (DELTA_METADATA_MISMATCH for a column that the table lacks,
    DELTA_DUPLICATE_COLUMNS_FOUND, DELTA_FAILED_TO_MERGE_FIELDS for a type that does not fit) and
    InvariantViolationError (DELTA_MISSING_NOT_NULL_COLUMN_VALUE).
    """

    def __init__(self, state: WriteState, data_schema: pa.Schema) -> None:
        self._schema = state.schema
        self._arrow_schema = to_arrow_schema(state.schema)
        self._sources = _sources(state.schema, data_schema)
        no_rows = [column.combine_chunks() for column in data_schema.empty_table().columns]
        self.conform(pa.RecordBatch.from_arrays(no_rows, schema=data_schema))

    def conform(self, batch: pa.RecordBatch) -> LawfulBatch:
        """The batch in the table's columns and types.

        Raises SchemaMismatchError (DELTA_CAST_OVERFLOW_IN_TABLE_WRITE) for a value that the column's type cannot hold
        exactly, InvariantViolationError (DELTA_NOT_NULL_CONSTRAINT_VIOLATED) for a null where none may be.
        """
        arrays = []
        for f, source in zip(self._schema.fields, self._sources, strict=True):
            given = pa.nulls(batch.num_rows) if source is None else batch.column(source)
            array = assign(given, f.data_type, f.name)
            _check_not_null(array, f.data_type, f.nullable, f.name)
            arrays.append(array)
        return LawfulBatch(pa.RecordBatch.from_arrays(arrays, schema=self._arrow_schema))


def _sources(schema: StructType, data_schema: pa.Schema) -> list[int | None]:
    """For each column of the table the position of its column in the data, None for one that the data lacks."""
    if not schema.fields:
        raise SchemaMismatchError(
            "The table has no columns, so no rows can be written. Add columns first.", error_class="DELTA_EMPTY_DATA"
        )
    positions: dict[str, int] = {}
    for position, name in enumerate(data_schema.names):
        if name.lower() in positions:
            raise SchemaMismatchError(
                f"The data has the column {name} more than once (names that differ only in case are the same). Rename one.",
                error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
                sql_state="42711",
                column=name,
            )
        positions[name.lower()] = position
    known = {f.name.lower() for f in schema.fields}
    extra = [name for name in data_schema.names if name.lower() not in known]
    if extra:
        raise extra_columns(extra, schema.names, "the table")
    for f in schema.fields:
        if f.name.lower() not in positions:
            check_may_be_absent(f, f.name)
    return [positions.get(f.name.lower()) for f in schema.fields]


# ---------------------------------------------------------------- NOT NULL


def _check_not_null(array: pa.Array, data_type: DataType, nullable: bool, name: str) -> None:
    """Raise for a null where none may be. Inside a struct, list or map that is null itself nothing is asked for.
    Protocol: Column Invariants."""
    if not nullable and array.null_count:
        raise InvariantViolationError(
            f"NOT NULL constraint violated for column: {name} ({array.null_count} of {len(array)} rows of a batch are null). "
            "Nothing was written. Give the column values.",
            error_class="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
            sql_state="23502",
            column=name,
        )
    match data_type:
        case StructType(fields) if _has_rule(data_type):
            held = array if array.null_count == 0 else array.drop_null()
            for position, f in enumerate(fields):
                _check_not_null(held.field(position), f.data_type, f.nullable, f"{name}.{f.name}")
        case ArrayType(element, contains_null) if _has_rule(data_type):
            _check_not_null(array.flatten(), element, contains_null, f"{name}.element")
        case MapType(key, value, value_contains_null) if _has_rule(data_type):
            held = array if array.null_count == 0 else array.drop_null()
            _, first, count = runs(held)
            _check_not_null(held.keys.slice(first, count), key, True, f"{name}.key")
            _check_not_null(held.items.slice(first, count), value, value_contains_null, f"{name}.value")


def _has_rule(data_type: DataType) -> bool:
    """Whether any part of the type forbids nulls."""
    match data_type:
        case StructType(fields):
            return any(not f.nullable or _has_rule(f.data_type) for f in fields)
        case ArrayType(element, contains_null):
            return not contains_null or _has_rule(element)
        case MapType(key, value, value_contains_null):
            return not value_contains_null or _has_rule(key) or _has_rule(value)
    return False


# ---------------------------------------------------------------- names of new columns

INVALID_CHARACTERS = " ,;{}()\n\t="


def check_new_schema(schema: StructType, column_mapping_mode: str) -> None:
    """Names of a new table, at every depth.

    Raises SchemaMismatchError: DELTA_DUPLICATE_COLUMNS_FOUND for names that differ at most in case,
    DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES for characters that need column mapping.
    """
    _check_duplicates(schema, ())
    if column_mapping_mode != "none":
        return
    bad = [".".join(path) for path, f in _all_fields(schema) if any(character in INVALID_CHARACTERS for character in f.name)]
    if bad:
        raise SchemaMismatchError(
            f"Column names with any of the characters {INVALID_CHARACTERS!r} need column mapping: {', '.join(map(repr, bad))}. "
            "Rename the columns, or create the table with the property delta.columnMapping.mode = name.",
            error_class="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
            sql_state="42K05",
            columns=bad,
        )


def _check_duplicates(data_type: DataType, path: Path) -> None:
    if isinstance(data_type, StructType):
        names = [f.name.lower() for f in data_type.fields]
        twice = sorted({f.name for f in data_type.fields if names.count(f.name.lower()) > 1})
        if twice:
            where = f" in {'.'.join(path)}" if path else ""
            raise SchemaMismatchError(
                f"Columns have one name{where} (names that differ only in case are the same): {', '.join(twice)}. Rename one.",
                error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
                sql_state="42711",
                columns=twice,
            )
    for inner_path, inner in _direct_parts(data_type, path):
        _check_duplicates(inner, inner_path)


def _all_types(data_type: DataType, path: Path = ()) -> Iterator[tuple[Path, DataType]]:
    """The type and every type inside it."""
    yield path, data_type
    for inner_path, inner in _direct_parts(data_type, path):
        yield from _all_types(inner, inner_path)


def _direct_parts(data_type: DataType, path: Path) -> Iterator[tuple[Path, DataType]]:
    match data_type:
        case StructType(fields):
            yield from (((*path, f.name), f.data_type) for f in fields)
        case ArrayType(element, _):
            yield (*path, "element"), element
        case MapType(key, value, _):
            yield (*path, "key"), key
            yield (*path, "value"), value
