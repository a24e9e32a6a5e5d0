"""Times of commits, the version of a time, and DESCRIBE HISTORY's columns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from delta_py.errors import CorruptTableError, TableNotFoundError, TimestampOutOfRangeError
from delta_py.log.history import HISTORY_SCHEMA, commit_times, history, time_text, version_at_timestamp
from delta_py.protocol.table_config import TableConfig
from delta_py.snapshot import Snapshot
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import Json, TableBuilder, add

T = 1_700_000_000_000


def config(table: TableBuilder) -> TableConfig:
    return Snapshot.load(table.store).config


def by_file_times(*times_ms: int) -> TableBuilder:
    """Version n was committed at T + times_ms[n] by its file's time."""
    table = TableBuilder(MemoryStore())
    for version, time in enumerate(times_ms):
        head = [table.protocol(), table.metadata()] if version == 0 else []
        table.commit(*head, add(str(version)), time_ms=T + time)
    return table


def info(time_ms: int | None, **fields: Any) -> Json:
    stamp = {} if time_ms is None else {"inCommitTimestamp": T + time_ms}
    return {"commitInfo": {"timestamp": 1, "operation": "WRITE", **stamp, **fields}}


def by_in_commit_times(*times_ms: int, enabled_at: int = 0) -> TableBuilder:
    """Versions from enabled_at on have T + times_ms[n]; before it, that is the file's time. Other file times mislead."""
    table = TableBuilder(MemoryStore())
    late = {
        "delta.inCommitTimestampEnablementVersion": str(enabled_at),
        "delta.inCommitTimestampEnablementTimestamp": str(T + times_ms[enabled_at]),
    }
    for version, time in enumerate(times_ms):
        head: list[Json] = [table.protocol(), table.metadata()] if version == 0 else []
        if version == enabled_at:
            settings = {"delta.enableInCommitTimestamps": "true", **(late if enabled_at else {})}
            protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["inCommitTimestamp"]}}
            head = [protocol, table.metadata(configuration=settings)]
        stamped = version >= enabled_at
        table.commit(
            info(time if stamped else None), *head, add(str(version)), time_ms=T + (90_000 - version if stamped else time)
        )
    return table


def version_at(table: TableBuilder, time: int, **options: bool) -> int:
    return version_at_timestamp(table.store, T + time, config(table), **options)


# ---------------------------------------------------------------- the version of a time


@pytest.mark.parametrize("make", [by_file_times, by_in_commit_times])
@pytest.mark.parametrize(
    "time, version", [(1000, 0), (1001, 0), (1999, 0), (2000, 1), (2500, 1), (4000, 2), (4001, 2), (5000, 3)]
)
def test_time_means_the_newest_version_at_or_before_it(make: Any, time: int, version: int) -> None:
    assert version_at(make(1000, 2000, 4000, 5000), time) == version


@pytest.mark.parametrize("make", [by_file_times, by_in_commit_times])
def test_time_after_the_last_commit_is_refused_with_its_time(make: Any) -> None:
    table = make(1000, 2000)
    with pytest.raises(TimestampOutOfRangeError, match=r"2023-11-14 22:13:22\.000 UTC") as caught:
        version_at(table, 2001)
    assert caught.value.error_class == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    assert version_at(table, 2001, or_last=True) == 1


@pytest.mark.parametrize("make", [by_file_times, by_in_commit_times])
def test_time_before_the_first_commit_is_refused_with_its_time(make: Any) -> None:
    table = make(1000, 2000)
    with pytest.raises(TimestampOutOfRangeError, match=r"version 0 of 2023-11-14 22:13:21\.000 UTC") as caught:
        version_at(table, 999)
    assert caught.value.error_class == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
    assert version_at(table, 999, or_earliest=True) == 0


def test_file_times_that_go_back_count_as_a_millisecond_later() -> None:
    table = by_file_times(1000, 500, 500, 1002, 3000)
    assert [time.timestamp_ms - T for time in commit_times(table.store, config(table))] == [1000, 1001, 1002, 1003, 3000]
    assert [version_at(table, time) for time in (1000, 1001, 1002, 1003, 2999)] == [0, 1, 2, 3, 3]


def test_only_versions_that_can_be_rebuilt_count() -> None:
    table = by_file_times(1000, 2000, 3000, 4000)
    table.checkpoint(2)
    table.delete(f"{0:020d}.json")
    with pytest.raises(TimestampOutOfRangeError, match="version 2"):
        version_at(table, 2500)
    assert version_at(table, 2500, recreatable=False) == 1
    assert version_at(table, 3000) == 2


