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

from finecomb.collection import access_storage, arrivals_storage, researcher_actions_storage
from finecomb.collection import audit_log_storage as audit_log
from finecomb.collection.access_storage import Session
from finecomb.collection.database.store import Store
from finecomb.core.allocation_settings import allocation_problems
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.protocol_text import format_yaml
from finecomb.core.records import Record, Settings
from finecomb.core.study import Study
from finecomb.server.auth import auth_of, require_recent_researcher, require_researcher
from finecomb.server.error_responses import ProblemError, validation_problem
from finecomb.server.researchers import schema, upload_process
from finecomb.server.researchers.document_views import DocumentQuery, document_list, document_page
from finecomb.server.researchers.snapshot_cache import SnapshotCache, StudyPages
from finecomb.server.researchers.study_export import export_study
from finecomb.statistics.agreement import second_pass_changes
from finecomb.statistics.measures.study_counts import document_meta_names

router = APIRouter(prefix="/api/admin", tags=["researchers"])
Viewer = Annotated[Session, Depends(require_researcher("viewer"))]
Editor = Annotated[Session, Depends(require_researcher("editor"))]
Owner = Annotated[Session, Depends(require_researcher("owner"))]
RecentViewer = Annotated[Session, Depends(require_recent_researcher("viewer"))]
RecentEditor = Annotated[Session, Depends(require_recent_researcher("editor"))]
RecentOwner = Annotated[Session, Depends(require_recent_researcher("owner"))]
Id = Annotated[str, Query(min_length=1, max_length=1000)]


def _snapshot_cache(request: Request) -> SnapshotCache:
    """StudyPages when the first researcher looks."""
    state = request.app.state
    if not hasattr(state, "snapshots"):
        state.snapshots = SnapshotCache(state.store)
    snapshots: SnapshotCache = state.snapshots
    return snapshots


Snapshots = Annotated[SnapshotCache, Depends(_snapshot_cache)]


def _served_store(request: Request) -> Store:
    store: Store = request.app.state.store
    return store


ServedStore = Annotated[Store, Depends(_served_store)]


def _public_url(request: Request, path: str) -> str:
    origin = auth_of(request).origin or str(request.base_url).rstrip("/")
    return f"{origin}/{path}"


# --- looking ------------------------------------------------------------------------------------------------------


@router.get("/overview", response_model=schema.Overview, responses={304: {"description": "As before"}})
def overview(request: Request, snapshots: Snapshots, _: Viewer) -> Response:
    """Progress, time, cost, agreement, results and annotators. Send the `ETag` back to hear only of changes."""
    return _etag_response(request, *snapshots.read(lambda pages: (pages.tag, pages.overview)))


def _etag_response(request: Request, tag: str, record: Record) -> Response:
    headers = {"etag": f'"{tag}"', "cache-control": "private, no-cache"}
    if request.headers.get("if-none-match") == f'"{tag}"':
        return Response(status_code=304, headers=headers)
    return Response(record.model_dump_json(), headers=headers, media_type="application/json")


