"""A table on this machine's file system.

Writes are complete or absent: bytes go to a hidden temporary file in the same directory, are flushed to the disk, and get their
name in one step. `put_if_absent` takes the name by a hard link, which fails if the name is taken; this works on every POSIX file
system with links, including NFS.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from delta_py.errors import StorageError, UnsupportedOperationError
from delta_py.storage.arrow_files import AbortableFile
from delta_py.storage.regular_files import can_be_name, open_regular
from delta_py.storage.store import FileId, ObjectInfo, ObjectStore
from delta_py.storage.store_options import NO_OPTIONS, StorageOptions

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
# Parquet's writer makes several writes of a few bytes for each column.
_WRITE_BYTES = 256 * 1024
# With these errors the system says that it did not create the link, and never will.
_REFUSALS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EMLINK, errno.ENAMETOOLONG}
# With these errors the file system says that it has no hard links.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class LocalStore:
    """ObjectStore over a directory, in which other programs may have put any files.

    Only regular files are read, because a pipe or a device may never end. Symbolic links to files are followed. Links to
    directories are not entered, and nothing is written or deleted through them, or outside of the root.
    """

    __slots__ = ("_root",)

    def __init__(self, root: str) -> None:
        self._root = os.path.abspath(root)

    @property
    def root(self) -> str:
        return self._root

    @property
    def options(self) -> StorageOptions:
        return NO_OPTIONS

    @property
    def is_remote(self) -> bool:
        return False  # mounted or not: the operating system caches what was read

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalStore) and other._root == self._root

    def __hash__(self) -> int:
        return hash(self._root)

    def _locate(self, path: str) -> str:
        """The file's absolute name; `path` is relative to the root, absolute, or a file: URI without percent-encoding.

        Raises UnsupportedOperationError for a URI of another scheme or of another host; FileNotFoundError for a text that cannot
        be a file name.
        """
        if path.startswith("file:"):
            path = path.removeprefix("file:")
            if path.startswith("//"):
                host, _, path = path[2:].partition("/")
                check_host(host, f"file://{host}/{path}")
                path = f"/{path}"
        elif scheme := _URI.match(path):
            raise UnsupportedOperationError(
                f"{path} lies in another kind of storage than the table at {self._root}: no store serves {scheme[0]} here. "
                "Read the table from where its files can be reached.",
                path=path,
            )
        if not can_be_name(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return os.path.join(self._root, path)

    def _locate_below_root(self, path: str) -> str:
        """The absolute name of a file to write or delete: below the root, in directories that are not links.

        Raises StorageError.
        """
        parts = path.split("/")
        if (
            path.startswith("file:")
            or _URI.match(path)
            or not can_be_name(path)
            or any(part in ("", ".", "..") for part in parts)
        ):
            raise StorageError(
                f"{path!r} is not the name of a file below {self._root}. Nothing was written or deleted there.",
                root=self._root,
                path=path,
            )
        directory = self._root
        for part in parts[:-1]:
            directory = os.path.join(directory, part)
            if os.path.islink(directory):
                raise StorageError(
                    f"{directory} is a symbolic link. Nothing is written or deleted through links below the table's root, as "
                    "they may lead to other people's files. Put a directory in its place.",
                    root=self._root,
                    path=path,
                )
        return os.path.join(directory, parts[-1])

    # ------------------------------------------------------------ reading

    def list_from(self, directory: str, start: str = "") -> Iterator[ObjectInfo]:
        """The files directly in the directory whose names are at least `start`, in the order of the names' bytes."""
        start_bytes, is_ascii = os.fsencode(start), start.isascii()  # compared with an ASCII text, texts sort as their bytes do
        entries = self._scan(directory)
        chosen_entries = [
            entry for entry in entries if (entry.name >= start if is_ascii else os.fsencode(entry.name) >= start_bytes)
        ]
        chosen_entries.sort(key=lambda entry: os.fsencode(entry.name))
        prefix = f"{directory}/" if directory else ""
        for entry in chosen_entries:
            info = _info(entry, prefix + entry.name) or _directory_like_a_file(entry, prefix + entry.name)
            if info is not None:
                yield info

    def list_recursive(self, directory: str) -> Iterator[ObjectInfo]:
        """All files below the directory, in any order. Links to directories are not entered."""
        unread_directories = [directory]
        while unread_directories:
            current_directory = unread_directories.pop()
            prefix = f"{current_directory}/" if current_directory else ""
            for entry in self._scan(current_directory):
                if entry.is_dir(follow_symlinks=False):
                    unread_directories.append(prefix + entry.name)
                else:
                    info = _info(entry, prefix + entry.name)
                    if info is not None:
                        yield info

    def _scan(self, directory: str) -> Iterator[os.DirEntry[str]]:
        """The entries of a directory; none if the directory is missing. Reads them one by one, so that memory stays small."""
        try:
            name = self._locate(directory)
            with _impossible_path_is_missing(), os.scandir(name) as entries:
                yield from entries
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise StorageError(f"{name} is no directory, but a circle of links. Remove it, or restore the directory.") from error

    def read(self, path: str) -> bytes:
        with _impossible_path_is_missing(), open_regular(self._locate(path)) as file:
            return file.read(os.fstat(file.fileno()).st_size)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with _impossible_path_is_missing(), open_regular(self._locate(path)) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(min(offset, size))
            return file.read(min(length, max(size - offset, 0)))  # read() allocates as much memory as its argument says

    def open_input(self, path: str, size_bytes: int | None = None, *, is_size_verified: bool = False) -> pa.NativeFile:
        # Not memory-mapped: if a mapped file is truncated, the process is killed with SIGBUS.
        name = self._locate(path)
        with _impossible_path_is_missing():
            open_regular(name).close()  # raises for a directory or a pipe, on which OSFile would block or fail later
            return pa.OSFile(name, "rb")

    # ------------------------------------------------------------ writing

    def open_output(self, path: str) -> pa.NativeFile:
        """A stream for a new file, which has its name at once. Its bytes are durable once it is closed."""
        name = self._locate_below_root(path)
        _make_directory(os.path.dirname(name))
        try:
            return pa.BufferedOutputStream(pa.PythonFile(_DurableFile(name), mode="w"), _WRITE_BYTES)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO):  # a link, a pipe
                raise
            raise _not_written_error(name, error) from error

    def open_atomic_output(self, path: str) -> pa.NativeFile:
        """A stream for a file that gets its name, and replaces any other file, when the stream is closed."""
        name = self._locate_below_root(path)
        _make_directory(os.path.dirname(name))
        return AbortableFile.over(_AtomicFile(name))

    def copy_from(self, source: ObjectStore, source_path: str, path: str, size_bytes: int) -> bool:
        """Always False: the caller copies the bytes."""
        return False

    def link(self, path: str, new_path: str) -> bool:
        """Give a file a second name. False if this is not possible here. Raises FileExistsError if the new name is taken."""
        name, new_name = self._locate_below_root(path), self._locate_below_root(new_path)
        os.lstat(name)  # raises FileNotFoundError before a directory is created for nothing
        _make_directory(os.path.dirname(new_name))
        try:
            os.link(name, new_name, follow_symlinks=False)
        except OSError as error:
            # The file system has no links, the two names are on different devices, or the file has too many links.
            if error.errno in _NO_LINKS or error.errno in (errno.EXDEV, errno.EMLINK):
                return False
            raise
        _sync_directory(os.path.dirname(new_name))
        return True

    def put(self, path: str, data: bytes) -> None:
        """Write or replace a file: readers see the old or the new bytes."""
        name = self._locate_below_root(path)
        temporary_name = _write_temporary(name, data)
        try:
            _remove_hadoop_checksum(name)
            os.replace(temporary_name, name)
        except IsADirectoryError as error:
            _remove(temporary_name)
            raise _not_written_error(name, error) from error
        except OSError:
            _remove(temporary_name)
            raise
        _sync_directory(os.path.dirname(name))

    def put_if_absent(self, path: str, data: bytes, *, durably: bool = True) -> None:
        """Write a new file; of two callers only one succeeds. Raises FileExistsError; StorageError if nothing was written;
        other OSErrors if that is not known."""
        name = self._locate_below_root(path)
        if os.path.lexists(name):  # saves the temporary file; whether the name is free is decided by the link
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        try:
            temporary_name = _write_temporary(name, data, durably=durably)
        except OSError as error:
            raise _not_written_error(name, error) from error
        try:
            self._link_to_name(temporary_name, name)
        finally:
            _remove(temporary_name)
        if durably:
            _sync_directory(os.path.dirname(name))

    def abort_uploads(self, part_of_name: str) -> None:
        """Nothing to do: unfinished files are listed and deleted like others."""

    def delete(self, path: str) -> None:
        _remove(self._locate_below_root(path))

    def _link_to_name(self, temporary_name: str, name: str) -> None:
        """Give a temporary file its name. Raises FileExistsError if the name is taken; StorageError if nothing was created, and
        never will be; other OSErrors if that is not known."""
        try:
            os.link(temporary_name, name)
        except FileExistsError:
            # NFS may repeat a request whose reply was lost, and then report its own link as another writer's.
            if not os.path.samefile(temporary_name, name):
                raise
        except OSError as error:
            if error.errno in _REFUSALS:
                raise _not_written_error(name, error) from error
            if error.errno not in _NO_LINKS:
                raise
            raise StorageError(
                f"The file system of {self._root} cannot make hard links ({error.strerror}), so two writers could not be kept "
                "from overwriting each other's commit. Nothing was written. Keep the table on a file system with hard links.",
                root=self._root,
            ) from error


