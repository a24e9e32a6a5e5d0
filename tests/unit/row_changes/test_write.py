"""write_delta: create and append from anything with an Arrow stream."""

from __future__ import annotations

import pickle
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable
from delta_py.definition.request import WriteRequest
from delta_py.errors import (
    DeltaError,
    InvalidOptionError,
    InvariantViolationError,
    ProtocolChangedException,
    SchemaMismatchError,
    TableAlreadyExistsError,
)
from delta_py.log.history import history
from delta_py.row_changes.write import abort_write, commit_write, plan_write, write_delta
from delta_py.row_changes.write_plans import ChangePlan, NothingToDo
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import LONG, StructField, StructType, from_arrow_schema
from delta_py.write.data_files import write_files

ROWS = pa.table({"id": [1, 2, 3], "day": [date(2024, 1, 1), date(2024, 1, 2), None], "name": ["a", None, "c"]})


def snapshot_of(path: Path, version: int | None = None) -> Snapshot:
    return Snapshot.load(LocalStore(str(path)), version=version)


def rows_of(path: Path, version: int | None = None) -> list[dict[str, Any]]:
    """The rows by way of the files that the log lists, partition values as text."""
    found = []
    for file in snapshot_of(path, version).files().to_pylist():
        values = {name: text for name, text in file["partition_values"]}
        found += [{**row, **values} for row in pq.ParquetFile(path / file["path"]).read().to_pylist()]
    return sorted(found, key=str)


def data_files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*.parquet")}


# ---------------------------------------------------------------- create


def test_write_delta_to_a_new_path_makes_version_0(tmp_path: Path) -> None:
    path = tmp_path / "new" / "t"
    assert write_delta(str(path), ROWS, partition_by="day", name="n", description="d", configuration={"my.key": "v"}) == 0
    snapshot = snapshot_of(path)
    assert snapshot.config.partition_columns == ("day",)
    assert (snapshot.metadata.name, snapshot.metadata.description, snapshot.metadata.configuration) == ("n", "d", {"my.key": "v"})
    assert rows_of(path) == [
        {"id": 1, "name": "a", "day": "2024-01-01"},
        {"id": 2, "name": None, "day": "2024-01-02"},
        {"id": 3, "name": "c", "day": None},
    ]
    (entry,) = history(snapshot.store).to_pylist()
    assert (entry["operation"], entry["isBlindAppend"], entry["isolationLevel"]) == ("WRITE", True, "Serializable")
    assert dict(entry["operationParameters"]) == {"mode": "ErrorIfExists", "partitionBy": '["day"]'}
    metrics = dict(entry["operationMetrics"])
    assert (metrics["numFiles"], metrics["numOutputRows"]) == ("3", "3")
    assert int(metrics["numOutputBytes"]) == sum(f["size"] for f in snapshot.files().to_pylist())


@pytest.mark.parametrize("mode", ["error", "ErrorIfExists", "append", "IGNORE"])
def test_write_delta_creates_a_missing_table_in_every_mode(tmp_path: Path, mode: str) -> None:
    assert write_delta(str(tmp_path), ROWS, mode=mode) == 0
    assert len(rows_of(tmp_path)) == 3


def test_write_delta_without_rows_creates_an_empty_table(tmp_path: Path) -> None:
    assert write_delta(str(tmp_path), ROWS.schema.empty_table()) == 0
    assert snapshot_of(tmp_path).num_files == 0
    assert from_arrow_schema(ROWS.schema) == snapshot_of(tmp_path).schema


