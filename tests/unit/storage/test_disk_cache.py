"""The rules of the cache directory: what goes, what stays, and how it is switched off."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from delta_py.storage.disk_cache import DiskCache


def test_the_longest_unused_go_first_and_half_written_ones_of_the_dead(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 250)
    oldest, newer, newest = (f"{digit * 64}.stats" for digit in "abc")
    dead, alive = (f"{process}-{'0' * 16}.new" for process in (1, 2))
    put(tmp_path, {oldest: 300, newer: 200, newest: 100, dead: 7200, alive: 1})
    cache.trim()
    assert {path.name for path in tmp_path.iterdir()} == {newest, alive}


def test_what_others_keep_in_the_directory_stays(tmp_path: Path) -> None:
    strange = {"notes.txt": 9000, "old.stats": 9000, "1-draft.new": 9000, "f" * 64: 9000, f"{'a' * 64}.stats.bak": 9000}
    put(tmp_path, {**strange, f"{'a' * 64}.stats": 10})
    (tmp_path / "directory").mkdir()
    DiskCache(tmp_path, 50).trim()
    assert {path.name for path in tmp_path.iterdir()} == {*strange, "directory"}


def put(directory: Path, ages: dict[str, int]) -> None:
    """Files of 100 bytes, last used so many seconds ago."""
    now = time.time()
    for name, age in ages.items():
        (directory / name).write_bytes(b"x" * 100)
        os.utime(directory / name, (now - age, now - age))


def test_the_cache_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PYDELTA_CACHE_DIR")
    found = DiskCache.of_environment()
    assert found is not None and found.directory == tmp_path / "pydelta" and found.limit_bytes == 1 << 30
    assert found.directory.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("PYDELTA_CACHE_MB", "0")
    assert DiskCache.of_environment() is None
    monkeypatch.setenv("PYDELTA_CACHE_MB", "16")
    monkeypatch.setenv("PYDELTA_CACHE_DIR", "")
    assert DiskCache.of_environment() is None
