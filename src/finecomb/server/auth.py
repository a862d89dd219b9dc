"""Who may pass: signed cookies, tokens against forged requests, and limited tries."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Concatenate, Literal, ParamSpec
from urllib.parse import urlsplit

from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool

from finecomb.collection import access_storage
from finecomb.collection.access_storage import ROLES, Role, Session, UserKind
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.store import Store
from finecomb.server.error_responses import ProblemError

P = ParamSpec("P")
CookieKind = Literal["annotator", "researcher", "device"]
COOKIE_NAMES: dict[CookieKind, str] = {
    "annotator": "finecomb",
    "researcher": "finecomb-researcher",
    "device": "finecomb-device",  # random; tells that two people came from one browser, and nothing else
}
CSRF_HEADER = "X-Finecomb-Token"
"""The header that every request which changes something carries."""
_MAX_ATTEMPTS = 10  # wrong links from one address within ten minutes
_MAX_JOINS = 60  # new people by the open link from one address within ten minutes
_TOUCH_SECONDS = 300.0  # seconds after which it is written again when somebody was last active
_MAX_CACHED_SESSIONS = 10_000  # sessions
_MAX_DEVICE_LENGTH = 100  # characters of the device's cookie
_DEVICE_COOKIE_SECONDS = 365 * 24 * 3600  # seconds


@dataclass(slots=True)
class Auth:
    """Signing in and out of a study, and who is signed in."""

    store: Store
    origin: str = ""
    """The public address, e.g. `https://study.example`; that of the request when empty."""

    @property
    def is_secure(self) -> bool:
        """Whether cookies go over TLS only."""
        return self.origin.startswith("https:")

    def signature(self, text: str) -> str:
        """Proves that `text` comes from this study's server."""
        return hmac.new(self.store.head.secret.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]

    def csrf_token(self, session: Session) -> str:
        """What pages of that session send along with every change."""
        return self.signature(f"csrf/{session.hash}")

    def set_session_cookie(self, response: Response, kind: UserKind, token: str) -> None:
        """Sign in: the cookie that holds a session's token."""
        self._set_cookie(
            response, kind, f"{token}.{self.signature(token)}", int(access_storage.SESSION_SECONDS_BY_KIND[kind])
        )

    def clear_session_cookie(self, response: Response, kind: UserKind) -> None:
        """Sign out: the browser forgets the cookie."""
        self._set_cookie(response, kind, "", 0)

    def _set_cookie(self, response: Response, kind: CookieKind, value: str, seconds: int) -> None:
        """A cookie for our own pages; inside another site's page, where a study allows it, one for that site only.

        The header is written out because the standard library knows `Partitioned` from Python 3.14 on.
        """
        framed = kind != "researcher" and self.store.head.settings.recruitment.frame
        strict = f"SameSite=Strict{'; Secure' if self.is_secure else ''}"
        how = "SameSite=None; Secure; Partitioned" if framed else strict
        response.headers.append(
            "set-cookie", f"{self.cookie_name(kind)}={value}; HttpOnly; Max-Age={seconds}; Path=/; {how}"
        )

    def identify_device(self, request: Request, response: Response) -> str:
        """The device of a request: the keyed hash of a random cookie, which is set where there is none."""
        device = request.cookies.get(self.cookie_name("device"), "")
        if not 0 < len(device) <= _MAX_DEVICE_LENGTH:
            device = secrets.token_urlsafe(16)
            self._set_cookie(response, "device", device, _DEVICE_COOKIE_SECONDS)
        return self.signature(f"device/{device}")

    def cookie_name(self, kind: CookieKind) -> str:
        """Its name: of this study only, since a browser sends the cookies of one port to all others."""
        prefix = "__Host-" if self.is_secure else ""  # which no other site of the same domain can set
        return f"{prefix}{COOKIE_NAMES[kind]}-{self.signature('cookie')[:8]}"

    def current_session(self, request: Request, kind: UserKind) -> Session | None:
        """Who is signed in where a request comes from."""
        session = self._session_from_cookie(request.cookies.get(self.cookie_name(kind), ""))
        return session if session is not None and session.kind == kind else None

    async def require_session(self, request: Request, kind: UserKind, current: bool = True) -> Session:
        """Who sent a request; a `ProblemError` when nobody did or it may have been forged.

        Without `current` it is not asked first whether another process changed the study, e.g. signed somebody out:
        for saves, which ask that in the writer.
        """
        if current:
            await self.refresh_study()
        session = self.current_session(request, kind)
        if session is None:
            raise ProblemError("signed-out")
        if request.method not in ("GET", "HEAD"):
            self.check_origin(request)
            if not hmac.compare_digest(
                request.headers.get(CSRF_HEADER, "").encode(), self.csrf_token(session).encode()
            ):
                raise ProblemError("not-allowed", "This page is out of date. Reload it; what you did is kept.")
        return session

    async def refresh_study(self) -> None:
        """Hear of what another process changed about the study: its state, links, settings, who is signed out."""
        if not self.store.database.sqlite:
            await run_in_threadpool(self.store.is_current)

    def _session_from_cookie(self, cookie: str) -> Session | None:
        """Whose cookie it is; asked of the database once and then remembered."""
        recent = self.store.sessions
        session = recent.get(cookie)  # another thread may empty it at any time
        if session is None:
            token, _, signature = cookie.rpartition(".")
            if not token or not hmac.compare_digest(signature.encode(), self.signature(token).encode()):
                return None
            with self.store.database.read_transaction() as transaction:
                session = access_storage.find_session(self.store, transaction, token)
            if session is None:
                return None
            if session.kind == "researcher" and not self.store.database.sqlite:
                return session  # when they were last active is written by whichever process they came to
            if len(recent) >= _MAX_CACHED_SESSIONS:
                recent.clear()
            recent[cookie] = session
        return session if session.expires > self.store.clock() else None

    def check_origin(self, request: Request) -> None:
        """Refuse what another site's page sends."""
        site = request.headers.get("sec-fetch-site", "same-origin")
        origin = request.headers.get("origin", "")
        hosts = {urlsplit(self.origin).netloc, request.headers.get("host", "")} - {""}
        if site != "same-origin" or (origin and urlsplit(origin).netloc not in hosts):
            raise ProblemError("not-allowed", "This request did not come from the study's own pages.")

    async def sign_in_by_link(
        self,
        request: Request,
        job: Callable[Concatenate[Store, Transaction, P], str | None],
        *args: P.args,
        **named: P.kwargs,
    ) -> str:
        """Sign in by a link, as `job` does, within limits; returns the session's token."""
        self.check_origin(request)
        address = request.client.host if request.client else ""
        token = await self.store.run_job(job, *args, **named)
        self.store.sessions.clear()  # a researcher may have got another role
        if token is None:
            raise wrong_link_error(
                await self.store.run_job(
                    access_storage.record_and_count_attempts, "wrong-link", self.signature(address)
                )
            )
        return token

    async def limit_joins(self, request: Request) -> None:
        """Let one more person of an address in by the open link, within limits; this machine's own are not counted."""
        if (address := self.address_hash(request)) and (
            await self.store.run_job(access_storage.record_and_count_attempts, "join", address) > _MAX_JOINS
        ):
            raise ProblemError("too-many", "Too many people came from your network at once. Try again in ten minutes.")

    async def limit_code_attempts(self, worker: str) -> None:
        """Let somebody type a code of another browser so many times, wherever they are."""
        if (
            await self.store.run_job(
                access_storage.record_and_count_attempts, "browser-code", self.signature(f"worker/{worker}")
            )
            > _MAX_ATTEMPTS
        ):
            raise ProblemError("too-many")

    def address_hash(self, request: Request) -> str:
        """A keyed hash of the internet address (of the network, for IPv6); none of this machine's own, as a proxy's."""
        try:
            address = ipaddress.ip_address(request.client.host if request.client else "")
        except ValueError:
            return ""
        if address.is_loopback:
            return ""
        network = str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else str(address)
        return self.signature(f"address/{network}")

    def refuse_link(self, request: Request) -> ProblemError:
        """What to say to somebody whose link opens nothing; the try counts."""
        address = request.client.host if request.client else ""
        return wrong_link_error(
            self.store.run_job_sync(access_storage.record_and_count_attempts, "wrong-link", self.signature(address))
        )

    async def renew_session(self, session: Session) -> None:
        """Remember now and then that a researcher is active; who is not for long is signed out."""
        now = self.store.clock()
        if now - session.active > access_storage.MAX_IDLE_SECONDS:
            await self.sign_out(session)
            raise ProblemError("signed-out", "You were away for long. Sign in again with a new link.")
        if now - session.active > _TOUCH_SECONDS:
            await self.store.run_job(access_storage.touch_session, session.hash)
            self.store.sessions.clear()

    async def sign_out(self, session: Session) -> None:
        """Sign out."""
        await self.store.run_job(access_storage.end_session, session.hash)
        self.store.sessions.clear()


