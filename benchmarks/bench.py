"""Measure pydelta and compare it with deltalake, delta-spark and Spark's own Parquet source, and write RESULTS.md.

    make bench                          everything; needs a quiet machine, about 6 GB of disk and half an hour
    make bench BENCH="--only commit"    one part; the others in RESULTS.md stay as they are
    make bench BENCH="--operation 'z-order by 4 columns' --rows 1000000"
                                        one operation of dml or maintenance, compared with the tuned peer, printed and not written
    make bench BENCH="--only scale"     a table of ten million files: 4 GB of disk; `make bench` leaves it out
    make bench BENCH="--quick"          the same on small tables, printed and not written: shows that it runs

state: a fresh process for every run opens a table of very many files and prunes it to one file; the readers take turns.
checkpoint: a fresh process writes the checkpoint of this table. commit: commits of one small file, by one process and in a race.
coordinator: the same for coordinated tables, and transactions over several tables. scan, query, write: one Spark session for each
version of Spark; the readers or writers take turns. open: tables of few and very many files, in a running session. first: a fresh
process for every first query of a session. sql: what SQL costs before a query runs. dml, maintenance, stream: each writer has its
own session. stores: tables in an emulator of S3, a fresh process for every run. unity: managed tables of the tests' Unity
Catalog. cli: processes of the command line. wide: a fresh process for each library does all operations on tables of up to 5,000
columns; CPU seconds. roads: queries with each road of reads and without it. Results are medians next to their targets; ratios.svg
draws the ratios to delta-spark.

delta-spark is measured twice, with its defaults and tuned: spark.sql.shuffle.partitions = 4 (200 by default) and
spark.databricks.delta.snapshotPartitions = the number of cores (50 by default). Both libraries run in sessions with these
settings. The ratio that counts, and that is drawn, is the tuned one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.chart import ratio_chart
from benchmarks.common import (
    DEFAULTS,
    HERE,
    ROOT,
    TUNED,
    Part,
    Sizes,
    cpu_model,
    environments,
    log_table,
    memory_gib,
    run_json,
    spark_environment,
    table_text,
)
from benchmarks.parts.cli_part import cli_part
from benchmarks.parts.coordinator_part import coordinator_part
from benchmarks.parts.dml_part import dml_part
from benchmarks.parts.first_part import first_part
from benchmarks.parts.maintenance_part import OPERATION_TARGETS, maintenance_part, operation_part
from benchmarks.parts.query_part import open_part, query_part
from benchmarks.parts.roads_part import roads_part
from benchmarks.parts.scale_part import scale_part
from benchmarks.parts.sql_part import sql_part
from benchmarks.parts.stores_part import stores_part
from benchmarks.parts.stream_part import stream_part
from benchmarks.parts.unity_part import unity_part
from benchmarks.parts.wide_part import wide_part
from benchmarks.tables.make_log_table import ROWS_PER_FILE

STATE_READERS = ("pydelta", "pydelta-again", "deltalake-actions", "deltalake-query")


_WIDE_COLUMNS = (500, 1_000, 2_000, 3_000, 5_000)
FULL = Sizes((300_000, 1_000_000), 8_000_000, 5, 200, 10, 0.5, 1_000, 1_000, 10_000, 62_500, 16, 10_000_000, _WIDE_COLUMNS)
QUICK = Sizes((5_000, 20_000), 160_000, 2, 20, 2, 0.01, 50, 20, 100, 6_250, 2, 40_000, (20, 100))


def main() -> None:
    arguments = parse_arguments()
    sizes = QUICK if arguments.quick else FULL
    load = os.getloadavg()[0]
    if load > 0.5 and not arguments.quick:
        print(f"warning: the machine is busy (load {load:.1f}): the numbers will be worse than they should", file=sys.stderr)
    with work_directory(arguments.directory) as directory:
        if arguments.operation is not None:
            part = operation_part(arguments.operation, arguments.rows, directory, sizes, Path(arguments.peer))
            print("\n".join([measured_on(load), *part.text]))
            return
        for name in arguments.only:
            part = PARTS[name](directory, sizes, Path(arguments.peer))
            text = "\n".join([f"{MARK}{name} -->", measured_on(load), *part.text, *WHERE_TIME_GOES.get(name, ())])
            print(text)
            if not arguments.quick:
                keep(name, text)
                if part.ratios:
                    draw(name, part.ratios)


# ---------------------------------------------------------------- RESULTS.md

MARK = "<!-- part: "
RESULTS = HERE / "RESULTS.md"
_HEAD = """# Measurements

