"""Columns and statistics from the footers of files that other programs wrote, as a table with one row per file.

    footers = read_footers(FooterReading(store, stats_columns, string_prefix=32), files)      # FOOTER_SCHEMA, one row per file

Only footers are read. A file that cannot be converted also has a row, with the reason: a user who converts a directory needs
all of these files.
Protocol: Data Files; Per-file Statistics.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from delta_py.errors import DeltaError, UnsupportedOperationError
from delta_py.parquet.foreign_schema import ForeignColumns, NoDeltaType, read_columns
from delta_py.statistics.footer_stats import footer_stats
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import DataType, Path, StructType, schema_to_json

_READERS = 16

# Listed files: path below the root, size (bytes), modification_time (ms since 1970).
LISTED_SCHEMA = pa.schema([("path", pa.string()), ("size", pa.int64()), ("modification_time", pa.int64())])

# In addition to these: schema: JSON of the file's columns; stats: JSON of its statistics, null if none are requested; no_footer:
# why the footer cannot be read; no_type: the column whose type Delta does not have. schema and stats are null if no_footer or
# no_type is set.
FOOTER_SCHEMA = pa.schema([*LISTED_SCHEMA, *((name, pa.string()) for name in ("schema", "stats", "no_footer", "no_type"))])


@dataclass(frozen=True, slots=True)
class FooterReading:
    """How footers are read. It is small, and pickled for executors.

    stats_columns: the paths of the leaf columns that get statistics, in the table's spelling (files may spell names in another
    case); None for no statistics. string_prefix: how many characters the bounds of a text have at most.
    """

    store: ObjectStore
    stats_columns: tuple[Path, ...] | None = None
    string_prefix: int = 32


def read_footers(reading: FooterReading, files: pa.Table) -> pa.Table:
    """Read the footers of files. files: LISTED_SCHEMA. Returns FOOTER_SCHEMA in their order. Raises OSError and StorageError if
    the store fails."""
    rows = files.to_pylist()
    with ThreadPoolExecutor(_READERS, "delta_py-footers") as pool:
        footers = pool.map(lambda row: _footer_values(reading, row["path"], row["size"]), rows)
        columns = zip(*footers, strict=True) if rows else iter([()] * 4)  # without files the four columns are empty
        arrays = [pa.array(column, pa.string()) for column in columns]
    return pa.Table.from_arrays([*files.columns, *arrays], schema=FOOTER_SCHEMA)


def _footer_values(reading: FooterReading, path: str, size: int) -> tuple[str | None, str | None, str | None, str | None]:
    """The last four columns of FOOTER_SCHEMA for one file: schema, stats, no_footer, no_type."""
    try:
        with reading.store.open_input(path, size, is_size_verified=True) as source, pq.ParquetFile(source) as file:
            file_columns = read_columns(file)
            stats = None if reading.stats_columns is None else _stats_json(file, file_columns, reading)
            return schema_to_json(file_columns.schema), stats, None, None
    except (NoDeltaType, UnsupportedOperationError) as error:
        return None, None, None, str(error)
    except DeltaError:  # the store failed, which says nothing about the file
        raise
    except (pa.ArrowException, UnicodeDecodeError) as error:
        return None, None, str(error), None
    except OSError as error:
        if error.errno is not None:  # from the storage, not from the decoder
            raise
        return None, None, str(error), None


def _stats_json(file: pq.ParquetFile, file_columns: ForeignColumns, reading: FooterReading) -> str:
    """The statistics of a file as JSON, with the table's spelling of names. A column that the file lacks is null in all rows."""
    assert reading.stats_columns is not None
    paths_in_file = {_lower_case(path): path for path in file_columns.leaves}
    columns_in_file = {
        path: paths_in_file[_lower_case(path)] for path in reading.stats_columns if _lower_case(path) in paths_in_file
    }
    leaves = {path: file_columns.leaves[path_in_file] for path, path_in_file in columns_in_file.items()}
    missing_paths = [path for path in reading.stats_columns if not _may_have_column(file_columns.schema, path)]
    prefix = reading.string_prefix
    return footer_stats(
        file.metadata, file_columns.schema, leaves, tuple(columns_in_file), absent=missing_paths, string_prefix=prefix
    )


def _may_have_column(schema: DataType, path: Path) -> bool:
    """Whether the schema has a column of this path, or a column that is not a struct at the beginning of the path: only a column
    that is certainly missing is null in all rows."""
    if not path or not isinstance(schema, StructType):
        return True
    f = schema.find(path[0])
    return f is not None and _may_have_column(f.data_type, path[1:])


def _lower_case(path: Path) -> Path:
    """The path in lower case, to compare names without regard to case."""
    return tuple(name.lower() for name in path)
