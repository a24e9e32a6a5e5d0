"""What all tests share: marks that come from the folder, how random tests run, the acceptance tables, one Spark session."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.support.corpus import unpack
from tests.support.settings import restore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent
TESTS = ROOT / "tests"

# No deadline: the time of one example says nothing on a shared machine. A failure prints what replays it. The examples are
# the same at each run, so that the verdict on a change is of the change; PYDELTA_RANDOM=1 looks for new ones.
hypothesis.settings.register_profile("pydelta", deadline=None, print_blob=True, derandomize=not os.environ.get("PYDELTA_RANDOM"))
hypothesis.settings.load_profile("pydelta")

# Spark's workers and a Connect server are started from here and take their environment from this process.
os.environ["TZ"] = "UTC"
time.tzset()
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # every worker would compile all modules anew
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ["PYDELTA_CACHE_DIR"] = ""  # each test of the cache has its own


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(TESTS):
            item.add_marker(item.path.relative_to(TESTS).parts[0])


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The acceptance tables, unpacked; tests read them and change nothing."""
    directory = tmp_path_factory.mktemp("corpus")
    unpack(directory)
    return directory


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A registered local session in UTC, until the last test. Tests that change its settings put them back.

    With PYDELTA_PEER_JARS (make interop) the format `delta` is delta-spark's.
    """
    from pyspark.sql import SparkSession

    from spark_plugin import register

    builder = SparkSession.builder.master("local[2]").appName("pydelta tests")
    settings = {
        "spark.driver.host": "127.0.0.1",
        # Tests run much code once: the compiler that takes its time would take it from them (an eighth of the Spark tests').
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:TieredStopAtLevel=1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        **_peer_settings(),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    session.stop()


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[Callable[[Mapping[str, str]], None]]:
    """Sets the session's settings for one test."""
    before: dict[str, str | None] = {}

    def put(settings: Mapping[str, str]) -> None:
        for name, value in settings.items():
            before.setdefault(name, spark.conf.get(name, None))
            spark.conf.set(name, value)

    yield put
    restore(spark, before)


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits that lose a race try the next version at once."""
    from delta_py.commit.transaction import RetryPolicy

    monkeypatch.setattr(RetryPolicy, "wait_seconds", lambda self, attempt: 0.0)


def _peer_settings() -> dict[str, str]:
    folder = os.environ.get("PYDELTA_PEER_JARS")
    if not folder:
        return {}
    jars = sorted(str(jar) for name in ("delta-*.jar", "unitycatalog-*.jar") for jar in Path(folder).glob(name))
    return {
        "spark.jars": ",".join(jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",  # of 50, most are empty for tables as small as those of tests
    }
