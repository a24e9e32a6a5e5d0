"""Random DELETE, UPDATE and MERGE over Spark Connect. After each one, rows and change feed equal those of a list of rows that is
changed in the same way.

PYDELTA_SEED chooses other changes, PYDELTA_ALL=1 runs five times as many.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.runs.seeds import seed_of
from tests.support.spark.spark_script import run_script

STEPS = 60 if os.environ.get("PYDELTA_ALL") else 12
FEED, VECTORS = {"delta.enableChangeDataFeed": "true"}, {"delta.enableDeletionVectors": "true"}
KINDS = {
    "rewriting, by part": (FEED, "part"),
    "vectors": ({**FEED, **VECTORS}, None),
    "vectors, mapped by name, by part": ({**FEED, **VECTORS, "delta.columnMapping.mode": "name"}, "part"),
}

CHANGES = """
import json, random, sys
from pyspark.sql import SparkSession
from delta_py import DeltaTable as PlainTable, write_delta
from spark_plugin import DeltaTable
from tests.support.generators.dml_changes import as_table, new_row, random_change
from tests.support.oracles.rows import difference

path, seed, steps, configuration, partition_by = sys.argv[1], *map(json.loads, sys.argv[2:])
chosen = random.Random(seed)
rows = [new_row(chosen, id) for id in range(40)]
write_delta(path, as_table(rows), partition_by=partition_by, configuration=configuration, max_records_per_file=8)
spark = (
    SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").config("spark.ui.enabled", "false")
    .getOrCreate()
)
log, committed = [f"seed {seed}"], []
for number in range(steps):
    change = random_change(chosen, rows)
    after, before = change.after(rows), PlainTable(path).version
    log.append(str(change))
    change.run(DeltaTable, spark, path)
    table = PlainTable(path)
    table.snapshot.check_integrity()
    assert (found := difference(as_table(after.rows), table.to_arrow())) is None, f"{found} after {log}"
    if table.version > before:
        expected = after.feed_table()
        feed = table.changes(starting_version=table.version).read_all().select(expected.column_names)
        assert (found := difference(expected, feed)) is None, f"{found} in the feed after {log}"
        committed.append(type(change).__name__)
    else:
        assert not after.feed, f"nothing was committed after {log}"
    rows = after.rows
spark.stop()
print(json.dumps({"committed": committed}))
"""


@pytest.mark.parametrize("kind", KINDS)
def test_random_changes_over_connect(kind: str, tmp_path: Path) -> None:
    configuration, partition_by = KINDS[kind]
    seed = seed_of(kind)
    arguments = (json.dumps(value) for value in (seed, STEPS, configuration, partition_by))
    result = run_script(CHANGES, str(tmp_path / "table"), *arguments, timeout_seconds=300 + 20 * STEPS)
    assert {"Merge", "Update"} <= set(result["committed"])
