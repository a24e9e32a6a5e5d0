"""WriteState: how to write files of one table. The driver makes it, and sends it to every task.

    state = write_state(config, store, read_version)

A rule that cannot be enforced by the tasks (an expression with an unknown function) refuses the write here, unless the data
contains the rule's results (hidden_rule_columns.py).
Protocol: Requirements for Writers.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from delta_py.errors import SchemaMismatchError
from delta_py.protocol.features import Properties
from delta_py.protocol.identity_columns import START as IDENTITY_START
from delta_py.protocol.identity_columns import identity_columns
from delta_py.protocol.parquet_settings import ParquetSettings
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.row_rules.bloom_filters import bloom_filters
from delta_py.row_rules.file_settings import current_file_settings
from delta_py.row_rules.geospatial import can_mark
from delta_py.row_rules.hidden_rule_columns import HiddenColumns
from delta_py.row_rules.row_constraints import (
    Clock,
    GeneratedColumn,
    RowCheck,
    RowRule,
    check_rule_lengths,
    generation_rule,
    marked_fields,
    table_rules,
)
from delta_py.row_rules.store_assignment_casts import unenforceable
from delta_py.statistics.stats_columns import stats_columns
from delta_py.storage.store import ObjectStore
from delta_py.types.char_types import char_types
from delta_py.types.column_rules import GENERATION, INVARIANT
from delta_py.types.schema import VOID, ArrayType, DataType, GeospatialType, MapType, Path, PrimitiveType, StructType, type_name
from delta_py.types.type_walk import direct_parts, fields_with_paths, types_with_paths

_MIB = 1024 * 1024
# How many characters of a text the statistics keep, unless the table says otherwise.
STRING_PREFIX = 32
_TARGET_FILE_BYTES = 256 * _MIB
_ROW_GROUP_ROWS = 1 << 20
_NO_HIDDEN_COLUMNS = HiddenColumns(None, ())
MATERIALIZED = "pydelta.materialized"  # in the metadata of a column that only data files have, under the same name
WRITE_ID_LENGTH = 23  # of a UUID's text; the remaining characters distinguish the attempts of tasks


def new_write_id() -> str:
    """A random text by which the names of all files of one write begin alike."""
    return str(uuid.uuid4())[:WRITE_ID_LENGTH]


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The sizes, names and Parquet settings of the data files of one write.

    compression, page_version: of the Parquet files, as pyarrow names them. random_prefix: the number of letters in the name of
    each file's random directory; 0: files are in the directories of their partitions. max_records_per_file: None for no limit.
    row_group_bytes, row_group_rows: how much a partition buffers before it writes a row group. buffer_bytes: how much a task
    buffers, over all partitions, before it writes the largest partition's rows. max_open_files: at most this many in one task.
    bloom_filters: by physical column (its path joined by dots), pyarrow's options of its Bloom filter. parquet_options: as in
    FileSettings.
    """

    compression: str = "zstd"
    page_version: str = "1.0"
    random_prefix: int = 0
    target_file_bytes: int = _TARGET_FILE_BYTES
    max_records_per_file: int | None = None
    row_group_bytes: int = 64 * _MIB
    row_group_rows: int = _ROW_GROUP_ROWS
    buffer_bytes: int = 192 * _MIB
    max_open_files: int = 64
    bloom_filters: Mapping[str, Mapping[str, int | float]] = field(default_factory=dict)
    parquet_options: Mapping[str, Any] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the layout in few bytes, because each task gets one: the fields at the end that have their defaults are left
        out."""
        values = _layout_values(self)
        count = len(values)
        while count and values[count - 1] == _LAYOUT_DEFAULTS[count - 1]:
            count -= 1
        return FileLayout, values[:count]


_layout_values = attrgetter(*FileLayout.__slots__)
_LAYOUT_DEFAULTS = _layout_values(FileLayout())


@dataclass(frozen=True, slots=True)
class WriteState:
    """How to write files of one table; the driver sends it to every task.

    read_version: the version whose schema and properties these are; -1 for a table that the same commit creates.
    schema, partition_columns: logical, in the table's order, with the metadata of column mapping.
    stats_columns: physical paths of the leaves that get statistics, in schema order. stats_string_prefix: how many characters of
    a text the statistics keep. keep_partition_columns: data files contain the partition columns too.
    write_id: a part of the names of all files of one write, by which the files of a failed write are found.
    data_change: False when the rows are only rearranged.
    time_zone: of the session, for conversions between texts and times. truncate_nanoseconds: as in TimeRules.
    insert_changes: write the rows as change data too, for a commit that has other changes in change data files.
    replace_where: SQL that every row must match, or None. checks_replace_where: False lets rows through that do not match.
    rules: the CHECK constraints and invariants of the table.
    write_micros: when the write began, since 1970 in UTC: the value of `current_timestamp()` in it.
    tasks: the maximum number of tasks that write, numbered from 0; None when that is not known. keeps_identities: rows contain
    the numbers of identity columns that they have in the table; a null in a new row stands for a number that the write assigns.
    rule_nonce: a part of the names of the data's hidden columns, in which Spark has computed rules; None if there are no such
    columns (hidden_rule_columns.py).
    """

    store: ObjectStore
    read_version: int
    schema: StructType
    partition_columns: tuple[str, ...] = ()
    column_mapping_mode: str = "none"
    stats_columns: tuple[Path, ...] = ()
    stats_string_prefix: int = STRING_PREFIX
    keep_partition_columns: bool = False
    layout: FileLayout = FileLayout()
    write_id: str = field(default_factory=new_write_id)
    data_change: bool = True
    time_zone: str = "UTC"
    insert_changes: bool = False
    replace_where: str | None = None
    checks_replace_where: bool = True
    rules: tuple[RowRule, ...] = ()
    write_micros: int = field(default_factory=lambda: time.time_ns() // 1000)
    tasks: int | None = None
    keeps_identities: bool = False
    rule_nonce: str | None = None
    truncate_nanoseconds: bool = False


def write_state(
    config: TableConfig,
    store: ObjectStore,
    read_version: int,
    *,
    new_rows: bool = True,
    hidden: HiddenColumns = _NO_HIDDEN_COLUMNS,
) -> WriteState:
    """What tasks need to write into a table. new_rows: False when rows of the table are only moved or deleted, so that no rule
    must be checked. hidden: finds the columns of the data in which Spark has computed rules (hidden_rule_columns.py).

    Raises UnsupportedTableFeatureError for a protocol that cannot be written, and for a rule on rows that this version cannot
    enforce, with the rule's name; SchemaMismatchError for a schema whose rows no data file can hold
    (DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE, DELTA_CANNOT_WRITE_EMPTY_SCHEMA); CorruptTableError for a property with an
    invalid value.
    """
    if new_rows:
        _check_stored_parts(config.schema, ())
    return _write_state(config, store, read_version, new_rows=new_rows, hidden=hidden)


def for_rearranged_rows(state: WriteState, target_file_bytes: int) -> WriteState:
    """The same state for rows that are only rearranged, in files of about this size, however many rows they have."""
    layout = replace(state.layout, target_file_bytes=target_file_bytes, max_records_per_file=None)
    return replace(state, data_change=False, layout=layout)


def check_definition(config: TableConfig, store: ObjectStore, read_version: int) -> None:
    """Check the protocol, the rules and the properties of a table that is defined without rows. Raises as write_state. The table
    may have columns for which no row can be written, or no columns at all: it can get others before its first row."""
    _write_state(config, store, read_version, new_rows=True, hidden=_NO_HIDDEN_COLUMNS)


def _write_state(
    config: TableConfig, store: ObjectStore, read_version: int, *, new_rows: bool, hidden: HiddenColumns
) -> WriteState:
    """As write_state, but without the check that data files can hold rows of the schema."""
    config.require(Operation.WRITE)
    rules = table_rules(config)
    if new_rows:
        _check_enforceable(config, rules, hidden)
    properties = config.properties
    return WriteState(
        store=store,
        read_version=read_version,
        schema=config.schema,
        partition_columns=tuple(config.partition_columns),
        column_mapping_mode=config.column_mapping_mode,
        stats_columns=stats_columns(config),
        stats_string_prefix=properties.integer("delta.dataSkippingStringPrefixLength", STRING_PREFIX),
        keep_partition_columns=keeps_partition_columns(config),
        layout=_file_layout(config),
        rules=rules,
    )


def _file_layout(config: TableConfig) -> FileLayout:
    """The table's settings, except those that the block of code replaces with file_settings."""
    properties = config.properties
    parquet, settings = ParquetSettings.of(properties), current_file_settings()
    return FileLayout(
        compression=settings.compression or parquet.codec,
        page_version=parquet.page_version,
        random_prefix=_random_prefix(properties),
        target_file_bytes=settings.target_file_bytes or properties.size("delta.targetFileSize", _TARGET_FILE_BYTES),
        row_group_rows=settings.row_group_rows or _ROW_GROUP_ROWS,
        bloom_filters=bloom_filters(config),
        parquet_options=dict(settings.parquet_options),
    )


