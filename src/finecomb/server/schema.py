"""What every audience of the server gets: codes of errors, the state of the study, how labels look, who is there."""

from __future__ import annotations

from typing import Literal

from finecomb.core.records import Id, Record, Text

State = Literal["pilot", "open", "paused", "closed"]
ErrorCode = Literal[
    "signed-out",  # 401: no session, or an expired one
    "not-allowed",  # 403: the session may not do this, or the request does not come from our pages
    "other-browser",  # 403: a platform's worker who began in another browser; `code` of the link's POST lets them in
    "not-found",  # 404: no such thing, or somebody else's
    "conflict",  # 409: the entry was changed elsewhere; `stored` is what it is now
    "finished",  # 409: the task was handed in; reopen it first
    "lease-over",  # 409: the text went to somebody else; what was marked is kept
    "incomplete",  # 409: something required is missing; `missing` lists the entries
    "refused",  # 422: the entry does not fit the text or the protocol
    "too-large",  # 413
    "too-many",  # 429: too many attempts; try again later
    "paused",  # 423: the study takes no work at the moment
    "closed",  # 423: the study is over
    "failed",  # 500: our fault; the work is kept in the browser and tried again
]


class LabelLook(Record):
    """How a label looks, everywhere the same."""

    label: str
    """Empty for a mark without a label."""
    title: str
    slot: str
    """`A1` ... `C2` or `none`: names the colour and line tokens."""
    flag: str
    key: str


class SignedInResearcher(Record):
    """Which researcher is signed in."""

    researcher: Id
    role: Literal["viewer", "editor", "owner"]
    title: Text
    """Of the study."""
    state: State
    csrf: str
    """To be sent as `X-Finecomb-Token` with every request that changes something."""
