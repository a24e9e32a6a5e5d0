"""Spark's string options -> WriteOptions; see common.py for the rules of all options.

An option of the write takes precedence. If it is missing, the session's setting that delta-spark reads (WRITE_CONFS) applies;
the patched methods send it in the option SESSION. Without register() there is no SESSION, and only options apply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from delta_py.definition.request import AutoCompact, WriteRequest
from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.object_stores.open_store import open_or_stage
from delta_py.protocol.parquet_settings import compression_codec
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import NO_OPTIONS, StorageOptions
from delta_py.types.sizes import parse_size
from spark_plugin.options.common import (
    AS_SELECT,
    AUTO_COMPACT_MAX_SIZE,
    AUTO_COMPACT_MIN_FILES,
    AUTO_COMPACT_MIN_SIZE,
    CHECKS_REPLACE_WHERE,
    CLUSTER_BY,
    DESCRIPTION,
    FROM_CATALOG,
    MODE,
    PARTITION_BY,
    RULE_NONCE,
    SESSION,
    TASKS,
    WRITE_CONFS,
    confs_of_session,
    flag,
    in_our_spelling,
    property_defaults,
    session_of,
    single_path,
    storage_of_session,
)
from spark_plugin.options.storage import storage_options, without_storage

_NAMES = (
    "path",
    "mergeSchema",
    "overwriteSchema",
    "replaceWhere",
    "replaceUsing",
    "replaceOn",
    "targetAlias",
    "partitionOverwriteMode",
    "txnAppId",
    "txnVersion",
    "userMetadata",
    "dataChange",
    "optimizeWrite",
    "autoCompact",
    "maxRecordsPerFile",
    "targetFileSize",
    "compression",
    "isolationLevel",
    "timeZone",
    "truncateNanoseconds",
    SESSION,
    MODE,
    PARTITION_BY,
    CLUSTER_BY,
    TASKS,
    RULE_NONCE,
    AS_SELECT,
    FROM_CATALOG,
    DESCRIPTION,
)

# Options that replace only the rows that match some row of the source (merge/replace_matching.py).
_MATCHING = ("replaceUsing", "replaceOn")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_LONG = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """One batch write. path: of the table, or its name in Unity Catalog. request: what to write and how; Spark has changed the
    names of table properties in it to lower case. storage: the options of the table's store."""

    path: str
    request: WriteRequest
    storage: StorageOptions = NO_OPTIONS

    def open_target(self) -> tuple[ObjectStore, WriteRequest]:
        """Open the table's store. Returns it, and the request with the properties that the table's catalog requires or suggests
        for a new table."""
        store, rules = open_or_stage(self.path, self.storage)
        return store, self.request.following(rules)

    @property
    def mode(self) -> str:
        return self.request.mode


def write_options(options: Mapping[str, str], *, overwrite: bool) -> WriteOptions:
    """Parse the options of a batch write. overwrite: Spark's flag; the option MODE, which the patched methods add, is more
    precise.

    Raises InvalidOptionError for an unknown name and for a text that is no value of its option; the errors of WriteRequest.check;
    UnsupportedOperationError for replaceUsing and replaceOn, which saves of registered sessions handle themselves.
    """
    known_options = in_our_spelling(
        {key: value for key, value in without_storage(options).items() if not _is_property(key)}, _NAMES, "write"
    )
    mode = save_mode(known_options.get(MODE, "overwrite" if overwrite else "append"))
    if mode == "overwrite":
        _refuse_matching(known_options)
    path = single_path(known_options)
    txn_app_id, txn_version = _transaction(known_options)
    flag(known_options, "optimizeWrite")  # only checked: the patched method used it before Spark divided the rows into tasks
    statement = json.loads(known_options.get(AS_SELECT, "{}"))  # what an AS SELECT statement says about its table; else empty
    request = WriteRequest(
        mode=mode,
        partition_by=_json_names(known_options, PARTITION_BY),
        description=known_options.get(DESCRIPTION, statement.get("description")),
        configuration={key: value for key, value in options.items() if _is_property(key)} | statement.get("properties", {}),
        defaults=property_defaults(confs_of_session(known_options)),
        cluster_by=_json_names(known_options, CLUSTER_BY),
        merge_schema=flag(_with_conf(known_options, "mergeSchema"), "mergeSchema"),
        overwrite_schema=flag(known_options, "overwriteSchema"),
        replace_where=known_options.get("replaceWhere"),
        checks_replace_where=confs_of_session(known_options).get(CHECKS_REPLACE_WHERE, "true").lower() != "false",
        partition_overwrite_mode=_partition_overwrite_mode(known_options),
        txn_app_id=txn_app_id,
        txn_version=txn_version,
        user_metadata=_with_conf(known_options, "userMetadata").get("userMetadata"),
        data_change=flag(known_options, "dataChange", default=True),
        max_records_per_file=_max_records(_with_conf(known_options, "maxRecordsPerFile")),
        target_file_bytes=_target_file_bytes(known_options),
        compression=_compression(known_options),
        isolation_level=known_options["isolationLevel"].strip() if "isolationLevel" in known_options else None,
        time_zone=session_of(known_options).time_zone,
        truncate_nanoseconds=flag(known_options, "truncateNanoseconds"),
        tasks=int(known_options[TASKS]) if TASKS in known_options else None,
        rule_nonce=known_options.get(RULE_NONCE),
        as_select=statement.get("kind"),
        auto_compact=_auto_compact(known_options),
        recorded=_history_parameters(known_options),
    )
    request.check()
    return WriteOptions(path, request, storage_options(options, storage_of_session(known_options)))


