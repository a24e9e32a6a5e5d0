"""Cache directories with damaged entries: the rows of a remote table are right, and no damage raises an error."""

from __future__ import annotations

import os
import random
import resource
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from delta_py import DeltaTable
from delta_py.errors import DeltaError
from delta_py.log.checkpoint_content import parquet_part
from delta_py.storage.cache import cached_objects
from delta_py.storage.cache.disk_cache import DiskCache
from tests.fuzz.base_tables import made_tables
from tests.fuzz.cases import Case, Mutation, Outcome, fresh, made, observed
from tests.fuzz.child import in_child
from tests.fuzz.damage import damage_bytes, damage_place
from tests.support.stores.memory_store import MemoryStore

_CACHE = "cache"
_DAY_MS = 86_400_000
_LIMIT_MB = 64
# A small table is not cached in blocks, and its statistics are not cached at all.
_SMALL_WHOLE_BYTES, _SMALL_BLOCK_BYTES = 1024, 512
_FILTERS = ["id > 5 AND part = 'p1'", "id BETWEEN 9 AND 14", "name IS NULL", "id = 3 OR name = 'name 10'"]


class CacheTarget:
    def __init__(self, directory: Path) -> None:
        self._tables = made_tables(directory)
        self._views = {name: in_child(partial(_without_cache, path)).value for name, path in self._tables.items()}

    def run(self, case: Case) -> Outcome:
        rng, place = case.rng, fresh(case.place)
        name, in_blocks = rng.choice(list(self._tables)), rng.random() < 0.5
        cache, store = place / _CACHE, _remote(self._tables[name])
        cache.mkdir(mode=0o700)
        made(in_child(partial(_with_cache, store, cache, in_blocks)), case)
        description = _mutate(cache, rng)
        full_at = rng.choice([0, 100, 10_000]) if rng.random() < 0.15 else None
        finding = observed(partial(_use, store, cache, self._views[name], in_blocks, full_at), place, _CACHE)
        description = description if full_at is None else f"{description}; the disk takes {full_at} bytes a file"
        return case.outcome(name, Mutation(description, False), finding)


def _remote(table: Path) -> MemoryStore:
    """The table's files, as a store listed them a day ago."""
    now_ms = time.time_ns() // 1_000_000 - _DAY_MS
    files = [path for path in table.rglob("*") if path.is_file()]
    return MemoryStore(objects={str(path.relative_to(table)): (path.read_bytes(), now_ms) for path in files})


# ---------------------------------------------------------------- in the child


def _without_cache(table: Path) -> dict[str, Any]:
    return _views(_remote(table))


def _with_cache(store: MemoryStore, cache: Path, in_blocks: bool) -> None:
    _views(_cached(store, cache, in_blocks))


def _cached(store: MemoryStore, cache: Path, in_blocks: bool) -> MemoryStore:
    os.environ.update(PYDELTA_CACHE_DIR=str(cache), PYDELTA_CACHE_MB=str(_LIMIT_MB))
    parquet_part.LEAST_ROWS = 1  # type: ignore[attr-defined]
    if in_blocks:
        cached_objects._WHOLE_BYTES, cached_objects._BLOCK_BYTES = _SMALL_WHOLE_BYTES, _SMALL_BLOCK_BYTES
    return store


def _views(store: MemoryStore) -> dict[str, Any]:
    """The results of each way of reading, as texts."""
    table = DeltaTable(store.root, store=store)
    views = {"rows": table.to_arrow(), **{text: table.to_arrow(filter=text) for text in _FILTERS}}
    views["an older version"] = DeltaTable(store.root, version=table.version - 1, store=store).to_arrow()
    rows_by_view: dict[str, Any] = {name: sorted(repr(row) for row in rows.to_pylist()) for name, rows in views.items()}
    rows_by_view["files"] = sorted(table.files()["path"].to_pylist())
    return rows_by_view


def _use(store: MemoryStore, cache: Path, expected: dict[str, Any], in_blocks: bool, full_at: int | None) -> tuple[str, str]:
    """Reads twice: damaged entries are replaced. A cache in use can be trimmed."""
    _cached(store, cache, in_blocks)
    if full_at is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (full_at, full_at))
    for time_ in ("first", "second"):
        try:
            actual = _views(store)
        except DeltaError as error:
            return "refused", f"the {time_} time: {str(error)[:300]}"
        for name, rows in expected.items():
            if actual[name] != rows:
                return "wrong", f"the {time_} time, {name}: {actual[name]} and not {rows}"
    disk = DiskCache.of_environment()
    if disk is None:
        return "same", "without a cache"
    DiskCache(disk.directory, 0).trim()
    file_names = [name for name in os.listdir(disk.directory) if not (disk.directory / name).is_dir()]
    entry_names = [name for name in file_names if name.endswith((".stats", ".object"))]
    return ("same", "") if not entry_names else ("not trimmed", str(entry_names))


# ---------------------------------------------------------------- damage


def _mutate(cache: Path, rng: random.Random) -> str:
    """Damages some entries, or the directory itself. Returns a description."""
    if rng.random() < 0.2:
        return _replace_directory(cache, rng)
    entries = sorted(cache.iterdir())
    chosen = rng.sample(entries, rng.choice([1, 1, 2, len(entries) // 2, len(entries)])) if entries else []
    kinds: list[Callable[[Path, random.Random], str | None]] = [damage_bytes, damage_place, _exchange, _forge, _half_written]
    damage = rng.choice(kinds)
    descriptions = [f"{path.name[:8]}.{path.suffix}: {damage(path, rng)}" for path in chosen]
    return f"{len(descriptions)} of {len(entries)} entries, {'; '.join(descriptions[:3])}"


def _exchange(path: Path, rng: random.Random) -> str:
    """Two complete entries, each under the other's name."""
    other_files = [other for other in sorted(path.parent.iterdir()) if other != path and other.is_file()]
    if not other_files:
        return "alone"
    other = rng.choice(other_files)
    content = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(content)
    return f"exchanged with {other.name[:8]}"


def _forge(path: Path, rng: random.Random) -> str:
    """The content of another entry before the checksum of this one, and the reverse."""
    other_files = [other for other in sorted(path.parent.iterdir()) if other != path and other.is_file()]
    if not other_files:
        return "alone"
    other = rng.choice(other_files)
    path.write_bytes(other.read_bytes()[:-4] + path.read_bytes()[-4:])
    return f"content of {other.name[:8]} under its own sum"


def _half_written(path: Path, rng: random.Random) -> str:
    name = f"{rng.randrange(10**6)}-{rng.randbytes(8).hex()}.new"
    path.rename(path.with_name(name))
    return damage_place(path.with_name(name), rng) if rng.random() < 0.5 else name


def _replace_directory(cache: Path, rng: random.Random) -> str:
    what = rng.choice(["missing", "file", "fifo", "link elsewhere", "link to itself", "link to nothing", "of all", "read-only"])
    if what not in ("of all", "read-only"):
        shutil.move(cache, cache.parent / "victim" / "moved")
    actions: dict[str, Callable[[], Any]] = {
        "missing": lambda: None,
        "file": lambda: cache.write_text("no directory"),
        "fifo": lambda: os.mkfifo(cache),
        "link elsewhere": lambda: cache.symlink_to(cache.parent / "victim"),
        "link to itself": lambda: cache.symlink_to(cache),
        "link to nothing": lambda: cache.symlink_to(cache.parent / "nothing"),
        "of all": lambda: cache.chmod(0o777),
        "read-only": lambda: cache.chmod(0o500),
    }
    with suppress(FileExistsError):
        actions[what]()
    return f"the directory is {what}"
