"""What S3 and DynamoDB have in common: clients of boto3 that try each request once, and what their errors mean.

Credentials are those of the options, or what boto3 finds: the environment, shared files (profiles with roles too), the machine's
role. boto3 renews those that expire.
"""

from __future__ import annotations

from collections.abc import Callable
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
from delta_py.storage.client import REFUSALS, BeyondTheEnd, NotAnswered
from delta_py.storage.options import StorageOptions

T = TypeVar("T")

_TIMEOUT_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_DEFAULT_REGION = "us-east-1"
# A name of an error, or the status where the answer had no body.
_NOT_THERE = {"NoSuchKey", "NoSuchUpload", "NotFound", "404"}
_TAKEN = {"PreconditionFailed", "412", "ConditionalCheckFailedException"}
# Status 400 or 403, and yet the same request may be answered later.
_BUSY = {
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
_REGION = "The bucket lies in another region: name it by the option s3.region."
_ACCESS = "The credentials may not do that: look at the policies of user and bucket."
_EXPIRED = "The token has expired: give a new one, or let boto3 find credentials that it renews."
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
_NO_CREDENTIALS = (
    "Give the options s3.access_key_id and s3.secret_access_key, or set up boto3's usual credentials where pydelta runs (on "
    "executors too), or read a public bucket with s3.anonymous=true."
)


class TransactionCancelled(Exception):
    """DynamoDB did nothing of a transaction. reasons: the code of each of its items; `None` for one that was not to blame."""

    def __init__(self, said: str, reasons: tuple[str, ...]) -> None:
        super().__init__(said)
        self.reasons = reasons


def aws_client(service: str, options: StorageOptions, *, endpoint: str | None, region: str | None, **settings: Any) -> Any:
    """A client of boto3. settings: of botocore's Config. Raises StorageError where the options or files of credentials are
    wrong."""
    config = Config(
        retries={"total_max_attempts": 1, "mode": "standard"},
        connect_timeout=min(_CONNECT_SECONDS, options.number("storage.request_timeout", _TIMEOUT_SECONDS)),
        read_timeout=options.number("storage.request_timeout", _TIMEOUT_SECONDS),
        max_pool_connections=64,
        **({"signature_version": UNSIGNED} if options.flag("s3.anonymous") else {}),
        **settings,
    )
    try:
        session = boto3.session.Session(profile_name=options.get("s3.profile"))
        return session.client(
            service,
            region_name=region or session.region_name or _DEFAULT_REGION,
            endpoint_url=endpoint,
            aws_access_key_id=options.get("s3.access_key_id"),
            aws_secret_access_key=options.get("s3.secret_access_key"),
            aws_session_token=options.get("s3.session_token"),
            config=config,
        )
    except (BotoCoreError, ValueError) as error:  # ValueError: an endpoint that is no URL
        said = options.hide(str(error))
        raise StorageError(f"No client for {service} can be made: {said}. Look at the options s3.*.") from error


def ask(where: str, options: StorageOptions, request: Callable[[], T]) -> T:
    """One request, whose errors are those of ObjectClient. where: for messages. Raises BeyondTheEnd for a range of an object that
    begins behind its end."""
    try:
        return request()
    except ClientError as error:
        raise _meaning(where, options, error) from error
    except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError) as error:
        raise StorageError(f"There are no credentials for {where}: {options.hide(str(error))}. {_NO_CREDENTIALS}") from error
    except (EndpointConnectionError, ConnectTimeoutError) as error:
        raise NotAnswered(options.hide(str(error)), is_unreachable=True) from error
    except (HTTPClientError, IncompleteReadError) as error:
        raise NotAnswered(options.hide(str(error))) from error
    except BotoCoreError as error:
        raise StorageError(f"A request to {where} could not be made: {options.hide(str(error))}.") from error


def _meaning(where: str, options: StorageOptions, error: ClientError) -> Exception:
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    said = options.hide(str(error))
    if code in _NOT_THERE:
        return FileNotFoundError(2, "No such object", where)
    if code in _TAKEN:
        return FileExistsError(17, "There is an object of that name", where)
    if code == "TransactionCanceledException":
        reasons = tuple(str(reason.get("Code")) for reason in error.response.get("CancellationReasons", ()))
        return TransactionCancelled(said, reasons)
    if status == 416:
        return BeyondTheEnd()
    if code in _BUSY or status not in REFUSALS:
        return NotAnswered(said, cure=_CURES.get(code))
    cure = _CURES.get(code, "")
    return StorageError(f"The store refuses a request to {where}: {said}. {cure}".rstrip(), where=where, code=code, status=status)
