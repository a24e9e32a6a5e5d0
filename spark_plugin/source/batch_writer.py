"""The process that commits a batch write: a worker, which may end after it, or the driver's own Python, which stays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from delta_py.storage import publication


class BatchWriter(DataSourceArrowWriter):
    """A write that commits through commit_here."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self.commit_here(messages)
        publication.finish()  # Spark may end this process at any time

    @abstractmethod
    def commit_here(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit in this process. After a ledger has ratified the commit, a thread of this process may publish it later."""
