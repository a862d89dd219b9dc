"""Around every request: a limit on its size; around every answer: the headers that keep a browser strict."""

from __future__ import annotations

import functools

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from finecomb.core.records import Recruitment
from finecomb.server.problems import ProblemError
from finecomb.store.store import Store

_POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'"
MTURK = (
    "https://worker.mturk.com",
    "https://workersandbox.mturk.com",
    "https://requester.mturk.com",
    "https://requestersandbox.mturk.com",
)
"""Whose pages show a HIT inside them: to workers, and to requesters who look at it first."""
_MTURK_FORMS = "https://*.mturk.com"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with none at all, forms would not say where they come from
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
Headers = list[tuple[bytes, bytes]]


@functools.lru_cache(maxsize=64)
def _headers(recruitment: Recruitment, join: bool, is_annotators: bool) -> Headers:
    """What keeps a browser strict; `is_annotators` says that it is an annotator's page, `join` that it is a link's.

    Nobody may show our pages inside theirs, but for those that the study names. Mechanical Turk shows every HIT so:
    if it may not, then it may still show the page of the link, which opens a tab.
    """
    mturk = recruitment.platform == "mturk"
    frames = recruitment.frame if is_annotators else ()
    frames = frames or (MTURK if mturk and join else ())
    forms = f"'self' {_MTURK_FORMS}" if is_annotators and mturk else "'self'"
    policy = f"{_POLICY}; form-action {forms}; frame-ancestors {' '.join(frames) or repr('none')}"
    denied = {} if frames else {"x-frame-options": "DENY"}
    every = {"content-security-policy": policy, **denied, **_HEADERS}
    return [(name.encode(), value.encode()) for name, value in every.items()]


_UNCACHED = (b"cache-control", b"no-store")


_UPLOADS = ("/api/admin/documents", "/api/admin/protocol")  # both look at who asks before they read on


class HeaderMiddleware:
    """Around every request: a limit on its size; around every answer: the headers that keep a browser strict."""

    def __init__(self, app: ASGIApp, store: Store, most: int, most_uploaded: int) -> None:
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
        limit = self.most_uploaded if path in _UPLOADS else self.most
        uncached = not path.startswith("/static/")
        join = path.startswith("/join/")
        fixed = _headers(self.store.head.settings.recruitment, join, join or path == "/")

        async def strict(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                headers.extend(fixed)
                if uncached and not any(name == b"cache-control" for name, _ in headers):
                    headers.append(_UNCACHED)
            await send(message)

        try:
            await self.app(scope, _limited(scope, receive, limit), strict)
        except ProblemError as error:
            await error.response()(scope, receive, strict)


def _limited(scope: Scope, receive: Receive, most: int) -> Receive:
    """`receive` that stops at `most` bytes, whatever the request says about its size."""
    if any(name == b"content-length" and value.isdigit() and int(value) > most for name, value in scope["headers"]):
        raise ProblemError("too-large")
    got = 0

    async def receive_some() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > most:
            raise ProblemError("too-large")
        return message

    return receive_some
