"""One measurement in a fresh process: open a table, prune by one statistics column, and print time and memory as JSON.

    python benchmarks/library/state_run.py READER TABLE VALUE

READER: pydelta (pydelta-again is the same: bench.py gives it a cache); deltalake-actions (its add actions as Arrow, compared by
pyarrow); deltalake-query (its query planner). The predicate is `id = VALUE`. Seconds leave out the import of the library, which
is reported separately. Peak memory is that of the whole process.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable


def pydelta(path: str, value: int) -> Callable[[], int]:
    from delta_py import DeltaTable

    return lambda: DeltaTable(path).scan(filter=f"id = {value}").report.files_kept


def deltalake_actions(path: str, value: int) -> Callable[[], int]:
    import pyarrow as pa
    import pyarrow.compute as pc
    from deltalake import DeltaTable

    def run() -> int:
        actions = pa.table(DeltaTable(path).get_add_actions(flatten=True))
        keep = pc.and_(pc.less_equal(actions["min.id"], value), pc.greater_equal(actions["max.id"], value))
        return actions.filter(keep).num_rows

    return run


def deltalake_query(path: str, value: int) -> Callable[[], int]:
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    def run() -> int:
        query = QueryBuilder().register("t", DeltaTable(path)).execute(f"explain select * from t where id = {value}")
        plans = pa.table(query)["plan"].to_pylist()
        return plans[-1].split("file_groups=", 1)[1].split("]]}", 1)[0].count(".parquet")

    return run


READERS = {
    "pydelta": pydelta,
    "pydelta-again": pydelta,
    "deltalake-actions": deltalake_actions,
    "deltalake-query": deltalake_query,
}


def main() -> None:
    reader, path, value = sys.argv[1:]
    before_import = time.perf_counter()
    run = READERS[reader](path, int(value))
    start, cpu_start = time.perf_counter(), time.process_time()
    files = run()
    stop, cpu_stop = time.perf_counter(), time.process_time()
    result = {
        "files": files,
        "seconds": stop - start,
        "cpu_seconds": cpu_stop - cpu_start,
        "import_seconds": start - before_import,
        "peak_mb": peak_memory_mb(),
    }
    print(json.dumps(result))


def peak_memory_mb() -> float:
    """The largest resident size of this process. Not getrusage: its value starts at the size of the process that forked."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
