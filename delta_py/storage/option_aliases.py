"""Names of storage options that users of deltalake and polars know: AWS_*, AZURE_*, GOOGLE_*, in any case of letters.

    renamed_options({"AWS_ENDPOINT_URL": "http://127.0.0.1:9000"}) == {"s3.endpoint": "http://127.0.0.1:9000"}

One set of options serves all stores, so a name that several stores have (`endpoint`) becomes the option of each of them. Values
are never part of an error here, because any of them may be a secret.
"""

from __future__ import annotations

from collections.abc import Mapping

from delta_py.errors import InvalidOptionError, UnsupportedOperationError

_TRUE, _FALSE = ("1", "true", "on", "yes", "y"), ("0", "false", "off", "no", "n")
_UNIT_SECONDS = {"ms": 0.001, "s": 1, "sec": 1, "secs": 1, "seconds": 1, "m": 60, "min": 60, "mins": 60, "minutes": 60}


def _with_prefixes(prefixes: tuple[str, ...], names: tuple[str, ...], *targets: str) -> dict[str, tuple[str, ...]]:
    """Each of the names with each of the prefixes -> the options that it stands for."""
    return {prefix + name: targets for prefix in prefixes for name in names}


_S3 = ("aws_", "")
_AZURE = ("azure_storage_", "azure_", "")
_GOOGLE = ("google_", "")

_ALIASES: Mapping[str, tuple[str, ...]] = {
    **_with_prefixes(_S3, ("access_key_id",), "s3.access_key_id"),
    **_with_prefixes(_S3, ("secret_access_key",), "s3.secret_access_key"),
    **_with_prefixes(_S3, ("session_token", "token"), "s3.session_token"),
    **_with_prefixes(_S3, ("region", "default_region"), "s3.region"),
    **_with_prefixes(_S3, ("endpoint_url", "endpoint", "endpoint_url_s3"), "s3.endpoint"),
    **_with_prefixes(_S3, ("profile",), "s3.profile"),
    **_with_prefixes(_S3, ("request_payer", "requester_pays"), "s3.requester_pays"),
    "delta_dynamo_table_name": ("s3.dynamodb_table",),
    "aws_region_dynamodb": ("s3.dynamodb_region",),
    **_with_prefixes(("aws_",), ("endpoint_url_dynamodb",), "s3.dynamodb_endpoint"),
    **_with_prefixes(_AZURE, ("account_name",), "azure.account_name"),
    **_with_prefixes(_AZURE, ("account_key", "access_key", "master_key"), "azure.account_key"),
    **_with_prefixes(_AZURE, ("sas_token", "sas_key"), "azure.sas_token"),
    **_with_prefixes(_AZURE, ("connection_string",), "azure.connection_string"),
    **_with_prefixes(_AZURE, ("tenant_id", "authority_id"), "azure.tenant_id"),
    **_with_prefixes(_AZURE, ("client_id",), "azure.client_id"),
    **_with_prefixes(_AZURE, ("client_secret",), "azure.client_secret"),
    **_with_prefixes(_AZURE[:2], ("endpoint",), "azure.endpoint"),
    **_with_prefixes(_GOOGLE, ("service_account", "service_account_path", "application_credentials"), "gcs.service_account_file"),
    **_with_prefixes(_GOOGLE, ("service_account_key",), "gcs.service_account_json"),
    **_with_prefixes(_GOOGLE[:1], ("base_url", "endpoint"), "gcs.endpoint"),
    "endpoint": ("s3.endpoint", "azure.endpoint", "gcs.endpoint"),
}
_FLAGS: Mapping[str, tuple[str, ...]] = {
    "aws_skip_signature": ("s3.anonymous",),
    "azure_skip_signature": ("azure.anonymous",),
    "google_skip_signature": ("gcs.anonymous",),
    "skip_signature": ("s3.anonymous", "azure.anonymous", "gcs.anonymous"),
}
# Flags that mean the opposite of an option of this package.
_OPPOSITES: Mapping[str, str] = dict.fromkeys(
    ("aws_virtual_hosted_style_request", "virtual_hosted_style_request"), "s3.path_style"
)
_SECONDS = {"timeout": "storage.request_timeout", "retry_timeout": "storage.retry_timeout"}

