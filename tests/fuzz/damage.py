"""Damage to one file of any content: its bytes, its lines, its JSON, or another object at its path.

Each function changes the file and returns a description. It returns None and leaves the file as it is if the damage does not fit
it.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.fuzz.odd_values import mutated_json

SCALARS = [b"true\n", b"5\n", b'"x"\n', b"[]\n", b"null\n"]
PLACES = [
    *("missing", "directory", "full directory", "fifo", "socket", "link to itself", "link to nothing", "device"),
    *("random device", "other file", "link to other file"),
]


def damage_bytes(path: Path, rng: random.Random) -> str | None:
    data = bytearray(path.read_bytes())
    if not data:
        return None
    at = rng.choice([rng.randrange(len(data)), max(0, len(data) - 1 - rng.randrange(40))])
    what = rng.choice(["cut", "flip", "insert", "zero", "empty", "append", "double", "leave out"])
    match what:
        case "cut":
            del data[at:]
        case "flip":
            data[at] ^= 1 << rng.randrange(8)
        case "insert":
            data[at:at] = rng.randbytes(rng.choice([1, 7, 1000]))
        case "zero":
            data[at : at + 16] = bytes(len(data[at : at + 16]))
        case "empty":
            data.clear()
        case "append":
            data += rng.choice([b"\0" * 100, b"\n\n", b"{}\n", b"garbage", b"\xef\xbb\xbf"])
        case "double":
            data += bytes(data)
        case "leave out":
            del data[at : at + rng.choice([1, 4, 100])]
    path.write_bytes(data)
    return f"{what} at {at}"


def damage_json(path: Path, rng: random.Random) -> str | None:
    """One place of one line, each of which is JSON."""
    lines = path.read_bytes().split(b"\n")
    number = rng.randrange(len(lines))
    mutated = mutated_json(lines[number], rng)
    if mutated is None:
        return None
    lines[number] = mutated.text.encode("utf-8", "surrogatepass")
    path.write_bytes(b"\n".join(lines))
    return f"line {number + 1}, {mutated.what}"


def damage_lines(path: Path, rng: random.Random, scalars: Sequence[bytes] = SCALARS) -> str | None:
    lines = path.read_bytes().splitlines(keepends=True)
    if not lines:
        return None
    number = rng.randrange(len(lines))
    what = rng.choice(["drop", "double", "move", "garbage", "scalar"])
    match what:
        case "drop":
            del lines[number]
        case "double":
            lines.insert(number, lines[number])
        case "move":
            lines.insert(rng.randrange(len(lines)), lines.pop(number))
        case "garbage":
            lines.insert(number, b"{]\n")
        case "scalar":
            lines.insert(number, rng.choice(scalars))
    path.write_bytes(b"".join(lines))
    return f"{what} line {number + 1}"


def damage_place(path: Path, rng: random.Random, other_files: Sequence[Path] | None = None) -> str:
    """other_files: files whose content may replace the file's; by default those next to it."""
    what = rng.choice(PLACES)
    if other_files is None:
        other_files = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    other = rng.choice(other_files) if other_files else None
    content = b"" if other is None else other.read_bytes()
    path.unlink()
    actions: dict[str, Callable[[], Any]] = {
        "missing": lambda: None,
        "directory": path.mkdir,
        "full directory": lambda: (path.mkdir(), (path / path.name).write_bytes(content)),
        "fifo": lambda: os.mkfifo(path),
        "socket": lambda: _make_socket(path),
        "link to itself": lambda: path.symlink_to(path),
        "link to nothing": lambda: path.symlink_to(path.parent / "nothing"),
        "device": lambda: path.symlink_to("/dev/zero"),
        "random device": lambda: path.symlink_to("/dev/urandom"),
        "other file": lambda: path.write_bytes(content),
        "link to other file": lambda: path.symlink_to(other or path.parent / "nothing"),
    }
    actions[what]()
    return what


def _make_socket(path: Path) -> None:
    """Names of sockets are short, so it is bound from its directory."""
    before = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as bound_socket:
            bound_socket.bind("s")
        os.rename("s", path.name)
    finally:
        os.chdir(before)
