"""Names and paths: files of the log, data files, partition directories, and the text of `add.path`.

In an action, a path is percent-encoded text. Everywhere else in this library, a path is decoded and canonical: relative to the
table's root, or an absolute path (`/a/b`), or a URI of another scheme (`s3://bucket/a b`). `file:` URIs become absolute paths.
Only this module knows %-encoding and Hive escaping. It does no input or output.
Protocol: Delta Log Entries; Checkpoints; Add File and Remove File.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from urllib.parse import unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import CorruptTableError

LOG_DIRECTORY = "_delta_log"
SIDECAR_DIRECTORY = "_delta_log/_sidecars"
STAGED_DIRECTORY = "_delta_log/_staged_commits"
LEASE_DIRECTORY = "_delta_log/_pydelta_leases"
CLONE_DIRECTORY = "_delta_log/_pydelta_clones"
CHANGE_DATA_DIRECTORY = "_change_data"
LAST_CHECKPOINT = "_last_checkpoint"
HIVE_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
MAX_VERSION = 2**63 - 1

# ---------------------------------------------------------------- the text of add.path

# A scheme has at least two characters and is followed by `:/`, so a directory such as `time=10:20` is not a URI.
_URI = r"^[A-Za-z][A-Za-z0-9+.\-]+:/"
_FILE_URI = r"^(?i:file):(?:/{3,}|//(?i:localhost)/+|/([^/]|$))"  # not file://host/..., which remains a URI
# A path that is a URI, or has a segment that is empty, `.` or `..`.
_NOT_PLAIN = rf"{_URI}|(?:^|/)\.{{0,2}}(?:/|$)"
_is_uri = re.compile(_URI).match
_file_uri = re.compile(_FILE_URI)
# Characters that java.net.URI does not encode in a path. With them, our text is identical to the text of the JVM writers,
# so readers that compare actions before decoding them match our remove with their add.
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~'()*:@&=+$,;/")
# A match function: whether a path has no character that is encoded.
_is_plain = re.compile(f"[{re.escape(''.join(sorted(_PLAIN)))}]*").fullmatch
_MAY_CHANGE = rf"^/|[^{re.escape(''.join(sorted(_PLAIN - {':'})))}]"  # paths that encoding may change


def decode_path(text: str) -> str:
    """The canonical path for the text of `add.path` (or `remove.path`, `cdc.path`, an absolute deletion vector path).

    A `%` that does not start an escape is kept, because some writers encode nothing.
    Raises CorruptTableError if the escapes are not valid UTF-8.
    """
    if "%" not in text and ":" not in text and not text.startswith("//"):
        return text
    is_uri = _is_uri(text) is not None  # the text is a URI, before it is decoded
    decoded = _file_uri.sub(r"/\1", text, count=1) if is_uri else text
    if "%" in decoded:
        decoded = _percent_decode(decoded)
    if decoded.startswith("//"):
        return "/" + decoded.lstrip("/")
    if not is_uri and _is_uri(decoded):
        return f"./{decoded}"  # a relative path that looks like a URI only once it is decoded
    return decoded


def encode_path(path: str) -> str:
    """The text for `add.path` of a decoded path: `decode_path(encode_path(p)) == p` for every canonical p.

    An absolute local path gets the scheme `file:`, as in the JVM writers.
    """
    if path.startswith("/"):
        return "file:" + _percent_encode(path)
    if _is_uri(path):
        scheme, colon, path_part = path.partition(":")
        return scheme + colon + _percent_encode(path_part)
    first, slash, later_segments = path.partition("/")
    # A colon in the first segment of a relative reference would be read as the end of a scheme.
    return _percent_encode(first).replace(":", "%3A") + slash + _percent_encode(later_segments)


def encode_paths(paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """`encode_path` of every value of a string array without nulls. Returns the same array if nothing needs encoding."""
    if isinstance(paths, pa.ChunkedArray):
        return pa.chunked_array([encode_paths(chunk) for chunk in paths.chunks], paths.type)
    may_change = pc.match_substring_regex(paths, _MAY_CHANGE)
    if not _has_true(may_change):
        return paths
    encoded = map(encode_path, paths.filter(may_change).to_pylist())
    return pc.replace_with_mask(paths, may_change, pa.array(encoded, paths.type))


def decode_paths(paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """`decode_path` of every value of a string array; nulls remain null. Returns the same object if nothing needs decoding."""
    if isinstance(paths, pa.ChunkedArray):
        encoded = paths.chunks
        decoded = [decode_paths(chunk) for chunk in encoded]
        is_unchanged = all(new is old for new, old in zip(decoded, encoded, strict=True))
        return paths if is_unchanged else pa.chunked_array(decoded, type=paths.type)
    # The steps are those of decode_path. Each is done for all paths at once, and only if any path needs it.
    has_escape, has_colon = _any_contains(paths, b"%"), _any_contains(paths, b":")
    if not has_escape and not has_colon and not _has_true(pc.starts_with(paths, "//")):
        return paths
    is_uri = _find_uris(paths)
    decoded = pc.replace_substring_regex(paths, _FILE_URI, r"/\1") if _has_true(is_uri) else paths
    if has_escape:
        decoded = _percent_decode_array(decoded)
    if _has_true(pc.starts_with(decoded, "//")):
        decoded = pc.replace_substring_regex(decoded, "^//+", "/")
    # A decoded name that looks like a URI gets "./", so that it is read as a path again.
    looks_like_uri = pc.and_(_find_uris(decoded), pc.invert(is_uri))
    if _has_true(looks_like_uri):
        decoded = pc.if_else(looks_like_uri, pc.replace_substring_regex(decoded, "^", "./"), decoded)
    return decoded


def resolve(table_root: str, path: str) -> str:
    """The location of a decoded data path: absolute paths and URIs are unchanged, other paths are below the table's root."""
    if path.startswith("/") or _is_uri(path):
        return path
    return f"{table_root.rstrip('/')}/{path}"


