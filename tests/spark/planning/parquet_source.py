"""A small Python data source over a directory of Parquet files, built only on what the pruning rule passes to it.

It drops exactly the rows that the predicate rejects and reads exactly the files that have other rows: the most that a source may
do, so a rule that passes too much gives wrong rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_, or_
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, InputPartition, IsNotNull
from pyspark.sql.types import StructType

from delta_py.expressions import tree
from delta_py.scan.planning import ScanReport
from delta_py.types.schema import LONG
from spark_plugin.pruning import MessagePartition, ScanRequest, kept_part, limited, plan_message
from spark_plugin.spark_versions import to_arrow_schema

FORMAT = "pruning_test"
TRACE = "trace"
"""An option: a file that gets a line for each planning, the predicate's conjuncts as a JSON list of their texts."""

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


class ParquetSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        first = min(Path(self.options["path"]).glob("*.parquet"))
        text = pq.read_schema(first).metadata[_SPARK_SCHEMA].decode()
        return StructType.fromJson(json.loads(text.replace(":false", ":true")))  # as Spark reads Parquet: everything may be null

    def reader(self, schema: StructType) -> DataSourceReader:
        return limited(ParquetReader(dict(self.options), schema), ScanRequest.parse(schema).limit)


class FilePartition(MessagePartition):
    def __init__(self, file: Path | None) -> None:
        super().__init__()
        self.file = file


class ParquetReader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self.path = options["path"]
        self.trace = options.get(TRACE)
        request = ScanRequest.parse(schema)
        self.scan_id = request.scan_id
        self.schema = to_arrow_schema(request.columns)
        self.predicate = request.predicate

    def partitions(self) -> Sequence[InputPartition]:
        if self.trace is not None:
            with open(self.trace, "a") as lines:
                conjunct_list = [] if self.predicate is None else tree.conjuncts(self.predicate)
                print(json.dumps([repr(part) for part in conjunct_list]), file=lines)
        files = sorted(Path(self.path).glob("*.parquet"))
        kept_files = [file for file in files if self.predicate is None or self._table(file).num_rows]
        report = ScanReport(
            files_total=len(files), bytes_total=_size(files), files_kept=len(kept_files), bytes_kept=_size(kept_files)
        )
        partitions = [FilePartition(file) for file in kept_files] or [FilePartition(None)]
        partitions[0].messages.update(plan_message({"kept": kept_part(report)}, self.scan_id))
        return partitions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FilePartition)
        if partition.file is None:
            return
        table = self._table(partition.file)
        if not self.schema.names:
            yield pa.RecordBatch.from_arrays([pa.nulls(table.num_rows)], ["_"]).select([])
            return
        columns = [_fit(table.column(field.name).combine_chunks(), field.type) for field in self.schema]
        yield from pa.Table.from_arrays(columns, schema=self.schema).to_batches(max_chunksize=10_000)

    def _table(self, file: Path) -> pa.Table:
        table = pq.read_table(file, partitioning=None)
        return table if self.predicate is None else table.filter(_mask(self.predicate))


class GreedySource(ParquetSource):
    """Takes `=` and IS NOT NULL from Spark's own push-down permanently."""

    @classmethod
    def name(cls) -> str:
        return FORMAT + "_greedy"

    def reader(self, schema: StructType) -> DataSourceReader:
        return GreedyReader(dict(self.options), schema)


class GreedyReader(ParquetReader):
    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        conjunct_list = [
            tree.Comparison("=", tree.Column(f.attribute), tree.Literal(f.value, LONG)) for f in filters if isinstance(f, EqualTo)
        ]
        self.predicate = tree.conjunction(tuple(conjunct_list))
        yield from (f for f in filters if not isinstance(f, EqualTo | IsNotNull))


def _size(files: list[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def _fit(array: pa.Array, target_type: pa.DataType) -> pa.Array:
    """The values with only the requested nested fields."""
    if array.type.equals(target_type):
        return array
    if pa.types.is_struct(target_type):
        children = [_fit(array.field(field.name), field.type) for field in target_type]
        return pa.StructArray.from_arrays(children, fields=list(target_type), mask=array.is_null())
    if pa.types.is_list(target_type):
        return pa.ListArray.from_arrays(
            array.offsets, _fit(array.values, target_type.value_type), type=target_type, mask=array.is_null()
        )
    return array.cast(target_type)


def _mask(predicate: tree.Expression) -> pc.Expression:
    match predicate:
        case tree.Column(path):
            return pc.field(*path)
        case tree.Literal(value, _):
            return pc.scalar(value)
        case tree.And(parts):
            return reduce(and_, [_mask(part) for part in parts], pc.scalar(True))
        case tree.Or(parts):
            return reduce(or_, [_mask(part) for part in parts], pc.scalar(False))
        case tree.Not(part):
            return ~_mask(part)
        case tree.IsNull(part):
            return _mask(part).is_null()
        case tree.In(operand, options):
            return reduce(or_, [_mask(operand) == _mask(option) for option in options])
        case tree.StringMatch("startswith", operand, pattern):
            return pc.starts_with(_mask(operand), pattern)
        case tree.StringMatch("endswith", operand, pattern):
            return pc.ends_with(_mask(operand), pattern)
        case tree.StringMatch("contains", operand, pattern):
            return pc.match_substring(_mask(operand), pattern)
        case tree.Comparison(op, left, right):
            return _comparison(op, _mask(left), _mask(right))
    raise AssertionError(f"the rule handed over {predicate}")


def _comparison(op: str, left: pc.Expression, right: pc.Expression) -> pc.Expression:
    match op:
        case "=":
            return left == right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
    return pc.coalesce(left == right, pc.scalar(False)) | (left.is_null() & right.is_null())