# They choose between ways that pydelta does not have, or that it chooses by itself: http by the URL of the endpoint, safe
# commits by conditional requests.
_WITHOUT_EFFECT = frozenset(
    (
        *(
            "allow_http",
            "aws_allow_http",
            "azure_storage_use_http",
            "azure_use_http",
            "google_allow_http",
            "http1_only",
            "http2_only",
        ),
        *("allow_unsafe_rename", "aws_s3_allow_unsafe_rename", "mount_allow_unsafe_rename", "aws_copy_if_not_exists"),
        *("copy_if_not_exists", "aws_bucket", "aws_bucket_name", "bucket", "bucket_name", "google_bucket", "google_bucket_name"),
        *("azure_container_name", "azure_storage_container_name", "container_name", "aws_disable_tagging", "disable_tagging"),
        *("aws_imdsv1_fallback", "imdsv1_fallback", "aws_unsigned_payload", "unsigned_payload", "aws_checksum_algorithm"),
        *("connect_timeout", "pool_idle_timeout", "pool_max_idle_per_host", "user_agent", "http2_keep_alive_interval"),
        *("http2_keep_alive_timeout", "http2_keep_alive_while_idle", "max_retries", "backoff_config.init_backoff"),
        *("backoff_config.max_backoff", "backoff_config.base", "aws_s3_pool_idle_timeout_seconds"),
        *(
            "aws_sts_pool_idle_timeout_seconds",
            "aws_s3_get_internal_server_error_retries",
            "aws_container_credentials_relative_uri",
        ),
        *("aws_conditional_put", "conditional_put"),
        *("dynamo_lock_partition_key_value", "dynamo_lock_table_name", "dynamo_lock_owner_name", "dynamo_lock_lease_duration"),
        *("delta_dynamo_billing_mode", "delta_dynamo_max_elapsed_request_time", "max_concurrent_requests", "max_buffer_size"),
    )
)
# Passing over these would write or read in another way than the caller wants.
_REFUSED = {
    **dict.fromkeys(
        (
            *("aws_server_side_encryption", "aws_sse_kms_key_id", "aws_sse_bucket_key_enabled", "aws_sse_customer_key_base64"),
            *("server_side_encryption", "sse_kms_key_id", "sse_customer_key_base64"),
        ),
        "Set the default encryption of the bucket instead.",
    ),
    **dict.fromkeys(("proxy_url", "proxy_ca_certificate", "proxy_excludes"), "Set the environment variable HTTPS_PROXY instead."),
    **dict.fromkeys(("allow_invalid_certificates",), "Set the environment variable AWS_CA_BUNDLE to the endpoint's certificate."),
    **dict.fromkeys(
        ("aws_web_identity_token_file", "aws_role_arn", "aws_role_session_name", "aws_iam_role_arn", "aws_iam_role_session_name"),
        "Set the environment variables AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, or use s3.profile.",
    ),
    **dict.fromkeys(
        ("azure_storage_use_emulator", "azure_use_emulator", "use_emulator", "object_store_use_emulator"),
        "Give azure.endpoint, azure.account_name and azure.account_key of the emulator.",
    ),
    **dict.fromkeys(
        ("azure_federated_token_file", "azure_use_azure_cli", "azure_use_fabric_endpoint", "azure_storage_token", "bearer_token"),
        "Leave it out: without credentials in the options, those of the environment or of a managed identity are used.",
    ),
}
# Those among the refused options whose values let anybody act as their owner.
SECRETS_WITHOUT_EQUIVALENT = frozenset(
    ("aws_sse_customer_key_base64", "sse_customer_key_base64", "azure_storage_token", "bearer_token", "proxy_url")
)
# For options by which deltalake has DynamoDB decide commits, and which pydelta refuses.
_LOCK_CURE = "Give s3.dynamodb_table instead, to every writer of the table."
# deltalake's option that says what decides commits, and the table in DynamoDB that it uses if no other one is named.
_LOCK_OPTION, _DELTALAKE_LOCK_TABLE = "aws_s3_locking_provider", "delta_log"


