"""Which changes of columns are found between two schemas, by the columns' physical names, at any depth."""

from __future__ import annotations

import json
from typing import Any

import pytest

from delta_py.errors import SchemaMismatchError
from delta_py.protocol.actions import Metadata
from delta_py.streaming.schema_evolution import Allowed, ColumnChanges, check_allowed, column_changes


def field(name: str, data_type: Any, physical: str | None = None, *, nullable: bool = True) -> dict[str, Any]:
    metadata = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical or name}
    return {"name": name, "type": data_type, "nullable": nullable, "metadata": metadata}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def array(element: Any, *, contains_null: bool = True) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": contains_null}


def mapping(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def table(*fields: dict[str, Any], mode: str = "name") -> Metadata:
    return Metadata("id", json.dumps(struct(*fields)), (), {"delta.columnMapping.mode": mode})


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        (table(field("a", "long")), table(field("a", "long"), field("b", "long")), ColumnChanges()),
        (table(field("a", "long")), table(field("b", "long", "a")), ColumnChanges(renamed=(("a", "b"),))),
        (table(field("a", "long"), field("b", "long")), table(field("b", "long")), ColumnChanges(dropped=("a",))),
        (table(field("a", "long")), table(field("a", "long", "new")), ColumnChanges(dropped=("a",))),
        (table(field("a", "integer")), table(field("a", "long")), ColumnChanges(widened=(("a", "int", "bigint"),))),
        (
            table(field("s", struct(field("a", "long"), field("b", "long")))),
            table(field("t", struct(field("c", "long", "a")), "s")),
            ColumnChanges(renamed=(("s", "t"), ("s.a", "t.c")), dropped=("s.b",)),
        ),
        (
            table(field("s", struct(field("a", array(struct(field("b", "long"))))))),
            table(field("s", struct(field("x", "long")))),
            ColumnChanges(dropped=("s.a",)),
        ),
        (
            table(field("m", mapping("short", array("float")))),
            table(field("m", mapping("integer", array("double")))),
            ColumnChanges(widened=(("m.key", "smallint", "int"), ("m.value.element", "float", "double"))),
        ),
        (table(field("a", "void"), field("b", "void")), table(field("a", "long"), field("b", array("long"))), ColumnChanges()),
        (table(field("a", "long"), mode="none"), table(field("b", "long"), mode="none"), ColumnChanges(dropped=("a",))),
        (table(field("a", "long"), mode="none"), table(field("b", "long", "a")), ColumnChanges(renamed=(("a", "b"),))),
    ],
)
def test_changes_are_found_by_physical_names(older: Metadata, newer: Metadata, expected: ColumnChanges) -> None:
    assert column_changes(older, newer, 7) == expected


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (table(field("a", "long")), table(field("a", "integer"))),
        (table(field("a", "long")), table(field("a", array("long")))),
        (table(field("a", "long")), table(field("a", "long", nullable=False))),
        (table(field("a", array("long"))), table(field("a", array("long", contains_null=False)))),
        (table(field("a", struct(field("b", "date")))), table(field("a", struct(field("b", "string"))))),
    ],
)
def test_change_with_which_older_rows_cannot_be_read_is_refused(older: Metadata, newer: Metadata) -> None:
    with pytest.raises(SchemaMismatchError, match="Version 7") as caught:
        column_changes(older, newer, 7)
    assert caught.value.error_class == "DELTA_SCHEMA_CHANGED_WITH_VERSION"


def test_every_kind_of_change_needs_its_own_word() -> None:
    changes = ColumnChanges((("a", "b"),), ("c",), (("d", "int", "bigint"),))
    every = {"Rename": "always", "Drop": "7", "TypeChange": "Always"}
    check_allowed(changes, Allowed(every), 3, 7, 42)
    for kind in every:
        with pytest.raises(SchemaMismatchError) as caught:
            check_allowed(changes, Allowed({name: value for name, value in every.items() if name != kind}), 3, 7, 42)
        assert caught.value.message_parameters["blocked"] == (kind,)
        assert f"allowSourceColumn{kind}.ckpt_42 = 7" in caught.value.message
