"""Casts of values for columns as a client of Spark Connect asks for them; without a session."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    VariantType,
)

from delta_py.errors import UnsupportedOperationError
from delta_py.types.schema import STRING
from spark_plugin.dml.assignments import _cast_for_write
from spark_plugin.dml.store_assignment import StoreAssignment, Typed
from spark_plugin.internals.connect_adapter import ConnectAdapter

MODES = {"STRICT": "EVAL_MODE_ANSI", "ANSI": "EVAL_MODE_ANSI", "LEGACY": "EVAL_MODE_LEGACY"}

functions = pytest.importorskip("pyspark.sql.connect.functions")


def cast(policy: str, source: DataType, wanted: DataType) -> str:
    rule = StoreAssignment(ConnectAdapter(None), policy, evolves=False)
    return str(rule.cast(Typed(functions.col("v"), source), wanted, "c")._expr.to_plan(None).cast)


@pytest.mark.parametrize("source", [IntegerType(), DecimalType(5, 2), DateType(), TimestampType(), BinaryType()])
@pytest.mark.parametrize(("policy", "mode"), MODES.items())
def test_every_policy_takes_simple_values_as_text(policy: str, mode: str, source: DataType) -> None:
    asked = cast(policy, source, StringType())
    assert mode in asked and "string {" in asked and 'unparsed_identifier: "v"' in asked
    rule = StoreAssignment(ConnectAdapter(None), policy, evolves=False)
    set_value = _cast_for_write(rule, Typed(functions.col("v"), source), STRING, "c")
    assert str(set_value._expr.to_plan(None).cast) == asked


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        *((LongType(), IntegerType()), (StringType(), DateType())),
        *((VariantType(), StringType()), (ArrayType(LongType()), StringType())),
    ],
)
def test_strict_refuses_what_only_the_server_can_tell(source: DataType, wanted: DataType) -> None:
    with pytest.raises(UnsupportedOperationError, match=r"c needs a cast to .* STRICT, which cannot be followed"):
        cast("STRICT", source, wanted)
    assert "EVAL_MODE_ANSI" in cast("ANSI", source, wanted)
