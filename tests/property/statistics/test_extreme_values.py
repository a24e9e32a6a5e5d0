"""Tables by three writers that hold the extreme values of every type: each value is found, whatever its bounds are."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_py import DeltaTable
from delta_py.expressions.evaluate import evaluate
from delta_py.expressions.parse import parse_predicate
from delta_py.expressions.resolve import resolve_condition
from delta_py.scan.file_pruner import FilePruner
from delta_py.scan.log_answers import Question, answer_from_log
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import from_arrow_schema
from tests.support.generators.extreme_values import COLUMNS, ROWS, WRITERS, lookups, rows
from tests.support.runs.sampling import sampled

ALL_ROWS = rows()
SCHEMA = from_arrow_schema(ALL_ROWS.schema)
CASES = [(writer, column) for writer in WRITERS for column in COLUMNS]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("extremes")

    @cache
    def write(writer: str) -> Path:
        path = folder / writer
        WRITERS[writer](path)
        return path

    return write


def matching(condition: str) -> set[int]:
    """The numbers of the rows for which it is true; no file is skipped."""
    predicate = resolve_condition(parse_predicate(condition, SCHEMA), SCHEMA).expression
    (batch,) = ALL_ROWS.to_batches()
    return set(batch["n"].filter(evaluate(predicate, batch).fill_null(False)).to_pylist())


def row_of(path: str) -> int:
    """The number of the row in a file. The writers put it into the file's path in two ways."""
    return int(path.split("n=")[-1].split("/")[0].removesuffix(".parquet"))


@pytest.mark.parametrize("writer", WRITERS)
def test_no_file_with_a_matching_row_is_skipped(writer: str, written: Any) -> None:
    snapshot = Snapshot.load(LocalStore(str(written(writer))))
    lost, skipped = {}, 0
    for column in COLUMNS:
        leaves = {(column,): next(f.data_type for f in SCHEMA.fields if f.name == column)}
        batches = list(snapshot.file_batches(leaves))
        for condition in sampled(lookups(column), 24):
            pruner = FilePruner.of(snapshot.config, parse_predicate(condition, SCHEMA))
            remaining_rows = {row_of(path) for batch in batches for path in pruner.prune_batch(batch).files["path"].to_pylist()}
            missing = matching(condition) - remaining_rows
            skipped += ROWS - len(remaining_rows)
            if missing:
                lost[condition] = missing
    assert lost == {}
    assert skipped > ROWS, "files are skipped by their bounds"


@pytest.mark.parametrize(("writer", "column"), sampled(CASES, 48))
def test_every_value_is_read_updated_merged_and_deleted(writer: str, column: str, written: Any, tmp_path: Path) -> None:
    path = shutil.copytree(written(writer), tmp_path / "table")
    conditions = sampled(lookups(column, ("=",)), 5)
    for condition in conditions:
        assert set(DeltaTable(str(path)).to_arrow(["n"], filter=condition)["n"].to_pylist()) == matching(condition), condition
    merged = shutil.copytree(path, tmp_path / "merged")
    source = pa.table({column: COLUMNS[column], "changed": pa.array(range(len(COLUMNS[column])), pa.int32())})
    merge = DeltaTable(str(merged)).merge(source, f"t.{column} = s.{column}", source_alias="s", target_alias="t")
    metrics = merge.when_matched_update({"changed": "s.changed"}).when_not_matched_insert({"n": "-1"}).execute()
    assert (metrics["numTargetRowsUpdated"], metrics["numTargetRowsInserted"]) == (ROWS, 0)
    for condition in conditions:
        updated = DeltaTable(str(path)).update({"changed": "1"}, predicate=condition)["numUpdatedRows"]
        assert updated == len(matching(condition)), condition
    for condition in conditions:
        assert DeltaTable(str(path)).delete(condition)["numDeletedRows"] == len(matching(condition)), condition


@pytest.mark.parametrize("writer", WRITERS)
def test_log_answers_with_a_value_or_not_at_all(writer: str, written: Any) -> None:
    snapshot = Snapshot.load(LocalStore(str(written(writer))))
    for column in COLUMNS:
        answer = answer_from_log(snapshot, Question(minima=(column,), maxima=(column,)))
        if answer is not None:
            expected = pc.min_max(ALL_ROWS[column])
            assert (answer["min0"][0], answer["max0"][0]) == (expected["min"], expected["max"]), column
