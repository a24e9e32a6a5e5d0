"""The answers of tasks over Spark Connect, as data. A client can only make values of the classes listed here from them.

    text = to_text(answer)         # in a task
    from_text(text)                # in the client

Answers are numbers, texts, collections, enums, Arrow tables, and dataclasses of pydelta, nested in any way. They are JSON: each
value that is no number, text or null is an object with one entry, whose name is its kind. A pickle would let a server run code in
its clients. Errors travel as the name of their class and its arguments.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException

from delta_py.errors import DeltaError, rebuilt

# The classes that answers may contain, with their modules. They are imported on arrival, as tasks that answer need few of them.
_MODULES = {
    "DefinitionChanges": "delta_py.definition.evolve",
    "ChosenFiles": "delta_py.row_changes.dml",
    "ChosenBins": "delta_py.optimize.optimize_bins",
    "VersionChecksum": "delta_py.log.checksum",
    "Checkpoint": "delta_py.log.segment",
    "LastCheckpoint": "delta_py.log.last_checkpoint",
    "LogFile": "delta_py.log.segment",
    "LogSegment": "delta_py.log.segment",
    "AddCDCFile": "delta_py.protocol.actions",
    "AddFile": "delta_py.protocol.actions",
    "DomainMetadata": "delta_py.protocol.actions",
    "Metadata": "delta_py.protocol.actions",
    "Protocol": "delta_py.protocol.actions",
    "RemoveFile": "delta_py.protocol.actions",
    "SetTransaction": "delta_py.protocol.actions",
    "DeletionVectorDescriptor": "delta_py.protocol.deletion_vectors",
    "LogKind": "delta_py.protocol.paths",
    "Advice": "delta_py.report.facts",
    "ColumnSkipping": "delta_py.report.facts",
    "Commands": "delta_py.report.facts",
    "Commit": "delta_py.report.facts",
    "CommitFacts": "delta_py.report.facts",
    "Fault": "delta_py.report.facts",
    "FileFacts": "delta_py.report.facts",
    "FileMap": "delta_py.report.facts",
    "Identity": "delta_py.report.facts",
    "LogFacts": "delta_py.report.facts",
    "OperationTotals": "delta_py.report.facts",
    "OptimizeDebt": "delta_py.report.facts",
    "Partition": "delta_py.report.facts",
    "PartitionFacts": "delta_py.report.facts",
    "RetentionFacts": "delta_py.report.facts",
    "SizeBin": "delta_py.report.facts",
    "SkippingFacts": "delta_py.report.facts",
    "Stream": "delta_py.report.facts",
    "StreamFacts": "delta_py.report.facts",
    "TableFacts": "delta_py.report.facts",
    "Unknown": "delta_py.report.facts",
    "VacuumDebt": "delta_py.report.facts",
    "VacuumReason": "delta_py.report.facts",
    "VectorFacts": "delta_py.report.facts",
    "WriterTotals": "delta_py.report.facts",
    "ScanFile": "delta_py.scan.scan_state",
    "Snapshot": "delta_py.snapshot",
    "ColumnSummary": "delta_py.table_methods.table_summary",
    "TableSummary": "delta_py.table_methods.table_summary",
    "WrittenFiles": "delta_py.write.data_files",
    "RemovedRows": "delta_py.write.rewrite",
    "TaskChanges": "delta_py.write.task_changes",
    "TouchedRows": "delta_py.write.task_changes",
}


def to_text(answer: Any) -> str:
    """Convert an answer to text. Raises TypeError for a value of a class that no answer may contain."""
    return json.dumps(_packed(answer))


def from_text(text: str) -> Any:
    """Return the value that to_text converted. Raises DeltaError for a text of another form."""
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
    """The answer of a task whose step failed: the error, which the client raises. A task returns it and does not raise it,
    because Spark would repeat the task."""

    error: Exception


def _packed_error(error: Exception) -> dict[str, Any]:
    """Return an error as JSON: `classes`, the names of its class and its base classes, and its fields, which depend on the kind
    of error: a DeltaError, an OSError, or any other."""
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
    """Return a fact of an error as JSON; its text if no answer may contain its class."""
    try:
        return _packed(value)
    except TypeError:
        return str(value)


def _unpacked_error(value: Mapping[str, Any]) -> Exception:
    """Return the error that _packed_error converted. A DeltaError gets the nearest of its classes that this process knows; an
    error of any other kind except OSError becomes a RuntimeError."""
    if "message" in value:
        error_classes = {cls.__name__: cls for cls in _classes_from(DeltaError)}
        nearest_class, *_ = (error_classes[name] for name in value["classes"] if name in error_classes)
        parameters = {str(name): _unpacked(item) for name, item in value["parameters"].items()}
        return rebuilt(nearest_class, str(value["message"]), value["error_class"], value["sql_state"], parameters)
    if "errno" in value:
        return OSError(int(value["errno"]), value["strerror"], value["filename"])
    return RuntimeError(f"{value['classes'][0]}: {value['text']}")


def _classes_from(cls: type[DeltaError]) -> Iterator[type[DeltaError]]:
    """Yield the class and all its subclasses, except those of the same name that are also an exception of Spark. Those classes
    are created when an error is raised to the user, and cannot be created from a message alone.
    """
    yield cls
    for subclass in cls.__subclasses__():
        if not issubclass(subclass, PySparkException):
            yield from _classes_from(subclass)


# ---------------------------------------------------------------- values


def _packed(value: Any) -> Any:
    """Return the value in the form of JSON: `{"tuple": [1, 2]}` for the tuple (1, 2). Raises TypeError as to_text."""
    if value is None or (isinstance(value, bool | int | float) and not isinstance(value, Enum)):
        return value
    match value:
        case Enum() if _is_listed(value):
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
            return {"table": base64.b64encode(_arrow_stream(value)).decode()}
        case Failure():
            return {"failure": _packed_error(value.error)}
        case _ if _is_listed(value) and type(value).__name__ == "Snapshot":
            return {"snapshot": [_packed(part) for part in value.parts]}
        case _ if _is_listed(value):
            fields = {field.name: _packed(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return {"object": [type(value).__name__, fields]}
    raise TypeError(f"a {type(value).__name__} is nothing that a task may answer")


def _is_listed(value: Any) -> bool:
    """Return whether the value's class is one of _MODULES. A class of this name in another module is not."""
    return _MODULES.get(type(value).__name__) == type(value).__module__


