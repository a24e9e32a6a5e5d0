"""Compares the rows of two tables: by the values of a key or, for two versions of one table, by the files that only one of them
has. The compared rows are in memory as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import InvalidOptionError, SchemaMismatchError
from delta_py.log.commit_reader import CommitReader
from delta_py.log.file_keys import NO_KEYS, file_keys
from delta_py.log.segment import list_commits
from delta_py.parquet.file_reader import read_files
from delta_py.protocol.actions import AddFile, Metadata, RemoveFile
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.table_methods.table_summary import recorded_row_count
from delta_py.types.schema import StructField, StructType, map_fields, parse_schema
from pydelta_cli.formats.values import text_columns

if TYPE_CHECKING:
    from delta_py.table import DeltaTable

_A, _B = "in a", "in b"
_MAPPING = "delta.columnMapping."
_COMPARED_BYTES = 512 << 20  # size of rows as text


def count_rows(table: DeltaTable) -> int:
    """The number of rows: from the log, if it contains the row count of every file, and else from the files."""
    row_count = recorded_row_count(table.snapshot)
    if row_count is not None:
        return row_count
    return sum(batch.num_rows for batch in table.to_batches(columns=[]))


def other_columns(a: StructType, b: StructType) -> list[str]:
    """For two schemas of one table: names of columns that both have, but stored in a different way: by another id or physical
    name (if a column was dropped and added again), or with another type. Then the same bytes are different values."""
    stored_a, stored_b = _as_stored(a), _as_stored(b)
    return [field.name for field in a.fields if stored_b.get(name := field.name.lower(), stored_a[name]) != stored_a[name]]


def _as_stored(schema: StructType) -> dict[str, StructField]:
    """By names in lower case: the parts of a column that show where its values are in files, and their type."""
    return {field.name: field for field in map_fields(schema, _stored).fields}


def _stored(field: StructField) -> StructField:
    metadata = {name: value for name, value in field.metadata.items() if name.startswith(_MAPPING)}
    return replace(field, name=field.name.lower(), nullable=True, metadata=metadata)


def files_apart(a: DeltaTable, b: DeltaTable) -> tuple[pa.Array, pa.Array]:
    """For two versions of one table: the keys of the files, each with its deletion vector, that only a has, and
    that only b has."""
    in_a, in_b = (_file_keys(table) for table in (a, b))
    return _without(in_a, in_b), _without(in_b, in_a)


def _without(keys: pa.Array, excluded_keys: pa.Array) -> pa.Array:
    return keys.filter(pc.invert(pc.is_in(keys, value_set=excluded_keys)))


def _file_keys(table: DeltaTable) -> pa.Array:
    batches = (file_keys(pa.table(batch.files.select(["path", "deletion_vector"]))) for batch in table.snapshot.file_batches())
    return pa.concat_arrays([NO_KEYS, *batches])


def has_only_moved_rows(a: DeltaTable, b: DeltaTable) -> bool:
    """Whether all commits between two versions of one table only rearrange rows (all their files have dataChange=false), so that
    both versions have the same rows. False if commits are missing, and if a commit changes how a column that both versions have
    is stored."""
    older, newer = sorted((a.version, b.version))
    store = a.snapshot.store
    commits = list_commits(store, older + 1, newer)
    if [commit.version for commit in commits] != list(range(older + 1, newer + 1)):
        return False
    reader = CommitReader(store)
    in_b = _as_stored(b.struct_type)
    shared_fields = {name: field for name, field in _as_stored(a.struct_type).items() if name in in_b}
    for commit in reader.with_read_ahead(commits):
        for action in reader.actions(commit, "add", "remove", "metaData"):
            if isinstance(action, AddFile | RemoveFile) and action.data_change:
                return False
            if (
                isinstance(action, Metadata)
                and not shared_fields.items() <= _as_stored(parse_schema(action.schema_string)).items()
            ):
                return False
    return True


def rows_of_files(
    a: DeltaTable, b: DeltaTable, only_a: pa.Array, only_b: pa.Array, zone: str, *, verify_checksums: bool
) -> tuple[int, int] | None:
    """For two versions of one table with the same columns: the number of rows that only b has, and that only a has. Compares all
    rows of the files that only one version has. A row that occurs twice counts twice. None if the rows as text would take too
    much memory."""
    # A row that both versions have equally often adds up to 0. What remains above 0 is only in a, and below 0 only in b.
    counted, size_bytes = [], 0
    for table, keys, count in ((a, only_a, 1), (b, only_b, -1)):
        scan = plan_scan(table.snapshot, options=ScanOptions(verify_checksums=verify_checksums))
        matching_files = scan.files.filter(pc.is_in(file_keys(scan.files.combine_chunks()), value_set=keys))
        for batch in read_files(scan.state, replace(scan, files=matching_files).scan_files()):
            columns = [pa.array(column, pa.string()) for column in text_columns(batch, zone)]
            rows = pa.table([*columns, pa.repeat(count, batch.num_rows)], [*map(str, range(len(columns))), _COUNT])
            counted.append(rows)
            size_bytes += rows.nbytes
            if size_bytes > _COMPARED_BYTES:
                return None
    if not counted:
        return 0, 0
    all_rows = pa.concat_tables(counted)
    surplus = all_rows.group_by(all_rows.column_names[:-1]).aggregate([(_COUNT, "sum")])[f"{_COUNT}_sum"]
    deleted = pc.sum(surplus.filter(pc.greater(surplus, 0))).as_py() or 0
    inserted = -(pc.sum(surplus.filter(pc.less(surplus, 0))).as_py() or 0)
    return inserted, deleted


_COUNT = "count"


def rows_by_key(a: DeltaTable, b: DeltaTable, keys: Sequence[str], zone: str, *, verify_checksums: bool) -> dict[str, Any]:
    """The number of rows that only b has, that only a has, and that both have with different values in their common columns.
    Names are compared ignoring case. Null is a key value like any other.

    Raises InvalidOptionError for a key that two rows share, SchemaMismatchError for one that is not a column.
    """
    keys_a, keys_b = _key_names(a, keys), _key_names(b, keys)
    names_b = {name.lower(): name for name in b.schema().names}
    shared = [name for name in a.schema().names if name.lower() in names_b and name not in keys_a]
    rows_a = _readable(a, keys_a, shared, zone, verify_checksums=verify_checksums)
    rows_b = _readable(b, keys_b, [names_b[name.lower()] for name in shared], zone, verify_checksums=verify_checksums)
    places = [_key(number) for number in range(len(keys_a))]
    for table, rows in ((a, rows_a), (b, rows_b)):
        if rows.group_by(places).aggregate([]).num_rows < rows.num_rows:
            root = table.snapshot.table_root
            raise InvalidOptionError(
                f"Two rows of {root} have the same values of {', '.join(keys)}, so that these tell no row from another. Name "
                "further columns.",
                option="key",
            )
    # For each value of the key, the number of its row in a and of its row in b; null if there is none.
    joined = _numbered(rows_a, places, _A).join(_numbered(rows_b, places, _B), places, join_type="full outer")
    in_a, in_b = joined[_A].combine_chunks(), joined[_B].combine_chunks()
    both = pc.and_(in_a.is_valid(), in_b.is_valid())
    left, right = rows_a.take(in_a.filter(both)), rows_b.take(in_b.filter(both))
    differs = pa.repeat(pa.scalar(False), left.num_rows)
    for number in range(len(places), rows_a.num_columns):
        x, y = left[number].combine_chunks(), right[number].combine_chunks()
        same = pc.or_(pc.fill_null(pc.equal(x, y), False), pc.and_(x.is_null(), y.is_null()))
        differs = pc.or_(differs, pc.invert(same))
    return {
        "compared_by": "key",
        "inserted": in_a.null_count,
        "deleted": in_b.null_count,
        "updated": int(pc.sum(differs).as_py() or 0),
        "why_not": None,
    }


def _key_names(table: DeltaTable, keys: Sequence[str]) -> list[str]:
    """The columns of a key as the table spells them, without duplicates."""
    fields = [(key, table.struct_type.find(key)) for key in keys]
    for key, field in fields:
        if field is None:
            raise SchemaMismatchError(
                f"The key {key} is no column of {table.snapshot.table_root}, which has {', '.join(table.schema().names)}. Name "
                "columns that both have.",
                error_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                sql_state="42703",
                column=key,
            )
    return list(dict.fromkeys(field.name for _, field in fields if field is not None))


def _readable(table: DeltaTable, keys: Sequence[str], columns: Sequence[str], zone: str, *, verify_checksums: bool) -> pa.Table:
    """The columns as text that differs for any two values of one type: first those of the key, in which null is a text too."""
    rows = table.to_arrow([*keys, *columns], verify_checksums=verify_checksums)
    cells = [pa.array(column, pa.string()) for column in text_columns(rows, zone)]
    for number in range(len(keys)):
        with_mark = pc.binary_join_element_wise("v", pc.fill_null(cells[number], ""), "")
        cells[number] = pc.if_else(cells[number].is_null(), "n", with_mark)
    return pa.table(cells, names=[*map(_key, range(len(keys))), *map(str, range(len(columns)))])


def _key(number: int) -> str:
    return f"key {number}"


def _numbered(rows: pa.Table, keys: Sequence[str], name: str) -> pa.Table:
    """The columns of the key, and the number of each row in a column of this name."""
    return rows.select(keys).append_column(name, pa.array(range(rows.num_rows), pa.int64()))
