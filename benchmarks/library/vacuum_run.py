"""One VACUUM of a table with very many files, in a fresh process; prints JSON: seconds, peak memory, files deleted.

    python benchmarks/library/vacuum_run.py lite /tmp/t --files 1000000 --removed 10000
    python benchmarks/library/vacuum_run.py full /tmp/t --files 200000

lite: a checkpoint of this many files that do not exist, and a commit that removed some empty files that exist. The store cannot
list directories. full: this many empty files, half of which the log does not know.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.tables.make_log_table import make_table
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectInfo
from delta_py.vacuum.vacuum import VacuumKind, VacuumRequest, vacuum

_YEAR_SECONDS = 365 * 86_400


class Unlisted(LocalStore):
    """A store that lists only the log's directory."""

    __slots__ = ()

    def list_recursive(self, directory: str) -> Iterator[ObjectInfo]:
        raise AssertionError("VACUUM LITE lists nothing")


def make(kind: str, path: str, files: int, removed: int) -> None:
    """Makes it in a process that ends before the measurement: its memory does not count."""
    make_table(path, files=files if kind == "lite" else files // 2, columns=2, commits=0)
    paths = Snapshot.load(LocalStore(path)).files()["path"].to_pylist()
    then = time.time() - _YEAR_SECONDS
    if kind == "full":
        _touch(path, (name for live in paths for name in (live, f"{live}.stray")), then)
        return
    chosen = paths[:: len(paths) // removed][:removed]
    _touch(path, chosen, then)
    log = Path(path) / "_delta_log"
    removes = ({"remove": {"path": name, "deletionTimestamp": int(then * 1000), "dataChange": True}} for name in chosen)
    (log / f"{1:020}.json").write_text("".join(json.dumps(action) + "\n" for action in removes))
    for version in (0, 1):
        os.utime(log / f"{version:020}.json", (then + version, then + version))


def _touch(path: str, names: Iterator[str] | list[str], then: float) -> None:
    for name in names:
        file = os.path.join(path, name)
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY))
        os.utime(file, (then, then))


def measure(kind: str, path: str) -> dict[str, object]:
    store = Unlisted(path) if kind == "lite" else LocalStore(path)
    imported_mb = _peak_mb()
    began = time.perf_counter()
    outcome = vacuum(store, VacuumRequest(kind=VacuumKind[kind.upper()]))
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "peak_mb": _peak_mb(), "imported_mb": imported_mb, "deleted": outcome.deleted}


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["lite", "full"])
    parser.add_argument("path")
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--removed", type=int, default=10_000)
    arguments = parser.parse_args()
    child = os.fork()
    if child == 0:
        make(arguments.kind, arguments.path, arguments.files, arguments.removed)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "the table was not made"
    print(json.dumps(measure(arguments.kind, arguments.path)))


if __name__ == "__main__":
    main()
