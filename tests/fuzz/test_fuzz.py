"""Whatever is in a table's directory, a stream's checkpoint, the cache directory, an option or an entry of the catalog: the
result is the right rows or a Delta error, in bounded time and memory, and no change outside.

`make fuzz SEED= FUZZ=` runs this many cases of each kind (run.py), each with one mutation; without FUZZ it runs them for some
minutes. The seed is in the header of the run. `python -m tests.fuzz.run KIND SEED NUMBER 1 DIRECTORY` repeats one case.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz.cases import Outcome
from tests.support.runs.seeds import run_seed

SEED = run_seed() or 1
_ASKED = os.environ.get("PYDELTA_FUZZ_N")
_COUNTS = {"tables": 200, "streams": 80, "caches": 50, "options": 200, "entries": 200}
_BATCH = 50
_BATCHES = [
    pytest.param(kind, first, min(_BATCH, count - first), id=f"{kind}-{first}")
    for kind, usual in _COUNTS.items()
    for count in [int(_ASKED or usual)]
    for first in range(0, count, _BATCH)
]


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The subjects of the mutations are made here once, and copied for each case."""
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize(("kind", "first", "count"), _BATCHES)
def test_what_is_mutated_is_used_right_or_refused(kind: str, first: int, count: int, directory: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz.run", kind, str(SEED), str(first), str(count), str(directory)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=550)
    assert process.returncode == 0, process.stderr[-2000:]
    outcomes = [Outcome(**json.loads(line)) for line in process.stdout.splitlines()]
    assert len(outcomes) == count
    print(f"seed {SEED}, {kind} {first} to {first + count - 1}:", dict(Counter(outcome.kind for outcome in outcomes)))
    failures = [f"case {o.number}, {o.subject}, {o.mutation}: {o.kind}, {o.detail}" for o in outcomes if o.is_failure]
    assert failures == [], f"seed {SEED}, {kind}:\n" + "\n".join(failures)


def test_mutations_are_felt(directory: Path) -> None:
    """A damaged table is sometimes refused or read differently, and not always."""
    command = [sys.executable, "-m", "tests.fuzz.run", "tables", str(SEED), "0", "60", str(directory)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=550)
    assert {"same", "error", "different"} <= {json.loads(line)["kind"] for line in process.stdout.splitlines()}
