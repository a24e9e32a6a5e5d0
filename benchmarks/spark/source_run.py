"""One Parquet file in S3, read by pydelta over the SDK and by pyarrow over its own S3 client in turns; prints seconds as JSON.

    python benchmarks/spark/source_run.py URL --rounds 5

URL is a table by make_store_tables.py. PYDELTA_BENCH_STORE is the store, as JSON: the options of pydelta by name. Neither caches
a footer. The first round warms up and does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping

import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import S3FileSystem

from delta_py import DeltaTable

Read = Callable[[list[str]], int]
"""Columns -> how many rows there are."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    store = json.loads(os.environ["PYDELTA_BENCH_STORE"])
    os.environ["PYDELTA_CACHE_DIR"] = ""
    table = DeltaTable(arguments.url, storage_options=store)
    (path,) = table.files()["path"].to_pylist()
    files, place = s3_files(store), f"{arguments.url}/{path}".removeprefix("s3://")
    readers = {"sdk": over_sdk(table), "file": by_file(files, place), "dataset": by_dataset(files, place)}
    print(json.dumps(measured(readers, table.schema().names, arguments.rounds)))


def over_sdk(table: DeltaTable) -> Read:
    return lambda columns: sum(batch.num_rows for batch in table.to_batches(columns=columns))


def s3_files(store: Mapping[str, str]) -> S3FileSystem:
    return S3FileSystem(
        access_key=store["s3.access_key_id"],
        secret_key=store["s3.secret_access_key"],
        region=store["s3.region"],
        endpoint_override=store["s3.endpoint"].removeprefix("http://"),
        scheme="http",
    )


def by_file(files: S3FileSystem, place: str) -> Read:
    """Decodes on one thread, as pydelta does."""

    def read(columns: list[str]) -> int:
        with files.open_input_file(place) as source, pq.ParquetFile(source, pre_buffer=True) as file:
            return int(file.read(columns, use_threads=False).num_rows)

    return read


def by_dataset(files: S3FileSystem, place: str) -> Read:
    """Decodes on as many threads as there are cores: with one thread it would also fetch one range after the other."""
    options = ds.ParquetFragmentScanOptions(pre_buffer=True)
    form = ds.ParquetFileFormat(default_fragment_scan_options=options)
    return lambda columns: int(ds.dataset(place, filesystem=files, format=form).to_table(columns=columns).num_rows)


def measured(readers: Mapping[str, Read], names: list[str], rounds: int) -> dict[str, dict[str, list[dict[str, float]]]]:
    """By columns, then reader: seconds and seconds of CPU, all threads, of each counted round."""
    choices = {"one column": names[:1], "three columns": names[:6:2], "all columns": names}
    results: dict[str, dict[str, list[dict[str, float]]]] = {title: {name: [] for name in readers} for title in choices}
    for number in range(rounds + 1):
        for title, columns in choices.items():
            counts = {}
            for name, read in readers.items():
                start, cpu_start = time.perf_counter(), time.process_time()
                counts[name] = read(columns)
                times = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}
                if number:
                    results[title][name].append(times)
            assert len(set(counts.values())) == 1, counts
    return results


if __name__ == "__main__":
    main()
