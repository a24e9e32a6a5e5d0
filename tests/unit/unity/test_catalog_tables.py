"""Tables by their names in Unity Catalog: read with their unpublished commits, written, and never without their catalog."""

from __future__ import annotations

import json
import os
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.coordinator.ledger import RatificationRefusedError
from delta_py.errors import (
    CommitOutcomeUnknownError,
    CorruptTableError,
    DeltaError,
    TableNotFoundError,
    UnsupportedOperationError,
)
from delta_py.log.catalog_contract import REQUIRED_FEATURES, REQUIRED_PROPERTIES
from delta_py.object_stores.open_store import open_store
from delta_py.storage import publication
from delta_py.storage.store_options import StorageOptions
from delta_py.transactions import DeltaTransaction
from delta_py.unity.catalog_errors import CatalogObjectNotFoundError, CatalogRefusedError
from tests.support.servers import unity_catalog
from tests.support.servers.unity_catalog import CatalogTable, Failure, UnityCatalogServer
from tests.support.tables.catalog_tables import create_external, create_managed


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityCatalogServer]:
    with UnityCatalogServer(tmp_path / "catalog") as server:
        yield server
        publication.finish()


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def open_table(server: UnityCatalogServer, name: str = "t", **options: Any) -> DeltaTable:
    return DeltaTable(server.table_url(name), storage_options=server.options, **options)


def append(server: UnityCatalogServer, *ids: int, name: str = "t") -> None:
    write_delta(server.table_url(name), rows(*ids), mode="append", storage_options=server.options)


def ids_of(table: DeltaTable) -> list[int]:
    return sorted(table.to_arrow()["id"].to_pylist())


def published(path: Path) -> list[str]:
    return sorted(name for name in os.listdir(path / "_delta_log") if name.endswith(".json"))


