"""ALTER TABLE ... CLUSTER BY: the log afterwards, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import SchemaMismatchError
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from tests.support.stores.memory_store import MemoryStore

ROWS = pa.table(
    {
        "id": pa.array(range(40), pa.int64()),
        "Day": [f"2024-05-{number % 30 + 1:02}" for number in range(40)],
        "at": [{"city": f"c{number}", "zip": number} for number in range(40)],
        "raw": [b"x"] * 40,
        "late": [number * 7 % 40 for number in range(40)],
    }
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def domain(path: str) -> list[list[str]]:
    text = Snapshot.load(LocalStore(path)).domain_metadata()["delta.clustering"].configuration
    columns: list[list[str]] = orjson.loads(text)["clusteringColumns"]
    return columns


def told(path: str) -> tuple[str, dict[str, str]]:
    (row,) = DeltaTable(path).history(1).to_pylist()
    return row["operation"], dict(row["operationParameters"])


def test_cluster_by_changes_from_none_to_columns_and_back(path: str) -> None:
    write_delta(path, ROWS)
    assert DeltaTable(path).cluster_by(["day", "at.zip"]) == 1
    table = DeltaTable(path)
    assert {"clustering", "domainMetadata"} <= set(table.protocol.writer_features or ())
    assert domain(path) == [["Day"], ["at", "zip"]]
    assert told(path) == ("CLUSTER BY", {"oldClusteringColumns": "", "newClusteringColumns": "Day,at.zip"})
    assert table.optimize.cluster()["clusteringStats"]["numOutputZCubes"] == 1
    assert DeltaTable(path).cluster_by(["id"]) == 3
    assert told(path)[1] == {"oldClusteringColumns": "Day,at.zip", "newClusteringColumns": "id"}
    assert table.optimize.cluster()["numFilesRemoved"] == 0, "what was clustered by others stays"
    assert table.optimize.cluster(full=True)["numFilesRemoved"] == 1
    assert DeltaTable(path).cluster_by([]) == 5
    assert domain(path) == []
    assert told(path)[1] == {"oldClusteringColumns": "id", "newClusteringColumns": ""}
    assert "clusteringStats" not in {key for key, value in table.optimize.compact().items() if value is not None}
    assert DeltaTable(path).to_arrow().sort_by("id")["id"].to_pylist() == list(range(40))


def test_cluster_by_none_changes_nothing_on_a_plain_table(path: str) -> None:
    write_delta(path, ROWS)
    assert DeltaTable(path).cluster_by([]) == 0
    assert DeltaTable(path).protocol.writer_features is None


def test_columns_are_named_by_their_physical_names(path: str) -> None:
    write_delta(path, ROWS, configuration={"delta.columnMapping.mode": "name"}, cluster_by=["late"])
    DeltaTable(path).cluster_by(["ID", "at.city"])
    (first, second) = domain(path)
    assert len(first) == 1 and len(second) == 2
    assert all(name.startswith("col-") for name in (*first, *second))
    assert told(path)[1] == {"oldClusteringColumns": "late", "newClusteringColumns": "id,at.city"}
    assert DeltaTable(path).optimize.cluster()["clusteringStats"]["numOutputZCubes"] == 1


def test_names_with_dots_and_quotes_are_found(path: str) -> None:
    rows = pa.table({"a.b": range(10), "a": [{"b": number} for number in range(10)]})
    write_delta(path, rows, configuration={"delta.columnMapping.mode": "name"})
    DeltaTable(path).cluster_by(["`a.b`"])
    assert [len(column) for column in domain(path)] == [1]
    assert DeltaTable(path).optimize.cluster()["clusteringStats"]["numOutputZCubes"] == 1
    DeltaTable(path).cluster_by(["`a`.`b`"])
    assert [len(column) for column in domain(path)] == [2]


@pytest.mark.parametrize(
    ("columns", "options", "condition"),
    [
        (["id"], {"partition_by": ["Day"]}, "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"),
        ([], {"partition_by": ["Day"]}, "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"),
        (["id", "Day", "at.city", "at.zip", "late"], {}, "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"),
        (["id", "ID"], {}, "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"),
        (["raw"], {}, "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        (["at"], {}, "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        (["nothing"], {}, "nothing"),
        (["late"], {"configuration": {"delta.dataSkippingNumIndexedCols": "2"}}, "DELTA_CLUSTERING_COLUMN_MISSING_STATS"),
        (["at.zip"], {"configuration": {"delta.dataSkippingStatsColumns": "id"}}, "DELTA_CLUSTERING_COLUMN_MISSING_STATS"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    path: str, columns: list[str], options: dict[str, Any], condition: str
) -> None:
    write_delta(path, ROWS, **options)
    with pytest.raises(SchemaMismatchError, match=condition):
        DeltaTable(path).cluster_by(columns)
    assert DeltaTable(path).version == 0


def test_new_table_cannot_cluster_by_columns_without_statistics(path: str) -> None:
    with pytest.raises(SchemaMismatchError, match=r"DELTA_CLUSTERING_COLUMN_MISSING_STATS.*late"):
        write_delta(path, ROWS, cluster_by=["late"], configuration={"delta.dataSkippingNumIndexedCols": "2"})
    assert not Path(path).exists()


def test_a_lost_reply_changes_the_columns_once() -> None:
    store = MemoryStore()
    write_delta(store.root, ROWS, store=store)
    lost: list[str] = []

    def lose(moment: str, name: str, path: str) -> None:
        if (moment, name, bool(lost)) == ("after", "put_if_absent", False) and path.endswith("1.json"):
            lost.append(path)
            raise OSError("the reply is lost")

    store.hook = lose
    assert DeltaTable(store.root, store=store).cluster_by(["id"]) == 1
    assert lost and DeltaTable(store.root, store=store).version == 1


def test_an_append_of_another_before_the_commit_is_no_conflict() -> None:
    store = MemoryStore()
    write_delta(store.root, ROWS, cluster_by=["id"], store=store)
    calls: list[int] = []

    def append(moment: str, name: str, path: str) -> None:
        if (moment, name) == ("before", "put_if_absent") and not calls:
            calls.append(1)
            write_delta(store.root, ROWS, mode="append", store=store)

    store.hook = append
    assert DeltaTable(store.root, store=store).cluster_by(["late"]) == 2
    assert DeltaTable(store.root, store=store).to_arrow().num_rows == 80
