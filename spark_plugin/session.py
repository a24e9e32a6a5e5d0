"""register(spark): everything that makes `format("pydelta")` complete in a session."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

import pyspark

from spark_plugin import exceptions, pruning, sql_router
from spark_plugin.dataframe_api import method_patches
from spark_plugin.driver_channel import sql_requests
from spark_plugin.driver_planning.offers import offer_once
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.spark_internals import SparkInternals, is_connect
from spark_plugin.internals.wrapping import Method, wrap
from spark_plugin.java.build import BuildError, build
from spark_plugin.java.jars import Jar, MissingJarError, jar_for
from spark_plugin.java.supported_versions import refuse_older
from spark_plugin.options.registered_catalogs import registered_settings, take_settings
from spark_plugin.options.settings import check_disabled
from spark_plugin.pruning.self_test import switch_off_what_fails
from spark_plugin.session_source import (
    hand_down,
    is_registered,
    nonce_of,
    register_catalogs,
    register_second_name,
    register_source,
    take_over,
)
from spark_plugin.spark_versions import CLIENTS_CLONE_SESSIONS
from spark_plugin.sql_catalog import unity_names, uploaded
from spark_plugin.sql_catalog.delta_names import (
    DELTA,
    dataframe_formats,
    delta_is_ours,
    has_catalog_of_delta_spark,
    look_for_delta_spark,
)
from spark_plugin.sql_catalog.delta_spark_settings import drop_settings_of_delta_spark, replace_catalog_of_delta_spark
from spark_plugin.sql_catalog.install import install as install_catalogs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ForBatch: TypeAlias = "Callable[[DataFrame, int], None]"

_log = logging.getLogger("pydelta")
_checked_programs: set[str] = set()  # the Python programs that _check_workers has looked at
_jars: WeakKeyDictionary[SparkSession, Jar] = WeakKeyDictionary()  # as _jar_of has determined them


def register(spark: SparkSession, catalogs: Mapping[str, Mapping[str, str]] | None = None) -> None:
    """Install the format, its write modes, its errors, column pruning and its SQL in a session. A second call is harmless.

    catalogs: servers of Unity Catalog by the names of their catalogs, with the settings that `spark.sql.catalog.<name>` may have:
    {"main": {"uri": "https://catalog.example.com", "token": "..."}}. The tokens do not become settings of Spark.
    Works for classic sessions and Spark Connect. One warning says what the session cannot have, and what to do instead. Raises
    InvalidOptionError for an unknown name in `spark.pydelta.disable`, UnsupportedOperationError for a Spark that is older than
    all supported versions, and JarError in a source checkout whose jar was built from other sources.
    """
    connect = is_connect(spark)
    refuse_older(pyspark.__version__)
    jar = _jar_of(spark)
    check_disabled(spark)
    exceptions.install(connect=connect)
    method_patches.install(connect=connect, in_clones=_in_clones)
    if catalogs:
        register_catalogs(spark, catalogs)
    uploads_first = connect and not is_registered(spark) and not has_catalog_of_delta_spark(spark)
    if uploads_first:
        # With our classes the server registers the source without a warning, and tells whether it has delta-spark's classes.
        _upload(spark, jar)
    register_source(spark)
    if look_for_delta_spark(spark):
        drop_settings_of_delta_spark(spark)
    elif not connect:
        replace_catalog_of_delta_spark(spark)
    if connect:
        if not uploads_first:
            _upload(spark, jar)
    else:
        _check_workers(spark)
        if pruning.install(spark, *dataframe_formats(spark)):
            if install_catalogs(spark) and sql_requests.install(spark):
                sql_router.install_in_parser(spark)
            offer_once(spark)
            if jar.is_for_older_spark:
                switch_off_what_fails(spark, SparkInternals(spark).link_problems())
    if connect and catalogs:
        unity_names.install(spark)
    if delta_is_ours(spark):
        register_second_name(spark, DELTA)
    sql_router.install(spark)
    if connect and CLIENTS_CLONE_SESSIONS:
        wrap(type(spark), "cloneSession", _wrap_clone_session)


def _upload(spark: SparkSession, jar: Jar) -> None:
    """Send the jar to the session's server. If it was made for an older Spark than the server's, disable what does not work
    there."""
    if uploaded.install(spark) and jar.is_for_older_spark:
        switch_off_what_fails(spark, uploaded.link_problems(spark))


def _jar_of(spark: SparkSession) -> Jar:
    """Return the jar for the session. Wheels contain the jars. Where the Java sources are (a checkout, an installation from Git),
    a missing jar is built when a session first needs it. Raises MissingJarError if it cannot be built."""
    if spark not in _jars:
        version = spark.version  # a Spark Connect client gets it from the server
        try:
            _jars[spark] = jar_for(version)
        except MissingJarError as error:
            if not error.has_sources:
                raise
            _jars[spark] = _build_jar(version, error)
    return _jars[spark]


def _build_jar(version: str, missing: MissingJarError) -> Jar:
    """Build a missing jar for a session of this version of Spark, if that is the version of this Python's pyspark. missing: the
    error that reported it. Raises MissingJarError if there is still no jar for this version."""
    try:
        _log.info("Built %s", build())
    except BuildError as error:
        raise MissingJarError(f"{missing}. register tried this, and failed: {error}", has_sources=True) from error
    return jar_for(version)


def register_clone(clone: SparkSession, nonce: str, catalogs: Mapping[str, str]) -> None:
    """Register a clone of a Spark Connect session that another process registered. nonce, catalogs: of the original session;
    catalogs as registered_settings returns them."""
    if take_over(clone, nonce):
        take_settings(clone, catalogs)
        register(clone)


def unpickle_before_batch_functions(value: object) -> None:
    """Send the value to the processes in which a Spark Connect server runs functions of foreachBatch. They unpickle it before the
    user's function, which may need an effect of unpickling the value, such as modules that it makes."""
    _unpickled_before_functions.append(value)


