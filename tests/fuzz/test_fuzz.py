"""Whatever bytes lie in a table's directory: the right rows or a Delta error, in bounded time and memory, and nothing outside.

`make fuzz SEED= FUZZ=`: so many mutations of one file each (mutations.py), of tables of all kinds (base_tables.py). The seed is
in the header of the run. `python -m tests.fuzz.run SEED NUMBER 1 DIRECTORY` does one case again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz.run import Outcome
from tests.support.seeds import run_seed

SEED = run_seed() or 1
COUNT = int(os.environ.get("PYDELTA_FUZZ_N") or 200)
_BATCH = 100


@pytest.mark.parametrize("first", range(0, COUNT, _BATCH))
def test_mutated_table_is_read_right_or_refused(first: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz.run", str(SEED), str(first), str(min(_BATCH, COUNT - first)), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes = [Outcome(**json.loads(line)) for line in done.stdout.splitlines()]
    assert len(outcomes) == min(_BATCH, COUNT - first)
    print(f"seed {SEED}, cases {first} to {first + len(outcomes) - 1}:", dict(Counter(outcome.kind for outcome in outcomes)))
    failures = [f"case {o.number}, {o.table}, {o.mutation}: {o.kind}, {o.detail}" for o in outcomes if o.is_failure]
    assert failures == [], f"seed {SEED}:\n" + "\n".join(failures)
    assert len({outcome.kind for outcome in outcomes}) > 1, "no mutation was felt"
