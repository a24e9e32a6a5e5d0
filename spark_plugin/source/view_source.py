"""A table's history and its detail as rows, with the columns of DESCRIBE HISTORY and DESCRIBE DETAIL."""

from __future__ import annotations

import pyarrow as pa

from delta_py.definition.detail import DETAIL_SCHEMA
from delta_py.log.history import HISTORY_SCHEMA, history
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import from_arrow_schema

VIEW_SCHEMAS = {"history": from_arrow_schema(HISTORY_SCHEMA), "detail": from_arrow_schema(DETAIL_SCHEMA)}


def history_rows(store: ObjectStore, limit: int | None = None) -> pa.Table:
    """Return one row per commit that the log still contains, newest first, at most `limit`."""
    return history(store, limit)
