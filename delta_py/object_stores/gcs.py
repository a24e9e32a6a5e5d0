"""Google Cloud Storage, by google-cloud-storage.

A commit is one upload with `ifGenerationMatch=0`: it succeeds only if there is no object of that name; otherwise the store
answers 412.
Credentials come from the options, or are the SDK's application default credentials, which it renews.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import google.auth.exceptions
import google.oauth2.credentials
import google.oauth2.service_account
import requests.adapters
import requests.exceptions
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from google.cloud.storage.exceptions import InvalidResponse

from delta_py.errors import InvalidOptionError, StorageError
from delta_py.object_stores.client import ListedPage, Upload
from delta_py.remote_requests import REFUSALS, BeyondTheEnd, NotAnswered
from delta_py.storage.store import ObjectInfo
from delta_py.storage.store_options import StorageOptions

T = TypeVar("T")

_TIMEOUT_SECONDS = 30.0  # the wait for data, unless storage.request_timeout says otherwise
_CONNECT_SECONDS = 10.0  # at most, also if the timeout is longer
_PAGE = 1000  # objects in one answer to a listing
_CONNECTIONS = 64  # that stay open for later requests
_PART_UNIT = 256 * 1024  # each part of an upload is a multiple of it
_INCOMPLETE, _CANCELLED = 308, 499  # statuses of an unfinished upload, and of a cancelled one
_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_UNREACHABLE = ("NewConnectionError", "NameResolutionError")
_CURES = {
    404: "Make the bucket, or correct its name.",
    401: "The credentials are not valid, or have expired.",
    403: "The credentials may not do that: look at the roles of the account, and, for a bucket whose readers pay, at the option "
    "gcs.user_project.",
}
_ENDPOINT_CURE = "Check the endpoint (the option gcs.endpoint) and the network."
_NO_CREDENTIALS = (
    "Give the option gcs.service_account_file, or set up application default credentials where pydelta runs (on executors too), "
    "or read a public bucket with gcs.anonymous=true."
)


_ANY_SIZE = 2**63 - 1  # the store copies objects of any size


class GcsClient:
    """An ObjectClient, whose containers are buckets and whose objects are blobs."""

    def __init__(self, options: StorageOptions) -> None:
        self._options = options
        timeout = options.number("storage.request_timeout", _TIMEOUT_SECONDS)
        # retry: connection.py repeats requests. timeout: seconds to connect, and to wait for data.
        self._settings: dict[str, Any] = {"retry": None, "timeout": (min(_CONNECT_SECONDS, timeout), timeout)}
        endpoint = options.get("gcs.endpoint")
        try:
            self._client = storage.Client(
                project=options.get("gcs.project") or "none",  # only existing buckets are used
                credentials=_credentials(options),
                client_options=None if endpoint is None else {"api_endpoint": endpoint},
            )
        except google.auth.exceptions.GoogleAuthError as error:
            raise self._credentials_error(error) from error
        self._client._bucket_metadata_cache = None  # else it requests buckets in its own threads, also after each miss
        adapter = requests.adapters.HTTPAdapter(pool_connections=_CONNECTIONS, pool_maxsize=_CONNECTIONS)
        for scheme in ("https://", "http://"):
            self._client._http.mount(scheme, adapter)  # the SDK's own pool holds ten connections

    def _blob(self, container: str, key: str) -> Any:
        return self._client.bucket(container, user_project=self._options.get("gcs.user_project")).blob(key)

    # ------------------------------------------------------------ reading

    def get(self, container: str, key: str, start: int = 0, length: int | None = None) -> bytes:
        """The bytes from `start`: `length` of them, or all up to the end. Fewer at the end of the object, and none after it."""
        blob = self._blob(container, key)
        if start == 0 and length is None:
            return self._send_request(
                f"{container}/{key}", lambda: bytes(blob.download_as_bytes(**self._settings)), is_for_object=True
            )
        end = None if length is None else start + length - 1
        try:
            # The store's checksums are of whole objects, so a part cannot be checked.
            range_arguments = {"start": start, "end": end, "checksum": None, **self._settings}
            return self._send_request(
                f"{container}/{key}", lambda: bytes(blob.download_as_bytes(**range_arguments)), is_for_object=True
            )
        except BeyondTheEnd:
            return b""

    def get_into(self, container: str, key: str, start: int, target: memoryview) -> int:
        """Read as many bytes from `start` as `target` has, into `target`. Returns how many bytes the answer has: more than
        `target` if the store ignores ranges."""
        blob, end = self._blob(container, key), start + len(target) - 1

        def fill() -> int:
            sink = _Filler(target)
            blob.download_to_file(sink, start=start, end=end, checksum=None, **self._settings)
            return sink.count

        try:
            return self._send_request(f"{container}/{key}", fill, is_for_object=True)
        except BeyondTheEnd:
            return 0

    def size(self, container: str, key: str) -> int:
        """The object's size in bytes."""
        blob = self._blob(container, key)
        self._send_request(f"{container}/{key}", lambda: blob.reload(**self._settings), is_for_object=True)
        return int(blob.size)

    def list_page(self, container: str, prefix: str, start: str, *, deep: bool, token: str | None) -> ListedPage:
        """Objects whose keys begin with `prefix` and are at least `start`, one page of them. deep: at any depth below the prefix.
        token: of the page; None for the first one."""

        def request_page() -> ListedPage:
            listing = self._client.list_blobs(
                self._client.bucket(container, user_project=self._options.get("gcs.user_project")),
                prefix=prefix,
                start_offset=start,
                delimiter=None if deep else "/",
                page_size=_PAGE,
                page_token=token,
                **self._settings,
            )
            page = next(listing.pages, ())
            return ListedPage([_object_info(blob) for blob in page if not blob.name.endswith("/")], listing.next_page_token)

        return self._send_request(f"{container}/{prefix}", request_page)

    # ------------------------------------------------------------ writing

    def put(self, container: str, key: str, data: bytes) -> None:
        self._send_request(f"{container}/{key}", lambda: self._blob(container, key).upload_from_string(data, **self._settings))

    def put_new(self, container: str, key: str, data: bytes) -> None:
        """Write an object if there is none of that key: of two callers only one succeeds."""
        blob = self._blob(container, key)
        self._send_request(f"{container}/{key}", lambda: blob.upload_from_string(data, if_generation_match=0, **self._settings))

    @property
    def copies_up_to(self) -> int:
        return _ANY_SIZE

    def copy(self, container: str, key: str, to_container: str, to_key: str) -> None:
        """Copy an object within the store, replacing any other."""
        source_blob, blob = self._blob(container, key), self._blob(to_container, to_key)
        token: str | None = None
        while True:  # a large object needs several requests
            token, _, _ = self._send_request(
                f"{to_container}/{to_key}",
                lambda token=token: blob.rewrite(source_blob, token=token, **self._settings),  # type: ignore[misc]
                is_for_object=True,
            )
            if token is None:
                return

    def delete(self, container: str, key: str) -> None:
        try:
            self._send_request(
                f"{container}/{key}", lambda: self._blob(container, key).delete(**self._settings), is_for_object=True
            )
        except FileNotFoundError:
            return

    def begin_upload(self, container: str, key: str) -> Upload:
        """Begin an object that is sent in parts."""
        return _ResumableUpload(self, container, key)

    def abort_uploads(self, container: str, prefix: str, part_of_name: str) -> None:
        """Nothing to do: the store cannot list uploads. They expire after a week."""

    # ------------------------------------------------------------ requests and their errors

    def begin_resumable(self, container: str, key: str) -> str:
        """Begin an upload that is sent in parts, and return the URL for them."""
        base = self._client._connection.get_api_base_url_for_mtls()
        payer = self._options.get("gcs.user_project")
        query = urlencode({"uploadType": "resumable", "name": key, **({} if payer is None else {"userProject": payer})})
        url = f"{base}/upload/storage/v1/b/{quote(container, safe='')}/o?{query}"
        return str(self.send(f"{container}/{key}", "POST", url).headers["Location"])

    def send(self, where: str, method: str, url: str, headers: Mapping[str, str] | None = None, data: bytes = b"") -> Any:
        """Send a request that the SDK has no method for, with the SDK's credentials."""
        timeout = self._settings["timeout"]
        session = self._client._http
        all_headers = {"Content-Length": str(len(data)), **(headers or {})}
        # No redirects: status 308 is a redirect for `requests`, and here it says that an upload is incomplete.
        answer = self._send_request(
            where, lambda: session.request(method, url, data=data, headers=all_headers, timeout=timeout, allow_redirects=False)
        )
        if answer.status_code not in (200, 201, 204, _INCOMPLETE, _CANCELLED):
            raise self._status_error(where, answer.status_code, OSError(f"{answer.status_code} {answer.text[:200]}"))
        return answer

    def _send_request(self, where: str, request: Callable[[], T], *, is_for_object: bool = False) -> T:
        """Send a request; the SDK's errors become those of ObjectClient. where: the object or bucket, for messages.
        is_for_object: the request needs an existing object, so status 404 raises FileNotFoundError; otherwise only the bucket can
        be missing, which is a StorageError."""
        try:
            return request()
        except exceptions.NotFound as error:
            if is_for_object:
                raise FileNotFoundError(2, "No such object", where) from error
            raise self._status_error(where, 404, error) from error
        except exceptions.PreconditionFailed as error:
            raise FileExistsError(errno.EEXIST, "There is an object of that name", where) from error
        except exceptions.RequestRangeNotSatisfiable as error:
            raise BeyondTheEnd from error
        except exceptions.GoogleAPICallError as error:
            raise self._status_error(where, int(error.code or 0), error) from error
        except InvalidResponse as error:
            raise self._status_error(where, int(error.response.status_code), error) from error
        except (requests.exceptions.ConnectTimeout, requests.exceptions.SSLError) as error:
            raise NotAnswered(self._error_text(error), is_unreachable=True, cure=_ENDPOINT_CURE) from error
        except requests.exceptions.RequestException as error:
            is_unreachable = any(name in repr(error) for name in _UNREACHABLE)
            cure = _ENDPOINT_CURE if is_unreachable else None
            raise NotAnswered(self._error_text(error), is_unreachable=is_unreachable, cure=cure) from error
        except (google.auth.exceptions.TransportError, ConnectionError, TimeoutError) as error:
            raise NotAnswered(self._error_text(error)) from error
        except google.auth.exceptions.GoogleAuthError as error:
            raise self._credentials_error(error) from error

    def _status_error(self, where: str, status: int, error: Exception) -> Exception:
        """The exception for an error status: StorageError if the status is a refusal, otherwise NotAnswered."""
        if status not in REFUSALS:
            return NotAnswered(self._error_text(error))
        return StorageError(
            f"The store refuses a request to {where}: {self._error_text(error)}. {_CURES.get(status, '')}".rstrip(),
            where=where,
            status=status,
        )

    def _credentials_error(self, error: Exception) -> StorageError:
        return StorageError(f"There are no credentials for Google Cloud Storage: {self._error_text(error)}. {_NO_CREDENTIALS}")

    def _error_text(self, error: Exception) -> str:
        return self._options.hide(str(error))


