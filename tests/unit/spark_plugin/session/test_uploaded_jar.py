"""Which jar a client of Spark Connect sends to the server, and the files next to the classes."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from spark_plugin.java import jars
from spark_plugin.java.build import archive_of
from spark_plugin.sql_catalog import uploaded


class Settings:
    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def get(self, name: str, default: str | None = None) -> str | None:
        return self.values.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.values[name] = value

    def unset(self, name: str) -> None:
        self.values.pop(name, None)


class Session:
    """A session of Spark Connect that keeps what it receives."""

    def __init__(self, version: str) -> None:
        self.version, self.session_id = version, f"session of {version}"
        self.conf = Settings()
        self.artifacts: list[dict[str, bytes]] = []
        self.names: list[str] = []

    def addArtifacts(self, path: str) -> None:
        self.names.append(Path(path).name)
        with zipfile.ZipFile(path) as archive:
            self.artifacts.append({name: archive.read(name) for name in archive.namelist()})


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sends from a package with a jar for each version, each with a class that contains the version's name."""
    monkeypatch.setattr(jars, "SOURCES", tmp_path / "none")
    monkeypatch.setattr(jars, "DIRECTORY", tmp_path)
    for each in jars.MINOR_VERSIONS:
        (tmp_path / jars.jar_name(each)).write_bytes(archive_of({"pydelta/rule/One.class": each.encode()}))
    monkeypatch.setattr(uploaded, "nonce_of", lambda spark: "secret")
    jars.jar_for.cache_clear()

    def send(version: str) -> Session:
        session: Any = Session(version)
        uploaded._send(session, jars.jar_for(version))
        return session

    yield send
    jars.jar_for.cache_clear()


@pytest.mark.parametrize(
    ("version", "minor_version"), [("4.2.0", "4.2"), ("4.2.1", "4.2"), ("4.3.7", "4.3"), ("4.9.0", jars.MINOR_VERSIONS[-1])]
)
def test_server_gets_the_jar_of_its_minor_version(sent: Any, version: str, minor_version: str) -> None:
    (files,) = sent(version).artifacts
    assert files["pydelta/rule/One.class"] == minor_version.encode()


def test_nonce_is_in_a_file_that_settings_name_only_by_a_hash(sent: Any) -> None:
    session = sent("4.3.0")
    (key,) = session.conf.values.values()
    client_message = json.loads(session.artifacts[0][f"pydelta/{key}.json"])
    assert session.names == [f"pydelta-{key}.jar"]
    assert client_message["told"]["nonce"] == "secret" and "secret" not in key
    assert client_message["checkLinks"] is False


def test_server_with_a_newer_spark_checks_the_classes(sent: Any) -> None:
    session = sent("4.9.0")
    (key,) = session.conf.values.values()
    assert json.loads(session.artifacts[0][f"pydelta/{key}.json"])["checkLinks"] is True
    session.conf.set("spark.sql.catalog.pydelta.linkProblems", '{"readers": ["no such field"]}')
    assert uploaded.link_problems(session) == {"readers": ["no such field"]}
