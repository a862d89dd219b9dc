"""Authentication: signed cookies, CSRF tokens and limits on attempts."""

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

from finecomb.collection import access_storage, arrivals_storage
from finecomb.collection.access_storage import ROLES, Role, Session, UserKind
from finecomb.collection.arrivals import ArrivalSource
from finecomb.collection.database.connection import Transaction
from finecomb.collection.database.store import Store
from finecomb.server.error_responses import ProblemError

P = ParamSpec("P")
CookieKind = Literal["annotator", "researcher", "device"]
COOKIE_NAMES: dict[CookieKind, str] = {
    "annotator": "finecomb",
    "researcher": "finecomb-researcher",
    "device": "finecomb-device",  # random; shows only whether two people used the same browser
}
CSRF_HEADER = "X-Finecomb-Token"
"""Name of the header with the CSRF token, which every request that changes data must have."""
_MAX_WRONG_ATTEMPTS = 10  # wrong links per address, or code attempts per worker, within ten minutes
_MAX_JOINS_PER_ADDRESS = 60  # people joining by the open link within ten minutes
_ACTIVITY_WRITE_SECONDS = 300.0  # interval between updates of a session's last activity
_MAX_CACHED_SESSIONS = 10_000  # limits memory
_MAX_DEVICE_LENGTH = 100  # maximum characters in a device cookie
_DEVICE_COOKIE_SECONDS = 365 * 24 * 3600  # one year
# A researcher's link works once, so the usual advice to open it again would be wrong.
_SIGNED_OUT_RESEARCHER_MESSAGE = "You are signed out. Sign in with a new link."


@dataclass(slots=True)
class Auth:
    """Authentication for one study: sign-in and sessions."""

    store: Store
    origin: str = ""
    """Public address, e.g. `https://study.example`. When empty, the address of the request is used."""

    @property
    def is_secure(self) -> bool:
        """True when cookies are sent over TLS only."""
        return self.origin.startswith("https:")

    def signature(self, text: str) -> str:
        """Return a signature of `text`, made with the study's secret."""
        return hmac.new(self.store.head.secret.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]

    def csrf_token(self, session: Session) -> str:
        """Return the CSRF token of a session."""
        return self.signature(f"csrf/{session.hash}")

    def set_session_cookie(self, response: Response, kind: UserKind, token: str) -> None:
        """Set the cookie with a session token."""
        self._set_cookie(
            response,
            kind,
            f"{token}.{self.signature(token)}",
            int(access_storage.SESSION_LIFETIME_SECONDS_BY_KIND[kind]),
        )

    def clear_session_cookie(self, response: Response, kind: UserKind) -> None:
        """Delete the session cookie in the browser."""
        self._set_cookie(response, kind, "", 0)

    def _set_cookie(self, response: Response, kind: CookieKind, value: str, seconds: int) -> None:
        """Set a cookie for this site. It is partitioned when the study allows its pages in another site's frame.

        The header is written by hand because the standard library supports `Partitioned` only from Python 3.14.
        """
        framed = kind != "researcher" and self.store.head.settings.recruitment.frame
        strict = f"SameSite=Strict{'; Secure' if self.is_secure else ''}"
        how = "SameSite=None; Secure; Partitioned" if framed else strict
        response.headers.append(
            "set-cookie", f"{self.cookie_name(kind)}={value}; HttpOnly; Max-Age={seconds}; Path=/; {how}"
        )

    def identify_device(self, request: Request, response: Response) -> str:
        """Return the keyed hash of a random cookie, which identifies the browser. If the cookie is missing, set it."""
        device = request.cookies.get(self.cookie_name("device"), "")
        if not 0 < len(device) <= _MAX_DEVICE_LENGTH:
            device = secrets.token_urlsafe(16)
            self._set_cookie(response, "device", device, _DEVICE_COOKIE_SECONDS)
        return self.signature(f"device/{device}")

    def cookie_name(self, kind: CookieKind) -> str:
        """Return the name of a cookie. It is specific to the study, because browsers share cookies between ports."""
        prefix = "__Host-" if self.is_secure else ""  # other sites on the same domain cannot set the cookie
        return f"{prefix}{COOKIE_NAMES[kind]}-{self.signature('cookie')[:8]}"

    def current_session(self, request: Request, kind: UserKind) -> Session | None:
        """Return the session of a request, from the cache or the database, or None."""
        cookie, recent = request.cookies.get(self.cookie_name(kind), ""), self.store.sessions
        session = recent.get(cookie)  # another thread may clear the cache at any time
        if session is None:
            token, _, signature = cookie.rpartition(".")
            if not token or not hmac.compare_digest(signature.encode(), self.signature(token).encode()):
                return None
            session = self.store.read(access_storage.find_session, token)
            if session is None:
                return None
            # A researcher's session is not cached if another process may update its last activity.
            if session.kind != "researcher" or self.store.database.sqlite:
                if len(recent) >= _MAX_CACHED_SESSIONS:
                    recent.clear()
                recent[cookie] = session
        return session if session.kind == kind and session.expires > self.store.clock() else None

    async def require_session(self, request: Request, kind: UserKind, current: bool = True) -> Session:
        """Return the session of a request, or raise a `ProblemError` for a missing session or a forged request.

        With `current=False`, changes by other processes, such as a sign-out, are not checked. Saves use this, because
        they check for such changes on the writer thread.
        """
        if current:
            await self.refresh_study()
        session = self.current_session(request, kind)
        if session is None:
            raise ProblemError("signed-out", _SIGNED_OUT_RESEARCHER_MESSAGE if kind == "researcher" else "")
        if request.method not in ("GET", "HEAD"):
            self.check_origin(request)
            if not hmac.compare_digest(
                request.headers.get(CSRF_HEADER, "").encode(), self.csrf_token(session).encode()
            ):
                raise ProblemError("not-allowed", "This page is out of date. Reload it to continue.")
        return session

    async def refresh_study(self) -> None:
        """Reload the study state if another process, such as a command, changed it."""
        await run_in_threadpool(self.store.refresh_and_check_current)

    def check_origin(self, request: Request) -> None:
        """Reject a request that was sent by another site's page."""
        site = request.headers.get("sec-fetch-site", "same-origin")
        origin = request.headers.get("origin", "")
        hosts = {urlsplit(self.origin).netloc, request.headers.get("host", "")} - {""}
        if site != "same-origin" or (origin and urlsplit(origin).netloc not in hosts):
            raise ProblemError("not-allowed", "This request did not come from the study's pages.")

    async def sign_in_by_link(
        self,
        request: Request,
        job: Callable[Concatenate[Store, Transaction, P], str | None],
        *args: P.args,
        **named: P.kwargs,
    ) -> str:
        """Run `job` to sign in with a link, limit wrong attempts, and return the session token."""
        self.check_origin(request)
        address = request.client.host if request.client else ""
        token = await self.store.run_job(job, *args, **named)
        self.store.sessions.clear()  # the role of a researcher may have changed
        if token is None:
            raise wrong_link_error(
                await self.store.run_job(
                    access_storage.record_and_count_attempts, "wrong-link", self.signature(address)
                )
            )
        return token

    async def check_join_limit(self, source: ArrivalSource) -> None:
        """Count a person who joins by the open link. Raise an error when too many people join from the same address.

        A person who is already known counts by themselves, so that a full network keeps out newcomers only.
        """
        known = await run_in_threadpool(self.store.read, arrivals_storage.find_returning_annotator, source)
        counted = self.signature(f"person/{known}") if known else source.address
        if counted and (
            await self.store.run_job(access_storage.record_and_count_attempts, "join", counted) > _MAX_JOINS_PER_ADDRESS
        ):
            raise ProblemError("too-many", "Too many people have joined from your network. Try again in ten minutes.")

    async def check_code_attempt_limit(self, worker: str) -> None:
        """Count an attempt to enter a transfer code. Raise an error when a worker has made too many attempts."""
        if (
            await self.store.run_job(
                access_storage.record_and_count_attempts, "browser-code", self.signature(f"worker/{worker}")
            )
            > _MAX_WRONG_ATTEMPTS
        ):
            raise ProblemError("too-many")

    def address_hash(self, request: Request) -> str:
        """Return the keyed hash of the IP address (for IPv6, of its /64 network), or an empty string if it is local."""
        try:
            address = ipaddress.ip_address(request.client.host if request.client else "")
        except ValueError:
            return ""
        if address.is_loopback:
            return ""
        network = str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else str(address)
        return self.signature(f"address/{network}")

    def record_wrong_link(self, request: Request) -> ProblemError:
        """Count a request with a wrong link, and return the error to raise."""
        address = request.client.host if request.client else ""
        return wrong_link_error(
            self.store.run_job_sync(access_storage.record_and_count_attempts, "wrong-link", self.signature(address))
        )

    async def sign_out(self, session: Session) -> None:
        """End a session."""
        await self.store.run_job(access_storage.end_session, session.hash)
        self.store.sessions.clear()


