"""What Spark keeps to itself in the JVM behind a session.

    internals = SparkInternals(spark)          # of a classic session
    rule = internals.pruning_rule()

Behind a classic session is a JVM. A Spark Connect client has none, and `SparkInternals` refuses it: ask `is_connect` first. What
a client's Columns and plans hold is in `connect_internals.py`.
What comes out of the JVM (rules, plans, expressions) is opaque to callers: they hand it from one function here, or in
`jvm_plans.py`, to another.

`java/jars.py` says which versions of Spark the Java part is made for. A newer Spark is asked as the known ones are, and what it
does not have is an error of the operation that needs it.
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

from spark_plugin.internals.jvm_plans import HIDDEN_COLUMN, NotRowByRow, column_metadata, listed, nodes_repeat, read_paths
from spark_plugin.java.jars import jar_for

RULE = "pydelta.rule.PruneScans"

_loaded: list[tuple[Any, str, Any]] = []
"""(Py4J gateway, name, class or the one object of it) of each JVM, in practice one. Loaded once: Py4J remembers methods by the
class's name."""

_routed: set[str] = set()
"""Ids of sessions whose parser has our router."""

_BESIDE = "org.apache.spark.sql.execution.datasources.v2.python.PythonScan"
_GROWING_LOADERS = ("org.apache.spark.util.MutableURLClassLoader", "org.apache.spark.util.ChildFirstURLClassLoader")


