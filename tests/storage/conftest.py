"""The stores that the contract is tested on: in memory, local, and emulators of object stores, which run until the last test."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from delta_py.object_stores.open_store import open_store
from delta_py.object_stores.remote import RemoteStore
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.storage.store_options import StorageOptions
from tests.support.servers.emulators import DYNAMODB, KINDS, Emulator, running
from tests.support.stores.memory_store import MemoryStore

CONTAINER = "tests"


@contextlib.contextmanager
def started_emulators() -> Iterator[Callable[[str], Emulator]]:
    """By name (those of KINDS and dynamodb). Each starts on first use, with the container `tests`. A missing emulator fails the
    test."""
    running_ones: dict[str, Emulator] = {}
    kinds = {**KINDS, DYNAMODB.name: DYNAMODB}
    with contextlib.ExitStack() as stack:

        def emulator(name: str) -> Emulator:
            if name not in running_ones:
                running_ones[name] = stack.enter_context(running(kinds[name]))
                running_ones[name].make_container(CONTAINER)
            return running_ones[name]

        yield emulator


@pytest.fixture(scope="session")
def emulators() -> Iterator[Callable[[str], Emulator]]:
    with started_emulators() as started:
        yield started


@pytest.fixture(params=KINDS)
def emulator(request: pytest.FixtureRequest, emulators: Callable[[str], Emulator]) -> Emulator:
    return emulators(request.param)


def new_url(emulator: Emulator) -> str:
    """The URL of a new table."""
    return f"{emulator.kind.scheme}://{CONTAINER}/{uuid.uuid4().hex}/t"


@pytest.fixture
def remote(emulator: Emulator) -> RemoteStore:
    return RemoteStore(new_url(emulator), emulator.options())


REMOTE_STORES = [*KINDS, DYNAMODB.name]


def remote_settings(name: str, emulators: Callable[[str], Emulator]) -> dict[str, str]:
    """The options that open one of REMOTE_STORES."""
    if name != DYNAMODB.name:
        return emulators(name).settings()
    return {**emulators("s3").settings(), **emulators(name).settings(), "s3.dynamodb_table": CONTAINER}


@pytest.fixture(params=REMOTE_STORES)
def remote_store(request: pytest.FixtureRequest, emulators: Callable[[str], Emulator]) -> ObjectStore:
    """As users open one; DynamoDB may decide its commits."""
    options = StorageOptions.of(remote_settings(request.param, emulators))
    return open_store(new_url(emulators(request.param)), options)


@pytest.fixture(params=["memory", "local", *REMOTE_STORES])
def store(request: pytest.FixtureRequest, tmp_path: Path, emulators: Callable[[str], Emulator]) -> ObjectStore:
    match request.param:
        case "memory":
            return MemoryStore(root=f"/memory/{tmp_path.name}")
        case "local":
            return LocalStore(str(tmp_path / "table"))
        case name:
            options = StorageOptions.of(remote_settings(name, emulators))
            return open_store(new_url(emulators(name)), options)
