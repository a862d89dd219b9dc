"""The study server as an ASGI app."""

from __future__ import annotations

from fastapi import FastAPI

from finecomb.server import admin, admin_adjudicate, admin_recruiting, annotate, pages, problems, signing
from finecomb.server.desk import Desk
from finecomb.server.gate import Envelope, Gate
from finecomb.server.wire import Problem
from finecomb.store.store import Store
from finecomb.version import __version__

_MOST = 1_000_000  # bytes of an annotator's request
_MOST_UPLOADED = 64_000_000  # bytes of a researcher's


def create_app(store: Store, origin: str = "") -> FastAPI:
    """The app that serves one study; `origin` is its public address where that is not the one it listens on."""
    app = FastAPI(
        title="Finecomb",
        version=__version__,
        description="The study server: sign-in, assignment, saving, and running a study.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses={"4XX": {"model": Problem}, "5XX": {"model": Problem}},
    )
    app.state.gate = Gate(store, origin.rstrip("/"))
    app.state.store = store
    app.state.desk = Desk(store, app.state.gate.signature)
    problems.install(app)
    app.router.routes[:0] = annotate.shortcuts()
    app.include_router(signing.router)
    app.include_router(annotate.router)
    app.include_router(admin.router)
    app.include_router(admin_adjudicate.router)
    app.include_router(admin_recruiting.router)
    pages.install(app)
    app.add_middleware(Envelope, store=store, most=_MOST, most_uploaded=_MOST_UPLOADED)
    return app
