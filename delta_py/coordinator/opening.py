"""Which ledger a URL means: open_ledger("sqlite:///path/of/ledger.db")."""

from __future__ import annotations

import threading

from delta_py.coordinator.ledger import Ledger
from delta_py.coordinator.sqlite_ledger import SqliteLedger
from delta_py.errors import InvalidOptionError

_SQLITE = "sqlite:///"
_open: dict[str, Ledger] = {}
_lock = threading.Lock()


def open_ledger(url: str) -> Ledger:
    """The same for all tables of the process. Raises InvalidOptionError for a URL that names no ledger,
    CoordinatorUnavailableError."""
    with _lock:
        if url not in _open:
            _open[url] = _opened(url)
        return _open[url]


def _opened(url: str) -> Ledger:
    if url.startswith(_SQLITE) and len(url) > len(_SQLITE):
        return SqliteLedger(f"/{url.removeprefix(_SQLITE).lstrip('/')}")
    scheme = url.partition(":")[0]
    raise InvalidOptionError(
        f"No coordinator has URLs of the scheme {scheme!r}. Use sqlite:///path/of/file.db.", option="coordinator", scheme=scheme
    )
