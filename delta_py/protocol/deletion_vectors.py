"""Deletion vectors: the descriptor in an action, and the bytes that it points to.

A deletion vector is a set of 0-based row positions of one data file. In memory it is a `pyroaring.BitMap64`. It is stored as a
RoaringBitmapArray, either inline in the log (z85 text) or in a file with sizes and checksums around it.
Protocol: Deletion Vectors; Deletion Vector Format; Deletion Vector File Storage Format.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self
from uuid import UUID

import numpy as np
from pyroaring import BitMap64

from delta_py.errors import CorruptTableError, DeletionVectorError, shown
from delta_py.protocol.paths import decode_path

FILE_VERSION = 1
PORTABLE_MAGIC = 1681511377
NATIVE_MAGIC = 1681511376
_FRAME_BYTES = 8  # the size before the data and the checksum after it
_UUID_TEXT = 20  # characters of a UUID in z85
# If a vector starts this close to the beginning of its file, one request reads the file's version byte too.
_READ_FROM_START = 16 * 1024


class ReadsRanges(Protocol):
    """The part of an object store that reading a deletion vector needs (storage/store.py)."""

    def read_range(self, path: str, offset: int, length: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class DeletionVectorDescriptor:
    """The part of an action that says where a file's deletion vector is. Protocol: Deletion Vector Descriptor Schema.

    storage_type: `u` for a file below the table's root, named by a UUID; `p` for a file with an absolute path; `i` for inline.
    path_or_inline_dv: as in the log. offset: of the vector in its file; None for inline. size_in_bytes: of the data, without the
    size and checksum around it. cardinality: number of deleted rows.
    """

    storage_type: str
    path_or_inline_dv: str
    offset: int | None
    size_in_bytes: int
    cardinality: int

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Raises CorruptTableError for a descriptor that breaks the protocol."""
        place, sizes = value.get("pathOrInlineDv"), (value.get("offset"), value.get("sizeInBytes"), value.get("cardinality"))
        return cls(value.get("storageType"), place, *sizes).checked()  # type: ignore[arg-type]

    def checked(self) -> Self:
        """Check the fields and return the descriptor itself. Raises CorruptTableError if a field has another type or range than
        the protocol allows. This is done on read and on write."""
        offset = 0 if self.offset is None else self.offset
        # Pairs of a number and how many bits it may have: 31 for an int of the protocol, 63 for a long, because none is negative.
        counts = ((self.size_in_bytes, 31), (self.cardinality, 63), (offset, 31))
        is_valid = all(type(n) is int and 0 <= n < 2**bits for n, bits in counts)
        if self.storage_type not in ("u", "p", "i") or type(self.path_or_inline_dv) is not str or not is_valid:
            raise CorruptTableError(
                f"A deletion vector's descriptor is not valid: {shown(self)}. "
                "The log is damaged, or written for a newer protocol."
            )
        return self

    def to_json(self) -> dict[str, Any]:
        """The value of `deletionVector` in an action. Raises as checked."""
        self.checked()
        offset = {} if self.offset is None else {"offset": self.offset}
        return {
            "storageType": self.storage_type,
            "pathOrInlineDv": self.path_or_inline_dv,
            **offset,
            "sizeInBytes": self.size_in_bytes,
            "cardinality": self.cardinality,
        }

    @property
    def unique_id(self) -> str:
        """The id of the vector within its table. It is part of a logical file's key. Protocol: Derived Fields."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{suffix}"

    @property
    def path(self) -> str | None:
        """The decoded path of the file that holds the vector: below the table's root for `u`, absolute for `p`, None for inline.

        Raises DeletionVectorError if the text has no valid UUID.
        """
        if self.storage_type == "i":
            return None
        if self.storage_type == "p":
            return decode_path(self.path_or_inline_dv)
        prefix, text = self.path_or_inline_dv[:-_UUID_TEXT], self.path_or_inline_dv[-_UUID_TEXT:]
        if "/" in prefix or prefix in (".", ".."):
            raise DeletionVectorError(
                f"The deletion vector {self.path_or_inline_dv!r} names no file of the table: {prefix!r} is no directory."
            )
        uuid_bytes = z85_decode(text)
        if len(uuid_bytes) != 16:
            raise DeletionVectorError(
                f"The deletion vector {self.path_or_inline_dv!r} names no file: its last 20 characters are no UUID."
            )
        return deletion_vector_file_name(UUID(bytes=uuid_bytes), prefix)


def deletion_vector_file_name(file_id: UUID, prefix: str = "") -> str:
    """The path, below the table's root, of the file of a `u` vector. prefix: a random directory, or empty."""
    name = f"deletion_vector_{file_id}.bin"
    return f"{prefix}/{name}" if prefix else name


# ---------------------------------------------------------------- reading


