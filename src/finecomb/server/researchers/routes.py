"""API routes of researchers for monitoring and managing a study. Annotators' sessions have no access."""

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

from finecomb.api.monitoring import document_meta_names, second_pass_progress
from finecomb.collection import access_storage, arrivals_storage, researcher_actions_storage
from finecomb.collection import audit_log_storage as audit_log
from finecomb.collection.access_storage import Session
from finecomb.collection.database.store import Store
from finecomb.core.allocation_settings import allocation_problems
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.protocol_yaml import format_yaml
from finecomb.core.records import Record, Settings
from finecomb.server.auth import get_auth, require_recent_researcher, require_researcher
from finecomb.server.error_responses import ProblemError, validation_problem
from finecomb.server.researchers import schema, upload_process
from finecomb.server.researchers.document_views import DocumentQuery, build_document_list, build_document_page
from finecomb.server.researchers.snapshot_cache import SnapshotCache, StudyPages
from finecomb.server.researchers.study_export import export_study

router = APIRouter(prefix="/api/admin", tags=["researchers"])
Viewer = Annotated[Session, Depends(require_researcher("viewer"))]
Editor = Annotated[Session, Depends(require_researcher("editor"))]
Owner = Annotated[Session, Depends(require_researcher("owner"))]
RecentViewer = Annotated[Session, Depends(require_recent_researcher("viewer"))]
RecentEditor = Annotated[Session, Depends(require_recent_researcher("editor"))]
RecentOwner = Annotated[Session, Depends(require_recent_researcher("owner"))]
Id = Annotated[str, Query(min_length=1, max_length=1000)]


def _snapshot_cache(request: Request) -> SnapshotCache:
    """Return the snapshot cache, which is created on the first request of a researcher."""
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
    origin = get_auth(request).origin or str(request.base_url).rstrip("/")
    return f"{origin}/{path}"


# --- monitoring ---------------------------------------------------------------------------------------------------


@router.get("/overview", response_model=schema.Overview, responses={304: {"description": "Not modified"}})
def overview(request: Request, snapshots: Snapshots, _: Viewer) -> Response:
    """Return progress, time, cost, agreement, results and annotators. Supports `ETag` for unchanged data."""
    return _etag_response(request, *snapshots.compute_page(lambda pages: (pages.tag, pages.overview)))


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
    """List documents in the study's order, filtered by ID, words, model or label, with paging."""
    wanted = DocumentQuery(show, search, model, label, offset, limit)
    return snapshots.compute_page(lambda pages: build_document_list(pages.documents, wanted))


@router.get("/document", response_model=schema.DocumentPage, responses={304: {"description": "Not modified"}})
def document(request: Request, snapshots: Snapshots, _: Viewer, id: Id) -> Response:
    """Return one document with all its annotations."""

    def page(pages: StudyPages) -> tuple[str, Record]:
        _require_known_id(id, "document", pages.snapshot.study.documents["id"].to_list())
        return pages.tag, build_document_page(pages.snapshot, pages.documents, id)

    return _etag_response(request, *snapshots.compute_page(page))


@router.get("/annotator")
def annotator(snapshots: Snapshots, _: Viewer, id: Id) -> schema.AnnotatorPage:
    """Return one annotator: texts, times, marks, agreement with others, attention checks and comments."""

    def page(pages: StudyPages) -> schema.AnnotatorPage:
        _require_known_id(id, "annotator", list(pages.snapshot.name_by_annotator))
        return pages.annotator_table.annotator_page(id)

    return snapshots.compute_page(page)


def _require_known_id(id: str, what: str, ids: list[str]) -> None:
    if id not in ids:
        raise ProblemError("not-found", f"Unknown {what} {id!r}{did_you_mean(id, ids[:5000])}")


# --- exclusion ----------------------------------------------------------------------------------------------------


@router.put("/annotator/excluded")
async def exclude_annotator(snapshots: Snapshots, session: Editor, id: Id, why: schema.ReasonedDecision) -> None:
    """Exclude an annotator with a reason. Nothing is deleted."""
    await snapshots.change_study(researcher_actions_storage.exclude_annotator, session.who, id, why.reason)


@router.delete("/annotator/excluded")
async def restore_annotator(snapshots: Snapshots, session: Editor, id: Id) -> None:
    """Include an excluded annotator again."""
    await snapshots.change_study(researcher_actions_storage.restore_annotator, session.who, id)


@router.put("/annotation/excluded")
async def exclude_annotation(snapshots: Snapshots, session: Editor, id: Id, why: schema.ReasonedDecision) -> None:
    """Exclude one annotation with a reason. Nothing is deleted."""
    await snapshots.change_study(researcher_actions_storage.exclude_annotation, session.who, id, why.reason)


@router.delete("/annotation/excluded")
async def restore_annotation(snapshots: Snapshots, session: Editor, id: Id) -> None:
    """Include an excluded annotation again."""
    await snapshots.change_study(researcher_actions_storage.restore_annotation, session.who, id)


