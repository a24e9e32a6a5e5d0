"""Spark's string options -> WriteOptions; see options.py for what holds for all options.

An option of the write counts first; where there is none, the session's setting that the reference reads (WRITE_CONFS),
which the patched methods send along in the option SESSION. Without register() nobody sends any, and options alone count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from delta_py.commands.request import WriteRequest
from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.protocol.sizes import parse_size
from delta_py.write.conform import compression_codec
from spark_plugin.options.common import (
    CLUSTER_BY,
    CONFS,
    MODE,
    PARTITION_BY,
    RULE_NONCE,
    SESSION,
    TASKS,
    WRITE_CONFS,
    flag,
    known,
    session_of,
    single_path,
)

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
    "maxRecordsPerFile",
    "targetFileSize",
    "compression",
    "isolationLevel",
    "timeZone",
    SESSION,
    MODE,
    PARTITION_BY,
    CLUSTER_BY,
    TASKS,
    RULE_NONCE,
)

_UNSUPPORTED = {
    "replaceUsing": "Name the rows to replace with replaceWhere, or replace partitions with partitionOverwriteMode=dynamic.",
    "replaceOn": "Name the rows to replace with replaceWhere.",
    "targetAlias": "It goes with replaceOn. Name the rows to replace with replaceWhere.",
}
_ISOLATION_LEVELS = ("Serializable", "WriteSerializable", "SnapshotIsolation")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_LONG = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """One batch write. request: names of table properties are as Spark hands them over (lower case)."""

    path: str
    request: WriteRequest

    @property
    def mode(self) -> str:
        return self.request.mode


def write_options(options: Mapping[str, str], *, overwrite: bool) -> WriteOptions:
    """overwrite: what Spark says; the option MODE, which the patched methods add, says more.

    Raises InvalidOptionError for an unknown name, a value that cannot be meant, or options that contradict each other or
    the mode; UnsupportedOperationError for an option of the reference that this version does not have.
    """
    given = known({key: value for key, value in options.items() if not _is_property(key)}, _NAMES, "write")
    _refuse_unsupported(given)
    path, mode = single_path(given), _mode(given, overwrite)
    replaces = mode == "overwrite"
    txn_app_id, txn_version = _transaction(given)
    flag(given, "optimizeWrite")  # the patched method has acted on it, before Spark divided the rows into tasks
    request = WriteRequest(
        mode=mode,
        partition_by=_json_names(given, PARTITION_BY),
        configuration={key: value for key, value in options.items() if _is_property(key)},
        cluster_by=_json_names(given, CLUSTER_BY),
        merge_schema=flag(_with_conf(given, "mergeSchema"), "mergeSchema"),
        overwrite_schema=flag(given, "overwriteSchema") and replaces,
        replace_where=_replace_where(given, mode),
        partition_overwrite_mode=_partition_overwrite_mode(given, replaces),
        txn_app_id=txn_app_id,
        txn_version=txn_version,
        user_metadata=_with_conf(given, "userMetadata").get("userMetadata"),
        data_change=flag(given, "dataChange", default=True),
        max_records_per_file=_max_records(_with_conf(given, "maxRecordsPerFile")),
        target_file_bytes=_target_file_bytes(given),
        compression=_compression(given),
        isolation_level=_one_of(given, "isolationLevel", _ISOLATION_LEVELS),
        time_zone=session_of(given).time_zone,
        tasks=int(given[TASKS]) if TASKS in given else None,
        rule_nonce=given.get(RULE_NONCE),
    )
    return WriteOptions(path, request)


def _is_property(key: str) -> bool:
    return key.lower().startswith("delta.")


def _refuse_unsupported(given: Mapping[str, str]) -> None:
    for name, instead in _UNSUPPORTED.items():
        if name in given:
            raise UnsupportedOperationError(
                f"The write option {name} is not supported in this version; nothing was written. {instead}",
                option=name,
                value=given[name],
            )


def _mode(given: Mapping[str, str], overwrite: bool) -> str:
    mode = given.get(MODE, "overwrite" if overwrite else "append").lower()
    mode = {"errorifexists": "error", "default": "error"}.get(mode, mode)
    if mode not in ("append", "overwrite", "error", "ignore"):
        raise InvalidOptionError(
            f"The save mode {mode!r} is unknown. It can be append, overwrite, error, errorifexists or ignore.", option="mode"
        )
    return mode


def _confs(given: Mapping[str, str]) -> Mapping[str, str]:
    confs: Mapping[str, str] = json.loads(given.get(SESSION, "{}")).get(CONFS, {})
    return confs


def _with_conf(given: Mapping[str, str], name: str) -> dict[str, str]:
    """The options, and the session's setting in the place of one that was not given."""
    conf = _confs(given).get(WRITE_CONFS[name])
    return {**given, name: conf} if name not in given and conf is not None else dict(given)


