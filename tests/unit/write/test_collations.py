"""Columns whose texts have a collation: stored unchanged, and never compared here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.alter.table_constraints import add_constraint
from delta_py.definition.create import create_table, define_table
from delta_py.errors import DeltaError
from delta_py.protocol.collations import is_collated
from delta_py.row_changes.merge import TableMerger
from delta_py.row_changes.row_commands import delete
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.storage.store import ObjectStore
from delta_py.types.schema import LONG, STRING, ArrayType, StructField, StructType

SPARKS = {"__COLLATIONS": {"name": "spark.UTF8_LCASE"}}
PROPOSED = {"collations": {"collation": "ICU.en_US.72"}}
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "A"]})


@pytest.fixture(params=[SPARKS, PROPOSED], ids=["spark", "proposed"])
def store(request: Any, tmp_path: Path) -> ObjectStore:
    schema = StructType((StructField("id", LONG), StructField("name", STRING, metadata=request.param)))
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(schema, configuration={"delta.feature.collations": "supported"}))
    write_delta(store.root, ROWS, mode="append")
    return store


@pytest.mark.parametrize(
    ("metadata", "collated"),
    [
        ({}, False),
        ({"__COLLATIONS": {"c": "spark.UTF8_BINARY"}}, False),
        ({"__COLLATIONS": {"c": "UTF8_BINARY"}}, False),
        ({"collations": {"collation": "spark.UTF8_BINARY.1.0"}}, False),
        (SPARKS, True),
        (PROPOSED, True),
        ({"collations": {"elementCollation": {"collation": "ICU.de.1"}}}, True),
        ({"collations": "ICU"}, True),
        ({"__COLLATIONS": {"c": 1}}, True),
    ],
)
def test_what_a_column_says_of_collations(metadata: dict[str, Any], collated: bool) -> None:
    field = StructField("c", ArrayType(STRING), metadata=metadata)
    assert is_collated(field) == collated
    assert is_collated(StructField("outer", StructType((field,)))) == collated


def test_rows_and_metadata_stay_and_texts_have_no_bounds(store: ObjectStore) -> None:
    before = Snapshot.load(store).schema
    delete(store, "id = 2")
    assert DeltaTable(store.root).to_arrow()["name"].to_pylist() == ["a"]
    assert Snapshot.load(store).schema == before
    commits = [path.read_bytes() for path in Path(store.root).glob("_delta_log/*.json")]
    actions = [orjson.loads(line) for commit in commits for line in commit.splitlines()]
    for stats in [orjson.loads(action["add"]["stats"]) for action in actions if "add" in action]:
        assert list(stats["minValues"]) == list(stats["maxValues"]) == ["id"]


def test_comparisons_of_such_texts_are_refused_by_name(store: ObjectStore) -> None:
    acts = (
        lambda: delete(store, "name = 'a'"),
        lambda: add_constraint(store, "c", "name <> 'b'"),
        lambda: TableMerger(store, ROWS, "source.name = target.name").when_matched_delete().execute(),
        lambda: DeltaTable(store.root).scan(filter="name = 'a'"),
    )
    for act in acts:
        with pytest.raises(DeltaError, match=r"Column (t\.)?name with a collation"):
            act()
    assert Snapshot.load(store).version == 1
