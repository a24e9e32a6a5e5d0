"""Values that pass through tasks without being unpickled."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class PickledValue(Generic[T]):
    """A value that stays pickled until `open` is called. So a process that only passes the value on does not import the modules
    that its classes need."""

    pickled: bytes

    @classmethod
    def of(cls, value: T) -> Self:
        return cls(pickle.dumps(value))

    def open(self) -> T:
        """Unpickle the value."""
        value: T = pickle.loads(self.pickled)
        return value
