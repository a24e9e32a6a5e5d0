"""Odd texts and numbers, and JSON with one odd place."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ODD_TEXTS = [
    *("", " ", "\0", "\ud800", "a\nb", "\u202e", "../../x", "/etc/passwd", "x" * 100_000, "${env:HOME}", "%00", "\x1b[2J"),
    *("\u0660", "\ufeff", "e\u0301", "9" * 5000, "-0", "NaN", "null", "..", "a/b", "file://other/x", "s3://u:p@h/x?k=v"),
]
ODD_NUMBERS = [0, -1, 1, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 10**400, 0.5, 1e300]
DEEP = 1_000
_DEEP_MARK = "@DEEP@"


class _Twin(str):
    """A key that an object has a second time."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


@dataclass(frozen=True)
class OddJson:
    """what: the place, and its new value."""

    text: str
    what: str


def mutated_json(text: str | bytes, rng: random.Random) -> OddJson | None:
    """None if the text is not JSON, has no places, or was not changed."""
    parsed = _parsed(text, rng)
    if parsed is None:
        return None
    value, holder, key = parsed
    name, old = _trail(value, holder, key), holder[key]
    what = rng.choice(["drop", "double", "retype", "number", "text", "deep", "null", "rename", "inside"])
    if not _change(holder, key, what, rng):
        return None
    texts = [repr(item)[:60] for item in (old, *([holder[key]] if what in ("retype", "number", "text", "inside") else []))]
    return OddJson(_written(value), f"{name}: {what} {' -> '.join(texts)}")


def _change(holder: Any, key: Any, what: str, rng: random.Random) -> bool:
    old = holder[key]
    match what:
        case "drop":
            del holder[key]
        case "double" if isinstance(holder, dict):
            holder[_Twin(key)] = rng.choice([old, None, *ODD_TEXTS, *ODD_NUMBERS])
        case "double":
            holder.insert(key, old)
        case "retype":
            holder[key] = rng.choice([True, 5, 1.5, "5", [], {}, [old], {"x": old}])
        case "number":
            holder[key] = rng.choice([*ODD_NUMBERS, *_near(old)])
        case "text":
            holder[key] = rng.choice(ODD_TEXTS)
        case "null":
            holder[key] = None
        case "deep":
            holder[key] = _DEEP_MARK
        case "rename" if isinstance(holder, dict):
            holder[rng.choice(ODD_TEXTS)] = holder.pop(key)
        case "inside" if isinstance(old, str) and old.startswith(("{", "[")):
            inner = _inside(old, rng)
            if inner is None:
                return False
            holder[key] = inner
        case _:
            return False
    return True


def _near(old: Any) -> list[Any]:
    return [old - 1, old + 1] if type(old) is int else []


def _inside(text: str, rng: random.Random) -> str | None:
    """JSON within JSON: schemas, statistics, configurations of domains."""
    parsed = _parsed(text, rng)
    if parsed is None:
        return None
    value, holder, key = parsed
    holder[key] = rng.choice([*ODD_TEXTS, *ODD_NUMBERS, None, True, [], {}, "decimal(99,99)", "array<" * 3000, _DEEP_MARK])
    return _written(value)


def _parsed(text: str | bytes, rng: random.Random) -> tuple[Any, Any, Any] | None:
    """The value, and any place in it: its container and its key."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    places = list(_places(value))
    return (value, *rng.choice(places)) if places else None


def _written(value: Any) -> str:
    return json.dumps(value).replace(f'"{_DEEP_MARK}"', "[" * DEEP + "]" * DEEP)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key, item in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
            yield value, key
            yield from _places(item)


def _trail(root: Any, holder: Any, key: Any) -> str:
    for name, value in root.items() if isinstance(root, dict) else []:
        if value is holder:
            return f"{name}.{key}"
    return str(key)