@pytest.mark.parametrize("time, version", [(1000, 0), (2999, 1), (3000, 2), (3999, 2), (5000, 4)])
def test_timestamps_enabled_late_are_used_from_their_version_on(time: int, version: int) -> None:
    assert version_at(by_in_commit_times(1000, 2000, 3000, 4000, 5000, enabled_at=2), time) == version


def test_time_before_enablement_resolves_to_the_version_before() -> None:
    table = by_in_commit_times(1000, 2000, 3000, 4000, enabled_at=2)
    assert version_at(table, 2900) == 1


def test_in_commit_timestamps_are_read_by_halving() -> None:
    table = by_in_commit_times(*range(1000, 65_000, 1000))
    store, settings = table.store, config(table)
    assert isinstance(store, MemoryStore)
    store.calls.clear()
    assert version_at_timestamp(store, T + 20_500, settings) == 19
    assert len({path for name, path in store.calls if name == "read"}) <= 9


@pytest.mark.parametrize(
    "first, condition", [({"add": {}}, "DELTA_MISSING_COMMIT_INFO"), (info(None), "DELTA_MISSING_COMMIT_TIMESTAMP")]
)
def test_missing_in_commit_timestamp_is_refused_by_commit(first: Json, condition: str) -> None:
    table = by_in_commit_times(1000, 2000)
    table.write(f"{1:020d}.json", b'{"x":1}\n' if "add" in first else b'{"commitInfo":{"operation":"X"}}\n')
    with pytest.raises(CorruptTableError, match=f"{1:020d}.json") as caught:
        version_at(table, 1500)
    assert caught.value.error_class == condition


def test_enablement_version_that_is_no_number_is_refused() -> None:
    table = by_in_commit_times(1000)
    settings = {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "x"}
    table.commit(info(2000), table.metadata(configuration=settings))
    with pytest.raises(CorruptTableError, match="inCommitTimestampEnablementVersion"):
        version_at(table, 1500)


def test_version_at_a_time_needs_one_extra_listing() -> None:
    table = by_file_times(*range(0, 900, 100))
    table.store.calls.clear()
    assert Snapshot.load(table.store, timestamp_ms=T + 450).version == 4
    assert [call for call, _ in table.store.calls].count("list_from") == 3


def test_snapshot_loads_the_version_of_a_time() -> None:
    table = by_file_times(1000, 2000, 4000)
    snapshot = Snapshot.load(table.store, timestamp_ms=T + 3999)
    assert (snapshot.version, snapshot.timestamp_ms) == (1, T + 2000)
    assert snapshot.num_files == 2


def test_snapshot_has_the_in_commit_timestamp_of_its_version() -> None:
    table = by_in_commit_times(1000, 2000, 3000, enabled_at=1)
    times = [Snapshot.load(table.store, version).timestamp_ms - T for version in range(3)]
    assert times == [1000, 2000, 3000]


def test_time_text_is_readable_or_the_number() -> None:
    assert time_text(T + 7) == "2023-11-14 22:13:20.007 UTC"
    assert time_text(-1) == "1969-12-31 23:59:59.999 UTC"
    assert time_text(2**62) == f"{2**62} ms"


# ---------------------------------------------------------------- history


def test_history_has_the_columns_and_values_of_the_commit_info() -> None:
    table = by_file_times(1000)
    full = {
        "timestamp": 1,
        "userId": "7",
        "userName": "me",
        "operation": "MERGE",
        "operationParameters": {"mode": "Append", "n": 5, "none": None, "nested": {"a": [1, True]}},
        "job": {"jobId": "1", "jobRunId": 22, "other": "x"},
        "notebook": {"notebookId": "9", "notebookPath": "p"},
        "clusterId": "c",
        "readVersion": 0,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {"numFiles": "3", "m": 4},
        "userMetadata": "note",
        "engineInfo": "test",
        "txnId": "t",
    }
    table.commit({"commitInfo": full}, add("x"), time_ms=T + 2000)
    history_rows = history(table.store)
    assert history_rows.schema == HISTORY_SCHEMA
    newest, oldest = history_rows.to_pylist()
    assert newest == {
        "version": 1,
        "timestamp": datetime.fromtimestamp((T + 2000) / 1000, UTC),
        "userId": "7",
        "userName": "me",
        "operation": "MERGE",
        "operationParameters": [("mode", "Append"), ("n", "5"), ("none", None), ("nested", '{"a":[1,true]}')],
        "job": {"jobId": "1", "jobName": None, "jobRunId": "22", "runId": None, "jobOwnerId": None, "triggerType": None},
        "notebook": {"notebookId": "9"},
        "clusterId": "c",
        "readVersion": 0,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": [("numFiles", "3"), ("m", "4")],
        "userMetadata": "note",
        "engineInfo": "test",
    }
    assert (oldest["version"], oldest["operation"], oldest["operationParameters"], oldest["isBlindAppend"]) == (
        0,
        "WRITE",
        None,
        None,
    )


