"""Uvicorn configuration, and a timeout for connections that never finish a request."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence
from typing import Any

import uvicorn
from uvicorn.config import LOGGING_CONFIG
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from finecomb.core.errors import ParameterError, param

HEADER_TIMEOUT_SECONDS = 30.0
"""Maximum seconds until the headers of a request have arrived."""


MAX_HEADER_BYTES = 64_000
"""Maximum size in bytes of the headers of a request."""


class HeaderTimeoutProtocol(HttpToolsProtocol):
    """Uvicorn's HTTP protocol, with limits on the time and size of a request's headers."""

    _deadline: asyncio.TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """Start the timeout for a new connection."""
        super().connection_made(transport)
        self._start_timeout()

    def data_received(self, data: bytes) -> None:
        """Handle received bytes, which may be a whole request or part of its headers."""
        is_in_headers = self.cycle is None or self.cycle.response_complete
        self._header_bytes = self._header_bytes + len(data) if is_in_headers else 0
        super().data_received(data)
        is_in_headers = is_in_headers and (self.cycle is None or self.cycle.response_complete)
        if is_in_headers and self._header_bytes > MAX_HEADER_BYTES:  # the parser itself has no limit
            self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n")
            self.transport.close()
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel_timeout()
        elif self._deadline is None:
            self._start_timeout()

    def on_response_complete(self) -> None:
        """Cancel the timeout after a response. Uvicorn itself limits idle connections."""
        self._cancel_timeout()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout of a closed connection."""
        self._cancel_timeout()
        super().connection_lost(exc)

    def _start_timeout(self) -> None:
        self._deadline = self.loop.call_later(HEADER_TIMEOUT_SECONDS, self._close_if_idle)

    def _cancel_timeout(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_if_idle(self) -> None:
        self._deadline = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


LOCAL_PROXIES = ("127.0.0.1", "::1")
"""Addresses of a proxy on this machine, which is always trusted if the server has a public URL."""


def parse_trusted_proxies(proxies: Sequence[str], public_url: str) -> tuple[str, ...]:
    """Return the addresses and networks of trusted proxies, or raise an error if clients could forge their address.

    >>> parse_trusted_proxies(["10.89.0.0/24"], "https://study.example.org")
    ('127.0.0.1', '::1', '10.89.0.0/24')
    """
    if proxies and not public_url:
        raise ParameterError(f"{param('trusted_proxies')} requires {param('public_url')}", parameter="trusted_proxies")
    for proxy in proxies:
        try:
            network = ipaddress.ip_network(proxy)
        except ValueError:
            raise ParameterError(
                f"{param('trusted_proxies', proxy)}: expected an IP address or network, such as 172.16.0.0/12",
                parameter="trusted_proxies",
            ) from None
        if network.prefixlen == 0:
            raise ParameterError(
                f"{param('trusted_proxies', proxy)} lets every client forge its address; name your proxy's own",
                parameter="trusted_proxies",
            )
    return (*LOCAL_PROXIES, *proxies)


def build_uvicorn_config(
    app: Any, public_url: str, log_format: str = "text", trusted_proxies: Sequence[str] = LOCAL_PROXIES
) -> uvicorn.Config:
    """Build the uvicorn configuration. With a public address, `trusted_proxies` may say where a request comes from."""
    return uvicorn.Config(
        app,
        http=HeaderTimeoutProtocol,
        log_level="warning",
        access_log=False,  # paths contain sign-in tokens
        lifespan="off",
        timeout_keep_alive=75,
        timeout_graceful_shutdown=10,
        proxy_headers=bool(public_url),  # without a proxy, clients could forge their address
        forwarded_allow_ips=list(trusted_proxies),
        log_config=None if log_format == "json" else LOGGING_CONFIG,  # with None, all loggers use the same handler
    )


def maximise_open_file_limit() -> None:
    """Raise the limit on open files, and thus on connections, to the maximum allowed."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
