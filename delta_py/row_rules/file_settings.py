"""Settings for the Parquet files of a block of code, whatever operation writes them. They replace those of the table.

    with file_settings(FileSettings(compression="gzip")):
        delete(store, "price < 15")

They hold in the thread of the block: write_state takes them on the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class FileSettings:
    """Settings of Parquet files that replace those of the table. compression: as pyarrow names it; None for the table's.
    row_group_rows: the most rows of a row group; None for pydelta's default. target_file_bytes: None for the table's.
    parquet_options: more arguments of pyarrow's ParquetWriter."""

    compression: str | None = None
    row_group_rows: int | None = None
    target_file_bytes: int | None = None
    parquet_options: Mapping[str, Any] = field(default_factory=dict)


_NO_SETTINGS = FileSettings()
_settings: ContextVar[FileSettings] = ContextVar("file_settings", default=_NO_SETTINGS)


@contextmanager
def file_settings(settings: FileSettings) -> Iterator[None]:
    """Apply the settings to all files that the block writes."""
    token = _settings.set(settings)
    try:
        yield
    finally:
        _settings.reset(token)


def current_file_settings() -> FileSettings:
    return _settings.get()
