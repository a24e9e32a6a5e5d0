"""repr and HTML of Spark's DeltaTable, without a session: the table is read in this process, and answers travel as data."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import write_delta
from delta_py.errors import StorageError
from delta_py.object_stores.open_store import open_store
from delta_py.storage.store_options import StorageOptions
from delta_py.table_methods.table_summary import ColumnSummary, TableSummary
from spark_plugin import DeltaTable
from spark_plugin.maintenance import summary_job
from spark_plugin.options.settings import TablePath
from spark_plugin.tasks.task_answers import from_text, to_text


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session whose driver reads the tables, with no settings for stores."""
    monkeypatch.setattr(summary_job, "active", lambda spark: nullcontext())
    monkeypatch.setattr(summary_job, "at_table", lambda spark, step: from_text(to_text(step())))
    monkeypatch.setattr(TablePath, "open_store", lambda self, spark: open_store(self.url, StorageOptions.of(self.storage)))


def test_repr_shows_the_newest_version_and_catalog_name(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, pa.table({"id": [1, 2]}))
    by_path, by_name = DeltaTable(None, TablePath(path)), DeltaTable(None, TablePath(path, name="`shop`.`orders`"))
    assert repr(by_path).startswith(f"DeltaTable({path!r}, version=0)\n  2 rows, 1 file, ")
    write_delta(path, pa.table({"id": [3]}), mode="append")
    assert repr(by_name).startswith("DeltaTable('`shop`.`orders`', version=1)\n  3 rows, 2 files, ")
    assert "<bdi>`shop`.`orders`</bdi>" in by_name._repr_html_() and "3 rows, 2 files" in by_name._repr_html_()


def test_repr_of_a_missing_table_says_so_and_shows_no_secret(tmp_path: Path) -> None:
    table = DeltaTable(None, TablePath(str(tmp_path / "none"), {"s3.secret_access_key": "s3cret-key"}))
    for shown in (repr(table), table._repr_html_()):
        assert "does not exist" in shown and str(tmp_path / "none") in shown and "s3cret" not in shown


@pytest.mark.parametrize("error", [RuntimeError("The session has ended."), StorageError("The session has ended.")])
def test_repr_after_the_end_of_a_session_does_not_raise(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def ended(spark: Any) -> Any:
        raise error

    monkeypatch.setattr(summary_job, "active", ended)
    shown = repr(DeltaTable(None, TablePath("s3://KEY:s3cret@bucket/t?sig=t0ken")))
    assert "The session has ended." in shown and "s3cret" not in shown and "t0ken" not in shown and "bucket/t" in shown


def test_summary_travels_as_data() -> None:
    summary = TableSummary("t", 1, 2, 3, 4, (ColumnSummary("id", "bigint", None),), 1, "none")
    assert from_text(to_text(summary)) == summary
