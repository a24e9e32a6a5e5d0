"""A classic session as a SessionAdapter (session_adapter.py has the descriptions of the methods)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from spark_plugin.internals.pyspark_internals import formatted_sql, frame_of
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.internals.task_counts import TaskCounts, count_job_tasks


class ClassicAdapter(SparkInternals):
    """A SessionAdapter for a session in the driver's process. Most of its methods are those of SparkInternals."""

    is_driver: ClassVar[bool] = True
    has_local_settings: ClassVar[bool] = True
    shows_tasks: ClassVar[bool] = True

    def __init__(self, spark: Any) -> None:
        super().__init__(spark)
        self._session = spark

    @property
    def internals(self) -> SparkInternals:
        return self

    def default_parallelism(self) -> int:
        return int(self._session.sparkContext.defaultParallelism)

    def has_local_properties(self) -> bool:
        return self.has_own_threads()

    def may_run_tasks(self) -> bool:
        return self.runs_tasks()

    def count_tasks(self) -> AbstractContextManager[TaskCounts]:
        return count_job_tasks(self._session) if self.has_local_properties() else nullcontext(lambda: (0, 0))

    @contextmanager
    def checkpointed(self, frame: DataFrame, level: StorageLevel, source: DataFrame) -> Iterator[DataFrame]:
        checkpoint = frame.localCheckpoint(True, level)
        try:
            yield checkpoint
        finally:
            self.unpersist_checkpoint(checkpoint)

    def frame_of(self, writer: Any) -> Any:
        return frame_of(writer)

    def new_writer(self, frame: Any, callback: Any) -> Any:
        return frame.write

    def formatted_sql(self, text: str, arguments: Mapping[str, Any]) -> AbstractContextManager[str]:
        return formatted_sql(self._session, text, arguments)
