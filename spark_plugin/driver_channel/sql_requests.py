"""Statements and procedures that Spark's catalogs and parser pass to the Python process that drives the JVM.

    install(spark)                             # register(spark) calls it

DriverPython.java stores the Java objects of a request (session, parameters, the resulting DataFrame) under a number. Only the
number and a JSON text go through the channel. This process gets the objects through its own connection to the JVM, which has a
password.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from functools import partial
from typing import Any
from weakref import WeakSet, WeakValueDictionary

import orjson
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delta_py.errors import DeltaError
from spark_plugin.driver_channel.channel import STATEMENT, DriverChannel, channel_of
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.internals.named_functions import function_named
from spark_plugin.internals.pyspark_internals import message_without_stack, reason_of
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.options.settings import active

_HANDLERS = {"procedure": "statements.call_procedure.call_procedure", "statement": "sql_router.run_from_jvm"}
"""By a key of the request: the name of a function, for function_named. It takes the session and the request, and returns a
frame, or None if nothing was done."""

_log = logging.getLogger("pydelta")
_sessions: WeakValueDictionary[str, SparkSession] = WeakValueDictionary()  # registered sessions, by their ids in the JVM
_installed: WeakSet[DriverChannel] = WeakSet()


def install(spark: SparkSession) -> bool:
    """Let the JVM call this process for statements and procedures of the session, which has our catalogs.

    Returns False if it cannot; then a warning has said why, and everything else continues.
    """
    _sessions.setdefault(SparkInternals(spark).session_id, spark)
    try:
        channel = channel_of(spark)
        if channel not in _installed:
            channel.handle({STATEMENT: partial(_answer_request, SparkInternals(spark))}, defers_logging=False)
            SparkInternals(spark).offer_python(channel.java)
            _installed.add(channel)
    except Exception as error:  # whatever a locked-down or unknown Spark raises, everything else must continue
        _log.warning(
            "CALL pydelta.system... does not work in this process: %s. Use the statements of spark.sql, or DeltaTable's methods.",
            reason_of(error),
        )
        return False
    return True


def _answer_request(internals: SparkInternals, body: bytes) -> bytes:
    """Run one request, and store its frame or error in the JVM."""
    request = orjson.loads(body)
    with internals.python_request(request.pop("number")) as python_request:
        try:
            spark = _session_of(python_request.session())
            with as_spark_raises(), active(spark):
                frame = _run(spark, {**request, "parameters": python_request.parameters()})
            if frame is not None:
                python_request.finished(frame._jdf)
        except Exception as error:
            leave_error(error, python_request)
    return b""


def leave_error(error: Exception, python_request: Any) -> None:
    """Pass an error to a PythonRequest, which raises it in the JVM's thread: the original Java exception if the error came from
    the JVM, otherwise an exception that Failure.java makes from JSON."""
    origin = getattr(error, "_origin", None)
    if origin is None or isinstance(error, DeltaError):
        python_request.failed(failure_json(error))
    else:
        python_request.raised(origin)


def _session_of(java_session: Any) -> SparkSession:
    """Return the registered Python object of a Java session, or a new one if there is none. A new object becomes the session that
    RDD.toDF uses, so it is made only if necessary."""
    registered_session = _sessions.get(str(java_session.sessionUUID()))
    context: Any = SparkContext._active_spark_context
    return SparkSession(context, java_session) if registered_session is None else registered_session


def _run(spark: SparkSession, request: Mapping[str, Any]) -> Any:
    """Return the frame of a request; None if its handler did nothing."""
    handler = next(handler for key, handler in _HANDLERS.items() if key in request)
    return function_named(handler)(spark, request)


def failure_json(error: Exception) -> str:
    """Return an error in the form that Failure.java reads: message, condition, SQLSTATE and parameters."""
    if isinstance(error, DeltaError):
        message = f"delta_py.errors.{type(error).__name__}: {error}"
        return _failure(message, error.error_class, error.sql_state, error.message_parameters)
    if isinstance(error, PySparkException) and error.getCondition() is not None:
        state = error.getSqlState() or "XX000"
        return _failure(message_without_stack(error), error.getCondition(), state, error.getMessageParameters() or {})
    return _failure("".join(traceback.format_exception(error)), "INTERNAL_ERROR", "XX000", {})


def _failure(message: str, condition: str | None, state: str, parameters: Mapping[str, Any]) -> str:
    texts = {name: str(value) for name, value in parameters.items()}
    return json.dumps({"message": message, "condition": condition, "state": state, "parameters": texts})
