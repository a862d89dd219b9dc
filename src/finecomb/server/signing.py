"""Signing in and out: annotators by their links, researchers after theirs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from finecomb.server.gate import AnnotatorSession, gate, researcher
from finecomb.server.problems import ProblemError
from finecomb.server.wire import ResearcherMe, SignedIn, Welcome
from finecomb.store import people
from finecomb.store.people import Session

router = APIRouter(prefix="/api")


@router.get("/join/{token}")
def welcome(request: Request, token: str) -> Welcome:
    """What a link opens, before anybody is signed in."""
    store = gate(request).store
    with store.database.reading() as transaction:
        kind = people.link_kind(store, transaction, token)
    if kind not in ("open", "personal"):
        raise ProblemError("not-found", "This link does not open anything (any more). Ask for a new one.")
    protocol = store.head.protocol
    return Welcome(
        title=store.head.settings.title or protocol.title,
        personal=kind == "personal",
        state=store.head.state,
        summary=protocol.summary,
        consent=protocol.consent,
    )


@router.post("/join/{token}")
async def join(request: Request, response: Response, token: str) -> SignedIn:
    """Sign in: as oneself by a personal link, as somebody new by the open one.

    Who comes back by the open link in the same browser goes on as before.
    """
    passing = gate(request)
    current = passing.current(request, "annotator")
    if current is not None and people.is_open(passing.store, token):
        passing.check_origin(request)
        return SignedIn(annotator=current.who, csrf=passing.csrf(current))
    made = await passing.follow(request, token, "annotator")
    passing.keep(response, "annotator", made)
    with passing.store.database.reading() as transaction:
        session = people.session(passing.store, transaction, made)
    assert session is not None
    return SignedIn(annotator=session.who, csrf=passing.csrf(session))


@router.post("/leave")
async def leave(request: Request, response: Response, session: AnnotatorSession) -> None:
    """Sign out."""
    await gate(request).leave(session)
    response.delete_cookie(gate(request).cookie("annotator"))


@router.get("/admin/session")
def researcher_me(request: Request, session: Annotated[Session, Depends(researcher("viewer"))]) -> ResearcherMe:
    """Which researcher is signed in."""
    head = gate(request).store.head
    assert session.role is not None
    return ResearcherMe(
        researcher=session.who,
        role=session.role,
        title=head.settings.title or gate(request).store.name,
        state=head.state,
        csrf=gate(request).csrf(session),
    )


@router.post("/admin/leave")
async def researcher_leave(
    request: Request, response: Response, session: Annotated[Session, Depends(researcher("viewer"))]
) -> None:
    """Sign out."""
    await gate(request).leave(session)
    response.delete_cookie(gate(request).cookie("researcher"))
