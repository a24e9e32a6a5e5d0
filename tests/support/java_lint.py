"""Compiles the Java sources of the plugin with javac, which checks more than the compiler that sessions use (Janino).

    python tests/support/java_lint.py [PYTHON]

Every folder of spark_plugin that has Java sources is a unit, or with others a part of one (TOGETHER). A unit is compiled whole,
for the Java that Spark runs on, against the jars of the pyspark that PYTHON imports (by default the Python that runs this). Any
warning is an error. Nothing is kept.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from spark_plugin.spark_versions import JAVA_FOLDERS, java_folder

PLUGIN = Path(__file__).resolve().parents[2] / "spark_plugin"
JAVA = "17"
_PRIVATE_LOCK = re.compile(r"(?!.*\bstatic\b).*\bprivate\b.*\bsynchronized\b.*\(")
TOGETHER = ("pruning", "sql_catalog")

# Janino knows no generics: types are raw, and there are casts from what it sees as Object. Jars of Spark name others in their
# manifests that Spark does not have. A unit is never compiled in parts, so that classes may share a file.
NOT_FOR_US = ("rawtypes", "unchecked", "cast", "path", "auxiliaryclass")


def main(arguments: list[str]) -> int:
    javac = find_javac()
    if javac is None:
        print("javac was not found: install a JDK (17), or set JAVA_HOME to one. Java's runtime is not enough.", file=sys.stderr)
        return 1
    jars = jars_of(arguments[0] if arguments else sys.executable)
    version_folder = java_folder(spark_version(jars))
    units = units_of_plugin()
    locking = [place for unit in units for source in sources_of(unit, version_folder) for place in locks_of_classes(source)]
    for place in locking:
        print(f"{place}: Janino makes private methods static, so that this locks the class, not the object: drop `private`")
    failed = [unit for unit in units if not compiles(javac, jars, sources_of(unit, version_folder))]
    print(f"javac: {len(units) - len(failed)} of {len(units)} units compile without warnings against {jars}")
    return 1 if failed or locking else 0


def locks_of_classes(source: Path) -> list[str]:
    """Where private methods of objects are synchronized."""
    lines = source.read_text().splitlines()
    return [f"{source}:{number}" for number, line in enumerate(lines, 1) if _PRIVATE_LOCK.match(line)]


def units_of_plugin() -> list[tuple[Path, ...]]:
    folders = sorted({file.parent for file in PLUGIN.rglob("*.java") if file.parent.name not in JAVA_FOLDERS.values()})
    assert folders, f"no Java source under {PLUGIN}"
    together = tuple(folder for folder in folders if folder.name in TOGETHER)
    return [together, *((folder,) for folder in folders if folder not in together)]


def spark_version(jars: Path) -> str:
    return next(iter(jars.glob("spark-sql_*.jar"))).stem.rpartition("-")[2]


def sources_of(folders: tuple[Path, ...], version_folder: str | None) -> list[Path]:
    """version_folder: below the others, with sources that take the place of those of their names."""
    found = {}
    for folder in folders:
        for place in (folder, *([folder / version_folder] if version_folder else [])):
            found.update({(folder, file.name): file for file in sorted(place.glob("*.java"))})
    return list(found.values())


def find_javac() -> str | None:
    """JAVA_HOME's, as Spark chooses its Java, or else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("javac", path=str(Path(home) / "bin")) if home else shutil.which("javac")


def jars_of(python: str) -> Path:
    code = "import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent / 'jars')"
    answer = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    jars = Path(answer.stdout.strip())
    assert any(jars.glob("spark-sql_*.jar")), f"no Spark in {jars}"
    return jars


def compiles(javac: str, jars: Path, sources: list[Path]) -> bool:
    lint = "-Xlint:all," + ",".join(f"-{name}" for name in NOT_FOR_US)
    with tempfile.TemporaryDirectory() as classes:
        command = [javac, "--release", JAVA, lint, "-Werror", "-proc:none", "-cp", f"{jars}/*", "-d", classes]
        return subprocess.run([*command, *map(str, sources)]).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
