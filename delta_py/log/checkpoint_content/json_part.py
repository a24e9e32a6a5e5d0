"""The top level of a JSON checkpoint.

Protocol: V2 Spec.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from delta_py.errors import CorruptTableError
from delta_py.log.checkpoint_content.checkpoint_files import (
    CheckpointUnreadableError,
    RawFiles,
    RequestedStats,
    decoding,
    raw_from_json,
)
from delta_py.log.commit_reader import CommitReader, FileRows
from delta_py.log.segment import LogFile

_LONG_DIGITS = 19  # digits of the largest 64-bit number; a longer text is no valid size


class JsonPart:
    """The top level of a UUID-named checkpoint in JSON. It may hold file actions itself, or name sidecars that hold them. The
    constructor raises CheckpointUnreadableError if the file is incomplete."""

    def __init__(self, file: LogFile, commits: CommitReader) -> None:
        self.file, self._commits = file, commits
        self._check_complete()

    def _check_complete(self) -> None:
        """Check that the file was not cut short: a file that was cut after a complete line still parses.

        The file must have the actions that every checkpoint has. If its tags record the total size of the sidecars, as some
        writers do, the sidecars that it names must have that size.
        """
        rows_by_action = {name: self.rows(name) for name in ("checkpointMetadata", "protocol", "metaData", "sidecar")}
        for name in ("checkpointMetadata", "protocol", "metaData"):
            if not rows_by_action[name]:
                raise CheckpointUnreadableError.of(self.file.path, f"it holds no {name} action, so it was cut short")
        tags = rows_by_action["checkpointMetadata"][0].get("tags") or {}
        if not isinstance(tags, dict):
            raise CheckpointUnreadableError.of(self.file.path, "the tags of its checkpointMetadata are no object")
        recorded_bytes = tags.get("sidecarSizeInBytes")
        total_bytes = sum(size for row in rows_by_action["sidecar"] if isinstance(size := row.get("sizeInBytes"), int))
        if (
            isinstance(recorded_bytes, str)
            and recorded_bytes.isdecimal()
            and (len(recorded_bytes) > _LONG_DIGITS or total_bytes < int(recorded_bytes))
        ):
            why = f"its sidecars have {total_bytes} bytes of the {recorded_bytes} that its tags say, so it was cut short"
            raise CheckpointUnreadableError.of(self.file.path, why)

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        """Convert all errors of a damaged file to CheckpointUnreadableError, so that the reader can use an older checkpoint."""
        with decoding(self.file.path):
            try:
                yield
            except CheckpointUnreadableError:
                raise
            except CorruptTableError as error:
                raise CheckpointUnreadableError.of(self.file.path, error.message) from error

    def rows(self, action: str) -> list[dict[str, Any]]:
        """All actions of one kind, as JSON objects. Raises CheckpointUnreadableError."""
        needle, rows = f'"{action}"'.encode(), []
        with self._decoding():
            for first, lines in self._commits.pieces(self.file):
                for number, line in enumerate(lines, first):
                    row = self._parse_object(number, line).get(action) if needle in line else None
                    if isinstance(row, dict):
                        rows.append(row)
                    elif row is not None:
                        raise CheckpointUnreadableError.of(self.file.path, f"line {number}: its {action} is no object")
        return rows

    @property
    def file_count(self) -> int | None:
        """The number of adds: 0 if all files are in sidecars; None if there are adds in this file, which are not counted here."""
        with self._decoding():
            return None if any(b'"add"' in line for _, lines in self._commits.pieces(self.file) for line in lines) else 0

    def _parse_object(self, number: int, line: bytes) -> dict[str, Any]:
        """The JSON object in a line. number: of the line, for errors."""
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise CheckpointUnreadableError.of(self.file.path, f"line {number}: {error}") from error
        if not isinstance(value, dict):
            raise CheckpointUnreadableError.of(self.file.path, f"line {number} is no object")
        return value

    def files(self, requested_stats: RequestedStats) -> Iterator[RawFiles]:
        """The add actions, batch by batch."""
        with self._decoding():
            for piece in self._commits.file_actions(self.file):
                yield raw_from_json(piece.adds, requested_stats)

    def file_rows(self) -> Iterator[FileRows]:
        """The adds and removes with all their fields."""
        with self._decoding():
            yield from self._commits.file_rows(self.file)
