"""Tables with random features, changed by random steps: delta-spark and pydelta do each step in the same way, and each continues
after the other.

A case is a seed. `make interop K=test_crosses CROSS=<seed>` repeats one; CROSSES=<number> is the number of steps of a run. A
failure prints the difference, the table and all steps so far.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.generators.cross_steps import draw_definition
from tests.support.peers.cross_peers import Cross, Known
from tests.support.runs.sampling import sampled
from tests.support.runs.seeds import seed_of

pytestmark = pytest.mark.usefixtures("plain_plans")

STEPS = 12
"""Of each table."""
USUAL, ALL = 60, 2_000

CHANGE = "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP"
SPEAKS_FIRST = "Spark's analyzer speaks before delta-spark does, with a name of its own."
KNOWN = (
    Known("SET NOT NULL", CHANGE, "_LEGACY_ERROR_TEMP_2330", SPEAKS_FIRST),
    Known("ALTER COLUMN .* TYPE", CHANGE, "NOT_SUPPORTED_CHANGE_COLUMN", SPEAKS_FIRST),
    Known(r"^write.* AS s\((?!.*`at`)", None, "UNRESOLVED_COLUMN.WITH_SUGGESTION", "Then `day` is null, as by INSERT."),
    Known("^MERGE", None, "DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT", "delta-spark loses a column of its own."),
    Known("ADD COLUMNS", "DELTA_DUPLICATE_COLUMNS_FOUND", "FIELD_ALREADY_EXISTS", SPEAKS_FIRST),
    *(
        Known("'replaceWhere'", broken, "DELTA_REPLACE_WHERE_MISMATCH", "delta-spark takes each broken rule for the condition's.")
        for broken in ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED")
    ),
)


def seeds() -> list[int]:
    one, steps = os.environ.get("PYDELTA_CROSS"), int(os.environ.get("PYDELTA_CROSSES") or USUAL)
    if one:
        return [int(one)]
    first, tables = seed_of("crosses"), -(-steps // STEPS)
    most = max(tables, -(-ALL // STEPS))
    return sampled(range(first, first + most), most // tables)[:tables]


@pytest.mark.parametrize("seed", seeds())
def test_both_take_the_same_steps_alike(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(seed)
    Cross(spark, tmp_path, draw_definition(rng), rng, f"make interop K=test_crosses CROSS={seed}", KNOWN).run(STEPS)
