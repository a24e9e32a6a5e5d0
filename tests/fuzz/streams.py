"""Streams that continue from an odd offset, or with a table or a schema log that was damaged since they stopped."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from delta_py import write_delta
from delta_py.errors import DeltaError
from tests.fuzz.base_streams import STREAMS, Offset, Query, Recorded, StreamBase, recorded
from tests.fuzz.cases import Case, Mutation, Outcome, fresh, made, observed
from tests.fuzz.child import in_child
from tests.fuzz.damage import damage_bytes, damage_json, damage_lines, damage_place
from tests.fuzz.odd_values import mutated_json
from tests.fuzz.table_mutations import mutate

_NEW_ID = 2_000_000
_TABLE, _CHECKPOINT, _LATER = "t", "checkpoint", "later"
_STEPS = 3
_ODD_NAMES = [
    *("0", "1", "9", "00", "01", "+1", "-1", "1.5", "1 ", " 1", ".1", "1.tmp", "\u0661", "NaN", "_", "..1", "1e3", "9" * 19),
    *("9" * 20, "9" * 200, "0x1", "\u202e1", "1\n", "%31", "~"),
]


@dataclass(frozen=True)
class _Stream:
    """A stream that was stopped in the batch after its place `number`. known: the maximum count of each id."""

    base: StreamBase
    recorded: Recorded
    known: Counter[int]
    number: int
    place: Path

    @property
    def query(self) -> Query:
        return Query(self.place / _TABLE, self.place / _CHECKPOINT, self.base.options, tracks=self.base.tracks)

    @property
    def start(self) -> Offset:
        return self.recorded.places[self.number]

    @property
    def end(self) -> Offset:
        return self.recorded.places[self.number + 1]

    @property
    def left(self) -> list[str]:
        """The rows of this batch and of all later ones."""
        return [row for batch in self.recorded.rows[self.number :] for row in batch]


class StreamTarget:
    def __init__(self, directory: Path) -> None:
        self._bases = directory / "streams"
        for name, base in STREAMS.items():  # at the place of the cases, which the schema log names
            if not (self._bases / name).exists():
                result = in_child(partial(_record, base, fresh(directory / "case")))
                assert result.failure is None, (name, result)
                shutil.copytree(directory / "case", self._bases / name)
        self._told = {name: json.loads((self._bases / name / "recorded.json").read_text()) for name in STREAMS}

    def run(self, case: Case) -> Outcome:
        rng, place = case.rng, fresh(case.place)
        name = rng.choice(list(STREAMS))
        facts, base = self._told[name], self._bases / name
        id_counts = Counter({int(id): count for id, count in facts["known"].items()})
        number = rng.randrange(len(facts["rows"]))
        stream = _Stream(STREAMS[name], Recorded(facts["places"], facts["rows"]), id_counts, number, place)
        shutil.copytree(base / _TABLE, place / _TABLE)
        shutil.copytree(base / f"{_CHECKPOINT}.{number}", place / _CHECKPOINT)
        kinds = [_odd_offset, _odd_offset, _damaged_table, _damaged_table, *([_damaged_log] * 8 if stream.base.tracks else [])]
        mutation, work = rng.choice(kinds)(stream, case, rng)
        return case.outcome(f"{name} at {number}", mutation, observed(work, place, _TABLE, _CHECKPOINT, _LATER))


def _record(base: StreamBase, place: Path) -> None:
    """Copies the checkpoint when each batch runs."""
    table, checkpoint = place / _TABLE, place / _CHECKPOINT
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text('{"id":"c6c7b1c8-3b1c-4d0c-9d8b-0d5f6c1c2c3d"}')
    base.begin(table)
    query = Query(table, checkpoint, base.options, tracks=base.tracks)
    stream = recorded(
        query, lambda: base.go_on(table), lambda number: shutil.copytree(checkpoint, place / f"{_CHECKPOINT}.{number}")
    )
    id_counts = _ids(row for rows in stream.rows for row in rows)
    if not base.tracks:
        from_first = Query(table, checkpoint, {**base.options, "startingVersion": "0"})
        from_first_again = recorded(from_first, lambda: None, lambda number: None)
        id_counts |= _ids(row for rows in from_first_again.rows for row in rows)
    (place / "recorded.json").write_text(json.dumps({**asdict(stream), "known": id_counts}))


def _ids(rows: Iterable[str]) -> Counter[int]:
    return Counter(json.loads(row)["id"] for row in rows)


_Work = Callable[[], tuple[str, str]]

# ---------------------------------------------------------------- offsets


def _odd_offset(stream: _Stream, case: Case, rng: random.Random) -> tuple[Mutation, _Work]:
    texts = [json.dumps(stream.start), json.dumps(stream.end)]
    which, mutated = rng.randrange(2), None
    while mutated is None:
        kind = rng.random()
        if kind < 0.1:
            text = rng.choice(["", "null", "5", "[]", "{}", '"x"', "{", "[" * 100_000, "-", '{"sourceVersion":1}'])
            mutated, what = text, f"{text[:20]!r}"
        elif kind < 0.2:
            mutated, what = json.dumps(rng.choice(stream.recorded.places)), "another place"
        else:
            odd = mutated_json(texts[which], rng)
            mutated, what = (None, "") if odd is None else (odd.text, odd.what)
    texts[which] = mutated
    return Mutation(f"{'start' if which == 0 else 'end'} of the batch, {what}", True), lambda: _use_offsets(stream, texts)


def _use_offsets(stream: _Stream, texts: list[str]) -> tuple[str, str]:
    try:
        start, end = (json.loads(text) for text in texts)
    except (ValueError, RecursionError) as error:  # Spark's own worker raises this
        return "error", f"no JSON: {type(error).__name__}"
    expected, known_counts = _expected(stream, start, end), stream.known
    try:
        reader = stream.query.open()
        rows = stream.query.rows(reader, start, end)
    except DeltaError as error:
        return "error", str(error)[:300]
    if expected is not None and Counter(rows) != Counter(expected):
        return "wrong", f"{rows} and not {expected}"
    if not _ids(rows) <= known_counts:
        return "wrong", f"rows that come too often: {_ids(rows) - known_counts}"
    kind = "same" if Counter(rows) == Counter(stream.recorded.rows[stream.number]) else "different"
    try:
        for _ in range(_STEPS):
            start, end = end, stream.query.next(reader, end)
            if not _ids(stream.query.rows(reader, start, end)) <= known_counts:
                return "wrong", f"rows that come too often from {start} to {end}"
            reader.commit(start)
    except DeltaError as error:
        return kind, f"{len(rows)} rows, then {str(error)[:300]}"
    return kind, f"{len(rows)} rows, then to {end}"


def _expected(stream: _Stream, start: Offset, end: Offset) -> list[str] | None:
    """The rows between two places of the stream. None for other places, and if the end does not contain the version with which
    the stream began."""
    places = stream.recorded.places
    if start not in places or end not in places or stream.base.tracks or ("begins" in start and "beganAtVersion" not in end):
        return None
    return [row for rows in stream.recorded.rows[places.index(start) : places.index(end)] for row in rows]


# ---------------------------------------------------------------- tables, and logs of schemas


def _damaged_table(stream: _Stream, case: Case, rng: random.Random) -> tuple[Mutation, _Work]:
    """Before the stream restarts, or while it runs."""
    table, later = stream.place / _TABLE, stream.place / _LATER / _TABLE
    if rng.random() < 0.5:
        mutation = Mutation(**made(in_child(lambda: asdict(mutate(table, rng))), case))  # type: ignore[arg-type]
        return mutation, lambda: _go_on(stream, mutation)
    shutil.copytree(table, later)
    mutation = Mutation(**made(in_child(lambda: asdict(mutate(later, rng))), case))  # type: ignore[arg-type]

    def swap() -> None:
        os.rename(table, stream.place / _LATER / "before")
        os.rename(later, table)

    return Mutation(f"while it runs, {mutation.what}", mutation.means_itself), lambda: _go_on(stream, mutation, swap)


def _damaged_log(stream: _Stream, case: Case, rng: random.Random) -> tuple[Mutation, _Work]:
    mutation = Mutation(**made(in_child(lambda: asdict(_mutate_checkpoint(stream.place / _CHECKPOINT, rng))), case))  # type: ignore[arg-type]
    return mutation, lambda: _go_on(stream, mutation)


def _mutate_checkpoint(checkpoint: Path, rng: random.Random) -> Mutation:
    """One entry of the schema log, or the set of its entries; sometimes Spark's own file."""
    (log,) = checkpoint.glob("_schema_log_*")
    entries = sorted(log.iterdir(), key=lambda path: int(path.name))
    other_files = [checkpoint / "metadata", *entries]
    while True:
        if rng.random() < 0.1:
            path = checkpoint / "metadata"
            return Mutation(f"{path.name}: {damage_place(path, rng, other_files)}", False)
        if rng.random() < 0.15:
            name = rng.choice(_ODD_NAMES)
            if not (log / name).exists():
                (log / name).write_bytes(rng.choice([b"", b"v1\n{}", b"v2\n{}", rng.choice(entries).read_bytes()]))
                return Mutation(f"an entry {name!r} more", True)
            continue
        if rng.random() < 0.05:
            shutil.move(log, checkpoint.parent / "victim" / log.name)
            log.symlink_to(checkpoint.parent / "victim" / log.name)
            return Mutation("the log is a link", True)
        path = rng.choice(entries)
        damages = [damage_bytes, *[damage_json] * 4, damage_lines, partial(damage_place, other_files=other_files)]
        what = rng.choice(damages)(path, rng)
        if what is not None:
            return Mutation(f"entry {path.name}: {what}", True)


