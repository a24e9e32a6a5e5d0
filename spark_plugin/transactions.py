"""Several tables in one transaction, and one state of several tables, through the coordinator that the session names.

    spark.conf.set("spark.pydelta.coordinator", "sqlite:///data/ledger.db")
    with DeltaTransaction(spark) as tx:
        tx.append("/data/orders", orders)
        tx.table("/data/cart").delete("customer = 7")
        total = tx.read("/data/accounts").agg({"balance": "sum"}).first()

    frames = snapshot(spark, ["/data/orders", "/data/cart"])       # both at the same moment

Spark jobs read and write the rows. The coordinator's ledger, a database, stores the commits that they prepare. When the block
ends, the ledger ratifies all of them at once: only then do they become versions of their tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from delta_py import transactions
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.object_stores.open_store import open_store
from delta_py.scan.time_travel import to_timestamp_ms
from delta_py.storage.coordinated import place_of
from spark_plugin.cached_tables import refresh_cached
from spark_plugin.data_source import FORMAT
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.options.catalog_session_settings import COORDINATOR, TIME_ZONE
from spark_plugin.options.settings import TablePath, conf, storage_settings
from spark_plugin.session import register
from spark_plugin.table_api.table_names import find_table
from spark_plugin.tables import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class DeltaTransaction:
    """A transaction on several tables. coordinator: the ledger's URL; None for the session's spark.pydelta.coordinator.
    isolation: `serializable`, in which the rows that `read` returned must still be the same at the end, or `snapshot`. seconds:
    the transaction is aborted if it has not ended after this time.

    Tables are named by paths or by names of the catalog. Leaving the block commits; an exception, or `abort`, changes nothing.
    """

    def __init__(
        self,
        sparkSession: SparkSession,
        coordinator: str | None = None,
        *,
        isolation: str = "serializable",
        seconds: float = transactions.SECONDS,
    ) -> None:
        register(sparkSession)
        self._spark = sparkSession
        url = coordinator_of(sparkSession, coordinator)
        self._inner = transactions.DeltaTransaction(
            url, isolation=isolation, seconds=seconds, storage_options=partial(plain_options, sparkSession)
        )

    def __enter__(self) -> Self:
        with as_spark_raises():
            self._inner.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with as_spark_raises():
            self._inner.__exit__(kind, error, trace)
        self._refresh_cached_tables()

    @property
    def versions(self) -> Mapping[str, int]:
        """The versions that the transaction created, by the tables' paths, after its commit."""
        return self._inner.versions

    def commit(self, *, token: str | None = None) -> dict[str, int]:
        """Commit all changes, or none. Returns the newest version of each changed table, by its path. token: for a commit that
        may be repeated, such as that of a batch of a stream: a second one with the same token raises TokenUsedError and changes
        nothing."""
        with as_spark_raises():
            versions = self._inner.commit(token=token)
        self._refresh_cached_tables()
        return versions

    def _refresh_cached_tables(self) -> None:
        """Make Spark read the changed tables again if it caches their rows."""
        for path in self.versions:
            refresh_cached(self._spark, None, path)

    def abort(self) -> None:
        """Change nothing in the tables. VACUUM deletes the data files that were already written."""
        with as_spark_raises():
            self._inner.abort()

    # ------------------------------------------------------------ tables

    def table(self, target: str) -> DeltaTable:
        """Return the table as it was when the transaction began, with its own changes; delete, update and merge become part of
        it."""
        path = _path_of_target(self._spark, target)
        return DeltaTable(self._spark, TablePath(path, self._inner.storage_options(path)))

    def read(self, target: str, condition: str | None = None) -> DataFrame:
        """Return the rows of a table, or those for which a condition (SQL) is true. In a serializable transaction they must be
        the same when it commits."""
        path = _path_of_target(self._spark, target)
        with as_spark_raises():
            self._inner.note_read(self._inner.table(path), condition, time_zone=conf(self._spark, TIME_ZONE) or "UTC")
        frame = self.table(path).toDF()
        return frame if condition is None else frame.where(condition)

    def append(self, target: str, frame: DataFrame, **options: Any) -> None:
        """Add rows, as df.write in mode append does. options: of the write."""
        self._save(target, frame, "append", options)

    def overwrite(self, target: str, frame: DataFrame, **options: Any) -> None:
        """Replace all rows, or those of replaceWhere, as df.write in mode overwrite does. options: of the write."""
        self._save(target, frame, "overwrite", options)

    def delete(self, target: str, condition: Any = None) -> None:
        """Do the same as DeltaTable.delete."""
        self.table(target).delete(condition)

    def update(self, target: str, condition: Any = None, set: Any = None) -> None:
        """Do the same as DeltaTable.update."""
        self.table(target).update(condition, set)

    def merge(self, target: str, source: DataFrame, condition: Any, alias: str = "target") -> Any:
        """Do the same as DeltaTable.merge, with an alias for the table; `.execute()` makes it part of the transaction."""
        return self.table(target).alias(alias).merge(source, condition)

    def _save(self, target: str, frame: DataFrame, mode: str, options: Mapping[str, Any]) -> None:
        path = _path_of_target(self._spark, target)
        frame.write.format(FORMAT).mode(mode).options(**options, **self._inner.storage_options(path)).save(path)


