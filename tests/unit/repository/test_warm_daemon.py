"""The daemon of Spark's workers in tests: its imports survive a fork, and each worker knows its own process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.spark.warm_daemon import WARM_SITE

CREATE_WORKER = "pyspark.sql.worker.create_data_source"
# Arrow decodes in threads, numpy multiplies in threads, and the worker's modules are loaded without an import.
CODE = f"""
import os, sys
from tests.support.spark.warm_daemon import modules_of, warm_up
worker = sys.argv[1]
warm_up(worker)
assert all(name in sys.modules for name in modules_of(worker))
assert ("{CREATE_WORKER}" in sys.modules) == (worker == "{CREATE_WORKER}")
if os.fork() == 0:
    import io
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    numbers = pa.table({{f"c{{i}}": range(50_000) for i in range(4)}})
    file = io.BytesIO()
    pq.write_table(numbers, file, row_group_size=10_000)
    assert pq.read_table(file, use_threads=True).equals(numbers)
    square = np.ones((300, 300))
    assert (square @ square).sum() == 300.0**3
    os._exit(0)
assert os.wait()[1] == 0
"""


@pytest.mark.parametrize("worker", [CREATE_WORKER, "pyspark.worker"])
def test_worker_of_a_warm_daemon_can_use_all_that_was_imported(worker: str) -> None:
    subprocess.run([sys.executable, "-c", CODE, worker], check=True, timeout=120)


@pytest.mark.parametrize("site", [[WARM_SITE], []])
def test_spark_daemon_is_warm_if_pythonpath_has_the_directory(site: list[str]) -> None:
    """It ends when Spark, which holds its standard input, has ended."""
    path = os.pathsep.join([*site, os.environ["PYTHONPATH"]])
    process = subprocess.run(
        [sys.executable, "-m", "pyspark.daemon", CREATE_WORKER],
        env={**os.environ, "PYTHONPATH": path, "PYTHONPROFILEIMPORTTIME": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
    )
    imported = {line.rpartition(b"|")[2].strip().decode() for line in process.stderr.splitlines()}
    assert "pyspark.serializers" in imported
    assert any(name.startswith("delta_py.") for name in imported) == bool(site)
