"""Bodies of plan requests, as Java writes them."""

from __future__ import annotations

import pytest

from spark_plugin.driver_planning.planner import Planning
from tests.support.spark.driver_requests import planning_body


@pytest.mark.parametrize(("binary_as_bytes", "is_stream"), [(True, False), (False, True)])
def test_planning_is_parsed_as_java_writes_it(binary_as_bytes: bool, is_stream: bool) -> None:
    body = planning_body(b"\0pickled", '{"schema": "ß"}', most_rows=7, binary_as_bytes=binary_as_bytes, is_stream=is_stream)
    assert Planning.parse(body) == Planning(b"\0pickled", '{"schema": "ß"}', 7, binary_as_bytes, is_stream)
