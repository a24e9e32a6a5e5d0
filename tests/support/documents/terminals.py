"""Programs on a pseudo terminal, and what their user sees.

    text = written_to_terminal("print(1, file=sys.stderr)", columns=80)
    screen_of(text)                # the lines at the end
    counts_in(text, "files")       # [(0, 40), (3, 40), ...], as a progress line has shown them
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

_CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")
_ROWS = 24


def written_to_terminal(code: str, columns: int, *, cwd: Path, timeout: float = 60, **environment: str) -> str:
    """Run Python code with a terminal of this width as stderr; return what it writes there. Raises AssertionError if it fails."""
    terminal, program_end = pty.openpty()
    fcntl.ioctl(program_end, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR", "PYDELTA_PROGRESS")}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=program_end, cwd=cwd,
        env={**env, "TERM": "xterm", **environment},
    ) as program:
        os.close(program_end)
        text = _read_to_the_end(terminal)
        code_of_end = program.wait(timeout)
    os.close(terminal)
    assert code_of_end == 0, text
    return text


def _read_to_the_end(terminal: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # Linux: all programs have closed their end
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()


def screen_of(text: str) -> list[str]:
    """The lines of a terminal without a right edge after this text. The last one has the cursor."""
    lines, row, column, place = [""], 0, 0, 0
    while place < len(text):
        control = _CONTROL.match(text, place)
        if control is not None:
            number, command = control[1], control[2]
            if command == "K":
                assert number == "2", f"erases in another way: {number}"
                lines[row] = ""
            elif command == "A":
                row = max(0, row - int(number or 1))
            else:
                assert command in "mhl", f"an unknown control sequence: {control[0]!r}"
            place = control.end()
            continue
        character, place = text[place], place + 1
        if character == "\r":
            column = 0
        elif character == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        else:
            lines[row] = lines[row][:column].ljust(column) + character + lines[row][column + 1 :]
            column += 1
    return lines


def shown_lines(text: str) -> list[str]:
    """Everything that was ever a line of the terminal, without colors, in the order of time."""
    return [line for line in re.split(r"[\r\n]+", _CONTROL.sub("", text)) if line.strip()]


def counts_in(text: str, unit: str) -> list[tuple[float, float]]:
    """What is done, and what is to be done, as the text has shown it one after the other."""
    found = re.findall(rf"([\d,.]+)/([\d,.]+) {unit}", _CONTROL.sub("", text))
    return [(float(done.replace(",", "")), float(total.replace(",", ""))) for done, total in found]
