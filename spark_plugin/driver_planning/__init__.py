"""Plannings by the driver's own Python, which is idle while Spark plans, in the place of worker processes that Spark starts.

The pruning rule hands each planning to the Python process that drives the JVM, through the channel (DriverPlanner.java to
planner.py). If no answer comes (Spark Connect, a closed channel, no answer in time, an error), a worker does the same work and
raises its own errors: this way never raises an error to the user.

`driver-planning` in the session's setting `spark.pydelta.disable` switches it off. The setting is read when a query is planned
and may change at any time; `register` and `load` offer this process to the rule unless it is disabled then, once an
application.
"""

from spark_plugin.driver_planning.offers import offer

__all__ = ["offer"]
