"""What a table's properties say about its log: REPLACE, CLONE and RESTORE do not change it, and no other table gets it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.alter import set_properties
from delta_py.alter.drop_feature import drop_feature
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.copies.clone import clone_table
from delta_py.copies.deep_clone import deep_clone
from delta_py.copies.restore import restore
from delta_py.definition.create import define_table
from delta_py.definition.replace import build_table
from delta_py.log.history import version_at_timestamp
from delta_py.object_stores.open_store import open_store
from delta_py.snapshot import Snapshot
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import LONG, StructField, StructType
from tests.support.stores.coordination import MANAGED, coordinated, create_coordinated, ledger_url, rows_of

pytestmark = pytest.mark.usefixtures("publication_at_once")

SCHEMA = StructType((StructField("id", LONG),))
STAMPS = {"delta.enableInCommitTimestamps": "true"}
SINCE = ("delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp")
PROTECTED = "delta.requireCheckpointProtectionBeforeVersion"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def replaced(store: ObjectStore, **properties: str) -> None:
    build_table(store, "createOrReplace", define_table(SCHEMA, configuration=_named(properties)))


def cloned(store: ObjectStore, **properties: str) -> None:
    clone_table(_other(store), store, replace_table=True, properties=_named(properties))


def deeply_cloned(store: ObjectStore, **properties: str) -> None:
    deep_clone(_other(store), store, replace_table=True, properties=_named(properties))


def _named(properties: dict[str, str]) -> dict[str, str]:
    return {name.replace("__", "."): value for name, value in properties.items()}


def _other(store: ObjectStore) -> Snapshot:
    path = f"{store.root}-other"
    write_delta(path, rows(5), mode="overwrite")
    return Snapshot.load(open_store(path))


REPLACEMENTS = pytest.mark.parametrize("replacement", [replaced, cloned, deeply_cloned])


def properties_of(store: ObjectStore) -> dict[str, str]:
    return dict(Snapshot.load(store).metadata.configuration)


def time_ms(store: ObjectStore, version: int) -> int:
    entries = {entry["version"]: entry for entry in DeltaTable(store.root, store=store).history().to_pylist()}
    return round(entries[version]["timestamp"].timestamp() * 1000)


def check_times(store: ObjectStore) -> None:
    """Each version is found by its time in the history."""
    newest = Snapshot.load(store)
    for version in range(newest.version + 1):
        assert version_at_timestamp(store, time_ms(store, version), newest.config, or_last=True) == version


# ---------------------------------------------------------------- in-commit timestamps


@REPLACEMENTS
@pytest.mark.parametrize("options", [{}, {"delta__enableInCommitTimestamps": "true"}], ids=["unasked", "asked"])
def test_replaced_coordinated_table_keeps_timestamp_enablement(
    tmp_path: Path, replacement: Callable[..., None], options: dict[str, str]
) -> None:
    path, url = tmp_path / "t", ledger_url(tmp_path)
    for number in range(2):
        write_delta(str(path), rows(number), mode="append")
    set_properties(coordinated(path, url), MANAGED)
    before = properties_of(coordinated(path, url))
    assert before[SINCE[0]] == "2"
    replacement(coordinated(path, url), **options)
    after = properties_of(coordinated(path, url))
    assert {name: after[name] for name in before} == before
    check_times(coordinated(path, url))


@REPLACEMENTS
def test_replacement_with_coordinator_starts_commit_timestamps(
    tmp_path: Path, replacement: Callable[..., None]
) -> None:
    path, url = tmp_path / "t", ledger_url(tmp_path)
    write_delta(str(path), rows(1))
    replacement(coordinated(path, url), delta__feature__catalogManaged="supported")
    store = coordinated(path, url)
    after = properties_of(store)
    assert (after["pydelta.coordinator"], after[SINCE[0]]) == (open_ledger(url).identity, "1")
    assert after[SINCE[1]] == str(time_ms(store, 1))
    check_times(store)
    assert write_delta(str(path), rows(2), mode="append", store=coordinated(path, url)) == 2


@REPLACEMENTS
def test_replacement_keeps_existing_timestamp_enablement(
    tmp_path: Path, replacement: Callable[..., None]
) -> None:
    store = open_store(str(tmp_path / "t"))
    write_delta(store.root, rows(1))
    set_properties(store, STAMPS)
    before = properties_of(store)
    replacement(store, delta__enableInCommitTimestamps="true")
    assert properties_of(store) == before and before[SINCE[0]] == "1"
    check_times(store)


# ---------------------------------------------------------------- checkpoint protection


def protected(path: Path) -> ObjectStore:
    """A table whose protection covers the versions before its newest."""
    store = open_store(str(path))
    write_delta(store.root, rows(1, 2, 3), configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(store.root).delete("id = 3")
    version = drop_feature(store, "deletionVectors")
    assert properties_of(store)[PROTECTED] == str(version)
    return store


def restored(store: ObjectStore) -> None:
    restore(store, version=0)


@pytest.mark.parametrize("command", [replaced, cloned, deeply_cloned, restored])
def test_protected_versions_stay_protected(tmp_path: Path, command: Callable[..., None]) -> None:
    store = protected(tmp_path / "t")
    before = properties_of(store)[PROTECTED]
    command(store)
    snapshot = Snapshot.load(store)
    assert properties_of(store)[PROTECTED] == before
    assert snapshot.config.feature("checkpointProtection")


@pytest.mark.parametrize("clone", [clone_table, deep_clone])
@pytest.mark.parametrize("over", [False, True], ids=["new", "replaced"])
def test_clone_has_no_versions_that_its_source_protects(tmp_path: Path, clone: Callable[..., Any], over: bool) -> None:
    source, target = protected(tmp_path / "t"), open_store(str(tmp_path / "clone"))
    if over:
        write_delta(target.root, rows(9))
    clone(Snapshot.load(source), target, replace_table=over)
    snapshot = Snapshot.load(target)
    assert PROTECTED not in snapshot.metadata.configuration
    assert not snapshot.config.feature("checkpointProtection")
    assert sorted(DeltaTable(target.root).to_arrow()["id"].to_pylist()) == [1, 2]


def test_restored_version_brings_no_protection_that_has_gone(tmp_path: Path) -> None:
    store = protected(tmp_path / "t")
    for number in range(2):  # newer checkpoints than the protected ones
        DeltaTable(store.root).checkpoint()
        set_properties(store, {"n": str(number)})
    newest = Snapshot.load(store).version
    two_days_later = time_ms(store, newest) + 2 * 86_400_000
    drop_feature(store, "checkpointProtection", truncate_history=True, now_ms=two_days_later)
    restore(store, version=newest)
    snapshot = Snapshot.load(store)
    assert not snapshot.config.feature("checkpointProtection")
    assert dict(snapshot.metadata.configuration) == {"n": "1"}


# ---------------------------------------------------------------- who coordinates it


@pytest.mark.parametrize("clone", [clone_table, deep_clone])
@pytest.mark.parametrize("over", [False, True], ids=["new", "replaced"])
def test_clone_of_a_coordinated_table_has_a_log_of_its_own(tmp_path: Path, clone: Callable[..., Any], over: bool) -> None:
    url, target = ledger_url(tmp_path), open_store(str(tmp_path / "clone"))
    source = create_coordinated(tmp_path / "t", url, {"id": [1, 2]})
    if over:
        write_delta(target.root, rows(9))
    clone(Snapshot.load(source), target, replace_table=over)
    snapshot = Snapshot.load(target)
    assert not snapshot.config.feature("catalogManaged")
    assert "pydelta.coordinator" not in snapshot.metadata.configuration
    assert (snapshot.metadata.configuration.get(SINCE[0])) == ("1" if over else None)
    write_delta(target.root, rows(3), mode="append")
    assert sorted(DeltaTable(target.root).to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert rows_of(tmp_path / "t", url) == [1, 2]
    check_times(target)


@pytest.mark.parametrize("clone", [clone_table, deep_clone])
@pytest.mark.parametrize("over", [False, True], ids=["new", "replaced"])
def test_clone_where_another_coordinator_was_named_has_that_one(
    tmp_path: Path, clone: Callable[..., Any], over: bool
) -> None:
    (tmp_path / "other").mkdir()
    url, other = ledger_url(tmp_path), ledger_url(tmp_path / "other")
    source, place = create_coordinated(tmp_path / "t", url, {"id": [1, 2]}), tmp_path / "clone"
    if over:
        create_coordinated(place, other, {"id": [9]})
    clone(Snapshot.load(source), coordinated(place, other), replace_table=over)
    assert properties_of(coordinated(place, other))["pydelta.coordinator"] == open_ledger(other).identity
    assert write_delta(str(place), rows(3), mode="append", store=coordinated(place, other)) == int(over) + 1
    assert rows_of(place, other) == [1, 2, 3]
