"""Options of object stores: of a read or write, of the session, and those of Hadoop's connectors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from delta_py.errors import InvalidOptionError
from delta_py.storage.store_options import StorageOptions
from spark_plugin.options.common import SESSION
from spark_plugin.options.read_options import catalog_entry, catalog_options, read_options
from spark_plugin.options.storage import of_hadoop, session_storage, storage_options
from spark_plugin.options.streaming_options import stream_read_options, stream_write_options
from spark_plugin.options.write_options import write_options

S3, GS, AZ = "s3a://lake/t", "gs://lake/t", "abfss://lake@acme.dfs.core.windows.net/t"


@pytest.mark.parametrize(
    ("path", "hadoop", "expected"),
    [
        (S3, {"fs.s3a.access.key": "A", "fs.s3a.secret.key": "B"}, {"s3.access_key_id": "A", "s3.secret_access_key": "B"}),
        ("s3://lake/t", {"fs.s3a.session.token": "T"}, {"s3.session_token": "T"}),
        (S3, {"fs.s3a.access.key": "A", "fs.s3a.bucket.lake.access.key": "own"}, {"s3.access_key_id": "own"}),
        (S3, {"fs.s3a.bucket.other.access.key": "theirs"}, {}),
        (S3, {"fs.s3a.endpoint": "http://minio:9000"}, {"s3.endpoint": "http://minio:9000"}),
        (S3, {"fs.s3a.endpoint": "minio:9000"}, {"s3.endpoint": "https://minio:9000"}),
        (
            S3,
            {"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false"},
            {"s3.endpoint": "http://minio:9000"},
        ),
        (S3, {"fs.s3a.endpoint": "s3.eu-west-1.amazonaws.com"}, {"s3.region": "eu-west-1"}),
        (S3, {"fs.s3a.endpoint": "s3.amazonaws.com", "fs.s3a.endpoint.region": "eu-north-1"}, {"s3.region": "eu-north-1"}),
        (S3, {"fs.s3a.path.style.access": "true"}, {"s3.path_style": "true"}),
        (S3, {"fs.s3a.requester.pays.enabled": "true"}, {"s3.requester_pays": "true"}),
        (
            S3,
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"s3.anonymous": "true"},
        ),
        (S3, {"fs.gs.project.id": "p"}, {}),
        (GS, {"fs.gs.project.id": "p", "fs.s3a.access.key": "A"}, {"gcs.project": "p"}),
        (GS, {"fs.gs.auth.service.account.json.keyfile": "/k"}, {"gcs.service_account_file": "/k"}),
        (GS, {"google.cloud.auth.service.account.json.keyfile": "/k"}, {"gcs.service_account_file": "/k"}),
        (GS, {"fs.gs.auth.type": "UNAUTHENTICATED"}, {"gcs.anonymous": "true"}),
        (AZ, {"fs.azure.account.key.acme.dfs.core.windows.net": "K"}, {"azure.account_key": "K"}),
        (AZ, {"fs.azure.account.key.acme.blob.core.windows.net": "K"}, {"azure.account_key": "K"}),
        (
            "abfss://lake@acme.dfs.core.usgovcloudapi.net/t",
            {
                "fs.azure.account.key.acme.dfs.core.usgovcloudapi.net": "K",
                "fs.azure.sas.fixed.token.acme.dfs.core.windows.net": "S",
            },
            {"azure.account_key": "K"},
        ),
        (AZ, {"fs.azure.account.key.other.dfs.core.windows.net": "K"}, {}),
        (AZ, {"fs.azure.sas.fixed.token.acme.dfs.core.windows.net": "S"}, {"azure.sas_token": "S"}),
        (AZ, {"fs.azure.sas.lake.acme.blob.core.windows.net": "S"}, {"azure.sas_token": "S"}),
        (
            AZ,
            {
                "fs.azure.account.oauth2.client.id.acme.dfs.core.windows.net": "I",
                "fs.azure.account.oauth2.client.secret.acme.dfs.core.windows.net": "X",
                "fs.azure.account.oauth2.client.endpoint.acme.dfs.core.windows.net": "https://login.example/ten/oauth2/token",
            },
            {"azure.client_id": "I", "azure.client_secret": "X", "azure.tenant_id": "ten"},
        ),
        ("/data/t", {"fs.s3a.access.key": "A"}, {}),
    ],
)
def test_settings_of_hadoop_are_options_of_the_paths_store(path: str, hadoop: dict[str, str], expected: dict[str, str]) -> None:
    assert of_hadoop(hadoop, path) == expected
    StorageOptions.of(expected)


def test_options_override_settings_and_settings_override_hadoop() -> None:
    confs = {
        "spark.hadoop.fs.s3a.access.key": "hadoop",
        "spark.hadoop.fs.s3a.secret.key": "hadoop",
        "spark.pydelta.s3.secret_access_key": "own",
        "spark.pydelta.s3.region": "own",
    }
    session = session_storage(confs, {}, S3)
    options = storage_options({"S3.REGION": "given", "mergeSchema": "true"}, session)
    credentials = (options.get("s3.access_key_id"), options.get("s3.secret_access_key"), options.get("s3.region"))
    assert credentials == ("hadoop", "own", "given")


def test_context_settings_override_those_of_the_session() -> None:
    confs = {"spark.hadoop.fs.s3a.access.key": "session"}
    assert session_storage(confs, {"fs.s3a.access.key": "context"}, S3) == {"s3.access_key_id": "context"}


def test_dynamodb_log_store_setting_applies_to_our_commits() -> None:
    confs = {
        "spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore",
        "spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName": "commits",
    }
    assert session_storage(confs, {}, S3) == {"s3.dynamodb_table": "commits", "s3.dynamodb_region": "us-east-1"}
    assert session_storage(confs, {}, "s3://lake/t") == {}, "the log store is set for s3a alone"


PARSERS = {
    "read": read_options,
    "stream read": lambda options: stream_read_options(options).batch,
    "write": lambda options: write_options(options, overwrite=False),
    "stream write": lambda options: stream_write_options({**options, "checkpointLocation": "/c"}, complete=False),
}


@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS)
def test_options_of_stores_are_taken_in_reads_and_writes(parse: Any) -> None:
    session = json.dumps({"storage": {"s3.secret_access_key": "hush", "s3.region": "there"}})
    parsed = parse({"path": S3, "s3.endpoint": "http://127.0.0.1:1", "S3.Region": "here", SESSION: session})
    assert parsed.storage.get("s3.endpoint") == "http://127.0.0.1:1"
    assert (parsed.storage.get("s3.region"), parsed.storage.get("s3.secret_access_key")) == ("here", "hush")
    assert "hush" not in repr(parsed)


@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS)
def test_unknown_option_of_a_store_is_refused_with_the_nearest(parse: Any) -> None:
    with pytest.raises(InvalidOptionError, match=r"s3\.access_key_id") as caught:
        parse({"path": S3, "s3.acces_key_id": "A"})
    assert caught.value.error_class == "DELTA_UNKNOWN_OPTION"


def test_catalog_entry_keeps_options_of_stores_but_no_secret() -> None:
    entry = {"provider": "pydelta", "path": S3}
    entry_options = {**entry, "s3.region": "here", "option.s3.region": "here"}
    catalog_options_kept = catalog_entry(entry_options)
    assert catalog_options_kept is not None and catalog_options(catalog_options_kept)["s3.region"] == "here"
    for secret in ("s3.secret_access_key", "AWS_SECRET_ACCESS_KEY"):
        with pytest.raises(InvalidOptionError, match=r"spark\.pydelta\.s3\.secret_access_key") as caught:
            catalog_entry({**entry, secret: "hush", f"option.{secret}": "hush"})
        assert "hush" not in str(caught.value)
