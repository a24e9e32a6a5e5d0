"""V2 checkpoints: a small UUID-named file with all actions except file actions. File actions are in sidecars.

The new checkpoint reuses a sidecar of the previous checkpoint unchanged if all of it is still valid: it has only adds, in the
form that the table requires, and no newer action mentions any of its files. The sidecar must also be large, so that many small
loads do not leave as many small sidecars. Tombstones expire, so they have separate sidecars, which every checkpoint writes again.
Protocol: V2 Spec; UUID-named checkpoint; Sidecar Files; Sidecar File Information; Checkpoint Metadata.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.checkpoint.checkpoint_file import RowFile, WrittenCheckpoint, as_rows, rows_of_state
from delta_py.checkpoint.checkpoint_state import FileState
from delta_py.log.checkpoint_content.checkpoint_rows import (
    CHECKPOINT_METADATA_TYPE,
    DOMAIN_TYPE,
    METADATA_TYPE,
    PROTOCOL_TYPE,
    REMOVE_TYPE,
    SIDECAR_TYPE,
    TXN_TYPE,
    RowShape,
)
from delta_py.log.checkpoint_content.parquet_part import ParquetPart
from delta_py.log.log_writer import LogWriter
from delta_py.prefetch import prefetch
from delta_py.protocol.paths import SIDECAR_DIRECTORY, encode_path, v2_checkpoint_name

# About the number of actions in a new sidecar.
SIDECAR_ROWS = 50_000
# A sidecar with fewer adds is not reused: its adds are written to a new sidecar together with others.
REUSED_ROWS = SIDECAR_ROWS // 2


@dataclass(slots=True)
class _Sidecars:
    """The sidecars of the new checkpoint: new ones, and those that it reuses from the previous checkpoint.

    actions: the checkpoint's `sidecar` actions. row_count: the number of actions in all sidecars. now_ms: the modification time
    of new sidecars.
    """

    writer: LogWriter
    shape: RowShape
    now_ms: int
    actions: list[dict[str, Any]] = field(default_factory=list)
    row_count: int = 0

    def put(self, name: str, batches: Iterable[pa.StructArray]) -> None:
        """Write rows into new sidecars of about SIDECAR_ROWS, and add the `sidecar` action of each. name: the kind of the rows,
        `add` or `remove`."""
        file: RowFile | None = None
        for batch in batches:
            file = file or RowFile({"add": self.shape.add_type, "remove": REMOVE_TYPE}, self.shape.settings)
            file.write(name, batch)
            if file.row_count >= SIDECAR_ROWS:
                self._close(file)
                file = None
        if file is not None:
            self._close(file)

    def _close(self, file: RowFile) -> None:
        """Store a complete sidecar under a new name, and add its `sidecar` action."""
        name, data = f"{uuid.uuid4()}.parquet", file.close()
        self.writer.put_sidecar(name, data)
        self._add_action(name, len(data), self.now_ms, file.row_count)

    def reuse(self, part: ParquetPart, time_ms: int) -> None:
        """Add the `sidecar` action of a sidecar of the previous checkpoint, which remains unchanged. time_ms: its creation time,
        as the previous checkpoint says."""
        self._add_action(part.path.removeprefix(f"{SIDECAR_DIRECTORY}/"), part.size_bytes, time_ms, part.row_count)

    def _add_action(self, name: str, size_bytes: int, time_ms: int, row_count: int) -> None:
        self.actions.append({"path": encode_path(name), "sizeInBytes": size_bytes, "modificationTime": time_ms})
        self.row_count += row_count


def write_v2_checkpoint(
    writer: LogWriter, written: WrittenCheckpoint, state: FileState, shape: RowShape, now_ms: int
) -> WrittenCheckpoint:
    """Write the sidecars first, then the top level, which is the file that names them. Readers ignore sidecars that no top level
    names, so the checkpoint does not exist before that file is written.

    written: the version and the actions other than file actions; returned with its counts filled in. state: the file actions.
    shape: the form of the add rows. now_ms: the time of new sidecars, ms since 1970.

    Raises CorruptTableError if the state cannot be rebuilt, and OSError if a file cannot be stored. Log cleanup later deletes the
    sidecars that were already written.
    """
    sidecars = _Sidecars(writer, shape, now_ms)

    def new_adds() -> Iterator[pa.StructArray]:
        """The adds that must be written to new sidecars. For each sidecar that can be reused, this adds its action instead of
        yielding its adds."""
        yield from _count_batches(written, state.commit_adds())
        for part in state.parts:
            if isinstance(part, ParquetPart) and _is_reusable(part, state, shape):
                _count_reused(written, part)
                sidecars.reuse(part, state.sidecar_times.get(part.path, now_ms))
            else:
                yield from _count_batches(written, state.checkpoint_adds(part))

    sidecars.put("add", prefetch(new_adds()))
    sidecars.put("remove", state.removes())
    _put_top_level(writer, written, sidecars)
    return written


def _count_batches(written: WrittenCheckpoint, batches: Iterable[pa.StructArray]) -> Iterator[pa.StructArray]:
    """Yield the same batches of adds, and count their files in `written`."""
    for batch in batches:
        written.count_adds(batch)
        yield batch


def _is_reusable(part: ParquetPart, state: FileState, shape: RowShape) -> bool:
    """Whether the new checkpoint can name this sidecar again instead of writing its files."""
    if not part.path.startswith(f"{SIDECAR_DIRECTORY}/"):
        return False
    if part.row_count < REUSED_ROWS or not _holds_only_adds(part) or not _has_required_form(part, shape):
        return False
    return state.is_untouched(part)


def _holds_only_adds(part: ParquetPart) -> bool:
    """Whether all rows are adds. The column add.path is read to decide this, because it is null in every other row; the
    statistics of Parquet are not trusted."""
    return all(batch["path"].null_count == 0 for batch in part.raw_columns("add", ["path"], 65_536))


def _has_required_form(part: ParquetPart, shape: RowShape) -> bool:
    """Whether the adds have the fields that we would write, with the same types of statistics and typed partition values."""
    existing_types = {f.name: f.type for f in part.schema.field("add").type}
    required_types = {f.name: f.type for f in shape.add_type}
    struct_columns = ("stats_parsed", "partitionValues_parsed")
    return existing_types.keys() == required_types.keys() and all(
        existing_types.get(name) == required_types.get(name) for name in struct_columns
    )


def _count_reused(written: WrittenCheckpoint, part: ParquetPart) -> None:
    """Count the files of a reused sidecar in `written`."""
    for batch in part.columns("add", ["path", "size"], 65_536):
        written.file_count += len(batch["path"])
        written.table_bytes += pc.sum(batch["size"]).as_py() or 0


def _put_top_level(writer: LogWriter, written: WrittenCheckpoint, sidecars: _Sidecars) -> None:
    """Write the top level: the file with all actions except file actions, which names the sidecars. Completes the counts in
    `written`. The columns add and remove exist, but are null in all rows."""
    types = {
        "checkpointMetadata": CHECKPOINT_METADATA_TYPE,
        "protocol": PROTOCOL_TYPE,
        "metaData": METADATA_TYPE,
        "txn": TXN_TYPE,
        "domainMetadata": DOMAIN_TYPE,
        "sidecar": SIDECAR_TYPE,
        "add": sidecars.shape.add_type,
        "remove": REMOVE_TYPE,
    }
    sidecar_bytes = sum(action["sizeInBytes"] for action in sidecars.actions)
    tags = {
        "sidecarNumActions": str(sidecars.row_count),
        "sidecarSizeInBytes": str(sidecar_bytes),
        "numOfAddFiles": str(written.file_count),
    }
    rows = {
        "checkpointMetadata": [{"version": written.version, "tags": tags}],
        **rows_of_state(written.other_actions),
        "sidecar": sidecars.actions,
    }
    top_file = RowFile(types, sidecars.shape.settings)
    for name, values in rows.items():
        top_file.write(name, as_rows(values, types[name]))
    data = top_file.close()
    writer.put_checkpoint(v2_checkpoint_name(written.version, str(uuid.uuid4()), "parquet"), data)
    written.action_count, written.size_bytes = top_file.row_count + sidecars.row_count, len(data) + sidecar_bytes
