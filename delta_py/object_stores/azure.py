"""Azure Blob Storage and Data Lake Storage, by azure-storage-blob.

A commit is one Put Blob with `If-None-Match: *`; Azure answers 409 BlobAlreadyExists if a blob of that name exists. This also
holds in accounts with a hierarchical namespace: their directories are listed as blobs with a mark, and are left out.
Credentials come from the options, or from azure-identity, which renews them.
"""

from __future__ import annotations

import base64
import errno
import re
from collections.abc import Callable
from typing import Any, TypeVar

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    IncompleteReadError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.storage.blob import BlobBlock, BlobServiceClient, ContainerClient

from delta_py.errors import InvalidOptionError, StorageError, UnsupportedOperationError
from delta_py.object_stores.client import ListedPage, Upload
from delta_py.release import install_command
from delta_py.remote_requests import REFUSALS, BeyondTheEnd, NotAnswered
from delta_py.storage.addresses import azure_host
from delta_py.storage.store import ObjectInfo
from delta_py.storage.store_options import StorageOptions

T = TypeVar("T")

_TIMEOUT_SECONDS = 30.0  # the wait for data, unless storage.request_timeout says otherwise
_CONNECT_SECONDS = 10.0  # at most, also if the timeout is longer
_PAGE = 5000  # blobs in one answer to a listing
_ONE_REQUEST_BYTES = 5 * 1024**3  # the SDK never splits a request
_DIRECTORY_MARK = "hdi_isfolder"  # the metadata key that marks a blob as a directory of a hierarchical namespace
_DATA_LAKE_HOST = re.compile(r"^(https?://[^./]+)\.dfs\.")  # the Blob service has the same data
_UNREACHABLE = ("Failed to establish", "Failed to resolve")
_CURES = {
    401: "The credentials are not valid, or have expired.",
    403: "The credentials may not do that: look at the account's key, the SAS token's permissions and times, or the roles of the "
    "identity (Storage Blob Data Contributor).",
}
_ENDPOINT_CURE = "Check the account and the endpoint (the option azure.endpoint), and the network."
_NO_CREDENTIALS = (
    "Give one of the options azure.account_key, azure.sas_token, azure.client_secret (with azure.tenant_id and azure.client_id), "
    "azure.managed_identity, azure.connection_string, or azure.anonymous=true for a public container."
)


