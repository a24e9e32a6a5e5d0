"""tests/support/README.md lists the helper modules of the tests, and the order in which their folders import each other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SUPPORT = Path(__file__).parents[2] / "support"
README = (SUPPORT / "README.md").read_text()
MODULES = sorted(path.relative_to(SUPPORT).as_posix() for path in SUPPORT.glob("*/*.py"))


def test_readme_lists_the_helper_modules_that_exist() -> None:
    assert sorted(set(re.findall(r"`(\w+/\w+\.py)`", README))) == MODULES


def test_helpers_import_only_folders_above_their_own() -> None:
    folders = re.findall(r"^\| `(\w+)` \|", README.partition("## Modules")[0], re.MULTILINE)
    assert sorted(folders) == sorted({Path(module).parts[0] for module in MODULES})
    below = [
        (module, imported)
        for module in MODULES
        for imported in imported_folders(module)
        if folders.index(imported) > folders.index(Path(module).parts[0])
    ]
    assert below == []


def imported_folders(module: str) -> set[str]:
    tree = ast.parse((SUPPORT / module).read_text(), module)
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[2] for name in names if name.startswith("tests.support.")}
