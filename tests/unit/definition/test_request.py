"""WriteRequest.check: invalid writes, and the error of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delta_py.definition.request import WriteRequest
from delta_py.errors import InvalidOptionError


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"mode": "ErrorIfExists"},
        {"mode": "Append", "overwrite_schema": True, "partition_overwrite_mode": "dynamic"},
        {"mode": "overwrite", "overwrite_schema": True},
        {"mode": "overwrite", "replace_where": "a = 1"},
        {"mode": "OVERWRITE", "partition_overwrite_mode": "Dynamic"},
        {"txn_app_id": "job", "txn_version": -(2**63), "isolation_level": "writeserializable"},
        {"max_records_per_file": 1, "target_file_bytes": 1},
        {"max_records_per_file": np.int64(1)},
    ],
)
def test_request_that_a_write_can_carry_out_passes(arguments: dict[str, Any]) -> None:
    WriteRequest(**arguments).check()


@pytest.mark.parametrize(
    ("arguments", "condition", "expected_text"),
    [
        ({"mode": "upsert"}, "INVALID_SAVE_MODE", "'upsert'"),
        ({"mode": "append", "replace_where": "a = 1"}, "DELTA_ILLEGAL_OPTION", "the mode is append"),
        ({"mode": "overwrite", "replace_where": "  "}, "DELTA_ILLEGAL_OPTION", "'  '"),
        ({"mode": "append", "partition_overwrite_mode": "daily"}, "DELTA_ILLEGAL_OPTION", "'daily'"),
        (
            {"mode": "overwrite", "replace_where": "a = 1", "overwrite_schema": True},
            "DELTA_OVERWRITE_SCHEMA_WITH_REPLACE_WHERE",
            "replaceWhere and overwriteSchema",
        ),
        (
            {"mode": "overwrite", "replace_where": "a = 1", "partition_overwrite_mode": "dynamic"},
            "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
            "replaceWhere and partitionOverwriteMode=dynamic",
        ),
        (
            {"mode": "overwrite", "overwrite_schema": True, "partition_overwrite_mode": "dynamic"},
            "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
            "partitionOverwriteMode=static",
        ),
        ({"isolation_level": "ReadCommitted"}, "DELTA_INVALID_ISOLATION_LEVEL", "'ReadCommitted'"),
        ({"txn_app_id": "job"}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", "txnAppId is given without txnVersion"),
        ({"txn_version": 1}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS", "txnVersion is given without txnAppId"),
        ({"txn_app_id": "", "txn_version": 1}, "DELTA_ILLEGAL_OPTION", "'txnAppId'"),
        ({"txn_app_id": "job", "txn_version": 2**63}, "DELTA_ILLEGAL_OPTION", str(2**63)),
        ({"max_records_per_file": 0}, "DELTA_ILLEGAL_OPTION", "'maxRecordsPerFile'"),
        ({"target_file_bytes": -1}, "DELTA_ILLEGAL_OPTION", "'targetFileSize'"),
        ({"user_metadata": "\ud800"}, "DELTA_ILLEGAL_OPTION", "userMetadata"),
        ({"configuration": {"delta.\udfff": "1"}}, "DELTA_ILLEGAL_OPTION", "the name of property"),
        ({"configuration": {"delta.appendOnly": True}}, "DELTA_ILLEGAL_OPTION", "property 'delta.appendOnly' is True"),
        ({"mode": None}, "INVALID_SAVE_MODE", "no write mode None"),
        ({"mode": "overwrite", "replace_where": 3}, "DELTA_ILLEGAL_OPTION", "replaceWhere is 3"),
        ({"mode": "overwrite", "partition_overwrite_mode": None}, "DELTA_ILLEGAL_OPTION", "'partitionOverwriteMode'"),
        ({"compression": 3}, "DELTA_ILLEGAL_OPTION", "compression is 3"),
        ({"max_records_per_file": "7"}, "DELTA_ILLEGAL_OPTION", "'maxRecordsPerFile'"),
        ({"user_metadata": {"job": 1}}, "DELTA_ILLEGAL_OPTION", "userMetadata is {'job': 1}"),
        ({"txn_app_id": "job", "txn_version": "1"}, "DELTA_ILLEGAL_OPTION", "'txnVersion'"),
        ({"txn_app_id": "job", "txn_version": True}, "DELTA_ILLEGAL_OPTION", "'txnVersion'"),
    ],
)
def test_request_that_cannot_be_is_refused_by_its_condition(
    arguments: dict[str, Any], condition: str, expected_text: str
) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        WriteRequest(**arguments).check()
    assert caught.value.error_class == condition
    assert expected_text in str(caught.value)
