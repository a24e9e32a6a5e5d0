"""What a wheel and an sdist must contain, and that the check of make dist notices missing files."""

from __future__ import annotations

import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from spark_plugin.java import jars
from spark_plugin.java.build import archive_of
from tests.support.documents.dist_contents import problems_of

ROOT = Path(__file__).parents[2]
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
    with zipfile.ZipFile(directory / "pydelta.whl", "w") as wheel:
        for name in in_wheel:
            wheel.write(file, name)
    with tarfile.open(directory / "pydelta.tar.gz", "w:gz") as sdist:
        for name in in_sdist:
            sdist.add(file, f"pydelta-0.1.0/{name}")


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


def test_package_data_has_the_jars_and_no_java_sources() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert "jars/*.jar" in tools["package-data"]["spark_plugin"]
    assert tools["include-package-data"] is False, "what MANIFEST.in has for the sdist would be in the wheel"
    assert not any("java" in pattern for pattern in tools["package-data"]["spark_plugin"])
