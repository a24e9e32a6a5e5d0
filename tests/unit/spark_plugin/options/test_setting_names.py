"""Names of settings and options that Python and Java both read: this table has them, and both must use its names.

test_read_plan.py compares the older settings of roads.py and Switch.java, which Java makes of parts.
"""

from __future__ import annotations

import re

import pytest

from spark_plugin.dataframe_api.batch_save import OPTIMIZE_CONF
from spark_plugin.options import settings
from spark_plugin.options.common import WRITE_CONFS
from spark_plugin.options.roads import DISABLE_CONF, PREFER_CONF
from spark_plugin.sql_catalog import delta_names, uploaded
from spark_plugin.sql_router import JVM_ENABLED
from tests.support.documents.pages import ROOT

PYTHON = ROOT / "spark_plugin"
JAVA = PYTHON / "java"

# (name, Python's constant, the Java class)
SHARED = [
    ("spark.pydelta.disable", DISABLE_CONF, "rule/Switch"),
    ("spark.pydelta.prefer", PREFER_CONF, "rule/Switch"),
    ("spark.pydelta.sql.jvm.enabled", JVM_ENABLED, "statements/StatementRouter"),
    ("spark.databricks.delta.write.txnVersion", WRITE_CONFS["txnVersion"], "tables/SourceBatchWrite"),
    ("spark.databricks.delta.write.txnVersion.autoReset.enabled", settings._AUTO_RESET_CONF, "tables/SourceBatchWrite"),
    ("spark.databricks.delta.optimizeWrite.enabled", OPTIMIZE_CONF, "tables/SourceWrite"),
    ("spark.sql.catalog.pydelta.linkProblems", uploaded._PROBLEMS_CONF, "catalog/Uploaded"),
    ("spark.sql.catalog.pydelta.deltaSpark", delta_names.NOTED_BY_CLASSES_CONF, "catalog/Uploaded"),
]
# Python does not read these.
OF_JAVA = [("spark.pydelta.driverPlanning.answerSeconds", "driver/DriverPlanner")]

_KEY = r'"(pydelta\.\w+)"'
_NAMES = re.compile(r'"(spark\.(?:pydelta|databricks|sql\.catalog\.pydelta)\.[\w.]*\w)"')


@pytest.mark.parametrize(("name", "constant"), [(name, constant) for name, constant, _ in SHARED])
def test_python_uses_the_name_of_the_table(name: str, constant: str) -> None:
    assert constant == name


def test_java_has_each_name_of_the_table_once_and_no_others() -> None:
    in_java = [
        (name, str(path.relative_to(JAVA).with_suffix("")))
        for path in sorted(JAVA.rglob("*.java"))
        for name in _NAMES.findall(path.read_text())
    ]
    assert sorted(in_java) == sorted([*((name, java) for name, _, java in SHARED), *OF_JAVA])


def test_options_and_keys_of_java_are_constants_of_python() -> None:
    """Private options, and keys in the metadata of columns."""
    in_python = {key for path in PYTHON.rglob("*.py") for key in re.findall(rf"^\w+ = {_KEY}$", path.read_text(), re.MULTILINE)}
    in_java = {key for path in JAVA.rglob("*.java") for key in re.findall(rf"(?<!getLogger\(){_KEY}", path.read_text())}
    assert in_java and sorted(in_java - in_python) == []