def _random_prefix(properties: Properties) -> int:
    """FileLayout.random_prefix, from the table's properties: 2 letters by default if prefixes are random."""
    return properties.integer("delta.randomPrefixLength", 2) if properties.boolean("delta.randomizeFilePrefixes") else 0


def keeps_partition_columns(config: TableConfig) -> bool:
    """Whether data files contain the partition columns too. Protocol: Data Files; Writer Requirements for IcebergCompatV1."""
    if config.iceberg_versions:
        return True
    return config.feature("materializePartitionColumns") or config.properties.boolean("delta.writePartitionColumnsToParquet")


def _check_enforceable(config: TableConfig, rules: tuple[RowRule, ...], hidden: HiddenColumns) -> None:
    """Refuse the write if a rule cannot be checked here: an unknown rule may be violated."""
    check_rule_lengths(config)
    # The rules are only resolved here, and not applied to rows, so any time will do.
    schema, clock = config.schema, Clock(0)
    for rule in rules:
        if hidden.find(rule, schema, config.partition_columns) is None:
            RowCheck(rule, schema, clock)
    for f in schema.fields:
        if GENERATION in f.metadata and hidden.find(generation_rule(f), schema, config.partition_columns) is None:
            GeneratedColumn(f, schema, clock)
        # Raises for a declared type whose lengths cannot be read.
        char_types(f, strict=True)
    for path, (what, _, feature), text in _unenforced_rules(schema):
        raise unenforceable(f"{what} on column {'.'.join(path)}", text, feature)
    for path, part in types_with_paths(schema):
        if path and not _is_writable(part):
            raise unenforceable(f"column {'.'.join(path)}", type_name(part), type_name(part))


