"""Standard output and standard error of the process. Their write errors differ from errors of a table."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO


class ReaderGone(Exception):
    """Nobody reads standard output any more."""


class AnswerLostError(Exception):
    """Standard output accepts no more data: the disk of its file is full."""


def mend_streams() -> None:
    """After this call, a failed write to standard output raises ReaderGone or AnswerLostError. If a write to standard error
    fails, its text is lost, because only the exit code is left to report it.

    A stream that was closed before the start is opened on the null device, so that no file of a table gets its number. Characters
    that the terminal cannot show are shown as `\\u65e5` and so on.
    """
    sys.stdout = _mended(sys.stdout, _Answers)
    sys.stderr = _mended(sys.stderr, _Messages)


def _mended(stream: TextIO | None, kind: type[_Stream]) -> TextIO:
    """A stream that writes to the same file. kind: the class that handles its write errors."""
    stream = open(os.devnull, "w") if stream is None else stream  # noqa: SIM115
    by_lines = getattr(stream, "line_buffering", False) or getattr(stream, "write_through", False)
    return io.TextIOWrapper(io.BufferedWriter(kind(stream)), stream.encoding, "backslashreplace", line_buffering=by_lines)


def close_stdout() -> None:
    """Nobody reads the output any more: buffered data is dropped, so that it causes no error at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Stream(io.RawIOBase):
    """The file of a stream, without its buffer."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream  # otherwise it would close its file
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
