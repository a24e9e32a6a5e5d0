"""Options as Spark passes them: text under lower-case names."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from functools import partial

import pytest

from delta_py.definition.request import WriteRequest
from delta_py.errors import ChangeDataFeedError, DeltaError, InvalidOptionError, UnsupportedOperationError
from delta_py.time_zones import local_time_zone
from delta_py.types.sizes import parse_size
from spark_plugin.options.catalog_session_settings import as_option, read_part
from spark_plugin.options.common import (
    CLUSTER_BY,
    CONFS,
    MODE,
    PARTITION_BY,
    SESSION,
    WRITE_CONFS,
)
from spark_plugin.options.read_options import (
    ChangeRange,
    ReadOptions,
    catalog_entry,
    catalog_options,
    local_path,
    read_options,
    with_catalog_entry,
)
from spark_plugin.options.streaming_options import stream_read_options
from spark_plugin.options.write_options import write_options


def read(**options: str) -> ReadOptions:
    return read_options({"path": "/t", **options})


def refusal(error: type[DeltaError], **options: str) -> DeltaError:
    with pytest.raises(error) as caught:
        read(**options)
    return caught.value


def milliseconds(*parts: int) -> int:
    return round(datetime(*parts, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc,arg-type]


# ---------------------------------------------------------------- names


def test_read_options_in_any_case_are_known() -> None:
    parsed = read(VERSIONASOF="3", ignoremissingfiles="TRUE", Columns="a", FOLLOWLATEST="false")
    assert (parsed.version, parsed.ignore_missing_files, parsed.columns, parsed.follow_latest) == (3, True, ("a",), False)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("versionAsOff", "versionAsOf"), ("timestamp", "timestampAsOf"), ("filters", "filter"), ("column", "columns")],
)
def test_unknown_read_option_is_refused_with_the_nearest_one(name: str, nearest: str) -> None:
    error = refusal(InvalidOptionError, **{name: "1"})
    assert error.error_class == "DELTA_UNKNOWN_OPTION"
    assert repr(name) in str(error) and f"Did you mean {nearest}?" in str(error)
    assert error.message_parameters == {"option": name, "nearest": nearest}


def test_write_option_unknown_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InvalidOptionError, match="mergeSchema"):
        write_options({"path": "/t", "merge_schema": "true"}, overwrite=False)


@pytest.mark.parametrize("name", ["foo", "header", "inferSchema", "sep", "quote"])
def test_option_that_is_near_no_known_one_gets_no_suggestion(name: str) -> None:
    for parse in (read_options, partial(write_options, overwrite=False)):
        with pytest.raises(InvalidOptionError) as caught:
            parse({"path": "/t", name: "1"})
        assert caught.value.message_parameters == {"option": name, "nearest": None}
        assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("name", ["logAnswer", "joinPlannings"])
def test_older_option_is_never_suggested(name: str) -> None:
    error = refusal(InvalidOptionError, **{name: "1"})
    assert error.message_parameters["nearest"] is None and "Did you mean" not in str(error)


def test_read_options_of_streams_have_no_meaning_in_a_batch() -> None:
    assert read(maxFilesPerTrigger="10", skipChangeCommits="true") == read()


def test_read_options_of_a_catalog_table_need_its_provider() -> None:
    entry = {"owner": "me", "location": "file:/t", "comment": "all"}
    assert read(provider="pydelta", **entry) == read()
    assert refusal(InvalidOptionError, **entry).error_class == "DELTA_UNKNOWN_OPTION"


# ---------------------------------------------------------------- the path


def test_path_missing_is_refused_with_what_to_type() -> None:
    with pytest.raises(InvalidOptionError, match="'path' is not specified") as caught:
        read_options({})
    assert "save(path)" in str(caught.value)


def test_paths_option_takes_one_path_and_refuses_two() -> None:
    assert read_options({"paths": '["/a"]'}).path == "/a"
    with pytest.raises(InvalidOptionError, match="got 2 paths"):
        read_options({"paths": '["/a", "/b"]'})


@pytest.mark.parametrize("text", ["", "[", "5", "null", "[5]", '"/a"', "{}", "[[]]", "[" * 100_000])
def test_paths_that_are_no_list_of_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        read_options({"paths": text})
    assert caught.value.message_parameters["option"] in ("path", "paths")


# ---------------------------------------------------------------- time travel


@pytest.mark.parametrize(
    ("text", "version"), [("0", 0), ("12", 12), ("+1", 1), ("007", 7), ("0" * 5000 + "7", 7), (str(2**63 - 1), 2**63 - 1)]
)
def test_version_that_is_a_whole_number_is_taken(text: str, version: int) -> None:
    assert read(versionAsOf=text).version == version


@pytest.mark.parametrize("text", ["-1", "x", "", " 1", "1.0", "1e3", "1_000", str(2**63), "9" * 30, "\u0663", "++1"])
def test_version_that_is_none_is_refused(text: str) -> None:
    error = refusal(InvalidOptionError, versionAsOf=text)
    assert (error.error_class, error.sql_state) == ("DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE", "42604")
    assert repr(text) in str(error)


LONG_NUMBER = "9" * 5_000  # more digits than Python converts to a number


@pytest.mark.parametrize("name", ["versionAsOf", "startingVersion"])
def test_version_of_very_many_digits_is_refused(name: str) -> None:
    refusal(InvalidOptionError, readChangeFeed="true", **{name: LONG_NUMBER})


@pytest.mark.parametrize("name", ["maxFilesPerTrigger", "maxBytesPerTrigger"])
@pytest.mark.parametrize("text", [LONG_NUMBER, str(2**63), "9" * 19 + "p", "0", "-1", "x", "\u0663"])
def test_limit_of_a_batch_that_is_none_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidOptionError, match=name):
        stream_read_options({"path": "/t", name: text})


def test_number_of_files_in_a_batch_is_one_that_spark_can_hold() -> None:
    assert stream_read_options({"path": "/t", "maxFilesPerTrigger": str(2**31 - 1)}).limits.files == 2**31 - 1
    with pytest.raises(InvalidOptionError, match="maxFilesPerTrigger"):
        stream_read_options({"path": "/t", "maxFilesPerTrigger": str(2**31)})


def test_version_and_timestamp_together_are_refused() -> None:
    error = refusal(InvalidOptionError, versionAsOf="1", timestampAsOf="2024-01-01")
    assert (error.error_class, error.sql_state) == ("DELTA_ONEOF_IN_TIMETRAVEL", "42601")


def test_time_travel_with_a_change_feed_is_refused() -> None:
    error = refusal(InvalidOptionError, versionAsOf="1", readChangeFeed="true", startingVersion="0")
    assert error.error_class == "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS"


@pytest.mark.parametrize(
    "other", [{"versionAsOf": "1"}, {"timestampAsOf": "2024"}, {"readChangeFeed": "true", "startingVersion": "0"}]
)
def test_follow_latest_with_a_version_is_refused(other: dict[str, str]) -> None:
    assert "followLatest" in str(refusal(InvalidOptionError, followLatest="true", **other))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024", (2024, 1, 1)),
        ("2024-03", (2024, 3, 1)),
        ("2024-03-31", (2024, 3, 31)),
        ("2024-3-1", (2024, 3, 1)),
        ("2024-03-31 12:30:15", (2024, 3, 31, 12, 30, 15)),
        ("2024-03-31T12:30:15.123", (2024, 3, 31, 12, 30, 15, 123000)),
        ("2024-03-31 12:30:15.123456789", (2024, 3, 31, 12, 30, 15, 123000)),
        ("2024-03-31 12:30:15Z", (2024, 3, 31, 12, 30, 15)),
        ("2024-03-31 12:30:15+01:00", (2024, 3, 31, 11, 30, 15)),
        ("2024-03-31 12:30:15 UTC", (2024, 3, 31, 12, 30, 15)),
        ("2024-03-31 12:30:15 GMT+1", (2024, 3, 31, 11, 30, 15)),
        ("2024-03-31 12:30:15 Europe/Paris", (2024, 3, 31, 10, 30, 15)),
        ("2024-01-31T12:30:15Europe/Paris", (2024, 1, 31, 11, 30, 15)),
    ],
)
def test_timestamp_in_each_spelling_of_spark_is_taken(text: str, moment: tuple[int, ...]) -> None:
    assert read(timestampAsOf=text, timeZone="UTC").timestamp_ms == milliseconds(*moment)


def test_timestamp_without_an_offset_is_in_the_session_time_zone() -> None:
    session = json.dumps({"timeZone": "Asia/Tokyo"})
    tokyo = read(timestampAsOf="2024-01-01 09:00:00", **{SESSION: session})
    own_zone = read(timestampAsOf="2024-01-01 09:00:00", timeZone="America/New_York", **{SESSION: session})
    assert tokyo.timestamp_ms == milliseconds(2024, 1, 1)
    assert own_zone.timestamp_ms == milliseconds(2024, 1, 1, 14)


@pytest.mark.parametrize(
    "text", ["nope", "", "2024-13-01", "2024-02-30", "2024-01-01 25:00:00", "2024-01-01 10:00:00 Nowhere/Land"]
)
def test_timestamp_that_is_none_is_refused(text: str) -> None:
    error = refusal(InvalidOptionError, timestampAsOf=text)
    assert (error.error_class, error.sql_state) == ("DELTA_TIMESTAMP_INVALID", "42K09")


def test_local_time_zone_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Paris")
    assert local_time_zone() == "Europe/Paris"
    monkeypatch.setenv("TZ", "no such zone")
    assert local_time_zone() != "no such zone"


# ---------------------------------------------------------------- the change feed


def test_change_feed_bounds_are_parsed() -> None:
    assert read(readChangeFeed="true", startingVersion="2", endingVersion="5").changes == ChangeRange(2, 5)
    by_time = read(readChangeData="true", startingTimestamp="2024-01-01", endingVersion="5", timeZone="UTC").changes
    assert by_time == ChangeRange(ending_version=5, starting_timestamp_ms=milliseconds(2024, 1, 1))


def test_change_feed_may_be_out_of_range_if_the_session_says_so() -> None:
    session = as_option(read_part({"spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled": "true"}, None))
    options = {"path": "/t", "readChangeFeed": "true", "startingVersion": "9", SESSION: session}
    assert read_options(options).changes == ChangeRange(9, allow_out_of_range=True)


def test_change_feed_version_goes_before_a_timestamp() -> None:
    both = {"startingVersion": "2", "startingTimestamp": "2024", "endingVersion": "5", "endingTimestamp": "never"}
    assert read(readChangeFeed="true", **both).changes == ChangeRange(2, 5)
    start = {"startingVersion": "2", "startingTimestamp": "2024", "endingTimestamp": "2024-01-01"}
    assert read(readChangeFeed="true", timeZone="UTC", **start).changes == ChangeRange(
        starting_version=2, ending_timestamp_ms=milliseconds(2024, 1, 1)
    )


@pytest.mark.parametrize("options", [{}, {"endingVersion": "3"}])
def test_change_feed_without_a_start_is_refused(options: dict[str, str]) -> None:
    assert refusal(ChangeDataFeedError, readChangeFeed="true", **options).error_class == "DELTA_NO_START_FOR_CDC_READ"


def test_change_feed_with_a_start_that_is_no_version_is_refused() -> None:
    assert refusal(InvalidOptionError, readChangeFeed="true", startingVersion="latest").error_class == "DELTA_VERSION_INVALID"


def test_change_feed_bounds_without_the_feed_are_refused() -> None:
    assert "readChangeFeed" in str(refusal(InvalidOptionError, startingVersion="0"))


# ---------------------------------------------------------------- other values


@pytest.mark.parametrize("name", ["readChangeFeed", "metadataColumn", "ignoreMissingFiles", "followLatest", "pruning"])
def test_flag_with_another_value_is_refused(name: str) -> None:
    error = refusal(InvalidOptionError, **{name: "yes"})
    assert error.error_class == "DELTA_ILLEGAL_OPTION"
    assert name in str(error) and "'yes'" in str(error)


@pytest.mark.parametrize("name", ["Mars", "europe/paris", "+25:00", ""])
def test_time_zone_that_is_none_is_refused(name: str) -> None:
    for call in (read, write):
        with pytest.raises(InvalidOptionError, match="timeZone") as caught:
            call(timeZone=name)
        assert caught.value.error_class == "DELTA_ILLEGAL_OPTION"


@pytest.mark.parametrize("name", ["Europe/Paris", "PST", "EST", "UTC+1", "+01:00", "Z"])
def test_time_zone_is_a_region_or_an_offset(name: str) -> None:
    assert read(timeZone=name).session.time_zone == name
    assert write(timeZone=name).time_zone == name


@pytest.mark.parametrize(
    ("text", "columns"),
    [("a", ("a",)), (" a, b ,c", ("a", "b", "c")), ("`a,b`, `c``d`, e", ("a,b", "c`d", "e")), ("a,,b,", ("a", "b"))],
)
def test_columns_are_split_at_commas_outside_of_backticks(text: str, columns: tuple[str, ...]) -> None:
    assert read(columns=text).columns == columns


def test_columns_without_a_name_are_refused() -> None:
    assert "columns" in str(refusal(InvalidOptionError, columns=" , "))


@pytest.mark.parametrize("text", ["a, b, A", "a.b, `a.b`"])
def test_columns_that_are_named_twice_are_refused(text: str) -> None:
    assert refusal(InvalidOptionError, columns=text).error_class == "DELTA_DUPLICATE_COLUMNS_FOUND"


def test_session_settings_are_taken_and_have_defaults() -> None:
    settings = {"timeZone": "UTC", "maxPartitionBytes": 1000, "openCostInBytes": 10, "wantedPartitions": 7}
    session = read(**{SESSION: json.dumps(settings)}).session
    assert (session.max_partition_bytes, session.open_cost_bytes, session.target_partitions) == (1000, 10, 7)
    plain = read().session
    assert (plain.max_partition_bytes, plain.open_cost_bytes) == (128 << 20, 4 << 20)
    assert plain.target_partitions == 2 * plain.native_partitions == 2 * (os.cpu_count() or 1)


# ---------------------------------------------------------------- writing


def write(options: dict[str, str] | None = None, /, **more: str) -> WriteRequest:
    """The request of an append by save(), or in the mode of the option MODE."""
    return write_options({"path": "/t", **(options or {}), **more}, overwrite=False).request


def overwrite(options: dict[str, str] | None = None, /, **more: str) -> WriteRequest:
    return write({MODE: "overwrite", **(options or {})}, **more)


def session_confs(**confs: str) -> str:
    return json.dumps({"timeZone": "Asia/Tokyo", CONFS: {WRITE_CONFS[name]: value for name, value in confs.items()}})


def write_refusal(options: dict[str, str]) -> InvalidOptionError:
    with pytest.raises(InvalidOptionError) as caught:
        write(options)
    return caught.value


def test_write_mode_comes_from_the_option_or_else_from_spark() -> None:
    assert [write_options({"path": "/t"}, overwrite=spark).request.mode for spark in (False, True)] == ["append", "overwrite"]
    for save_mode, mode in {
        "append": "append",
        "Append": "append",
        "errorIfExists": "error",
        "error": "error",
        "ignore": "ignore",
    }.items():
        assert write({MODE: save_mode}).mode == mode
    assert "upsert" in str(write_refusal({MODE: "upsert"}))
    assert write_refusal({"isolationLevel": "ReadCommitted"}).error_class == "DELTA_INVALID_ISOLATION_LEVEL"


def test_write_without_options_asks_for_nothing() -> None:
    assert write(timeZone="UTC") == WriteRequest("append", configuration={})


def test_write_options_in_any_case_reach_the_request() -> None:
    request = overwrite(
        {PARTITION_BY: '["a", "b c"]', CLUSTER_BY: '["d"]', "delta.appendonly": "true"},
        MERGESCHEMA="true",
        replacewhere="day = 'mon'",
        txnappid="loader",
        TxnVersion="7",
        userMetadata="load 7",
        DATACHANGE="FALSE",
        maxrecordsperfile="1000",
        targetFileSize="64 mb",
        Compression="Snappy",
        isolationlevel="snapshotisolation",
        timeZone="Europe/Paris",
        optimizeWrite="true",
    )
    assert request == WriteRequest(
        mode="overwrite",
        partition_by=("a", "b c"),
        configuration={"delta.appendonly": "true"},
        cluster_by=("d",),
        merge_schema=True,
        replace_where="day = 'mon'",
        txn_app_id="loader",
        txn_version=7,
        user_metadata="load 7",
        data_change=False,
        max_records_per_file=1000,
        target_file_bytes=64 << 20,
        compression="Snappy",
        isolation_level="snapshotisolation",
        time_zone="Europe/Paris",
    )


def test_write_settings_of_the_session_replace_missing_options() -> None:
    confs = session_confs(
        mergeSchema="true",
        partitionOverwriteMode="DYNAMIC",
        txnAppId="a",
        txnVersion="3",
        userMetadata="m",
        maxRecordsPerFile="5",
    )
    by_session = overwrite({SESSION: confs})
    assert (by_session.merge_schema, by_session.partition_overwrite_mode, by_session.user_metadata) == (True, "dynamic", "m")
    assert (by_session.txn_app_id, by_session.txn_version, by_session.max_records_per_file) == ("a", 3, 5)
    assert by_session.time_zone == "Asia/Tokyo"
    settings = {
        "mergeSchema": "false",
        "partitionOverwriteMode": "static",
        "txnAppId": "b",
        "txnVersion": "4",
        "userMetadata": "n",
    }
    by_option = overwrite({**settings, SESSION: confs}, maxRecordsPerFile="0")
    assert (by_option.merge_schema, by_option.partition_overwrite_mode, by_option.user_metadata) == (False, "static", "n")
    assert (by_option.txn_app_id, by_option.txn_version, by_option.max_records_per_file) == ("b", 4, None)


@pytest.mark.parametrize("mode", ["append", "error", "ignore"])
def test_write_options_for_overwrite_do_not_act_in_other_modes(mode: str) -> None:
    confs = session_confs(partitionOverwriteMode="dynamic")
    request = write({MODE: mode, SESSION: confs}, overwriteSchema="true", partitionOverwriteMode="dynamic")
    assert (request.mode, request.replace_where) == (mode, None)
    assert "mode overwrite" in str(write_refusal({"replaceWhere": "a = 1", MODE: mode}))


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"replaceWhere": "a = 1", "overwriteSchema": "true"}, "DELTA_OVERWRITE_SCHEMA_WITH_REPLACE_WHERE"),
        (
            {"replaceWhere": "a = 1", "partitionOverwriteMode": "dynamic"},
            "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
        ),
        (
            {"overwriteSchema": "true", "partitionOverwriteMode": "dynamic"},
            "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        ),
        (
            {"overwriteSchema": "true", SESSION: session_confs(partitionOverwriteMode="dynamic")},
            "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        ),
        ({"txnAppId": "a"}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"),
        ({"txnVersion": "1"}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"),
        ({SESSION: session_confs(txnVersion="1")}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"),
        ({"txnAppId": "a", SESSION: session_confs(txnVersion="1")}, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"),
    ],
)
def test_write_options_that_contradict_each_other_are_refused(options: dict[str, str], condition: str) -> None:
    assert write_refusal({MODE: "overwrite", **options}).error_class == condition


def test_write_replace_where_overrides_the_dynamic_session_mode() -> None:
    confs = session_confs(partitionOverwriteMode="dynamic")
    request = overwrite({SESSION: confs}, replaceWhere="a = 1")
    assert (request.replace_where, request.partition_overwrite_mode) == ("a = 1", "static")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mergeSchema", "yes"),
        ("overwriteSchema", ""),
        ("dataChange", "0"),
        ("optimizeWrite", "on"),
        ("replaceWhere", "  "),
        ("partitionOverwriteMode", "both"),
        ("maxRecordsPerFile", "many"),
        ("maxRecordsPerFile", "1e3"),
        ("targetFileSize", "0"),
        ("targetFileSize", "-1"),
        ("targetFileSize", "big"),
        ("compression", "brotli"),
    ],
)
def test_write_option_with_an_invalid_value_is_refused(name: str, value: str) -> None:
    error = write_refusal({MODE: "overwrite", name: value})
    assert error.error_class == "DELTA_ILLEGAL_OPTION"
    assert name in str(error) and repr(value) in str(error)


@pytest.mark.parametrize("text", ["x", "1.0", "", str(2**63), "\u0663"])
def test_write_transaction_version_must_be_a_whole_number(text: str) -> None:
    assert "txnVersion" in str(write_refusal({"txnAppId": "a", "txnVersion": text}))
    assert "txnAppId" in str(write_refusal({"txnAppId": "", "txnVersion": "1"}))


@pytest.mark.parametrize("name", ["replaceUsing", "replaceOn"])
def test_replace_matching_rows_needs_a_registered_session(name: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=name) as caught:
        overwrite({name: "id"})
    assert "register(spark)" in str(caught.value)
    assert write_options({"path": "/t", MODE: "append", name: "id"}, overwrite=False).mode == "append"


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("128m", 128 << 20), ("64 KB", 64 << 10), ("1g", 1 << 30), ("m", None), ("9" * 5000, None)]
)
def test_size_in_each_spelling_of_spark_is_taken(text: str, size: int | None) -> None:
    assert parse_size(text) == size


# ---------------------------------------------------------------- entries of a catalog


def test_catalog_entry_keeps_options_and_the_spelling_of_path() -> None:
    entry_options = {
        "provider": "pydelta",
        "owner": "me",
        "path": "file:/a b%20c",
        "p": "q",
        "versionasof": "1",
        "option.versionasof": "1",
    }
    entry = catalog_entry(entry_options)
    assert entry is not None and json.loads(entry) == {"path": "/a b%20c", "versionasof": "1"}
    assert with_catalog_entry({}, entry) == {"path": "/a b%20c", "versionasof": "1"}
    assert with_catalog_entry({"path": "/other"}, entry) == {"path": "/other"}
    assert read_options(entry_options).version == 1
    assert catalog_entry({"path": "/t"}) is None


def test_catalog_entry_with_properties_of_delta_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match=r"TBLPROPERTIES \(delta\.appendonly\)"):
        read_options({"provider": "pydelta", "path": "/t", "delta.appendonly": "true"})


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("file:/a", "/a"),
        ("file:///a b", "/a b"),
        ("/a", "/a"),
        ("s3://bucket/a", "s3://bucket/a"),
        ("file://host/a", "file://host/a"),
    ],
)
def test_local_path_of_a_location_is_taken_literally(location: str, path: str) -> None:
    assert local_path(location) == path


@pytest.mark.parametrize("name", ["pydelta.schema", "pydelta.files", "PyDelta.View", "pydelta.session"])
def test_catalog_entry_may_not_give_options_of_our_own(name: str) -> None:
    entry_options = {"provider": "pydelta", "path": "/t", name: "x", f"option.{name}": "x"}
    with pytest.raises(InvalidOptionError, match=name.lower()):
        read_options(entry_options)
    with pytest.raises(InvalidOptionError, match=name.lower()):
        catalog_entry(entry_options)
    for read in (catalog_options, lambda entry: with_catalog_entry({}, entry)):
        with pytest.raises(InvalidOptionError, match="pydelta's own"):
            read(json.dumps({"path": "/t", name.lower(): "x"}))


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "5", "null", '"x"', "[" * 100_000, '{"path": 5}', '{"path": "/t", "filter": null}', '{"x": {}}']
)
def test_catalog_entry_whose_options_are_no_texts_is_refused(text: str) -> None:
    for read in (catalog_options, lambda entry: with_catalog_entry({}, entry)):
        with pytest.raises(InvalidOptionError, match="entry in the catalog"):
            read(text)


@pytest.mark.parametrize(
    ("option", "setting", "expected"),
    [(None, None, False), (None, "true", True), ("false", "true", False), ("TRUE", "false", True), ("true", None, True)],
)
def test_setting_stands_in_for_ignore_missing_files(option: str | None, setting: str | None, expected: bool) -> None:
    options = {} if option is None else {"ignoreMissingFiles": option}
    if setting is not None:
        options[SESSION] = as_option(read_part({"spark.sql.files.ignoreMissingFiles": setting}, None))
    assert read(path="/t", **options).ignore_missing_files is expected
    assert stream_read_options({"path": "/t", **options}).batch.ignore_missing_files is expected


@pytest.mark.parametrize(
    ("text", "seconds"), [("true", 3600), ("FALSE", None), ("2 hours", 7200), ("interval 90 seconds", 90), ("1 day", 86400)]
)
def test_lease_of_a_read(text: str, seconds: int | None) -> None:
    assert read(path="/t", readLease=text).lease_seconds == seconds
    assert read(path="/t", **{"pydelta.session": json.dumps({"readLease": text})}).lease_seconds == seconds
    assert read(path="/t", readLease="false", **{"pydelta.session": json.dumps({"readLease": text})}).lease_seconds is None


@pytest.mark.parametrize("text", ["yes", "", "1 second", "2 days", "3 months", "5"])
def test_lease_of_a_time_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="readLease"):
        read(path="/t", readLease=text)
