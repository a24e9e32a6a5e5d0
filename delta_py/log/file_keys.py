"""What identifies a logical file: its path and, if it has one, its deletion vector's unique id, as one text.

Protocol: Action Reconciliation (logical file); Derived Fields (uniqueId of a deletion vector).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# Between path and vector: NUL, which no path holds.
_SEPARATOR = "\0"


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


def file_keys(files: pa.Table) -> pa.Array:
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
