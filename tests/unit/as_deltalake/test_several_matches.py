"""MERGE with several rows of the source that match one row of the table: as in deltalake; delta_py follows delta-spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from delta_py import as_deltalake as ours
from delta_py.errors import UnsupportedOperationError
from delta_py.row_changes import merge_join

TABLE = pa.table({"id": [1, 2, 3], "n": [10, 20, 30]})
# Row 1 matches nothing, row 2 two rows, row 3 three rows; id 9 matches no row of the table.
SOURCE = pa.table({"id": [2, 2, 3, 3, 3, 9], "n": [1, 2, 3, 4, 5, 6], "op": ["u", "-", "-", "d", "-", "u"]})

Build = Callable[[Any], Any]
CASES: dict[str, Build] = {
    "one update of each row": lambda m: m.when_matched_update({"n": "s.n"}, "s.op = 'u'"),
    "updates of all matches": lambda m: m.when_matched_update({"n": "s.n"}),
    "updates of two matches": lambda m: m.when_matched_update({"n": "s.n"}, "s.n IN (3, 4)"),
    "update of all columns": lambda m: m.when_matched_update_all("s.op = 'u'", except_cols=["op"]),
    "delete of all matches": lambda m: m.when_matched_delete(),
    "delete of one match": lambda m: m.when_matched_delete("s.op = 'd'"),
    "deletes of two matches": lambda m: m.when_matched_delete("s.n IN (3, 4)"),
    "update and delete of one row": lambda m: m.when_matched_update({"n": "s.n"}, "s.op = 'u'").when_matched_delete(),
    "update of one row, delete of another": lambda m: m.when_matched_update({"n": "s.n"}, "s.op = 'u'").when_matched_delete(
        "s.op = 'd'"
    ),
    "two conditional clauses for one row": lambda m: m.when_matched_update({"n": "0"}, "s.n = 1").when_matched_update(
        {"n": "1"}, "s.n = 2"
    ),
    "inserts next to idle matches": lambda m: m.when_matched_update({"n": "s.n"}, "s.op = 'u'").when_not_matched_insert(
        {"id": "s.id", "n": "s.n"}
    ),
    "inserts alone": lambda m: m.when_not_matched_insert({"id": "s.id", "n": "s.n"}),
    "rows without a match": lambda m: m.when_matched_delete("s.op = 'd'").when_not_matched_by_source_update({"n": "-1"}),
}
REFUSED = {
    *("updates of all matches", "updates of two matches", "deletes of two matches"),
    *("update and delete of one row", "two conditional clauses for one row"),
}


def result(library: Any, path: Path, build: Build) -> Any:
    """The rows after the MERGE, or the first words of the error."""
    library.write_deltalake(path, TABLE)
    table = library.DeltaTable(path)
    merger = table.merge(SOURCE, "t.id = s.id", source_alias="s", target_alias="t")
    try:
        build(merger).execute()
    except library.exceptions.DeltaError as error:
        assert "duplicate relevant WHEN MATCHED" in str(error)
        assert table.version() == 0
        return "refused"
    return sorted(table.to_pyarrow_table().to_pylist(), key=str)


@pytest.mark.parametrize("pairs", [1 << 18, 1], ids=["at once", "pair by pair"])
@pytest.mark.parametrize("case", CASES)
def test_several_matches_have_deltalakes_result(tmp_path: Path, case: str, pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_join, "_MOST_PAIRS", pairs)
    rows = result(ours, tmp_path / "ours", CASES[case])
    assert rows == result(deltalake, tmp_path / "theirs", CASES[case])
    assert (rows == "refused") == (case in REFUSED)


def test_merge_refuses_matches_without_a_clause_as_delta_spark(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, TABLE)
    merger = ours.DeltaTable(tmp_path).as_delta.merge(SOURCE, "t.id = s.id", "s", "t")
    with pytest.raises(UnsupportedOperationError, match="more than one row of the source"):
        merger.when_matched_update({"n": "s.n"}, "s.op = 'u'").execute()


def test_change_feed_has_one_change_of_each_row(tmp_path: Path) -> None:
    ours.write_deltalake(tmp_path, TABLE, configuration={"delta.enableChangeDataFeed": "true"})
    table = ours.DeltaTable(tmp_path)
    table.merge(SOURCE, "t.id = s.id", "s", "t").when_matched_delete().execute()
    changes = pa.table(table.load_cdf(starting_version=1, columns=["id", "_change_type"])).to_pylist()
    assert sorted(changes, key=str) == [{"id": 2, "_change_type": "delete"}, {"id": 3, "_change_type": "delete"}]
