"""A script of a user of delta-spark runs on pydelta with one line more. tests/interop runs it on delta-spark."""

from __future__ import annotations

from pathlib import Path

from tests.support.peers import orders_peers
from tests.support.spark.spark_script import run_script


def test_delta_spark_script_runs_on_pydelta_with_one_more_line(tmp_path: Path) -> None:
    found = run_script(orders_peers.of_pydelta(), str(tmp_path), timeout_seconds=550)
    assert (found["engine"], found["providers"]) == ("pydelta", ["delta", "delta"])
