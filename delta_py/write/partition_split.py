"""Split the rows of a batch by partition.

Protocol: Partition Value Serialization.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from delta_py.errors import InvariantViolationError
from delta_py.protocol.partition_values import format_partition_values
from delta_py.types.schema import StructField

PartitionKey: TypeAlias = tuple[str | None, ...]
_Codes: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


def split_by_partition(batch: pa.RecordBatch, fields: tuple[StructField, ...]) -> Iterator[tuple[PartitionKey, pa.RecordBatch]]:
    """The rows of each partition, in the order of the batch, with the partition's values as protocol text.

    fields: the partition columns. The rows of a partition are copied, unless they are the whole batch: a caller may hold them
    without holding the batch.
    Raises InvariantViolationError for an empty text in a NOT NULL column: as a partition value it would become null.
    Protocol: Partition Value Serialization.
    """
    if not fields or batch.num_rows == 0:
        yield (), batch
        return
    # For each partition column: the number of each row's value, and the texts of the numbered values.
    indices, texts = zip(*(_distinct_texts(batch.column(f.name), f) for f in fields), strict=True)
    # Rows of one partition have the same code, and stand together in `order`.
    codes = _combine_codes(indices)
    order = np.argsort(codes, kind="stable")
    bounds = np.concatenate(([0], np.flatnonzero(np.diff(codes[order])) + 1, [len(order)]))
    for start, stop in pairwise(bounds):
        rows = order[start:stop]
        key = tuple(values[index[rows[0]]] for values, index in zip(texts, indices, strict=True))
        # Two bounds: all rows are in one partition, and nothing has to be copied.
        yield key, batch if len(bounds) == 2 else batch.take(pa.array(rows))


def _distinct_texts(values: pa.Array, partition: StructField) -> tuple[_Codes, list[str | None]]:
    """The number of each row's value, and the text of each numbered value (None for null), as the log has it."""
    encoded = values.dictionary_encode(null_encoding="encode")
    texts = [text or None for text in format_partition_values(encoded.dictionary, partition.data_type)]
    if None in texts and not partition.nullable:
        raise InvariantViolationError(
            f"NOT NULL constraint violated for column: {partition.name}. An empty text in a partition column is null. "
            "Nothing was written. Give the column values.",
            error_class="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
            sql_state="23502",
            column=partition.name,
        )
    return encoded.indices.to_numpy(), texts


def _combine_codes(indices: tuple[_Codes, ...]) -> _Codes:
    """One number for each row from one for each column: two rows get the same number if they are equal in all columns. The
    numbers stay below the row count squared."""
    codes: _Codes = indices[0].astype(np.int64)
    for next_indices in indices[1:]:
        dense: _Codes = np.unique(codes, return_inverse=True)[1]
        codes = dense * (int(next_indices.max()) + 1) + next_indices
    return codes
