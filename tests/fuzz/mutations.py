"""One mutation of one file of a table's directory: bytes, fields of JSON, rows of Parquet, or what stands in the file's place."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ODD_TEXTS = ["", " ", "\0", "\ud800", "a\nb", "\u202e", "../../x", "/etc/passwd", "x" * 100_000, "${env:HOME}", "%00", "\x1b[2J"]
ODD_NUMBERS = [0, -1, 1, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), 10**400, 0.5, 1e300]
DEEP = 1_000


@dataclass(frozen=True)
class Mutation:
    """what: for people. means_itself: the file says something else now, which may be read as it says; otherwise it is damaged,
    and the rows are those of before or there is an error."""

    what: str
    means_itself: bool


def mutate(table: Path, rng: random.Random) -> Mutation:
    """Change one file. In half of the cases the table has no version checksums, which spare readers much of the rest."""
    if rng.random() < 0.5:
        for checksum in table.glob("_delta_log/*.crc"):
            checksum.unlink()
    files = sorted(path for path in table.rglob("*") if path.is_file())
    kinds_of_files: dict[str, list[Path]] = {}
    for path in files:
        kinds_of_files.setdefault(_kind(path), []).append(path)
    while True:
        path = rng.choice(kinds_of_files[rng.choice(sorted(kinds_of_files))])
        kinds = [_bytes, _bytes, _place]
        if path.suffix in (".json", ".crc") or path.name == "_last_checkpoint":
            kinds += [_field] * 8 + [_line] * 2
        if path.suffix == ".parquet":
            kinds += [_parquet] * 3
        made = rng.choice(kinds)(path, rng)
        if made is not None:
            return Mutation(f"{path.relative_to(table)}: {made.what}", made.means_itself)


def _kind(path: Path) -> str:
    if "_delta_log" not in path.parts:
        return path.suffix
    if path.parent.name == "_sidecars":
        return "sidecar"
    return next((kind for kind in ("checkpoint", "compacted", "crc") if kind in path.name), "commit")


# ---------------------------------------------------------------- bytes


def _bytes(path: Path, rng: random.Random) -> Mutation | None:
    data = bytearray(path.read_bytes())
    if not data:
        return None
    at = rng.randrange(len(data))
    what = rng.choice(["cut", "flip", "insert", "zero", "empty", "append"])
    match what:
        case "cut":
            del data[at:]
        case "flip":
            data[at] ^= 1 << rng.randrange(8)
        case "insert":
            data[at:at] = rng.randbytes(rng.choice([1, 7, 1000]))
        case "zero":
            data[at : at + 16] = bytes(len(data[at : at + 16]))
        case "empty":
            data.clear()
        case "append":
            data += rng.choice([b"\0" * 100, b"\n\n", b"{}\n", b"garbage", b"\xef\xbb\xbf"])
    path.write_bytes(data)
    # A changed byte of text, and a commit that is cut after a line, say something else; data files have no sums of their own.
    told = _is_commit(path) or path.suffix == ".crc" or ("_delta_log" not in path.parts) or path.name == "_last_checkpoint"
    return Mutation(f"{what} at {at}", told or path.suffix == ".json")


def _is_commit(path: Path) -> bool:
    return path.suffix == ".json" and path.stem.isdigit()


# ---------------------------------------------------------------- JSON


def _field(path: Path, rng: random.Random) -> Mutation | None:
    lines = path.read_bytes().split(b"\n")
    number = rng.randrange(len(lines))
    parsed = _parsed(lines[number], rng)
    if parsed is None:
        return None
    value, holder, key = parsed
    name, what = _trail(value, holder, key), rng.choice(["drop", "retype", "number", "text", "deep", "null", "rename", "inside"])
    old = holder[key]
    match what:
        case "drop":
            del holder[key]
        case "retype":
            holder[key] = rng.choice([True, 5, 1.5, "5", [], {}, [old], {"x": old}])
        case "number":
            holder[key] = rng.choice(ODD_NUMBERS)
        case "text":
            holder[key] = rng.choice(ODD_TEXTS)
        case "null":
            holder[key] = None
        case "deep":
            holder[key] = "@DEEP@"
        case "rename" if isinstance(holder, dict):
            holder[rng.choice(ODD_TEXTS)] = holder.pop(key)
        case "inside" if isinstance(old, str) and old.startswith(("{", "[")):
            inner = _inside(old, rng)
            if inner is None:
                return None
            holder[key] = inner
        case _:
            return None
    text = _written(value)
    lines[number] = text.encode("utf-8", "surrogatepass")
    path.write_bytes(b"\n".join(lines))
    return Mutation(f"line {number + 1}, {name}: {what} -> {text[:80]}", True)


def _inside(text: str, rng: random.Random) -> str | None:
    """JSON within JSON: schemas, statistics, configurations of domains."""
    parsed = _parsed(text, rng)
    if parsed is None:
        return None
    value, holder, key = parsed
    holder[key] = rng.choice([*ODD_TEXTS, *ODD_NUMBERS, None, True, [], {}, "decimal(99,99)", "array<" * 3000, "@DEEP@"])
    return _written(value)


def _parsed(text: str | bytes, rng: random.Random) -> tuple[Any, Any, Any] | None:
    """The value, and any place in it: what holds it, and its key. None for what is no JSON, or has no places."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    places = list(_places(value))
    return (value, *rng.choice(places)) if places else None


