"""One streaming write on its way to Spark: a StreamSave, made by each of the writing methods, and `start` or `to_table`.

Spark does not check what a Python sink supports, and passes neither partitioning nor the session's settings to it. So this module
checks the calls, and passes them on as options.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delta_py.errors import InvalidOptionError, UnsupportedOperationError
from spark_plugin.data_source import FORMAT
from spark_plugin.dataframe_api import catalog, named_tables
from spark_plugin.dataframe_api.batch_save import Save
from spark_plugin.internals.wrapping import original
from spark_plugin.options.common import CLUSTER_BY, PARTITION_BY, SESSION
from spark_plugin.options.private import refuse_private
from spark_plugin.options.settings import active, conf, write_settings
from spark_plugin.options.streaming_options import CHECKPOINT_LOCATION, stream_write_options
from spark_plugin.session_source import private
from spark_plugin.tasks.arrow_batches import unweighed

_MODES = ("append", "complete")
_CHECKPOINT_CONF = "spark.sql.streaming.checkpointLocation"


@dataclass(frozen=True, slots=True)
class StreamSave:
    """A streaming write with all that the user asked for. writer: Spark's DataStreamWriter, on which all calls were made.
    frame: the stream. options: by lower-case name, as (name in the user's spelling, value). partition_by, cluster_by: None if
    not given. launch: Spark's own `start`. provider: of the name in the catalog, if the query makes one."""

    writer: Any
    frame: Any
    launch: Callable[..., Any]
    output_mode: str = "append"
    options: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    partition_by: Sequence[str] | None = None
    cluster_by: Sequence[str] | None = None
    provider: str | None = None

    @property
    def spark(self) -> Any:
        return self.frame.sparkSession

    def start(self, path: str | None) -> Any:
        """Return the running query. path: None if the option `path` contains it.

        Raises UnsupportedOperationError (DELTA_UNSUPPORTED_OUTPUT_MODE) for output mode update, and the errors of
        stream_write_options.
        """
        mode = self._checked_mode()
        options = self._sink_options(path)
        texts = {name: str(value) for name, value in options.items()}
        stream_write_options({**texts, **({} if path is None else {"path": path})}, complete=mode == "complete")
        writer = self.writer.format(FORMAT)
        for name, value in private(self.spark, options).items():  # not recorded as a user's call: the writer may start again
            writer = original(type(writer), "option")(writer, name, value)
        # The thread of the query, which starts here, inherits the settings of this thread.
        with active(self.spark), unweighed(self.spark, self.frame.schema):
            return self.launch(writer, path)

    def to_table(self, name: str) -> Any:
        """Return the running query into a table of the catalog. The table is created if the name does not exist."""
        self._checked_mode()
        entry = catalog.find(self.spark, name)
        if entry is None:
            # A batch write without rows creates the table.
            empty = self.spark.createDataFrame([], self.frame.schema)
            save = Save(empty, "append", self._batch_options(), self.partition_by, self.cluster_by, provider=self.provider)
            named_tables.create(save, name)
            entry = catalog.find(self.spark, name)
            assert entry is not None, f"{name} was just entered"
        path, path_option = entry.writable_path(), self.options.get("path")
        if path_option is not None and catalog.new_table_path(self.spark, name, str(path_option[1])) != path:
            raise InvalidOptionError(
                f"Table {name} is at {path} and not at {path_option[1]}; nothing was started. Leave the option path out.",
                option="path",
            )
        return self.start(path)

    def _batch_options(self) -> dict[str, tuple[str, Any]]:
        """Return the options without those that only streams have."""
        return {key: pair for key, pair in self.options.items() if key not in (CHECKPOINT_LOCATION.lower(), "queryname")}

    def _checked_mode(self) -> str:
        """Return the output mode in lower case. Raises UnsupportedOperationError (DELTA_UNSUPPORTED_OUTPUT_MODE) for update."""
        mode = self.output_mode.lower()
        if mode not in _MODES:
            raise UnsupportedOperationError(
                f"Data source {FORMAT} does not support output mode {self.output_mode}; nothing was started. Use append, or "
                "complete for an aggregation that is written anew with each batch. For upserts use foreachBatch with MERGE.",
                error_class="DELTA_UNSUPPORTED_OUTPUT_MODE",
                sql_state="0AKDC",
                mode=self.output_mode,
            )
        return mode

    def _sink_options(self, path: str | None) -> dict[str, Any]:
        """Return the options of the sink: the user's, and those with facts that Spark would not pass to a Python sink. path: None
        if the option `path` contains it."""
        refuse_private(self.options, "This write")
        options = {name: value for name, value in self.options.values()}
        target = path or next((str(value) for name, value in options.items() if name.lower() == "path"), None)
        options[SESSION] = write_settings(self.spark, target)
        if CHECKPOINT_LOCATION.lower() not in self.options:
            options[CHECKPOINT_LOCATION] = self._default_checkpoint()
        for name, columns in ((PARTITION_BY, self.partition_by), (CLUSTER_BY, self.cluster_by)):
            if columns is not None:
                options[name] = json.dumps(list(columns))
        return options

    def _default_checkpoint(self) -> str:
        """Return where Spark puts the checkpoint of a query whose options name no place: under the directory of the session's
        setting. Raises InvalidOptionError if the session has no such setting."""
        root = conf(self.spark, _CHECKPOINT_CONF)
        if root is None:
            raise InvalidOptionError(
                f"{CHECKPOINT_LOCATION} is not given; nothing was started. Name a directory of this query's own: "
                f".option({CHECKPOINT_LOCATION!r}, ...), or set {_CHECKPOINT_CONF} in the session.",
                option=CHECKPOINT_LOCATION,
            )
        query_name = self.options.get("queryname")
        return f"{root.rstrip('/')}/{query_name[1] if query_name else uuid.uuid4()}"
