"""Clients of boto3 that try each request once, and what is known of AWS's errors by their codes: of S3, and of DynamoDB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import boto3
from botocore import UNSIGNED
from botocore.config import Config

TIMEOUT_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_DEFAULT_REGION = "us-east-1"
BUSY = frozenset(
    {
        "ExpiredToken",  # boto3 fetches a new one where it can
        "ExpiredTokenException",
        "RequestTimeout",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "TransactionConflictException",
    }
)
"""Status 400 or 403, and yet the same request may be answered later."""
_REGION = "The bucket lies in another region: name it by the option s3.region."
_ACCESS = "The credentials may not do that: look at the policies of user and bucket."
_EXPIRED = "The token has expired: give a new one, or let boto3 find credentials that it renews."
CURES = {
    "ExpiredToken": _EXPIRED,
    "ExpiredTokenException": _EXPIRED,
    "AccessDenied": _ACCESS,
    "AccessDeniedException": _ACCESS,
    "403": _ACCESS,
    "401": "The store does not accept the credentials.",
    "InvalidToken": "The store does not accept the session token.",
    "InvalidAccessKeyId": "The store does not know the access key: is it one for this endpoint?",
    "UnrecognizedClientException": "The store does not know the access key: is it one for this endpoint?",
    "SignatureDoesNotMatch": "The secret key is not the access key's.",
    "RequestTimeTooSkewed": "This machine's clock is wrong.",
    "NoSuchBucket": "Make the bucket, or correct its name.",
    "ResourceNotFoundException": "Make the table, or correct its name.",
    "PermanentRedirect": _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "301": _REGION,
}
"""What to do about an error, by its code."""


@dataclass(frozen=True, slots=True, repr=False)
class AwsAccess:
    """Credentials; what is None, boto3 finds: in the environment, shared files (profiles with roles too), the machine's role. It
    renews those that expire."""

    access_key_id: str | None = None
    secret_access_key: str | None = None
    session_token: str | None = None
    profile: str | None = None
    is_anonymous: bool = False
    timeout_seconds: float = TIMEOUT_SECONDS


def make_client(service: str, access: AwsAccess, *, endpoint: str | None, region: str | None, **settings: Any) -> Any:
    """settings: of botocore's Config. Raises BotoCoreError where files of credentials are wrong, ValueError for an endpoint that
    is no URL."""
    config = Config(
        retries={"total_max_attempts": 1, "mode": "standard"},
        connect_timeout=min(_CONNECT_SECONDS, access.timeout_seconds),
        read_timeout=access.timeout_seconds,
        max_pool_connections=64,
        **({"signature_version": UNSIGNED} if access.is_anonymous else {}),
        **settings,
    )
    session = boto3.session.Session(profile_name=access.profile)
    return session.client(
        service,
        region_name=region or session.region_name or _DEFAULT_REGION,
        endpoint_url=endpoint,
        aws_access_key_id=access.access_key_id,
        aws_secret_access_key=access.secret_access_key,
        aws_session_token=access.session_token,
        config=config,
    )
