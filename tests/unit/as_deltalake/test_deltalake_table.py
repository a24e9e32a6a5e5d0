"""as_deltalake's DeltaTable, write_deltalake and errors: what deltalake promises, and that deltalake reads what they write."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import as_deltalake as ours
from delta_py.as_deltalake import (
    BloomFilterProperties,
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    Field,
    PostCommitHookProperties,
    QueryBuilder,
    Schema,
    TableFeatures,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from delta_py.as_deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, TableNotFoundError
from delta_py.as_deltalake.fs import DeltaStorageHandler
from delta_py.as_deltalake.transaction import AddAction
from delta_py.errors import InvalidOptionError, UnsupportedOperationError

ROWS = pa.table({"id": [1, 2, 3], "day": ["a", "a", "b"]})


def make(path: Path, **options: Any) -> DeltaTable:
    write_deltalake(path, ROWS, **options)
    return DeltaTable(path)


def rows_of(table: DeltaTable) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pyarrow_table().to_pylist())


# ---------------------------------------------------------------- writes


def test_deltalake_reads_what_is_written(tmp_path: Path) -> None:
    make(tmp_path, partition_by="day", name="n", description="d", configuration={"delta.appendOnly": "false", "x": None})
    read = deltalake.DeltaTable(tmp_path)
    assert read.to_pyarrow_table().sort_by("id").to_pydict() == ROWS.to_pydict()
    assert (read.metadata().name, read.metadata().partition_columns) == ("n", ["day"])


def test_object_moves_with_each_operation(tmp_path: Path) -> None:
    table = make(tmp_path)
    write_deltalake(table, ROWS, mode="append")
    assert table.version() == 1
    assert table.delete("id = 1")["num_deleted_rows"] == 2
    assert table.update({"day": "'z'"}, predicate="id = 2")["num_updated_rows"] == 2
    assert table.update(new_values={"day": "y"}, predicate="id = 3")["num_updated_rows"] == 2
    assert table.optimize.compact()["numFilesRemoved"] > 1
    assert table.optimize.z_order(["id"])["plannerStrategy"] == "zOrder"
    table.alter.add_columns(Field("n", "long"))
    assert table.restore(0)["numRemovedFile"] >= 1
    assert table.version() == 8
    assert rows_of(table) == [(1, "a"), (2, "a"), (3, "b")]


def test_existing_table_keeps_name_and_properties(tmp_path: Path) -> None:
    table = make(tmp_path, name="first")
    write_deltalake(table, ROWS, mode="overwrite", name="second", configuration={"delta.appendOnly": "true"})
    assert (table.metadata().name, table.metadata().configuration) == ("first", {})


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (ROWS.to_batches(), 3),
        (ROWS.to_batches()[0], 3),
        (ROWS.to_reader(), 3),
        (ROWS.to_pandas(), 3),
    ],
    ids=["batches", "batch", "reader", "pandas"],
)
def test_data_of_any_form_is_written(tmp_path: Path, data: Any, count: int) -> None:
    write_deltalake(tmp_path, data)
    assert DeltaTable(tmp_path).count() == count


def test_schema_modes(tmp_path: Path) -> None:
    table = make(tmp_path)
    more = pa.table({"id": [4], "extra": [1.5]})
    with pytest.raises(ours.exceptions.SchemaMismatchError):
        write_deltalake(table, more, mode="append")
    with pytest.raises(InvalidOptionError, match="schema_mode"):
        write_deltalake(table, more, mode="append", schema_mode="overwrite")
    write_deltalake(table, more, mode="append", schema_mode="merge")
    assert [field.name for field in table.schema().fields] == ["id", "day", "extra"]
    write_deltalake(table, more, mode="overwrite", schema_mode="overwrite")
    assert [field.name for field in table.schema().fields] == ["id", "extra"]


def test_predicate_replaces_matching_rows(tmp_path: Path) -> None:
    table = make(tmp_path)
    write_deltalake(table, pa.table({"id": [9], "day": ["b"]}), mode="overwrite", predicate="day = 'b'")
    assert rows_of(table) == [(1, "a"), (2, "a"), (9, "b")]


def test_nanoseconds_are_cut(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"at": pa.array([700_123], pa.timestamp("ns", "UTC"))}))
    assert DeltaTable(tmp_path).to_pyarrow_table()["at"].cast(pa.int64()).to_pylist() == [700]


def test_generated_columns_come_from_the_metadata_of_fields(tmp_path: Path) -> None:
    generated = pa.field("double", pa.int64(), metadata={"delta.generationExpression": "id * 2"})
    schema = pa.schema([pa.field("id", pa.int64()), generated])
    write_deltalake(tmp_path, pa.table({"id": [1], "double": [2]}, schema=schema))
    write_deltalake(tmp_path, pa.table({"id": [5]}), mode="append")
    assert rows_of(DeltaTable(tmp_path)) == [(1, 2), (5, 10)]
    with pytest.raises(DeltaProtocolError):
        write_deltalake(tmp_path, pa.table({"id": [1], "double": [7]}), mode="append")


def test_new_column_with_a_rule_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    generated = pa.field("double", pa.int64(), metadata={"delta.generationExpression": "id * 2"})
    rows = pa.table({"id": [1], "day": ["a"], "double": [2]}, schema=pa.schema([*ROWS.schema, generated]))
    with pytest.raises(ours.exceptions.SchemaMismatchError, match="double"):
        write_deltalake(table, rows, mode="append", schema_mode="merge")
    with pytest.raises(UnsupportedOperationError, match="double"):
        table.alter.add_columns(Field.from_arrow(generated))


def test_write_without_rows_is_a_commit(tmp_path: Path) -> None:
    table = make(tmp_path)
    write_deltalake(table, ROWS.schema.empty_table(), mode="append")
    assert (table.version(), table.count()) == (1, 3)


def test_fields_are_added_to_a_struct(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"s": [{"x": 1}]}))
    table = DeltaTable(tmp_path)
    table.alter.add_columns(Field("s", ours.schema.StructType([Field("x", "long"), Field("y", "string")])))
    assert table.to_pyarrow_table().to_pylist() == [{"s": {"x": 1, "y": None}}]


def test_create_with_a_schema_of_deltalake(tmp_path: Path) -> None:
    schema = Schema([Field("id", "long", nullable=False), Field("day", "string")])
    table = DeltaTable.create(tmp_path, schema, partition_by=["day"], commit_properties=CommitProperties({"job": "x"}))
    assert (table.schema(), table.history()[0]["job"]) == (schema, "x")
    with pytest.raises(DeltaError):
        DeltaTable.create(tmp_path, schema)
    with pytest.raises(InvalidOptionError):
        DeltaTable.create(tmp_path / "u", schema, configuration={"delta.unknown": "1"})
    with pytest.warns(UserWarning, match=r"delta\.unknown"):
        DeltaTable.create(tmp_path / "u", schema, configuration={"delta.unknown": "1"}, raise_if_key_not_exists=False)


def test_convert_makes_a_table_of_parquet_files(tmp_path: Path) -> None:
    pq.write_to_dataset(ROWS, tmp_path, partition_cols=["day"])
    ours.convert_to_deltalake(tmp_path, partition_by=Schema([Field("day", "string")]), partition_strategy="hive")
    assert DeltaTable(tmp_path).count() == 3
    ours.convert_to_deltalake(tmp_path, mode="ignore")
    with pytest.raises(DeltaError, match="ignore"):
        ours.convert_to_deltalake(tmp_path)


def test_text_as_a_schema_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="schema is 'id bigint', which is no schema"):
        DeltaTable.create(tmp_path, "id bigint")
    with pytest.raises(ValueError, match="partition_by is 'day string', which is no schema"):  # deltalake's class
        ours.convert_to_deltalake(tmp_path, partition_by="day string", partition_strategy="hive")


# ---------------------------------------------------------------- properties of commits and files


def test_commit_properties_reach_each_operation(tmp_path: Path) -> None:
    properties = CommitProperties({"userName": "Ada", "n": {"a": [1, None]}}, app_transactions=[Transaction("app", 3)])
    table = make(tmp_path, commit_properties=properties)
    table.delete("id = 1", commit_properties=properties)
    table.merge(ROWS, "s.id = t.id", "s", "t", commit_properties=properties).when_matched_delete().execute()
    assert [(info["userName"], info["n"]) for info in table.history()] == [("Ada", {"a": [1, None]})] * 3
    assert table.transaction_version("app") == 3
    with pytest.raises(ValueError, match="timestamp"):
        table.delete(commit_properties=CommitProperties({"timestamp": 1}))


def test_positional_commit_arguments_warn(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.warns(DeprecationWarning, match="delete"):
        table.delete("id = 1", None, PostCommitHookProperties(), CommitProperties({"job": 1}))
    assert table.history(1)[0]["job"] == 1
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match="multiple values"):
        table.alter.set_table_name("n", CommitProperties(), commit_properties=CommitProperties())


def test_hooks_switch_the_checkpoint_off(tmp_path: Path) -> None:
    table = make(tmp_path, configuration={"delta.checkpointInterval": "1"})
    write_deltalake(table, ROWS, mode="append", post_commithook_properties=PostCommitHookProperties(create_checkpoint=False))
    assert list((tmp_path / "_delta_log").glob("*.checkpoint.parquet")) == []


def test_writer_properties_shape_the_files(tmp_path: Path) -> None:
    columns = {"id": ColumnProperties(False, "NONE", BloomFilterProperties(True, 0.01, 10), None)}
    properties = WriterProperties(
        compression="GZIP",
        compression_level=3,
        max_row_group_size=2,
        statistics_truncate_length=200,
        column_properties=columns,
    )
    make(tmp_path, writer_properties=properties)
    (path,) = tmp_path.glob("*.parquet")
    footer = pq.read_metadata(path)
    id_column, day_column = (footer.row_group(0).column(number) for number in (0, 1))
    assert (footer.num_row_groups, id_column.compression) == (2, "GZIP")
    assert "RLE_DICTIONARY" not in id_column.encodings and "RLE_DICTIONARY" in day_column.encodings
    assert not id_column.is_stats_set and day_column.is_stats_set
    assert str(properties).startswith("WriterProperties(data_page_size_limit: None")


def test_files_of_the_caller_become_part_of_the_table(tmp_path: Path) -> None:
    table = make(tmp_path)
    pq.write_table(ROWS, tmp_path / "mine.parquet")
    action = AddAction("mine.parquet", (tmp_path / "mine.parquet").stat().st_size, {}, 0, True, '{"numRecords": 3}')
    table.create_write_transaction([action], "overwrite", table.schema())
    assert [Path(uri).name for uri in table.file_uris()] == ["mine.parquet"]
    with pytest.raises(ours.exceptions.SchemaMismatchError):
        table.create_write_transaction([action], "append", pa.schema([("x", pa.int64())]))


# ---------------------------------------------------------------- errors


def test_missing_table_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        DeltaTable(tmp_path / "t")


def test_append_only_and_broken_rules_have_deltalakes_classes(tmp_path: Path) -> None:
    table = make(tmp_path, configuration={"delta.appendOnly": "true"})
    with pytest.raises(CommitFailedError):
        write_deltalake(table, ROWS, mode="overwrite")
    with pytest.raises(CommitFailedError):
        table.delete()
    checked = make(tmp_path / "c")
    checked.alter.add_constraint({"positive": "id > 0"})
    with pytest.raises(DeltaProtocolError) as raised:
        write_deltalake(checked, pa.table({"id": [-1], "day": ["a"]}), mode="append")
    assert type(raised.value.__cause__).__name__ == "InvariantViolationError"


def test_lost_race_is_a_failed_commit(tmp_path: Path) -> None:
    table, other = make(tmp_path), DeltaTable(tmp_path)
    merger = table.merge(ROWS, "s.id = t.id", "s", "t").when_matched_delete()
    other.alter.set_table_properties({"a": "b"})
    merger.execute()  # it reads the newest version, so nothing is lost
    assert table.version() == 2


def test_lenient_casts_store_null(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.raises(DeltaError):
        table.update({"id": "day"}, predicate="id = 1")
    table.update({"id": "day"}, predicate="id = 1", error_on_type_mismatch=False)
    source = pa.table({"id": [3], "value": ["x"]})
    merger = table.merge(source, "s.id = t.id", "s", "t", error_on_type_mismatch=False)
    merger.when_matched_update({"id": "s.value", "day": "s.value"}).execute()
    assert sorted(table.to_pyarrow_table()["id"].to_pylist(), key=str) == [2, None, None]


def test_what_the_process_cannot_do_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="microseconds"):
        ours.enable_nanosecond_timestamps()
    with pytest.raises(UnsupportedOperationError, match="logging"):
        ours.init_tracing()


def test_transaction_recorded_since_the_table_was_opened(tmp_path: Path) -> None:
    properties = CommitProperties(app_transactions=[Transaction("app", 1)])
    one, other = make(tmp_path), DeltaTable(tmp_path)
    write_deltalake(one, ROWS, mode="append", commit_properties=properties)
    with pytest.raises(CommitFailedError, match="app"):
        write_deltalake(other, ROWS, mode="append", commit_properties=properties)
    assert DeltaTable(tmp_path).version() == 1


def test_clause_that_can_never_apply_is_left_out(tmp_path: Path) -> None:
    table = make(tmp_path)
    merger = table.merge(pa.table({"id": [1]}), "s.id = t.id", "s", "t")
    merger.when_not_matched_by_source_update({"day": "'x'"}).when_not_matched_by_source_delete().execute()
    assert rows_of(table) == [(1, "a"), (2, "x"), (3, "x")]


def test_feature_that_is_there_makes_a_commit(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.alter.add_feature([TableFeatures.AppendOnly, TableFeatures.DomainMetadata], allow_protocol_versions_increase=True)
    table.alter.add_feature(TableFeatures.AppendOnly)
    assert [info["operation"] for info in table.history(2)] == ["ADD FEATURE", "ADD FEATURE"]
    assert table.version() == 2


def test_feature_needs_permission_to_raise_versions(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.raises(UnsupportedOperationError, match="allow_protocol_versions_increase"):
        table.alter.add_feature(TableFeatures.DeletionVectors)
    table.alter.add_feature([TableFeatures.DeletionVectors], allow_protocol_versions_increase=True)
    assert table.protocol().reader_features == ["deletionVectors"]


# ---------------------------------------------------------------- reads


def test_time_travel_takes_times_with_an_offset(tmp_path: Path) -> None:
    table = make(tmp_path)
    write_deltalake(table, ROWS, mode="append")
    table.load_as_version(0)
    assert table.count() == 3
    table.load_as_version(dt.datetime.now(dt.UTC).isoformat())
    assert table.count() == 6
    with pytest.raises(InvalidOptionError, match="offset"):
        table.load_as_version("2024-05-01T00:00:00")
    with pytest.raises(TypeError):
        table.load_as_version(1.5)


def test_filters_of_pyarrow_and_partitions(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by="day")
    assert table.to_pyarrow_table([("day", "=", "a")], columns=["id"], filters=[("id", ">", 1)]).to_pydict() == {"id": [2]}
    assert list(table.to_pandas(filters=[[("id", "=", 1)], [("day", "=", "b")]])["id"]) == [1, 3]
    assert len(table.file_uris(file_pruning_predicate="day = 'b' OR id = 7")) == 1
    assert table.partitions(file_pruning_predicate=[[("day", "=", "b")], [("day", "=", "x")]]) == [{"day": "b"}]


def test_deletion_vectors_as_masks(tmp_path: Path) -> None:
    table = make(tmp_path, configuration={"delta.enableDeletionVectors": "true"})
    assert table.deletion_vectors().read_all().num_rows == 0
    table.delete("id = 2")
    masks = table.deletion_vectors().read_all()
    assert masks["selection_vector"].to_pylist() == [[True, False, True]]
    assert masks["filepath"].to_pylist() == [Path(uri).as_uri() for uri in table.file_uris()]
    assert rows_of(table) == [(1, "a"), (3, "b")]


def test_table_without_files_or_statistics(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(DeltaError, match="without files"):
        DeltaTable(tmp_path, without_files=True).file_uris()
    actions = DeltaTable(tmp_path, skip_stats=True).get_add_actions(flatten=True)
    assert actions["min.id"].to_pylist() == [None]


def test_changes_with_and_without_a_range(tmp_path: Path) -> None:
    table = make(tmp_path, configuration={"delta.enableChangeDataFeed": "true"})
    assert pa.table(table.load_cdf(columns=["id", "_change_type"])).num_rows == 3
    with pytest.raises(DeltaError):
        table.load_cdf(7)
    assert pa.table(table.load_cdf(7, allow_out_of_range=True)).num_rows == 0


def test_query_builder_joins_tables(tmp_path: Path) -> None:
    one, other = make(tmp_path / "one"), make(tmp_path / "other")
    other.delete("id = 1")
    query = QueryBuilder().register("a", one).register("b", other)
    rows = query.execute("SELECT a.id, b.day FROM a JOIN b ON a.id = b.id ORDER BY a.id").read_all()
    assert rows["id"].to_pylist() == [2, 3]
    with pytest.raises(DeltaError, match="duckdb"):
        query.execute("SELECT nope FROM a")


def test_query_gives_instants_in_utc(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"moment": pa.array([1], pa.timestamp("us", "Asia/Tokyo"))}))
    query = QueryBuilder().register("t", DeltaTable(tmp_path))
    result = pa.table(query.execute("SELECT moment, moment AS again FROM t").read_all())
    assert result.schema.types == [pa.timestamp("us", "UTC")] * 2


def test_results_are_pyarrows_without_arro3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path)
    assert type(table.get_add_actions()).__module__.startswith("arro3")
    monkeypatch.setitem(sys.modules, "arro3", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert isinstance(table.get_add_actions(), pa.Table)
    assert isinstance(table.schema().to_arrow(), pa.Schema)


def test_storage_handler_reads_and_writes_below_the_root(tmp_path: Path) -> None:
    import pyarrow.fs as pa_fs

    files = pa_fs.PyFileSystem(DeltaStorageHandler(tmp_path))
    pq.write_table(ROWS, "a/b/one.parquet", filesystem=files)
    pq.write_table(ROWS, "a2/two.parquet", filesystem=files)
    assert pq.read_table("a/b/one.parquet", filesystem=files) == ROWS
    found = files.get_file_info(pa_fs.FileSelector("/", recursive=True))
    assert {info.path: info.is_file for info in found} == {
        "a": False,
        "a/b": False,
        "a/b/one.parquet": True,
        "a2": False,
        "a2/two.parquet": True,
    }
    files.move("a/b/one.parquet", "a/one.parquet")
    files.delete_dir("a2")
    assert [info.type for info in files.get_file_info(["a/one.parquet", "a2", "a"])] == [
        pa_fs.FileType.File,
        pa_fs.FileType.NotFound,
        pa_fs.FileType.Directory,
    ]
    with pytest.raises(UnsupportedOperationError):
        files.delete_dir_contents("/", accept_root_dir=True)


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("=", "", [None]),
        ("!=", "", ["a", "b"]),
        *((operator, "", []) for operator in ("<", "<=", ">", ">=")),
        ("in", ["", "a"], ["a"]),
        (">=", "b", ["b"]),
    ],
)
def test_empty_text_in_a_filter_means_null(tmp_path: Path, operator: str, value: Any, expected: list[str | None]) -> None:
    """As deltalake 1.6 answers."""
    rows = pa.table({"day": ["a", "b", None], "x": [1, 2, 3]})
    write_deltalake(tmp_path, rows, partition_by=["day"])
    partitions = DeltaTable(tmp_path).partitions([("day", operator, value)])
    assert sorted((row["day"] for row in partitions), key=str) == sorted(expected, key=str)
