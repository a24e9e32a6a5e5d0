"""The tables that the benchmarks measure are what they claim to be, so that each number measures the right thing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks import bench, chart
from benchmarks.library import state_run, stores_run
from benchmarks.parts import query_part, roads_part, stores_part
from benchmarks.spark import query_run
from benchmarks.tables import bench_store, make_log_table, make_query_tables, make_scan_table, make_store_tables
from delta_py import DeltaTable
from delta_py.checkpoint.checkpoint_check import open_checkpoint
from delta_py.log.commit_reader import CommitReader
from delta_py.log.segment import load_segment
from delta_py.object_stores.open_store import open_store
from tests.support.servers.cutting_proxy import Exchange, Request
from tests.support.stores.memory_store import MemoryStore

ROOT = Path(__file__).parents[3]


def test_log_table_has_the_files_and_prunes_to_one(tmp_path: Path) -> None:
    make_log_table.make_table(str(tmp_path / "t"), files=3_000, columns=10, commits=20)
    table = DeltaTable(str(tmp_path / "t"))
    assert table.version == 20
    assert table.files().num_rows == 3_000 + 20 * make_log_table.ADDS_PER_COMMIT
    assert table.scan(filter="id = 1500500").report.files_kept == 1


@pytest.mark.parametrize("sidecars", [False, True])
@pytest.mark.parametrize("stats_struct", [False, True])
def test_log_table_may_have_its_checkpoint_in_parts(sidecars: bool, stats_struct: bool, tmp_path: Path) -> None:
    parts = {"parts": 3, "sidecars": sidecars, "row_group_rows": 300}
    make_log_table.make_table(str(tmp_path / "t"), files=1_000, stats_json=not stats_struct, stats_struct=stats_struct, **parts)
    table = DeltaTable(str(tmp_path / "t"))
    store = open_store(str(tmp_path / "t"))
    checkpoint = load_segment(store, 0).checkpoint
    assert checkpoint is not None
    reader = open_checkpoint(store, checkpoint, CommitReader(store))
    assert len(reader.sidecars if sidecars else reader.top_parts) == 3
    assert reader.names_each_file_once, "_last_checkpoint should say how many files there are"
    assert table.files().num_rows == 1_000 + 20 * make_log_table.ADDS_PER_COMMIT
    assert table.scan(filter="id = 500500").report.files_kept == 1


@pytest.mark.parametrize("reader", bench.STATE_READERS)
def test_state_run_prints_what_it_measured(reader: str, tmp_path: Path) -> None:
    assert set(bench.STATE_READERS) == set(state_run.READERS)
    make_log_table.make_table(str(tmp_path / "t"), files=300, columns=10, commits=2)
    command = [sys.executable, "benchmarks/library/state_run.py", reader, str(tmp_path / "t"), "150500"]
    process = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=True
    )
    result = json.loads(process.stdout)
    assert result["files"] == 1
    assert result["seconds"] > 0
    assert result["peak_mb"] > 20


def test_index_run_prints_what_it_measured() -> None:
    command = [sys.executable, "benchmarks/library/index_run.py", "--files", "20", "--rows", "50", "--lookups", "3"]
    process = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=True
    )
    result = json.loads(process.stdout)
    assert (result["files"], result["segments"], result["most_files_opened"]) == (20, 1, 1)


def test_scan_table_deletes_a_tenth_of_its_rows_by_vectors(tmp_path: Path) -> None:
    left = make_scan_table.make_table(str(tmp_path / "t"), rows=16_000)
    assert 14_000 < left < 14_800
    full_rows = DeltaTable(str(tmp_path / "t"), version=0).to_arrow()
    assert full_rows.num_rows == 16_000
    assert pc.count_distinct(full_rows["id"]).as_py() == 16_000
    assert DeltaTable(str(tmp_path / "t")).to_arrow().num_rows == left


def test_report_names_the_ratios_and_their_targets() -> None:
    ours = {"files": 1, "seconds": 0.5, "cpu_seconds": 0.6, "peak_mb": 300.0, "import_seconds": 0.3}
    peers = {**ours, "seconds": 1.0, "peak_mb": 400.0}
    results = {reader: ours if reader.startswith("pydelta") else peers for reader in bench.STATE_READERS}
    text = bench.state_text(300_000, results)
    assert "Time 0.50x of deltalake (target: at most 0.45x), memory 0.75x" in text


def test_scale_benchmark_runs_only_when_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench.py"])
    assert "scale" in bench.PARTS and "scale" not in bench.parse_arguments().only
    text = "\n".join(bench.PARTS["scale"](tmp_path, replace(bench.QUICK, scale_files=2_000), tmp_path).text)
    assert "## Scale: open 2,000 files and prune to one" in text


@pytest.mark.parametrize("writer", ["pydelta", "deltalake"])
def test_checkpoint_run_writes_checkpoint_and_prints_results(writer: str, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    make_log_table.make_table(path, files=200, commits=3)
    command = [sys.executable, "benchmarks/library/checkpoint_run.py", writer, path, "--both-forms"]
    process = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=True
    )
    result = json.loads(process.stdout)
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
    large = DeltaTable(str(tmp_path / "q" / "large")).to_arrow(columns=columns).sort_by("id")
    assert large.num_rows == 16_000 and large["id"].equals(plain.sort_by("id")["id"])
    for layout, values in (("large", {"[]"}), ("parted", {f"[('part', '{n}')]" for n in range(4)})):
        table = DeltaTable(str(tmp_path / "q" / layout))
        assert {str(each) for each in table.files()["partition_values"].to_pylist()} == values
        assert table.to_arrow(columns=columns).sort_by("id").equals(large)
        for path in table.files()["path"].to_pylist():
            footer = pq.ParquetFile(tmp_path / "q" / layout / path).metadata
            assert footer.num_row_groups == 1 and footer.row_group(0).column(0).has_offset_index
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
    assert "| scan after deletes |  | 2.00 s | 3.00 s | 1.50x |  | at most 0.6x |" in text


def test_sum_of_the_warehouses_queries_is_said_beside_both_peers() -> None:
    medians = {
        "count": {"parquet": 9.0, "delta": 9.0, "pydelta": 9.0},
        "TPC-H 1": {"parquet": 1.0, "delta": 3.0, "pydelta": 2.0},
        "TPC-H 6": {"parquet": 1.0, "delta": 1.0, "pydelta": 1.0},
    }
    sum_text = "All TPC-H-like queries: 1.50x of Spark's Parquet reader (target: at most 1.05x)"
    assert query_part._sum_text(medians) == f"{sum_text}, 0.75x of delta-spark."
    assert "delta-spark" not in query_part._sum_text({"TPC-H 1": {"parquet": 1.0, "pydelta": 2.0}})


def test_lookups_of_threads_are_told_with_their_tail() -> None:
    times = {"seconds": [5.0, 5.0], "latencies": [0.1] * 980 + [2.0] * 20}
    assert query_part._lookups_row("pydelta", times) == ["pydelta", "100.0", "0.10 s", "2.00 s"]


def test_every_target_names_a_query_that_is_measured() -> None:
    assert query_part.TARGETS.keys() <= {query.name for query in query_run.queries(1000)}


def test_operation_is_measured_alone_beside_the_tuned_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands: list[list[str]] = []
    settings: list[str] = []

    def run(command: list[str], environment: dict[str, str]) -> dict[str, object]:
        commands.append(command)
        settings.append(environment["PYDELTA_BENCH_SETTINGS"])
        return {"seconds": [2.0 if "delta" in command else 1.0], "left": [], "peak_mb": 1}

    monkeypatch.setattr("benchmarks.parts.dml_part.run_json", run)
    monkeypatch.setattr("benchmarks.parts.dml_part.query_tables", lambda directory, sizes: directory / str(sizes.scan_rows))
    monkeypatch.setattr("benchmarks.parts.dml_part.peer_python", lambda peer: Path("python"))
    monkeypatch.setattr(bench, "keep", None)
    monkeypatch.setattr(
        sys, "argv", ["bench.py", "--operation", "z-order by 4 columns", "--rows", "1000000", "--directory", str(tmp_path)]
    )
    bench.main()
    assert "| z-order by 4 columns | tuned | 2.00 s | 1.00 s | 0.50x | at most 1.0x |" in capsys.readouterr().out
    assert settings == ["tuned", "tuned"]
    assert [command[command.index("--rows") + 1] for command in commands] == ["1000000", "1000000"]


def test_first_queries_take_turns_and_must_give_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, odd = list[tuple[str, str]](), dict[str, int]()

    def run(command: Sequence[str], environment: dict[str, str]) -> dict[str, Any]:
        source, query = (command[command.index(option) + 1] for option in ("--format", "--query"))
        runs.append((source, query))
        seconds = {"spark": 100, "pydelta": 300, "delta": 600}[source]
        return {"rows": [[query, odd.get(source)]], "at": time.time() + seconds, "spark": "4.2.0"}

    monkeypatch.setattr("benchmarks.parts.first_part.run_json", run)
    monkeypatch.setattr("benchmarks.parts.first_part.query_tables", lambda directory, sizes: directory)
    monkeypatch.setattr("benchmarks.parts.first_part.peer_python", lambda peer: peer)
    sizes = replace(bench.QUICK, runs=1)
    part = bench.PARTS["first"](tmp_path, sizes, tmp_path)
    assert len(runs) == 16 and runs[:8] == runs[8:], "two rounds, the first one to warm up"
    assert {name: round(ratio, 2) for name, ratio in part.ratios.items()} == {
        "first query, point lookup": 0.5,
        "first query, count": 0.5,
    }
    assert "point lookup 0.50x and count 0.50x (target: at most 0.6x)" in "\n".join(part.text)
    odd["delta"] = 1
    with pytest.raises(AssertionError, match="not"):
        bench.PARTS["first"](tmp_path, sizes, tmp_path)


def test_chart_has_a_bar_for_each_workload_and_cuts_long_ones() -> None:
    picture = ElementTree.fromstring(chart.ratio_chart({"one <column>": 0.5, "slow": 9.0}, "today"))
    _, *bars = picture.iter("{http://www.w3.org/2000/svg}rect")
    widths = [float(bar.attrib["width"]) for bar in bars]
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert widths[1] == 4 * widths[0]
    assert {"one <column>", "slow", "0.50", "9.00"} <= set(texts)


def test_line_charts_draw_one_line_per_name_by_value() -> None:
    charts = {"a < b": {"x": {1: 1.0, 10: 2.0, 100: 4.0}, "y": {1: 4.0, 100: 0.0}}, "empty": {"z": {1: 0.0}}}
    picture = ElementTree.fromstring(chart.line_charts(charts, "size", "today"))
    lines = [line.attrib["points"].split() for line in picture.iter("{http://www.w3.org/2000/svg}polyline")]
    assert [len(line) for line in lines] == [3, 2, 1]
    places = [tuple(map(float, point.split(","))) for point in lines[0]]
    assert places[1][0] - places[0][0] == places[2][0] - places[1][0], "x by its logarithm"
    assert places[0][1] - places[1][1] == (places[1][1] - places[2][1]) / 2, "y from 0 on"
    assert {"a < b", "empty", "x", "y", "z", "size", "today"} <= {text.text for text in picture.iter() if text.text}


def test_store_benchmark_logs_match_and_prune_to_one_file(tmp_path: Path) -> None:
    make_log_table.make_table(str(tmp_path / "others"), files=1_000, commits=make_store_tables.COMMITS)
    make_store_tables.make_log_of_pydelta(str(tmp_path / "own"), files=510)
    log_of_others, own_log = (DeltaTable(str(tmp_path / name)) for name in ("others", "own"))
    assert own_log.schema().names == log_of_others.schema().names and own_log.schema().types == log_of_others.schema().types
    for table in (log_of_others, own_log):
        segment = table.snapshot.segment
        assert segment.checkpoint is not None and len(segment.commits) == make_store_tables.COMMITS
        assert table.scan(filter=f"id = {stores_run.WANTED_ID}").report.files_kept == 1
    assert log_of_others.snapshot.checksum is None and own_log.snapshot.checksum is not None


def test_file_table_has_the_row_groups_and_the_bytes() -> None:
    store = MemoryStore(root="s3://bucket/t")
    size_bytes = make_store_tables.make_file_table(store, columns=3, groups=4, group_rows=1_000)
    assert size_bytes == len(store.objects["part-00000.parquet"][0]) > 3 * 4 * 1_000 * 8
    assert DeltaTable(store.root, store=store).to_arrow().num_rows == 4_000
    assert pq.read_metadata(pa.BufferReader(store.objects["part-00000.parquet"][0])).num_row_groups == 4


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], 0),
        ([(0, 1), (1, 2), (2, 3)], 3),
        ([(0, 1), (1, 2), (1, 2.5), (1.1, 1.9), (3, 4)], 3),
        ([(0, 10), (0, 1), (1, 2)], 2),  # the long one runs at the same time as a row of two
    ],
)
def test_round_trips_are_the_longest_row_of_requests(spans: list[tuple[float, float]], expected: int) -> None:
    assert bench_store.round_trips(spans) == expected


def test_requests_of_a_commit_are_told_apart() -> None:
    targets = [
        ("GET", "/bench?list-type=2&prefix=t%2F_delta_log%2F"),
        ("GET", "/bench/t/_delta_log/00000000000000000003.crc"),
        ("PUT", "/bench/t/part-0.parquet"),
        ("PUT", "/bench/t/_delta_log/00000000000000000004.json"),
        ("PUT", "/bench/t/_delta_log/00000000000000000004.crc"),
        ("GET", "/bench/t/_delta_log/00000000000000000004.json"),
    ]
    exchanges = [Exchange(Request(method, target, {}, b"12"), 200, 5, None) for method, target in targets]
    requests = bench_store.Asked.of([bench_store.TimedExchange(exchange, n, n + 1) for n, exchange in enumerate(exchanges)])
    assert (requests.log, requests.data) == ({"LIST": 1, "GET": 1}, {"PUT": 1})
    assert (requests.commit, requests.afterwards) == ({"PUT": 1}, {"PUT": 1, "GET": 1})
    assert (requests.down_bytes, requests.up_bytes, requests.round_trips) == (30, 12, 6)
    text = stores_part.requests_text([stores_part.Measured("append", "pydelta", "few", requests, (0.1, 0.25))])
    row = "| append | pydelta | 1 GET, 1 LIST | 1 PUT | 1 PUT | 1 GET, 1 PUT | 6 | 30 | 12 | 100 ms | 250 ms | few |"
    assert row in "\n".join(text)


def test_sources_are_compared_with_the_quicker_of_pyarrows() -> None:
    run = {"seconds": 0.1, "cpu_seconds": 0.01}
    sources = {"one column": {"sdk": [run], "file": [{**run, "seconds": 0.4}], "dataset": [{**run, "seconds": 0.2}]}}
    text = "\n".join(stores_part.sources_text({0.02: sources}))
    assert "| one column | 20 ms | 100 ms | 10 ms | 400 ms | 10 ms | 200 ms | 10 ms | 0.50x |" in text


def test_roads_are_compared_with_the_session_that_has_all_else() -> None:
    seconds = {
        "lookup": {"defaults": [0.1], "driver": [0.2], "columns": [0.9]},
        "scan": {"defaults": [1.0, 1.0, 7.0], "parquet": [1.05], "columns": [2.1]},
        "whole": {"defaults": [1.0], "columns": [8.0]},
    }
    roads, _, verdicts, _, queries = roads_part.road_lines(seconds)
    assert "| driver | 1 | 2.00x | 2.00x (lookup) | 2.00x (lookup) | stays |" in roads
    assert "| parquet | 1 | 1.05x | 1.05x (scan) | 1.05x (scan) | to be deleted |" in roads
    assert "| columns | 2 | 4.00x | 2.00x (scan) | 8.00x (whole) | stays |" in roads
    assert "from 1.10x on" in verdicts
    assert "| lookup | 0.100 s | 0.200 s |  | 0.900 s |" in queries
