"""register(spark): everything that makes `format("pydelta")` complete in a session."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from spark_plugin import exceptions, jvm_calls, pruning, sql_router
from spark_plugin.dataframe_api import method_patches
from spark_plugin.driver_planning.offers import offer_once
from spark_plugin.session_source import hand_down, register_source
from spark_plugin.spark_internals import is_connect
from spark_plugin.sql_catalog import uploaded
from spark_plugin.sql_catalog.install import install as install_catalogs
from spark_plugin.wrapping import Method, wrap

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger("pydelta")
_checked: set[str] = set()


def register(spark: SparkSession) -> None:
    """Make the format, its write modes, its errors, column pruning and its SQL known to a session. Calling it again is harmless.

    Classic sessions and Spark Connect. What cannot be had (pruning over Connect) is said once, with what to do instead.
    """
    connect = is_connect(spark)
    exceptions.install(connect=connect)
    method_patches.install(connect=connect)
    register_source(spark)
    if connect:
        uploaded.install(spark)
    else:
        _check_workers(spark)
        if pruning.install(spark):
            if install_catalogs(spark) and jvm_calls.install(spark):
                sql_router.install_in_parser(spark)
            offer_once(spark)
    sql_router.install(spark)
    if connect:
        wrap(type(spark), "cloneSession", _cloning)


def _cloning(original: Method) -> Method:
    """What a clone of a Spark Connect session has on the server, it has here too. The JVM alone clones classic sessions."""

    def clone_session(self: Any, *args: Any, **kwargs: Any) -> Any:
        clone = original(self, *args, **kwargs)
        if hand_down(self, clone):
            register(clone)
        return clone

    return clone_session


def _check_workers(spark: SparkSession) -> None:
    """Spark runs Python sources in processes of their own; warn when those will not find our packages."""
    python = str(getattr(spark.sparkContext, "pythonExec", "python3"))
    program = shutil.which(python)
    if python in _checked or program == sys.executable:
        return
    _checked.add(python)
    problem = "there is no such program" if program is None else _import_problem(program)
    if problem is not None:
        _log.warning(
            "Spark's Python workers run %r, and there pydelta will not work: %s. Before the SparkSession is made, add the line: "
            "os.environ['PYSPARK_PYTHON'] = %r",
            python,
            problem,
            sys.executable,
        )


def _import_problem(python: str) -> str | None:
    """Why the interpreter cannot run our workers; None if it can."""
    command = [python, "-c", "import pyarrow, pyspark, delta_py.errors"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip().rpartition("\n")[2] or f"it ended with {done.returncode}"
