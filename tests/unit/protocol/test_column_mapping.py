from __future__ import annotations

import pytest

from delta_py.errors import CorruptTableError, SchemaMismatchError
from delta_py.protocol import column_mapping
from delta_py.protocol.features import Properties
from delta_py.types.schema import LONG, STRING, ArrayType, MapType, StructField, StructType


def mapped(name: str, data_type, number: int | None, physical: str | None, **metadata) -> StructField:
    keys = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return StructField(name, data_type, False, {**{k: v for k, v in keys.items() if v is not None}, **metadata})


NESTED = StructType(
    (
        mapped("a", LONG, 1, "p1", comment="kept"),
        mapped("s", StructType((mapped("x", STRING, 3, "p3"),)), 2, "p2"),
        mapped("l", ArrayType(StructType((mapped("y", LONG, 5, "p5"),)), False), 4, "p4"),
        mapped("m", MapType(STRING, StructType((mapped("z", LONG, 7, "p7"),)), False), 6, "p6"),
    )
)


@pytest.mark.parametrize(
    ("text", "expected"), [(None, "none"), ("none", "none"), ("name", "name"), ("id", "id"), ("NAME", "name")]
)
def test_mode_is_read_from_the_properties(text: str | None, expected: str) -> None:
    assert column_mapping.mode({} if text is None else {"delta.columnMapping.mode": text}) == expected


def test_unknown_mode_is_an_error() -> None:
    with pytest.raises(CorruptTableError, match="'position'"):
        column_mapping.mode({"delta.columnMapping.mode": "position"})


@pytest.mark.parametrize("mode", ["name", "id"])
def test_to_physical_renames_at_every_depth_and_keeps_the_rest(mode: str) -> None:
    physical = column_mapping.to_physical(NESTED, mode)
    assert physical.names == ("p1", "p2", "p4", "p6")
    assert physical.fields[0] == StructField("p1", LONG, False, NESTED.fields[0].metadata)
    assert physical.fields[1].data_type == StructType((mapped("p3", STRING, 3, "p3"),))
    assert physical.fields[2].data_type == ArrayType(StructType((mapped("p5", LONG, 5, "p5"),)), False)
    assert physical.fields[3].data_type == MapType(STRING, StructType((mapped("p7", LONG, 7, "p7"),)), False)
    assert column_mapping.to_physical(NESTED.fields[1], mode) == physical.fields[1]


def test_to_physical_without_mapping_is_the_same_schema() -> None:
    assert column_mapping.to_physical(NESTED, "none") is NESTED


def test_physical_path_is_found_ignoring_case() -> None:
    assert column_mapping.physical_path(NESTED, ("S", "X"), "name") == ("p2", "p3")
    assert column_mapping.physical_path(NESTED, ("s", "x"), "none") == ("s", "x")
    with pytest.raises(SchemaMismatchError, match="nope"):
        column_mapping.physical_path(NESTED, ("s", "nope"), "name")


@pytest.mark.parametrize(
    ("field", "mode"),
    [
        (StructField("a", LONG), "name"),
        (StructField("a", LONG), "id"),
        (mapped("a", LONG, None, "p1"), "id"),
        (mapped("a", LONG, 1, ""), "name"),
        (mapped("s", StructType((StructField("x", LONG),)), 1, "p1"), "name"),
        (mapped("l", ArrayType(StructType((StructField("x", LONG),))), 1, "p1"), "name"),
    ],
)
def test_missing_physical_name_or_id_is_an_error_for_the_column(field: StructField, mode: str) -> None:
    with pytest.raises(CorruptTableError, match=r"delta\.columnMapping") as caught:
        column_mapping.to_physical(StructType((field,)), mode)
    assert caught.value.message_parameters["column"] in ("a", "x")


def test_id_is_not_needed_in_name_mode() -> None:
    assert column_mapping.to_physical(StructType((mapped("a", LONG, None, "p1"),)), "name").names == ("p1",)


def test_two_columns_with_one_physical_name_are_an_error() -> None:
    schema = StructType((mapped("a", LONG, 1, "p"), mapped("b", LONG, 2, "p")))
    with pytest.raises(CorruptTableError, match="share the physical names p"):
        column_mapping.to_physical(schema, "name")


def test_assign_gives_ids_and_names_at_every_depth() -> None:
    bare = column_mapping.without_column_mapping(NESTED)
    assert column_mapping.max_column_id(bare) == 0
    assigned, last = column_mapping.assign(bare, lambda f: f"col-{f.name}", Properties({}))
    assert last == column_mapping.max_column_id(assigned) == 7
    assert column_mapping.to_physical(assigned, "id").names == ("col-a", "col-s", "col-l", "col-m")
    assert column_mapping.physical_path(assigned, ("s", "x"), "id") == ("col-s", "col-x")
    assert assigned.fields[0].metadata["comment"] == "kept"


def test_assign_keeps_existing_ids_and_never_repeats_one() -> None:
    schema = StructType((*NESTED.fields, StructField("new", LONG)))
    assigned, last = column_mapping.assign(schema, lambda f: f.name, Properties({}))
    assert assigned.fields[:4] == NESTED.fields
    assert assigned.fields[4].metadata == {"delta.columnMapping.id": 8, "delta.columnMapping.physicalName": "new"}
    assert last == 8
    later, last = column_mapping.assign(schema, lambda f: f.name, Properties({}), first_free=20)  # columns up to 19 were dropped
    assert (later.fields[4].metadata["delta.columnMapping.id"], last) == (20, 20)


def test_strip_removes_the_mapping_and_nothing_else() -> None:
    bare = column_mapping.without_column_mapping(NESTED)
    assert bare.names == NESTED.names
    assert bare.fields[0].metadata == {"comment": "kept"}
    assert bare.fields[2].data_type == ArrayType(StructType((StructField("y", LONG, False),)), False)