def check_host(host: str, url: str) -> None:
    """Raises UnsupportedOperationError for a file: URL of another host: a file of the same path on this machine is another
    file."""
    if host.lower() not in ("", "localhost"):
        raise UnsupportedOperationError(
            f"{url} names a file of the host {host!r}, and no store reads files of other hosts. Correct the path, or write "
            "file:///... for a file of this machine.",
            path=url,
            host=host,
        )


@contextlib.contextmanager
def _impossible_path_is_missing() -> Iterator[None]:
    """A name below a file, or a name that is too long, counts as missing, as in other stores."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ENAMETOOLONG):
            raise
        why = "a part of it is a file" if error.errno == errno.ENOTDIR else "it is too long"
        raise FileNotFoundError(errno.ENOENT, f"{os.strerror(errno.ENOENT)}: {why}", error.filename) from error


class _DurableFile(io.FileIO):
    """A new file whose bytes and name are on the disk once it is closed: a commit must never outlive a data file that it
    names."""

    def __init__(self, name: str) -> None:
        """name: replaces a regular file of that name. Raises OSError if the name is a link, which is not followed, or a pipe,
        which would block."""
        super().__init__(name, "w", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666))
        self._directory = os.path.dirname(name)

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        _write_fully(super().write, view)
        return len(view)

    def close(self) -> None:
        if not self.closed:
            try:
                os.fsync(self.fileno())
            finally:
                super().close()
            _sync_directory(self._directory)


class _AtomicFile(_DurableFile):
    """A new file that gets its name when it is closed; before, its name ends with `.part`. If it is aborted, or garbage-collected
    before it is closed, it leaves nothing."""

    def __init__(self, name: str) -> None:
        directory, base = os.path.split(name)
        self._name, self._temporary_name = name, os.path.join(directory, f"{base[:100]}.{uuid.uuid4().hex}.part")
        super().__init__(self._temporary_name)

    def close(self) -> None:
        if self.closed:
            return
        try:
            super().close()
            os.replace(self._temporary_name, self._name)
        except OSError:
            _remove(self._temporary_name)
            raise
        _sync_directory(self._directory)

    def abort(self) -> None:
        if not self.closed:
            io.FileIO.close(self)
            _remove(self._temporary_name)

    def __del__(self) -> None:
        """Python closes garbage-collected files, and an incomplete file of a writer that failed must not get its name."""
        if hasattr(self, "_directory"):  # it was opened successfully
            self.abort()


def _not_written_error(name: str, error: OSError) -> StorageError:
    return StorageError(f"{name} cannot be written: {error.strerror or error}. Nothing was written.", path=name)


def _write_temporary(name: str, data: bytes, *, durably: bool = True) -> str:
    """Write `data` into a hidden file next to `name`, by default flushed to the disk; returns its name. Leaves nothing if it
    fails."""
    directory, base = os.path.split(name)
    temporary_name = os.path.join(directory, f".{base[:100]}.{uuid.uuid4().hex}.tmp")
    _make_directory(directory)
    try:
        with open(temporary_name, "xb", buffering=0) as file:
            _write_all(file, data)
            if durably:
                os.fsync(file.fileno())
    except OSError:
        _remove(temporary_name)
        raise
    return temporary_name


def _remove(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)


def _remove_hadoop_checksum(name: str) -> None:
    """Hadoop's local file system stores a checksum next to a file, and its readers report other bytes as damage. Without a
    checksum they compare nothing."""
    directory, base = os.path.split(name)
    _remove(os.path.join(directory, f".{base}.crc"))


def _write_all(file: io.FileIO, data: bytes) -> None:
    _write_fully(file.write, memoryview(data))


def _write_fully(write: Any, view: memoryview) -> None:
    """Write all of `view` by repeated calls: one system call writes at most about 2 GiB and may write less. write: returns how
    many bytes it wrote."""
    while view:
        view = view[write(view) :]


def _info(entry: os.DirEntry[str], path: str) -> ObjectInfo | None:
    """A file as a listing shows it; None for a directory, and for a file that was deleted since the directory was read. A
    circular link is listed too, so that reading it raises an error. path: relative to the root."""
    try:
        if entry.is_dir():
            return None
        status = entry.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        status = entry.stat(follow_symlinks=False)
    file_id = FileId(status.st_dev, status.st_ino, status.st_ctime_ns)
    return ObjectInfo(path, status.st_size, status.st_mtime_ns // 1_000_000, file_id=file_id)


def _directory_like_a_file(entry: os.DirEntry[str], path: str) -> ObjectInfo | None:
    """List a directory whose name has an extension, like the files of a log: reading it raises an error with its name, and nobody
    concludes that the file never existed. The size is 1, because the log passes over checkpoints with an empty file. None for
    other directories."""
    if not os.path.splitext(entry.name)[1]:
        return None
    try:
        return ObjectInfo(path, 1, entry.stat().st_mtime_ns // 1_000_000) if entry.is_dir() else None
    except OSError:  # it was deleted since it was listed
        return None


def _make_directory(directory: str) -> None:
    """Create the directory and its parents. Each is durable before something is put into it."""
    if os.path.isdir(directory):
        return
    parent = os.path.dirname(directory)
    if parent != directory:
        _make_directory(parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory)
        _sync_directory(parent)


def _sync_directory(directory: str) -> None:
    """Make a name in the directory durable. Some file systems cannot sync a directory; then the sync of the file must suffice."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
