"""Names of files as VACUUM compares them: which are needed, which are hidden, which lie in a table of their own.

    needed = NeededFiles(paths_of(tables))            # path and deletion_vector: of a version's files, or of tombstones
    batch.filter(pc.invert(needed.contains(batch["path"])))

A name takes eight bytes here, whatever its length: its hash. Two names with the same hash count as the same name, so a file that
could be deleted may be retained.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.protocol.column_mapping import to_physical
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.protocol.paths import CHANGE_DATA_DIRECTORY, LOG_DIRECTORY, are_plain
from delta_py.protocol.table_config import TableConfig
from delta_py.storage.links import linked_places
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import find_path

_log = logging.getLogger("delta_py")

Paths: TypeAlias = pa.Array | pa.ChunkedArray
_LISTING_THREADS = 16  # threads that look for the logs of other tables


class PathSet:
    """A set of many file names."""

    def __init__(self, parts: Iterable[Paths]) -> None:
        hashes = [_hashes(part) for part in parts]
        self._hashes = np.unique(np.concatenate(hashes)) if hashes else np.empty(0, np.int64)

    def __bool__(self) -> bool:
        return len(self._hashes) > 0

    def contains(self, paths: Paths) -> pa.Array:
        """For each name, whether it is in the set."""
        if not len(self._hashes):
            return pa.repeat(False, len(paths))
        hashes = _hashes(paths)
        positions = np.searchsorted(self._hashes, hashes)
        positions[positions == len(self._hashes)] = 0  # a hash that is greater than all differs from the first one, too
        return pa.array(self._hashes[positions] == hashes)


def _hashes(paths: Paths) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The hash of each name. Hashes are valid only in this process: text has other hashes in the next one."""
    return np.fromiter(map(hash, paths.to_pylist()), np.int64, len(paths))


class NeededFiles:
    """Names that must stay: of data files and of their deletion vectors. Names that are not plain (absolute, or with parts such
    as `..`) are compared by their last part, because a listing may spell them differently.
    """

    def __init__(self, parts: Iterable[Paths]) -> None:
        self._odd_names: set[str] = set()
        self._plain = PathSet(self._select_plain(parts))

    def __bool__(self) -> bool:
        """Whether there are any names."""
        return bool(self._plain) or bool(self._odd_names)

    def _select_plain(self, parts: Iterable[Paths]) -> Iterator[Paths]:
        """The plain paths, which VACUUM can compare as a whole. Notes the last parts of all others in `_odd_names`."""
        for paths in parts:
            is_plain = are_plain(paths)
            odd_paths = paths.filter(pc.invert(is_plain)).to_pylist()
            self._odd_names.update(path.rstrip("/").rpartition("/")[2] for path in odd_paths)
            yield paths.filter(is_plain) if odd_paths else paths

    def contains(self, paths: Paths) -> pa.Array:
        """For each name, whether it must stay."""
        is_same_path = self._plain.contains(paths)
        if not self._odd_names:
            return is_same_path
        names = pc.replace_substring_regex(paths, "^.*/", "")
        is_same_name = pc.is_in(names, pa.array(self._odd_names, pa.string()))
        return pc.or_(is_same_path, is_same_name.combine_chunks() if isinstance(is_same_name, pa.ChunkedArray) else is_same_name)


def paths_of(tables: Iterable[pa.Table]) -> Iterator[Paths]:
    """The names of files and of the files of their deletion vectors."""
    for table in tables:
        yield table["path"]
        yield vector_files(table)


def vector_files(table: pa.Table) -> pa.Array:
    """The files that contain the deletion vectors of a table's column `deletion_vector`, each once."""
    vectors = table["deletion_vector"].drop_null().combine_chunks()
    columns = {name: pc.struct_field(vectors, name) for name in ("storageType", "pathOrInlineDv")}
    distinct_vectors = pa.table(columns).group_by(list(columns)).aggregate([])
    rows = zip(*distinct_vectors.to_pydict().values(), strict=True)
    files = {DeletionVectorDescriptor(kind, place, None, 0, 0).checked().path for kind, place in rows}
    return pa.array(files - {None}, pa.string())


