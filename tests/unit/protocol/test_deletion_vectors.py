from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest
from pyroaring import BitMap, BitMap64

from delta_py.errors import CorruptTableError, DeletionVectorError
from delta_py.protocol import deletion_vectors as dv
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor, read_deletion_vector

FILE_ID = UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
SPEC_INLINE = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"


class Store:
    """Files in memory; counts the requests."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = files or {}
        self.requests: list[tuple[str, int, int]] = []

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        self.requests.append((path, offset, length))
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path][offset : offset + length]


def descriptor(storage: str, place: str, **fields: int | None) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor.from_json({"storageType": storage, "pathOrInlineDv": place, **fields})


# ---------------------------------------------------------------- descriptor


def test_descriptor_with_path_prefix_names_the_specified_file() -> None:
    decoded = descriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", offset=4, sizeInBytes=40, cardinality=6)
    assert decoded.path == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert decoded.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"


def test_descriptor_without_path_prefix_names_a_file_in_root() -> None:
    decoded = descriptor("u", "^-aqEH.-t@S}K{vb[*k^", offset=None, sizeInBytes=40, cardinality=6)
    assert decoded.path == "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert decoded.unique_id == "u^-aqEH.-t@S}K{vb[*k^"


def test_descriptor_of_an_absolute_path_is_decoded() -> None:
    decoded = descriptor("p", "file:/my%20table/dv%25.bin", offset=4, sizeInBytes=40, cardinality=6)
    assert decoded.path == "/my table/dv%.bin"
    other = descriptor("p", "s3://mytable/deletion_vector_d2c639aa.bin", offset=4, sizeInBytes=40, cardinality=6)
    assert other.path == "s3://mytable/deletion_vector_d2c639aa.bin"


def test_descriptor_round_trips_through_json() -> None:
    values = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40, "cardinality": 6}
    assert DeletionVectorDescriptor.from_json({**values, "maxRowIndex": 9, "later": {}}).to_json() == values
    inline = {"storageType": "i", "pathOrInlineDv": SPEC_INLINE, "sizeInBytes": 40, "cardinality": 6}
    assert DeletionVectorDescriptor.from_json({**inline, "offset": None}).to_json() == inline


@pytest.mark.parametrize(
    "change",
    [
        {"storageType": "x"},
        {"storageType": None},
        {"pathOrInlineDv": None},
        {"sizeInBytes": -1},
        {"sizeInBytes": 2**31},
        {"sizeInBytes": "40"},
        {"sizeInBytes": True},
        {"cardinality": None},
        {"cardinality": 2**63},
        {"offset": -1},
        {"offset": 1.5},
    ],
)
def test_descriptor_that_breaks_the_protocol_is_an_error(change: dict[str, object]) -> None:
    good = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 40, "cardinality": 6}
    with pytest.raises(CorruptTableError, match="descriptor is not valid"):
        DeletionVectorDescriptor.from_json({**good, **change})


def test_descriptor_whose_text_is_no_uuid_is_an_error() -> None:
    for place in ("too short", "~~~~~~~~~~~~~~~~~~~~", ""):
        with pytest.raises(DeletionVectorError):
            _ = descriptor("u", place, offset=1, sizeInBytes=4, cardinality=1).path


# ---------------------------------------------------------------- z85


def test_z85_agrees_with_its_specification() -> None:
    assert dv.z85_encode(bytes.fromhex("864fd26fb559f75b")) == "HelloWorld"
    assert dv.z85_decode("HelloWorld") == bytes.fromhex("864fd26fb559f75b")


@pytest.mark.parametrize("text", ["HelloWorl", "Hello Worl", "Hello_orld", "Hello~orld", "Helloé0000", "Hello000é"])
def test_z85_text_outside_the_code_is_an_error(text: str) -> None:
    with pytest.raises(DeletionVectorError, match="z85"):
        dv.z85_decode(text)


# ---------------------------------------------------------------- bitmaps


def test_inline_vector_of_the_specification_is_read() -> None:
    bitmap = read_deletion_vector(Store(), descriptor("i", SPEC_INLINE, sizeInBytes=40, cardinality=6))
    assert list(bitmap) == [3, 4, 7, 11, 18, 29]


def test_inline_portable_vector_is_read() -> None:
    text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    bitmap = read_deletion_vector(Store(), descriptor("i", text, sizeInBytes=44, cardinality=6))
    assert list(bitmap) == [3, 4, 7, 11, 18, 29]


def test_inline_vector_with_padding_is_cut_to_its_size() -> None:
    data = dv.serialize(BitMap64([4]))
    assert len(data) == 34
    decoded = DeletionVectorDescriptor("i", dv.z85_encode(data + b"\0\0"), None, 34, 1)
    assert list(read_deletion_vector(Store(), decoded)) == [4]


def test_inline_text_beyond_32_bits_decodes_as_in_the_jvm() -> None:
    text = "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg##093"  # from a table written by another engine
    assert list(read_deletion_vector(Store(), descriptor("i", text, sizeInBytes=34, cardinality=1))) == [28168]


def test_native_format_is_read_with_its_keys() -> None:
    bitmaps = [BitMap([1, 2]), BitMap(), BitMap([5])]
    for order in "<>":
        data = struct.pack(f"{order}ii", dv.NATIVE_MAGIC, len(bitmaps))
        data += b"".join(struct.pack(f"{order}i", len(b.serialize())) + b.serialize() for b in bitmaps)
        assert list(dv.deserialize(data)) == [1, 2, (2 << 32) + 5]
        for cut in range(4, len(data)):
            with pytest.raises(DeletionVectorError):
                dv.deserialize(data[:cut])


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\0", b"\0" * 40, struct.pack("<i", dv.PORTABLE_MAGIC), struct.pack("<iq", dv.PORTABLE_MAGIC, 7)]
)
def test_bytes_that_are_no_bitmap_are_an_error(data: bytes) -> None:
    with pytest.raises(DeletionVectorError):
        dv.deserialize(data)


def test_rows_beyond_any_file_are_an_error() -> None:
    with pytest.raises(DeletionVectorError) as caught:
        dv.deserialize(dv.serialize(BitMap64([2**63])))
    assert caught.value.error_class == "DELTA_DELETION_VECTOR_INVALID_ROW_INDEX"


def test_row_indexes_are_sorted_int64() -> None:
    indexes = dv.row_indexes(BitMap64([2**40, 0, 7]))
    assert indexes.dtype == np.int64
    assert indexes.tolist() == [0, 7, 2**40]
    assert dv.row_indexes(BitMap64()).tolist() == []


def test_bitmap_from_row_indexes_takes_any_order_and_repeats() -> None:
    assert list(dv.from_row_indexes(np.array([5, 1, 5], np.int64))) == [1, 5]
    assert list(dv.from_row_indexes([5, 1, 5])) == [1, 5]


# ---------------------------------------------------------------- files


def two_vectors() -> tuple[Store, list[BitMap64], tuple[DeletionVectorDescriptor, ...]]:
    bitmaps = [BitMap64([1, 5, 2**33]), BitMap64(range(1000, 90_000))]
    data, descriptors = dv.dv_file_bytes(bitmaps, FILE_ID, "ab")
    path = descriptors[0].path
    assert path is not None
    return Store({path: data}), bitmaps, descriptors


def test_file_of_two_vectors_is_read_back() -> None:
    store, bitmaps, descriptors = two_vectors()
    assert [d.path for d in descriptors] == ["ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"] * 2
    assert [d.offset for d in descriptors] == [1, 1 + descriptors[0].size_in_bytes + 8]
    for expected, vector_descriptor in zip(bitmaps, descriptors, strict=True):
        assert read_deletion_vector(store, vector_descriptor) == expected
    assert len(store.requests) == 2


def test_run_length_encoding_is_used_where_it_is_smaller() -> None:
    assert len(dv.serialize(BitMap64(range(100_000)))) < 100


def test_vector_deep_in_its_file_is_read_by_range() -> None:
    bitmap = BitMap64([3])
    data = dv.serialize(bitmap)
    start = 100_000
    block = bytes([1]) + bytes(start - 1) + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    place = dv.z85_encode(FILE_ID.bytes)
    store = Store({dv.deletion_vector_file_name(FILE_ID): block})
    assert read_deletion_vector(store, DeletionVectorDescriptor("u", place, start, len(data), 1)) == bitmap
    assert store.requests == [(dv.deletion_vector_file_name(FILE_ID), start, len(data) + 8)]


def test_any_flipped_bit_of_a_file_is_an_error() -> None:
    store, _, (first, _) = two_vectors()
    path = first.path
    assert path is not None
    file_bytes = store.files[path]
    for position in range(1 + first.size_in_bytes + 8):
        damaged = bytearray(file_bytes)
        damaged[position] ^= 0x10
        store.files[path] = bytes(damaged)
        with pytest.raises(DeletionVectorError):
            read_deletion_vector(store, first)


def test_file_cut_short_is_a_size_mismatch() -> None:
    store, _, (first, _) = two_vectors()
    path = first.path
    assert path is not None
    file_bytes = store.files[path]
    for length in (1, 3, 5, 20, first.size_in_bytes + 8):
        store.files[path] = file_bytes[:length]
        with pytest.raises(DeletionVectorError) as caught:
            read_deletion_vector(store, first)
        assert caught.value.error_class == "DELTA_DELETION_VECTOR_SIZE_MISMATCH"
    store.files[path] = b""
    with pytest.raises(DeletionVectorError, match="starts with nothing"):
        read_deletion_vector(store, first)


def test_wrong_checksum_is_named_with_both_sums() -> None:
    store, _, (first, _) = two_vectors()
    path = first.path
    assert path is not None
    damaged = bytearray(store.files[path])
    damaged[1 + 4 + first.size_in_bytes] ^= 1
    store.files[path] = bytes(damaged)
    with pytest.raises(DeletionVectorError, match=r"fails its checksum: stored \w{8}, computed \w{8}") as caught:
        read_deletion_vector(store, first)
    assert caught.value.error_class == "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"


def test_other_cardinality_than_the_log_says_is_an_error() -> None:
    store, _, (first, _) = two_vectors()
    wrong = DeletionVectorDescriptor(first.storage_type, first.path_or_inline_dv, first.offset, first.size_in_bytes, 4)
    with pytest.raises(DeletionVectorError, match="holds 3 rows, but the log says 4") as caught:
        read_deletion_vector(store, wrong)
    assert caught.value.error_class == "DELTA_DELETION_VECTOR_CARDINALITY_MISMATCH"


def test_other_size_than_the_log_says_is_an_error() -> None:
    store, _, (first, _) = two_vectors()
    wrong = DeletionVectorDescriptor(first.storage_type, first.path_or_inline_dv, first.offset, first.size_in_bytes - 4, 3)
    with pytest.raises(DeletionVectorError) as caught:
        read_deletion_vector(store, wrong)
    assert caught.value.error_class == "DELTA_DELETION_VECTOR_SIZE_MISMATCH"
    with pytest.raises(DeletionVectorError) as caught:
        read_deletion_vector(store, descriptor("i", SPEC_INLINE, sizeInBytes=36, cardinality=6))
    assert caught.value.error_class == "DELTA_DELETION_VECTOR_SIZE_MISMATCH"


def test_missing_file_is_the_stores_error() -> None:
    _, _, (first, _) = two_vectors()
    with pytest.raises(FileNotFoundError):
        read_deletion_vector(Store(), first)


def test_inline_and_absolute_descriptors_name_the_same_rows() -> None:
    store, bitmaps, (first, _) = two_vectors()
    inline = dv.inline_descriptor(bitmaps[0])
    assert read_deletion_vector(Store(), inline) == bitmaps[0]
    absolute = replace(first, storage_type="p", path_or_inline_dv=f"/my%20table/{first.path}")
    store.files[f"/my table/{first.path}"] = store.files[str(first.path)]
    assert read_deletion_vector(store, absolute) == bitmaps[0]
