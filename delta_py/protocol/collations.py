"""Which texts are not compared by their bytes: what columns say of their collations.

    is_collated(f)      # of the field's own texts, and of those in it at any depth

Order and equality of such texts are the collation's, which this library does not compute: rules and conditions on them are
refused, and statistics of them are neither written nor used. They are stored like all texts.
Protocol: Schema Serialization Format; Column Metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from delta_py.protocol.features import all_fields
from delta_py.types.schema import StructField

_KEYS = ("__COLLATIONS", "collations")  # Spark's, and that of the proposal for the protocol
_BINARY = "UTF8_BINARY"


def is_collated(f: StructField) -> bool:
    """What is said of collations and cannot be read counts as one."""
    return any(_name(text) != _BINARY for part in (f, *all_fields(f.data_type)) for text in _identifiers(part))


def _identifiers(f: StructField) -> Iterator[Any]:
    waiting = [f.metadata[key] for key in _KEYS if key in f.metadata]
    while waiting:
        said = waiting.pop()
        if isinstance(said, dict):
            waiting.extend(said.values())
        else:
            yield said


def _name(identifier: Any) -> str | None:
    """Of `provider.name`, with or without a version behind, or of the name alone."""
    parts = identifier.split(".") if isinstance(identifier, str) else []
    return parts[min(1, len(parts) - 1)] if parts else None
