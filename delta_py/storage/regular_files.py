"""Files of this machine: which texts can be file names, and a function that opens only regular files. A pipe or a device may
never end, or never begin."""

from __future__ import annotations

import errno
import os
import stat
from typing import IO

from delta_py.errors import StorageError


def can_be_name(text: str) -> bool:
    """Whether a file could have this name. The maximum length is up to the file system."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def open_regular(name: str) -> IO[bytes]:
    """Open a regular file for reading. Raises StorageError if it is not a regular file, OSError if it cannot be opened. A pipe
    without a writer would block, so every file is opened without blocking."""
    try:
        file = open(name, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))  # noqa: SIM115
    except IsADirectoryError as error:
        raise _not_regular(name) from error
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):  # circular links, a socket
            raise
        raise _not_regular(name) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _not_regular(name)
    return file


def _not_regular(name: str) -> StorageError:
    return StorageError(f"{name} is no regular file, and is not read. Remove it, or restore the file.", path=name)
