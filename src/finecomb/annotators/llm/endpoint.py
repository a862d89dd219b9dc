"""The interface of endpoints that answer chat requests, and validation of their addresses."""

from __future__ import annotations

import typing
from urllib.parse import urlsplit

from finecomb.annotators.llm.chat import ChatReply, ChatRequest
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.optional_packages import require_packages


class CallError(Exception):
    """Error for a call without a reply. `again` is True if a retry may succeed, after `wait` seconds if known."""

    def __init__(self, message: str, again: bool = False, wait: float | None = None, maybe_paid: bool = False) -> None:
        super().__init__(message)
        self.again, self.wait, self.maybe_paid = again, wait, maybe_paid


class EndpointError(FinecombError):
    """Error that ends a run, because every further call would fail: no money, a wrong key or an unknown model."""


class Endpoint(typing.Protocol):
    """A service that answers chat requests."""

    host: str
    """Host and port without path or key, stored in run records."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply to a request.

        Raise CallError if the call failed, or FinecombError if every call would fail.
        """

    async def close(self) -> None:
        """Release connections or memory."""


def parse_host(base_url: str) -> str:
    """Return the host and port of an address.

    Addresses with a password or query are rejected, because run records would store them.

    >>> parse_host("https://models.example:8443/v1")
    'models.example:8443'
    """
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ParameterError(
            f"{param('base_url', repr(base_url))} is not an HTTP address; use an address such as http://localhost:11434/v1",
            parameter="base_url",
        )
    if parts.username or parts.password or parts.query:
        where = f"{parts.scheme}://{parts.hostname}"
        raise ParameterError(
            f"{param('base_url', f'{where}...')} contains a user name, password or query, which would be stored in"
            f" records; set the key in an environment variable and pass its name with {param('key_env')}",
            parameter="base_url",
        )
    return f"{parts.hostname}:{port}" if port else parts.hostname


def require_call_packages() -> None:
    """Raise an error if a package required for calls is missing, before any call costs money."""
    require_packages("language models require", "httpx2", "json_repair", "stamina")
