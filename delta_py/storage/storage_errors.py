"""The error that users get when a file cannot be read or written: a StorageError that names the table and the file, not a bare
OSError.

    @raises_storage_errors(lambda table: table.snapshot.table_root)
    class DeltaTable: ...

    with storage_failures(store.root):
        convert(store, request)

Inside delta_py an OSError means that a call of the store may have had an effect, and a StorageError that it had none (store.py).
So only public methods turn an OSError into a StorageError, for their callers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isfunction
from typing import Any, TypeVar

from delta_py.errors import DeltaError, StorageError

C = TypeVar("C", bound=type)

# Called by `with` and by readers of Arrow streams. Other special methods, such as __repr__, access no storage.
_SPECIAL_METHODS = frozenset({"__enter__", "__exit__", "__arrow_c_stream__"})


def storage_error(error: OSError, root: str | None = None) -> StorageError:
    """The StorageError for an OSError; it names the files that the OSError names. root: of the table, or of several tables, if
    known."""
    what = error.strerror or str(error) or type(error).__name__
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    file = f" ({', '.join(names)})" if names else ""
    table = "" if root is None else f" of the table at {root}"
    return StorageError(
        f"A file{table} could not be read or written: {what}{file}. Committed versions are not affected; uncommitted changes "
        "are in no version. Check permissions and disk space, then run it again.",
        root=root,
        path=names[0] if names else root,
        errno=error.errno,
    )


@contextmanager
def storage_failures(root: str | Callable[[], str]) -> Iterator[None]:
    """An OSError from the block becomes a StorageError; an OSError that is also a DeltaError is not changed. root: of the table,
    or a function that returns it, which is called only after a failure."""
    try:
        yield
    except OSError as error:
        if isinstance(error, DeltaError):
            raise
        raise storage_error(error, root if isinstance(root, str) else root()) from error


def raises_storage_errors(root_of: Callable[[Any], str]) -> Callable[[C], C]:
    """A class decorator: the class's public methods and properties run inside storage_failures. root_of: returns the root of an
    object's table. Not for class methods and __init__, which have no such object yet."""

    def decorated(cls: C) -> C:
        for name, member in list(vars(cls).items()):
            if name.startswith("_") and name not in _SPECIAL_METHODS:
                continue
            if isfunction(member):
                setattr(cls, name, _guarded(member, root_of))
            elif isinstance(member, property) and member.fget is not None:
                setattr(cls, name, property(_guarded(member.fget, root_of), doc=member.__doc__))
        return cls

    return decorated


def _guarded(method: Callable[..., Any], root_of: Callable[[Any], str]) -> Callable[..., Any]:
    """The method, run inside storage_failures."""

    @wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with storage_failures(lambda: root_of(self)):
            return method(self, *args, **kwargs)

    return guarded