class AzureClient:
    """An ObjectClient, whose objects are blobs. account: from the URL; empty if the options name it."""

    def __init__(self, account: str, options: StorageOptions) -> None:
        self._options = options
        timeout = options.number("storage.request_timeout", _TIMEOUT_SECONDS)
        settings: dict[str, Any] = {
            "retry_total": 0,  # connection.py repeats requests
            "connection_timeout": min(_CONNECT_SECONDS, timeout),
            "read_timeout": timeout,
            "max_single_put_size": _ONE_REQUEST_BYTES,
            "max_single_get_size": _ONE_REQUEST_BYTES,
            "max_chunk_get_size": _ONE_REQUEST_BYTES,
        }
        connection_string = options.get("azure.connection_string")
        try:
            if connection_string is not None:
                self._service = BlobServiceClient.from_connection_string(connection_string, **settings)
            else:
                self._service = BlobServiceClient(
                    _service_url(account, options), _client_credential(account, options), **settings
                )
        except (ValueError, AzureError) as error:
            raise StorageError(
                f"No client for Azure can be made: {options.hide(str(error))}. Check the options azure.*."
            ) from None  # the SDK's error may quote a secret

    def _container(self, name: str) -> ContainerClient:
        return self._service.get_container_client(name)

    # ------------------------------------------------------------ reading

    def get(self, container: str, key: str, start: int = 0, length: int | None = None) -> bytes:
        """The bytes from `start`: `length` of them, or all up to the end. Fewer at the end of the object, and none after it."""
        blob = self._container(container).get_blob_client(key)
        range_arguments: dict[str, Any] = {} if start == 0 and length is None else {"offset": start, "length": length}
        try:
            where = f"{container}/{key}"
            return self._send_request(where, lambda: bytes(blob.download_blob(**range_arguments, max_concurrency=1).readall()))
        except BeyondTheEnd:
            return b""

    def get_into(self, container: str, key: str, start: int, target: memoryview) -> int:
        """Read as many bytes from `start` as `target` has, into `target`. Returns how many bytes the answer has: more than
        `target` if the store ignores ranges."""
        data = self.get(container, key, start, len(target))  # the SDK always holds the whole content in memory
        target[: len(data)] = data[: len(target)]
        return len(data)

    def size(self, container: str, key: str) -> int:
        """The object's size in bytes."""
        blob = self._container(container).get_blob_client(key)
        return int(self._send_request(f"{container}/{key}", blob.get_blob_properties).size)

    def list_page(self, container: str, prefix: str, start: str, *, deep: bool, token: str | None) -> ListedPage:
        """Objects whose keys begin with `prefix`, one page of them. The store cannot skip those before `start`. deep: at any
        depth below the prefix. token: of the page; None for the first one."""
        client = self._container(container)

        def request_page() -> ListedPage:
            listing = (client.list_blobs if deep else client.walk_blobs)(
                name_starts_with=prefix, include=["metadata"], results_per_page=_PAGE
            )
            pages = listing.by_page(continuation_token=token)
            objects = [_object_info(blob) for blob in next(pages, ()) if _is_object(blob)]
            return ListedPage(objects, pages.continuation_token or None)

        return self._send_request(f"{container}/{prefix}", request_page)

    # ------------------------------------------------------------ writing

    def put(self, container: str, key: str, data: bytes) -> None:
        self._upload(container, key, data, overwrite=True)

    def put_new(self, container: str, key: str, data: bytes) -> None:
        """Write an object if there is none of that key: of two callers only one succeeds."""
        self._upload(container, key, data, overwrite=False)

    def _upload(self, container: str, key: str, data: bytes, *, overwrite: bool) -> None:
        blob = self._container(container).get_blob_client(key)
        self._send_request(
            f"{container}/{key}", lambda: blob.upload_blob(data, length=len(data), overwrite=overwrite, max_concurrency=1)
        )

    @property
    def copies_up_to(self) -> int:
        """-1, because this client copies no object of any size; the error in `copy` says why."""
        return -1

    def copy(self, container: str, key: str, to_container: str, to_key: str) -> None:
        raise NotImplementedError("the store copies by URLs that are signed, which not every kind of credentials can make")

    def delete(self, container: str, key: str) -> None:
        blob = self._container(container).get_blob_client(key)
        try:
            self._send_request(f"{container}/{key}", blob.delete_blob)
        except FileNotFoundError:
            return

    def begin_upload(self, container: str, key: str) -> Upload:
        """Begin an object that is sent in parts."""
        return _BlockUpload(self, f"{container}/{key}", self._container(container).get_blob_client(key))

    def abort_uploads(self, container: str, prefix: str, part_of_name: str) -> None:
        """Nothing to do: blocks that no block list names are no blob, and expire after a week."""

    # ------------------------------------------------------------ requests and their errors

    def _send_request(self, where: str, request: Callable[[], T]) -> T:
        """Send a request; the SDK's errors become those of ObjectClient. where: the blob or container, for messages."""
        try:
            return request()
        except ResourceExistsError as error:
            if error.error_code == "BlobAlreadyExists":
                raise FileExistsError(errno.EEXIST, "There is an object of that name", where) from error
            raise self._status_error(where, error) from error
        except ResourceModifiedError as error:  # 412: the condition is not met
            raise FileExistsError(errno.EEXIST, "There is an object of that name", where) from error
        except ResourceNotFoundError as error:
            if error.error_code == "ContainerNotFound":
                raise self._status_error(where, error) from error
            raise FileNotFoundError(2, "No such object", where) from error
        except ClientAuthenticationError as error:
            raise self._credentials_error(where, error) from error
        except HttpResponseError as error:
            if error.status_code == 416:
                raise BeyondTheEnd from error
            raise self._status_error(where, error) from error
        except ServiceRequestError as error:
            is_unreachable = any(words in str(error) for words in _UNREACHABLE)
            cure = _ENDPOINT_CURE if is_unreachable else None
            raise NotAnswered(self._error_text(error), is_unreachable=is_unreachable, cure=cure) from error
        except (ServiceResponseError, IncompleteReadError) as error:
            raise NotAnswered(self._error_text(error)) from error
        except (AzureError, ValueError) as error:  # ValueError: the answer is not one that the store would send
            raise NotAnswered(self._error_text(error)) from error

    def _status_error(self, where: str, error: HttpResponseError) -> Exception:
        """The exception for an error status: StorageError if the status is a refusal, otherwise NotAnswered."""
        status = int(error.status_code or 0)
        if status not in REFUSALS:
            return NotAnswered(self._error_text(error))
        cure = _CURES.get(status, "Make the container, or correct its name." if error.error_code == "ContainerNotFound" else "")
        return StorageError(
            f"The store refuses a request to {where}: {self._error_text(error)} {cure}".rstrip(),
            where=where,
            status=status,
            code=str(error.error_code),
        )

    def _credentials_error(self, where: str, error: ClientAuthenticationError) -> Exception:
        """The error for a token that could not be obtained. An error with a status is the answer of the store or of the token
        service."""
        if error.status_code is not None:
            return self._status_error(where, error)
        return StorageError(f"There are no credentials for {where}: {self._error_text(error)}. {_NO_CREDENTIALS}", where=where)

    def _error_text(self, error: Exception) -> str:
        """The first line of the SDK's message, without secrets; the other lines only identify the request."""
        return self._options.hide(str(getattr(error, "message", None) or error).partition("\n")[0])


