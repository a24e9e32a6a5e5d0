"""The endpoint of a Unity Catalog server that exchanges tokens of an identity provider for its own."""

from __future__ import annotations

from typing import Any

EXCHANGE_PATH = "/api/1.0/unity-control/auth/tokens"
_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"


class TokenExchange:
    """identities: tokens that are exchanged for the server's token. exchanges: the forms of all requests."""

    def __init__(self, token: str | None) -> None:
        self.token = token
        self.identities: set[str] = set()
        self.exchanges: list[dict[str, str]] = []

    def exchange(self, form: dict[str, str]) -> tuple[int, Any]:
        """As AuthService of the open-source server, which says nothing of the token's end."""
        self.exchanges.append(form)
        kind = "urn:ietf:params:oauth:token-type"
        for name, value in (("grant_type", _GRANT), ("requested_token_type", f"{kind}:access_token")):
            if form.get(name) != value:
                return 400, {"error_code": "INVALID_ARGUMENT", "message": f"Unsupported {name}: {form.get(name)}"}
        if "subject_token_type" not in form:
            return 400, {"error_code": "INVALID_ARGUMENT", "message": "Subject token type is required but was not specified"}
        if form.get("subject_token") not in self.identities:
            return 400, {"error_code": "INVALID_ARGUMENT", "message": f"Invalid token {form.get('subject_token')}"}
        return 200, {"access_token": self.token, "issued_token_type": f"{kind}:access_token", "token_type": "Bearer"}
