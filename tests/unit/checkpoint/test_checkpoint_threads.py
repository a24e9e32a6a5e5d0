"""One checkpoint that several threads read at the same time: masks of its rows are made before the rows themselves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from delta_py.log.checkpoint_content.checkpoint_files import RequestedStats
from delta_py.log.checkpoint_content.checkpoint_reader import CheckpointReader
from delta_py.log.commit_reader import CommitReader
from delta_py.log.segment import load_segment
from tests.support.stores.memory_store import MemoryStore
from tests.support.tables.table_builder import TableBuilder, add

FILES = 300
THREADS = 4


def test_every_thread_gets_all_files() -> None:
    """pyarrow's readers are not safe for threads: without a lock the process sometimes died of a segmentation fault."""
    table = TableBuilder(MemoryStore())
    table.create(*(add(f"{number}.parquet") for number in range(FILES)))
    table.checkpoint(kind="multipart", parts=2, batch=5)
    table.commit(add("later.parquet"))
    segment = load_segment(table.store)
    assert segment.checkpoint is not None
    for _ in range(20):
        reader = CheckpointReader(segment.checkpoint, CommitReader(table.store))

        def paths(reader: CheckpointReader = reader) -> list[str]:
            return [path for raw in reader.files(RequestedStats()) for path in raw.files["path"].to_pylist()]

        with ThreadPoolExecutor(THREADS) as pool:
            read = [future.result() for future in [pool.submit(paths) for _ in range(THREADS)]]
        assert all(sorted(one) == sorted(f"{number}.parquet" for number in range(FILES)) for one in read)
