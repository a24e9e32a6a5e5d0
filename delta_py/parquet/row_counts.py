"""How many rows a data file has, by its footer."""

from __future__ import annotations

import pyarrow.parquet as pq

from delta_py.storage.store import ObjectStore


def stored_row_count(store: ObjectStore, path: str, size_bytes: int) -> int:
    """Rows behind deletion vectors among them. Raises OSError, pyarrow.ArrowException."""
    with store.open_input(path, size_bytes) as source:
        return int(pq.read_metadata(source).num_rows)
