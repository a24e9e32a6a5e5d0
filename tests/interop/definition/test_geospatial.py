"""Columns of geometry and geography: delta-spark, which supports them with a setting, and pydelta write to a table in turns."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from delta_py import DeltaTable, write_delta
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore

PREVIEW = {"spark.databricks.delta.geo.preview.enabled": "true", "spark.sql.geospatial.enabled": "true"}
COLUMNS = "id BIGINT, g GEOMETRY(4326), f GEOMETRY(0), h GEOGRAPHY(4326), l ARRAY<GEOMETRY(3857)>, s STRUCT<g: GEOMETRY(4326)>"
SHAPES = pa.struct({"g": pa.binary()})


def point(number: int) -> bytes:
    return struct.pack("<BIdd", 1, 1, number, -number)


def their_row(number: int) -> str:
    wkb = f"X'{point(number).hex()}'"
    shape = f"ST_GeomFromWKB({wkb}, 4326)"
    return (
        f"SELECT {number}L id, {shape} g, ST_GeomFromWKB({wkb}, 0) f, ST_GeogFromWKB({wkb}) h, "
        f"array(ST_GeomFromWKB({wkb}, 3857), NULL) l, named_struct('g', {shape}) s"
    )


def our_rows(*numbers: int) -> pa.Table:
    shapes = pa.array([point(number) for number in numbers])
    lists = pa.array([[point(number), None] for number in numbers], pa.list_(pa.binary()))
    structs = pa.array([{"g": point(number)} for number in numbers], SHAPES)
    return pa.table({"id": pa.array(numbers, pa.int64()), "g": shapes, "f": shapes, "h": shapes, "l": lists, "s": structs})


@pytest.mark.parametrize("makes", ["ours", "theirs"])
def test_both_write_and_read_shapes(
    spark: SparkSession, conf: Callable[[Mapping[str, str]], None], tmp_path: Path, makes: str
) -> None:
    conf(PREVIEW)
    path = str(tmp_path / "t")
    format_name = "pydelta" if makes == "ours" else "delta"
    spark.sql(f"CREATE TABLE {format_name}.`{path}` ({COLUMNS}) USING {format_name}")
    snapshot = Snapshot.load(LocalStore(path))
    spark.sql(f"INSERT INTO delta.`{path}` {their_row(1)}")
    spark.sql(f"INSERT INTO delta.`{path}` {their_row(2)}")
    write_delta(path, our_rows(3, 4), mode="append")
    spark.sql(their_row(5)).write.format("pydelta").mode("append").save(path)
    DeltaTable(path).delete("id = 1")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 4")
    after = Snapshot.load(LocalStore(path))
    assert (after.protocol, after.schema) == (snapshot.protocol, snapshot.schema)
    assert DeltaTable(path).to_arrow().sort_by("id").to_pylist() == our_rows(2, 3, 5).to_pylist()
    for name in ("delta", "pydelta"):
        rows = spark.read.format(name).load(path).selectExpr(
            "id", "ST_AsBinary(g) g", "ST_AsBinary(f) f", "ST_AsBinary(h) h", "transform(l, x -> ST_AsBinary(x)) l",
            "named_struct('g', ST_AsBinary(s.g)) s", "ST_Srid(l[0]) n",
        )  # fmt: skip
        their_rows = rows.orderBy("id").toArrow().drop_columns("n").cast(our_rows(2).schema)
        assert their_rows.to_pylist() == our_rows(2, 3, 5).to_pylist()
        assert {row.n for row in rows.collect()} == {3857}
    assert len({_marks(file) for file in Path(path).glob("part-*.parquet")}) == 1


def _marks(file: Path) -> tuple[str, ...]:
    """The logical types of a file's columns. Parquet's default CRS may be written or omitted."""
    schema = pq.ParquetFile(file).schema
    return tuple(str(schema.column(i).logical_type).replace("OGC:CRS84", "") for i in range(len(schema)))
