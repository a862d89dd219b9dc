"""How uvicorn is run; connections that never finish a request are closed, so that nobody keeps the places of others."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.config import LOGGING_CONFIG
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_TIMEOUT = 30.0
"""Seconds in which the head of a request has to arrive."""


class HeaderTimeoutProtocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, with a limit on how long the head of a request may take."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Somebody opened a connection."""
        super().connection_made(transport)
        self._start_timeout()

    def data_received(self, data: bytes) -> None:
        """Some bytes came: perhaps a whole request, perhaps half of its head."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel_timeout()
        elif self._deadline is None:
            self._start_timeout()

    def on_response_complete(self) -> None:
        """An answer was sent; how long the connection may then be idle is uvicorn's matter."""
        self._cancel_timeout()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._cancel_timeout()
        super().connection_lost(exc)

    def _start_timeout(self) -> None:
        self._deadline = self.loop.call_later(HEADER_TIMEOUT, self._close_if_idle)

    def _cancel_timeout(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_if_idle(self) -> None:
        self._deadline = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def uvicorn_config(app: Any, public_url: str, log_format: str = "text") -> uvicorn.Config:
    """How uvicorn serves an app: behind a proxy of this machine where there is a public address, else directly."""
    return uvicorn.Config(
        app,
        http=HeaderTimeoutProtocol,
        log_level="warning",
        access_log=False,  # addresses hold tokens
        lifespan="off",
        timeout_keep_alive=75,
        timeout_graceful_shutdown=10,
        proxy_headers=bool(public_url),  # without a proxy nobody may say where they come from
        forwarded_allow_ips="127.0.0.1,::1",
        log_config=None if log_format == "json" else LOGGING_CONFIG,  # None: all loggers write to the one handler
    )


def maximise_open_file_limit() -> None:
    """As many open connections as the system lets us have."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
