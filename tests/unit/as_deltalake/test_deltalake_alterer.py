"""as_deltalake's TableAlterer: a call that repeats an earlier one, and what is changed only if the caller allows it."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from delta_py.as_deltalake import DeltaTable, Field, TableFeatures, write_deltalake
from delta_py.as_deltalake.exceptions import DeltaError, SchemaMismatchError
from delta_py.as_deltalake.schema import PrimitiveType


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path, pa.table({"id": [1, 2]}))
    return DeltaTable(tmp_path)


def test_reader_version_is_raised_only_if_the_caller_allows_it(table: DeltaTable) -> None:
    table.alter.add_feature(TableFeatures.ChangeDataFeed, allow_protocol_versions_increase=True)
    protocol = table.protocol()
    with pytest.raises(DeltaError, match=r"reader version 3.*allow_protocol_versions_increase=True"):
        table.alter.add_feature(TableFeatures.DeletionVectors)
    assert table.protocol() == protocol
    table.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    assert table.protocol().reader_features == ["deletionVectors"]
    table.alter.add_feature(TableFeatures.V2Checkpoint)
    assert table.protocol().reader_features == ["deletionVectors", "v2Checkpoint"]


def test_constraint_that_the_table_has_is_added_again(table: DeltaTable) -> None:
    table.alter.add_constraint({"positive": '"id" > 0'})
    table.alter.add_constraint({"positive": '"id" > 0', "small": "id < 9"})
    assert set(table.metadata().configuration.values()) == {"`id` > 0", "id < 9"}
    with pytest.raises(DeltaError, match="positive already"):
        table.alter.add_constraint({"positive": "id > 1"})


def test_column_that_the_table_has_is_added_again(table: DeltaTable) -> None:
    price = Field("price", PrimitiveType("double"))
    table.alter.add_columns(price)
    table.alter.add_columns([price, Field("day", "string")])
    assert [field.name for field in table.schema().fields] == ["id", "price", "day"]
    with pytest.raises(SchemaMismatchError, match="price"):
        table.alter.add_columns(Field("price", "string"))


def test_unknown_property_is_set_only_if_the_caller_allows_it(table: DeltaTable, tmp_path: Path) -> None:
    with pytest.raises(DeltaError, match=r"Did you mean delta\.appendOnly\?"):
        table.alter.set_table_properties({"delta.appendOnlyy": "true"})
    table.alter.set_table_properties({"delta.other": "x"}, raise_if_not_exists=False)
    assert deltalake.DeltaTable(tmp_path).metadata().configuration == {"delta.other": "x"}
