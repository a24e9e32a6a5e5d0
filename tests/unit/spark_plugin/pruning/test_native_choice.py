"""Which reader is chosen for a scan, without Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_plugin.data_source import DeltaSource
from spark_plugin.pruning import NativeWish
from spark_plugin.schema_conversion import from_spark_schema
from spark_plugin.source import native_files as chosen
from tests.support.tables.small_table import make_table


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_no_footer_is_asked_of_a_file_that_lies_elsewhere(
    is_elsewhere: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a shallow clone of a table in a store."""
    path = make_table(tmp_path / "t", [pa.table({"id": [1, 2]})])
    commit = Path(path) / "_delta_log" / f"{0:020}.json"
    text = re.sub(r'"size": ?\d+', f'"size":{49 << 20}', commit.read_text())
    if is_elsewhere:
        text = re.sub(r'"path": ?"', '"path":"s3://elsewhere/', text)
    commit.write_text(text)
    commit.with_suffix(".crc").unlink(missing_ok=True)
    requests: list[Any] = []
    monkeypatch.setattr(chosen, "read_first_group_row_count", lambda store, name, size, **_: requests.append(name))
    source = DeltaSource({"path": path})
    schema = source.schema()
    scan = source._pin().plan(from_spark_schema(schema), None, None, count_rows=False)  # type: ignore[union-attr]
    assert chosen.native_files(scan, NativeWish.WHERE_QUICKER)[0] is None
    assert len(requests) == (0 if is_elsewhere else 1)
