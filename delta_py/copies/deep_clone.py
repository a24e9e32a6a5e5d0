"""Deep clones: an independent table with the rows of another, whose files are copied byte by byte.

    done = deep_clone(Snapshot.load(source), target_store, replace_table=True)
    done["version"], done["metrics"]

The name of a copy is derived from the source's place and id, and from the file's entry in the log. A copy appears whole or not
at all. So a file of that name in the target is the copy: a repeated clone copies only new files, and a clone that died continues
from its copies. The commit comes last, and names only copies; until then the target is unchanged.

A copy that no version of the target references is reused only while it is younger than half of VACUUM's retention time. If
only the deletion vector of a data file has changed, the data file is not copied again.
Protocol: Add File and Remove File; Deletion Vector Descriptor Schema; Row Tracking.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.copies.clone import (
    CloneSource,
    clone_parameters,
    clone_transaction,
    load_table_to_replace,
    replace_files,
    scan_replaced_files,
)
from delta_py.definition.create import check_empty
from delta_py.errors import StorageError
from delta_py.index_commands.index_upkeep import index_clone
from delta_py.optimize.optimize import AtTable, here
from delta_py.progress import progress
from delta_py.protocol.actions import AddFile
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor, z85_encode
from delta_py.protocol.intervals import DELETED_FILE_RETENTION, retention_ms
from delta_py.protocol.paths import LOG_DIRECTORY, is_absolute
from delta_py.scan.planning import ScanOptions, plan_scan
from delta_py.scan.scan_state import ScanFile
from delta_py.snapshot import Snapshot
from delta_py.storage.listing import listed_objects
from delta_py.storage.store import ObjectStore
from delta_py.write.file_copies import COPY_SCHEMA, Copy, copy_files
from delta_py.write.rewrite import add_action_of

# The namespace of the ids in the names of copies. With another one, a repeated clone would copy all files again.
_ID_NAMESPACE = uuid.UUID("6d1c3f0e-7f0b-5a53-9c59-0f6f1c1f9b1d")
_ID = "[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
# Copies, unfinished copies, and temporary files of a process that died in its first commit.
_FILES_OF_CLONES = re.compile(
    rf"(.*/)?(cloned-{_ID}\.parquet|deletion_vector_{_ID}\.bin)(\.[0-9a-f]{{32}}\.part)?|{LOG_DIRECTORY}/\.[^/]*\.tmp"
)
_FRAME_BYTES = 8  # of a deletion vector in a file: 4 bytes before its data for the length, and 4 after them for the checksum

CopyAll: TypeAlias = Callable[[ObjectStore, ObjectStore, Sequence[Copy]], None]
"""Runs write.file_copies.copy_files, in parallel."""


@progress("CLONE", "bytes")
def deep_clone(
    source: Snapshot,
    target: ObjectStore,
    *,
    replace_table: bool = False,
    properties: Mapping[str, str] | None = None,
    copy_all: CopyAll = copy_files,
    run_at_table: AtTable = here,
) -> dict[str, Any]:
    """Make the table at the target a copy of a version; returns its version and the metrics of the commit.

    replace_table: an existing table loses its rows and becomes the clone; if it is a clone of the same source, only new files are
    copied. properties: set in addition to those of the source.
    Raises as clone_table, and DataFileError for files of the source that are missing or differ from the log. Finished copies
    stay, and the next run uses them.
    """
    old_table = run_at_table(partial(_load_table_to_replace, source, target, replace_table))
    clone = DeepClone(source, target, None if old_table is None else old_table.through(target), dict(properties or {}))
    copies = run_at_table(clone.find_missing_copies).to_pylist()
    if copies:
        copy_all(source.store, target, copies)
    return run_at_table(clone.commit, once=True)


def _load_table_to_replace(source: Snapshot, target: ObjectStore, replace_table: bool) -> Snapshot | None:
    return load_table_to_replace(source.table_root, target, replace_table=replace_table, check_free=_check_free)


def _check_free(target: ObjectStore) -> None:
    """Raises InvalidOptionError if the target, which has no table, has files, unless all of them are left from a clone that did
    not finish."""
    paths = listed_objects(target)["path"].to_pylist()
    if not all(_FILES_OF_CLONES.fullmatch(path) for path in paths):
        check_empty(target)


@dataclass(frozen=True, slots=True)
class DeepClone:
    """A clone in progress, small and picklable. replaced_table: the table that the clone replaces; None if there is none.
    properties: set in addition to those of the source."""

    source: Snapshot
    target: ObjectStore
    replaced_table: Snapshot | None
    properties: Mapping[str, str] = field(default_factory=dict)

    def find_missing_copies(self) -> pa.Table:
        """Find the copies that must be made: COPY_SCHEMA, large files first. Lists the target. Copies that the target has are
        left out, except those that VACUUM may delete before the commit."""
        copies = self._required_copies()
        return copies.filter(pc.invert(self._are_in_target(copies, self._oldest_reusable_ms()))).sort_by([("size", "descending")])

    def commit(self) -> dict[str, Any]:
        """Make the target the clone. Raises StorageError when a copy was deleted in the meantime, else as Transaction.commit."""
        copies = self._required_copies()
        missing_copies = copies.filter(pc.invert(self._are_in_target(copies, None)))
        if missing_copies.num_rows:
            raise StorageError(
                f"{missing_copies.num_rows} copies for the clone at {self.target.root} are gone, such as "
                f"{missing_copies['path'][0]}: something deleted them while the others were made. Nothing was "
                "committed. Run it again, without a VACUUM of the target at the same time."
            )
        return self._commit_clone()

    # ------------------------------------------------------------ the files

    def _files_with_copies(self) -> Iterator[tuple[ScanFile, AddFile]]:
        """Yield each file of the source, with the add action of its copy for the target's log."""
        for file in plan_scan(self.source, None, None, ScanOptions(keep_all=True)).scan_files():
            vector = None if file.deletion_vector is None else self._vector_of_copy(file.deletion_vector)
            yield file, replace(add_action_of(file), path=self._copy_path(file), path_text=None, deletion_vector=vector)

    def _copy_path(self, file: ScanFile) -> str:
        """The path of the copy. The name is unique in this source, and the same file always has the same name. The copy has the
        same directory as the file if VACUUM lists that directory, otherwise it lies in the target's root.
        """
        facts = (file.path, file.size_bytes, file.modification_time_ms, file.base_row_id, file.default_row_commit_version)
        name = f"cloned-{self._copy_id(*facts)}.parquet"
        directory = file.path.rpartition("/")[0]
        return f"{directory}/{name}" if _may_hold_copies(directory) else name

    def _vector_of_copy(self, vector: DeletionVectorDescriptor) -> DeletionVectorDescriptor:
        """The descriptor in the target's log. Readers derive the path of the copy from the id in it (storage type `u`)."""
        if vector.path is None:  # the vector is in the log itself
            return vector
        return replace(vector, storage_type="u", path_or_inline_dv=z85_encode(self._copy_id(vector.path).bytes))

    def _copy_id(self, *facts: Any) -> uuid.UUID:
        """An id for a copy. It is the same for the same facts of a file in the same source."""
        return uuid.uuid5(_ID_NAMESPACE, "\n".join(map(str, (self.source.table_root, self.source.metadata.id, *facts))))

    def _required_copies(self) -> pa.Table:
        """The copies of all files that the clone needs, as COPY_SCHEMA."""
        rows: list[tuple[str, str, int | None, int]] = []
        # For each file of deletion vectors, by the path of its copy: the path in the source, and the minimum size in bytes. A
        # file may hold many vectors, and the copy must reach to the end of the last one that the clone needs.
        vectors: dict[str, tuple[str, int]] = {}
        for file, add in self._files_with_copies():
            rows.append((file.path, add.path, file.size_bytes, file.size_bytes))
            old_vector, new_vector = file.deletion_vector, add.deletion_vector
            if old_vector is not None and new_vector is not None and old_vector.path is not None and new_vector.path is not None:
                end = (1 if old_vector.offset is None else old_vector.offset) + old_vector.size_in_bytes + _FRAME_BYTES
                vectors[new_vector.path] = (old_vector.path, max(end, vectors.get(new_vector.path, ("", 0))[1]))
        rows += [(source_path, path, None, min_size) for path, (source_path, min_size) in vectors.items()]
        columns = zip(*rows, strict=True) if rows else [()] * len(COPY_SCHEMA)
        return pa.table([pa.array(column, f.type) for column, f in zip(columns, COPY_SCHEMA, strict=True)], schema=COPY_SCHEMA)

    def _are_in_target(self, copies: pa.Table, oldest_reusable_ms: int | None) -> pa.ChunkedArray:
        """For each copy, whether the target has it with the right size. oldest_reusable_ms: the minimum modification time of
        copies that the target's newest version does not reference; None to accept all copies.
        """
        listing = listed_objects(self.target)
        if oldest_reusable_ms is not None:
            is_young = pc.greater_equal(listing["modification_time"], oldest_reusable_ms)
            listing = listing.filter(pc.or_(is_young, pc.is_in(listing["path"], self._live_paths())))
        sizes = listing["size"].combine_chunks().take(pc.index_in(copies["path"], listing["path"].combine_chunks()))
        has_right_size = pc.if_else(
            copies["size"].is_null(), pc.greater_equal(sizes, copies["least"]), pc.equal(sizes, copies["size"])
        )
        return pc.fill_null(has_right_size, False)

    def _live_paths(self) -> pa.Array:
        """The paths of all files of the table that the clone replaces, deletion vectors included."""
        if self.replaced_table is None:
            return pa.array([], pa.string())
        paths: set[str | None] = set()
        for batch in self.replaced_table.file_batches():
            paths.update(batch.files["path"].to_pylist())
            vectors = batch.files["deletion_vector"].drop_null().to_pylist()
            paths.update(DeletionVectorDescriptor.from_json(vector).path for vector in vectors)
        return pa.array(paths - {None}, pa.string())

    def _oldest_reusable_ms(self) -> int:
        """The minimum modification time of a copy that no version references, ms since 1970. VACUUM keeps such a copy for at
        least half of its retention time, and the clone is committed in this time.
        """
        retention_time_ms = retention_ms((self.replaced_table or self.source).config.properties, DELETED_FILE_RETENTION)
        return time.time_ns() // 1_000_000 - retention_time_ms // 2

    # ------------------------------------------------------------ the commit

    def _commit_clone(self) -> dict[str, Any]:
        """Commit the clone, whose copies exist; returns its version and the metrics of the commit."""
        source = CloneSource.of_table(self.source)
        transaction = clone_transaction(source, self.target, self.replaced_table, self.properties)
        adds = [add for _, add in self._files_with_copies()]
        old_files = scan_replaced_files(transaction, self.replaced_table)
        added_files, removed_files = replace_files(transaction, source, adds, old_files)
        paths_before = {file.path for file in old_files}
        paths_after = {add.path for add in added_files}
        # A file whose deletion vector has changed counts as new and as removed, but its data file was not copied.
        copied_files = [add for add in added_files if add.path not in paths_before]
        dropped_files = [file for file in removed_files if file.path not in paths_after]
        metrics = {
            "sourceTableSize": sum(add.size_bytes for add in adds),
            "sourceNumOfFiles": len(adds),
            "numRemovedFiles": len(dropped_files),
            "numCopiedFiles": len(copied_files),
            "removedFilesSize": sum(file.size_bytes for file in dropped_files),
            "copiedFilesSize": sum(add.size_bytes for add in copied_files),
        }
        parameters = {**clone_parameters(source), "sourceTableId": self.source.metadata.id, "isShallow": False}
        version = transaction.commit("CLONE", parameters, metrics=metrics)
        index_clone(self.target, transaction.config, version)
        return {"version": version, "metrics": metrics}


def _may_hold_copies(directory: str) -> bool:
    """Whether copies may lie in a directory of this name: the name is plain, so no other path means the same directory, and no
    part begins with `.` or `_`, so VACUUM lists the directory and can delete copies that are not needed."""
    return not is_absolute(directory) and all(name and not name.startswith((".", "_")) for name in directory.split("/"))