@pytest.fixture
def unpublished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody publishes commits in the background."""
    monkeypatch.setattr(publication, "publish_later", lambda store: None)


# ---------------------------------------------------------------- reading


def test_managed_table_is_read_by_its_name(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(1, 2))
    assert ids_of(open_table(server)) == [1, 2]
    assert open_table(server).version == 0


def test_external_table_is_read_by_its_name(server: UnityCatalogServer, tmp_path: Path) -> None:
    create_external(server, "e", tmp_path / "external", rows(3))
    assert ids_of(open_table(server, "e")) == [3]


def test_uc_url_with_a_server_option_names_the_same_table(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(1))
    assert ids_of(DeltaTable("uc://uc.s.t", storage_options={**server.options, "unity.uri": server.uri})) == [1]


@pytest.mark.usefixtures("unpublished")
def test_unpublished_commits_are_read(server: UnityCatalogServer) -> None:
    path = create_managed(server, "t", rows(1))
    append(server, 2)
    append(server, 3)
    assert published(path) == ["00000000000000000000.json"]
    assert ids_of(open_table(server)) == [1, 2, 3]
    assert ids_of(open_table(server, version=1)) == [1, 2]
    assert open_table(server).history()["version"].to_pylist() == [2, 1, 0]


def test_commits_unknown_to_the_catalog_are_ignored(server: UnityCatalogServer) -> None:
    path = create_managed(server, "t", rows(1))
    log = path / "_delta_log"
    (log / "00000000000000000001.json").write_bytes((log / "00000000000000000000.json").read_bytes())
    assert open_table(server).version == 0


def test_managed_table_is_not_opened_by_its_path(server: UnityCatalogServer) -> None:
    path = create_managed(server, "t", rows(1))
    for call in (lambda: DeltaTable(str(path)), lambda: write_delta(str(path), rows(2), mode="append")):
        with pytest.raises(UnsupportedOperationError, match=r"managed by Unity Catalog: open it by its name") as refused:
            call()
        assert refused.value.error_class == "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED"


def test_name_that_the_catalog_does_not_know_is_not_found(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(1))
    for name in ("none", "T"):
        with pytest.raises(CatalogObjectNotFoundError, match=f"Table not found: uc.s.{name}"):
            open_table(server, name)


def test_wrong_token_is_refused(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(1))
    with pytest.raises(CatalogRefusedError, match="401"):
        DeltaTable(server.table_url("t"), storage_options={"unity.token": "wrong"})


@pytest.mark.parametrize("name", ["a.b", "Upper", "with`quote", "a b", "ä/ö", "v@v1", "50%"])
def test_name_with_any_characters_is_opened(server: UnityCatalogServer, name: str) -> None:
    create_managed(server, name, rows(1))
    escaped = "".join(f"%{byte:02x}" for byte in name.encode())
    assert ids_of(open_table(server, escaped)) == [1]
    if "@" not in name and "%" not in name and "/" not in name:
        quoted = name.replace("`", "``")
        assert ids_of(open_table(server, f"`{quoted}`")) == [1]


def test_version_in_the_name_is_read(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(1))
    append(server, 2)
    assert ids_of(open_table(server, "t@v0")) == [1]


# ---------------------------------------------------------------- writing


def test_append_is_ratified_and_then_published(server: UnityCatalogServer) -> None:
    path = create_managed(server, "t", rows(1))
    append(server, 2)
    publication.finish()
    assert published(path) == ["00000000000000000000.json", "00000000000000000001.json"]
    table = server.state.tables["uc", "s", "t"]
    assert (table.latest, table.published, table.unpublished) == (1, 1, [])
    assert len(list((path / "_delta_log" / "_staged_commits").iterdir())) == 1  # other readers may have its name


def test_changes_of_rows_and_of_the_definition_reach_the_catalog(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(1, 2, 3))
    table = open_table(server)
    table.delete("id = 2")
    table.update({"id": "id + 10"}, predicate="id = 3")
    table.alter.add_columns([pa.field("tags", pa.list_(pa.string()))])
    table.alter.set_table_properties({"my.key": "v"})
    assert ids_of(open_table(server)) == [1, 13]
    known = server.state.tables["uc", "s", "t"]
    tags = {"name": "tags", "type": {"type": "array", "element-type": "string", "contains-null": True}, "nullable": True}
    assert [{**field, "metadata": 0} for field in known.columns["fields"]][1:] == [{**tags, "metadata": 0}]
    assert known.properties["my.key"] == "v" and known.properties["io.unitycatalog.tableId"] == known.table_id
    assert not [name for name in known.properties if name.startswith(("delta.feature.", "delta.min", "pydelta."))]


def test_versions_of_an_external_table_are_reported(server: UnityCatalogServer, tmp_path: Path) -> None:
    create_external(server, "e", tmp_path / "external", rows(3))
    write_delta(server.table_url("e"), rows(4), mode="append", storage_options=server.options)
    open_table(server, "e").delete("id = 3")
    version, timestamp_ms = server.state.tables["uc", "s", "e"].last
    commit = (tmp_path / "external" / "_delta_log" / f"{2:020}.json").read_bytes().splitlines()
    infos = [action["commitInfo"] for action in map(json.loads, commit) if "commitInfo" in action]
    assert version == 2 and [info["timestamp"] for info in infos] == [timestamp_ms]


@pytest.mark.usefixtures("harmless_post_commit")
def test_commit_stands_if_its_report_fails(server: UnityCatalogServer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    create_external(server, "e", tmp_path / "external", rows(3))
    server.fail("POST", "/tables/e", Failure.THROTTLED)
    write_delta(server.table_url("e"), rows(4), mode="append", storage_options=server.options)
    assert "version 1 is committed, but is not reported to its catalog" in caplog.text
    assert open_table(server, "e").version == 1 and server.state.tables["uc", "s", "e"].last[0] == 0


def test_external_table_is_written_by_its_name(server: UnityCatalogServer, tmp_path: Path) -> None:
    create_external(server, "e", tmp_path / "external", rows(3))
    append(server, 4, name="e")
    assert ids_of(DeltaTable(str(tmp_path / "external"))) == [3, 4]


@pytest.mark.usefixtures("unpublished")
def test_writer_publishes_when_the_catalog_takes_no_more_commits(
    server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unity_catalog, "MOST_UNPUBLISHED", 3)
    path = create_managed(server, "t", rows(0))
    for number in (1, 2, 3):
        append(server, number)
    assert len(published(path)) == 1
    append(server, 4)
    assert len(published(path)) == 4
    assert ids_of(open_table(server)) == [0, 1, 2, 3, 4]


def test_writers_at_once_lose_and_double_nothing(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(0))
    errors: list[Exception] = []

    def write(first: int) -> None:
        try:
            for number in range(5):
                append(server, first + number)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(100 * (number + 1),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert ids_of(open_table(server)) == sorted([0, *(100 * (writer + 1) + number for writer in range(4) for number in range(5))])
    assert open_table(server).version == 20


@pytest.mark.parametrize("failure", [Failure.LOST_REQUEST, Failure.LOST_ANSWER, Failure.UNKNOWN, Failure.THROTTLED])
@pytest.mark.parametrize("times", [1, 3])
def test_commit_without_an_answer_is_made_once(server: UnityCatalogServer, failure: Failure, times: int) -> None:
    create_managed(server, "t", rows(1))
    server.fail("POST", "/tables/t", *[failure] * times)
    append(server, 2)
    assert ids_of(open_table(server)) == [1, 2]
    assert open_table(server).version == 1


def test_commit_with_all_answers_lost_is_reported_as_unknown(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(1))
    server.fail("POST", "/tables/t", *[Failure.LOST_ANSWER] * 30)
    with pytest.raises(CommitOutcomeUnknownError):
        append(server, 2)


def test_refusal_after_a_lost_answer_does_not_undo_the_commit(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(1))
    server.fail("POST", "/tables/t", Failure.LOST_ANSWER, *[Failure.FORBIDDEN] * 30)
    append(server, 2)
    assert ids_of(open_table(server)) == [1, 2]


def test_refusal_after_a_lost_request_leaves_it_unknown(server: UnityCatalogServer) -> None:
    path = create_managed(server, "t", rows(1))
    server.fail("POST", "/tables/t", Failure.LOST_REQUEST, *[Failure.FORBIDDEN] * 30)
    with pytest.raises(CommitOutcomeUnknownError):
        append(server, 2)
    assert len(list(path.glob("*.parquet"))) == 2 and list((path / "_delta_log" / "_staged_commits").iterdir())


def test_conflict_with_another_writer_is_found(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(1, 2))
    before = open_table(server)
    open_table(server).delete("id = 1")
    before.delete("id = 2")  # of the same file: the deletion vectors are merged
    assert ids_of(open_table(server)) == []


# ---------------------------------------------------------------- a table that changes under its users


@pytest.mark.parametrize("change", ["dropped", "renamed"])
def test_table_that_was_dropped_or_renamed_is_not_written(server: UnityCatalogServer, change: str) -> None:
    create_managed(server, "t", rows(1))
    store = open_store(server.table_url("t"), StorageOptions.of(server.options))
    tables = server.state.tables
    first = tables.pop(("uc", "s", "t"))
    if change == "renamed":
        tables["uc", "s", "t9"] = first
    with pytest.raises(TableNotFoundError):
        write_delta("unused", rows(2), mode="append", store=store)
    assert first.latest == 0


def test_recreated_table_is_neither_read_nor_written(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(1))
    store = open_store(server.table_url("t"), StorageOptions.of(server.options))
    table = DeltaTable("unused", store=store)
    del server.state.tables["uc", "s", "t"]
    create_managed(server, "t", rows(7))
    for call in (lambda: DeltaTable("unused", store=store), lambda: table.delete("id = 1")):
        with pytest.raises(TableNotFoundError, match="another table has that name now"):
            call()
    assert ids_of(open_table(server)) == [7]


# ---------------------------------------------------------------- a server that is not to be trusted


@pytest.mark.parametrize(
    "commits",
    [
        [{"version": 1, "file-name": "../../evil.json"}],
        [{"version": 1, "file-name": f"{2:020}.x.json"}],
        [{"version": 5, "file-name": f"{5:020}.x.json"}],
        [{"version": 1, "file-name": f"{1:020}.x.json"}] * 2,
    ],
)
def test_commits_that_cannot_be_are_not_read(server: UnityCatalogServer, commits: list[dict[str, Any]]) -> None:
    create_managed(server, "t", rows(1))
    table = server.state.tables["uc", "s", "t"]
    table.commits = {
        number: {**commit, "file-size": 1, "file-modification-timestamp": 1} for number, commit in enumerate(commits, 1)
    }
    table.latest = 1
    with pytest.raises(CorruptTableError):
        open_table(server)


@pytest.mark.parametrize(
    "location", ["file://other-host/data", "file:relative", "data/t", "ftp://host/t", "hdfs://host/t", "file:///a%00b"]
)
def test_location_that_no_store_serves_is_refused(server: UnityCatalogServer, location: str) -> None:
    create_managed(server, "t", rows(1))
    server.state.tables["uc", "s", "t"].location = location
    with pytest.raises(DeltaError):
        open_table(server)


def test_server_of_another_machine_names_no_local_files(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    create_managed(server, "t", rows(1))
    monkeypatch.setattr("delta_py.object_stores.open_catalog_table.is_local", lambda url: False)
    with pytest.raises(UnsupportedOperationError, match="Only a server on the same machine"):
        open_table(server)


# ---------------------------------------------------------------- secrets, and what the API does not have


def test_token_stays_in_the_process(server: UnityCatalogServer) -> None:
    path = create_managed(server, "t", rows(1))
    table = open_table(server)
    pickled = pickle.dumps((table.snapshot, table.snapshot.store))
    assert server.token is not None and server.token.encode() not in pickled
    assert server.token not in repr(table) + repr(table.snapshot.store)
    _, store = pickle.loads(pickled)
    assert store.read(f"{next(path.glob('*.parquet')).name}")[:4] == b"PAR1"
    with pytest.raises(UnsupportedOperationError, match="was opened in another process"):
        DeltaTable("unused", store=store)


def test_shared_token_goes_along_with_a_pickled_table(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(1))
    options = StorageOptions.of({**server.options, "unity.share_token": "true"})
    store = open_store(server.table_url("t"), options)
    copy = pickle.loads(pickle.dumps(store))
    write_delta("unused", rows(2), mode="append", store=copy)
    assert copy.options == StorageOptions.of({}), "options of other stores get no token"
    assert sorted(open_table(server).to_arrow()["id"].to_pylist()) == [1, 2]


def test_table_of_a_catalog_cannot_be_in_a_transaction(server: UnityCatalogServer, tmp_path: Path) -> None:
    create_managed(server, "t", rows(1))
    with pytest.raises(UnsupportedOperationError, match="cannot be part of a transaction"):  # noqa: SIM117
        with DeltaTransaction(f"sqlite://{tmp_path}/ledger.db", storage_options=server.options) as tx:
            tx.append(server.table_url("t"), rows(2))


# ---------------------------------------------------------------- what the catalog forbids

FORBIDDEN = {
    "VACUUM": lambda table: table.vacuum(retention_hours=0, enforce_retention_duration=False),
    "VACUUM DRY RUN": lambda table: table.vacuum(dry_run=True),
    "OPTIMIZE": lambda table: table.optimize.compact(),
    "ZORDER": lambda table: table.optimize.z_order(["id"]),
    "log cleanup": lambda table: table.clean_log(),
    **{
        f"DROP FEATURE {name}": lambda table, name=name: table.alter.drop_feature(name)
        for name in (*REQUIRED_FEATURES, "columnMapping")
    },
    **{f"UNSET {name}": lambda table, name=name: table.alter.unset_table_properties([name]) for name in REQUIRED_PROPERTIES},
    "SET": lambda table: table.alter.set_table_properties({"delta.enableDeletionVectors": "false"}),
}


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_operation_that_the_catalog_forbids_changes_nothing(server: UnityCatalogServer, statement: str) -> None:
    path = create_managed(server, "t", rows(1), delta__columnMapping__mode="name")
    before = sorted(path.rglob("*"))
    with pytest.raises(UnsupportedOperationError) as refused:
        FORBIDDEN[statement](open_table(server))
    needed_by_another = "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"  # the feature catalogManaged needs two of them
    assert refused.value.error_class in ("DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION", needed_by_another)
    assert sorted(path.rglob("*")) == before
    assert server.state.tables["uc", "s", "t"].latest == 0


PERMITTED = {
    "DATA_CLEANUP": FORBIDDEN["VACUUM"],
    "DATA_REORGANIZATION": FORBIDDEN["OPTIMIZE"],
    "METADATA_CLEANUP": FORBIDDEN["log cleanup"],
}


@pytest.mark.parametrize("operation", PERMITTED)
def test_maintenance_that_the_catalog_permits_is_done(server: UnityCatalogServer, operation: str) -> None:
    create_managed(server, "t", rows(1))
    append(server, 2)
    server.state.tables["uc", "s", "t"].allowed = [operation, "SOMETHING_NEW"]
    PERMITTED[operation](open_table(server))
    assert ids_of(open_table(server)) == [1, 2]
    for other in PERMITTED.keys() - {operation}:
        with pytest.raises(UnsupportedOperationError, match="its catalog does this"):
            PERMITTED[other](open_table(server))


def test_schema_overwrite_keeps_properties_that_catalog_requires(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(1))
    other = pa.table({"name": ["x"]})
    write_delta(server.table_url("t"), other, mode="overwrite", schema_mode="overwrite", storage_options=server.options)
    assert open_table(server).to_arrow().to_pylist() == [{"name": "x"}]
    known = server.state.tables["uc", "s", "t"]
    assert [field["name"] for field in known.columns["fields"]] == ["name"]
    assert REQUIRED_PROPERTIES.items() <= known.properties.items()


def test_small_files_are_not_compacted_by_themselves(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(0), delta__autoOptimize__autoCompact="true")
    for number in range(1, 4):
        append(server, number)
    assert set(open_table(server).history()["operation"].to_pylist()) == {"WRITE"}


def test_managed_table_without_catalog_commits_is_only_read(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    path = create_managed(server, "t", rows(1))
    plain = server.state.root.removeprefix("file://") + "/plain"
    write_delta(plain, rows(5))
    table = server.state.tables["uc", "s", "t"]
    table.location = f"file://{plain}"
    monkeypatch.setattr(table, "answer", lambda: {"metadata": CatalogTable.answer(table)["metadata"]})
    assert ids_of(open_table(server)) == [5]
    with pytest.raises(UnsupportedOperationError, match="enable catalog commits"):
        append(server, 6)
    assert published(path) == ["00000000000000000000.json"] and ids_of(open_table(server)) == [5]


def test_table_is_looked_for_by_name(server: UnityCatalogServer) -> None:
    create_managed(server, "t", rows(1))
    assert DeltaTable.is_deltatable(server.table_url("t"), server.options)
    assert not DeltaTable.is_deltatable(server.table_url("none"), server.options)


def test_refused_commit_reaches_its_writer(server: UnityCatalogServer, monkeypatch: pytest.MonkeyPatch) -> None:
    path = create_managed(server, "t", rows(1))
    refusal = unity_catalog.invalid("this commit is not to my liking")
    monkeypatch.setattr(server.state, "_check_metadata", lambda *request: (_ for _ in ()).throw(refusal))
    with pytest.raises(RatificationRefusedError, match="not to my liking"):
        append(server, 2)
    assert len(list(path.glob("*.parquet"))) == 1 and not list((path / "_delta_log" / "_staged_commits").iterdir())
