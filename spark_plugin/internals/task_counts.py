"""Counts of finished tasks and of all known tasks, for progress bars: in a classic session, and for a client of Spark Connect.

A classic session counts the jobs of a job group. If the thread has a group already, that one is used, so that `cancelJobGroup`
cancels these jobs too.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from spark_plugin.internals.pyspark_internals import job_tracker, without_console_bar

TaskCounts: TypeAlias = Callable[[], tuple[int, int]]
"""Returns the number of finished tasks, and of all known tasks."""

_GROUP = "spark.jobGroup.id"
_CLIENT_BAR_VARIABLE = "SPARK_CONNECT_PROGRESS_BAR_ENABLED"


@contextmanager
def count_job_tasks(spark: Any) -> Iterator[TaskCounts]:
    """Count the tasks of the jobs that this thread starts inside; Spark does not draw its own bar meanwhile. spark: a classic
    session whose threads have their own properties."""
    context = spark.sparkContext
    callers_group = context.getLocalProperty(_GROUP)
    group = callers_group or f"pydelta-{uuid.uuid4()}"
    jobs = JobCounts(job_tracker(spark), group)
    context.setLocalProperty(_GROUP, group)
    try:
        with without_console_bar(spark):
            yield jobs.tasks
    finally:
        context.setLocalProperty(_GROUP, callers_group)


class JobCounts:
    """The tasks of the jobs of a job group, except jobs that the group had before this object was made."""

    def __init__(self, tracker: Any, group: str) -> None:
        self._tracker, self._group = tracker, group
        self._earlier_jobs = set(tracker.getJobIdsForGroup(group))
        self._finished_jobs: dict[int, int] = {}  # job -> tasks

    def tasks(self) -> tuple[int, int]:
        """Return the numbers of finished tasks and of all tasks in the group's jobs since this object was made."""
        done_tasks, known_tasks = 0, 0
        for job in set(self._tracker.getJobIdsForGroup(self._group)) - self._earlier_jobs - set(self._finished_jobs):
            job_done, job_known, is_finished = self._count_job(job)
            if is_finished:
                self._finished_jobs[job] = job_done  # without the tasks of skipped stages, which never run
            else:
                done_tasks, known_tasks = done_tasks + job_done, known_tasks + job_known
        tasks_of_finished_jobs = sum(self._finished_jobs.values())
        return done_tasks + tasks_of_finished_jobs, known_tasks + tasks_of_finished_jobs

    def _count_job(self, job: int) -> tuple[int, int, bool]:
        """Return how many tasks of the job are done, how many it has, and whether it has ended. A job that has ended has skipped
        the stages whose results were there already."""
        info = self._tracker.getJobInfo(job)
        if info is None:
            return 0, 0, False  # Spark has not recorded the job yet, or does not know it any more
        stages = [stage for number in info.stageIds if (stage := self._tracker.getStageInfo(number)) is not None]
        done = sum(stage.numCompletedTasks for stage in stages)
        return done, sum(stage.numTasks for stage in stages), str(info.status) != "RUNNING"


@contextmanager
def count_query_tasks(client: Any) -> Iterator[TaskCounts]:
    """Count the tasks of the queries that a session of Spark Connect runs meanwhile. client: the session."""
    counts = QueryCounts()
    previous_setting = os.environ.get(_CLIENT_BAR_VARIABLE)
    os.environ[_CLIENT_BAR_VARIABLE] = "0"  # Spark's client would draw its own progress bar
    client.registerProgressHandler(counts.take)
    try:
        yield counts.tasks
    finally:
        client.removeProgressHandler(counts.take)
        if previous_setting is None:
            os.environ.pop(_CLIENT_BAR_VARIABLE, None)
        else:
            os.environ[_CLIENT_BAR_VARIABLE] = previous_setting


class QueryCounts:
    """Counts the tasks of the queries that a Spark Connect server runs, from the progress messages that it sends for each
    query."""

    def __init__(self) -> None:
        self._finished_tasks = 0
        self._running: dict[str | None, tuple[int, int]] = {}  # operation -> tasks that are done, and all known ones

    def take(self, stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        """A handler of progress messages, with the parameters that Spark's client passes. done: the operation has ended."""
        stages = list(stages or [])  # each with its number of tasks and of completed tasks
        known = sum(stage.num_tasks for stage in stages)
        if done:
            self._running.pop(operation_id, None)
            self._finished_tasks += known
        else:
            self._running[operation_id] = (sum(stage.num_completed_tasks for stage in stages), known)

    def tasks(self) -> tuple[int, int]:
        """Return the numbers of finished tasks and of all known tasks."""
        running = list(self._running.values())
        done, known = sum(done for done, _ in running), sum(known for _, known in running)
        return done + self._finished_tasks, known + self._finished_tasks
