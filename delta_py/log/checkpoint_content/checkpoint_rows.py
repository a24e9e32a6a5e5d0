"""The rows of the checkpoints that we write: their Arrow types, and the conversion of file actions to them.

In: add and remove actions, as JSON objects of commits or as columns of an older checkpoint of any writer. Out: struct arrays of
RowShape.add_type and REMOVE_TYPE. Paths remain the text that the log has.
Protocol: Checkpoint Schema; Checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.log.checkpoint_content.checkpoint_files import all_json, as_text, as_type, decoding, deletion_vectors
from delta_py.log.checkpoint_content.parquet_part import ParquetPart
from delta_py.log.commit_reader import DELETION_VECTOR_TYPE, corrupt_line, text_map
from delta_py.log.segment import LogFile
from delta_py.protocol.parquet_settings import ParquetSettings
from delta_py.protocol.partition_values import parse_partition_values
from delta_py.protocol.paths import decode_paths
from delta_py.protocol.table_config import TableConfig
from delta_py.statistics.stats import json_to_struct, stats_struct_type
from delta_py.statistics.stats_columns import stats_columns
from delta_py.types.arrow_values import all_false
from delta_py.types.schema import DataType, Path, find_path, to_arrow_type

# The fields of file actions by name, aligned.
Columns: TypeAlias = dict[str, pa.Array]

_TEXT_MAP = pa.map_(pa.string(), pa.string())
_TEXTS = pa.list_(pa.string())
# The fields of file actions and their Arrow types: _ADD_OR_REMOVE are the fields that adds and removes share.
_ADD_OR_REMOVE = {
    "path": pa.string(),
    "partitionValues": _TEXT_MAP,
    "size": pa.int64(),
    "dataChange": pa.bool_(),
    "deletionVector": DELETION_VECTOR_TYPE,
    "baseRowId": pa.int64(),
    "defaultRowCommitVersion": pa.int64(),
}
_ADD = {**_ADD_OR_REMOVE, "modificationTime": pa.int64(), "tags": _TEXT_MAP, "clusteringProvider": pa.string()}
_REMOVE = {**_ADD_OR_REMOVE, "deletionTimestamp": pa.int64(), "extendedFileMetadata": pa.bool_()}
REMOVE_TYPE = pa.struct(list(_REMOVE.items()))
PROTOCOL_TYPE = pa.struct(
    [("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()), ("readerFeatures", _TEXTS), ("writerFeatures", _TEXTS)]
)
METADATA_TYPE = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _TEXT_MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", _TEXTS),
        ("createdTime", pa.int64()),
        ("configuration", _TEXT_MAP),
    ]
)
TXN_TYPE = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
DOMAIN_TYPE = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])
CHECKPOINT_METADATA_TYPE = pa.struct([("version", pa.int64()), ("tags", _TEXT_MAP)])
SIDECAR_TYPE = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", _TEXT_MAP)]
)

# The errors that Arrow raises for a value of another type than the column's.
_WRONG_TYPE_ERRORS = (pa.ArrowException, AttributeError, TypeError, OverflowError, ValueError)

# Rows per batch: a file with statistics takes about a kilobyte.
_BATCH_ROWS = 16_384


@dataclass(frozen=True)
class RowShape:
    """The form of the add rows in a table's checkpoints: which fields they have in addition to the fields of the action.

    stats_json, stats_struct: whether they have statistics as JSON text, and as a struct. leaves: physical paths and types of the
    columns with statistics in the struct. tight_bounds: whether the struct has the field tightBounds. partitions: physical names
    and types of the partition columns whose values are written as a struct; empty if they are not. settings: of the Parquet
    files.
    """

    stats_json: bool
    stats_struct: bool
    leaves: Mapping[Path, DataType]
    tight_bounds: bool
    partitions: Mapping[str, DataType]
    settings: ParquetSettings

    @classmethod
    def of(cls, config: TableConfig) -> RowShape:
        """The shape that the table's properties require. If nothing is set, both forms of statistics are written, as in
        delta-spark: the struct is built once for a file, and then no reader has to parse the text."""
        as_struct = config.properties.boolean("delta.checkpoint.writeStatsAsStruct", default=True)
        schema = config.physical_schema
        fields = zip(config.physical_partition_columns, config.partition_fields, strict=True)
        return cls(
            stats_json=config.properties.boolean("delta.checkpoint.writeStatsAsJson", default=True),
            stats_struct=as_struct,
            leaves={path: find_path(schema, path)[-1].data_type for path in stats_columns(config)} if as_struct else {},
            tight_bounds=config.feature("deletionVectors"),
            partitions={name: field.data_type for name, field in fields} if as_struct else {},
            settings=ParquetSettings.for_checkpoints(config.properties),
        )

    @cached_property
    def add_type(self) -> pa.StructType:
        """The type of the rows in the column `add`."""
        fields = list(_ADD.items())
        if self.stats_json:
            fields.append(("stats", pa.string()))
        if self.partitions:
            typed = [(name, to_arrow_type(kind)) for name, kind in self.partitions.items()]
            fields.append(("partitionValues_parsed", pa.struct(typed)))
        if self.stats_struct:
            fields.append(("stats_parsed", self.stats_type))
        return pa.struct(fields)

    @cached_property
    def stats_type(self) -> pa.StructType:
        """The type of `stats_parsed` in add rows."""
        return stats_struct_type(self.leaves, tight_bounds=self.tight_bounds)


# ---------------------------------------------------------------- from the actions of commits


def adds_from_json(file: LogFile, adds: list[dict[str, Any]]) -> Columns:
    """The adds as columns of _ADD, and `stats`. adds: the JSON objects of add actions. file: the newest commit that has any of
    them; errors name it.

    Raises CorruptTableError if a field has the wrong type and readers of commits would refuse it too. A wrong value that readers
    of commits ignore, such as tags, is null in the checkpoint.
    """
    return _from_json(file, adds, {**_ADD, "stats": pa.string()}, _ADD.keys() - {"dataChange", "tags", "clusteringProvider"})


def removes_from_json(file: LogFile, removes: list[dict[str, Any]]) -> Columns:
    """The removes as columns of _REMOVE. Otherwise as adds_from_json: readers of commits use only the path and the deletion
    vector of a remove, so a wrong value of another field is null."""
    return _from_json(file, removes, _REMOVE, {"path", "deletionVector"})


def _from_json(
    file: LogFile, bodies: list[dict[str, Any]], kinds: Mapping[str, pa.DataType], checked_columns: Set[str]
) -> Columns:
    """The file actions as columns. kinds: name and type of each column. A value of another type raises CorruptTableError in the
    columns `checked_columns`; in other columns it becomes null."""
    columns: Columns = {}
    for name, kind in kinds.items():
        values = [body.get(name) for body in bodies]
        try:
            columns[name] = _column_from_json(values, kind)
        except _WRONG_TYPE_ERRORS as error:
            if name in checked_columns:
                why = f"here, or in a commit before, the {name} of a file action has another form than it should ({error})."
                raise corrupt_line(file, 1, why) from error
            columns[name] = _column_from_json([value if _fits_type(value, kind) else None for value in values], kind)
    return columns


def _fits_type(value: Any, kind: pa.DataType) -> bool:
    """Whether the value can be in a column of the type."""
    try:
        _column_from_json([value], kind)
    except _WRONG_TYPE_ERRORS:
        return False
    return True


def _column_from_json(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column of JSON values. A map is a dict in JSON. Raises one of _WRONG_TYPE_ERRORS for a value of another type."""
    if not pa.types.is_map(kind):
        return pa.array(values, kind)
    maps = text_map([{} if value is None else value for value in values])
    missing = pa.array([value is None for value in values], pa.bool_())
    return pa.MapArray.from_arrays(maps.offsets, maps.keys, maps.items, mask=missing) if missing.true_count else maps


