"""Older schema x newer schema -> readable with added nulls, or the reason why not."""

from __future__ import annotations

from typing import Any

import pytest

from delta_py.changes.schema_changes import why_incompatible, why_not_found
from delta_py.protocol.actions import Metadata
from delta_py.protocol.column_mapping import assign
from delta_py.protocol.features import Properties
from delta_py.types.schema import (
    INTEGER,
    LONG,
    STRING,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    schema_to_json,
)


def struct(**fields: DataType | StructField) -> StructType:
    return StructType(tuple(f if isinstance(f, StructField) else StructField(name, f) for name, f in fields.items()))


def required(name: str, kind: DataType = LONG) -> StructField:
    return StructField(name, kind, nullable=False)


def metadata(schema: StructType, *partitions: str, mode: str | None = None) -> Metadata:
    return Metadata("t", schema_to_json(schema), partitions, {} if mode is None else {"delta.columnMapping.mode": mode})


BASE = struct(a=LONG, s=struct(x=LONG), l=ArrayType(struct(x=LONG)), m=MapType(STRING, struct(x=LONG)))


@pytest.mark.parametrize(
    ("newer", "reason"),
    [
        (BASE, None),
        (
            struct(m=BASE.fields[3].data_type, a=LONG, s=struct(y=STRING, x=LONG), l=ArrayType(struct(x=LONG, z=LONG)), new=LONG),
            None,
        ),
        (StructType(BASE.fields[1:]), "column a is gone"),
        (StructType((StructField("A", LONG), *BASE.fields[1:])), "column a is gone"),
        (StructType((StructField("a", INTEGER), *BASE.fields[1:])), "column a was bigint and became int"),
        (StructType((required("a"), *BASE.fields[1:])), "column a became NOT NULL"),
        (struct(a=LONG, s=struct(y=LONG), l=BASE.fields[2], m=BASE.fields[3]), "column s.x is gone"),
        (struct(a=LONG, s=BASE.fields[1], l=ArrayType(struct(x=STRING)), m=BASE.fields[3]), "column l.element.x was bigint"),
        (
            struct(a=LONG, s=BASE.fields[1], l=ArrayType(struct(x=LONG), False), m=BASE.fields[3]),
            "column l.element became NOT NULL",
        ),
        (struct(a=LONG, s=BASE.fields[1], l=BASE.fields[2], m=MapType(LONG, struct(x=LONG))), "column m.key was string"),
        (
            struct(a=LONG, s=BASE.fields[1], l=BASE.fields[2], m=MapType(STRING, struct(x=LONG), False)),
            "column m.value became NOT NULL",
        ),
        (struct(a=LONG, s=BASE.fields[1], l=BASE.fields[2], m=MapType(STRING, struct())), "column m.value.x is gone"),
        (struct(a=LONG, s=BASE.fields[1], l=BASE.fields[2], m=STRING), "column m was map"),
    ],
)
def test_why_incompatible_only_added_fields_pass(newer: StructType, reason: str | None) -> None:
    reason_text = why_incompatible(metadata(BASE), metadata(newer))
    assert reason_text == reason if reason is None else reason_text is not None and reason in reason_text


def test_why_incompatible_void_may_become_any_type() -> None:
    void = metadata(struct(a=VOID, s=struct(x=VOID)))
    typed = metadata(struct(a=ArrayType(LONG), s=struct(x=STRING)))
    assert why_incompatible(void, typed) is None
    assert why_incompatible(typed, void) == "column a was array<bigint> and became void"


def test_why_incompatible_relaxed_nullability_passes() -> None:
    assert why_incompatible(metadata(struct(a=required("a"))), metadata(struct(a=LONG))) is None


def test_why_incompatible_other_partitioning_is_named() -> None:
    assert why_incompatible(metadata(BASE, "a"), metadata(BASE, "A")) is None
    assert why_incompatible(metadata(BASE, "a"), metadata(BASE)) == "partition columns (a) became ()"


def mapped(schema: StructType, **physical: str) -> StructType:
    return assign(schema, lambda f: physical.get(f.name, f.name), Properties({}))[0]