def options_named(name: str) -> tuple[str, ...]:
    """The options of this library that a name stands for, in any case of letters: the name itself if it is no alias."""
    name = name.lower()
    return _ALIASES.get(name, (name,))


def renamed_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options by pydelta's names, in lower case. A name that is neither pydelta's nor one of the aliases is kept.

    Raises InvalidOptionError for a flag or a duration that cannot be read, and for two names of one option with different values;
    UnsupportedOperationError for an option that has no equivalent, with what to do instead.
    """
    renamed: dict[str, str] = {}
    sources: dict[str, str] = {}
    for name, value in options.items():
        for target, option_value in _options_and_values(name.lower(), value):
            if renamed.get(target, option_value) != option_value:
                raise InvalidOptionError(
                    f"The options {sources[target]!r} and {name!r} both set {target!r}, to different values. Give one of them.",
                    option=name,
                )
            renamed[target], sources[target] = option_value, name
    values_by_name = {name.lower(): value for name, value in options.items()}
    if str(values_by_name.get(_LOCK_OPTION, "")).lower() == "dynamodb":
        renamed.setdefault("s3.dynamodb_table", _DELTALAKE_LOCK_TABLE)
    elif "s3.dynamodb_table" not in values_by_name:  # deltalake reads the table's name only if DynamoDB is the locking provider
        renamed.pop("s3.dynamodb_table", None)
    return renamed


def _options_and_values(name: str, value: str) -> list[tuple[str, str]]:
    """The options of this package, with values, that an option of deltalake stands for."""
    if name in _REFUSED or (name.endswith("conditional_put") and str(value).startswith("dynamo")):
        raise UnsupportedOperationError(
            f"pydelta has no equivalent of the storage option {name!r}. {_REFUSED.get(name, _LOCK_CURE)}", option=name
        )
    if name in _WITHOUT_EFFECT or name == _LOCK_OPTION:
        return []
    if name in _ALIASES:
        return [(target, _flag_text(name, value) if target in _FLAG_TARGETS else value) for target in _ALIASES[name]]
    if name in _FLAGS:
        return [(target, _flag_text(name, value)) for target in _FLAGS[name]]
    if name in _OPPOSITES:
        return [(_OPPOSITES[name], "false" if _flag_text(name, value) == "true" else "true")]
    if name in _SECONDS:
        return [(_SECONDS[name], _seconds(name, value))]
    return [(name, value)]


# Options of this package that are flags, and whose aliases are in _ALIASES.
_FLAG_TARGETS = ("s3.requester_pays",)


def _flag_text(name: str, value: str) -> str:
    """A flag as "true" or "false". value: in any of the spellings that deltalake takes. Raises InvalidOptionError."""
    text = str(value).lower()
    if text not in (*_TRUE, *_FALSE):
        raise InvalidOptionError(f"The value of the storage option {name!r} must be 'true' or 'false'.", option=name)
    return "true" if text in _TRUE else "false"


def _seconds(name: str, value: str) -> str:
    """The number of seconds in a duration: `30s`, `500ms`, `2 min`, or a plain number. Raises InvalidOptionError."""
    text = str(value).strip().lower()
    unit = text.lstrip("0123456789. ")
    number = text.removesuffix(unit).strip()
    factor = _UNIT_SECONDS.get(unit or "s")
    try:
        # An unknown unit gives NaN, which is refused below.
        seconds = float(number) * (factor if factor is not None else float("nan"))
    except ValueError:
        seconds = float("nan")
    if not 0 < seconds < float("inf"):
        raise InvalidOptionError(f"The value of the storage option {name!r} must be a duration, such as '30s'.", option=name)
    return f"{seconds:g}"
