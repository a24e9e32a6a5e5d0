"""The layers: layers.txt lists every module, and a module imports only modules above it in that list."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("delta_py", "spark_plugin", "pydelta_cli")
LONE_MODULES = ("pyspark_pydelta.py",)

# Never in delta_py: Spark is spark_plugin's; the other two cost more to import than a small read takes.
FOREIGN_TO_DELTA_PY = ("pyspark", "py4j", "pandas", "pyarrow.dataset", "spark_plugin")
# The only module of delta_py that imports datasets, in the function that makes one.
MAKES_DATASETS = "delta_py/exchange/arrow_dataset.py"
# Never in the rooms of the protocol's own formats: bytes and values in, bytes and values out; no I/O and no clock.
FOREIGN_TO_PROTOCOL = ("os", "io", "pathlib", "shutil", "socket", "subprocess", "tempfile", "threading", "time")

# The modules that reach behind the public API of Spark and of Py4J: the JVM and pyspark, and a client of Spark Connect.
INTERNALS = (
    "spark_plugin/internals/spark_internals.py",
    "spark_plugin/internals/jvm_plans.py",
    "spark_plugin/internals/pyspark_internals.py",
    "spark_plugin/internals/connect_internals.py",
    "spark_plugin/sql_internals.py",
    "spark_plugin/sql_definitions.py",
    "spark_plugin/sql/parsed_inserts.py",
    "spark_plugin/driver_channel/sql_requests.py",
)
# What belongs to Spark alone, even where a module has a private name of its own that is spelled the same.
SPARK_PRIVATE = ("_jdf", "_jc", "_jvm", "_jsc", "_jsparkSession", "_jreader", "_jwrite", "_gateway", "_sc", "_ssql")
# Methods of Java's objects behind a session: its plans and rules, and what tells their classes.
JVM_METHODS = (
    *("queryExecution", "logicalPlan", "analyzed", "optimizedPlan", "executedPlan", "toRdd", "subqueriesAll", "fastEquals"),
    *("nodeName", "projectList", "outputSet", "subsetOf", "references", "foldable", "containsPattern", "childSchema"),
    *("experimental", "extraOptimizations", "statusTracker", "unpersistRDD", "getClass", "java_exception", "newJavaObject"),
)
BEHIND_THE_API = ("py4j", "pyspark.java_gateway", "pyspark.errors.exceptions", "pyspark.sql.classic", "pyspark.sql.connect")
# The modules that ask whether a session is a client of Spark Connect. All others use an adapter, an analyzer or a parser.
SESSION_KIND_MODULES = {
    "spark_plugin/internals/session_adapter.py",
    "spark_plugin/sql_internals.py",
    "spark_plugin/dml/analyzer.py",
    "spark_plugin/session.py",
}
# (module, import): what is imported of these all the same, because it is the public name of an error that users catch too.
PUBLIC_NAMES = {("spark_plugin/merge/merge_job.py", "py4j.protocol.Py4JJavaError")}
# (module, name): of the standard library, how a process ends.
PROCESS_END = {("pydelta_cli/main.py", "_exit"), ("pydelta_cli/main.py", "_run_exitfuncs")}


def source_files() -> list[str]:
    files = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    files += [ROOT / name for name in LONE_MODULES if (ROOT / name).exists()]
    return sorted(str(path.relative_to(ROOT)) for path in files)


SOURCES = source_files()
MODULES = [name for name in SOURCES if not name.endswith("__init__.py")]


def listed_modules() -> list[str]:
    """The modules in the order of layers.txt: lines that begin with a file's path."""
    text = (ROOT / "layers.txt").read_text()
    return re.findall(r"^((?:delta_py/|spark_plugin/|pydelta_cli/|pyspark_pydelta)[\w/]*\.py)\b", text, re.MULTILINE)


def test_layers_list_each_module_that_exists_once() -> None:
    listed = listed_modules()
    assert len(listed) == len(set(listed)), "a module is listed twice in layers.txt"
    assert sorted(set(MODULES) - set(listed)) == [], "layers.txt lacks these modules"
    assert sorted(set(listed) - set(MODULES)) == [], "layers.txt lists modules that do not exist"


def drawn_imports() -> dict[str, set[str]]:
    """The arrows of ARCHITECTURE.md's diagram, from folder to folder."""
    diagram = (ROOT / "ARCHITECTURE.md").read_text().partition("```mermaid\n")[2].partition("```")[0]
    package, folders, arrows = "", {}, []
    for line in diagram.splitlines():
        package = line.split()[1] if line.split()[0] == "subgraph" else package
        for name, folder in re.findall(r'(\w+)\["(\w+)<br>', line):
            folders[name] = folder if folder in PACKAGES else f"{package}/{folder}"
        if "-->" in line:
            start, _, ends = re.sub(r'\[".*?"\]', "", line).partition("-->")
            arrows += [(start.strip(), end.strip()) for end in ends.split("&")]
    found: dict[str, set[str]] = {folder: set() for folder in folders.values()}
    for start, end in arrows:
        found[folders[start]].add(folders[end])
    return found


