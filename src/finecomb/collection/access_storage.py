"""Who may come in: links, sessions and researchers. A database holds hashes of tokens, never the tokens."""

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
from finecomb.collection.database.tables import bind_parameter

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store

Role = Literal["viewer", "editor", "owner"]
ROLES: tuple[Role, ...] = ("viewer", "editor", "owner")
"""Each may do what those before it may: look, run the study, manage researchers."""
UserKind = Literal["annotator", "researcher"]

_DAY = 24 * 3600.0
SESSION_SECONDS_BY_KIND: dict[UserKind, float] = {"annotator": 60 * _DAY, "researcher": 14 * _DAY}
"""How long a session lasts, in seconds."""
MAX_IDLE_SECONDS = 0.5 * _DAY
"""How long a researcher's session lasts without being used."""
RECENT_SIGN_IN_SECONDS = _DAY
"""How old a sign-in may be for exports, pay files and roles."""
INVITATION_SECONDS = 7 * _DAY
"""How long an invitation can be taken up."""


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who is signed in."""

    kind: UserKind
    who: str
    """Id of the annotator or researcher."""
    role: Role | None
    """Of a researcher."""
    expires: float
    hash: str
    """Names the session without giving it away."""
    created: float = 0
    """When somebody signed in."""
    active: float = 0
    """When they were last there, give or take some minutes."""


def hash_token(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def open_link_token(store: Store) -> str:
    """The token of the open link, which can be shown at any time; empty when nobody may join."""
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
        tables.session.c.hash == bind_parameter("hash"),
        tables.session.c.study == bind_parameter("study"),
        tables.session.c.expires > bind_parameter("now"),
    )
)


def find_session(store: Store, transaction: Transaction, token: str) -> Session | None:
    """Who holds this token, if it is one and has not expired."""
    row = transaction.one(_SELECT_SESSION, hash=hash_token(token), study=store.key, now=store.clock())
    if row is None:
        return None
    kind, who, role, expires, created, active = row
    if kind == "researcher" and role is None:
        return None
    return Session(kind, who, role, expires, hash_token(token), created, active)


def touch_session(store: Store, transaction: Transaction, hash: str) -> None:
    """Remember that somebody is there."""
    mine = (tables.session.c.hash == hash, tables.session.c.study == store.key)
    transaction.run(sa.update(tables.session).values(active=store.clock()).where(*mine))


def start_session(store: Store, transaction: Transaction, kind: UserKind, who: str) -> str:
    """Sign somebody in; returns the token for the cookie."""
    token, now = secrets.token_urlsafe(32), store.clock()
    values = {"hash": hash_token(token), "study": store.key, "kind": kind, "who": who, "created": now, "active": now}
    transaction.run(sa.delete(tables.session).where(tables.session.c.expires <= now))
    transaction.run(sa.insert(tables.session).values(**values, expires=now + SESSION_SECONDS_BY_KIND[kind]))
    return token


def end_session(store: Store, transaction: Transaction, hash: str) -> None:
    """Sign out, in every process that serves the study."""
    transaction.run(sa.delete(tables.session).where(tables.session.c.hash == hash, tables.session.c.study == store.key))
    increment_study_change_count(store, transaction)


def end_all_sessions(store: Store, transaction: Transaction, kind: UserKind, who: str) -> None:
    """Sign somebody out everywhere."""
    mine = (tables.session.c.study == store.key, tables.session.c.kind == kind, tables.session.c.who == who)
    transaction.run(sa.delete(tables.session).where(*mine))


_INCREMENT_CHANGE_COUNT = (
    sa.update(tables.study).values(changed=tables.study.c.changed + 1).where(tables.study.c.key == bind_parameter("of"))
)


def increment_study_change_count(store: Store, transaction: Transaction) -> None:
    """Tell every process that serves the study to read again what it remembers, sessions too."""
    transaction.run(_INCREMENT_CHANGE_COUNT, of=store.key)


# --- tries -------------------------------------------------------------------------------------------------------

ATTEMPT_WINDOW_SECONDS = 600.0
"""Seconds for which a try counts."""


def record_and_count_attempts(store: Store, transaction: Transaction, kind: str, address: str) -> int:
    """Count a try from an address, wherever it was made; returns how many there were lately, with this one."""
    own, now = tables.attempt.c, store.clock()
    transaction.run(
        sa.delete(tables.attempt).where(
            sa.or_(own.at < now - ATTEMPT_WINDOW_SECONDS, own.at > now + ATTEMPT_WINDOW_SECONDS)
        )
    )
    values = {"study": store.key, "kind": kind, "address": address, "at": now}
    transaction.run(sa.insert(tables.attempt).values(**values))
    lately = sa.select(sa.func.count()).where(own.study == store.key, own.kind == kind, own.address == address)
    (count,) = transaction.one(lately) or (0,)
    return int(count)


# --- links -------------------------------------------------------------------------------------------------------


def create_link_token(
    store: Store, transaction: Transaction, kind: UserKind, who: str, role: str = "", lasts: float | None = None
) -> str:
    """A link's token for one person: an annotator's works until revoked, a researcher's once."""
    token, now = secrets.token_urlsafe(24), store.clock()
    transaction.run(
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
    tables.link.c.hash == bind_parameter("hash"),
    tables.link.c.study == bind_parameter("study"),
    tables.link.c.revoked.is_(None),
    sa.or_(tables.link.c.expires.is_(None), tables.link.c.expires > bind_parameter("now")),
)