def _service_url(account: str, options: StorageOptions) -> str:
    """The URL of the account's Blob service. account: from the table's URL, as in addresses.Address; empty if only the options
    name it."""
    endpoint = options.get("azure.endpoint")
    if endpoint is not None:
        return _DATA_LAKE_HOST.sub(r"\1.blob.", endpoint)
    account_name = account or options.get("azure.account_name")
    if not account_name:
        raise InvalidOptionError(
            "An az:// URL names a container and not its storage account. Give the option azure.account_name, or write "
            "abfss://container@account.dfs.core.windows.net/path.",
            option="azure.account_name",
        )
    return f"https://{azure_host(account_name, 'blob')}"


def _client_credential(account: str, options: StorageOptions) -> Any:
    """The credential for the SDK's client: from the options; from the environment if they have none; None for public containers.
    account: as in Address, so the rest of a host name may follow the account's name."""
    account_key, sas_token = options.get("azure.account_key"), options.get("azure.sas_token")
    client_secret = options.get("azure.client_secret")
    if options.flag("azure.anonymous"):
        return None
    if account_key is not None:
        return {"account_name": account.partition(".")[0] or options.get("azure.account_name"), "account_key": account_key}
    if sas_token is not None:
        return sas_token.removeprefix("?")
    try:
        from azure import identity
    except ModuleNotFoundError as error:
        raise UnsupportedOperationError(
            f"No key is given, and other credentials of Azure need the package azure-identity, which is not installed. "
            f"{_NO_CREDENTIALS} Or install it: {install_command('azure')}.",
            package="azure-identity",
        ) from error
    client_id = options.get("azure.client_id")
    if client_secret is not None:
        tenant = options.get("azure.tenant_id")
        if tenant is None or client_id is None:
            raise InvalidOptionError(
                "azure.client_secret is of an application: azure.tenant_id and azure.client_id say which. Give all three.",
                option="azure.client_secret",
            )
        return identity.ClientSecretCredential(tenant, client_id, client_secret)
    if options.flag("azure.managed_identity"):
        return identity.ManagedIdentityCredential(**({} if client_id is None else {"client_id": client_id}))
    return identity.DefaultAzureCredential()


def _is_object(entry: Any) -> bool:
    """Whether it is an object: neither a prefix of more names (BlobPrefix), nor a directory of a hierarchical namespace."""
    return hasattr(entry, "size") and (entry.metadata or {}).get(_DIRECTORY_MARK) != "true"


def _object_info(blob: Any) -> ObjectInfo:
    return ObjectInfo(blob.name, int(blob.size), int(blob.last_modified.timestamp() * 1000), blob.etag)


class _BlockUpload:
    """An Upload. A part is a block of a blob; the blob appears when a block list names its blocks."""

    def __init__(self, owner: AzureClient, where: str, blob: Any) -> None:
        self._owner, self._where, self._blob = owner, where, blob

    @property
    def takes_many(self) -> bool:
        return True

    def put_part(self, number: int, data: bytes) -> None:
        self._owner._send_request(self._where, lambda: self._blob.stage_block(_block_id(number), data, length=len(data)))

    def finish(self, count: int) -> None:
        blocks = [BlobBlock(block_id=_block_id(number)) for number in range(count)]
        self._owner._send_request(self._where, lambda: self._blob.commit_block_list(blocks))

    def abort(self) -> None:
        """Nothing to do: blocks that no block list names expire after a week."""


def _block_id(number: int) -> str:
    """The id of a part's block. Azure wants base64, and the same length for all blocks of a blob."""
    return base64.b64encode(b"%08d" % number).decode()
