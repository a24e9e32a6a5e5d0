"""The part `roads`: queries with each road and without it, which show what a road is worth."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.common import HERE, TUNED, Part, Sizes, query_tables, run_json, spark_environment, table_text
from benchmarks.spark.roads_run import DEFAULTS
from spark_plugin.options.roads import Road

KEPT_FROM = 0.10
"""A road stays if the queries that take it run at least so much of their time longer without it."""

Seconds = Mapping[str, Mapping[str, Sequence[float]]]
"""Of each counted round, by query and by the road that is disabled."""


def roads_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    tables = query_tables(directory, sizes)
    small = 1000 if sizes.runs > 2 else 16
    command = [sys.executable, str(HERE / "spark/roads_run.py"), str(tables), "--rows", str(sizes.scan_rows)]
    command += ["--rounds", str(sizes.runs), "--small", str(small)]
    result = run_json(command, spark_environment(Path(sys.executable), peer, TUNED))
    return Part([f"## Roads: {sizes.scan_rows:,} rows x 10 columns, Spark {result['spark']}", "", *road_lines(result["seconds"])])


def road_lines(seconds: Seconds) -> list[str]:
    """A table of the roads and one of the queries, as lines of Markdown."""
    medians = {query: {mode: statistics.median(times) for mode, times in modes.items()} for query, modes in seconds.items()}
    roads = [road for road in Road if any(road in modes for modes in medians.values())]
    head = ["road", "queries that take it", "time without it", "least", "most", "verdict"]
    body = [[road, *_row(_ratios(medians, road))] for road in roads]
    shown = [[query, *_times(modes, [DEFAULTS, *roads])] for query, modes in medians.items()]
    return [
        table_text(head, body),
        "",
        "Time without it: the geometric mean over these queries of the time without the road, as a multiple of the time with it. "
        f"A road stays from {1 + KEPT_FROM:.2f}x on.",
        "",
        table_text(["query", "all roads", *(f"without {road}" for road in roads)], shown),
    ]


def _times(modes: Mapping[str, float], shown: Sequence[str]) -> list[str]:
    return [f"{modes[mode]:.3f} s" if mode in modes else "" for mode in shown]


def _ratios(medians: Mapping[str, Mapping[str, float]], road: Road) -> dict[str, float]:
    """By query: the time without the road over the time with it."""
    chosen = {query: modes for query, modes in medians.items() if road in modes and _reads_by(modes, road)}
    return {query: modes[road] / _with(modes, road) for query, modes in chosen.items()}


def _reads_by(modes: Mapping[str, float], road: Road) -> bool:
    """Queries that the log or the driver answers are counted under `columns` too, but read none."""
    return road is not Road.COLUMNS or not {Road.LOG, Road.DRIVER} & modes.keys()


def _with(modes: Mapping[str, float], road: Road) -> float:
    """Spark's Parquet reader needs columns, so the modes without columns are compared with the mode without this reader."""
    return modes.get(Road.PARQUET, modes[DEFAULTS]) if road is Road.COLUMNS else modes[DEFAULTS]


def _row(ratios: Mapping[str, float]) -> list[str]:
    mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
    least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    ends = [f"{ratios[query]:.2f}x ({query})" for query in (least, most)]
    return [str(len(ratios)), f"{mean:.2f}x", *ends, "stays" if mean >= 1 + KEPT_FROM else "to be deleted"]
