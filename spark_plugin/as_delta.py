"""Runs scripts of delta-spark on pydelta, with one line more.

    import spark_plugin.as_delta

    from delta import DeltaTable, configure_spark_with_delta_pip       # as the script has it

The import makes the modules `delta`, `delta.tables`, `delta.exceptions`, `delta.pip_utils`, `delta.version` (pydelta's version)
and `delta.connect`, whose classes are those of `delta`. It registers the active session, and each session that
`SparkSession.builder` or `newSession` returns after it, so that the format `delta` is pydelta's there.

Raises ImportError, and changes nothing, if delta-spark or another package of the name `delta` is installed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from spark_plugin.dataframe_api.catalog import PROVIDER_CONF
from spark_plugin.delta_modules import MakeDeltaModules, make_delta_modules
from spark_plugin.internals.wrapping import Method, wrap
from spark_plugin.session import register, unpickle_before_batch_functions
from spark_plugin.sql_catalog.delta_names import DELTA, is_loaded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as Session

_log = logging.getLogger("pydelta")


def _register_sessions() -> None:
    """Register the active session, and wrap the methods that return sessions, so that these are registered too."""
    for cls, names in ((SparkSession.Builder, ("getOrCreate", "create")), (SparkSession, ("newSession",))):
        for name in names:
            wrap(cls, name, _wrap_to_register)
    active_session = SparkSession.getActiveSession()
    if active_session is not None:
        _register(active_session)


def _wrap_to_register(original: Method) -> Method:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        session = original(self, *args, **kwargs)
        _register(session)
        return session

    return method


def _register(session: Session) -> None:
    """Register a session, and warn if delta-spark's jar makes the format `delta` its own."""
    register(session)
    if session.conf.get(PROVIDER_CONF, None) is None:
        session.conf.set(PROVIDER_CONF, DELTA)  # as delta-spark's own DeltaTable.create does
    if is_loaded(session):
        _log.warning(
            "delta-spark's jar is in this session, so the format delta and USING delta are its own, and only the module delta is "
            "pydelta's. Remove it from spark.jars, spark.jars.packages or Spark's directory of jars."
        )


make_delta_modules()
unpickle_before_batch_functions(MakeDeltaModules())
_register_sessions()
