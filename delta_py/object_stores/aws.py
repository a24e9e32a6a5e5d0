"""The storage options as access to AWS."""

from __future__ import annotations

from delta_py.aws_clients import TIMEOUT_SECONDS, AwsAccess
from delta_py.storage.store_options import StorageOptions

_NO_CREDENTIALS = (
    "Give the options s3.access_key_id and s3.secret_access_key, or set up boto3's usual credentials where pydelta runs (on "
    "executors too), or read a public bucket with s3.anonymous=true."
)


def access_of(options: StorageOptions, *, endpoint: str | None, region: str | None, endpoint_option: str) -> AwsAccess:
    """The credentials of the options s3.*, which serve S3 and DynamoDB, for a service at an endpoint.

    endpoint, region: None for what boto3 finds. endpoint_option: the option that sets the endpoint, for error messages. Raises
    InvalidOptionError.
    """
    return AwsAccess(
        _NO_CREDENTIALS,
        f"Check the endpoint (the option {endpoint_option}) and the network.",
        access_key_id=options.get("s3.access_key_id"),
        secret_access_key=options.get("s3.secret_access_key"),
        session_token=options.get("s3.session_token"),
        profile=options.get("s3.profile"),
        region=region,
        endpoint=endpoint,
        is_anonymous=options.flag("s3.anonymous"),
        timeout_seconds=options.number("storage.request_timeout", TIMEOUT_SECONDS),
    )
