"""What a DeltaTable says about its table: Metadata, ProtocolVersions, DeltaTableConfig."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from delta_py.table import DeltaTable


class DeltaTableConfig(NamedTuple):
    """The arguments that a DeltaTable was opened with. log_buffer_size has no effect."""

    without_files: bool
    log_buffer_size: int
    skip_stats: bool = False


class ProtocolVersions(NamedTuple):
    """The table's protocol. writer_features, reader_features: sorted; None if the protocol's version has no list of features."""

    min_reader_version: int
    min_writer_version: int
    writer_features: list[str] | None
    reader_features: list[str] | None


class Metadata:
    """The table's metadata. created_time: ms since 1970."""

    def __init__(self, table: DeltaTable) -> None:
        metadata = table.metadata
        self.id = metadata.id
        self.name = metadata.name
        self.description = metadata.description
        self.partition_columns = list(metadata.partition_columns)
        self.created_time = metadata.created_time_ms
        self.configuration = dict(metadata.configuration)

    def __str__(self) -> str:
        return f"Metadata({', '.join(f'{name}: {value}' for name, value in vars(self).items())})"