def _credentials(options: StorageOptions) -> Any:
    """The credentials that the options give; None for the SDK's default credentials. Raises InvalidOptionError if the key of a
    service account cannot be read."""
    key_file, key_json = options.get("gcs.service_account_file"), options.get("gcs.service_account_json")
    access_token = options.get("gcs.access_token")
    if options.flag("gcs.anonymous"):
        return AnonymousCredentials()
    if access_token is not None:
        return google.oauth2.credentials.Credentials(access_token)
    service_account = google.oauth2.service_account.Credentials
    try:
        if key_file is not None:
            return service_account.from_service_account_file(key_file, scopes=[_SCOPE])
        if key_json is not None:
            return service_account.from_service_account_info(json.loads(key_json), scopes=[_SCOPE])
    except (OSError, ValueError) as error:
        name = "gcs.service_account_file" if key_file is not None else "gcs.service_account_json"
        raise InvalidOptionError(
            f"The option {name} names no service account: {options.hide(type(error).__name__)}. It is the key file that Google's "
            "console makes, as JSON.",
            option=name,
        ) from None  # the error may quote the key
    return None


class _Filler:
    """The target of the SDK's downloads: a buffer. More bytes may arrive than it has room for. count: bytes that arrived."""

    def __init__(self, target: memoryview) -> None:
        self._target, self.count = target, 0

    def write(self, data: bytes) -> int:
        room = self._target[self.count : self.count + len(data)]
        room[:] = data[: len(room)]
        self.count += len(data)
        return len(data)  # as if all bytes had been written, so that the SDK goes on


