"""Settings for the definitions of tables that a block of code creates or changes, whatever operation does it.

    with definition_settings(DefinitionSettings(enabled_features=frozenset({"timestampNtz"}))):
        write_delta("/data/events", rows_with_a_new_column, mode="append", merge_schema=True)

They hold in the thread of the block. Without them definitions follow delta-spark.
Protocol: Table Features for New and Existing Tables; Change Metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DefinitionSettings:
    """How tables are defined. allows_any_name: whether columns may have names such as `high price` without column mapping.
    enabled_features: features that a table gets when a new column needs them; clients that do not know them can no longer use the
    table. prefers_versions: whether a protocol without a list of features gets a higher version instead of a list, if a version
    has all needed features. lists_used_features: whether the list of a new table has only the features in use, without appendOnly
    and invariants.
    keeps_not_null: whether columns that an overwrite of the schema takes from the data keep their NOT NULL.
    allows_any_property: whether properties may be set whose names begin with `delta.` and are unknown."""

    allows_any_name: bool = False
    enabled_features: frozenset[str] = frozenset()
    prefers_versions: bool = False
    lists_used_features: bool = False
    keeps_not_null: bool = False
    allows_any_property: bool = False


_DEFAULTS = DefinitionSettings()
_settings: ContextVar[DefinitionSettings] = ContextVar("definition_settings", default=_DEFAULTS)


def current_definition_settings() -> DefinitionSettings:
    return _settings.get()


@contextmanager
def definition_settings(settings: DefinitionSettings) -> Iterator[None]:
    """Define the tables that the block creates or changes by these settings. They replace all settings of an outer block."""
    token = _settings.set(settings)
    try:
        yield
    finally:
        _settings.reset(token)
