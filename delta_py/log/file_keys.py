"""What identifies a logical file: its path and, if it has one, its deletion vector's unique id, as one text.

Protocol: Action Reconciliation; Derived Fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Between path and vector: NUL, which no path holds.
_SEPARATOR = "\0"
NO_KEYS = pa.nulls(0, pa.large_string())


def file_key(path: str, vector: Mapping[str, Any] | None) -> str:
    """path: decoded. vector: the deletion vector's descriptor as JSON. Raises KeyError, AttributeError, TypeError for one of
    another form."""
    if vector is None:
        return path
    offset = vector.get("offset")
    return f"{path}{_SEPARATOR}{vector['storageType']}{vector['pathOrInlineDv']}" + ("" if offset is None else f"@{offset}")


def path_of(key: str) -> str:
    """The path of a key."""
    return key.partition(_SEPARATOR)[0]


def file_keys(files: pa.Table) -> pa.LargeStringArray:
    """The key of each file. files: one chunk of `path`, decoded, and `deletion_vector`."""
    vectors = files["deletion_vector"].chunk(0)
    paths = files["path"].chunk(0).cast(pa.large_string())
    if vectors.null_count == len(vectors):
        return paths
    storage, place, offset = (
        pc.struct_field(vectors, name).cast(pa.large_string()) for name in ("storageType", "pathOrInlineDv", "offset")
    )
    at, none, separator = (pa.scalar(text, pa.large_string()) for text in ("@", "", _SEPARATOR))
    suffix = pc.fill_null(pc.binary_join_element_wise(at, offset, none), none)
    identity = pc.binary_join_element_wise(storage, place, suffix, none)
    return pc.coalesce(pc.binary_join_element_wise(paths, identity, separator), paths)


class EachOnce:
    """Of files that are given in batches, which are the first of their key."""

    def __init__(self, repeated: pa.Array) -> None:
        """repeated: the keys, each once, that come more than once among all that will be given."""
        self._repeated = repeated
        self._given = np.zeros(len(repeated), np.bool_)

    @property
    def is_needed(self) -> bool:
        """Whether any key comes more than once."""
        return len(self._repeated) > 0

    def holds(self, files: pa.RecordBatch) -> bool:
        """Whether the key of any of the files comes more than once."""
        return self.is_needed and pc.any(pc.is_in(_keys_of(files), self._repeated)).as_py() is True

    def mask(self, files: pa.RecordBatch) -> pa.BooleanArray | None:
        """True for the files whose key was not given before; None where that is all of them. Call once for each batch."""
        if not (self.is_needed and files.num_rows):
            return None
        places = pc.index_in(_keys_of(files), self._repeated)
        rows = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
        repeated = places.drop_null().to_numpy()
        is_first = np.zeros(len(rows), np.bool_)
        is_first[np.unique(repeated, return_index=True)[1]] = True
        is_first &= ~self._given[repeated]
        self._given[repeated] = True
        keep = np.ones(files.num_rows, np.bool_)
        keep[rows] = is_first
        return pa.array(keep)


def both(first: pa.BooleanArray | None, second: pa.BooleanArray | None) -> pa.BooleanArray | None:
    """Two masks together; None is one of all rows."""
    return (second if first is None else first) if first is None or second is None else pc.and_(first, second)


def _keys_of(files: pa.RecordBatch) -> pa.Array:
    return file_keys(pa.Table.from_batches([files]))
