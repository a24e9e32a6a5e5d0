"""A client of Spark Connect as a SessionAdapter (session_adapter.py has the descriptions of the methods)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import AtomicType, DataType, StringType, VariantType

from spark_plugin.internals.connect_internals import (
    activated_client,
    client_cast,
    client_explain,
    client_frame_of,
    formatted_client_sql,
    new_client_writer,
    release_checkpoint,
    take_over_columns,
)
from spark_plugin.internals.task_counts import TaskCounts, count_query_tasks


class ConnectAdapter:
    """A SessionAdapter for a client of Spark Connect, which has no JVM."""

    is_driver: ClassVar[bool] = False
    has_local_settings: ClassVar[bool] = False
    shows_tasks: ClassVar[bool] = False

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    @property
    def internals(self) -> None:
        return None

    @property
    def session_id(self) -> str:
        return str(self._spark.session_id)

    def activated(self) -> AbstractContextManager[None]:
        return activated_client(self._spark)

    def register_source(self, source: Any) -> None:
        self._spark.dataSource.register(source)

    # ------------------------------------------------------------ settings

    def settings(self) -> dict[str, str]:
        settings: dict[str, str] = self._spark.conf.getAll
        return settings

    def hadoop_settings(self, prefix: str) -> dict[str, str]:
        return {}

    def has_local_properties(self) -> bool:
        return False

    # ------------------------------------------------------------ tasks

    def default_parallelism(self) -> None:
        return None

    def may_run_tasks(self) -> bool:
        return True  # a client cannot see the server's tasks

    def count_tasks(self) -> AbstractContextManager[TaskCounts]:
        return count_query_tasks(self._spark)

    # ------------------------------------------------------------ SQL

    def formatted_sql(self, text: str, arguments: Mapping[str, Any]) -> AbstractContextManager[str]:
        return formatted_client_sql(self._spark, text, arguments)

    def sql_below_router(self, text: str) -> None:
        return None

    def left_to_spark(self, text: str) -> AbstractContextManager[None]:
        return nullcontext()

    # ------------------------------------------------------------ frames and their plans

    def pruning_rule(self) -> None:
        return None

    def alias_frame(self, frame: DataFrame, parts: Sequence[str]) -> DataFrame:
        return frame.alias(parts[-1])

    def explain(self, frame: DataFrame, mode: str) -> str:
        return client_explain(frame, mode)

    def estimated_bytes(self, frame: DataFrame) -> int:
        return 0

    def read_paths(self, frame: DataFrame) -> set[str]:
        return set()

    @contextmanager
    def checkpointed(self, frame: DataFrame, level: StorageLevel, source: DataFrame) -> Iterator[DataFrame]:
        checkpoint = frame.localCheckpoint(True, level)
        cached_frame = checkpoint.select("*")
        take_over_columns(cached_frame, source)
        try:
            yield cached_frame
        finally:
            release_checkpoint(checkpoint)

    def frame_of(self, writer: Any) -> Any:
        return client_frame_of(writer, self._spark)

    def new_writer(self, frame: Any, callback: Any) -> Any:
        return new_client_writer(frame, callback)

    # ------------------------------------------------------------ casts

    def can_up_cast(self, source_type: DataType, target_type: DataType) -> bool | None:
        # Each value of these types has a text, so the cast is an up-cast. For other types only the server knows.
        is_simple = isinstance(source_type, AtomicType) and not isinstance(source_type, VariantType)
        return True if is_simple and target_type == StringType() else None

    def cast(self, column: Any, target_type: DataType, *, ansi: bool, overflow_of: str | None = None) -> Column:
        cast: Column = client_cast(column, target_type, "ansi" if ansi else "legacy")
        return cast
