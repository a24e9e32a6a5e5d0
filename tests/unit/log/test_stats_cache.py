"""Parsed statistics on the disk: the same answers with and without, and no damaged or foreign entry can spoil them."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.tables.make_log_table import make_table
from delta_py import DeltaTable
from delta_py.log.checkpoint_content import parquet_part, stats_cache
from delta_py.log.checkpoint_content.stats_cache import StatsCache
from delta_py.object_stores.open_store import open_store
from delta_py.snapshot import Snapshot
from delta_py.statistics import stats
from delta_py.storage import local
from delta_py.storage.cache.disk_cache import DiskCache
from delta_py.storage.store import FileId, ObjectInfo

FILES = 600
LIMIT = 50_000
PREDICATES = ("id = 300500", "id < 2000", "column_1 > 0.5", "id >= 0 AND column_1 < 0.25", "column_2 IS NULL")


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Statistics only as JSON, and a large enough checkpoint."""
    monkeypatch.setattr(parquet_part, "LEAST_ROWS", 100)
    make_table(str(tmp_path / "t"), files=FILES, columns=4, commits=3)
    return str(tmp_path / "t")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYDELTA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of statistics texts of the checkpoint that are parsed."""
    from delta_py.log import reconciliation

    counts: list[int] = []
    parse = reconciliation.parse_stats

    def counted(json: Any, leaves: Any) -> Any:
        counts.append(len(json))
        return parse(json, leaves)

    monkeypatch.setattr(reconciliation, "parse_stats", counted)
    return counts


def kept(table: str, predicate: str) -> list[str]:
    return sorted(DeltaTable(table).scan(filter=predicate).paths())


def texts(parsed: list[int]) -> int:
    """Of the checkpoint: commits add few files."""
    text_count = sum(count for count in parsed if count >= 100)
    parsed.clear()
    return text_count


def entries(cache: Path) -> list[Path]:
    return sorted(cache.iterdir())


def test_a_second_reader_parses_nothing_and_finds_the_same(
    table: str, cache: Path, parsed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYDELTA_CACHE_DIR", "")
    expected = {predicate: kept(table, predicate) for predicate in PREDICATES}
    assert texts(parsed) >= FILES * len(PREDICATES)
    assert len(expected["id = 300500"]) == 1 and len(expected["id < 2000"]) < FILES
    monkeypatch.setenv("PYDELTA_CACHE_DIR", str(cache))
    assert {predicate: kept(table, predicate) for predicate in PREDICATES} == expected
    assert texts(parsed) > 0
    assert {predicate: kept(table, predicate) for predicate in PREDICATES} == expected
    assert texts(parsed) == 0


def test_only_the_leaves_that_are_missing_are_parsed(table: str, cache: Path, parsed: list[int]) -> None:
    expected = kept(table, "id < 2000 AND column_1 >= 0")
    shutil.rmtree(cache)
    kept(table, "id < 2000")
    assert len(entries(cache)) == 2  # id, and the numbers of records
    texts(parsed)
    assert kept(table, "id < 2000 AND column_1 >= 0") == expected
    assert texts(parsed) > 0
    assert len(entries(cache)) == 3


def test_numbers_of_records_come_from_the_cache(table: str, cache: Path, parsed: list[int]) -> None:
    def rows() -> int:
        batches = Snapshot.load(open_store(table)).file_batches(want_records=True)
        return sum(pc.sum(batch.live_rows()).as_py() for batch in batches)

    first = rows()
    assert first > 0 and texts(parsed) > 0
    assert rows() == first and texts(parsed) == 0


@pytest.mark.parametrize("has_change_times", [True, False])
def test_checkpoint_of_equal_metadata_and_footer_is_read_again(
    table: str, cache: Path, parsed: list[int], has_change_times: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A footer only has the bounds of columns: statistics of a file in the middle may differ."""
    if not has_change_times:
        monkeypatch.setattr(local, "_info", info_without_change_time)
    (checkpoint,) = Path(table, "_delta_log").glob("*.checkpoint.parquet")
    rows, footers = pq.read_table(checkpoint), []
    adds = rows["add"].to_pylist()
    add = next(add for add in adds if add and '"id":300000' in add["stats"])
    for first_digit, matches in (("3", 1), ("4", 0)):
        add["stats"] = re.sub(r'"id":\d(00000|00999)', rf'"id":{first_digit}\1', add["stats"])
        new = rows.set_column(rows.column_names.index("add"), "add", pa.array(adds, rows.schema.field("add").type))
        pq.write_table(new, checkpoint, compression="none", use_dictionary=False)
        os.utime(checkpoint, (1_577_836_800, 1_577_836_800))
        content = checkpoint.read_bytes()
        footers.append((len(content), content[-8 - int.from_bytes(content[-8:-4], "little") :]))
        assert len(kept(table, "id = 300500")) == matches
        assert texts(parsed) > 0
        assert len(kept(table, "id = 300500")) == matches
        assert texts(parsed) == 0, "it is kept"
    assert footers[0] == footers[1]


