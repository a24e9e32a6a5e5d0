"""The options that Spark's catalogs pass to the source: a session's settings, a request for facts, conditions of an overwrite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_py import write_delta
from delta_py.errors import InvalidOptionError
from spark_plugin.data_source import _with_replace_where
from spark_plugin.options.catalog_session_settings import CATALOG_SETTINGS, SETTINGS, with_session
from spark_plugin.options.common import FACTS, REPLACE_PREDICATE, SESSION
from spark_plugin.options.private import signed
from spark_plugin.options.read_options import read_options
from spark_plugin.options.write_options import write_options
from spark_plugin.schema_conversion import metadata_value
from spark_plugin.session_source import source_with
from spark_plugin.source.table_facts import FACTS_KEY


def told(confs: dict[str, str], hadoop: dict[str, str] | None = None) -> str:
    return json.dumps({"confs": confs, "hadoop": hadoop or {}, "parallelism": 3})


def test_settings_that_are_told_mean_what_they_mean_to_a_load() -> None:
    confs = {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.files.maxPartitionBytes": "64mb",
        "spark.sql.files.openCostInBytes": "1048576b",
        "spark.pydelta.readLease": "2 hours",
    }
    options = read_options(with_session({"path": "/t", CATALOG_SETTINGS: told(confs)}))
    assert options.session.time_zone == "Asia/Tokyo"
    assert (options.session.max_partition_bytes, options.session.open_cost_bytes) == (64 << 20, 1 << 20)
    session = options.session
    assert (session.target_partitions, session.native_partitions, options.lease_seconds) == (6, 3, 7200)
    assert set(confs) <= set(SETTINGS)
    session = read_options(with_session({"path": "/t", CATALOG_SETTINGS: told({"spark.sql.files.minPartitionNum": "5"})})).session
    assert (session.target_partitions, session.native_partitions) == (5, 5)


def test_settings_that_are_told_stand_in_for_options_of_a_write() -> None:
    confs = {"spark.databricks.delta.commitInfo.userMetadata": "mine", "spark.databricks.delta.schema.autoMerge.enabled": "true"}
    options = write_options(with_session({"path": "/t", CATALOG_SETTINGS: told(confs)}), overwrite=False)
    assert (options.request.user_metadata, options.request.merge_schema, options.request.mode) == ("mine", True, "append")


def test_settings_of_stores_count_for_paths_of_stores_alone() -> None:
    hadoop = {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"}
    there = json.loads(with_session({"path": "s3a://b/t", CATALOG_SETTINGS: told({}, hadoop)})[SESSION])
    here = json.loads(with_session({"path": "/t", CATALOG_SETTINGS: told({}, hadoop)})[SESSION])
    assert there["storage"] == {"s3.access_key_id": "k", "s3.secret_access_key": "s"}
    assert "storage" not in here


def test_options_without_settings_stay_as_they_are() -> None:
    assert with_session({"path": "/t", "filter": "x"}) == {"path": "/t", "filter": "x"}


def test_source_tells_facts_to_who_has_the_nonce(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    rows = pa.table({"id": pa.array([1], pa.int64()), "day": ["x"]})
    write_delta(place, rows, partition_by=["day"], configuration={"delta.appendOnly": "true"})
    write_delta(place, rows, mode="append")
    source = source_with("n")
    for path, version, travels in ((place, 1, False), (f"{place}@v0", 0, True)):
        schema = source(signed({"path": path, FACTS: "true", CATALOG_SETTINGS: told({})}, "n")).schema()
        facts = json.loads(str(metadata_value(schema, FACTS_KEY)))
        assert (facts["path"], facts["version"], facts["travels"]) == (place, version, travels)
        assert (facts["partition_columns"], facts["clustering_columns"], facts["has_identity"]) == (["day"], [], False)
        assert facts["properties"] == {"delta.appendOnly": "true"}
    with pytest.raises(InvalidOptionError, match="gives the options"):
        source({"path": place, FACTS: "true"})


def column(name: str) -> dict[str, Any]:
    return {"column": [name]}


def constant(kind: str, value: Any) -> dict[str, Any]:
    return {"type": kind, "value": value}


@pytest.mark.parametrize(
    ("predicates", "text"),
    [
        ([], "true"),
        ([{"name": "=", "children": [column("a`b"), constant("string", "x' OR '1'='1")]}], "`a``b` = 'x\\' OR \\'1\\'=\\'1'"),
        (
            [
                {"name": "<=>", "children": [column("day"), constant("date", 19723)]},
                {"name": ">", "children": [column("n"), constant("integer", 5)]},
            ],
            "(day <=> date'2024-01-01') AND (n > 5)",
        ),
    ],
)
def test_conditions_become_text_with_quoted_constants(predicates: list[dict[str, Any]], text: str) -> None:
    source_options = _with_replace_where({"path": "/t", REPLACE_PREDICATE: json.dumps(predicates)})
    assert source_options == {"path": "/t", "replaceWhere": text}


def test_conditions_that_cannot_be_held_exactly_are_refused() -> None:
    beyond = {"name": "=", "children": [column("day"), constant("date", 10**9)]}
    with pytest.raises(ValueError, match="constant"):
        _with_replace_where({REPLACE_PREDICATE: json.dumps([beyond])})
    with pytest.raises(InvalidOptionError, match="replaceWhere"):
        _with_replace_where({REPLACE_PREDICATE: "[]", "replacewhere": "x"})