`make bench` writes this file; bench.py describes how. Values are medians; files are in the machine's page cache.

"""


def keep(name: str, text: str) -> None:
    """Put the part into RESULTS.md. It replaces the earlier results of the part."""
    parts = {}
    for part in (RESULTS.read_text() if RESULTS.exists() else "").split(MARK)[1:]:
        parts[part.partition(" ")[0]] = MARK + part.rstrip() + "\n"
    parts[name] = text.rstrip() + "\n"
    order = [*(part for part in PARTS if part in parts), *(other for other in parts if other not in PARTS)]
    RESULTS.write_text(_HEAD + "\n".join(parts[part] for part in order))


RATIOS, CHART = HERE / "ratios.json", HERE / "ratios.svg"


def draw(name: str, ratios: Mapping[str, float]) -> None:
    """Draw the picture of all parts again. The part's new ratios replace its old ones."""
    ratios_by_part = json.loads(RATIOS.read_text()) if RATIOS.exists() else {}
    ratios_by_part[name] = {workload: round(ratio, 3) for workload, ratio in ratios.items()}
    RATIOS.write_text(json.dumps(ratios_by_part, indent=1) + "\n")
    shown = {workload: ratio for part in PARTS for workload, ratio in ratios_by_part.get(part, {}).items()}
    caption = f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, delta-spark 4.4.0 on Spark 4.2.0; medians, see RESULTS.md"
    CHART.write_text(ratio_chart(shown, caption))