def is_text(path: str) -> bool:
    """Whether a column of strings can contain the name: names of files on this machine may be invalid text."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class HiddenNames:
    """Recognizes hidden files and directories, whose names begin with `_` or `.`: VACUUM retains them. partitions: prefixes of
    the names of partition directories. These are never hidden, whatever their first letter."""

    partitions: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, config: TableConfig) -> HiddenNames:
        """The hidden names of a table. Its partition directories may have logical or physical names of columns."""
        mode = config.column_mapping_mode
        columns = [find_path(config.schema, (name,))[0] for name in config.partition_columns]
        names = {name for column in columns for name in (column.name, to_physical(column, mode).name)}
        return cls(tuple(f"{name}=" for name in sorted(names)))

    def are_hidden(self, paths: Paths) -> Paths:
        """For each path, whether it is hidden: a part of it begins with `_` or `.`, apart from directories of partitions and of
        change data."""
        paths = pc.replace_substring_regex(paths, f"^{CHANGE_DATA_DIRECTORY}(/|$)", r"\1")
        for name in self.partitions:
            if name.startswith(("_", ".")):
                # Each letter as its code point, because a name may have letters with a meaning in regular expressions.
                text = "".join(f"\\x{{{ord(letter):x}}}" for letter in name)
                paths = pc.replace_substring_regex(paths, f"(^|/){text}", r"\1=")
        return pc.match_substring_regex(paths, "(?:^|/)[_.]")

    def is_partition(self, directory: str) -> bool:
        """Whether all parts of a directory's name, of data or of change data, are partition directories."""
        parts = directory.removeprefix(f"{CHANGE_DATA_DIRECTORY}/").split("/")
        return all(part.startswith(self.partitions) for part in parts)


# ---------------------------------------------------------------- links below the table


def are_linked(store: ObjectStore, paths: Paths) -> pa.Array:
    """For each path below the root, whether it is the target of a symbolic link, or lies below a target. Logs the links to
    directories that have such paths. Raises OSError.
    """
    if store.is_remote or not len(paths):  # no remote store has links
        return pa.repeat(False, len(paths))
    targets = [target for target in linked_places(store.root) if is_text(target.place)]
    is_linked = PathSet([pa.array([target.place for target in targets], pa.string())]).contains(paths)
    for directory in (target for target in targets if target.is_directory):
        # The root's place is the empty text: every path lies below it.
        prefix = f"{directory.place}/" if directory.place else ""
        is_below = pc.starts_with(paths, prefix)
        if pc.any(is_below).as_py():
            _log.warning("%s: what is in %r stays, because %r leads there", store.root, directory.place or ".", directory.link)
        is_linked = pc.or_(is_linked, is_below)
    return is_linked


# ---------------------------------------------------------------- tables below the table


def table_above(path: str) -> str | None:
    """The directory of a table below this one, if the path is in its log; else None."""
    directory, separator, _ = path.rpartition(f"/{LOG_DIRECTORY}/")
    return directory if separator else None


def find_tables_above(store: ObjectStore, paths: Paths, hidden: HiddenNames) -> set[str]:
    """The directories above the paths that are tables themselves. Each directory is checked for a log, except those whose names
    consist of partitions of this table. Raises OSError.
    """
    parent_directories = pc.unique(pc.replace_substring_regex(paths, "/?[^/]*$", "")).to_pylist()
    directories = {directory[:end] for directory in parent_directories for end in _directory_ends(directory)}
    checked_directories = sorted(
        directory for directory in directories - {CHANGE_DATA_DIRECTORY} if not hidden.is_partition(directory)
    )

    def is_table(directory: str) -> bool:
        return next(store.list_from(f"{directory}/{LOG_DIRECTORY}"), None) is not None

    with ThreadPoolExecutor(_LISTING_THREADS, "delta_py-vacuum") as pool:
        return {
            directory
            for directory, has_log in zip(checked_directories, pool.map(is_table, checked_directories), strict=True)
            if has_log
        }


def _directory_ends(directory: str) -> list[int]:
    """The positions at which the names of a directory and of its parents end."""
    return [match.start() for match in re.finditer("/|$", directory)] if directory else []
