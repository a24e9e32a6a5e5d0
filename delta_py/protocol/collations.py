"""Collations of columns: which texts are not compared by their bytes.

    is_collated(f)      # the field itself, and the fields in it at any depth

The collation defines order and equality of such texts, and this library does not compute them. So it refuses rules and conditions
on such columns, and neither writes nor uses their statistics. The texts are stored like all others.
Protocol: Schema Serialization Format; Column Metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from delta_py.types.schema import StructField
from delta_py.types.type_walk import all_fields

_KEYS = ("__COLLATIONS", "collations")  # the key of Spark, and the key in the protocol proposal
_BINARY = "UTF8_BINARY"


def is_collated(f: StructField) -> bool:
    """Whether a field, or a field in it at any depth, has a collation other than UTF8_BINARY, which compares bytes. An entry that
    cannot be parsed counts as a collation."""
    return any(_collation_name(text) != _BINARY for part in (f, *all_fields(f.data_type)) for text in _identifiers(part))


def _identifiers(f: StructField) -> Iterator[Any]:
    """The collations in the field's own metadata, such as `spark.UTF8_LCASE`. An entry maps parts of the field to collations, and
    may be nested."""
    entries = [f.metadata[key] for key in _KEYS if key in f.metadata]
    while entries:
        entry = entries.pop()
        if isinstance(entry, dict):
            entries.extend(entry.values())
        else:
            yield entry


def _collation_name(identifier: Any) -> str | None:
    """The collation's name in an identifier: `name`, `provider.name` or `provider.name.version`. None if it is no text."""
    parts = identifier.split(".") if isinstance(identifier, str) else []
    # The second part is the name; an identifier without a provider has only the name.
    return parts[min(1, len(parts) - 1)] if parts else None
