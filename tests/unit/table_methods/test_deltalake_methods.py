"""Methods of DeltaTable by deltalake's names: results, and what a dataset of pyarrow says about its files."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import InvalidOptionError, SchemaMismatchError, TableAlreadyExistsError, VersionNotFoundError

DAYS = [dt.date(2024, 5, day) for day in (1, 1, 2, 3)]
ROWS = pa.table({"id": [1, 2, 3, 4], "day": pa.array(DAYS, pa.date32()), "name": ["a", None, "c", "d"]})
VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPING = {"delta.columnMapping.mode": "name"}


def make(path: Path, configuration: dict[str, str] | None = None, **options: Any) -> DeltaTable:
    write_delta(path, ROWS, configuration=configuration, partition_by=["day"], **options)
    return DeltaTable(path)


# ---------------------------------------------------------------- tables and versions


def test_is_deltatable_sees_tables_and_nothing_else(tmp_path: Path) -> None:
    assert not DeltaTable.is_deltatable(tmp_path / "t")
    make(tmp_path / "t")
    assert DeltaTable.is_deltatable(tmp_path / "t")
    assert not DeltaTable.is_deltatable(tmp_path)


def test_create_makes_a_table_without_rows(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, ROWS.schema, partition_by="day", name="n", configuration=MAPPING)
    assert (table.version, table.count(), table.metadata.name, table.metadata.partition_columns) == (0, 0, "n", ("day",))
    with pytest.raises(TableAlreadyExistsError):
        DeltaTable.create(tmp_path, ROWS.schema)
    assert DeltaTable.create(tmp_path, pa.schema([("x", pa.int64())]), "ignore").schema().names == ["id", "day", "name"]
    assert DeltaTable.create(tmp_path, pa.schema([("x", pa.int64())]), "overwrite").schema().names == ["x"]
    with pytest.raises(InvalidOptionError, match="append"):
        DeltaTable.create(tmp_path, ROWS.schema, "append")


@pytest.mark.parametrize("schema", ["id bigint", ["id"], {"id": "bigint"}, 7])
def test_what_is_no_schema_is_refused(tmp_path: Path, schema: object) -> None:
    with pytest.raises(InvalidOptionError, match=r"^\[DELTA_ILLEGAL_OPTION\] schema is .* pyarrow\.schema"):
        DeltaTable.create(tmp_path, schema)
    with pytest.raises(InvalidOptionError, match=r"partition_schema is .*, which is no schema"):
        DeltaTable.convert(tmp_path, schema)
    assert not list(tmp_path.iterdir())


def test_load_as_version_moves_the_object(tmp_path: Path) -> None:
    table = make(tmp_path)
    write_delta(tmp_path, ROWS, mode="append")
    assert (table.version, table.count()) == (0, 4)
    table.update_incremental()
    assert (table.version, table.count()) == (1, 8)
    table.load_as_version(0)
    assert (table.version, table.count()) == (0, 4)
    newest_ms = DeltaTable(tmp_path).snapshot.timestamp_ms
    table.load_as_version(dt.datetime.fromtimestamp(newest_ms / 1000, dt.UTC))
    assert table.version == 1
    with pytest.raises(VersionNotFoundError):
        table.load_as_version(9)
    assert table.version == 1


@pytest.mark.parametrize("configuration", [None, VECTORS, MAPPING])
def test_count_leaves_out_deleted_rows(tmp_path: Path, configuration: dict[str, str] | None) -> None:
    table = make(tmp_path, configuration)
    table.delete("id = 1")
    table.update_incremental()
    assert table.count() == 3
    assert table.count("name IS NULL OR day > date'2024-05-02'") == 2


def test_transaction_version_is_the_recorded_one(tmp_path: Path) -> None:
    table = make(tmp_path, txn_app_id="loader", txn_version=4)
    assert (table.transaction_version("loader"), table.transaction_version("other")) == (4, None)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("configuration", [None, MAPPING])
def test_add_actions_have_typed_values(tmp_path: Path, configuration: dict[str, str] | None) -> None:
    actions = make(tmp_path, configuration).get_add_actions(flatten=True).sort_by("partition.day")
    assert actions["partition.day"].to_pylist() == DAYS[1:]
    assert actions["num_records"].to_pylist() == [2, 1, 1]
    assert (actions["min.id"].to_pylist(), actions["max.id"].to_pylist()) == ([1, 3, 4], [2, 3, 4])
    assert actions["null_count.name"].to_pylist() == [1, 0, 0]
    nested = DeltaTable(tmp_path).get_add_actions()
    assert nested.column_names[:4] == ["path", "size_bytes", "modification_time", "num_records"]
    assert nested["partition"].type == pa.struct([("day", pa.date32())])


def test_add_actions_of_a_table_without_files(tmp_path: Path) -> None:
    table = DeltaTable.create(tmp_path, ROWS.schema, partition_by="day")
    assert table.get_add_actions().num_rows == 0
    assert table.get_add_actions(flatten=True).schema.field("partition.day").type == pa.date32()


@pytest.mark.parametrize(
    ("filters", "days"),
    [
        (None, {1, 2, 3}),
        ([("day", "=", "2024-05-01")], {1}),
        ([("day", "!=", dt.date(2024, 5, 1))], {2, 3}),
        ([("day", "in", [dt.date(2024, 5, 1), "2024-05-03"])], {1, 3}),
        ([("day", "not in", ["2024-05-01"]), ("day", "<", "2024-05-03")], {2}),
        ([("day", "=", "")], set()),
    ],
)
def test_file_uris_of_partitions(tmp_path: Path, filters: Any, days: set[int]) -> None:
    table = make(tmp_path)
    assert {Path(uri).parent.name for uri in table.file_uris(filters)} == {f"day=2024-05-0{day}" for day in days}
    assert all(Path(uri).is_file() for uri in table.file_uris(filters))
    assert {values["day"] for values in table.partitions(filters)} == {f"2024-05-0{day}" for day in days}


@pytest.mark.parametrize(
    ("filters", "error"),
    [
        ([("id", "=", 1)], SchemaMismatchError),
        ([("hour", "=", 1)], SchemaMismatchError),
        ([("day", "=>", "x")], InvalidOptionError),
        ([("day", "=", ["x"])], InvalidOptionError),
        ([("day", "=", {})], ValueError),
    ],
)
def test_filter_that_is_none_is_refused(tmp_path: Path, filters: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make(tmp_path).file_uris(filters)


def test_quotes_in_a_filter_are_part_of_the_value(tmp_path: Path) -> None:
    write_delta(tmp_path, pa.table({"p": ["it's", "b\\", "c"], "id": [1, 2, 3]}), partition_by=["p"])
    table = DeltaTable(tmp_path)
    assert [len(table.file_uris([("p", "=", value)])) for value in ("it's", "b\\", "x' OR 'a' = 'a")] == [1, 1, 0]


# ---------------------------------------------------------------- datasets


@pytest.mark.parametrize("configuration", [None, VECTORS, MAPPING, {**VECTORS, **MAPPING}])
def test_dataset_has_the_rows_of_the_version(tmp_path: Path, configuration: dict[str, str] | None) -> None:
    table = make(tmp_path, configuration)
    table.delete("id = 1")
    table.update_incremental()
    dataset = table.to_pyarrow_dataset()
    assert isinstance(dataset, ds.Dataset)
    assert dataset.to_table().sort_by("id").to_pydict() == table.to_arrow().sort_by("id").to_pydict()
    rows = dataset.to_table(columns=["name"], filter=(ds.field("day") > DAYS[0]) & (ds.field("id") < 4))
    assert rows.to_pydict() == {"name": ["c"]}


def test_dataset_skips_files_by_partition_and_statistics(tmp_path: Path) -> None:
    dataset = make(tmp_path).to_pyarrow_dataset()

    def count(condition: Any) -> int:
        return len(list(dataset.get_fragments(filter=condition)))

    assert count(None) == 3
    assert count(ds.field("day") == DAYS[0]) == 1
    assert count(ds.field("id") > 3) == 1
    assert count(ds.field("name").is_null()) == 1
    assert count(ds.field("name") == "c") == 1
    assert count(ds.field("id").is_null()) == 0


def test_dataset_leaves_out_files_of_a_filter(tmp_path: Path) -> None:
    table = make(tmp_path)
    assert len(list(table.to_pyarrow_dataset("id > 3").get_fragments())) == 1


def test_dataset_reads_only_files_with_vectors_at_once(tmp_path: Path) -> None:
    table = make(tmp_path, VECTORS)
    table.delete("id = 1")
    table.update_incremental()
    on_disk, in_memory = table.to_pyarrow_dataset().children
    assert len(on_disk.files) == 2
    assert in_memory.to_table().num_rows == 1


def test_bounds_of_floats_say_nothing_about_nan(tmp_path: Path) -> None:
    write_delta(tmp_path, pa.table({"x": [1.0, float("nan")]}))
    (fragment,) = DeltaTable(tmp_path).to_pyarrow_dataset().get_fragments()
    assert str(fragment.partition_expression) == "true"


@pytest.mark.parametrize("configuration", [None, VECTORS])
def test_duckdb_and_polars_read_the_dataset(tmp_path: Path, configuration: dict[str, str] | None) -> None:
    table = make(tmp_path, configuration)
    table.delete("id = 1")
    table.update_incremental()
    dataset = table.to_pyarrow_dataset()
    relation = duckdb.sql("SELECT id FROM dataset WHERE day >= DATE '2024-05-02' AND name <> 'd'")
    assert relation.fetchall() == [(3,)]
    frame = pl.scan_pyarrow_dataset(dataset).filter(pl.col("day") >= DAYS[2], pl.col("name") != "d").collect()
    assert frame["id"].to_list() == [3]


# ---------------------------------------------------------------- rows and maintenance


def test_load_cdf_begins_with_version_0(tmp_path: Path) -> None:
    table = make(tmp_path, {"delta.enableChangeDataFeed": "true"})
    table.delete("id = 1")
    kinds = table.load_cdf().read_all()["_change_type"].to_pylist()
    assert sorted(kinds) == ["delete", *["insert"] * 4]
    assert table.load_cdf(1, columns=["id"], predicate="id = 1").read_all().to_pydict() == {"id": [1]}


def test_repair_removes_the_files_that_are_missing(tmp_path: Path) -> None:
    table = make(tmp_path)
    lost = Path(table.file_uris()[0])
    lost.unlink()
    assert table.repair(dry_run=True) == {"dry_run": True, "files_removed": [str(lost.relative_to(tmp_path))]}
    assert len(table.repair()["files_removed"]) == 1
    table.update_incremental()
    assert (table.version, len(table.file_uris())) == (1, 2)


def test_checkpoint_and_logs_by_both_names(tmp_path: Path) -> None:
    table = make(tmp_path)
    write_delta(tmp_path, ROWS, mode="append")
    table.update_incremental()
    assert table.create_checkpoint() == 6
    assert table.compact_logs(0, 1) == (0, 1)
    assert table.cleanup_metadata() == 0


def test_write_delta_takes_schema_mode_and_predicate(tmp_path: Path) -> None:
    make(tmp_path)
    more = pa.table({"id": [9], "day": pa.array(DAYS[:1], pa.date32()), "extra": ["x"]})
    write_delta(tmp_path, more, mode="append", schema_mode="merge")
    assert DeltaTable(tmp_path).schema().names == ["id", "day", "name", "extra"]
    write_delta(tmp_path, more, mode="overwrite", predicate="day = date'2024-05-01'")
    assert sorted(DeltaTable(tmp_path).to_arrow()["id"].to_pylist()) == [3, 4, 9]
    write_delta(tmp_path, pa.table({"z": [1]}), mode="overwrite", schema_mode="overwrite")
    assert DeltaTable(tmp_path).schema().names == ["z"]
    with pytest.raises(InvalidOptionError, match="schema_mode"):
        write_delta(tmp_path, more, mode="append", schema_mode="evolve")
    with pytest.raises(InvalidOptionError, match="predicate"):
        write_delta(tmp_path, more, mode="overwrite", predicate="id = 1", replace_where="id = 1")


def test_columns_are_added_as_fields_of_arrow(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.alter.add_columns([pa.field("x", pa.int64()), pa.field("y", pa.string())])
    table.alter.add_columns(pa.field("z", pa.float64()))
    assert DeltaTable(tmp_path).schema().names == ["id", "day", "name", "x", "y", "z"]


def test_name_description_and_metadata_of_columns(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.alter.set_table_name("events")
    table.alter.set_table_description("what happened")
    table.alter.set_column_metadata("id", {"comment": "the customer", "unit": "none"})
    table.update_incremental()
    assert (table.metadata.name, table.metadata.description) == ("events", "what happened")
    assert table.struct_type.fields[0].metadata == {"comment": "the customer", "unit": "none"}
    with pytest.raises(InvalidOptionError):
        table.alter.set_table_name("")
    with pytest.raises(SchemaMismatchError):
        table.alter.set_column_metadata("nope", {"a": "b"})


def test_merge_adds_the_columns_that_clauses_assign(tmp_path: Path) -> None:
    table = make(tmp_path)
    source = pa.table({"id": [1, 9], "day": pa.array(DAYS[:2], pa.date32()), "name": ["A", "Z"], "n": [10, 90], "m": [1, 2]})
    merger = table.merge(source, "t.id = s.id", "s", "t", merge_schema=True)
    merger.when_matched_update({"name": "s.name", "n": "s.n"}).when_not_matched_insert_all(except_cols=["m"]).execute()
    rows = {row["id"]: row for row in DeltaTable(tmp_path).to_arrow().to_pylist()}
    assert (rows[1]["name"], rows[1]["n"], rows[9]["n"], rows[3]["n"]) == ("A", 10, 90, None)
    assert DeltaTable(tmp_path).schema().names == ["id", "day", "name", "n"]
    assert DeltaTable(tmp_path).version == 1
