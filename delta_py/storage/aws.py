"""What S3 and DynamoDB have in common: clients of boto3 by the options of stores, and what their errors mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

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

from delta_py.aws_clients import BUSY, CURES, TIMEOUT_SECONDS, AwsAccess, make_client
from delta_py.errors import StorageError
from delta_py.storage.client import REFUSALS, BeyondTheEnd, NotAnswered
from delta_py.storage.options import StorageOptions

T = TypeVar("T")

# A name of an error, or the status where the answer had no body.
_NOT_THERE = {"NoSuchKey", "NoSuchUpload", "NotFound", "404"}
_TAKEN = {"PreconditionFailed", "412", "ConditionalCheckFailedException"}
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
    access = AwsAccess(
        options.get("s3.access_key_id"),
        options.get("s3.secret_access_key"),
        options.get("s3.session_token"),
        options.get("s3.profile"),
        options.flag("s3.anonymous"),
        options.number("storage.request_timeout", TIMEOUT_SECONDS),
    )
    try:
        return make_client(service, access, endpoint=endpoint, region=region, **settings)
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
    if code in BUSY or status not in REFUSALS:
        return NotAnswered(said, cure=CURES.get(code))
    cure = CURES.get(code, "")
    return StorageError(f"The store refuses a request to {where}: {said}. {cure}".rstrip(), where=where, code=code, status=status)
