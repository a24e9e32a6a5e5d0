"""The advice of a report: the commands work, also on tables whose names need quotes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from delta_py import DeltaTable, write_delta
from delta_py.report.facts import Unknown
from tests.support.tables.advised_tables import advised_table, clustered_table


def titles(path: str, **options: bool) -> list[str]:
    return [item.title for item in DeltaTable(path).report(**options).facts.advice]


def test_python_commands_do_what_was_advised(tmp_path: Path) -> None:
    path = advised_table(tmp_path)
    rows = sorted(DeltaTable(path).to_arrow()["c"].to_pylist())
    advice = DeltaTable(path).report().facts.advice
    assert [item.title for item in advice] == [
        "OPTIMIZE can merge 6 files into 1",
        "25 % of the rows in 6 files are deleted",
        "Put rows in the order of a.b, if queries filter by it",
        "Loading the table reads 7 commits",
    ]
    for item in advice:
        assert item.python is not None
        eval(item.python, {"DeltaTable": DeltaTable})
    assert titles(path) == []
    assert sorted(DeltaTable(path).to_arrow()["c"].to_pylist()) == rows


def test_advice_clusters_a_clustered_table_by_filter_columns(tmp_path: Path) -> None:
    path = clustered_table(tmp_path)
    table = DeltaTable(path)
    for _ in range(2):
        table.scan(filter="y = 3")
    (item,) = [item for item in table.report().facts.advice if "order" in item.title]
    assert (item.cli, item.sql) == (None, f"ALTER TABLE pydelta.`{path}` CLUSTER BY (y)")
    assert item.python is not None
    eval(item.python, {"DeltaTable": DeltaTable})
    assert DeltaTable(path).report().facts.identity.clustering_columns == ("y",)


def test_vacuum_is_advised_for_what_a_dry_run_finds(tmp_path: Path) -> None:
    path = advised_table(tmp_path)
    DeltaTable(path).alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 0 hours"})
    DeltaTable(path).optimize.compact()
    report = DeltaTable(path).report(vacuum=True)
    vacuum = report.facts.retention
    assert not isinstance(vacuum, Unknown) and not isinstance(vacuum.vacuum, Unknown)
    (item,) = [item for item in report.facts.advice if "VACUUM" in item.title]
    assert item.title == f"VACUUM may delete {vacuum.vacuum.files} files" and vacuum.vacuum.files >= 6
    assert item.python is not None
    vacuum_result = eval(item.python, {"DeltaTable": DeltaTable})
    assert isinstance(vacuum_result, pa.Table) and vacuum_result.num_rows == vacuum.vacuum.files
    files = {file.name for file in Path(path).glob("*.parquet")}
    assert item.after_dry_run is not None and item.after_dry_run.python is not None
    eval(item.after_dry_run.python, {"DeltaTable": DeltaTable})
    deleted_files = files - {file.name for file in Path(path).glob("*.parquet")}
    assert deleted_files == {Path(name).name for name in vacuum_result["path"].to_pylist() if name.endswith(".parquet")} != set()


def test_damage_is_advised_to_be_repaired_after_a_dry_run(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    for number in range(2):
        write_delta(path, pa.table({"a": [number]}), mode="append")
    (tmp_path / "table" / "_delta_log" / f"{1:020d}.crc").write_text("{")
    (item,) = DeltaTable(path).report().facts.advice
    assert item.urgent and item.python is not None and item.after_dry_run is not None and item.after_dry_run.python is not None
    eval(item.python, {"DeltaTable": DeltaTable})
    assert DeltaTable(path).report().facts.advice == (item,)
    eval(item.after_dry_run.python, {"DeltaTable": DeltaTable})
    assert DeltaTable(path).report().facts.advice == ()