def wrong_link_error(tries: int) -> ProblemError:
    """Return the error for a wrong link, which depends on the number of recent attempts from the same address."""
    if tries > _MAX_WRONG_ATTEMPTS:
        return ProblemError("too-many")
    say = "This link has expired, was replaced, or was not copied completely. Ask the sender for a new one."
    return ProblemError("not-found", say)


def get_auth(request: Request) -> Auth:
    """Return the `Auth` of the app that serves a request."""
    auth: Auth = request.app.state.auth
    return auth


async def refresh_study(request: Request) -> None:
    """Reload the study state for a public route if another process changed it."""
    await get_auth(request).refresh_study()


async def _require_annotator(request: Request) -> Session:
    return await get_auth(request).require_session(request, "annotator")


AnnotatorSession = Annotated[Session, Depends(_require_annotator)]
"""Route parameter that requires a signed-in annotator."""


def require_recent_researcher(role: Role) -> Callable[[Request], Awaitable[Session]]:
    """Return a dependency for sensitive actions, which requires a researcher who signed in within the last day."""
    allowed = require_researcher(role)

    async def signed_in_recently(request: Request) -> Session:
        session = await allowed(request)
        if get_auth(request).store.clock() - session.created > access_storage.MAX_RECENT_SIGN_IN_SECONDS:
            raise ProblemError(
                "signed-out", "Sign in again to do this. Run `finecomb links STUDY --researcher NAME` for a link."
            )
        return session

    return signed_in_recently


def require_researcher(role: Role) -> Callable[[Request], Awaitable[Session]]:
    """Return a dependency that requires a researcher with at least the given role, and returns the session."""

    async def require_role(request: Request) -> Session:
        auth = get_auth(request)
        session = await auth.require_session(request, "researcher")
        now = auth.store.clock()
        if now - session.active > access_storage.MAX_RESEARCHER_IDLE_SECONDS:
            await auth.sign_out(session)
            raise ProblemError(
                "signed-out", "You were signed out because of inactivity. Sign in again with a new link."
            )
        if now - session.active > _ACTIVITY_WRITE_SECONDS:
            await auth.store.run_job(access_storage.record_session_activity, session.hash)
            auth.store.sessions.clear()
        if session.role is None or ROLES.index(session.role) < ROLES.index(role):
            raise ProblemError(
                "not-allowed", f"This action requires the role {role}. An owner of the study can change your role."
            )
        return session

    return require_role