def _is_writable(part: DataType) -> bool:
    """Whether Parquet files of this version can hold values of the type. Void has no values: it is left out."""
    if isinstance(part, GeospatialType):
        return can_mark(part)
    return not isinstance(part, PrimitiveType) or part.name in _WRITABLE_TYPES or part == VOID


def _check_stored_parts(data_type: DataType, path: Path) -> None:
    """Files leave out void columns and void fields of structs, because readers read a missing column as null. Nothing else can be
    left out, and a struct needs a field that is stored.

    Raises SchemaMismatchError: DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE for void anywhere in an array or a map,
    DELTA_CANNOT_WRITE_EMPTY_SCHEMA for a struct, or a table, without other fields.
    """
    if isinstance(data_type, ArrayType | MapType) and any(part == VOID for _, part in types_with_paths(data_type)):
        kind = "an array" if isinstance(data_type, ArrayType) else "a map"
        raise SchemaMismatchError(
            f"Column {'.'.join(path)} is {type_name(data_type)}. Void is the type of values that are all null, and Delta has no "
            f"void in {kind}. Nothing was written. Cast the column to a type without void, such as array<string>, or leave it "
            "out.",
            error_class="DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
            sql_state="22005",
            column=".".join(path),
            data_type=type_name(data_type),
        )
    if isinstance(data_type, StructType) and all(f.data_type == VOID for f in data_type.fields):
        raise _without_stored_fields(data_type, ".".join(path))
    for inner_path, inner in direct_parts(data_type, path):
        _check_stored_parts(inner, inner_path)


def _without_stored_fields(data_type: StructType, name: str) -> SchemaMismatchError:
    """The error for a struct, or for a table (name is empty), of which data files would store no field."""
    where = f"Column {name} is {type_name(data_type)}" if name else f"The table has the columns {', '.join(data_type.names)}"
    part = f"a {'field' if name else 'column'}"
    if data_type.fields:
        condition = "STRUCT_ALL_VOID_FIELDS" if name else "TABLE_ALL_VOID_COLUMNS"
        why = f"{where}, all of type void, and data files leave those out"
    else:
        condition = "STRUCT_NO_FIELDS" if name else "TABLE_NO_COLUMNS"
        why = f"{where if name else 'The table has no columns'}, and a data file needs {part} there"
    return SchemaMismatchError(
        f"{why}. Nothing was written. Add {part} with a type{', or cast one that is there' if data_type.fields else ''}.",
        error_class=f"DELTA_CANNOT_WRITE_EMPTY_SCHEMA.{condition}",
        sql_state="428GU",
        column=name or None,
        data_type=type_name(data_type),
    )


def _unenforced_rules(schema: StructType) -> Iterator[tuple[Path, tuple[str, str, str], str]]:
    """Rules on fields that are not enforced here, because no rule is expected at this place: the field's path, the entry of
    _FIELD_RULES, and the text in the metadata."""
    enforced_paths: dict[str, set[Path]] = {
        INVARIANT: {path for path, _ in marked_fields(schema, INVARIANT)},
        GENERATION: {(name,) for name in schema.names},
        IDENTITY_START: {(column.name,) for column in identity_columns(schema)},
    }
    for path, nested_field in fields_with_paths(schema):
        for rule in _FIELD_RULES:
            mark = rule[1]
            if mark in nested_field.metadata and path not in enforced_paths.get(mark, set()):
                yield path, rule, str(nested_field.metadata[mark])


# For each rule: its name in messages, the key in the metadata of a field, and the table feature.
_FIELD_RULES = (
    ("the invariant", INVARIANT, "invariants"),
    ("the generation expression", GENERATION, "generatedColumns"),
    ("the identity column rule", IDENTITY_START, "identityColumns"),
)
_NUMBER_TYPES = frozenset({"long", "integer", "short", "byte", "float", "double"})
_WRITABLE_TYPES = _NUMBER_TYPES | {"string", "binary", "boolean", "date", "timestamp", "timestamp_ntz", "variant"}
