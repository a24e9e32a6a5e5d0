"""What the source says about a table besides its columns: how new rows have to be written."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from delta_py.protocol.actions import Metadata, Protocol
from delta_py.protocol.table_config import TableConfig
from delta_py.types.schema import LONG, StructField, StructType, schema_to_json
from spark_plugin.schema_conversion import to_spark_schema
from spark_plugin.source.table_facts import FACTS_KEY, with_table_facts

GENERATED = {"delta.generationExpression": "id + 1"}
IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
HASHED = {"delta.constraints.odd": "hash(id) <> 0"}  # only Spark can compute it


def facts(metadata: dict[str, Any], configuration: dict[str, str], *, of_writes: bool) -> dict[str, Any]:
    schema = StructType((StructField("id", LONG), StructField("more", LONG, metadata=metadata)))
    protocol = Protocol(1, 6)
    config = TableConfig(protocol, Metadata("i", schema_to_json(schema), configuration=configuration))
    snapshot = SimpleNamespace(
        schema=schema, config=config, metadata=config.metadata, protocol=protocol, version=7, domain_metadata=dict
    )
    pinned: Any = SimpleNamespace(snapshot=snapshot, options=SimpleNamespace(path="/t", version=None, timestamp_ms=None))
    first = with_table_facts(to_spark_schema(schema), pinned, of_writes=of_writes).fields[0]
    table_facts: dict[str, Any] = json.loads(first.metadata[FACTS_KEY])
    return table_facts


@pytest.mark.parametrize(
    ("metadata", "configuration", "asks"),
    [
        ({}, {}, False),
        ({}, {"delta.constraints.low": "id < 10"}, False),
        ({"CURRENT_DEFAULT": "5"}, {}, False),
        (GENERATED, {}, True),
        (IDENTITY, {}, True),
        ({}, HASHED, True),
    ],
)
def test_rows_that_need_a_save_are_told_where_writes_ask(
    metadata: dict[str, Any], configuration: dict[str, str], asks: bool
) -> None:
    assert facts(metadata, configuration, of_writes=True)["needs_save"] is asks
    write_facts = facts(metadata, configuration, of_writes=False)
    assert "needs_save" not in write_facts and (write_facts["path"], write_facts["version"], write_facts["travels"]) == (
        "/t",
        7,
        False,
    )
