"""DataSources in this process: made as a worker would that Spark asks for one, and those that the JVM hands over."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from urllib.parse import urlsplit

from spark_plugin.data_source import DeltaSource
from spark_plugin.session_source import source_of_process


def source_here(options: Mapping[str, str], directory: str) -> DeltaSource | None:
    """options: as Spark gives them to the DataSource, private ones too. directory: from which workers count relative paths.

    None where the path is another place to this process. The source keeps what it reads of logs.
    """
    path = options["path"]
    if os.path.isabs(path) or urlsplit(path).scheme or directory == os.getcwd():
        return source_of_process()(dict(options)).keeping()
    return None


def unpickled(data_source: bytes) -> DeltaSource:
    """Raises TypeError for what is none of ours."""
    source = pickle.loads(data_source)
    if not isinstance(source, DeltaSource):
        raise TypeError(f"{type(source)} is no source of pydelta")
    return source
