"""Standard output and standard error of the process, which tell what they do not take from errors of a table."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO


class ReaderGone(Exception):
    """Nobody reads standard output any more."""


class AnswerLostError(Exception):
    """Standard output takes nothing more: the disk of its file is full."""


def mend_streams() -> None:
    """From here on a write to standard output that fails raises ReaderGone or AnswerLostError. What standard error does not take
    is lost: there is nobody left to tell, but by the exit code.

    A stream that was closed before the start takes what nobody reads, so that no file of a table gets its number. What the
    terminal cannot show is shown as `\\u65e5` and the like.
    """
    sys.stdout = _mended(sys.stdout, _Answers)
    sys.stderr = _mended(sys.stderr, _Messages)


def _mended(stream: TextIO | None, kind: type[_Stream]) -> TextIO:
    stream = open(os.devnull, "w") if stream is None else stream  # noqa: SIM115
    by_lines = getattr(stream, "line_buffering", False) or getattr(stream, "write_through", False)
    return io.TextIOWrapper(io.BufferedWriter(kind(stream)), stream.encoding, "backslashreplace", line_buffering=by_lines)


def close_stdout() -> None:
    """Nobody reads any more: what is left in buffers goes nowhere, instead of to an error at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Stream(io.RawIOBase):
    """The file of a stream without its buffer."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream  # which would close its file
        self._file = getattr(stream.buffer, "raw", stream.buffer)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()


class _Answers(_Stream):
    def write(self, data: Any) -> int | None:
        try:
            return self._file.write(data)
        except BrokenPipeError as error:
            raise ReaderGone from error
        except OSError as error:
            raise AnswerLostError(
                f"The answer could not be written to standard output as a whole: {error}. What the command did to a table, it "
                "did. Make room, or send the answer elsewhere."
            ) from error


class _Messages(_Stream):
    def write(self, data: Any) -> int | None:
        try:
            return self._file.write(data)
        except OSError:
            return len(data)
