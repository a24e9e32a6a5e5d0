"""Which of the package's jars a session uses, and whether the jar was built from these sources.

    jar = jar_for("4.3.1")              # pydelta-spark-4.3.jar: patch releases share the jar of their minor version
    jar = jar_for("4.4.0")              # the newest jar; jar.is_for_older_spark says that it needs a self-test (self_test.py)
    jar = jar_for("4.0.1")              # UnsupportedOperationError, which names the versions that work

The jar is built by build.py and travels in the wheel. A source checkout has the sources next to it, and so has an installation
that was made without jars (setup.py): there a jar that was built from other sources is refused, and the error names the command
that builds it.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from spark_plugin.java.supported_versions import SUPPORTED, minor_version, refuse_older

MINOR_VERSIONS = tuple(f"{major}.{minor}" for major, minor in SUPPORTED)
"""The minor versions of Spark that a jar is built for, oldest first."""

SOURCES = Path(__file__).resolve().parent
DIRECTORY = SOURCES.parent / "jars"
MANIFEST = "META-INF/MANIFEST.MF"
BUILD_COMMAND = "python -m spark_plugin.java.build"
JAVA_RELEASE = "17"
"""The oldest Java that Spark 4 runs on."""

_NAME_OF_DIGEST = "Sources-Digest"


class JarError(RuntimeError):
    """The jar was built from other sources, or cannot be used for another reason. The message says what to do."""


class MissingJarError(JarError):
    """There is no such jar. has_sources: whether there are sources to build it from."""

    def __init__(self, message: str, *, has_sources: bool) -> None:
        super().__init__(message)
        self.has_sources = has_sources


@dataclass(frozen=True, slots=True)
class Jar:
    """The jar of a session. path: of the file, perhaps inside a zip file. minor_version: of the Spark that it was compiled for.
    is_for_older_spark: whether the session's Spark is newer than that."""

    path: Traversable
    minor_version: str
    is_for_older_spark: bool = False


@cache
def jar_for(spark_version: str) -> Jar:
    """Return the jar for a session of this version of Spark.

    It is searched for once per process. Raises UnsupportedOperationError for a Spark that is older than all of MINOR_VERSIONS,
    and JarError if the jar cannot be used.
    """
    refuse_older(spark_version)
    requested_version = minor_version_of(spark_version)
    newest = MINOR_VERSIONS[-1]
    jar_version = requested_version if requested_version in MINOR_VERSIONS else newest
    path = file_of_package(DIRECTORY / jar_name(jar_version))
    _require_current(path, jar_version)
    return Jar(path, jar_version, is_for_older_spark=minor_version(newest) < minor_version(spark_version))


def file_of_package(path: Path) -> Traversable:
    """Return the file at a path, which goes through a zip file if Python imports pydelta from one (`spark-submit --py-files`)."""
    archive = next((parent for parent in path.parents if parent.is_file()), None)
    return path if archive is None else zipfile.Path(archive, path.relative_to(archive).as_posix())


def jar_name(minor_version: str) -> str:
    return f"pydelta-spark-{minor_version}.jar"


def minor_version_of(spark_version: str) -> str:
    """Return `4.3` for 4.3.1."""
    return ".".join(map(str, minor_version(spark_version)))


def sources_for(minor_version: str) -> dict[str, Path]:
    """Map `rule/PruneScans.java` to the file that is compiled for this minor version of Spark. Empty in a wheel with jars."""
    version_sources = SOURCES / f"spark_{minor_version.replace('.', '_')}"
    sources = {file.relative_to(root).as_posix(): file for root in (SOURCES, version_sources) for file in root.glob("*/*.java")}
    return dict(sorted(sources.items()))


def digest_of(sources: Mapping[str, Path]) -> str:
    """Return a hash of the sources' paths and contents."""
    digest = hashlib.blake2b(digest_size=20)
    for path, file in sources.items():
        for part in (path.encode(), file.read_bytes()):
            digest.update(len(part).to_bytes(8, "little"))  # so that two different sets of sources never give the same bytes
            digest.update(part)
    return digest.hexdigest()


def manifest_text(pydelta_version: str, spark_version: str, digest: str) -> str:
    """Return the text of a jar's manifest. digest: of the sources that the jar is built from."""
    lines = ("Manifest-Version: 1.0", f"Pydelta-Version: {pydelta_version}", f"Spark-Version: {spark_version}")
    return "\r\n".join([*lines, f"{_NAME_OF_DIGEST}: {digest}", "", ""])


def manifest_of(jar: Traversable) -> dict[str, str]:
    """Return the attributes of a jar's manifest. Raises JarError for a file that is no jar of pydelta."""
    try:
        with jar.open("rb") as file, zipfile.ZipFile(file) as archive:
            lines = archive.read(MANIFEST).decode().splitlines()
    except (zipfile.BadZipFile, KeyError) as error:
        raise JarError(f"{jar} is damaged ({error}). {_how_to_build()}") from error
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def is_built_from(sources: Mapping[str, Path], jar: Traversable) -> bool:
    """Return whether the jar's manifest names these sources. Raises JarError for a file that is no jar of pydelta."""
    return manifest_of(jar).get(_NAME_OF_DIGEST) == digest_of(sources)


def is_current(minor_version: str) -> bool:
    """Return whether the jar exists, and was built from the sources next to it."""
    try:
        _require_current(DIRECTORY / jar_name(minor_version), minor_version)
    except JarError:
        return False
    return True


def _require_current(path: Traversable, minor_version: str) -> None:
    """Raise JarError if the jar is missing, or if there are sources and it was built from others."""
    sources = sources_for(minor_version)
    if not path.is_file():
        raise MissingJarError(f"{path} is missing. {_how_to_build(sources)}", has_sources=bool(sources))
    if sources and not is_built_from(sources, path):
        raise JarError(f"{path} was built from other Java sources than those in {SOURCES}. {_how_to_build(sources)}")


def _how_to_build(sources: Mapping[str, Path] | None = None) -> str:
    """Return the advice for an error. sources: empty in a wheel, which cannot build a jar; None if it is not known whether
    this is a wheel. Then the advice is to build."""
    if sources == {}:
        return "Install pydelta again: the wheel contains this file."
    return f"Install a JDK of Java {JAVA_RELEASE} or newer, and build it: {BUILD_COMMAND}"
