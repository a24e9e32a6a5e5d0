"""Arguments of deltalake's methods: their older, positional form, times, and arguments that are refused."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.fs as pa_fs

from delta_py.definition.properties import known_name
from delta_py.errors import InvalidOptionError, SchemaMismatchError
from delta_py.log.history import version_at_timestamp
from delta_py.scan.time_travel import to_timestamp_ms
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.column_rules import GENERATION
from delta_py.types.schema import StructType

_OFFSET = re.compile(r"(?:[zZ]|[+-]\d\d:\d\d)$")
# Older versions of deltalake took these two arguments by position: some methods in the one order, some in the other.
COMMIT_FIRST = ("commit_properties", "post_commithook_properties")
HOOKS_FIRST = ("post_commithook_properties", "commit_properties")


def named_arguments(method: str, args: Sequence[Any], names: Sequence[str], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """All arguments of a call by their names.

    method: its name, for messages. args: the arguments that the caller passed by position. names: the names of these positions.
    keywords: the arguments by name; None for one that the caller left out. Positional arguments cause a DeprecationWarning.
    Raises TypeError for too many arguments, and for one that is given twice.
    """
    values = dict(keywords)
    if not args:
        return values
    if len(args) > len(names):
        raise TypeError(f"{method}() got unexpected positional arguments: it takes at most {len(names)} of them here")
    warnings.warn(
        f"Passing commit arguments positionally to {method}() is deprecated. Use keyword arguments instead.",
        DeprecationWarning,
        stacklevel=4,
    )
    for name, value in zip(names, args, strict=False):
        if values.get(name) is not None:
            raise TypeError(f"{method}() got multiple values for '{name}'")
        values[name] = value
    return values


def version_or_time(version: Any) -> Any:
    """A version number unchanged, or a time as a datetime; None for None. version: a number, a datetime, or the text of a time.
    Raises TypeError for another type; InvalidOptionError for a text that is no time, or has no offset from UTC."""
    if version is None or (isinstance(version, int) and not isinstance(version, bool)):
        return version
    if isinstance(version, datetime):
        return version.astimezone(UTC)
    if not isinstance(version, str):
        raise TypeError(f"A version is a whole number, a text or a datetime, and not {type(version).__name__}.")
    try:
        # datetime.min has no zone, so the check below reports the text.
        time = datetime.fromisoformat(version) if _OFFSET.search(version) else datetime.min
    except ValueError:
        time = datetime.min
    if time.tzinfo is None:
        raise InvalidOptionError(
            f"Failed to parse datetime string: {version!r}. Give a time with its offset, such as 2024-05-01T00:00:00+00:00.",
            option="version",
        )
    return time


def version_of(store: ObjectStore, version: int | datetime) -> int:
    """The version of a time: the newest one at or before it, or the first one for an earlier time, as in deltalake."""
    if isinstance(version, int):
        return version
    timestamp_ms = to_timestamp_ms(version, "UTC")
    config = Snapshot.load(store).config
    return version_at_timestamp(store, timestamp_ms, config, or_last=True, or_earliest=True)


def known_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties whose names Delta knows. Each other property is left out, with a warning."""
    recognized = {}
    for name, value in properties.items():
        try:
            known_name(name)
        except InvalidOptionError:
            warnings.warn(f"The property {name} is unknown, and left out.", UserWarning, stacklevel=3)
            continue
        recognized[name] = value
    return recognized


def refuse_generated_columns(table_columns: StructType, new_columns: StructType) -> None:
    """Raises SchemaMismatchError if a column that the table lacks is a generated column. new_columns: may have columns of the
    table, too."""
    generated = [
        field.name for field in new_columns.fields if table_columns.find(field.name) is None and GENERATION in field.metadata
    ]
    if generated:
        raise SchemaMismatchError(
            f"The new columns {', '.join(generated)} cannot be generated: existing rows would have no value. Nothing was "
            "written. Create a new table with them, and write the rows into it."
        )


def as_file_system(filesystem: Any) -> Any:
    """pyarrow's file system for a URI; any other value is returned unchanged."""
    return pa_fs.FileSystem.from_uri(filesystem)[0] if isinstance(filesystem, str) else filesystem


def without_statistics(actions: pa.Table) -> pa.Table:
    """The rows of get_add_actions, with nulls in the columns of statistics. Flattened ones have names such as `min.price`."""
    for position, name in enumerate(actions.column_names):
        if name.split(".")[0] in ("num_records", "null_count", "min", "max"):
            actions = actions.set_column(position, name, pa.nulls(actions.num_rows, actions[name].type))
    return actions
