"""What tasks answer over Spark Connect, as data: a client that reads it makes values of the classes listed here, no more.

    text = to_text(answer)         # in a task
    from_text(text)                # in the client

Answers are numbers, texts, collections, enums, Arrow tables, and dataclasses of pydelta, nested in any way, as JSON in which each
value that is no number, text or null is an object of one entry: its kind. A pickle would let a server run code in its clients.
Errors travel as the name of their class and what they were made of.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

import pyarrow as pa

from delta_py.commands.dml import ChosenFiles
from delta_py.errors import DeltaError
from delta_py.log.checksum import VersionChecksum
from delta_py.log.segment import Checkpoint, LastCheckpoint, LogFile, LogSegment
from delta_py.protocol.actions import AddCDCFile, AddFile, DomainMetadata, Metadata, Protocol, RemoveFile, SetTransaction
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.protocol.paths import LogKind
from delta_py.scan.scan_state import ScanFile
from delta_py.snapshot import Snapshot
from delta_py.storage.store import open_store
from delta_py.write.files import WrittenFiles
from delta_py.write.rewrite import TakenOut
from delta_py.write.row_changes import TaskChanges, TouchedRows

_CLASSES = {
    cls.__name__: cls
    for cls in (
        AddCDCFile,
        AddFile,
        Checkpoint,
        ChosenFiles,
        DeletionVectorDescriptor,
        DomainMetadata,
        LastCheckpoint,
        LogFile,
        LogSegment,
        Metadata,
        Protocol,
        RemoveFile,
        ScanFile,
        SetTransaction,
        TakenOut,
        TaskChanges,
        TouchedRows,
        VersionChecksum,
        WrittenFiles,
    )
}
_ENUMS: dict[str, type[Enum]] = {cls.__name__: cls for cls in (LogKind,)}


def to_text(answer: Any) -> str:
    """Raises TypeError for a value of a class that no answer may hold."""
    return json.dumps(_packed(answer))


def from_text(text: str) -> Any:
    """What to_text was given. Raises DeltaError for a text of another form."""
    try:
        return _unpacked(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise DeltaError(
            f"The server's answer cannot be understood ({type(error).__name__}: {error}). Whether it did what it was asked is "
            "not known: look into the table's history. Client and server need the same version of pydelta."
        ) from error


# ---------------------------------------------------------------- errors


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """An error that a step of an operation ended with."""

    error: Exception


def _packed_error(error: Exception) -> dict[str, Any]:
    names = [cls.__name__ for cls in type(error).__mro__ if issubclass(cls, Exception)]
    fields: dict[str, Any] = {"text": str(error)}
    if isinstance(error, DeltaError):
        parameters = {name: _packed_or_text(value) for name, value in error.message_parameters.items()}
        fields = {
            "message": error.message,
            "error_class": error.error_class,
            "sql_state": error.sql_state,
            "parameters": parameters,
        }
    elif isinstance(error, OSError) and error.errno is not None:
        filename = None if error.filename is None else str(error.filename)
        fields = {"errno": error.errno, "strerror": error.strerror, "filename": filename}
    return {"classes": names, **fields}


def _packed_or_text(value: Any) -> Any:
    try:
        return _packed(value)
    except TypeError:
        return str(value)


def _unpacked_error(value: Mapping[str, Any]) -> Exception:
    if "message" in value:
        known = {cls.__name__: cls for cls in _classes_from(DeltaError)}
        ours = known[next(name for name in (*value["classes"], "") if name in known or not name)]
        parameters = {str(name): _unpacked(item) for name, item in value["parameters"].items()}
        error = ours.__new__(ours)
        DeltaError.__init__(
            error, str(value["message"]), error_class=value["error_class"], sql_state=value["sql_state"], **parameters
        )
        return error
    if "errno" in value:
        return OSError(int(value["errno"]), value["strerror"], value["filename"])
    return RuntimeError(f"{value['classes'][0]}: {value['text']}")


def _classes_from(cls: type[DeltaError]) -> Iterator[type[DeltaError]]:
    """The class and all below it."""
    yield cls
    for below in cls.__subclasses__():
        yield from _classes_from(below)


# ---------------------------------------------------------------- values


def _packed(value: Any) -> Any:
    if value is None or (isinstance(value, bool | int | float) and not isinstance(value, Enum)):
        return value
    match value:
        case Enum() if type(value).__name__ in _ENUMS:
            return {"enum": [type(value).__name__, value.name]}
        case str():
            return str(value)
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
        case tuple():
            return {"tuple": [_packed(item) for item in value]}
        case list():
            return {"list": [_packed(item) for item in value]}
        case set() | frozenset():
            return {"set": [_packed(item) for item in value]}
        case Mapping():
            return {"map": [[_packed(name), _packed(item)] for name, item in value.items()]}
        case pa.Table():
            return {"table": base64.b64encode(_ipc(value)).decode()}
        case Snapshot():
            return {"snapshot": [_packed(part) for part in value.parts]}
        case Failure():
            return {"failure": _packed_error(value.error)}
        case _ if _CLASSES.get(type(value).__name__) is type(value):
            fields = {field.name: _packed(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return {"object": [type(value).__name__, fields]}
    raise TypeError(f"a {type(value).__name__} is nothing that a task may answer")


def _unpacked(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    ((kind, content),) = value.items()
    return _KINDS[kind](content)


def _snapshot(parts: list[Any]) -> Snapshot:
    segment, protocol, metadata, checksum = (_unpacked(part) for part in parts)
    return Snapshot(open_store(segment.table_root), segment, protocol, metadata, checksum)


def _object(content: list[Any]) -> Any:
    name, fields = content
    return _CLASSES[name](**{field: _unpacked(value) for field, value in fields.items()})


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _table(text: str) -> pa.Table:
    table = pa.ipc.open_stream(base64.b64decode(text, validate=True)).read_all()
    table.validate(full=True)
    return table


_KINDS: dict[str, Callable[[Any], Any]] = {
    "enum": lambda content: _ENUMS[content[0]][content[1]],
    "bytes": lambda content: base64.b64decode(content, validate=True),
    "tuple": lambda content: tuple(map(_unpacked, content)),
    "list": lambda content: [_unpacked(item) for item in content],
    "set": lambda content: frozenset(map(_unpacked, content)),
    "map": lambda content: {_unpacked(name): _unpacked(item) for name, item in content},
    "table": _table,
    "snapshot": _snapshot,
    "failure": lambda content: Failure(_unpacked_error(content)),
    "object": _object,
}
