"""Common code for S3 and DynamoDB: boto3 clients that try each request once, and the meaning of their errors.

Credentials are those that the caller passes, or those that boto3 finds: the environment, shared files (including profiles with
roles), the machine's role. boto3 renews those that expire.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import boto3
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
)

from delta_py.errors import StorageError
from delta_py.remote_requests import REFUSALS, BeyondTheEnd, NotAnswered, without_secrets

T = TypeVar("T")

TIMEOUT_SECONDS = 30.0
_LONGEST_CONNECT_SECONDS = 10.0
_DEFAULT_REGION = "us-east-1"
# Codes of errors: their names, or the HTTP status as a text if the response had no body.
_MISSING_CODES = {"NoSuchKey", "NoSuchUpload", "NotFound", "404"}
_EXISTS_CODES = {"PreconditionFailed", "412", "ConditionalCheckFailedException"}
# These have the status 400 or 403, which is usually a refusal. But the same request may succeed later.
_REPEATABLE_CODES = {
    "ExpiredToken",  # boto3 fetches a new one if it can
    "ExpiredTokenException",
    "RequestTimeout",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "TooManyRequestsException",
    "TransactionConflictException",
    "TransactionInProgressException",  # the same request was sent before and is still running
}
_REGION = "The bucket lies in another region: name it by the option s3.region."
_ACCESS = "The credentials may not do that: look at the policies of user and bucket."
_EXPIRED = "The token has expired: give a new one, or let boto3 find credentials that it renews."
# What the user can do, by the code of the error. For messages.
_CURES = {
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


@dataclass(frozen=True, slots=True, repr=False)
class AwsAccess:
    """The address of an AWS service, and the credentials for it.

    credentials_cure: a sentence that says what to do if there are no credentials. endpoint_cure: a sentence that says what to do
    if nothing answers at the endpoint. Where a setting is None, boto3 looks for a value (environment, shared files, the machine).
    is_anonymous: requests are not signed.
    """

    credentials_cure: str
    endpoint_cure: str
    access_key_id: str | None = None
    secret_access_key: str | None = None
    session_token: str | None = None
    profile: str | None = None
    region: str | None = None
    endpoint: str | None = None
    is_anonymous: bool = False
    timeout_seconds: float = TIMEOUT_SECONDS

    def hide(self, text: str) -> str:
        """The text with dots in place of this access's secret key and session token."""
        return without_secrets(text, (secret for secret in (self.secret_access_key, self.session_token) if secret is not None))


class TransactionCancelled(Exception):
    """DynamoDB did not apply any part of a transaction. reasons: for each of its items, the code of the item's error, or the text
    "None" if the item was not the cause."""

    def __init__(self, message: str, reasons: tuple[str, ...]) -> None:
        super().__init__(message)
        self.reasons = reasons


def aws_client(service: str, access: AwsAccess, **settings: Any) -> Any:
    """A client of boto3. service: by boto3's name, such as `s3`. settings: more arguments of botocore's Config. Raises
    StorageError if the access settings, or files of credentials, are wrong."""
    config = Config(
        retries={"total_max_attempts": 1, "mode": "standard"},  # the caller repeats requests (remote_requests.until_answered)
        connect_timeout=min(_LONGEST_CONNECT_SECONDS, access.timeout_seconds),
        read_timeout=access.timeout_seconds,
        max_pool_connections=64,
        **({"signature_version": UNSIGNED} if access.is_anonymous else {}),
        **settings,
    )
    try:
        session = boto3.session.Session(profile_name=access.profile)
        return session.client(
            service,
            region_name=access.region or session.region_name or _DEFAULT_REGION,
            endpoint_url=access.endpoint,
            aws_access_key_id=access.access_key_id,
            aws_secret_access_key=access.secret_access_key,
            aws_session_token=access.session_token,
            config=config,
        )
    except (BotoCoreError, ValueError) as error:  # ValueError: the endpoint is not a URL
        message = access.hide(str(error))
        cure = "Look at its endpoint, region, profile and credentials."
        raise StorageError(f"No client for {service} can be made: {message}. {cure}") from error


def call_aws(where: str, access: AwsAccess, request: Callable[[], T]) -> T:
    """Run one request, and return its answer. where: the requested object or table, for messages.

    Raises FileNotFoundError; FileExistsError; NotAnswered if the outcome is unknown and the request may be repeated; StorageError
    if the service refuses, or there are no credentials; BeyondTheEnd for a range that begins after the end of the object;
    TransactionCancelled.
    """
    try:
        return request()
    except ClientError as error:
        raise _exception_for(where, access, error) from error
    except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError) as error:
        message = access.hide(str(error))
        raise StorageError(f"There are no credentials for {where}: {message}. {access.credentials_cure}") from error
    except (EndpointConnectionError, ConnectTimeoutError) as error:
        raise NotAnswered(access.hide(str(error)), is_unreachable=True, cure=access.endpoint_cure) from error
    except (HTTPClientError, IncompleteReadError) as error:
        raise NotAnswered(access.hide(str(error))) from error
    except BotoCoreError as error:
        raise StorageError(f"A request to {where} could not be made: {access.hide(str(error))}.") from error


def _exception_for(where: str, access: AwsAccess, error: ClientError) -> Exception:
    """The exception that call_aws raises in place of an error response: the object is missing, it exists already, the outcome is
    unknown, or the store refuses."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    message = access.hide(str(error))
    if code in _MISSING_CODES:
        return FileNotFoundError(2, "No such object", where)
    if code in _EXISTS_CODES:
        return FileExistsError(errno.EEXIST, "There is an object of that name", where)
    if code == "TransactionCanceledException":
        reasons = tuple(str(reason.get("Code")) for reason in error.response.get("CancellationReasons", ()))
        return TransactionCancelled(message, reasons)
    if status == 416:  # Range Not Satisfiable
        return BeyondTheEnd()
    if code in _REPEATABLE_CODES or status not in REFUSALS:
        return NotAnswered(message, cure=_CURES.get(code))
    cure = _CURES.get(code, "")
    return StorageError(
        f"The store refuses a request to {where}: {message}. {cure}".rstrip(), where=where, code=code, status=status
    )
