"""Every public name of deltalake is in as_deltalake, with its parameters, and on the page for its users."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import deltalake.exceptions
import deltalake.fs
import deltalake.query
import deltalake.table
import deltalake.transaction
import deltalake.writer
import pytest

import delta_py
import delta_py.as_deltalake as ours
from delta_py.alter.table_alterer import TableAlterer
from delta_py.optimize.optimize import TableOptimizer
from delta_py.row_changes.merge import TableMerger
from tests.support.documents import pages

PAGE = pages.ROOT / "docs" / "from-deltalake.md"
CLASSES = {
    "DeltaTable": (deltalake.DeltaTable, ours.DeltaTable, "dt."),
    "TableAlterer": (deltalake.table.TableAlterer, ours.table.TableAlterer, "dt.alter."),
    "TableOptimizer": (deltalake.table.TableOptimizer, ours.table.TableOptimizer, "dt.optimize."),
    "TableMerger": (deltalake.table.TableMerger, ours.table.TableMerger, "TableMerger."),
}
MODULES = {
    deltalake.exceptions: ours.exceptions,
    deltalake.fs: ours.fs,
    deltalake.writer: ours.writer,
}
SHORTCUTS = {"optimize", "alter"}


def methods() -> Iterator[tuple[str, str]]:
    for kind, (theirs, _, _) in CLASSES.items():
        for name in vars(theirs):
            if not name.startswith("_") and (kind, name) != ("DeltaTable", "table"):
                yield kind, name


@pytest.mark.parametrize("name", deltalake.__all__)
def test_public_name_is_there(name: str) -> None:
    assert hasattr(ours, name) and name in ours.__all__


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_names_of_a_module_are_there(module: Any) -> None:
    assert [name for name in module.__all__ if not hasattr(MODULES[module], name)] == []


@pytest.mark.parametrize(("kind", "name"), list(methods()))
def test_method_has_the_parameters_of_deltalake(kind: str, name: str) -> None:
    theirs, own, _ = CLASSES[kind]
    if isinstance(inspect.getattr_static(theirs, name), property):
        assert isinstance(inspect.getattr_static(own, name), property)
        return
    assert parameters(getattr(own, name)) == parameters(getattr(theirs, name))


CALLABLES = ["write_deltalake", "convert_to_deltalake", "DeltaTable", "CommitProperties", "WriterProperties"]


@pytest.mark.parametrize("name", CALLABLES)
def test_callable_has_the_parameters_of_deltalake(name: str) -> None:
    assert parameters(getattr(ours, name)) == parameters(getattr(deltalake, name))


def parameters(function: Any) -> list[tuple[str, Any]]:
    return [(parameter.name, parameter.kind) for parameter in inspect.signature(function).parameters.values()]


# ---------------------------------------------------------------- the page


def spans(column: int) -> set[str]:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return {span for row in rows for span in re.findall(r"`([\w.]+)`", row[column])}


def test_page_lists_every_public_name() -> None:
    names = {prefix + name for kind, name in methods() for prefix in [CLASSES[kind][2]] if name not in SHORTCUTS}
    assert sorted(names - spans(1)) == []
    assert sorted({*deltalake.__all__, *deltalake.exceptions.__all__} - spans(1)) == []


def test_page_names_what_delta_py_has() -> None:
    classes = {
        "table.alter.": TableAlterer,
        "table.optimize.": TableOptimizer,
        "TableMerger.": TableMerger,
        "table.": delta_py.DeltaTable,
    }
    named = [span for span in spans(2) if "." in span]
    assert len(named) > 40
    for span in named:
        prefix = next(prefix for prefix in classes if span.startswith(prefix))
        assert hasattr(classes[prefix], span.removeprefix(prefix)), span


def test_code_of_the_page_gives_what_the_page_says(tmp_path: Path) -> None:
    assert pages.run(PAGE, tmp_path) > 5