@pytest.mark.parametrize(
    ("older", "newer", "modes", "reason"),
    [
        (BASE, mapped(BASE), (None, "name"), None),
        (mapped(BASE), mapped(BASE), ("name", "name"), None),
        (mapped(struct(a=LONG)), mapped(struct(a=LONG, b=LONG)), ("id", "id"), None),
        (mapped(struct(a=LONG, b=LONG)), mapped(struct(a=LONG)), ("name", "name"), "column b was dropped"),
        (mapped(struct(a=LONG)), mapped(struct(b=LONG), b="a"), ("name", "name"), "column a was renamed to b"),
        (mapped(struct(a=LONG)), mapped(struct(a=LONG), a="col-2"), ("name", "name"), "column a was dropped"),
        (
            mapped(struct(s=struct(x=LONG))),
            mapped(struct(s=struct(y=LONG)), y="x"),
            ("name", "name"),
            "column x was renamed to y",
        ),
        (
            mapped(struct(l=ArrayType(struct(x=LONG)))),
            mapped(struct(l=ArrayType(struct()))),
            ("name", "name"),
            "column x was dropped",
        ),
        (
            mapped(struct(m=MapType(STRING, struct(x=LONG)))),
            mapped(struct(m=MapType(STRING, struct()))),
            ("id", "id"),
            "x was dropped",
        ),
        (struct(a=LONG), mapped(struct(b=LONG), b="a"), (None, "name"), "column a was renamed to b"),
        (mapped(struct(a=LONG)), mapped(struct(a=STRING)), ("name", "name"), "column a was bigint and became string"),
        (mapped(struct(a=LONG)), struct(a=LONG), ("name", "none"), "column mapping was turned off"),
        (mapped(struct(a=LONG)), mapped(struct(a=LONG)), ("name", "id"), "mode name became id"),
    ],
)
def test_why_incompatible_with_mapping_uses_physical_names(
    older: StructType, newer: StructType, modes: tuple[Any, Any], reason: str | None
) -> None:
    reason_text = why_incompatible(metadata(older, mode=modes[0]), metadata(newer, mode=modes[1]))
    assert reason_text == reason if reason is None else reason_text is not None and reason in reason_text


NESTED = struct(s=struct(x=LONG), l=ArrayType(struct(x=LONG)), m=MapType(STRING, struct(y=LONG)))


@pytest.mark.parametrize(
    ("older", "newer", "modes", "reason"),
    [
        (BASE, BASE, (None, None), None),
        (struct(a=LONG), struct(A=LONG), (None, None), None),
        (struct(a=LONG, b=LONG), struct(a=STRING, c=LONG), (None, None), None),
        (BASE, mapped(BASE), (None, "name"), None),
        (mapped(BASE), BASE, ("name", None), None),
        (mapped(struct(a=LONG)), mapped(struct(b=LONG), b="a"), ("name", "name"), None),
        (mapped(BASE), mapped(BASE), ("id", "name"), None),
        (BASE, mapped(BASE), (None, "id"), "mode none became id"),
        (mapped(BASE), mapped(BASE), ("name", "id"), "mode name became id"),
        (mapped(struct(a=LONG), a="c-1"), mapped(struct(A=LONG), A="c-2"), ("id", "id"), "column a c-2, and named it c-1"),
        (mapped(struct(a=LONG), a="c-1"), struct(a=LONG), ("name", None), "column a a, and named it c-1"),
        (struct(a=LONG), mapped(struct(a=LONG), a="c-1"), (None, "name"), "column a c-1, and named it a"),
        (mapped(NESTED), mapped(NESTED, y="z"), ("name", "name"), "column m.value.y m.value.z, and named it m.value.y"),
        (mapped(NESTED), mapped(NESTED, x="z"), ("name", "name"), "column s.x s.z, and named it s.x"),
    ],
)
def test_why_not_found_reports_columns_with_other_names_in_files(
    older: StructType, newer: StructType, modes: tuple[Any, Any], reason: str | None
) -> None:
    reason_text = why_not_found(metadata(older, mode=modes[0]), metadata(newer, mode=modes[1]))
    assert reason_text == reason if reason is None else reason_text is not None and reason in reason_text
