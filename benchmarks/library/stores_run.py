"""One operation on a table in S3 in a fresh process; prints its time and memory as JSON.

    python benchmarks/library/stores_run.py READER OPERATION URL WARM_URL

READER: pydelta, deltalake. OPERATION: open (and prune by an id to one file), append (one row), column (read it), rows (read all).
PYDELTA_BENCH_STORE is the store, as JSON: the options of pydelta by name. First the same is done with the table at WARM_URL. So
imports do not count, nor what a process does once for a store: making a client, testing whether the store supports conditional
writes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping

import pyarrow as pa

from benchmarks.library.state_run import peak_memory_mb
from benchmarks.tables.make_store_tables import log_rows
from tests.support.peers.store_peers import peer_options

Operation = Callable[[str, Mapping[str, str]], int]
"""URL and options of the store -> how many files or rows there were."""


# In one file, both in a log by make_log_table.py and by make_store_tables.py.
WANTED_ID = 50_010
COLUMN = "c3"


def pydelta_open(url: str, store: Mapping[str, str]) -> int:
    from delta_py import DeltaTable

    return DeltaTable(url, storage_options=store).scan(filter=f"id = {WANTED_ID}").report.files_kept


def pydelta_append(url: str, store: Mapping[str, str]) -> int:
    from delta_py import write_delta

    return write_delta(url, log_rows(-1, 1), mode="append", storage_options=store)


def pydelta_column(url: str, store: Mapping[str, str]) -> int:
    from delta_py import DeltaTable

    return sum(batch.num_rows for batch in DeltaTable(url, storage_options=store).to_batches(columns=[COLUMN]))


def pydelta_rows(url: str, store: Mapping[str, str]) -> int:
    from delta_py import DeltaTable

    return sum(batch.num_rows for batch in DeltaTable(url, storage_options=store).to_batches())


def deltalake_open(url: str, store: Mapping[str, str]) -> int:
    import pyarrow.compute as pc
    from deltalake import DeltaTable

    actions = pa.table(DeltaTable(url, storage_options=peer_options(store)).get_add_actions(flatten=True))
    keep = pc.and_(pc.less_equal(actions["min.id"], WANTED_ID), pc.greater_equal(actions["max.id"], WANTED_ID))
    return actions.filter(keep).num_rows


def deltalake_append(url: str, store: Mapping[str, str]) -> int:
    from deltalake import write_deltalake

    write_deltalake(url, log_rows(-1, 1), mode="append", storage_options=peer_options(store))
    return 0


def deltalake_column(url: str, store: Mapping[str, str]) -> int:
    return _deltalake_query(url, store, f"SELECT {COLUMN} FROM t")


def deltalake_rows(url: str, store: Mapping[str, str]) -> int:
    return _deltalake_query(url, store, "SELECT * FROM t")


def _deltalake_query(url: str, store: Mapping[str, str], query: str) -> int:
    from deltalake import DeltaTable, QueryBuilder

    table = DeltaTable(url, storage_options=peer_options(store))
    answer = QueryBuilder().register("t", table).execute(query)
    return sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(answer))


OPERATIONS: dict[str, dict[str, Operation]] = {
    "pydelta": {"open": pydelta_open, "append": pydelta_append, "column": pydelta_column, "rows": pydelta_rows},
    "deltalake": {"open": deltalake_open, "append": deltalake_append, "column": deltalake_column, "rows": deltalake_rows},
}


def main() -> None:
    reader, operation, url, warm_url = sys.argv[1:]
    store = json.loads(os.environ["PYDELTA_BENCH_STORE"])
    run = OPERATIONS[reader][operation]
    run(warm_url, store)
    start, cpu_start = time.perf_counter(), time.process_time()
    count = run(url, store)
    stop, cpu_stop = time.perf_counter(), time.process_time()
    result = {"count": count, "seconds": stop - start, "cpu_seconds": cpu_stop - cpu_start, "peak_mb": peak_memory_mb()}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
