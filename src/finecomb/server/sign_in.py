"""Signing in and out: annotators by their links, researchers after theirs."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from finecomb.collection import access_storage, arrivals_storage, design_cells_storage
from finecomb.collection.access_storage import Session
from finecomb.collection.announcement import consent_text
from finecomb.collection.arrivals import ArrivalSource
from finecomb.server.annotators import platform_arrivals
from finecomb.server.annotators.schema import Ending, SignedIn, Welcome
from finecomb.server.auth import AnnotatorSession, Auth, auth_of, catch_up, researcher
from finecomb.server.error_responses import ProblemError
from finecomb.server.schema import ResearcherMe

router = APIRouter(prefix="/api")
BrowserCode = Annotated[str, Query(max_length=20)]


def _link(request: Request, token: str) -> Literal["open", "personal"]:
    """What kind of annotator's link it is; a wrong one counts as a try."""
    auth = auth_of(request)
    with auth.store.database.reading() as transaction:
        kind = access_storage.link_kind(auth.store, transaction, token)
    if kind is None or kind == "researcher":
        raise auth.refuse_link(request)
    return kind


@router.get("/join/{token}", dependencies=[Depends(catch_up)])
def welcome(request: Request, token: str) -> Welcome:
    """What a link opens, before anybody is signed in."""
    auth, head = auth_of(request), auth_of(request).store.head
    kind = _link(request, token)
    source = platform_arrivals.at_door(auth, request) if kind == "open" else ArrivalSource()
    preview = platform_arrivals.is_preview(source)
    if not preview:
        platform_arrivals.identified(source)
    if kind == "open" and not auth.current(request, "annotator"):
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
    with auth.store.database.reading() as transaction:
        if arrivals_storage.returning_annotator(auth.store, transaction, source) is None:
            has_room = design_cells_storage.has_room(auth.store, transaction)
        else:
            has_room = True
    if not has_room:
        raise ProblemError("closed", platform_arrivals.full(source))


@router.post("/join/{token}", dependencies=[Depends(catch_up)])
async def join(request: Request, response: Response, token: str, code: BrowserCode = "") -> SignedIn:
    """Sign in: as oneself by a personal link or from a platform, as somebody new by the open one.

    Who comes back by the open link in the same browser goes on as before, unless the platform says that it is
    somebody else. Who comes from a platform in another browser needs the `code` that is shown in the first.
    """
    auth = auth_of(request)
    is_open = access_storage.is_open(auth.store, token)
    source = platform_arrivals.identified(platform_arrivals.at_door(auth, request)) if is_open else ArrivalSource()
    current = auth.current(request, "annotator")
    if current is not None and is_open and _goes_on(auth, current, source):
        auth.check_origin(request)
        return SignedIn(annotator=current.who, csrf=auth.csrf(current))
    source = platform_arrivals.with_traces(auth, request, response, source)
    if is_open:
        await auth.admit(request)
    if code:
        await auth.limit_codes(source.worker)
    try:
        session_token = await auth.follow(request, arrivals_storage.enter, token, source, code)
    except arrivals_storage.TookPartError:
        raise ProblemError("not-allowed", platform_arrivals.once(source)) from None
    except arrivals_storage.OtherBrowserError:
        raise ProblemError("other-browser", _WRONG_CODE if code else "") from None
    except arrivals_storage.ClosedError:
        raise ProblemError("closed") from None
    except design_cells_storage.FullError:
        raise ProblemError("closed", platform_arrivals.full(source)) from None
    auth.keep(response, "annotator", session_token)
    with auth.store.database.reading() as transaction:
        session = access_storage.session(auth.store, transaction, session_token)
    assert session is not None
    return SignedIn(annotator=session.who, csrf=auth.csrf(session))


_WRONG_CODE = "This is not the code that is shown in the browser in which you began."


def _goes_on(auth: Auth, current: Session, source: ArrivalSource) -> bool:
    """Whether whoever is signed in is still the one that the platform sent, for the same part in the study."""
    if not source.worker:
        return True
    with auth.store.database.reading() as transaction:
        last = arrivals_storage.last_arrival(auth.store, transaction, current.who)
    fields = ("platform", "worker", "place", "session", "submit")
    return last is not None and all(getattr(last.source, name) == getattr(source, name) for name in fields)


@router.post("/join/{token}/decline", dependencies=[Depends(catch_up)])
def decline(request: Request, token: str) -> Ending:
    """Do not agree to take part: says the way back, and keeps nothing."""
    auth = auth_of(request)
    auth.check_origin(request)
    source = platform_arrivals.at_door(auth, request) if _link(request, token) == "open" else ArrivalSource()
    return platform_arrivals.declined(auth, source)


@router.post("/leave")
async def leave(request: Request, response: Response, session: AnnotatorSession) -> None:
    """Sign out."""
    await auth_of(request).leave(session)
    auth_of(request).drop(response, "annotator")


@router.get("/admin/session")
def researcher_me(request: Request, session: Annotated[Session, Depends(researcher("viewer"))]) -> ResearcherMe:
    """Which researcher is signed in."""
    head = auth_of(request).store.head
    assert session.role is not None
    return ResearcherMe(
        researcher=session.who,
        role=session.role,
        title=auth_of(request).store.title,
        state=head.state,
        csrf=auth_of(request).csrf(session),
    )


@router.post("/admin/leave")
async def researcher_leave(
    request: Request, response: Response, session: Annotated[Session, Depends(researcher("viewer"))]
) -> None:
    """Sign out."""
    await auth_of(request).leave(session)
    auth_of(request).drop(response, "researcher")
