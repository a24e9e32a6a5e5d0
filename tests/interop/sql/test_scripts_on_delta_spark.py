"""examples/delta_spark_scripts print on delta-spark, without pydelta's line, what tests/applications expects of pydelta."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.peers import delta_spark, script_peers


@pytest.mark.parametrize("name", script_peers.NAMES)
def test_script_prints_the_same_on_delta_spark(name: str, tmp_path: Path) -> None:
    script = script_peers.of_delta_spark(name)
    assert "spark_plugin" not in script
    printed = script_peers.run(script, tmp_path, delta_spark.settings())
    assert script_peers.without_notes(printed) == script_peers.printed(name)
