"""repr and HTML of DeltaTable: what they show, that they are safe for terminals and pages, and that they never raise."""

from __future__ import annotations

import logging
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import DeltaTable, as_deltalake, write_delta
from delta_py.table_methods.table_summary import ColumnSummary, TableSummary
from delta_py.types.schema import LONG, StructField, StructType
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add

SCRIPT = "<script>alert</script>"


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "t")
    write_delta(path, pa.table({"id": range(1_200), "part": ["a", "b"] * 600}), partition_by=["part"])
    return path


class Tags(HTMLParser):
    """The tags of a document, and its text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_repr_has_version_rows_files_size_and_columns(path: str) -> None:
    first, state, columns = repr(DeltaTable(path)).splitlines()
    assert first == f"DeltaTable({path!r}, version=0)"
    assert state.startswith("  1,200 rows, 2 files, ") and state.endswith(" KiB")
    assert columns == "  id bigint, part string"
    assert repr(as_deltalake.DeltaTable(path)) == repr(DeltaTable(path))


def test_html_has_the_same_as_a_table(path: str) -> None:
    page = Tags(DeltaTable(path)._repr_html_())
    assert {"table", "td"} <= page.tags
    for word in (path, "version 0", "1,200 rows, 2 files", "id", "bigint", "part", "string"):
        assert word in page.text
    assert as_deltalake.DeltaTable(path)._repr_html_() == DeltaTable(path)._repr_html_()


def test_repr_follows_the_object_to_another_version(path: str) -> None:
    table = DeltaTable(path)
    assert "version=0" in repr(table)
    table.delete()
    assert "version=0" in repr(table)
    table.update_incremental()
    assert "version=1" in repr(table) and "0 rows, 0 files, 0 bytes" in repr(table)


def test_repr_counts_no_deleted_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, pa.table({"id": [1, 2, 3]}), configuration={"delta.enableDeletionVectors": "true"})
    DeltaTable(path).delete("id = 2")
    assert "  2 rows, 1 file" in repr(DeltaTable(path))


def test_rows_of_files_without_statistics_are_unknown() -> None:
    store = MemoryStore()
    TableBuilder(store).create(add("0", stats=None), add("1", stats=None))
    table = DeltaTable("/t", store=store)
    store.calls.clear()
    assert "  unknown number of rows, 2 files, " in repr(table) and "unknown number of rows" in table._repr_html_()
    assert [path for _, path in store.calls if path.endswith("parquet")] == []


def test_html_of_a_hostile_table_is_text(tmp_path: Path) -> None:
    path = str(tmp_path / SCRIPT.replace("/", "|"))
    comment = f"{SCRIPT}<img src=x onerror=alert>"
    DeltaTable.create(path, StructType((StructField(f"{SCRIPT}\u202e", LONG, metadata={"comment": comment}),)))
    hostile = TableSummary(SCRIPT, 0, columns=(ColumnSummary(SCRIPT, SCRIPT, SCRIPT),), column_count=1, problem=SCRIPT)
    for document in (DeltaTable(path)._repr_html_(), hostile.html()):
        page = Tags(document)
        assert page.tags <= {"p", "b", "bdi", "table", "thead", "tbody", "tr", "th", "td"}
        assert page.text.count("<script>") >= 3 and "\u202e" not in document
    assert "\u202e" not in repr(DeltaTable(path)) and "\\u202e" in repr(DeltaTable(path))


def test_repr_of_a_wide_table_is_short(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_delta(path, pa.table({f"c{number}": [number] for number in range(300)}))
    table = DeltaTable(path)
    assert "c19 bigint, and 280 more columns" in repr(table) and "and 100 more columns" in table._repr_html_()


def test_repr_of_a_broken_table_says_what_is_wrong(path: str) -> None:
    table = DeltaTable(path)
    shutil.rmtree(path)
    Path(path).write_text("no table any more")
    for text in (repr(table), Tags(table._repr_html_()).text):
        assert path in text and "id" in text and len(text.splitlines()[-1]) > 20 and "[DELTA_" not in text
    assert "rows" not in repr(table).splitlines()[1]


def test_repr_of_an_object_that_was_not_opened_does_not_raise() -> None:
    table = object.__new__(DeltaTable)
    assert repr(table).startswith("DeltaTable('not opened')") and "AttributeError" in repr(table)


def test_repr_shows_no_secret_of_a_url(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore(root="s3://KEY:s3cret@bucket/t?sig=t0ken")
    TableBuilder(store).create(add("0"))
    table = DeltaTable("s3://bucket/t", store=store)
    with caplog.at_level(logging.DEBUG):
        shown = repr(table) + table._repr_html_()
    assert "s3cret" not in shown + caplog.text and "t0ken" not in shown + caplog.text and "bucket/t" in shown
