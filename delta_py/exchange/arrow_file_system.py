"""A table's store as a file system of pyarrow.

    files = pa.fs.PyFileSystem(StoreFileSystem(store))
    pq.read_table("part-0.parquet", filesystem=files)

Paths are relative to the store's root; a `/` at their beginning is ignored, except that of a file which the table names by an
absolute path. Directories exist while they contain a file, as in object stores. Reads and writes follow the rules of the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.fs as pa_fs

from delta_py.errors import UnsupportedOperationError
from delta_py.storage.store import ObjectStore


class StoreFileSystem(pa_fs.FileSystemHandler):  # type: ignore[misc]
    """A file system of pyarrow over a store.

    sizes: the sizes in bytes of files that the caller knows, by their paths. A known size saves a request when the file is
    opened. The path of such a file is used unchanged, so it may be absolute.
    """

    def __init__(self, store: ObjectStore, sizes: Mapping[str, int] | None = None) -> None:
        self.store, self.sizes = store, dict(sizes or {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreFileSystem) and other.store == self.store

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.store.root)

    def get_type_name(self) -> str:
        return "delta"

    def normalize_path(self, path: str) -> str:
        return path

    # ------------------------------------------------------------ looking

    def get_file_info(self, paths: Iterable[str]) -> list[Any]:
        return [self._file_info(path) for path in paths]

    def _file_info(self, path: str) -> Any:
        """pyarrow's FileInfo of a file or directory, or of type NotFound. A path is a directory if there are files below it."""
        name = _store_path(path)
        directory, _, file_name = name.rpartition("/")
        # The store has no request for one file: the listing of its directory begins with it.
        info = (
            next((info for info in self.store.list_from(directory, file_name) if info.path == name), None) if file_name else None
        )
        if info is not None:
            return pa_fs.FileInfo(path, pa_fs.FileType.File, size=info.size_bytes, mtime=_utc_time(info.modification_time_ms))
        is_directory = not name or next(iter(self.store.list_recursive(name)), None) is not None
        return pa_fs.FileInfo(path, pa_fs.FileType.Directory if is_directory else pa_fs.FileType.NotFound)

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        """The files below a directory, and the directories that contain them. Raises FileNotFoundError.

        selector: pyarrow's FileSelector: the directory, and whether everything below it is listed or only its direct children.
        """
        base = _store_path(selector.base_dir)
        prefix = f"{base}/" if base else ""
        files = list(self.store.list_recursive(base))
        if not files and base and not selector.allow_not_found:
            raise FileNotFoundError(f"There is no directory {selector.base_dir}")
        infos: list[Any] = []
        directories: set[str] = set()
        for info in files:
            relative_path = info.path.removeprefix(prefix)
            *parents, _ = relative_path.split("/")
            directories |= {prefix + "/".join(parents[: depth + 1]) for depth in range(len(parents))}
            if selector.recursive or not parents:
                mtime = _utc_time(info.modification_time_ms)
                infos.append(pa_fs.FileInfo(info.path, pa_fs.FileType.File, size=info.size_bytes, mtime=mtime))
        shown_directories = (
            directories if selector.recursive else {name for name in directories if "/" not in name.removeprefix(prefix)}
        )
        return [*infos, *(pa_fs.FileInfo(name, pa_fs.FileType.Directory) for name in sorted(shown_directories))]

    # ------------------------------------------------------------ reading and writing

    def open_input_file(self, path: str) -> pa.NativeFile:
        size = self.sizes.get(path)
        return self.store.open_input(path if size is not None else _store_path(path), size, is_size_verified=size is not None)

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Mapping[str, str] | None = None) -> pa.NativeFile:
        return self.store.open_output(_store_path(path))

    def open_append_stream(self, path: str, metadata: Mapping[str, str] | None = None) -> pa.NativeFile:
        raise UnsupportedOperationError(f"Nothing can be appended to the object {path}. Write a new one.")

    # ------------------------------------------------------------ changing

    def create_dir(self, path: str, recursive: bool) -> None:
        """Does nothing: a directory exists as soon as it contains a file."""

    def delete_dir(self, path: str) -> None:
        for info in list(self.store.list_recursive(_store_path(path))):
            self.store.delete(info.path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        self.delete_dir(path)

    def delete_root_dir_contents(self) -> None:
        raise UnsupportedOperationError(
            "The files of a whole table are not deleted at once. Use VACUUM, or delete the directory."
        )

    def delete_file(self, path: str) -> None:
        self.store.delete(_store_path(path))

    def move(self, src: str, dest: str) -> None:
        self.copy_file(src, dest)
        self.delete_file(src)

    def copy_file(self, src: str, dest: str) -> None:
        with self.open_input_file(src) as source, self.open_output_stream(dest) as target:
            while data := source.read(8 << 20):
                target.write(data)


def _store_path(path: str) -> str:
    """The path relative to the store's root, without slashes at its begin and end."""
    return path.strip("/")


def _utc_time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
