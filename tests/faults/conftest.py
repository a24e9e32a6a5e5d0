"""What all tests with faults share: they fail what follows a commit too."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _faults(harmless_post_commit: None) -> None:
    pass
