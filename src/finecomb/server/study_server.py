"""Background server for a study or a protocol preview, started from a Python program."""

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
from finecomb.annotators.simulated.preview_study import build_preview_study
from finecomb.api.running_server import StudyServer
from finecomb.api.served_studies import open_work, prepare_database
from finecomb.collection import access_storage, researcher_actions_storage
from finecomb.collection.announcement import build_participation_terms, researcher_summary_line
from finecomb.collection.database.connection import explain_database_errors
from finecomb.collection.database.location import DATABASE_FILENAME, parse_location, study_database_location
from finecomb.collection.database.place_binding import end_sessions_if_moved
from finecomb.collection.database.serving_lock import hold_study_lock
from finecomb.collection.database.store import Store, open_store
from finecomb.core.errors import ParameterError, param
from finecomb.core.records import OnboardingPhase
from finecomb.formats import folder
from finecomb.server.app import create_app
from finecomb.server.connections import build_uvicorn_config, maximise_open_file_limit, parse_trusted_proxies
from finecomb.server.housekeeping import run_housekeeping
from finecomb.server.live_preview import PREVIEW_PATH, create_preview_app
from finecomb.server.logs import LogFormat, configure_logging
from finecomb.server.pages import STATIC_FOLDER
from finecomb.server.workers import WorkerPool, WorkerSettings

