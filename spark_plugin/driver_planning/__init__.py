"""Planning by the driver's own Python, which is idle while Spark plans. It replaces the worker processes that Spark would start.

In: requests of the JVM, as bytes from the channel (DriverPlanner.java). Out: plans, rows, offsets and commits, as bytes. If no
answer comes (Spark Connect, a closed channel, no answer in time, an error), a worker does the same work, and raises its own
errors.
"""

from spark_plugin.driver_planning.offers import offer

__all__ = ["offer"]
