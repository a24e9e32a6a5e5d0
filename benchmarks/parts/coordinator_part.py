"""The part `coordinator`: commits of coordinated tables, compared with ordinary ones and deltalake's, and transactions."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

from benchmarks.chart import line_charts
from benchmarks.common import HERE, Part, Sizes, run_json, table_text
from tests.support.servers import postgres
from tests.support.servers.emulator_programs import DYNAMODB_LOCAL, ToolError

CONTENTION = HERE / "contention.svg"
_TARGETS = (
    "Targets: SQLite 200 commits a second with 8 writers of one table and p50 at most 5 ms; PostgreSQL 500 a second over 10 "
    "tables; the commit of a transaction over 3 tables at most 1.5x that over one."
)
_FINDINGS = (
    "Where the time goes (2026-11-27, AMD EPYC, 2 cores, both busy): a commit of one row takes 17 ms of CPU, so writers make at "
    "most about 115 commits a second, however many they are; 200 would need 10 ms. Opening the table takes 4 ms of the 17, the "
    "data file 5, staging 2.7 (two fsyncs), ratifying 1.7, the checksum 2.7, and a checkpoint 22 at every tenth commit. The "
    "ledgers themselves can take more commits, as their own table shows. For each table of a transaction, opening, staging and "
    "the checksum are separate, 4.7 ms of CPU; the shared part is 2.2 ms. Since this day, writers of one table that lost a race "
    "take turns, with SQLite: 8 of them made 39 commits a second before, and 62 to 107 in several short runs since then; "
    "without a ledger it is 67 to 75. PostgreSQL was also measured with turns. They hold connections and were removed: without "
    "them 8 writers make 28 commits a second at one table (22 before contended writers asked for the newest version), and 52 at "
    "ten."
)


def _has_dynamodb() -> bool:
    try:
        DYNAMODB_LOCAL.path()
    except ToolError:
        return False
    return True


def coordinator_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    command = [sys.executable, str(HERE / "library/coordinator_run.py")]
    there = postgres.programs() is not None
    latency, races, alone, transactions = [], [], [], []
    with postgres.running() if there else nullcontext() as server:
        ledgers = {"none, deltalake": "deltalake", "none": None, "SQLite": "sqlite"} | ({"PostgreSQL": server} if there else {})
        ledgers |= {"DynamoDB (emulator)": "dynamodb"} if _has_dynamodb() else {}
        for name, url in ledgers.items():
            ledger = [] if url is None else ["--ledger", url]
            result = run_json([*command, "latency", str(directory), *ledger, "--commits", str(sizes.commits)])
            latency.append([name, *(f"{result[key]:.1f} ms" for key in ("p50_ms", "p95_ms", "max_ms"))])
            for processes, threads, tables in ((8, 1, 1), (1, 8, 1), (2, 4, 1), (8, 1, 10)):
                writers = ["--processes", str(processes), "--threads", str(threads), "--tables", str(tables)]
                result = run_json([*command, "race", str(directory), *ledger, *writers, "--seconds", str(sizes.race_seconds)])
                of_each = [f"{result[key]:.0f}" for key in ("commits_per_second", "least", "most", "failed")]
                races.append([name, f"{processes} x {threads}", str(tables), *of_each])
            if url not in (None, "deltalake"):
                for tables in (1, 10):
                    writers = ["--processes", "8", "--tables", str(tables), "--seconds", str(sizes.race_seconds)]
                    result = run_json([*command, "alone", str(directory), *ledger, *writers])
                    alone.append([name, str(tables), f"{result['commits_per_second']:.0f}"])
                result = run_json([*command, "transactions", str(directory), *ledger, "--commits", str(sizes.commits // 4)])
                keys = ("one_ms", "three_ms", "one_commit_ms", "three_commit_ms")
                ratio = result["three_commit_ms"] / result["one_commit_ms"]
                transactions.append([name, *(f"{result[key]:.1f} ms" for key in keys), f"{ratio:.2f}x"])
    text = [
        "## Commits of coordinated tables, one row each, without Spark",
        "",
        table_text(["ledger", "p50", "p95", "longest"], latency),
        "",
        "## Processes, each with threads, append to coordinated tables",
        "",
        table_text(
            ["ledger", "processes x threads", "tables", "commits a second", "fewest of one process", "most of one", "given up"],
            races,
        ),
        "",
        "## The ledgers alone: 8 processes ratify commits, without files of tables",
        "",
        table_text(["ledger", "tables", "commits a second"], alone),
        "",
        "## Transactions that append a row to each of their tables",
        "",
        table_text(
            ["ledger", "one table", "three tables", "its commit alone, one", "its commit alone, three", "three to one"],
            transactions,
        ),
        "",
        _TARGETS,
        "",
        _FINDINGS,
        "",
        *_contention(directory, sizes),
    ]
    return Part(text)


def _contention(directory: Path, sizes: Sizes) -> list[str]:
    command = [sys.executable, str(HERE / "library/contention_run.py"), str(directory), "--seconds", str(sizes.race_seconds)]
    cases: list[dict[str, float]] = run_json(command)
    shares = sorted({case["hot"] for case in cases})

    def lines(what: str) -> dict[str, dict[float, float]]:
        return {f"{share:.0%} hot": {case["size"]: case[what] for case in cases if case["hot"] == share} for share in shares}

    charts = {"transactions a second": lines("commits_per_second"), "share that is aborted": lines("abort_rate")}
    CONTENTION.write_text(line_charts(charts, "accounts that a transaction changes", "4 processes, SQLite; contention_run.py"))
    rows = [
        [f"{case['hot']:.0%}", f"{case['size']:.0f}", f"{case['commits_per_second']:.1f}", f"{case['abort_rate']:.0%}"]
        for case in cases
    ]
    return [
        "## Transactions in each other's way",
        "",
        "4 processes, SQLite. A transaction changes this number of 2,000 accounts, a share of which is drawn from 10 hot ones, "
        "and appends to a second table.",
        "",
        f"![throughput and aborts by the size of a transaction]({CONTENTION.name})",
        "",
        table_text(["hot", "accounts", "committed a second", "aborted"], rows),
        "",
    ]
