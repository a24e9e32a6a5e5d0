"""Names, descriptions and comments: what a table and its columns say about themselves to people.

    set_table_name(store, "events")                                        # the version
    set_column_metadata(store, "id", {"comment": "the customer"})

Protocol: Change Metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from delta_py.alter.alter_columns import commit_schema
from delta_py.commit.transaction import Transaction
from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from delta_py.protocol.table_config import Operation
from delta_py.row_rules.evolution import FOREIGN_METADATA
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.char_types import DECLARED_TYPE
from delta_py.types.schema_edits import edit_field, resolve_path

_LONGEST_NAME, _LONGEST_DESCRIPTION = 255, 4000  # characters


def set_table_name(store: ObjectStore, name: str) -> int:
    """Set the table's name in its metadata; returns the version. Raises InvalidOptionError for an empty or very long name."""
    if not 0 < len(name or "") <= _LONGEST_NAME:
        raise InvalidOptionError(
            f"The name of a table has 1 to {_LONGEST_NAME} characters. Nothing was changed. Give another one.", option="name"
        )
    return _commit_metadata(store, {"name": name}, "UPDATE TABLE METADATA")


def set_table_description(store: ObjectStore, description: str) -> int:
    """Set the table's description; returns the version. Raises InvalidOptionError for a very long description."""
    if len(description or "") > _LONGEST_DESCRIPTION:
        raise InvalidOptionError(
            f"The description of a table has at most {_LONGEST_DESCRIPTION} characters. Nothing was changed. Give a shorter one.",
            option="description",
        )
    return _commit_metadata(store, {"description": description}, "UPDATE TABLE METADATA")


def _commit_metadata(store: ObjectStore, changes: dict[str, Any], operation: str) -> int:
    """Commit new values of fields of the metaData action; returns the version, or the newest if nothing changes. changes: the new
    values by field. operation: for the history."""
    snapshot = Snapshot.load(store)
    snapshot.config.require(Operation.WRITE)
    metadata = replace(snapshot.metadata, **changes)
    if metadata == snapshot.metadata:
        return snapshot.version
    return Transaction(snapshot).set_metadata(metadata).commit(operation, {"metadata_update": changes})


def set_column_metadata(store: ObjectStore, column: str, metadata: Mapping[str, Any]) -> int:
    """Add keys to the metadata of a column, nested ones dotted, or replace their values; returns the version.

    Raises SchemaMismatchError for a column that the table lacks; UnsupportedOperationError for keys that give a column rules
    by the protocol, because the existing rows are not checked here.
    """
    snapshot = Snapshot.load(store)
    rules = sorted(key for key in metadata if key.startswith((*FOREIGN_METADATA, DECLARED_TYPE)))
    if rules:
        raise UnsupportedOperationError(
            f"{', '.join(rules)} of column {column} are rules of the Delta protocol, and are not set as metadata. Nothing was "
            "changed. Use alter.change_column, or create the table with them.",
            column=column,
        )
    path = resolve_path(snapshot.schema, column)
    schema = edit_field(snapshot.schema, path, lambda f: replace(f, metadata={**f.metadata, **metadata}))
    return commit_schema(snapshot, schema, "UPDATE FIELD METADATA", {"column": column, "metadata": dict(metadata)})
