"""Settings for Parquet files by deltalake's names, and the arguments of pyarrow's writer that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from delta_py.row_rules.file_settings import FileSettings

_CODECS = {
    "UNCOMPRESSED": "none",
    "SNAPPY": "snappy",
    "GZIP": "gzip",
    "BROTLI": "brotli",
    "LZ4": "lz4",
    "ZSTD": "zstd",
    "LZ4_RAW": "lz4",
}
# Codecs with levels: the least, the greatest and the default level.
_LEVELS = {"GZIP": (0, 10, 6), "BROTLI": (0, 11, 1), "ZSTD": (1, 22, 1)}
_ENCODINGS = ("PLAIN", "RLE", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")


@dataclass
class BloomFilterProperties:
    """Settings of a column's Bloom filter. fpp: the share of false positives. ndv: the number of distinct values."""

    set_bloom_filter_enabled: bool | None
    fpp: float | None = None
    ndv: int | None = None

    def __post_init__(self) -> None:
        if self.fpp is not None and not 0 < self.fpp < 1:
            raise ValueError("fpp must be between 0 and 1 exclusive")

    def __str__(self) -> str:
        return _fields_text(self)


@dataclass
class ColumnProperties:
    """Settings of a column. None leaves a setting to the writer. statistics_enabled: NONE, CHUNK or PAGE. encoding: of values
    that are not in a dictionary, so it excludes dictionary_enabled=True."""

    dictionary_enabled: bool | None = None
    statistics_enabled: str | None = None
    bloom_filter_properties: BloomFilterProperties | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None and self.dictionary_enabled:
            raise ValueError("Give either an encoding or dictionary_enabled=True.")
        if self.encoding is not None and self.encoding.upper() not in _ENCODINGS:
            raise ValueError(f"{self.encoding} is no encoding. Use one of {', '.join(_ENCODINGS)}.")

    def __str__(self) -> str:
        return _fields_text(self)


class WriterProperties:
    """Settings of the Parquet files that a write makes. compression: UNCOMPRESSED, SNAPPY, GZIP, BROTLI, LZ4, LZ4_RAW or ZSTD; it
    is stored with its level, such as `ZSTD(3)`. Sizes are bytes; max_row_group_size is a number of rows.
    statistics_truncate_length has no effect: pyarrow stores bounds of texts whole. Raises ValueError for a codec or a level that
    does not exist."""

    def __init__(
        self,
        data_page_size_limit: int | None = None,
        dictionary_page_size_limit: int | None = None,
        data_page_row_count_limit: int | None = None,
        write_batch_size: int | None = None,
        max_row_group_size: int | None = None,
        compression: str | None = None,
        compression_level: int | None = None,
        statistics_truncate_length: int | None = None,
        default_column_properties: ColumnProperties | None = None,
        column_properties: Mapping[str, ColumnProperties] | None = None,
    ) -> None:
        self.data_page_size_limit = data_page_size_limit
        self.dictionary_page_size_limit = dictionary_page_size_limit
        self.data_page_row_count_limit = data_page_row_count_limit
        self.write_batch_size = write_batch_size
        self.max_row_group_size = max_row_group_size
        self.compression = _codec_with_level(compression, compression_level)
        self.statistics_truncate_length = statistics_truncate_length
        self.default_column_properties = default_column_properties
        self.column_properties = column_properties

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WriterProperties) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        columns = self.column_properties
        columns_text = None if columns is None else ", ".join(f"column '{name}': {value}" for name, value in columns.items())
        values = {**vars(self), "column_properties": columns_text}
        return f"WriterProperties({', '.join(f'{name}: {value}' for name, value in values.items())})"

    __repr__ = __str__

    # ------------------------------------------------------------ for pyarrow

    def file_settings(self, columns: Sequence[str]) -> FileSettings:
        """The settings with which delta_py writes files. columns: the leaves of the files, dotted."""
        # self.compression is such as `ZSTD(3)`, `SNAPPY`, or None.
        codec, _, level = (self.compression or "").rstrip(")").partition("(")
        options = {
            "compression_level": _pyarrow_level(codec, level),
            "data_page_size": self.data_page_size_limit,
            "dictionary_pagesize_limit": self.dictionary_page_size_limit,
            "max_rows_per_page": self.data_page_row_count_limit,
            "write_batch_size": self.write_batch_size,
        }
        return FileSettings(
            compression=_CODECS[codec] if codec else None,
            row_group_rows=self.max_row_group_size,
            parquet_options={
                **{name: value for name, value in options.items() if value is not None},
                **self._column_options(columns),
            },
        )

    def _column_options(self, columns: Sequence[str]) -> dict[str, Any]:
        """The arguments of pyarrow's ParquetWriter for columns; none if no column has properties."""
        # pyarrow takes one list or mapping of columns per setting, so the properties are turned from columns to settings.
        default = self.default_column_properties or ColumnProperties()
        column_settings = {name: default for name in columns}
        column_settings |= {name: value for name, value in (self.column_properties or {}).items() if name in column_settings}
        if all(value == ColumnProperties() for value in column_settings.values()):
            return {}
        encodings = {name: value.encoding.upper() for name, value in column_settings.items() if value.encoding is not None}
        dictionary_columns = [
            name for name, value in column_settings.items() if value.dictionary_enabled is not False and name not in encodings
        ]
        statistics_columns = [name for name, value in column_settings.items() if value.statistics_enabled != "NONE"]
        bloom_filters = {name: value.bloom_filter_properties for name, value in column_settings.items()}
        bloom_options = {
            name: _bloom_filter_options(value)
            for name, value in bloom_filters.items()
            if value is not None and value.set_bloom_filter_enabled
        }
        options: dict[str, Any] = {"use_dictionary": dictionary_columns or False, "write_statistics": statistics_columns or False}
        if encodings:
            options["column_encoding"] = encodings
        if bloom_options:
            options["bloom_filter_options"] = bloom_options
        return options


def _bloom_filter_options(properties: BloomFilterProperties) -> dict[str, int | float]:
    """pyarrow's options for one column's Bloom filter; empty for its defaults."""
    options = {"fpp": properties.fpp, "ndv": properties.ndv}
    return {name: value for name, value in options.items() if value is not None}


def _codec_with_level(compression: str | None, level: int | None) -> str | None:
    """The codec and its level, such as `ZSTD(3)`; the codec alone if it has no levels; None without compression. level: None for
    the codec's default. Raises ValueError for an unknown codec or level."""
    if compression is None:
        if level is not None:
            raise ValueError("A compression level needs a compression: give it too.")
        return None
    codec = compression.upper()
    if codec not in _CODECS:
        raise ValueError(f"{compression} is not a valid Compression. Valid values are: {list(_CODECS)}")
    if codec not in _LEVELS:
        return codec
    least, greatest, default = _LEVELS[codec]
    if level is not None and not least <= level <= greatest:
        raise ValueError(f"The compression level of {codec} must be between {least} and {greatest}: {least}-{greatest}.")
    return f"{codec}({default if level is None else level})"


def _pyarrow_level(codec: str, level: str) -> int | None:
    """The level for pyarrow; None if `level` is empty. pyarrow's gzip has the levels 1 to 9, and deltalake's 0 to 10, so these
    are limited."""
    if not level:
        return None
    return min(max(int(level), 1), 9) if codec == "GZIP" else int(level)


def _fields_text(value: Any) -> str:
    """`name: value, name: value` for the fields of a dataclass."""
    return ", ".join(f"{field.name}: {getattr(value, field.name)}" for field in fields(value))
