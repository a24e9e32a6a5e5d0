"""Column mapping usage tracking: whether a column of the table was ever dropped or renamed.

    metadata = with_usage_flag(before, after)      # after: a table's config as a commit would leave it

As long as no column was dropped or renamed, new columns may use their logical names as physical names, and column mapping can be
removed without a rewrite. So every command that drops or renames a column, at any depth, sets a property, which is never reset.
The feature is part of a protocol proposal.
Protocol: Writer Requirements for Column Mapping.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from delta_py.protocol.actions import Metadata
from delta_py.protocol.column_mapping import ID
from delta_py.protocol.table_config import TableConfig
from delta_py.types.schema import StructType
from delta_py.types.type_walk import fields_with_paths

_FEATURE = "columnMappingUsageTracking"
FLAG = "delta.columnMapping.hasDroppedOrRenamed"


def with_usage_flag(before: TableConfig | None, after: TableConfig) -> Metadata:
    """The metadata of a commit, in which FLAG says whether a column was ever dropped or renamed.

    before: the table before the commit; None for a new table. after: as the commit would leave it. The metadata of a clone
    already has the flag of its source.

    Changes before tracking are unknown, so a table that gets the feature later, or has no flag, counts as changed.
    """
    if not after.feature(_FEATURE):
        return after.metadata
    if before is None:
        is_changed = after.properties.boolean(FLAG)
    elif not before.feature(_FEATURE) or before.properties.boolean(FLAG, default=True):
        is_changed = True
    else:
        # The names after the change: a dropped field has none here, and a renamed field has another one.
        names = dict(_names_by_id(after.schema))
        is_changed = after.properties.boolean(FLAG) or any(names.get(key) != name for key, name in _names_by_id(before.schema))
    value = "true" if is_changed else "false"
    if after.properties.get(FLAG) == value:
        return after.metadata
    other_properties = {name: text for name, text in after.metadata.configuration.items() if name.lower() != FLAG.lower()}
    return replace(after.metadata, configuration={**other_properties, FLAG: value})


def _names_by_id(schema: StructType) -> Iterator[tuple[object, str]]:
    """The name of every field, by its id, or by its path if it has no id."""
    return ((f.metadata.get(ID, path), f.name) for path, f in fields_with_paths(schema))
