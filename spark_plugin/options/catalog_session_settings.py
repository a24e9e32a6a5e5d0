"""A session's settings from the catalogs, which are Java and know options only by name (java/tables/Source.java).

    rule.tell("settings", "\\n".join(SETTINGS))            # the names, once a session
    options = with_session(options)                       # in the worker: the option CATALOG_SETTINGS becomes the option SESSION

The meaning of the settings is defined once, here and in `settings.py`, for both ways.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from delta_py.storage.addresses import is_name_in_catalog, kind_of
from delta_py.types.sizes import parse_size
from spark_plugin.options.common import (
    CONFS,
    OTHER_WRITE_CONFS,
    PROPERTY_DEFAULTS,
    SESSION,
    STORAGE,
    WRITE_CONFS,
)
from spark_plugin.options.read_limits import PARQUET_TASKS_PER_CORE, PYTHON_TASKS_PER_CORE
from spark_plugin.options.storage import session_storage

CATALOG_SETTINGS = "pydelta.told"
"""An option with JSON that the catalogs write: `confs`, the session's settings; `hadoop`, settings of Hadoop's file systems;
`parallelism`, Spark's default number of tasks."""
READ_LEASE = "spark.pydelta.readLease"
IGNORE_MISSING_FILES = "spark.sql.files.ignoreMissingFiles"
COORDINATOR = "spark.pydelta.coordinator"
TRANSACTION = "spark.pydelta.coordinator.transaction"
VERIFY_CHECKSUMS = "spark.pydelta.verifyChecksums"
FEED_OUT_OF_RANGE = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"
TIME_ZONE = "spark.sql.session.timeZone"
PARTITION_BYTES = "spark.sql.files.maxPartitionBytes"
OPEN_COST = "spark.sql.files.openCostInBytes"
LEAST_PARTITIONS = "spark.sql.files.minPartitionNum"
PARALLELISM = "spark.sql.leafNodeDefaultParallelism"

READ_SETTINGS = (
    *(TIME_ZONE, PARTITION_BYTES, OPEN_COST, LEAST_PARTITIONS, PARALLELISM),
    *(READ_LEASE, IGNORE_MISSING_FILES, VERIFY_CHECKSUMS, FEED_OUT_OF_RANGE),
)
WRITE_SETTINGS = (*WRITE_CONFS.values(), *OTHER_WRITE_CONFS)
SETTINGS = (*READ_SETTINGS, *WRITE_SETTINGS, PROPERTY_DEFAULTS, COORDINATOR, TRANSACTION)
"""The settings of a session that the catalogs send; a name that ends in a dot stands for all that begin with it. For a path of an
object store they also send all settings that may apply to stores."""


def read_part(confs: Mapping[str, str], default_parallelism: int | None) -> dict[str, Any]:
    """Return what a read takes from settings, under the names of the option SESSION. None for settings that are not set.

    default_parallelism: Spark's default number of tasks; None if it is not known, as over Spark Connect.
    """
    return {
        "timeZone": confs.get(TIME_ZONE),
        "maxPartitionBytes": _size(confs.get(PARTITION_BYTES)),
        "openCostInBytes": _size(confs.get(OPEN_COST)),
        "wantedPartitions": _partitions(confs, default_parallelism, PYTHON_TASKS_PER_CORE),
        "nativePartitions": _partitions(confs, default_parallelism, PARQUET_TASKS_PER_CORE),
        "readLease": confs.get(READ_LEASE),
        "ignoreMissingFiles": confs.get(IGNORE_MISSING_FILES),
        "verifyChecksums": confs.get(VERIFY_CHECKSUMS),
        "feedOutOfRange": confs.get(FEED_OUT_OF_RANGE),
    }


def write_part(confs: Mapping[str, str]) -> dict[str, Any]:
    """Return what a write takes from settings, under the names of the option SESSION. None for settings that are not set."""
    write_confs = {name: value for name, value in confs.items() if name in WRITE_SETTINGS or name.startswith(PROPERTY_DEFAULTS)}
    return {"timeZone": confs.get(TIME_ZONE), CONFS: write_confs or None}


def storage_part(confs: Mapping[str, str], hadoop: Mapping[str, str], path: str) -> dict[str, str]:
    """Return the session's settings for the store of a path, by the names of StorageOptions. For a path on this machine's disks
    only two settings apply: the coordinator of tables, and the transaction that the session is in. hadoop: settings of Hadoop's
    file systems."""
    if kind_of(path) is not None or is_name_in_catalog(path):
        return session_storage(confs, hadoop, path)
    options = {"coordinator": confs.get(COORDINATOR), "coordinator.transaction": confs.get(TRANSACTION)}
    return {name: value for name, value in options.items() if value is not None}


def as_option(settings: Mapping[str, Any]) -> str:
    """Return the settings that are not None as the text of the option SESSION."""
    return json.dumps({name: value for name, value in settings.items() if value is not None})


def with_session(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options with SESSION in place of CATALOG_SETTINGS, or unchanged if CATALOG_SETTINGS is missing."""
    text = next((value for name, value in options.items() if name.lower() == CATALOG_SETTINGS), None)
    if text is None:
        return dict(options)
    user_options = {name: value for name, value in options.items() if name.lower() != CATALOG_SETTINGS}
    settings = json.loads(text)
    path = next((value for name, value in user_options.items() if name.lower() == "path"), "")
    storage = storage_part(settings["confs"], settings["hadoop"], path)
    parts = {**read_part(settings["confs"], settings["parallelism"]), **write_part(settings["confs"]), STORAGE: storage or None}
    return {**user_options, SESSION: as_option(parts)}


def _partitions(confs: Mapping[str, str], default_parallelism: int | None, per_core: int) -> int | None:
    """Return the number of tasks that a scan should have: the session's setting for scans, or a number per core; None if neither
    is known. per_core: the number of tasks for each core."""
    least_partitions = confs.get(LEAST_PARTITIONS)
    if least_partitions is not None:
        return int(least_partitions)
    cores = confs.get(PARALLELISM) or default_parallelism
    return None if cores is None else per_core * int(cores)


def _size(text: str | None) -> int | None:
    return None if text is None else parse_size(text)
