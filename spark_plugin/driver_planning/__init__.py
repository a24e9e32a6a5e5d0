"""Plannings by the driver's own Python, which is idle while Spark plans, in the place of worker processes that Spark starts.

The pruning rule hands each planning to the Python process that drives the JVM, by Py4J's callback (DriverPlanner.java to
planner.py). Whatever keeps it from an answer (Spark Connect, a port that is closed, no answer in time, an error) sends the
planning to a worker, which does the same work and raises its own errors: nothing is raised to the user from this road.

The session's setting `spark.pydelta.driverPlanning.enabled` switches it off when it is false. It is read when a query is
planned and may change at any time; `register` and `load` open the port for callbacks unless it is false then, once an
application.

The .java files here are a compile unit of their own, compiled when the setting is first seen not to be false. Where that fails,
workers plan, and the log says why.
"""

from spark_plugin.driver_planning.offers import offer

__all__ = ["offer"]
