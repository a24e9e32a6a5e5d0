"""`pydelta ... --spark`: Spark jobs run the command, in the running session, which stays."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from delta_py import DeltaTable, write_delta
from pydelta_cli.main import app


def answer(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--spark", "--json"])
    assert result.exit_code == 0, (result.output, result.stderr, result.exception)
    return json.loads(result.stdout)


def test_spark_does_what_the_command_says(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for number in range(3):
        write_delta(path, pa.table({"id": [number, number + 10]}), mode="append")
    lost = tmp_path / "t" / "lost.parquet"
    lost.write_bytes(b"x")
    os.utime(lost, (86_400, 86_400))
    assert answer("optimize", path)["metrics"]["numFilesRemoved"] == 3
    assert answer("zorder", path, "--by", "id")["metrics"]["numFilesAdded"] == 1
    result = answer("vacuum", path)
    assert [file["modification_time"] for file in result["files"]] == ["1970-01-02T00:00:00.000000+00:00"]
    assert result["files"][0]["path"].endswith("/lost.parquet")
    assert lost.exists() and answer("vacuum", path, "--delete")["files_total"] == 1 and not lost.exists()
    assert answer("clone", path, str(tmp_path / "c"), "--version", "0")["files"] == 1
    assert sorted(DeltaTable(path).to_arrow()["id"].to_pylist()) == [0, 1, 2, 10, 11, 12]
    assert spark.range(1).count() == 1, "the session goes on"
