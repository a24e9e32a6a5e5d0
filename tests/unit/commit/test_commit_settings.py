"""Settings for the commits and the files of a block of code."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_py import DeltaTable, write_delta
from delta_py.commit.commit_settings import CommitSettings, commit_settings
from delta_py.errors import ConcurrentWriteException, InvalidOptionError
from delta_py.row_rules.file_settings import FileSettings, file_settings

ROWS = pa.table({"id": [1, 2, 3]})


def commit_info(path: Path, version: int) -> dict[str, object]:
    lines = (path / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return json.loads(lines[0])["commitInfo"]


def test_info_reaches_every_commit_of_the_block_and_no_other(tmp_path: Path) -> None:
    settings = CommitSettings(info={"job": 17, "operationParameters": {"mode": "mine", "more": {"a": 1}}})
    with commit_settings(settings):
        write_delta(tmp_path, ROWS)
        DeltaTable(tmp_path).delete("id = 1")
    write_delta(tmp_path, ROWS, mode="append")
    first, second, third = (commit_info(tmp_path, version) for version in range(3))
    assert (first["job"], second["job"], third.get("job")) == (17, 17, None)
    assert first["operationParameters"] == {"mode": "ErrorIfExists", "more": '{"a":1}', "partitionBy": "[]"}


@pytest.mark.parametrize("key", ["timestamp", "inCommitTimestamp", "txnId", "isBlindAppend", "isolationLevel"])
def test_info_that_a_commit_computes_is_refused(key: str) -> None:
    with pytest.raises(InvalidOptionError, match=key):
        CommitSettings(info={key: True})


def test_transactions_are_recorded_again_and_again(tmp_path: Path) -> None:
    write_delta(tmp_path, ROWS)
    for version in (7, 7, 3):
        with commit_settings(CommitSettings(transactions={"loader": version})):
            write_delta(tmp_path, ROWS, mode="append")
        assert DeltaTable(tmp_path).transaction_version("loader") == version
    assert DeltaTable(tmp_path).version == 3


def test_single_attempt_fails_after_a_lost_race(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_delta(tmp_path, ROWS)
    racing = []

    def write_first(path: Path) -> None:
        if not racing:
            racing.append(path)
            write_delta(path, ROWS, mode="append")

    def with_race(attempts: int) -> int:
        from delta_py.log.log_writer import LogWriter

        original = LogWriter.put_commit

        def put(self: object, *args: object, **kwargs: object) -> object:
            write_first(tmp_path)
            return original(self, *args, **kwargs)

        racing.clear()
        monkeypatch.setattr(LogWriter, "put_commit", put)
        try:
            with commit_settings(CommitSettings(max_attempts=attempts)):
                return write_delta(tmp_path, ROWS, mode="append")
        finally:
            monkeypatch.setattr(LogWriter, "put_commit", original)

    with pytest.raises(ConcurrentWriteException):
        with_race(1)
    assert with_race(2) == 3


def test_checkpoint_can_be_switched_off(tmp_path: Path) -> None:
    write_delta(tmp_path, ROWS, configuration={"delta.checkpointInterval": "1"})
    with commit_settings(CommitSettings(can_checkpoint=False)):
        write_delta(tmp_path, ROWS, mode="append")
    assert list((tmp_path / "_delta_log").glob("*.checkpoint.parquet")) == []
    write_delta(tmp_path, ROWS, mode="append")
    assert len(list((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))) == 1


def test_file_settings_replace_those_of_the_table(tmp_path: Path) -> None:
    with file_settings(FileSettings("gzip", row_group_rows=2, parquet_options={"use_dictionary": False})):
        write_delta(tmp_path, ROWS)
    (path,) = tmp_path.glob("*.parquet")
    footer = pq.read_metadata(path)
    column = footer.row_group(0).column(0)
    assert (footer.num_row_groups, column.compression) == (2, "GZIP")
    assert "RLE_DICTIONARY" not in column.encodings
    write_delta(tmp_path, ROWS, mode="append")
    (other,) = set(tmp_path.glob("*.parquet")) - {path}
    assert pq.read_metadata(other).row_group(0).column(0).compression == "ZSTD"
