"""Middleware that limits the host, size and duration of requests, and adds security headers to responses."""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import logging
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from finecomb.collection.database.store import Store
from finecomb.core.records import Recruitment
from finecomb.server.error_responses import ProblemError
from finecomb.server.logs import route_template

_CONTENT_SECURITY_POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'"
MTURK_ORIGINS = (
    "https://worker.mturk.com",
    "https://workersandbox.mturk.com",
    "https://requester.mturk.com",
    "https://requestersandbox.mturk.com",
)
"""Origins whose pages show a HIT in a frame to workers, or to requesters who preview it."""
_MTURK_FORM_ORIGIN = "https://*.mturk.com"
_FIXED_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with "no-referrer", forms would not send an Origin header
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
Headers = list[tuple[bytes, bytes]]


@functools.lru_cache(maxsize=64)
def _security_headers(recruitment: Recruitment, join: bool, is_annotators: bool) -> Headers:
    """Return the security headers of a page. `is_annotators` is true for annotators' pages, `join` for sign-in links.

    Only sites named by the study may show its pages in a frame. Mechanical Turk shows every HIT in a frame, so it may
    always show the page of a sign-in link. That page then opens the study in a new tab.
    """
    mturk = recruitment.platform == "mturk"
    frames = recruitment.frame if is_annotators else ()
    frames = frames or (MTURK_ORIGINS if mturk and join else ())
    forms = f"'self' {_MTURK_FORM_ORIGIN}" if is_annotators and mturk else "'self'"
    policy = f"{_CONTENT_SECURITY_POLICY}; form-action {forms}; frame-ancestors {' '.join(frames) or repr('none')}"
    denied = {} if frames else {"x-frame-options": "DENY"}
    every = {"content-security-policy": policy, **denied, **_FIXED_HEADERS}
    return [(name.encode(), value.encode()) for name, value in every.items()]


_NO_STORE = (b"cache-control", b"no-store")
_HSTS = (b"strict-transport-security", b"max-age=31536000")
_CONNECTION_CLOSE = (b"connection", b"close")
BODY_TIMEOUT_SECONDS = 30.0
"""Maximum seconds between two received parts of a request body."""
log = logging.getLogger(__name__)


_UPLOAD_PATHS = ("/api/admin/documents", "/api/admin/protocol")  # both authenticate before they read the request body


class SecurityMiddleware:
    """Middleware that limits requests and adds security headers to responses.

    Requests for a host that is not in `hosts` are rejected, which protects a local server from DNS rebinding.
    With `hosts=None`, any host is accepted.
    """

    def __init__(
        self,
        app: ASGIApp,
        store: Store,
        most: int,
        most_uploaded: int,
        hosts: Collection[str] | None = None,
        secure: bool = False,
    ) -> None:
        self.hosts = hosts
        self.secure = secure
        self.app = app
        self.store = store
        self.most = most
        self.most_uploaded = most_uploaded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, and add the security headers to the response."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path: str = scope["path"]
        limit = self.most_uploaded if path in _UPLOAD_PATHS else self.most
        uncached = not path.startswith("/static/")
        join = path.startswith("/join/")
        fixed = _security_headers(self.store.head.settings.recruitment, join, join or path == "/")

        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = message.setdefault("headers", [])
                headers.extend(fixed)
                if self.secure:
                    headers.append(_HSTS)
                if message["status"] in (408, 413):  # the rest of the request is not read
                    headers.append(_CONNECTION_CLOSE)
                if uncached and not any(name == b"cache-control" for name, _ in headers):
                    headers.append(_NO_STORE)
            await send(message)

        try:
            self._check_host_and_path(scope)
            await self.app(scope, _limit_body_size(scope, receive, limit), send_with_headers)
        except ProblemError as error:
            await error.response()(scope, receive, send_with_headers)
        except Exception:  # handled here, because an outer handler would close the connection
            log.exception("%s %s failed", scope["method"], route_template(scope))
            if begun:
                raise
            await ProblemError("failed").response()(scope, receive, send_with_headers)

    def _check_host_and_path(self, scope: Scope) -> None:
        """Reject unknown hosts and NUL characters. No ID contains NUL, and PostgreSQL does not accept it."""
        host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        if self.hosts is not None and not is_known_host(host, self.hosts):
            raise ProblemError(
                "not-allowed",
                "This server does not accept requests for this host. Start it with --public-url to allow the host.",
            )
        if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
            raise ProblemError("refused", "This request was not accepted because its address contains a NUL character.")


def is_known_host(host: str, hosts: Collection[str]) -> bool:
    """Return whether a `Host` header is accepted. With `*` in `hosts`, any IP address is accepted.

    >>> is_known_host("127.0.0.1:8000", ["127.0.0.1"]), is_known_host("evil.example", ["127.0.0.1", "*"])
    (True, False)
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name in hosts:
            return True
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return "*" in hosts


def _limit_body_size(scope: Scope, receive: Receive, max_bytes: int) -> Receive:
    """Return a `receive` that fails above `max_bytes`, whatever size the request declares, and after a timeout."""
    if any(
        name == b"content-length" and value.isdigit() and int(value) > max_bytes for name, value in scope["headers"]
    ):
        raise ProblemError("too-large")
    received_bytes, complete = 0, False

    async def receive_limited() -> Message:
        nonlocal received_bytes, complete
        try:
            async with asyncio.timeout(None if complete else BODY_TIMEOUT_SECONDS):
                message = await receive()
        except TimeoutError:
            raise ProblemError("refused", "The request timed out. Send it again.", 408) from None
        complete = complete or not message.get("more_body", False)
        received_bytes += len(message.get("body", b""))
        if received_bytes > max_bytes:
            raise ProblemError("too-large")
        return message

    return receive_limited
