"""Live preview of a protocol on a phone and a tablet, next to its YAML. It reloads when the file changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path

from fastapi.responses import JSONResponse, Response
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from finecomb.core.errors import FinecombError

PREVIEW_PATH = "/preview"
AppFactory = Callable[[], tuple[ASGIApp, str]]
"""Function that reads the protocol file, and returns an app for it with the path of its sign-in link."""

_HTML = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Preview · Finecomb</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/preview.css">
<script type="module" src="/preview.js"></script></head>
<body><header><h1>Preview</h1><p id="said" role="status"></p></header>
<main><section class="source" aria-label="The protocol's file"><pre id="yaml" tabindex="0"></pre></section>
<figure><figcaption>Phone, 360 by 740</figcaption><div class="phone"><iframe title="On a phone"></iframe></div></figure>
<figure><figcaption>Tablet, 768 by 1024</figcaption>
<div class="tablet"><iframe title="On a tablet" credentialless></iframe></div></figure></main></body></html>
"""
_STYLE = """
:root { color-scheme: light dark }
body { margin: 0; font: 14px/20px system-ui, sans-serif; background: light-dark(#eff0f1, #131518);
  color: light-dark(#1a1d21, #e4e6e9) }
header { display: flex; align-items: baseline; gap: 24px; padding: 12px 24px }
h1 { margin: 0; font-size: 20px }
#said { margin: 0; white-space: pre-wrap }
#said.wrong { color: light-dark(#a3161b, #ff9a90); font-weight: 600 }
main { display: flex; flex-wrap: wrap; align-items: start; gap: 24px; padding: 0 24px 24px }
.source { flex: 1 1 320px; min-width: 0 }
pre { margin: 0; max-height: calc(100vh - 80px); overflow: auto; padding: 16px; border-radius: 8px;
  background: light-dark(#fff, #1b1d21); font: 13px/19px ui-monospace, monospace }
figure { margin: 0 }
figcaption { margin-bottom: 8px; color: light-dark(#5f666f, #939aa4); font-size: 12px }
.phone, .tablet { overflow: hidden; border: 1px solid light-dark(#838a93, #747b85); border-radius: 12px }
.phone { width: 360px; height: 740px }
.tablet { width: 560px; height: 747px }
iframe { border: 0; display: block; background: light-dark(#fff, #1b1d21) }
.phone iframe { width: 360px; height: 740px }
.tablet iframe { width: 768px; height: 1024px; transform: scale(.7292); transform-origin: 0 0 }
"""
_SCRIPT = """
const said = document.getElementById("said"), yaml = document.getElementById("yaml");
let shown = 0;
async function look() {
  const answer = await fetch("/preview/state").catch(() => undefined);
  if (!answer?.ok) { said.textContent = "The preview has stopped."; said.className = "wrong"; return; }
  const { version, link, text, problem } = await answer.json();
  if (yaml.textContent !== text) yaml.textContent = text;
  said.className = problem ? "wrong" : "";
  said.textContent = problem || "Shows the last saved version. Nothing is stored.";
  if (version === shown) return;
  shown = version;
  document.documentElement.dataset.version = version;
  for (const frame of document.querySelectorAll("iframe")) frame.src = link;
}
await look();
setInterval(look, 700);
"""
_PREVIEW_FILES = {
    PREVIEW_PATH: (_HTML, "text/html"),
    "/preview.css": (_STYLE, "text/css"),
    "/preview.js": (_SCRIPT, "text/javascript"),
}
_CONTENT_SECURITY_POLICY = b"default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"


class LivePreview:
    """ASGI application that shows a protocol and reloads it when its file changes.

    Errors in the file are shown, and the last valid version stays visible.
    """

    def __init__(self, file: Path, opened: AppFactory) -> None:
        self._file, self._opened = file, opened
        self._app, self._link = opened()
        self._seen = self._file_stamp()
        self._version = 1
        self._problem = ""
        self._turn = asyncio.Lock()

    def _file_stamp(self) -> tuple[int, int]:
        """Return the modification time and size of the file, or zeros while an editor is replacing it."""
        try:
            state = self._file.stat()
        except OSError:
            return 0, 0
        return state.st_mtime_ns, state.st_size

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the preview page, or pass the request to the app of the protocol."""
        path = scope.get("path", "")
        if scope["type"] == "http" and path in _PREVIEW_FILES:
            content, kind = _PREVIEW_FILES[path]
            await self._set_headers(Response(content, media_type=kind))(scope, receive, send)
        elif scope["type"] == "http" and path == f"{PREVIEW_PATH}/state":
            async with self._turn:
                stamp = self._file_stamp()
                if stamp not in (self._seen, (0, 0)):
                    self._seen = stamp
                    try:
                        self._app, self._link = await asyncio.to_thread(self._opened)
                    except FinecombError as error:
                        self._problem = str(error)
                    else:
                        self._version += 1
                        self._problem = ""
            text = (
                await asyncio.to_thread(self._file.read_text, "utf-8", "replace")
                if self._file_stamp() != (0, 0)
                else ""
            )
            await self._set_headers(
                JSONResponse({"version": self._version, "link": self._link, "text": text, "problem": self._problem})
            )(scope, receive, send)
        else:
            # Allow pages in frames of the same origin, which are otherwise forbidden
            async def send_frameable(message: Message) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] = [
                        (name, value.replace(b"frame-ancestors 'none'", b"frame-ancestors 'self'"))
                        for name, value in message.get("headers", [])
                        if name != b"x-frame-options"
                    ]
                await send(message)

            await self._app(scope, receive, send_frameable)

    @staticmethod
    def _set_headers(response: Response) -> Response:
        response.headers["cache-control"] = "no-store"
        response.headers["content-security-policy"] = _CONTENT_SECURITY_POLICY.decode()
        return response


def create_preview_app(file: Path, opened: AppFactory, hosts: Collection[str] | None) -> ASGIApp:
    """Create the live preview. `hosts` are the accepted host names; None accepts any."""
    allowed = None if hosts is None else [*sorted(hosts), "["]  # IPv6 addresses start with a bracket and are not names
    return TrustedHostMiddleware(LivePreview(file, opened), allowed_hosts=allowed)
