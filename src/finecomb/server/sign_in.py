"""Signing in and out: annotators by their links, researchers after theirs."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from finecomb.collection import access_storage, arrivals_storage, design_cells_storage
from finecomb.collection.access_storage import Session
from finecomb.collection.announcement import consent_text
from finecomb.collection.arrivals import ArrivalSource
from finecomb.server.annotators import platform_arrivals
from finecomb.server.annotators.schema import Ending, SignInResponse, Welcome
from finecomb.server.auth import AnnotatorSession, Auth, auth_of, refresh_study, require_researcher
from finecomb.server.error_responses import ProblemError
from finecomb.server.schema import SignedInResearcher

router = APIRouter(prefix="/api")
BrowserCode = Annotated[str, Query(max_length=20)]


def _annotator_link_kind(request: Request, token: str) -> Literal["open", "personal"]:
    """What kind of annotator's link it is; a wrong one counts as a try."""
    auth = auth_of(request)
    with auth.store.database.read_transaction() as transaction:
        kind = access_storage.link_kind(auth.store, transaction, token)
    if kind is None or kind == "researcher":
        raise auth.refuse_link(request)
    return kind


@router.get("/join/{token}", dependencies=[Depends(refresh_study)])
def welcome(request: Request, token: str) -> Welcome:
    """What a link opens, before anybody is signed in."""
    auth, head = auth_of(request), auth_of(request).store.head
    kind = _annotator_link_kind(request, token)
    source = platform_arrivals.parse_referral(auth, request) if kind == "open" else ArrivalSource()
    preview = platform_arrivals.is_mturk_preview(source)
    if not preview:
        platform_arrivals.require_identified_worker(source)
    if kind == "open" and not auth.current_session(request, "annotator"):
        _refuse_when_full(auth, source)
    return Welcome(
        title=head.settings.title or head.protocol.title,
        personal=kind == "personal",
        state=head.state,
        summary=head.protocol.summary,
        consent=consent_text(head.protocol, head.settings),
        preview=preview,
        window=head.settings.recruitment.platform == "mturk" and not head.settings.recruitment.frame,
    )


def _refuse_when_full(auth: Auth, source: ArrivalSource) -> None:
    """Nobody new reads a page of a study in which every place is taken."""
    with auth.store.database.read_transaction() as transaction:
        if arrivals_storage.returning_annotator(auth.store, transaction, source) is None:
            has_room = design_cells_storage.has_open_place(auth.store, transaction)
        else:
            has_room = True
    if not has_room:
        raise ProblemError("closed", platform_arrivals.study_full_message(source))


@router.post("/join/{token}", dependencies=[Depends(refresh_study)])
async def join(request: Request, response: Response, token: str, code: BrowserCode = "") -> SignInResponse:
    """Sign in: as oneself by a personal link or from a platform, as somebody new by the open one.

    Who comes back by the open link in the same browser goes on as before, unless the platform says that it is
    somebody else. Who comes from a platform in another browser needs the `code` that is shown in the first.
    """
    auth = auth_of(request)
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
    source = platform_arrivals.add_device_and_address(auth, request, response, source)
    if is_open:
        await auth.limit_joins(request)
    if code:
        await auth.limit_code_attempts(source.worker)
    try:
        session_token = await auth.sign_in_by_link(request, arrivals_storage.sign_in_annotator, token, source, code)
    except arrivals_storage.AlreadyParticipatedError:
        raise ProblemError("not-allowed", platform_arrivals.already_took_part_message(source)) from None
    except arrivals_storage.OtherBrowserError:
        raise ProblemError("other-browser", _WRONG_CODE_MESSAGE if code else "") from None
    except arrivals_storage.StudyClosedError:
        raise ProblemError("closed") from None
    except design_cells_storage.StudyFullError:
        raise ProblemError("closed", platform_arrivals.study_full_message(source)) from None
    auth.set_session_cookie(response, "annotator", session_token)
    with auth.store.database.read_transaction() as transaction:
        session = access_storage.find_session(auth.store, transaction, session_token)
    assert session is not None
    return SignInResponse(annotator=session.who, csrf=auth.csrf_token(session))


_WRONG_CODE_MESSAGE = "This is not the code that is shown in the browser in which you began."


def _is_same_participation(auth: Auth, current: Session, source: ArrivalSource) -> bool:
    """Whether whoever is signed in is still the one that the platform sent, for the same part in the study."""
    if not source.worker:
        return True
    with auth.store.database.read_transaction() as transaction:
        last = arrivals_storage.last_arrival(auth.store, transaction, current.who)
    fields = ("platform", "worker", "place", "session", "submit")
    return last is not None and all(getattr(last.source, name) == getattr(source, name) for name in fields)


@router.post("/join/{token}/decline", dependencies=[Depends(refresh_study)])
def decline(request: Request, token: str) -> Ending:
    """Do not agree to take part: says the way back, and keeps nothing."""
    auth = auth_of(request)
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
    await auth_of(request).sign_out(session)
    auth_of(request).clear_session_cookie(response, "annotator")


@router.get("/admin/session")
def current_researcher(
    request: Request, session: Annotated[Session, Depends(require_researcher("viewer"))]
) -> SignedInResearcher:
    """Which researcher is signed in."""
    head = auth_of(request).store.head
    assert session.role is not None
    return SignedInResearcher(
        researcher=session.who,
        role=session.role,
        title=auth_of(request).store.title,
        state=head.state,
        csrf=auth_of(request).csrf_token(session),
    )


@router.post("/admin/leave")
async def sign_out_researcher(
    request: Request, response: Response, session: Annotated[Session, Depends(require_researcher("viewer"))]
) -> None:
    """Sign out."""
    await auth_of(request).sign_out(session)
    auth_of(request).clear_session_cookie(response, "researcher")