def wrong_link_error(tries: int) -> ProblemError:
    """The answer to the so many-th wrong link from one address within a while."""
    if tries > _MAX_ATTEMPTS:
        return ProblemError("too-many")
    say = "This link was replaced, has ended, or was not copied whole. Ask whoever sent it for a new one."
    return ProblemError("not-found", say)


def auth_of(request: Request) -> Auth:
    """The sign-in of the app that serves a request."""
    auth: Auth = request.app.state.auth
    return auth


async def refresh_study(request: Request) -> None:
    """Dependency of a route that anybody may use: what another process changed holds here too."""
    await auth_of(request).refresh_study()


async def _require_annotator(request: Request) -> Session:
    return await auth_of(request).require_session(request, "annotator")


AnnotatorSession = Annotated[Session, Depends(_require_annotator)]
"""Parameter of a route that only signed-in annotators may use."""


def require_recent_researcher(role: Role) -> Callable[[Request], Awaitable[Session]]:
    """As `researcher`, for what must not be done with a session that somebody left open: a sign-in of today."""
    allowed = require_researcher(role)

    async def signed_in_recently(request: Request) -> Session:
        session = await allowed(request)
        if auth_of(request).store.clock() - session.created > access_storage.RECENT_SIGN_IN_SECONDS:
            raise ProblemError(
                "signed-out", "For this, sign in again: `finecomb links STUDY --researcher NAME` makes a link."
            )
        return session

    return signed_in_recently


def require_researcher(role: Role) -> Callable[[Request], Awaitable[Session]]:
    """Dependency of a route that researchers of that role or above may use; returns their session."""

    async def require_role(request: Request) -> Session:
        auth = auth_of(request)
        session = await auth.require_session(request, "researcher")
        await auth.renew_session(session)
        if session.role is None or ROLES.index(session.role) < ROLES.index(role):
            raise ProblemError("not-allowed", f"This needs the role {role}. An owner of the study can give it to you.")
        return session

    return require_role