def room(module: str) -> str | None:
    """The folder of a module in the diagram; None for a file outside of folders."""
    package, *rest = Path(module).parts
    return package if package == "pydelta_cli" else f"{package}/{rest[0]}" if len(rest) > 1 else None


def test_diagram_has_each_folder_and_a_way_for_each_import() -> None:
    drawn, imports = drawn_imports(), {(room(name), room(imported)) for name in MODULES for imported in own_imports(name)}
    assert sorted(drawn) == sorted({found for name in MODULES if (found := room(name))})
    ways = {folder: reachable(folder, drawn) for folder in drawn}
    assert [(start, end) for start, end in imports if start and end and start != end and end not in ways[start]] == []
    assert [(start, end) for start, ends in drawn.items() for end in ends if (start, end) not in imports] == []


def reachable(start: str, arrows: dict[str, set[str]]) -> set[str]:
    found, waiting = set(), [start]
    while waiting:
        new = arrows[waiting.pop()] - found
        found |= new
        waiting += new
    return found


JAVA = ROOT / "spark_plugin" / "java"
JAVA_SOURCES = sorted(path for path in JAVA.rglob("*.java") if path.stem != "package-info")


@pytest.mark.parametrize("folder", sorted({path.parent for path in JAVA.glob("*/*.java")}), ids=lambda folder: folder.name)
def test_java_package_says_what_it_does(folder: Path) -> None:
    said, _, declared = (folder / "package-info.java").read_text().partition(" */\n")
    assert declared == f"package pydelta.{folder.name};\n"
    assert said.startswith("/**\n * ") and len(said.splitlines()) >= 3
    assert len(list(folder.glob("*.java"))) <= 20


@pytest.mark.parametrize("path", JAVA_SOURCES, ids=lambda path: path.stem)
def test_java_source_matches_its_package_and_has_a_comment(path: Path) -> None:
    text = path.read_text()
    assert text.startswith(f"package pydelta.{path.parent.name};\n")
    before = re.split(rf"^(?:\w+ )*(?:class|interface|record|enum) {path.stem}\b", text, maxsplit=1, flags=re.MULTILINE)[0]
    assert re.sub(r"^@.*\n", "", before, flags=re.MULTILINE).rstrip().endswith("*/")


@pytest.mark.parametrize("depth", [2, 3])
def test_modules_of_a_folder_stand_together_in_the_list(depth: int) -> None:
    folders = [tuple(Path(module).parts[:depth]) for module in listed_modules()]
    changes = [folder for before, folder in zip([None, *folders], folders, strict=False) if folder != before]
    assert len(changes) == len(set(changes)), "the modules of a folder are listed in two places in layers.txt"


def test_folder_has_at_most_fifteen_modules() -> None:
    counts = Counter(str(Path(module).parent) for module in MODULES)
    assert {folder: count for folder, count in counts.items() if count > 15} == {}


@pytest.mark.parametrize("name", MODULES)
def test_module_imports_only_modules_listed_above_it(name: str) -> None:
    rank = {module: position for position, module in enumerate(listed_modules())}
    for package in {str(Path(module).parent) for module in rank}:
        inside = [position for module, position in rank.items() if module.startswith(package + "/")]
        if inside:
            rank[f"{package}/__init__.py"] = max(inside)
    below = [
        imported for imported in own_imports(name) if imported != name and rank.get(imported, -1) > rank.get(name, len(rank))
    ]
    assert below == [], f"{name} imports modules below it in layers.txt"


@pytest.mark.parametrize("name", [n for n in SOURCES if n.startswith("delta_py/")])
def test_delta_py_module_imports_no_spark_pandas_or_datasets(name: str) -> None:
    imported = foreign_imports(name, FOREIGN_TO_DELTA_PY)
    assert imported == (["pyarrow.dataset"] if name == MAKES_DATASETS else [])


PROTOCOL = ("delta_py/protocol/", "delta_py/types/", "delta_py/statistics/")


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith(PROTOCOL)])
def test_protocol_module_imports_no_io_and_no_clock(name: str) -> None:
    assert foreign_imports(name, FOREIGN_TO_PROTOCOL) == []