@router.put("/annotator/name")
async def name_annotator(snapshots: Snapshots, session: Editor, id: Id, given: schema.DisplayName) -> None:
    """Set the display name of an annotator, which only researchers see."""
    await snapshots.change_study(researcher_actions_storage.set_display_name, session.who, id, given.name)


@router.delete("/annotator/browser")
async def release_browser(snapshots: Snapshots, session: Editor, id: Id) -> None:
    """Let a platform worker continue in another browser."""
    await snapshots.store.run_study_change(arrivals_storage.unbind_browser, session.who, id)


# --- links --------------------------------------------------------------------------------------------------------


@router.get("/links")
def links(request: Request, store: ServedStore, _: Editor) -> schema.Links:
    """Return the open link, and the annotators with personal links."""
    links_of = store.read(researcher_actions_storage.link_usage_by_annotator)
    token = access_storage.get_open_link_token(store)
    return schema.Links(
        open=_public_url(request, f"join/{token}") if token else "",
        personal=tuple(
            schema.AnnotatorLinks(
                annotator=who, links=count, used=None if used is None else _datetime_from_timestamp(used)
            )
            for who, (count, used) in sorted(links_of.items())
        ),
    )


@router.post("/links")
async def make_links(
    request: Request, snapshots: Snapshots, session: Editor, wanted: schema.NewLinks
) -> tuple[schema.PersonalLinkResponse, ...]:
    """Create personal links for new or named people. Each link is shown once."""
    if not wanted.count and not wanted.names:
        raise ProblemError("refused", "Enter the number of people, or their names.")
    personal_links = await snapshots.change_study(
        researcher_actions_storage.create_personal_links, session.who, wanted.count, wanted.names
    )
    return tuple(
        schema.PersonalLinkResponse(annotator=link.annotator, url=_public_url(request, f"join/{link.token}"))
        for link in personal_links
    )


@router.delete("/links")
async def revoke_links(store: ServedStore, session: Editor, annotator: Id) -> None:
    """Revoke the links of an annotator and sign them out."""
    await store.run_study_change(researcher_actions_storage.revoke_annotator_links, session.who, annotator)


@router.put("/open-link")
async def set_open_link(store: ServedStore, session: Editor, joining: schema.OpenLinkRequest) -> None:
    """Create an open link that replaces the previous one, or turn it off."""
    await store.run_study_change(researcher_actions_storage.replace_or_remove_open_link, session.who, joining.on)


# --- study management ---------------------------------------------------------------------------------------------


@router.get("/study")
def study(snapshots: Snapshots, _: Viewer) -> schema.StudyConfig:
    """Return state, settings and protocols of the study."""
    current = snapshots.compute_page(lambda pages: pages.snapshot.study)
    head = snapshots.store.head
    used: dict[str, int] = dict(current.annotations.group_by("protocol").len().iter_rows())
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
        documents=len(current.documents),
        facts=tuple(document_meta_names(current)),
        machines=tuple(id for id, kind in current.annotators.select("id", "kind").iter_rows() if kind != "human"),
    )


@router.put("/state")
async def set_state(snapshots: Snapshots, session: Editor, new: schema.NewState) -> None:
    """Open, pause or close the study, or start a pilot."""
    await snapshots.change_study(researcher_actions_storage.set_study_status, session.who, new.state)


@router.patch("/settings")
async def set_settings(snapshots: Snapshots, session: Editor, changes: Settings) -> Settings:
    """Change the settings that are sent, and keep the others."""
    named = {name: getattr(changes, name) for name in changes.model_fields_set}
    if "models" in named and session.role != "owner":
        raise ProblemError("not-allowed", "Only owners of the study can change its language models.")
    try:
        settings = Settings.model_validate(dict(snapshots.store.head.settings) | named)
    except ValidationError as error:
        raise validation_problem("This setting", error) from None
    await run_in_threadpool(_require_valid_settings, snapshots, settings)
    await snapshots.change_study(researcher_actions_storage.update_settings, session.who, settings)
    return settings


def _require_valid_settings(snapshots: SnapshotCache, settings: Settings) -> None:
    """Raise an error for settings that refer to unknown documents, meta keys or annotators."""
    now = snapshots.compute_page(lambda pages: pages.snapshot.study)
    named = [
        ("attention check", settings.attention_checks, now.documents["id"].to_list(), "not a document"),
        ("stratum", settings.strata, document_meta_names(now), "not a key of document meta"),
        (
            "offer",
            [settings.offer.annotator] if settings.offer else [],
            now.annotators["id"].to_list(),
            "not an annotator",
        ),
    ]
    for what, given, ids, none in named:
        for name in given:
            if name not in ids:
                raise FinecombError(f"{what} {name!r} is {none}{did_you_mean(name, ids[:5000])}")
    metas = {document.id: document.meta for document in now.iter_documents()} if settings.allocation else {}
    for problem in allocation_problems(settings, snapshots.store.head.protocol, metas, now.annotators["id"].to_list()):
        raise FinecombError(problem)
    begun = second_pass_progress(now, snapshots.store.head.protocol.id).begun
    if settings.round < snapshots.store.head.settings.round and begun:
        raise FinecombError(f"the second pass can no longer be cancelled; number of texts already reopened: {begun}")


