"""What the JVM asks of the Python process that drives it: statements and procedures that only Python carries out.

    install(spark)                             # once a process; register(spark) calls it

Spark's catalogs and parser are Java. They hand a request, a text of JSON, to DriverPython.java, which calls Answers.apply here by
Py4J, as Spark's own foreachBatch is called: in the thread that waits for Spark, or in one of its own where nobody does.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from delta_py.errors import DeltaError
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.options.settings import active
from spark_plugin.pyspark_internals import message_without_stack, reason_of
from spark_plugin.spark_internals import SparkInternals

Handler: TypeAlias = "Callable[[SparkSession, Mapping[str, Any]], Any]"

_HANDLERS = {"procedure": "sql.procedures.call_procedure", "statement": "sql_router.run_from_jvm"}
"""By a key of the request: `module.function` in spark_plugin, imported when a request is the first to need it. The answer is a
frame, or None where nothing was done."""

_log = logging.getLogger("pydelta")
_start_callbacks: Callable[[Any], None] = ensure_callback_server_started
_registered: WeakValueDictionary[str, SparkSession] = WeakValueDictionary()  # by their ids in the JVM
_offered: list[Any] = []  # the gateways of JVMs that know of this process: in practice one


def install(spark: SparkSession) -> bool:
    """Whether the JVM can ask now, of this session too. If not, a warning has said why; all else goes on. The session has our
    catalogs."""
    gateway: Any = spark.sparkContext._gateway
    _registered.setdefault(SparkInternals(spark).session_id, spark)
    if any(known is gateway for known in _offered):
        return True
    try:
        _start_callbacks(gateway)
        gateway.jvm.pydelta.sql_catalog.Catalogs.offerPython(function_for_java(Answers().apply))
    except Exception as error:  # whatever a locked-down or foreign Spark answers, all else must go on
        _log.warning(
            "CALL pydelta.system... does not work in this process: %s. Use the statements of spark.sql, or DeltaTable's methods.",
            reason_of(error),
        )
        return False
    _offered.append(gateway)
    return True


def start_callbacks(spark: SparkSession) -> None:
    """Open the port by which the JVM calls this process, unless it is open. Spark's own foreachBatch uses it too."""
    _start_callbacks(spark.sparkContext._gateway)


def function_for_java(apply: Callable[[Any], Any]) -> Any:
    """A java.util.function.Function.

    That port knows no password, and lets whoever connects call any method of what is offered. So the object has the one method,
    and nothing else that leads to what is behind it.
    """
    interface = type("Java", (), {"implements": ["java.util.function.Function"]})
    offered = {"apply": apply, "Java": interface, "__class__": object}  # Py4J looks for the last two

    class Function:
        def __getattribute__(self, name: str) -> Any:
            if name not in offered:
                raise AttributeError(f"a function that is offered to the JVM has no {name}")
            return offered[name]

    return Function()


class Answers:
    """To requests of DriverPython.java."""

    def apply(self, asked: Any) -> Any:
        """The Java Dataset of the answer, or None; or what went wrong: the exception of the JVM's that Python got, or a Failure
        as Failure.java reads it. An exception that was raised here would reach Java as the text of a traceback only."""
        try:
            spark = _session(asked["session"])
            request = {**json.loads(asked["request"]), "parameters": asked["parameters"]}
            with as_spark_raises(), active(spark):
                frame = _answer(spark, request)
                return None if frame is None else frame._jdf
        except Exception as error:
            return told(error)


def _session(java: Any) -> SparkSession:
    """The object that was registered, where it lives: a new one would become what RDD.toDF uses."""
    known = _registered.get(str(java.sessionUUID()))
    context: Any = SparkContext._active_spark_context
    return SparkSession(context, java) if known is None else known


def _answer(spark: SparkSession, request: Mapping[str, Any]) -> Any:
    handler = next(handler for key, handler in _HANDLERS.items() if key in request)
    return _imported(handler)(spark, request)


@cache
def _imported(name: str) -> Handler:
    module, _, function = name.rpartition(".")
    handler: Handler = getattr(import_module(f"spark_plugin.{module}"), function)
    return handler


def told(error: Exception) -> Any:
    """An exception as the JVM gets it."""
    if isinstance(error, DeltaError):
        return _failure(
            f"delta_py.errors.{type(error).__name__}: {error}", error.error_class, error.sql_state, error.message_parameters
        )
    origin = getattr(error, "_origin", None)
    if origin is not None:
        return origin
    if isinstance(error, PySparkException) and error.getCondition() is not None:
        state = error.getSqlState() or "XX000"
        return _failure(message_without_stack(error), error.getCondition(), state, error.getMessageParameters() or {})
    return _failure("".join(traceback.format_exception(error)), "INTERNAL_ERROR", "XX000", {})


def _failure(message: str, condition: str | None, state: str, parameters: Mapping[str, Any]) -> str:
    texts = {name: str(value) for name, value in parameters.items()}
    return json.dumps({"message": message, "condition": condition, "state": state, "parameters": texts})