def test_write_delta_directory_with_other_files_takes_a_table(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert write_delta(str(tmp_path), ROWS) == 0
    assert (tmp_path / "notes.txt").exists()


def test_write_delta_file_url_is_its_path(tmp_path: Path) -> None:
    assert write_delta(f"file://{tmp_path}/a%20b", ROWS) == 0
    assert len(rows_of(tmp_path / "a b")) == 3


# ---------------------------------------------------------------- a table that is there


def test_write_delta_error_mode_refuses_an_existing_table(tmp_path: Path) -> None:
    write_delta(str(tmp_path), ROWS)
    before = data_files(tmp_path)
    with pytest.raises(TableAlreadyExistsError, match="version 0") as caught:
        write_delta(str(tmp_path), ROWS)
    assert caught.value.error_class == "DELTA_PATH_EXISTS"
    assert data_files(tmp_path) == before


def test_write_delta_ignore_mode_returns_the_existing_version(tmp_path: Path) -> None:
    write_delta(str(tmp_path), ROWS)
    write_delta(str(tmp_path), ROWS, mode="append")
    assert write_delta(str(tmp_path), pa.table({"other": [1]}), mode="ignore") == 1
    assert len(rows_of(tmp_path)) == 6


def test_write_delta_append_adds_rows_as_a_new_version(tmp_path: Path) -> None:
    write_delta(str(tmp_path), ROWS, partition_by=["day"])
    data = pa.table({"DAY": pa.array([date(2024, 3, 18)]), "ID": pa.array([9], pa.int8())})
    assert write_delta(str(tmp_path), data, mode="append") == 1
    assert rows_of(tmp_path)[-1] == {"id": 9, "name": None, "day": "2024-03-18"}
    assert len(rows_of(tmp_path, 0)) == 3
    assert snapshot_of(tmp_path).schema == snapshot_of(tmp_path, 0).schema


def test_write_delta_append_merges_shorts_and_integers(tmp_path: Path) -> None:
    for kind, value in ((pa.int8(), 100), (pa.int16(), 30_000), (pa.int32(), 70_000)):
        write_delta(str(tmp_path), pa.table({"id": pa.array([value], kind)}), mode="append", merge_schema=True)
    assert sorted(DeltaTable(str(tmp_path)).to_arrow(filter="id > 99")["id"].to_pylist()) == [100, 30_000, 70_000]


def test_write_delta_append_may_repeat_what_the_table_is(tmp_path: Path) -> None:
    configuration = {"delta.appendOnly": "true", "delta.feature.deletionvectors": "supported"}
    same: dict[str, Any] = {"partition_by": ["DAY"], "name": "n", "configuration": configuration}
    for version in (0, 1):
        assert write_delta(str(tmp_path), ROWS, mode="append", **same) == version


@pytest.mark.parametrize(
    ("data", "options", "condition"),
    [
        (ROWS, {"partition_by": ["name"]}, "DELTA_METADATA_MISMATCH"),
        (ROWS, {"partition_by": []}, "DELTA_METADATA_MISMATCH"),
        (ROWS, {"name": "other"}, "DELTA_METADATA_MISMATCH"),
        (ROWS, {"configuration": {"delta.appendOnly": "true"}}, "DELTA_METADATA_MISMATCH"),
        (ROWS, {"configuration": {"delta.feature.deletionVectors": "supported"}}, "DELTA_METADATA_MISMATCH"),
        (ROWS.append_column("extra", [[1, 2, 3]]), {}, "DELTA_METADATA_MISMATCH"),
        (pa.table({"id": ["1"], "day": ["mon"]}), {}, "DELTA_FAILED_TO_MERGE_FIELDS"),
        (pa.table({"id": pa.array([], pa.string()), "day": []}), {}, "DELTA_FAILED_TO_MERGE_FIELDS"),
        (ROWS.drop_columns(["day"]), {}, "DELTA_PARTITION_COLUMN_NOT_FOUND"),
        (ROWS.rename_columns({"day": "z"}), {}, "DELTA_METADATA_MISMATCH"),
        (ROWS.drop_columns(["day"]), {"merge_schema": True}, "DELTA_PARTITION_COLUMN_NOT_FOUND"),
    ],
)
def test_write_delta_append_that_does_not_fit_writes_nothing(
    tmp_path: Path, data: pa.Table, options: dict[str, Any], condition: str
) -> None:
    write_delta(str(tmp_path), ROWS, partition_by="day")
    before = data_files(tmp_path)
    with pytest.raises(SchemaMismatchError) as caught:
        write_delta(str(tmp_path), data, mode="append", **options)
    assert caught.value.error_class == condition
    assert data_files(tmp_path) == before and snapshot_of(tmp_path).version == 0


def test_write_delta_row_that_breaks_not_null_leaves_no_file(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("p", pa.string())])
    write_delta(str(tmp_path), pa.table({"id": [1], "p": ["a"]}, schema=schema), partition_by="p")
    before = data_files(tmp_path)
    loose = pa.schema([("id", pa.int64()), ("p", pa.string())])
    with pytest.raises(InvariantViolationError):
        write_delta(str(tmp_path), pa.table({"id": [2, None], "p": ["a", "b"]}, schema=loose), mode="append")
    assert data_files(tmp_path) == before


