"""The files of one task: an Arrow table on the way, values where they are read.

Here is what an executor needs of a plan, and nothing of planning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Self

import pyarrow as pa

from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.read.scan_state import ScanFile


@dataclass(frozen=True, slots=True)
class FileGroup:
    """The files that one task reads. Pickles compactly: an Arrow table as compressed IPC bytes, or ScanFiles as they are."""

    table_ipc: bytes | None = None
    values: tuple[ScanFile, ...] = ()

    @classmethod
    def of(cls, files: pa.Table) -> Self:
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        part = files.combine_chunks()
        with pa.ipc.new_stream(sink, part.schema, options=options) as writer:
            writer.write_table(part, max_chunksize=4096)
        return cls(table_ipc=sink.getvalue().to_pybytes())

    def scan_files(self) -> Iterator[ScanFile]:
        if self.table_ipc is None:
            yield from self.values
            return
        with pa.ipc.open_stream(self.table_ipc) as reader:
            for batch in reader:
                yield from scan_files(batch)


def scan_files(files: pa.RecordBatch) -> Iterator[ScanFile]:
    """Rows of FILE_SCHEMA (with a number and what only commits need, or without) as values, for the task that reads them."""
    vectors = files["deletion_vector"].to_pylist()
    pairs = files["partition_values"].to_pylist()
    stats, texts, tags, providers, numbers = (
        files[name].to_pylist() if name in files.schema.names else repeat(None, files.num_rows)
        for name in ("stats", "path_text", "tags", "clustering_provider", "number")
    )
    for path, size, modified, vector, partition, row_id, row_version, stats_json, path_text, tagged, provider, number in zip(
        files["path"].to_pylist(),
        files["size"].to_pylist(),
        files["modification_time"].to_pylist(),
        vectors,
        pairs,
        files["base_row_id"].to_pylist(),
        files["default_row_commit_version"].to_pylist(),
        stats,
        texts,
        tags,
        providers,
        numbers,
        strict=True,
    ):
        yield ScanFile(
            path=path,
            size_bytes=size,
            modification_time_ms=modified,
            partition_values=dict(partition or ()),
            deletion_vector=None if vector is None else DeletionVectorDescriptor.from_json(vector),
            base_row_id=row_id,
            default_row_commit_version=row_version,
            stats=stats_json,
            path_text=path_text,
            tags=None if tagged is None else dict(tagged),
            clustering_provider=provider,
            number=number,
        )