# From profiles; measure again if the numbers change much.
WHERE_TIME_GOES = {
    "wide": (
        "The day before, on a busy machine, a read of 1 file took 0.82x to 1.09x, of 3 files 0.95x, UPDATE 0.61x. Compaction "
        "and creating take longer than in deltalake: both grow with the number of columns, no longer with its square. Until "
        "2026-11-29, at 2,000 columns: read of 1 file 2.16 s, of 3 files 6.37 s, append 1.08 s, update 9.7 s, merge 203 s, "
        "compact 2.8 s.",
        "",
        "Through Spark 4.3 (2026-11-29), 1,000 and 4,000 columns, driver's Python and JVM: collect 0.30 + 2.1 s and "
        "1.2 + 4.2 s, append 0.27 + 1.4 s and 1.3 + 3.5 s, UPDATE of one column 1.1 + 5.6 s and 4.0 + 14.5 s, MERGE "
        "8.6 + 14.3 s and 36 + 47 s.",
    ),
    "dml": (
        "A MERGE whose clauses have conditions, measured separately (2026-11-28, Intel Xeon): 19.90 s by delta-spark and 13.73 "
        "s by pydelta with defaults (0.69x), 16.78 s and 11.71 s tuned (0.70x). It evaluates a clause's condition after the "
        "join, only for the rows of the clause. A condition in the join, or before it, would also be evaluated for other rows, "
        "for which it may fail. If Spark could move the condition, the tuned MERGE took 10.30 s.",
        "",
    ),
    "sql": (
        "Where the time goes (2026-11-27): a SELECT by path takes 13.4 ms. Of these, 5.5 ms are what `select 1` takes, in "
        "parser, analyzer and Py4J. The other 7.8 ms open the table, which takes `load` 7.0 ms. Before the driver's own Python "
        "opened tables, `load` took 15.4 ms (Intel Xeon), and a SELECT 0.67x of it. In the same way, 7.4 ms of delta-spark's "
        "SELECT open the table.",
    ),
    "state": (
        "Where the time goes, by CPU (2026-11-27): at 1,000,000 files, half of it finds the needed members in the texts of "
        "statistics, which are not parsed if they have the usual layout. Most of the rest decodes the checkpoint. At 300,000 "
        "files, about 0.13 s import sqlglot, for the filter's text, which counts here. The day before, on Intel Xeon, the "
        "ratios were 0.49x and 0.39x. Since then, plans for integers and texts import no pandas (0.22 s), files are pruned "
        "32,768 at a time (0.43 s of CPU at 1,000,000, now 0.27 s), and batches of statistics as text are half as large again. "
        "With statistics as structs, which our own checkpoints have, no text is read.",
        "",
        "Compared with the version before the work on damaged and hostile tables (d2285fe), in turns, 2026-11-24 on AMD EPYC, "
        "medians of 5 to 21 pairs: opening 300,000 files 0.91x and 1,000,000 0.96x (with cached statistics), 8 million whole "
        "rows without Spark 0.98x, a write of 5.9 million rows 1.01x and 1.00x in two runs (1.33x in a run of 2 million rows; "
        "the fastest of its pairs was 1.02x), 25 appends 0.93x. The target was 1.03x.",
    ),
    "scan": (
        "Where the time goes: decoding in Python takes 2.0 s of CPU for 8 million whole rows, as much as in pyarrow's own "
        "reader. This is for scans in columns (the default). In rows, on another machine, the same scan took 1.35x of Spark's "
        "reader, which converted Arrow batches to rows one by one (jstack samples: UnsafeProjection and the accessors of "
        "ArrowColumnVector). Tried and rejected (2026-11-22, Spark 4.3, medians of two sessions each): decoding a batch ahead "
        "in a thread while another one is sent. With a task on each core, whole rows took 2.29 and 2.68 s with it, 2.47 and "
        "2.53 without. With one task and an idle core it was 2.87 and 2.99 s instead of 3.17 and 3.31, but in rows 6.65 and "
        "6.99 instead of 5.94 and 6.31, and for one column 0.77 and 0.81 instead of 0.63 and 0.71. With columns decoded in "
        "parallel by pyarrow, and one task: 3.08 and 3.50 s.",
    ),
    "query": (
        "Scans return columns and, if that is likely faster, Spark's own Parquet reader reads them; both are defaults. Counts, "
        "minima and maxima come from the log.",
        "",
        "2026-11-30, Intel Xeon, without other work on the machine: the table above. The day before, on AMD EPYC, before reads "
        "got one decision, the 25 ratios to the tuned delta-spark were 1.14x as large (geometric mean). Four are larger now: "
        "range 0.53x (0.47x), TPC-H 3, 5 and 6 0.85x, 0.77x and 0.86x (0.74x, 0.70x and 0.64x); the rounds of TPC-H 6 took 0.32 "
        "s to 0.56 s. Missed target: whole rows of four large files, 0.93x (plain Parquet 0.91x).",
        "",
        "2026-11-29, Spark 4.2, tuned, without other work on the machine. Missed target of that run: whole rows of four large "
        "files, 1.12x of delta-spark's time, with a target of 0.8x (plain Parquet itself takes 1.06x). A separate measurement "
        "five minutes later, 12 rounds in one session: pydelta 1.41 s, only by Spark's reader 1.44 s, only by Python 1.48 s, "
        "plain Parquet 1.43 s, delta-spark 1.65 s (0.86x). The fastest rounds were 1.21 s, 1.20 s, 1.32 s, 1.18 s and 1.35 s: "
        "rounds of one reader differ by a third, the readers by less. The day before on Intel Xeon: 0.88x (plain Parquet "
        "0.81x), and all other targets were met; on AMD EPYC 0.92x (0.94x) and TPC-H 10 1.01x (its rounds took 0.66 s to 0.90 "
        "s). A separate measurement there, minutes later, 9 rounds in changing order: TPC-H 3, 5, 6, 10, 12, 14 and 18 0.75x, "
        "0.71x, 0.73x, 0.89x, 0.93x, 0.71x and 0.87x, whole rows of the large files 0.89x.",
        "",
        "Where joins lost time until 2026-11-28 (sums of tasks, Spark 4.2, medians of 7): TPC-H 3 took 785 ms of CPU, plain "
        "Parquet 732 and delta-spark 751; TPC-H 10 took 651, 590 and 600. Scans by Spark's reader had two tasks for each core, "
        "but Spark plans one. With one, medians of 11 turns of TPC-H 3, 10, 12 and 18 were 0.71 s, 0.59 s, 0.48 s and 1.62 s; "
        "before they were 0.76 s, 0.63 s, 0.52 s and 1.70 s. Also, each row had its number, which Spark makes from boxed "
        "numbers. Without it, whole rows of the large files take 1.56 s and 1.51 s of CPU instead of 1.94 s and 1.66 s. The "
        "rest is shuffles and joins, with the same plans as delta-spark's. TPC-H 12 still loses time because Spark broadcasts a "
        "table of 750,000 rows: it does not know how few rows the filter of the other side returns. Planning takes 30 ms; "
        "delta-spark's takes 200 to 350.",
        "",
        "With hints about the side to broadcast (pydelta, medians of 9 turns on a busy Intel Xeon): TPC-H 12 with the filtered "
        "rows of lineitem 0.87x of the time without hints; 10, 5 and 3 with orders 0.93x, 1.00x and 1.03x. pydelta does not "
        "estimate from bounds of files how many rows a filter returns. If every file has a date that stands for no date, nearly "
        "all rows may pass a filter for which the bounds suggest a twentieth, and they would be broadcast.",
        "",
        "Python and Spark's reader by the rows of a row group, whole rows of 8,000,000, medians of 7 turns (Python, Spark's "
        "reader, delta-spark): 131,072 rows 1.41 s, 1.63 s, 1.75 s; 262,144 1.32 s, 1.23 s, 1.27 s; 524,288 1.17 s, 1.01 s, "
        "1.04 s; 2,000,000 1.11 s, 0.96 s, 0.98 s. In small row groups, columns with almost as many values as rows are complete "
        "dictionaries, which Spark's reader reads slowly. The tables of 16 files have row groups of 131,072 rows, those of four "
        "files have one for each file. A reader takes 1.5 s of CPU on two cores for the latter, whether it is delta-spark's, "
        "Spark's or ours. So no available reader is much faster: Spark's would have to decode faster. Before Spark's reader "
        "skipped pages, on this kind of table written by Spark, a lookup took 1.27x and a range 1.56x.",
        "",
        "Point lookups, and those from threads: until 2026-11-28 they took a job, 0.44x of delta-spark's time and 10.2 per "
        "second, 1.52 s and 2.69 s. On Spark 4.3 the job took 119 of 140 ms; pyarrow takes 18 of these for a row group, and "
        "Spark 12 to collect any rows. Now the driver's own Python reads them. The row groups of the large files are larger "
        "than it reads, which it finds out in 4 ms.",
        "",
        "Groups by integers, measured separately, 7 rounds (pydelta, delta-spark, pydelta without partial rows): by an INT of "
        "1,000 values, with a count, a sum and a largest date, 1.18 s, 2.74 s and 2.57 s; the sum of one column 0.74 s, 1.13 s "
        "and 0.75 s. By a BIGINT with almost as many values as rows, about which the log had no information, 10.8 s, 10.5 s and "
        "9.6 s. If the log shows that, no partial rows are used.",
        "",
        "Spark 4.3, 11 rounds on a busy machine, one file of 100,000 rows, in one task and with a shuffle, medians "
        "(quickest): group by 0.41 s and 0.53 s (0.24 s and 0.40 s), sort 0.34 s and 0.65 s (0.29 s and 0.47 s), distinct "
        "0.23 s and 0.31 s (0.17 s and 0.24 s), sums 0.20 s and 0.24 s (0.15 s and 0.19 s), newest row of each key 0.46 s and "
        "0.38 s (0.24 s and 0.28 s).",
        "",
        "Where the time of a group by went when Spark's Parquet reader read it, by Java's flight recorder (10 rounds, samples "
        "of task threads): 55 % in Spark's generated code of the aggregate, 22 % in Parquet, 15 % in its hash map, 6 % in "
        "decimals. So no reader alone could bring it below 0.8x. Partial rows, which tasks aggregate before Spark gets them, "
        "did.",
    ),
    "first": (
        "Earlier, without other work on the machine, medians of 4, the point lookup by delta-spark and by pydelta: 12.42 s and "
        "6.71 s (0.54x) on 2026-11-28, and 13.92 s and 7.90 s (0.57x) the evening before, when a job read the row.",
        "",
        "A task that reads a local table in Python needs 45 ms of CPU for imports beyond pyspark and pyarrow (median of 11 "
        "processes, minimum 40 ms; target: at most 50 ms). It needed 62 ms (minimum 55 ms) before imported objects were "
        "excluded from garbage collection, measured in the same minutes on Intel Xeon, 2 cores, with one other process "
        "(2026-11-29 04:12 UTC; Python 3.11.7, pyarrow 26.0.1). Each process loads a pickled reader and its partition; "
        "pyspark's worker, pyarrow and its parquet and compute modules are imported before. On AMD EPYC, on 2026-11-28, it was "
        "54 ms (minimum 46 ms) with garbage collection, which took 13 to 19 ms.",
        "",
        "At noon of 2026-11-27, on a slower machine, it was 23.18 s and 14.84 s (0.64x), in the morning 27.69 s and 19.29 s "
        "(0.70x), at half past nine 26.55 s and 17.17 s (0.65x). Since then, the first `register` starts no process to look for "
        "other sources, and Spark's own reader reads this scan, so no Python worker starts. CPU seconds of the process with its "
        "JVM and workers depend less on other work: the point lookup took 32.2 s before and 27.1 s and 27.0 s after that (30.9 "
        "s in a run whose session took 3 s more before pydelta ran), delta-spark 45.4 s and 46.3 s (0.59x), and Spark alone, "
        "for `select 1`, 21.4 s.",
    ),
    "stream": (
        "In the run of 2026-11-29, delta-spark's tuned session took longer for the large files than its session with defaults "
        "before, so the ratios flatter pydelta. On 2026-11-27, also on AMD EPYC, tuned, delta-spark took 13.38 s, 1.95 s and "
        "0.99 s, pydelta 7.61 s, 1.45 s and 0.69 s: 0.57x, 0.74x and 0.69x.",
        "",
        "Until 2026-11-27 the large files took 0.98x (4.87 s of 4.99 s) and a hundredth of their rows 1.30x (3.06 s of 2.36 s), "
        "without other work on the machine, 3 rounds. From a stream's start to its first batch 1.9 s to 2.1 s passed, in which "
        "Spark started a Python process for the stream's source, and no filter reached the source. Now the driver's own Python "
        "replaces this process, and row groups and pages are skipped.",
        "",
        "A stream's commit at the same time as the planning of its next batch: Spark makes batches one after the other in one "
        "thread, and begins the next one when the sink has committed the last. A source and a sink can only be fast. Planning a "
        "batch takes the driver's Python a few ms. Spark's asynchronous progress is for sinks that do not need exactly-once "
        "delivery.",
    ),
    "write": (
        "Where the time goes: both cores spend 23 s of CPU on whole rows. The JVM takes 14 s of them (reading the source, "
        "converting rows to Arrow batches: most samples are in ArrowFieldWriter.write) and Python 9 s: pyarrow's encoding 7 s, "
        "statistics and the rest 2 s. Spark measures a batch after each row, unless a setting says otherwise "
        "(spark_plugin/tasks/arrow_batches.py). With partitions, Python takes 14 s; it took 38 before Spark's batches of 2,048 "
        "rows were combined to 65,536 before they are split. Spark ends Python workers that were idle for a minute, as ours are "
        "while the others have their turns: then whole rows took Python 16 s of CPU, and 14 s since tasks import less.",
        "",
        "Until 2026-11-28 Spark's workers planned and committed writes: an append of one row took 150 ms, 60 of them before its "
        "job and 48 after it (log of Spark, 4.2), and 25 appends took 0.52x of delta-spark's time. The driver's own Python "
        "plans them in 4 ms and commits them in 9.",
        "",
        "Columns for both the read and the write, when a table is copied: Spark's writers for a Python source take rows, and "
        "convert them to Arrow. A strategy of the session may put a node of ours into a plan (reads of small queries have one), "
        "so a node for a write could take batches. But Spark's compiled code for projections and filters returns rows. So only "
        "writes of an unchanged scan would have batches, and vectors would be copied into Arrow as rows are now. Not built.",
    ),
    "stores": (
        "Where the requests go: opening a table reads the newest checksum, the checkpoint, the checkpoint's checksum and the "
        "commits, in sequence. Three of an append's round trips open the table; if the log has version checksums, one more "
        "reads the newest commit. Two values exceed deltalake's: the bytes up of an append, because of its version checksum, "
        "and the first time 1 % of the bytes down of a column, because the footer is fetched with a guess of 64 KB that saves "
        "two requests.",
        "",
        "Decision: pydelta's reader stays on the SDK. With 20 ms for each request it takes 0.4x to 0.7x of the time of "
        "pyarrow's faster way, because more requests run in parallel: ParquetFile fetches ranges that are not adjacent one "
        "after the other. Without latency, when only CPU counts, it takes 1.2x to 1.6x (2.8x once, for one column, while other "
        "work kept the machine busy).",
        "",
        "Lost replies (`make storage ROUNDS=1000`, 2026-11-26): eight processes, 1,000 commits each; a quarter of the requests "
        "that commit were spoiled in twelve ways. Google's emulator, DynamoDB's and Azurite: 8,000 commits each, all confirmed, "
        "and each is in the table once. Azurite is restarted after every hundred rounds: every ten minutes it did not answer "
        "for longer than 60 s.",
    ),
}