def _go_on(stream: _Stream, mutation: Mutation, swap: Callable[[], None] | None = None) -> tuple[str, str]:
    """To the end, and with one more commit."""
    query, rows = stream.query, []

    def note(end: Offset, batch_rows: list[str]) -> None:
        rows.extend(batch_rows)

    try:
        query.follow(stream.start, stream.end, note, after_first=swap)
    except DeltaError as error:
        is_part = Counter(rows) <= Counter(stream.left) or mutation.means_itself
        return ("error" if is_part else "wrong"), f"{len(rows)} of {len(stream.left)} rows, then {str(error)[:300]}"
    if Counter(rows) == Counter(stream.left):
        kind = "same"
    elif mutation.means_itself:
        kind = "different"
    else:
        return "wrong", f"{len(rows)} rows of {len(stream.left)}: {Counter(rows) - Counter(stream.left)}"
    return _one_more(stream, query, kind, f"{len(rows)} rows of {len(stream.left)}")


def _one_more(stream: _Stream, query: Query, kind: str, detail: str) -> tuple[str, str]:
    try:
        write_delta(str(stream.place / _TABLE), pa.table({"id": pa.array([_NEW_ID], pa.int32())}), mode="append")
    except DeltaError as error:
        return kind, f"{detail}; append refused: {str(error)[:200]}"
    rows: list[str] = []
    try:
        reader = query.open()
        end = query.next(reader, query.place)
        query.follow(query.place, end, lambda _, batch_rows: rows.extend(batch_rows))
    except DeltaError as error:
        return kind, f"{detail}; appended, then {str(error)[:200]}"
    ids = _ids(rows)
    is_right = ids == Counter([_NEW_ID]) or (kind == "different" and ids[_NEW_ID] == 1)
    return (kind if is_right else "append lost"), f"{detail}; appended, then {dict(ids)}"