def _listed_class(name: str) -> Any:
    """Return the class of this name. Raises KeyError unless it is one of _MODULES."""
    return getattr(importlib.import_module(_MODULES[name]), name)


def _unpacked(value: Any) -> Any:
    """Return the value that _packed converted."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    ((kind, content),) = value.items()
    return _READERS_BY_KIND[kind](content)


def _snapshot(parts: list[Any]) -> Any:
    """Return the snapshot with a store that this process opens: no options or credentials come from the server."""
    from delta_py.object_stores.open_store import open_store  # for the same reason as _MODULES

    segment, protocol, metadata, checksum = (_unpacked(part) for part in parts)
    return _listed_class("Snapshot")(open_store(segment.table_root), segment, protocol, metadata, checksum)


def _object(content: list[Any]) -> Any:
    """Return an object of a dataclass. content: the name of the class, and its fields by name."""
    name, fields = content
    cls = _listed_class(name)
    # The result needs a variable: inside of `if is_dataclass(cls)` mypy would take cls for an instance, which cannot be called.
    has_fields = dataclasses.is_dataclass(cls)
    if not has_fields:
        raise TypeError(f"{name} has no fields")
    return cls(**{field: _unpacked(value) for field, value in fields.items()})


def _enum(content: list[Any]) -> Any:
    """Return a member of an enum. content: the name of the class, and that of the member."""
    name, member = content
    cls = _listed_class(name)
    if not issubclass(cls, Enum):
        raise TypeError(f"{name} is no enum")
    return cls[member]


def _arrow_stream(table: pa.Table) -> bytes:
    """Return a table as a compressed Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _table(text: str) -> pa.Table:
    """Return a table from an Arrow stream in base64. Its content is checked, because it comes from a server."""
    table = pa.ipc.open_stream(base64.b64decode(text, validate=True)).read_all()
    table.validate(full=True)
    return table


# By the kind of a value in JSON, the function that makes the value of its content.
_READERS_BY_KIND: dict[str, Callable[[Any], Any]] = {
    "enum": _enum,
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