RUNS_FOLDER = "runs"
"""Name of the folder for language model runs. Repeated here because `finecomb.annotators.llm` is optional."""


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Settings of a study server."""

    host: str = "127.0.0.1"
    port: int = 8000
    db: str = ""
    public_url: str = ""
    key_envs: tuple[str, ...] = ()
    workers: int = 1
    log_format: LogFormat = "text"
    trusted_proxies: tuple[str, ...] = ()


_MOVED_NOTE = "the database was moved, copied or restored, so that everyone has to sign in again"


def start_study_server(study: Path, settings: ServeSettings) -> StudyServer:
    """Start serving a study."""
    where = study_database_location(study, settings.db)
    if settings.workers > 1 and where.file:
        database = param("db", "postgresql://HOST/DATABASE#STUDY")
        raise ParameterError(
            f"{param('workers', settings.workers)}: {where} is a SQLite file, which only one process can serve; "
            f"use PostgreSQL with {database}, or omit {param('workers')}",
            parameter="workers",
        )
    parse_trusted_proxies(settings.trusted_proxies, settings.public_url)
    if settings.log_format == "json":
        configure_logging("json")
    with explain_database_errors(where), ExitStack() as resources:
        if not study.is_dir() or folder.is_study_folder(study):  # `prepare_database` rejects other folders
            resources.enter_context(hold_study_lock(where, "serve"))
        notes = prepare_database(study, settings.db)
        store = resources.enter_context(open_work(study, settings.db))
        is_moved = store.run_job_sync(end_sessions_if_moved)
        listening, address = resources.enter_context(_open_socket(settings.host, settings.port))
        public_address = settings.public_url.rstrip("/") or address
        token = store.run_job_sync(researcher_actions_storage.invite_researcher, "finecomb serve", "owner", "owner")
        links = {"researchers": f"{public_address}/sign-in/{token}"}
        if joining := _joining_link(store, public_address):
            links["annotators"] = joining
        resources.enter_context(run_housekeeping(store))
        is_local = settings.host in ("127.0.0.1", "localhost", "::1")
        run, handlers = _prepare_serving(store, listening, settings, study / RUNS_FOLDER if study.is_dir() else None)
        texts, annotators = len(store.assignment_plan().documents), store.head.annotators_per_document
        counts = f"{texts:,} text{'' if texts == 1 else 's'}, {annotators:,} annotator{'' if annotators == 1 else 's'}"
        return StudyServer(
            f"{store.title}: {counts} per text, {store.head.protocol.id}",
            public_address,
            links,
            run=run,
            signal_handlers=handlers,
            resources=resources.pop_all(),
            procedure=researcher_summary_line(build_participation_terms(store.head.protocol, store.head.settings)),
            notes=[*notes, *([_MOVED_NOTE] if is_moved else []), *_missing_pages_notes()],
            is_exposed=not is_local and not settings.public_url.startswith("https:"),
        )


def start_preview(protocol: str, skip: Sequence[OnboardingPhase], host: str, port: int) -> StudyServer:
    """Start a preview of a protocol as annotators will see it. It reloads when the file is saved. Nothing is stored."""
    chosen = protocols.load(protocol)
    items = build_preview_study(chosen, skip)
    with ExitStack() as resources:
        temporary = resources.enter_context(tempfile.TemporaryDirectory())
        listening, address = resources.enter_context(_open_socket(host, port))
        stores = resources.enter_context(ExitStack())  # another store for each time the file is saved
        hosts = _allowed_hosts(listening, "")

        def open_preview() -> tuple[ASGIApp, str]:
            items = build_preview_study(protocols.load(protocol), skip)
            store = open_store(parse_location(Path(tempfile.mkdtemp(dir=temporary)) / DATABASE_FILENAME), items)
            stores.callback(store.close)
            return create_app(store, "", hosts), _joining_link(store, "")

        if Path(protocol).is_file():
            app, link = create_preview_app(Path(protocol), open_preview, hosts), f"{address}{PREVIEW_PATH}"
            title = f"{protocol}: reloads when the file is saved; nothing is stored"
        else:
            store = open_store(parse_location(Path(temporary) / DATABASE_FILENAME), items)
            stores.callback(store.close)
            resources.enter_context(run_housekeeping(store))
            app, link = create_app(store, "", hosts), _joining_link(store, address)
            texts = len(store.assignment_plan().documents)
            title = f"{chosen.id}: {texts:,} example text{'' if texts == 1 else 's'}; nothing is stored"
        run, handlers = _prepare_in_process(uvicorn.Server(build_uvicorn_config(app, "")), listening)
        return StudyServer(
            title,
            address,
            {"preview": link},
            run=run,
            signal_handlers=handlers,
            resources=resources.pop_all(),
            notes=_missing_pages_notes(),
        )


SignalHandlers = dict[str, Callable[[], None]]


def _prepare_serving(
    store: Store, listening: socket.socket, settings: ServeSettings, runs: Path | None
) -> tuple[Callable[[], None], SignalHandlers]:
    """Return a function that serves the study, and its signal handlers. Worker processes have already been started."""
    hosts = _allowed_hosts(listening, settings.public_url)
    proxies = parse_trusted_proxies(settings.trusted_proxies, settings.public_url)
    if settings.workers == 1:
        app = create_app(store, settings.public_url, hosts, runs, settings.key_envs)
        config = build_uvicorn_config(app, settings.public_url, settings.log_format, proxies)
        return _prepare_in_process(uvicorn.Server(config), listening)
    where = replace(store.database.place, study=store.name)
    shared = WorkerSettings(where, settings.public_url, hosts, runs, settings.key_envs, settings.log_format, proxies)
    pool = WorkerPool(shared, listening, settings.workers)
    pool.start()
    stops = {"SIGINT": pool.request_stop, "SIGTERM": pool.request_stop}
    return pool.supervise, {**stops, "SIGHUP": pool.request_restart}


def _prepare_in_process(server: uvicorn.Server, listening: socket.socket) -> tuple[Callable[[], None], SignalHandlers]:
    def request_stop() -> None:
        server.should_exit = True

    maximise_open_file_limit()
    return lambda: server.run(sockets=[listening]), {"SIGINT": request_stop, "SIGTERM": request_stop}


def _missing_pages_notes() -> list[str]:
    is_built = (STATIC_FOLDER / "annotate.html").is_file()
    return [] if is_built else ["the pages are not built; run `make frontend`"]


def _joining_link(store: Store, address: str) -> str:
    token = access_storage.get_open_link_token(store)
    return f"{address}/join/{token}" if token else ""


@contextmanager
def _open_socket(host: str, port: int) -> Iterator[tuple[socket.socket, str]]:
    """Yield a listening socket and its URL."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        hint = f"; use {param('port')} to select another port, or 0 for any free port" if port else ""
        message = f"cannot listen on {host} port {port}: {error.strerror}{hint}"
        raise ParameterError(message, parameter="port") from None
    with listening:
        address = f"[{host}]" if ":" in host else "127.0.0.1" if host == "0.0.0.0" else host
        yield listening, f"http://{address}:{listening.getsockname()[1]}"


def _allowed_hosts(listening: socket.socket, public_url: str) -> frozenset[str]:
    """Return the accepted host names: those of this machine, and any IP address when listening on all interfaces."""
    address = str(listening.getsockname()[0])
    public = {urlsplit(public_url).hostname or ""} if public_url else set()
    open_to_all = {"*", socket.gethostname().lower()} if address in ("0.0.0.0", "::") else set()
    return frozenset({"localhost", "127.0.0.1", "::1", address.lower(), *public, *open_to_all} - {""})
