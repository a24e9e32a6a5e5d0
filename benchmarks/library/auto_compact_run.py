"""Append single rows to one table in a fresh process, with auto compaction or without it; print JSON: the seconds of each append
and the number of files at the end.

    python benchmarks/library/auto_compact_run.py /tmp/t --appends 1000 --auto
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import pyarrow as pa

from delta_py import DeltaTable, write_delta


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--appends", type=int, default=1000)
    parser.add_argument("--auto", action="store_true")
    arguments = parser.parse_args()
    write_delta(
        arguments.path, pa.table({"id": [0]}), configuration={"delta.autoOptimize.autoCompact": str(arguments.auto).lower()}
    )
    seconds = []
    for number in range(1, arguments.appends):
        row, began = pa.table({"id": [number]}), time.perf_counter()
        write_delta(arguments.path, row, mode="append")
        seconds.append(time.perf_counter() - began)
    table = DeltaTable(arguments.path)
    assert sorted(table.to_arrow()["id"].to_pylist()) == list(range(arguments.appends)), "rows are lost or doubled"
    print(json.dumps({"seconds": seconds, "files": table.files().num_rows}))


if __name__ == "__main__":
    main()