# ---------------------------------------------------------------- from an older checkpoint


def adds_of_part(part: ParquetPart, shape: RowShape) -> Iterator[Columns]:
    """The add rows of a checkpoint file, with stats_parsed if it may be needed. Raises CheckpointUnreadableError."""
    if "add" not in part.schema.names:
        return
    names = {field.name for field in part.schema.field("add").type}
    leaves = [name for name in _ADD if name in names] + (["stats"] if "stats" in names else [])
    # Fewer texts than files: some files may have their statistics only in stats_parsed.
    if "stats_parsed" in names and (shape.stats_struct or part.null_count("stats") != part.null_count("path")):
        leaves.append("stats_parsed")
    yield from _typed_columns(part, "add", leaves, _ADD)


def removes_of_part(part: ParquetPart) -> Iterator[Columns]:
    """The remove rows of a checkpoint file. Raises CheckpointUnreadableError."""
    if "remove" in part.schema.names:
        names = {field.name for field in part.schema.field("remove").type}
        yield from _typed_columns(part, "remove", [name for name in _REMOVE if name in names], _REMOVE)


def _typed_columns(part: ParquetPart, action: str, leaves: list[str], kinds: Mapping[str, pa.DataType]) -> Iterator[Columns]:
    """The rows of `add` or `remove`, batch by batch, in columns of the types in `kinds` (name -> type). leaves: the fields to
    read, perhaps with `stats` and `stats_parsed`, which keep their types; all others of `kinds` are null."""
    for raw_columns in part.columns(action, leaves, _BATCH_ROWS):
        with decoding(part.path):
            count = len(raw_columns["path"])
            columns = {name: _typed_column(raw_columns.get(name), kind, count) for name, kind in kinds.items()}
            if "stats" in raw_columns:
                columns["stats"] = as_text(raw_columns["stats"])
            if "stats_parsed" in raw_columns:
                columns["stats_parsed"] = raw_columns["stats_parsed"]
        yield columns


