"""The researcher's side of the API: look at a study and run it. Annotators' sessions open none of it."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import ValidationError
from pydantic_core import from_json
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from finecomb.agreement import second_pass
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.protocol_text import format_yaml, parse_protocol
from finecomb.core.records import Record, Settings
from finecomb.core.study import Study
from finecomb.measure.counts import meta_names
from finecomb.server.auth import gate, researcher
from finecomb.server.problems import ProblemError, refused
from finecomb.server.researchers import schema as wire
from finecomb.server.researchers.documents import Wanted, document_list, document_page
from finecomb.server.researchers.export import export
from finecomb.server.researchers.snapshot_cache import Made, SnapshotCache
from finecomb.server.researchers.upload import documents_in
from finecomb.store import access, researcher_actions
from finecomb.store.access import Session
from finecomb.store.store import Store

router = APIRouter(prefix="/api/admin", tags=["researchers"])
Viewer = Annotated[Session, Depends(researcher("viewer"))]
Editor = Annotated[Session, Depends(researcher("editor"))]
Owner = Annotated[Session, Depends(researcher("owner"))]
Id = Annotated[str, Query(min_length=1, max_length=1000)]


def _desk(request: Request) -> SnapshotCache:
    """Made when the first researcher looks."""
    state = request.app.state
    if not hasattr(state, "admin"):
        state.admin = SnapshotCache(state.store)
    found: SnapshotCache = state.admin
    return found


TheDesk = Annotated[SnapshotCache, Depends(_desk)]


def _store(request: Request) -> Store:
    found: Store = request.app.state.store
    return found


TheStore = Annotated[Store, Depends(_store)]


def _url(request: Request, path: str) -> str:
    origin = gate(request).origin or str(request.base_url).rstrip("/")
    return f"{origin}/{path}"


# --- looking ------------------------------------------------------------------------------------------------------


@router.get("/overview", response_model=wire.Overview, responses={304: {"description": "As before"}})
def overview(request: Request, desk: TheDesk, _: Viewer) -> Response:
    """Progress, time, cost, agreement, results and annotators. Send the `ETag` back to hear only of changes."""
    return _tagged(request, *desk.ask(lambda made: (made.tag, made.overview)))


def _tagged(request: Request, tag: str, record: Record) -> Response:
    headers = {"etag": f'"{tag}"', "cache-control": "private, no-cache"}
    if request.headers.get("if-none-match") == f'"{tag}"':
        return Response(status_code=304, headers=headers)
    return Response(record.model_dump_json(), headers=headers, media_type="application/json")


@router.get("/documents")
def documents(
    desk: TheDesk,
    _: Viewer,
    show: wire.Show = "all",
    search: Annotated[str, Query(max_length=1000)] = "",
    model: str | None = None,
    label: str | None = None,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> wire.DocumentList:
    """Documents in the study's order, found by id, words, model or label, some at a time."""
    wanted = Wanted(show, search, model, label, offset, limit)
    return desk.ask(lambda made: document_list(made.documents, wanted))


@router.get("/document", response_model=wire.DocumentPage, responses={304: {"description": "As before"}})
def document(request: Request, desk: TheDesk, _: Viewer, id: Id) -> Response:
    """One document with what everybody said about it."""

    def page(made: Made) -> tuple[str, Record]:
        _known(id, "document", made.now.study.documents["id"].to_list())
        return made.tag, document_page(made.now, made.documents, id)

    return _tagged(request, *desk.ask(page))


@router.get("/annotator")
def annotator(desk: TheDesk, _: Viewer, id: Id) -> wire.PersonPage:
    """One annotator: texts, times, marks, agreement with the others, checks and notes."""

    def page(made: Made) -> wire.PersonPage:
        _known(id, "annotator", list(made.now.names))
        return made.people.page(id)

    return desk.ask(page)


def _known(id: str, what: str, ids: list[str]) -> None:
    if id not in ids:
        raise ProblemError("not-found", f"No {what} is called {id!r}{did_you_mean(id, ids[:5000])}")


# --- setting aside ------------------------------------------------------------------------------------------------


@router.put("/annotator/excluded")
async def exclude_annotator(desk: TheDesk, session: Editor, id: Id, why: wire.Reasoned) -> None:
    """Set all work of an annotator aside, with a reason. Nothing is deleted."""
    await desk.store.change(researcher_actions.exclude_annotator, session.who, id, why.reason)
    desk.forget()


@router.delete("/annotator/excluded")
async def restore_annotator(desk: TheDesk, session: Editor, id: Id) -> None:
    """Let an annotator's work count again."""
    await desk.store.change(researcher_actions.restore_annotator, session.who, id)
    desk.forget()


