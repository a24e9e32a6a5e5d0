"""DeltaTable: names, arguments and results of delta.tables.

What it asks about a table goes through the data source, so that it works wherever `spark.read` does: over Spark Connect
the table is on the server's side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_plugin.exceptions import TableNotFoundError, UnsupportedOperationError
from spark_plugin.options import SESSION, VIEW
from spark_plugin.session import register
from spark_plugin.settings import read_settings
from spark_plugin.source import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DeltaTable:
    """A table, always at its newest version. Made by forPath."""

    def __init__(self, spark: SparkSession, path: str, alias: str | None = None) -> None:
        self._spark = spark
        self._path = path
        self._alias = alias

    @classmethod
    def forPath(cls, sparkSession: SparkSession, path: str, hadoopConf: dict[str, str] | None = None) -> DeltaTable:
        """Raises TableNotFoundError (DELTA_MISSING_DELTA_TABLE, DELTA_PATH_DOES_NOT_EXIST) when there is no table.

        hadoopConf: has its place in delta.tables; storage is not reached through Hadoop here, so that it must be empty.
        """
        if hadoopConf:
            raise UnsupportedOperationError(
                f"hadoopConf ({', '.join(hadoopConf)}) has no effect here: pydelta does not reach storage through Hadoop. "
                "Leave it out."
            )
        register(sparkSession)
        table = cls(sparkSession, path)
        table._view("detail").schema  # noqa: B018 - the source looks at the table when it is asked for the schema
        return table

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether there is a table at the path."""
        try:
            cls.forPath(sparkSession, identifier)
        except TableNotFoundError:
            return False
        return True

    def toDF(self) -> DataFrame:
        """The rows of the version that is the newest now."""
        frame = self._spark.read.format(FORMAT).load(self._path)
        return frame if self._alias is None else frame.alias(self._alias)

    def alias(self, aliasName: str) -> DeltaTable:
        return DeltaTable(self._spark, self._path, aliasName)

    def history(self, limit: int | None = None) -> DataFrame:
        """The commits that the log still has, newest first: the columns of DESCRIBE HISTORY."""
        frame = self._view("history")
        return frame if limit is None else frame.limit(limit)

    def detail(self) -> DataFrame:
        """One row with the columns of DESCRIBE DETAIL."""
        return self._view("detail")

    def _view(self, name: str) -> DataFrame:
        settings = read_settings(self._spark)
        return self._spark.read.format(FORMAT).option(VIEW, name).option(SESSION, settings).load(self._path)
