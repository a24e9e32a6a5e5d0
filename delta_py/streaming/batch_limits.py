"""How much a batch of a stream may hold, and how many numbered files fit into it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from delta_py.errors import InvalidOptionError
from delta_py.streaming.offset import BEFORE_FIRST


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a batch may hold; None for no limit. A batch ends with the file that reaches a limit. It also ends before a group
    of files that cannot be divided and would exceed a limit, unless that group comes first."""

    files: int | None = None
    bytes: int | None = None


class Budget:
    """The remaining limits of a batch. has_taken: whether the batch has a file, so that it may end. Raises InvalidOptionError for
    limits below 1."""

    def __init__(self, limits: Limits) -> None:
        for name, value in (("maxFilesPerTrigger", limits.files), ("maxBytesPerTrigger", limits.bytes)):
            if value is not None and value < 1:
                raise InvalidOptionError(f"{name} is {value}; it must be at least 1.", option=name)
        self._files, self._bytes = limits.files, limits.bytes
        self.has_taken = False

    @property
    def is_spent(self) -> bool:
        """Whether a limit is reached, so that no other file may be taken."""
        return (self._files is not None and self._files <= 0) or (self._bytes is not None and self._bytes <= 0)

    def take(self, pieces: Iterator[tuple[Any, Any]], *, all_or_none: bool = False) -> int | None:
        """Take files while the limits allow it. Returns the index of the last taken file if more files follow, None if all were
        taken.

        pieces: (indexes, sizes in bytes) of the files, two numpy arrays of equal length, with ascending indexes.
        all_or_none: take all files or none, for commits that must not be divided. Returns BEFORE_FIRST if it takes none, which is
        only possible after files of an earlier version were taken."""
        if all_or_none:
            return self._take_all_or_none([sizes for _, sizes in pieces])
        last_index: int | None = None
        for indexes, sizes in pieces:
            if len(indexes) == 0:
                continue
            count = self._count_affordable(sizes)
            if count:
                last_index, self.has_taken = int(indexes[count - 1]), True
                self._files = None if self._files is None else self._files - count
                self._bytes = None if self._bytes is None else self._bytes - int(sizes[:count].sum())
            if count < len(indexes):
                return last_index
        return None

    def _take_all_or_none(self, sizes: list[Any]) -> int | None:
        """Take all files and return None, or take none and return BEFORE_FIRST if they exceed the limits. The first files of a
        batch are taken even if they exceed the limits: otherwise the stream could never read them. sizes: arrays of the files'
        sizes in bytes."""
        count, size = sum(map(len, sizes)), sum(int(part.sum()) for part in sizes)
        fits = (self._files is None or count <= self._files) and (self._bytes is None or size <= self._bytes)
        if count and self.has_taken and not fits:
            return BEFORE_FIRST
        self.has_taken = self.has_taken or count > 0
        self._files = None if self._files is None else self._files - count
        self._bytes = None if self._bytes is None else self._bytes - size
        return None

    def _count_affordable(self, sizes: Any) -> int:
        """How many of the next files the limits allow. A file is allowed if the bytes before it do not reach the limit: the file
        that reaches the limit is the last one."""
        count = len(sizes) if self._files is None else min(len(sizes), self._files)
        if self._bytes is None:
            return count
        size_before = np.cumsum(sizes) - sizes
        return min(count, int(np.searchsorted(size_before, self._bytes, side="left")))
