"""Numbers in a log that are larger than any table: the report still has everything else, and says what is unknown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from delta_py import DeltaTable
from delta_py.errors import CorruptTableError
from delta_py.report.facts import Unknown
from delta_py.report.metrics import text_of
from delta_py.report.report import Report
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.report_states import MB, START_MS, bounds, info, report
from tests.support.tables.table_builder import TableBuilder, add, remove, stats, vector
from tests.unit.report.test_metrics import scraped
from tests.unit.report.test_page import Document

LARGEST = 2**63 - 1
GONE = remove("gone.parquet", deletionTimestamp=1, size=1)
Store = Callable[[], MemoryStore]


def table(*actions: Any, time_ms: int = START_MS, in_commit_ms: int | None = None, **configuration: str) -> MemoryStore:
    """A table of one column `id`, created by one commit, and the actions in a second one."""
    store = MemoryStore("/lake/hostile")
    builder = TableBuilder(store)
    columns = (("id", "long"), ("amount", "double"), ("at", "timestamp"))
    metadata = builder.metadata(*columns, configuration=configuration)
    builder.commit(info(START_MS, "CREATE TABLE"), builder.protocol(), metadata, time_ms=START_MS)
    named = info(time_ms, "WRITE", inCommitTimestamp=in_commit_ms)
    builder.commit(named, add("live.parquet", size=MB, stats=stats(10, 1, 9)), *actions, time_ms=START_MS + 1)
    return store


def files(*sizes: int) -> list[Any]:
    return [add(f"{number}.parquet", size=size, stats=stats(5, 1, 9)) for number, size in enumerate(sizes)]


def created(created_ms: int) -> MemoryStore:
    store = MemoryStore("/lake/hostile")
    builder = TableBuilder(store)
    metadata = builder.metadata(("id", "long"))
    metadata["metaData"]["createdTime"] = created_ms
    builder.commit(info(START_MS, "CREATE TABLE"), builder.protocol(), metadata, time_ms=START_MS)
    return store


def with_vector(cardinality: int) -> MemoryStore:
    descriptor = {**vector(offset=1), "cardinality": cardinality}
    return table(add("v.parquet", size=MB, stats=stats(10, 1, 9), deletionVector=descriptor))


TABLES: dict[str, Store] = {
    **{
        f"commit time {time_ms}": lambda time_ms=time_ms: table(in_commit_ms=time_ms)
        for time_ms in (253_402_300_800_000, 900_000_000_000_000, 9 * 10**18, LARGEST, -62_135_596_800_001, -(2**63))
    },
    **{
        f"{name} {value:.60}": lambda name=name, value=value: table(GONE, **{name: value})
        for name, value in (
            ("delta.deletedFileRetentionDuration", "interval 999999999999 weeks"),
            ("delta.deletedFileRetentionDuration", f"interval {10**30} weeks"),
            ("delta.logRetentionDuration", "interval 999999999999 weeks"),
            ("delta.logRetentionDuration", f"interval {10**30} weeks"),
            ("delta.targetFileSize", f"{10**30}"),
            ("delta.targetFileSize", f"{10**400}"),
            ("delta.checkpointInterval", f"{10**400}"),
            ("delta.checkpointInterval", "9" * 5_000),
            ("delta.checkpointInterval", f"{10**30}"),
            ("delta.setTransactionRetentionDuration", f"interval {10**30} weeks"),
        )
    },
    "rows": lambda: table(*(add(f"{n}.parquet", size=MB, stats=stats(LARGEST, 1, 9)) for n in range(2))),
    "rows of one file": lambda: table(add("1.parquet", size=MB, stats=stats(LARGEST, 1, 9))),
    "negative rows": lambda: table(add("1.parquet", size=MB, stats=stats(-(2**63), 1, 9))),
    "size": lambda: table(*files(LARGEST)),
    "sizes": lambda: table(*files(LARGEST, LARGEST)),
    "sizes whose sum turns positive": lambda: table(*files(LARGEST, LARGEST, LARGEST)),
    "negative size": lambda: table(*files(-1)),
    "smallest size": lambda: table(*files(-(2**63), -(2**63))),
    "cardinality": lambda: with_vector(LARGEST),
    "removed sizes": lambda: table(*(remove(f"{n}.parquet", deletionTimestamp=LARGEST, size=LARGEST) for n in range(3))),
    "deletion time": lambda: table(remove("1.parquet", deletionTimestamp=-(2**63), size=1)),
    "batch": lambda: table({"txn": {"appId": "a", "version": LARGEST, "lastUpdated": LARGEST}}),
    "creation time": lambda: created(LARGEST),
    "modification time": lambda: table(add("1.parquet", size=1, stats=stats(1, 1, 9), modificationTime=LARGEST)),
    "bounds": lambda: table(
        *(
            add(f"{n}.parquet", size=MB, stats=bounds(9, id=(-(2**63), LARGEST), amount=(-1.7e308, 1.7e308)))
            for n in range(3)
        )
    ),
    "times as bounds": lambda: table(
        add("1.parquet", size=MB, stats=bounds(9, at=("0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z")))
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_report_of_hostile_numbers(name: str) -> None:
    hostile_report: Report = report(TABLES[name](), vacuum=True)
    page = Document(hostile_report.html())
    assert "/lake/hostile" in "".join(page.text)
    assert json.loads(hostile_report.to_json())["identity"]["version"] == hostile_report.facts.identity.version
    assert (
        scraped(text_of(hostile_report.facts))["pydelta_table_version", (("table", "/lake/hostile"),)]
        == hostile_report.facts.identity.version
    )
    assert not isinstance(hostile_report.facts.log, Unknown) and not isinstance(hostile_report.facts.commits, Unknown)


def test_sums_are_as_large_as_the_log_says() -> None:
    facts = report(TABLES["sizes"]()).facts
    assert not isinstance(facts.files, Unknown) and not isinstance(facts.commits, Unknown)
    assert facts.files.bytes == facts.commits.commits[0].bytes_added == 2 * LARGEST + MB
    assert json.loads(facts.to_json())["files"]["bytes"] == float(2 * LARGEST + MB)
    rows = report(TABLES["rows"]()).facts.files
    assert not isinstance(rows, Unknown) and rows.rows == 2 * LARGEST + 10


def test_partition_that_is_too_large_is_unknown_with_the_reason() -> None:
    store = MemoryStore("/lake/hostile")
    builder = TableBuilder(store)
    metadata = builder.metadata(("id", "long"), ("p", "string"), partition_by=["p"])
    adds = [add(f"{n}.parquet", size=LARGEST, partitionValues={"p": "a"}, stats=stats(1, 1, 9)) for n in range(2)]
    builder.commit(info(START_MS, "WRITE"), builder.protocol(), metadata, *adds, time_ms=START_MS)
    facts = report(store).facts
    assert isinstance(facts.partitions, Unknown) and "cannot be used in calculations" in facts.partitions.unknown


def test_commit_time_without_a_year_is_told_as_a_number() -> None:
    for time_ms in (900_000_000_000_000, LARGEST):
        dated_report = report(table(in_commit_ms=time_ms))
        assert not isinstance(dated_report.facts.commits, Unknown)
        assert dated_report.facts.commits.commits[0].timestamp_ms == time_ms and f"{time_ms} ms" in dated_report.html()


def test_retention_that_nobody_can_wait_for_is_named() -> None:
    value = "interval 999999999999 weeks"
    store = TABLES[f"delta.deletedFileRetentionDuration {value}"]()
    retention = report(store).facts.retention
    assert not isinstance(retention, Unknown) and isinstance(retention.expired, Unknown)
    with pytest.raises(CorruptTableError, match=f"delta.deletedFileRetentionDuration: '{value}' is an interval") as raised:
        DeltaTable("/lake/hostile", store=store).vacuum(dry_run=True)
    assert raised.value.message in retention.expired.unknown
