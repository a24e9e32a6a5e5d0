"""The spark-sql shell, in which no Python calls register: what docs/sql.md says that it can do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyspark

from delta_py import DeltaTable
from tests.support.tables.small_table import make_table

ROOT = Path(__file__).parents[2]
STATEMENTS = """
CREATE TABLE orders USING pydelta LOCATION '{path}';
SELECT 'all', count(*) FROM orders;
CREATE TEMPORARY VIEW first_orders USING pydelta OPTIONS (path '{path}', versionAsOf '0');
SELECT 'first', count(*) FROM first_orders;
INSERT INTO orders VALUES (9L);
DELETE FROM orders WHERE id = 1;
SELECT 'end', count(*) FROM orders;
"""


def test_spark_sql_shell_reads_tables_and_changes_none(tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", [pa.table({"id": pa.array([n, n + 1], pa.int64())}) for n in (0, 2)])
    home = Path(pyspark.__file__).parent
    environment = {"SPARK_HOME": str(home), "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    settings = [f"--conf={setting}" for setting in ("spark.ui.enabled=false", "spark.sql.shuffle.partitions=1")]
    shell = subprocess.run(
        [home / "bin" / "spark-sql", "--master=local[1]", *settings],
        input=STATEMENTS.format(path=path), capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False,
        env={**os.environ, **environment},
    )
    counts = dict(line.split("\t") for line in shell.stdout.splitlines() if line.count("\t") == 1)
    assert counts == {"all": "4", "first": "2", "end": "4"}, shell.stderr[-5000:]
    assert "'path' is not specified" in shell.stdout + shell.stderr, "INSERT is refused"
    assert "Table does not support deletes: pydelta" in shell.stdout + shell.stderr
    assert DeltaTable(path).version == 1
