"""API routes for sign-in and sign-out."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from finecomb.collection import access_storage, arrivals_storage, design_cells_storage
from finecomb.collection.access_storage import Session
from finecomb.collection.announcement import consent_text
from finecomb.collection.arrivals import ArrivalSource
from finecomb.server.annotators import platform_arrivals
from finecomb.server.annotators.schema import Ending, SignInResponse, Welcome
from finecomb.server.auth import AnnotatorSession, Auth, get_auth, refresh_study, require_researcher
from finecomb.server.error_responses import ProblemError
from finecomb.server.schema import SignedInResearcher

router = APIRouter(prefix="/api")
BrowserCode = Annotated[str, Query(max_length=20)]


def _annotator_link_kind(request: Request, token: str) -> Literal["open", "personal"]:
    """Return the kind of an annotator link. A wrong link is counted as a failed attempt."""
    auth = get_auth(request)
    kind = auth.store.read(access_storage.find_valid_link_kind, token)
    if kind is None or kind == "researcher":
        raise auth.record_wrong_link(request)
    return kind


@router.get("/join/{token}", dependencies=[Depends(refresh_study)])
def welcome(request: Request, token: str) -> Welcome:
    """Return the study behind a link, before sign-in."""
    auth, head = get_auth(request), get_auth(request).store.head
    kind = _annotator_link_kind(request, token)
    source = platform_arrivals.parse_referral(auth, request) if kind == "open" else ArrivalSource()
    preview = platform_arrivals.is_mturk_preview(source)
    if not preview:
        platform_arrivals.require_identified_worker(source)
    if kind == "open" and not auth.current_session(request, "annotator"):
        with auth.store.database.read_transaction() as transaction:
            if arrivals_storage.find_returning_annotator(auth.store, transaction, source) is None:
                has_room = design_cells_storage.has_open_place(auth.store, transaction)
            else:
                has_room = True
        if not has_room:
            raise ProblemError("closed", platform_arrivals.study_full_message(source))
    return Welcome(
        title=head.settings.title or head.protocol.title,
        personal=kind == "personal",
        state=head.state,
        summary=head.protocol.summary,
        consent=consent_text(head.protocol, head.settings),
        preview=preview,
        window=head.settings.recruitment.platform == "mturk" and not head.settings.recruitment.frame,
    )


@router.post("/join/{token}", dependencies=[Depends(refresh_study)])
async def join(request: Request, response: Response, token: str, code: BrowserCode = "") -> SignInResponse:
    """Sign in with a personal link or from a platform, or register a new person through the open link.

    A returning person in the same browser keeps their session, unless the platform identifies another person. A
    platform worker in another browser needs the transfer `code` shown in the first one.
    """
    auth = get_auth(request)
    is_open = access_storage.is_open_link_token(auth.store, token)
    source = (
        platform_arrivals.require_identified_worker(platform_arrivals.parse_referral(auth, request))
        if is_open
        else ArrivalSource()
    )
    current = auth.current_session(request, "annotator")
    if current is not None and is_open and _is_same_participation(auth, current, source):
        auth.check_origin(request)
        return SignInResponse(annotator=current.who, csrf=auth.csrf_token(current))
    source = replace(source, device=auth.identify_device(request, response), address=auth.address_hash(request))
    if is_open:
        await auth.check_join_limit(source)
    if code:
        await auth.check_code_attempt_limit(source.worker)
    try:
        session_token = await auth.sign_in_by_link(request, arrivals_storage.sign_in_annotator, token, source, code)
    except arrivals_storage.AlreadyParticipatedError:
        raise ProblemError("not-allowed", platform_arrivals.already_took_part_message(source)) from None
    except arrivals_storage.DifferentBrowserError:
        raise ProblemError("other-browser", _WRONG_CODE_MESSAGE if code else "") from None
    except arrivals_storage.StudyClosedError:
        raise ProblemError("closed") from None
    except design_cells_storage.StudyFullError:
        raise ProblemError("closed", platform_arrivals.study_full_message(source)) from None
    auth.set_session_cookie(response, "annotator", session_token)
    session = auth.store.read(access_storage.find_session, session_token)
    assert session is not None
    return SignInResponse(annotator=session.who, csrf=auth.csrf_token(session))


_WRONG_CODE_MESSAGE = "This is not the code shown in your first browser."


def _is_same_participation(auth: Auth, current: Session, source: ArrivalSource) -> bool:
    """Return whether the signed-in person is the one that the platform identifies, with the same submission."""
    if not source.worker:
        return True
    last = auth.store.read(arrivals_storage.read_last_arrival, current.who)
    fields = ("platform", "worker", "place", "session", "submit")
    return last is not None and all(getattr(last.source, name) == getattr(source, name) for name in fields)


@router.post("/join/{token}/decline", dependencies=[Depends(refresh_study)])
def decline(request: Request, token: str) -> Ending:
    """Decline to take part, and return the completion code and the link back to the platform. No data is stored."""
    auth = get_auth(request)
    auth.check_origin(request)
    source = (
        platform_arrivals.parse_referral(auth, request)
        if _annotator_link_kind(request, token) == "open"
        else ArrivalSource()
    )
    return platform_arrivals.build_declined_ending(auth, source)


@router.post("/leave")
async def sign_out(request: Request, response: Response, session: AnnotatorSession) -> None:
    """Sign out."""
    await get_auth(request).sign_out(session)
    get_auth(request).clear_session_cookie(response, "annotator")


@router.get("/admin/session")
def current_researcher(
    request: Request, session: Annotated[Session, Depends(require_researcher("viewer"))]
) -> SignedInResearcher:
    """Return the signed-in researcher."""
    head = get_auth(request).store.head
    assert session.role is not None
    return SignedInResearcher(
        researcher=session.who,
        role=session.role,
        title=get_auth(request).store.title,
        state=head.state,
        csrf=get_auth(request).csrf_token(session),
    )


@router.post("/admin/leave")
async def sign_out_researcher(
    request: Request, response: Response, session: Annotated[Session, Depends(require_researcher("viewer"))]
) -> None:
    """Sign out."""
    await get_auth(request).sign_out(session)
    get_auth(request).clear_session_cookie(response, "researcher")
