"""Checks messages between the rule and the source by spark_plugin/pruning/messages.json, with the keywords of JSON Schema that it
uses.

    assert violations("plan", message) == []

A violation is a text for people.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import spark_plugin.pruning

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_KNOWN = {
    *("$ref", "description", "type", "enum", "const", "oneOf", "properties", "required", "additionalProperties", "propertyNames"),
    *("items", "minimum", "pattern"),
}


@cache
def schema() -> dict[str, Any]:
    all_definitions: dict[str, Any] = json.loads((Path(spark_plugin.pruning.__file__).parent / "messages.json").read_text())
    return all_definitions


def violations(name: str, message: Any) -> list[str]:
    """name: of a definition. Each violation names the place in the message."""
    return _check(message, {"$ref": f"#/$defs/{name}"}, name)


def _check(value: Any, rule: Any, place: str) -> list[str]:
    assert rule.keys() <= _KNOWN, rule.keys() - _KNOWN
    if "$ref" in rule:
        return _check(value, schema()["$defs"][rule["$ref"].removeprefix("#/$defs/")], place)
    if "oneOf" in rule:
        problems_by_choice = [_check(value, choice, place) for choice in rule["oneOf"]]
        return (
            []
            if sum(not each for each in problems_by_choice) == 1
            else [f"{place} is not exactly one of the choices: {problems_by_choice}"]
        )
    if "type" in rule and not _is_of_type(value, rule["type"]):
        return [f"{place} is {value!r} and not {rule['type']}"]
    if "enum" in rule and value not in rule["enum"]:
        return [f"{place} is {value!r}, which is not listed"]
    if "const" in rule and value != rule["const"]:
        return [f"{place} is {value!r} and not {rule['const']!r}"]
    if value is not None and value < rule["minimum"] if "minimum" in rule else False:
        return [f"{place} is {value!r}"]
    if "pattern" in rule and re.search(rule["pattern"], value) is None:
        return [f"{place} is {value!r}"]
    if isinstance(value, list) and "items" in rule:
        return [each for number, item in enumerate(value) for each in _check(item, rule["items"], f"{place}[{number}]")]
    return _check_object(value, rule, place) if isinstance(value, dict) else []


def _check_object(value: dict[str, Any], rule: dict[str, Any], place: str) -> list[str]:
    parts, additional = rule.get("properties", {}), rule.get("additionalProperties", True)
    problems = [f"{place} lacks {name}" for name in rule.get("required", ()) if name not in value]
    for name, part in value.items():
        if "propertyNames" in rule:
            problems += _check(name, rule["propertyNames"], f"{place}'s {name}")
        if name in parts:
            problems += _check(part, parts[name], f"{place}.{name}")
        elif additional is False:
            problems.append(f"{place} has {name}")
        elif additional is not True:
            problems += _check(part, additional, f"{place}.{name}")
    return problems


def _is_of_type(value: Any, names: str | list[str]) -> bool:
    kinds = [kind for name in ([names] if isinstance(names, str) else names) for kind in _TYPES[name]]
    return isinstance(value, tuple(kinds)) and not (isinstance(value, bool) and bool not in kinds)