def _object_info(blob: Any) -> ObjectInfo:
    # The generation changes with each write of the object, so it serves as ETag.
    return ObjectInfo(blob.name, int(blob.size), int(blob.updated.timestamp() * 1000), str(blob.generation))


class _ResumableUpload:
    """Parts are sent one after the other. If a request is not answered, the next one asks the store how many bytes it has,
    and the remaining bytes are sent.

    The SDK's own upload writer cannot continue in that case, and it creates the object from incomplete data when it is
    garbage-collected.
    """

    def __init__(self, owner: GcsClient, container: str, key: str) -> None:
        self._owner, self._container, self._key = owner, container, key
        self._url: str | None = None
        self._sent_bytes = 0  # bytes that are certainly stored
        self._unsent_tail = b""  # the bytes after these: fewer than _PART_UNIT, so only `finish` can send them
        self._last_part = -1  # the number of the newest part that put_part handled completely; -1 before the first
        self._is_in_doubt = False  # the outcome of the last request is unknown

    @property
    def takes_many(self) -> bool:
        return False

    def put_part(self, number: int, data: bytes) -> None:
        """Send all bytes but the last few: the store takes only multiples of _PART_UNIT before the end of the object."""
        if number == self._last_part:  # the interface allows sending a part again
            return
        content = self._unsent_tail + data
        sendable_bytes = len(content) - len(content) % _PART_UNIT
        self._send(content[:sendable_bytes], total=None)
        self._unsent_tail, self._last_part = content[sendable_bytes:], number

    def finish(self, count: int) -> None:
        self._send(self._unsent_tail, total=self._sent_bytes + len(self._unsent_tail))

    def abort(self) -> None:
        if self._url is not None:
            self._owner.send(f"{self._container}/{self._key}", "DELETE", self._url)

    def _send(self, content: bytes, total: int | None) -> None:
        """Send the bytes of the object that follow the first `_sent_bytes` ones. total: the object's size in bytes if `content`
        is the end of the object, otherwise None."""
        # If it is not known whether an earlier request was carried out, ask the store how much it has.
        stored_bytes: int | None = self._send_range(b"", self._sent_bytes, total) if self._is_in_doubt else self._sent_bytes
        # The store may take less than it was sent. With a total, the loop ends when the object is complete, and
        # `stored_bytes` is None.
        while stored_bytes is not None and (total is not None or stored_bytes < self._sent_bytes + len(content)):
            self._is_in_doubt = True
            stored_bytes = self._send_range(content[stored_bytes - self._sent_bytes :], stored_bytes, total)
            self._is_in_doubt = False
        self._is_in_doubt = False
        self._sent_bytes += len(content)

    def _send_range(self, data: bytes, start: int, total: int | None) -> int | None:
        """Send data that begins at the position `start` of the object. Returns how many bytes of the object are stored then; None
        once the object is complete. If `data` is empty, the request only asks how many bytes are stored. total: as in _send."""
        span = f"{start}-{start + len(data) - 1}" if data else "*"
        headers = {"Content-Range": f"bytes {span}/{'*' if total is None else total}"}
        answer = self._owner.send(f"{self._container}/{self._key}", "PUT", self._upload_url(), headers, data)
        if answer.status_code != _INCOMPLETE:
            return None
        stored_range = answer.headers.get("Range", "")
        stored_bytes = int(stored_range.rpartition("-")[2]) + 1 if stored_range else 0
        if stored_bytes < self._sent_bytes:
            raise NotAnswered(f"the upload of {self._key} has {stored_bytes} bytes, and had {self._sent_bytes}")
        return stored_bytes

    def _upload_url(self) -> str:
        """The URL for the parts. The first call sends the request that begins the upload."""
        if self._url is None:
            self._url = self._owner.begin_resumable(self._container, self._key)
        return self._url