_unpickled_before_functions: list[object] = []


def _in_clones(spark: SparkSession, function: ForBatch) -> ForBatch:
    """Return the user's function of foreachBatch, or a function that Spark gets in its place. A Spark Connect server runs it in a
    separate process, since Spark 4.3 in a clone of the client's session. The function registers that clone like the original
    session, and then calls the user's."""
    if adapter_of(spark).is_driver or not is_registered(spark):
        return function
    return partial(_in_clone, tuple(_unpickled_before_functions), nonce_of(spark), registered_settings(spark), function)


def _in_clone(
    _: tuple[object, ...], nonce: str, catalogs: Mapping[str, str], function: ForBatch, batch: DataFrame, number: int
) -> None:
    """Register the session of a batch, and call the user's function. _: is here only so that the process unpickles it first."""
    register_clone(batch.sparkSession, nonce, catalogs)
    function(batch, number)


def _wrap_clone_session(original: Method) -> Method:
    """Return a `cloneSession` of Spark Connect that also registers the clone in this process; on the server the clone has our
    source already. Classic sessions are cloned by the JVM alone."""

    def clone_session(self: Any, *args: Any, **kwargs: Any) -> Any:
        clone = original(self, *args, **kwargs)
        if hand_down(self, clone):
            take_settings(clone, registered_settings(self))
            register(clone)
        return clone

    return clone_session


def _check_workers(spark: SparkSession) -> None:
    """Warn, once for each program, if the Python program of Spark's workers cannot import our packages. Spark runs Python sources
    in such separate processes."""
    python = str(getattr(spark.sparkContext, "pythonExec", "python3"))
    program = shutil.which(python)
    if python in _checked_programs or program == sys.executable:
        return
    _checked_programs.add(python)
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
    """Return why the interpreter cannot run our workers, or None if it can."""
    command = [python, "-c", "import pyarrow, pyspark, delta_py.errors"]
    try:
        probe = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if probe.returncode == 0 else probe.stderr.strip().rpartition("\n")[2] or f"it ended with {probe.returncode}"
