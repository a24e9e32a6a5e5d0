"""Shallow clones in object stores: VACUUM of their sources, and clones of Parquet files."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.checkpoint.clone_notes import list_notes
from delta_py.copies.clone_parquet import clone_parquet
from delta_py.copies.convert_to_delta import ConvertRequest
from delta_py.errors import InvalidOptionError
from delta_py.object_stores.open_store import open_store
from delta_py.storage.store_options import StorageOptions
from delta_py.types.schema import LONG, StructField, StructType
from delta_py.vacuum.vacuum import VacuumKind, VacuumRequest, vacuum
from tests.storage.conftest import new_url
from tests.support.servers.emulators import Emulator


@pytest.mark.parametrize("kind", VacuumKind)
def test_vacuum_leaves_what_a_clone_in_the_store_reads(emulator: Emulator, kind: VacuumKind) -> None:
    url, copy, settings = new_url(emulator), new_url(emulator), emulator.settings()
    for number, mode in enumerate(["append", "append", "overwrite", "overwrite"]):
        write_delta(url, pa.table({"id": [number]}), mode=mode, storage_options=settings)
        if number == 1:
            DeltaTable(url, storage_options=settings).clone(copy, shallow=True, storage_options=settings)
    store = open_store(url, StorageOptions.of(settings))
    request = VacuumRequest(retention_hours=0, check_retention=False, kind=kind)

    def soon() -> int:
        return time.time_ns() // 1_000_000 + 60_000

    assert vacuum(store, request, soon).deleted == 1
    clone = DeltaTable(copy, storage_options=settings)
    assert sorted(clone.to_arrow()["id"].to_pylist()) == [0, 1]
    write_delta(copy, pa.table({"id": [9]}), mode="overwrite", storage_options=settings)
    assert vacuum(store, request, lambda: soon() + 8 * 86_400_000).deleted == (2 if kind is VacuumKind.FULL else 0)
    assert list_notes(store) == []


def test_parquet_clone_from_a_store_works_to_store_and_disk(emulator: Emulator, tmp_path: Path) -> None:
    url, settings = new_url(emulator), emulator.settings()
    options = StorageOptions.of(settings)
    source = open_store(url, options)
    with source.open_output("day=1/a.parquet") as file:
        pq.write_table(pa.table({"id": [1, 2]}), file)
    request = ConvertRequest(StructType((StructField("day", LONG),)))
    for target in (new_url(emulator), f"{tmp_path}/copy"):
        clone_parquet(source, open_store(target, options), request)
        clone = DeltaTable(target, storage_options=settings)
        assert clone.to_arrow(filter="id > 1").to_pylist() == [{"id": 2, "day": 1}]
        clone.delete("id = 1")
        DeltaTable(target, storage_options=settings).vacuum(0, dry_run=False, enforce_retention_duration=False)
        assert DeltaTable(target, storage_options=settings).to_arrow()["id"].to_pylist() == [2]
    assert [info.path for info in source.list_recursive("")] == ["day=1/a.parquet"]
    with pytest.raises(InvalidOptionError, match="in each other"):
        clone_parquet(source, open_store(f"{url}/clone", options), request)


def test_clone_on_this_machine_leaves_no_note(emulator: Emulator, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """VACUUM would not look there: a file in a store names no path on the machine that runs VACUUM."""
    url, settings = new_url(emulator), emulator.settings()
    write_delta(url, pa.table({"id": [1]}), storage_options=settings)
    with caplog.at_level(logging.WARNING):
        DeltaTable(url, storage_options=settings).clone(f"{tmp_path}/copy", shallow=True, storage_options=settings)
    assert "VACUUM of this table may not know of the shallow clone" in caplog.text
    assert list_notes(open_store(url, StorageOptions.of(settings))) == []
