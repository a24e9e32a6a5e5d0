"""Reports of the tables of the Delta projects: each table gives a report, or the error that opening the table raises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from delta_py import DeltaTable
from delta_py.errors import DeltaError
from delta_py.report.facts import Unknown
from delta_py.report.metrics import text_of
from tests.support.runs.sampling import sampled
from tests.support.tables.corpus import case_names, load_case


@pytest.mark.parametrize("name", sampled(case_names(), 6))
def test_table_has_a_report_that_agrees_with_its_files(name: str, corpus: Path) -> None:
    case = load_case(corpus, name)
    try:
        table = DeltaTable(case.table)
    except DeltaError:
        return  # test_tables.py tests tables that cannot be opened
    report = table.report(vacuum=True)
    facts = report.facts
    assert report.html().startswith("<!DOCTYPE html>") and json.loads(report.to_json()) and text_of(facts)
    assert not isinstance(facts.log, Unknown) and facts.log.newest_version == table.version
    try:
        files = table.files()
    except DeltaError as error:
        assert facts.files == Unknown(error.message)
        return
    assert not isinstance(facts.files, Unknown)
    assert (facts.files.count, facts.files.bytes) == (files.num_rows, sum(files["size"].to_pylist()))
    assert (facts.partitions is None) == (not table.metadata.partition_columns)
    try:
        history = table.history(limit=1_000)
    except DeltaError:
        assert isinstance(facts.commits, Unknown)
        return
    assert not isinstance(facts.commits, Unknown)
    assert [commit.version for commit in facts.commits.commits] == history["version"].to_pylist()