def read_deletion_vector(store: ReadsRanges, descriptor: DeletionVectorDescriptor) -> BitMap64:
    """The deleted row positions that a descriptor names.

    Raises DeletionVectorError if the stored size, checksum, format or number of rows is wrong, and the store's error
    (FileNotFoundError) if the file is missing.
    """
    path = descriptor.path
    if path is None:
        data = z85_decode(descriptor.path_or_inline_dv)
        if not 0 <= len(data) - descriptor.size_in_bytes < 4:  # up to three bytes of padding
            raise _size_mismatch_error(descriptor, len(data))
        data = data[: descriptor.size_in_bytes]
    else:
        data = _read_framed(store, path, descriptor)
    bitmap = deserialize(data, where=_place_text(descriptor))
    if len(bitmap) != descriptor.cardinality:
        raise DeletionVectorError(
            f"The deletion vector {_place_text(descriptor)} holds {len(bitmap)} rows, but the log says {descriptor.cardinality}. "
            "Its file or the log is damaged; it is unknown which rows are deleted.",
            error_class="DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH",
            expected=descriptor.cardinality,
            found=len(bitmap),
        )
    return bitmap


def row_indexes(bitmap: BitMap64) -> np.ndarray:
    """The positions in ascending order, as int64."""
    return np.frombuffer(bitmap.to_array(), dtype=np.uint64).astype(np.int64)


def _read_framed(store: ReadsRanges, path: str, descriptor: DeletionVectorDescriptor) -> bytes:
    """Read the bytes of a vector from a file, and check the size before them and the checksum after them. If the vector is near
    the beginning of the file, the same read includes the file's version byte, which is checked too.
    """
    offset = 1 if descriptor.offset is None else descriptor.offset  # without an offset: after the version byte
    framed_size = descriptor.size_in_bytes + _FRAME_BYTES
    start = 0 if offset <= _READ_FROM_START else offset
    block = store.read_range(path, start, offset - start + framed_size)
    if start == 0 and block[:1] != bytes([FILE_VERSION]):
        first_byte = block[0] if block else "nothing"
        raise DeletionVectorError(
            f"The deletion vector file {path} starts with {first_byte}, not with the format version {FILE_VERSION}. "
            "It is damaged, or written in a newer format.",
            path=path,
        )
    framed = block[offset - start :]
    stored_size = struct.unpack_from(">i", framed)[0] if len(framed) >= 4 else -1
    if stored_size != descriptor.size_in_bytes or len(framed) != framed_size:
        raise _size_mismatch_error(descriptor, stored_size if len(framed) == framed_size else max(len(framed) - _FRAME_BYTES, 0))
    data = framed[4:-4]
    stored_sum, actual_sum = struct.unpack_from(">I", framed, len(framed) - 4)[0], zlib.crc32(data)
    if stored_sum != actual_sum:
        raise DeletionVectorError(
            f"The deletion vector {_place_text(descriptor)} fails its checksum: stored {stored_sum:08x}, computed "
            f"{actual_sum:08x}. The file is damaged; restore it from a copy, or restore the table to an earlier version.",
            path=path,
            offset=offset,
        )
    return data


def _place_text(descriptor: DeletionVectorDescriptor) -> str:
    """A text that says where the vector is stored, for messages."""
    path = descriptor.path
    return "in the log (inline)" if path is None else f"at byte {descriptor.offset} of {path}"


def _size_mismatch_error(descriptor: DeletionVectorDescriptor, actual_bytes: int) -> DeletionVectorError:
    """The error for a vector whose data has another size than its descriptor says."""
    return DeletionVectorError(
        f"The deletion vector {_place_text(descriptor)} has {actual_bytes} bytes, but the log says {descriptor.size_in_bytes}. "
        "Its file or the log is damaged.",
        error_class="DELTA_DELETION_VECTOR_SIZE_MISMATCH",
        expected=descriptor.size_in_bytes,
        found=actual_bytes,
    )


# ---------------------------------------------------------------- RoaringBitmapArray


def deserialize(data: bytes, *, where: str = "") -> BitMap64:
    """RoaringBitmapArray bytes, magic number first -> bitmap. Both formats are accepted: portable and native.

    where: the name of the vector in messages. Raises DeletionVectorError for bytes in neither format.
    """
    magic = data[:4]
    try:
        if magic == struct.pack("<i", PORTABLE_MAGIC):
            bitmap = BitMap64.deserialize(data[4:])
        elif magic in (struct.pack("<i", NATIVE_MAGIC), struct.pack(">i", NATIVE_MAGIC)):
            bitmap = BitMap64.deserialize(_portable_from_native(data, "<" if magic == struct.pack("<i", NATIVE_MAGIC) else ">"))
        else:
            raise DeletionVectorError(
                f"The deletion vector {where} starts with the bytes {magic.hex()}, which is no known format."
            )
    except (ValueError, IndexError, struct.error) as error:
        raise DeletionVectorError(f"The deletion vector {where} cannot be decoded: {error}. Its bytes are damaged.") from error
    if bitmap and bitmap.max() >= 2**63:
        raise DeletionVectorError(
            f"The deletion vector {where} holds the row {bitmap.max()}, beyond any file.",
            error_class="DELTA_DELETION_VECTOR_INVALID_ROW_INDEX",
        )
    return bitmap


