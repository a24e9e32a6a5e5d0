"""Checks that a wheel and an sdist contain the jars of all versions of Spark, built from the same sources, and that a zip file
with the wheel's content is next to them.

    python tests/support/documents/dist_contents.py dist
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from spark_plugin.java import jars


def problems_of(directory: Path) -> list[str]:
    """What is wrong with the wheel and the sdist in a directory."""
    wheels, sdists = list(directory.glob("*.whl")), list(directory.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        return [f"{directory} has {len(wheels)} wheels and {len(sdists)} sdists"]
    with zipfile.ZipFile(wheels[0]) as wheel, tarfile.open(sdists[0]) as sdist:
        in_wheel = {name: name for name in wheel.namelist()}
        in_sdist = {str(PurePosixPath(*PurePosixPath(name).parts[1:])): name for name in sdist.getnames()}
        problems = _jar_problems("wheel", in_wheel, lambda name: wheel.read(in_wheel[name]))
        problems += _jar_problems("sdist", in_sdist, lambda name: _read(sdist, in_sdist[name]))
    sources = {f"spark_plugin/java/{path.relative_to(jars.SOURCES).as_posix()}" for path in jars.SOURCES.rglob("*.java")}
    problems += [f"the sdist lacks {name}" for name in sorted(sources - set(in_sdist))]
    problems += [f"the wheel has {name}" for name in in_wheel if name.endswith(".java")]
    if [path.read_bytes() for path in directory.glob("*.zip")] != [wheels[0].read_bytes()]:
        problems.append("no zip file, or more than the one with the content of the wheel")
    return problems


def _jar_problems(where: str, names: Iterable[str], read: Callable[[str], bytes]) -> list[str]:
    problems = []
    for minor_version in jars.MINOR_VERSIONS:
        name = f"spark_plugin/jars/{jars.jar_name(minor_version)}"
        if name not in names:
            problems.append(f"the {where} lacks {name}")
            continue
        with tempfile.NamedTemporaryFile(suffix=".jar") as file:
            file.write(read(name))
            file.flush()
            if not jars.is_built_from(jars.sources_for(minor_version), Path(file.name)):
                problems.append(f"{name} of the {where} was built from other sources")
    return problems


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    return b"" if file is None else file.read()


if __name__ == "__main__":
    found = problems_of(Path(sys.argv[1]))
    print("\n".join(found) or f"wheel, zip and sdist contain the jars for Spark {', '.join(jars.MINOR_VERSIONS)}")
    sys.exit(1 if found else 0)
