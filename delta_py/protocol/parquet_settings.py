"""The settings for a table's Parquet files, for data and checkpoints: the codec and the page version.

    ParquetSettings.of(config.properties)

Protocol: Table Properties.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from delta_py.errors import CorruptTableError, UnsupportedOperationError
from delta_py.protocol.features import Properties

CODEC_PROPERTY = "delta.parquet.compression.codec"
PAGES_PROPERTY = "delta.parquet.format.version"
_CODECS = ("uncompressed", "none", "snappy", "gzip", "lz4", "lz4_raw", "zstd")
_PAGES_1, _PAGES_2 = re.compile(r"1\.0\.0"), re.compile(r"2\.[0-9]+\.[0-9]+")


@dataclass(frozen=True, slots=True)
class ParquetSettings:
    """Settings with the names that pyarrow uses. codec: `none` for no compression. page_version: 1.0 or 2.0."""

    codec: str = "zstd"
    page_version: str = "1.0"

    @classmethod
    def of(cls, properties: Properties) -> ParquetSettings:
        """The settings in a table's properties. Raises UnsupportedOperationError for a codec that cannot be written,
        CorruptTableError for an unknown page version."""
        return cls(compression_codec(properties.get(CODEC_PROPERTY)), data_page_version(properties))

    @classmethod
    def for_checkpoints(cls, properties: Properties) -> ParquetSettings:
        """The settings for checkpoints: those in a table's properties, or the defaults if these cannot be written. Only data
        files are refused then, because a log without checkpoints would grow without limit."""
        try:
            return cls.of(properties)
        except (UnsupportedOperationError, CorruptTableError):
            return cls()


def compression_codec(name: str | None) -> str:
    """The pyarrow name of a codec. name: as in the property CODEC_PROPERTY; None for the default, zstd. Raises
    UnsupportedOperationError for an unknown codec."""
    codec = (name or "zstd").lower()
    if codec not in _CODECS:
        raise UnsupportedOperationError(
            f"{CODEC_PROPERTY} is {name!r}, which this version cannot write. Use one of {', '.join(_CODECS)}.", codec=name
        )
    return {"uncompressed": "none", "lz4_raw": "lz4"}.get(codec, codec)


def is_page_version(text: str) -> bool:
    """Whether the text is a valid value of the property PAGES_PROPERTY."""
    return any(version.fullmatch(text) for version in (_PAGES_1, _PAGES_2))


def data_page_version(properties: Properties) -> str:
    """The version of data pages as pyarrow names it: `1.0` or `2.0`. Raises CorruptTableError for an unknown one."""
    text = properties.get(PAGES_PROPERTY, "1.0.0").strip()
    if not is_page_version(text):
        raise CorruptTableError(
            f"Table property {PAGES_PROPERTY} is {text!r}; it must be 1.0.0, or 2.x.x such as 2.12.0.", property=PAGES_PROPERTY
        )
    return "2.0" if _PAGES_2.fullmatch(text) else "1.0"