def measured_on(load: float) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyarrow", "deltalake"))
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC on {cpu_model()}, {os.cpu_count()} cores, {memory_gib():.0f} GiB, load "
        f"before: {load:.1f}; Python {platform.python_version()}, {packages}; delta-spark 4.4.0 where Spark is 4.2.\n"
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    default = [name for name in PARTS if name != "scale"]
    parser.add_argument("--only", default=default, type=lambda text: text.split(","), help=", ".join(PARTS))
    parser.add_argument("--operation", choices=list(OPERATION_TARGETS), help="one operation of dml and maintenance, alone")
    parser.add_argument("--rows", type=int, help="with --operation: of the table")
    parser.add_argument("--peer", default=str(ROOT / ".venv-peer"), help="environment of pyspark 4.2 and delta-spark")
    parser.add_argument("--directory", help="keep the tables here instead of a temporary directory")
    return parser.parse_args()


@contextmanager
def work_directory(given_path: str | None) -> Iterator[Path]:
    directory = Path(given_path) if given_path else Path(tempfile.mkdtemp(prefix="pydelta-bench-"))
    directory.mkdir(parents=True, exist_ok=True)
    try:
        yield directory
    finally:
        if given_path is None:
            shutil.rmtree(directory)


# ---------------------------------------------------------------- state


