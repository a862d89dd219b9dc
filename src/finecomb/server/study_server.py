"""Serving a study to annotators, or the preview of a protocol, in the background of a program."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from starlette.types import ASGIApp

from finecomb import protocols
from finecomb.annotators.simulated.preview_study import preview_study
from finecomb.api.running_server import StudyServer
from finecomb.api.served_studies import open_served_study
from finecomb.collection import access_storage, researcher_actions_storage
from finecomb.collection.announcement import build_participation_terms, researcher_summary_line
from finecomb.collection.database.location import DATABASE_FILENAME, parse_location, work_location
from finecomb.collection.database.serving_lock import hold_study_lock
from finecomb.collection.database.store import Store, open_store
from finecomb.core.errors import ParameterError, param
from finecomb.core.records import OnboardingPhase
from finecomb.formats import folder
from finecomb.server.app import create_app
from finecomb.server.connections import maximise_open_file_limit, uvicorn_config
from finecomb.server.housekeeping import run_housekeeping
from finecomb.server.live_preview import PREVIEW_PATH, create_preview_app
from finecomb.server.logs import LogFormat, configure_logging
from finecomb.server.pages import STATIC_FOLDER
from finecomb.server.workers import WorkerPool, WorkerSettings

RUNS_FOLDER = "runs"
"""Runs of language models in a study's folder, as in `finecomb.annotators.llm`, which may not be installed."""


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """How a study is served."""

    host: str = "127.0.0.1"
    port: int = 8000
    db: str = ""
    public_url: str = ""
    key_envs: tuple[str, ...] = ()
    workers: int = 1
    log_format: LogFormat = "text"


def start_study_server(study: Path, settings: ServeSettings) -> StudyServer:
    """Serve a study until it is stopped."""
    where = work_location(study, settings.db)
    if settings.workers > 1 and where.file:
        database = param("db", "postgresql://HOST/DATABASE#STUDY")
        raise ParameterError(
            f"{param('workers', settings.workers)}: {where} is a SQLite file, which one process serves; "
            f"keep the work in PostgreSQL, with {database}, or leave {param('workers')} out",
            parameter="workers",
        )
    if settings.log_format == "json":
        configure_logging("json")
    with ExitStack() as resources:
        if not study.is_dir() or folder.is_study_folder(study):  # `open_served_study` refuses other folders
            resources.enter_context(hold_study_lock(where, "serve"))
        store = resources.enter_context(open_served_study(study, settings.db))
        listening, address = resources.enter_context(_open_socket(settings.host, settings.port))
        public_address = settings.public_url.rstrip("/") or address
        links = {"researchers": _researcher_link(store, public_address)}
        if joining := _joining_link(store, public_address):
            links["annotators"] = joining
        resources.enter_context(run_housekeeping(store))
        is_local = settings.host in ("127.0.0.1", "localhost", "::1")
        run, handlers = _prepare(store, listening, settings, study / RUNS_FOLDER if study.is_dir() else None)
        return StudyServer(
            _describe(store),
            public_address,
            links,
            run=run,
            signal_handlers=handlers,
            resources=resources.pop_all(),
            procedure=researcher_summary_line(build_participation_terms(store.head.protocol, store.head.settings)),
            notes=_page_notes(),
            is_exposed=not is_local and not settings.public_url.startswith("https:"),
        )


def start_preview(protocol: str, skip: Sequence[OnboardingPhase], host: str, port: int) -> StudyServer:
    """Show what annotators will see of a protocol; a file is shown again whenever it is saved. Nothing is kept."""
    chosen = protocols.load(protocol)
    items = preview_study(chosen, skip)
    with ExitStack() as resources:
        temporary = resources.enter_context(tempfile.TemporaryDirectory())
        listening, address = resources.enter_context(_open_socket(host, port))
        stores = resources.enter_context(ExitStack())  # one more whenever the file is saved
        hosts = _allowed_hosts(listening, "")

        def open_preview() -> tuple[ASGIApp, str]:
            items = preview_study(protocols.load(protocol), skip)
            store = open_store(parse_location(Path(tempfile.mkdtemp(dir=temporary)) / DATABASE_FILENAME), items)
            stores.callback(store.close)
            return create_app(store, "", hosts), _joining_link(store, "")

        if Path(protocol).is_file():
            app, link = create_preview_app(Path(protocol), open_preview, hosts), f"{address}{PREVIEW_PATH}"
            title = f"{protocol}: shown anew whenever it is saved; nothing is kept"
        else:
            store = open_store(parse_location(Path(temporary) / DATABASE_FILENAME), items)
            stores.callback(store.close)
            resources.enter_context(run_housekeeping(store))
            app, link = create_app(store, "", hosts), _joining_link(store, address)
            texts = len(store.assignment_plan().documents)
            title = f"{chosen.id}: {texts:,} example text{'' if texts == 1 else 's'}; nothing is kept"
        run, handlers = _prepare_in_process(uvicorn.Server(uvicorn_config(app, "")), listening)
        return StudyServer(
            title,
            address,
            {"preview": link},
            run=run,
            signal_handlers=handlers,
            resources=resources.pop_all(),
            notes=_page_notes(),
        )


