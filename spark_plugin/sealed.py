"""Values that travel through tasks unopened."""

from __future__ import annotations

import pickle
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Sealed(Generic[T]):
    """A value that is pickled by itself: a process that does not open it does not import what it is made of."""

    def __init__(self, value: T) -> None:
        self._value: T | None = value
        self._bytes: bytes | None = None

    def open(self) -> T:
        if self._bytes is not None:
            self._value, self._bytes = pickle.loads(self._bytes), None
        value: Any = self._value
        opened: T = value
        return opened

    def __getstate__(self) -> dict[str, Any]:
        return {"_value": None, "_bytes": pickle.dumps(self._value) if self._bytes is None else self._bytes}