@router.get("/protocol", response_class=Response)
def protocol(store: ServedStore, _: Viewer, id: Id) -> Response:
    """Return a protocol as YAML."""
    _require_known_id(id, "protocol", list(store.head.protocols))
    name = f"{id}.yaml"
    return Response(
        format_yaml(store.head.protocols[id]),
        media_type="application/yaml",
        headers={"content-disposition": f"attachment; filename*=utf-8''{quote(name)}"},
    )


@router.post("/protocol")
async def add_protocol(
    request: Request,
    snapshots: Snapshots,
    session: Editor,
    name: Annotated[str, Query(max_length=200)] = "protocol.yaml",
) -> schema.ProtocolRow:
    """Add a protocol and make it the current one. The body is YAML, and `name` is used in messages.

    A protocol in use is frozen, so a change needs a new version.
    """
    protocol = await run_in_threadpool(upload_process.read_protocol_in_subprocess, await request.body(), name)
    await snapshots.change_study(researcher_actions_storage.add_and_activate_protocol, session.who, protocol)
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
    """Add the documents of a file, all or none. The body is the file, and the suffix of `name` determines its format.

    `text` and `id` name the columns of a table that has other names for them.
    """
    content = await request.body()
    ids = await run_in_threadpool(snapshots.compute_page, lambda pages: set(pages.snapshot.study.documents["id"]))
    columns = {ours: theirs for ours, theirs in (("text", text), ("id", id)) if theirs}
    new_documents, notes = await run_in_threadpool(
        upload_process.read_documents_in_subprocess, content, name, columns, ids
    )
    await snapshots.change_study(researcher_actions_storage.add_documents, session.who, new_documents)
    return schema.UploadResult(documents=len(new_documents), notes=tuple(notes))


# --- researchers --------------------------------------------------------------------------------------------------


@router.get("/researchers")
def researchers(store: ServedStore, _: Viewer) -> tuple[schema.ResearcherRow, ...]:
    """List the researchers with access to the study."""
    people = store.read(researcher_actions_storage.list_researchers)
    return tuple(
        schema.ResearcherRow(id=person.id, role=person.role, since=_datetime_from_timestamp(person.created))
        for person in people
    )


@router.post("/researchers")
async def invite_researcher(
    request: Request, store: ServedStore, session: RecentOwner, new: schema.Invitation
) -> schema.SignInLink:
    """Create a single-use invitation for a researcher, valid for a week."""
    token = await store.run_study_change(researcher_actions_storage.invite_researcher, session.who, new.id, new.role)
    return schema.SignInLink(url=_public_url(request, f"sign-in/{token}"))


@router.put("/researcher")
async def set_role(store: ServedStore, session: RecentOwner, id: Id, new: schema.NewRole) -> None:
    """Change the role of a researcher."""
    await store.run_study_change(researcher_actions_storage.set_researcher_role, session.who, id, new.role)


@router.delete("/researcher")
async def remove_researcher(store: ServedStore, session: RecentOwner, id: Id) -> None:
    """Remove a researcher."""
    await store.run_study_change(researcher_actions_storage.remove_researcher, session.who, id)


@router.get("/audit")
def list_audit_log(
    store: ServedStore, _: Viewer, most: Annotated[int, Query(ge=1, le=10_000)] = 200
) -> tuple[schema.AuditEntry, ...]:
    """List researchers' actions, newest first."""
    lines = store.read(audit_log.read_latest_entries, most)
    return tuple(
        schema.AuditEntry(when=_datetime_from_timestamp(time), who=who, did=did, about=from_json(about))
        for time, who, did, about in lines
    )


def _datetime_from_timestamp(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


# --- export -------------------------------------------------------------------------------------------------------


@router.get("/exports")
def list_exports(snapshots: Snapshots, _: Viewer) -> tuple[schema.Export, ...]:
    """List all export formats, with the features of this study that each one would lose."""
    return snapshots.compute_page(lambda pages: pages.exports)


@router.get("/export", response_class=FileResponse)
def download_export(snapshots: Snapshots, session: RecentViewer, format: Id) -> FileResponse:
    """Download the study in a format; a folder comes as a .zip file."""
    study = snapshots.compute_page(lambda pages: pages.snapshot.study)
    folder = Path(tempfile.mkdtemp(prefix="finecomb-"))
    try:
        file = export_study(study, format, folder)
    except BaseException:
        shutil.rmtree(folder)
        raise
    snapshots.store.run_job_sync(audit_log.record_standalone_action, session.who, "exported", {"format": format})
    return FileResponse(file, filename=file.name, background=BackgroundTask(shutil.rmtree, folder))
