"""The built front end, and signing in as a researcher, which has to work without it."""

from __future__ import annotations

import mimetypes
from html import escape
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from starlette.datastructures import Headers
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from finecomb.collection import access_storage
from finecomb.server.auth import auth_of
from finecomb.server.fallback_pages import STYLESHEET, plain_page

STATIC_FOLDER = Path(__file__).parent / "static"
router = APIRouter(include_in_schema=False)


_SUFFIX_BY_ENCODING = {"br": ".br", "gzip": ".gz"}
"""Encodings of the files that the build compressed, the smallest first, and how those files end."""


class _CachedStaticFiles(StaticFiles):
    """Files whose names change with their content, so browsers may keep them; compressed where they may be."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await self._compressed_response(path, scope) or await super().get_response(path, scope)
        if path.startswith("assets/") and response.status_code == 200:
            response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response

    async def _compressed_response(self, path: str, scope: Scope) -> Response | None:
        """The file as the build compressed it, in an encoding that the browser takes; None where there is none."""
        accepted = {name.split(";")[0].strip() for name in Headers(scope=scope).get("accept-encoding", "").split(",")}
        for encoding, ending in _SUFFIX_BY_ENCODING.items():
            if encoding in accepted and Path(str(self.directory), f"{path}{ending}").is_file():
                response = await super().get_response(f"{path}{ending}", scope)
                kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
                response.headers.update({"content-encoding": encoding, "content-type": kind, "vary": "Accept-Encoding"})
                return response
        return None


def install_pages(app: FastAPI) -> None:
    """Add the pages; files are looked for when asked, so that the front end may be built later."""
    app.mount("/static", _CachedStaticFiles(directory=STATIC_FOLDER, check_dir=False))
    app.include_router(router)


@router.get("/plain.css")
def stylesheet() -> Response:
    """How these pages look."""
    return Response(STYLESHEET, media_type="text/css", headers={"cache-control": "no-cache"})


def _frontend_page(name: str) -> Response:
    file = STATIC_FOLDER / name
    if file.is_file():
        return FileResponse(file, headers={"cache-control": "no-cache"})
    say = "The server runs, but its pages have not been built. Build them in the source folder: "
    return plain_page("Not built yet", f"<p>{say}<code>make frontend</code></p>", 503)


@router.get("/")
@router.get("/join/{token}")
def annotator_page(request: Request) -> Response:
    """The annotator's pages in the protocol's language; the browser asks the API for everything else."""
    file = STATIC_FOLDER / "annotate.html"
    if not file.is_file():
        return _frontend_page(file.name)
    language = escape(auth_of(request).store.head.protocol.language)
    page = file.read_text(encoding="utf-8").replace('<html lang="en">', f'<html lang="{language}">', 1)
    return HTMLResponse(page, headers={"cache-control": "no-cache"})


@router.get("/admin")
@router.get("/admin/{page:path}")
def admin_page() -> Response:
    """The researcher's pages."""
    return _frontend_page("admin.html")


@router.get("/sign-in/{token}")
def sign_in_page(request: Request, token: str) -> Response:
    """A button, so that a program that only looks at the link does not use it up."""
    store = auth_of(request).store
    with store.database.read_transaction() as transaction:
        is_invitation = access_storage.link_kind(store, transaction, token) == "researcher"
    if not is_invitation:
        return plain_page(
            "This link was used", "<p>Every link works once. <code>finecomb serve</code> prints a new one.</p>", 404
        )
    say = "<p>You come in as a researcher. This link works once; the next time you need a new one.</p>"
    form = '<form method="post"><button autofocus>Sign in</button></form>'
    return plain_page(store.title, say + form)


@router.post("/sign-in/{token}")
async def sign_in(request: Request, token: str) -> Response:
    """Use the link up and go to the researcher's pages."""
    session_token = await auth_of(request).sign_in_by_link(
        request, access_storage.sign_in_with_link, token, "researcher"
    )
    response = RedirectResponse("/admin", 303)
    auth_of(request).set_session_cookie(response, "researcher", session_token)
    return response
