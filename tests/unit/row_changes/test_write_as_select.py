"""CREATE and REPLACE TABLE ... AS SELECT: a definition and rows in one commit, also over an existing table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable
from delta_py.definition.request import WriteRequest
from delta_py.errors import DeltaConcurrentModificationException, InvalidOptionError, TableAlreadyExistsError, TableNotFoundError
from delta_py.log.history import history
from delta_py.row_changes.write import commit_write, plan_write, write_delta
from delta_py.row_changes.write_plans import NothingToDo
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import from_arrow_schema
from delta_py.write.data_files import write_files

ROWS = pa.table({"day": ["a", "b"], "n": [1, 2]})
FEED = {"delta.enableChangeDataFeed": "true", "owner": "shop"}


def write(path: Path, rows: pa.Table, as_select: str, **options: Any) -> int:
    mode = "error" if as_select == "create" else "overwrite"
    request = WriteRequest(mode=mode, as_select=as_select, tasks=1, **options)
    store = LocalStore(str(path))
    plan = plan_write(store, from_arrow_schema(rows.schema), request)
    assert not isinstance(plan, NothingToDo)
    return commit_write(store, plan, [write_files(plan.state, rows.to_reader())])


def rows_of(path: Path) -> list[dict[str, Any]]:
    return sorted(DeltaTable(str(path)).to_arrow().to_pylist(), key=str)


def newest_commit(path: Path) -> dict[str, Any]:
    commit = history(LocalStore(str(path)), limit=1).to_pylist()[0]
    return {**commit, **{key: dict(commit[key]) for key in ("operationParameters", "operationMetrics")}}


def test_created_with_its_rows(tmp_path: Path) -> None:
    version = write(tmp_path, ROWS, "create", partition_by=["day"], description="d", configuration=FEED)
    commit = newest_commit(tmp_path)
    assert version == 0 and rows_of(tmp_path) == ROWS.to_pylist()
    assert commit["operation"] == "CREATE TABLE AS SELECT"
    assert commit["operationParameters"]["partitionBy"] == '["day"]'
    assert commit["operationParameters"]["description"] == "d"
    assert commit["operationMetrics"]["numOutputRows"] == "2"


def test_create_over_a_table_is_refused(tmp_path: Path) -> None:
    write(tmp_path, ROWS, "create")
    with pytest.raises(TableAlreadyExistsError):
        write(tmp_path, ROWS, "create")


def test_create_where_files_of_others_lie_is_refused(tmp_path: Path) -> None:
    write_delta(str(tmp_path / "t"), ROWS, partition_by=["day"])
    with pytest.raises(InvalidOptionError) as refused:
        write(tmp_path / "t" / "day=a", ROWS, "create")
    assert refused.value.error_class == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    assert not (tmp_path / "t" / "day=a" / "_delta_log").exists()


def test_replace_without_a_table_is_refused_and_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="cannot be replaced"):
        write(tmp_path, ROWS, "replace")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("as_select", "operation"), [("replace", "REPLACE TABLE"), ("createOrReplace", "CREATE OR REPLACE TABLE")]
)
def test_replaced_in_one_commit(tmp_path: Path, as_select: str, operation: str) -> None:
    """Columns, partitioning, description and properties are only the new ones; the old version stays readable."""
    write_delta(str(tmp_path), ROWS, partition_by=["day"], description="old", configuration=FEED)
    before = Snapshot.load(LocalStore(str(tmp_path)))
    rows = pa.table({"x": [1.5]})
    assert write(tmp_path, rows, as_select, configuration={"owner": "other"}) == 1
    after = Snapshot.load(LocalStore(str(tmp_path)))
    assert rows_of(tmp_path) == [{"x": 1.5}] and list(after.schema.names) == ["x"]
    assert (after.metadata.partition_columns, after.metadata.description) == ((), None)
    assert dict(after.metadata.configuration) == {"owner": "other"} and after.metadata.id != before.metadata.id
    assert newest_commit(tmp_path)["operation"] == f"{operation} AS SELECT"
    assert DeltaTable(str(tmp_path), version=0).to_arrow().num_rows == 2


def test_ids_of_columns_are_not_given_again(tmp_path: Path) -> None:
    """Protocol: Writer Requirements for Column Mapping."""
    mapping = {"delta.columnMapping.mode": "name"}
    write(tmp_path, ROWS, "create", configuration=mapping)
    write(tmp_path, ROWS, "createOrReplace", configuration=mapping)
    ids = [f.metadata["delta.columnMapping.id"] for f in Snapshot.load(LocalStore(str(tmp_path))).schema.fields]
    assert ids == [3, 4] and rows_of(tmp_path) == ROWS.to_pylist()


def test_clustered_anew(tmp_path: Path) -> None:
    write(tmp_path, ROWS, "create", cluster_by=["day"])
    write(tmp_path, ROWS, "replace", cluster_by=["n"])
    domain = Snapshot.load(LocalStore(str(tmp_path))).domain_metadata()["delta.clustering"]
    assert '["n"]' in domain.configuration
    write(tmp_path, ROWS, "replace")
    assert Snapshot.load(LocalStore(str(tmp_path))).domain_metadata() == {}


def test_timestamps_turned_on_by_a_replacement(tmp_path: Path) -> None:
    """Protocol: Writer Requirements for In-Commit Timestamps."""
    write(tmp_path, ROWS, "create")
    write(tmp_path, ROWS, "replace", configuration={"delta.enableInCommitTimestamps": "true"})
    configuration = Snapshot.load(LocalStore(str(tmp_path))).metadata.configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "1"


def test_a_commit_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    """Otherwise another writer's rows would disappear without a message."""
    write(tmp_path, ROWS, "create")
    store = LocalStore(str(tmp_path))
    plan = plan_write(store, from_arrow_schema(ROWS.schema), WriteRequest(mode="overwrite", as_select="replace", tasks=1))
    assert not isinstance(plan, NothingToDo)
    written = write_files(plan.state, ROWS.to_reader())
    write(tmp_path, ROWS, "replace", configuration=FEED)
    with pytest.raises(DeltaConcurrentModificationException):
        commit_write(store, plan, [written])
    assert rows_of(tmp_path) == ROWS.to_pylist()
