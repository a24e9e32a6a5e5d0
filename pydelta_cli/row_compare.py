"""Rows of two tables beside each other, by the values of a key. Both tables' rows are in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import InvalidOptionError
from delta_py.scan.planning import ScanOptions, plan_scan
from pydelta_cli.values import text_columns

if TYPE_CHECKING:
    from delta_py.table import DeltaTable

_A, _B = "in a", "in b"


def count_rows(table: DeltaTable) -> int:
    """From the log where it knows the rows of every file."""
    known = plan_scan(table.snapshot, options=ScanOptions(count_rows=True)).report.rows_kept
    if known is not None:
        return known
    return sum(batch.num_rows for batch in table.to_batches(columns=[]))


def rows_by_key(a: DeltaTable, b: DeltaTable, keys: Sequence[str], zone: str) -> dict[str, Any]:
    """How many rows are in b alone, in a alone, and in both with other values of the columns that both have. Null is a value of a
    key like others. Raises InvalidOptionError for a key that two rows share, SchemaMismatchError for one that is no column."""
    shared = [name for name in a.schema().names if name in b.schema().names and name not in keys]
    one, other = (_readable(table, keys, shared, zone) for table in (a, b))
    for table, rows in ((a, one), (b, other)):
        if rows.group_by(list(keys)).aggregate([]).num_rows < rows.num_rows:
            root = table.snapshot.table_root
            raise InvalidOptionError(
                f"Two rows of {root} have the same values of {', '.join(keys)}, so that these tell no row from another. Name "
                "further columns.",
                option="key",
            )
    joined = _numbered(one, keys, _A).join(_numbered(other, keys, _B), list(keys), join_type="full outer")
    in_a, in_b = joined[_A].combine_chunks(), joined[_B].combine_chunks()
    both = pc.and_(in_a.is_valid(), in_b.is_valid())
    left, right = one.take(in_a.filter(both)), other.take(in_b.filter(both))
    differs = pa.repeat(pa.scalar(False), left.num_rows)
    for name in shared:
        x, y = left[name].combine_chunks(), right[name].combine_chunks()
        same = pc.or_(pc.fill_null(pc.equal(x, y), False), pc.and_(x.is_null(), y.is_null()))
        differs = pc.or_(differs, pc.invert(same))
    return {
        "compared_by": "key",
        "inserted": in_a.null_count,
        "deleted": in_b.null_count,
        "updated": int(pc.sum(differs).as_py() or 0),
        "why_not": None,
    }


def _readable(table: DeltaTable, keys: Sequence[str], columns: Sequence[str], zone: str) -> pa.Table:
    """The columns as text, which tells any two values of one type apart; keys that are null as such."""
    rows = table.to_arrow([*keys, *columns])
    cells = [pa.array(column, pa.string()) for column in text_columns(rows, zone)]
    names = rows.schema.names
    for number, name in enumerate(names):
        if name in keys:
            with_mark = pc.binary_join_element_wise("v", pc.fill_null(cells[number], ""), "")
            cells[number] = pc.if_else(cells[number].is_null(), "n", with_mark)
    return pa.table(cells, names=names)


def _numbered(rows: pa.Table, keys: Sequence[str], name: str) -> pa.Table:
    return rows.select(keys).append_column(name, pa.array(range(rows.num_rows), pa.int64()))
