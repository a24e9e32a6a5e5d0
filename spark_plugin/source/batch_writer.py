"""The base of batch writers, whose commit runs in one of two processes: a worker of Spark, which may end right after it, or the
driver's own Python, which lives on (driver_planning/).

For some tables the ledger of a commit coordinator ratifies a commit first, and the commit's file in the log is written
("published") later, by a thread. A worker must wait for this thread.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from delta_py.storage import publication


class BatchWriter(DataSourceArrowWriter):
    """A write whose subclass commits in `commit_here`. Spark calls `commit` in a worker, which must wait for the publication of
    the commit. The driver's own Python calls `commit_here` and does not wait, because it lives on."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self.commit_here(messages)
        publication.finish()  # Spark may end this process at any time

    @abstractmethod
    def commit_here(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit in this process. If a commit coordinator ratifies the commit, a thread of this process may publish it (write its
        file into the log) after this method returns."""