def state_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    return Part([state_section(log_table(directory, files), files, sizes.runs) for files in sizes.state_files])


def state_section(table: Path, files: int, runs: int) -> str:
    value = files // 2 * ROWS_PER_FILE + ROWS_PER_FILE // 2
    results: dict[str, list[dict[str, Any]]] = {reader: [] for reader in STATE_READERS}
    for _ in range(runs + 1):
        for reader in STATE_READERS:
            cache = {"PYDELTA_CACHE_DIR": str(table.parent / "cache") if reader == "pydelta-again" else ""}
            command = [sys.executable, str(HERE / "library/state_run.py"), reader, str(table), str(value)]
            results[reader].append(run_json(command, cache))
    medians = {reader: _medians(measured[1:]) for reader, measured in results.items()}
    for reader, median in medians.items():
        assert median["files"] == 1, f"{reader} kept {median['files']} files of {files}, not 1"
    return state_text(files, medians)


def _medians(results: Sequence[dict[str, Any]]) -> dict[str, float]:
    return {name: statistics.median(result[name] for result in results) for name in results[0]}


def state_text(files: int, medians: dict[str, dict[str, float]]) -> str:
    """For time the peer's quicker way counts, for memory the one that needs less."""
    ours = medians["pydelta"]
    peers = [medians[reader] for reader in STATE_READERS if reader.startswith("deltalake")]
    time_ratio = ours["seconds"] / min(peer["seconds"] for peer in peers)
    memory_ratio = ours["peak_mb"] / min(peer["peak_mb"] for peer in peers)
    target = 0.35 if files >= 1_000_000 else 0.45
    rows = [
        [
            reader,
            f"{median['seconds']:.2f} s",
            f"{median['cpu_seconds']:.2f} s",
            f"{median['peak_mb']:.0f} MB",
            f"{median['import_seconds']:.2f} s",
        ]
        for reader, median in medians.items()
    ]
    return "\n".join(
        [
            f"## State: open {files:,} files and prune to one",
            "",
            table_text(["reader", "open and prune", "of that CPU, all threads", "peak memory", "import (not counted)"], rows),
            "",
            f"Time {time_ratio:.2f}x of deltalake (target: at most {target}x), memory {memory_ratio:.2f}x (target: at most 1x). "
            "pydelta-again: with the parsed statistics that an earlier process left in the cache directory.",
            "",
        ]
    )


