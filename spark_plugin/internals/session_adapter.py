"""What pydelta does with a session, for both kinds of sessions.

    adapter = adapter_of(spark)
    with adapter.activated():
        settings = adapter.settings()

A classic session runs in the driver's process, next to the JVM. A client of Spark Connect has no JVM and sends everything to a
server. Callers use the methods here for what both kinds do in different ways, and `internals` for what needs the JVM. How names
and conditions of a DELETE, UPDATE or MERGE are resolved is in dml/analyzer.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType

from spark_plugin.internals.classic_adapter import ClassicAdapter
from spark_plugin.internals.connect_adapter import ConnectAdapter
from spark_plugin.internals.spark_internals import SparkInternals, is_connect
from spark_plugin.internals.task_counts import TaskCounts


class SessionAdapter(Protocol):
    """One session, classic or of Spark Connect. If a client of Spark Connect cannot know or do something, a method returns a
    value that says so (None, an empty collection, or 0), as its docstring describes."""

    # ------------------------------------------------------------ what kind of session it is

    @property
    def is_driver(self) -> bool:
        """Whether this process is Spark's driver. A client may run on another machine, and may have no access to the tables."""

    @property
    def has_local_settings(self) -> bool:
        """Whether this process reads settings without a call to a server, which may hide some."""

    @property
    def shows_tasks(self) -> bool:
        """Whether `may_run_tasks` knows the tasks that run."""

    @property
    def internals(self) -> SparkInternals | None:
        """The JVM of the session; None over Spark Connect."""

    # ------------------------------------------------------------ the session

    @property
    def session_id(self) -> str:
        """The id of the session in the JVM or on the server; several Python objects may stand for it."""

    def activated(self) -> AbstractContextManager[None]:
        """Make the session the active one of this thread inside the block."""

    def register_source(self, source: Any) -> None:
        """Register a Python source with the session, in place of one with the same name."""

    # ------------------------------------------------------------ settings

    def settings(self) -> dict[str, str]:
        """Return the settings of the session and its context, without Spark's defaults."""

    def hadoop_settings(self, prefix: str) -> dict[str, str]:
        """Return the settings of Hadoop's file systems, by full names; none over Spark Connect."""

    def has_local_properties(self) -> bool:
        """Whether this thread can set properties that only its own jobs get."""

    # ------------------------------------------------------------ tasks

    def default_parallelism(self) -> int | None:
        """Return Spark's default number of tasks; None over Spark Connect, where the server does not tell it."""

    def may_run_tasks(self) -> bool:
        """Whether any task runs in the session's application, or may run there."""

    def count_tasks(self) -> AbstractContextManager[TaskCounts]:
        """Count the tasks of the jobs that this thread starts inside the block. They are 0 if nobody can tell."""

    # ------------------------------------------------------------ SQL

    def formatted_sql(self, text: str, arguments: Mapping[str, Any]) -> AbstractContextManager[str]:
        """Yield the text with keyword arguments of `sql` inserted as `sql` does it. DataFrames are views inside the block."""

    def sql_below_router(self, text: str) -> DataFrame | None:
        """Run a statement without the JVM's router; returns None, and does nothing, if the session has no such router."""

    def left_to_spark(self, text: str) -> AbstractContextManager[None]:
        """Let Spark run the statement `text`, which this thread passes to Spark inside the block, without our router of SQL."""

    # ------------------------------------------------------------ frames and their plans

    def pruning_rule(self) -> Any | None:
        """Return the session's PruneScans, our rule in Spark's optimizer; None if it is not installed, as over Spark Connect."""

    def alias_frame(self, frame: DataFrame, parts: Sequence[str]) -> DataFrame:
        """Return the frame under a name of several parts. Over Spark Connect only the last part is a name of its columns."""

    def explain(self, frame: DataFrame, mode: str) -> str:
        """Return the frame's plans as EXPLAIN shows them. mode: simple, extended, codegen, cost or formatted."""

    def estimated_bytes(self, frame: DataFrame) -> int:
        """Return Spark's estimate, which is very large if Spark does not know; 0 over Spark Connect."""

    def read_paths(self, frame: DataFrame) -> set[str]:
        """Return the paths of the tables of Python data sources that the frame reads; none over Spark Connect, where the plan is
        on the server."""

    def checkpointed(self, frame: DataFrame, level: StorageLevel, source: DataFrame) -> AbstractContextManager[DataFrame]:
        """Compute the frame once, and yield a frame of its rows. They are deleted at the end. source: the frame that `frame` was
        made of; columns that callers took from it can be used in the result."""

    def frame_of(self, writer: Any) -> Any:
        """Return the DataFrame of a writer."""

    def new_writer(self, frame: Any, callback: Any) -> Any:
        """Return a DataFrameWriter without any calls. callback: the result of `callback_of`."""

    # ------------------------------------------------------------ casts

    def can_up_cast(self, source_type: DataType, target_type: DataType) -> bool | None:
        """Whether every value of one type is a value of the other, by Spark's rules; None if only a server knows."""

    def cast(self, column: Any, target_type: DataType, *, ansi: bool, overflow_of: str | None = None) -> Column:
        """Return CAST whatever spark.sql.ansi.enabled is. overflow_of: the column that the error names if a value is too large.
        A server's error names none."""


def adapter_of(spark: Any) -> SessionAdapter:
    """Return a new adapter of the session. An adapter has no state of its own, so callers need not keep it."""
    return ConnectAdapter(spark) if is_connect(spark) else ClassicAdapter(spark)
