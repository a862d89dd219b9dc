"""Around every request: limits on size, time and host; around every answer: headers that keep a browser strict."""

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
"""Whose pages show a HIT inside them: to workers, and to requesters who look at it first."""
_MTURK_FORM_ORIGIN = "https://*.mturk.com"
_FIXED_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with none at all, forms would not say where they come from
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
Headers = list[tuple[bytes, bytes]]


@functools.lru_cache(maxsize=64)
def _security_headers(recruitment: Recruitment, join: bool, is_annotators: bool) -> Headers:
    """What keeps a browser strict; `is_annotators` says that it is an annotator's page, `join` that it is a link's.

    Nobody may show our pages inside theirs, but for those that the study names. Mechanical Turk shows every HIT so:
    if it may not, then it may still show the page of the link, which opens a tab.
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
BODY_TIMEOUT = 30.0
"""Seconds that a browser may pause while it sends a request."""
log = logging.getLogger(__name__)


_UPLOAD_PATHS = ("/api/admin/documents", "/api/admin/protocol")  # both look at who asks before they read on


class SecurityMiddleware:
    """Around every request and its answer.

    A request for a host that is not among `hosts` is refused, so that no other name can be made to point at a server
    of this machine; any host will do when `hosts` is None.
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
        """Pass on."""
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
            await self.app(scope, _limit_body(scope, receive, limit), send_with_headers)
        except ProblemError as error:
            await error.response()(scope, receive, send_with_headers)
        except Exception:  # ours: answered here, since the connection would be cut if it got any further
            log.exception("%s %s failed", scope["method"], route_template(scope))
            if begun:
                raise
            await ProblemError("failed").response()(scope, receive, send_with_headers)

    def _check_host_and_path(self, scope: Scope) -> None:
        """Refuse a host that is not ours, and a NUL, which no id has and PostgreSQL does not take."""
        host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        if self.hosts is not None and not is_known_host(host, self.hosts):
            raise ProblemError("not-allowed", "This server does not answer to that name; start it with --public-url.")
        if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
            raise ProblemError("refused", "This was not accepted: it holds a NUL character.")


def is_known_host(host: str, hosts: Collection[str]) -> bool:
    """Whether the `Host` of a request is among those that a server answers to; `*` stands for any plain address.

    >>> is_known_host("127.0.0.1:8000", ["127.0.0.1"]), is_known_host("evil.example", ["127.0.0.1", "*"])
    (True, False)
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return name in hosts or ("*" in hosts and _is_ip_address(name))


def _is_ip_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def _receive_with_timeout(receive: Receive) -> Message:
    """The next piece of a request; one that does not come ends the request."""
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            return await receive()
    except TimeoutError:
        raise ProblemError("refused", "The request did not arrive in time. Send it again.", 408) from None


def _limit_body(scope: Scope, receive: Receive, max_bytes: int) -> Receive:
    """`receive` that stops at `most` bytes, whatever the request says about its size."""
    if any(
        name == b"content-length" and value.isdigit() and int(value) > max_bytes for name, value in scope["headers"]
    ):
        raise ProblemError("too-large")
    got, complete = 0, False

    async def receive_limited() -> Message:
        nonlocal got, complete
        message = await (receive() if complete else _receive_with_timeout(receive))
        complete = complete or not message.get("more_body", False)
        got += len(message.get("body", b""))
        if got > max_bytes:
            raise ProblemError("too-large")
        return message

    return receive_limited