# ---------------------------------------------------------------- scans


def scan_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    table, rows_left = scan_table(directory, sizes.scan_rows)
    return Part([scan_section(table, sizes, rows_left, python, peer) for python, _ in environments(peer)])


def scan_table(directory: Path, rows: int) -> tuple[Path, int]:
    """The table, and the number of rows in its version 1."""
    from benchmarks.tables.make_scan_table import make_table

    table = directory / "scan"
    return table, make_table(str(table), rows=rows)


def scan_section(table: Path, sizes: Sizes, rows_left: int, python: Path, peer: Path) -> str:
    command = [str(python), str(HERE / "spark/scan_run.py"), str(table), "--rows", str(sizes.scan_rows)]
    result = run_json([*command, "--rounds", str(sizes.runs)], spark_environment(python, peer))
    check_counts(result["counts"], sizes.scan_rows, rows_left)
    medians = {name: statistics.median(seconds) for name, seconds in result["seconds"].items()}
    native = medians["parquet: whole rows"]
    rows = [[name, str(f"{result['counts'][name]:,}"), f"{seconds:.2f} s"] for name, seconds in medians.items()]
    whole_ratio = medians["pydelta: whole rows"] / native
    deleted = medians["pydelta: whole rows, 10 % deleted"] / medians["pydelta: whole rows"]
    return "\n".join(
        [
            f"## Scan: {sizes.scan_rows:,} rows x 10 columns, Spark {result['spark']}, to the noop sink",
            "",
            table_text(["scan", "rows", "median"], rows),
            "",
            f"Whole rows {whole_ratio:.2f}x of Spark's Parquet reader (target: at most 1.15x); "
            f"with 10 % of rows deleted {deleted:.2f}x of without (target: at most 1.2x).",
            "",
        ]
    )


