"""Managed tables that a write creates in Unity Catalog: with what the catalog demands, once, and not at all after a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, as_deltalake, write_delta
from delta_py.errors import CommitOutcomeUnknownError, InvariantViolationError, TableAlreadyExistsError
from delta_py.log.catalog_contract import REQUIRED_FEATURES, REQUIRED_PROPERTIES
from delta_py.storage import publication
from delta_py.unity import table_creation
from delta_py.unity.catalog_errors import CatalogObjectNotFoundError, CatalogRefusedError
from tests.support.servers.unity_catalog import Failure, UnityCatalogServer
from tests.support.tables.catalog_tables import create_managed


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityCatalogServer]:
    with UnityCatalogServer(tmp_path / "catalog") as server:
        yield server
        publication.finish()


ROWS = pa.table({"id": [1, 2], "tags": [["a"], None], "day": ["x", "y"]})


def create(server: UnityCatalogServer, name: str = "n", **options: Any) -> int:
    return write_delta(server.table_url(name), ROWS, storage_options=server.options, **options)


def open_table(server: UnityCatalogServer, name: str = "n") -> DeltaTable:
    return DeltaTable(server.table_url(name), storage_options=server.options)


@pytest.mark.parametrize("mode", ["error", "append", "ignore", "overwrite"])
def test_write_creates_a_managed_table(server: UnityCatalogServer, mode: str) -> None:
    assert create(server, mode=mode) == 0
    table = open_table(server)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2]
    assert {*REQUIRED_FEATURES} <= table.protocol.writer_features
    assert REQUIRED_PROPERTIES.items() <= table.metadata.configuration.items()
    known = server.state.tables["uc", "s", "n"]
    assert (known.kind, known.latest) == ("MANAGED", 0)
    assert table.metadata.configuration["io.unitycatalog.tableId"] == known.table_id
    assert table.metadata.configuration["delta.columnMapping.mode"] == "name"  # as the catalog suggests
    assert Path(table.snapshot.table_root, "_delta_log", "_staged_commits").is_dir()  # delta-spark needs it


def test_new_table_is_used_like_any_other(server: UnityCatalogServer) -> None:
    create(server, partition_by=["day"], description="hello", configuration={"my.key": "v", "delta.columnMapping.mode": "none"})
    create(server, mode="append")
    open_table(server).delete("id = 1")
    assert open_table(server).version == 2 and open_table(server).to_arrow()["id"].to_pylist() == [2, 2]
    known = server.state.tables["uc", "s", "n"]
    assert (known.partition_columns, known.comment, known.properties["my.key"]) == (["day"], "hello", "v")
    assert "delta.columnMapping.mode" not in known.properties or known.properties["delta.columnMapping.mode"] == "none"


def test_replaced_table_has_what_the_catalog_demands(server: UnityCatalogServer) -> None:
    create(server)
    DeltaTable.create(server.table_url("n"), pa.schema({"word": pa.string()}), mode="overwrite", storage_options=server.options)
    table = open_table(server)
    assert table.to_arrow().column_names == ["word"] and table.version == 1
    assert REQUIRED_PROPERTIES.items() <= table.metadata.configuration.items()
    known = server.state.tables["uc", "s", "n"]
    assert [field["name"] for field in known.columns["fields"]] == ["word"]
    assert known.properties["io.unitycatalog.tableId"] == known.table_id


def test_clustered_table_is_created_with_its_domain(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    forms: list[dict[str, Any]] = []
    make = server.state.create
    monkeypatch.setattr(server.state, "create", lambda schema, body: (forms.append(body), make(schema, body))[1])
    create(server, cluster_by=["id"])
    physical = server.state.tables["uc", "s", "n"].columns["fields"][0]["metadata"]["delta.columnMapping.physicalName"]
    assert forms[0]["domain-metadata"]["delta.clustering"] == {"clusteringColumns": [[physical]]}


def test_table_without_rows_is_created(server: UnityCatalogServer) -> None:
    table = DeltaTable.create(server.table_url("n"), ROWS.schema, storage_options=server.options)
    assert table.to_arrow().num_rows == 0 and ("uc", "s", "n") in server.state.tables


def test_deltalakes_names_create_it_too(server: UnityCatalogServer) -> None:
    as_deltalake.write_deltalake(server.table_url("a"), ROWS, storage_options=server.options)
    as_deltalake.DeltaTable.create(server.table_url("b"), ROWS.schema, storage_options=server.options)
    assert {("uc", "s", "a"), ("uc", "s", "b")} == server.state.tables.keys()


def test_existing_table_is_not_created_again(server: UnityCatalogServer) -> None:
    create(server)
    with pytest.raises(TableAlreadyExistsError):
        create(server)
    assert create(server, mode="ignore") == 0 and server.state.staging == {}


def test_schema_that_does_not_exist_is_not_found(server: UnityCatalogServer) -> None:
    with pytest.raises(CatalogObjectNotFoundError, match="Schema not found"):
        write_delta(f"unity://{server.host}/uc.none.n", ROWS, storage_options=server.options)
    assert server.state.staging == {}


def test_write_that_fails_leaves_no_table(server: UnityCatalogServer) -> None:
    bad = pa.table({"id": pa.array([None], pa.int64())}, pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    with pytest.raises(InvariantViolationError):
        write_delta(server.table_url("n"), bad, storage_options=server.options)
    assert server.state.tables == {}


def test_definition_that_the_catalog_refuses_leaves_no_table(server: UnityCatalogServer) -> None:
    with pytest.raises(CatalogRefusedError, match="missing required property"):
        create(server, configuration={"delta.checkpointPolicy": "classic"})
    assert server.state.tables == {} and not list(Path(server.state.root.removeprefix("file://")).rglob("*.parquet"))


def test_table_that_another_writer_created_meanwhile_is_kept(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    create_managed(server, "n", pa.table({"id": [7]}))
    other = server.state.tables.pop(("uc", "s", "n"))
    stage = server.state.stage

    def staged_late() -> dict[str, Any]:
        server.state.tables["uc", "s", "n"] = other
        return stage()

    monkeypatch.setattr(server.state, "stage", staged_late)
    with pytest.raises(TableAlreadyExistsError, match="created meanwhile"):
        create(server)
    assert open_table(server).to_arrow()["id"].to_pylist() == [7]


@pytest.mark.parametrize("failure", [Failure.LOST_REQUEST, Failure.LOST_ANSWER, Failure.UNKNOWN])
@pytest.mark.parametrize("call", ["/staging-tables", "/schemas/s/tables"])
def test_creation_without_an_answer_is_made_once(server: UnityCatalogServer, failure: Failure, call: str) -> None:
    server.fail("POST", call, failure)
    assert create(server) == 0
    assert open_table(server).to_arrow().num_rows == 2


def test_throttled_creation_waits(server: UnityCatalogServer) -> None:
    server.fail("POST", "/staging-tables", Failure.THROTTLED)
    server.fail("POST", "/schemas/s/tables", Failure.THROTTLED)
    assert create(server) == 0


def test_refusal_after_a_lost_answer_does_not_undo_the_creation(server: UnityCatalogServer) -> None:
    server.fail("POST", "/schemas/s/tables", Failure.LOST_ANSWER, Failure.FORBIDDEN)
    assert create(server) == 0
    assert open_table(server).to_arrow().num_rows == 2


def test_refusal_after_a_lost_request_leaves_the_creation_unknown(
    server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_creation, "_BACKOFF", table_creation.Backoff(0.001, 0.001))
    server.fail("POST", "/schemas/s/tables", Failure.LOST_REQUEST, *[Failure.FORBIDDEN] * 20)
    with pytest.raises(CommitOutcomeUnknownError, match="may exist"):
        create(server)
    assert list(Path(server.state.root.removeprefix("file://")).rglob("*.parquet"))


def test_creation_whose_answers_are_all_lost_is_unknown(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_creation, "_BACKOFF", table_creation.Backoff(0.001, 0.001))
    server.fail("POST", "/schemas/s/tables", *[Failure.LOST_REQUEST] * 20)
    with pytest.raises(CommitOutcomeUnknownError, match="may exist"):
        create(server)
    assert list(Path(server.state.root.removeprefix("file://")).rglob("*.parquet"))