@router.put("/annotation/excluded")
async def exclude_annotation(desk: TheDesk, session: Editor, id: Id, why: wire.Reasoned) -> None:
    """Set one annotation aside, with a reason. Nothing is deleted."""
    await desk.store.change(researcher_actions.exclude_annotation, session.who, id, why.reason)
    desk.forget()


@router.delete("/annotation/excluded")
async def restore_annotation(desk: TheDesk, session: Editor, id: Id) -> None:
    """Let an annotation count again."""
    await desk.store.change(researcher_actions.restore_annotation, session.who, id)
    desk.forget()


@router.put("/annotator/name")
async def name_annotator(desk: TheDesk, session: Editor, id: Id, given: wire.DisplayName) -> None:
    """Call an annotator something; only researchers see it."""
    await desk.store.change(researcher_actions.name_annotator, session.who, id, given.name)
    desk.forget()


# --- links --------------------------------------------------------------------------------------------------------


@router.get("/links")
def links(request: Request, store: TheStore, _: Editor) -> wire.Links:
    """The open link, and who has a personal one."""
    with store.database.reading() as transaction:
        found = researcher_actions.linked(store, transaction)
    token = access.open_token(store)
    return wire.Links(
        open=_url(request, f"join/{token}") if token else "",
        personal=tuple(
            wire.Linked(annotator=who, links=count, used=None if used is None else _time(used))
            for who, (count, used) in sorted(found.items())
        ),
    )


@router.post("/links")
async def make_links(
    request: Request, desk: TheDesk, session: Editor, wanted: wire.NewLinks
) -> tuple[wire.PersonalLinkResponse, ...]:
    """Personal links, for new people or for some by name. They are shown once."""
    if not wanted.count and not wanted.names:
        raise ProblemError("refused", "Say for how many people, or for whom.")
    made = await desk.store.change(researcher_actions.make_links, session.who, wanted.count, wanted.names)
    desk.forget()
    return tuple(
        wire.PersonalLinkResponse(annotator=each.annotator, url=_url(request, f"join/{each.token}")) for each in made
    )


@router.delete("/links")
async def revoke_links(store: TheStore, session: Editor, annotator: Id) -> None:
    """Let an annotator's links open nothing any more, and sign them out."""
    await store.change(researcher_actions.revoke_links, session.who, annotator)


@router.put("/open-link")
async def set_joining(store: TheStore, session: Editor, joining: wire.Joining) -> None:
    """Make a new open link, which replaces the old one, or have none."""
    await store.change(researcher_actions.set_joining, session.who, joining.on)


# --- running the study --------------------------------------------------------------------------------------------


@router.get("/study")
def study(desk: TheDesk, _: Viewer) -> wire.Running:
    """How the study is run: state, settings, protocols."""
    return desk.ask(lambda made: _running(desk.store, made.now.study))


def _running(store: Store, study: Study) -> wire.Running:
    head = store.head
    used: dict[str, int] = dict(study.annotations.group_by("protocol").len().iter_rows())
    return wire.Running(
        state=head.state,
        settings=head.settings,
        per_document=head.protocol.work.annotators,
        protocols=tuple(
            wire.ProtocolRow(
                id=each.id, title=each.title, annotations=used.get(each.id, 0), current=each is head.protocol
            )
            for each in head.protocols.values()
        ),
        documents=len(study.documents),
        facts=tuple(meta_names(study)),
        machines=tuple(id for id, kind in study.annotators.select("id", "kind").iter_rows() if kind != "human"),
    )


@router.put("/state")
async def set_state(desk: TheDesk, session: Editor, new: wire.NewState) -> None:
    """Open, pause or close the study, or run a pilot."""
    await desk.store.change(researcher_actions.set_state, session.who, new.state)
    desk.forget()


@router.patch("/settings")
async def set_settings(desk: TheDesk, session: Editor, changes: Settings) -> Settings:
    """Change those settings that are sent; the others stay."""
    named = {name: getattr(changes, name) for name in changes.model_fields_set}
    try:
        settings = Settings.model_validate(dict(desk.store.head.settings) | named)
    except ValidationError as error:
        raise refused("This setting", error) from None
    await run_in_threadpool(_check_settings, desk, settings)
    await desk.store.change(researcher_actions.set_settings, session.who, settings)
    desk.forget()
    return settings


def _check_settings(desk: SnapshotCache, settings: Settings) -> None:
    """Refuse names of what is not there."""
    now = desk.ask(lambda made: made.now.study)
    named = [
        ("attention check", settings.attention_checks, now.documents["id"].to_list(), "no document"),
        ("stratum", settings.strata, meta_names(now), "no fact about documents"),
        ("offer", [settings.offer.annotator] if settings.offer else [], now.annotators["id"].to_list(), "no annotator"),
    ]
    for what, given, known, none in named:
        for name in given:
            if name not in known:
                raise FinecombError(f"{what} {name!r} is {none}{did_you_mean(name, known[:5000])}")
    begun = second_pass.progress(now, desk.store.head.protocol.id).begun
    if settings.round < desk.store.head.settings.round and begun:
        raise FinecombError(f"the second pass cannot be taken back: {begun} texts have been opened again")


