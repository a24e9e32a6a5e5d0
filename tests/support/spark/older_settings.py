"""The settings of single roads, which `spark.pydelta.disable` and `spark.pydelta.prefer` replace. This release still accepts
them.

Tests that switch one road of a session on and off use them, because each road has its own setting.
"""

from __future__ import annotations

from spark_plugin.options.roads import DRIVER_PLANNING, OLDER_SETTINGS, PRUNING, Road

ENABLED_CONF = OLDER_SETTINGS[PRUNING]
COLUMNAR_CONF = OLDER_SETTINGS[Road.COLUMNS]
NATIVE_CONF = OLDER_SETTINGS[Road.PARQUET]
PARTIAL_CONF = OLDER_SETTINGS[Road.PARTIAL]
PLANNING_CONF = OLDER_SETTINGS[DRIVER_PLANNING]
