"""Files of this machine: which texts can name one, and that only regular ones are opened. A pipe or a device may never end, or
never begin."""

from __future__ import annotations

import errno
import os
import stat
from typing import IO

from delta_py.errors import StorageError


def can_be_name(text: str) -> bool:
    """Whether a file could have this name; how long names may be is for the disk to say."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # half of a character
        return False


def open_regular(name: str) -> IO[bytes]:
    """Raises StorageError for what is no regular file, OSError for what cannot be opened. A pipe without a writer would block
    when it is opened, too."""
    try:
        file = open(name, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))  # noqa: SIM115
    except IsADirectoryError as error:
        raise _not_regular(name) from error
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):  # links in a circle, a socket
            raise
        raise _not_regular(name) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _not_regular(name)
    return file


def _not_regular(name: str) -> StorageError:
    return StorageError(f"{name} is no regular file, and is not read. Remove it, or restore the file.", path=name)
