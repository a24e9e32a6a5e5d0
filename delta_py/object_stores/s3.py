"""S3 and stores that speak its protocol, by boto3.

A commit is one PUT with `If-None-Match: *`. S3 answers 412 if an object of that name exists, and 409 if another writer is writing
it. Stores that speak S3's protocol but ignore the condition would overwrite another writer's commit. So the client tests once per
process whether an endpoint respects it, by writing an object twice, and does not commit to an endpoint that does not. Amazon's
own endpoints are known to respect it.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from delta_py.aws_clients import aws_client, call_aws
from delta_py.errors import StorageError
from delta_py.object_stores.aws import access_of
from delta_py.object_stores.client import PIECE_BYTES, ListedPage, Upload
from delta_py.remote_requests import BeyondTheEnd, NotAnswered
from delta_py.storage.store import ObjectInfo
from delta_py.storage.store_options import StorageOptions

T = TypeVar("T")

_PAGE = 1000
_LARGEST_COPY_BYTES = 5 * 1024**3  # S3 copies larger objects only in parts
_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")


class S3Client:
    """An ObjectClient, whose containers are buckets."""

    def __init__(self, options: StorageOptions) -> None:
        endpoint = options.get("s3.endpoint") or _endpoint_of_environment()
        # An endpoint other than Amazon's: most such stores do not support a domain for each bucket, and some do not know the
        # checksums that boto3 adds by default.
        addressing = "path" if options.flag("s3.path_style") or endpoint is not None else "auto"
        checksums = (
            {}
            if endpoint is None
            else dict.fromkeys(("request_checksum_calculation", "response_checksum_validation"), "when_required")
        )
        self._access = access_of(options, endpoint=endpoint, region=options.get("s3.region"), endpoint_option="s3.endpoint")
        self._s3 = aws_client("s3", self._access, s3={"addressing_style": addressing}, **checksums)
        self._endpoint: str = self._s3.meta.endpoint_url  # also one from a profile
        self._payer = {"RequestPayer": "requester"} if options.flag("s3.requester_pays") else {}
        self._condition = _Condition(is_respected=(urlsplit(self._endpoint).hostname or "").endswith(_AMAZON))

    def _send_request(self, where: str, request: Callable[[], T]) -> T:
        """Send a request; boto3's errors become those of ObjectClient. where: the object or container, for messages."""
        return call_aws(where, self._access, request)

    # ------------------------------------------------------------ reading

    def get(self, container: str, key: str, start: int = 0, length: int | None = None) -> bytes:
        """The bytes from `start`: `length` of them, or all up to the end. Fewer at the end of the object, and none after it."""
        last = "" if length is None else start + length - 1
        range_argument = {} if start == 0 and length is None else {"Range": f"bytes={start}-{last}"}
        try:
            return self._send_request(f"{container}/{key}", lambda: self._read_object(container, key, range_argument))
        except BeyondTheEnd:
            return b""

    def _read_object(self, container: str, key: str, range_argument: dict[str, str]) -> bytes:
        """The bytes of an object. range_argument: boto3's argument for a range, empty for the whole object."""
        answer = self._s3.get_object(Bucket=container, Key=key, **range_argument, **self._payer)
        with answer["Body"] as body:
            data: bytes = body.read()
        return data

    def get_into(self, container: str, key: str, start: int, target: memoryview) -> int:
        """Read as many bytes from `start` as `target` has, into `target`. Returns how many bytes the answer has: more than
        `target` if the store ignores ranges."""
        try:
            return self._send_request(f"{container}/{key}", lambda: self._read_into(container, key, start, target))
        except BeyondTheEnd:
            return 0

    def _read_into(self, container: str, key: str, start: int, target: memoryview) -> int:
        """As get_into, but with boto3's errors."""
        range_argument = {"Range": f"bytes={start}-{start + len(target) - 1}"}
        answer = self._s3.get_object(Bucket=container, Key=key, **range_argument, **self._payer)
        with answer["Body"] as body:
            filled = 0
            while read := body.readinto(target[filled : filled + PIECE_BYTES]):
                filled += read
            return max(filled, int(answer["ContentLength"]))  # more than the target has if the store ignores ranges

    def size(self, container: str, key: str) -> int:
        """The object's size in bytes."""
        answer = self._send_request(f"{container}/{key}", lambda: self._s3.head_object(Bucket=container, Key=key, **self._payer))
        return int(answer["ContentLength"])

    def list_page(self, container: str, prefix: str, start: str, *, deep: bool, token: str | None) -> ListedPage:
        """Objects whose keys begin with `prefix` and are at least `start`, one page of them. deep: at any depth below the prefix.
        token: of the page; None for the first one."""
        arguments: dict[str, Any] = {"Bucket": container, "Prefix": prefix, "MaxKeys": _PAGE, **self._payer}
        if not deep:
            arguments["Delimiter"] = "/"
        if token is not None:
            arguments["ContinuationToken"] = token
        elif len(start) > len(prefix):
            arguments["StartAfter"] = start[:-1]  # S3 excludes this key itself, and `start` must be included
        answer = self._send_request(f"{container}/{prefix}", lambda: self._s3.list_objects_v2(**arguments))
        if "IsTruncated" not in answer:
            raise NotAnswered("the answer is not a listing: something in between answered instead of the store")
        objects = [_object_info(entry) for entry in answer.get("Contents", ()) if not entry["Key"].endswith("/")]
        return ListedPage(objects, answer.get("NextContinuationToken") if answer["IsTruncated"] else None)

    # ------------------------------------------------------------ writing

    def put(self, container: str, key: str, data: bytes) -> None:
        self._send_request(f"{container}/{key}", lambda: self._s3.put_object(Bucket=container, Key=key, Body=data, **self._payer))

    def put_new(self, container: str, key: str, data: bytes) -> None:
        """Write an object if there is none of that key: of two callers only one succeeds."""
        self._condition.test_once(lambda: self._test_condition(container, key.rpartition("/")[0]))
        self._put_new(container, key, data)

    def _put_new(self, container: str, key: str, data: bytes) -> None:
        arguments = {"Bucket": container, "Key": key, "Body": data, "IfNoneMatch": "*", **self._payer}
        self._send_request(f"{container}/{key}", lambda: self._s3.put_object(**arguments))

    def _test_condition(self, container: str, directory: str) -> None:
        """Write an object twice as a new one. Raises StorageError if the second write succeeds too."""
        key = f"{directory}/.pydelta-{uuid.uuid4().hex}.tmp".removeprefix("/")
        try:
            self._put_new(container, key, b"a second write must fail")
            self._put_new(container, key, b"it did not")
        except FileExistsError:
            return
        finally:
            self.delete(container, key)
        raise StorageError(
            f"The endpoint {self._endpoint} accepts a write of a new object (If-None-Match: *) although the object exists: "
            "two writers would overwrite each other's commits. Nothing was committed. Use a store that keeps the condition, or "
            "let DynamoDB decide: the option s3.dynamodb_table, given to every writer of the table.",
            endpoint=self._endpoint,
        )

    @property
    def copies_up_to(self) -> int:
        return _LARGEST_COPY_BYTES

    def copy(self, container: str, key: str, to_container: str, to_key: str) -> None:
        arguments = {"Bucket": to_container, "Key": to_key, "CopySource": {"Bucket": container, "Key": key}, **self._payer}
        self._send_request(f"{to_container}/{to_key}", lambda: self._s3.copy_object(**arguments))

    def delete(self, container: str, key: str) -> None:
        self._send_request(f"{container}/{key}", lambda: self._s3.delete_object(Bucket=container, Key=key, **self._payer))

    def begin_upload(self, container: str, key: str) -> Upload:
        """Begin an object that is sent in parts."""
        arguments = {"Bucket": container, "Key": key, **self._payer}
        answer = self._send_request(f"{container}/{key}", lambda: self._s3.create_multipart_upload(**arguments))
        return _MultipartUpload(self, container, key, answer["UploadId"])

    def abort_uploads(self, container: str, prefix: str, part_of_name: str) -> None:
        """Abort unfinished uploads of other processes: of keys below `prefix` whose last part contains `part_of_name`."""
        pages = self._s3.get_paginator("list_multipart_uploads").paginate(Bucket=container, Prefix=prefix, **self._payer)
        uploads = self._send_request(
            f"{container}/{prefix}", lambda: [upload for page in pages for upload in page.get("Uploads", ())]
        )
        for upload in uploads:
            if part_of_name in upload["Key"].rpartition("/")[2]:
                _MultipartUpload(self, container, upload["Key"], upload["UploadId"]).abort()


