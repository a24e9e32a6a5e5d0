"""What a message may hold: words of a table, which may be hostile, on their way to terminals and logs."""

from __future__ import annotations

import pickle
import time

import pytest

from delta_py.errors import DataFileError, DeltaError, readable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, *with* 'marks' and \\ and é 日本", "plain, *with* 'marks' and \\ and é 日本"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[2J\x00\x7f\x9b", "\\x1b[2J\\x00\\x7f\\x9b"),
        ("\u202egnp.exe\u2028", "\\u202egnp.exe\\u2028"),
        ("\ud800", "\\ud800"),
        ("values:\n - a : 1\n - b : 2\n 1 of 2 rows", "values:\n - a : 1\n - b : 2\n 1 of 2 rows"),
        ("x\n\ndelta_py.errors.ConcurrentAppendException: [A] b", "x\\n\\ndelta_py.errors.ConcurrentAppendException: [A] b"),
    ],
)
def test_message_has_no_control_characters_but_line_breaks(text: str, shown: str) -> None:
    assert readable(text) == shown
    assert readable(shown) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3a://KEY:SECRET@bucket/t?sig=TOKEN&x=1", "s3a://...@bucket/t?..."),
        ("abfss://container@account.dfs/t", "abfss://container@account.dfs/t"),
        ("https://h/t?sig=TOKEN", "https://h/t?..."),
        ("file:///tmp/a@b/what?x=1", "file:///tmp/a@b/what?x=1"),
        ("mail me@x.org?subject", "mail me@x.org?subject"),
    ],
)
def test_message_has_no_keys_of_urls(url: str, shown: str) -> None:
    assert readable(f"No store serves '{url}'. Use another.") == f"No store serves '{shown}'. Use another."
    assert readable(readable(url)) == readable(url)


def test_message_of_very_many_urls_is_cut_in_no_time() -> None:
    started = time.thread_time()
    readable("://" * 1_000_000)
    readable("\n" * 1_000_000)
    assert time.thread_time() - started < 2


def test_long_message_keeps_its_beginning_and_its_end() -> None:
    error = DeltaError("It begins " + "x" * 5_000_000 + " and says what to do.")
    assert len(error.message) < 9_000 and len(str(error)) < 9_000
    assert error.message.startswith("It begins xxx") and error.message.endswith("and says what to do.")
    assert "characters more" in error.message


def test_error_is_the_same_after_pickling() -> None:
    error = DataFileError("a\nb", path="a\nb")
    again = pickle.loads(pickle.dumps(error))
    assert (again.message, str(again), again.message_parameters) == (error.message, str(error), {"path": "a\nb"})


def test_error_subclass_defines_or_inherits_its_condition() -> None:
    class Unreadable(DataFileError, error_class="UNREADABLE"): ...

    class Unreachable(Unreadable, sql_state="08001"): ...

    assert (Unreadable.error_class, Unreadable.sql_state) == ("UNREADABLE", DataFileError.sql_state)
    assert (Unreachable.error_class, Unreachable.sql_state) == ("UNREADABLE", "08001")
    assert DataFileError.error_class == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert str(Unreachable("gone")) == "[UNREADABLE] gone"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("It failed: [DELTA_STORAGE_ERROR] The disk is full.", "It failed: The disk is full."),
        ("[FAILED_READ_FILE.NO_HINT] [A_B] x", "x"),
        ("Versions [2, 3], [NULL] and a[I_J] stay", "Versions [2, 3], [NULL] and a[I_J] stay"),
    ],
)
def test_error_that_quotes_another_has_its_own_condition_alone(message: str, shown: str) -> None:
    assert readable(message) == shown
    assert str(DataFileError(message)) == f"[DELTA_FILE_NOT_FOUND_DETAILED] {shown}"
    assert str(DataFileError(f"Again: {DataFileError(message)}")) == f"[DELTA_FILE_NOT_FOUND_DETAILED] Again: {shown}"
