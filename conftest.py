"""Shared by all tests: marks from the folder, the settings of random tests, the acceptance tables, one Spark session."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from spark_plugin.java.build import BuildError, build
from tests.support.peers import delta_spark
from tests.support.runs import sampling
from tests.support.runs.file_seconds import SecondsOfFiles, slowest_files_first
from tests.support.runs.seeds import run_seed
from tests.support.spark.settings import restore
from tests.support.spark.warm_daemon import WARM_SITE
from tests.support.tables.corpus import unpack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent
TESTS = ROOT / "tests"

# No deadline: the time of one example means nothing on a shared machine. A failure prints what replays it. The examples are the
# same in each run, so that the verdict on a change depends on the change; a seed of the run makes others (support/runs/seeds.py).
hypothesis.settings.register_profile("pydelta", deadline=None, print_blob=True, derandomize=run_seed() is None)
hypothesis.settings.load_profile("pydelta")

# Spark's workers and a Connect server start from here and get the environment of this process.
os.environ["TZ"] = "UTC"
time.tzset()
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise every worker would compile all modules again
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ["PYDELTA_CACHE_DIR"] = ""  # each test of the cache has its own
os.environ["PYDELTA_POST_COMMIT_ERRORS"] = "all"  # failures that users only see as a warning must fail here
# No power is lost: waiting for the disk would take a third of the time of tests that commit.
pytest.MonkeyPatch().setattr(os, "fsync", lambda descriptor: None)


def pytest_report_header() -> list[str]:
    return [f"PYDELTA_SEED={run_seed() or ''} PYDELTA_SAMPLE={sampling.sample_number()}", *_problems]


_problems: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    if not _is_xdist_worker(config):
        _build_jar()
    if os.environ.get("PYDELTA_WRITE_SECONDS") and not _is_xdist_worker(config):
        config.pluginmanager.register(SecondsOfFiles())


def _build_jar() -> None:
    """The jar of the current Java sources, for the pyspark of this environment. Tests without Spark run without it."""
    try:
        build()
    except BuildError as error:
        _problems.append(f"The jar of the Java part was not built: {error}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(TESTS):
            item.add_marker(item.path.relative_to(TESTS).parts[0])
    slowest_files_first(items, TESTS)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _is_xdist_worker(session.config):  # all of them collect all files, and print the same
        session.config.workeroutput["sampled"] = sampling.summary()  # type: ignore[attr-defined]


@pytest.hookimpl(optionalhook=True)  # of xdist, which not every environment has
def pytest_testnodedown(node: object) -> None:
    global _sampled_by_workers
    _sampled_by_workers = getattr(node, "workeroutput", {}).get("sampled", _sampled_by_workers)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what the run left out, and how to include it."""
    lines = sampling.summary() or _sampled_by_workers
    if lines:
        terminalreporter.section(f"sampled: PYDELTA_SAMPLE={sampling.sample_number()}, make nightly takes all")
        for line in lines:
            terminalreporter.line(line)


_sampled_by_workers: list[str] = []


def _is_xdist_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """The acceptance tables, unpacked once for all processes of a run; tests read them and change nothing."""
    base = tmp_path_factory.getbasetemp()
    directory = (base.parent if _is_xdist_worker(pytestconfig) else base) / "corpus"
    marker = directory.with_suffix(".unpacked")
    with open(directory.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed
        if not marker.exists():
            unpack(directory)
            marker.touch()
    return directory


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A registered local session in UTC, until the last test. Tests that change its settings restore them.

    With PYDELTA_PEER_JARS (make interop) the format `delta` is delta-spark's. With PYDELTA_MASTER (make cluster) it uses the
    executors of that cluster.
    """
    from pyspark.sql import SparkSession

    from delta_py.storage.cache import content_identity
    from spark_plugin import register

    planning = os.environ.get("PYDELTA_DRIVER_PLANNING")
    # Tests run much code once: the compiler that optimizes more would take its time from them (an eighth of the Spark tests').
    # Without it Java has 48 MB for compiled code. In the middle of the tests they are full, and code is compiled again and again.
    java_options = "-Duser.timezone=UTC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
    builder = SparkSession.builder.master(os.environ.get("PYDELTA_MASTER", "local[2]")).appName("pydelta tests")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": java_options,
        "spark.executor.extraJavaOptions": java_options,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        # With PYDELTA_NATIVE_READER=true all tests read simple files by Spark's own Parquet reader.
        **({"spark.pydelta.nativeReader.enabled": native} if (native := os.environ.get("PYDELTA_NATIVE_READER")) else {}),
        # Tables of tests are small: the driver would read most of them, and few tests would have tasks that read. With
        # PYDELTA_DRIVER_READS=true it does; tests/spark/planning/test_driver_reads.py always has it on.
        "spark.pydelta.driverReads.enabled": os.environ.get("PYDELTA_DRIVER_READS", "false"),
        # With PYDELTA_DRIVER_PLANNING=false workers plan the scans of all tests; with true young logs are cached too.
        **({"spark.pydelta.driverPlanning.enabled": planning} if planning else {}),
        **delta_spark.settings(),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        if not sampling.takes_all():  # workers are forked with their imports done; a run of all cases has Spark's own way
            patch.setenv("PYTHONPATH", WARM_SITE, prepend=os.pathsep)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    if planning == "true":
        content_identity._SETTLED_MS = 50  # tables of tests are young, and their logs must be cached too
    register(session)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def plain_plans(spark: SparkSession) -> Iterator[None]:
    """For files that test the effect on a table, and not how Spark plans: it compiles no code for queries that run once."""
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
    }
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    restore(spark, before)


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
    """Commits that lose a race try the next version immediately."""
    from delta_py.commit.attempts import RetryPolicy

    monkeypatch.setattr(RetryPolicy, "wait_seconds", lambda self, attempt, **_: 0.0)


@pytest.fixture
def publication_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers publish ratified commits before they continue."""
    from delta_py.storage import publication

    monkeypatch.setattr(publication, "publish_later", lambda store: store.publish())


@pytest.fixture
def harmless_post_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage and data may fail the steps after a commit, as they do for users; mistakes of pydelta still fail the test."""
    monkeypatch.setenv("PYDELTA_POST_COMMIT_ERRORS", "mistakes")
