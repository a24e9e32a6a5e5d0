"""Tables for tests of reports: a usual one, and tables with missing, broken, strange or very many parts.

    STATES["usual"]()          # a Report

Logs are made by hand in memory: the data files that they name do not exist. Times are fixed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from delta_py.report.gathering import ReportRequest
from delta_py.report.report import Report, report_of
from delta_py.snapshot import Snapshot
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add, remove, stats, vector

DAY_MS = 86_400_000
START_MS = 1_714_521_600_000  # 2024-05-01
NOW_MS = START_MS + 40 * DAY_MS
MB = 1 << 20

# Texts that a table may contain to break a page, a terminal or a scraper.
HOSTILE = (
    "<script>alert(1)</script>",
    "\"'` onmouseover=alert(1) x=\"",
    "</style><img src=http://example.invalid/x>",
    "\x00\x1b[31mred\r\n\t\x85\x9f",
    "abc\u202egnp.exe\u200f\u2066",
    "very long name " * 80,
    "]]><!--&amp;&#x3c;",
    "naïve 名前 اسم 😀",
    "a.b`c",
)


def report(store: MemoryStore, **request: Any) -> Report:
    return report_of(Snapshot.load(store), ReportRequest(now_ms=NOW_MS, **request))


def bounds(rows: int, **columns: tuple[Any, Any]) -> str:
    """The statistics of a file: minimum and maximum of each column."""
    low, high = ({name: ends[side] for name, ends in columns.items()} for side in (0, 1))
    return json.dumps({"numRecords": rows, "minValues": low, "maxValues": high, "nullCount": dict.fromkeys(columns, 0)})


def info(time_ms: int, operation: str, engine: str = "pydelta/0.1.0", user: str | None = None, **fields: Any) -> dict[str, Any]:
    values = {"timestamp": time_ms, "operation": operation, "engineInfo": engine, "userName": user, **fields}
    return {"commitInfo": {name: value for name, value in values.items() if value is not None}}


def usual_table() -> MemoryStore:
    """Forty days of a table that is loaded each day, changed, compacted, and has lacked maintenance recently."""
    store, draw = MemoryStore("/lake/shop/orders"), random.Random(7)
    table = TableBuilder(store)
    columns = (("order_id", "long"), ("customer", "string"), ("amount", "double"), ("day", "date"), ("placed_at", "timestamp"))
    features = {"delta.enableDeletionVectors": "true", "delta.targetFileSize": "128mb"}
    metadata = table.metadata(*columns, partition_by=["day"], configuration=features)
    metadata["metaData"]["name"] = "orders"
    created = info(START_MS, "CREATE TABLE", user="ada")
    table.commit(created, table.protocol(features=["deletionVectors"]), metadata, time_ms=START_MS)
    files = _Files(draw)
    waiting: dict[int, list[Any]] = {}
    for day in range(39):
        now = START_MS + day * DAY_MS + 3_600_000
        loaded = [files.make(day, draw.randrange(2, 14) * MB, 20_000, part * 9_000, 9_500, now) for part in range(5)]
        txn = {"txn": {"appId": "9d1c-orders-stream", "version": day, "lastUpdated": now}}
        table.commit(info(now, "STREAMING UPDATE", "Apache-Spark/4.1 Delta-Lake/4.1"), txn, *loaded, time_ms=now)
        waiting[day] = loaded
        if day % 5 == 4:
            later = now + 7_200_000
            changed = [action for item in loaded[:2] for action in files.with_vector(item["add"], later)]
            table.commit(info(later, "DELETE", user="ben"), *changed, time_ms=later)
        if day in (9, 19, 29):
            later = now + 14_400_000
            old = [item["add"] for past in list(waiting) if past <= day - 5 for item in waiting.pop(past)]
            removes = [remove(item["path"], deletionTimestamp=later, size=item["size"]) for item in old]
            large = [
                files.make(past, draw.randrange(90, 125) * MB, 100_000, 0, 49_000, later) for past in range(day - 9, day - 4)
            ]
            table.commit(info(later, "OPTIMIZE", zOrderBy="[]"), *removes, *large, time_ms=later)
        if len(table.commits) % 10 == 1 and day < 36:
            table.checkpoint(stats_json=True)
    end = START_MS + 30 * DAY_MS
    table.commit(info(end, "VACUUM END", operationParameters={"status": "COMPLETED"}), time_ms=end)
    late = {"txn": {"appId": "nightly-refunds", "version": 4, "lastUpdated": START_MS + 28 * DAY_MS}}
    table.commit(info(NOW_MS - DAY_MS, "WRITE", "delta-rs:1.2", "carla"), late, time_ms=NOW_MS - DAY_MS)
    table.checksum()
    return store


class _Files:
    """Files of the usual table."""

    def __init__(self, draw: random.Random) -> None:
        self._draw, self._number = draw, 0

    def make(self, day: int, size: int, rows: int, first: int, count: int, time_ms: int) -> dict[str, Any]:
        """first, count: of the order ids of a day."""
        draw, text = self._draw, f"2024-05-{day + 1:02}" if day < 31 else f"2024-06-{day - 30:02}"
        self._number += 1
        stats = bounds(
            rows,
            order_id=(day * 50_000 + first, day * 50_000 + first + count),
            customer=(f"c{draw.randrange(100):03}", f"c{draw.randrange(900, 999):03}"),
            amount=(1.5, 900.0),
            placed_at=(f"{text}T00:{draw.randrange(60):02}:00.000Z", f"{text}T23:{draw.randrange(60):02}:00.000Z"),
        )
        name, values = f"day={text}/part-{self._number:05}.parquet", {"day": text}
        return add(name, size=size, partitionValues=values, stats=stats, modificationTime=time_ms)

    def with_vector(self, file: dict[str, Any], time_ms: int) -> list[dict[str, Any]]:
        """The actions that give a file a deletion vector."""
        self._number += 1
        descriptor = {**vector(offset=self._number), "cardinality": self._draw.choice((700, 4_000, 9_000))}
        remove_action = remove(file["path"], deletionTimestamp=time_ms, size=file["size"])
        return [remove_action, add(**{**file, "deletionVector": descriptor})]


def usual() -> Report:
    return report(usual_table())


def empty() -> Report:
    store = MemoryStore("/lake/empty")
    TableBuilder(store).create()
    return report(store)


def one_file() -> Report:
    store = MemoryStore("/lake/one")
    TableBuilder(store).create(add("a.parquet", stats=stats(10, 1, 9)))
    return report(store)


def clustered() -> Report:
    """Sixty files, clustered by two columns; all of the same size."""
    store = MemoryStore("/lake/clustered")
    table = TableBuilder(store)
    domain = {"clusteringColumns": [["x"], ["y"]], "domainName": "delta.clustering"}
    domains = {"domainMetadata": {"domain": "delta.clustering", "configuration": json.dumps(domain), "removed": False}}
    files = [
        add(
            f"{x}-{y}.parquet",
            size=40 * MB,
            clusteringProvider="liquid",
            stats=bounds(1_000, x=(x * 100, x * 100 + 130), y=(f"k{y * 9:02}", f"k{y * 9 + 12:02}")),
        )
        for x in range(10)
        for y in range(6)
    ]
    features = ["clustering", "domainMetadata"]
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}}
    table.commit(protocol, table.metadata(("x", "long"), ("y", "string")), domains, *files)
    table.checksum()
    return report(store)


def many_partitions() -> Report:
    """Two thousand partitions, with sizes by a power law."""
    store = MemoryStore("/lake/partitions")
    files = [
        add(f"shop={shop}/{part}.parquet", partitionValues={"shop": f"shop {shop}"}, size=int(400 * MB / (shop + 1)) + 1_000)
        for shop in range(2_000)
        for part in range(2)
    ]
    table = TableBuilder(store)
    table.commit(table.protocol(), table.metadata(("shop", "string"), ("id", "long"), partition_by=["shop"]), *files)
    return report(store)


def no_statistics() -> Report:
    """Old commits are cleaned up, files have no statistics of their rows, and removed files no size and time."""
    store = MemoryStore("/lake/silent")
    table = TableBuilder(store)
    table.create(*(add(f"{number}.parquet", size=number * MB) for number in range(1, 30)))
    table.commit({"txn": {"appId": "long ago", "version": 3}})
    table.commit({"remove": {"path": "1.parquet", "dataChange": True}})
    table.checkpoint()
    for version in range(2):
        table.delete(f"{version:020d}.json")
    table.commit(add("new.parquet"))
    return report(store)


def broken() -> Report:
    """A gap in the old log, a checkpoint with a missing part, a checksum that is not JSON, and a hint without a checkpoint."""
    store = MemoryStore("/lake/broken")
    table = TableBuilder(store)
    table.create(add("a.parquet", stats=stats(10, 1, 9)))
    for number in range(1, 6):
        table.commit(add(f"{number}.parquet", stats=stats(10, number, number + 5)))
    table.checkpoint()
    table.checksum(5)
    table.delete(table.checkpoint(3, kind="multipart", parts=3)[1])
    table.delete(f"{2:020d}.json")
    table.commit(add("b.parquet", stats="no JSON"))
    table.write(f"{6:020d}.crc", b"{")
    table.last_checkpoint(4)
    return report(store)


def lost_files() -> Report:
    """The commits of the newest version can be read, but not the checkpoint with the files."""
    store = MemoryStore("/lake/lost")
    table = TableBuilder(store)
    table.create(add("a.parquet"))
    (name,) = table.checkpoint()
    table.delete(f"{0:020d}.json")
    table.write(name, b"no Parquet")
    metadata = table.metadata(("id", "long"), partition_by=["id"])
    table.commit(table.protocol(), metadata, add("b.parquet", partitionValues={"id": "1"}))
    return report(store)


def hostile_table() -> MemoryStore:
    store = MemoryStore("/lake/hostile")
    table = TableBuilder(store)
    columns = [(text, "string") for text in HOSTILE]
    metadata = table.metadata(*columns, partition_by=HOSTILE[:2], configuration={text: text for text in HOSTILE})
    metadata["metaData"] |= {"name": HOSTILE[2], "description": " ".join(HOSTILE)}
    files = [
        add(
            f"{number}.parquet",
            partitionValues={HOSTILE[0]: text, HOSTILE[1]: HOSTILE[-number - 1]},
            stats=bounds(100, **{column: (f"{text}{number}", f"{text}{number + 3}") for column, _ in columns[2:]}),
        )
        for number, text in enumerate(HOSTILE)
    ]
    table.commit(info(START_MS, HOSTILE[0], HOSTILE[1], HOSTILE[2]), table.protocol(), metadata, *files, time_ms=START_MS)
    for number, text in enumerate(HOSTILE):
        parameters = {"zOrderBy": json.dumps([HOSTILE[4]]), text: text}
        now = START_MS + number * DAY_MS
        txn = {"txn": {"appId": text, "version": number}}
        operation = "OPTIMIZE" if number == 3 else text
        table.commit(info(now, operation, text, text, operationParameters=parameters), txn, time_ms=now)
    return store


def hostile() -> Report:
    return report(hostile_table())


def many_files_table(count: int = 100_000) -> MemoryStore:
    """The log as text, and no actions in memory: commits of 10,000 files."""
    store = MemoryStore("/lake/many")
    table = TableBuilder(store)
    table.commit(table.protocol(), table.metadata(("id", "long"), ("x", "double"), ("name", "string")))
    draw = random.Random(3)
    for commit in range(count // 10_000):
        lines = []
        for number in range(commit * 10_000, (commit + 1) * 10_000):
            x = draw.random() * 1_000
            stats = bounds(1_000, id=(number * 100, number * 100 + 150), x=(x, x + draw.random() * 300), name=("a", "z"))
            lines.append(json.dumps(add(f"{number}.parquet", size=draw.randrange(1 << draw.randrange(12, 31)), stats=stats)))
        table.write(f"{commit + 1:020d}.json", "\n".join(lines).encode())
    return store


def many_files() -> Report:
    return report(many_files_table(20_000))


STATES: dict[str, Callable[[], Report]] = {
    "usual": usual,
    "empty": empty,
    "one file": one_file,
    "clustered": clustered,
    "many partitions": many_partitions,
    "no statistics": no_statistics,
    "broken": broken,
    "lost files": lost_files,
    "hostile": hostile,
    "many files": many_files,
}