def is_open_link_token(store: Store, token: str) -> bool:
    """Whether it is the token of the open link."""
    return store.head.joining > 0 and hmac.compare_digest(token.encode(), open_link_token(store).encode())


def link_kind(store: Store, transaction: Transaction, token: str) -> Literal["personal", "open", "researcher"] | None:
    """What a token opens now, if anything."""
    if is_open_link_token(store, token):
        return "open"
    row = transaction.one(_SELECT_LINK, hash=hash_token(token), study=store.key, now=store.clock())
    if row is None or (row[0] == "researcher" and row[3] is not None):
        return None
    return "personal" if row[0] == "annotator" else "researcher"


def sign_in_with_link(store: Store, transaction: Transaction, token: str, kind: UserKind) -> str | None:
    """Sign in by a link of that kind: returns the session's token, or None when it opens nothing (any more)."""
    link = link_kind(store, transaction, token)
    if link is None or (link == "researcher") != (kind == "researcher"):
        return None
    if link == "open":
        return start_session(store, transaction, "annotator", annotator_storage.create_annotator(store, transaction).id)
    return _redeem_link(store, transaction, token, kind)


def _redeem_link(store: Store, transaction: Transaction, token: str, kind: UserKind) -> str:
    now, hash = store.clock(), hash_token(token)
    _, who, role, _ = transaction.one(_SELECT_LINK, hash=hash, study=store.key, now=now) or ("", "", "", None)
    transaction.run(sa.update(tables.link).values(used=now).where(tables.link.c.hash == hash))
    if kind == "researcher":
        if not _is_only_owner(store, transaction, who):  # whoever is the only one stays owner
            add_or_update_researcher(store, transaction, who, role)
        audit_log_storage.record_action(store, transaction, who, "signed in")
    return start_session(store, transaction, kind, who)


# --- researchers -------------------------------------------------------------------------------------------------


def _is_only_owner(store: Store, transaction: Transaction, id: str) -> bool:
    owners = sa.select(tables.researcher.c.id).where(
        tables.researcher.c.study == store.key,
        tables.researcher.c.role == "owner",
        tables.researcher.c.removed.is_(None),
    )
    return [owner for (owner,) in transaction.all(owners)] == [id]


def add_or_update_researcher(store: Store, transaction: Transaction, id: str, role: str) -> None:
    """Let somebody in as a researcher, or give them another role."""
    mine = (tables.researcher.c.study == store.key, tables.researcher.c.id == id)
    if transaction.one(sa.select(tables.researcher.c.role).where(*mine)):
        transaction.run(sa.update(tables.researcher).values(role=role, removed=sa.null()).where(*mine))
        increment_study_change_count(store, transaction)
    else:
        values = {"study": store.key, "id": id, "role": role, "created": store.clock()}
        transaction.run(sa.insert(tables.researcher).values(**values))
