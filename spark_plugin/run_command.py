"""How a command reaches its table: a classic session runs it directly; over Spark Connect the server's writer runs it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from spark_plugin.cached_tables import refresh_cached
from spark_plugin.data_source import FORMAT
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.internals.wrapping import original
from spark_plugin.options.common import COMMAND, SESSION
from spark_plugin.options.settings import TablePath, write_settings
from spark_plugin.session_source import private
from spark_plugin.source.commands import carry_out, open_target


def run_command(spark: Any, table: TablePath, name: str, arguments: Mapping[str, Any]) -> Any:
    """Run a command of source/commands.py on a table and return its result. name: of the command. Over Spark Connect the result
    is None: there the command travels as an option of a write without rows, and a write returns nothing."""
    if adapter_of(spark).is_driver:
        with as_spark_raises():
            result = carry_out(open_target(table.url, table.storage_options(spark), name), name, arguments)
        refresh_cached(spark, None, table.url)
        return result
    command = json.dumps({"name": name, "arguments": arguments})
    writer = spark.createDataFrame([], "nothing int").write.format(FORMAT).mode("append").options(**table.storage)
    writer = writer.options(**private(spark, {COMMAND: command, SESSION: write_settings(spark, table.url)}))
    original(type(writer), "save")(writer, table.url)
    return None
