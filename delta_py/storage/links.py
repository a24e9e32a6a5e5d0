"""Symbolic links below a table on this machine. A target below the table can be reached by its own path and by the link's
path."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinkedPlace:
    """A target of a symbolic link. link: the absolute path of the link. place: the target, relative to the table's root; empty
    for the root itself. is_directory: of the target."""

    link: str
    place: str
    is_directory: bool


def linked_places(root: str) -> Iterator[LinkedPlace]:
    """The targets of the links below a directory, including each intermediate step, if they lie below the directory too. Opens no
    file, and does not follow links to directories. Raises OSError."""
    root = os.path.realpath(root)
    unread_directories = [root]
    while unread_directories:
        try:
            entries_of_directory = os.scandir(unread_directories.pop())
        except FileNotFoundError:  # it was deleted since it was listed
            continue
        with entries_of_directory as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield from _linked_places_of(root, entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    unread_directories.append(entry.path)


def _linked_places_of(root: str, link: str) -> Iterator[LinkedPlace]:
    """The places below the root that the link's steps pass; a link to a directory above the root reaches the root itself."""
    root_prefix = root.rstrip("/") + "/"
    for place in _link_steps(link):
        if place.startswith(root_prefix):
            yield LinkedPlace(link, place.removeprefix(root_prefix), os.path.isdir(place))
        elif root_prefix.startswith(place.rstrip("/") + "/"):
            yield LinkedPlace(link, "", True)


def _link_steps(link: str) -> set[str]:
    """The paths that a link leads to: its target and, if that is a link too, the next target, and so on. The set also has the
    last target, which is no link. For a circle of links it has every link of the circle."""
    steps: set[str] = set()
    while True:
        try:
            target = os.path.join(os.path.dirname(link), os.readlink(link))
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):  # not a link, or no such file
                raise
            return steps
        # Only the directory is resolved: if the target is a link itself, it is a step of its own. A target that ends with `..`
        # has no name that could be a link.
        directory, name = os.path.split(target)
        link = os.path.realpath(target) if name in ("", ".", "..") else os.path.join(os.path.realpath(directory), name)
        if link in steps:
            return steps
        steps.add(link)
