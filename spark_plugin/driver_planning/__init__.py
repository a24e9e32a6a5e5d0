"""Planning by the driver's own Python, which is idle while Spark plans. It replaces the worker processes that Spark would start.

The pruning rule passes each planning to the Python process that drives the JVM, through the channel (DriverPlanner.java to
planner.py). If no answer comes (Spark Connect, a closed channel, no answer in time, an error), a worker does the same work and
raises its own errors: this way never raises an error to the user.

`driver-planning` in the session's setting `spark.pydelta.disable` turns it off. The setting is read when a query is planned
and may change at any time. `register` and `load` offer this process to the rule once per application, unless it is disabled at
that time.
"""

from spark_plugin.driver_planning.offers import offer

__all__ = ["offer"]
