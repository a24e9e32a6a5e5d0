"""Column mapping usage tracking: whether a column of the table was ever dropped or renamed.

    metadata = tracked(before, after)      # after: a table's config as a commit would leave it

While none was, physical names of columns that come may be their logical ones, and column mapping can be taken off without a
rewrite. So whoever drops or renames a column, at any depth and by any command, says so in a property, which never goes back.
The feature is of a proposal to the protocol.
Protocol: Writer Requirements for Column Mapping.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from delta_py.protocol.actions import Metadata
from delta_py.protocol.column_mapping import ID
from delta_py.protocol.features import fields_with_paths
from delta_py.protocol.table_config import TableConfig
from delta_py.types.schema import StructType

_FEATURE = "columnMappingUsageTracking"
FLAG = "delta.columnMapping.hasDroppedOrRenamed"


def tracked(before: TableConfig | None, after: TableConfig) -> Metadata:
    """The metadata with the flag as it must be. before: None for a new table, whose flag a clone has of its source.

    What was not tracked may have happened: a table that gets the feature later, or has no flag, counts as changed.
    """
    if not after.feature(_FEATURE):
        return after.metadata
    if before is None:
        is_changed = after.properties.boolean(FLAG)
    elif not before.feature(_FEATURE) or before.properties.boolean(FLAG, default=True):
        is_changed = True
    else:
        names = dict(_names(after.schema))
        is_changed = after.properties.boolean(FLAG) or any(names.get(key) != name for key, name in _names(before.schema))
    value = "true" if is_changed else "false"
    if after.properties.get(FLAG) == value:
        return after.metadata
    kept = {name: text for name, text in after.metadata.configuration.items() if name.lower() != FLAG.lower()}
    return replace(after.metadata, configuration={**kept, FLAG: value})


def _names(schema: StructType) -> Iterator[tuple[object, str]]:
    """Every field by its id, or by its path where it has none, with its name."""
    return ((f.metadata.get(ID, path), f.name) for path, f in fields_with_paths(schema))
