"""Merges the columns of many Parquet files into the columns of a table; the files stay unchanged.

    merged = merge_files(footers, partitions)       # merged.schema; merged.widens: files have narrower types than the table

Columns have the order of their first occurrence in the files; all are nullable. If files have different types for a column, the
table gets the wider one, provided that every reader gets the same values from a file with the narrower type. byte, short and
integer are stored alike; any other widening needs the table feature typeWidening, and is recorded in the column's metadata. A
partition column that files contain too keeps its position, and has the type that the caller gave for it.
Protocol: Type Widening; Type Change Metadata.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from delta_py.errors import SchemaMismatchError
from delta_py.row_rules.evolution import STORED_AS_INT32, SchemaMerge
from delta_py.row_rules.new_columns import check_new_schema
from delta_py.row_rules.type_changes import is_widening
from delta_py.types.schema import (
    DataType,
    Path,
    StructType,
    parse_schema,
    type_name,
)


@dataclass(frozen=True, slots=True)
class MergedColumns:
    """The columns of a table over many files. widens: whether a file has a narrower type than the table; only readers with the
    feature typeWidening can read such a file."""

    schema: StructType
    widens: bool


def merge_files(footers: pa.Table, partitions: StructType) -> MergedColumns:
    """Merge the columns of the files. footers: FOOTER_SCHEMA, each file with its columns. partitions: the partition columns, in
    their order.

    Raises SchemaMismatchError (DELTA_FAILED_MERGE_SCHEMA_FILE) naming the first file that cannot be merged with those before it,
    or that has names that differ at most in case.
    """
    # Most files have the same columns, so each distinct schema is merged once, with its first file for the error.
    by_schema = footers.select(["schema", "path"]).group_by("schema", use_threads=False).aggregate([("path", "first")])
    merge = _FileMerge()
    for schema_json, path in zip(by_schema["schema"].to_pylist(), by_schema["path_first"].to_pylist(), strict=True):
        merge.add_file(parse_schema(schema_json), path)
    remaining_partitions = {f.name.lower(): f for f in partitions.fields}
    data_columns = tuple(remaining_partitions.pop(f.name.lower(), f) for f in merge.schema.fields)
    return MergedColumns(StructType((*data_columns, *remaining_partitions.values())), merge.widens_files)


class _FileMerge(SchemaMerge):
    """Merges the columns of one file after the other. schema: of all files so far. widens_files: whether a file so far has a
    narrower type than the schema."""

    def __init__(self) -> None:
        super().__init__(widens=True, like_iceberg=False)
        self.schema = StructType()
        self.widens_files = False

    def add_file(self, file: StructType, path: str) -> None:
        """Merge the columns of the file at `path` into the schema."""
        try:
            # The mode "name" accepts characters that need column mapping. define_table refuses them later, with its own error.
            check_new_schema(file, column_mapping_mode="name")
            self.schema = self.merge_structs(self.schema, file, ())
        except SchemaMismatchError as error:
            raise SchemaMismatchError(
                f"Failed to merge the schema of file {path}: {error.message} Nothing was changed. Rewrite the file, or move it "
                "elsewhere and add its rows to the table later.",
                error_class="DELTA_FAILED_MERGE_SCHEMA_FILE",
                sql_state="42KDA",
                file=path,
                **error.message_parameters,
            ) from error

    def merge_plain_types(self, table: DataType, data: DataType, path: Path) -> DataType:
        """The wider of two types. Raises SchemaMismatchError if neither holds all values of the other."""
        if table in STORED_AS_INT32 and data in STORED_AS_INT32:  # files store these alike, so this is no type change
            return max(table, data, key=STORED_AS_INT32.index)
        for narrow, wide in ((table, data), (data, table)):
            if is_widening(narrow, wide):
                self.retyped.append((path, narrow, wide))
                self.widens_files = True
                return wide
        raise SchemaMismatchError(
            f"column {'.'.join(path)} is {type_name(data)} there and {type_name(table)} in files before it, and neither type "
            "takes the other's values.",
            column=".".join(path),
            file_type=type_name(data),
            type=type_name(table),
        )
