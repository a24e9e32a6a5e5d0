"""One mutation of a table's directory: of a file (bytes, fields of JSON, rows of Parquet, another object at its path), or of the
set of files.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.cases import Mutation
from tests.fuzz.damage import SCALARS, damage_bytes, damage_json, damage_lines, damage_place
from tests.fuzz.odd_values import ODD_NUMBERS, ODD_TEXTS

_AGE_SECONDS = 60 * 86_400
_NO_ACTIONS = [*SCALARS, b'{"add":true}\n', b'{"sidecar":[]}\n']
_UUID = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"
_PROTOCOLS = [
    {"minReaderVersion": 1, "minWriterVersion": 2},
    {"minReaderVersion": 2, "minWriterVersion": 5},
    {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": []},
    {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["ofTheFuture"], "writerFeatures": ["ofTheFuture"]},
    {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"] * 1000, "writerFeatures": []},
    {"minReaderVersion": 2**31 - 1, "minWriterVersion": 2**31 - 1},
]


def mutate(table: Path, rng: random.Random) -> Mutation:
    """In half of the cases the table has no version checksums, which otherwise replace other reads. In a quarter its log is old
    enough to be cleaned up."""
    if rng.random() < 0.5:
        for checksum in table.glob("_delta_log/*.crc"):
            checksum.unlink()
    files = sorted(path for path in table.rglob("*") if path.is_file())
    if rng.random() < 0.25:
        _make_old(files)
    kinds_of_files: dict[str, list[Path]] = {}
    for path in files:
        kinds_of_files.setdefault(_kind(path), []).append(path)
    while True:
        path = rng.choice(kinds_of_files[rng.choice(sorted(kinds_of_files))])
        kinds = [_bytes, _bytes, _place, _log_files]
        if path.suffix in (".json", ".crc") or path.name == "_last_checkpoint":
            kinds += [_field] * 8 + [_line] * 2
        if _is_commit(path):
            kinds += [_second_state]
        if path.suffix == ".parquet":
            kinds += [_rows] * 2 + [_cell] * 3
        if path.parent.name == "_sidecars":
            kinds += [_circle]
        mutation = rng.choice(kinds)(path, rng)
        if mutation is not None:
            return Mutation(f"{path.relative_to(table)}: {mutation.what}", mutation.means_itself)


def _make_old(files: list[Path]) -> None:
    then = time.time() - _AGE_SECONDS
    for path in files:
        os.utime(path, (then, then))


def _kind(path: Path) -> str:
    if "_delta_log" not in path.parts:
        return path.suffix
    if path.parent.name == "_sidecars":
        return "sidecar"
    return next((kind for kind in ("checkpoint", "compacted", "crc") if kind in path.name), "commit")


def _is_commit(path: Path) -> bool:
    return path.suffix == ".json" and path.stem.isdigit()


# ---------------------------------------------------------------- one file


def _bytes(path: Path, rng: random.Random) -> Mutation | None:
    what = damage_bytes(path, rng)
    # A changed byte of a text, and a commit that is cut after a line, have another valid meaning; data files have no checksums of
    # their own.
    is_readable_text = path.suffix in (".json", ".crc") or "_delta_log" not in path.parts or path.name == "_last_checkpoint"
    return None if what is None else Mutation(what, is_readable_text)


def _field(path: Path, rng: random.Random) -> Mutation | None:
    what = damage_json(path, rng)
    return None if what is None else Mutation(what, True)


def _line(path: Path, rng: random.Random) -> Mutation | None:
    """If an action of a commit is repeated or missing, the log means that. In files that replace commits, a file counts once and
    in any order; other changes are damage."""
    what = damage_lines(path, rng, _NO_ACTIONS)
    return None if what is None else Mutation(what, _is_commit(path) or (what.startswith("drop") and path.suffix == ".json"))


def _place(path: Path, rng: random.Random) -> Mutation | None:
    if rng.random() < 0.1:
        return _linked_directory(path)
    other_files = None if rng.random() < 0.8 else _files_of_table(path)
    what = damage_place(path, rng, other_files)
    is_gone = what in ("missing", "link to nothing")
    return Mutation(what, "other file" in what or (is_gone and _kind(path) in ("commit", "crc")))


def _files_of_table(path: Path) -> list[Path]:
    table = next(parent for parent in path.parents if (parent / "_delta_log").is_dir())
    return sorted(other for other in table.rglob("*") if other.is_file() and other != path)


def _linked_directory(path: Path) -> Mutation | None:
    """The file's directory is in another place, which has old files of others."""
    directory = path.parent
    if directory.name not in ("_delta_log", "_sidecars", "_change_data") and "=" not in directory.name:
        return None
    victim = next(parent for parent in path.parents if (parent / "victim").is_dir()) / "victim"
    shutil.copytree(directory, victim / directory.name)
    shutil.rmtree(directory)
    directory.symlink_to(victim / directory.name)
    for file in victim.rglob("*"):
        os.utime(file, (0, 0))
    return Mutation(f"{directory.name} is a link", True)


def _second_state(path: Path, rng: random.Random) -> Mutation | None:
    """A commit with one more protocol, or with the metadata and one more property."""
    lines = path.read_bytes().splitlines()
    protocol = {"protocol": rng.choice(_PROTOCOLS)}
    metadata_actions = [action for line in lines if "metaData" in (action := json.loads(line))]
    if metadata_actions and rng.random() < 0.5:
        metadata_actions[0]["metaData"]["configuration"][rng.choice(ODD_TEXTS)] = rng.choice(ODD_TEXTS)
        protocol = metadata_actions[0]
    lines.insert(rng.randrange(len(lines) + 1), json.dumps(protocol).encode())
    path.write_bytes(b"\n".join(lines))
    return Mutation(f"one more {json.dumps(protocol)[:100]}", True)


