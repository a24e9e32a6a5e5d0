"""What the tasks do. Each new worker process imports this module and what it names: no more than tasks need."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delta_py.scan.scan_state import ScanFile
from delta_py.storage.store import ObjectStore
from delta_py.write.compaction import compact
from delta_py.write.file_copies import Copy, copy_files
from delta_py.write.files import WrittenFiles
from delta_py.write.rewrite import Rewrite
from spark_plugin.dml.tasks import task_number


def copier(source: ObjectStore, target: ObjectStore) -> Callable[[Sequence[Copy]], int]:
    """Copies files of one table to another."""

    def run(copies: Sequence[Copy]) -> int:
        copy_files(source, target, copies)
        return len(copies)

    return run


def bin_compactor(rewrite: Rewrite) -> Callable[[Sequence[ScanFile]], WrittenFiles]:
    """Writes the rows of a bin's files to one file."""

    def run(files: Sequence[ScanFile]) -> WrittenFiles:
        return compact(files, rewrite, task=task_number())

    return run