def is_absolute(path: str) -> bool:
    """Whether a decoded path is an absolute path or a URI, so it is not relative to the table's root."""
    return path.startswith("/") or _is_uri(path) is not None


def are_plain(paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Which decoded paths are plain relative paths: not absolute, and without parts that are empty, `.` or `..`. Two different
    plain texts always name two different files."""
    return pc.invert(pc.match_substring_regex(paths, _NOT_PLAIN))


def _find_uris(paths: pa.Array) -> pa.Array:
    """The mask of paths that are URIs. A cheap search for `:/` comes first, because it mostly shows that no path is a URI."""
    if not _has_true(pc.match_substring(paths, ":/")):
        return pa.repeat(False, len(paths))
    return pc.match_substring_regex(paths, _URI)


def _any_contains(texts: pa.Array, character: bytes) -> bool:
    """Whether any text contains an ASCII character. A byte search in the shared buffer takes a fraction of the time of a search
    in each text. For types with another layout, this always returns True."""
    if not pa.types.is_string(texts.type):
        return True
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or data is None:
        return False
    ends = np.frombuffer(offsets, dtype=np.int32)
    first, last = int(ends[texts.offset]), int(ends[texts.offset + len(texts)])
    return character in data.slice(first, last - first).to_pybytes()


def _has_true(mask: pa.Array) -> bool:
    """Whether any value is true."""
    return bool(pc.any(mask).as_py())


def _percent_decode(text: str) -> str:
    """Decode all valid escapes of a text. Raises CorruptTableError if the result is not UTF-8."""
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptTableError(
            f"The path {text!r} in the log is not UTF-8 after decoding. The action that names it is damaged.", path=text
        ) from error


def _percent_encode(path: str) -> str:
    """Encode the characters of a path that java.net.URI encodes too."""
    if _is_plain(path):
        return path
    return "".join(c if c in _PLAIN else _encode_char(c) for c in path)


def _encode_char(char: str) -> str:
    """The character, or its escapes."""
    # Characters beyond ASCII are kept, except white space and controls: the rule of java.net.URI ("other").
    if ord(char) > 0x9F and not unicodedata.category(char).startswith("Z"):
        return char
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8"))


def _percent_decode_array(texts: pa.Array) -> pa.Array:
    """Percent-decode all values at once, by replacing the escapes in the shared data buffer."""
    wide = texts.fill_null("").cast(pa.large_binary())
    _, offsets_buffer, data_buffer = wide.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[wide.offset : wide.offset + len(wide) + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8)
    escapes, values = _find_escapes(data, offsets)
    if len(escapes) == 0:
        return texts
    decoded = data.copy()
    decoded[escapes] = values
    keep = np.ones(len(data), dtype=bool)
    keep[escapes + 1] = False
    keep[escapes + 2] = False
    # Each escape becomes one byte instead of three.
    removed_before = 2 * np.searchsorted(escapes, offsets)
    buffers = [None, pa.py_buffer(offsets - removed_before), pa.py_buffer(decoded[keep])]
    try:
        decoded_texts = pa.Array.from_buffers(pa.large_binary(), len(wide), buffers).cast(texts.type)
    except pa.ArrowInvalid:
        for text in texts.drop_null().to_pylist():  # only to name the invalid text
            _percent_decode(text)
        raise
    return decoded_texts if texts.null_count == 0 else pc.if_else(texts.is_valid(), decoded_texts, pa.scalar(None, texts.type))


def _find_escapes(data: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the `%` of valid escapes, and the bytes that they encode. data: the bytes of all values. offsets: where each
    value begins, and the end of the last one."""
    percent = np.flatnonzero(data == 0x25)
    percent = percent[(percent >= offsets[0]) & (percent < offsets[-1])]
    # Both hexadecimal digits must be in the same value as the `%`.
    percent = percent[percent + 2 < offsets[np.searchsorted(offsets, percent, side="right")]]
    high, low = _HEX[data[percent + 1]], _HEX[data[percent + 2]]
    is_escape = (high < 16) & (low < 16)
    return percent[is_escape], (high[is_escape] * 16 + low[is_escape]).astype(np.uint8)


_HEX = np.full(256, 16, dtype=np.uint8)  # byte -> value of the hexadecimal digit; 16 if it is no digit
for _value, _digit in enumerate(b"0123456789abcdef"):
    _HEX[_digit] = _value
for _value, _digit in enumerate(b"ABCDEF", start=10):
    _HEX[_digit] = _value

# ---------------------------------------------------------------- names in _delta_log


class LogKind(Enum):
    """The kind of a file directly in `_delta_log`, from its name."""

    COMMIT = "commit"
    CHECKPOINT_CLASSIC = "classic checkpoint"
    CHECKPOINT_MULTIPART = "part of a multi-part checkpoint"
    CHECKPOINT_V2 = "UUID-named checkpoint"
    COMPACTION = "log compaction"
    CHECKSUM = "version checksum"
    LAST_CHECKPOINT = "last checkpoint hint"


@dataclass(frozen=True, slots=True)
class LogName:
    """A parsed file name of the log.

    version: of the table; the first one for a compaction; -1 for the last checkpoint hint.
    end_version: last version of a compaction. part: 1-based, of part_count, for multi-part checkpoints.
    unique: the UUID text of a UUID-named checkpoint. extension: `json`, `parquet` or `crc`; empty for the hint.
    """

    name: str
    kind: LogKind
    version: int
    end_version: int | None = None
    part: int | None = None
    part_count: int | None = None
    unique: str | None = None
    extension: str = "json"

    @property
    def is_checkpoint(self) -> bool:
        return self.kind in (LogKind.CHECKPOINT_CLASSIC, LogKind.CHECKPOINT_MULTIPART, LogKind.CHECKPOINT_V2)


_LOG_NAME = re.compile(
    r"(?P<version>[0-9]{20})\."
    r"(?:(?P<commit>json)"
    r"|(?P<checksum>crc)"
    r"|(?P<end>[0-9]{20})\.compacted\.json"
    r"|checkpoint\.(?:(?P<classic>parquet)"
    r"|(?P<part>[0-9]{10})\.(?P<count>[0-9]{10})\.parquet"
    r"|(?P<unique>[0-9A-Za-z_-]+)\.(?P<extension>json|parquet)))"
)


def parse_log_name(name: str) -> LogName | None:
    """Parse a file name in `_delta_log`; None for a file that is not part of the log.

    Not part of the log: names without the padding that the protocol requires, versions above 2^63 - 1, parts outside 1..count,
    compactions that end before they start.
    """
    if name == LAST_CHECKPOINT:
        return LogName(name, LogKind.LAST_CHECKPOINT, -1, extension="")
    match = _LOG_NAME.fullmatch(name)
    if match is None:
        return None
    version = int(match["version"])
    if version > MAX_VERSION:
        return None
    if match["commit"]:
        return LogName(name, LogKind.COMMIT, version)
    if match["checksum"]:
        return LogName(name, LogKind.CHECKSUM, version, extension="crc")
    if match["end"]:
        end = int(match["end"])
        return LogName(name, LogKind.COMPACTION, version, end_version=end) if version < end <= MAX_VERSION else None
    if match["classic"]:
        return LogName(name, LogKind.CHECKPOINT_CLASSIC, version, extension="parquet")
    if match["part"]:
        part, count = int(match["part"]), int(match["count"])
        if not 1 <= part <= count:
            return None
        return LogName(name, LogKind.CHECKPOINT_MULTIPART, version, part=part, part_count=count, extension="parquet")
    return LogName(name, LogKind.CHECKPOINT_V2, version, unique=match["unique"], extension=match["extension"])


def _padded_version(version: int) -> str:
    """The version as 20 digits, as in names of log files. Raises CorruptTableError for a version that no table can have."""
    assert version >= 0, f"version {version} is out of range"
    if version > MAX_VERSION:
        raise CorruptTableError(
            f"There is no version {version}: the last version that a table can have is {MAX_VERSION}. A table with such versions "
            "was made by hand; write its rows to a new table."
        )
    return f"{version:020d}"


def version_prefix(version: int) -> str:
    """The prefix of the names of all log files of a version. The text order of prefixes is the order of versions."""
    return _padded_version(version)


def commit_file_name(version: int) -> str:
    return f"{_padded_version(version)}.json"


def staged_commit_name(version: int, unique: str) -> str:
    """The name in STAGED_DIRECTORY of a commit that a coordinator will ratify. unique: a UUID. Protocol: Terminology: Commits."""
    return f"{_padded_version(version)}.{unique}.json"


def checksum_file_name(version: int) -> str:
    return f"{_padded_version(version)}.crc"


def compacted_file_name(start: int, end: int) -> str:
    assert start < end, f"a compaction from {start} to {end} is empty"
    return f"{_padded_version(start)}.{_padded_version(end)}.compacted.json"


def classic_checkpoint_name(version: int) -> str:
    return f"{_padded_version(version)}.checkpoint.parquet"


def v2_checkpoint_name(version: int, unique: str, extension: str) -> str:
    """unique: a UUID's text. extension: `json` or `parquet`."""
    assert extension in ("json", "parquet"), extension
    return f"{_padded_version(version)}.checkpoint.{unique}.{extension}"


# ---------------------------------------------------------------- names of data files

# Spark's list for partition directories: characters that file systems or Hive cannot have in a name.
_HIVE_ESCAPED = frozenset([chr(c) for c in range(0x20)] + list("\"#%'*/:=?\\{[]^\x7f"))


def partition_directory(values: Iterable[tuple[str, str | None]]) -> str:
    """The directory of a partition, decoded: `a=1/b=x%3Ay` for [("a", "1"), ("b", "x:y")]; "" without partition columns.

    values: physical column names with their texts as in `partitionValues`, in partition column order; a null and an empty text
    are the same partition. Hive escaping is part of the name, and `encode_path` is applied to the escaped name.
    """
    return "/".join(f"{_hive_escape(name)}={_hive_escape(text) if text else HIVE_DEFAULT_PARTITION}" for name, text in values)


def _hive_escape(text: str) -> str:
    """The text in the name of a partition directory, with `%` and two hexadecimal digits for some characters."""
    return "".join(f"%{ord(c):02X}" if c in _HIVE_ESCAPED else c for c in text)


_HIVE_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")


def partition_texts_of(path: str) -> tuple[tuple[str, str | None], ...]:
    """The reverse of `partition_directory` for the directories above a file, outer first; () if they are not partitions.

    Directories count from the file upwards as long as they have a `=`, as in Spark.
    """
    texts: list[tuple[str, str | None]] = []
    for directory in reversed(path.split("/")[:-1]):
        name, equals, text = directory.partition("=")
        if not equals:
            break
        value = None if text == HIVE_DEFAULT_PARTITION else _hive_unescape(text)
        texts.append((_hive_unescape(name), value))
    return tuple(reversed(texts))


def _hive_unescape(text: str) -> str:
    """The reverse of _hive_escape."""
    return _HIVE_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)


def data_file_name(task: int, unique: str, sequence: int = 0, *, codec: str = "zstd", change_data: bool = False) -> str:
    """The name of a data file, as in Spark: `part-00003-<unique>.c000.zstd.parquet`; `cdc-...` for change data.

    task: number of the writing task. unique: a UUID's text, different for every attempt. sequence: counts the files of
    one task. codec: the compression, or `none`.
    """
    kind = "cdc" if change_data else "part"
    compression = "" if codec in ("none", "uncompressed") else f".{codec}"
    return f"{kind}-{task:05d}-{unique}.c{sequence:03d}{compression}.parquet"
