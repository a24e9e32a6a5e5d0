"""The modules that Spark's daemons of Python workers import in the tests before they fork their first worker.

A worker ends with each error, and Spark keeps none for a second kind of call: the tests start hundreds, and each would import
pyarrow and pydelta again, which takes longer than its work. Spark's own daemon imports nothing, because threads that an import
starts do not survive a fork: those of Arrow's and numpy's allocators and pools are made again after one
(`tests/unit/repository/test_warm_daemon.py`). `tests/unit/repository/test_worker_imports.py` tests the imports of a worker
itself. The setting for another daemon than Spark's does not apply to all workers: those that open sources and plan use Spark's.
So each daemon imports when Python starts it (warm_site/sitecustomize.py). A run that takes all cases, and separate applications,
have daemons that import nothing.
"""

from __future__ import annotations

import gc
import importlib
from pathlib import Path

WARM_SITE = str(Path(__file__).with_name("warm_site"))
"""A directory for PYTHONPATH."""

SHARED = (
    "pyarrow",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.sql.pandas.types",
    "pyspark.worker_util",
    "delta_py.snapshot",
    "delta_py.scan.planning",
    "spark_plugin.data_source",
    "spark_plugin.source.readers",
    "spark_plugin.source.task_writer",
)
# By the module that Spark's workers run.
OWN = {
    "pyspark.worker": (
        *("pandas", "pyspark.sql.pandas.serializers"),
        *("spark_plugin.dml.dml_tasks", "spark_plugin.maintenance.job_tasks"),
    ),
    "pyspark.sql.worker.commit_data_source_write": ("delta_py.row_changes.write", "spark_plugin.source.commands"),
    "pyspark.sql.worker.write_into_data_source": ("delta_py.row_changes.write", "spark_plugin.options.write_options"),
    "pyspark.sql.worker.python_streaming_sink_runner": ("delta_py.row_changes.write", "spark_plugin.streaming.stream_writer"),
}


def modules_of(worker: str) -> tuple[str, ...]:
    """The imports before workers are forked that run this module: the module itself, and the modules that it imports later."""
    return (worker, *SHARED, *OWN.get(worker, ()))


def warm_up(worker: str) -> None:
    for name in modules_of(worker):
        importlib.import_module(name)
    gc.freeze()  # workers collect garbage after each call: without these modules
