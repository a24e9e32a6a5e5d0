"""Class files of the package's Java sources: kept by what they depend on, and never taken from where others may write."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from spark_plugin import compiled_java
from spark_plugin.compiled_java import (
    archive_of,
    class_archive,
    has_cache,
    keep_release,
    release_archive,
    release_name,
    source_archive,
    sources_of,
)

FOLDERS = ("columnar",)


class Compiler:
    """Counts, and makes a class file of each source."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, sources: Mapping[str, bytes]) -> dict[str, bytes]:
        self.calls += 1
        return {path.replace(".java", ".class"): b"\xca\xfe" + text[:10] for path, text in sources.items()}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    directory.mkdir(mode=0o700)
    monkeypatch.setenv("PYDELTA_CACHE_DIR", str(directory))
    return directory


def entries(cache: Path) -> list[Path]:
    return sorted(cache.glob("*.classes"))


def names(archive: bytes) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(archive)).namelist()


def test_compiled_once_for_a_platform(cache: Path) -> None:
    compiler = Compiler()
    first = class_archive(FOLDERS, "Spark 4.3", compiler)
    assert class_archive(FOLDERS, "Spark 4.3", compiler) == first
    assert (compiler.calls, len(entries(cache))) == (1, 1)
    class_archive(FOLDERS, "Spark 4.2", compiler)
    assert (compiler.calls, len(entries(cache))) == (2, 2)
    assert set(names(first)) == {path.replace(".java", ".class") for path in sources_of(*FOLDERS, spark="4.3")}


def test_compiled_anew_for_other_sources(cache: Path) -> None:
    compiler = Compiler()
    class_archive(("columnar",), "Spark", compiler)
    class_archive(("columnar", "sql_catalog"), "Spark", compiler)
    assert compiler.calls == 2


def test_compiled_each_time_where_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYDELTA_CACHE_DIR", "")
    compiler = Compiler()
    assert not has_cache()
    for _ in range(2):
        class_archive(FOLDERS, "Spark", compiler)
    assert compiler.calls == 2


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666], ids=oct)
def test_entry_to_which_others_may_write_is_not_run(cache: Path, mode: int) -> None:
    compiler = Compiler()
    class_archive(FOLDERS, "Spark", compiler)
    (entry,) = entries(cache)
    entry.chmod(mode)
    class_archive(FOLDERS, "Spark", compiler)
    assert compiler.calls == 2
    assert entry.stat().st_mode & 0o022 == 0, "it was not replaced"


@pytest.mark.parametrize("place", ["cache", "parent"])
def test_directory_that_others_can_change_or_replace_is_not_used(cache: Path, place: str) -> None:
    compiler = Compiler()
    class_archive(FOLDERS, "Spark", compiler)
    (cache if place == "cache" else cache.parent).chmod(0o777)
    assert not has_cache()
    class_archive(FOLDERS, "Spark", compiler)
    assert compiler.calls == 2


def test_damaged_entry_and_a_link_are_not_run(cache: Path, tmp_path: Path) -> None:
    compiler = Compiler()
    archive = class_archive(FOLDERS, "Spark", compiler)
    (entry,) = entries(cache)
    whole = entry.read_bytes()
    for damaged in (whole[:-1], whole[:100] + b"x" + whole[101:], b""):
        entry.write_bytes(damaged)
        assert class_archive(FOLDERS, "Spark", compiler) == archive
        assert entry.read_bytes() == whole
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(whole)
    entry.unlink()
    os.symlink(elsewhere, entry)
    class_archive(FOLDERS, "Spark", compiler)
    assert compiler.calls == 5


def test_nothing_is_kept_of_sources_that_do_not_compile(cache: Path) -> None:
    def fails(sources: Mapping[str, bytes]) -> dict[str, bytes]:
        raise RuntimeError("Line 1")

    with pytest.raises(RuntimeError, match="Line 1"):
        class_archive(FOLDERS, "Spark", fails)
    assert list(cache.iterdir()) == []


def test_sources_are_packed_as_they_are() -> None:
    archive = zipfile.ZipFile(io.BytesIO(source_archive("columnar", "4.3.0")))
    assert {name: archive.read(name) for name in archive.namelist()} == sources_of("columnar", spark="4.3.0")
    assert all(name.startswith("pydelta/columnar/") for name in archive.namelist())


def test_release_is_found_by_sparks_version_and_the_sources(cache: Path) -> None:
    assert release_archive(FOLDERS, "4.3.0") is None
    archive = class_archive(FOLDERS, "4.3.0 vendor", Compiler())
    keep_release(FOLDERS, "4.3.0", archive)
    assert release_archive(FOLDERS, "4.3.0") == archive
    assert release_archive(FOLDERS, "4.3.1") is None
    assert release_archive(("pruning",), "4.3.0") is None


def test_release_of_the_wheel_goes_before_the_cache_and_names_its_sources(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = cache.parent / "package"
    for folder in FOLDERS:
        (package / folder).mkdir(parents=True)
    (package / FOLDERS[0] / "One.java").write_text("class One {}")
    monkeypatch.setattr(compiled_java.resources, "files", lambda _: package)
    keep_release(FOLDERS, "4.3.0", archive_of({"kept": b""}))
    (package / "classes").mkdir()
    (package / "classes" / release_name(FOLDERS, "4.3.0")).write_bytes(b"of the wheel")
    assert release_archive(FOLDERS, "4.3.0") == b"of the wheel"
    (package / FOLDERS[0] / "One.java").write_text("class One { int changed; }")
    assert release_archive(FOLDERS, "4.3.0") is None
