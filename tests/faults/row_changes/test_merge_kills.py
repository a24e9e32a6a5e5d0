"""MERGE without Spark, killed at any moment: the table is as before or as after, and the next process continues from there."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from tests.support.runs.seeds import seed_of

ROOT = Path(__file__).parents[3]
KILLS, FIRST_ROWS = 6, 200

# A merge has a number, which is in the table's rows of id -1: the next process reads it there.
MERGES = """
import sys
import pyarrow as pa
from delta_py import DeltaTable

path = sys.argv[1]
while True:
    table = DeltaTable(path)
    number = table.to_arrow(filter="id = -1")["x"][0].as_py() + 1
    ids = [-1, *range(number % 5, 200, 5), *range(1000 * number, 1000 * number + 20)]
    source = pa.table({"id": ids, "x": [number] * len(ids)})
    print("begin", number, flush=True)
    merge = table.merge(source, "target.id = source.id")
    merge.when_matched_delete("source.id % 3 = 1").when_matched_update({"x": "source.x"}).when_not_matched_insert_all().execute()
    print("done", number, flush=True)
"""


def rows_after(number: int, rows: dict[int, int]) -> dict[int, int]:
    ids = [-1, *range(number % 5, FIRST_ROWS, 5), *range(1000 * number, 1000 * number + 20)]
    deleted_ids = {id for id in ids if id in rows and id % 3 == 1}
    return {id: x for id, x in rows.items() if id not in deleted_ids} | {id: number for id in ids if id not in deleted_ids}


def rows_of(path: Path) -> dict[int, int]:
    rows = DeltaTable(str(path)).to_arrow()
    values_by_id = dict(zip(rows["id"].to_pylist(), rows["x"].to_pylist(), strict=True))
    assert len(values_by_id) == rows.num_rows, "a row is there twice"
    return values_by_id


@pytest.mark.timeout(300)
@pytest.mark.parametrize("vectors", ["true", "false"], ids=["vectors", "files"])
def test_killed_at_any_moment_the_table_is_as_before_or_after(tmp_path: Path, vectors: str) -> None:
    path, chosen = tmp_path / "t", random.Random(seed_of(vectors))
    properties = {"delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": "true"}
    rows = {-1: 0, **dict.fromkeys(range(FIRST_ROWS), 0)}
    write_delta(str(path), pa.table({"id": list(rows), "x": list(rows.values())}), configuration=properties)
    in_a_merge = 0
    for _ in range(KILLS):
        process = subprocess.Popen([sys.executable, "-c", MERGES, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        output_lines = [process.stdout.readline() for _ in range(3)]  # one is done, and the next has begun
        assert output_lines[-1].startswith("begin"), output_lines
        time.sleep(chosen.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        output_lines += process.communicate()[0].splitlines(keepends=True)
        last, number = output_lines[-1].split()
        in_a_merge += last == "begin"
        actual_rows = rows_of(path)
        assert actual_rows[-1] in ((int(number) - 1, int(number)) if last == "begin" else (int(number), int(number) + 1))
        while rows[-1] < actual_rows[-1]:
            rows = rows_after(rows[-1] + 1, rows)
        assert actual_rows == rows
        DeltaTable(str(path)).snapshot.check_integrity()
    assert in_a_merge, "no merge was killed"