def test_history_takes_odd_values_as_text_or_as_missing() -> None:
    table = by_file_times(1000)
    odd = {
        "operation": 5,
        "readVersion": "x",
        "isBlindAppend": "true",
        "operationParameters": [1],
        "job": "j",
        "userName": {"a": 1},
    }
    table.commit({"commitInfo": odd})
    newest = history(table.store, 1).to_pylist()[0]
    assert (newest["operation"], newest["userName"]) == ("5", '{"a":1}')
    assert [newest[name] for name in ("readVersion", "isBlindAppend", "operationParameters", "job")] == [None] * 4


def test_history_without_commit_info_has_version_and_time() -> None:
    table = by_file_times(1000)
    table.write(f"{1:020d}.json", b'{"add":{"path":"x","partitionValues":{},"size":1,"modificationTime":1}}\n', time_ms=T + 5)
    newest = history(table.store).to_pylist()[0]
    assert newest["version"] == 1
    assert newest["timestamp"] == datetime.fromtimestamp((T + 1001) / 1000, UTC)
    assert newest["operation"] is None


def test_history_gives_the_newest_first_up_to_the_limit() -> None:
    table = by_file_times(*range(1000, 6000, 1000))
    assert history(table.store).column("version").to_pylist() == [4, 3, 2, 1, 0]
    assert history(table.store, 2).column("version").to_pylist() == [4, 3]
    assert history(table.store, 99).num_rows == 5
    assert history(table.store, 0).num_rows == 0


def test_history_of_a_cleaned_log_is_what_is_left() -> None:
    table = by_file_times(1000, 2000, 3000)
    table.checkpoint(1)
    table.delete(f"{0:020d}.json")
    assert history(table.store).column("version").to_pylist() == [2, 1]


def test_history_uses_in_commit_timestamps() -> None:
    times = history(by_in_commit_times(1000, 2000, 3000, enabled_at=1).store).column("timestamp").to_pylist()
    assert times == [datetime.fromtimestamp((T + time) / 1000, UTC) for time in (3000, 2000, 1000)]


def test_history_has_no_time_where_microseconds_do_not_reach() -> None:
    last = (2**63 - 1) // 1_000
    table = by_in_commit_times(0, last - T, last + 1 - T, 2**63 - 1 - T)
    microseconds = history(table.store)["timestamp"].cast(pa.int64()).to_pylist()
    assert microseconds == [None, None, last * 1_000, T * 1_000]


def test_history_of_no_table_is_refused() -> None:
    with pytest.raises(TableNotFoundError):
        history(MemoryStore())


def test_history_of_a_damaged_commit_names_it() -> None:
    table = by_file_times(1000)
    table.write(f"{1:020d}.json", b'{"commitInfo":{"timestamp":1')
    with pytest.raises(CorruptTableError, match=f"{1:020d}.json, line 1"):
        history(table.store)


# ---------------------------------------------------------------- commits of 0 bytes


def test_history_of_an_empty_commit_is_a_version_and_a_time() -> None:
    table = by_file_times(1000, 2000)
    table.write(f"{2:020d}.json", b"", time_ms=T + 3000)
    newest = history(table.store).to_pylist()[0]
    assert (newest.pop("version"), newest.pop("timestamp")) == (2, datetime.fromtimestamp((T + 3000) / 1000, UTC))
    assert set(newest.values()) == {None}
    assert version_at(table, 3000) == 2 and version_at(table, 2999) == 1


def test_deeply_nested_commit_info_is_shown_by_its_beginning() -> None:
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    table = by_file_times(0)
    table.commit(info(None, operationParameters={"predicate": deep}, userMetadata=deep))
    history_row = history(table.store).to_pylist()[0]
    assert history_row["userMetadata"].startswith("[[[") and len(history_row["userMetadata"]) < 300
