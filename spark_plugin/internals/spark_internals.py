"""The private parts of Spark in the JVM of a session.

    internals = SparkInternals(spark)          # of a classic session
    rule = internals.pruning_rule()

A classic session has a JVM. A Spark Connect client has none, and `SparkInternals` refuses it: `session_adapter.py` has what works
for both. The content of a client's Columns and plans is in `connect_internals.py`.
Objects from the JVM (rules, plans, expressions) are opaque to callers: they pass them from one function here, or in
`jvm_plans.py`, to another.

`java/jars.py` says which versions of Spark the Java part is made for. A newer Spark gets the same calls as the known versions. If
it lacks something, the operation that needs it raises an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType
from pyspark.sql.udf import _wrap_function

from spark_plugin.internals.jvm_plans import HIDDEN_COLUMN, NotRowByRow, column_metadata, nodes_repeat, read_paths, to_list
from spark_plugin.java.jars import jar_for

RULE = "pydelta.rule.PruneScans"

_loaded_objects: list[tuple[Any, str, Any]] = []
"""(Py4J gateway, name, class or its only object) of each JVM, in practice one. Loaded once: Py4J caches methods by the class's
name."""

_routed_session_ids: set[str] = set()
"""The ids of sessions whose parser has our router."""

_SESSION_SOURCES = "pydelta.driver.SessionSources"
_PYTHON_SCAN = "org.apache.spark.sql.execution.datasources.v2.python.PythonScan"
_GROWING_LOADERS = ("org.apache.spark.util.MutableURLClassLoader", "org.apache.spark.util.ChildFirstURLClassLoader")


def is_connect(spark: Any) -> bool:
    """Return whether the session is a client of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


