"""The tasks of Spark jobs as the progress of a command.

    with progress("MERGE", "tasks"), watched(spark):
        frame.collect()                  # and other jobs of this thread

The numbers come from Spark's status tracker, over Spark Connect from the messages that the server sends while it runs a query.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from delta_py.progress import can_be_sampled, sampled
from spark_plugin.internals.session_adapter import adapter_of


@contextmanager
def watched(spark: Any, task_count: int = 0) -> Iterator[None]:
    """Show the tasks that this thread starts inside the block as progress of the current command. Spark's own bars are not shown
    meanwhile. Does nothing if no command is shown. task_count: how many tasks there will be at least."""
    if not can_be_sampled():
        yield
        return
    with adapter_of(spark).count_tasks() as counts:

        def sample() -> tuple[int, int]:
            """Return how many tasks have ended, and how many there are."""
            done_count, known_count = counts()
            return done_count, max(known_count, task_count)

        with sampled(sample):
            yield
