"""Symlink manifests with each storage call failed in turn: each is complete, in its old or new form; no commit is damaged; and
the next run completes the work.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.copies.generate import generate
from delta_py.storage.local import LocalStore
from tests.support.stores.faulty_store import FAULTS, Fault, FaultyStore, outcome_of

pytestmark = pytest.mark.usefixtures("no_waits")

FOLLOWS = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
DIRECTORY = "_symlink_format_manifest"


def rows(*days: str) -> pa.Table:
    return pa.table({"id": list(range(len(days))), "day": list(days)})


def make(path: Path, *, follows: bool) -> Path:
    write_delta(str(path), rows("mon", "tue"), partition_by=["day"], configuration=FOLLOWS if follows else {})
    if not follows:
        DeltaTable(str(path)).generate()
        write_delta(str(path), rows("tue", "wed"), mode="overwrite")
    return path


def overwrite(store: Any) -> None:
    write_delta(store.root, rows("tue", "wed"), mode="overwrite", store=store)


def manifests(path: Path) -> dict[str, list[str]]:
    return {file.parent.name: file.read_text().splitlines() for file in (path / DIRECTORY).rglob("manifest")}


def expected(path: Path, version: int) -> dict[str, list[str]]:
    names = DeltaTable(str(path), version=version).files()["path"].to_pylist()
    return {name.rpartition("/")[0]: [f"file:{path}/{name}"] for name in names}


@pytest.mark.parametrize("kind", FAULTS)
def test_generate_with_one_call_failed_leaves_whole_manifests(tmp_path: Path, kind: str) -> None:
    store = FaultyStore(LocalStore(str(make(tmp_path / "count", follows=False))))
    generate(store)
    outcomes: Counter[str] = Counter()
    for number in range(len(store.calls)):
        path = make(tmp_path / str(number), follows=False)
        faulty = FaultyStore(LocalStore(str(path)), Fault(number, **FAULTS[kind]))
        _, outcome = outcome_of(lambda: generate(faulty))  # noqa: B023 - called at once
        check(path, outcome == "done", faulty.calls)
        generate(LocalStore(str(path)))
        assert manifests(path) == expected(path, 1)
        outcomes[outcome] += 1
    assert outcomes["refused"] + outcomes["killed"] > 0, "no fault was felt"


@pytest.mark.parametrize("kind", ["fails before it, EIO", "reply lost, EIO", "killed before it", "killed after it"])
def test_commit_with_one_call_failed_behind_it_stands(tmp_path: Path, kind: str) -> None:
    store = FaultyStore(LocalStore(str(make(tmp_path / "count", follows=True))))
    overwrite(store)
    first = next(number for number, call in enumerate(store.calls) if DIRECTORY in call)
    for number in range(first, len(store.calls)):
        path = make(tmp_path / str(number), follows=True)
        _, outcome = outcome_of(lambda: overwrite(FaultyStore(LocalStore(str(path)), Fault(number, **FAULTS[kind]))))  # noqa: B023
        assert outcome in ("done", "killed")
        assert DeltaTable(str(path)).version == 1
        check(path, False, store.calls)
        generate(LocalStore(str(path)))
        assert manifests(path) == expected(path, 1)


def check(path: Path, is_done: bool, calls: list[str]) -> None:
    actual, old, new = manifests(path), expected(path, 0), expected(path, 1)
    assert not is_done or actual == new, calls
    for directory, lines in actual.items():
        assert lines in (old.get(directory), new.get(directory)), (directory, calls)
