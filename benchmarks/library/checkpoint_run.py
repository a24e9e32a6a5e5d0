"""One measurement in a fresh process: write a checkpoint of a table's newest version, and print time and memory as JSON.

    python benchmarks/tables/make_log_table.py /tmp/t --files 300000
    python benchmarks/library/checkpoint_run.py WRITER /tmp/t [--both-forms]

WRITER: pydelta, deltalake. --both-forms: first a commit removes the table's properties about statistics, so that pydelta makes
the struct of statistics from their text as well. Seconds are for opening the table and writing the checkpoint, without the import
of the library, which is reported separately. Peak memory is that of the whole process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.library.state_run import peak_memory_mb


def pydelta(path: str) -> Callable[[], object]:
    from delta_py.commit.post_commit import checkpoint
    from delta_py.object_stores.open_store import open_store
    from delta_py.snapshot import Snapshot

    return lambda: checkpoint(Snapshot.load(open_store(path)))


def deltalake(path: str) -> Callable[[], object]:
    from deltalake import DeltaTable

    return lambda: DeltaTable(path).create_checkpoint()


WRITERS = {"pydelta": pydelta, "deltalake": deltalake}


def drop_properties(path: str) -> None:
    """Commit the table's metadata without properties."""
    log = Path(path) / "_delta_log"
    lines = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    (metadata,) = [line for line in lines if "metaData" in line]
    metadata["metaData"]["configuration"] = {}
    newest = max(int(name[:20]) for name in os.listdir(log) if name.endswith(".json"))
    actions = [{"commitInfo": {"operation": "UNSET TBLPROPERTIES"}}, metadata]
    (log / f"{newest + 1:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("writer", choices=WRITERS)
    parser.add_argument("path")
    parser.add_argument("--both-forms", action="store_true")
    arguments = parser.parse_args()
    if arguments.both_forms:
        drop_properties(arguments.path)
    start = time.perf_counter()
    run = WRITERS[arguments.writer](arguments.path)
    imported = time.perf_counter()
    run()
    end, peak_mb = time.perf_counter(), peak_memory_mb()
    import pyarrow.parquet as pq

    names = [name for name in os.listdir(os.path.join(arguments.path, "_delta_log")) if ".checkpoint." in name]
    written = os.path.join(arguments.path, "_delta_log", max(names))
    adds = pq.ParquetFile(written).read(["add.path"])["add"]
    result = {
        "writer": arguments.writer,
        "files": len(adds) - adds.null_count,
        "seconds": round(end - imported, 3),
        "import_seconds": round(imported - start, 3),
        "peak_mb": round(peak_mb, 1),
        "checkpoint_mb": round(os.path.getsize(written) / 1e6, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
