"""Column mapping: each id is used once, and physical names are found at every depth."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from delta_py.protocol import column_mapping
from delta_py.protocol.features import Properties
from delta_py.types.schema import (
    LONG,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    leaves,
    parse_schema,
    schema_to_json,
)
from delta_py.types.type_walk import all_fields

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)


def structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    field = st.builds(StructField, NAMES, inner, st.booleans(), st.just({"comment": "kept"}))
    return st.lists(field, max_size=4, unique_by=lambda f: f.name.lower()).map(lambda fields: StructType(tuple(fields)))


TYPES: st.SearchStrategy[DataType] = st.recursive(
    st.sampled_from([LONG, STRING]),
    lambda inner: st.one_of(
        structs(inner), st.builds(ArrayType, inner, st.booleans()), st.builds(MapType, inner, inner, st.booleans())
    ),
    max_leaves=8,
)


def bare(data_type: DataType) -> DataType:
    """The type without any names."""
    match data_type:
        case StructType(fields):
            return StructType(tuple(StructField("", bare(f.data_type), f.nullable) for f in fields))
        case ArrayType(element, nullable):
            return ArrayType(bare(element), nullable)
        case MapType(key, value, nullable):
            return MapType(bare(key), bare(value), nullable)
    return data_type


def counter() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"col-{number}"


@given(structs(TYPES), st.sampled_from(["name", "id"]), st.integers(1, 9))
def test_assigned_schemas_translate_to_the_same_shape(schema: StructType, mode: str, first_free: int) -> None:
    names = counter()
    assigned, last = column_mapping.assign(schema, lambda f: next(names), Properties({}), first_free)
    ids = [f.metadata[column_mapping.ID] for f in all_fields(assigned)]
    assert len(set(ids)) == len(ids)
    assert all(first_free <= number <= last for number in ids)
    assert last == max([first_free - 1, *ids])
    physical = column_mapping.to_physical(assigned, mode)
    assert bare(physical) == bare(schema)
    assert [f.name for f in all_fields(physical)] == [f.metadata[column_mapping.PHYSICAL_NAME] for f in all_fields(assigned)]
    for (logical, _), (path, _) in zip(leaves(assigned), leaves(physical), strict=True):
        assert column_mapping.physical_path(assigned, logical, mode) == path
    assert column_mapping.without_column_mapping(assigned) == schema
    assert parse_schema(schema_to_json(assigned)) == assigned


@given(structs(TYPES), structs(TYPES))
def test_columns_added_later_never_reuse_an_id(schema: StructType, more: StructType) -> None:
    first, last = column_mapping.assign(schema, lambda f: f.name, Properties({}))
    used_names = {f.name.lower() for f in first.fields}
    added = tuple(f for f in more.fields if f.name.lower() not in used_names)
    grown, newest = column_mapping.assign(StructType((*first.fields, *added)), lambda f: f.name, Properties({}), last + 1)
    assert grown.fields[: len(first.fields)] == first.fields
    assert newest >= last
    assert len({f.metadata[column_mapping.ID] for f in all_fields(grown)}) == sum(1 for _ in all_fields(grown))
