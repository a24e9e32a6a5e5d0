"""Check the fields of actions, and read them from JSON.

The checks raise CorruptTableError, with the field's name and value, if a value has a type or range that the protocol forbids.
Protocol: Actions.
"""

from __future__ import annotations

from typing import Any

import orjson

from delta_py.errors import CorruptTableError, shown
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.protocol.paths import decode_path, encode_path

LEAST, MOST = -(2**63), 2**63 - 1  # the range of a long
DAMAGED = " The log is damaged."  # the end of each message; action_to_line cuts it off, because there the caller made the action


def field_error(name: str, value: Any, fault: str) -> CorruptTableError:
    """The error for a field of an action. fault: the rest of a sentence that begins with "which is "."""
    return CorruptTableError(f"{name} is {shown(value)}, which is {fault}.{DAMAGED}", field=name)


def check_int(value: Any, name: str, minimum: int = LEAST) -> None:
    """Refuses fractions, text, booleans, numbers that do not fit into 64 bits, and numbers below `minimum`."""
    if type(value) is not int or not minimum <= value <= MOST:
        raise field_error(name, value, "no valid number")


def check_bool(value: Any, name: str) -> None:
    """Refuses everything but true and false."""
    if type(value) is not bool:
        raise field_error(name, value, "neither true nor false")


def check_text(value: Any, name: str) -> None:
    """Refuses everything but a text."""
    if type(value) is not str:
        raise field_error(name, value, "no text")


def check_texts(value: Any, name: str) -> None:
    """Check a tuple or set of texts."""
    if not isinstance(value, tuple | frozenset):
        raise field_error(name, value, "no list")
    for item in value:
        check_text(item, name)


def check_map(value: Any, name: str, *, nulls: bool = True) -> None:
    """Check a map of texts. nulls: a value may be null instead of a text."""
    if not isinstance(value, dict):
        raise field_error(name, value, "no map")
    for key, item in value.items():
        if type(key) is not str or (type(item) is not str and not (nulls and item is None)):
            raise field_error(f"{name}.{key}", item, "no text")


def check_vector(value: Any, name: str) -> None:
    """Refuses everything but None and a DeletionVectorDescriptor, which checks its own fields."""
    if value is not None and type(value) is not DeletionVectorDescriptor:
        raise field_error(name, value, "no deletion vector")


# ---------------------------------------------------------------- from JSON


def list_as(value: Any, kind: type[Any]) -> Any:
    """Convert a list of texts to `kind`, a tuple or a frozenset. Any other value is returned unchanged, and check_texts refuses
    it later."""
    return kind(value) if isinstance(value, list) and all(type(item) is str for item in value) else value


def fields_of(value: Any, name: str) -> dict[str, Any]:
    """The JSON object in a field of metaData; empty if the field is missing. value: of the field. name: the field's name, for the
    error."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise field_error(f"metaData.{name}", value, "no map")
    return value


def texts_of(value: Any, name: str) -> dict[str, Any]:
    """The map of texts in a field of metaData, without nulls; empty if the field is missing. Numbers and booleans become their
    JSON text, as in delta-spark. Any other value is returned unchanged, and check_map refuses it later."""
    texts = {key: item for key, item in fields_of(value, name).items() if item is not None}
    return {key: orjson.dumps(item).decode() if isinstance(item, bool | int | float) else item for key, item in texts.items()}


def text_or_none(value: Any) -> str | None:
    """The text of a field that no reader needs. A value that is not text is ignored, as it is when files are read as columns."""
    return value if type(value) is str else None


def int_or_none(value: Any) -> int | None:
    """The number of a field that no reader needs; None if it is not a whole number of 64 bits."""
    return value if type(value) is int and LEAST <= value <= MOST else None


def map_or_none(value: Any) -> dict[str, str | None] | None:
    """The map of a field that no reader needs; None if it is not a map of texts and nulls."""
    return value if isinstance(value, dict) and all(item is None or type(item) is str for item in value.values()) else None


def vector_of(value: Any, name: str) -> DeletionVectorDescriptor | None:
    """The descriptor in a field of an action; None if the file has no deletion vector. Raises CorruptTableError."""
    if value is not None and not isinstance(value, dict):
        raise field_error(name, value, "no deletion vector")
    return None if value is None else DeletionVectorDescriptor.from_json(value)


def spelling_of(path: str, text: str | None, name: str) -> str:
    """The encoded text of a path for the log. text: the text that earlier actions on the file have; None for our own encoding.
    Raises CorruptTableError if the text would be decoded to another path."""
    written = encode_path(path) if text is None else text
    if decode_path(written) != path:
        raise field_error(name, path, "not how a path is spelled")
    return written