def is_connect(spark: Any) -> bool:
    """Whether the session is a client of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


class SparkInternals:
    """The inside of one classic session. Raises NotImplementedError for one of Spark Connect."""

    def __init__(self, spark: Any) -> None:
        if is_connect(spark):
            raise NotImplementedError("a Spark Connect client has no JVM, and the inside of Spark stays on the server")
        self._spark = spark

    @property
    def version(self) -> str:
        """Spark's, as the JVM says it."""
        return str(self._spark.version)

    @property
    def session_id(self) -> str:
        """Of the session in the JVM, however many Python objects stand for it."""
        return str(self._spark._jsparkSession.sessionUUID())

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

    def holds_tables(self) -> bool:
        """Whether Spark holds rows of any table or frame in memory."""
        return not self._spark._jsparkSession.sharedState().cacheManager().isEmpty()

    def held_tables(self) -> list[tuple[str, str]]:
        """The names, as SQL takes them, and the paths of tables of ours of whose names Spark holds rows; none where the JVM has
        not our catalogs. Raises NotImplementedError for a Spark that keeps them elsewhere."""
        if not self.has_java_class("pydelta.catalog.Catalogs"):
            return []
        try:
            told = self._jvm.pydelta.catalog.Catalogs.heldTables(self._spark._jsparkSession)
        except Py4JError as error:
            raise NotImplementedError(f"Spark does not tell of which tables it holds rows: {error}") from error
        return [(name, path) for name, path in orjson.loads(told)]

    def settings(self) -> dict[str, str]:
        """Those that the session or its context was given. As one text: Py4J would be called twice for each."""
        settings = self._spark._jsparkSession.conf().getAllAsJava()
        given: dict[str, str] = orjson.loads(self._json_writer.writeValueAsString(settings))
        return given

    @property
    def _json_writer(self) -> Any:
        name = "com.fasterxml.jackson.databind.ObjectMapper"
        return self._once(name, lambda: self._jvm.com.fasterxml.jackson.databind.ObjectMapper())

    def hadoop_settings(self, prefix: str) -> dict[str, str]:
        """What the session says to Hadoop's file systems, by whole names: settings of the session, and of its context."""
        found = self._spark._jsparkSession.sessionState().newHadoopConf().getPropsWithPrefix(prefix)
        return {f"{prefix}{name}": str(value) for name, value in dict(found).items()}

    def register_source(self, source: Any) -> None:
        """Make a Python source known to the session, in the place of one of its name.

        Spark's own way would first start a process that imports each module `pyspark_*` on Python's path, to warn of a source of
        this name; it takes 1 to 2 seconds. Spark does that when it needs one of them.
        """
        made = self._jvm.org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource(
            _wrap_function(self._spark.sparkContext, source)
        )
        rule = self.pruning_rule()
        if rule is not None:
            made = rule.askingDriver(made)
        try:
            self._known_sources().put(source.name().lower(), made)
        except Py4JError:  # a build of Spark that keeps them elsewhere
            self._spark.dataSource.register(source)

    def change_source(self, name: str, change: Callable[[Any], Any]) -> None:
        """In the place of a source of the session what `change` makes of it. Nothing is done where there is none, and in a build
        of Spark that keeps sources elsewhere."""
        try:
            known = self._known_sources()
        except Py4JError:
            return
        source = known.get(name)
        if source is not None:
            known.put(name, change(source))

    def _known_sources(self) -> Any:
        """Python sources that the session has registered, by lower-case name."""
        manager = self._spark._jsparkSession.sessionState().dataSourceManager()
        known = manager.getClass().getDeclaredField("runtimeDataSourceBuilders")
        known.setAccessible(True)
        return known.get(manager)

    @property
    def java_context(self) -> Any:
        """Spark's own SparkContext."""
        return self._spark.sparkContext._jsc.sc()

    @property
    def java_process(self) -> int:
        """The id of the JVM's process."""
        return int(self._jvm.java.lang.ProcessHandle.current().pid())

    # ------------------------------------------------------------ rules of the optimizer, and the package's Java

    def pruning_rule(self) -> Any | None:
        """The session's own PruneScans."""
        rules = self._spark._jsparkSession.experimental().extraOptimizations()
        in_order = (rules.apply(number) for number in range(rules.length()))
        return next((rule for rule in in_order if rule.ruleName() == RULE), None)

    def add_optimizer_rule(self, rule: Any) -> None:
        """rule: a PruneScans."""
        rule.addTo(self._spark._jsparkSession)

    def java_class(self, name: str) -> Any:
        """The class of this name from the package's jar, once a JVM. Raises what jar_for raises."""
        return self._once(name, lambda: self._once("the loader of our classes", self._loader_with_our_jar).loadClass(name))

    def link_problems(self) -> dict[str, list[str]]:
        """Packages of our Java whose classes do not fit this Spark, and why; empty where all do, and for a Spark that the jar was
        compiled for. Raises what the JVM raises."""
        if not jar_for(self.version).is_for_older_spark:
            return {}
        check = "pydelta.rule.LinkCheck"
        found: str = self._once(f"problems of {check}", lambda: self.java_class(check).newInstance().problems())
        problems: dict[str, list[str]] = orjson.loads(found)
        return problems

    def require_links(self, *packages: str) -> None:
        """Raises NotImplementedError if the classes of one of these packages of our Java do not fit this Spark."""
        problems = self.link_problems()
        reasons = [problems[package][0] for package in packages if package in problems]
        if reasons:
            raise NotImplementedError(f"this release of pydelta is older than Spark {self.version}: {reasons[0]}")

    def _once(self, name: str, load: Callable[[], Any]) -> Any:
        """What `load` gave for this name in this JVM."""
        gateway = self._gateway
        for known, kept, loaded in _loaded:
            if known is gateway and kept == name:
                return loaded
        found = load()
        _loaded.append((gateway, name, found))
        return found

    def loads_by_name(self, instance: Any) -> bool:
        """Whether Spark, told the name of the instance's class, finds this very class, and so those that came with it."""
        return bool(instance.getClass().getClassLoader().equals(self._context_loader()))

    def prepare_catalogs(self) -> str | None:
        """Puts into the session's analyzer what the catalogs need there. What went wrong; None if nothing did."""
        problem = self._jvm.pydelta.catalog.Catalogs.prepare(self._spark._jsparkSession)
        return None if problem is None else str(problem)

    def enter_functions(self) -> None:
        """Gives the session the table functions of the catalogs."""
        self._jvm.pydelta.catalog.Catalogs.enterFunctions(self._spark._jsparkSession)

    def offer_python(self, channel: Any) -> None:
        """Has the catalogs ask this process for statements and procedures. channel: a DriverChannel of the JVM's."""
        self._jvm.pydelta.catalog.Catalogs.offerPython(channel)

    @contextmanager
    def python_request(self, number: int) -> Iterator[Any]:
        """The PythonRequest of this number. This thread has the job group, the pool and the script's variables of the thread that
        waits for it, unless Python's threads share those of the JVM."""
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
        """Puts our router into the session's parser, once. routes: as StatementRouter.java reads them. The session has our
        catalogs. Raises what a Spark says that keeps its parser elsewhere."""
        if self.session_id not in _routed:
            self._jvm.pydelta.catalog.Catalogs.routeStatements(self._spark._jsparkSession, routes)
            _routed.add(self.session_id)

    @contextmanager
    def left_to_spark(self, text: str) -> Iterator[None]:
        """The statement that this thread has Spark parse within is not routed. Where threads of Python share those of the JVM, or
        the parser has no router, nothing is done."""
        if not (self._is_routed() and self.has_own_threads()):
            yield
            return
        catalogs = self._jvm.pydelta.catalog.Catalogs
        catalogs.leaveToSpark(text)
        try:
            yield
        except BaseException:
            catalogs.leaveToSpark(None)
            raise

    def parser(self) -> Any:
        """The session's parser, below our router."""
        if self._is_routed():
            return self._jvm.pydelta.catalog.Catalogs.parserBelow(self._spark._jsparkSession)
        return self._spark._jsparkSession.sessionState().sqlParser()

    def sql_below_router(self, text: str) -> DataFrame | None:
        """What a statement gives that is not to be routed; None, and nothing done, where the session's parser has no router."""
        if not self._is_routed():
            return None
        return DataFrame(self._jvm.pydelta.catalog.Catalogs.sqlBelow(self._spark._jsparkSession, text), self._spark)

    def _is_routed(self) -> bool:
        return bool(_routed) and self.session_id in _routed

    def entry(self, database: str | None, table: str) -> dict[str, Any] | None:
        """What the session catalog holds under a name, as Entry.java tells it; None for nothing. The session has our catalogs."""
        told = self._jvm.pydelta.catalog.Catalogs.entry(self._spark._jsparkSession, database, table)
        return None if told is None else orjson.loads(told)

    def is_free(self, path: str) -> bool:
        """Whether nothing lies at a path, as far as Hadoop's file systems can tell. The session has our catalogs."""
        return bool(self._jvm.pydelta.catalog.Catalogs.isFree(self._spark._jsparkSession, path))

    def enter_managed(self, database: str, table: str, path: str) -> None:
        """Enters a table that is there into the session catalog, so that DROP TABLE deletes its files. The session is active, and
        has our catalogs. Raises what Spark raises when the name is taken."""
        self._jvm.pydelta.catalog.Catalogs.enterManaged(database, table, path)

    def has_java_class(self, name: str) -> bool:
        return self._context_loader().getResource(f"{name.replace('.', '/')}.class") is not None

    def _loader_with_our_jar(self) -> Any:
        """The jar joins what Spark loads classes by their names from, where that takes more and has no such classes: Spark finds
        catalogs there. Else the classes have a loader of their own."""
        content = jar_for(self.version).path.read_bytes()
        context, jar_name = self._context_loader(), f"pydelta-{hashlib.sha256(content).hexdigest()}.jar"
        known = context.getResource(f"{RULE.replace('.', '/')}.class")
        if known is not None and jar_name in str(known.toString()):
            return context  # a process of Python that used the same JVM before has added it
        url = self._jar_file(content, jar_name).toUri().toURL()
        if known is None and context.getClass().getName() in _GROWING_LOADERS:
            context.addURL(url)
            return context
        urls = self._gateway.new_array(self._jvm.java.net.URL, 1)
        urls[0] = url
        return self._jvm.java.net.URLClassLoader(urls, self._spark_loader())

    def _jar_file(self, content: bytes, name: str) -> Any:
        """A copy of the jar, a java.nio.file.Path, in a directory that only the user may read. It lasts as long as the JVM, as
        executors that start late fetch it from there."""
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
        """That which has the Python data sources of Spark."""
        return self._jvm.java.lang.Class.forName(_BESIDE, False, self._context_loader()).getClassLoader()

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

    def explained(self, frame: DataFrame, mode: str) -> str:
        """The frame's plans as EXPLAIN shows them. mode: simple, extended, codegen, cost or formatted."""
        return str(self._jvm.PythonSQLUtils.explainString(self._execution(frame), mode))

    def told_of_load(self, loads: Any, reader: Any, path: str | None) -> dict[str, Any] | None:
        """What a DataFrameReader would tell its DataSource, as DriverLoads.java says it; None where it takes Spark to load."""
        told = loads.told(self._spark._jsparkSession, reader._jreader, path)
        return None if told is None else orjson.loads(told)

    def loaded(
        self, loads: Any, reader: Any, format: str, path: str | None, made: bytes, schema: str, own: Mapping[str, str]
    ) -> DataFrame:
        """The frame that `load` of a DataFrameReader gives, as DriverLoads.java makes it."""
        options = orjson.dumps(own).decode()
        java = loads.load(self._spark._jsparkSession, reader._jreader, format, path, made, schema, options)
        return DataFrame(java, self._spark)

    def changed(self, frame: DataFrame, change: Callable[[Any], Any]) -> DataFrame:
        """The frame over what `change` gives for its Java Dataset."""
        java: Any = frame
        return type(frame)(change(java._jdf), self._spark)

    def called(self, frame: DataFrame, parts: Sequence[str]) -> DataFrame:
        """The frame under a name of several parts, as tables of a catalog have."""
        *qualifiers, name = parts
        sql, java = self._jvm.org.apache.spark.sql, frame._jdf
        identifier = sql.catalyst.AliasIdentifier(name, self._jvm.PythonUtils.toSeq(qualifiers))
        plan = sql.catalyst.plans.logical.SubqueryAlias(identifier, java.queryExecution().analyzed())
        return DataFrame(sql.classic.Dataset.ofRows(self._spark._jsparkSession, plan), self._spark)

    def filter_condition(self, frame: DataFrame, condition: Any) -> Any:
        """The condition of a filter of the frame, as the analyzer understands it: an expression. Raises AnalysisException."""
        return self._analyzed(frame.where(condition)).condition()

    def projected(self, frame: DataFrame, count: int) -> list[Any]:
        """The expressions of a projection. frame: made by select. count: of its columns."""
        expressions = self._analyzed(frame).projectList()
        return [expressions.apply(number) for number in range(count)]

    def attributes(self, frame: DataFrame) -> list[Any]:
        """The frame's columns as expressions."""
        return listed(self._analyzed(frame).output())

    def attribute_set(self, frame: DataFrame) -> Any:
        """The same, for `uses_only`."""
        return self._analyzed(frame).outputSet()

    def used_attributes(self, frame: DataFrame) -> Any:
        """All that the expressions of the frame's uppermost node name, for `holds`."""
        return self._analyzed(frame).references()

    def has_subqueries(self, frame: DataFrame) -> bool:
        """In any part of the frame's plan."""
        return not self._analyzed(frame).subqueriesAll().isEmpty()

    def not_row_by_row(self, projection: DataFrame, frame: DataFrame) -> NotRowByRow | None:
        """Why a projection of the frame does not give one row a row; None when it does."""
        plan = self._analyzed(projection)
        name = str(plan.nodeName())
        if name == "Project" and plan.child().fastEquals(self._analyzed(frame)):
            return None
        if name == "Aggregate":
            return NotRowByRow.AGGREGATE
        if name == "Project" and str(plan.child().nodeName()) == "Generate":
            return NotRowByRow.GENERATOR
        if name == "Project" and any(column_metadata(one, HIDDEN_COLUMN) for one in listed(plan.projectList())):
            return NotRowByRow.HIDDEN
        return NotRowByRow.WINDOW

    def is_repeatable(self, frame: DataFrame, source: str) -> bool:
        """Whether the frame gives the same rows whenever it is read: rows that the query holds itself, and tables of the Python
        data source of this name, by deterministic expressions without functions of users or of the time. A table that is read
        at its newest version each time (followLatest) does not."""
        plan = self._analyzed(frame)
        patterns = self._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        odd = (patterns.PYTHON_UDF(), patterns.SCALA_UDF(), patterns.PLAN_EXPRESSION(), patterns.CURRENT_LIKE())
        repeats = bool(plan.deterministic()) and not any(plan.containsPattern(pattern) for pattern in odd)
        return repeats and nodes_repeat(plan, source)

    def read_paths(self, frame: DataFrame) -> set[str]:
        """As read_paths of jvm_plans.py."""
        return read_paths(self._analyzed(frame))

    def estimated_bytes(self, frame: DataFrame) -> int:
        """As Spark estimates them; very many when it does not know."""
        return int(str(self.optimized(frame).stats().sizeInBytes()))

    def unpersist_checkpoint(self, frame: DataFrame) -> None:
        """Frees what a local checkpoint holds. RDD.unpersist would do this, and warn that the rows cannot be made anew."""
        number = self._analyzed(frame).rdd().id()
        self._spark.sparkContext._jsc.sc().unpersistRDD(number, False)

    def known_partition_count(self, frame: DataFrame) -> int | None:
        """How many tasks will compute the frame's rows; None where that shows only when they are computed."""
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
        """An expression as a Column."""
        return Column(self._utils.column(expression))

    def has_subquery(self, expression: Any) -> bool:
        return bool(self._expressions.SubqueryExpression.hasSubquery(expression))

    def can_up_cast(self, found: DataType, wanted: DataType) -> bool:
        """Whether every value of a type is one of the other, by Spark's rules."""
        return bool(self._expressions.Cast.canUpCast(self._type_of_json(found.json()), self._type_of_json(wanted.json())))

    def cast(self, column: Any, wanted: DataType, *, ansi: bool, overflow_of: str | None = None) -> Column:
        """CAST whatever spark.sql.ansi.enabled is. overflow_of: a column, of which the error says that a value is too large."""
        expressions, operand = self._expressions, self._utils.expression(column._jc)
        mode = expressions.EvalMode.ANSI() if ansi else expressions.EvalMode.LEGACY()
        cast = expressions.Cast(operand, self._type_of_json(wanted.json()), self._jvm.scala.Option.empty(), mode)
        return self.column(cast if overflow_of is None else expressions.CheckOverflowInTableInsert(cast, overflow_of))

    # Py4J asks the JVM for each part of such a name.

    @cached_property
    def _expressions(self) -> Any:
        return self._jvm.org.apache.spark.sql.catalyst.expressions

    @cached_property
    def _utils(self) -> Any:
        return self._jvm.org.apache.spark.sql.classic.ExpressionUtils

    @cached_property
    def _type_of_json(self) -> Any:
        return self._jvm.org.apache.spark.sql.types.DataType.fromJson
