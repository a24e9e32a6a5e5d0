"""The common part of read and write options: names, single values, the session's settings.

Names are delta-spark's, and case does not matter. An unknown name is refused, and the error names a similar known one.
An invalid value is refused too: an option that is silently dropped reads the wrong version or writes the wrong rows. Names that
begin with `pydelta.` are private options, which only pydelta itself sets (private.py). Session
settings (time zone, sizes of partitions) come in the option SESSION, which `dataframe_api/method_patches.py` adds; without it the
defaults of Spark and of this machine apply.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from delta_py.errors import InvalidOptionError, shown
from delta_py.time_zones import is_region, local_time_zone, offset_seconds, region_name
from delta_py.types.similar_names import unknown_option_error
from spark_plugin.options.private import is_private
from spark_plugin.options.read_limits import PARQUET_TASKS_PER_CORE, PYTHON_TASKS_PER_CORE
from spark_plugin.options.roads import OLDER_OPTIONS

SESSION = "pydelta.session"
VIEW = "pydelta.view"
VIEW_LIMIT = "pydelta.viewLimit"
FILES = "pydelta.files"
USER_SCHEMA = "pydelta.schema"
MODE = "pydelta.mode"
STREAM = "pydelta.stream"
PARTITION_BY = "pydelta.partitionBy"
CLUSTER_BY = "pydelta.clusterBy"
COMMAND = "pydelta.command"
CATALOG_VIEW = "pydelta.catalogview"
FACTS = "pydelta.facts"
FACTS_OF_WRITES = "writes"
# For writes through the catalogs (sql_catalog): a mark, the rows to replace as PredicateJson.java writes them, and a comment.
FROM_CATALOG = "pydelta.fromcatalog"
REPLACE_PREDICATE = "pydelta.replacepredicate"
DESCRIPTION = "pydelta.description"
TASKS = "pydelta.tasks"
# Names of roads.py that a read disables, separated by commas.
DISABLED = "pydelta.disable"
RULE_NONCE = "pydelta.ruleNonce"
# What an AS SELECT statement says about the table that its query fills, as JSON: kind, description, properties.
AS_SELECT = "pydelta.asSelect"
# In SESSION: the settings that give write options for a whole session.
CONFS = "confs"
# In SESSION: options of stores from the session's settings.
STORAGE = "storage"

# Options, and the session settings that replace them if they are missing. If delta-spark has a setting, this is its name.
WRITE_CONFS: Mapping[str, str] = {
    "mergeSchema": "spark.databricks.delta.schema.autoMerge.enabled",
    "partitionOverwriteMode": "spark.sql.sources.partitionOverwriteMode",
    "txnAppId": "spark.databricks.delta.write.txnAppId",
    "txnVersion": "spark.databricks.delta.write.txnVersion",
    "userMetadata": "spark.databricks.delta.commitInfo.userMetadata",
    "maxRecordsPerFile": "spark.sql.files.maxRecordsPerFile",
    "autoCompact": "spark.databricks.delta.autoCompact.enabled",
}
# Settings of writes that have no option.
AUTO_COMPACT_MIN_FILES = "spark.databricks.delta.autoCompact.minNumFiles"
AUTO_COMPACT_MAX_SIZE = "spark.databricks.delta.autoCompact.maxFileSize"
AUTO_COMPACT_MIN_SIZE = "spark.databricks.delta.autoCompact.minFileSize"
CHECKS_REPLACE_WHERE = "spark.databricks.delta.replaceWhere.constraintCheck.enabled"
# A setting with this prefix is a table property for new tables; the property's name has `delta.` in place of the prefix.
PROPERTY_DEFAULTS = "spark.databricks.delta.properties.defaults."
OTHER_WRITE_CONFS = (AUTO_COMPACT_MIN_FILES, AUTO_COMPACT_MAX_SIZE, AUTO_COMPACT_MIN_SIZE, CHECKS_REPLACE_WHERE)

_MIB = 1024 * 1024
_MAX_VERSION = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The settings of a session that a scan needs.

    time_zone: for timestamps without an offset. max_partition_bytes: the most bytes that one task reads. open_cost_bytes: opening
    a file counts as much as reading this many bytes. target_partitions, native_partitions: about how many tasks a small table
    gets if Python reads it, and if Spark's own Parquet reader reads it."""

    time_zone: str = "UTC"
    max_partition_bytes: int = 128 * _MIB
    open_cost_bytes: int = 4 * _MIB
    target_partitions: int = 4
    native_partitions: int = 2


# ---------------------------------------------------------------- the path


def single_path(options: Mapping[str, str]) -> str:
    """Return the path as the user wrote it. Spark passes several paths, or a list of one, as JSON in `paths`."""
    paths = [options["path"]] if options.get("path") else _parse_paths(options.get("paths", "[]"))
    if len(paths) == 1:
        return paths[0]
    if paths:
        raise InvalidOptionError(
            f"load() got {len(paths)} paths. pydelta reads one table at a time: load each, and union the DataFrames.",
            option="path",
        )
    raise InvalidOptionError(
        "'path' is not specified. Name the table's directory in load(path) or save(path). Spark does not tell the path of a "
        "catalog's table in the SQL statements INSERT INTO and CREATE TABLE ... AS SELECT, nor in reads when the table was "
        "entered with its columns named. After register(spark), write with spark.sql('SELECT ...').write.insertInto('t'), "
        "df.write.format('pydelta').saveAsTable('t') or df.write.format('pydelta').mode('append').save(path); and enter a table "
        "that is there with CREATE TABLE t USING pydelta LOCATION '...'.",
        option="path",
    )


