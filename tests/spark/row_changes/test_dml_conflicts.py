"""DELETE, UPDATE and MERGE whose commit meets that of another writer: the changes of both that stay, conflicts, and the effect of
retries=.

The other writer commits just before our commit, after all our files are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable as Reader
from delta_py import write_delta
from delta_py.log.history import history
from delta_py.protocol.actions import AddCDCFile, AddFile, parse_action
from delta_py.row_changes.dml import Dml
from delta_py.storage.local import LocalStore
from spark_plugin import DeltaTable
from spark_plugin.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
    InvalidOptionError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VECTORS = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
ROWS = 20


class Rival:
    """Runs the next function of `todo`, if any, before each commit of a DML."""

    def __init__(self) -> None:
        self.todo: list[Callable[[], Any]] = []

    def come(self) -> None:
        if self.todo:
            self.todo.pop(0)()


@pytest.fixture
def rival(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rival]:
    new_rival, commit = Rival(), Dml.commit

    def after_the_rival(self: Dml, *args: Any, **options: Any) -> Any:
        new_rival.come()
        return commit(self, *args, **options)

    monkeypatch.setattr(Dml, "commit", after_the_rival)
    yield new_rival
    assert not new_rival.todo, "the rival never came"


def make(path: Path, properties: dict[str, str] | None = None) -> str:
    """Two files; n is 0 everywhere."""
    data = pa.table({"id": range(ROWS), "n": [0] * ROWS})
    write_delta(str(path), data, configuration=VECTORS if properties is None else properties, max_records_per_file=ROWS // 2)
    return str(path)


def replace(path: str, *ids: int, n: int | None = None) -> Callable[[], int]:
    """The other writer: deletes rows, and with n inserts others with the same ids."""
    new_ids = [] if n is None else list(ids)
    data = pa.table({"id": pa.array(new_ids, pa.int64()), "n": pa.array([n] * len(new_ids), pa.int64())})
    where = f"id IN ({', '.join(map(str, ids))})"
    return lambda: write_delta(path, data, mode="overwrite", replace_where=where)


def rows(path: str) -> dict[int, int]:
    return {row["id"]: row["n"] for row in Reader(path).to_arrow().to_pylist()}


def changes(path: str) -> list[tuple[str, int, int]]:
    """Of the newest version."""
    table = Reader(path)
    feed = table.changes(starting_version=table.version).read_all().to_pylist()
    return sorted((row["_change_type"], row["id"], row["n"]) for row in feed)


def check_no_file_is_left(path: str) -> None:
    """A commit names every file in the folder."""
    named: set[str] = set()
    for commit in (Path(path) / "_delta_log").glob("*.json"):
        for action in map(parse_action, commit.read_bytes().splitlines()):
            if isinstance(action, AddFile | AddCDCFile):
                named.add(action.path)
            if isinstance(action, AddFile) and action.deletion_vector is not None:
                named.add(str(action.deletion_vector.path))
    paths = (str(file.relative_to(path)) for file in Path(path).rglob("*") if file.is_file())
    assert {name for name in paths if not name.startswith("_delta_log") and not name.endswith(".crc")} <= named


def test_delete_keeps_concurrent_deletes_in_the_same_files(spark: SparkSession, tmp_path: Path, rival: Rival) -> None:
    path = make(tmp_path / "t")
    rival.todo = [replace(path, 1, 11)]
    DeltaTable.forPath(spark, path).delete("id IN (2, 3, 12)")
    assert set(rows(path)) == set(range(ROWS)) - {1, 11, 2, 3, 12}
    assert changes(path) == [("delete", 2, 0), ("delete", 3, 0), ("delete", 12, 0)]
    metrics = history(LocalStore(path), 1).to_pylist()[0]["operationMetrics"]
    counted = {name: dict(metrics)[f"numDeletionVectors{name}"] for name in ("Added", "Updated", "Removed")}
    assert counted == {"Added": "2", "Updated": "2", "Removed": "2"}, "one that is updated is one removed and one added"
    check_no_file_is_left(path)


def test_update_keeps_concurrent_updates_in_the_same_files(spark: SparkSession, tmp_path: Path, rival: Rival) -> None:
    path = make(tmp_path / "t")
    rival.todo = [replace(path, 1, n=7)]
    DeltaTable.forPath(spark, path).update("id BETWEEN 2 AND 4", {"n": "id"})
    assert rows(path) == {**dict.fromkeys(range(ROWS), 0), 1: 7, 2: 2, 3: 3, 4: 4}
    images = [(f"update_{kind}image", id, id * (kind == "post")) for kind in ("post", "pre") for id in (2, 3, 4)]
    assert changes(path) == images
    check_no_file_is_left(path)


@pytest.mark.parametrize("clauses", ["upsert", "no insert", "source decides"])
def test_merge_keeps_concurrent_deletes_in_the_same_files(
    spark: SparkSession, tmp_path: Path, rival: Rival, clauses: str
) -> None:
    path = make(tmp_path / "t")
    rival.todo = [replace(path, 1)]
    source = spark.createDataFrame(pa.table({"id": [2, 3, 99], "n": [5, 5, 5]})).alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    if clauses == "no insert":
        merge = merge.whenMatchedUpdate("t.id = 2", {"n": "s.n"}).whenMatchedDelete("t.id = 4")
    else:
        merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
    if clauses == "source decides":
        merge = merge.whenNotMatchedBySourceDelete("t.id >= 18")
    merge.execute()
    expected = {id: 0 for id in range(ROWS) if id != 1}
    expected |= {2: 5} if clauses == "no insert" else {2: 5, 3: 5, 99: 5}
    assert rows(path) == {id: n for id, n in expected.items() if clauses != "source decides" or id not in (18, 19)}
    check_no_file_is_left(path)


def test_merge_conflicts_with_delete_of_a_row_that_it_matched(
    spark: SparkSession, tmp_path: Path, rival: Rival
) -> None:
    """The row matched, so it was not inserted; then the other writer deleted it."""
    path = make(tmp_path / "t")
    rival.todo = [replace(path, 3)]
    source = spark.createDataFrame(pa.table({"id": [2, 3], "n": [5, 5]})).alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    merge = merge.whenMatchedUpdate("t.id = 2", {"n": "s.n"}).whenNotMatchedInsertAll()
    with pytest.raises(DeltaConcurrentModificationException):
        merge.execute()
    merge.execute()
    assert rows(path) == {**dict.fromkeys(range(ROWS), 0), 2: 5, 3: 5}
    check_no_file_is_left(path)


@pytest.mark.parametrize("named", ["path", "view", "subquery"])
def test_merge_from_its_target_conflicts_with_other_changes(
    spark: SparkSession, tmp_path: Path, rival: Rival, named: str
) -> None:
    """Each sets the value of the other's row: in sequence, both rows would have the same value."""
    path = make(tmp_path / "t")
    DeltaTable.forPath(spark, path).update("id = 12", {"n": "1"})
    read = spark.read.format("pydelta").load(f"file:{path}/" if named == "path" else path)
    read.createOrReplaceTempView("rows_of_target")
    frame = spark.table("rows_of_target") if named == "view" else read

    def copy(of: int, to: int) -> None:
        source = frame.where(f"id = {of}").selectExpr(f"{to}L AS id", "n").alias("s")
        if named == "subquery":
            source = spark.sql(f"SELECT {to}L AS id, (SELECT max(n) FROM rows_of_target WHERE id = {of}) AS n").alias("s")
        merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
        merge.whenMatchedUpdate(set={"n": "s.n"}).execute()

    rival.todo = [lambda: copy(2, 12)]
    with pytest.raises(DeltaConcurrentModificationException):
        copy(12, 2)
    check_no_file_is_left(path)


