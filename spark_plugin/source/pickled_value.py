"""Values that travel through tasks unopened."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class PickledValue(Generic[T]):
    """A pickled value: a process that does not open it does not import what it is made of."""

    pickled: bytes

    @classmethod
    def of(cls, value: T) -> Self:
        return cls(pickle.dumps(value))

    def open(self) -> T:
        value: T = pickle.loads(self.pickled)
        return value