def _is_property(key: str) -> bool:
    return key.lower().startswith("delta.")


def _refuse_matching(options: Mapping[str, str]) -> None:
    """Raise UnsupportedOperationError for an overwrite of matching rows. The patched `save` runs such an overwrite itself, so the
    options come here only if the session is not registered, or the save is not of Python. Modes other than overwrite ignore these
    options, as in delta-spark."""
    name = next((name for name in _MATCHING if name in options), None)
    if name is not None:
        raise UnsupportedOperationError(
            f"The option {name} needs a session in which pydelta is registered, and a save of Python; nothing was written. Call "
            "register(spark) of spark_plugin, or name the rows to replace with replaceWhere.",
            option=name,
            value=options[name],
        )


def _history_parameters(options: Mapping[str, str]) -> dict[str, str]:
    """Return what the history records of options that modes other than overwrite ignore; delta-spark records it too."""
    parameters: dict[str, str] = {}
    if "replaceUsing" in options:
        parameters["replaceUsingCols"] = f"({options['replaceUsing']})"
    if "replaceOn" in options:
        parameters["replaceOnCond"] = options["replaceOn"]
    return parameters


def save_mode(text: str) -> str:
    """Return a mode of DataFrameWriter.mode in the words of WriteRequest, which defines the modes."""
    mode = text.lower()
    return {"errorifexists": "error", "default": "error"}.get(mode, mode)


def _with_conf(options: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the options, with the session's setting in place of a missing one."""
    conf = confs_of_session(options).get(WRITE_CONFS[name])
    return {**options, name: conf} if name not in options and conf is not None else dict(options)


def _json_names(options: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    """Return the column names that an option lists as JSON; None if it is not set."""
    text = options.get(name)
    return None if text is None else tuple(json.loads(text))


# ---------------------------------------------------------------- single options


def _partition_overwrite_mode(options: Mapping[str, str]) -> str:
    """Return `static` or `dynamic`. replaceWhere itself defines what is replaced, so it takes precedence over the session's
    setting."""
    all_options = options if "replaceWhere" in options else _with_conf(options, "partitionOverwriteMode")
    return all_options.get("partitionOverwriteMode", "static").strip().lower()


def _transaction(options: Mapping[str, str]) -> tuple[str | None, int | None]:
    """Return txnAppId and txnVersion, which make a write idempotent, from the options or, if they have neither, from the session.
    Each is None if it is not set."""
    if "txnAppId" not in options and "txnVersion" not in options:
        options = _with_conf(_with_conf(options, "txnAppId"), "txnVersion")
    text = options.get("txnVersion")
    return options.get("txnAppId"), None if text is None else _integer("txnVersion", text)


def _max_records(options: Mapping[str, str]) -> int | None:
    """Return the most rows of a file; None for no limit. 0 and negative numbers mean no limit, as in Spark."""
    text = options.get("maxRecordsPerFile")
    count = 0 if text is None else _integer("maxRecordsPerFile", text)
    return count if count > 0 else None


def _target_file_bytes(options: Mapping[str, str]) -> int | None:
    """Return the option targetFileSize in bytes; None if it is not set."""
    text = options.get("targetFileSize")
    if text is None:
        return None
    size = parse_size(text)
    if not size:
        raise _illegal("targetFileSize", text, "a number of bytes greater than 0, such as 134217728 or 128mb")
    return size


def _auto_compact(options: Mapping[str, str]) -> AutoCompact:
    """Return the settings of auto compaction. enabled: None if neither the option nor the session says, so that the table does.
    One file cannot be compacted, so min_files is at least 2."""
    all_options, confs, default = _with_conf(options, "autoCompact"), confs_of_session(options), AutoCompact()
    largest = _conf_size(confs, AUTO_COMPACT_MAX_SIZE) or default.max_file_bytes
    count = confs.get(AUTO_COMPACT_MIN_FILES)
    return AutoCompact(
        enabled=flag(all_options, "autoCompact") if "autoCompact" in all_options else None,
        min_files=default.min_files if count is None else max(2, _integer(AUTO_COMPACT_MIN_FILES, count)),
        max_file_bytes=largest,
        min_file_bytes=_conf_size(confs, AUTO_COMPACT_MIN_SIZE) or largest // 2,
    )


def _conf_size(confs: Mapping[str, str], name: str) -> int | None:
    """Return a setting that is a size, in bytes; None if it is not set. Raises InvalidOptionError for a text that is no size."""
    text = confs.get(name)
    size = None if text is None else parse_size(text)
    if text is not None and not size:
        raise _illegal(name, text, "a number of bytes greater than 0, such as 134217728 or 128mb")
    return size


def _compression(options: Mapping[str, str]) -> str | None:
    """Return the codec as the user wrote it, if it is known; None if it is not set."""
    codec = options.get("compression")
    if codec is None:
        return None
    try:
        compression_codec(codec)
    except UnsupportedOperationError as error:
        raise _illegal("compression", codec, "uncompressed, snappy, gzip, lz4, lz4_raw or zstd") from error
    return codec


def _integer(name: str, text: str) -> int:
    """Parse the text of an option. name: of the option, for the error if the text is no whole number of 64 bits."""
    if not _WHOLE_NUMBER.fullmatch(text.strip()) or int(text) not in _LONG:
        raise _illegal(name, text, "a whole number of 64 bits")
    return int(text)


def _illegal(name: str, value: str, expected: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"Invalid value {value!r} for option {name!r}: it must be {expected}. Nothing was written.", option=name, value=value
    )
