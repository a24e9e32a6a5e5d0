"""The forms of the command line's JSON answers, with types, and whether an answer has one.

A form is a type, a tuple of forms (one of these), a list of one form (any number of these), a dictionary of forms by name (these
names, all of them), or ANY. Names are only ever added to answers: an answer that lacks one has not the form.
"""

from __future__ import annotations

from typing import Any

ANY = object()
TEXT = (str, None)
COUNT = (int, None)
_CHANGE = {"name": str, "a": ANY, "b": ANY}
_SIDE = {"path": str, "version": int, "rows": int}

FORMS: dict[str, Any] = {
    "show": {"version": int, "columns": [str], "rows": [dict]},
    "schema": {
        "version": int,
        "partition_columns": [str],
        "columns": [{"name": str, "type": str, "nullable": bool, "comment": TEXT, "metadata": dict}],
    },
    "history": {
        "commits": [
            {
                "version": COUNT, "timestamp": TEXT, "userId": TEXT, "userName": TEXT, "operation": TEXT,
                "operationParameters": (dict, None), "job": (dict, None), "notebook": (dict, None), "clusterId": TEXT,
                "readVersion": COUNT, "isolationLevel": TEXT, "isBlindAppend": (bool, None), "operationMetrics": (dict, None),
                "userMetadata": TEXT, "engineInfo": TEXT,
            }
        ]
    },
    "detail": {
        "version": int, "format": str, "id": TEXT, "name": TEXT, "description": TEXT, "location": str, "createdAt": TEXT,
        "lastModified": TEXT, "partitionColumns": [str], "clusteringColumns": [str], "numFiles": int, "sizeInBytes": int,
        "properties": dict, "minReaderVersion": int, "minWriterVersion": int, "tableFeatures": [str],
    },
    "features": {
        "version": int,
        "min_reader_version": int,
        "min_writer_version": int,
        "features": [{"name": str, "is_listed": bool, "for_readers": bool, "can_read": bool, "can_write": bool}],
    },
    "streams": {"version": int, "streams": [{"app_id": str, "last_version": int, "last_updated": TEXT}]},
    "files": {
        "version": int,
        "filter": TEXT,
        "files_total": int,
        "files_read": int,
        "bytes_total": int,
        "bytes_read": int,
        "files": [{"path": str, "size": int, "rows": COUNT, "is_read": bool, "reason": str}],
    },
    "diff": {
        "differs": (bool, None),
        "a": _SIDE,
        "b": _SIDE,
        "columns": [_CHANGE],
        "partition_columns": (dict, None),
        "properties": [_CHANGE],
        "protocol": [_CHANGE],
        "rows": {"compared_by": str, "inserted": COUNT, "deleted": COUNT, "updated": COUNT, "why_not": TEXT},
    },
    "vacuum": {
        "deleted": bool,
        "files_total": int,
        "bytes_total": int,
        "files": [{"path": str, "size": int, "modification_time": TEXT, "reason": str}],
    },
    "fsck": {
        "repaired": int,
        "left": int,
        "faults": [
            {
                "kind": str, "path": TEXT, "data_file": TEXT, "version": COUNT, "size": COUNT, "reason": str, "can_repair": bool,
                "rows_lost": COUNT,
            }
        ],
    },
    "load": {"version": int, "mode": str},
    "optimize": {"metrics": {"numFilesAdded": int, "numFilesRemoved": int}},
    "zorder": {"metrics": {"numFilesAdded": int, "numFilesRemoved": int}},
    "restore": {"version": int, "metrics": dict},
    "checkpoint": {"version": int, "files": int},
    "convert": {"version": int, "files": int},
    "clone": {"target": str, "version": int, "files": int, "shallow": bool},
    "set": {"version": int, "properties": dict},
    "unset": {"version": int, "properties": dict},
    "report": {"identity": {"version": int}},
}


def faults(answer: Any, form: Any, place: str = "") -> list[str]:
    """Where an answer has not the form."""
    match form:
        case _ if form is ANY:
            return []
        case dict():
            if not isinstance(answer, dict):
                return [f"{place}: {answer!r} is no object"]
            missing = [f"{place}.{name} is missing" for name in form if name not in answer]
            inner = (faults(answer[name], one, f"{place}.{name}") for name, one in form.items() if name in answer)
            return [*missing, *(fault for found in inner for fault in found)]
        case [one]:
            if not isinstance(answer, list):
                return [f"{place}: {answer!r} is no list"]
            return [fault for number, value in enumerate(answer) for fault in faults(value, one, f"{place}[{number}]")]
        case tuple():
            return [] if any(not faults(answer, one) for one in form) else [f"{place}: {answer!r} is none of {form}"]
        case None:
            return [] if answer is None else [f"{place}: {answer!r} is not null"]
        case _:
            is_one = isinstance(answer, form) and (form is bool or not isinstance(answer, bool))
            return [] if is_one else [f"{place}: {answer!r} is no {form.__name__}"]