@router.get("/documents")
def documents(
    snapshots: Snapshots,
    _: Viewer,
    show: schema.DocumentFilter = "all",
    search: Annotated[str, Query(max_length=1000)] = "",
    model: str | None = None,
    label: str | None = None,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> schema.DocumentList:
    """Documents in the study's order, found by id, words, model or label, some at a time."""
    wanted = DocumentQuery(show, search, model, label, offset, limit)
    return snapshots.read(lambda pages: document_list(pages.documents, wanted))


@router.get("/document", response_model=schema.DocumentPage, responses={304: {"description": "As before"}})
def document(request: Request, snapshots: Snapshots, _: Viewer, id: Id) -> Response:
    """One document with what everybody said about it."""

    def page(pages: StudyPages) -> tuple[str, Record]:
        _require_known_id(id, "document", pages.snapshot.study.documents["id"].to_list())
        return pages.tag, document_page(pages.snapshot, pages.documents, id)

    return _etag_response(request, *snapshots.read(page))


@router.get("/annotator")
def annotator(snapshots: Snapshots, _: Viewer, id: Id) -> schema.AnnotatorPage:
    """One annotator: texts, times, marks, agreement with the others, checks and notes."""

    def page(pages: StudyPages) -> schema.AnnotatorPage:
        _require_known_id(id, "annotator", list(pages.snapshot.name_by_annotator))
        return pages.annotator_table.annotator_page(id)

    return snapshots.read(page)


def _require_known_id(id: str, what: str, ids: list[str]) -> None:
    if id not in ids:
        raise ProblemError("not-found", f"No {what} is called {id!r}{did_you_mean(id, ids[:5000])}")


# --- setting aside ------------------------------------------------------------------------------------------------


@router.put("/annotator/excluded")
async def exclude_annotator(snapshots: Snapshots, session: Editor, id: Id, why: schema.ReasonedDecision) -> None:
    """Set all work of an annotator aside, with a reason. Nothing is deleted."""
    await snapshots.store.change_study(researcher_actions_storage.exclude_annotator, session.who, id, why.reason)
    snapshots.invalidate()


@router.delete("/annotator/excluded")
async def restore_annotator(snapshots: Snapshots, session: Editor, id: Id) -> None:
    """Let an annotator's work count again."""
    await snapshots.store.change_study(researcher_actions_storage.restore_annotator, session.who, id)
    snapshots.invalidate()


@router.put("/annotation/excluded")
async def exclude_annotation(snapshots: Snapshots, session: Editor, id: Id, why: schema.ReasonedDecision) -> None:
    """Set one annotation aside, with a reason. Nothing is deleted."""
    await snapshots.store.change_study(researcher_actions_storage.exclude_annotation, session.who, id, why.reason)
    snapshots.invalidate()


@router.delete("/annotation/excluded")
async def restore_annotation(snapshots: Snapshots, session: Editor, id: Id) -> None:
    """Let an annotation count again."""
    await snapshots.store.change_study(researcher_actions_storage.restore_annotation, session.who, id)
    snapshots.invalidate()


@router.put("/annotator/name")
async def name_annotator(snapshots: Snapshots, session: Editor, id: Id, given: schema.DisplayName) -> None:
    """Call an annotator something; only researchers see it."""
    await snapshots.store.change_study(researcher_actions_storage.name_annotator, session.who, id, given.name)
    snapshots.invalidate()


@router.delete("/annotator/browser")
async def release_browser(snapshots: Snapshots, session: Editor, id: Id) -> None:
    """Let somebody who came from a platform go on in another browser than the one they began in."""
    await snapshots.store.change_study(arrivals_storage.release_browser, session.who, id)


# --- links --------------------------------------------------------------------------------------------------------


@router.get("/links")
def links(request: Request, store: ServedStore, _: Editor) -> schema.Links:
    """The open link, and who has a personal one."""
    with store.database.read_transaction() as transaction:
        links_of = researcher_actions_storage.link_usage_by_annotator(store, transaction)
    token = access_storage.open_link_token(store)
    return schema.Links(
        open=_public_url(request, f"join/{token}") if token else "",
        personal=tuple(
            schema.AnnotatorLinks(annotator=who, links=count, used=None if used is None else _from_timestamp(used))
            for who, (count, used) in sorted(links_of.items())
        ),
    )


@router.post("/links")
async def make_links(
    request: Request, snapshots: Snapshots, session: Editor, wanted: schema.NewLinks
) -> tuple[schema.PersonalLinkResponse, ...]:
    """Personal links, for new people or for some by name. They are shown once."""
    if not wanted.count and not wanted.names:
        raise ProblemError("refused", "Say for how many people, or for whom.")
    personal_links = await snapshots.store.change_study(
        researcher_actions_storage.create_personal_links, session.who, wanted.count, wanted.names
    )
    snapshots.invalidate()
    return tuple(
        schema.PersonalLinkResponse(annotator=link.annotator, url=_public_url(request, f"join/{link.token}"))
        for link in personal_links
    )


@router.delete("/links")
async def revoke_links(store: ServedStore, session: Editor, annotator: Id) -> None:
    """Let an annotator's links open nothing any more, and sign them out."""
    await store.change_study(researcher_actions_storage.revoke_annotator_links, session.who, annotator)


@router.put("/open-link")
async def set_open_link(store: ServedStore, session: Editor, joining: schema.OpenLinkRequest) -> None:
    """Make a new open link, which replaces the old one, or have none."""
    await store.change_study(researcher_actions_storage.replace_or_remove_open_link, session.who, joining.on)


# --- running the study --------------------------------------------------------------------------------------------


@router.get("/study")
def study(snapshots: Snapshots, _: Viewer) -> schema.StudyConfig:
    """How the study is run: state, settings, protocols."""
    return snapshots.read(lambda pages: _study_config(snapshots.store, pages.snapshot.study))


def _study_config(store: Store, study: Study) -> schema.StudyConfig:
    head = store.head
    used: dict[str, int] = dict(study.annotations.group_by("protocol").len().iter_rows())
    return schema.StudyConfig(
        state=head.state,
        settings=head.settings,
        per_document=head.protocol.work.annotators,
        protocols=tuple(
            schema.ProtocolRow(
                id=protocol.id,
                title=protocol.title,
                annotations=used.get(protocol.id, 0),
                current=protocol is head.protocol,
            )
            for protocol in head.protocols.values()
        ),
        documents=len(study.documents),
        facts=tuple(document_meta_names(study)),
        machines=tuple(id for id, kind in study.annotators.select("id", "kind").iter_rows() if kind != "human"),
    )


@router.put("/state")
async def set_state(snapshots: Snapshots, session: Editor, new: schema.NewState) -> None:
    """Open, pause or close the study, or run a pilot."""
    await snapshots.store.change_study(researcher_actions_storage.set_state, session.who, new.state)
    snapshots.invalidate()


@router.patch("/settings")
async def set_settings(snapshots: Snapshots, session: Editor, changes: Settings) -> Settings:
    """Change those settings that are sent; the others stay."""
    named = {name: getattr(changes, name) for name in changes.model_fields_set}
    if "models" in named and session.role != "owner":
        raise ProblemError("not-allowed", "Which language models are asked, and where, is for owners of the study.")
    try:
        settings = Settings.model_validate(dict(snapshots.store.head.settings) | named)
    except ValidationError as error:
        raise validation_problem("This setting", error) from None
    await run_in_threadpool(_require_valid_settings, snapshots, settings)
    await snapshots.store.change_study(researcher_actions_storage.set_settings, session.who, settings)
    snapshots.invalidate()
    return settings


def _require_valid_settings(snapshots: SnapshotCache, settings: Settings) -> None:
    """Refuse names of what is not there."""
    now = snapshots.read(lambda pages: pages.snapshot.study)
    named = [
        ("attention check", settings.attention_checks, now.documents["id"].to_list(), "no document"),
        ("stratum", settings.strata, document_meta_names(now), "no fact about documents"),
        ("offer", [settings.offer.annotator] if settings.offer else [], now.annotators["id"].to_list(), "no annotator"),
    ]
    for what, given, ids, none in named:
        for name in given:
            if name not in ids:
                raise FinecombError(f"{what} {name!r} is {none}{did_you_mean(name, ids[:5000])}")
    metas = {document.id: document.meta for document in now.iter_documents()} if settings.allocation else {}
    for problem in allocation_problems(settings, snapshots.store.head.protocol, metas, now.annotators["id"].to_list()):
        raise FinecombError(problem)
    begun = second_pass_changes.second_pass_progress(now, snapshots.store.head.protocol.id).begun
    if settings.round < snapshots.store.head.settings.round and begun:
        raise FinecombError(f"the second pass cannot be taken back: {begun} texts have been opened again")


@router.get("/protocol", response_class=Response)
def protocol(store: ServedStore, _: Viewer, id: Id) -> Response:
    """A protocol as YAML."""
    _require_known_id(id, "protocol", list(store.head.protocols))
    return _attachment_response(format_yaml(store.head.protocols[id]), f"{id}.yaml", "application/yaml")


def _attachment_response(text: str, name: str, kind: str) -> Response:
    return Response(
        text, media_type=kind, headers={"content-disposition": f"attachment; filename*=utf-8''{quote(name)}"}
    )


@router.post("/protocol")
async def add_protocol(
    request: Request,
    snapshots: Snapshots,
    session: Editor,
    name: Annotated[str, Query(max_length=200)] = "protocol.yaml",
) -> schema.ProtocolRow:
    """Put a protocol in force: the YAML is the body, `name` is for messages. One in use is frozen: count it up."""
    protocol = await run_in_threadpool(upload_process.read_protocol_in_subprocess, await request.body(), name)
    await snapshots.store.change_study(researcher_actions_storage.add_protocol, session.who, protocol)
    snapshots.invalidate()
    return schema.ProtocolRow(id=protocol.id, title=protocol.title, annotations=0, current=True)


@router.post("/documents")
async def add_documents(
    request: Request,
    snapshots: Snapshots,
    session: Editor,
    name: Annotated[str, Query(max_length=200)],
    text: Annotated[str, Query(max_length=200)] = "",
    id: Annotated[str, Query(max_length=200)] = "",
) -> schema.UploadResult:
    """Add the documents of a file, all or none. The file is the body; `name` says its format by its ending.

    `text` and `id` are what a table calls those columns, where it calls them otherwise.
    """
    content = await request.body()
    ids = await run_in_threadpool(snapshots.read, lambda pages: set(pages.snapshot.study.documents["id"]))
    columns = {ours: theirs for ours, theirs in (("text", text), ("id", id)) if theirs}
    new_documents, notes = await run_in_threadpool(
        upload_process.read_documents_in_subprocess, content, name, columns, ids
    )
    await snapshots.store.change_study(researcher_actions_storage.add_documents, session.who, new_documents)
    snapshots.invalidate()
    return schema.UploadResult(documents=len(new_documents), notes=tuple(notes))


# --- researchers --------------------------------------------------------------------------------------------------


@router.get("/researchers")
def researchers(store: ServedStore, _: Viewer) -> tuple[schema.ResearcherRow, ...]:
    """Who may see these pages."""
    with store.database.read_transaction() as transaction:
        people = researcher_actions_storage.list_researchers(store, transaction)
    return tuple(
        schema.ResearcherRow(id=person.id, role=person.role, since=_from_timestamp(person.created)) for person in people
    )


@router.post("/researchers")
async def invite_researcher(
    request: Request, store: ServedStore, session: RecentOwner, new: schema.Invitation
) -> schema.SignInLink:
    """A link that lets one more researcher in, once and within a week."""
    token = await store.change_study(researcher_actions_storage.invite_researcher, session.who, new.id, new.role)
    return schema.SignInLink(url=_public_url(request, f"sign-in/{token}"))


@router.put("/researcher")
async def set_role(store: ServedStore, session: RecentOwner, id: Id, new: schema.NewRole) -> None:
    """Give a researcher another role."""
    await store.change_study(researcher_actions_storage.set_researcher_role, session.who, id, new.role)


@router.delete("/researcher")
async def remove_researcher(store: ServedStore, session: RecentOwner, id: Id) -> None:
    """Take a researcher's access away."""
    await store.change_study(researcher_actions_storage.remove_researcher, session.who, id)


@router.get("/audit")
def list_audit_log(
    store: ServedStore, _: Viewer, most: Annotated[int, Query(ge=1, le=10_000)] = 200
) -> tuple[schema.AuditEntry, ...]:
    """What researchers did, newest first."""
    with store.database.read_transaction() as transaction:
        lines = audit_log.latest_entries(store, transaction, most)
    return tuple(
        schema.AuditEntry(when=_from_timestamp(at), who=who, did=did, about=from_json(about))
        for at, who, did, about in lines
    )


def _from_timestamp(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


# --- export -------------------------------------------------------------------------------------------------------


@router.get("/exports")
def list_exports(snapshots: Snapshots, _: Viewer) -> tuple[schema.Export, ...]:
    """Every format that can be written, and what it could not hold of this study."""
    return snapshots.read(lambda pages: pages.exports)


@router.get("/export", response_class=FileResponse)
def download_export(snapshots: Snapshots, session: RecentViewer, format: Id) -> FileResponse:
    """The whole study as a file of that format; a folder comes as a .zip."""
    study = snapshots.read(lambda pages: pages.snapshot.study)
    folder = Path(tempfile.mkdtemp(prefix="finecomb-"))
    try:
        file = export_study(study, format, folder)
    except BaseException:
        shutil.rmtree(folder)
        raise
    snapshots.store.run_job_sync(audit_log.record_single_action, session.who, "exported", {"format": format})
    return FileResponse(file, filename=file.name, background=BackgroundTask(shutil.rmtree, folder))
