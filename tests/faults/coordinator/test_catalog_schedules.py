"""Commits to a table that Unity Catalog manages under schedules that a seed draws, as in test_coordinator_schedules.py: requests
that are lost, late, throttled or refused, the limit of unpublished commits, and another client that commits and publishes.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_py.coordinator.ledger import CoordinatorUnavailableError, RatificationRefusedError
from delta_py.coordinator.unity_ledger import UnityLedger
from delta_py.object_stores.catalog_store import CatalogStore
from delta_py.storage.coordinated import CoordinatedStore
from tests.faults.coordinator.test_coordinator_schedules import (
    _BASE,
    COUNT,
    PARTS,
    _acknowledged_first,
    _conflicts_overlooked,
    _never_ours,
)
from tests.support.faults.catalog_commits import CatalogModel


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CatalogModel]:
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # each failed call is logged
    new_model = CatalogModel(tmp_path, monkeypatch)
    yield new_model
    new_model.close()
    logging.disable(disabled)


@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_commits_are_there_once_or_not_at_all(model: CatalogModel, part: int) -> None:
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


def _lost_answer_is_a_refusal(patch: pytest.MonkeyPatch) -> None:
    ratify = UnityLedger.ratify

    def changed(self: UnityLedger, commits: Any, **options: Any) -> int:
        try:
            return ratify(self, commits, **options)
        except CoordinatorUnavailableError as error:
            raise RatificationRefusedError(str(error)) from error

    patch.setattr(UnityLedger, "ratify", changed)


def _sent_again_under_another_name(patch: pytest.MonkeyPatch) -> None:
    ratify = UnityLedger.ratify

    def changed(self: UnityLedger, commits: Any, **options: Any) -> int:
        name = f"{commits[0].version:020}.{uuid.uuid4()}.json"
        return ratify(self, [replace(commits[0], name=name)], **options)

    patch.setattr(UnityLedger, "ratify", changed)


def _limit_is_a_refusal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CatalogStore, "ratify", CoordinatedStore.ratify)


@pytest.mark.parametrize(
    "defect",
    [
        _lost_answer_is_a_refusal,
        _sent_again_under_another_name,
        _limit_is_a_refusal,
        _never_ours,
        _acknowledged_first,
        _conflicts_overlooked,
    ],
)
def test_defect_is_found(
    model: CatalogModel, monkeypatch: pytest.MonkeyPatch, defect: Callable[[pytest.MonkeyPatch], None]
) -> None:
    defect(monkeypatch)
    with pytest.raises((AssertionError, OSError)):
        for seed in range(5_000):
            model.run(seed)
