"""Commands that collect annotations from people: serve, preview, links, backup, restore."""

from __future__ import annotations

import socket
import tempfile
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit

import typer

from finecomb import protocols
from finecomb.annotators.simulated.preview_study import preview_study
from finecomb.api.collection import backup as fc_backup
from finecomb.api.collection import links as fc_links
from finecomb.api.collection import repair as fc_repair
from finecomb.api.collection import restore as fc_restore
from finecomb.api.collection import verify_backup
from finecomb.api.served_studies import open_served_study
from finecomb.cli.derived import ApiCall, from_api
from finecomb.cli.shared import app, err, format_count, out, parse_phases, print_note, print_notes, print_outcome
from finecomb.collection.announcement import build_announcement, summary_line
from finecomb.collection.database.location import DATABASE_FILENAME, parse_location, work_location
from finecomb.core.errors import FinecombError
from finecomb.core.records import ONBOARDING_PHASES
from finecomb.formats import folder

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from finecomb.collection.database.store import Store
    from finecomb.core.records import OnboardingPhase

ServedStudy = Annotated[
    Path,
    typer.Argument(help="A study's folder, its SQLite file, or postgresql://HOST/DATABASE#STUDY.", show_default=False),
]
Host = Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 lets other machines in.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free one.")]
PublicUrl = Annotated[
    str, typer.Option("--public-url", help="The address that people see, e.g. behind a proxy.", show_default=False)
]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
KeyEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--key-env",
        help="An environment variable that runs of language models may take their key from; may be repeated.",
        show_default=False,
    ),
]
RUNS = "runs"  # as in finecomb.annotators.llm, which may not be installed
Db = Annotated[
    str,
    typer.Option("--db", help="Keep the work there instead: postgresql://HOST/DATABASE#STUDY.", show_default=False),
]


@app.command()
def serve(
    study: ServedStudy,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    db: Db = "",
    public_url: PublicUrl = "",
    key_env: KeyEnv = None,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that answer, for several cores; needs PostgreSQL.")
    ] = 1,
    log_format: Annotated[
        str, typer.Option("--log-format", help="text, or json: a line for each request, without personal data.")
    ] = "text",
    open_: Open = False,
) -> None:
    """Collect annotations from people: prints the researcher's link and the annotators'.

    Example: `finecomb serve my-study`
    """
    _check_workers(study, db, workers)
    logs = _set_up_log(log_format)
    with (
        _lock_study(study, db),
        open_served_study(study, db) as store,
        _open_socket(host, port) as (listening, address),
    ):
        address = public_url.rstrip("/") or address
        documents = len(store.assignment_plan().documents)
        annotators = format_count(store.head.annotators_per_document, "annotator")
        out.print(
            f"{store.title}: {format_count(documents, 'text')}, {annotators} per text, {store.head.protocol.id}",
            soft_wrap=True,
        )
        link = _researchers_link(store, address)
        _print_line("researchers", f"{link}  (works once)")
        if joining := _joining_link(store, address):
            _print_line("annotators", joining)
        _print_line("their way", summary_line(build_announcement(store.head.protocol, store.head.settings)))
        _warn_unencrypted(host, public_url)
        runs = study / RUNS if study.is_dir() else None
        options = ServeOptions(public_url, link if open_ else "", runs, tuple(key_env or ()), workers, logs)
        _serve_until_stopped(store, listening, options)


def _check_workers(study: Path, db: str, workers: int) -> None:
    """Refuse several workers on SQLite, whose file one process writes."""
    if workers > 1 and (where := work_location(study, db)).file:
        way_out = "keep the work in PostgreSQL, with --db postgresql://HOST/DATABASE#STUDY, or leave --workers out"
        raise FinecombError(f"--workers {workers}: {where} is a SQLite file, which one process serves; {way_out}")


def _set_up_log(log_format: str) -> Literal["text", "json"]:
    if log_format == "json":
        from finecomb.server.logs import configure_logging

        configure_logging("json")
        return "json"
    if log_format != "text":
        raise FinecombError(f"--log-format {log_format}: expected text or json")
    return "text"


def _print_line(who: str, link: str) -> None:
    out.print(f"  {who:<12} {link}", soft_wrap=True)