@pytest.mark.parametrize("name", [n for n in SOURCES if not n.startswith("delta_py/") and n not in INTERNALS])
def test_only_the_internals_reach_behind_the_public_api_of_spark(name: str) -> None:
    asked = [found for found in private_accesses(parse(name)) if (name, found) not in PROCESS_END]
    assert asked == [], f"what Spark keeps to itself is asked of {INTERNALS}"
    imported = [found for found in foreign_imports(name, BEHIND_THE_API) if (name, found) not in PUBLIC_NAMES]
    private = [found for found in foreign_imports(name, ("pyspark",)) if is_private(found.rpartition(".")[2])]
    assert imported + private == [], f"what Spark keeps to itself is imported by {INTERNALS}"


def test_few_modules_ask_for_the_kind_of_a_session() -> None:
    question = "spark_plugin.internals.spark_internals.is_connect"
    assert {name for name in SOURCES if question in imported_names(name, typing_too=True)} == SESSION_KIND_MODULES


def test_imports_that_are_excepted_are_still_there() -> None:
    for name, imported in PUBLIC_NAMES:
        assert imported in foreign_imports(name, BEHIND_THE_API)
    for name, asked in PROCESS_END:
        assert asked in private_accesses(parse(name))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("frame._jdf.count()", ["_jdf"]),
        ("getattr(column, '_expr', None)", ["_expr"]),
        ("class A:\n    def _jvm(self): return self._jvm", ["_jvm"]),
        ("writer._write_stream", ["_write_stream"]),
        ("frame.plan.queryExecution()", ["queryExecution"]),
        ("class A:\n    _rows: int\n    def f(self): self._n = self._rows + self._g()\n    def _g(self): return 1", []),
        ("frame.schema.__class__", []),
    ],
)
def test_access_behind_the_api_is_found_in_a_text(text: str, found: list[str]) -> None:
    assert private_accesses(ast.parse(text)) == found


@pytest.mark.parametrize("name", [n for n in SOURCES if n.endswith("__init__.py")])
def test_package_init_only_exports(name: str) -> None:
    for node in parse(name).body:
        assert is_export(node), f"{name}:{node.lineno} does more than export"


def test_delta_py_imports_no_spark_pandas_or_datasets() -> None:
    names = [module_name(name) for name in SOURCES if name.startswith("delta_py/")]
    code = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print([name for name in {FOREIGN_TO_DELTA_PY!r} if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "[]"


# ---------------------------------------------------------------- reading the sources


def parse(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(), name)


def module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def is_export(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign(targets=[ast.Name(id=target)]) | ast.AnnAssign(target=ast.Name(id=target)):
            return target.startswith("_")
        case ast.FunctionDef(name=function):
            return function in ("__getattr__", "__dir__")
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=[]):
            return all(isinstance(inner, ast.Import | ast.ImportFrom) for inner in node.body)
        case _:
            return False


def private_accesses(tree: ast.Module) -> list[str]:
    """Attributes that are private to somebody else, or a method of Java's; by name, in the order in which they are walked."""
    own = own_private_names(tree)
    return [
        name
        for name in accessed_names(tree)
        if name in SPARK_PRIVATE or name in JVM_METHODS or (is_private(name) and name not in own)
    ]


def accessed_names(tree: ast.Module) -> Iterator[str]:
    """`x.name`, and what getattr and its like are given as a text."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name):
                yield name
            case ast.Call(func=ast.Name(id="getattr" | "hasattr" | "setattr"), args=[_, ast.Constant(value=str(name)), *_]):
                yield name


def own_private_names(tree: ast.Module) -> set[str]:
    """What a module defines: functions, classes, variables and fields, and attributes that are set on self."""
    own = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                own.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                own.add(name)
    return own


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def imported_names(name: str, *, typing_too: bool) -> Iterator[str]:
    """Dotted names of all that a module imports, in functions too; `from a import b` gives `a.b`."""
    only_typing: set[ast.AST] = set()
    tree = parse(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            only_typing.update(inner for statement in node.body for inner in ast.walk(statement))
    for node in ast.walk(tree):
        if node in only_typing and not typing_too:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno} is a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(name: str) -> list[str]:
    """The files of this project that a module imports, for type checking too."""
    files = {module_name(path): path for path in SOURCES}
    found = []
    for imported in imported_names(name, typing_too=True):
        target = files.get(imported) or files.get(imported.rpartition(".")[0])
        if target is not None:
            found.append(target)
    return found


def foreign_imports(name: str, forbidden: tuple[str, ...]) -> list[str]:
    return [
        imported
        for imported in imported_names(name, typing_too=False)
        if any(imported == prefix or imported.startswith(prefix + ".") for prefix in forbidden)
    ]