def check_counts(counts: dict[str, int], rows: int, rows_left: int) -> None:
    """Fail if a reader returned a wrong number of rows: its time would mean nothing."""
    expected_counts = {"whole rows": rows, "two columns": rows, "whole rows, 10 % deleted": rows_left, "1 % of ids": rows // 100}
    for name, count in counts.items():
        assert count == expected_counts[name.partition(": ")[2]], f"{name} gave {count} rows"


# ---------------------------------------------------------------- writes and commits


def write_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    table, _ = scan_table(directory, sizes.scan_rows)
    sections = [(python, formats, TUNED) for python, formats in environments(peer)]
    with_defaults = [(python, formats, DEFAULTS) for python, formats, _ in sections if "delta" in formats.split(",")]
    parts = [write_section(table, sizes, *section, peer) for section in (*with_defaults, *sections)]
    return Part.of_all(parts)


def write_section(table: Path, sizes: Sizes, python: Path, writers: str, settings: str, peer: Path) -> Part:
    rounds = str(min(sizes.runs, 3))
    command = [str(python), str(HERE / "spark/write_run.py"), str(table), "--writers", writers, "--rounds", rounds]
    result = run_json(command, spark_environment(python, peer, settings))
    medians = {name: statistics.median(seconds) for name, seconds in result["seconds"].items()}
    whole_ratio = medians["pydelta: whole rows"] / medians["parquet: whole rows"]
    lines = [f"Whole rows {whole_ratio:.2f}x of Spark's Parquet writer (target: at most 1.1x)."]
    ratios = {}
    for name, target in (("whole rows", 1.0), ("partitioned", None), ("25 appends of one row", 0.5)):
        if f"delta: {name}" in medians:
            ratios[f"write, {name}"] = ratio = medians[f"pydelta: {name}"] / medians[f"delta: {name}"]
            aim = "" if target is None else f" (target: at most {target}x)"
            lines.append(f"{name.capitalize()} {ratio:.2f}x of delta-spark's time{aim}.")
    rows = [[name, f"{seconds:.2f} s"] for name, seconds in medians.items()]
    title = f"## Write: {sizes.scan_rows:,} rows x 10 columns, zstd, Spark {result['spark']}, {settings}"
    return Part([title, "", table_text(["write", "median"], rows), "", *lines, ""], ratios)


def commit_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    command = [sys.executable, str(HERE / "library/commit_run.py")]
    latency, races = [], []
    for writer in ("pydelta", "deltalake"):
        result = run_json([*command, "latency", writer, str(directory), "--commits", str(sizes.commits)])
        latency.append([writer, *(f"{result[name]:.1f} ms" for name in ("p50_ms", "p95_ms", "max_ms"))])
    result = run_json([*command, "race", "pydelta", str(directory), "--seconds", str(sizes.race_seconds)])
    races.append(["pydelta", *(f"{result[name]:.0f}" for name in ("commits_per_second", "least", "most", "versions"))])
    text = [
        "## Commits of one small file on local disk, data file included, without Spark",
        "",
        table_text(["writer", "p50", "p95", "longest"], latency),
        "",
        "Target: p50 under 15 ms.",
        "",
        "## 8 processes append to one table",
        "",
        table_text(["writer", "commits a second, all", "fewest of one process", "most of one", "versions, each once"], races),
        "",
        "Target: at least 40 commits a second, none lost or doubled (checked).",
        "",
    ]
    return Part(text)


def checkpoint_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    rows = []
    for name, writer, options in (
        ("pydelta, table with statistics as structs", "pydelta", []),
        ("pydelta, statistics as text made into structs", "pydelta", ["--both-forms"]),
        ("deltalake", "deltalake", []),
    ):
        copy = directory / "checkpointed"
        shutil.copytree(log_table(directory, sizes.state_files[0]), copy)
        result = run_json([sys.executable, str(HERE / "library/checkpoint_run.py"), writer, str(copy), *options])
        shutil.rmtree(copy)
        rows.append([name, f"{result['seconds']:.2f} s", f"{result['peak_mb']:.0f} MB"])
    text = [
        f"## Checkpoint of {sizes.state_files[0]:,} files",
        "",
        table_text(["writer", "open and write", "peak memory"], rows),
        "",
        "Target: under 5 s and 700 MB.",
        "",
    ]
    return Part(text)


PARTS: dict[str, Callable[[Path, Sizes, Path], Part]] = {
    "state": state_part,
    "checkpoint": checkpoint_part,
    "commit": commit_part,
    "coordinator": coordinator_part,
    "scan": scan_part,
    "query": query_part,
    "roads": roads_part,
    "open": open_part,
    "first": first_part,
    "sql": sql_part,
    "write": write_part,
    "wide": wide_part,
    "dml": dml_part,
    "maintenance": maintenance_part,
    "stream": stream_part,
    "stores": stores_part,
    "unity": unity_part,
    "scale": scale_part,
    "cli": cli_part,
}


if __name__ == "__main__":
    main()
