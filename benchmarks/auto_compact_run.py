"""Appends of one row to one table in a process of its own, with auto compaction or without; prints JSON: seconds of each append,
and how many files there are at the end.

    python benchmarks/auto_compact_run.py /tmp/t --appends 1000 --auto
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import pyarrow as pa

from delta_py import DeltaTable, write_delta


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--appends", type=int, default=1000)
    parser.add_argument("--auto", action="store_true")
    given = parser.parse_args()
    write_delta(given.path, pa.table({"id": [0]}), configuration={"delta.autoOptimize.autoCompact": str(given.auto).lower()})
    seconds = []
    for number in range(1, given.appends):
        row, began = pa.table({"id": [number]}), time.perf_counter()
        write_delta(given.path, row, mode="append")
        seconds.append(time.perf_counter() - began)
    table = DeltaTable(given.path)
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(given.appends)), "rows are lost or doubled"
    print(json.dumps({"seconds": seconds, "files": table.files().num_rows}))


if __name__ == "__main__":
    main()