def _written(value: Any) -> str:
    return json.dumps(value).replace('"@DEEP@"', "[" * DEEP + "]" * DEEP)


def _places(value: Any) -> Any:
    if isinstance(value, dict | list):
        for key, item in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
            yield value, key
            yield from _places(item)


def _trail(root: Any, holder: Any, key: Any) -> str:
    for name, value in root.items() if isinstance(root, dict) else []:
        if value is holder:
            return f"{name}.{key}"
    return str(key)


def _line(path: Path, rng: random.Random) -> Mutation | None:
    lines = path.read_bytes().splitlines(keepends=True)
    if not lines:
        return None
    number = rng.randrange(len(lines))
    what = rng.choice(["drop", "double", "move", "garbage", "scalar"])
    match what:
        case "drop":
            del lines[number]
        case "double":
            lines.insert(number, lines[number])
        case "move":
            lines.insert(rng.randrange(len(lines)), lines.pop(number))
        case "garbage":
            lines.insert(number, b"{]\n")
        case "scalar":
            lines.insert(
                number, rng.choice([b"true\n", b"5\n", b'"x"\n', b"[]\n", b"null\n", b'{"add":true}\n', b'{"sidecar":[]}\n'])
            )
    path.write_bytes(b"".join(lines))
    # An action of a commit that came twice, or is gone, is what the log says; in what stands for commits it is damage.
    return Mutation(
        f"line {number + 1}: {what}", _is_commit(path) or (what in ("drop", "double", "move") and path.suffix == ".json")
    )


# ---------------------------------------------------------------- Parquet


def _parquet(path: Path, rng: random.Random) -> Mutation | None:
    table = pq.read_table(path)
    what = rng.choice(["double rows", "drop rows", "drop column", "retype column", "no rows"])
    match what:
        case "double rows":
            table = pa.concat_tables([table, table])
        case "drop rows":
            table = table.slice(0, table.num_rows // 2)
        case "no rows":
            table = table.slice(0, 0)
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
    # Rows of a data file that come twice are its rows; a checkpoint that names a file twice has it once.
    return Mutation(what, what != "double rows" or "_delta_log" not in path.parts)


def _value(kind: pa.DataType) -> Any:
    values: dict[str, Any] = {"double": 1.5, "string": "x", "bool": True}
    return values.get(str(kind), {"path": 1} if pa.types.is_struct(kind) else [1])


# ---------------------------------------------------------------- what stands in the place of a file


def _place(path: Path, rng: random.Random) -> Mutation | None:
    what = rng.choice(
        ["missing", "directory", "fifo", "link to itself", "link to nothing", "device", "other file", "copy", "linked directory"]
    )
    if what == "linked directory":
        return _linked_directory(path)
    if what == "copy":
        return _copied(path, rng)
    others = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    other = rng.choice(others).read_bytes() if others else b""
    path.unlink()
    actions: dict[str, Callable[[], Any]] = {
        "missing": lambda: None,
        "directory": path.mkdir,
        "fifo": lambda: os.mkfifo(path),
        "link to itself": lambda: path.symlink_to(path),
        "link to nothing": lambda: path.symlink_to(path.parent / "nothing"),
        "device": lambda: path.symlink_to("/dev/zero"),
        "other file": lambda: path.write_bytes(other),
    }
    actions[what]()
    return Mutation(what, what in ("missing", "link to nothing", "other file"))


def _linked_directory(path: Path) -> Mutation | None:
    """The file's directory lies somewhere else, where old files of others are."""
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


def _copied(path: Path, rng: random.Random) -> Mutation | None:
    """The file under the name of another version."""
    digits = path.name[:20]
    if not digits.isdigit():
        return None
    version = rng.choice([0, 1, int(digits) + 1, int(digits) + 2, 10**19 - 1, 2**63 - 1])
    if version == int(digits):
        return None
    shutil.copyfile(path, path.with_name(f"{version:020d}{path.name[20:]}"))
    return Mutation(f"copied to version {version}", True)
