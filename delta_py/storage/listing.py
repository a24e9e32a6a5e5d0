"""A store's objects as columns: names and sizes of a very large number of objects.

    listed = listed_objects(store)
    pc.is_in(paths, listed["path"])

Memory: the names.
"""

from __future__ import annotations

from itertools import islice

import pyarrow as pa

from delta_py.storage.store import ObjectInfo, ObjectStore

# path: below the root. size: bytes. modification_time: ms since 1970.
LISTED_SCHEMA = pa.schema([("path", pa.string()), ("size", pa.int64()), ("modification_time", pa.int64())])

_BATCH_OBJECTS = 10_000  # objects per record batch: only so many exist as Python objects at a time


def listed_objects(store: ObjectStore, directory: str = "") -> pa.Table:
    """LISTED_SCHEMA, in any order, at any depth. Names that are not valid text are left out: no log can contain them."""
    infos, batches = iter(store.list_recursive(directory)), []
    while group := list(islice(infos, _BATCH_OBJECTS)):
        text_infos = [info for info in group if _is_text(info)]
        columns = [
            [info.path for info in text_infos],
            [info.size_bytes for info in text_infos],
            [info.modification_time_ms for info in text_infos],
        ]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, LISTED_SCHEMA, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=LISTED_SCHEMA))
    return pa.Table.from_batches(batches, LISTED_SCHEMA)


def _is_text(info: ObjectInfo) -> bool:
    """Whether the name is valid Unicode: a local file may have any bytes in its name."""
    try:
        info.path.encode()
    except UnicodeEncodeError:
        return False
    return True