@pytest.mark.parametrize("options", [{"replaceUsing": "id"}, {"replaceOn": "t.id = s.id", "targetAlias": "t"}])
def test_replace_conflicts_only_if_another_deletes_matched_rows(
    spark: SparkSession, tmp_path: Path, rival: Rival, options: dict[str, str]
) -> None:
    path = make(tmp_path / "t")
    source = spark.createDataFrame(pa.table({"id": [2, 3, 3, 99], "n": [5, 6, 6, 7]})).alias("s")
    save = source.write.format("pydelta").mode("overwrite").options(**options)
    rival.todo = [replace(path, 1, n=7), replace(path, 3)]
    save.save(path)
    assert rows(path) == {**dict.fromkeys(range(ROWS), 0), 1: 7, 2: 5, 3: 6, 99: 7}
    deleted = [("delete", 2, 0), ("delete", 3, 0)]
    assert changes(path) == [*deleted, ("insert", 2, 5), ("insert", 3, 6), ("insert", 3, 6), ("insert", 99, 7)]
    with pytest.raises(DeltaConcurrentModificationException):
        save.save(path)
    assert 3 not in rows(path) and rows(path)[2] == 5
    check_no_file_is_left(path)


def test_delete_of_the_same_row_conflicts_and_leaves_nothing(spark: SparkSession, tmp_path: Path, rival: Rival) -> None:
    path = make(tmp_path / "t")
    rival.todo = [replace(path, 2)]
    with pytest.raises(ConcurrentDeleteDeleteException, match="took 1 rows out of the file"):
        DeltaTable.forPath(spark, path).delete("id IN (2, 3)")
    assert set(rows(path)) == set(range(ROWS)) - {2}
    check_no_file_is_left(path)


