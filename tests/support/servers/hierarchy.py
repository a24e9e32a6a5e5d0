"""An Azure account with a hierarchical namespace, simulated by a proxy before Azurite, which has none.

    with CuttingProxy(azurite.port, before=with_directories) as proxy: ...

Every directory is an object there too. Listings show them between the blobs: no bytes, the mark `hdi_isfolder` in their metadata,
`ResourceType` among their properties; listings of one level show them next to the prefixes of the same name.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from tests.support.servers.cutting_proxy import Answer, Ask, Request

_BLOB = re.compile(rb"<Blob>.*?</Blob>", re.DOTALL)
_NAME = re.compile(rb"<Name>(.*?)</Name>", re.DOTALL)
_PREFIX = re.compile(rb"<BlobPrefix>\s*<Name>(.*?)/</Name>.*?</BlobPrefix>", re.DOTALL)
_DIRECTORY = (
    b"<Blob><Name>%s</Name><Properties><Creation-Time>Tue, 24 Nov 2026 10:00:00 GMT</Creation-Time>"
    b"<Last-Modified>Tue, 24 Nov 2026 10:00:00 GMT</Last-Modified><Etag>0x8DD000000000000</Etag>"
    b"<ResourceType>directory</ResourceType><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>"
    b"<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState></Properties>"
    b"<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob>"
)


def with_directories(request: Request, endpoint: str, ask: Ask) -> Answer | None:
    """A Before of CuttingProxy: listings as this kind of account makes them."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(request.target).query).items()}
    if request.method != "GET" or query.get("comp") != "list":
        return None
    answer = ask(request)
    if answer.status != 200:
        return answer
    prefix = query.get("prefix", "").encode()
    named = [name[1] for blob in _BLOB.finditer(answer.body) if (name := _NAME.search(blob[0])) is not None]
    above = {name[:place] for name in named for place in range(len(name)) if name[place : place + 1] == b"/"}
    above |= {match[1] for match in _PREFIX.finditer(answer.body)}
    shown = sorted(name for name in above if name.startswith(prefix))
    body = answer.body.replace(b"<Blobs>", b"<Blobs>" + b"".join(_DIRECTORY % name for name in shown), 1)
    return Answer(answer.status, answer.headers, body)
