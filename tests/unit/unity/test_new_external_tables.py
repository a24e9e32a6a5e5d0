"""External tables that a write or a definition creates at a location of the user's: files first, then the name, once."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, as_deltalake, write_delta
from delta_py.definition.catalog_entry import enter_in_catalog
from delta_py.errors import (
    InvalidOptionError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    UnsupportedOperationError,
)
from delta_py.object_stores.new_catalog_table import open_or_stage_catalog_table
from delta_py.storage.store_options import StorageOptions
from delta_py.unity import table_creation
from delta_py.unity.catalog_errors import CatalogAnswerError, CatalogRefusedError, CatalogUnavailableError
from tests.support.servers.unity_catalog import Failure, UnityCatalogServer
from tests.support.tables.catalog_tables import create_managed

ROWS = pa.table({"id": [1, 2], "day": ["x", "y"]})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityCatalogServer]:
    with UnityCatalogServer(tmp_path / "catalog") as server:
        yield server


@pytest.fixture
def location(tmp_path: Path) -> Path:
    return tmp_path / "lake" / "my table"


def options(server: UnityCatalogServer, location: Path | str) -> dict[str, str]:
    return {**server.options, "unity.location": str(location)}


def ids(server: UnityCatalogServer, name: str = "t") -> list[int]:
    return sorted(DeltaTable(server.table_url(name), storage_options=server.options).to_arrow()["id"].to_pylist())


def test_write_creates_an_external_table(server: UnityCatalogServer, location: Path) -> None:
    table_options = options(server, location)
    assert write_delta(server.table_url("t"), ROWS, partition_by="day", description="hi", storage_options=table_options) == 0
    entry = server.state.tables["uc", "s", "t"]
    assert (entry.kind, entry.location, entry.comment) == ("EXTERNAL", f"file://{location}".replace(" ", "%20"), "hi")
    assert [field["name"] for field in entry.columns["fields"]] == ["id", "day"]
    assert entry.partition_columns == ["day"] and entry.last[0] == 0
    assert DeltaTable(str(location)).to_arrow().num_rows == 2  # like any table by path
    write_delta(server.table_url("t"), ROWS, mode="append", storage_options=table_options)  # the same location is no error
    write_delta(server.table_url("t"), ROWS, mode="append", storage_options=server.options)
    assert ids(server) == [1, 1, 1, 2, 2, 2] and entry.last[0] == 2


@pytest.mark.parametrize("kind", ["create", "deltalake", "deltalake_create"])
def test_every_way_to_create_enters_the_table(server: UnityCatalogServer, location: Path, kind: str) -> None:
    url, table_options = server.table_url("t"), options(server, location)
    if kind == "create":
        DeltaTable.create(url, ROWS.schema, storage_options=table_options)
    elif kind == "deltalake":
        as_deltalake.write_deltalake(url, ROWS, storage_options=table_options)
    else:
        as_deltalake.DeltaTable.create(url, ROWS.schema, storage_options=table_options)
    assert server.state.tables["uc", "s", "t"].kind == "EXTERNAL"
    assert ids(server) == ([1, 2] if kind == "deltalake" else [])


def test_existing_table_is_entered(server: UnityCatalogServer, location: Path) -> None:
    write_delta(str(location), ROWS, cluster_by=["id"])
    write_delta(str(location), ROWS, mode="append")
    url, table_options = server.table_url("t"), options(server, location)
    with pytest.raises(TableAlreadyExistsError):
        write_delta(url, ROWS, storage_options=table_options)
    with pytest.raises(SchemaMismatchError):
        write_delta(url, pa.table({"other": [1.5]}), mode="append", storage_options=table_options)
    assert not server.state.tables  # what fails enters nothing
    write_delta(url, ROWS[:0], mode="append", storage_options=table_options)  # no commit
    assert server.state.tables["uc", "s", "t"].last[0] == 1
    assert ids(server) == [1, 1, 2, 2]


def test_other_location_is_refused(server: UnityCatalogServer, location: Path, tmp_path: Path) -> None:
    write_delta(server.table_url("t"), ROWS, storage_options=options(server, location))
    create_managed(server, "m", ROWS)
    for name, other in (("t", tmp_path / "other"), ("m", location)):
        with pytest.raises(InvalidOptionError, match="not at the location") as raised:
            write_delta(server.table_url(name), ROWS, mode="append", storage_options=options(server, other))
        assert raised.value.error_class == "DELTA_TABLE_LOCATION_MISMATCH"
        with pytest.raises(InvalidOptionError, match="not at the location"):
            DeltaTable(server.table_url(name), storage_options=options(server, other))
    assert ids(server) == ids(server, "m") == [1, 2] and not (tmp_path / "other").exists()


def test_place_that_is_none_is_refused(server: UnityCatalogServer) -> None:
    for location in ("lake/t", "", "s3:/bucket/t"):
        with pytest.raises(InvalidOptionError, match="neither an absolute path nor a URL"):
            write_delta(server.table_url("t"), ROWS, storage_options=options(server, location))
    with pytest.raises(UnsupportedOperationError, match="No store serves the location"):
        write_delta(server.table_url("t"), ROWS, storage_options=options(server, "ftp://host/t"))
    assert not server.state.tables


def test_directory_of_this_machine_needs_a_server_of_this_machine(location: Path) -> None:
    from delta_py.unity.external_tables import catalog_location
    from delta_py.unity.server_urls import CatalogTableName

    name = CatalogTableName("https://catalog.example.com", ("uc", "s", "t"))
    with pytest.raises(UnsupportedOperationError, match="is on another one"):
        catalog_location(str(location), name)
    assert catalog_location("s3://bucket/t/", name) == "s3://bucket/t"


@pytest.mark.parametrize("failure", [Failure.LOST_REQUEST, Failure.LOST_ANSWER, Failure.THROTTLED])
def test_request_without_answer_is_repeated(
    server: UnityCatalogServer, location: Path, failure: Failure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_creation, "_BACKOFF", table_creation.Backoff(0.001, 0.001))
    server.fail("POST", "/schemas/s/tables", failure, failure)
    write_delta(server.table_url("t"), ROWS, storage_options=options(server, location))
    assert ids(server) == [1, 2] and len(server.state.tables) == 1


def test_refused_name_leaves_a_complete_table(server: UnityCatalogServer, location: Path) -> None:
    server.fail("POST", "/schemas/s/tables", Failure.FORBIDDEN)
    with pytest.raises(CatalogRefusedError, match=r"is complete, with version 0, and is not unity://.*not you") as raised:
        write_delta(server.table_url("t"), ROWS, storage_options=options(server, location))
    assert raised.value.status == 403
    assert DeltaTable(str(location)).to_arrow().num_rows == 2
    DeltaTable.create(server.table_url("t"), ROWS.schema, mode="ignore", storage_options=options(server, location))
    assert ids(server) == [1, 2]


def test_unknown_outcome_is_said(server: UnityCatalogServer, location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_creation, "_BACKOFF", table_creation.Backoff(0.001, 0.001))
    server.fail("POST", "/schemas/s/tables", *[Failure.LOST_REQUEST] * 10)
    with pytest.raises(CatalogUnavailableError, match="may not be unity://"):
        write_delta(server.table_url("t"), ROWS, storage_options=options(server, location))
    assert DeltaTable(str(location)).to_arrow().num_rows == 2


def test_name_that_somebody_else_takes(server: UnityCatalogServer, location: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = server.state.create

    def create_second(schema: tuple[str, str], body: dict[str, Any]) -> dict[str, Any]:
        if not server.state.tables:
            create(schema, {**body, "location": f"{body['location']}2"})
        return create(schema, body)

    monkeypatch.setattr(server.state, "create", create_second)
    with pytest.raises(TableAlreadyExistsError, match=r"is complete, with version 0.*created meanwhile"):
        write_delta(server.table_url("t"), ROWS, storage_options=options(server, location))
    assert DeltaTable(str(location)).to_arrow().num_rows == 2


def test_credentials_are_those_of_the_path(server: UnityCatalogServer, location: Path) -> None:
    config = {"s3.access-key-id": "id", "s3.secret-access-key": "secret"}
    prefix = "s3://bucket/t"
    server.state.credentials = [{"prefix": prefix, "operation": "READ_WRITE", "config": config, "expiration-time-ms": None}]
    store, _ = open_or_stage_catalog_table(server.table_url("t"), StorageOptions.of(options(server, f"{prefix}/")))
    vended = store.root_store.options  # type: ignore[attr-defined]
    assert vended.get("s3.access_key_id") == "id"
    assert server.requests[-1].endswith("/temporary-path-credentials")


@pytest.mark.parametrize("is_shared", [False, True])
def test_copy_in_another_process_needs_the_token(server: UnityCatalogServer, location: Path, is_shared: bool) -> None:

    shared = {"unity.share_token": "true"} if is_shared else {}
    store, _ = open_or_stage_catalog_table(server.table_url("t"), StorageOptions.of({**options(server, location), **shared}))
    write_delta(str(location), ROWS)
    copy = pickle.loads(pickle.dumps(store))
    if is_shared:
        enter_in_catalog(copy)
        assert ids(server) == [1, 2]
    else:
        with pytest.raises(UnsupportedOperationError, match=r"is complete, with version 0, and has no name"):
            enter_in_catalog(copy)


# ---------------------------------------------------------------- several creators, and copies


def opened_to_create(server: UnityCatalogServer, location: Path, **more: str) -> Any:
    return open_or_stage_catalog_table(server.table_url("t"), StorageOptions.of({**options(server, location), **more}))[0]


def test_two_writers_may_enter_the_same_table(server: UnityCatalogServer, location: Path) -> None:
    write_delta(str(location), ROWS)
    first, second = opened_to_create(server, location), opened_to_create(server, location)
    write_delta("", ROWS, mode="append", store=first)
    write_delta("", ROWS, mode="append", store=second)
    assert ids(server) == [1, 1, 1, 2, 2, 2]
    assert server.state.tables["uc", "s", "t"].last[0] == 2


@pytest.mark.parametrize("is_shared", [False, True])
def test_copy_of_an_entered_table_goes_on(server: UnityCatalogServer, location: Path, is_shared: bool) -> None:
    store = opened_to_create(server, location, **({"unity.share_token": "true"} if is_shared else {}))
    write_delta("", ROWS, store=store)
    write_delta("", ROWS, mode="append", store=pickle.loads(pickle.dumps(store)))
    assert ids(server) == [1, 1, 2, 2]
    assert server.state.tables["uc", "s", "t"].last[0] == (1 if is_shared else 0)


@pytest.mark.parametrize("schema_mode", [None, "overwrite"])
def test_predicate_of_deltalake_counts_for_a_table_that_is_not_entered(
    server: UnityCatalogServer, location: Path, schema_mode: Any
) -> None:
    write_delta(str(location), pa.table({"id": [1, 2, 3]}))
    as_deltalake.write_deltalake(
        server.table_url("t"),
        pa.table({"id": [1]}),
        mode="overwrite",
        schema_mode=schema_mode,
        predicate="id = 1",
        storage_options=options(server, location),
    )
    assert ids(server) == [1, 2, 3]


@pytest.mark.parametrize("configuration", ["{}", "no JSON", "[]", '{"rowIdHighWaterMark": 7}'])
def test_damaged_domain_does_not_keep_a_table_out(server: UnityCatalogServer, location: Path, configuration: str) -> None:
    write_delta(str(location), ROWS, configuration={"delta.feature.domainMetadata": "supported"})
    commit = location / "_delta_log" / f"{0:020}.json"
    domain = {"domain": "delta.rowTracking", "configuration": configuration, "removed": False}
    commit.write_text(commit.read_text() + json.dumps({"domainMetadata": domain}) + "\n")
    for checksum in commit.parent.glob("*.crc"):
        checksum.unlink()
    write_delta(server.table_url("t"), ROWS, mode="append", storage_options=options(server, location))
    assert ids(server) == [1, 1, 2, 2]


def test_log_that_cannot_be_read_after_the_commit(
    server: UnityCatalogServer, location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(store: Any) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr("delta_py.definition.catalog_entry.Snapshot.load", fail)
    with pytest.raises(CatalogUnavailableError, match=r"is complete and may not be|is complete and is not"):
        enter_in_catalog(opened_to_create(server, location))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("file://otherhost/x", UnsupportedOperationError, "on the host 'otherhost'"),
        ("file://[bad/x", InvalidOptionError, "is no location"),
        ("/lake/\udcff", InvalidOptionError, "is no location"),
    ],
)
def test_text_that_is_no_location(server: UnityCatalogServer, text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        write_delta(server.table_url("t"), ROWS, storage_options=options(server, text))
    assert not server.state.tables


def test_entry_at_another_location_is_an_error(
    server: UnityCatalogServer, location: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = server.state.create
    monkeypatch.setattr(
        server.state, "create", lambda schema, body: create(schema, {**body, "location": f"{body['location']}-other"})
    )
    with pytest.raises(CatalogAnswerError, match=r"is complete, with version 0.*says that the new table is at"):
        write_delta(server.table_url("t"), ROWS, storage_options=options(server, location))


def test_secret_in_a_location_is_not_sent(server: UnityCatalogServer) -> None:
    with pytest.raises((InvalidOptionError, UnsupportedOperationError)):
        write_delta(server.table_url("t"), ROWS, storage_options=options(server, "s3://AK:sekret@bucket/t"))
    assert not [request for request in server.requests if "temporary-path" in request]
