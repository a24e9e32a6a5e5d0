"""The key of a logical file: its path and, if it has a deletion vector, the vector's unique id, as one text.

Protocol: Action Reconciliation; Derived Fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import CorruptTableError, shown
from delta_py.protocol.paths import decode_path

# Between path and vector: NUL, which no path contains.
_SEPARATOR = "\0"
# For hashes of keys. _WORD_BYTES: how many bytes are hashed at a time. Only the first _HASHED_BYTES of a key are hashed; keys
# that differ only after them get the same hash, and then the keys themselves are compared.
# _MULTIPLIER: 2^64 divided by the golden ratio, which spreads similar numbers (Fibonacci hashing).
_WORD_BYTES, _HASHED_BYTES, _MULTIPLIER = 8, 512, np.uint64(0x9E3779B97F4A7C15)
NO_KEYS = pa.nulls(0, pa.large_string())


def path_and_key(action: Any) -> tuple[str, str]:
    """The decoded path and the key of an add or remove. action: its JSON value in the log. Raises CorruptTableError if its form
    is wrong."""
    if type(action) is not dict:
        raise CorruptTableError(f"The action is {shown(action)} and no JSON object. The log is damaged.")
    text = action.get("path")
    if type(text) is not str:
        raise CorruptTableError(f"The action's path is {shown(text)}, which is no text. The log is damaged.")
    path = decode_path(text)
    return path, file_key(path, action.get("deletionVector"))


def file_key(path: str, vector: Any) -> str:
    """The key of a file. path: decoded. vector: the deletion vector's descriptor as JSON. Raises CorruptTableError if its form is
    wrong."""
    if vector is None:
        return path
    if type(vector) is dict:
        storage, place, offset = vector.get("storageType"), vector.get("pathOrInlineDv"), vector.get("offset")
        if type(storage) is str and type(place) is str and (offset is None or type(offset) is int):
            return path + _SEPARATOR + storage + place + ("" if offset is None else f"@{offset}")
    raise CorruptTableError(f"A deletion vector's descriptor is not valid: {shown(vector)}. The log is damaged.")


def path_of(key: str) -> str:
    """The decoded path in a key."""
    return key.partition(_SEPARATOR)[0]


def file_keys(files: pa.Table) -> pa.LargeStringArray:
    """The key of each file. files: has the columns `path` (decoded) and `deletion_vector`, each in one chunk."""
    vectors = files["deletion_vector"].chunk(0)
    paths = files["path"].chunk(0).cast(pa.large_string())
    if vectors.null_count == len(vectors):
        return paths
    storage, place, offset = (
        pc.struct_field(vectors, name).cast(pa.large_string()) for name in ("storageType", "pathOrInlineDv", "offset")
    )
    at_sign, empty, separator = (pa.scalar(text, pa.large_string()) for text in ("@", "", _SEPARATOR))
    suffix = pc.fill_null(pc.binary_join_element_wise(at_sign, offset, empty), empty)
    identity = pc.binary_join_element_wise(storage, place, suffix, empty)
    # Without a vector, `identity` and the join are null, and the path alone is the key.
    return pc.coalesce(pc.binary_join_element_wise(paths, identity, separator), paths)


def keys_of(files: pa.RecordBatch) -> pa.LargeStringArray:
    """The key of each file of one batch. files: has the columns `path` (decoded) and `deletion_vector`."""
    return file_keys(pa.Table.from_batches([files])) if files.num_rows else NO_KEYS


def key_hashes(keys: pa.LargeStringArray) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A 64-bit hash of each key, computed from its length and its first _HASHED_BYTES. Equal keys have equal hashes.

    The loop is over the position in the keys and not over the keys: each step hashes the next eight bytes of all keys at once.
    """
    _, offsets, buffer = keys.buffers()
    # Key i has the bytes from edges[i] to edges[i + 1] of the buffer.
    edges = np.frombuffer(offsets, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    lengths = np.diff(edges)
    hashes = lengths.astype(np.uint64) * _MULTIPLIER
    if buffer is None or not len(keys):
        return hashes
    padded = np.concatenate([np.frombuffer(buffer, np.uint8)[edges[0] : edges[-1]], np.zeros(_WORD_BYTES, np.uint8)])
    # words[i]: the eight bytes that start at byte i, as a number. The padding makes this valid for the last byte of the last key.
    words = np.ndarray((len(padded) - _WORD_BYTES + 1,), "<u8", padded, strides=(1,))
    starts, rows = edges[:-1] - edges[0], np.arange(len(keys))  # rows: positions of the keys that have bytes left to hash
    for hashed_bytes in range(0, min(int(lengths.max()), _HASHED_BYTES), _WORD_BYTES):
        rows = rows[lengths[rows] > hashed_bytes]
        # If a key ends within the word, the shift drops the bytes after its end.
        unused = (_WORD_BYTES - np.minimum(lengths[rows] - hashed_bytes, _WORD_BYTES)).astype(np.uint64) * np.uint64(8)
        mixed = (hashes[rows] ^ (words[starts[rows] + hashed_bytes] << unused)) * _MULTIPLIER
        hashes[rows] = mixed ^ (mixed >> np.uint64(32))
    return hashes


def repeated_keys(keys: Callable[[], Iterable[pa.LargeStringArray]]) -> tuple[int, pa.LargeStringArray]:
    """The number of distinct keys, and the keys that occur more than once.

    keys: returns all keys, batch by batch; it is called a second time if keys may be repeated. Memory holds eight bytes per key,
    the hash, because the keys of a large checkpoint may not fit.
    """
    hashes = np.concatenate([np.empty(0, np.uint64), *map(key_hashes, keys())])
    count = len(hashes)
    hashes.sort()
    # Hashes that occur more than once: of a repeated key, or of different keys that have the same hash.
    suspects = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    if not len(suspects):
        return count, NO_KEYS
    suspect_batches = [batch.filter(pa.array(np.isin(key_hashes(batch), suspects))) for batch in keys()]
    counts = pc.value_counts(pa.chunked_array(suspect_batches, pa.large_string()))
    repeated = pc.greater(counts.field("counts"), 1)
    # Each suspect key counts once, however often it occurs.
    return count - sum(map(len, suspect_batches)) + len(counts), counts.field("values").filter(repeated)


class DuplicateFilter:
    """Selects the first file of each key from files that arrive in batches: a faulty checkpoint may name a file more than once,
    and the file must count once."""

    def __init__(self, repeated: pa.Array) -> None:
        """repeated: the distinct keys that occur more than once in all batches together."""
        self._repeated = repeated
        # For each repeated key, whether `keep_mask` has already selected a file that has it.
        self._selected = np.zeros(len(repeated), np.bool_)

    @property
    def is_needed(self) -> bool:
        """Whether any key occurs more than once."""
        return len(self._repeated) > 0

    def has_repeated(self, files: pa.RecordBatch) -> bool:
        """Whether the key of any of the files occurs more than once in all batches."""
        return self.is_needed and pc.any(pc.is_in(keys_of(files), self._repeated)).as_py() is True

    def keep_mask(self, files: pa.RecordBatch) -> pa.BooleanArray | None:
        """True for files whose key did not occur before; None if that is true of all files. Call once for each batch."""
        if not (self.is_needed and files.num_rows):
            return None
        # `rows`: the rows of this batch whose keys are repeated. `repeated`: for each of them, the place of its key.
        places = pc.index_in(keys_of(files), self._repeated)
        rows = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
        repeated = places.drop_null().to_numpy()
        is_first = np.zeros(len(rows), np.bool_)
        is_first[np.unique(repeated, return_index=True)[1]] = True  # the first row of each key in this batch
        is_first &= ~self._selected[repeated]  # and no file of an earlier batch has the key
        self._selected[repeated] = True
        keep = np.ones(files.num_rows, np.bool_)
        keep[rows] = is_first
        return pa.array(keep)


def intersect_masks(first: pa.BooleanArray | None, second: pa.BooleanArray | None) -> pa.BooleanArray | None:
    """Combine two masks. None is a mask that keeps all rows."""
    if first is None or second is None:
        return second if first is None else first
    return pc.and_(first, second)