def info_without_change_time(entry: os.DirEntry[str], path: str) -> ObjectInfo | None:
    """As from a file system that numbers files by their order, and derives the change time from mtime."""
    status = entry.stat()
    file_id = FileId(7, 12, status.st_mtime_ns)
    return None if entry.is_dir() else ObjectInfo(path, status.st_size, status.st_mtime_ns // 1_000_000, file_id=file_id)


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_entry_is_parsed_again(table: str, cache: Path, parsed: list[int], damage: str) -> None:
    expected = kept(table, "id < 2000")
    for entry in entries(cache):
        content = bytearray(entry.read_bytes())
        content[len(content) // 2] ^= 0xFF
        entry.write_bytes({"cut": content[: len(content) // 2], "flipped": content, "empty": b""}[damage])
    texts(parsed)
    assert kept(table, "id < 2000") == expected
    assert texts(parsed) > 0
    assert kept(table, "id < 2000") == expected
    assert texts(parsed) == 0, "a whole entry takes the place of the damaged one"


def test_an_entry_that_is_whole_and_no_table_is_parsed_again(table: str, cache: Path, parsed: list[int]) -> None:
    expected = kept(table, "id < 2000")
    for entry in entries(cache):
        DiskCache(cache, 1 << 40).put(entry.name, b"no table")
    texts(parsed)
    assert kept(table, "id < 2000") == expected
    assert texts(parsed) > 0


def test_other_checkpoint_of_the_same_name_has_new_entries(table: str, cache: Path) -> None:
    path = next(Path(table, "_delta_log").glob("*.checkpoint*.parquet"))
    before = kept(table, "id < 2000")
    checkpoint = pq.read_table(path)
    position = checkpoint.schema.get_field_index("add")
    add = checkpoint["add"].combine_chunks()
    swapped = pc.replace_substring(add.field("stats"), '"minValues":{"id":', '"minValues":{"id":-')
    fields = [swapped if f.name == "stats" else child for f, child in zip(add.type, add.flatten(), strict=True)]
    changed = pa.StructArray.from_arrays(fields, fields=list(add.type), mask=add.is_null())
    pq.write_table(checkpoint.set_column(position, "add", changed), path)
    after = kept(table, "id < 2000")
    assert len(after) > len(before)


def test_other_rules_have_entries_of_their_own(
    table: str, cache: Path, parsed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(table, "id < 2000")
    texts(parsed)
    monkeypatch.setattr(stats_cache, "RULES", stats.RULES + 1)
    kept(table, "id < 2000")
    assert texts(parsed) > 0


def test_a_reader_that_stops_early_leaves_nothing(table: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_part, "_MOST_ROWS_WITH_TEXT", 100)
    monkeypatch.setattr(parquet_part, "_LEAST_ROWS_WITH_TEXT", 1)
    snapshot = Snapshot.load(open_store(table))
    batches = snapshot.file_batches(want_records=True)
    for _ in range(3):
        next(batches)
    assert entries(cache), "nothing was begun: the test is of no use"
    del batches  # from Python 3.12 on, close() alone leaves the generators inside open
    assert entries(cache) == []


def test_a_directory_that_takes_nothing_is_passed_over(
    table: str, cache: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    expected = kept(table, "id < 2000")
    shutil.rmtree(cache)
    monkeypatch.setattr(stats_cache._Entry, "write", full)
    assert kept(table, "id < 2000") == expected
    assert "No space left" in caplog.text
    assert entries(cache) == []


def _read_many(table: str, cache: Path, rounds: int) -> list[int]:
    parquet_part.LEAST_ROWS = 100
    StatsCache.of_environment = lambda: StatsCache(DiskCache(cache, LIMIT))  # type: ignore[method-assign, assignment]
    return [len(kept(table, predicate)) for _ in range(rounds) for predicate in PREDICATES]


def test_many_processes_share_a_small_cache(table: str, tmp_path: Path) -> None:
    """Entries come and go while others read: the limit is smaller than their entries."""
    expected = [len(kept(table, predicate)) for predicate in PREDICATES]
    cache = tmp_path / "small"
    cache.mkdir()
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        counts = pool.starmap(_read_many, [(table, cache, 5)] * 3)
    assert counts == [expected * 5] * 3
    assert {path.suffix for path in entries(cache)} == {".stats"}
    DiskCache(cache, LIMIT).trim()  # the last one's trim may have come before another's entry
    assert 0 < sum(path.stat().st_size for path in entries(cache)) <= LIMIT
