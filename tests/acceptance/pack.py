"""Packs a directory of cases into tables.tar.xz and cases.txt. The same cases always give the same bytes.

    python tests/acceptance/pack.py DIRECTORY

DIRECTORY has one directory for each case: case.json, table/ and expected/ (README.md describes them).
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).parent
PARTS = ("case.json", "table", "expected", "base")


def main(source: Path) -> None:
    cases = sorted(path.parent for path in source.glob("*/case.json"))
    with tarfile.open(HERE / "tables.tar.xz", "w:xz", preset=9, format=tarfile.PAX_FORMAT) as archive:
        for case in cases:
            for part in PARTS:
                for path in sorted([case / part, *(case / part).rglob("*")]):
                    if path.exists():
                        archive.add(path, str(path.relative_to(source)), recursive=False, filter=_anonymous)
    (HERE / "cases.txt").write_text("".join(f"{case.name}\n" for case in cases))


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    entry.mode = 0o755 if entry.isdir() else 0o644
    return entry


if __name__ == "__main__":
    main(Path(sys.argv[1]))
