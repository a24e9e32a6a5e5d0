"""What all tests with faults share: they fail what follows a commit too, and no power is lost."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _faults(harmless_post_commit: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the disk would be most of the time of the tests."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
