"""The package's Java sources as class files: compiled once, and kept in the cache directory.

    archive = class_archive(("pruning", "sql_catalog"), platform, compile)   # a jar, as bytes
    archive = source_archive("columnar", "4.3.0")                             # the sources of one folder, not compiled
    archive = release_archive(("pruning", "sql_catalog"), "4.3.0")            # for a client of Spark Connect; None: not there

`compile` is asked only where the cache directory has no such entry. An entry is known by the platform (versions and builds of
Spark, Scala and Java) and by all sources. Entries are code that will be run: only a file of the user's own counts to which nobody
else may write, in a directory of which the same is true (`DiskCache`). Where there is none everything is compiled.

A client of Spark Connect has no compiler, and knows of the server's platform only the version of Spark. It takes what was
compiled for this version: what the wheel brings along (make dist), or what a classic session has left in the cache directory.
"""

from __future__ import annotations

import hashlib
import io
import logging
import zipfile
from collections.abc import Callable, Mapping, Sequence
from importlib import resources

from delta_py.storage.disk_cache import DiskCache, entry_name
from spark_plugin.spark_versions import java_folder

Compile = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]
"""Sources -> class files, both by their paths."""

_log = logging.getLogger("pydelta")
_OLDEST = (1980, 1, 1, 0, 0, 0)  # of a file in a zip: the same content gives the same bytes


def has_cache() -> bool:
    """Whether what is compiled can be kept."""
    return DiskCache.of_environment() is not None


def class_archive(folders: Sequence[str], platform: str, compile: Compile) -> bytes:
    """The class files of the folders' sources, compiled together. Raises what `compile` raises."""
    sources = sources_of(*folders, spark=platform)
    cache, name = DiskCache.of_environment(), _entry(platform, sources)
    known = None if cache is None else _kept(cache, name)
    if known is not None:
        return known
    archive = archive_of(compile(sources))
    if cache is not None:
        cache.put(name, archive)
    return archive


def keep_release(folders: Sequence[str], spark_version: str, archive: bytes) -> None:
    """Let clients of Spark Connect find the class files of the folders' sources: by the version of Spark alone."""
    cache, name = DiskCache.of_environment(), _entry(spark_version, sources_of(*folders, spark=spark_version))
    if cache is not None and _kept(cache, name) is None:
        cache.put(name, archive)


def release_archive(folders: Sequence[str], spark_version: str) -> bytes | None:
    """The class files of the folders' sources for a version of Spark; None where nobody has compiled them."""
    built = resources.files("spark_plugin").joinpath("classes", release_name(folders, spark_version))
    if built.is_file():
        return built.read_bytes()
    cache = DiskCache.of_environment()
    return None if cache is None else _kept(cache, _entry(spark_version, sources_of(*folders, spark=spark_version)))


def release_name(folders: Sequence[str], spark_version: str) -> str:
    """The jar's name in the wheel. It tells the sources, so that a jar of others is never taken."""
    return f"spark-{spark_version}-{_meaning(spark_version, sources_of(*folders, spark=spark_version)).hex()[:16]}.jar"


def source_archive(folder: str, spark: str) -> bytes:
    return archive_of(sources_of(folder, spark=spark))


def sources_of(*folders: str, spark: str) -> dict[str, bytes]:
    """`pydelta/pruning/PruneScans.java` -> its bytes, of the files next to the folders' Python. Those of a folder below, for one
    version of Spark, take the place of others of their names. spark: a text that contains the version."""
    package, version_folder = resources.files("spark_plugin"), java_folder(spark)
    return {
        f"pydelta/{folder}/{entry.name}": entry.read_bytes()
        for folder in folders
        for place in (package.joinpath(folder), *([package.joinpath(folder, version_folder)] if version_folder else []))
        if place.is_dir()
        for entry in place.iterdir()
        if entry.name.endswith(".java")
    }


def _entry(platform: str, sources: Mapping[str, bytes]) -> str:
    return entry_name(_meaning(platform, sources), "classes")


def _kept(cache: DiskCache, name: str) -> bytes | None:
    known = cache.read_code(name)
    return known if known is not None and _is_archive(known) else None


def _meaning(platform: str, sources: Mapping[str, bytes]) -> bytes:
    """All that the class files depend on. Lengths stand before what they are of, so that no two sets of sources read alike."""
    digest = hashlib.sha256()
    for text in (platform.encode(), *(part for path in sorted(sources) for part in (path.encode(), sources[path]))):
        digest.update(len(text).to_bytes(8, "little"))
        digest.update(text)
    return digest.digest()


def archive_of(files: Mapping[str, bytes]) -> bytes:
    """A jar of the files, by their paths."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(files):
            archive.writestr(zipfile.ZipInfo(path, _OLDEST), files[path])
    return buffer.getvalue()


def _is_archive(content: bytes) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.testzip() is None and bool(archive.namelist())
    except zipfile.BadZipFile:
        _log.warning("compiled classes in the cache directory are damaged; they are compiled anew")
        return False
