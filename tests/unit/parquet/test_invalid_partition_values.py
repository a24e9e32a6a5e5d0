"""Partition values in the log that are not values of their column's type. Plain reads return null, as delta-spark does. A query
that filters by the column, or rewrites the rows, gets an error that names the file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.errors import CorruptTableError
from delta_py.expressions.parse import parse_predicate
from delta_py.protocol.actions import AddFile, Metadata, Protocol
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.file_pruner import FilePruner
from delta_py.scan.log_answers import Question, answer_from_log
from delta_py.scan.partition_numbers import partition_numbers
from delta_py.scan.scan_state import ColumnSource, ScanColumn
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import LONG, STRING, StructField, StructType, schema_to_json

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": pa.array([7, 8, 9], pa.int64()), "q": ["x", "y", None]})


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Rows 1 to 3, one in each file; the partition value p of row 2 is not a number."""
    return damaged(tmp_path / "t", "abc")


def damaged(path: Path, text: str, rows: pa.Table = ROWS, **options: Any) -> str:
    write_delta(str(path), rows, partition_by=["p", "q"], **options)
    log = path / f"_delta_log/{0:020d}.json"
    log.write_text(log.read_text().replace('"p":"8"', f'"p":"{text}"'))
    (path / f"_delta_log/{0:020d}.crc").unlink()
    return str(path)


def refused(table: str, *columns: str, where: str | None = None, text: str = "abc") -> None:
    with pytest.raises(CorruptTableError) as caught:
        DeltaTable(table).to_arrow(list(columns), where)
    error = caught.value
    assert (error.error_class, error.sql_state) == ("CAST_INVALID_INPUT", "22018")
    assert re.search(rf"p=8/.*\.parquet.* {text!r}.* column p .*bigint", error.message)
    assert error.message_parameters["column"] == "p" and error.message_parameters["value"] == text
    assert error.message_parameters["path"].startswith("p=8/")


@pytest.mark.parametrize("text", ["abc", "1" * 30, "8 9", "8x"])
def test_value_is_null_for_plain_reads_and_an_error_of_filters(tmp_path: Path, text: str) -> None:
    table = damaged(tmp_path / "t", text)
    rows = DeltaTable(table).to_arrow(["id", "p"]).sort_by("id").to_pylist()
    assert rows == [{"id": 1, "p": 7}, {"id": 2, "p": None}, {"id": 3, "p": 9}]
    refused(table, "id", "p", where="p = 7", text=text)


def test_rows_are_not_written_again_without_their_partition(tmp_path: Path) -> None:
    """Only the file knows the partition of the remaining row, and a new file would lose it."""
    two_in_a_file = pa.table({"id": pa.array([2, 4], pa.int64()), "p": pa.array([8, 8], pa.int64()), "q": ["y", "y"]})
    table = damaged(tmp_path / "t", "abc", two_in_a_file)
    with pytest.raises(CorruptTableError, match=r"CAST_INVALID_INPUT.*p=8/"):
        write_delta(table, two_in_a_file.slice(0, 0), mode="overwrite", replace_where="id = 4")
    assert DeltaTable(table).version == 0


@pytest.mark.parametrize("where", ["p = 8", "p = 7", "p is null", "p > 100", "not (p = 8)", "p in (8, 9) or id = 1"])
def test_filter_on_the_column_is_an_error_and_loses_no_file(table: str, where: str) -> None:
    refused(table, "id", where=where)


def test_column_that_is_not_asked_for_is_no_error(table: str) -> None:
    delta_table = DeltaTable(table)
    assert sorted(delta_table.to_arrow(["id"])["id"].to_pylist()) == [1, 2, 3]
    assert delta_table.to_arrow(["id", "q"], "q = 'y'").to_pylist() == [{"id": 2, "q": "y"}]


@pytest.mark.parametrize(
    "question", [Question(by=("p",)), Question(valued=("p",)), Question(minima=("p",)), Question(maxima=("p",))]
)
def test_log_gives_no_answer_on_the_column(table: str, question: Question) -> None:
    snapshot = Snapshot.load(LocalStore(table))
    assert answer_from_log(snapshot, question) is None
    counted = answer_from_log(snapshot, Question(by=("q",)))
    assert counted is not None and counted.num_rows == 3


def test_numbers_for_estimates_leave_the_column_out(table: str) -> None:
    snapshot = Snapshot.load(LocalStore(table))
    columns = {
        name: ScanColumn(field, field, ColumnSource.PARTITION) for name in ("p", "q") if (field := snapshot.schema.find(name))
    }
    assert partition_numbers(snapshot.files(), columns, "UTC") == {"q": {"distinct": 2}}


@pytest.mark.parametrize("options", [{"replace_where": "p = 8"}, {"partition_overwrite_mode": "dynamic"}])
def test_overwrite_that_needs_the_partition_value_is_refused(table: str, options: Any) -> None:
    new = ROWS.slice(1, 1)
    with pytest.raises(CorruptTableError, match=r"CAST_INVALID_INPUT.*p=8/"):
        write_delta(table, new, mode="overwrite", **options)
    assert DeltaTable(table).version == 0
    write_delta(table, new, mode="overwrite")
    assert DeltaTable(table).to_arrow().to_pylist() == new.to_pylist()


def test_change_feed_reads_null_too(tmp_path: Path) -> None:
    table = DeltaTable(damaged(tmp_path / "t", "abc", configuration={"delta.enableChangeDataFeed": "true"}))
    rows = table.changes(starting_version=0, columns=["id", "p"]).read_all()
    assert sorted((row["id"], row["p"]) for row in rows.to_pylist() if row["id"] != 2) == [(1, 7), (3, 9)]
    assert [row["p"] for row in rows.to_pylist() if row["id"] == 2] == [None]


def test_file_of_a_winning_commit_may_match_every_value() -> None:
    schema = StructType((StructField("p", LONG), StructField("q", STRING)))
    metadata = Metadata("m", schema_to_json(schema), ("p",))
    config = TableConfig(Protocol(1, 2), metadata)
    pruner = FilePruner.of(config, parse_predicate("p = 7", schema))
    adds = [AddFile(text, {"p": text}, 1, 1) for text in ("7", "8", "abc")]
    assert pruner.may_match(adds) == [True, False, True]
