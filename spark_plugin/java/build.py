"""Builds the jar of the Java part for the pyspark that this Python has, or for another Spark.

    python -m spark_plugin.java.build                              # if the jar is missing, or was built from other sources
    python -m spark_plugin.java.build --force                      # in any case
    python -m spark_plugin.java.build --spark-jars /opt/spark/jars # for the Spark with these jars; it needs no pyspark

    spark_plugin/java/<package>/Name.java               package pydelta.<package>, for all versions of Spark
    spark_plugin/java/spark_4_1/<package>/Name.java     the same for Spark 4.1 alone; it replaces a common source of the same path

The result is a file such as spark_plugin/jars/pydelta-spark-4.3.jar. The build uses the javac of a JDK (JAVA_HOME, or else
PATH), and Spark's own jars. A warning of the oldest javac, 17, is an error. Equal sources give equal jars, byte by byte.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from delta_py.release import own_version
from spark_plugin.java import jars
from spark_plugin.java.jars import JAVA_RELEASE

_OLDEST_TIME = (1980, 1, 1, 0, 0, 0)  # the first that zip files can have


class BuildError(RuntimeError):
    """javac is missing or refuses the sources, or there is no pyspark to compile against."""


def build(*, force: bool = False, spark_jars: Path | None = None) -> Path:
    """Return the jar for the Spark whose jars are in a directory; build it if necessary. Raises BuildError.

    spark_jars: None means those of the pyspark of this Python.
    """
    spark_jars = spark_jars or jars_of_pyspark()
    spark_version = version_of_spark(spark_jars)
    minor_version = jars.minor_version_of(spark_version)
    if minor_version not in jars.MINOR_VERSIONS:
        raise BuildError(f"pydelta has no jar for Spark {minor_version}, but for {', '.join(jars.MINOR_VERSIONS)}")
    target = jars.DIRECTORY / jars.jar_name(minor_version)
    if force or not jars.is_current(minor_version):
        sources = jars.sources_for(minor_version)
        manifest = jars.manifest_text(own_version(), spark_version, jars.digest_of(sources))
        _write_jar(target, archive_of({**compile_sources(sources, spark_jars), jars.MANIFEST: manifest.encode()}))
    return target


def compile_sources(sources: Mapping[str, Path], spark_jars: Path) -> dict[str, bytes]:
    """Compile the sources. Returns the class files by their paths, such as `pydelta/rule/PruneScans.class`. sources: Java files
    by their paths in the tree. spark_jars: the directory with Spark's jars. Raises BuildError with javac's messages."""
    with tempfile.TemporaryDirectory(prefix="pydelta-javac-") as classes:
        javac = find_javac()
        options = ["--release", JAVA_RELEASE, *lint_options(_version_text(javac)), "-proc:none", "-encoding", "UTF-8"]
        command = [javac, *options, "-cp", f"{spark_jars}/*", "-d", classes, *map(str, sources.values())]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode != 0:
            raise BuildError(f"javac refuses the sources:\n{process.stderr}")
        root = Path(classes)
        return {file.relative_to(root).as_posix(): file.read_bytes() for file in root.rglob("*.class")}


def lint_options(version_text: str) -> list[str]:
    """Return javac's options for warnings: they are errors for the javac of JAVA_RELEASE, and off for others, which know warnings
    that the sources are not checked for.

        lint_options("javac 21.0.4")    # => ["-Xlint:none"]
    """
    # Manifests of Spark's jars name jars that Spark does not have (path).
    is_tested = re.match(rf"javac {JAVA_RELEASE}\b", version_text) is not None
    return ["-Xlint:all,-path", "-Werror"] if is_tested else ["-Xlint:none"]


def _version_text(javac: str) -> str:
    process = subprocess.run([javac, "-version"], capture_output=True, text=True, check=False)
    return process.stdout or process.stderr


def archive_of(files: Mapping[str, bytes]) -> bytes:
    """Return a jar of the files, by their paths. The manifest comes first, as Java requires; all times are constant."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(files, key=lambda path: (path != jars.MANIFEST, path)):
            entry = zipfile.ZipInfo(path, _OLDEST_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[path])
    return buffer.getvalue()


def find_javac() -> str:
    """Return the javac of JAVA_HOME, as Spark chooses its Java, or else the one on the path. Raises BuildError."""
    home = os.environ.get("JAVA_HOME")
    javac = shutil.which("javac", path=str(Path(home) / "bin")) if home else shutil.which("javac")
    if javac is None:
        raise BuildError(f"javac was not found: install a JDK, {JAVA_RELEASE} or newer, or set JAVA_HOME to one. A JRE has none.")
    return javac


def jars_of_pyspark() -> Path:
    """Return the directory with Spark's jars. Raises BuildError."""
    module_spec = importlib.util.find_spec("pyspark")
    if module_spec is None or module_spec.origin is None:
        raise BuildError(f"{sys.executable} has no pyspark, which the Java sources are compile_sources against")
    return Path(module_spec.origin).parent / "jars"


def version_of_spark(spark_jars: Path) -> str:
    """Return the version in the name of Spark SQL's jar. Raises BuildError."""
    names = [re.fullmatch(r"spark-sql_[\d.]+-(.+)\.jar", file.name) for file in spark_jars.glob("spark-sql_*.jar")]
    versions = [name[1] for name in names if name is not None]
    if len(versions) != 1:
        raise BuildError(f"there is no Spark SQL in {spark_jars}, or more than one")
    return versions[0]


def _write_jar(target: Path, content: bytes) -> None:
    """Write the jar atomically: another process sees the old file or the new one. Raises BuildError if the file cannot be
    written."""
    try:
        target.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            file.write(content)
        os.chmod(file.name, 0o644)
        os.replace(file.name, target)
    except OSError as error:
        raise BuildError(f"{target} cannot be written ({error}). Build it as the user to whom this directory belongs.") from error


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog=jars.BUILD_COMMAND, description="Build the jar of pydelta's Java part.")
    parser.add_argument("--force", action="store_true", help="build it even if it was built from these sources")
    parser.add_argument("--spark-jars", type=Path, metavar="DIRECTORY", help="Spark's jars; by default those of pyspark")
    options = parser.parse_args(arguments)
    try:
        print(build(force=options.force, spark_jars=options.spark_jars))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