def test_write_delta_unknown_mode_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="upsert"):
        write_delta(str(tmp_path), ROWS, mode="upsert")


def test_write_delta_creates_and_appends_with_column_mapping(tmp_path: Path) -> None:
    spaced = pa.table({"a b": [1], "s": [{"c;d": "x"}]})
    for version in (0, 1):
        assert (
            write_delta(
                str(tmp_path),
                spaced,
                mode="append",
                **({} if version else {"configuration": {"delta.columnMapping.mode": "name"}}),
            )
            == version
        )
    files = snapshot_of(tmp_path).files().to_pylist()
    schemas = [pq.read_schema(tmp_path / file["path"]) for file in files]
    assert schemas[0].names == schemas[1].names and all(name.startswith("col-") for name in schemas[0].names)
    assert {schemas[0].field(0).metadata[b"PARQUET:field_id"], schemas[0].field(1).metadata[b"PARQUET:field_id"]} == {b"1", b"2"}


# ---------------------------------------------------------------- what may be written


class OnlyAStream:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return ROWS.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ROWS,
        lambda: ROWS.to_batches()[0],
        lambda: ROWS.to_reader(max_chunksize=1),
        lambda: ROWS.to_pandas().set_index("id", drop=False),
        lambda: pl.from_arrow(ROWS),
        lambda: duckdb.sql("from (values (1::bigint, null::date, 'a'), (2, null, null), (3, null, 'c')) t(id, day, name)"),
        OnlyAStream,
    ],
    ids=["table", "batch", "reader", "pandas", "polars", "duckdb", "stream"],
)
def test_write_delta_takes_anything_with_an_arrow_stream(tmp_path: Path, make: Any) -> None:
    write_delta(str(tmp_path), make())
    assert [(row["id"], row["name"]) for row in rows_of(tmp_path)] == [(1, "a"), (2, None), (3, "c")]
    assert snapshot_of(tmp_path).schema.names == ("id", "day", "name")


def test_write_delta_pandas_index_is_left_out(tmp_path: Path) -> None:
    write_delta(str(tmp_path), pd.DataFrame({"a": [1, 2]}, index=["x", "y"]))
    assert rows_of(tmp_path) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("data", [[{"a": 1}], {"a": [1]}, None, "text"])
def test_write_delta_without_an_arrow_stream_is_a_type_error(tmp_path: Path, data: Any) -> None:
    with pytest.raises(TypeError, match="Arrow stream"):
        write_delta(str(tmp_path), data)


# ---------------------------------------------------------------- the three steps by themselves


def test_pickled_write_plan_commits_the_files_of_its_tasks(tmp_path: Path) -> None:
    store, schema = LocalStore(str(tmp_path)), from_arrow_schema(ROWS.schema)
    plan = pickle.loads(pickle.dumps(plan_write(store, schema, WriteRequest("append", ["day"]))))
    tasks = [pickle.dumps(write_files(plan.state, ROWS.slice(n, 1).to_batches(), task=n)) for n in range(3)]
    assert commit_write(store, plan, [pickle.loads(task) for task in tasks]) == 0
    again = plan_write(store, schema, WriteRequest("append"))
    assert isinstance(again, ChangePlan) and again.state.read_version == 0
    assert commit_write(store, again, [write_files(again.state, ROWS.to_batches())]) == 1
    assert len(rows_of(tmp_path)) == 6


