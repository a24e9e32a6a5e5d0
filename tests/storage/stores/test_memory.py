"""The memory of a read does not grow with the file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator

import pytest

from benchmarks.common import HERE, run_json
from benchmarks.tables.make_store_tables import make_file_table
from delta_py.object_stores.open_store import open_store
from tests.storage.conftest import new_url
from tests.support.servers.emulators import Emulator

COLUMNS, GROUPS, GROUP_ROWS = 8, 16, 1_000_000  # row groups of 64 MB
# 128 of them are a row group and the next one, 150 the libraries.
MOST_MB = 400


@pytest.fixture
def emulator(emulators: Callable[[str], Emulator]) -> Emulator:
    return emulators("s3")


@pytest.fixture
def large_url(emulator: Emulator) -> Iterator[str]:
    """A table of one file of 1 GB."""
    url = new_url(emulator)
    store = open_store(url, emulator.options())
    size_bytes = make_file_table(store, columns=COLUMNS, groups=GROUPS, group_rows=GROUP_ROWS)
    assert size_bytes > COLUMNS * GROUPS * GROUP_ROWS * 8
    yield url
    for info in list(store.list_recursive("")):
        store.delete(info.path)


def test_a_file_of_a_gigabyte_is_read_in_less_than_half_of_that(emulator: Emulator, large_url: str) -> None:
    small_url = new_url(emulator)
    make_file_table(open_store(small_url, emulator.options()), columns=COLUMNS, groups=1, group_rows=1000)
    command = [sys.executable, str(HERE / "library/stores_run.py"), "pydelta", "rows", large_url, small_url]
    run = run_json(command, {"PYDELTA_BENCH_STORE": json.dumps(emulator.settings())})
    assert run["count"] == GROUPS * GROUP_ROWS
    assert run["peak_mb"] < MOST_MB