def _endpoint_of_environment() -> str | None:
    """boto3 reads these variables by itself; here they decide how bucket names are sent to the endpoint."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def _object_info(entry: dict[str, Any]) -> ObjectInfo:
    etag = entry.get("ETag", "").strip('"') or None
    return ObjectInfo(entry["Key"], entry["Size"], int(entry["LastModified"].timestamp() * 1000), etag)


class _MultipartUpload:
    """An Upload. S3 numbers parts from 1, ObjectClient from 0. `_etags`: the ETag of each part, by ObjectClient's numbers; S3
    needs them to join the parts."""

    def __init__(self, owner: S3Client, container: str, key: str, upload_id: str) -> None:
        self._owner, self._container, self._key = owner, container, key
        self._where = f"{container}/{key}"
        self._upload_arguments = {"Bucket": container, "Key": key, "UploadId": upload_id, **owner._payer}
        self._etags: dict[int, str] = {}

    @property
    def takes_many(self) -> bool:
        return True

    def put_part(self, number: int, data: bytes) -> None:
        s3 = self._owner._s3
        answer = self._owner._send_request(
            self._where, lambda: s3.upload_part(**self._upload_arguments, PartNumber=number + 1, Body=data)
        )
        self._etags[number] = answer["ETag"]

    def finish(self, count: int) -> None:
        parts = {"Parts": [{"PartNumber": number + 1, "ETag": self._etags[number]} for number in range(count)]}
        s3 = self._owner._s3
        try:
            self._owner._send_request(
                self._where, lambda: s3.complete_multipart_upload(MultipartUpload=parts, **self._upload_arguments)
            )
        except FileNotFoundError:  # the upload no longer exists: an earlier request has finished it, and its answer was lost
            self._owner.size(self._container, self._key)  # raises if there is no such object

    def abort(self) -> None:
        s3 = self._owner._s3
        try:
            self._owner._send_request(self._where, lambda: s3.abort_multipart_upload(**self._upload_arguments))
        except FileNotFoundError:  # the upload is already finished or aborted
            return


class _Condition:
    """Whether the endpoint respects `If-None-Match: *`. After it has passed the test, it is not tested again."""

    def __init__(self, *, is_respected: bool) -> None:
        self._is_respected, self._lock = is_respected, threading.Lock()

    def test_once(self, probe: Callable[[], None]) -> None:
        """Test the endpoint, unless it has passed the test before. probe: the test, which raises if the endpoint ignores the
        condition."""
        if self._is_respected:
            return
        with self._lock:
            if not self._is_respected:
                probe()
                self._is_respected = True
