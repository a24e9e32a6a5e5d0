"""orders_script.py, the script of a user of delta-spark, as each engine runs it."""

from __future__ import annotations

import json
from pathlib import Path

ONE_LINE = "import spark_plugin.as_delta\n"
"""What the user adds for pydelta."""

_SCRIPT = (Path(__file__).parent / "orders_script.py").read_text()
_FIRST_IMPORT = "from delta import DeltaTable, configure_spark_with_delta_pip\n"


def of_pydelta() -> str:
    assert _FIRST_IMPORT in _SCRIPT
    return _SCRIPT.replace(_FIRST_IMPORT, ONE_LINE + _FIRST_IMPORT)


def of_delta_spark(jars: str) -> str:
    """jars: of delta-spark. Its own function would fetch them from Maven."""
    make = "configure_spark_with_delta_pip(builder)"
    assert make in _SCRIPT
    settings = {"spark.jars": jars, "spark.databricks.delta.snapshotPartitions": "2"}  # of 50, most are empty for small tables
    return _SCRIPT.replace(make, f"builder.config(map={json.dumps(settings)})")
