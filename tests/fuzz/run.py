"""Mutates targets of one kind and uses them: `python -m tests.fuzz.run KIND SEED FIRST COUNT DIRECTORY`.

Prints a line of JSON for each case, which has a number. Each case runs in a separate process (child.py).
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import sqlglot  # noqa: F401

from tests.fuzz.caches import CacheTarget
from tests.fuzz.cases import Case, Target
from tests.fuzz.catalog_entries import EntryTarget
from tests.fuzz.options import OptionTarget
from tests.fuzz.streams import StreamTarget
from tests.fuzz.tables import TableTarget

KINDS: dict[str, type[Target]] = {
    "tables": TableTarget,
    "caches": CacheTarget,
    "streams": StreamTarget,
    "options": OptionTarget,
    "entries": EntryTarget,
}


def main() -> None:
    kind, directory = sys.argv[1], Path(sys.argv[5])
    seed, first, count = map(int, sys.argv[2:5])
    os.environ["PYDELTA_CACHE_DIR"] = ""
    os.environ["PYDELTA_POST_COMMIT_ERRORS"] = "mistakes"  # raised as they are
    target = KINDS[kind](directory)
    for number in range(first, first + count):
        print(json.dumps(asdict(target.run(Case(seed, number, directory / "case")))), flush=True)


if __name__ == "__main__":
    main()
