"""Tables that track whether a column was dropped or renamed: every command that does so records it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from delta_py import write_delta
from delta_py.alter.alter import add_feature, set_properties, unset_properties
from delta_py.alter.alter_columns import add_columns, drop_columns, rename_column
from delta_py.alter.column_changes import NewColumn
from delta_py.alter.drop_feature import drop_feature
from delta_py.copies.clone import shallow_clone
from delta_py.copies.restore import restore
from delta_py.definition.create import create_table, define_table
from delta_py.definition.replace import build_table
from delta_py.errors import DeltaError
from delta_py.protocol.features import supported_features
from delta_py.snapshot import Snapshot
from delta_py.storage.local import LocalStore
from delta_py.types.schema import LONG, ArrayType, StructField, StructType

FEATURE, FLAG = "columnMappingUsageTracking", "delta.columnMapping.hasDroppedOrRenamed"
TRACKED = {f"delta.feature.{FEATURE}": "supported", "delta.columnMapping.mode": "name"}
PAIRS = ArrayType(StructType((StructField("x", LONG), StructField("y", LONG))))
SCHEMA = StructType((StructField("id", LONG), StructField("l", PAIRS)))


def make(path: Path) -> LocalStore:
    store = LocalStore(str(path))
    create_table(store, define_table(SCHEMA, configuration=TRACKED))
    return store


def flag(store: LocalStore) -> str | None:
    return Snapshot.load(store).metadata.configuration.get(FLAG)


def overwrite(store: LocalStore) -> None:
    write_delta(store.root, pa.table({"id": [1]}), mode="overwrite", overwrite_schema=True)


CHANGES: dict[str, Callable[[LocalStore], object]] = {
    "drop": lambda store: drop_columns(store, ["l"]),
    "drop a field": lambda store: drop_columns(store, ["l.element.x"]),
    "rename": lambda store: rename_column(store, "id", "key"),
    "rename a field": lambda store: rename_column(store, "l.element.x", "z"),
    "replace": lambda store: build_table(store, "replace", define_table(SCHEMA, configuration=TRACKED)),
    "overwriteSchema": overwrite,
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_change_of_columns_is_said_and_stays_said(tmp_path: Path, kind: str) -> None:
    store = make(tmp_path / "t")
    assert flag(store) == "false"
    write_delta(store.root, pa.table({"id": pa.array([1], pa.int64())}), mode="append")
    add_columns(store, [NewColumn("more", LONG)])
    set_properties(store, {"delta.appendOnly": "false"})
    assert flag(store) == "false"
    CHANGES[kind](store)
    assert flag(store) == "true"
    restore(store, version=0)
    assert flag(store) == "true"
    shallow_clone(Snapshot.load(store), LocalStore(str(tmp_path / "clone")))
    assert flag(LocalStore(str(tmp_path / "clone"))) == "true"


def test_a_clone_over_a_table_has_what_its_source_says(tmp_path: Path) -> None:
    source, target = make(tmp_path / "t"), make(tmp_path / "over")
    rename_column(source, "id", "key")
    shallow_clone(Snapshot.load(source), target, replace_table=True)
    assert flag(target) == "true"


def test_feature_can_be_dropped_with_its_flag_and_then_mapping(tmp_path: Path) -> None:
    store = make(tmp_path)
    drop_feature(store, FEATURE)
    assert flag(store) is None
    drop_feature(store, "columnMapping")
    assert not {FEATURE, "columnMapping"} & set(supported_features(Snapshot.load(store).protocol))


def test_a_table_that_gets_the_feature_later_counts_as_changed(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    create_table(store, define_table(SCHEMA, configuration={"delta.columnMapping.mode": "name"}))
    assert flag(store) is None
    add_feature(store, FEATURE)
    assert flag(store) == "true"


def test_users_do_not_set_the_flag_and_take_it_away_in_vain(tmp_path: Path) -> None:
    store = make(tmp_path)
    with pytest.raises(DeltaError):
        set_properties(store, {FLAG: "false"})
    rename_column(store, "id", "key")
    with pytest.raises(DeltaError):
        set_properties(store, {FLAG: "false"})
    unset_properties(store, [FLAG])
    assert flag(store) == "true"
