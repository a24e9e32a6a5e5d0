"""The part `scale`: a table of ten million files, opened and pruned to one. deltalake is left out: it holds all files in memory
and needs about 18 GB. `state` has both on smaller tables.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from benchmarks.common import HERE, Part, Sizes, run_json, table_text
from benchmarks.tables.make_log_table import ROWS_PER_FILE, make_table

_PARTS = 20
_MEMORY_TARGET_MB = 1024
# The form of the log -> how make_table writes it.
_FORMS = {
    "sidecars of a V2 checkpoint, statistics as structs": {"sidecars": True, "stats_json": False, "stats_struct": True},
    "a checkpoint in parts, statistics as text": {"sidecars": False, "stats_json": True, "stats_struct": False},
}


def scale_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    files, rows, peaks = sizes.scale_files, [], []
    value = files // 2 * ROWS_PER_FILE + ROWS_PER_FILE // 2
    for number, (form, written) in enumerate(_FORMS.items()):
        table = directory / f"scale-{files}-{number}"
        if not table.exists():
            make_table(str(table), files=files, columns=4, parts=_PARTS, **written)
        command = [sys.executable, str(HERE / "library/state_run.py"), "pydelta", str(table), str(value)]
        results = [run_json(command, {"PYDELTA_CACHE_DIR": ""}) for _ in range(3)]
        assert all(result["files"] == 1 for result in results), f"{form}: not one file was kept"
        median = {name: statistics.median(result[name] for result in results) for name in results[0]}
        size_mb = sum(file.stat().st_size for file in table.rglob("*") if file.is_file()) / 1e6
        peaks.append(max(result["peak_mb"] for result in results))
        times = (f"{median['seconds']:.1f} s", f"{median['cpu_seconds']:.1f} s")
        rows.append([form, f"{size_mb:,.0f} MB", *times, f"{median['peak_mb']:.0f} MB"])
    head = ["log", "size", "open and prune", "of that CPU, all threads", "peak memory"]
    return Part(
        [
            f"## Scale: open {files:,} files and prune to one",
            "",
            table_text(head, rows),
            "",
            f"Most memory of all runs: {max(peaks):.0f} MB of the whole process (target: at most {_MEMORY_TARGET_MB:,} MB). "
            "Without the cache of parsed statistics.",
            "",
        ]
    )
