"""The channel of an application: the server in this process, and the client in the JVM that proves that it knows the secret.

    channel = channel_of(spark)          # the same one until the SparkContext stops or the socket is removed
    channel.handle({PLAN: plan})
    channel.java                         # DriverChannel.java
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from spark_plugin.driver_channel.server import ChannelServer, Handler
from spark_plugin.internals.spark_internals import SparkInternals

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

PLAN, OPEN, STREAM, READ, WRITE, COMMIT, STATEMENT = range(1, 8)
"""Kinds of requests. DriverPlanner.java and DriverPython.java send them."""

_CLIENT = "pydelta.driver.DriverChannel"
_OPEN_TIMEOUT_MS = 10_000

_channels: WeakKeyDictionary[SparkContext, DriverChannel] = WeakKeyDictionary()


class DriverChannel:
    """The channel of one application: a server in this process that answers requests of the JVM. java: the client of this server
    in the JVM, a DriverChannel of Java; every Java object that sends requests to this process needs it."""

    def __init__(self, spark: SparkSession) -> None:
        """Raises OSError if this process cannot listen, and the JVM's error if the JVM cannot connect to this process."""
        internals = SparkInternals(spark)
        secret = secrets.token_bytes(32)
        self._server = ChannelServer(secret, internals.java_process)
        try:
            self.java = internals.java_class(_CLIENT).newInstance()
            port = self._server.port or 0
            self.java.open(self._server.path, port, secret, internals.java_context, _OPEN_TIMEOUT_MS)
        except BaseException:
            self._server.close()
            raise

    @property
    def is_reachable(self) -> bool:
        """Whether new connections can reach the server: it is not closed, and its socket still exists."""
        return self._server.is_reachable

    def handle(self, handlers: Mapping[int, Handler], *, defers_logging: bool = True) -> None:
        """Answer requests of these kinds with these functions from now on. defers_logging: as in ChannelServer.handle."""
        self._server.handle(handlers, defers_logging=defers_logging)


def channel_of(spark: SparkSession) -> DriverChannel:
    """Return the channel of a classic session's application. Raises the error that prevents it from opening."""
    channel = _channels.get(spark.sparkContext)
    if channel is None or not channel.is_reachable:
        channel = _channels[spark.sparkContext] = DriverChannel(spark)
    return channel
