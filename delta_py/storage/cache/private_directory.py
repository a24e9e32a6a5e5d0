"""Directories that no other user can change or replace: data that is read from them later is trusted (entries of the cache).

    with PrivateDirectory.open(path) as directory:     # creates missing directories, with mode 700
        os.open(name, flags, dir_fd=directory.descriptor)

A check of the last directory is not enough. A user who may write to one of its ancestors can rename the next component and put
another directory in its place. So the path is walked from `/` on, each component is opened relative to the previous one, and
every one of them must satisfy this rule:

- It belongs to root or to this user. The last one belongs to this user.
- Neither its group nor others may write to it. An ancestor with the sticky bit, such as /tmp, is allowed: nobody can rename or
delete the entries of other users there, and the next component belongs to root or to this user.
- A symbolic link is followed only if it belongs to root or to this user. Its target is walked by the same rule.

The descriptor remains valid for the same directory, whatever the path leads to later.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import deque
from types import TracebackType
from typing import Self

_MODE = 0o700  # of directories that are created here
_MOST_LINKS = 40  # links in one path, as in Linux
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
_OPEN_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Linux opens a directory in this way even if this user may only pass through it, as through /home.
_PASS_FLAGS = _OPEN_FLAGS | getattr(os, "O_PATH", os.O_RDONLY)


class UnsafeDirectoryError(OSError):
    """Another user can change a directory, or replace it. path: of the component that breaks the rule. reason: why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(errno.EPERM, reason, path)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"{self.path} {self.reason}"


class PrivateDirectory:
    """An open directory. It is closed by `close`, at the end of a `with` block, or when nothing refers to it any more."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, make: bool = True) -> Self:
        """Open a directory after checking it and its ancestors. make: create missing directories.

        Raises UnsafeDirectoryError; other OSErrors if the directory is missing, cannot be created, or is not a directory.
        """
        return cls(_Walk(os.path.join(os.getcwd(), path), make).open_last())

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(OSError):  # the interpreter ends, and it is already closed
            self.close()


class _Walk:
    """The way from `/` to a directory, one component after the other. `_descriptor`: the open directory that was reached so far;
    `_reached_path`: its path."""

    def __init__(self, path: str, make: bool) -> None:
        self._make, self._links = make, 0
        self._remaining_parts = _path_parts(path)
        self._reached_path = "/"
        self._descriptor = os.open("/", _PASS_FLAGS)

    def open_last(self) -> int:
        """Open the directory step by step, so that nobody can exchange a part of the path that was already checked. Returns its
        descriptor, which the caller closes."""
        try:
            self._check_ancestor()
            while self._remaining_parts:
                self._enter_next(self._remaining_parts.popleft())
            self._check_last()
            return os.open(".", os.O_RDONLY | _OPEN_FLAGS, dir_fd=self._descriptor)
        finally:
            os.close(self._descriptor)

    def _enter_next(self, name: str) -> None:
        """Enter the next directory of the path, or follow the link that is there."""
        path = f"{self._reached_path.rstrip('/')}/{name}"
        try:
            status = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            if not self._make:
                raise
            with contextlib.suppress(FileExistsError):  # another process was faster
                os.mkdir(name, _MODE, dir_fd=self._descriptor)
            status = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            self._follow_link(name, status, path)
        else:
            # This fails if the name has become a link since then.
            self._enter(os.open(name, _PASS_FLAGS, dir_fd=self._descriptor), path)

    def _follow_link(self, name: str, status: os.stat_result, path: str) -> None:
        """Put the target of a link in front of the remaining components. status: of the link; path: of the link, for errors."""
        if status.st_uid not in (0, os.geteuid()):
            raise UnsafeDirectoryError(path, f"is a symbolic link that belongs to user {status.st_uid}")
        self._links += 1
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(name, dir_fd=self._descriptor)
        # A relative target continues from the directory that contains the link, an absolute one from `/`.
        self._remaining_parts.extendleft(reversed(_path_parts(target)))
        if target.startswith("/"):
            self._enter(os.open("/", _PASS_FLAGS), "/")

    def _enter(self, descriptor: int, path: str) -> None:
        """Continue from an open directory, and check it. path: of this directory, for errors."""
        os.close(self._descriptor)
        self._descriptor, self._reached_path = descriptor, path
        self._check_ancestor()

    def _check_ancestor(self) -> None:
        """Apply the rule for the directories above the last one. Raises UnsafeDirectoryError."""
        status = os.fstat(self._descriptor)
        if status.st_uid not in (0, os.geteuid()):
            raise UnsafeDirectoryError(self._reached_path, f"belongs to user {status.st_uid}")
        if status.st_mode & _WRITABLE and not status.st_mode & stat.S_ISVTX:
            raise self._writable_error(status)

    def _check_last(self) -> None:
        """Apply the stricter rule for the last directory. Raises UnsafeDirectoryError."""
        status = os.fstat(self._descriptor)
        if status.st_uid != os.geteuid():
            raise UnsafeDirectoryError(self._reached_path, f"belongs to user {status.st_uid}")
        if status.st_mode & _WRITABLE:
            raise self._writable_error(status)

    def _writable_error(self, status: os.stat_result) -> UnsafeDirectoryError:
        return UnsafeDirectoryError(self._reached_path, f"can be changed by other users (mode {stat.S_IMODE(status.st_mode):o})")


def _path_parts(path: str) -> deque[str]:
    """The names in a path, without empty ones and `.`. A `..` remains: the walk opens it like any other name."""
    return deque(part for part in path.split("/") if part not in ("", "."))
