"""The seed of everything random in the tests.

PYDELTA_SEED=<number> (make TARGET SEED=number) gives one seed to a whole run, including hypothesis; the run prints it in its
header. Without it, random tests use the seed that each of them names, so that the verdict on a change depends on the change.
"""

from __future__ import annotations

import os


def run_seed() -> int | None:
    """The seed of the run."""
    seed_text = os.environ.get("PYDELTA_SEED")
    return int(seed_text) if seed_text else None


def seed_of(name: str) -> int:
    """The seed of one random test: from the run and the name, or from the name alone."""
    return (run_seed() or 0) + sum(name.encode())
