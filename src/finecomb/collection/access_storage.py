"""Storage of links, sessions and researchers. The database holds hashes of tokens, never the tokens."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa

from finecomb.collection import annotator_storage, audit_log_storage
from finecomb.collection.database import tables
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.tables import named_sql_placeholder

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

Role = Literal["viewer", "editor", "owner"]
ROLES: tuple[Role, ...] = ("viewer", "editor", "owner")
"""Roles in order of rights: a viewer reads, an editor also runs the study, an owner also manages researchers."""
UserKind = Literal["annotator", "researcher"]

_SECONDS_PER_DAY = 24 * 3600.0
SESSION_LIFETIME_SECONDS_BY_KIND: dict[UserKind, float] = {
    "annotator": 60 * _SECONDS_PER_DAY,
    "researcher": 14 * _SECONDS_PER_DAY,
}
"""Lifetime of a session in seconds, by kind of user."""
MAX_RESEARCHER_IDLE_SECONDS = 0.5 * _SECONDS_PER_DAY
"""Seconds without a request after which a researcher's session ends."""
MAX_RECENT_SIGN_IN_SECONDS = _SECONDS_PER_DAY
"""Maximum age of a researcher's sign-in, in seconds, for exports, pay files and role changes."""
INVITATION_LIFETIME_SECONDS = 7 * _SECONDS_PER_DAY
"""Seconds for which a researcher's invitation is valid."""


@dataclass(frozen=True, slots=True)
class Session:
    """Session of a signed-in annotator or researcher."""

    kind: UserKind
    who: str
    """ID of the annotator or researcher."""
    role: Role | None
    """Role of a researcher; None for an annotator."""
    expires: float
    hash: str
    """Hash of the session token. It identifies the session without revealing the token."""
    created: float = 0
    """Time of the sign-in."""
    active: float = 0
    """Time of the last request, accurate to a few minutes."""


def hash_token(token: str) -> str:
    """Return the hash of a token. Only the hash is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


def get_open_link_token(store: Store) -> str:
    """Return the token of the open link, or an empty string when the open link is off."""
    if store.head.joining <= 0:
        return ""
    digest = hmac.new(store.head.secret.encode(), f"join/{store.head.joining}".encode(), hashlib.sha256)
    return digest.hexdigest()[:32]


# --- sessions ----------------------------------------------------------------------------------------------------

_SELECT_SESSION = (
    sa.select(
        tables.session.c.kind,
        tables.session.c.who,
        tables.researcher.c.role,
        tables.session.c.expires,
        tables.session.c.created,
        tables.session.c.active,
    )
    .select_from(
        tables.session.outerjoin(
            tables.researcher,
            (tables.researcher.c.study == tables.session.c.study)
            & (tables.researcher.c.id == tables.session.c.who)
            & (tables.session.c.kind == "researcher")
            & tables.researcher.c.removed.is_(None),
        )
    )
    .where(
        tables.session.c.hash == named_sql_placeholder("hash"),
        tables.session.c.study == named_sql_placeholder("study"),
        tables.session.c.expires > named_sql_placeholder("now"),
    )
)


def find_session(store: Store, transaction: Transaction, token: str) -> Session | None:
    """Return the session that a token belongs to, or None when the token is unknown or has expired."""
    row = transaction.fetch_first(_SELECT_SESSION, hash=hash_token(token), study=store.key, now=store.clock())
    if row is None:
        return None
    kind, who, role, expires, created, active = row
    if kind == "researcher" and role is None:
        return None
    return Session(kind, who, role, expires, hash_token(token), created, active)


def record_session_activity(store: Store, transaction: Transaction, hash: str) -> None:
    """Record the time of a session's latest request."""
    mine = (tables.session.c.hash == hash, tables.session.c.study == store.key)
    transaction.execute(sa.update(tables.session).values(active=store.clock()).where(*mine))


def start_session(store: Store, transaction: Transaction, kind: UserKind, who: str) -> str:
    """Start a session and return its token for the cookie."""
    token, now = secrets.token_urlsafe(32), store.clock()
    values = {"hash": hash_token(token), "study": store.key, "kind": kind, "who": who, "created": now, "active": now}
    transaction.execute(sa.delete(tables.session).where(tables.session.c.expires <= now))
    transaction.execute(
        sa.insert(tables.session).values(**values, expires=now + SESSION_LIFETIME_SECONDS_BY_KIND[kind])
    )
    return token


def end_session(store: Store, transaction: Transaction, hash: str) -> None:
    """End a session in all processes that serve the study."""
    transaction.execute(
        sa.delete(tables.session).where(tables.session.c.hash == hash, tables.session.c.study == store.key)
    )
    increment_study_change_count(store, transaction)


def end_all_sessions(store: Store, transaction: Transaction, kind: UserKind, who: str) -> None:
    """End all sessions of an annotator or researcher."""
    mine = (tables.session.c.study == store.key, tables.session.c.kind == kind, tables.session.c.who == who)
    transaction.execute(sa.delete(tables.session).where(*mine))