# ---------------------------------------------------------------- Parquet


def _rows(path: Path, rng: random.Random) -> Mutation | None:
    table = pq.read_table(path)
    what = rng.choice(["double rows", "drop rows", "drop column", "retype column", "no rows", "turned around"])
    match what:
        case "double rows":
            table = pa.concat_tables([table, table])
        case "drop rows":
            table = table.slice(0, table.num_rows // 2)
        case "no rows":
            table = table.slice(0, 0)
        case "turned around":
            table = table.take(list(range(table.num_rows - 1, -1, -1)))
        case "drop column":
            if table.num_columns < 2:
                return None
            table = table.drop_columns([rng.choice(table.column_names)])
        case "retype column":
            name = rng.choice(table.column_names)
            kind = rng.choice([pa.float64(), pa.string(), pa.struct([("path", pa.int64())]), pa.list_(pa.int32()), pa.bool_()])
            column = pa.array([None if rng.random() < 0.5 else _value(kind) for _ in range(table.num_rows)], kind)
            table = table.set_column(table.column_names.index(name), name, column)
    pq.write_table(table, path)
    # Repeated rows of a data file are its rows; a checkpoint that names a file twice has it once, in any order.
    is_data = "_delta_log" not in path.parts
    return Mutation(what, is_data or what not in ("double rows", "turned around"))


def _value(kind: pa.DataType) -> Any:
    values: dict[str, Any] = {"double": 1.5, "string": "x", "bool": True}
    return values.get(str(kind), {"path": 1} if pa.types.is_struct(kind) else [1])


def _cell(path: Path, rng: random.Random) -> Mutation | None:
    """One value, at any depth of its column: an odd one of its type, or null."""
    table = pq.read_table(path)
    if not table.num_rows:
        return None
    name = rng.choice(table.column_names)
    column = table.column(name).combine_chunks()
    rows = column.to_pylist()
    places = [place for place in _places(rows) if place[0][place[1]] is not None]
    if not places:
        return None
    holder, key = rng.choice(places)
    holder[key] = rng.choice([None, *_odd_ones(holder[key])])
    sink = pa.BufferOutputStream()
    try:
        changed = pa.array(rows, column.type)
        pq.write_table(table.set_column(table.column_names.index(name), name, changed), sink)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # no value of the type
        return None
    path.write_bytes(sink.getvalue())
    return Mutation(f"{name}, {key} -> {str(holder[key])[:80]!r}", True)


def _odd_ones(old: Any) -> list[Any]:
    if isinstance(old, bool):
        return [not old]
    if isinstance(old, int):
        return [*ODD_NUMBERS, old - 1, old + 1]
    if isinstance(old, str):
        return [text for text in ODD_TEXTS if text.isprintable() or "\ud800" not in text]
    if isinstance(old, list):
        return [[], old + old, [("part", "x")], [("x" * 1000, None)]]
    return []


def _places(value: Any) -> list[tuple[Any, Any]]:
    """The container and the key of each value."""
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    return [place for key, item in items for place in ((value, key), *_places(item))]


def _circle(path: Path, rng: random.Random) -> Mutation | None:
    """A checkpoint is its own sidecar."""
    checkpoints = sorted(path.parent.parent.glob("*.checkpoint.*"))
    if not checkpoints:
        return None
    path.write_bytes(rng.choice(checkpoints).read_bytes())
    return Mutation("is a checkpoint", False)


# ---------------------------------------------------------------- which files there are


def _log_files(path: Path, rng: random.Random) -> Mutation | None:
    """A file of the log under an additional name, or some missing versions."""
    log = next((parent for parent in path.parents if parent.name == "_delta_log"), None)
    if log is None:
        return None
    newest = max(int(commit.stem) for commit in log.glob("*.json") if commit.stem.isdigit())
    if rng.random() < 0.2:
        first = rng.randrange(newest + 1)
        missing_versions = range(first, rng.randrange(first, newest + 1) + 1)
        for version in missing_versions:
            (log / f"{version:020d}.json").unlink()
        return Mutation(f"commits {missing_versions} are gone", True)
    name = _odd_log_name(newest, rng)
    if (log / name).exists():
        return None
    shutil.copyfile(path, log / name)
    return Mutation(f"is {name} too", True)


def _odd_log_name(newest: int, rng: random.Random) -> str:
    """Names of files that a log may have, of odd versions, and similar names."""
    odd = [0, 1, newest, newest + 1, newest + 2, 10**19 - 1, 2**63 - 1, 2**63]
    first, last = rng.choice(odd), rng.choice([*odd, *range(newest + 1)])
    parts = rng.choice([(1, 1), (1, 2), (2, 1), (0, 0), (1, 9_999_999_999), (1, 100_000)])
    return rng.choice(
        [
            *(f"{first:020d}.json", f"{first:020d}.crc", f"{first:020d}.checkpoint.parquet"),
            *(f"{last:020d}.checkpoint.{_UUID}.{ending}" for ending in ("json", "parquet")),
            f"{last:020d}.checkpoint.{parts[0]:010d}.{parts[1]:010d}.parquet",
            *(f"{first:020d}.{last:020d}.compacted.json", f"{last:020d}.{first:020d}.compacted.json"),
            *(f"{last}.json", f"{last:020d}.json.tmp", f".{last:020d}.json", f"{last:020d}.JSON", f"-{last:019d}.json"),
            *("_last_checkpoint", f"{last:021d}.json", "\u0660" * 20 + ".json"),
        ]
    )
