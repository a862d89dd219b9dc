"""ASGI application of the study server."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from fastapi import FastAPI

from finecomb.collection.database.store import Store
from finecomb.server import error_responses, metrics, pages, sign_in
from finecomb.server.adjudication import routes as adjudication
from finecomb.server.annotators import routes as annotators
from finecomb.server.annotators.schema import ErrorResponse
from finecomb.server.annotators.task_cache import TaskCache
from finecomb.server.auth import Auth
from finecomb.server.headers import SecurityMiddleware
from finecomb.server.metrics import Meter, MeterMiddleware
from finecomb.server.researchers import calibration_routes, recruitment, run_routes
from finecomb.server.researchers import routes as researchers
from finecomb.version import __version__

_MAX_REQUEST_BYTES = 1_000_000  # limit for annotators' requests
_MAX_UPLOAD_BYTES = 64_000_000  # limit for researchers' uploads


def create_app(
    store: Store,
    origin: str = "",
    hosts: Collection[str] | None = None,
    runs: Path | None = None,
    key_envs: Collection[str] = (),
    meter: Meter | None = None,
) -> FastAPI:
    """Create the application that serves one study.

    `origin` is the public address, if it differs from the address the server listens on. `hosts` are the accepted host
    names; None accepts any. `runs` is the folder of language model runs, by default next to the database. `key_envs`
    names the environment variables from which runs may read API keys. `meter` counts requests.
    """
    app = FastAPI(
        title="Finecomb",
        version=__version__,
        description="Study server: sign-in, task assignment, saving, and study management.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        responses={"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}},
    )
    app.state.auth = Auth(store, origin.rstrip("/"))
    app.state.store = store
    app.state.runs, app.state.key_envs = runs, frozenset(key_envs)
    app.state.meter = meter or Meter()
    store.on_commit = app.state.meter.count_commit
    app.state.task_cache = TaskCache(store, app.state.auth.signature)
    error_responses.install_error_handlers(app)
    app.router.routes[:0] = annotators.fast_save_routes()
    app.include_router(sign_in.router)
    app.include_router(annotators.router)
    app.include_router(researchers.router)
    app.include_router(adjudication.router)
    app.include_router(recruitment.router)
    app.include_router(run_routes.router)
    app.include_router(calibration_routes.router)
    app.include_router(metrics.router)
    # Files are looked up on each request, so that the front end may be built later.
    app.mount("/static", pages.CachedStaticFiles(directory=pages.STATIC_FOLDER, check_dir=False))
    app.include_router(pages.router)
    app.add_middleware(
        SecurityMiddleware,
        store=store,
        most=_MAX_REQUEST_BYTES,
        most_uploaded=_MAX_UPLOAD_BYTES,
        hosts=hosts,
        secure=origin.startswith("https:"),
    )
    app.add_middleware(MeterMiddleware, meter=app.state.meter)
    return app
