"""Commits to a coordinated table under schedules that a seed draws: staged, ratified, published and recovered in any order, with
calls that fail, are lost or come late, and processes that die.

PYDELTA_SCHEDULES (make faults SCHEDULES=) is their number; a million in make nightly. `model.run(seed)` repeats a schedule.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_py.commit import committer
from delta_py.commit.attempts import Attempts
from delta_py.coordinator.ledger import CoordinatorUnavailableError
from delta_py.log import coordination
from delta_py.storage import coordinated
from delta_py.storage.coordinated import CoordinatedStore
from tests.support.faults.coordinated_commits import CoordinatedModel
from tests.support.runs.sampling import sample_number
from tests.support.runs.seeds import run_seed

COUNT, PARTS = int(os.environ.get("PYDELTA_SCHEDULES") or 10_000), 4
_BASE = (run_seed() or sample_number()) * 1_000_000  # each commit and each seed has other schedules


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CoordinatedModel]:
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # each failed call is logged
    new_model = CoordinatedModel(tmp_path, monkeypatch)
    yield new_model
    new_model.close()
    logging.disable(disabled)


@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_commits_are_there_once_or_not_at_all(model: CoordinatedModel, part: int) -> None:
    total = Counter[str]()
    count = COUNT // PARTS
    for seed in range(_BASE + part * count, _BASE + (part + 1) * count):
        try:
            total += model.run(seed)
        except Exception as error:
            raise AssertionError(f"the schedule of seed {seed}") from error
    print(f"{count} schedules from seed {_BASE + part * count}: {dict(total)}")
    assert all(total[what] > count // 100 for what in ("committed", "failed", "died")) and total["unknown"]


# ---------------------------------------------------------------- what would be seen


def _never_ours(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(committer, "_is_ours", lambda placed: False)


def _given_up_at_once(patch: pytest.MonkeyPatch) -> None:
    """A ledger that does not answer is treated like one that has done nothing."""
    ratify = CoordinatedStore.ratify

    def changed(self: CoordinatedStore, staged: Any) -> None:
        try:
            ratify(self, staged)
        except CoordinatorUnavailableError as error:
            raise committer.StorageError("nothing was committed") from error

    def fail(placed: Any) -> None:
        for one in placed:
            one.waiting.fail(committer.StorageError("nothing was committed"))

    patch.setattr(CoordinatedStore, "ratify", changed)
    patch.setattr(committer, "_leave_in_doubt", fail)


def _conflicts_overlooked(patch: pytest.MonkeyPatch) -> None:
    def rebase_on(self: Attempts, prepared: Any, winners: Any, new_paths: Any) -> Any:
        return replace(prepared, version=winners[-1].version + 1)

    patch.setattr(Attempts, "rebase_on", rebase_on)


def _acknowledged_first(patch: pytest.MonkeyPatch) -> None:
    def publish(self: CoordinatedStore) -> None:
        try:
            tail = self.tail()
            if tail is not None and tail.commits:
                self.ledger.acknowledge(self.place, tail.version)
                for commit in tail.commits:
                    self._publish_commit(commit)
                    self.drop_staged(commit)
        except (OSError, coordinated.DeltaError):
            pass

    patch.setattr(CoordinatedStore, "publish", publish)


def _listed_before_the_ledger_is_asked(patch: pytest.MonkeyPatch) -> None:
    list_from = CoordinatedStore.list_from

    def changed(self: CoordinatedStore, directory: str, start: str = "") -> Any:
        listed = list(self._file_store.list_from(directory, start))
        if directory != coordinated.LOG_DIRECTORY:
            return iter(listed)
        inner_ledger, self._file_store = self._file_store, _Listed(self._file_store, listed)
        try:
            return iter(list(list_from(self, directory, start)))
        finally:
            self._file_store = inner_ledger

    patch.setattr(CoordinatedStore, "list_from", changed)


class _Listed:
    def __init__(self, ledger: Any, listed: list[Any]) -> None:
        self._file_store, self._listed = ledger, listed

    def list_from(self, directory: str, start: str = "") -> Any:
        return iter(self._listed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file_store, name)


def _checkpoints_of_what_waits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CoordinatedStore, "_publish_before_log_write", lambda self, path: None)


def _dropped_in_doubt(patch: pytest.MonkeyPatch) -> None:
    leave = committer._leave_in_doubt

    def changed(placed: Any) -> None:
        leave(placed)
        for one in placed:
            one.drop()

    patch.setattr(committer, "_leave_in_doubt", changed)


def _deleted_before_it_is_acknowledged(patch: pytest.MonkeyPatch) -> None:
    publish = CoordinatedStore._publish_commit

    def changed(self: CoordinatedStore, commit: Any) -> None:
        self.drop_staged(commit)
        publish(self, commit)

    patch.setattr(CoordinatedStore, "_publish_commit", changed)


def _forgotten_with_what_waits(patch: pytest.MonkeyPatch) -> None:
    """A table leaves its coordinator while commits are unpublished."""

    def let_go(store: CoordinatedStore, tail: Any, version: int) -> bool:
        return store.ledger.forget(store.place)

    patch.setattr(coordination, "_leave_ledger", let_go)


@pytest.mark.parametrize(
    "defect",
    [
        _never_ours,
        _given_up_at_once,
        _conflicts_overlooked,
        _acknowledged_first,
        _listed_before_the_ledger_is_asked,
        _checkpoints_of_what_waits,
        _dropped_in_doubt,
        _deleted_before_it_is_acknowledged,
        _forgotten_with_what_waits,
    ],
)
def test_defect_is_found(
    model: CoordinatedModel, monkeypatch: pytest.MonkeyPatch, defect: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """The model finds these faults. So a fault that it does not find is absent, and not only invisible to it."""
    defect(monkeypatch)
    with pytest.raises((AssertionError, OSError)):
        for seed in range(20_000):
            model.run(seed)
