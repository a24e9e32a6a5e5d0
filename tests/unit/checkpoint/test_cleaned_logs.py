"""Logs that another engine has cleaned: N.checkpoint, N+1.json and so on, without the commit N. pydelta keeps that commit.

The versions from N+1 have a state and a history. delta-spark 4.4 behaves as these tests expect: see tests/interop.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from delta_py import DeltaTable
from delta_py.changes.change_feed import first_version_from
from delta_py.errors import DeltaError, LogFileNotFoundError, TimestampOutOfRangeError, VersionNotFoundError
from delta_py.log.segment import available_versions
from delta_py.snapshot import Snapshot
from delta_py.streaming.source import StreamSource
from delta_py.streaming.stream_options import StreamStart
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import Json, TableBuilder, add

T = 1_700_000_000_000
N, NEWEST = 3, 6
KINDS = {
    "classic": {},
    "multipart": {"parts": 3},
    "v2-parquet": {"sidecars": 2},
    "v2-json": {"sidecars": 2},
    "v2-classic": {},
}
COMPACTED = {
    "no compaction": None,
    "of commits that are there": (N + 1, N + 2),
    "of commits that are gone": (1, 2),
    "of both": (2, N + 1),
}
STAMPED = {"file times": None, "in-commit timestamps": 0, "enabled before": 2, "enabled after": 5}


def time_ms(version: int) -> int:
    return T + 1000 * version


def cleaned(kind: str = "classic", stamped_from: int | None = None, compacted: tuple[int, int] | None = None) -> TableBuilder:
    """One row per version: version n has the files 0 to n."""
    table = TableBuilder(MemoryStore(is_remote=False))
    features = ["v2Checkpoint", "inCommitTimestamp"]
    for version in range(NEWEST + 1):
        is_stamped = stamped_from is not None and version >= stamped_from
        info: Json = {"timestamp": 1, "operation": "WRITE", **({"inCommitTimestamp": time_ms(version)} if is_stamped else {})}
        head: list[Json] = []
        if version in (0, stamped_from):
            settings = {"delta.enableChangeDataFeed": "true"}
            if is_stamped:
                settings["delta.enableInCommitTimestamps"] = "true"
            if is_stamped and version > 0:
                settings["delta.inCommitTimestampEnablementVersion"] = str(version)
                settings["delta.inCommitTimestampEnablementTimestamp"] = str(time_ms(version))
            protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"]}
            writer = [*features, "changeDataFeed"]
            head = [{"protocol": {**protocol, "writerFeatures": writer}}, table.metadata(configuration=settings)]
        written = T + 90_000 - version if is_stamped else time_ms(version)  # file times mislead if commits have their own
        table.commit({"commitInfo": info}, *head, add(str(version)), time_ms=written)
    table.checkpoint(N, kind=kind, **KINDS[kind])
    if compacted is not None:
        table.compact(*compacted)
    for version in range(N + 1):
        table.delete(f"{version:020d}.json")
    return table


def opened(table: TableBuilder, **named: int) -> DeltaTable:
    return DeltaTable(table.store.root, store=table.store, **named)


def paths(table: DeltaTable) -> list[str]:
    return sorted(table.files()["path"].to_pylist())


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("compacted", COMPACTED.values(), ids=COMPACTED)
@pytest.mark.parametrize("stamped", STAMPED.values(), ids=STAMPED)
def test_remaining_versions_have_a_history(kind: str, stamped: int | None, compacted: tuple[int, int] | None) -> None:
    table = opened(cleaned(kind, stamped, compacted))
    assert available_versions(table.snapshot.store) == (N + 1, NEWEST)
    history = table.history()
    assert history["version"].to_pylist() == [6, 5, 4]
    times = [datetime.fromtimestamp(time_ms(version) / 1000, UTC) for version in (6, 5, 4)]
    assert history["timestamp"].to_pylist() == times
    assert table.history(1)["version"].to_pylist() == [6]


@pytest.mark.parametrize("stamped", STAMPED.values(), ids=STAMPED)
def test_times_mean_the_remaining_versions(kind: str, stamped: int | None) -> None:
    table = cleaned(kind, stamped)
    for version in (4, 5, 6):
        assert opened(table, version=version).version == version
        assert paths(opened(table, timestamp=time_ms(version))) == [str(number) for number in range(version + 1)]
        if version < NEWEST:
            assert opened(table, timestamp=time_ms(version) + 1).version == version
    with pytest.raises(TimestampOutOfRangeError, match="version 4 of 2023") as early:
        opened(table, timestamp=time_ms(4) - 1)
    assert early.value.error_class == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
    assert early.value.message_parameters["earliest_version"] == 4
    with pytest.raises(TimestampOutOfRangeError) as late:
        opened(table, timestamp=time_ms(6) + 1)
    assert late.value.error_class == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"


@pytest.mark.parametrize("stamped", STAMPED.values(), ids=STAMPED)
@pytest.mark.parametrize(("time", "first"), [(-100_000, 4), (3_999, 4), (4_000, 4), (4_001, 5), (5_000, 5), (6_000, 6)])
def test_starting_timestamp_means_the_first_commit_from_it(stamped: int | None, time: int, first: int) -> None:
    store = cleaned(stamped_from=stamped).store
    newest = Snapshot.load(store)
    assert first_version_from(store, T + time, newest) == first
    source = StreamSource(newest)
    assert source.initial_offset(StreamStart(timestamp_ms=T + time)).version == first


@pytest.mark.parametrize("stamped", STAMPED.values(), ids=STAMPED)
def test_starting_timestamp_after_the_last_commit_is_refused(stamped: int | None) -> None:
    store = cleaned(stamped_from=stamped).store
    with pytest.raises(TimestampOutOfRangeError, match="after the latest version"):
        first_version_from(store, time_ms(6) + 1, Snapshot.load(store))


@pytest.mark.parametrize("hinted", [False, True])
@pytest.mark.parametrize("version", [0, 2, 3, 7])
def test_other_versions_are_refused_with_the_range(kind: str, version: int, hinted: bool) -> None:
    """delta-spark lists version N too, and then fails to read it: its commit is gone, and with it its time."""
    table = cleaned(kind)
    if hinted:
        table.last_checkpoint(N)
    with pytest.raises(VersionNotFoundError, match=r"Available versions: \[4, 6\]"):
        opened(table, version=version)


@pytest.mark.parametrize("first", [2, 3])
def test_changes_of_versions_that_are_gone_are_refused(first: int) -> None:
    table = opened(cleaned())
    with pytest.raises(VersionNotFoundError, match=r"\[4, 6\]"):
        table.changes(starting_version=first)
    with pytest.raises(VersionNotFoundError, match="4 to 6"):
        StreamSource(table.snapshot).initial_offset(StreamStart(version=first))


def test_commits_without_any_checkpoint_are_refused_truly() -> None:
    table = cleaned()
    table.delete(f"{N:020d}.checkpoint.parquet")
    with pytest.raises(LogFileNotFoundError, match="the oldest commit is 4, there is no complete checkpoint") as refused:
        opened(table)
    assert refused.value.error_class == "DELTA_TRUNCATED_TRANSACTION_LOG"


def test_checkpoint_without_its_commit_or_the_next_is_named() -> None:
    table = cleaned()
    table.delete(f"{N + 1:020d}.json")
    for read in (available_of, opened):
        with pytest.raises(DeltaError) as refused:
            read(table)
        assert "no usable checkpoint" not in refused.value.message and "no complete checkpoint" not in refused.value.message


def available_of(table: TableBuilder) -> tuple[int, int]:
    return available_versions(table.store)


def test_lone_checkpoint_says_which_commit_is_missing() -> None:
    table = cleaned()
    for version in (4, 5, 6):
        table.delete(f"{version:020d}.json")
    with pytest.raises(LogFileNotFoundError, match=r"Commit 3 of the table .* is missing"):
        opened(table)


def test_checkpoint_without_later_commits_is_no_earliest_version() -> None:
    table = cleaned()
    table.write(f"{1:020d}.checkpoint.parquet", b"PAR1 of version 1, whose next commit is gone")
    assert available_versions(table.store) == (4, 6)


def test_empty_checkpoint_counts_for_nothing() -> None:
    table = cleaned()
    table.checkpoint(5)
    table.write(f"{N:020d}.checkpoint.parquet", b"")
    assert available_versions(table.store) == (5, 6)
