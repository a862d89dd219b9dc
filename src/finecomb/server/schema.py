"""Types shared by all parts of the API: error codes, study state and label styles."""

from __future__ import annotations

from typing import Literal

from finecomb.core.records import Id, Record, Text

State = Literal["pilot", "open", "paused", "closed"]
ErrorCode = Literal[
    "signed-out",  # 401: no session, or an expired one
    "not-allowed",  # 403: insufficient rights, or a request from another site
    "other-browser",  # 403: a platform worker in another browser; the `code` parameter of the join request admits them
    "not-found",  # 404: unknown, or belongs to another person
    "conflict",  # 409: the entry was changed elsewhere; `stored` is the current version
    "finished",  # 409: the task is already submitted; reopen it first
    "lease-over",  # 409: the lease has expired; the work is saved
    "incomplete",  # 409: something required is missing; `missing` lists the items
    "refused",  # 422: the entry does not match the text or the protocol
    "too-large",  # 413
    "too-many",  # 429: too many attempts; try again later
    "paused",  # 423: the study does not accept work at the moment
    "closed",  # 423: the study has ended
    "failed",  # 500: internal error; the browser keeps the work and retries
]


class LabelLook(Record):
    """Style of a label."""

    label: str
    """Name of the label; empty for marks without a label."""
    title: str
    slot: str
    """`A1` ... `C2` or `none`, which selects colour and line style."""
    flag: str
    key: str


class SignedInResearcher(Record):
    """Signed-in researcher."""

    researcher: Id
    role: Literal["viewer", "editor", "owner"]
    title: Text
    """Title of the study."""
    state: State
    csrf: str
    """Token to send as `X-Finecomb-Token` with every request that changes something."""
