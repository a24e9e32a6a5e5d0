"""A session's settings, as far as they matter to reads and writes: workers cannot see them, so they travel as an option."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import PySparkException

from delta_py.protocol.sizes import parse_size
from delta_py.storage.addresses import kind_of
from delta_py.storage.opening import open_store
from delta_py.storage.store import ObjectStore
from delta_py.streaming.schema_evolution import ALLOW_CONFS
from spark_plugin.options.common import CONFS, OTHER_WRITE_CONFS, PARTITIONS_PER_CORE, STORAGE, WRITE_CONFS, flag
from spark_plugin.options.storage import session_storage, storage_options
from spark_plugin.spark_internals import SparkInternals, is_connect

READ_LEASE = "spark.pydelta.readLease"
_AUTO_RESET_CONF = "spark.databricks.delta.write.txnVersion.autoReset.enabled"


@dataclass(frozen=True, slots=True)
class TablePath:
    """Where a table is, as its user named it. storage: what was said of its store beside the session's settings."""

    url: str
    storage: Mapping[str, str] = field(default_factory=dict)

    def open_store(self, spark: Any) -> ObjectStore:
        return open_store(self.url, storage_options(self.storage, storage_settings(spark, self.url)))


def storage_settings(spark: Any, path: str | None) -> dict[str, str]:
    """What the session says of the store of a path; nothing of this machine's disks."""
    if path is None or kind_of(path) is None:
        return {}
    hadoop = {} if is_connect(spark) else SparkInternals(spark).hadoop_settings("fs.")
    return session_storage(_all_confs(spark), hadoop, path)


def read_settings(spark: Any, path: str | None, *, tracks_schema: bool = False) -> str:
    """The option SESSION of a read of a path. What a server does not tell is left out. tracks_schema: the read is a stream with a
    log of schemas, whose settings have names that end in a number of the stream's own."""
    allowed = {name: value for name, value in _all_confs(spark).items() if name.startswith(ALLOW_CONFS)} if tracks_schema else {}
    return _as_option(
        {
            CONFS: allowed or None,
            STORAGE: storage_settings(spark, path) or None,
            "timeZone": conf(spark, "spark.sql.session.timeZone"),
            "maxPartitionBytes": _size(conf(spark, "spark.sql.files.maxPartitionBytes")),
            "openCostInBytes": _size(conf(spark, "spark.sql.files.openCostInBytes")),
            "wantedPartitions": _wanted_partitions(spark),
            "readLease": conf(spark, READ_LEASE),
        }
    )


def write_settings(spark: Any, path: str | None) -> str:
    """The option SESSION of a write to a path."""
    confs = {name: conf(spark, name) for name in (*WRITE_CONFS.values(), *OTHER_WRITE_CONFS)}
    said = {name: value for name, value in confs.items() if value is not None}
    storage = storage_settings(spark, path)
    return _as_option({"timeZone": conf(spark, "spark.sql.session.timeZone"), CONFS: said or None, STORAGE: storage or None})


def reset_transaction(spark: Any) -> None:
    """After a write that took its transaction from the session: its version was for one write, if the settings say so."""
    name = WRITE_CONFS["txnVersion"]
    if conf(spark, name) is not None and (conf(spark, _AUTO_RESET_CONF) or "false").lower() == "true":
        spark.conf.unset(name)


def _as_option(settings: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in settings.items() if value is not None})


def _wanted_partitions(spark: Any) -> int | None:
    wanted = conf(spark, "spark.sql.files.minPartitionNum")
    if wanted is not None:
        return int(wanted)
    cores = conf(spark, "spark.sql.leafNodeDefaultParallelism") or _default_parallelism(spark)
    return None if cores is None else PARTITIONS_PER_CORE * int(cores)


def _default_parallelism(spark: Any) -> int | None:
    return None if is_connect(spark) else int(spark.sparkContext.defaultParallelism)


@contextmanager
def active(spark: Any) -> Iterator[None]:
    """Make the session the active one of this thread meanwhile. Spark looks for Python sources in the active session, and
    a thread that the user started has none."""
    if is_connect(spark):
        yield
        return
    with SparkInternals(spark).activated():
        yield


def conf(spark: Any, name: str) -> str | None:
    """A setting, or Spark's default for it; None where there is neither."""
    try:
        value = spark.conf.get(name, None)
    except PySparkException:  # a server may keep a setting to itself
        return None
    return None if value in (None, "<undefined>") else str(value)


def is_on(spark: Any, name: str, *, default: bool = True) -> bool:
    """A setting that is true or false. Raises InvalidOptionError for another text."""
    text = conf(spark, name)
    return flag({} if text is None else {name: text}, name, default=default)


def _all_confs(spark: Any) -> dict[str, str]:
    confs: dict[str, str] = spark.conf.getAll
    return confs


def _size(text: str | None) -> int | None:
    return None if text is None else parse_size(text)