def snapshot(
    spark: SparkSession,
    targets: Sequence[str],
    *,
    timestamp: str | datetime | None = None,
    coordinator: str | None = None,
) -> dict[str, DataFrame]:
    """Return one consistent state of several tables, by their paths or names as they were given: the current state, or the newest
    one at or before a time.

    One ledger coordinates all of them. Raises UnsupportedOperationError for a table that the ledger does not know, or whose state
    at the time it no longer knows.
    """
    register(spark)
    with as_spark_raises():
        url = coordinator_of(spark, coordinator)
        ledger = open_ledger(url)
        zone = conf(spark, TIME_ZONE) or "UTC"
        moment = ledger.moment(None if timestamp is None else to_timestamp_ms(timestamp, zone))
        versions = {
            target: None if moment is None else ledger.version_at(_ledger_place(spark, target), moment) for target in targets
        }
        for target, version in versions.items():
            if version is None:
                raise UnsupportedOperationError(
                    f"The coordinator {ledger.shown} does not know which version {target} had "
                    f"{'now' if timestamp is None else f'at {timestamp}'}: it does not coordinate the table, or did not at that "
                    "time, or that is long ago.",
                    table=target,
                )
    reader = spark.read.format(FORMAT)
    return {
        target: reader.option("coordinator", url).option("versionAsOf", str(version)).load(_path_of_target(spark, target))
        for target, version in versions.items()
    }


def plain_options(spark: SparkSession, path: str) -> dict[str, str]:
    """Return the session's settings for the store of a table, without those of a transaction that the session is in."""
    return {name: value for name, value in storage_settings(spark, path).items() if name != "coordinator.transaction"}


def coordinator_of(spark: SparkSession, explicit_url: str | None = None) -> str:
    """Return the URL of the ledger. Raises InvalidOptionError if none was named."""
    url = explicit_url or conf(spark, COORDINATOR)
    if url is None:
        raise InvalidOptionError(
            f"No coordinator was named. Set {COORDINATOR} to the URL of its ledger, such as sqlite:///data/ledger.db.",
            option="coordinator",
        )
    return url


def _path_of_target(spark: SparkSession, target: str) -> str:
    """Return the location of a table that is named by a path or by a name of the catalog."""
    if "/" in target and "`" not in target:
        return target
    with as_spark_raises():
        return find_table(spark, target).path


def _ledger_place(spark: SparkSession, target: str) -> str:
    """Return the name by which the ledger knows a table that is named by a path or by a name of the catalog."""
    return place_of(open_store(_path_of_target(spark, target)).root)
