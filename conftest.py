"""What all tests share: marks that come from the folder, how random tests run, the acceptance tables."""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest

from tests.support.corpus import unpack

TESTS = Path(__file__).parent / "tests"

# No deadline: the time of one example says nothing on a shared machine. A failure prints what replays it.
hypothesis.settings.register_profile("pydelta", deadline=None, print_blob=True)
hypothesis.settings.load_profile("pydelta")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(TESTS):
            item.add_marker(item.path.relative_to(TESTS).parts[0])


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The acceptance tables, unpacked; tests read them and change nothing."""
    directory = tmp_path_factory.mktemp("corpus")
    unpack(directory)
    return directory
