"""What Spark keeps to itself: the one module that reaches behind the public API of pyspark.

    internals = SparkInternals(spark)          # of a classic session
    rule = internals.find_optimizer_rule(name)

Behind a classic session is a JVM. A Spark Connect client has none, and `SparkInternals` refuses it: ask `is_connect` first.
What comes out of the JVM (rules, plans, expressions) is opaque to callers: they hand it from one function here to another.

On a version of Spark that is not known only the optimizer rule is refused (`require_known_version`): reads are right without it.
Everything else is asked of that Spark as of the known ones, and what it does not have is an error of the operation that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyspark
from py4j.clientserver import ClientServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KNOWN_VERSIONS = ("4.2.", "4.3.")
"""How the versions of Spark begin with which all of this is tested. The Java sources must compile with each of them."""

_compiled: list[tuple[Any, str, Any]] = []
"""(Py4J gateway, name, class) of each JVM, in practice one. Compiled once: Py4J remembers methods by the class's name."""


def is_connect(spark: Any) -> bool:
    """Whether the session is a client of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


class SparkInternals:
    """The inside of one classic session. Raises NotImplementedError for one of Spark Connect."""

    __slots__ = ("_spark",)

    def __init__(self, spark: Any) -> None:
        if is_connect(spark):
            raise NotImplementedError("a Spark Connect client has no JVM, and the inside of Spark stays on the server")
        self._spark = spark

    @property
    def version(self) -> str:
        """Spark's, as the JVM says it."""
        return str(self._spark.version)

    def require_known_version(self) -> None:
        """Raises NotImplementedError for a version of Spark that is not among KNOWN_VERSIONS."""
        version = self.version
        if not version.startswith(KNOWN_VERSIONS):
            known = " and ".join(f"{known}x" for known in KNOWN_VERSIONS)
            raise NotImplementedError(f"it is made for Spark {known}, and this is {version} (pyspark {pyspark.__version__})")

    # ------------------------------------------------------------ the session

    @contextmanager
    def activated(self) -> Iterator[None]:
        """The session is the active one of this thread meanwhile."""
        sessions = type(self._spark)._get_j_spark_session_class(self._jvm)
        before = sessions.getActiveSession()
        sessions.setActiveSession(self._spark._jsparkSession)
        try:
            yield
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()

    def has_own_threads(self) -> bool:
        """Whether each thread of Python has one of its own in the JVM, and so local properties (PYSPARK_PIN_THREAD)."""
        return isinstance(self._gateway, ClientServer)

    def runs_tasks(self) -> bool:
        """Whether any task runs in the session's application."""
        executors = self._spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
        return any(executor.numRunningTasks() > 0 for executor in executors)

    # ------------------------------------------------------------ rules of the optimizer, and Java that is compiled here

    def find_optimizer_rule(self, name: str) -> Any | None:
        """The session's own rule of this name."""
        rules = self._spark._jsparkSession.experimental().extraOptimizations()
        found = (rules.apply(number) for number in range(rules.length()))
        return next((rule for rule in found if rule.ruleName() == name), None)

    def add_optimizer_rule(self, rule: Any) -> None:
        """Behind the session's other rules."""
        experimental = self._spark._jsparkSession.experimental()
        getattr(experimental, "extraOptimizations_$eq")(experimental.extraOptimizations().appended(rule))

    def java_map(self) -> Any:
        """A new java.util.Map."""
        return self._jvm.java.util.HashMap()

    def compiled(self, name: str, sources: Callable[[], Any], beside: str) -> Any:
        """The Java class of this name, compiled by Spark's own Janino once a JVM.

        sources: makes a java.util.Map of paths of files to their bytes. beside: a class of Spark's, by whose loader the names in
        the sources are found.
        """
        gateway = self._gateway
        for known, kept, compiled in _compiled:
            if known is gateway and kept == name:
                return compiled
        context = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        parent = self._jvm.java.lang.Class.forName(beside, False, context).getClassLoader()
        finder = self._jvm.org.codehaus.commons.compiler.util.resource.MapResourceFinder(sources())
        made = self._jvm.org.codehaus.janino.JavaSourceClassLoader(parent, finder, "UTF-8").loadClass(name)
        _compiled.append((gateway, name, made))
        return made

    @property
    def _jvm(self) -> Any:
        return self._spark.sparkContext._jvm

    @property
    def _gateway(self) -> Any:
        return self._spark.sparkContext._gateway

    # ------------------------------------------------------------ frames

    def optimized(self, frame: DataFrame) -> Any:
        """The frame's plan as the optimizer leaves it."""
        return self._execution(frame).optimizedPlan()

    def changed(self, frame: DataFrame, change: Callable[[Any], Any]) -> DataFrame:
        """The frame over what `change` gives for its Java Dataset."""
        java: Any = frame
        return type(frame)(change(java._jdf), self._spark)

    def _execution(self, frame: DataFrame) -> Any:
        java: Any = frame
        return java._jdf.queryExecution()
