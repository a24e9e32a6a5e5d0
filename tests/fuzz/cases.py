"""The common parts of all kinds of targets: a case, its mutation, and the finding.

    target = TableTarget(directory)      # makes what is mutated, once
    outcome = target.run(case)           # a copy of it, mutated and used

A target makes its subjects only if they do not exist yet.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.fuzz.child import Result, in_child

# same: as before the mutation. different: the meaning of the mutated value. error: of delta_py.
_RIGHT = ("same", "different", "error")


@dataclass(frozen=True)
class Mutation:
    """what: for people. means_itself: whether the mutated text has a valid meaning, which a reader may use. Otherwise it is
    damaged: the rows are those of before, or there is an error."""

    what: str
    means_itself: bool


@dataclass(frozen=True)
class Finding:
    """kind: same, different, error (of delta_py), or a failure of the test: raw, memory, hang, crash, wrong, outside, or a name
    that the target gives it."""

    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Outcome:
    """subject: the one of the target's objects that was mutated."""

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
    """place: a directory for this case. Its files are next to files of others."""

    seed: int
    number: int
    place: Path

    @property
    def rng(self) -> random.Random:
        """Returns the same numbers each time."""
        return random.Random(f"{self.seed}-{self.number}")

    def outcome(self, subject: str, mutation: Mutation, finding: Finding) -> Outcome:
        kind = "wrong" if finding.kind == "different" and not mutation.means_itself else finding.kind
        return Outcome(self.number, subject, mutation.what, kind, finding.detail)


class Target(Protocol):
    """`Target(directory)` makes the subjects of its cases in a directory, unless they exist."""

    def __init__(self, directory: Path) -> None: ...

    def run(self, case: Case) -> Outcome:
        """Raises RuntimeError if the case could not be made."""


def fresh(place: Path) -> Path:
    """The place, emptied except for the files of others, which must not change."""
    shutil.rmtree(place, ignore_errors=True)
    (place / "victim").mkdir(parents=True)
    (place / "victim" / "thesis.doc").write_text("precious")
    return place


def observed(work: Callable[[], tuple[str, str]], place: Path, *inside: str) -> Finding:
    """The finding of the work in a child process, which returns (kind, detail). It is `outside` if the work changes anything at
    the place except the directories `inside`."""
    before = _beside(place, *inside)
    result = in_child(work)
    kind, detail = (result.failure, result.detail) if result.failure else result.value
    return Finding(kind, detail) if _beside(place, *inside) == before else Finding("outside", f"was {kind}, {detail}")


def _beside(place: Path, *inside: str) -> dict[str, str]:
    """The files, without following links."""
    inside_directories = [place / name for name in inside]
    return {
        str(path.relative_to(place)): path.read_bytes().hex()
        for path in sorted(place.rglob("*"))
        if path.is_file()
        and not path.is_symlink()
        and not any(path.is_relative_to(directory) for directory in inside_directories)
    }


def made(result: Result, case: Case) -> object:
    """The result of a child that made a case."""
    if result.failure is not None:
        raise RuntimeError(f"case {case.number} of seed {case.seed} could not be made: {result}")
    return result.value
