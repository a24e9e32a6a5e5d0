"""The tour of an object store runs, with its own server and with an existing one."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.storage.conftest import CONTAINER
from tests.support.servers.emulator_programs import VERSITYGW
from tests.support.servers.emulators import Emulator
from tests.support.spark.settings import restore

TOUR = Path(__file__).parents[3] / "examples" / "object_store.py"


@pytest.fixture(autouse=True)
def settings(spark: SparkSession, emulators: Callable[[str], Emulator]) -> Iterator[None]:
    """The tour uses the existing session, and does not change it."""
    before = {name: spark.conf.get(name, None) for name in (f"spark.pydelta.{name}" for name in emulators("s3").settings())}
    yield
    restore(spark, before)


def tour(capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(TOUR))
    return capsys.readouterr().out


def test_tour_shows_commits_pruning_versions_and_row_counts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(TOUR)])
    text = tour(capsys)
    assert re.findall(r"\|(\d) +\|WRITE", text) == [str(version) for version in range(8, -1, -1)]
    read_count, total = re.findall(r"(\d+) of (\d+) files", text)[0]
    assert int(read_count) == 1 and int(total) >= 10
    assert "version 0 has 731 rows, 87 of them fog\nthe newest version has 1,050 rows, 0 of them fog\n23 days of snow\n" in text
    assert "pydelta: version 9, 1,050 rows\ndeltalake: version 9, 1,050 rows\n" in text


def test_tour_takes_a_server_that_is_there(
    emulators: Callable[[str], Emulator], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator = emulators("s3")
    settings = emulator.settings()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", settings["s3.access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", settings["s3.secret_access_key"])
    monkeypatch.setattr(sys, "argv", [str(TOUR), emulator.endpoint, CONTAINER])
    assert "deltalake: version 9, 1,050 rows\n" in tour(capsys)


def test_tour_without_a_server_says_what_to_type(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYDELTA_EMULATORS", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(TOUR)])
    with pytest.raises(SystemExit, match="Type: make emulators\nOr give the endpoint and the bucket") as raised:
        runpy.run_path(str(TOUR))
    assert VERSITYGW.version in str(raised.value)
