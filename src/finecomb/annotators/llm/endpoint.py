"""What answers chat requests, and the address where it is."""

from __future__ import annotations

import typing
from urllib.parse import urlsplit

from finecomb.annotators.llm.chat import ChatReply, ChatRequest
from finecomb.core.errors import ParameterError, param
from finecomb.core.optional_packages import need_packages


class CallError(Exception):
    """A call that gave no reply; `again` says that trying again may help, after `wait` seconds where known."""

    def __init__(self, message: str, again: bool = False, wait: float | None = None, maybe_paid: bool = False) -> None:
        super().__init__(message)
        self.again, self.wait, self.maybe_paid = again, wait, maybe_paid


class Endpoint(typing.Protocol):
    """Something that answers chat requests."""

    host: str
    """Where it is, without path and key; part of what is recorded."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The reply to one request; a CallError when there is none, a FinecombError when there will never be one."""
        ...

    async def close(self) -> None:
        """Let go of connections or memory."""
        ...


def parse_host(base_url: str) -> str:
    """Host and port of an address; an error when it is none, or when it holds a password or key, which would be stored.

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
            f"{param('base_url', repr(base_url))} is no address; expected e.g. http://localhost:11434/v1",
            parameter="base_url",
        )
    if parts.username or parts.password or parts.query:
        where = f"{parts.scheme}://{parts.hostname}"
        raise ParameterError(
            f"{param('base_url', f'{where}...')}: holds a name, a password or a query, which would be written into"
            f" records; put the key into an environment variable and name it with {param('key_env')}",
            parameter="base_url",
        )
    return f"{parts.hostname}:{port}" if port else parts.hostname


def need_call_packages() -> None:
    """An error where a package that calls need is not installed: before anything is asked, since replies are paid."""
    need_packages("language models need", "httpx2", "json_repair", "stamina")
