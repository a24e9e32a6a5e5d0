"""The examples run, and show what they should show."""

from __future__ import annotations

import io
import re
import runpy
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from examples.demo import tour

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_demo_shows_rows_history_and_skipped_files(spark: SparkSession, tmp_path: Path) -> None:
    output = io.StringIO()
    tour(spark, tmp_path, Console(file=output, width=120))
    text = output.getvalue()
    assert "1,461 rows" in text
    assert "version 0: 366 days, up to 2012-12-31" in text
    assert "version 3: 1,461 days, up to 2015-12-31" in text
    assert re.search(r"as of [\d :.-]+: 731 days", text)
    skipped = [int(number) for number in re.findall(r"(\d+) of 16 files skipped", text)]
    assert len(skipped) == 4
    assert all(number > 0 for number in skipped), "a query of the demo skips no file"
    assert re.search(r"1 +│ insert +│ 3049", text)


def test_quickstart_runs_cell_by_cell(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    assert spark.version  # the quickstart uses the existing session
    runpy.run_path(str(EXAMPLES / "quickstart.py"))
    text = capsys.readouterr().out
    assert "version 0 has 1,096 rows, the newest version 1,461" in text
    assert "snow" in text
