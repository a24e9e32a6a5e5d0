"""docs/command-line.schema.json: the forms of the command line's JSON answers, and whether an answer has one.

An answer has exactly the names of its form: a missing name breaks scripts, and an additional one is not documented.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.documents.pages import ROOT

SCHEMA = json.loads((ROOT / "docs" / "command-line.schema.json").read_text())
FORMS: dict[str, Any] = SCHEMA["$defs"]
"""By command, and by SQL type."""

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "integer": (int,), "number": (int, float),
    "null": (type(None),),
}
_KEYWORDS = {
    "$ref", "description", "anyOf", "enum", "type", "pattern", "minimum", "maximum", "required", "properties",
    "additionalProperties", "items", "prefixItems", "minItems", "maxItems",
}


def faults(answer: Any, form: Any, place: str = "") -> list[str]:
    """The differences between an answer and the form, which is a JSON schema."""
    if form is True:
        return []
    assert form.keys() <= _KEYWORDS, f"{place}: {form.keys() - _KEYWORDS} is not checked"
    if "$ref" in form:
        return faults(answer, FORMS[form["$ref"].removeprefix("#/$defs/")], place)
    if "anyOf" in form:
        faults_by_choice = [faults(answer, one, place) for one in form["anyOf"]]
        return [] if [] in faults_by_choice else [fault for one in faults_by_choice for fault in one]
    if "enum" in form and answer not in form["enum"]:
        return [f"{place}: {answer!r} is none of {form['enum']}"]
    if "type" in form and not _has_type(answer, form["type"]):
        return [f"{place}: {answer!r} is no {form['type']}"]
    match answer:
        case str():
            return [] if re.search(form.get("pattern", ""), answer) else [f"{place}: {answer!r} is not as {form['pattern']}"]
        case dict():
            return _faults_of_object(answer, form, place)
        case list():
            return _faults_of_list(answer, form, place)
        case int():
            is_within = form.get("minimum", answer) <= answer <= form.get("maximum", answer)
            return [] if is_within else [f"{place}: {answer} is not within the bounds"]
    return []


def _has_type(answer: Any, type_names: str | list[str]) -> bool:
    if isinstance(type_names, list):
        return any(_has_type(answer, one) for one in type_names)
    if isinstance(answer, bool):
        return type_names == "boolean"
    if type_names == "integer" and isinstance(answer, float):
        return answer.is_integer() and abs(answer) >= 2**63
    return isinstance(answer, _TYPES[type_names])


def _faults_of_object(answer: dict[str, Any], form: dict[str, Any], place: str) -> list[str]:
    properties = form.get("properties", {})
    additional = form.get("additionalProperties", "properties" not in form)
    object_faults = [f"{place}.{name} is missing" for name in form.get("required", ()) if name not in answer]
    for name, value in answer.items():
        one = properties.get(name, additional)
        object_faults += [f"{place}.{name} is not in the form"] if one is False else faults(value, one, f"{place}.{name}")
    return object_faults


def _faults_of_list(answer: list[Any], form: dict[str, Any], place: str) -> list[str]:
    if not form.get("minItems", 0) <= len(answer) <= form.get("maxItems", len(answer)):
        return [f"{place} has {len(answer)} items"]
    forms = form.get("prefixItems") or [form.get("items", True)] * len(answer)
    list_faults = [
        faults(value, one, f"{place}[{number}]") for number, (value, one) in enumerate(zip(answer, forms, strict=True))
    ]
    return [fault for one in list_faults for fault in one]
