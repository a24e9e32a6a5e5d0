"""Scripts of delta-spark's documentation run on pydelta with one line more. tests/interop runs them on delta-spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.peers import script_peers


@pytest.mark.parametrize("name", script_peers.NAMES)
def test_script_of_delta_spark_prints_the_same_on_pydelta(name: str, tmp_path: Path) -> None:
    assert script_peers.run(script_peers.of_pydelta(name), tmp_path, {}) == script_peers.printed(name)
