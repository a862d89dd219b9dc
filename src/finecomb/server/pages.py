"""Pages of the built front end, and the researcher sign-in page, which works without it."""

from __future__ import annotations

import mimetypes
from html import escape
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from starlette.datastructures import Headers
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from finecomb.collection import access_storage
from finecomb.server.auth import get_auth
from finecomb.server.fallback_pages import STYLESHEET, plain_page

STATIC_FOLDER = Path(__file__).parent / "static"
router = APIRouter(include_in_schema=False)


_SUFFIX_BY_ENCODING = {"br": ".br", "gzip": ".gz"}
"""Encodings in which the build compresses files, smallest first, with their file suffixes."""


class CachedStaticFiles(StaticFiles):
    """Static files whose names change with their content, so that browsers need not check for changes."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file. If the build has compressed it in an encoding the browser accepts, return that version."""
        accepted = {name.split(";")[0].strip() for name in Headers(scope=scope).get("accept-encoding", "").split(",")}
        for encoding, ending in _SUFFIX_BY_ENCODING.items():
            if encoding in accepted and Path(str(self.directory), f"{path}{ending}").is_file():
                response = await super().get_response(f"{path}{ending}", scope)
                kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
                response.headers.update({"content-encoding": encoding, "content-type": kind, "vary": "Accept-Encoding"})
                break
        else:
            response = await super().get_response(path, scope)
        if path.startswith("assets/") and response.status_code == 200:
            response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response


@router.get("/plain.css")
def stylesheet() -> Response:
    """Return the stylesheet of the fallback pages."""
    return Response(STYLESHEET, media_type="text/css", headers={"cache-control": "no-cache"})


def _frontend_page(name: str) -> Response:
    file = STATIC_FOLDER / name
    if file.is_file():
        return FileResponse(file, headers={"cache-control": "no-cache"})
    say = "The server is running, but its pages have not been built. Build them in the source folder: "
    return plain_page("Pages not built", f"<p>{say}<code>make frontend</code></p>", 503)


@router.get("/")
@router.get("/join/{token}")
def annotator_page(request: Request) -> Response:
    """Return the annotator page in the protocol's language."""
    file = STATIC_FOLDER / "annotate.html"
    if not file.is_file():
        return _frontend_page(file.name)
    language = escape(get_auth(request).store.head.protocol.language)
    page = file.read_text(encoding="utf-8").replace('<html lang="en">', f'<html lang="{language}">', 1)
    return HTMLResponse(page, headers={"cache-control": "no-cache"})


@router.get("/admin")
@router.get("/admin/{page:path}")
def admin_page() -> Response:
    """Return the researcher page."""
    return _frontend_page("admin.html")


@router.get("/sign-in/{token}")
def sign_in_page(request: Request, token: str) -> Response:
    """Return a page with a sign-in button, so that link scanners do not use up the link."""
    store = get_auth(request).store
    if store.read(access_storage.find_valid_link_kind, token) != "researcher":
        return plain_page(
            "This link is not valid",
            "<p>It was already used, has expired, or was not copied completely. Run "
            "<code>finecomb links STUDY --researcher NAME</code> for a new one.</p>",
            404,
        )
    say = "<p>You are signing in as a researcher. This link works only once.</p>"
    form = '<form method="post"><button autofocus>Sign in</button></form>'
    return plain_page(store.title, say + form)


@router.post("/sign-in/{token}")
async def sign_in(request: Request, token: str) -> Response:
    """Sign in with the link, and redirect to the researcher pages."""
    session_token = await get_auth(request).sign_in_by_link(
        request, access_storage.sign_in_with_link, token, "researcher"
    )
    response = RedirectResponse("/admin", 303)
    get_auth(request).set_session_cookie(response, "researcher", session_token)
    return response
