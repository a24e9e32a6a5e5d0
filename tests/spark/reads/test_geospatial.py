"""Geometry and geography through Spark: written rows can be read in SQL, changed rows, and streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from delta_py import DeltaTable as PlainTable
from delta_py.errors import SchemaMismatchError
from spark_plugin import DeltaTable

pytestmark = [
    pytest.mark.usefixtures("plain_plans"),
    pytest.mark.skipif(not hasattr(T, "GeometryType"), reason="this Spark has no geometry and geography"),
]
WKB = ["0101000000000000000000F03F000000000000F03F", "010100000000000000000000400000000000000040"]
SHAPES = ", ".join(
    [
        f"ST_SetSrid(ST_GeomFromWKB(X'{WKB[0]}'), 4326) g",
        f"ST_GeogFromWKB(X'{WKB[1]}') h",
        f"array(ST_SetSrid(ST_GeomFromWKB(X'{WKB[0]}'), 0), NULL) l",
        f"map('k', named_struct('g', ST_SetSrid(ST_GeomFromWKB(X'{WKB[1]}'), 3857))) m",
    ]
)
ANSWERS = "id, hex(ST_AsBinary(g)) g, ST_Srid(h) h, transform(l, x -> hex(ST_AsBinary(x))) l, ST_Srid(m['k'].g) m"


def test_shapes_are_written_changed_and_streamed(
    spark: SparkSession, conf: Callable[[Mapping[str, str]], None], tmp_path: Path
) -> None:
    conf({"spark.sql.geospatial.enabled": "true"})
    path, sink = str(tmp_path / "t"), str(tmp_path / "s")
    rows = spark.sql(f"SELECT 1L id, {SHAPES} UNION ALL SELECT 2L, NULL, NULL, NULL, NULL")
    rows.write.format("pydelta").save(path)
    assert spark.read.format("pydelta").load(path).schema.simpleString() == rows.schema.simpleString()
    spark.sql(f"INSERT INTO pydelta.`{path}` SELECT 3L, {SHAPES}")
    spark.sql(f"UPDATE pydelta.`{path}` SET g = NULL WHERE id = 3")
    spark.sql(f"DELETE FROM pydelta.`{path}` WHERE id = 2 AND g IS NULL")
    stream = spark.readStream.format("pydelta").option("ignoreDeletes", "true").option("skipChangeCommits", "true").load(path)
    query = stream.writeStream.format("pydelta").option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query.start(sink).awaitTermination()
    expected = [(1, WKB[0], 4326, [WKB[0], None], 3857), (3, None, 4326, [WKB[0], None], 3857)]
    for where in (path, sink):
        answers = spark.sql(f"SELECT {ANSWERS} FROM pydelta.`{where}` ORDER BY id").collect()
        assert [tuple(row) for row in answers] == expected
    built = DeltaTable.create(spark).location(str(tmp_path / "b"))
    new_table = built.addColumn("g", "geometry(4326)").addColumn("h", "geography(4326)")
    assert new_table.execute().toDF().schema.simpleString() == "struct<g:geometry(4326),h:geography(4326)>"
    other = spark.sql(f"SELECT 4L id, ST_SetSrid(ST_GeomFromWKB(X'{WKB[0]}'), 3857) g")
    with pytest.raises(SchemaMismatchError, match="3857"):
        other.write.format("pydelta").mode("append").save(path)
    shapes = PlainTable(path).to_arrow().sort_by("id")
    assert shapes["g"].to_pylist() == [bytes.fromhex(WKB[0]), None]
