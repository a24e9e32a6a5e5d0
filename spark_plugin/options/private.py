"""Options that pydelta itself sets, and how a source recognizes that pydelta set them.

They name files to read, commands to run and settings to trust. But options come from many places: from the user, from OPTIONS of
an entry of the catalog, from the text of another user's view (`SELECT * FROM t WITH (...)`). So the source that `register` adds
to a session has a nonce, and accepts private options only together with the same nonce:

    signed({FILES: listed}, nonce)      # the code that sets them
    admitted(options, nonce)            # the source: the options without the nonce, or an error
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping

from delta_py.errors import InvalidOptionError

_PREFIX = "pydelta."
_NONCE = "pydelta.nonce"


def is_private(name: str) -> bool:
    """Return whether only pydelta may set the option."""
    return name.lower().startswith(_PREFIX)


def signed(options: Mapping[str, str], nonce: str) -> dict[str, str]:
    """Return the options with the nonce, which proves that pydelta set them."""
    return {**options, _NONCE: nonce}


def admitted(options: Mapping[str, str], nonce: str | None) -> dict[str, str]:
    """Return the options without the nonce. nonce: the one of the source that got the options; None if `register` has not
    registered this source, which then accepts no private options.

    Raises InvalidOptionError for private options with no nonce or with another one.
    """
    option_nonce = next((value for name, value in options.items() if name.lower() == _NONCE), None)
    if option_nonce is None or nonce is None or not hmac.compare_digest(str(option_nonce).encode(), nonce.encode()):
        refuse_private(options)
    return {name: value for name, value in options.items() if name.lower() != _NONCE}


def refuse_private(names: Iterable[str], place: str = "This read or write") -> None:
    """Raise InvalidOptionError if one of the names is a private option, which only pydelta may set. place: what has these
    options, as the subject of the message."""
    private = sorted(filter(is_private, names))
    if private:
        raise InvalidOptionError(
            f"{place} gives the options {', '.join(private)}, which only pydelta's own methods set, in a session that has called "
            "register(spark). Nothing was read or written. Leave them out; where they stand in an entry of the catalog or in a "
            "view, look who made it.",
            option=private[0],
        )
