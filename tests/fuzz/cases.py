"""What all kinds of targets have in common: a case, what it mutates, and what came of it.

target = TableTarget(directory)      # makes what is mutated, once
outcome = target.run(case)           # a copy of it, mutated and used
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.fuzz.child import Result, in_child

# same: as before the mutation. different: what the mutated value means. error: of delta_py.
_RIGHT = ("same", "different", "error")


@dataclass(frozen=True)
class Mutation:
    """what: for people. means_itself: what was mutated says something else now, which may be taken as it says; otherwise it is
    damaged, and the rows are those of before or there is an error."""

    what: str
    means_itself: bool


@dataclass(frozen=True)
class Finding:
    """kind: same, different, error (of delta_py), or what must not be: raw, memory, hang, crash, wrong, outside, or a name that
    the target gives it."""

    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Outcome:
    """subject: what was mutated, of the things that the target has."""

    number: int
    subject: str
    mutation: str
    kind: str
    detail: str

    @property
    def is_failure(self) -> bool:
        return self.kind not in _RIGHT


@dataclass(frozen=True)
class Case:
    """place: a directory of the case's own, where what it uses lies beside things of others."""

    seed: int
    number: int
    place: Path

    @property
    def rng(self) -> random.Random:
        """The same numbers each time."""
        return random.Random(f"{self.seed}-{self.number}")

    def outcome(self, subject: str, mutation: Mutation, finding: Finding) -> Outcome:
        kind = "wrong" if finding.kind == "different" and not mutation.means_itself else finding.kind
        return Outcome(self.number, subject, mutation.what, kind, finding.detail)


class Target(Protocol):
    """`Target(directory)` makes what its cases mutate in a directory, unless it is there."""

    def __init__(self, directory: Path) -> None: ...

    def run(self, case: Case) -> Outcome:
        """Raises RuntimeError for a case that could not be made."""


def fresh(place: Path) -> Path:
    """The place, empty but for what is precious to others."""
    shutil.rmtree(place, ignore_errors=True)
    (place / "victim").mkdir(parents=True)
    (place / "victim" / "thesis.doc").write_text("precious")
    return place


def observed(work: Callable[[], tuple[str, str]], place: Path, *inside: str) -> Finding:
    """What comes of the work in a child, which gives (kind, detail); outside, if it changes anything at the place but for what is
    in the directories `inside`."""
    before = _beside(place, *inside)
    result = in_child(work)
    kind, detail = (result.failure, result.detail) if result.failure else result.value
    return Finding(kind, detail) if _beside(place, *inside) == before else Finding("outside", f"was {kind}, {detail}")


def _beside(place: Path, *inside: str) -> dict[str, str]:
    """The files, without following links."""
    own = [place / name for name in inside]
    return {
        str(path.relative_to(place)): path.read_bytes().hex()
        for path in sorted(place.rglob("*"))
        if path.is_file() and not path.is_symlink() and not any(path.is_relative_to(directory) for directory in own)
    }


def made(result: Result, case: Case) -> object:
    """What a child made for a case."""
    if result.failure is not None:
        raise RuntimeError(f"case {case.number} of seed {case.seed} could not be made: {result}")
    return result.value
