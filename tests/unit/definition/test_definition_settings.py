"""Settings for the definitions of a block of code: names of columns, features of new columns, versions, NOT NULL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.definition.definition_settings import DefinitionSettings, definition_settings
from delta_py.errors import SchemaMismatchError, UnsupportedTableFeatureError

SPACED = pa.table({"high price": [1.5], "s": [{"a=b": 1}]})
PLAIN = pa.table({"id": [1]})
LOCAL_TIME = pa.array([0], pa.timestamp("us"))


def test_any_name_of_a_column_is_allowed_in_the_block(tmp_path: Path) -> None:
    with definition_settings(DefinitionSettings(allows_any_name=True)):
        write_delta(tmp_path, SPACED)
    table = DeltaTable(tmp_path)
    assert (table.protocol.min_reader_version, table.metadata.configuration) == (1, {})
    assert table.to_arrow(filter="`high price` > 1 AND s.`a=b` = 1").to_pydict() == SPACED.to_pydict()
    with pytest.raises(SchemaMismatchError, match="column mapping"):
        write_delta(tmp_path / "other", SPACED)


def test_names_that_a_table_has_hinder_no_change_of_it(tmp_path: Path) -> None:
    with definition_settings(DefinitionSettings(allows_any_name=True)):
        write_delta(tmp_path, SPACED)
    write_delta(tmp_path, SPACED, mode="append")
    write_delta(tmp_path, SPACED.append_column("more", pa.array([1])), mode="append", merge_schema=True)
    table = DeltaTable(tmp_path)
    table.alter.add_columns([pa.field("last", pa.int64())])
    with pytest.raises(SchemaMismatchError, match="low price"):
        write_delta(tmp_path, SPACED.append_column("low price", pa.array([1])), mode="append", merge_schema=True)
    write_delta(tmp_path, SPACED.select(["high price"]), mode="overwrite", overwrite_schema=True)
    with pytest.raises(SchemaMismatchError, match="low price"):
        write_delta(tmp_path, pa.table({"low price": [1]}), mode="overwrite", overwrite_schema=True)
    assert DeltaTable(tmp_path).struct_type.names == ("high price",)


def test_feature_of_a_new_column_is_enabled_in_the_block(tmp_path: Path) -> None:
    write_delta(tmp_path, PLAIN)
    rows = PLAIN.append_column("at", LOCAL_TIME)
    with pytest.raises(UnsupportedTableFeatureError, match="timestampNtz"):
        write_delta(tmp_path, rows, mode="append", merge_schema=True)
    with definition_settings(DefinitionSettings(enabled_features=frozenset({"timestampNtz"}))):
        write_delta(tmp_path, rows, mode="append", merge_schema=True)
    protocol = DeltaTable(tmp_path).protocol
    assert (protocol.min_reader_version, protocol.reader_features) == (3, {"timestampNtz"})


@pytest.mark.parametrize(
    ("properties", "prefers_versions", "versions"),
    [
        ({"delta.enableChangeDataFeed": "true"}, False, (1, 7)),
        ({"delta.enableChangeDataFeed": "true"}, True, (1, 4)),
        ({"delta.columnMapping.mode": "name"}, True, (2, 5)),
        ({"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}, True, (3, 7)),
    ],
)
def test_versions_are_preferred_where_they_suffice(
    tmp_path: Path, properties: dict[str, str], prefers_versions: bool, versions: tuple[int, int]
) -> None:
    write_delta(tmp_path / "changed", PLAIN)
    with definition_settings(DefinitionSettings(prefers_versions=prefers_versions)):
        write_delta(tmp_path / "new", PLAIN, configuration=properties)
        DeltaTable(tmp_path / "changed").alter.set_table_properties(properties)
    for name in ("new", "changed"):
        protocol = DeltaTable(tmp_path / name).protocol
        assert (protocol.min_reader_version, protocol.min_writer_version) == versions


@pytest.mark.parametrize(("lists_used_features", "more"), [(False, {"appendOnly", "invariants"}), (True, set())])
def test_new_table_lists_the_features_in_use_alone(tmp_path: Path, lists_used_features: bool, more: set[str]) -> None:
    rows = PLAIN.append_column("at", LOCAL_TIME)
    with definition_settings(DefinitionSettings(lists_used_features=lists_used_features)):
        write_delta(tmp_path / "new", rows)
        write_delta(tmp_path / "versions", rows, configuration={"delta.minWriterVersion": "7"})
        write_delta(tmp_path / "plain", PLAIN)
    assert DeltaTable(tmp_path / "new").protocol.writer_features == {"timestampNtz", *more}
    assert DeltaTable(tmp_path / "versions").protocol.writer_features == {"timestampNtz", "appendOnly", "invariants"}
    assert DeltaTable(tmp_path / "plain").protocol.writer_features is None


def test_overwrite_of_the_schema_keeps_not_null_in_the_block(tmp_path: Path) -> None:
    write_delta(tmp_path, PLAIN)
    rows = pa.table([pa.array([1])], schema=pa.schema([pa.field("n", pa.int64(), nullable=False)]))
    write_delta(tmp_path, rows, mode="overwrite", overwrite_schema=True)
    assert DeltaTable(tmp_path).struct_type.fields[0].nullable
    with definition_settings(DefinitionSettings(keeps_not_null=True)):
        write_delta(tmp_path, rows, mode="overwrite", overwrite_schema=True)
    assert not DeltaTable(tmp_path).struct_type.fields[0].nullable