_INCREMENT_CHANGE_COUNT = (
    sa.update(tables.study)
    .values(changed=tables.study.c.changed + 1)
    .where(tables.study.c.key == named_sql_placeholder("of"))
)


def increment_study_change_count(store: Store, transaction: Transaction) -> None:
    """Make all processes that serve the study reload their cached state, including sessions."""
    transaction.execute(_INCREMENT_CHANGE_COUNT, of=store.key)


# --- attempts ----------------------------------------------------------------------------------------------------

ATTEMPT_WINDOW_SECONDS = 600.0
"""Seconds for which an attempt to sign in, join or enter a code counts towards the limit."""


def record_and_count_attempts(store: Store, transaction: Transaction, kind: str, address: str) -> int:
    """Record an attempt, and return the number of recent attempts of its kind from the address in all processes."""
    columns, now = tables.attempt.c, store.clock()
    transaction.execute(
        sa.delete(tables.attempt).where(
            sa.or_(columns.at < now - ATTEMPT_WINDOW_SECONDS, columns.at > now + ATTEMPT_WINDOW_SECONDS)
        )
    )
    values = {"study": store.key, "kind": kind, "address": address, "at": now}
    transaction.execute(sa.insert(tables.attempt).values(**values))
    lately = sa.select(sa.func.count()).where(
        columns.study == store.key, columns.kind == kind, columns.address == address
    )
    (count,) = transaction.fetch_first(lately) or (0,)
    return int(count)


# --- links -------------------------------------------------------------------------------------------------------


def create_link_token(
    store: Store, transaction: Transaction, kind: UserKind, who: str, role: str = "", lasts: float | None = None
) -> str:
    """Create the token of a personal link. An annotator's link works until it is revoked; a researcher's works once."""
    token, now = secrets.token_urlsafe(24), store.clock()
    transaction.execute(
        sa.insert(tables.link).values(
            hash=hash_token(token),
            study=store.key,
            kind=kind,
            who=who,
            role=role,
            created=now,
            expires=now + lasts if lasts else None,
        )
    )
    return token


_SELECT_LINK = sa.select(tables.link.c.kind, tables.link.c.who, tables.link.c.role, tables.link.c.used).where(
    tables.link.c.hash == named_sql_placeholder("hash"),
    tables.link.c.study == named_sql_placeholder("study"),
    tables.link.c.revoked.is_(None),
    sa.or_(tables.link.c.expires.is_(None), tables.link.c.expires > named_sql_placeholder("now")),
)


def is_open_link_token(store: Store, token: str) -> bool:
    """Return whether a token belongs to the open link."""
    return store.head.joining > 0 and hmac.compare_digest(token.encode(), get_open_link_token(store).encode())


def find_valid_link_kind(
    store: Store, transaction: Transaction, token: str
) -> Literal["personal", "open", "researcher"] | None:
    """Return the kind of link that a token belongs to, or None when the link is not valid."""
    if is_open_link_token(store, token):
        return "open"
    row = transaction.fetch_first(_SELECT_LINK, hash=hash_token(token), study=store.key, now=store.clock())
    if row is None or (row[0] == "researcher" and row[3] is not None):
        return None
    return "personal" if row[0] == "annotator" else "researcher"


def sign_in_with_link(store: Store, transaction: Transaction, token: str, kind: UserKind) -> str | None:
    """Sign in with an annotator's or researcher's link. Return the session token, or None for an invalid link."""
    link = find_valid_link_kind(store, transaction, token)
    if link is None or (link == "researcher") != (kind == "researcher"):
        return None
    if link == "open":
        return start_session(store, transaction, "annotator", annotator_storage.create_annotator(store, transaction).id)
    now, hash = store.clock(), hash_token(token)
    _, who, role, _ = transaction.fetch_first(_SELECT_LINK, hash=hash, study=store.key, now=now) or ("", "", "", None)
    transaction.execute(sa.update(tables.link).values(used=now).where(tables.link.c.hash == hash))
    if kind == "researcher":
        researchers = tables.researcher.c
        owners = sa.select(researchers.id).where(
            researchers.study == store.key, researchers.role == "owner", researchers.removed.is_(None)
        )
        # A sole owner keeps the role of owner, so that the study always has one.
        if transaction.fetch_all(owners) != [(who,)]:
            add_or_update_researcher(store, transaction, who, role)
        audit_log_storage.record_action(store, transaction, who, "signed in")
    return start_session(store, transaction, kind, who)


# --- researchers -------------------------------------------------------------------------------------------------


def add_or_update_researcher(store: Store, transaction: Transaction, id: str, role: str) -> None:
    """Add a researcher, or change the role of an existing one."""
    mine = (tables.researcher.c.study == store.key, tables.researcher.c.id == id)
    if transaction.fetch_first(sa.select(tables.researcher.c.role).where(*mine)):
        transaction.execute(sa.update(tables.researcher).values(role=role, removed=sa.null()).where(*mine))
        increment_study_change_count(store, transaction)
    else:
        values = {"study": store.key, "id": id, "role": role, "created": store.clock()}
        transaction.execute(sa.insert(tables.researcher).values(**values))
