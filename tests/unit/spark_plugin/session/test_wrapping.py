"""Wrapped methods of Spark, and patches by other libraries, without a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

from spark_plugin.internals.wrapping import original, wrap


@pytest.fixture
def writer() -> type[Any]:
    class Writer:
        def save(self, path: str) -> list[str]:
            return [f"spark {path}"]

    return Writer


def ours(method: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, path: ["ours", *method(self, path)]


def patch(cls: type[Any]) -> None:
    """As another library does it."""
    method = cls.save

    @wraps(method)
    def save(self: Any, path: str) -> list[str]:
        return ["theirs", *method(self, path)]

    cls.save = save


def test_spark_s_own_method_stays_known_when_others_wrap_it_too(writer: type[Any]) -> None:
    wrap(writer, "save", ours)
    patch(writer)
    assert writer().save("p") == ["theirs", "ours", "spark p"]
    assert original(writer, "save")(writer(), "p") == ["spark p"]
    assert original(type("Derived", (writer,), {}), "save")(writer(), "p") == ["spark p"]


@pytest.mark.parametrize("named", [True, False])
def test_wrapping_again_changes_nothing_also_after_a_patch(writer: type[Any], named: bool) -> None:
    wrap(writer, "save", ours)
    wrap(writer, "save", ours)
    assert writer().save("p") == ["ours", "spark p"]
    patch(writer)
    if not named:  # a patch without functools.wraps
        method = writer.save
        writer.save = lambda self, path: method(self, path)
    wrap(writer, "save", ours)
    assert writer().save("p") == ["theirs", "ours", "spark p"]


def test_a_method_that_was_put_back_is_wrapped_again(writer: type[Any]) -> None:
    spark_s = writer.save
    wrap(writer, "save", ours)
    writer.save = spark_s
    wrap(writer, "save", ours)
    assert writer().save("p") == ["ours", "spark p"]


def test_a_patch_from_before_is_part_of_the_original(writer: type[Any]) -> None:
    patch(writer)
    wrap(writer, "save", ours)
    assert writer().save("p") == ["ours", "theirs", "spark p"]
    assert original(writer, "save")(writer(), "p") == ["theirs", "spark p"]


def test_original_of_an_unwrapped_method_is_the_method(writer: type[Any]) -> None:
    assert original(writer, "save") is writer.save
