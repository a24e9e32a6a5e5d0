"""The seed of all that is random in the tests.

PYDELTA_SEED=<number> (make TARGET SEED=number) gives one seed to a whole run, hypothesis included; the run says it in its
header. Without it, random tests take the seed that each of them names, so that the verdict on a change is of the change.
"""

from __future__ import annotations

import os


def run_seed() -> int | None:
    """The seed that the run was given."""
    given = os.environ.get("PYDELTA_SEED")
    return int(given) if given else None


def seed_of(name: str) -> int:
    """The seed of one random test: of the run and the name, or of the name alone."""
    return (run_seed() or 0) + sum(name.encode())
