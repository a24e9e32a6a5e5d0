"""Spark's string options -> WriteOptions; see options.py for what holds for all options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from spark_plugin.options import CLUSTER_BY, MODE, PARTITION_BY, SESSION, known, single_path

_WRITE_NAMES = (
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
    "compression",
    "timeZone",
    SESSION,
    MODE,
    PARTITION_BY,
    CLUSTER_BY,
)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """One batch write. mode: `append`, `error` or `ignore`. partition_by: None when the user named none. properties: of the
    table, names as Spark hands them over (lower case)."""

    path: str
    mode: str
    partition_by: tuple[str, ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    user_metadata: str | None = None


def write_options(options: Mapping[str, str], *, overwrite: bool) -> WriteOptions:
    """overwrite: what Spark says; the option MODE, which the seam adds, says more.

    Raises InvalidOptionError as read_options; UnsupportedOperationError for what this version cannot write.
    """
    given = known({key: value for key, value in options.items() if not _is_property(key)}, _WRITE_NAMES, "write")
    mode = _mode(given, overwrite)
    _refuse_unsupported(given, mode)
    return WriteOptions(
        path=single_path(given),
        mode=mode,
        partition_by=_json_names(given, PARTITION_BY),
        properties={key: value for key, value in options.items() if _is_property(key)},
        user_metadata=given.get("userMetadata"),
    )


def _is_property(key: str) -> bool:
    return key.lower().startswith("delta.")


def _mode(given: Mapping[str, str], overwrite: bool) -> str:
    mode = given.get(MODE, "overwrite" if overwrite else "append").lower()
    mode = {"errorifexists": "error", "default": "error"}.get(mode, mode)
    if mode not in ("append", "overwrite", "error", "ignore"):
        raise InvalidOptionError(
            f"The save mode {mode!r} is unknown. It can be append, overwrite, error, errorifexists or ignore.", option="mode"
        )
    return mode


def _refuse_unsupported(given: Mapping[str, str], mode: str) -> None:
    if mode == "overwrite":
        raise UnsupportedOperationError(
            "Mode overwrite is not supported in this version; nothing was written. Use append, or write to a new path.", mode=mode
        )
    for name, harmless in _UNSUPPORTED_WRITE.items():
        value = given.get(name)
        if value is not None and value.lower() != harmless:
            raise UnsupportedOperationError(
                f"The write option {name} is not supported in this version; nothing was written. Leave it out.",
                option=name,
                value=value,
            )
    if _json_names(given, CLUSTER_BY):
        raise UnsupportedOperationError(
            "clusterBy is not supported in this version; nothing was written. Leave it out.", option="clusterBy"
        )


# The value with which an option asks for nothing; None where every value asks for something.
_UNSUPPORTED_WRITE: Mapping[str, str | None] = {
    "mergeSchema": "false",
    "overwriteSchema": "false",
    "replaceWhere": None,
    "replaceUsing": None,
    "replaceOn": None,
    "targetAlias": None,
    "partitionOverwriteMode": "static",
    "txnAppId": None,
    "txnVersion": None,
    "dataChange": "true",
    "optimizeWrite": "false",
    "maxRecordsPerFile": "0",
    "compression": None,
}


def _json_names(given: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    text = given.get(name)
    return None if text is None else tuple(json.loads(text))
