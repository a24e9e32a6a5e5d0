"""The cost in Python of a trigger without new data, on the driver's side of a stream; prints the seconds of each as JSON.

    python benchmarks/spark/idle_run.py TABLE --triggers 200

TABLE is made by make_log_table.py. The stream begins after its newest version. No Spark session is needed: the calls are those
that Spark makes to the source's Python process at each trigger.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.spark.session import timed
from delta_py import DeltaTable
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.streaming.stream_reader import make_stream_reader, pin_stream


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--triggers", type=int, default=200)
    arguments = parser.parse_args()
    version = DeltaTable(arguments.table).version
    pinned = pin_stream({"path": arguments.table, "startingVersion": "latest"})
    reader = make_stream_reader(pinned, to_spark_schema(pinned.schema))
    place = reader.initialOffset()

    def trigger() -> None:
        assert reader.latestOffset(place, reader.getDefaultReadLimit()) == place
        reader.reportLatestOffset()

    first = timed(trigger)
    print(json.dumps({"first": first, "seconds": [timed(trigger) for _ in range(arguments.triggers)], "version": version}))


if __name__ == "__main__":
    main()
