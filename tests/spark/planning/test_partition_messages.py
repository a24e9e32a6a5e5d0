"""Messages of the source to the rule are in pickled partitions. A table may contain any text, and no text of a table is treated
as a message.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from delta_py import write_delta
from spark_plugin import pruning
from spark_plugin.pruning import MessagePartition, plan_message
from tests.spark.planning.parquet_source import FORMAT, ParquetReader, ParquetSource


def forged(message: dict[str, Any]) -> str:
    """A complete pickled partition with this plan, as text."""
    return pickle.dumps(MessagePartition(plan_message(message, "id"))).decode("latin-1")


KEPT = forged({"kept": {"files": 7, "files_total": 9, "bytes": 77, "bytes_total": 99, "rows": None}})
FACTS = json.dumps({"plan": json.dumps({"joins": {"rows": 1, "partition_columns": ["no"], "columns": {}}})})


@pytest.fixture
def unharmed(spark: SparkSession) -> Iterator[None]:
    """No plan was unpruned, and no question and no join failed."""
    before = pruning.status(spark)
    yield
    after = pruning.status(spark)
    errors = (after.last_error, after["log"].last_error, after["joins"].last_error)
    assert errors[1:] == (before["log"].last_error, before["joins"].last_error)
    assert after["pruning"].skipped == before["pruning"].skipped, errors


@pytest.fixture
def table(tmp_path: Path) -> str:
    """One file of three rows. Its name is one text, its partition value another."""
    path, name = tmp_path / "table", f"{FACTS}.parquet"
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": [KEPT] * 3})
    write_delta(str(path), rows, partition_by=["p"])
    (file,) = path.rglob("*.parquet")
    file.rename(path / name)
    for crc in (path / "_delta_log").glob("*.crc"):
        crc.unlink()
    commit = path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = quote(name)
    commit.write_text("\n".join(map(json.dumps, actions)))
    return str(path)


def test_values_and_names_of_a_table_are_not_taken_for_messages(table: str, spark: SparkSession, unharmed: None) -> None:
    df = spark.read.format("pydelta").option("logAnswers", "false").load(table)
    size = next(Path(table).glob("*.parquet")).stat().st_size
    assert df.orderBy("id").collect() == [Row(id=n, p=KEPT) for n in (1, 2, 3)]
    assert df.count() == 3
    assert size_of(df) == size_of(df.filter("id > 0")) == size > size_of(df.select())
    assert df.alias("a").join(df.alias("b"), "p").count() == 9
    assert df.crossJoin(df.select()).count() == 9
    assert df.limit(2).count() == 2
    report = pruning.status(spark).last_scan
    assert report is not None
    assert (report.files_kept, report.files_total, report.bytes_kept, report.bytes_total) == (1, 1, size, size)


def size_of(df: DataFrame) -> int:
    return int(str(df._jdf.queryExecution().optimizedPlan().collectLeaves().head().stats().sizeInBytes()))


class ForgingSource(ParquetSource):
    """Has no answer, but its partitions contain a value that looks like one."""

    @classmethod
    def name(cls) -> str:
        return FORMAT + "_forging"

    def reader(self, schema: StructType) -> DataSourceReader:
        return ForgingReader(dict(self.options), schema)


class ForgingReader(ParquetReader):
    def partitions(self) -> Sequence[InputPartition]:
        partitions: Any = super().partitions()
        partitions[0].value = forged_answer()
        return partitions


def forged_answer() -> str:
    """Seven rows; the largest is 70."""
    answer = pa.table({"rows": pa.array([7], pa.int64()), "id": pa.array([70], pa.int64())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, answer.schema) as writer:
        writer.write_table(answer)
    return forged({"road": "log", "answer": base64.b64encode(sink.getvalue().to_pybytes()).decode()})


def test_partition_value_is_not_mistaken_for_a_log_answer(spark: SparkSession, tmp_path: Path, unharmed: None) -> None:
    spark.range(3).coalesce(1).write.parquet(str(tmp_path / "rows"))
    spark.dataSource.register(ForgingSource)
    assert pruning.install(spark, ForgingSource.name())
    before = pruning.status(spark)["log"].used
    df: DataFrame = spark.read.format(ForgingSource.name()).load(str(tmp_path / "rows"))
    assert df.selectExpr("count(*)", "max(id)").collect() == [(3, 2)]
    assert pruning.status(spark)["log"].used == before
