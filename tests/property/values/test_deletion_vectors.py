"""Deletion vectors: bytes round-trip, and damaged bytes are errors, never other rows."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from delta_py.errors import DeletionVectorError
from delta_py.protocol.deletion_vectors import (
    dv_file_bytes,
    from_row_indexes,
    inline_descriptor,
    read_deletion_vector,
    row_indexes,
    z85_decode,
    z85_encode,
)

ROWS = st.lists(st.one_of(st.integers(0, 200_000), st.integers(0, 2**40), st.integers(0, 2**63 - 1)), max_size=60)
RUNS = st.tuples(st.integers(0, 2**34), st.integers(0, 5000)).map(lambda run: list(range(run[0], run[0] + run[1])))


class OneFile:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length]


@given(st.binary(max_size=64).map(lambda data: data + bytes(-len(data) % 4)))
def test_z85_round_trips(data: bytes) -> None:
    assert z85_decode(z85_encode(data)) == data


@given(st.lists(st.one_of(ROWS, RUNS), min_size=1, max_size=4), st.uuids())
def test_vectors_of_a_file_are_read_back(vectors: list[list[int]], file_id: UUID) -> None:
    bitmaps = [BitMap64(rows) for rows in vectors]
    data, descriptors = dv_file_bytes(bitmaps, file_id)
    for bitmap, descriptor, rows in zip(bitmaps, descriptors, vectors, strict=True):
        assert read_deletion_vector(OneFile(data), descriptor) == bitmap
        assert read_deletion_vector(OneFile(b""), inline_descriptor(bitmap)) == bitmap
        assert row_indexes(bitmap).tolist() == sorted(set(rows))
        assert from_row_indexes(row_indexes(bitmap)) == bitmap


@given(st.one_of(ROWS, RUNS), st.data())
def test_damage_anywhere_in_a_file_is_an_error(rows: list[int], data: st.DataObject) -> None:
    block, (descriptor,) = dv_file_bytes([BitMap64(rows)], UUID(int=1))
    position = data.draw(st.integers(0, len(block) - 1))
    damaged = bytearray(block)
    damaged[position] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, len(block) - 1))
    for bad in (bytes(damaged), block[:cut]):
        try:
            read_deletion_vector(OneFile(bad), descriptor)
        except DeletionVectorError:
            continue
        raise AssertionError(f"{bad.hex()} was read as {descriptor}")


@given(st.binary(max_size=80).map(lambda data: data + bytes(-len(data) % 4)), st.integers(0, 5))
def test_any_inline_bytes_are_rows_or_an_error(noise: bytes, kind: int) -> None:
    magics = [b"\xd1\xd3\x39\x64", b"\xd0\xd3\x39\x64", b"\x64\x39\xd3\xd0", b""]
    text = z85_encode(magics[kind % 4] + noise)
    descriptor = inline_descriptor(BitMap64([1]))
    try:
        read_deletion_vector(OneFile(b""), type(descriptor)("i", text, None, len(text) // 5 * 4, 1))
    except DeletionVectorError:
        return
