"""Access tokens for a Unity Catalog server, from storage options or the environment.

token_for("https://catalog.example.com", {"unity.token": "..."}).value()
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from delta_py.errors import InvalidOptionError
from delta_py.unity.server_urls import HOST_VARIABLE, TOKEN_VARIABLE, server_url

TOKEN_OPTION = "unity.token"


@dataclass(frozen=True, slots=True)
class FixedToken:
    """text: None for a server without authorization."""

    text: str | None = field(default=None, repr=False)

    def value(self) -> str | None:
        return self.text

    def secrets(self) -> tuple[str, ...]:
        return () if self.text is None else (self.text,)


def token_for(server: str, options: Mapping[str, str]) -> FixedToken:
    """The token of the options, or that of the environment if it is for this server. Raises InvalidOptionError for a text that
    no request can contain."""
    text = options.get(TOKEN_OPTION)
    if text is None and _is_of_environment(server):
        text = os.environ.get(TOKEN_VARIABLE)
    if text is not None and not all("!" <= character <= "~" for character in text):
        raise InvalidOptionError(
            f"The token in the option {TOKEN_OPTION} contains characters that no request can contain, such as line breaks. Give "
            "the token alone.",
            option=TOKEN_OPTION,
        )
    return FixedToken(text or None)


def _is_of_environment(server: str) -> bool:
    host = os.environ.get(HOST_VARIABLE)
    return host is not None and host != "" and server_url(host) == server
