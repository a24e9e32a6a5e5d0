"""What Spark's abort deletes. There is no session: the writer is called as Spark calls it."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import pyarrow as pa

from delta_py.types.schema import LONG, StructField, StructType
from delta_py.write.data_files import write_files
from spark_plugin.options.write_options import write_options
from spark_plugin.source.task_writer import DeltaWriter, TaskFiles

_SCHEMA = StructType((StructField("id", LONG, True),))


def _writer(path: Path) -> DeltaWriter:
    return DeltaWriter.open(write_options({"path": str(path)}, overwrite=False), _SCHEMA)


def _write(writer: DeltaWriter) -> TaskFiles:
    """As a task does it, in a separate process."""
    state = pickle.loads(pickle.dumps(writer))._state
    batch = pa.record_batch({"id": pa.array([1, 2, 3], pa.int64())})
    return TaskFiles(write_files(state, [batch]))


def _data_files(path: Path) -> int:
    return len(list(path.rglob("*.parquet")))


def test_abort_after_a_commit_that_may_stand_keeps_the_files(tmp_path: Path) -> None:
    writer = _writer(tmp_path)
    message = _write(writer)
    writer.abort([message])
    assert _data_files(tmp_path) == 1


def test_abort_deletes_files_of_tasks_without_a_message(tmp_path: Path) -> None:
    writer = _writer(tmp_path)
    _write(writer)
    _write(writer)
    writer.abort([_write(writer), None])
    assert _data_files(tmp_path) == 0


def test_abort_deletes_the_file_of_a_task_that_ends_later(tmp_path: Path) -> None:
    writer = _writer(tmp_path)
    late = threading.Timer(0.5, _write, (writer,))
    late.start()
    writer.abort([None, None])
    late.join()
    assert _data_files(tmp_path) == 0


def test_abort_keeps_the_files_of_other_writes(tmp_path: Path) -> None:
    _write(_writer(tmp_path))
    _writer(tmp_path).abort([None])
    assert _data_files(tmp_path) == 1