@router.get("/protocol", response_class=Response)
def protocol(store: TheStore, _: Viewer, id: Id) -> Response:
    """A protocol as YAML."""
    _known(id, "protocol", list(store.head.protocols))
    return _attached(format_yaml(store.head.protocols[id]), f"{id}.yaml", "application/yaml")


def _attached(text: str, name: str, kind: str) -> Response:
    return Response(
        text, media_type=kind, headers={"content-disposition": f"attachment; filename*=utf-8''{quote(name)}"}
    )


@router.post("/protocol")
async def add_protocol(
    request: Request, desk: TheDesk, session: Editor, name: Annotated[str, Query(max_length=200)] = "protocol.yaml"
) -> wire.ProtocolRow:
    """Put a protocol in force: the YAML is the body, `name` is for messages. One in use is frozen: count it up."""
    try:
        text = (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise FinecombError(f"{name}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    made = await run_in_threadpool(parse_protocol, text, name)
    await desk.store.change(researcher_actions.add_protocol, session.who, made)
    desk.forget()
    return wire.ProtocolRow(id=made.id, title=made.title, annotations=0, current=True)


@router.post("/documents")
async def add_documents(
    request: Request,
    desk: TheDesk,
    session: Editor,
    name: Annotated[str, Query(max_length=200)],
    text: Annotated[str, Query(max_length=200)] = "",
    id: Annotated[str, Query(max_length=200)] = "",
) -> wire.Added:
    """Add the documents of a file, all or none. The file is the body; `name` says its format by its ending.

    `text` and `id` are what a table calls those columns, where it calls them otherwise.
    """
    content = await request.body()
    known = await run_in_threadpool(desk.ask, lambda made: set(made.now.study.documents["id"]))
    columns = {ours: theirs for ours, theirs in (("text", text), ("id", id)) if theirs}
    found, notes = await run_in_threadpool(documents_in, content, name, columns, known)
    await desk.store.change(researcher_actions.add_documents, session.who, found)
    desk.forget()
    return wire.Added(documents=len(found), notes=tuple(notes))


# --- researchers --------------------------------------------------------------------------------------------------


@router.get("/researchers")
def researchers(store: TheStore, _: Viewer) -> tuple[wire.ResearcherRow, ...]:
    """Who may see these pages."""
    with store.database.reading() as transaction:
        found = researcher_actions.researchers(store, transaction)
    return tuple(wire.ResearcherRow(id=each.id, role=each.role, since=_time(each.created)) for each in found)


@router.post("/researchers")
async def invite(request: Request, store: TheStore, session: Owner, new: wire.Invitation) -> wire.Address:
    """A link that lets one more researcher in, once and within a week."""
    token = await store.change(researcher_actions.invite, session.who, new.id, new.role)
    return wire.Address(url=_url(request, f"sign-in/{token}"))


@router.put("/researcher")
async def set_role(store: TheStore, session: Owner, id: Id, new: wire.NewRole) -> None:
    """Give a researcher another role."""
    await store.change(researcher_actions.set_role, session.who, id, new.role)


@router.delete("/researcher")
async def remove_researcher(store: TheStore, session: Owner, id: Id) -> None:
    """Take a researcher's access away."""
    await store.change(researcher_actions.remove_researcher, session.who, id)


@router.get("/audit")
def audit(store: TheStore, _: Viewer, most: Annotated[int, Query(ge=1, le=10_000)] = 200) -> tuple[wire.Did, ...]:
    """What researchers did, newest first."""
    with store.database.reading() as transaction:
        lines = access.audit_log(store, transaction, most)
    return tuple(wire.Did(when=_time(at), who=who, did=did, about=from_json(about)) for at, who, did, about in lines)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


# --- export -------------------------------------------------------------------------------------------------------


@router.get("/exports")
def list_exports(desk: TheDesk, _: Viewer) -> tuple[wire.Export, ...]:
    """Every format that can be written, and what it could not hold of this study."""
    return desk.ask(lambda made: made.exports)


@router.get("/export", response_class=FileResponse)
def download(desk: TheDesk, _: Viewer, format: Id) -> FileResponse:
    """The whole study as a file of that format; a folder comes as a .zip."""
    study = desk.ask(lambda made: made.now.study)
    folder = Path(tempfile.mkdtemp(prefix="finecomb-"))
    try:
        file = export(study, format, folder)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return FileResponse(file, filename=file.name, background=BackgroundTask(shutil.rmtree, folder))