def _portable_from_native(data: bytes, order: str) -> bytes:
    """Convert native to portable. Native: int32 count, then for each key 0, 1, ... an int32 length and a 32-bit bitmap. Portable
    stores the keys too.

    order: byte order of the int32 numbers, `<` or `>`. Both occur; the protocol's own inline example has `>`.
    """
    count, position = struct.unpack_from(f"{order}i", data, 4)[0], 8
    if not 0 <= count <= len(data) // 4:
        raise ValueError(f"{count} bitmaps do not fit into {len(data)} bytes")
    parts = [struct.pack("<Q", count)]
    for key in range(count):  # one iteration for every 2^32 rows of a file
        length = struct.unpack_from(f"{order}i", data, position)[0]
        bitmap = data[position + 4 : position + 4 + length]
        if length < 0 or len(bitmap) != length:
            raise ValueError(f"bitmap {key} is cut short")
        position += 4 + length
        parts.append(struct.pack("<I", key) + bitmap)
    return b"".join(parts)


def serialize(bitmap: BitMap64) -> bytes:
    """The bitmap as portable RoaringBitmapArray bytes, magic number first, with run-length encoding where that is smaller."""
    compact = bitmap.copy()
    compact.run_optimize()
    return struct.pack("<i", PORTABLE_MAGIC) + bytes(compact.serialize())


def dv_file_bytes(
    bitmaps: Sequence[BitMap64], file_id: UUID, prefix: str = ""
) -> tuple[bytes, tuple[DeletionVectorDescriptor, ...]]:
    """One deletion vector file with these vectors: its bytes, and a `u` descriptor for each vector in order.

    The caller writes the file to `descriptor.path`. file_id and prefix must be new, so that no file is ever written twice.
    """
    place = prefix + z85_encode(file_id.bytes)
    parts, descriptors, offset = [bytes([FILE_VERSION])], [], 1
    for bitmap in bitmaps:
        data = serialize(bitmap)
        parts.append(struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data)))
        descriptors.append(DeletionVectorDescriptor("u", place, offset, len(data), len(bitmap)))
        offset += len(parts[-1])
    return b"".join(parts), tuple(descriptors)


def inline_descriptor(bitmap: BitMap64) -> DeletionVectorDescriptor:
    """A descriptor that contains the vector itself."""
    data = serialize(bitmap)
    padded = data + bytes(-len(data) % 4)  # z85 needs whole groups of four bytes
    return DeletionVectorDescriptor("i", z85_encode(padded), None, len(data), len(bitmap))


def from_row_indexes(indexes: Iterable[int] | np.ndarray) -> BitMap64:
    """A bitmap of row positions, which may be in any order and repeated."""
    return BitMap64(indexes.astype(np.uint64) if isinstance(indexes, np.ndarray) else indexes)


# ---------------------------------------------------------------- z85

_Z85 = np.frombuffer(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#", np.uint8)
_POWERS = np.array([85**4, 85**3, 85**2, 85, 1], np.uint64)  # the weights of the five digits of a group
_NO_DIGIT = 85
_DIGITS = np.full(256, _NO_DIGIT, np.uint64)  # byte -> value of the digit; _NO_DIGIT if it is none
_DIGITS[_Z85] = np.arange(85)


def z85_encode(data: bytes) -> str:
    """The z85 text of bytes. Their number must be a multiple of four."""
    assert len(data) % 4 == 0, f"z85 needs whole groups of four bytes, not {len(data)} bytes"
    groups = np.frombuffer(data, ">u4").astype(np.uint64)
    return bytes(_Z85[groups[:, None] // _POWERS % 85]).decode("ascii")


def z85_decode(text: str) -> bytes:
    """The bytes of a z85 text. Raises DeletionVectorError if the text is not z85.

    If the value of a group of five digits does not fit into four bytes, its low 32 bits are kept, as in the JVM reader: tables
    with such text exist.
    """
    digits = _DIGITS[np.frombuffer(text.encode("utf-8"), np.uint8)]
    if len(digits) % 5 or (digits == _NO_DIGIT).any():
        raise DeletionVectorError(f"A deletion vector's text {text[:40]!r} is no z85. The log is damaged.")
    groups = digits.reshape(-1, 5) @ _POWERS
    return (groups & 0xFFFFFFFF).astype(">u4").tobytes()
