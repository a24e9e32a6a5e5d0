"""Symlink manifests: lists of a version's data files, which engines without Delta read as a Hive table (Presto, Athena).

    write_manifests(store)                            # all manifests, for the newest version
    update_manifests(store, config, actions)             # those of the partitions that a commit changed

`_symlink_format_manifest/day=2024-05-01/manifest` has a line for each file of the partition: its absolute path, nothing escaped.
A manifest is replaced as a whole. A manifest whose partition no longer has files is deleted after all others are written. Readers
of manifests do not know deletion vectors or column mapping, so tables with these are refused before anything is written.

Several writers may commit at the same time, and the manifests of an older commit may be written late. So each writer of manifests
checks afterwards whether there is a newer version, and then writes them again for that version. The last writer has therefore
written the newest version.
Protocol: Table Properties; Data Files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import ConcurrentWriteException, UnsupportedOperationError, shown
from delta_py.log.segment import list_log
from delta_py.protocol.actions import Action, AddFile, Metadata, RemoveFile
from delta_py.protocol.paths import partition_directory, resolve
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.file_pruner import partition_texts
from delta_py.snapshot import Snapshot
from delta_py.storage.addresses import location_of
from delta_py.storage.store import ObjectStore

MANIFEST_DIRECTORY = "_symlink_format_manifest"

_MANIFEST = "manifest"
_HADOOP_CHECKSUM = ".manifest.crc"  # Hadoop writes such a file next to each local file
_WRITERS = 16
_ROUNDS = 10  # how often manifests are written again because others have committed
_ROWS = pa.schema([("directory", pa.string()), ("line", pa.string())])


@dataclass(frozen=True, slots=True)
class Manifests:
    """How many manifests were written and deleted, and for which version."""

    version: int
    written: int
    deleted: int


def write_manifests(store: ObjectStore, directories: frozenset[str] | None = None) -> Manifests:
    """Write manifests for the newest version. directories: the partitions' directories whose manifests are written; None for all.

    Raises UnsupportedOperationError (DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS,
    DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING). Raises OSError and StorageError: then some manifests are written,
    each complete. Raises ConcurrentWriteException if other writers keep committing.
    """
    for _ in range(_ROUNDS):
        snapshot = Snapshot.load(store)
        manifests = _write_snapshot(snapshot, directories)
        if list_log(store, snapshot.version + 1).newest() is None:  # no newer version, so the manifests are up to date
            return manifests
    raise ConcurrentWriteException(
        f"While manifests of the table at {store.root} were written, others committed, {_ROUNDS} times. They are not up to date. "
        "Generate them again when fewer writers are at work."
    )


def update_manifests(store: ObjectStore, config: TableConfig, actions: Sequence[Action]) -> Manifests | None:
    """Bring the manifests up to date after a commit. config: as the commit left it. Raises as write_manifests.

    All manifests are written if there are none yet, and if the commit changed the table's metadata.
    """
    files = [action for action in actions if isinstance(action, AddFile | RemoveFile)]
    has_new_metadata = any(isinstance(action, Metadata) for action in actions)
    if not has_new_metadata and not files:
        return None
    writes_all = has_new_metadata or not config.partition_columns
    # None: write the manifests of all partitions.
    directories = None if writes_all else _directories_of(files, config.partition_columns)
    if next(iter(store.list_recursive(MANIFEST_DIRECTORY)), None) is None:  # there are no manifests yet
        directories = None
    return write_manifests(store, directories)


def _directories_of(files: Sequence[AddFile | RemoveFile], columns: Sequence[str]) -> frozenset[str] | None:
    """The directories of the files' partitions; None if a removed file does not state its partition."""
    directories = set()
    for file in files:
        if file.partition_values is None:
            return None
        directories.add(partition_directory((name, file.partition_values.get(name)) for name in columns))
    return frozenset(directories)


# ---------------------------------------------------------------- one version


def _write_snapshot(snapshot: Snapshot, directories: frozenset[str] | None) -> Manifests:
    """Write the manifests of these directories, and delete those of directories without files. directories: None for all."""
    store = snapshot.store
    rows = _manifest_rows(snapshot, directories)
    texts = dict(_manifest_texts(rows))
    if directories is None and not snapshot.config.partition_columns:
        texts.setdefault("", "")  # a table without files is a manifest without lines
    # stale: directories with a manifest, or whose files were removed, that have no files now.
    stale = sorted((_existing_directories(store) if directories is None else directories) - texts.keys())

    def put(item: tuple[str, str]) -> None:
        directory, text = item
        _delete_checksum(store, directory)
        store.put(_path(directory, _MANIFEST), text.encode())

    def delete(directory: str) -> None:
        _delete_checksum(store, directory)
        store.delete(_path(directory, _MANIFEST))

    # Going through the results raises the first error. All manifests are written before any is deleted.
    with ThreadPoolExecutor(_WRITERS, "delta_py-manifests") as pool:
        for _ in pool.map(put, texts.items()):
            pass
        for _ in pool.map(delete, stale):
            pass
    return Manifests(snapshot.version, len(texts), len(stale))


