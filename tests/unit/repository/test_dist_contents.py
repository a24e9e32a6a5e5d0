"""What a wheel and an sdist must contain, and that the check of make dist notices missing files."""

from __future__ import annotations

import runpy
import shutil
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_plugin.java import jars
from spark_plugin.java.build import archive_of
from tests.support.documents.dist_contents import problems_of

ROOT = Path(__file__).parents[3]
JAR = "spark_plugin/jars/pydelta-spark-4.3.jar"


@pytest.fixture
def one_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree of one class, for Spark 4.3 alone; a directory for wheel and sdist."""
    sources = tmp_path / "java"
    (sources / "rule").mkdir(parents=True)
    (sources / "rule" / "One.java").write_text("package pydelta.rule; class One {}")
    monkeypatch.setattr(jars, "SOURCES", sources)
    monkeypatch.setattr(jars, "MINOR_VERSIONS", ("4.3",))
    (tmp_path / "dist").mkdir()
    return tmp_path / "dist"


def make_dist(directory: Path, digest: str, *, in_wheel: tuple[str, ...], in_sdist: tuple[str, ...]) -> None:
    jar = archive_of({jars.MANIFEST: jars.manifest_text("0.1.0", "4.3.0", digest).encode()})
    file = directory.parent / "content"
    file.write_bytes(jar)
    with zipfile.ZipFile(directory / "pydelta_lake.whl", "w") as wheel:
        for name in in_wheel:
            wheel.write(file, name)
    (directory / "pydelta_lake.zip").write_bytes((directory / "pydelta_lake.whl").read_bytes())
    with tarfile.open(directory / "pydelta_lake.tar.gz", "w:gz") as sdist:
        for name in in_sdist:
            sdist.add(file, f"pydelta_lake-0.1.0/{name}")


def test_wheel_and_sdist_with_the_jars_of_these_sources_pass(one_version: Path) -> None:
    digest = jars.digest_of(jars.sources_for("4.3"))
    make_dist(one_version, digest, in_wheel=(JAR,), in_sdist=(JAR, "spark_plugin/java/rule/One.java"))
    assert problems_of(one_version) == []


def test_what_is_missing_stale_or_too_much_is_named(one_version: Path) -> None:
    assert problems_of(one_version) == [f"{one_version} has 0 wheels and 0 sdists"]
    make_dist(one_version, "of other sources", in_wheel=("spark_plugin/java/rule/One.java",), in_sdist=(JAR,))
    assert problems_of(one_version) == [
        f"the wheel lacks {JAR}",
        f"{JAR} of the sdist was built from other sources",
        "the sdist lacks spark_plugin/java/rule/One.java",
        "the wheel has spark_plugin/java/rule/One.java",
    ]


@pytest.mark.parametrize("change", ["no zip", "other content", "two zips"])
def test_zip_that_is_not_the_wheel_is_named(one_version: Path, change: str) -> None:
    digest = jars.digest_of(jars.sources_for("4.3"))
    make_dist(one_version, digest, in_wheel=(JAR,), in_sdist=(JAR, "spark_plugin/java/rule/One.java"))
    zipped = one_version / "pydelta_lake.zip"
    if change == "no zip":
        zipped.unlink()
    elif change == "other content":
        zipped.write_bytes(b"PK")
    else:
        shutil.copy(zipped, one_version / "older.zip")
    assert problems_of(one_version) == ["no zip file, or more than the one with the content of the wheel"]


@pytest.mark.parametrize(
    ("jar", "expected"), [(None, ["py.typed", "jars/*.jar", "java/**/*.java"]), ("one.jar", ["py.typed", "jars/*.jar"])]
)
def test_wheel_without_jars_gets_the_java_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jar: str | None, expected: list[str]
) -> None:
    """setup.py runs with a stand-in for setuptools, which is not in every environment."""

    class BuildPy:
        def finalize_options(self) -> None:
            self.package_data = {"spark_plugin": ["py.typed", "jars/*.jar"], "delta_py": ["py.typed"]}

    commands: dict[str, Any] = {}
    monkeypatch.setitem(sys.modules, "setuptools", SimpleNamespace(setup=lambda cmdclass: commands.update(cmdclass)))
    monkeypatch.setitem(sys.modules, "setuptools.command", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "setuptools.command.build_py", SimpleNamespace(build_py=BuildPy))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spark_plugin" / "jars").mkdir(parents=True)
    if jar is not None:
        (tmp_path / "spark_plugin" / "jars" / jar).touch()
    runpy.run_path(str(ROOT / "setup.py"))
    command = commands["build_py"]()
    command.finalize_options()
    assert command.package_data == {"spark_plugin": expected, "delta_py": ["py.typed"]}


def test_package_data_has_the_jars_and_no_java_sources() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert "jars/*.jar" in tools["package-data"]["spark_plugin"]
    assert tools["include-package-data"] is False, "what MANIFEST.in has for the sdist would be in the wheel"
    assert not any("java" in pattern for pattern in tools["package-data"]["spark_plugin"])
