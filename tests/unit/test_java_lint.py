"""The check of the Java sources fails where it cannot be made, and where there is something to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import java_lint


def test_lint_without_a_compiler_fails_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_lint.main([]) == 1
    assert "javac was not found" in capsys.readouterr().err


def test_lint_finds_private_methods_that_lock_more_than_their_object(tmp_path: Path) -> None:
    source = tmp_path / "Locks.java"
    modifiers = ("private synchronized", "synchronized", "private static synchronized", "private final synchronized")
    source.write_text("\n".join(["class Locks {", *(f"  {each} void one() {{}}" for each in modifiers), "}"]))
    assert java_lint.locks_of_classes(source) == [f"{source}:2", f"{source}:5"]


def test_lint_refuses_a_warning(tmp_path: Path) -> None:
    javac = java_lint.find_javac()
    if javac is None:
        pytest.skip("no javac here; `make javac` fails then")
    source = tmp_path / "Old.java"
    source.write_text("class Old { Object value() { return new Integer(1); } }")
    assert not java_lint.compiles(javac, tmp_path, [source])
    source.write_text("class Old { Object value() { return Integer.valueOf(1); } }")
    assert java_lint.compiles(javac, tmp_path, [source])
