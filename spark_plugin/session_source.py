"""The source as one session has it: DeltaSource, with the session's nonce. The source accepts private options only together with
the nonce (options/private.py), so that users cannot set them.

    register_source(spark)                       # once a session; a second call does nothing
    register_second_name(spark, "delta")         # the same source under another name
    reader.options(**private(spark, {VIEW: "history"}))

Spark pickles the class by value into its worker processes, so the nonce is known in every process that calls the source, and
nowhere else. No setting contains it, because `${...}` in the text of a view would read that setting.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from functools import cache
from typing import Any

from spark_plugin.data_source import DeltaSource
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.options.private import signed
from spark_plugin.options.registered_catalogs import registered_settings, remember, settings_of_process

# The nonce of all classic sessions of this process: another session may use a frame, as foreachBatch does with a copy of its
# session.
_PROCESS_NONCE = secrets.token_hex(16)
_registered: set[str] = set()
_second_names: set[tuple[str, str]] = set()  # session id, name
_nonces: dict[str, str] = {}  # of clones of Spark Connect sessions, by session id


def register_source(spark: Any) -> None:
    """Register the source with a session, once, in place of the one that Spark finds by itself and that has no nonce."""
    session_id = adapter_of(spark).session_id
    if session_id not in _registered:
        adapter_of(spark).register_source(_source_of(spark))
        _registered.add(session_id)


def register_catalogs(spark: Any, catalogs: Mapping[str, Mapping[str, str]]) -> None:
    """Let the session's source know these catalogs when it is registered next. catalogs: as in registered_catalogs.remember, and
    it raises the same."""
    remember(spark, catalogs)
    session_id = adapter_of(spark).session_id
    _registered.discard(session_id)
    _second_names.difference_update({key for key in _second_names if key[0] == session_id})


def register_second_name(spark: Any, name: str) -> None:
    """Register the source with a session under a second name too, for statements and for callers of the JVM. The methods of
    Spark's readers and writers in Python replace the name by the first. A clone of a Spark Connect session has this name from
    its origin."""
    key = (adapter_of(spark).session_id, name)
    if key not in _second_names and key[0] not in _nonces:
        adapter_of(spark).register_source(renamed_source(_source_of(spark), name))
        _second_names.add(key)


def private(spark: Any, options: Mapping[str, str]) -> dict[str, str]:
    """Return private options in the form that the session's source accepts. If the session is not registered, its source is
    registered first: the methods that set private options exist in all sessions of the process."""
    register_source(spark)
    return signed(options, nonce_of(spark))


def hand_down(spark: Any, clone: Any) -> bool:
    """Give a clone of a Spark Connect session the nonce of its origin. The server has given the clone the origin's source and
    catalogs. Returns False and does nothing if the origin has no source."""
    return is_registered(spark) and take_over(clone, nonce_of(spark))


def is_registered(spark: Any) -> bool:
    return adapter_of(spark).session_id in _registered


def take_over(clone: Any, nonce: str) -> bool:
    """Give a clone of a Spark Connect session the nonce of its origin, which may be a session of another process. Returns False,
    and does nothing, if the clone is registered already."""
    session_id = adapter_of(clone).session_id
    if session_id in _registered:
        return False
    _nonces[session_id] = nonce
    _registered.add(session_id)
    return True


def nonce_of(spark: Any) -> str:
    """Return the session's nonce. For a Spark Connect session it is derived from the session id, which only its clients and the
    server know. Each client process, such as one that runs foreachBatch, derives the same nonce."""
    adapter = adapter_of(spark)
    if adapter.is_driver:
        return _PROCESS_NONCE
    session_id = adapter.session_id
    return _nonces.get(session_id) or hashlib.sha256(f"pydelta {session_id}".encode()).hexdigest()


def source_of_process() -> type[DeltaSource]:
    """Return the source of the classic sessions of this process."""
    return source_with(_PROCESS_NONCE, tuple(sorted(settings_of_process().items())))


def _source_of(spark: Any) -> type[DeltaSource]:
    return source_with(nonce_of(spark), tuple(sorted(registered_settings(spark).items())))


@cache
def source_with(nonce: str, catalogs: tuple[tuple[str, str], ...] = ()) -> type[DeltaSource]:
    """Return a DeltaSource with this nonce. catalogs: names and values of settings, as in registered_catalogs. The same arguments
    give the same class, because pickles of two equal classes differ."""
    # A name that no module has: so the class is pickled by value, and a worker gets the nonce with it.
    attributes = {"nonce": nonce, "catalogs": dict(catalogs), "__qualname__": "DeltaSource.with_nonce"}
    return type(DeltaSource.__name__, (DeltaSource,), attributes)


@cache
def renamed_source(source: type[DeltaSource], name: str) -> type[DeltaSource]:
    """Return the source under another name. Spark requires that the class itself returns the name. The class is pickled by value,
    as in source_with."""
    return type(DeltaSource.__name__, (source,), {"name": classmethod(lambda _: name), "__qualname__": f"DeltaSource.{name}"})
