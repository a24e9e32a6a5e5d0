"""Values that pass through tasks without being unpickled."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class PickledValue(Generic[T]):
    """A pickled value. A process that does not unpickle it does not import the modules that it needs."""

    pickled: bytes

    @classmethod
    def of(cls, value: T) -> Self:
        return cls(pickle.dumps(value))

    def open(self) -> T:
        """Unpickle the value."""
        value: T = pickle.loads(self.pickled)
        return value
