"""Operations on tables of few rows and many columns by one engine, in a fresh process; prints the CPU seconds of each as JSON.

    python benchmarks/library/wide_run.py ENGINE DIRECTORY --columns 500,1000 --runs 3

ENGINE: pydelta, deltalake. Each file has two rows. Seconds are those of all threads of the process, medians of the runs. First
everything is done once with a narrow table, so that imports and what a process does once do not count.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import pyarrow as pa

FEW_COLUMNS = ("c1", "c7", "c5")
_WARM_COLUMNS = 20


class Engine(ABC):
    """The measured operations, by one library. Each method works on the table at a path."""

    @abstractmethod
    def create(self, path: str, rows: pa.Table) -> None: ...

    @abstractmethod
    def append(self, path: str, rows: pa.Table) -> None: ...

    @abstractmethod
    def open(self, path: str) -> int:
        """The number of columns in the table's schema."""

    @abstractmethod
    def read(self, path: str) -> pa.Table: ...

    @abstractmethod
    def read_few_columns(self, path: str) -> pa.Table:
        """FEW_COLUMNS of the rows in which c5 is 5."""

    @abstractmethod
    def update(self, path: str) -> None:
        """Sets c5 to c6 + 1 where c0 is 0."""

    @abstractmethod
    def merge(self, path: str, rows: pa.Table) -> None:
        """Matches rows by c0: all columns of a match are updated, other rows are inserted."""

    @abstractmethod
    def compact(self, path: str) -> None: ...


class Pydelta(Engine):
    def create(self, path: str, rows: pa.Table) -> None:
        from delta_py import write_delta

        write_delta(path, rows)

    def append(self, path: str, rows: pa.Table) -> None:
        from delta_py import write_delta

        write_delta(path, rows, mode="append")

    def _table(self, path: str) -> Any:
        from delta_py import DeltaTable

        return DeltaTable(path)

    def open(self, path: str) -> int:
        return len(self._table(path).schema())

    def read(self, path: str) -> pa.Table:
        return self._table(path).to_arrow()

    def read_few_columns(self, path: str) -> pa.Table:
        return self._table(path).to_arrow(columns=FEW_COLUMNS, filter="c5 = 5")

    def update(self, path: str) -> None:
        self._table(path).update({"c5": "c6 + 1"}, predicate="c0 = 0")

    def merge(self, path: str, rows: pa.Table) -> None:
        merger = self._table(path).merge(rows, "t.c0 = s.c0", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def compact(self, path: str) -> None:
        self._table(path).optimize.compact()


class Deltalake(Engine):
    def create(self, path: str, rows: pa.Table) -> None:
        from deltalake import write_deltalake

        write_deltalake(path, rows)

    def append(self, path: str, rows: pa.Table) -> None:
        from deltalake import write_deltalake

        write_deltalake(path, rows, mode="append")

    def _table(self, path: str) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(path)

    def open(self, path: str) -> int:
        return len(self._table(path).schema().fields)

    def read(self, path: str) -> pa.Table:
        return self._table(path).to_pyarrow_table()

    def read_few_columns(self, path: str) -> pa.Table:
        import pyarrow.compute as pc

        return self._table(path).to_pyarrow_table(columns=list(FEW_COLUMNS), filters=pc.field("c5") == 5)

    def update(self, path: str) -> None:
        self._table(path).update(updates={"c5": "c6 + 1"}, predicate="c0 = 0")

    def merge(self, path: str, rows: pa.Table) -> None:
        merger = self._table(path).merge(rows, "t.c0 = s.c0", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def compact(self, path: str) -> None:
        self._table(path).optimize.compact()


ENGINES: Mapping[str, Engine] = {"pydelta": Pydelta(), "deltalake": Deltalake()}


def rows_of(columns: int, first: int = 0) -> pa.Table:
    """Two rows: column cN has first + N and first + N + 1."""
    return pa.table({f"c{n}": [first + n, first + n + 1] for n in range(columns)})


def measured(engine: Engine, path: str, columns: int) -> dict[str, float]:
    """CPU seconds of each operation, in the order in which they run on one new table. Checks their results."""
    rows = rows_of(columns)
    seconds: dict[str, float] = {}

    def timed(name: str, run: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = run()
        seconds[name] = time.process_time() - start
        return result

    timed("create", lambda: engine.create(path, rows))
    assert timed("open", lambda: engine.open(path)) == columns
    assert timed("read 1 file", lambda: engine.read(path)).equals(rows)
    timed("append", lambda: engine.append(path, rows))
    engine.append(path, rows)
    everything = timed("read 3 files", lambda: engine.read(path))
    assert (everything.num_rows, everything.num_columns) == (6, columns)
    few = timed("read 3 columns, filtered", lambda: engine.read_few_columns(path))
    assert few.to_pydict() == {"c1": [1] * 3, "c7": [7] * 3, "c5": [5] * 3}
    timed("update", lambda: engine.update(path))
    assert engine.read(path)["c5"].to_pylist().count(7) == 3
    timed("merge", lambda: engine.merge(path, rows_of(columns, first=1)))
    assert sorted(engine.read(path)["c0"].to_pylist()) == [0, 0, 0, 1, 1, 1, 2]
    for _ in range(2):  # several files, whatever the engine's changes have left
        engine.append(path, rows)
    timed("compact", lambda: engine.compact(path))
    assert engine.read(path).num_rows == 11
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=list(ENGINES))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--columns", required=True, type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    engine = ENGINES[arguments.engine]
    table = arguments.directory / f"wide-{arguments.engine}"

    def run(columns: int) -> dict[str, float]:
        try:
            return measured(engine, str(table), columns)
        finally:
            shutil.rmtree(table, ignore_errors=True)

    run(_WARM_COLUMNS)
    medians: dict[str, dict[str, float]] = {}
    for columns in arguments.columns:
        runs = [run(columns) for _ in range(arguments.runs)]
        medians[str(columns)] = {name: statistics.median(one[name] for one in runs) for name in runs[0]}
    print(json.dumps(medians))


if __name__ == "__main__":
    main()