SignalHandlers = dict[str, Callable[[], None]]


def _prepare(
    store: Store, listening: socket.socket, settings: ServeSettings, runs: Path | None
) -> tuple[Callable[[], None], SignalHandlers]:
    """Return what serves a study, and what signals ask of it; workers answer already when it returns."""
    hosts = _allowed_hosts(listening, settings.public_url)
    if settings.workers == 1:
        app = create_app(store, settings.public_url, hosts, runs, settings.key_envs)
        config = uvicorn_config(app, settings.public_url, settings.log_format)
        return _prepare_in_process(uvicorn.Server(config), listening)
    where = replace(store.database.place, study=store.name)
    shared = WorkerSettings(where, settings.public_url, hosts, runs, settings.key_envs, log_format=settings.log_format)
    pool = WorkerPool(shared, listening, settings.workers)
    pool.start()
    stops = {"SIGINT": pool.request_stop, "SIGTERM": pool.request_stop}
    return pool.supervise, {**stops, "SIGHUP": pool.request_restart}


def _prepare_in_process(server: uvicorn.Server, listening: socket.socket) -> tuple[Callable[[], None], SignalHandlers]:
    def request_stop() -> None:
        server.should_exit = True

    maximise_open_file_limit()
    return lambda: server.run(sockets=[listening]), {"SIGINT": request_stop, "SIGTERM": request_stop}


def _describe(store: Store) -> str:
    texts, annotators = len(store.assignment_plan().documents), store.head.annotators_per_document
    counts = f"{texts:,} text{'' if texts == 1 else 's'}, {annotators:,} annotator{'' if annotators == 1 else 's'}"
    return f"{store.title}: {counts} per text, {store.head.protocol.id}"


def _page_notes() -> list[str]:
    is_built = (STATIC_FOLDER / "annotate.html").is_file()
    return [] if is_built else ["the pages are not built yet: run `make frontend`"]


def _researcher_link(store: Store, address: str) -> str:
    token = store.run_job_sync(researcher_actions_storage.invite_researcher, "finecomb serve", "owner", "owner")
    return f"{address}/sign-in/{token}"


def _joining_link(store: Store, address: str) -> str:
    token = access_storage.open_link_token(store)
    return f"{address}/join/{token}" if token else ""


@contextmanager
def _open_socket(host: str, port: int) -> Iterator[tuple[socket.socket, str]]:
    """Yield a socket that listens, and the address it has."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        hint = f"; choose another with {param('port')}, or 0 for any free one" if port else ""
        message = f"cannot listen on {host} port {port}: {error.strerror}{hint}"
        raise ParameterError(message, parameter="port") from None
    with listening:
        address = f"[{host}]" if ":" in host else "127.0.0.1" if host == "0.0.0.0" else host
        yield listening, f"http://{address}:{listening.getsockname()[1]}"


def _allowed_hosts(listening: socket.socket, public_url: str) -> frozenset[str]:
    """The names that the server answers to: its own, this machine's, and any plain address where all may come."""
    own = str(listening.getsockname()[0])
    public = {urlsplit(public_url).hostname or ""} if public_url else set()
    open_to_all = {"*", socket.gethostname().lower()} if own in ("0.0.0.0", "::") else set()
    return frozenset({"localhost", "127.0.0.1", "::1", own.lower(), *public, *open_to_all} - {""})