def _delete_checksum(store: ObjectStore, directory: str) -> None:
    """Delete the file next to a local manifest in which Hadoop keeps its checksum. It would not match the new content."""
    if not store.is_remote:
        store.delete(_path(directory, _HADOOP_CHECKSUM))


def _path(directory: str, name: str) -> str:
    """The path of a file next to the manifests. directory: of the partition; "" without partition columns."""
    return "/".join(filter(None, (MANIFEST_DIRECTORY, directory, name)))


def _existing_directories(store: ObjectStore) -> frozenset[str]:
    """The directories that have a manifest, relative to the directory of all manifests."""
    prefix = f"{MANIFEST_DIRECTORY}/"
    manifest_paths = (info.path.removeprefix(prefix) for info in store.list_recursive(MANIFEST_DIRECTORY))
    return frozenset(path.rpartition("/")[0] for path in manifest_paths if path.rpartition("/")[2] == _MANIFEST)


def _manifest_texts(rows: pa.Table) -> Iterator[tuple[str, str]]:
    """Each directory with the text of its manifest. rows: as from _manifest_rows, sorted."""
    if not rows.num_rows:
        return
    # `starts`: the rows at which another directory begins.
    numbers = rows["directory"].combine_chunks().dictionary_encode().indices.to_numpy()
    starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    for start, stop in pairwise([*starts, rows.num_rows]):
        lines = rows["line"].slice(start, stop - start).to_pylist()
        yield rows["directory"][start].as_py(), "".join(f"{line}\n" for line in lines)


def _manifest_rows(snapshot: Snapshot, directories: frozenset[str] | None) -> pa.Table:
    """The partition's directory and the manifest's line of each file: a table of the schema _ROWS, sorted. directories: None for
    all. Raises UnsupportedOperationError if manifests cannot express the table."""
    config = snapshot.config
    _check_mapping(snapshot)
    requested_directories = None if directories is None else pa.array(sorted(directories), pa.string())
    root = location_of(snapshot.table_root)
    batches = []
    for batch in snapshot.file_batches():
        files = batch.files
        _check_vectors(snapshot, files)
        directory = _directory_of_files(files, config.partition_columns)
        if requested_directories is not None:
            is_requested = pc.is_in(directory, requested_directories)
            files, directory = files.filter(is_requested), directory.filter(is_requested)
        lines = [location_of(resolve(root, path)) for path in files["path"].to_pylist()]
        batches.append(pa.RecordBatch.from_arrays([directory, pa.array(lines, pa.string())], schema=_ROWS))
    rows = pa.Table.from_batches(batches, _ROWS).sort_by([("directory", "ascending"), ("line", "ascending")])
    _check_lines(snapshot, rows["line"])
    return rows


def _directory_of_files(files: pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
    """The partition's directory of each file; "" without partition columns. columns: the partition columns' names."""
    if not columns:
        return pa.repeat("", files.num_rows)
    levels = []
    for name in columns:
        texts = pc.fill_null(partition_texts(files, name), "").dictionary_encode()
        names = pa.array([partition_directory([(name, text)]) for text in texts.dictionary.to_pylist()], pa.string())
        levels.append(names.take(texts.indices))
    return pc.binary_join_element_wise(*levels, "/")


# ---------------------------------------------------------------- what manifests cannot express


def _check_mapping(snapshot: Snapshot) -> None:
    """Raises UnsupportedOperationError if the table has column mapping."""
    if snapshot.config.column_mapping_mode != "none":
        raise UnsupportedOperationError(
            f"The table at {snapshot.table_root} maps its columns to other names in the files, which engines that read by "
            "manifests do not know. Nothing was written. Write its rows to a table without column mapping.",
            error_class="DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
            sql_state="0AKDC",
        )


def _check_vectors(snapshot: Snapshot, files: pa.RecordBatch) -> None:
    """Raises UnsupportedOperationError if any of the files has a deletion vector."""
    vectors = files["deletion_vector"]
    if vectors.null_count < len(vectors):
        path = files["path"].filter(vectors.is_valid())[0].as_py()
        raise UnsupportedOperationError(
            f"Rows of the table at {snapshot.table_root} are deleted by deletion vectors, such as in {path}; engines that read "
            "by manifests would show them. Nothing was written. Set delta.enableDeletionVectors to false, and have OPTIMIZE "
            "rewrite the files (spark.databricks.delta.optimize.maxDeletedRowsRatio set to 0).",
            error_class="DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS",
            sql_state="0A000",
            path=path,
        )


def _check_lines(snapshot: Snapshot, lines: pa.ChunkedArray) -> None:
    """Raises UnsupportedOperationError if a file's location has a line break."""
    broken = lines.filter(pc.match_substring_regex(lines, "[\n\r]"))
    if len(broken):
        raise UnsupportedOperationError(
            f"A file of the table at {snapshot.table_root} has a line break in its name ({shown(broken[0].as_py())}), and "
            "manifests have a line for each file. Nothing was written. Write the table's rows to another one.",
            path=broken[0].as_py(),
        )
