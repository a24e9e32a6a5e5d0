"""Symbolic links below a table on this machine: what they lead to is there under more names than its own."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinkedPlace:
    """link: a symbolic link, by its whole name. place: what it leads to, relative to the table's root, which is empty itself."""

    link: str
    place: str
    is_directory: bool


def linked_places(root: str) -> Iterator[LinkedPlace]:
    """What the links below a directory lead to, and each step on the way there, as far as it lies below the directory too.
    Nothing is opened, and links to directories are not walked into. Raises OSError."""
    root = os.path.realpath(root)
    waiting = [root]
    while waiting:
        try:
            scanned = os.scandir(waiting.pop())
        except FileNotFoundError:  # it went away since it was listed
            continue
        with scanned as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield from _places(root, entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _places(root: str, link: str) -> Iterator[LinkedPlace]:
    below = root.rstrip("/") + "/"
    for place in _steps(link):
        if place.startswith(below):
            yield LinkedPlace(link, place.removeprefix(below), os.path.isdir(place))
        elif below.startswith(place.rstrip("/") + "/"):
            yield LinkedPlace(link, "", True)


def _steps(link: str) -> set[str]:
    """The names that a link leads to, through links that lie elsewhere, too. One that leads in a circle is among them."""
    steps: set[str] = set()
    while True:
        try:
            target = os.path.join(os.path.dirname(link), os.readlink(link))
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):  # no link, or nothing
                raise
            return steps
        directory, name = os.path.split(target)
        link = os.path.realpath(target) if name in ("", ".", "..") else os.path.join(os.path.realpath(directory), name)
        if link in steps:
            return steps
        steps.add(link)