@app.command()
def preview(
    protocol: Annotated[str, typer.Argument(help="A shipped protocol's name or your YAML file.", show_default=False)],
    host: Host = "127.0.0.1",
    port: Port = 8000,
    open_: Open = False,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Phases to leave out, with commas: {', '.join(ONBOARDING_PHASES)}; may be repeated.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """See what annotators will see: a protocol's whole way, then its own example texts. Nothing is kept.

    Your own YAML file is shown on phone and tablet beside its text, and anew whenever it is saved.

    Example: `finecomb preview scarecrow --skip training --skip qualification`
    """
    chosen = protocols.load(protocol)
    items = preview_study(chosen, parse_phases(skip or ()))
    from finecomb.collection.database.store import open_store

    if Path(protocol).is_file():
        _preview_live(Path(protocol), parse_phases(skip or ()), host, port, open_)
        return
    with tempfile.TemporaryDirectory() as temporary, _open_socket(host, port) as (listening, address):
        store = open_store(parse_location(Path(temporary) / DATABASE_FILENAME), items)
        link = _joining_link(store, address)
        out.print(
            f"{chosen.id}: {format_count(len(store.assignment_plan().documents), 'example text')}; nothing is kept",
            soft_wrap=True,
        )
        _print_line("preview", link)
        try:
            _serve_until_stopped(store, listening, ServeOptions(opened_link=link if open_ else ""))
        finally:
            store.close()


def _preview_live(file: Path, skipped: Sequence[OnboardingPhase], host: str, port: int, open_: bool) -> None:
    """Show a protocol's file until it is stopped, anew after each change."""
    import uvicorn

    from finecomb.collection.database.store import open_store
    from finecomb.server.app import create_app
    from finecomb.server.connections import server_config
    from finecomb.server.live_preview import PREVIEW_PATH, create_preview_app

    with (
        tempfile.TemporaryDirectory() as temporary,
        ExitStack() as stores,
        _open_socket(host, port) as (listening, address),
    ):
        hosts = _allowed_hosts(listening, "")

        def open_preview() -> tuple[ASGIApp, str]:
            items = preview_study(protocols.load(str(file)), skipped)
            store = open_store(parse_location(Path(tempfile.mkdtemp(dir=temporary)) / DATABASE_FILENAME), items)
            stores.callback(store.close)
            return create_app(store, "", hosts), _joining_link(store, "")

        app_ = create_preview_app(file, open_preview, hosts)
        out.print(f"{file}: shown anew whenever it is saved; nothing is kept", soft_wrap=True)
        _print_line("preview", f"{address}{PREVIEW_PATH}")
        if open_:
            webbrowser.open(f"{address}{PREVIEW_PATH}")
        with suppress(KeyboardInterrupt):
            uvicorn.Server(server_config(app_, "")).run(sockets=[listening])


@app.command()
@from_api(fc_links)
def links(study: ServedStudy, call: ApiCall) -> None:
    """Example: `finecomb links my-study --new 3`"""
    for row in call(study):
        typer.echo("\t".join(row.values()))


@app.command()
@from_api(fc_backup)
def backup(
    call: ApiCall,
    study: Annotated[
        Path | None,
        typer.Argument(
            help="A study's folder, its SQLite file, or postgresql://HOST/DATABASE#STUDY.", show_default=False
        ),
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option(help="Check this backup instead: whether it is intact and unchanged.", show_default=False),
    ] = None,
) -> None:
    """Example: `finecomb backup my-study -o monday.db`"""
    if verify is not None:
        if study is not None or call.given:
            raise FinecombError("--verify FILE stands alone; leave the study and --output out")
        report = verify_backup(verify)
        seal = f"as it was made at {report.sealed}" if report.sealed else "sound, but without a seal to compare it with"
        studies = "1 study" if len(report) == 1 else f"{len(report)} studies"
        print_outcome(verify, f"{seal}; {studies}, {format_count(report.row_count, 'row')}")
        return
    if study is None:
        raise FinecombError("say which study, e.g. finecomb backup my-study")
    print_outcome(call(study), "written")


@app.command()
@from_api(fc_repair)
def repair(study: ServedStudy, call: ApiCall) -> None:
    """Example: `finecomb repair my-study`"""
    report = call(study)
    for row in report:
        subject = f"{row.kind} {row.id!r}" if row.id else row.kind
        out.print(f"{subject}: {row.outcome}: {row.why}", soft_wrap=True)
    print_notes(report.notes)
    records = f"{format_count(len(report), 'record')} mended or set aside"
    print_outcome(study, records if report else "every record can be read; nothing was changed")


@app.command()
@from_api(fc_restore)
def restore(
    file: Annotated[Path, typer.Argument(help="A file that `finecomb backup` wrote.", show_default=False)],
    study: ServedStudy,
    call: ApiCall,
) -> None:
    """Example: `finecomb restore monday.db my-study`"""
    if copy := call(file, study):
        print_note(f"what was there is kept in {copy}")
    print_outcome(study, f"restored from {file}")


# --- where and what ----------------------------------------------------------------------------------------------


@contextmanager
def _lock_study(study: Path, db: str) -> Iterator[None]:
    """Nobody else serves the study from its SQLite file; several processes may from PostgreSQL."""
    from finecomb.collection.database.serving_lock import hold_study_lock

    if study.is_dir() and not folder.is_study_folder(study):
        yield  # which is said below
        return
    with hold_study_lock(work_location(study, db), "serve"):
        yield


# --- listening ---------------------------------------------------------------------------------------------------


@contextmanager
def _open_socket(host: str, port: int) -> Iterator[tuple[socket.socket, str]]:
    """A socket that listens, and the address it has."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        way_out = "; choose another with --port, or 0 for any free one" if port else ""
        raise FinecombError(f"cannot listen on {host} port {port}: {error.strerror}{way_out}") from None
    with listening:
        address = f"[{host}]" if ":" in host else "127.0.0.1" if host == "0.0.0.0" else host
        yield listening, f"http://{address}:{listening.getsockname()[1]}"


def _researchers_link(store: Store, address: str) -> str:
    from finecomb.collection import researcher_actions_storage

    token = store.run_job_sync(researcher_actions_storage.invite_researcher, "finecomb serve", "owner", "owner")
    return f"{address}/sign-in/{token}"


def _joining_link(store: Store, address: str) -> str:
    from finecomb.collection.access_storage import open_link_token

    token = open_link_token(store)
    return f"{address}/join/{token}" if token else ""


def _warn_unencrypted(host: str, public_url: str) -> None:
    if host not in ("127.0.0.1", "localhost", "::1") and not public_url.startswith("https:"):
        print_note(
            "other machines can reach this, and nothing is encrypted; put a proxy with TLS in front and name its"
        )
        print_note("address with --public-url https://...")


def _allowed_hosts(listening: socket.socket, public_url: str) -> frozenset[str]:
    """The names that the server answers to: its own, this machine's, and any plain address where all may come."""
    own = str(listening.getsockname()[0])
    public = {urlsplit(public_url).hostname or ""} if public_url else set()
    open_to_all = {"*", socket.gethostname().lower()} if own in ("0.0.0.0", "::") else set()
    return frozenset({"localhost", "127.0.0.1", "::1", own.lower(), *public, *open_to_all} - {""})


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How a study is served."""

    public_url: str = ""
    opened_link: str = ""
    """Opened in a browser."""
    runs: Path | None = None
    key_envs: tuple[str, ...] = ()
    workers: int = 1
    log_format: Literal["text", "json"] = "text"


def _serve_until_stopped(store: Store, listening: socket.socket, options: ServeOptions) -> None:
    from finecomb.server.housekeeping import run_housekeeping
    from finecomb.server.pages import STATIC_FOLDER

    if not (STATIC_FOLDER / "annotate.html").is_file():
        print_note("the pages are not built yet: run `make frontend`")
    try:
        with run_housekeeping(store):
            serve_with = _serve_in_workers if options.workers > 1 else _serve_in_process
            serve_with(store, listening, options)
    except KeyboardInterrupt:
        err.print("Stopped; everything is saved.")


def _announce(options: ServeOptions) -> None:
    """Say that the server answers."""
    out.print("Stop with Ctrl-C; everything is saved as it happens.", soft_wrap=True)
    if options.opened_link:
        webbrowser.open(options.opened_link)


def _serve_in_process(store: Store, listening: socket.socket, options: ServeOptions) -> None:
    import uvicorn

    from finecomb.server.app import create_app
    from finecomb.server.connections import allow_many_connections, server_config

    hosts = _allowed_hosts(listening, options.public_url)
    app_ = create_app(store, options.public_url, hosts, options.runs, options.key_envs)
    allow_many_connections()
    _announce(options)
    uvicorn.Server(server_config(app_, options.public_url, options.log_format)).run(sockets=[listening])


def _serve_in_workers(store: Store, listening: socket.socket, options: ServeOptions) -> None:
    from finecomb.server.workers import WorkerPool, WorkerSettings, handle_signals

    hosts = _allowed_hosts(listening, options.public_url)
    where = replace(store.database.place, study=store.name)
    settings = WorkerSettings(
        where, options.public_url, hosts, options.runs, options.key_envs, log_format=options.log_format
    )
    workers = WorkerPool(settings, listening, options.workers)
    asks = {"SIGINT": workers.request_stop, "SIGTERM": workers.request_stop, "SIGHUP": workers.request_restart}
    with handle_signals(asks):
        workers.start()
        _announce(options)
        workers.supervise()
    err.print("Stopped; everything is saved.")
