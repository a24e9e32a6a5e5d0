"""The source as one session has it: DeltaSource, with the session's nonce.

    register_source(spark)                       # once a session; a second call does nothing
    reader.options(**private(spark, {VIEW: "history"}))

Spark pickles the class into its worker processes by its value, so the nonce is known wherever the source is asked, and nowhere
else: it stands in no setting, which `${...}` in the text of a view would read.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from functools import cache
from typing import Any

from spark_plugin.data_source import DeltaSource
from spark_plugin.internals.spark_internals import SparkInternals, is_connect
from spark_plugin.options.private import signed

# Classic sessions of one process share it, as one's frames may be used in another (foreachBatch has a copy of its session).
_OF_PROCESS = secrets.token_hex(16)
_registered: set[str] = set()
_nonces: dict[str, str] = {}  # of clones of Spark Connect sessions, by their ids


def register_source(spark: Any) -> None:
    """Make the source known to a session, in place of the one that Spark finds by itself."""
    identity = _identity(spark)
    if identity not in _registered:
        source = source_with(nonce_of(spark))
        if is_connect(spark):
            spark.dataSource.register(source)
        else:
            SparkInternals(spark).register_source(source)
        _registered.add(identity)


def private(spark: Any, options: Mapping[str, str]) -> dict[str, str]:
    """Private options as the session's source takes them. The source is made known to a session that has not registered: the
    methods that set them are those of all sessions of the process."""
    register_source(spark)
    return signed(options, nonce_of(spark))


def hand_down(spark: Any, clone: Any) -> bool:
    """Let a clone of a Spark Connect session have the nonce of its origin, whose source and catalogs the server has given it.
    False, and nothing done, where the origin has no source."""
    return is_registered(spark) and take_over(clone, nonce_of(spark))


def is_registered(spark: Any) -> bool:
    return _identity(spark) in _registered


def take_over(clone: Any, nonce: str) -> bool:
    """The same of a clone whose origin is a session of another process. False where it was done before."""
    identity = _identity(clone)
    if identity in _registered:
        return False
    _nonces[identity] = nonce
    _registered.add(identity)
    return True


def _identity(spark: Any) -> str:
    return str(spark.session_id) if is_connect(spark) else SparkInternals(spark).session_id


def nonce_of(spark: Any) -> str:
    """Of a Spark Connect session made from its id, which only its clients and the server know: each process that is a client of
    it, as one that runs foreachBatch is, finds the same."""
    if not is_connect(spark):
        return _OF_PROCESS
    identity = _identity(spark)
    return _nonces.get(identity) or hashlib.sha256(f"pydelta {identity}".encode()).hexdigest()


def source_of_process() -> type[DeltaSource]:
    """As the classic sessions of this process have it."""
    return source_with(_OF_PROCESS)


@cache
def source_with(nonce: str) -> type[DeltaSource]:
    """A class that is found in no module, so that it is pickled by its value. One a nonce: the pickles of two would differ."""
    return type(DeltaSource.__name__, (DeltaSource,), {"nonce": nonce, "__qualname__": "DeltaSource.with_nonce"})
