"""The warnings of register: workers that cannot run pydelta."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_plugin import session


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_checked_programs", set())


def warnings(python: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(pythonExec=python))
    with caplog.at_level(logging.WARNING, "pydelta"):
        session._check_workers(spark)
        session._check_workers(spark)
    return [record.getMessage() for record in caplog.records]


def test_workers_that_run_this_python_are_no_reason_to_warn(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(sys.executable, caplog) == []


def test_workers_without_packages_get_one_warning_with_the_fix(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
    bare.chmod(0o755)
    (message,) = warnings(str(bare), caplog)
    assert "No module named" in message and str(bare) in message
    assert f"os.environ['PYSPARK_PYTHON'] = {sys.executable!r}" in message


def test_workers_whose_python_is_missing_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (message,) = warnings(str(tmp_path / "nowhere"), caplog)
    assert "no such program" in message


def test_workers_in_another_python_with_our_packages_are_fine(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    link = tmp_path / "python-of-the-cluster"
    link.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    link.chmod(0o755)
    assert warnings(str(link), caplog) == []
