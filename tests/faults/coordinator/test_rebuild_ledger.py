"""A ledger that is rebuilt while any call of a store or of the new ledger fails, loses its reply, or is the last before the
process dies. Nothing is guessed, and a second run restores all that was ratified.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.coordinator.open_coordinator import open_ledger
from delta_py.repair.rebuild_ledger import RebuildReport, rebuild_ledger
from delta_py.storage.coordinated import CoordinatedStore, place_of
from delta_py.transactions import append, transact
from tests.support.stores.coordination import Calls, call_count, coordinated, create_coordinated, ledger_url, rows_of
from tests.support.stores.faulty_store import KINDS, Fault, outcome_of

pytestmark = pytest.mark.usefixtures("no_waits", "publication_at_once")


@pytest.fixture
def lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of two tables without their ledger. It had ratified two transactions over both tables: the first is published
    in one of them, and the second in none. There is also a commit that no file shows."""
    url, directory = ledger_url(tmp_path), tmp_path / "lost"
    tables = directory / "a", directory / "b"
    for path in tables:
        create_coordinated(path, url, {"id": [0]})
    publish = CoordinatedStore.publish
    with monkeypatch.context() as patch:
        patch.setattr(CoordinatedStore, "publish", lambda self: publish(self) if self.place == place_of(str(tables[0])) else None)
        transact(url, [append(str(path), pa.table({"id": [1]})) for path in tables])
        patch.setattr(CoordinatedStore, "publish", lambda self: None)
        transact(url, [append(str(path), pa.table({"id": [2]})) for path in tables])
        write_delta(str(tables[1]), pa.table({"id": [3]}), mode="append", store=coordinated(tables[1], url))
    for path in directory.rglob("*.crc"):
        path.unlink()
    return directory


def choices(a: Path, b: Path) -> dict[str, list[str]]:
    return {str(b): [file.name for file in (b / "_delta_log/_staged_commits").glob(f"{3:020}.*")]}


@pytest.mark.parametrize("kind", KINDS)
def test_rebuilding_under_every_fault_and_again_ends_well(tmp_path: Path, lost: Path, kind: str) -> None:
    def tables(name: str) -> tuple[str, Path, Path]:
        shutil.copytree(lost, tmp_path / name)
        return f"sqlite://{tmp_path / name}.db", tmp_path / name / "a", tmp_path / name / "b"

    def rebuild(url: str, a: Path, b: Path) -> RebuildReport:
        return rebuild_ledger(url, [str(a), str(b)], take=choices(a, b), dry_run=False)

    counted = tables("count")
    calls, ends = call_count(counted[0], lambda: rebuild(*counted)), Counter[str]()
    assert calls > 15
    for number in range(calls):
        url, a, b = tables(str(number))
        with pytest.MonkeyPatch.context() as patch:
            Calls(patch, url, Fault(number, **KINDS[kind]))
            _, end = outcome_of(lambda url=url, a=a, b=b: rebuild(url, a, b))
        ends[end] += 1
        report = rebuild(url, a, b)
        assert [table.version for table in report.tables] == [2, 3], (number, end)
        assert (rows_of(a, url), rows_of(b, url)) == ([0, 1, 2], [0, 1, 2, 3]), (number, end)
        transact(url, [append(str(path), pa.table({"id": [4]})) for path in (a, b)])
        for path in (a, b):
            DeltaTable(str(path), store=coordinated(path, url)).snapshot.check_integrity()
        assert (rows_of(a, url), rows_of(b, url)) == ([0, 1, 2, 4], [0, 1, 2, 3, 4])
    assert ends["killed" if "killed" in kind else "refused"], ends


def test_rebuild_after_a_kill_gives_the_verdicts_of_the_ledger(tmp_path: Path) -> None:
    """A writer dies at each of its calls, and another one continues. The verdicts of a rebuild without the ledger are compared
    with the ledger."""
    url, seen = ledger_url(tmp_path), Counter[str]()

    def both(a: Path, b: Path) -> bool:
        return transact(url, [append(str(path), pa.table({"id": [1]})) for path in (a, b)])

    def one(a: Path, b: Path) -> int:
        return write_delta(str(b), pa.table({"id": [1]}), mode="append", store=coordinated(b, url))

    def tables(name: str) -> list[Path]:
        for path in (paths := [tmp_path / name / "a", tmp_path / name / "b"]):
            create_coordinated(path, url, {"id": [0]})
        return paths

    for work in (both, one):
        counted = tables(f"{work.__name__} count")
        for number in range(call_count(url, lambda work=work, counted=counted: work(*counted))):
            paths = tables(f"{work.__name__} {number}")
            for has_others in (0, 1):
                with pytest.MonkeyPatch.context() as patch:
                    Calls(patch, url, Fault(number, after=bool(number % 2), killed=True))
                    outcome_of(lambda work=work, paths=paths: work(*paths))
                if has_others:
                    write_delta(str(paths[0]), pa.table({"id": [2]}), mode="append", store=coordinated(paths[0], url))
                report = rebuild_ledger(f"sqlite://{tmp_path / 'new.db'}", [str(path) for path in paths])
                for table in report.tables:
                    tail = open_ledger(url).tail(place_of(table.path))
                    assert tail is not None
                    ratified = {commit.name for commit in tail.commits if commit.version > table.published}
                    assert table.version <= tail.version
                    for staged in table.staged:
                        seen[staged.standing] += 1
                        is_ratified = not ratified.isdisjoint(staged.names)
                        assert staged.standing == "unknown" or (staged.standing == "ratified") == is_ratified, (number, staged)
    assert min(seen[standing] for standing in ("ratified", "rejected", "unknown")) > 2, seen