def _typed_column(array: pa.Array | None, kind: pa.DataType, count: int) -> pa.Array:
    """The column as the type; nulls for `count` rows if the file does not have the column (None). The only struct among the types
    is the deletion vector."""
    if pa.types.is_struct(kind):
        return deletion_vectors(array, count)
    return as_text(array) if array is not None and pa.types.is_string(kind) else as_type(array, kind, count)


# ---------------------------------------------------------------- conversion to rows


def key_columns(columns: Columns) -> pa.RecordBatch:
    """The identity of each file, as reconciliation compares it: the decoded path and the deletion vector."""
    paths = as_text(columns["path"])
    vectors = deletion_vectors(columns.get("deletionVector"), len(paths))
    return pa.record_batch({"path": decode_paths(paths), "deletion_vector": vectors})


def add_rows(columns: Columns, shape: RowShape) -> pa.StructArray:
    """Rows of shape.add_type. dataChange is false, because a checkpoint changes nothing.

    The two forms of statistics are copied from the older checkpoint where it has them, and otherwise derived from each other.
    """
    count = len(columns["path"])
    add_columns: Columns = {"dataChange": all_false(count)}
    json, struct = columns.get("stats"), columns.get("stats_parsed")
    if shape.stats_struct and struct is not None and _has_all_stats(struct, json, shape):
        add_columns["stats_parsed"] = struct
    elif shape.stats_struct:
        add_columns["stats_parsed"] = json_to_struct(all_json(json, struct, count), shape.leaves, tight_bounds=shape.tight_bounds)
    if shape.stats_json:
        add_columns["stats"] = all_json(json, struct, count)
    if shape.partitions:
        add_columns["partitionValues_parsed"] = _typed_partition_values(columns["partitionValues"], shape.partitions)
    fields = list(shape.add_type)
    return pa.StructArray.from_arrays([add_columns.get(f.name, columns.get(f.name)) for f in fields], fields=fields)


def remove_rows(columns: Columns) -> pa.StructArray:
    """Rows of REMOVE_TYPE."""
    remove_columns = {**columns, "dataChange": all_false(len(columns["path"]))}
    return pa.StructArray.from_arrays([remove_columns[f.name] for f in REMOVE_TYPE], fields=list(REMOVE_TYPE))


def _has_all_stats(struct: pa.StructArray, json: pa.Array | None, shape: RowShape) -> bool:
    """Whether the struct of an older checkpoint can be reused: it has the right type, and no file has only text statistics."""
    if struct.type != shape.stats_type:
        return False
    # A struct without a number of rows has no statistics.
    has_no_struct_stats = pc.is_null(pc.struct_field(struct, "numRecords"))
    return json is None or not pc.any(pc.and_(has_no_struct_stats, pc.is_valid(json))).as_py()


def _typed_partition_values(values: pa.MapArray, partitions: Mapping[str, DataType]) -> pa.StructArray:
    """The partition values as the struct partitionValues_parsed. values: physical name -> text. A text that is not a value of its
    column's type becomes null, as in Spark."""
    typed = [
        parse_partition_values(pc.map_lookup(values, name, "last"), kind, errors="null") for name, kind in partitions.items()
    ]
    return pa.StructArray.from_arrays(
        typed, fields=[pa.field(name, array.type) for name, array in zip(partitions, typed, strict=True)]
    )
