"""DataSources in this process: made in the same way as a worker makes them, or passed by the JVM."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from urllib.parse import urlsplit

from spark_plugin.data_source import DeltaSource
from spark_plugin.session_source import source_of_process


def make_source(options: Mapping[str, str], directory: str) -> DeltaSource | None:
    """Make the DataSource of a load or write. options: as Spark passes them to the DataSource, including private ones.
    directory: the base of relative paths in workers.

    Returns None if the path is relative to another directory than that of this process: it would name another table here. The
    source uses the cache of snapshots.
    """
    path = options["path"]
    if os.path.isabs(path) or urlsplit(path).scheme or directory == os.getcwd():
        return source_of_process()(dict(options)).with_snapshot_cache()
    return None


def unpickle_source(data_source: bytes) -> DeltaSource:
    """Return the DataSource in a pickle. Raises TypeError for an object that is no source of pydelta."""
    source = pickle.loads(data_source)
    if not isinstance(source, DeltaSource):
        raise TypeError(f"{type(source)} is no source of pydelta")
    return source
