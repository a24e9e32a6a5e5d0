"""`load` by the driver's own Python: it makes the DataSource, which a worker of Spark would make otherwise. Spark makes the same
relation of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from spark_plugin.data_source import FORMAT, pickled_whole
from spark_plugin.driver_planning.offers import loads_of, record_failure, record_success
from spark_plugin.driver_planning.sources import make_source
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.options.common import SESSION
from spark_plugin.options.private import signed
from spark_plugin.session_source import nonce_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def load(
    spark: SparkSession,
    reader: Callable[[], Any],
    path: Any,
    private_options: Mapping[str, str],
    load_by_worker: Callable[[], DataFrame],
) -> DataFrame:
    """Return the result of `load_by_worker`, computed by the driver's own Python if possible. The session is a classic one.

    reader: returns a DataFrameReader with the format, schema and options of this load. private_options: in addition to the
    session's settings. Raises the errors of `load_by_worker`, and no others.
    """
    loads = loads_of(spark) if path is None or isinstance(path, str) else None
    if loads is None:
        return load_by_worker()
    try:
        frame, error = _load(spark, loads, reader(), path, private_options), None
    except Exception as load_error:  # any error: if the user caused it, a worker raises it too
        frame, error = None, load_error
    if frame is None:
        frame = load_by_worker()
    if error is None:
        record_success(spark)
    else:
        record_failure(spark, error)
    return frame


def _load(spark: SparkSession, loads: Any, reader: Any, path: str | None, private_options: Mapping[str, str]) -> DataFrame | None:
    """Return the frame of a load by this process; None if only a worker of Spark can load. loads: a DriverLoads of the JVM."""
    internals, nonce = SparkInternals(spark), nonce_of(spark)
    load_facts = internals.load_request(loads, reader, path)
    source = None if load_facts is None else make_source({**load_facts["options"], **private_options}, load_facts["directory"])
    if source is None:
        return None
    schema = source.schema().json()
    settings = {SESSION: source.options[SESSION], **private_options}
    return internals.load_with_source(loads, reader, FORMAT, path, pickled_whole(source), schema, signed(settings, nonce))
