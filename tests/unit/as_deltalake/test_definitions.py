"""Tables as deltalake defines them: names of columns, features of new columns, versions of the protocol, NOT NULL; and errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import deltalake
import pandas as pd
import pyarrow as pa
import pytest

from delta_py.as_deltalake import DeltaTable, Field, Schema, TableFeatures, WriterProperties, write_deltalake
from delta_py.as_deltalake.exceptions import DeltaError, DeltaProtocolError, SchemaMismatchError
from delta_py.as_deltalake.schema import PrimitiveType
from delta_py.as_deltalake.transaction import AddAction

SPACED = pa.table({"id": [1, 2], "high price": [1.5, 2.5]})


def test_names_with_spaces_need_no_column_mapping(tmp_path: Path) -> None:
    write_deltalake(tmp_path, SPACED, writer_properties=WriterProperties(compression="ZSTD"))
    table = DeltaTable(tmp_path)
    table.alter.add_constraint({"c": '"high price" >= 0'})
    table.merge(SPACED, "t.id = s.id", "s", "t").when_matched_update({'"high price"': 't."high price" + s.id'}).execute()
    table.delete('"high price" > 4')
    write_deltalake(table, SPACED.append_column("low price", pa.array([0.5, 0.5])), mode="append", schema_mode="merge")
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table(columns=["high price"]).num_rows == 3
    assert table.protocol().min_reader_version == 1


@pytest.mark.parametrize("name", ["high price", '"high price"', "`high price`"])
def test_column_with_a_space_is_updated_by_each_spelling(tmp_path: Path, name: str) -> None:
    write_deltalake(tmp_path, SPACED)
    table = DeltaTable(tmp_path)
    table.update({name: "7"}, predicate="id = 1")
    table.update(new_values={name: 8.0}, predicate="id = 2")
    assert sorted(table.to_pyarrow_table()["high price"].to_pylist()) == [7.0, 8.0]


def test_constraint_on_a_quoted_name_holds_in_deltalake(tmp_path: Path) -> None:
    write_deltalake(tmp_path, SPACED)
    DeltaTable(tmp_path).alter.add_constraint({"c": '"high price" >= 0'})
    assert DeltaTable(tmp_path).metadata().configuration == {"delta.constraints.c": "`high price` >= 0"}
    deltalake.write_deltalake(tmp_path, SPACED, mode="append")
    with pytest.raises(deltalake.exceptions.DeltaError, match="failed validation check"):
        deltalake.write_deltalake(tmp_path, pa.table({"id": [3], "high price": [-1.0]}), mode="append")


def test_frame_with_local_times_adds_its_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [1]})
    write_deltalake(tmp_path, frame)
    frame["at"] = pd.Timestamp("2024-05-01 12:00:00")
    write_deltalake(tmp_path, frame, mode="append", schema_mode="merge")
    table = DeltaTable(tmp_path)
    table.alter.add_columns(Field("more", PrimitiveType("timestamp_ntz")))
    assert table.protocol().reader_features == ["timestampNtz"]
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table()["at"].null_count == 1


def test_change_feed_needs_no_list_of_features(tmp_path: Path) -> None:
    write_deltalake(tmp_path, SPACED)
    table = DeltaTable(tmp_path)
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    assert table.protocol()[:3] == (1, 4, None)


def test_feature_that_is_added_by_its_name_is_listed(tmp_path: Path) -> None:
    write_deltalake(tmp_path, SPACED)
    table = DeltaTable(tmp_path)
    table.alter.add_feature(TableFeatures.ChangeDataFeed, allow_protocol_versions_increase=True)
    assert table.protocol()[:3] == (1, 7, ["appendOnly", "changeDataFeed", "invariants"])


def test_overwritten_schema_keeps_not_null(tmp_path: Path) -> None:
    write_deltalake(tmp_path, SPACED)
    rows = pa.table([pa.array([1])], schema=pa.schema([pa.field("n", pa.int64(), nullable=False)]))
    write_deltalake(tmp_path, rows, mode="overwrite", schema_mode="overwrite")
    assert DeltaTable(tmp_path).schema() == Schema([Field("n", "long", nullable=False)])


def test_merged_schema_casts_values_that_fit(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": pa.array([1], pa.int8())}))
    write_deltalake(tmp_path, pa.table({"id": [2], "more": [1.5]}), mode="append", schema_mode="merge")
    for values in (["hello"], [1000]):
        with pytest.raises(DeltaError):
            write_deltalake(tmp_path, pa.table({"id": values}), mode="append", schema_mode="merge")
    rows = DeltaTable(tmp_path).to_pyarrow_table().sort_by("id")
    assert (rows["id"].to_pylist(), rows.schema.field("id").type) == ([1, 2], pa.int8())


def test_merge_that_adds_a_generated_column_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    generated = pa.field("double", pa.int64(), metadata={"delta.generationExpression": "id * 2"})
    rows = pa.table({"id": [2], "double": [4]}, schema=pa.schema([pa.field("id", pa.int64()), generated]))
    with pytest.raises(SchemaMismatchError, match="double"):
        DeltaTable(tmp_path).merge(rows, "s.id = t.id", "s", "t", merge_schema=True)


def test_paths_of_files_are_those_of_delta_py(tmp_path: Path) -> None:
    write_deltalake(tmp_path, SPACED)
    table = DeltaTable(tmp_path)
    table.create_write_transaction([AddAction("a:b.parquet", 1, {}, 0, True, "")], "overwrite", table.schema())
    assert table.file_uris() == table.as_delta.file_uris() == [f"{tmp_path}/a:b.parquet"]


# ---------------------------------------------------------------- the first words of errors


def read_changes(table: DeltaTable, **bounds: Any) -> None:
    pa.table(table.load_cdf(**bounds))


@pytest.mark.parametrize(
    ("fail", "words"),
    [
        (lambda table: table.delete("p999 = 1"), r"No field named p999"),
        (
            lambda table: table.merge(pa.table({"id": [1]}), "t.id = s.no", "s", "t").when_matched_delete().execute(),
            r"No field named s\.no",
        ),
        (lambda table: read_changes(table, starting_version=4), r"Invalid table version: 4"),
        (
            lambda table: read_changes(table, starting_timestamp="2100-01-01T00:00:00Z"),
            r"greater than latest commit timestamp",
        ),
    ],
)
def test_message_begins_with_deltalakes_words(tmp_path: Path, fail: Any, words: str) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration={"delta.enableChangeDataFeed": "true"})
    with pytest.raises(DeltaError, match=rf"^\[\w+\] .*{words}.*: ") as caught:
        fail(DeltaTable(tmp_path))
    assert len(re.findall(words, str(caught.value))) == 1


def test_broken_rules_begin_with_deltalakes_words(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    table = DeltaTable(tmp_path)
    table.alter.add_constraint({"c": "id > 0"})
    for change in (
        lambda: write_deltalake(table, pa.table({"id": [-1]}), mode="append"),
        lambda: write_deltalake(table, pa.table({"id": [5]}), mode="overwrite", predicate="id < 3"),
        lambda: table.update({"id": "-1"}),
    ):
        with pytest.raises(DeltaProtocolError, match=r"(?s)^\[\w+\] Invalid data found: .*Nothing was written"):
            change()
