"""Settings of all tests with faults: the faults also hit the steps after a commit, whose failures must be harmless."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _faults(harmless_post_commit: None) -> None:
    pass
