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
from finecomb.cli.shared import Force, app, err, format_count, out, parse_phases, print_note, print_outcome
from finecomb.collection.announcement import build_announcement, summary_line
from finecomb.collection.database.location import DATABASE_FILENAME, StudyLocation, is_postgres_url, parse_location
from finecomb.core.errors import FinecombError, StudyError, did_you_mean
from finecomb.core.records import ONBOARDING_PHASES
from finecomb.core.study_checks import check_items
from finecomb.formats import folder, locate_problems

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
        _open_served_study(study, db) as store,
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
def links(
    study: ServedStudy,
    new: Annotated[int, typer.Option(min=0, help="How many new annotators get one.")] = 0,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="Somebody, new or known, who gets one; may be repeated.", show_default=False),
    ] = None,
    researcher: Annotated[
        str, typer.Option(help="A researcher who gets a link to sign in (again); works once.", show_default=False)
    ] = "",
    db: Db = "",
    public_url: PublicUrl = "http://127.0.0.1:8000",
) -> None:
    """Personal links for annotators. Each is shown once; only a hash of it is kept.

    Example: `finecomb links my-study --new 3`
    """
    from finecomb.collection import researcher_actions_storage

    if researcher:
        if new or name:
            raise FinecombError("--researcher NAME stands alone; make links for annotators apart from it")
        with _open_served_study(study, db) as store:
            typer.echo(f"{researcher}\t{_sign_in_link(store, researcher, public_url.rstrip('/'))}")
        return
    if not new and not name:
        raise FinecombError("say for whom: --new 3 for three new annotators, or --name ann")
    with _open_served_study(study, db) as store:
        for link in store.run_job_sync(researcher_actions_storage.make_links, "finecomb links", new, tuple(name or ())):
            typer.echo(f"{link.annotator}\t{public_url.rstrip('/')}/join/{link.token}")


def _sign_in_link(store: Store, id: str, address: str) -> str:
    """A link for a researcher, in the role they have."""
    from finecomb.collection import researcher_actions_storage

    with store.database.read_transaction() as transaction:
        roles = {person.id: person.role for person in researcher_actions_storage.researchers(store, transaction)}
    if id not in roles:
        raise FinecombError(f"no researcher is called {id!r}{did_you_mean(id, roles)}; an owner invites new ones")
    token = store.run_job_sync(researcher_actions_storage.invite_researcher, "finecomb links", id, roles[id])
    return f"{address}/sign-in/{token}"


@app.command()
def backup(
    study: Annotated[
        Path | None,
        typer.Argument(
            help="A study's folder, its SQLite file, or postgresql://HOST/DATABASE#STUDY.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; named by the time when absent.")
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option(help="Make none; say whether this one is sound and as it was made.", show_default=False),
    ] = None,
) -> None:
    """A consistent copy of a study's database as one SQLite file, also while the study is served.

    Example: `finecomb backup my-study -o monday.db`
    """
    from finecomb.collection.database.backup import back_up, backup_path
    from finecomb.collection.database.connection import Database

    if verify is not None:
        if study is not None or output is not None:
            raise FinecombError("--verify FILE stands alone; leave the study and --output out")
        _verify_backup(verify)
        return
    if study is None:
        raise FinecombError("say which study, e.g. finecomb backup my-study")
    where = work_location(study, "")
    if where.file and not where.file.exists():
        raise FinecombError(f"{where}: no such file; the study has not been served yet")
    target = output or backup_path(where)
    database = Database(where, readonly=where.file is not None)
    try:
        back_up(database, target)
    finally:
        database.close()
    print_outcome(target, "written")


def _verify_backup(file: Path) -> None:
    from finecomb.collection.database.backup import verify

    check = verify(file)
    seal = f"as it was made at {check.sealed}" if check.sealed else "sound, but without a seal to compare it with"
    studies = "1 study" if len(check.studies) == 1 else f"{len(check.studies)} studies"
    print_outcome(file, f"{seal}; {studies}, {format_count(check.rows, 'row')}")


@app.command()
def repair(study: ServedStudy) -> None:
    """Mend stored records that cannot be read, or set them aside in a file. A backup is made first.

    Example: `finecomb repair my-study`
    """
    from finecomb.collection.database.connection import Database
    from finecomb.collection.database.repair import repair as repaired
    from finecomb.collection.database.serving_lock import hold_study_lock
    from finecomb.collection.database.store import migrate_database

    where = work_location(study, "")
    if where.file and not where.file.exists():
        raise FinecombError(f"{where}: no such file; the study has not been served yet")
    database = Database(where)
    try:
        with hold_study_lock(where, "repair"):
            migrate_database(database)
            result = repaired(database)
    finally:
        database.close()
    for row in result.rows:
        subject = f"{row.kind} {row.id!r}" if row.id else row.kind
        out.print(f"{subject}: {row.outcome}: {row.why}", soft_wrap=True)
    if not result.rows:
        print_outcome(study, "every record can be read; nothing was changed")
        return
    print_note(f"the database as it was is kept in {result.backup}")
    print_note(f"what was taken out or changed is kept in {result.aside}")
    print_outcome(study, f"{format_count(len(result.rows), 'record')} mended or set aside")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="What `finecomb backup` wrote.", show_default=False)],
    study: ServedStudy,
    force: Force = False,
) -> None:
    """Put a backup in the place of a study's database. Stop the server first.

    Example: `finecomb restore monday.db my-study`
    """
    from finecomb.collection.database.backup import restore as put_back

    if not file.is_file():
        raise FinecombError(f"{file}: no such file")
    where = work_location(study, "")
    if copy := put_back(file, where, force):
        print_note(f"what was there is kept in {copy}")
    print_outcome(study, f"restored from {file}")


# --- where and what ----------------------------------------------------------------------------------------------


def work_location(study: Path, db: str) -> StudyLocation:
    """Where the work of a study is kept."""
    if db and not is_postgres_url(db):
        raise FinecombError(
            f"--db {db}: expected postgresql://HOST/DATABASE#STUDY; without --db the work is in {DATABASE_FILENAME}"
        )
    if db:
        location = parse_location(db)
        return location if location.study else StudyLocation(location.url, study.resolve().name)
    return parse_location(study / DATABASE_FILENAME) if study.is_dir() else parse_location(study)


@contextmanager
def _lock_study(study: Path, db: str) -> Iterator[None]:
    """Nobody else serves the study from its SQLite file; several processes may from PostgreSQL."""
    from finecomb.collection.database.serving_lock import hold_study_lock

    if study.is_dir() and not folder.is_study_folder(study):
        yield  # which is said below
        return
    with hold_study_lock(work_location(study, db), "serve"):
        yield


@contextmanager
def _open_served_study(study: Path, db: str) -> Iterator[Store]:
    """A study to be served, with what is new in its folder."""
    from finecomb.collection.database.store import open_store

    if study.is_dir() and not folder.is_study_folder(study):
        raise FinecombError(f"{study}: no study in this folder; `finecomb new` makes one from your texts")
    if not study.is_dir() and not is_postgres_url(study) and not (parse_location(study).file or study).exists():
        raise FinecombError(f"{study}: no such file or folder")
    try:
        store = open_store(work_location(study, db), check_items(folder.read_files(study)) if study.is_dir() else None)
    except StudyError as error:
        raise StudyError(locate_problems(error.problems, study)) from None
    try:
        yield store
    finally:
        store.close()


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