def _json_names(given: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    text = given.get(name)
    return None if text is None else tuple(json.loads(text))


# ---------------------------------------------------------------- single options


def _replace_where(given: Mapping[str, str], mode: str) -> str | None:
    text = given.get("replaceWhere")
    if text is None:
        return None
    if mode != "overwrite":
        raise InvalidOptionError(
            f"replaceWhere goes with mode overwrite, and the mode is {mode}; nothing was written. Add .mode('overwrite'), or "
            "leave replaceWhere out.",
            option="replaceWhere",
        )
    if not text.strip():
        raise _illegal("replaceWhere", text, "a condition in SQL, such as \"day = '2024-05-01'\"")
    if flag(given, "overwriteSchema"):
        raise InvalidOptionError(
            "replaceWhere replaces some rows, and overwriteSchema gives the table another schema, which only an overwrite of "
            "all rows can. Leave one of them out.",
            error_class="DELTA_OVERWRITE_SCHEMA_WITH_REPLACE_WHERE",
            sql_state="42613",
            option="overwriteSchema",
        )
    return text


def _partition_overwrite_mode(given: Mapping[str, str], replaces: bool) -> str:
    """`static` or `dynamic`. replaceWhere says by itself what is replaced, and outweighs the session's setting."""
    if not replaces:
        _one_of(given, "partitionOverwriteMode", ("static", "dynamic"))
        return "static"
    said = given if "replaceWhere" in given else _with_conf(given, "partitionOverwriteMode")
    mode = _one_of(said, "partitionOverwriteMode", ("static", "dynamic")) or "static"
    if mode == "dynamic":
        _refuse_with_dynamic(given)
    return mode


def _refuse_with_dynamic(given: Mapping[str, str]) -> None:
    clashing = [name for name in ("replaceWhere", "overwriteSchema") if given.get(name, "false").lower() != "false"]
    for name in clashing:
        conf = WRITE_CONFS["partitionOverwriteMode"]
        source = "option" if "partitionOverwriteMode" in given else f"session setting {conf}"
        raise InvalidOptionError(
            f"{name} and partitionOverwriteMode=dynamic (by {source}) contradict each other: dynamic mode replaces the "
            f"partitions that the rows have, and nothing else. Nothing was written. Leave {name} out, or add "
            "option('partitionOverwriteMode', 'static').",
            error_class=_WITH_DYNAMIC[name],
            sql_state="42613",
            option=name,
        )


_WITH_DYNAMIC = {
    "replaceWhere": "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
    "overwriteSchema": "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
}


def _transaction(given: Mapping[str, str]) -> tuple[str | None, int | None]:
    """Both from the options or, when they have neither, from the session."""
    names = ("txnAppId", "txnVersion")
    if not any(name in given for name in names):
        given = _with_conf(_with_conf(given, "txnAppId"), "txnVersion")
    app_id, text = given.get("txnAppId"), given.get("txnVersion")
    if (app_id is None) != (text is None):
        there, missing = names if app_id is not None else names[::-1]
        raise InvalidOptionError(
            f"Invalid options for idempotent writes: {there} is given without {missing}. Give both, or none of them "
            f"(session settings: {WRITE_CONFS['txnAppId']}, {WRITE_CONFS['txnVersion']}).",
            error_class="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            sql_state="42616",
            option=missing,
        )
    if text is None:
        return None, None
    if not app_id:
        raise _illegal("txnAppId", "", "a name of the application that is not empty")
    return app_id, _integer("txnVersion", text)


def _max_records(given: Mapping[str, str]) -> int | None:
    """0 and less mean no limit, as in Spark."""
    text = given.get("maxRecordsPerFile")
    count = 0 if text is None else _integer("maxRecordsPerFile", text)
    return count if count > 0 else None


def _target_file_bytes(given: Mapping[str, str]) -> int | None:
    text = given.get("targetFileSize")
    if text is None:
        return None
    size = parse_size(text)
    if not size:
        raise _illegal("targetFileSize", text, "a number of bytes greater than 0, such as 134217728 or 128mb")
    return size


def _compression(given: Mapping[str, str]) -> str | None:
    codec = given.get("compression")
    if codec is None:
        return None
    try:
        compression_codec(codec)
    except UnsupportedOperationError as error:
        raise _illegal("compression", codec, "uncompressed, snappy, gzip, lz4, lz4_raw or zstd") from error
    return codec


def _integer(name: str, text: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(text.strip()) or int(text) not in _LONG:
        raise _illegal(name, text, "a whole number of 64 bits")
    return int(text)


def _one_of(given: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str | None:
    """The value in the spelling of `allowed`."""
    text = given.get(name)
    if text is None:
        return None
    found = next((value for value in allowed if value.lower() == text.strip().lower()), None)
    if found is None:
        raise _illegal(name, text, " or ".join(allowed))
    return found


def _illegal(name: str, value: str, wanted: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"Invalid value {value!r} for option {name!r}: it must be {wanted}. Nothing was written.", option=name, value=value
    )
