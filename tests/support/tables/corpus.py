"""The acceptance tables: real Delta tables with the rows that delta-spark reads from them (tests/acceptance/README.md)."""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ACCEPTANCE = Path(__file__).parents[2] / "acceptance"

# A shallow clone names its source by absolute path; in the archive that path starts with this.
_MADE_AT = "/pydelta-corpus/cases"


@dataclass(frozen=True)
class Case:
    """One table: its path, and its checks (dictionaries as in case.json)."""

    name: str
    directory: Path
    checks: tuple[Mapping[str, Any], ...]

    @property
    def table(self) -> str:
        return str(self.directory / "table")

    def expected(self, check: Mapping[str, Any]) -> Path:
        """The Parquet file with the rows of a check."""
        return self.directory / str(check["expected"])


def case_names() -> list[str]:
    return (ACCEPTANCE / "cases.txt").read_text().split()


def unpack(destination: Path) -> None:
    """Unpack all cases below `destination`, and add what a tar file cannot hold: empty directories, times, own path."""
    with tarfile.open(ACCEPTANCE / "tables.tar.xz") as archive:
        archive.extractall(destination, filter=_of_nobody)
    for name in case_names():
        description = _description(destination / name)
        table = destination / name / "table"
        for directory in description.get("emptyDirs", ()):
            (table / directory).mkdir(parents=True, exist_ok=True)
        if description.get("absolutePaths"):
            _move_absolute_paths(table / "_delta_log", destination)
        for file, modified_ms in description.get("mtimes", {}).items():
            if (table / "_delta_log" / file).exists():
                os.utime(table / "_delta_log" / file, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))


def load_case(root: Path, name: str) -> Case:
    return Case(name, root / name, tuple(_description(root / name)["checks"]))


def check_title(check: Mapping[str, Any]) -> str:
    """A short title of the check, for messages."""
    return ", ".join(f"{key} {value}" for key, value in _title_parts(check))


# The reference's condition -> ours, if they differ: missing files of the table have Delta's conditions here, and delta-spark's
# readers of Parquet have none.
OUR_CONDITIONS = {
    "FAILED_READ_FILE.FILE_NOT_EXIST": {
        "DELTA_FILE_NOT_FOUND_DETAILED",
        "DELTA_DELETION_VECTOR_FILE_NOT_FOUND",
        "DELTA_STATE_RECOVER_ERROR",  # a sidecar
    },
    "FAILED_READ_FILE.NO_HINT": {"DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH"},
    "DELTA_TABLE_NOT_FOUND": {"DELTA_MISSING_DELTA_TABLE"},  # by path, where the reference was called by name
    "DELTA_TRUNCATED_TRANSACTION_LOG": {"DELTA_TRUNCATED_TRANSACTION_LOG", "DELTA_VERSIONS_NOT_CONTIGUOUS"},
    "DELTA_GEOSPATIAL_NOT_SUPPORTED": {"DELTA_UNSUPPORTED_FEATURES_FOR_READ"},
    "DELTA_READ_TABLE_WITHOUT_COLUMNS": {"DELTA_FILE_NOT_FOUND_DETAILED"},  # pydelta reads it, and then the file is missing
}


def reference_condition(check: Mapping[str, Any]) -> str | None:
    """The condition with which delta-spark refused, None if its error has none."""
    match = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", f"{check.get('reference', '')} {check.get('message', '')}")
    return match[1] if match else None


def condition_problem(check: Mapping[str, Any], condition: str) -> str | None:
    """None if a refusal has the reference's condition, or one that replaces it."""
    expected = reference_condition(check)
    if expected is None or condition in OUR_CONDITIONS.get(expected, {expected}):
        return None
    return f"refused with {condition}, the reference with {expected}"


def _of_nobody(entry: tarfile.TarInfo, _: str) -> tarfile.TarInfo:
    """We made the archive: its paths need no check, which would take longer than writing the files."""
    return entry.replace(uid=None, gid=None, uname=None, gname=None, deep=False)  # type: ignore[arg-type]


def _title_parts(check: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in ("kind", "of", "version", "timestamp", "startingVersion", "endingVersion", "startingTimestamp", "filter", "why"):
        if check.get(key) is not None:
            yield key, check[key]


def _description(directory: Path) -> dict[str, Any]:
    description: dict[str, Any] = json.loads((directory / "case.json").read_bytes())
    return description


def _move_absolute_paths(log: Path, destination: Path) -> None:
    for path in log.iterdir():
        if path.suffix in (".json", ".crc"):
            path.write_text(path.read_text().replace(_MADE_AT, str(destination)))
