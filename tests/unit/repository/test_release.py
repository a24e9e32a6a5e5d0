"""The distribution's name is the same everywhere, and the version is known with and without an installation."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from delta_py import release
from delta_py.release import DISTRIBUTION, UNKNOWN_VERSION, install_command, own_version
from tests.support.documents import pages
from tests.support.documents.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
TEXTS = [*pages.PAGES, *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md", "Makefile"))]
SOURCES = [path for package in ("delta_py", "spark_plugin", "pydelta_cli") for path in (ROOT / package).rglob("*.py")]


@pytest.fixture
def no_metadata(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No distribution is installed."""

    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    own_version.cache_clear()
    yield
    own_version.cache_clear()


# ---------------------------------------------------------------- the name


def test_project_and_its_references_to_itself_have_the_name() -> None:
    assert PROJECT["name"] == DISTRIBUTION
    requirements = [requirement for extra in EXTRAS.values() for requirement in extra]
    assert {requirement.partition("[")[0] for requirement in requirements if requirement.startswith("pydelta")} == {DISTRIBUTION}


@pytest.mark.parametrize("path", [*TEXTS, *SOURCES], ids=lambda path: str(path.relative_to(ROOT)))
def test_text_names_the_distribution_and_extras_that_exist(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"pip install \S*pydelta(?!-lake|_lake)[^\n]*|pydelta\[[a-z]\w+[^\n]*", text) == []
    named = [extra for extras in re.findall(r"pydelta-lake\[([\w,]+)\]", text) for extra in extras.split(",")]
    named += re.findall(r"install_command\(['\"](\w+)['\"]\)", text)
    assert sorted(set(named) - set(EXTRAS)) == []


def test_command_of_messages_installs_the_distribution() -> None:
    assert install_command("s3") == "pip install 'pydelta-lake[s3]'"
    assert install_command("spark", "s3") == "pip install 'pydelta-lake[spark,s3]'"


# ---------------------------------------------------------------- the version


def test_version_is_that_of_the_installed_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", {DISTRIBUTION: "3.2.1"}.__getitem__)
    own_version.cache_clear()
    assert own_version() == "3.2.1"
    own_version.cache_clear()


def test_version_of_a_checkout_is_in_its_pyproject(no_metadata: None) -> None:
    assert own_version() == PROJECT["version"]


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(lambda directory: directory / "pyproject.toml", id="an installed package"),
        pytest.param(lambda directory: file_in(directory, "pydelta.zip") / "pyproject.toml", id="a zip file"),
        pytest.param(lambda directory: file_in(directory, "pyproject.toml"), id="another project"),
    ],
)
def test_version_without_metadata_and_checkout_is_unknown(tmp_path: Path, place: Callable[[Path], Path]) -> None:
    assert release._version_of_checkout(place(tmp_path)) == UNKNOWN_VERSION


def file_in(directory: Path, name: str) -> Path:
    path = directory / name
    path.write_text('[project]\nname = "pydelta"\nversion = "1.7.0"\n')
    return path
