"""Storage options by the names of deltalake and polars: what they become, and that no error shows a value."""

from __future__ import annotations

import pytest

from delta_py.errors import DeltaError, InvalidOptionError, UnsupportedOperationError
from delta_py.storage.option_aliases import _ALIASES, renamed_options
from delta_py.storage.store_options import OPTION_NAMES, StorageOptions, is_secret_option


@pytest.mark.parametrize(
    ("options", "renamed"),
    [
        ({"AWS_ACCESS_KEY_ID": "a", "aws_secret_access_key": "b"}, {"s3.access_key_id": "a", "s3.secret_access_key": "b"}),
        ({"AWS_SESSION_TOKEN": "t", "AWS_REGION": "eu"}, {"s3.session_token": "t", "s3.region": "eu"}),
        ({"AWS_ENDPOINT_URL": "http://h", "AWS_ALLOW_HTTP": "true"}, {"s3.endpoint": "http://h"}),
        ({"aws_virtual_hosted_style_request": "FALSE"}, {"s3.path_style": "true"}),
        ({"AWS_SKIP_SIGNATURE": "1"}, {"s3.anonymous": "true"}),
        (
            {"AZURE_STORAGE_ACCOUNT_NAME": "n", "AZURE_STORAGE_ACCESS_KEY": "k"},
            {"azure.account_name": "n", "azure.account_key": "k"},
        ),
        ({"azure_storage_sas_token": "s", "azure_tenant_id": "t"}, {"azure.sas_token": "s", "azure.tenant_id": "t"}),
        ({"account_name": "n", "client_secret": "s"}, {"azure.account_name": "n", "azure.client_secret": "s"}),
        (
            {"GOOGLE_SERVICE_ACCOUNT": "f", "google_skip_signature": "no"},
            {"gcs.service_account_file": "f", "gcs.anonymous": "false"},
        ),
        ({"google_service_account_key": "{}"}, {"gcs.service_account_json": "{}"}),
        ({"endpoint": "http://h"}, {"s3.endpoint": "http://h", "azure.endpoint": "http://h", "gcs.endpoint": "http://h"}),
        ({"timeout": "30s", "retry_timeout": "500ms"}, {"storage.request_timeout": "30", "storage.retry_timeout": "0.5"}),
        ({"AWS_S3_ALLOW_UNSAFE_RENAME": "true", "allow_unsafe_rename": "true"}, {}),
        ({"AWS_S3_LOCKING_PROVIDER": "dynamodb"}, {"s3.dynamodb_table": "delta_log"}),
        ({"AWS_S3_LOCKING_PROVIDER": "dynamodb", "DELTA_DYNAMO_TABLE_NAME": "t"}, {"s3.dynamodb_table": "t"}),
        ({"DELTA_DYNAMO_TABLE_NAME": "t"}, {}),
        ({"s3.dynamodb_table": "t", "S3.Region": "r"}, {"s3.dynamodb_table": "t", "s3.region": "r"}),
    ],
)
def test_options_become_those_of_this_library(options: dict[str, str], renamed: dict[str, str]) -> None:
    assert renamed_options(options) == renamed
    assert dict(StorageOptions.of(options).values) == renamed


def test_two_names_of_one_option_must_agree() -> None:
    assert renamed_options({"AWS_REGION": "a", "region": "a", "s3.region": "a"}) == {"s3.region": "a"}
    with pytest.raises(InvalidOptionError, match=r"both set 's3.region'"):
        renamed_options({"AWS_REGION": "a", "s3.region": "b"})


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("aws_server_side_encryption", "default encryption of the bucket"),
        ("proxy_url", "HTTPS_PROXY"),
        ("AWS_CONDITIONAL_PUT", r"s3\.dynamodb_table"),
        ("azure_storage_use_emulator", r"azure\.endpoint"),
    ],
)
def test_option_without_equivalent_says_what_to_do_instead(name: str, remedy: str) -> None:
    with pytest.raises(UnsupportedOperationError, match=remedy):
        StorageOptions.of({name: "dynamo"})


@pytest.mark.parametrize(
    "name",
    [
        *("AWS_SECRET_ACCESS_KEY", "aws_session_token", "token", "AZURE_STORAGE_SAS_TOKEN", "azure_storage_account_key"),
        *("master_key", "sas_key", "CONNECTION_STRING", "azure_client_secret", "GOOGLE_SERVICE_ACCOUNT_KEY"),
        *("bearer_token", "AWS_SSE_CUSTOMER_KEY_BASE64", "S3.Secret_Access_Key", "coordinator"),
    ],
)
def test_secret_is_a_secret_by_all_of_its_names(name: str) -> None:
    assert is_secret_option(name)


def test_alias_is_a_secret_if_its_option_is_one() -> None:
    secrets = {option.name for option in OPTION_NAMES if option.is_secret}
    aliases = {name for name, targets in _ALIASES.items() if secrets.intersection(targets)}
    assert len(aliases) > 20
    assert {name for name in _ALIASES if is_secret_option(name)} == aliases


def test_no_error_shows_the_value_of_an_option() -> None:
    cases = (
        {"AWS_SECRET_ACCESS_KEY": "hush", "s3.secret_access_key": "other-hush"},
        {"AWS_SKIP_SIGNATURE": "hush"},
        {"timeout": "hush"},
        {"aws_sse_kms_key_id": "hush"},
        {"AWS_SECRET_ACCES_KEY": "hush"},
    )
    for options in cases:
        with pytest.raises(DeltaError) as raised:
            StorageOptions.of(options)
        assert "hush" not in f"{raised.value} {raised.value.message_parameters}"
    assert "hush" not in repr(StorageOptions.of({"AWS_SECRET_ACCESS_KEY": "hush", "GOOGLE_SERVICE_ACCOUNT_KEY": "hush"}))
