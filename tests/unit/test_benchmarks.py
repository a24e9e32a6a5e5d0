"""The tables that the benchmarks measure are what they say, so that a number is the number of the right thing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.compute as pc
import pytest

from benchmarks import bench, chart, make_log_table, make_query_tables, make_scan_table, query_part, query_run, state_run
from delta_py import DeltaTable

ROOT = Path(__file__).parents[2]


def test_log_table_has_the_files_and_prunes_to_one(tmp_path: Path) -> None:
    make_log_table.make_table(str(tmp_path / "t"), files=3_000, columns=10, commits=20)
    table = DeltaTable(str(tmp_path / "t"))
    assert table.version == 20
    assert table.files().num_rows == 3_000 + 20 * make_log_table.ADDS_PER_COMMIT
    assert table.scan(filter="id = 1500500").report.files_kept == 1


@pytest.mark.parametrize("reader", bench.STATE_READERS)
def test_state_run_prints_what_it_measured(reader: str, tmp_path: Path) -> None:
    assert set(bench.STATE_READERS) == set(state_run.READERS)
    make_log_table.make_table(str(tmp_path / "t"), files=300, columns=10, commits=2)
    command = [sys.executable, "benchmarks/state_run.py", reader, str(tmp_path / "t"), "150500"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=True
    )
    result = json.loads(done.stdout)
    assert result["files"] == 1
    assert result["seconds"] > 0
    assert result["peak_mb"] > 20


def test_scan_table_loses_a_tenth_of_its_rows_to_deletion_vectors(tmp_path: Path) -> None:
    left = make_scan_table.make_table(str(tmp_path / "t"), rows=16_000)
    assert 14_000 < left < 14_800
    whole = DeltaTable(str(tmp_path / "t"), version=0).to_arrow()
    assert whole.num_rows == 16_000
    assert pc.count_distinct(whole["id"]).as_py() == 16_000
    assert DeltaTable(str(tmp_path / "t")).to_arrow().num_rows == left


def test_report_names_the_ratios_and_their_targets() -> None:
    ours = {"files": 1, "seconds": 0.5, "cpu_seconds": 0.6, "peak_mb": 300.0, "import_seconds": 0.3}
    peers = {**ours, "seconds": 1.0, "peak_mb": 400.0}
    found = {reader: ours if reader.startswith("pydelta") else peers for reader in bench.STATE_READERS}
    text = bench.state_text(300_000, found)
    assert "Time 0.50x of deltalake (target: at most 0.6x), memory 0.75x" in text


@pytest.mark.parametrize("writer", ["pydelta", "deltalake"])
def test_checkpoint_run_writes_a_checkpoint_and_prints_what_it_measured(writer: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    make_log_table.make_table(path, files=200, commits=3)
    command = [sys.executable, "benchmarks/checkpoint_run.py", writer, path, "--both-forms"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=True
    )
    result = json.loads(done.stdout)
    assert result["files"] == 200 + 3 * make_log_table.ADDS_PER_COMMIT and result["seconds"] > 0
    assert os.path.exists(os.path.join(path, "_delta_log", f"{4:020d}.checkpoint.parquet"))


def test_query_tables_hold_the_same_rows_in_each_layout(tmp_path: Path) -> None:
    make_query_tables.make_tables(tmp_path / "q", rows=16_000, scale=0.001)
    columns = ["id", "kind", "price"]
    plain = DeltaTable(str(tmp_path / "q" / "plain")).to_arrow(columns=columns)
    for layout, directories in (("partitioned", 20), ("hundred", 100)):
        table = DeltaTable(str(tmp_path / "q" / layout))
        assert len({str(values) for values in table.files()["partition_values"].to_pylist()}) == directories
        assert table.to_arrow(columns=columns).sort_by("id").equals(plain.sort_by("id"))
    deleted = DeltaTable(str(tmp_path / "q" / "deleted")).to_arrow(columns=["id"])
    assert 14_000 < deleted.num_rows < 14_800
    lines = DeltaTable(str(tmp_path / "q" / "tpch" / "lineitem")).to_arrow()
    orders = DeltaTable(str(tmp_path / "q" / "tpch" / "orders")).to_arrow()
    assert lines.num_rows == 6_000 and orders.num_rows == 1_500
    assert lines.join(orders, "l_orderkey", "o_orderkey", join_type="left anti").num_rows == 0


def test_query_text_gives_ratios_to_both_peers_and_the_target() -> None:
    text = query_part.query_text(
        {"count": {"parquet": 0.5, "delta": 2.0, "pydelta": 1.0}, "scan after deletes": {"delta": 2.0, "pydelta": 3.0}}
    )
    assert "| count | 0.50 s | 2.00 s | 1.00 s | 0.50x | 2.00x | at most 1.0x |" in text
    assert "| scan after deletes |  | 2.00 s | 3.00 s | 1.50x |  |  |" in text


def test_every_target_names_a_query_that_is_measured() -> None:
    assert query_part.TARGETS.keys() <= {query.name for query in query_run.queries(1000)}


def test_chart_has_a_bar_for_each_workload_and_cuts_long_ones() -> None:
    picture = ElementTree.fromstring(chart.ratio_chart({"one <column>": 0.5, "slow": 9.0}, "today"))
    _, *bars = picture.iter("{http://www.w3.org/2000/svg}rect")
    widths = [float(bar.attrib["width"]) for bar in bars]
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert widths[1] == 4 * widths[0]
    assert {"one <column>", "slow", "0.50", "9.00"} <= set(texts)
