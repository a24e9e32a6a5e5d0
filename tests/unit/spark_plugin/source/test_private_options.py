"""Who may set the options that pydelta sets itself: only its own methods, in a session that has registered."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle

from delta_py.errors import InvalidOptionError
from spark_plugin import session_source
from spark_plugin.data_source import DeltaSource
from spark_plugin.internals.spark_internals import SparkInternals
from spark_plugin.options import common
from spark_plugin.options.private import admitted, is_private, signed
from spark_plugin.session_source import nonce_of, private, register_second_name, register_source, source_with, take_over

NAMES = sorted(value for value in vars(common).values() if isinstance(value, str) and is_private(value))


@pytest.mark.parametrize("name", [*NAMES, "PyDelta.FILES", "pydelta.of_tomorrow"])
def test_source_takes_private_options_beside_its_own_nonce_alone(name: str) -> None:
    user_options = {"path": "/t", name: "x"}
    assert source_with("n")(signed(user_options, "n")).options == user_options
    for make in (DeltaSource, source_with("n")):
        for options in (
            user_options,
            signed(user_options, "other"),
            signed(user_options, ""),
            {**user_options, "pydelta.nonce": ""},
        ):
            with pytest.raises(InvalidOptionError, match=f"gives the options .*{name}"):
                make(options)


def test_source_without_a_nonce_takes_no_nonce() -> None:
    with pytest.raises(InvalidOptionError):
        DeltaSource(signed({"path": "/t"}, "n"))
    with pytest.raises(InvalidOptionError):
        admitted({"pydelta.nonce": "None"}, None)


def test_private_options_are_there() -> None:
    assert len(NAMES) > 10 and "pydelta.files" in NAMES and "pydelta.command" in NAMES


def test_class_is_pickled_with_its_nonce_and_found_in_no_module() -> None:
    pickled = io.BytesIO()
    cloudpickle.dump(source_with("n"), pickled)
    copy = cloudpickle.loads(pickled.getvalue())
    assert copy.nonce == "n" and copy is not DeltaSource and issubclass(copy, DeltaSource) and DeltaSource.nonce is None
    assert len(pickled.getvalue()) < 1000


# ---------------------------------------------------------------- sessions


class Registry:
    def __init__(self) -> None:
        self.sources: list[Any] = []

    def register(self, source: Any) -> None:
        self.sources.append(source)


def client(session_id: str) -> Any:
    """A session of Spark Connect."""
    cls = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    spark: Any = cls()
    spark.session_id, spark.dataSource = session_id, Registry()
    return spark


def classic(session_id: str) -> Any:
    java_session = SimpleNamespace(sessionUUID=lambda: session_id)
    return SimpleNamespace(_jsparkSession=java_session, dataSource=Registry())


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_source, "_registered", set())


@pytest.mark.parametrize("make", [client, classic])
def test_session_registers_source_once_or_for_private_options(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkInternals, "register_source", lambda self, source: self._spark.dataSource.register(source))
    first, same, other = make("a"), make("a"), make("b")
    register_source(first)
    register_source(same)
    assert [len(spark.dataSource.sources) for spark in (first, same)] == [1, 0]
    options = private(other, {"pydelta.view": "history"})
    (source,) = other.dataSource.sources
    assert source(options).options == {"pydelta.view": "history"}


def test_clone_of_a_connect_session_gets_no_source_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_source, "_nonces", {})
    clone, other = client("clone"), client("other")
    assert take_over(clone, "nonce of its origin")
    for session in (clone, other):
        register_source(session)
        register_second_name(session, "delta")
    assert [len(session.dataSource.sources) for session in (clone, other)] == [0, 2]


def test_connect_nonce_differs_by_session_and_not_by_process(monkeypatch: pytest.MonkeyPatch) -> None:
    here, elsewhere = nonce_of(client("a")), nonce_of(client("b"))
    monkeypatch.setattr(session_source, "_PROCESS_NONCE", "another process")
    assert nonce_of(client("a")) == here != elsewhere


def test_classic_sessions_of_a_process_share_a_random_nonce() -> None:
    assert nonce_of(classic("a")) == nonce_of(classic("b")) == session_source._PROCESS_NONCE
    assert len(session_source._PROCESS_NONCE) == 32