class SparkInternals:
    """Access to the private parts of one classic session in the JVM. Making it raises NotImplementedError for a client of Spark
    Connect. "Our catalogs" are Java classes of our jar. The "router" is our parser, which passes some statements to Python."""

    def __init__(self, spark: Any) -> None:
        if is_connect(spark):
            raise NotImplementedError("a Spark Connect client has no JVM, and the inside of Spark stays on the server")
        self._spark = spark

    @property
    def version(self) -> str:
        """Spark's version, from the JVM."""
        return str(self._spark.version)

    @property
    def session_id(self) -> str:
        """The id of the session in the JVM; several Python objects may stand for it."""
        return str(self._spark._jsparkSession.sessionUUID())

    # ------------------------------------------------------------ the session

    @contextmanager
    def activated(self) -> Iterator[None]:
        """Make the session the active one of this thread inside the block."""
        sessions = type(self._spark)._get_j_spark_session_class(self._jvm)
        previous_session = sessions.getActiveSession()
        sessions.setActiveSession(self._spark._jsparkSession)
        try:
            yield
        finally:
            if previous_session.isDefined():
                sessions.setActiveSession(previous_session.get())
            else:
                sessions.clearActiveSession()

    def has_own_threads(self) -> bool:
        """Whether each Python thread has its own thread in the JVM, and so its own local properties (PYSPARK_PIN_THREAD)."""
        return isinstance(self._gateway, ClientServer)

    def runs_tasks(self) -> bool:
        """Whether any task runs in the session's application."""
        executors = self._spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
        return any(executor.numRunningTasks() > 0 for executor in executors)

    def has_cached_tables(self) -> bool:
        """Whether Spark caches rows of any table or frame in memory."""
        return not self._spark._jsparkSession.sharedState().cacheManager().isEmpty()

    def cached_delta_tables(self) -> list[tuple[str, str]]:
        """Return the names, as SQL text, and the paths of Delta tables whose rows Spark caches by name; none if the JVM does not
        have our catalogs. Raises NotImplementedError for a Spark that stores them elsewhere."""
        if not self.has_java_class("pydelta.catalog.Catalogs"):
            return []
        try:
            answer = self._jvm.pydelta.catalog.Catalogs.heldTables(self._spark._jsparkSession)
        except Py4JError as error:
            raise NotImplementedError(f"Spark does not tell of which tables it holds rows: {error}") from error
        return [(name, path) for name, path in orjson.loads(answer)]

    def settings(self) -> dict[str, str]:
        """Return the settings of the session and its context. They come as one text: Py4J would need two calls for each."""
        settings = self._spark._jsparkSession.conf().getAllAsJava()
        values: dict[str, str] = orjson.loads(self._json_writer.writeValueAsString(settings))
        return values

    @property
    def _json_writer(self) -> Any:
        name = "com.fasterxml.jackson.databind.ObjectMapper"
        return self._once(name, lambda: self._jvm.com.fasterxml.jackson.databind.ObjectMapper())

    def hadoop_settings(self, prefix: str) -> dict[str, str]:
        """Return the settings of Hadoop's file systems, by full names: settings of the session, and of its context."""
        properties = self._spark._jsparkSession.sessionState().newHadoopConf().getPropsWithPrefix(prefix)
        return {f"{prefix}{name}": str(value) for name, value in dict(properties).items()}

    def register_source(self, source: Any) -> None:
        """Register a Python source with the session, in place of one with the same name.

        Spark's own way would first start a process that imports each module `pyspark_*` on Python's path, to warn of a source of
        this name; it takes 1 to 2 seconds. Spark does that later if it needs one of them.
        """
        java_source = self._jvm.org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource(
            _wrap_function(self._spark.sparkContext, source)
        )
        rule = self.pruning_rule()
        if rule is not None:  # then the driver's own Python, and no worker, plans and commits writes
            java_source = rule.askingDriver(java_source)
        try:
            self._known_sources().put(source.name().lower(), java_source)
        except Py4JError:  # a build of Spark that stores them elsewhere
            self._spark.dataSource.register(source)

    def change_source(self, name: str, change: Callable[[Any], Any]) -> None:
        """Replace a source of the session by the result of `change`. Does nothing if there is no such source, and in a build
        of Spark that stores sources elsewhere."""
        try:
            sources = self._known_sources()
        except Py4JError:
            return
        source = sources.get(name)
        if source is not None:
            sources.put(name, change(source))

    def _known_sources(self) -> Any:
        """Return the Python sources that the session has registered, by lower-case name."""
        manager = self._spark._jsparkSession.sessionState().dataSourceManager()
        if manager.getClass().getName() == _SESSION_SOURCES:
            return manager.registered()
        sources_field = manager.getClass().getDeclaredField("runtimeDataSourceBuilders")
        sources_field.setAccessible(True)
        return sources_field.get(manager)

    @property
    def java_context(self) -> Any:
        """Return Spark's own SparkContext."""
        return self._spark.sparkContext._jsc.sc()

    @property
    def java_process(self) -> int:
        """Return the id of the JVM's process."""
        return int(self._jvm.java.lang.ProcessHandle.current().pid())

    # ------------------------------------------------------------ rules of the optimizer, and the package's Java

    def pruning_rule(self) -> Any | None:
        """Return the session's own PruneScans; None if it is not installed."""
        rules = self._spark._jsparkSession.experimental().extraOptimizations()
        in_order = (rules.apply(number) for number in range(rules.length()))
        return next((rule for rule in in_order if rule.ruleName() == RULE), None)

    def add_optimizer_rule(self, rule: Any) -> None:
        """Add a PruneScans to the session's optimizer."""
        rule.addTo(self._spark._jsparkSession)

    def java_class(self, name: str) -> Any:
        """Return the class of this name from the package's jar, loaded once per JVM. Raises the errors of jar_for."""
        return self._once(name, lambda: self._once("the loader of our classes", self._loader_with_our_jar).loadClass(name))

    def link_problems(self) -> dict[str, list[str]]:
        """Return the packages of our Java whose classes do not fit this Spark, and why; empty if all fit, and for a Spark for
        which the jar was compiled. Raises the errors of the JVM."""
        if not jar_for(self.version).is_for_older_spark:
            return {}
        check = "pydelta.rule.LinkCheck"
        problems_json: str = self._once(f"problems of {check}", lambda: self.java_class(check).newInstance().problems())
        problems: dict[str, list[str]] = orjson.loads(problems_json)
        return problems

    def require_links(self, *packages: str) -> None:
        """Raises NotImplementedError if the classes of one of these packages of our Java do not fit this Spark."""
        problems = self.link_problems()
        reasons = [problems[package][0] for package in packages if package in problems]
        if reasons:
            raise NotImplementedError(f"this release of pydelta is older than Spark {self.version}: {reasons[0]}")

    def _once(self, name: str, load: Callable[[], Any]) -> Any:
        """Return the result of `load` for this name, computed once in this JVM."""
        gateway = self._gateway
        for loaded_gateway, loaded_name, loaded in _loaded_objects:
            if loaded_gateway is gateway and loaded_name == name:
                return loaded
        result = load()
        _loaded_objects.append((gateway, name, result))
        return result

    def loads_by_name(self, instance: Any) -> bool:
        """Whether Spark, if it looks for the name of the instance's class, finds this very class and not another one or none."""
        return bool(instance.getClass().getClassLoader().equals(self._context_loader()))

    def prepare_catalogs(self) -> str | None:
        """Add to the session's analyzer what the catalogs need there. Returns the problem; None if there was none."""
        problem = self._jvm.pydelta.catalog.Catalogs.prepare(self._spark._jsparkSession)
        return None if problem is None else str(problem)

    def enter_functions(self) -> None:
        """Give the session the table functions of the catalogs."""
        self._jvm.pydelta.catalog.Catalogs.enterFunctions(self._spark._jsparkSession)

    def offer_python(self, channel: Any) -> None:
        """Make the catalogs call this process for statements and procedures. channel: a DriverChannel of the JVM."""
        self._jvm.pydelta.catalog.Catalogs.offerPython(channel)

    @contextmanager
    def python_request(self, number: int) -> Iterator[Any]:
        """Yield the PythonRequest of this number, for which a thread of the JVM waits. Inside the block this thread has the
        waiting thread's job group, pool and script variables, unless Python threads have no JVM threads of their own."""
        request = self._jvm.pydelta.catalog.Catalogs.pythonRequest(number)
        if request is None:
            raise LookupError(f"nobody waits for the request {number}")
        if not self.has_own_threads():
            yield request
            return
        request.enter()
        try:
            yield request
        finally:
            request.leave()

    def route_statements(self, routes: str) -> None:
        """Add our router to the session's parser, once. routes: in the form that StatementRouter.java reads. The session has our
        catalogs. Raises the error of a Spark that stores its parser elsewhere."""
        if self.session_id not in _routed_session_ids:
            self._jvm.pydelta.catalog.Catalogs.routeStatements(self._spark._jsparkSession, routes)
            _routed_session_ids.add(self.session_id)

    @contextmanager
    def left_to_spark(self, text: str) -> Iterator[None]:
        """Do not route the statement that Spark parses in this thread inside the block. Does nothing if Python's threads share
        those of the JVM, or if the parser has no router."""
        if not (self._is_routed() and self.has_own_threads()):
            yield
            return
        catalogs = self._jvm.pydelta.catalog.Catalogs
        catalogs.leaveToSpark(text)
        try:
            yield
        except BaseException:  # perhaps Spark has not parsed the statement, and the mark would hold for the next one
            catalogs.leaveToSpark(None)
            raise

    def parser(self) -> Any:
        """Return the session's parser without our router."""
        if self._is_routed():
            return self._jvm.pydelta.catalog.Catalogs.parserBelow(self._spark._jsparkSession)
        return self._spark._jsparkSession.sessionState().sqlParser()

    def sql_below_router(self, text: str) -> DataFrame | None:
        """Run a statement without routing it; returns None, and does nothing, if the session's parser has no router."""
        if not self._is_routed():
            return None
        return DataFrame(self._jvm.pydelta.catalog.Catalogs.sqlBelow(self._spark._jsparkSession, text), self._spark)

    def _is_routed(self) -> bool:
        return bool(_routed_session_ids) and self.session_id in _routed_session_ids

    def entry(self, database: str | None, table: str) -> dict[str, Any] | None:
        """Return the session catalog's entry of a name, in the form of Entry.java; None if there is none. The session has our
        catalogs."""
        entry_json = self._jvm.pydelta.catalog.Catalogs.entry(self._spark._jsparkSession, database, table)
        return None if entry_json is None else orjson.loads(entry_json)

    def is_free(self, path: str) -> bool:
        """Whether a path is empty, as far as Hadoop's file systems can tell. The session has our catalogs."""
        return bool(self._jvm.pydelta.catalog.Catalogs.isFree(self._spark._jsparkSession, path))

    def enter_managed(self, database: str, table: str, path: str, provider: str) -> None:
        """Enter an existing table into the session catalog, so that DROP TABLE deletes its files. The session is active, and
        has our catalogs. Raises Spark's error if the name already exists."""
        self._jvm.pydelta.catalog.Catalogs.enterManaged(database, table, path, provider)

    def has_java_class(self, name: str) -> bool:
        return self._context_loader().getResource(f"{name.replace('.', '/')}.class") is not None

    def _loader_with_our_jar(self) -> Any:
        """Return a loader of our classes: the one by which Spark finds classes (so also our catalogs) by name, if it accepts more
        jars and has no classes of pydelta yet; the jar is added to it. Otherwise return a new loader."""
        content = jar_for(self.version).path.read_bytes()
        context, jar_name = self._context_loader(), f"pydelta-{hashlib.sha256(content).hexdigest()}.jar"
        rule_resource = context.getResource(f"{RULE.replace('.', '/')}.class")
        if rule_resource is not None and jar_name in str(rule_resource.toString()):
            return context  # an earlier Python process that used the same JVM has added it
        url = self._jar_file(content, jar_name).toUri().toURL()
        if rule_resource is None and context.getClass().getName() in _GROWING_LOADERS:
            context.addURL(url)
            return context
        urls = self._gateway.new_array(self._jvm.java.net.URL, 1)
        urls[0] = url
        return self._jvm.java.net.URLClassLoader(urls, self._spark_loader())

    def _jar_file(self, content: bytes, name: str) -> Any:
        """Return a copy of the jar, a java.nio.file.Path, in a directory that only the user may read. It exists as long as the
        JVM, because executors that start late fetch it from there."""
        files = self._jvm.java.nio.file
        attributes = self._gateway.new_array(files.attribute.FileAttribute, 0)
        directory = files.Files.createTempDirectory("pydelta-", attributes)
        directory.toFile().deleteOnExit()
        jar = directory.resolve(name)
        jar.toFile().deleteOnExit()  # before its directory: Java deletes in the reverse order
        Path(str(jar.toString())).write_bytes(content)
        return jar

    def _context_loader(self) -> Any:
        return self._jvm.java.lang.Thread.currentThread().getContextClassLoader()

    def _spark_loader(self) -> Any:
        """Return the loader that has Spark's Python data sources."""
        return self._jvm.java.lang.Class.forName(_PYTHON_SCAN, False, self._context_loader()).getClassLoader()

    @property
    def _jvm(self) -> Any:
        return self._spark.sparkContext._jvm

    @property
    def _gateway(self) -> Any:
        return self._spark.sparkContext._gateway

    # ------------------------------------------------------------ frames

    def optimized_plan(self, frame: DataFrame) -> Any:
        """Return the frame's optimized plan."""
        return self._execution(frame).optimizedPlan()

    def explain(self, frame: DataFrame, mode: str) -> str:
        """Return the frame's plans as EXPLAIN shows them. mode: simple, extended, codegen, cost or formatted."""
        return str(self._jvm.PythonSQLUtils.explainString(self._execution(frame), mode))

    def load_request(self, loads: Any, reader: Any, path: str | None) -> dict[str, Any] | None:
        """Return what a DataFrameReader would pass to its DataSource, in the form of DriverLoads.java; None if only Spark can
        load."""
        answer = loads.told(self._spark._jsparkSession, reader._jreader, path)
        return None if answer is None else orjson.loads(answer)

    def load_with_source(
        self, loads: Any, reader: Any, format: str, path: str | None, source: bytes, schema: str, options: Mapping[str, str]
    ) -> DataFrame:
        """Return the frame that `load` of a DataFrameReader returns, made by DriverLoads.java. source: pickled. options: private
        ones."""
        options_text = orjson.dumps(options).decode()
        java = loads.load(self._spark._jsparkSession, reader._jreader, format, path, source, schema, options_text)
        return DataFrame(java, self._spark)

    def map_dataset(self, frame: DataFrame, change: Callable[[Any], Any]) -> DataFrame:
        """Return a frame over the result of `change` for its Java Dataset."""
        java: Any = frame
        return type(frame)(change(java._jdf), self._spark)

    def alias_frame(self, frame: DataFrame, parts: Sequence[str]) -> DataFrame:
        """Return the frame under a name of several parts, such as tables of a catalog have."""
        *qualifiers, name = parts
        sql, java = self._jvm.org.apache.spark.sql, frame._jdf
        identifier = sql.catalyst.AliasIdentifier(name, self._jvm.PythonUtils.toSeq(qualifiers))
        plan = sql.catalyst.plans.logical.SubqueryAlias(identifier, java.queryExecution().analyzed())
        return DataFrame(sql.classic.Dataset.ofRows(self._spark._jsparkSession, plan), self._spark)

    def filter_condition(self, frame: DataFrame, condition: Any) -> Any:
        """Return the condition of a filter of the frame, as the analyzer resolves it: an expression. Raises AnalysisException."""
        return self._analyzed(frame.where(condition)).condition()

    def projection_expressions(self, frame: DataFrame, count: int) -> list[Any]:
        """Return the expressions of a projection. frame: made by select. count: of its columns."""
        expressions = self._analyzed(frame).projectList()
        return [expressions.apply(number) for number in range(count)]

    def attributes(self, frame: DataFrame) -> list[Any]:
        """Return the frame's columns as expressions."""
        return to_list(self._analyzed(frame).output())

    def attribute_set(self, frame: DataFrame) -> Any:
        """Return the frame's columns as a set, which `uses_only` and `holds` of jvm_plans.py take."""
        return self._analyzed(frame).outputSet()

    def used_attributes(self, frame: DataFrame) -> Any:
        """Return the columns that the frame's root node names, as a set that `holds` of jvm_plans.py takes."""
        return self._analyzed(frame).references()

    def has_subqueries(self, frame: DataFrame) -> bool:
        """Whether any part of the frame's plan has a subquery."""
        return not self._analyzed(frame).subqueriesAll().isEmpty()

    def not_row_by_row(self, projection: DataFrame, frame: DataFrame) -> NotRowByRow | None:
        """Return why a projection of the frame does not return exactly one row for each of its rows; None if it does."""
        plan = self._analyzed(projection)
        name = str(plan.nodeName())
        if name == "Project" and plan.child().fastEquals(self._analyzed(frame)):
            return None
        if name == "Aggregate":
            return NotRowByRow.AGGREGATE
        if name == "Project" and str(plan.child().nodeName()) == "Generate":
            return NotRowByRow.GENERATOR
        if name == "Project" and any(column_metadata(expression, HIDDEN_COLUMN) for expression in to_list(plan.projectList())):
            return NotRowByRow.HIDDEN
        return NotRowByRow.WINDOW

    def is_repeatable(self, frame: DataFrame, source: str) -> bool:
        """Whether the frame returns the same rows each time it is read. That is true for rows that the query itself contains, and
        tables of the Python data source of this name, with deterministic expressions without user functions or the time. It is
        false for a table that is read at its newest version each time (followLatest)."""
        plan = self._analyzed(frame)
        patterns = self._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        varying = (patterns.PYTHON_UDF(), patterns.SCALA_UDF(), patterns.PLAN_EXPRESSION(), patterns.CURRENT_LIKE())
        may_vary = not plan.deterministic() or any(plan.containsPattern(pattern) for pattern in varying)
        return not may_vary and nodes_repeat(plan, source)

    def read_paths(self, frame: DataFrame) -> set[str]:
        """The same as read_paths of jvm_plans.py."""
        return read_paths(self._analyzed(frame))

    def estimated_bytes(self, frame: DataFrame) -> int:
        """Return Spark's estimate; very large if Spark does not know."""
        return int(str(self.optimized_plan(frame).stats().sizeInBytes()))

    def unpersist_checkpoint(self, frame: DataFrame) -> None:
        """Free what a local checkpoint stores. RDD.unpersist would do this too, but warn that the rows cannot be computed
        again."""
        number = self._analyzed(frame).rdd().id()
        self._spark.sparkContext._jsc.sc().unpersistRDD(number, False)

    def known_partition_count(self, frame: DataFrame) -> int | None:
        """Return how many tasks will compute the frame's rows; None if that is known only when they are computed."""
        execution = self._execution(frame)
        plan = str(execution.executedPlan().toString())
        if "AdaptiveSparkPlan" in plan or "Exchange" in plan or "Subquery" in plan:
            return None
        return int(execution.toRdd().getNumPartitions())

    def _analyzed(self, frame: DataFrame) -> Any:
        return self._execution(frame).analyzed()

    def _execution(self, frame: DataFrame) -> Any:
        java: Any = frame
        return java._jdf.queryExecution()

    # ------------------------------------------------------------ expressions

    def column(self, expression: Any) -> Column:
        """Return an expression as a Column."""
        return Column(self._utils.column(expression))

    def has_subquery(self, expression: Any) -> bool:
        return bool(self._expressions.SubqueryExpression.hasSubquery(expression))

    def can_up_cast(self, source_type: DataType, target_type: DataType) -> bool:
        """Whether every value of one type is a value of the other, by Spark's rules."""
        return bool(
            self._expressions.Cast.canUpCast(self._type_of_json(source_type.json()), self._type_of_json(target_type.json()))
        )

    def cast(self, column: Any, target_type: DataType, *, ansi: bool, overflow_of: str | None = None) -> Column:
        """Return CAST whatever spark.sql.ansi.enabled is. overflow_of: the column that the error names if a value is too
        large."""
        expressions, operand = self._expressions, self._utils.expression(column._jc)
        mode = expressions.EvalMode.ANSI() if ansi else expressions.EvalMode.LEGACY()
        cast = expressions.Cast(operand, self._type_of_json(target_type.json()), self._jvm.scala.Option.empty(), mode)
        return self.column(cast if overflow_of is None else expressions.CheckOverflowInTableInsert(cast, overflow_of))

    # Cached, because Py4J calls the JVM once for each part of such a name.

    @cached_property
    def _expressions(self) -> Any:
        return self._jvm.org.apache.spark.sql.catalyst.expressions

    @cached_property
    def _utils(self) -> Any:
        return self._jvm.org.apache.spark.sql.classic.ExpressionUtils

    @cached_property
    def _type_of_json(self) -> Any:
        return self._jvm.org.apache.spark.sql.types.DataType.fromJson