def test_planned_create_that_loses_leaves_the_others_table(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    plan = plan_write(store, from_arrow_schema(ROWS.schema), WriteRequest("append"))
    assert not isinstance(plan, NothingToDo)
    files = write_files(plan.state, ROWS.to_batches())
    write_delta(str(tmp_path), pa.table({"theirs": [1]}))
    with pytest.raises(ProtocolChangedException):
        commit_write(store, plan, [files])
    assert rows_of(tmp_path) == [{"theirs": 1}] and len(data_files(tmp_path)) == 1


def test_aborted_write_leaves_no_file(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    plan = plan_write(store, from_arrow_schema(ROWS.schema), WriteRequest("append"))
    assert not isinstance(plan, NothingToDo)
    write_files(plan.state, ROWS.to_batches())
    abort_write(store, plan)
    assert data_files(tmp_path) == set()


def test_commit_of_a_version_that_is_gone_deletes_the_files(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    write_delta(str(tmp_path), ROWS)
    plan = plan_write(store, from_arrow_schema(ROWS.schema), WriteRequest("append"))
    assert not isinstance(plan, NothingToDo)
    before = data_files(tmp_path)
    files = write_files(plan.state, ROWS.to_batches())
    (tmp_path / "_delta_log/00000000000000000000.json").unlink()
    with pytest.raises(DeltaError):
        commit_write(store, plan, [files])
    assert data_files(tmp_path) == before


def test_planned_create_ignores_rules_in_the_schema_of_the_rows(tmp_path: Path) -> None:
    foreign = {"delta.columnMapping.id": 7, "delta.generationExpression": "id + 1", "CURRENT_DEFAULT": "3", "comment": "kept"}
    inner = StructType((StructField("x", LONG, True, foreign),))
    schema = StructType((StructField("id", LONG, True, foreign), StructField("s", inner)))
    plan = plan_write(LocalStore(str(tmp_path)), schema, WriteRequest("append"))
    assert not isinstance(plan, NothingToDo)
    first, second = plan.state.schema.fields
    assert first.metadata == {"comment": "kept"} and isinstance(second.data_type, StructType)
    assert second.data_type.fields[0].metadata == {"comment": "kept"}


def test_checkpoint_by_hand_lets_the_commits_before_it_go(tmp_path: Path) -> None:
    write_delta(str(tmp_path), ROWS)
    write_delta(str(tmp_path), ROWS, mode="append")
    assert DeltaTable(str(tmp_path)).checkpoint() == 2
    (tmp_path / "_delta_log/00000000000000000000.json").unlink()
    assert DeltaTable(str(tmp_path)).to_arrow().num_rows == 6


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_statistics_only_in_a_checkpoint_struct_become_text(tmp_path: Path, policy: str) -> None:
    configuration = {
        "delta.checkpoint.writeStatsAsJson": "false",
        "delta.checkpointInterval": "2",
        "delta.checkpointPolicy": policy,
        "delta.enableDeletionVectors": "true",
    }
    write_delta(str(tmp_path), ROWS, configuration=configuration)
    wanted = snapshot_of(tmp_path).files()["stats"].to_pylist()
    for _ in range(2):
        write_delta(str(tmp_path), ROWS, mode="append")
    assert list((tmp_path / "_delta_log").glob("*2.checkpoint*"))
    assert [orjson.loads(text) for text in snapshot_of(tmp_path).files()["stats"].to_pylist()] == [
        orjson.loads(text) for text in wanted * 3
    ]
    write_delta(str(tmp_path), ROWS.slice(0, 0), mode="overwrite", replace_where="id = 2")
    (tmp_path / "_delta_log" / f"{3:020}.crc").unlink()
    (kept, *_) = (orjson.loads(text) for text in snapshot_of(tmp_path).files()["stats"].to_pylist())
    assert (kept["minValues"]["id"], kept["maxValues"]["id"], kept["tightBounds"]) == (1, 3, False)
