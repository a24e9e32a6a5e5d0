"""The release of pydelta: the name under which packages are installed, and the version."""

from __future__ import annotations

from functools import cache
from pathlib import Path

DISTRIBUTION = "pydelta-lake"
"""The name of the distribution on package indexes, where `pydelta` is another project."""

UNKNOWN_VERSION = "0+unknown"


@cache
def own_version() -> str:
    """`0.1.0`: the version of the installed distribution, or else of the checkout with this file, or else UNKNOWN_VERSION."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return _version_of_checkout(Path(__file__).parents[1] / "pyproject.toml")


def install_command(*extras: str) -> str:
    """Return `pip install 'pydelta-lake[s3]'` for the extra s3, for messages to users."""
    return f"pip install '{DISTRIBUTION}[{','.join(extras)}]'"


def _version_of_checkout(pyproject: Path) -> str:
    """The version in a checkout's pyproject.toml; UNKNOWN_VERSION if there is no such file, or if it is another project's."""
    import tomllib

    try:
        text = pyproject.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):  # an installed package has no such file; the package is in a zip file
        return UNKNOWN_VERSION
    project = tomllib.loads(text).get("project", {})
    return str(project["version"]) if project.get("name") == DISTRIBUTION else UNKNOWN_VERSION
