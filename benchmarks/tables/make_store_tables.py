"""Make the tables that the part `stores` measures, on this machine's disk or in any store.

    python benchmarks/tables/make_store_tables.py log DIRECTORY
    python benchmarks/tables/make_store_tables.py file DIRECTORY --columns 10 --groups 10 --group-rows 62500

log: a table by pydelta with a checkpoint, ten commits after it, and a version checksum for each version. Its columns are those of
make_log_table.py, which makes the log of a writer that writes no checksums. file: a table of one Parquet file of doubles, not
compressed.
"""

from __future__ import annotations

import argparse
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from delta_py import DeltaTable, write_delta
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore

COMMITS = 10
ROWS_PER_FILE = 100
LOG_COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("column_1", pa.float64()),
        ("column_2", pa.string()),
        ("column_3", pa.date32()),
        ("column_4", pa.timestamp("us", "UTC")),
        ("column_5", pa.int32()),
        ("column_6", pa.decimal128(12, 2)),
        ("column_7", pa.string()),
        ("column_8", pa.int64()),
        ("column_9", pa.float64()),
    ]
)
_DATA_FILE = "part-00000.parquet"
_T0_MS = 1_700_000_000_000  # footers of recently written files are not cached


def make_log_of_pydelta(directory: str, files: int = 1000) -> None:
    """A table with this number of files in `directory`, which is emptied. The ids of file i start at ROWS_PER_FILE * i."""
    shutil.rmtree(directory, ignore_errors=True)
    properties = {"delta.checkpointInterval": "100"}
    rows = log_rows(0, files * ROWS_PER_FILE)
    write_delta(directory, rows, configuration=properties, max_records_per_file=ROWS_PER_FILE)
    DeltaTable(directory).checkpoint()
    for number in range(COMMITS):
        write_delta(directory, log_rows((files + number) * ROWS_PER_FILE, ROWS_PER_FILE), mode="append")


def log_rows(first: int, count: int) -> pa.Table:
    """Rows of LOG_COLUMNS; their ids start at `first`."""
    ids = pa.array(np.arange(first, first + count))
    dates = (ids.to_numpy() % 10_000).astype(np.int32)
    of_type = {
        pa.int64(): ids,
        pa.int32(): pa.array(dates),
        pa.float64(): pa.array(ids.to_numpy() / 8),
        pa.string(): ids.cast(pa.string()),
        pa.date32(): pa.array(dates).cast(pa.date32()),
        pa.timestamp("us", "UTC"): ids.cast(pa.timestamp("us", "UTC")),
        pa.decimal128(12, 2): ids.cast(pa.decimal128(21, 2)).cast(pa.decimal128(12, 2)),
    }
    return pa.table([of_type[column.type] for column in LOG_COLUMNS], schema=LOG_COLUMNS)


def make_file_table(store: ObjectStore, *, columns: int, groups: int, group_rows: int) -> int:
    """A table of one file in an empty store, with row groups of this number of rows; returns the bytes of the file. Columns are
    c0, c1 and so on, of doubles that do not compress. Only one row group at a time is in memory."""
    schema = pa.schema([(f"c{number}", pa.float64()) for number in range(columns)])
    random = np.random.default_rng(7)
    with store.open_output(_DATA_FILE) as sink:
        with pq.ParquetWriter(sink, schema, compression="none", use_dictionary=False) as writer:
            for _ in range(groups):
                group = pa.table([random.random(group_rows) for _ in schema], schema=schema)
                writer.write_table(group, row_group_size=group_rows)
        size_bytes: int = sink.tell()
    fields = [{"name": name, "type": "double", "nullable": True, "metadata": {}} for name in schema.names]
    metadata = {
        "id": "b5a1a8f0-0000-4000-8000-000000000004",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": _T0_MS,
    }
    add = {
        "path": _DATA_FILE,
        "partitionValues": {},
        "size": size_bytes,
        "modificationTime": _T0_MS,
        "dataChange": True,
        "stats": json.dumps({"numRecords": groups * group_rows}),
    }
    actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}, {"add": add}]
    store.put_if_absent(f"_delta_log/{0:020d}.json", "".join(json.dumps(action) + "\n" for action in actions).encode())
    return size_bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("log", "file"))
    parser.add_argument("directory")
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--group-rows", type=int, default=62_500)
    arguments = parser.parse_args()
    if arguments.what == "log":
        make_log_of_pydelta(arguments.directory, arguments.files)
    else:
        shutil.rmtree(arguments.directory, ignore_errors=True)
        store = LocalStore(arguments.directory)
        make_file_table(store, columns=arguments.columns, groups=arguments.groups, group_rows=arguments.group_rows)


if __name__ == "__main__":
    main()
