"""Offers this process, the driver's own Python, to our optimizer rule in the JVM: the rule then calls it to plan scans and to
answer calls of streams.

    offer_once(spark)           # register and load call it: once in an application, if the session's settings allow it
    offer(spark)                # again, after loads have failed so often that workers do them

`driver-planning` in the session's setting `spark.pydelta.disable` turns it off. The setting is read when a query is planned
and may change at any time. `register` and `load` offer this process to the rule once per application, unless it is disabled at
that time.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from spark_plugin.driver_channel.channel import COMMIT, OPEN, PLAN, READ, STREAM, WRITE, DriverChannel, channel_of
from spark_plugin.driver_channel.server import Handler
from spark_plugin.driver_planning.planner import open_source, planned
from spark_plugin.driver_planning.reads import SmallScans
from spark_plugin.driver_planning.stream_requests import Streams
from spark_plugin.driver_planning.writes import committed_write, planned_write
from spark_plugin.internals.pyspark_internals import reason_of
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.options.roads import DISABLE_CONF, DRIVER_PLANNING
from spark_plugin.options.settings import is_enabled
from spark_plugin.pruning.rule import installed_rule

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_PLANNER = "pydelta.driver.DriverPlanner"
_LOADS = "pydelta.driver.DriverLoads"

_log = logging.getLogger("pydelta")

_loads: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()
"""The DriverLoads of an application, None if there is none."""

_error_counts: WeakKeyDictionary[SparkContext, int] = WeakKeyDictionary()
"""How many loads in a row workers could do and this process could not."""

_MOST_ERRORS = 3


def offer(spark: SparkSession) -> bool:
    """Return whether the rule now calls this process, if the settings allow it. False if the session does not have the rule.

    Never fails: a warning says why not.
    """
    try:
        if not is_enabled(spark, DRIVER_PLANNING):
            return False
        rule = installed_rule(spark)
        if rule is None:
            return False  # and nothing is recorded: `register` may still come
        _loads[spark.sparkContext] = None  # an offer was made; workers load tables unless everything below succeeds
        if not _is_python_of_workers(spark):
            return False
        channel = channel_of(spark)
        channel.handle(planning_handlers())
        rule.offerDriver(java_planner(spark, channel))
        _loads[spark.sparkContext] = _java_loads(spark, rule)
        _error_counts[spark.sparkContext] = 0
    except Exception as error:  # whatever a locked-down or unknown Spark raises, workers plan
        _log.warning(
            "Python workers plan scans in this session, not the driver's own Python: %s. They give the same rows. Add %s to "
            "%s to be rid of this.",
            reason_of(error),
            DRIVER_PLANNING,
            DISABLE_CONF,
        )
        return False
    return True


def offer_once(spark: SparkSession) -> None:
    """Do the same as `offer`, unless this application has already made an offer, even one that failed. A call for a session that
    has disabled `driver-planning`, or that lacks the rule, makes no offer, so a later call still does.
    """
    if spark.sparkContext not in _loads:
        offer(spark)


def loads_of(spark: SparkSession) -> Any | None:
    """Return the JVM object by which this process loads tables; None if workers load them. Makes the offer first if the
    application has made none yet."""
    offer_once(spark)
    return _loads.get(spark.sparkContext)


def record_success(spark: SparkSession) -> None:
    """Record that this process did a load: the count of its failures in a row starts again."""
    _error_counts[spark.sparkContext] = 0


def record_failure(spark: SparkSession, error: Exception) -> None:
    """Record that a worker did a load that this process could not do. After some of these in a row workers do all loads."""
    reason = reason_of(error)
    _log.debug("a worker has loaded a table, as this process could not", exc_info=error)
    rule, context = installed_rule(spark), spark.sparkContext
    if rule is not None:
        rule.notLoadedByDriver(reason)
    _error_counts[context] = _error_counts.get(context, 0) + 1
    if _error_counts[context] >= _MOST_ERRORS and _loads.get(context) is not None:
        _loads[context] = None
        _log.warning(
            "Tables are not loaded by the driver's own Python any more: %s. Python workers load them, and give the same frames. "
            "spark_plugin.driver_planning.offer(spark) has it try again; add %s to %s to be rid of this.",
            reason,
            DRIVER_PLANNING,
            DISABLE_CONF,
        )


def planning_handlers() -> dict[int, Handler]:
    """Return the function that answers the requests of each kind."""
    scans = SmallScans()
    return {
        PLAN: partial(planned, keep=scans.keep),
        OPEN: open_source,
        STREAM: Streams().answer,
        READ: scans.read,
        WRITE: planned_write,
        COMMIT: committed_write,
    }


def java_planner(spark: SparkSession, channel: DriverChannel) -> Any:
    """Return a DriverPlanner that sends its requests through the channel."""
    internals = SparkInternals(spark)
    planner = internals.java_class(_PLANNER).newInstance()
    planner.offer(channel.java)
    return planner


def _java_loads(spark: SparkSession, rule: Any) -> Any | None:
    """Return a DriverLoads, the JVM object by which this process loads tables; None if Spark does not find our classes by their
    names. Workers then load tables."""
    internals = SparkInternals(spark)
    return internals.java_class(_LOADS).newInstance() if internals.loads_by_name(rule) else None


def _is_python_of_workers(spark: SparkSession) -> bool:
    """Return whether workers run the same Python program as this process. They unpickle what this process pickles, so they must
    have the same Python and the same packages."""
    program = shutil.which(str(getattr(spark.sparkContext, "pythonExec", "python3")))
    return program is not None and os.path.abspath(program) == os.path.abspath(sys.executable)
