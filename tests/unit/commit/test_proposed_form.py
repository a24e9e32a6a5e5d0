"""What a commit depends on, as JSON and back."""

from __future__ import annotations

import orjson

from delta_py.commit.prepared import ReadSet
from delta_py.commit.proposed_form import reads_from_json, reads_to_json
from delta_py.protocol.actions import AddFile, Metadata, Protocol
from delta_py.protocol.table_config import TableConfig
from delta_py.scan.partition_set import PartitionSet
from delta_py.types.schema import LONG, DataType, PrimitiveType, StructField, StructType, schema_to_json
from tests.support.stores.memory_store import MemoryStore


def config_of(data_type: DataType) -> TableConfig:
    return TableConfig(Protocol(1, 2), Metadata("m", schema_to_json(StructType((StructField("p", data_type),))), ("p",)))


def test_partition_reads_round_trip_as_json_or_cover_any_file() -> None:
    partitions = PartitionSet.of(config_of(LONG), [{"p": "1"}, {"p": None}, {"p": str(2**40)}], "Europe/Paris")
    data = reads_to_json(ReadSet(may_match=partitions.may_match, partitions=(partitions,)))
    adds = [AddFile("f", {"p": text}, 1, 1) for text in ("01", "2", None)]
    read = reads_from_json(data, MemoryStore(), config_of(LONG))
    assert read.may_match is not None and read.may_match(adds) == [True, False, True]
    assert read.row_descriptions == [str(partitions)]
    assert reads_to_json(read) == data
    narrow = reads_from_json(data, MemoryStore(), config_of(PrimitiveType("integer")))
    assert narrow.may_match is not None and narrow.may_match(adds) == [True] * 3
    older = {key: value for key, value in orjson.loads(data).items() if key != "partitions"}
    assert reads_from_json(orjson.dumps(older), MemoryStore(), config_of(LONG)).may_match is None