def _parse_paths(text: str) -> list[str]:
    """Parse the option `paths`. Raises InvalidOptionError if it is no JSON list of texts."""
    paths = json_or_none(text)
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise InvalidOptionError(
            f"Invalid value {shown(text)} for option 'paths': it must be a JSON list of texts. Name one directory in load().",
            option="paths",
        )
    return paths


def has_path(options: Mapping[str, str]) -> bool:
    return any(key.lower() in ("path", "paths") for key in options)


# ---------------------------------------------------------------- single values


def json_or_none(text: str) -> Any:
    """Parse JSON from any source; None if the text is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def whole_number(text: str, largest: int) -> int | None:
    """Parse any number of digits; None if the text is no number from 0 to `largest`. A text that is longer than `largest` is not
    converted, because Python refuses to convert very long ones."""
    digits = text.lstrip("0") or "0" if text.isascii() and text.isdigit() else ""
    number = int(digits) if 0 < len(digits) <= len(str(largest)) else None
    return None if number is None or number > largest else number


def in_our_spelling(options: Mapping[str, str], names: tuple[str, ...], verb: str) -> dict[str, str]:
    """Return the options, whose names may be in any case, in the spelling of `names`. verb: the kind of options for the error,
    such as `read` or `write`.

    Raises InvalidOptionError (DELTA_UNKNOWN_OPTION) for a name that is not in `names`.
    """
    spelling = {name.lower(): name for name in names}
    renamed: dict[str, str] = {}
    for key, value in options.items():
        folded = key.lower()
        if folded not in spelling:
            raise _unknown_name(key, names, verb)
        renamed[spelling[folded]] = value
    return renamed


def _unknown_name(key: str, names: tuple[str, ...], verb: str) -> InvalidOptionError:
    """Return the error for an unknown option. It suggests only names that users should set."""
    public = [name for name in names if not is_private(name) and name not in ("paths", *OLDER_OPTIONS)]
    return unknown_option_error(
        key,
        public,
        f"The {verb} option {key!r} is unknown.",
        "Correct the name or leave it out: an option that is ignored silently would give a result that was not asked for.",
    )


CHANGE_FEED = ("readChangeFeed", "readChangeData")
"""Flags of reads and streams. Either of them requests the change feed."""


def flag(options: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """Return the value of an option that is true or false. Raises InvalidOptionError for another text."""
    value = options.get(name)
    if value is None:
        return default
    if value.lower() not in ("true", "false"):
        raise InvalidOptionError(
            f"Invalid value {value!r} for option {name!r}: it must be 'true' or 'false'.", option=name, value=value
        )
    return value.lower() == "true"


def version(options: Mapping[str, str], name: str) -> int | None:
    """Return the version that an option names; None if it is not set. Raises InvalidOptionError for a text that is no version."""
    text = options.get(name)
    if text is None:
        return None
    number = whole_number(text.removeprefix("+"), _MAX_VERSION)
    if number is None:
        is_time_travel = name == "versionAsOf"
        raise InvalidOptionError(
            f"{name} is {text!r}, which is no version. A version is a whole number from 0 to {_MAX_VERSION}; "
            "DeltaTable.history() lists them.",
            error_class="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE" if is_time_travel else "DELTA_VERSION_INVALID",
            sql_state="42604" if is_time_travel else "42815",
            option=name,
            value=text,
        )
    return number


# ---------------------------------------------------------------- the session's settings


def confs_of_session(options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings of the session that replace missing options, and those that have no option, by name."""
    confs: Mapping[str, str] = json.loads(options.get(SESSION, "{}")).get(CONFS, {})
    return confs


def storage_of_session(options: Mapping[str, str]) -> dict[str, str]:
    """Return the session's settings for the store of the path, by the names of StorageOptions, from the option SESSION."""
    storage: dict[str, str] = json.loads(options.get(SESSION, "{}")).get(STORAGE, {})
    return storage


def property_defaults(confs: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that the session's settings give new tables. confs: the settings, by name."""
    pairs = ((name.removeprefix(PROPERTY_DEFAULTS), value) for name, value in confs.items() if name.startswith(PROPERTY_DEFAULTS))
    return {f"delta.{name}": value for name, value in pairs}


def session_of(options: Mapping[str, str]) -> SessionSettings:
    """Return the session's settings from the option SESSION, with defaults for those that it lacks. The option `timeZone` takes
    precedence over the session's time zone."""
    session = json.loads(options.get(SESSION, "{}"))
    zone = _time_zone(options) or session.get("timeZone") or local_time_zone()
    defaults, cores = SessionSettings(), os.cpu_count() or 1
    return SessionSettings(
        time_zone=zone,
        max_partition_bytes=session.get("maxPartitionBytes", defaults.max_partition_bytes),
        open_cost_bytes=session.get("openCostInBytes", defaults.open_cost_bytes),
        target_partitions=session.get("wantedPartitions", PYTHON_TASKS_PER_CORE * cores),
        native_partitions=session.get("nativePartitions", PARQUET_TASKS_PER_CORE * cores),
    )


def _time_zone(options: Mapping[str, str]) -> str | None:
    """Return the time zone of the option. Raises InvalidOptionError for an unknown name, which no later step might detect."""
    name = options.get("timeZone")
    if name is not None and offset_seconds(name) is None and not is_region(region_name(name)):
        raise InvalidOptionError(
            f"Invalid value {shown(name)} for option 'timeZone': it must be the name of a time zone, such as Europe/Paris, or an "
            "offset, such as +01:00.",
            option="timeZone",
            value=name,
        )
    return name
