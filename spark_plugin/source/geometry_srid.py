"""Converts geometry and geography for Spark, which needs the SRID next to each WKB value; delta_py has only the WKB."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from delta_py.parquet.values.buffers import list_parts


def is_shape(spark_type: pa.DataType) -> bool:
    """Return whether one of Spark's Arrow types stands for geometry or geography."""
    return pa.types.is_struct(spark_type) and any({b"geometry", b"geography"} & (f.metadata or {}).keys() for f in spark_type)


def has_shapes(spark_type: pa.DataType) -> bool:
    """Return whether the type contains geometry or geography at any depth."""
    return is_shape(spark_type) or any(has_shapes(spark_type.field(i).type) for i in range(spark_type.num_fields))


def with_srids(array: pa.Array, spark_type: pa.DataType) -> pa.Array:
    """Return the array with each shape (a geometry or geography), at any depth, as a struct of SRID and WKB. spark_type: the type
    of the result, in which Spark stores the SRID of each shape column."""
    if not has_shapes(spark_type):
        return array
    if is_shape(spark_type):
        return _shapes(array, spark_type)
    if pa.types.is_struct(spark_type):
        children = [with_srids(array.field(i), spark_type.field(i).type) for i in range(spark_type.num_fields)]
        fields = [pa.field(f.name, child.type, nullable=f.nullable) for f, child in zip(array.type, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)
    list_offsets, values = list_parts(array)  # only a list or a map is left here
    offsets = pa.array(np.asarray(list_offsets), pa.int32())
    mask = array.is_null() if array.null_count else None
    if pa.types.is_map(spark_type):
        keys, items = (with_srids(values.field(i), f.type) for i, f in enumerate((spark_type.key_field, spark_type.item_field)))
        return pa.MapArray.from_arrays(offsets, keys, items, mask=mask)
    return pa.ListArray.from_arrays(offsets, with_srids(values, spark_type.value_type), mask=mask)


def _shapes(wkb: pa.Array, spark_type: pa.StructType) -> pa.Array:
    """Return each WKB value as a struct with the SRID of its column. The struct of a null shape is null, but its WKB field is an
    empty value and not null, because both fields are required."""
    (srid,) = (int(f.metadata[b"srid"]) for f in spark_type if f.metadata and b"srid" in f.metadata)
    mask = wkb.is_null() if wkb.null_count else None
    parts = {"srid": pa.repeat(pa.scalar(srid, pa.int32()), len(wkb)), "wkb": wkb.fill_null(b"") if wkb.null_count else wkb}
    return pa.StructArray.from_arrays([parts[f.name] for f in spark_type], fields=list(spark_type), mask=mask)
