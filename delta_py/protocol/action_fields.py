"""What a field of an action may be, and how it is taken from JSON.

The checks raise CorruptTableError, with the field's name and value, for one of another type or range than the protocol's.
Protocol: Actions.
"""

from __future__ import annotations

from typing import Any

import orjson

from delta_py.errors import CorruptTableError, shown
from delta_py.protocol.deletion_vectors import DeletionVectorDescriptor
from delta_py.protocol.paths import decode_path, encode_path

LEAST, MOST = -(2**63), 2**63 - 1
DAMAGED = " The log is damaged."


def wrong(name: str, value: Any, what: str) -> CorruptTableError:
    return CorruptTableError(f"{name} is {shown(value)}, which is {what}.{DAMAGED}", field=name)


def check_int(value: Any, name: str, minimum: int = LEAST) -> None:
    """Refuses fractions, text, booleans, what does not fit 64 bits, and what is below `minimum`."""
    if type(value) is not int or not minimum <= value <= MOST:
        raise wrong(name, value, "no valid number")


def check_bool(value: Any, name: str) -> None:
    if type(value) is not bool:
        raise wrong(name, value, "neither true nor false")


def check_text(value: Any, name: str) -> None:
    if type(value) is not str:
        raise wrong(name, value, "no text")


def check_texts(value: Any, name: str) -> None:
    """A tuple or set of texts."""
    if not isinstance(value, tuple | frozenset):
        raise wrong(name, value, "no list")
    for item in value:
        check_text(item, name)


def check_map(value: Any, name: str, *, nulls: bool = True) -> None:
    """Of texts. nulls: there may be null in the place of a text."""
    if not isinstance(value, dict):
        raise wrong(name, value, "no map")
    for key, item in value.items():
        if type(key) is not str or (type(item) is not str and not (nulls and item is None)):
            raise wrong(f"{name}.{key}", item, "no text")


def check_vector(value: Any, name: str) -> None:
    """What it says, it checks by itself."""
    if value is not None and type(value) is not DeletionVectorDescriptor:
        raise wrong(name, value, "no deletion vector")


# ---------------------------------------------------------------- from JSON


def as_kind(value: Any, kind: type[Any]) -> Any:
    """A list as a tuple or set; what is no list stays, for the check."""
    return kind(value) if isinstance(value, list) and all(type(item) is str for item in value) else value


def fields_of(value: Any, name: str) -> dict[str, Any]:
    """An object of metaData, empty where there is none."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong(f"metaData.{name}", value, "no map")
    return value


def texts_of(value: Any, name: str) -> dict[str, Any]:
    """A map of texts in metaData, without nulls. Numbers and booleans are taken as JSON writes them, as the reference does."""
    texts = {key: item for key, item in fields_of(value, name).items() if item is not None}
    return {key: orjson.dumps(item).decode() if isinstance(item, bool | int | float) else item for key, item in texts.items()}


def text_or_none(value: Any) -> str | None:
    """Of a field that no reader needs: what is no text is passed over, as where files are read as columns."""
    return value if type(value) is str else None


def int_or_none(value: Any) -> int | None:
    return value if type(value) is int and LEAST <= value <= MOST else None


def map_or_none(value: Any) -> dict[str, str | None] | None:
    return value if isinstance(value, dict) and all(item is None or type(item) is str for item in value.values()) else None


def vector_of(value: Any, name: str) -> DeletionVectorDescriptor | None:
    if value is not None and not isinstance(value, dict):
        raise wrong(name, value, "no deletion vector")
    return None if value is None else DeletionVectorDescriptor.from_json(value)


def spelling_of(path: str, text: str | None, name: str) -> str:
    """A path as the log spells it. Raises CorruptTableError for one that would come out of the log as another."""
    written = encode_path(path) if text is None else text
    if decode_path(written) != path:
        raise wrong(name, path, "not how a path is spelled")
    return written
