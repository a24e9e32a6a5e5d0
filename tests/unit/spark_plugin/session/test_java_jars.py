"""Which jar a session uses, how a jar is built, and that a jar of other sources is refused."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delta_py.errors import UnsupportedOperationError
from spark_plugin import session as session_module
from spark_plugin.java import build as build_module
from spark_plugin.java import jars
from spark_plugin.java.build import BuildError, archive_of, build, compile_sources, lint_options
from spark_plugin.java.jars import JarError, MissingJarError, jar_for

ONE = "package pydelta.rule; class One { int value() { return 1; } }"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A source tree with one class, and without a jar."""
    sources = tmp_path / "java"
    (sources / "rule").mkdir(parents=True)
    (sources / "rule" / "One.java").write_text(ONE)
    monkeypatch.setattr(jars, "SOURCES", sources)
    monkeypatch.setattr(jars, "DIRECTORY", tmp_path / "jars")
    jar_for.cache_clear()
    yield sources
    jar_for.cache_clear()


@pytest.fixture
def spark_43(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pyspark 4.3.1 without classes."""
    directory = tmp_path / "pyspark" / "jars"
    directory.mkdir(parents=True)
    (directory / "spark-sql_2.13-4.3.1.jar").write_bytes(archive_of({}))
    monkeypatch.setattr(build_module, "jars_of_pyspark", lambda: directory)
    return directory


def put_jar(minor_version: str) -> None:
    manifest = jars.manifest_text("0.1.0", f"{minor_version}.0", jars.digest_of(jars.sources_for(minor_version)))
    jars.DIRECTORY.mkdir(exist_ok=True)
    (jars.DIRECTORY / jars.jar_name(minor_version)).write_bytes(archive_of({jars.MANIFEST: manifest.encode()}))


# ---------------------------------------------------------------- which jar


@pytest.mark.parametrize(
    ("version", "minor_version", "is_newer"),
    [
        ("4.1.4", "4.1", False),
        ("4.2.0", "4.2", False),
        ("4.2.1", "4.2", False),
        ("4.3.0", "4.3", False),
        ("4.3.0-vendor-1", "4.3", False),
        ("4.4.0.dev1", "4.3", True),
        ("5.0.0", "4.3", True),
    ],
)
def test_jar_is_that_of_the_minor_version_or_the_newest(tree: Path, version: str, minor_version: str, is_newer: bool) -> None:
    for each in jars.MINOR_VERSIONS:
        put_jar(each)
    jar = jar_for(version)
    assert (jar.path.name, jar.minor_version) == (f"pydelta-spark-{minor_version}.jar", minor_version)
    assert jar.is_for_older_spark is is_newer


def test_jar_for_a_spark_that_is_too_old_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match=r"this is Spark 4\.0\.1"):
        jar_for("4.0.1")


# ---------------------------------------------------------------- missing and stale jars


def test_missing_jar_of_a_checkout_names_its_build_command(tree: Path) -> None:
    with pytest.raises(MissingJarError, match=r"4\.3\.jar is missing.*python -m spark_plugin\.java\.build") as error:
        jar_for("4.3.0")
    assert error.value.has_sources


def test_missing_jar_of_a_wheel_says_to_install_again(tree: Path) -> None:
    (tree / "rule" / "One.java").unlink()
    with pytest.raises(MissingJarError, match="Install pydelta again") as error:
        jar_for("4.3.0")
    assert not error.value.has_sources


@pytest.mark.parametrize("change", ["content", "name", "more", "version folder"])
def test_jar_of_other_sources_is_refused_and_names_the_command(tree: Path, change: str) -> None:
    put_jar("4.3")
    assert jar_for("4.3.0").path.exists()
    jar_for.cache_clear()
    source = tree / "rule" / "One.java"
    if change == "content":
        source.write_text(ONE.replace("1", "2"))
    elif change == "name":
        source.rename(source.with_name("Two.java"))
    elif change == "more":
        source.with_name("Two.java").write_text("package pydelta.rule; class Two {}")
    else:
        (tree / "spark_4_3" / "rule").mkdir(parents=True)
        (tree / "spark_4_3" / "rule" / "One.java").write_text(ONE.replace("1", "3"))
    with pytest.raises(JarError, match=r"other Java sources.*python -m spark_plugin\.java\.build"):
        jar_for("4.3.0")
    assert not jars.is_current("4.3")


def test_damaged_jar_is_refused(tree: Path) -> None:
    put_jar("4.3")
    (jars.DIRECTORY / jars.jar_name("4.3")).write_bytes(b"no zip")
    with pytest.raises(JarError, match="damaged"):
        jar_for("4.3.0")


def test_jar_is_read_from_a_zip_file_of_the_package(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "pydelta.zip"
    archive.write_bytes(archive_of({"spark_plugin/jars/pydelta-spark-4.3.jar": b"classes"}))
    monkeypatch.setattr(jars, "SOURCES", archive / "spark_plugin" / "java")
    monkeypatch.setattr(jars, "DIRECTORY", archive / "spark_plugin" / "jars")
    assert jar_for("4.3.0").path.read_bytes() == b"classes"
    with pytest.raises(MissingJarError, match=r"pydelta\.zip/spark_plugin/jars/pydelta-spark-4\.2\.jar is missing"):
        jar_for("4.2.0")


def test_jar_of_a_wheel_is_taken_as_it_is(tree: Path) -> None:
    put_jar("4.3")
    (tree / "rule" / "One.java").unlink()
    assert jar_for("4.3.0").path.exists()


def test_source_of_a_version_folder_replaces_the_common_one(tree: Path) -> None:
    own_folder = tree / "spark_4_2" / "rule"
    own_folder.mkdir(parents=True)
    for name in ("One", "Older"):
        (own_folder / f"{name}.java").write_text("")
    common = tree / "rule" / "One.java"
    assert jars.sources_for("4.3") == {"rule/One.java": common}
    assert jars.sources_for("4.2") == {"rule/Older.java": own_folder / "Older.java", "rule/One.java": own_folder / "One.java"}


# ---------------------------------------------------------------- register


class Session:
    def __init__(self, version: str) -> None:
        self.version = version


def spark_of(version: str) -> Any:
    return Session(version)


def test_register_refuses_a_stale_jar_before_it_changes_anything(tree: Path) -> None:
    put_jar("4.3")
    (tree / "rule" / "One.java").write_text(ONE.replace("1", "2"))
    with pytest.raises(JarError, match="other Java sources"):
        session_module.register(spark_of("4.3.0"))


def test_register_refuses_a_spark_that_is_too_old() -> None:
    with pytest.raises(UnsupportedOperationError, match=r"this is Spark 4\.0\.5"):
        session_module.register(spark_of("4.0.5"))


def test_register_builds_the_missing_jar_of_a_checkout(tree: Path, spark_43: Path) -> None:
    session_module._jar_of(spark_of("4.3.1"))
    assert jars.is_current("4.3")


def test_register_says_what_is_missing_where_it_cannot_build(tree: Path, spark_43: Path) -> None:
    with pytest.raises(MissingJarError, match=r"pydelta-spark-4\.2\.jar is missing"):  # from a server with another Spark
        session_module._jar_of(spark_of("4.2.0"))


def test_register_without_a_compiler_explains_the_missing_jar(
    tree: Path, spark_43: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tree))
    build = r"Install a JDK of Java 17 or newer, and build it: python -m spark_plugin\.java\.build\."
    way = rf"4\.3\.jar is missing\. {build} .* failed: javac"
    with pytest.raises(MissingJarError, match=way):
        session_module._jar_of(spark_of("4.3.1"))


# ---------------------------------------------------------------- the build


def test_equal_sources_build_equal_jars_with_a_true_manifest(tree: Path, spark_43: Path) -> None:
    path = build()
    first = path.read_bytes()
    path.unlink()
    os.utime(tree / "rule" / "One.java", (0, 0))
    assert build().read_bytes() == first
    manifest = jars.manifest_of(path)
    assert (manifest["Spark-Version"], manifest["Manifest-Version"]) == ("4.3.1", "1.0")
    assert manifest["Sources-Digest"] == jars.digest_of(jars.sources_for("4.3"))
    assert manifest["Pydelta-Version"]
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == [jars.MANIFEST, "pydelta/rule/One.class"]


def test_jar_that_is_current_is_not_built_again(tree: Path, spark_43: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build()
    monkeypatch.setattr(build_module, "compile_sources", lambda sources, spark_jars: {"other": b""})
    before = path.read_bytes()
    assert build().read_bytes() == before
    assert build(force=True).read_bytes() != before


def test_failed_build_keeps_the_old_jar(tree: Path, spark_43: Path) -> None:
    path = build()
    before = path.read_bytes()
    (tree / "rule" / "One.java").write_text("package pydelta.rule; class One { int value() { return x; } }")
    with pytest.raises(BuildError, match="cannot find symbol"):
        build()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_build_refuses_a_warning(tree: Path, spark_43: Path) -> None:
    source = tree / "rule" / "One.java"
    source.write_text("package pydelta.rule; class One { Object value() { return new Integer(1); } }")
    with pytest.raises(BuildError, match=r"\[removal\]"):
        compile_sources(jars.sources_for("4.3"), spark_43)


def test_build_without_a_compiler_says_what_is_missing(
    tree: Path, spark_43: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tree))
    assert build_module.main([]) == 1
    assert "javac was not found: install a JDK" in capsys.readouterr().err


def test_build_takes_the_spark_whose_jars_it_gets(
    tree: Path, spark_43: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build_module, "jars_of_pyspark", lambda: pytest.fail("pyspark is not needed"))
    assert build_module.main(["--spark-jars", str(spark_43)]) == 0
    assert capsys.readouterr().out == f"{jars.DIRECTORY / 'pydelta-spark-4.3.jar'}\n"
    assert jars.manifest_of(jars.DIRECTORY / "pydelta-spark-4.3.jar")["Spark-Version"] == "4.3.1"


def test_build_into_a_directory_that_cannot_be_written_says_so(
    tree: Path, spark_43: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jars, "DIRECTORY", tree / "missing" / "jars")
    assert build_module.main([]) == 1
    assert "pydelta-spark-4.3.jar cannot be written" in capsys.readouterr().err


def test_build_without_spark_says_so(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "jars_of_pyspark", lambda: tmp_path)
    with pytest.raises(BuildError, match="no Spark SQL"):
        build()


# ---------------------------------------------------------------- a newer javac


@pytest.mark.parametrize(("version_text", "are_errors"), [("javac 17.0.11\n", True), ("javac 17", True), ("javac 21", False)])
def test_warnings_are_errors_for_the_oldest_javac_only(version_text: str, are_errors: bool) -> None:
    """javac 21 warns of more than javac 17: an installation from source must not fail at that."""
    assert ("-Werror" in lint_options(version_text)) is are_errors
