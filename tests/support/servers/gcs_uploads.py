"""Google's resumable uploads, before a server that supports them in part.

    CuttingProxy(emulator.port, before=ResumableUploads())

fake-gcs-server ends an upload if it is asked how far it came, and stores a repeated part twice: with it alone, the behaviour
after a lost answer cannot be tested. This proxy keeps uploads as Google's documentation describes, and complete objects go to the
server. All parts but the last have multiples of 256 KiB; of a part that arrives partly, complete units are stored. Status 308 and
its `Range` say how many bytes are stored; `bytes */*` asks for that. A complete upload always gets the same answer.
"""

from __future__ import annotations

import re
import threading
import uuid
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs, urlsplit

from tests.support.servers.cutting_proxy import Answer, Ask, Request

_UNIT = 256 * 1024
_RANGE = re.compile(r"bytes (?:(?P<first>\d+)-(?P<last>\d+)|\*)/(?:(?P<total>\d+)|\*)")


@dataclass
class _Session:
    target: str
    stored: bytearray = field(default_factory=bytearray)
    final: Answer | None = None


@dataclass
class ResumableUploads:
    """Answers requests of uploads instead of the server."""

    _sessions: dict[str, _Session] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request, endpoint: str, ask: Ask) -> Answer | None:
        """None for requests to the server. endpoint: of the proxy. ask: the server."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(request.target).query).items()}
        if query.get("uploadType") != "resumable":
            return None
        with self._lock:
            if request.method == "POST":
                return self._begin(request.target, endpoint)
            session = self._sessions.get(query.get("upload_id", ""))
            if session is None:
                return Answer(404, [], b"there is no such upload")
            if request.method == "DELETE":
                del self._sessions[query["upload_id"]]
                return Answer(499, [], b"")
            return session.final or self._put(session, request, ask)

    def _begin(self, target: str, endpoint: str) -> Answer:
        upload_id = uuid.uuid4().hex
        self._sessions[upload_id] = _Session(target)
        return Answer(200, [("Location", f"{endpoint}{target}&upload_id={upload_id}")], b"")

    def _put(self, session: _Session, request: Request, ask: Ask) -> Answer:
        span = _RANGE.fullmatch(request.headers["content-range"])
        if span is None:
            return Answer(400, [], b"the range cannot be read")
        total = None if span["total"] is None else int(span["total"])
        if span["first"] is not None:
            first, end = int(span["first"]), int(span["last"]) + 1
            if first > len(session.stored) or (end != total and (end - first) % _UNIT):
                return Answer(400, [], b"a part that leaves a gap, or has not the length of whole units")
            arrived = request.body if len(request.body) == end - first else request.body[: len(request.body) // _UNIT * _UNIT]
            session.stored += arrived[len(session.stored) - first :]
        if len(session.stored) == total:
            session.final = ask(_media_upload(request, session))
            return session.final
        return Answer(308, [("Range", f"bytes=0-{len(session.stored) - 1}")] if session.stored else [], b"")


def _media_upload(last: Request, session: _Session) -> Request:
    headers = {name: value for name, value in last.headers.items() if name != "content-range"}
    return replace(
        last,
        method="POST",
        target=session.target.replace("uploadType=resumable", "uploadType=media"),
        headers=headers,
        body=bytes(session.stored),
    )
