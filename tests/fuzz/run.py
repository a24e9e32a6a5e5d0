"""Mutates tables and reads them, each case in a process of its own: `python -m tests.fuzz.run SEED FIRST COUNT DIRECTORY`.

Prints a line of JSON a case. The process itself never lets Arrow start threads, which a fork would lose: tables are made, changed
and read in its children.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import sqlglot  # noqa: F401

import delta_py.changes.change_feed
import delta_py.commands.write
import delta_py.expressions.evaluate
import delta_py.expressions.parse  # noqa: F401
from delta_py import DeltaTable, write_delta
from delta_py.errors import DeltaError
from tests.fuzz.base_tables import TABLES
from tests.fuzz.mutations import Mutation, mutate

SECONDS = 30
MEMORY_BYTES = 2 << 30
_ADDRESSES_BYTES = 6 << 30
NEW_ID = 999_999


@dataclass(frozen=True)
class Outcome:
    """kind: same, different, error (of delta_py), or what must not be: raw, memory, hang, crash, doubled, append lost, append
    broke, outside."""

    number: int
    table: str
    mutation: str
    kind: str
    detail: str = ""

    @property
    def is_failure(self) -> bool:
        return self.kind not in ("same", "different", "error")


def main() -> None:
    seed, first, count, directory = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    os.environ["PYDELTA_CACHE_DIR"] = ""
    os.environ["PYDELTA_POST_COMMIT_ERRORS"] = "mistakes"  # raised as they are
    for name, make in TABLES.items():
        base = directory / "base" / name
        if not base.exists():
            _in_child(lambda make=make, base=base: make(base))  # type: ignore[misc]
    rows = {name: _in_child(lambda name=name: read(directory / "base" / name))["value"] for name in TABLES}  # type: ignore[misc]
    for number in range(first, first + count):
        print(json.dumps(asdict(run_case(seed, number, directory, rows))), flush=True)


def run_case(seed: int, number: int, directory: Path, rows: dict[str, Any]) -> Outcome:
    rng = random.Random(f"{seed}-{number}")
    name = rng.choice(list(TABLES))
    place = directory / "case"
    shutil.rmtree(place, ignore_errors=True)
    (place / "victim").mkdir(parents=True)
    (place / "victim" / "thesis.doc").write_text("precious")
    shutil.copytree(directory / "base" / name, place / "table")
    mutated = _in_child(lambda: asdict(mutate(place / "table", rng)))
    if "value" not in mutated:
        raise RuntimeError(f"case {number} of seed {seed} could not be made: {mutated}")
    mutation = Mutation(**mutated["value"])
    before = _outside(place)
    result = _in_child(lambda: read_and_append(place / "table", rows[name]))
    kind, detail = result.get("value") or (result["failure"], result.get("detail", ""))
    if _outside(place) != before:
        kind, detail = "outside", f"was {kind}"
    if kind == "different" and not mutation.means_itself:
        kind = "doubled"
    return Outcome(number, name, mutation.what, kind, detail)


def _outside(place: Path) -> dict[str, bytes]:
    """All beside the table; links are not followed."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if not path.is_relative_to(place / "table") and path.is_file() and not path.is_symlink()
    }


# ---------------------------------------------------------------- in the child


def read_and_append(table: Path, wanted: Any) -> tuple[str, str]:
    """(kind, detail) of an Outcome."""
    try:
        rows = read(table)
    except DeltaError as error:
        rows, kind, detail = None, "error", str(error)[:300]
    else:
        kind, detail = ("same" if rows == wanted else "different"), f"{len(rows)} rows of {len(wanted)}"
    for look in (lambda: DeltaTable(str(table)).history(), lambda: DeltaTable(str(table)).to_arrow(filter="id > 5")):
        try:
            look()
        except DeltaError:
            continue
    try:
        append(table)
    except DeltaError as error:
        return kind, f"{detail}; append refused: {str(error)[:200]}"
    if rows is None:
        return kind, f"{detail}; appended"
    try:
        after = read(table)
    except DeltaError as error:
        return "append broke", f"{detail}; then {str(error)[:300]}"
    lost = [row for row in rows if row not in after]
    if lost or len(after) != len(rows) + 1:
        return "append lost", f"{len(rows)} rows, {len(after)} after the append"
    return kind, f"{detail}; appended"


def read(table: Path) -> list[str]:
    """The rows as texts, in order."""
    return sorted(repr(row) for row in DeltaTable(str(table)).to_arrow().to_pylist())


def append(table: Path) -> None:
    schema = DeltaTable(str(table)).schema()
    given = {field.name: NEW_ID if field.name == "id" else None for field in schema if field.name in ("id", "name", "part")}
    data = pa.table({name: pa.array([value], schema.field(name).type) for name, value in given.items()})
    write_delta(str(table), data, mode="append")


# ---------------------------------------------------------------- limits


def _in_child(work: Callable[[], Any]) -> dict[str, Any]:
    """value: what the work gave, as JSON keeps it; or failure: raw, memory, hang or crash."""
    reading, writing = os.pipe()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return {"failure": "hang" if number == signal.SIGALRM else "crash", "detail": f"signal {number}"}
    result: dict[str, Any] = json.loads(text)
    if usage.ru_maxrss * 1024 > MEMORY_BYTES:
        return {"failure": "memory", "detail": f"{usage.ru_maxrss // 1024} MB"}
    if time.monotonic() - started > SECONDS:
        return {"failure": "hang", "detail": f"{time.monotonic() - started:.0f} s"}
    return result


def _work(work: Callable[[], Any], writing: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES_BYTES, _ADDRESSES_BYTES))
    signal.alarm(SECONDS)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        result: dict[str, Any] = {"value": work()}
    except MemoryError:
        result = {"failure": "memory", "detail": "MemoryError"}
    except BaseException as error:
        frames = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)][
            -6:
        ]
        result = {"failure": "raw", "detail": f"{type(error).__name__}: {str(error)[:200]} at {' '.join(frames)}"}
    with open(writing, "wb") as pipe:
        pipe.write(json.dumps(result).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
