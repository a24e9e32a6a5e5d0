"""`import spark_plugin.as_delta` makes the modules of delta-spark where it is not installed, and registers sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_py.release import own_version
from tests.support.spark.spark_script import run_script

MODULES = """
import json, sys
import spark_plugin.as_delta
import delta, delta.tables, delta.exceptions, delta.connect
from delta.connect.exceptions import DeltaConcurrentModificationException
from delta.connect.tables import DeltaTable as ConnectDeltaTable
from delta.version import __version__
from delta import DeltaTable, configure_spark_with_delta_pip
from delta.exceptions import *
from delta.tables import *
from delta.pip_utils import configure_spark_with_delta_pip as again
from importlib import import_module, reload
from importlib.util import find_spec
from pyspark.sql import SparkSession
import spark_plugin, spark_plugin.exceptions, spark_plugin.tables

names = ["DeltaMergeBuilder", "DeltaOptimizeBuilder", "DeltaTable", "DeltaTableBuilder", "IdentityGenerator"]
builder = SparkSession.builder
print(json.dumps({
    "tables": [getattr(delta.tables, name) is getattr(spark_plugin.tables, name) is globals()[name] for name in names],
    "exception": ConcurrentAppendException is spark_plugin.exceptions.ConcurrentAppendException,
    "package": [delta.DeltaTable is DeltaTable is spark_plugin.DeltaTable, delta.tables is import_module("delta.tables")],
    "builder": [configure_spark_with_delta_pip(builder) is builder, again is configure_spark_with_delta_pip],
    "packages": again(SparkSession.builder, extra_packages=["a:b:1", "c:d:2"])._options["spark.jars.packages"],
    "spec": find_spec("delta") is not None,
    "connect": ConnectDeltaTable is delta.connect.DeltaTable is delta.DeltaTable,
    "versions": [__version__, delta.__version__],
    "again": import_module("spark_plugin.as_delta") is spark_plugin.as_delta,
}))
"""

SESSIONS = """
import json, sys
from pyspark.sql import SparkSession
home, is_late = sys.argv[1:]
def make():
    return SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark = make() if is_late else None
import spark_plugin.as_delta
spark = spark or make()
spark.range(3).write.format("delta").save(home + "/t")
from delta.tables import DeltaTable
DeltaTable.forPath(spark.newSession(), home + "/t").delete("id = 0")
sessions = [spark.newSession(), make()]
print(json.dumps({"rows": [session.read.format("delta").load(home + "/t").count() for session in sessions]}))
"""


def test_modules_of_delta_spark_are_those_of_pydelta() -> None:
    found = run_script(MODULES)
    assert found["tables"] == [True] * 5
    assert found["package"] == found["builder"] == [True, True]
    assert found["exception"] and found["spec"] and found["again"] and found["connect"]
    assert found["versions"] == [own_version()] * 2
    assert found["packages"] == "a:b:1,c:d:2"


@pytest.mark.parametrize("is_late", ["", "late"])
def test_sessions_before_and_after_the_import_are_registered(is_late: str, tmp_path: Path) -> None:
    assert run_script(SESSIONS, str(tmp_path), is_late)["rows"] == [2, 2]


REFUSED = """
import json, sys
sys.path.insert(0, sys.argv[1])
try:
    import spark_plugin.as_delta
    error = None
except ImportError as raised:
    error = str(raised)
from pyspark.sql import SparkSession
print(json.dumps({
    "error": error,
    "is_theirs": getattr(sys.modules.get("delta"), "is_theirs", None),
    "wrapped": hasattr(SparkSession.Builder.getOrCreate, "__wrapped__"),
}))
"""


@pytest.mark.parametrize("imported", ["", "import delta\n"])
def test_import_is_refused_where_another_package_is_named_delta(imported: str, tmp_path: Path) -> None:
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "__init__.py").write_text("is_theirs = True\n")
    found = run_script(REFUSED.replace("try:", f"{imported}try:"), str(tmp_path))
    assert str(tmp_path / "delta" / "__init__.py") in found["error"]
    assert "pip uninstall delta-spark" in found["error"]
    assert found["is_theirs"] is (True if imported else None)
    assert not found["wrapped"]


def test_folder_of_data_named_delta_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    found = run_script(REFUSED, str(tmp_path))
    assert found["error"] is None
    assert found["wrapped"]
