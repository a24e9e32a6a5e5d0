"""The part `unity`: managed tables of Unity Catalog, opened and written by delta-spark, by pydelta in Spark and without Spark.

The catalog is the server of the tests (tests/support/servers), a Python process on this machine. All figures contain the time
of its answers.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import HERE, Part, Sizes, peer_python, run_json, spark_environment, table_text
from tests.support.servers.unity_catalog import UnityCatalogServer

_COMMITS, _WRITERS = 25, 8
_CLIENTS = {"delta-spark": "delta", "pydelta": "pydelta", "pydelta, without Spark": "library"}


def unity_part(directory: Path, sizes: Sizes, peer: Path) -> Part:
    python = peer_python(peer)
    environment = spark_environment(python, peer)
    with tempfile.TemporaryDirectory(dir=directory) as place, UnityCatalogServer(Path(place)) as server:
        command = ["--uri", server.uri, "--token", str(server.token), "--commits", str(_COMMITS), "--writers", str(_WRITERS)]
        results, requests = {}, {}
        for name, client in _CLIENTS.items():
            before = len(server.requests)
            results[name] = run_json([str(python), str(HERE / "spark/unity_run.py"), client, *command], environment)
            requests[name] = len(server.requests) - before
    rows = [[name, *_texts(result), str(requests[name])] for name, result in results.items()]
    head = ["client", "open, count", "append", f"{_COMMITS} appends", f"commits a second, {_WRITERS} writers", "requests"]
    text = ["## Managed tables of Unity Catalog", "", table_text(head, rows), ""]
    ours, theirs = results["pydelta"], results["delta-spark"]
    ratios = {key: f"{ours[key] / theirs[key]:.2f}x" for key in ("open", "append")}
    return Part([*text, f"In Spark: open {ratios['open']}, append {ratios['append']} of delta-spark's time.", ""])


def _texts(result: dict[str, Any]) -> list[str]:
    of_time = [f"{result[key]:.3f} s" for key in ("open", "append")]
    return [*of_time, f"{result['appends']:.2f} s", f"{result['commits_per_second']:.1f}"]