def test_conflict_of_a_large_delete_leaves_nothing_behind(spark: SparkSession, tmp_path: Path, rival: Rival) -> None:
    """So many row positions that tasks pass them in files."""
    path = str(tmp_path / "t")
    count = 1_200_000
    write_delta(path, pa.table({"id": range(count), "n": [0] * count}), configuration=VECTORS)
    rival.todo = [replace(path, 2)]
    with pytest.raises(ConcurrentDeleteDeleteException):
        DeltaTable.forPath(spark, path).delete("hash(id) % 2 = 0 OR id = 2")
    check_no_file_is_left(path)


def test_retries_repeat_the_operation_on_rows_of_other_writers(
    spark: SparkSession, tmp_path: Path, rival: Rival
) -> None:
    path = make(tmp_path / "t")
    rival.todo = [replace(path, 2, n=1), replace(path, 3, n=1), replace(path, 4, n=1)]
    with pytest.raises(ConcurrentAppendException, match="may hold rows that this one had to read"):
        DeltaTable.forPath(spark, path).update("id BETWEEN 2 AND 4", {"n": "n + 10"})
    DeltaTable.forPath(spark, path).update("id BETWEEN 2 AND 4", {"n": "n + 10"}, retries=2)
    assert rows(path) == {**dict.fromkeys(range(ROWS), 0), 2: 11, 3: 11, 4: 11}
    check_no_file_is_left(path)


def test_retries_that_do_not_suffice_raise_the_conflict(spark: SparkSession, tmp_path: Path, rival: Rival) -> None:
    path = make(tmp_path / "t")
    rival.todo = [replace(path, 2, n=1), replace(path, 2, n=2)]
    with pytest.raises(DeltaConcurrentModificationException):
        DeltaTable.forPath(spark, path).delete("id IN (2, 3)", retries=1)
    assert rows(path)[2] == 2
    with pytest.raises(InvalidOptionError, match="retries"):
        DeltaTable.forPath(spark, path).delete("id = 2", retries=-1)


def test_retries_of_a_merge_run_it_again(spark: SparkSession, tmp_path: Path, rival: Rival) -> None:
    path = make(tmp_path / "t")
    rival.todo = [replace(path, 2, n=1)]
    source = spark.createDataFrame(pa.table({"id": [2, 99], "n": [5, 5]})).alias("s")
    merge = DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id")
    merge.whenMatchedUpdate(set={"n": "t.n + s.n"}).whenNotMatchedInsertAll().execute(retries=1)
    assert rows(path) == {**dict.fromkeys(range(ROWS), 0), 2: 6, 99: 5}


def test_files_written_anew_conflict_over_other_rows_of_one_file(spark: SparkSession, tmp_path: Path, rival: Rival) -> None:
    path = make(tmp_path / "t", {})
    rival.todo = [replace(path, 1), replace(path, 15)]
    with pytest.raises(ConcurrentDeleteDeleteException):
        DeltaTable.forPath(spark, path).delete("id = 2")
    DeltaTable.forPath(spark, path).delete("id = 3")
    assert set(rows(path)) == set(range(ROWS)) - {1, 15, 3}
    check_no_file_is_left(path)


def test_condition_with_subquery_conflicts_with_any_change(
    spark: SparkSession, tmp_path: Path, rival: Rival
) -> None:
    path = make(tmp_path / "t")
    spark.read.format("pydelta").load(path).createOrReplaceTempView("all_rows")
    rival.todo = [replace(path, 1)]
    with pytest.raises((ConcurrentAppendException, ConcurrentDeleteReadException)):
        DeltaTable.forPath(spark, path).delete("id = (SELECT max(id) FROM all_rows)")
    check_no_file_is_left(path)
